"""Compaction by budget on Spark: one price for all ranges, found from what each range would cost at many prices.

`profiles.optimum` is exact for a price per key, and prices of separate domains are separate: so for a given price every
range is decided by itself, and costs and losses add up. The driver sums them for a row of prices, closes in on the
price at which all ranges together meet the budget, and lets those ranges go to the next lower price that gain most by
it, as long as the budget holds. Expected lookups (`profiles.prior`) enter at the root: what a domain gets depends on
its top-level domain and on all others, so counts of those are added up first. Only counts, costs and losses come to
the driver.

The budget is met exactly as on one machine; the few keys that are left over are spent by whole ranges and not by single
nodes, so the map may differ there from that of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import UsageError
from recollect.formats.ukvs import Header
from recollect.model import ProgressCallback
from recollect.profiles.compaction import treekernels
from recollect.profiles.compaction.budget import Budget, BudgetCompaction, Case, Choice, TooSmall, budget_header, opened
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.forecast import Fit, Smoothing
from recollect.profiles.compaction.optimum import Optimiser, Solution, Stakes
from recollect.profiles.compaction.prior import Shares, shares_of, spread
from recollect.spark.exchange import Sizes
from recollect.spark.files import target_of
from recollect.spark.maps import DOMAIN, TOP, Ranged, find_map, in_ranges, plain_header, spooled
from recollect.spark.parts import Range, assemble, in_chunks, write_texts
from recollect.spark.session import Cluster, progress_of, session

Floats = NDArray[np.float64]
LOWEST, HIGHEST = 1e-16, 4.0
STEPS = 33
ROUNDS = 4
_ROOT = b""


@dataclass(slots=True)
class Crossing:
    """What is known of a node that ranges share (the root, a top-level domain): sums over its children."""

    size: float = 0.0
    leaves: float = 0.0
    kinds: float = 0.0
    onward: float = 0.0
    stay: float = 0.0

    def add(self, other: Crossing) -> None:
        self.size += other.size
        self.leaves += other.leaves
        self.kinds += other.kinds
        self.onward += other.onward
        self.stay = max(self.stay, other.stay)

    @property
    def everything(self) -> float:
        """All weights at the node together, as `prior.shares_of` has them."""
        seen = self.onward + self.leaves + self.stay
        share = 1 / np.sqrt(1.0 + self.kinds)
        unseen = share * seen / (1 - share if share < 1 else 1.0) if seen > 0 else 1.0
        return float(seen + unseen)


@dataclass(frozen=True, slots=True)
class Masses:
    """For each shared node, the lookups that reach it for each unit of weight at it."""

    of: dict[bytes, float]


@dataclass(slots=True)
class Survey:
    """What a range tells before prices: its shared nodes, keys and URI-Rs."""

    crossings: dict[bytes, Crossing]
    keys: int
    uri_rs: int


def compact_by_budget(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    budget: Budget,
    *,
    cluster: Cluster | None = None,
    parts: bool = False,
    sizes: Sizes | None = None,
    progress: ProgressCallback | None = None,
) -> BudgetCompaction:
    """Compact a map into another, or into itself, within a number of keys, on Spark."""
    if budget.max_bytes is not None or budget.min_accuracy is not None:
        raise UsageError("on Spark a budget is a number of keys", hint="--max-cost or --max-keys; or --engine embedded")
    output = os.fspath(target)
    with session(cluster or Cluster()) as spark:
        one = find_map(spark, os.fspath(source))
        if len(one.header.keys) > 1 or one.header.style != "ukvs" or one.header.lists_voids:
            raise UsageError("not a plain map of holdings", where=one.name, hint="--engine embedded")
        deep = TOP if budget.rollup_tlds else DOMAIN
        ranged = in_ranges(spark, [one], sizes or Sizes(), lambda widest: min(widest, deep), progress)
        place = target_of(spark, output, None)
        try:
            job = _Job(spark, ranged, plain_header(one.header), deep, progress)
            limit, survey = job.limit(budget)
            prices, solution = job.prices(limit)
            done = job.write(prices, place)
            head = budget_header(one.header, budget, Choice(solution, Fit(Smoothing()), "")).encode()
            ranges = {number: found for number, (found, _) in done.items()}
            size = assemble(place, head, ranges, {}, as_parts=parts or output.endswith("/"))
        finally:
            ranged.blocks.unpersist()
            place.discard()
    made = [sum(column) for column in zip(*(counts for _, counts in done.values()), strict=True)] or [0, 0, 0]
    return BudgetCompaction(
        keys_in=survey.keys,
        keys_out=made[0],
        wildcards=made[1],
        voids=made[2],
        bytes_in=len(one.header.encode()) + ranged.size,
        bytes_out=size,
        uri_rs=survey.uri_rs,
        price=solution.price,
        expected_wrong=solution.loss,
        wrong_in_log=None,
        lookups=0,
        unusable_lookups=0,
        smoothing=None,
        rolled_up="",
    )


class _Job:
    """The passes over the ranges."""

    def __init__(
        self, spark: Any, ranged: Ranged, header: Header, deep: int, progress: ProgressCallback | None
    ) -> None:
        self._spark, self._ranged, self._progress = spark, ranged, progress
        self._header, self._deep = header, deep
        self._masses = Masses({})

    def limit(self, budget: Budget) -> tuple[int, Survey]:
        """The budget in keys; adds up what ranges share on the way."""
        task = _SurveyTask(self._header, self._deep)
        with progress_of(self._spark, "surveying", self._progress):
            survey: Survey = self._ranged.texts.mapPartitions(task).reduce(_together)
        self._masses = _masses(survey.crossings)
        if budget.max_cost is not None:
            return int(budget.max_cost * survey.uri_rs + 1e-9), survey
        return budget.max_keys or 0, survey

    def prices(self, limit: int) -> tuple[dict[int, float], Solution]:
        """A price for each range, so that all together cost no more than the limit."""
        row = np.geomspace(HIGHEST, LOWEST, STEPS)
        for turn in range(ROUNDS):
            costs = self._costs(row)
            total = sum(costs.values(), np.zeros((len(row), 2)))
            fits = np.flatnonzero(total[:, 0] <= limit)
            if not fits.size:
                raise TooSmall(
                    "no map is that small",
                    why=f"the budget is {limit}, and the smallest map needs {int(total[0, 0])}",
                    hint="with --rollup-tlds top-level domains may roll up, too",
                )
            at = int(fits[-1])
            if at + 1 == len(row) or turn + 1 == ROUNDS:
                break
            row = np.geomspace(row[at], row[at + 1], STEPS)
        chosen = dict.fromkeys(costs, float(row[at]))
        cost, loss = total[at]
        if at + 1 < len(row):
            # Ranges that gain most for a key go on to the next price, as long as the budget holds.
            more = {number: one[at + 1, 0] - one[at, 0] for number, one in costs.items()}
            gain = {number: one[at, 1] - one[at + 1, 1] for number, one in costs.items()}
            for number in sorted(costs, key=lambda one: (-gain[one] / max(more[one], 1), one)):
                if cost + more[number] <= limit:
                    chosen[number] = float(row[at + 1])
                    cost, loss = cost + more[number], loss - gain[number]
        return chosen, Solution(float(row[at]), int(cost), float(loss), np.zeros(0, np.uint8))

    def _costs(self, row: Floats) -> dict[int, Floats]:
        task = _PriceTask(self._header, self._deep, self._masses, row)
        with progress_of(self._spark, "choosing", self._progress):
            return dict(self._ranged.texts.mapPartitionsWithIndex(task).collect())

    def write(self, prices: dict[int, float], place: Any) -> dict[int, tuple[Range, tuple[int, int, int]]]:
        """Write every range at its price."""
        from recollect.spark.notes import notes

        told = notes(self._spark)
        task = _WriteTask(self._header, self._deep, self._masses, prices, told)
        with progress_of(self._spark, "writing", self._progress):
            write_texts(self._spark, self._ranged.texts.mapPartitionsWithIndex(task), place)
        done: dict[int, tuple[Range, tuple[int, int, int]]] = told.value
        return done


def _together(one: Survey, other: Survey) -> Survey:
    for name, crossing in other.crossings.items():
        one.crossings.setdefault(name, Crossing()).add(crossing)
    return Survey(one.crossings, one.keys + other.keys, one.uri_rs + other.uri_rs)


def _masses(crossings: dict[bytes, Crossing]) -> Masses:
    tops = {name: crossing for name, crossing in crossings.items() if name != _ROOT}
    root = crossings.get(_ROOT, Crossing())
    # At the root each top-level domain counts once, with all that it has in any range.
    whole = Crossing(root.size, root.leaves, root.kinds, root.onward, root.stay)
    weights = {name: max(one.size, 1.0) ** 0.5 for name, one in tops.items()}
    whole.onward += sum(weights.values())
    whole.kinds += sum(one.size > 0 for one in tops.values())
    each = 1.0 / whole.everything
    return Masses({_ROOT: each} | {name: each * weights[name] / one.everything for name, one in tops.items()})


@contextmanager
def _case(pieces: Iterable[Any], header: Header) -> Iterator[Case]:
    with spooled(pieces, [header]) as files, opened(files[0], 1) as (_, branches):
        yield Case(branches)


def _tops(case: Case, deep: int) -> NDArray[np.bool_]:
    """The branches that other ranges may have, too, beside the root."""
    branches = case.branches
    if deep < DOMAIN:
        return np.zeros(len(branches), np.bool_)
    return np.asarray((branches.up == 0) & ~branches.is_path & (branches.kind != treekernels.LONE))


def _crossings(case: Case, shares: Shares, tops: NDArray[np.bool_]) -> dict[bytes, Crossing]:
    branches = case.branches
    onward = np.bincount(branches.up[1:], weights=shares.weight[1:], minlength=len(branches))
    found = {}
    for branch in (0, *np.flatnonzero(tops).tolist()):
        numbers = (branches.size, branches.leaves, branches.kinds, onward, shares.stay)
        found[branches.name(branch) if branch else _ROOT] = Crossing(*(float(column[branch]) for column in numbers))
    root = found[_ROOT]
    root.onward -= float(shares.weight[tops].sum())
    root.kinds -= float((branches.size[tops] > 0).sum())
    return found


def _optimiser(case: Case, deep: int, masses: Masses) -> Optimiser:
    """The optimum's input for a range, with lookups as they come to it in the whole tree."""
    branches = case.branches
    shares, tops = shares_of(branches), _tops(case, deep)
    leave, own = spread(branches, shares)
    local = _masses(_crossings(case, shares, tops)).of
    factor = np.full(len(branches), masses.of[_ROOT] / local[_ROOT])
    for top in np.flatnonzero(tops).tolist():
        name = branches.name(top)
        factor[top] = masses.of[name] / local[name]
    # Every branch is scaled as the child of the root that it is below.
    above = np.arange(len(branches))
    while (branches.up[above] > 0).any():
        above = np.where(branches.up[above] > 0, branches.up[above], above)
    factor = factor[above]
    leave, own = leave * factor, own * factor
    # Shared nodes are decided nowhere: they do not roll up.
    shared = tops.copy()
    shared[0] = True
    leave[shared | branches.is_open] = 0.0
    own[shared] = 0.0
    stakes = Stakes(case.up, branches.is_open, leave, own)
    return Optimiser(stakes, case.costs("keys"), case.may_roll(deep))


@dataclass(frozen=True, slots=True)
class _SurveyTask:
    header: Header
    deep: int

    def __call__(self, pieces: Iterable[Any]) -> Iterator[Survey]:
        with _case(pieces, self.header) as case:
            if not len(case.branches.rows):
                yield Survey({}, 0, 0)
                return
            crossings = _crossings(case, shares_of(case.branches), _tops(case, self.deep))
            yield Survey(crossings, len(case.branches.rows), case.branches.uri_rs)


@dataclass(frozen=True, slots=True)
class _PriceTask:
    """What a range costs, and loses, at each price."""

    header: Header
    deep: int
    masses: Masses
    row: Floats

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[tuple[int, Floats]]:
        with _case(pieces, self.header) as case:
            if not len(case.branches.rows):
                return
            optimiser = _optimiser(case, self.deep, self.masses)
            solutions = (optimiser.at_price(float(price)) for price in self.row)
            yield number, np.array([(found.cost, found.loss) for found in solutions])


@dataclass(frozen=True, slots=True)
class _WriteTask:
    """The lines of a range at its price."""

    header: Header
    deep: int
    masses: Masses
    prices: dict[int, float]
    told: Any

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        if number not in self.prices:
            return
        note = Range()
        with _case(pieces, self.header) as case:
            solution = _optimiser(case, self.deep, self.masses).at_price(self.prices[number])
            for text in in_chunks(lines_of(case.branches, None, solution, case.up)):
                note.saw(text)
                note.keys += text.count(b"\n")
                yield text
            state = solution.states(case.up)
            above = np.where(case.up >= 0, state[np.maximum(case.up, 0)], 0)
            counts = (note.keys, int(((state == 1) & (above == 0)).sum()), int(((state == 0) & (above == 1)).sum()))
        self.told.add({number: (note, counts)})
