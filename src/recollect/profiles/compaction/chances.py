"""Which lookups of a log a map answers wrongly: yes, although nothing is held; in hashed sets bits decide by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import setbudget as kernels
from recollect.kernels.branches import ABSENT, HELD, OPEN
from recollect.kernels.sets import BITS
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.demand import Demand, LookupCounts
from recollect.profiles.compaction.optimum import SetBits, Solution

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chances:
    """The chance of a wrong answer for each row of a log, and for each lookup with two spellings that of the second if
    the first has a right one; 0 or 1 in clear. Rows of one gate are answered by one hash."""

    rows: Floats
    also: Floats
    gates: NDArray[np.int32]

    def wrong(self, tally: LookupCounts) -> float:
        """The wrong answers to these lookups."""
        return float(self.rows @ tally.rows + self.also @ tally.also)


def chances_of(demand: Demand, solution: Solution) -> Chances:
    """The chance of a yes to each lookup of a log although nothing is held."""
    chance = np.zeros(len(solution.state))
    # Where the answer is yes, what is decided about the exact key is what is written.
    chance[(solution.state == kernels.SAYS_YES) & ((solution.decide & kernels.PUT_ZERO) == 0)] = 1.0
    if solution.bits is None:
        return _by_place(demand, chance)
    inside = (solution.state == kernels.ASKS_SET) | ((solution.put & kernels.PUT_STOP) != 0)
    chance[inside] = np.ldexp(1.0, -solution.bits.bits_in[inside].astype(int))
    # What lies below an absent node, or below a member that is not a gate, is asked for only if a gate is found there
    # by chance, and then with the bits that it has by chance, level by level.
    place = np.maximum(demand.place, 0)
    absent = place >= len(demand.branches)
    above = np.where(absent, demand.absence_at[np.where(absent, place - len(demand.branches), 0)], 0)
    levels = demand.steps + (absent & ((solution.put[above] & kernels.PUT_MEMBER) != 0))
    chances = _by_place(demand, chance, np.where(inside[place], _below_gates(levels), 1.0))
    through, levels, gates = _through_sets(demand, solution, solution.bits)
    more = np.ldexp(1.0, -through.astype(int)) * _below_gates(levels)
    gone = (demand.place >= len(demand.branches)) | ~np.append(perhaps_held(demand.branches), True)[
        np.minimum(demand.place, len(demand.branches))
    ]
    rows = np.where((through > 0) & gone, more, chances.rows)
    return Chances(rows, chances.also, gates)


def wrong_answers(demand: Demand, tally: LookupCounts, solution: Solution) -> float:
    """How many of these lookups a map answers yes although nothing is held, as is expected of sets; a whole number in
    clear."""
    wrong = chances_of(demand, solution).wrong(tally)
    return wrong if solution.bits is not None else round(wrong)


def perhaps_held(branches: Branches) -> NDArray[np.bool_]:
    """Which branches' own keys are held or may be: below a wildcard of the input only one that says 0 is absent."""
    flags = branches.flags
    return np.asarray(((flags & HELD) != 0) | ((flags & (OPEN | ABSENT)) == OPEN))


def _by_place(demand: Demand, by_place: Floats, by_row: Floats | None = None) -> Chances:
    """From the chance of a yes at each branch and, after them, each absence; `by_row` is a further one of each row."""
    absences = len(by_place) - len(demand.branches)
    gone = np.concatenate((~perhaps_held(demand.branches), np.ones(absences, np.bool_)))
    rows = np.append(np.where(gone, by_place, 0.0), 0.0)[demand.place]  # the last is for those at -1: no place
    if by_row is not None:
        rows *= by_row
    # Of two spellings, neither of which is held, it is enough that the second is answered yes.
    first = demand.also.row
    return Chances(rows, gone[demand.place[first]] * (1 - rows[first]) * rows[demand.also.second], demand.place)


def _through_sets(
    demand: Demand, solution: Solution, set_bits: SetBits
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
        is_set = solution.state[above] == kernels.ASKS_SET
        bits[active[is_set]] = set_bits.bits_out[above[is_set]]
        gate[active[is_set]] = at[active[is_set]]
        active, above = active[~is_set], above[~is_set]
        at[active] = above
        levels[active] += 1
    return bits, levels, gate


def _below_gates(levels: NDArray[np.int32] | NDArray[np.int64]) -> Floats:
    """The chance of a yes N levels below a gate that is found by chance: a stop, or any number of bits, one in
    eight each."""
    table = np.ones(int(levels.max(initial=0)) + 1)
    for level in range(1, len(table)):
        table[level] = (1 + table[level - 1] * sum(0.5**bits for bits in BITS)) / 8
    return table[levels]
