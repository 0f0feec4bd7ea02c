"""How well a forecast holds: cross-validation of the map that is written, and an interval for its wrong answers.

The log is dealt out at random into `FOLDS` parts. Each part is answered by a map of the same cost that is made from all
other parts. The forecast of the written map (`Solution.loss`) is then corrected by the wrong answers found for each one
that was forecast. Maps of nine tenths of a log are nearly as good as that of all of it.

The interval says how far a log of this size can be trusted. It is Wilson's for the share of wrong answers, with the
variance that they have: requests of one URI count as one observation; in a hashed set the chance of a wrong answer is
known, and only which lookups come is not; but lookups below one absent node are answered by a single hash, all wrong or
all right. With a probability of 95% the share of wrong answers to lookups like those of the log is within the interval.
It cannot know of lookups that are unlike those of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from recollect.profiles.compaction.chances import chances_of
from recollect.profiles.compaction.demand import Demand
from recollect.profiles.compaction.forecast import Forecaster, Smoothing
from recollect.profiles.compaction.optimum import Optimiser, Solution

Floats = NDArray[np.float64]

FOLDS = 10
DEVIATIONS = 1.96  # of a normal distribution: 95% is within
# Maps of other logs of this size would differ, too, which adds to the variance as the part tested is to the part that
# is learned from (Nadeau and Bengio 2003).
OTHER_MAPS = 1 + 1 / (FOLDS - 1)


@dataclass(frozen=True, slots=True)
class Validation:
    """What cross-validation found for maps of a cost: wrong answers and how many the forecast expected, of how many
    lookups, and the variance of the wrong answers if they are few among all."""

    wrong: float
    expected: float
    lookups: int
    variance: float
    cost: float

    @property
    def factor(self) -> float:
        """Wrong answers for each one expected; near to 1 only where neither was more than a few."""
        some = min(1.0, self.expected / 10)
        return (self.wrong + some) / (self.expected + some) if some else 1.0

    def interval(self, estimate: float) -> tuple[float, float]:
        """Where the share of wrong answers is, with a probability of 95%, if `estimate` is the forecast of it."""
        if not self.lookups:
            return 0.0, 1.0
        share, square = min(1.0, self.wrong / self.lookups), DEVIATIONS**2
        cluster = max(1.0, self.variance / self.wrong) if self.wrong > 0 else 1.0
        known = self.lookups / cluster
        middle = (share + square / (2 * known)) / (1 + square / known)
        spread = OTHER_MAPS * self.variance * (1 - share) / self.lookups**2 + square / (4 * known**2)
        half = DEVIATIONS / (1 + square / known) * sqrt(spread)
        shift = estimate - share
        low, high = (min(1.0, max(0.0, end + shift)) for end in (middle - half, middle + half))
        return min(low, estimate), max(high, estimate)


def validated(demand: Demand, smoothing: Smoothing, optimiser: Optimiser, solution: Solution) -> Validation:
    """Answer each part of a log by a map as large as the solution that is made of the forecast of all other parts."""
    wrong, stake = np.zeros(len(demand.counts)), np.zeros(len(demand.counts))
    by_chance, gates = np.zeros(len(demand.counts), np.bool_), demand.place
    expected = 0.0
    for known, unseen in demand.parts(FOLDS):
        if not unseen.passing[0]:
            continue
        tested = optimiser.like(Forecaster(demand, known).expected(smoothing)).as_large_as(solution)
        chances = chances_of(demand, tested)
        answered = chances.rows * unseen.rows
        np.add.at(answered, demand.also.row, chances.also * unseen.also)
        wrong += answered
        stake += unseen.rows * (answered > 0)
        by_chance |= (chances.rows > 0) & (chances.rows < 1)
        gates = chances.gates
        expected += tested.loss * float(unseen.passing[0])
    variance = float((wrong**2).sum()) + _by_hashes(gates[by_chance], wrong[by_chance], stake[by_chance])
    return Validation(float(wrong.sum()), expected, int(demand.counts.sum()), variance, solution.cost)


def _by_hashes(gate: NDArray[np.int32], wrong: Floats, stake: Floats) -> float:
    """The variance of wrong answers that single hashes decide: below each gate all lookups or none. A gate that was
    seen c times stands for one that is asked for as often, whose square c (c - 1) estimates without bias."""
    if not len(gate):
        return 0.0
    each, all_wrong = np.bincount(gate, stake), np.bincount(gate, wrong)
    chance = np.divide(all_wrong, each, out=np.zeros(len(each)), where=each > 0)
    return float((each * np.maximum(each - 1, 0) * chance * (1 - chance)).sum())
