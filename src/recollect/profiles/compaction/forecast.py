"""From what people asked to what they will ask: a log smoothed with the prior, and how strongly, by cross-validation.

Hides: the estimate. At each branch the next lookup either goes where lookups went before, or somewhere new. As in
language models (modified Kneser-Ney), each way seen r times keeps r - D(r), where the discounts D(1), D(2), D(3+)
follow from how many ways were seen once, twice, ... (Good and Turing's argument, leaving one out), for each depth
of hosts and paths apart. In a list of different URIs nearly every way is seen once, so nearly all goes to unseen
neighbours; in a log of requests popular absent URIs keep their share.

What the discounts free goes to new ways: held ones, absent ones, or on into another branch, in the proportions of what
was freed at the branch, with the prior's as if seen once more. The prior's proportions are corrected for each depth by
those of the whole log, so that a branch without lookups is like others of its depth.

Three numbers are not settled by such arguments (`Smoothing`). They are chosen for the given log: each candidate is
made from one half of the log and judged by the wrong answers on the other half, at the budget asked for
(`CrossValidation`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.kernels.branches import GROWN, HELD
from recollect.kernels.budget import pass_on
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.chances import perhaps_held, wrong_answers
from recollect.profiles.compaction.demand import Demand, LookupCounts
from recollect.profiles.compaction.optimum import ExpectedLookups, Solution
from recollect.profiles.compaction.prior import Shares, shares_of, spread

Floats = NDArray[np.float64]

# Where a lookup goes at a branch: to what is held, to what is not, or on into another branch.
HIT, MISS, ON = 0, 1, 2
LEVELS = 4  # of hosts, and as many of paths; deeper ones are like the last


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The three parameters that cross-validation chooses (docs/compaction.md); `compact --json` prints them."""

    temper: float = 0.5  # a child attracts lookups in proportion to its size to this power
    spill: float = 0.1  # share of the lookups of an absent subtree that will fall next to it
    doubt: float = 0.05  # share of all lookups that follow the prior alone


CANDIDATES: dict[str, tuple[float, ...]] = {
    "temper": (0.0, 0.25, 0.5, 0.75, 1.0),
    "spill": (0.0, 0.03, 0.1, 0.3, 1.0),
    "doubt": (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),  # 1: a log that does not predict other lookups
}


class Forecaster:
    """Forecasts from one tally. What does not depend on the smoothing is computed once."""

    def __init__(self, demand: Demand, tally: LookupCounts) -> None:
        self.demand, self.tally = demand, tally
        branches = demand.branches
        count, leaves, absences = len(branches), len(demand.leaf_at), len(demand.absence_at)
        self._level = _levels(branches)
        at = np.concatenate((np.arange(count), branches.up[1:], demand.leaf_at, demand.absence_at))
        seen = np.concatenate((tally.stop, tally.passing[1:], tally.leaf, tally.absence))
        held = (branches.flags & HELD) != 0
        onward = np.where((branches.flags[1:] & GROWN) != 0, HIT, ON)
        kind = np.concatenate((np.where(held, HIT, MISS), onward, np.repeat([HIT, MISS], [leaves, absences])))
        freed = _discounts(self._level[at], seen)[self._level[at], np.minimum(seen, 3)]
        self._loose = _sums(at * 3 + kind, freed, 3 * count).reshape(-1, 3)
        # One more lookup that follows the prior: it defines branches without lookups, and makes no estimate too
        # certain.
        self._total = tally.passing + 1.0
        kept = (seen - freed) / self._total[at]
        self._stop, self._onward, _, self._absent = np.split(kept, np.cumsum([count, count - 1, leaves]))
        self._temper: tuple[float, tuple[Floats, ...]] | None = None  # the last one, as all take much memory

    def expected(self, smoothing: Smoothing) -> ExpectedLookups:
        """What can be lost at each branch and, after the branches, at each absence."""
        branches, at = self.demand.branches, self.demand.absence_at
        if self._temper is None or self._temper[0] != smoothing.temper:
            self._temper = None
            shares = shares_of(branches, smoothing.temper)
            self._temper = smoothing.temper, (*self._forecast(shares), *spread(branches, shares))
        leave, own, absence, blind_leave, blind_own = self._temper[1]
        doubt, spill = smoothing.doubt, smoothing.spill
        leave = (1 - doubt) * (leave + spill * _sums(at, absence, len(branches))) + doubt * blind_leave
        leave[branches.is_open] = 0.0
        return ExpectedLookups(
            np.concatenate((branches.up, at)),
            np.concatenate((branches.is_open, np.zeros(len(at), np.bool_))),
            np.concatenate((leave, (1 - doubt) * (1 - spill) * absence)),
            np.concatenate(((1 - doubt) * own + doubt * blind_own, np.zeros(len(at)))),
        )

    def _forecast(self, shares: Shares) -> tuple[Floats, Floats, Floats]:
        """The mass that leaves at each branch to unseen children, that requests the branch itself, and for each
        absence."""
        branches = self.demand.branches
        weight = _sums(branches.up[1:], shares.weight[1:], len(branches))
        new = (self._loose + self._guess(shares, weight)) / self._total[:, None]
        mass = np.zeros(len(branches))
        pass_on(branches.up, self._onward, new[:, ON] / np.where(weight > 0, weight, 1.0), shares.weight, mass)
        staying = shares.stay / (shares.stay + shares.leave)
        own = mass * (self._stop + new[:, MISS] * staying)
        own[perhaps_held(branches)] = 0.0
        return mass * new[:, MISS] * (1 - staying), own, self._absent * mass[self.demand.absence_at]

    def _guess(self, shares: Shares, weight: Floats) -> Floats:
        """How a new lookup splits at each branch before its own lookups are heard: the prior's hits (on leaves),
        misses and ways on, each corrected for its level by what was freed there against what the prior expects."""
        loose, level = self._loose, self._level
        guess = np.stack((self.demand.branches.all_leaves.astype(float), shares.stay + shares.leave, weight), axis=1)
        guess /= guess.sum(axis=1, keepdims=True)
        heard = loose.sum(axis=1)
        for kind in (HIT, MISS, ON):
            freed = _sums(level, loose[:, kind], 2 * LEVELS)
            guess[:, kind] *= ((freed + 1) / (_sums(level, heard * guess[:, kind], 2 * LEVELS) + 1))[level]
        if not heard.any():
            guess[:, HIT] = 0.0  # without any lookup nothing is known of hits, and only misses and ways on matter
        guess /= guess.sum(axis=1, keepdims=True)
        return guess


def _sums(at: NDArray[Any], weights: Floats, count: int) -> Floats:
    return np.bincount(at, weights=weights, minlength=count).astype(float)


def _levels(branches: Branches) -> NDArray[np.int64]:
    depth = branches.depth
    return np.where(branches.is_path, LEVELS + np.minimum(depth - 1, LEVELS - 1), np.minimum(depth, LEVELS - 1))


def _discounts(level: NDArray[np.int64], seen: NDArray[np.int64]) -> Floats:
    """D(r) for each level; r is 0, 1, 2, 3 (and more)."""
    often = np.bincount(level * 6 + np.minimum(seen, 5), minlength=2 * LEVELS * 6)
    ways = often.reshape(-1, 6) + 0.5  # so that few observations give no certainty
    scale = ways[:, 1] / (ways[:, 1] + 2 * ways[:, 2])
    result = np.zeros((2 * LEVELS, 4))
    for r in (1, 2, 3):
        result[:, r] = np.clip(r - (r + 1) * scale * ways[:, r + 1] / ways[:, r], 0, r)
    return result


@dataclass(frozen=True, slots=True)
class Fit:
    """A smoothing, and how many lookups maps made with it answered wrongly in cross-validation; `tlds` if that was with
    wildcards over top-level domains."""

    smoothing: Smoothing
    wrong: int = 0
    tlds: bool = False

    def beats(self, other: Fit) -> bool:
        """Whether it has fewer wrong answers, by more than chance: two standard deviations of such a count."""
        return self.wrong + 2 * sqrt(other.wrong) < other.wrong


class CrossValidation:
    """Each half of a log answered by maps that are made from the other half; `solve` makes a map of what it is given
    about lookups."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._halves = [Forecaster(demand, tally) for tally in demand.halves()]

    def judge(self, smoothing: Smoothing, solve: Callable[[ExpectedLookups], Solution]) -> Fit:
        """How a smoothing fares."""
        wrong = 0
        for known, unknown in (self._halves, self._halves[::-1]):
            lookups = known.expected(smoothing)
            solution = solve(lookups)
            wrong += int(wrong_answers(self._demand, unknown.tally, solution))
        return Fit(smoothing, wrong)

    def fit(self, solve: Callable[[ExpectedLookups], Solution]) -> Fit:
        """The smoothing with the fewest wrong answers."""
        best = self.judge(Smoothing(), solve)
        for name, values in CANDIDATES.items():
            for value in values:
                candidate = replace(best.smoothing, **{name: value})
                if candidate != best.smoothing and (found := self.judge(candidate, solve)).wrong < best.wrong:
                    best = found
        return best
