"""Loops of compaction by budget: the exact optimum for a price, improvements of it, and the written lines.

Hides Numba. Arrays are indexed by branch (see `branches`), parents first, or by row.

The optimum. What a URI below a branch is answered by default depends on what stands above: nothing or a void (state
0, "no") or a wildcard (state 1, "yes"). For a price per unit of cost, and bottom-up,

    no(v)  = sum of U(children) + price · (cost of the exact keys held at v)
    yes(v) = sum of C(children) + exit(v) + min(own(v), price · cost of `v 0`)
    U(v) = min(no(v), price · cost of `v/*` + yes(v))           C(v) = min(yes(v), price · cost of `v/* 0` + no(v))

where exit(v) is the expected number of lookups of absent URIs that leave the tree at v, and own(v) those of v
itself if it is absent. An open branch (below a wildcard of the input, where nobody knows what is held) must answer
yes: no(v) is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recollect.profiles.compaction.branchkernels import HELD, JSON, LEAF, NONE, OWN, ZERO
from recollect.profiles.linekernels import line_end, put_count
from recollect.profiles.words import kernel

# Decisions about a branch: what to write in state 0, in state 1, and about itself when covered.
PUT_WILD, PUT_VOID, PUT_ZERO = 1, 2, 4


@kernel
def optimum(
    up: Any,
    is_open: Any,
    may_roll: Any,
    listed: Any,
    wild: Any,
    void: Any,
    zero: Any,
    leave: Any,
    own: Any,
    price: Any,
    sums: Any,
    cost: Any,
    loss: Any,
    decide: Any,
) -> Any:
    """The best decisions for a price.

    listed, wild, void, zero: costs of the held exact keys, `v/*`, `v/* 0`, `v 0` (one for each branch, or one for all);
    leave, own: expected lookups of absent URIs. `sums`, four for each branch, must be zero and is zero again at the
    end. `cost` and `loss`, if they are not empty, become what each subtree costs and loses in each state.
    """
    count = up.shape[0]
    keep = cost.shape[0] == count
    wild_step, void_step, zero_step = int(wild.shape[0] > 1), int(void.shape[0] > 1), int(zero.shape[0] > 1)
    for i in range(count - 1, -1, -1):
        no_cost, no_loss = sums[i, 0] + listed[i], sums[i, 1]
        yes_cost, yes_loss = sums[i, 2], sums[i, 3] + leave[i]
        sums[i, 0] = 0.0
        sums[i, 1] = 0.0
        sums[i, 2] = 0.0
        sums[i, 3] = 0.0
        decision = 0
        if own[i] > price * zero[i * zero_step]:
            decision = PUT_ZERO
            yes_cost += zero[i * zero_step]
        else:
            yes_loss += own[i]
        no = np.inf if is_open[i] else no_loss + price * no_cost
        yes = yes_loss + price * yes_cost
        in_no_cost, in_no_loss, in_yes_cost, in_yes_loss = no_cost, no_loss, yes_cost, yes_loss
        if is_open[i] or (may_roll[i] and price * wild[i * wild_step] + yes < no):
            decision |= PUT_WILD
            in_no_cost = yes_cost + wild[i * wild_step]
            in_no_loss = yes_loss
        if may_roll[i] and price * void[i * void_step] + no < yes:
            decision |= PUT_VOID
            in_yes_cost = no_cost + void[i * void_step]
            in_yes_loss = no_loss
        decide[i] = decision
        if keep:
            cost[i, 0] = np.int64(in_no_cost)
            loss[i, 0] = in_no_loss
            cost[i, 1] = np.int64(in_yes_cost)
            loss[i, 1] = in_yes_loss
        if i == 0:
            return np.int64(in_no_cost), in_no_loss
        above = up[i]
        sums[above, 0] += in_no_cost
        sums[above, 1] += in_no_loss
        sums[above, 2] += in_yes_cost
        sums[above, 3] += in_yes_loss
    return np.int64(0), 0.0


@njit(cache=True, nogil=True)
def weigh(
    up: Any, listed: Any, wild: Any, void: Any, zero: Any, leave: Any, own: Any, decide: Any, cost: Any, loss: Any
) -> Any:
    """What given decisions cost and lose, per branch and state."""
    cost[:] = 0
    loss[:] = 0.0
    wild_step, void_step, zero_step = int(wild.shape[0] > 1), int(void.shape[0] > 1), int(zero.shape[0] > 1)
    for i in range(up.shape[0] - 1, -1, -1):
        cost[i, 0] += listed[i]
        loss[i, 1] += leave[i]
        if decide[i] & PUT_ZERO:
            cost[i, 1] += zero[i * zero_step]
        else:
            loss[i, 1] += own[i]
        no_cost, no_loss = cost[i, 0], loss[i, 0]
        if decide[i] & PUT_WILD:
            cost[i, 0] = cost[i, 1] + wild[i * wild_step]
            loss[i, 0] = loss[i, 1]
        if decide[i] & PUT_VOID:
            cost[i, 1] = no_cost + void[i * void_step]
            loss[i, 1] = no_loss
        if i:
            for state in range(2):
                cost[up[i], state] += cost[i, state]
                loss[up[i], state] += loss[i, state]
    return cost[0, 0], loss[0, 0]


@kernel
def differences(up: Any, old: Any, new: Any, state: Any, at: Any) -> Any:
    """The branches whose decision would change, given what stands above them now; returns how many are in `at`."""
    found = 0
    for i in range(up.shape[0]):
        above = state[up[i]] if i else 0
        change = old[i] ^ new[i]
        if change & (PUT_VOID if above else PUT_WILD) or (state[i] and change & PUT_ZERO):
            at[found] = i
            found += 1
    return found


@njit(cache=True, nogil=True)
def pick(up: Any, order: Any, at: Any, more: Any, gain: Any, left: Any, chosen: Any) -> Any:
    """Choose changes of whole subtrees in this order while they fit into what is left; none inside another."""
    above_chosen = np.zeros(up.shape[0], np.bool_)
    for piece in order:
        if gain[piece] <= 0 or more[piece] > left or above_chosen[at[piece]]:
            continue
        i = at[piece]
        while i >= 0 and not chosen[i]:
            i = up[i]
        if i >= 0:
            continue
        chosen[at[piece]] = True
        left -= more[piece]
        i = up[at[piece]]
        while i >= 0 and not above_chosen[i]:
            above_chosen[i] = True
            i = up[i]


@kernel
def adopt(up: Any, chosen: Any, old: Any, new: Any) -> Any:
    """Take the new decisions in the subtrees that `chosen` marks; the marks spread downwards."""
    for i in range(up.shape[0]):
        if i and chosen[up[i]]:
            chosen[i] = True
        if chosen[i]:
            old[i] = new[i]


@kernel
def states(up: Any, decide: Any, state: Any) -> Any:
    """What an unlisted URI below each branch is answered: 0 no, 1 yes."""
    for i in range(up.shape[0]):
        above = state[up[i]] if i else 0
        if above:
            state[i] = 0 if decide[i] & PUT_VOID else 1
        else:
            state[i] = 1 if decide[i] & PUT_WILD else 0


@kernel
def outermost(up: Any, flags: Any, leaves: Any, count: Any) -> Any:
    """How many held exact keys lie below each branch and not below one another."""
    for i in range(up.shape[0] - 1, -1, -1):
        count[i] += leaves[i]
        if i:
            count[up[i]] += 1 if flags[i] & HELD else count[i]


@kernel
def keep_rows(row_branch: Any, role: Any, up: Any, state: Any, decide: Any, keep: Any) -> Any:
    """Which rows stay as they are: held exact keys that nothing covers, and known absences that are worth it."""
    for row in range(row_branch.shape[0]):
        branch = row_branch[row]
        what = role[row] & ~JSON
        if what in (LEAF, OWN):
            keep[row] = state[branch] == 0
        elif what == ZERO:
            keep[row] = state[branch] == 1 and decide[branch] & PUT_ZERO != 0
        elif what == NONE:
            keep[row] = state[branch] == 0 and branch > 0 and state[up[branch]] == 1
        else:
            keep[row] = False


@kernel
def write_wildcards(
    data: Any,
    chosen: Any,
    name_at: Any,
    name_len: Any,
    is_path: Any,
    total: Any,
    bound: Any,
    starts: Any,
    text: Any,
) -> Any:
    """The lines of these branches' wildcards, each where it starts in `text`."""
    for number in range(chosen.shape[0]):
        branch = chosen[number]
        at = starts[number]
        for i in range(name_len[branch]):
            text[at + i] = data[name_at[branch] + i]
        at += name_len[branch]
        if branch:
            text[at] = 47 if is_path[branch] else 44
            at += 1
        text[at] = 42
        text[at + 1] = 32
        at = put_count(text, at + 2, total[branch, 0], bound[branch] & 3)
        if total[branch, 1] >= 0 or total[branch, 0] < 0:
            text[at] = 47
            at = put_count(text, at + 1, total[branch, 1], bound[branch] >> 2)


@kernel
def place(data: Any, offsets: Any, text: Any, starts: Any, before: Any) -> Any:
    """For each new line of `text` (sorted by key) the row it comes before."""
    row = 0
    count = offsets.shape[0]
    for i in range(starts.shape[0]):
        low, step = row, 1
        while low < count and _less(data, offsets[low], text, starts[i]):
            row = low + 1
            low += step
            step *= 2
        high = min(low, count)
        while row < high:
            middle = (row + high) // 2
            if _less(data, offsets[middle], text, starts[i]):
                row = middle + 1
            else:
                high = middle
        before[i] = row


@kernel
def _less(data: Any, a: Any, text: Any, b: Any) -> Any:
    """Whether the key at a comes before the key at b; both end at a space, which is below all bytes of keys."""
    i = 0
    while data[a + i] == text[b + i] and data[a + i] != 32:
        i += 1
    return data[a + i] < text[b + i]


@kernel
def write_lines(
    data: Any, offsets: Any, keep: Any, text: Any, starts: Any, ends: Any, before: Any, at: Any, out: Any
) -> Any:
    """Merge kept rows and new lines into `out` from where `at` (row, new line) stands; returns the bytes written, or
    less than 0, if not even one line fits, the room it needs."""
    size = 0
    row, new = at[0], at[1]
    while True:
        if new < starts.shape[0] and before[new] <= row:
            length = ends[new] - starts[new]
            if size + length + 1 > out.shape[0]:
                break
            for i in range(length):
                out[size + i] = text[starts[new] + i]
            new += 1
        elif row < offsets.shape[0]:
            if not keep[row]:
                row += 1
                continue
            start = offsets[row]
            length = line_end(data, start, data.shape[0]) - start
            if data[start + length - 1] == 13:
                length -= 1
            if size + length + 1 > out.shape[0]:
                break
            for i in range(length):
                out[size + i] = data[start + i]
            row += 1
        else:
            at[0], at[1] = row, new
            return size
        out[size + length] = 10
        size += length + 1
    at[0], at[1] = row, new
    return size if size else -(length + 1)
