"""`compact --sets`: from a map to its best compaction with hashed sets, within any kind of budget.

What is forecast and how the log is smoothed is as without sets (`budget`); only the optimum differs (`setbudget`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from recollect.formats.containers import atomic_output
from recollect.kernels import setbudget as kernels
from recollect.kernels import walk
from recollect.kernels.sets import BITS
from recollect.profiles.compaction.budget import (
    COMPRESSED,
    Budget,
    BudgetCompaction,
    Case,
    Choice,
    TooSmall,
    choose,
    key_limit,
    set_header,
)
from recollect.profiles.compaction.demand import Demand, LookupCounts
from recollect.profiles.compaction.forecast import Fit, Forecaster, perhaps_held
from recollect.profiles.compaction.setbudget import (
    SetOptimiser,
    SetSolution,
    lines_with_sets,
    suffix_of,
    within_bytes_of_sets,
)
from recollect.profiles.maps.plainmap import PlainMap

_TOPS = {"": 2, "tlds": 1, "root": 0}
_STEPS = 40  # of the search for an accuracy
# The chance of a yes below a gate that is found by chance: a stop, or any number of bits, one in eight each.
_BELOW_A_GATE = (1 + sum(0.5**bits for bits in BITS)) / 8
_DRAFTS = (0.997, 0.98, 0.9, 0.7)  # shares of a budget of bytes for drafts, whose size is nearly that of the map


def compact_with_sets(
    plain: PlainMap, case: Case, budget: Budget, target: str | os.PathLike[str], threads: int
) -> BudgetCompaction:
    """Compact within a budget, with hashed sets where they pay."""
    suffix = suffix_of(target)
    by_keys = budget.max_cost is not None or budget.max_keys is not None
    unit = "keys" if by_keys else "novel" if suffix in COMPRESSED else "bytes"
    limit = key_limit(case.branches, budget) if by_keys else budget.max_bytes or 0
    clear = choose(case, budget, unit, limit)
    top = 1 if budget.rollup_tlds else _TOPS[clear.rolled_up]
    optimiser = SetOptimiser(
        case.branches, case.expected(clear.fit.smoothing), case.costs(unit), case.may_roll(top), unit=unit
    )

    def draft(solution: SetSolution, path: Path) -> None:
        _write(plain, case, budget, clear, solution, path, threads, draft=True)

    def size_fits() -> bool:
        return budget.max_bytes is None or os.fspath(target) == "-" or Path(target).stat().st_size <= limit

    for share in _DRAFTS:
        if budget.min_accuracy is not None:
            solution: SetSolution | None = _reaching(case, optimiser, budget.min_accuracy, clear.fit)
        elif by_keys:
            solution = optimiser.within(limit)
        else:
            solution = within_bytes_of_sets(int(limit * share), suffix, optimiser.within, draft)
        if solution is None:
            raise TooSmall("no map is that small", why=f"the budget is {limit}")
        clear = replace(clear, fit=judged(case, optimiser, clear.fit, solution))
        keys, size = _write(plain, case, budget, clear, solution, target, threads)
        if size_fits():
            break
    else:
        raise TooSmall("no map with sets was found that is this small", why=f"the budget is {limit}")
    return replace(
        _outcome(case, clear, solution),
        keys_in=len(case.branches.rows),
        keys_out=keys,
        bytes_in=len(plain.data),
        bytes_out=size,
    )


def judged(case: Case, optimiser: SetOptimiser, fit: Fit, solution: SetSolution) -> Fit:
    """The fit of a log with the wrong answers of maps with sets: each half answered by a map of the same cost that is
    made from the other half. Without a log the fit as it is."""
    demand = case.demand
    if demand is None:
        return fit
    halves = [demand.tally((half,)) for half in (0, 1)]
    wrong, expected = 0.0, 0.0
    for known, unseen in (halves, halves[::-1]):
        other = optimiser.with_expected(Forecaster(demand, known).expected(fit.smoothing))
        found = other.within(solution.cost * (1 + 1e-9), near=solution.price) or other.at_price(solution.price)
        wrong += wrong_in_log(demand, found, unseen)
        expected += found.loss * float(unseen.passing[0])
    return replace(fit, wrong=round(wrong), expected=expected)


def _reaching(case: Case, optimiser: SetOptimiser, accuracy: float, fit: Fit) -> SetSolution:
    """The cheapest optimum that reaches an accuracy, on the log itself and as expected of lookups like these. How well
    a forecast holds depends on the size, so the search runs twice."""
    first = _reaching_by(case, optimiser, accuracy, fit.factor)
    return _reaching_by(case, optimiser, accuracy, judged(case, optimiser, fit, first).factor)


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


def wrong_in_log(demand: Demand, solution: SetSolution, tally: LookupCounts | None = None) -> float:
    """How many lookups of a log, or of a part of it, are expected to be answered yes although nothing is held; in sets
    chance decides."""
    tally = tally or demand.tally()
    count = len(demand.branches)
    chance = np.zeros(len(solution.state))
    stop = (solution.put & kernels.PUT_STOP) != 0
    chance[(solution.state == kernels.SAYS_YES) & ((solution.put & kernels.PUT_ZERO) == 0)] = 1.0
    inside = (solution.state == kernels.ASKS_SET) | stop
    chance[inside] = np.ldexp(1.0, -solution.bits_in[inside].astype(int))
    # A page of an absent host lies below the host's node, whose value is by chance if the node is found by chance.
    hosts = np.zeros(len(chance), np.bool_)
    hosts[count:] = demand.log.kind[demand.absence_node] != walk.PATH
    chance[inside & hosts] *= _BELOW_A_GATE
    gone = np.concatenate((~perhaps_held(demand.branches), np.ones(len(chance) - count, np.bool_)))
    # Below an absence all is absent: what it passes is answered as the absence itself.
    wrong = float((chance * np.concatenate((tally.stop, tally.absence)))[gone].sum())
    # Of two spellings, neither of which is held, one that is answered yes is enough.
    first, second = demand.also.first, demand.also.second
    both = tally.also * (gone[first] & gone[second])
    return wrong + float((both * (1 - chance[first]) * chance[second]).sum())


def _write(
    plain: PlainMap,
    case: Case,
    budget: Budget,
    clear: Choice,
    solution: SetSolution,
    target: str | os.PathLike[str],
    threads: int,
    *,
    draft: bool = False,
) -> tuple[int, int]:
    """Write the map; returns its keys and the bytes of its text."""
    absent = case.demand.absent if case.demand is not None else None
    head = set_header(plain.header, budget, solution.loss * clear.fit.factor).encode()
    keys, size = 0, len(head)
    with atomic_output(target) as out:
        out.write(head)
        for piece in lines_with_sets(case.branches, absent, solution, threads, draft=draft):
            out.write(piece)
            size += len(piece)
            keys += piece.count(b"\n")
    return keys, size


def _outcome(case: Case, clear: Choice, solution: SetSolution) -> BudgetCompaction:
    demand, put = case.demand, solution.put
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
        expected_wrong=min(1.0, solution.loss * clear.fit.factor),
        wrong_in_log=wrong,
        lookups=lookups,
        unusable_lookups=demand.unusable if demand is not None else 0,
        smoothing=clear.fit.smoothing if demand is not None else None,
        rolled_up=clear.rolled_up,
        rolled_up_by_log=clear.fit.tlds and clear.rolled_up == "tlds",
        sets=solution.sets,
    )
