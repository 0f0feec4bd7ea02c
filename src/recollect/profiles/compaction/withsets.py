"""`compact --sets`: from a map to its best compaction with hashed sets, within any kind of budget.

What is forecast and how the log is smoothed is as without sets (`budget`); only the optimum differs (`setbudget`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.formats.containers import OutputTooLarge, atomic_output
from recollect.kernels import setbudget as kernels
from recollect.kernels.sets import BITS
from recollect.maps.plainmap import PlainMap
from recollect.profiles.compaction.budget import (
    COMPRESSED,
    SAME_COST,
    Budget,
    BudgetCompaction,
    Case,
    Choice,
    TooSmall,
    corrected,
    fitted_choice,
    key_limit,
    set_header,
)
from recollect.profiles.compaction.demand import Demand, LookupCounts
from recollect.profiles.compaction.forecast import Chances, Fit, Smoothing, perhaps_held
from recollect.profiles.compaction.optimum import ExpectedLookups
from recollect.profiles.compaction.setbudget import (
    SetOptimiser,
    SetSolution,
    lines_with_sets,
    suffix_of,
    within_bytes_of_sets,
)
from recollect.profiles.compaction.validation import Validation, validated

_TOPS = {"": 2, "tlds": 1, "root": 0}
_WORTH_TRYING = 0.9  # of wrong answers, or of the cost for an accuracy
_STEPS = 40  # of the search for an accuracy
_DRAFTS = (0.997, 0.98, 0.9, 0.7)  # shares of a budget of bytes for drafts, whose size is nearly that of the map


@dataclass(frozen=True, slots=True)
class _SetChoice:
    """A solution with sets, what it was found with, and how it came about."""

    solution: SetSolution
    optimiser: SetOptimiser
    fit: Fit
    rolled_up: str
    validation: Validation | None

    @property
    def expected_wrong(self) -> float:
        """The share of lookups expected to be answered wrongly."""
        return corrected(self.solution.loss, self.validation)


def compact_with_sets(
    plain: PlainMap, case: Case, budget: Budget, target: str | os.PathLike[str], threads: int
) -> BudgetCompaction:
    """Compact within a budget, with hashed sets where they pay."""
    suffix = suffix_of(target)
    by_keys = budget.max_cost is not None or budget.max_keys is not None
    unit = "keys" if by_keys else "novel" if suffix in COMPRESSED else "bytes"
    limit = key_limit(case.branches, budget) if by_keys else budget.max_bytes or 0
    clear, _ = fitted_choice(case, budget, unit, limit)

    def solve(share: float, optimiser: SetOptimiser) -> SetSolution | None:
        if budget.min_accuracy is not None:
            return _reaching(case, optimiser, budget.min_accuracy, clear.fit)
        if by_keys:
            return optimiser.within(limit)

        def draft(solution: SetSolution, path: Path) -> None:
            _write(plain, case, budget, solution.loss, solution, path, threads, draft=True)

        return within_bytes_of_sets(int(limit * share), suffix, optimiser.within, draft)

    for share in _DRAFTS:
        choice = _chosen(case, budget, clear, unit, partial(solve, share))
        if choice is None:
            raise TooSmall("no map is that small", why=f"the budget is {limit}")
        wrong, solution = choice.expected_wrong, choice.solution
        with suppress(OutputTooLarge):  # the next one is chosen smaller; what is in the target's place stays
            keys, size = _write(plain, case, budget, wrong, solution, target, threads, max_bytes=budget.max_bytes)
            break
    else:
        raise TooSmall("no map with sets was found that is this small", why=f"the budget is {limit}")
    return replace(
        _outcome(case, choice),
        keys_in=len(case.branches.rows),
        keys_out=keys,
        bytes_in=len(plain.data),
        bytes_out=size,
    )


def _chosen(
    case: Case, budget: Budget, clear: Choice, unit: str, solve: Callable[[SetOptimiser], SetSolution | None]
) -> _SetChoice | None:
    """The best solution, with wildcards as far up as is asked for or as the budget needs; with a log, over top-level
    domains also if it shows that they pay."""
    smoothing = clear.fit.smoothing
    first = SetOptimiser(case.branches, case.expected(smoothing), case.costs(unit), case.may_roll(2), unit=unit)

    def choice_with(rolled_up: str) -> _SetChoice | None:
        top = min(_TOPS[rolled_up], 1 if budget.rollup_tlds else 2)
        optimiser = first.with_rolls(case.may_roll(top))
        solution = solve(optimiser)
        return None if solution is None else _SetChoice(solution, optimiser, clear.fit, rolled_up, None)

    wider = {"": ("", "tlds", "root"), "tlds": ("tlds", "root"), "root": ("root",)}[clear.rolled_up]
    found = next(filter(None, map(choice_with, wider)), None)
    if found is None or case.demand is None:
        return found
    found = replace(found, validation=validation_of(case, found.optimiser, smoothing, found.solution))
    if found.rolled_up or budget.rollup_tlds:
        return found
    rolled = choice_with("tlds")
    if rolled is None or not _worth_trying(rolled.solution, found.solution, budget):
        return found
    rolled = replace(rolled, validation=validation_of(case, rolled.optimiser, smoothing, rolled.solution))
    if budget.min_accuracy is not None:
        better = rolled.expected_wrong <= max(1 - budget.min_accuracy, found.expected_wrong)
    else:
        better = _beats(rolled, found)
    return replace(rolled, fit=replace(rolled.fit, tlds=True)) if better else found


def _worth_trying(rolled: SetSolution, other: SetSolution, budget: Budget) -> bool:
    """Whether wildcards over top-level domains promise a better map, so that they are validated."""
    if budget.min_accuracy is not None:
        return rolled.cost < _WORTH_TRYING * other.cost
    return rolled.loss < _WORTH_TRYING * other.loss


def _beats(one: _SetChoice, other: _SetChoice) -> bool:
    """Whether one has fewer wrong answers in cross-validation, by more than chance."""
    assert one.validation is not None
    assert other.validation is not None
    return Fit(one.fit.smoothing, round(one.validation.wrong)).beats(
        Fit(other.fit.smoothing, round(other.validation.wrong))
    )


def validation_of(
    case: Case, optimiser: SetOptimiser, smoothing: Smoothing, solution: SetSolution
) -> Validation | None:
    """Cross-validation of maps with sets that cost as much as this one; None without a log."""
    demand = case.demand
    if demand is None:
        return None

    def solve(expected: ExpectedLookups) -> SetSolution:
        other = optimiser.with_expected(expected)
        found = other.at_price(solution.price)
        if abs(found.cost - solution.cost) <= SAME_COST * solution.cost:
            return found
        return other.within(solution.cost * (1 + 1e-9), near=solution.price, slack=SAME_COST) or found

    return validated(demand, smoothing, solution.cost, solve, lambda one: chances_with_sets(demand, one))


def _reaching(case: Case, optimiser: SetOptimiser, accuracy: float, fit: Fit) -> SetSolution:
    """The cheapest optimum that reaches an accuracy, on the log itself and as expected of lookups like these. How well
    a forecast holds depends on the size, so the search runs twice."""
    first = _reaching_by(case, optimiser, accuracy, 1.0)
    validation = validation_of(case, optimiser, fit.smoothing, first)
    assert validation is not None
    return _reaching_by(case, optimiser, accuracy, validation.factor)


def _reaching_by(case: Case, optimiser: SetOptimiser, accuracy: float, factor: float) -> SetSolution:
    demand = case.demand
    assert demand is not None
    lookups = int(demand.tally().passing[0])

    def good(solution: SetSolution) -> bool:
        wrong = max(solution.loss * factor, wrong_in_log(demand, solution) / max(1, lookups))
        return wrong <= 1 - accuracy

    stake = float(optimiser.expected.leave.sum() + optimiser.expected.own.sum()) or 1.0
    low, high = np.log(stake * 1e-15), np.log(2 * stake)
    best = optimiser.at_price(float(np.exp(low)))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = optimiser.at_price(float(np.exp(middle)))
        if good(found):
            best, low = found, middle
        else:
            high = middle
        if high - low < 1e-3:
            break
    return best


def chances_with_sets(demand: Demand, solution: SetSolution) -> Chances:
    """The chance of a yes to each lookup of a log although nothing is held; in sets bits decide."""
    chance = np.zeros(len(solution.state))
    stop = (solution.put & kernels.PUT_STOP) != 0
    chance[(solution.state == kernels.SAYS_YES) & ((solution.put & kernels.PUT_ZERO) == 0)] = 1.0
    inside = (solution.state == kernels.ASKS_SET) | stop
    chance[inside] = np.ldexp(1.0, -solution.bits_in[inside].astype(int))
    # What lies below an absent node, or below a member that is not a gate, is asked for only if a gate is found there
    # by chance, and then with the bits that it has by chance, level by level.
    place = np.maximum(demand.place, 0)
    absent = place >= len(demand.branches)
    above = np.where(absent, demand.absence_at[np.where(absent, place - len(demand.branches), 0)], 0)
    levels = demand.steps + (absent & ((solution.put[above] & kernels.PUT_MEMBER) != 0))
    by_row = np.where(inside[place], _below_gates(levels), 1.0)
    chances = Chances.of(demand, chance, by_row)
    through, levels, gates = _through_sets(demand, solution)
    more = np.ldexp(1.0, -through.astype(int)) * _below_gates(levels)
    gone = (demand.place >= len(demand.branches)) | ~np.append(perhaps_held(demand.branches), True)[
        np.minimum(demand.place, len(demand.branches))
    ]
    rows = np.where((through > 0) & gone, more, chances.rows)
    return Chances(rows, chances.also, gates)


def _through_sets(
    demand: Demand, solution: SetSolution
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """For rows below a branch that a set leaves to lines of its own: the bits of the gate that the set does not have
    for it, how many levels the row is below that, and the branch. Only by chance does the set answer yes there. Other
    rows have 0 bits and their own place."""
    up = np.concatenate((demand.branches.up, demand.absence_at))
    bits, levels = np.zeros(len(demand.place), np.int64), demand.steps.astype(np.int64)
    at, gate = demand.place.copy(), demand.place.copy()
    active = np.flatnonzero(at >= 0)
    while len(active):
        here = at[active]
        quiet = (solution.state[here] == kernels.SAYS_NO) & ((solution.put[here] & kernels.PUT_VOID) == 0)
        active = active[quiet & (up[here] >= 0)]
        above = up[at[active]]
        found = solution.state[above] == kernels.ASKS_SET
        bits[active[found]] = solution.bits_out[above[found]]
        gate[active[found]] = at[active[found]]
        active, above = active[~found], above[~found]
        at[active] = above
        levels[active] += 1
    return bits, levels, gate


def _below_gates(levels: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.float64]:
    """The chance of a yes N levels below a gate that is found by chance: a stop, or any number of bits, one in
    eight each."""
    table = np.ones(int(levels.max(initial=0)) + 1)
    for level in range(1, len(table)):
        table[level] = (1 + table[level - 1] * sum(0.5**bits for bits in BITS)) / 8
    return table[levels]


def wrong_in_log(demand: Demand, solution: SetSolution, tally: LookupCounts | None = None) -> float:
    """How many lookups of a log, or of a part of it, are expected to be answered yes although nothing is held."""
    return chances_with_sets(demand, solution).wrong(tally or demand.tally())


def _write(
    plain: PlainMap,
    case: Case,
    budget: Budget,
    expected_wrong: float,
    solution: SetSolution,
    target: str | os.PathLike[str],
    threads: int,
    *,
    draft: bool = False,
    max_bytes: int | None = None,
) -> tuple[int, int]:
    """Write the map; returns its keys and the bytes of its text. Raises OutputTooLarge, and leaves what is in the
    target's place, if it has more than `max_bytes` on disk."""
    absent = case.demand.absent if case.demand is not None else None
    head = set_header(plain.header, budget, expected_wrong).encode()
    keys, size = 0, len(head)
    with atomic_output(target, max_bytes=max_bytes) as out:
        out.write(head)
        for piece in lines_with_sets(case.branches, absent, solution, threads, draft=draft):
            out.write(piece)
            size += len(piece)
            keys += piece.count(b"\n")
    return keys, size


def _outcome(case: Case, choice: _SetChoice) -> BudgetCompaction:
    demand, solution = case.demand, choice.solution
    put = solution.put
    lookups, wrong = 0, None
    if demand is not None:
        lookups = int(demand.tally().passing[0])
        wrong = wrong_in_log(demand, solution) / max(1, lookups)
    lines = kernels.PUT_WILD | kernels.PUT_ANCHOR
    return BudgetCompaction(
        keys_in=0,
        keys_out=0,
        wildcards=int(((put & lines) != 0).sum()),
        voids=int(((put & (kernels.PUT_VOID | kernels.PUT_ZERO)) != 0).sum()),
        bytes_in=0,
        bytes_out=0,
        uri_rs=case.branches.uri_rs,
        price=solution.price,
        expected_wrong=choice.expected_wrong,
        expected_wrong_interval=choice.validation.interval(choice.expected_wrong) if choice.validation else None,
        input_wildcards=case.branches.wildcards,
        wrong_in_log=wrong,
        lookups=lookups,
        unusable_lookups=demand.unusable if demand is not None else 0,
        smoothing=choice.fit.smoothing if demand is not None else None,
        rolled_up=choice.rolled_up,
        rolled_up_by_log=choice.fit.tlds and choice.rolled_up == "tlds",
        sets=solution.sets,
    )
