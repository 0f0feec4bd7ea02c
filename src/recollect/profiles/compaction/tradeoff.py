"""Cost against accuracy: what a map would answer right at many sizes, by budget, with hashed sets and by weights.

Hides: how that is computed. One scan gives the branches; each size is one search over prices, each pair of weights one
pass over the branches. Keys are counted from decisions alone; bytes are those of a file (`.zst`) that is written,
measured and removed.

Accuracy. With a log: the share of its lookups answered right. Maps by budget learn from one half of the log and are
judged by the other, and the other way round, so a log does not praise itself; weights learn nothing and are judged
by all of it. Without a log: the share of lookups of absent URIs that the prior expects to be answered no.

The map is the truth, so it should not have been compacted before: what lies below its wildcards is unknown
and counts as held.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.formats.containers import OnProblem, compressed
from recollect.formats.logs import LogEntry
from recollect.kernels import budget as kernels
from recollect.kernels import walk
from recollect.kernels.branches import ABSENT, HELD, VOID, WILD
from recollect.model import Progress, ProgressCallback
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.budget import Case, opened
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.chances import wrong_answers
from recollect.profiles.compaction.demand import LookupCounts
from recollect.profiles.compaction.forecast import CrossValidation, Forecaster, Smoothing
from recollect.profiles.compaction.optimum import ExpectedLookups, Optimiser, Solution
from recollect.profiles.compaction.weights import Weights

# The weights of Figure 9 of Alam et al. (2019), for hosts and for paths.
FIGURE_9 = (4.0, 2.0, 1.0, 0.5, 0.25, 0.0)
SIZES = 40
SMALLEST = 0.001  # the cost down to which maps are shown, if they can be that small
FIT_AT = 0.01  # the cost at which the smoothing of a log is fitted
# Top-level domains have no wildcards in maps with sets if without them a map can be this small, as a part of the whole.
_SPARED = 0.05
_LARGEST_WITH_SETS = 0.15  # part of the whole map up to which maps with sets are shown: eight bits a key and more


@dataclass(frozen=True, slots=True)
class Point:
    """One map: its size, relative cost (keys per URI-R) and accuracy; weights for hosts and paths if made by them.
    `bytes` are those of its compressed file, header included."""

    keys: int
    cost: float
    accuracy: float
    host_weight: float | None = None
    path_weight: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Maps by budget and by weights, both by cost, and maps with hashed sets, by bytes; `knee` is the budget beyond
    which more keys help little."""

    label: str
    keys: int
    uri_rs: int
    lookups: int
    unusable_lookups: int
    budget: tuple[Point, ...]
    weights: tuple[Point, ...]
    knee: Point | None
    sets: tuple[Point, ...] = ()


def tradeoff(
    source: str | os.PathLike[str],
    *,
    lookups: Iterable[LogEntry] | None = None,
    sizes: int = SIZES,
    threads: int = 0,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> Tradeoff:
    """Accuracy at many sizes of a map."""
    with opened(source, threads, on_problem) as (plain, branches):
        case = Case.of(branches, lookups, plain.header.policy)
        halves = 1 if case.demand is None else 2
        steps, done = 2 * halves * sizes + len(FIGURE_9) ** 2, count(1)

        def report() -> None:
            if progress is not None:
                progress(Progress("measuring", min(next(done), steps), steps, "maps"))

        scale = _FileScale(plain.header.encode())
        trials = _trials(case)
        budget = _by_budget(case, trials, sizes, scale, report)
        sets = _with_sets(case, trials, sizes, scale, report)
        weights = []
        everything = _judge_of_all(case)
        for host in FIGURE_9:
            for path in FIGURE_9:
                weights.append(by_weights(case, everything, Weights(host, path), scale))
                report()
        demand = case.demand
        return Tradeoff(
            Path(plain.label).name,
            len(branches.rows),
            case.branches.uri_rs,
            int(demand.counts.sum()) if demand is not None else 0,
            demand.unusable if demand is not None else 0,
            tuple(budget),
            tuple(sorted(weights, key=lambda point: (point.cost, point.accuracy))),
            knee_of(budget),
            tuple(_paying(sets, budget)),
        )


class _Counter(io.BytesIO):
    """Counts the bytes that are written, and keeps none."""

    size = 0

    def write(self, data: Any) -> int:
        self.size += len(data)
        return len(data)


@dataclass(frozen=True, slots=True)
class _FileScale:
    """Measures how large the compressed file of a map is, by writing it to a stream that only counts."""

    head: bytes

    def weigh(self, pieces: Iterator[bytes]) -> tuple[int, int]:
        """The keys of a map and the bytes of its file."""
        keys, counter = 0, _Counter()
        with compressed(counter, "trial.ukvs.zst") as out:
            out.write(self.head)
            for piece in pieces:
                out.write(piece)
                keys += piece.count(b"\n")
        return keys, counter.size

    def bytes_of(self, case: Case, solution: Solution) -> int:
        """The bytes of a map in clear."""
        return self.weigh(lines_of(case, solution))[1]


# Says what share of lookups a solution answers wrongly.
Judge = Callable[[Solution], float]


def _judge_of_all(case: Case) -> Judge:
    """Judges by the whole log or, without one, by the prior."""
    demand = case.demand
    if demand is None:
        expected = case.expected(Smoothing())
        return lambda solution: float(_weigh(case, expected, solution)[1])
    tally = demand.tally()
    return lambda solution: _share(wrong_answers(demand, tally, solution), int(tally.passing[0]))


def _share(wrong: float, of: int) -> float:
    return wrong / of if of else 0.0


@dataclass(frozen=True, slots=True)
class _Trial:
    """What maps by budget are made from, and the part of the log that judges them; None: the prior does."""

    case: Case
    expected: ExpectedLookups
    unseen: LookupCounts | None

    def wrong(self, solution: Solution) -> float:
        """The share of lookups that a solution answers wrongly."""
        demand = self.case.demand
        if self.unseen is None or demand is None:
            return solution.loss
        return _share(wrong_answers(demand, self.unseen, solution), int(self.unseen.passing[0]))


def _trials(case: Case) -> list[_Trial]:
    """Each half of the log with the other half as its judge; without a log the prior."""
    demand = case.demand
    if demand is None:
        return [_Trial(case, case.expected(Smoothing()), None)]
    optimiser = Optimiser(case.expected(Smoothing()), case.costs("keys"), case.may_roll(2))
    limit = max(int(optimiser.smallest.cost), int(FIT_AT * case.branches.uri_rs))

    def solve(expected: ExpectedLookups) -> Solution:
        solution = optimiser.like(expected).within(limit, spend=False)
        assert solution is not None
        return solution

    smoothing = CrossValidation(demand).fit(solve).smoothing
    return [_Trial(case, Forecaster(demand, known).expected(smoothing), unseen) for known, unseen in demand.parts(2)]


def _by_budget(
    case: Case, trials: list[_Trial], sizes: int, scale: _FileScale, report: Callable[[], None]
) -> list[Point]:
    """Points at sizes spread evenly over the orders of magnitude, from a small map to the whole one."""
    costs, uri_rs = case.costs("keys"), case.branches.uri_rs
    curves = []
    for trial in trials:
        spared = Optimiser(trial.expected, costs, case.may_roll(2))
        rolled = spared.like(may_roll=case.may_roll(1))
        # Where nearly every domain holds one page, maps get small only by rolling up top-level domains.
        smallest = min(spared.smallest.cost, max(rolled.smallest.cost, int(SMALLEST * uri_rs)))
        largest = max(1, int(case.branches.keys.sum()))
        steps = np.geomspace(max(1, smallest), max(1, smallest, largest), sizes).round().astype(int)
        price, curve = 0.0, []
        for target in sorted(set(steps.tolist())):
            found = [spared.within(target, near=price, spend=False)]
            price = found[0].price if found[0] else 0.0
            if case.demand is not None or found[0] is None:
                found.append(rolled.within(target, spend=False))
            wrong, cost, number = min(
                ((trial.wrong(one), one.cost, place) for place, one in enumerate(found) if one), default=(0.0, 0, -1)
            )
            best = found[number] if number >= 0 else None
            curve.append((wrong, cost, scale.bytes_of(case, best) if best else 0))
            report()
        curves.append(curve)
    points = {}
    for parts in zip(*curves, strict=True):
        wrong, keys, size = (float(number) for number in np.mean(parts, axis=0))
        points[int(keys)] = Point(int(keys), int(keys) / uri_rs, 1 - wrong, bytes=int(size))
    return sorted(points.values(), key=lambda point: point.keys)


def _with_sets(
    case: Case, trials: list[_Trial], sizes: int, scale: _FileScale, report: Callable[[], None]
) -> list[Point]:
    """Points of maps with hashed sets, at prices spread evenly over the orders of magnitude."""
    costs, uri_rs = case.costs("novel", sets=True), case.branches.uri_rs
    whole = max(1, int(costs.listed.sum()))
    plain = Optimiser(trials[0].expected, replace(costs, sets=None), case.may_roll(2))
    # With a log, sets go over top-level domains where it shows that they pay, as in compaction.
    top = 2 if case.demand is None and plain.smallest.cost <= _SPARED * whole else 1
    curves, prices = [], np.empty(0)
    for trial in trials:
        optimiser = Optimiser(trial.expected, costs, case.may_roll(top))
        if not len(prices):
            least = plain.like(trial.expected, case.may_roll(top)).smallest.cost
            prices = optimiser.prices_between(least, whole * _LARGEST_WITH_SETS, sizes)
        curve = []
        for price in prices.tolist():
            found = optimiser.at_price(price)
            curve.append((trial.wrong(found), *scale.weigh(lines_of(case, found, draft=True))))
            report()
        curves.append(curve)
    points = {}
    for parts in zip(*curves, strict=True):
        wrong, keys, size = (float(number) for number in np.mean(parts, axis=0))
        points[int(size)] = Point(int(keys), int(keys) / uri_rs, 1 - wrong, bytes=int(size))
    return sorted(points.values(), key=lambda point: point.bytes or 0)


def _paying(sets: list[Point], budget: list[Point]) -> list[Point]:
    """The maps with sets that no map in clear of at most their bytes equals; these begin where sets pay."""

    def equalled(one: Point) -> bool:
        return any((other.bytes or 0) <= (one.bytes or 0) and other.accuracy >= one.accuracy for other in budget)

    return [one for one in sets if not equalled(one)]


def by_weights(case: Case, judge: Judge, weights: Weights, scale: _FileScale | None = None) -> Point:
    """The map that `compact_by_weights` would make, from its branches alone."""
    branches = case.branches
    rolled = _rolled(branches, weights)
    decide = np.where(rolled | ((branches.flags & WILD) != 0), kernels.PUT_WILD, 0).astype(np.uint8)
    decide[((branches.flags & VOID) != 0) & (branches.size == 0)] |= kernels.PUT_VOID
    decide[(branches.flags & (ABSENT | HELD)) == ABSENT] |= kernels.PUT_ZERO
    decide = np.concatenate((decide, np.zeros(len(case.up) - len(branches), np.uint8)))
    solution = Solution(0.0, 0, 0.0, case.up, decide)
    state = solution.state[: len(branches)]
    above = np.where(branches.up >= 0, state[np.maximum(branches.up, 0)], 0)
    # Compaction by weights keeps voids where nothing covers them, too.
    kept = ((branches.flags & VOID) != 0) & (above == 0)
    zero = ((branches.flags & ABSENT) != 0) & (state == 0)
    keys = int(_weigh(case, ExpectedLookups(case.up, *_nothing(len(case.up))), solution)[0] + kept.sum() + zero.sum())
    cost = keys / branches.uri_rs
    size = scale.bytes_of(case, solution) if scale is not None else None
    return Point(keys, cost, 1 - judge(solution), weights.host_weight, weights.path_weight, size)


def _nothing(count: int) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    return np.zeros(count, np.bool_), np.zeros(count), np.zeros(count)


def _rolled(branches: Branches, weights: Weights) -> NDArray[np.bool_]:
    """Which branches have more children than the weights allow. The root of a host's paths is not a child of the host;
    at the limit of depth the rest of a key is one segment."""
    is_path = branches.is_path
    below_host = is_path & (branches.up >= 0) & ~is_path[np.maximum(branches.up, 0)] & (branches.size > 0)
    roots = np.bincount(branches.up[below_host], minlength=len(branches)) + branches.leaves
    rests = np.zeros(len(branches), np.int64)
    kernels.outermost(branches.up, branches.flags, branches.leaves, rests)
    deepest = branches.depth == weights.max_path_depth - 1
    children = np.where(is_path, np.where(deepest, rests, branches.held_children), branches.held_children - roots)
    host, path = np.asarray(weights.host_cutoffs()), np.asarray(weights.path_cutoffs())
    cutoff = np.where(is_path, _at(path, branches.depth), _at(host, branches.depth))
    # A host of which only ports are held does not roll up, nor do numbers.
    host_only = branches.kind == walk.HOST
    first, after = (branches.data[at[host_only]] for at in (branches.name_at, branches.name_at + branches.name_length))
    host_only[host_only] = (after != ord(":")) & ((first < ord("0")) | (first > ord("9")))
    return np.asarray((children > cutoff) & (is_path | host_only))


def _at(cutoffs: NDArray[np.float64], depth: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(depth < len(cutoffs), cutoffs[np.minimum(depth, len(cutoffs) - 1)], np.inf)


def _weigh(case: Case, expected: ExpectedLookups, solution: Solution) -> tuple[int, float]:
    costs = case.costs("keys")
    return Optimiser(expected, costs, np.ones(len(case.up), np.bool_)).weigh(solution.decide)


# How far a curve must bend away from the straight line between its ends, as a part of its whole rise, to have a knee.
_BEND = 0.1


def knee_of(points: list[Point]) -> Point | None:
    """The point furthest above the line from the first to the last, cost on a logarithmic scale as it is drawn; None
    for a curve that climbs evenly, where no size is better than another."""
    if len(points) < 3 or points[-1].accuracy <= points[0].accuracy:
        return None
    x = np.log([point.cost for point in points])
    y = np.array([point.accuracy for point in points])
    height = (y - y[0]) / (y[-1] - y[0]) - (x - x[0]) / (x[-1] - x[0])
    best = int(np.argmax(height))
    return points[best] if height[best] >= _BEND else None
