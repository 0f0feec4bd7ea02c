"""The choice of a map within a budget.

Hides: how a log is smoothed, how far up wildcards go, and the search for a limit that is known only in the end: an
accuracy, or bytes on disk.

Invariants: wildcards of top-level domains, and `*`, are used only when asked for or when the budget cannot be met
without them, those of top-level domains also when a log shows that they pay; the choice says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.profiles.compaction.case import Budget, Case, TooSmall
from recollect.profiles.compaction.chances import wrong_answers
from recollect.profiles.compaction.forecast import CrossValidation, Fit, Smoothing
from recollect.profiles.compaction.optimum import (
    FREE,
    SAME_COST,
    SET_FREE,
    SET_NEAR,
    ExpectedLookups,
    Optimiser,
    Solution,
)
from recollect.profiles.compaction.validation import Validation, validated

BETWEEN = 12  # maps tried between two optima
ATTEMPTS = 12  # to meet a number of bytes that is known only when all is written
DRAFTS = 7  # the same for maps with sets
FIRST_NEAR = 0.03  # of the wanted cost: the first draft only shows how large a map of its cost is
WORTH_TRYING = 0.9  # of wrong answers, or of the cost for an accuracy
LEVELS = {"": 2, "tlds": 1, "root": 0}  # the least depth of a wildcard, by what `Choice.rolled_up` says


@dataclass(frozen=True, slots=True)
class Choice:
    """The decisions made, what they were found with, and how they came about."""

    solution: Solution
    optimiser: Optimiser
    fit: Fit
    rolled_up: str
    validation: Validation | None = None  # None without a log

    @property
    def expected_wrong(self) -> float:
        """The share of lookups expected to be answered wrongly; with a log, after cross-validation."""
        return min(1.0, self.solution.loss * (self.validation.factor if self.validation is not None else 1.0))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where that share is at 95%; None without a log."""
        return None if self.validation is None else self.validation.interval(self.expected_wrong)

    def cross_validated(self, case: Case, known: Validation | None = None) -> Choice:
        """With cross-validation of maps that cost as much as this one; `known` is enough if it is of such maps."""
        if case.demand is None:
            return self
        if known is None or abs(known.cost - self.solution.cost) > SAME_COST * self.solution.cost:
            known = validated(case.demand, self.fit.smoothing, self.optimiser, self.solution)
        return replace(self, validation=known)


# In clear.


def choose(case: Case, budget: Budget, unit: str, limit: int, known: Choice | None = None) -> Choice:
    """The best decisions in clear within the budget, with a log cross-validated; `known` is a choice for a similar
    limit, whose fit is taken."""
    choice = fitted_choice(case, budget, unit, limit, known)
    choice = choice.cross_validated(case, known.validation if known is not None else None)
    if budget.min_accuracy is not None:
        # How well a forecast holds is known only for a size.
        assert choice.validation is not None
        solution = reaching(case, choice.optimiser, budget.min_accuracy, choice.validation.factor)
        choice = replace(choice, solution=solution).cross_validated(case, choice.validation)
    return choice


def fitted_choice(case: Case, budget: Budget, unit: str, limit: int, known: Choice | None = None) -> Choice:
    """The best decisions in clear within the budget, not cross-validated."""
    accuracy = budget.min_accuracy
    may_roll, work = case.may_roll(1 if budget.rollup_tlds else 2), known.optimiser if known else None
    optimiser = Optimiser(case.expected(Smoothing()), case.costs(unit), may_roll, work)
    rolled_up = ""
    if accuracy is not None:
        # How large it gets is known only in the end, so the smoothing is fitted at the size of a first attempt.
        limit = int(reaching(case, optimiser, accuracy, 1.0).cost)
    else:
        rolled_up, optimiser = _raise_rollup_level(case, optimiser, limit)
    fit = Fit(Smoothing())
    if case.demand is not None:
        fit = known.fit if known else _fitted(case, optimiser, limit, free=not (rolled_up or budget.rollup_tlds))
        by_log = fit.tlds and not rolled_up
        rolled_up = "tlds" if by_log else rolled_up
        optimiser = optimiser.like(case.expected(fit.smoothing), case.may_roll(1) if by_log else None)
    if accuracy is not None:
        return Choice(reaching(case, optimiser, accuracy, 1.0), optimiser, fit, rolled_up)
    choices = [Choice(best, optimiser, fit, rolled_up)] if (best := optimiser.within(limit)) else []
    if fit.tlds or budget.rollup_tlds:
        # A wildcard over a top-level domain is a large step, and beside it a budget may be met better without any.
        spared = optimiser.like(may_roll=case.may_roll(2))
        choices += [Choice(best, spared, fit, rolled_up)] if (best := spared.within(limit)) else []
    return min(choices, key=lambda choice: choice.solution.loss)


def _fitted(case: Case, optimiser: Optimiser, limit: int, *, free: bool) -> Fit:
    """The fit to a log; where wildcards over top-level domains are `free` to choose, with them if the log shows that
    they pay."""
    assert case.demand is not None
    tests = CrossValidation(case.demand)

    def solver(may_roll: NDArray[np.bool_]) -> Callable[[ExpectedLookups], Solution]:
        price = 0.0

        def solve(expected: ExpectedLookups) -> Solution:
            nonlocal price
            solution = optimiser.like(expected, may_roll).within(limit, near=price, spend=False)
            assert solution is not None
            price = solution.price
            return solution

        return solve

    fit = tests.fit(solver(optimiser.may_roll))
    wider = solver(case.may_roll(1))
    if free and tests.judge(fit.smoothing, wider).beats(fit):
        fit = replace(tests.fit(wider), tlds=True)
    return fit


def _raise_rollup_level(case: Case, optimiser: Optimiser, limit: int) -> tuple[str, Optimiser]:
    """Allow wildcards at higher levels, but only as high as the budget needs; returns the name of the level."""
    needed = 0.0
    for name, top in LEVELS.items():
        if name:
            optimiser = optimiser.like(may_roll=case.may_roll(top))
        needed = optimiser.smallest.cost
        if needed <= limit:
            return name, optimiser
    raise TooSmall(
        "no map is that small",
        why=f"the budget is {limit}, and the smallest map needs {needed}",
        hint="" if limit else "of a small archive a share is less than a key; give --max-keys",
    )


# With sets.


def choose_with_sets(
    case: Case, budget: Budget, clear: Choice, unit: str, solve: Callable[[Optimiser], Solution | None]
) -> Choice | None:
    """The best decisions with sets, with wildcards as far up as is asked for or as the budget needs; with a log, over
    top-level domains also if it shows that they pay. `clear` is the choice in clear, whose fit is taken."""
    costs = case.costs(unit, sets=True)
    first = Optimiser(case.expected(clear.fit.smoothing), costs, case.may_roll(2))

    def choice_with(rolled_up: str) -> Choice | None:
        optimiser = first.like(may_roll=case.may_roll(min(LEVELS[rolled_up], 1 if budget.rollup_tlds else 2)))
        solution = solve(optimiser)
        return None if solution is None else Choice(solution, optimiser, clear.fit, rolled_up)

    wider = list(LEVELS)[list(LEVELS).index(clear.rolled_up) :]
    choice = next(filter(None, map(choice_with, wider)), None)
    if choice is None or case.demand is None:
        return choice
    choice = choice.cross_validated(case)
    if choice.rolled_up or budget.rollup_tlds:
        return choice
    rolled = choice_with("tlds")
    if rolled is None or not _worth_trying(rolled.solution, choice.solution, budget):
        return choice
    rolled = rolled.cross_validated(case)
    if budget.min_accuracy is not None:
        better = rolled.expected_wrong <= max(1 - budget.min_accuracy, choice.expected_wrong)
    else:
        better = _beats(rolled, choice)
    return replace(rolled, fit=replace(rolled.fit, tlds=True)) if better else choice


def _worth_trying(rolled: Solution, other: Solution, budget: Budget) -> bool:
    """Whether wildcards over top-level domains promise a better map, so that they are validated."""
    if budget.min_accuracy is not None:
        return rolled.cost < WORTH_TRYING * other.cost
    return rolled.loss < WORTH_TRYING * other.loss


def _beats(choice: Choice, other: Choice) -> bool:
    """Whether one has fewer wrong answers in cross-validation, by more than chance."""
    assert choice.validation is not None
    assert other.validation is not None
    return Fit(choice.fit.smoothing, round(choice.validation.wrong)).beats(
        Fit(other.fit.smoothing, round(other.validation.wrong))
    )


# Limits that are known only in the end.


def reaching(case: Case, optimiser: Optimiser, accuracy: float, factor: float) -> Solution:
    """The smallest map that reaches an accuracy, both on the log itself and as expected of lookups like these."""
    demand = case.demand
    assert demand is not None
    tally = demand.tally()
    allowed = (1 - accuracy) * tally.passing[0]

    def good(solution: Solution) -> bool:
        wrong = wrong_answers(demand, tally, solution)
        return bool(max(wrong, solution.loss * factor * tally.passing[0]) <= allowed)

    if optimiser.sets is not None:
        stake = optimiser.stake or 1.0
        return _at_highest_price(optimiser, good, stake * SET_FREE, 2 * stake, 1e-3)[0]
    bad = optimiser.smallest
    if good(bad):
        return bad
    best, bad = _at_highest_price(optimiser, good, 1e-18, bad.price, 1e-6)
    # Optima come in steps; between the last two there are maps that are good enough, too.
    least = bad.cost
    for _ in range(BETWEEN):
        if best.cost - least <= max(1, best.cost // 100):
            break
        solution = optimiser.within((least + best.cost) // 2) or bad
        if good(solution):
            best = solution
        else:
            least = (least + best.cost) // 2
    return best


def _at_highest_price(
    optimiser: Optimiser, good: Callable[[Solution], bool], lowest: float, highest: float, step: float
) -> tuple[Solution, Solution]:
    """The optimum at the highest price that is good, and at the next one, which is not."""
    low, high = np.log(lowest), np.log(highest)
    best = optimiser.at_price(lowest if optimiser.sets is not None else 0.0)
    bad = best if optimiser.sets is not None else optimiser.smallest
    while high - low >= step:
        middle = (low + high) / 2
        solution = optimiser.at_price(float(np.exp(middle)))
        if good(solution):
            best, low = solution, middle
        else:
            bad, high = solution, middle
    return best, bad


def reaching_with_sets(case: Case, optimiser: Optimiser, accuracy: float, smoothing: Smoothing) -> Solution:
    """The smallest map with sets that reaches an accuracy. How well a forecast holds depends on the size, so the search
    runs twice."""
    assert case.demand is not None
    first = reaching(case, optimiser, accuracy, 1.0)
    return reaching(case, optimiser, accuracy, validated(case.demand, smoothing, optimiser, first).factor)


def within_bytes(
    most: int, choose_at: Callable[[int, Choice | None], Choice], size_of: Callable[[Choice], int]
) -> Choice:
    """The choice in clear for a size on disk, which is known only when all is written: try, measure, correct."""
    low, high = 0, None  # costs known to fit and not to fit
    best: Choice | None = None
    limit, known = most, None
    tried = 0.0, 0  # the last cost and size
    for _ in range(ATTEMPTS):
        try:
            choice = choose_at(limit, known)
        except TooSmall:
            # Between what is too little for any map and what was too much there may be a map.
            low, limit = limit, (limit + high) // 2 if high is not None else limit
            if limit <= low:
                break
            continue
        known = choice
        size = size_of(choice)
        cost = int(choice.solution.cost)
        if size <= most:
            low, best = limit, choice
            if size > 0.99 * most or choice.solution.price <= FREE:  # near enough, or nothing to gain
                break
        else:
            high = min(limit, cost)  # what it did not use made it no larger
        guess = int(_cost_for(most, (cost, size), tried) * 0.998)
        tried = cost, size
        limit = min(max(guess, low + 1), high - 1 if high is not None else guess)
        if limit <= low:
            break
    if best is None:
        raise TooSmall("no map is that small", why=f"{most} bytes are too few; headers count, too")
    return best


def _cost_for(size: int, one: tuple[float, int], other: tuple[float, int]) -> float:
    """At what cost a file may have a size, by two others on a line; headers are the part that costs nothing."""
    rise = (one[1] - other[1]) / (one[0] - other[0]) if one[0] != other[0] else 0.0
    return one[0] + (size - one[1]) / rise if rise > 0 else one[0] * size / one[1]


def drafted_within_bytes(optimiser: Optimiser, most: int, size_of: Callable[[Solution], int]) -> Solution | None:
    """The solution with sets for a size on disk, by drafts, whose size is nearly that of the map."""
    best: Solution | None = None
    wanted, low, high, near = float(most), 0.0, float("inf"), 0.0
    for number in range(DRAFTS):
        solution = optimiser.within(wanted, near=near, slack=SET_NEAR if number else FIRST_NEAR)
        if solution is None:
            low = wanted
            if high == float("inf"):
                break
        else:
            size = size_of(solution)
            near = solution.price
            if size <= most:
                low = max(low, wanted)
                if best is None or solution.loss <= best.loss:
                    best = solution
                if size > 0.99 * most or solution.cost < 0.9 * wanted:
                    break
            else:
                high = min(high, wanted, solution.cost)
            wanted = solution.cost * most / size * 0.996
        if not low < wanted < high:
            wanted = (low + high) / 2 if high < float("inf") else low * 1.05
        if high - low < 0.004 * most:
            break
    return best
