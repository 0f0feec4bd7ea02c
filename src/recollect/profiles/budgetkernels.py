"""Loops of compaction by budget: the branches of a map, the exact optimum for a price, and the written lines.

Hides Numba. Arrays are indexed by row (a record of the map), by node (of its `KeyTree`) or by branch. A branch is a
node that the optimum has to decide about: every node but a plain leaf, which is one held exact key with nothing
below it and no wildcard. Plain leaves are counted at their parent, so that one pass of the optimum touches about a
tenth of the nodes. A parent's number is smaller than its children's, so a loop backwards goes bottom-up.

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

from recollect.profiles.treekernels import add_counts, stated_total

# Flags of a node.
HELD, ABSENT, WILD, VOID, CHILD, OPEN, ASKED = 1, 2, 4, 8, 16, 32, 64

# Decisions about a branch: what to write in state 0, in state 1, and about itself when covered.
PUT_WILD, PUT_VOID, PUT_ZERO = 1, 2, 4


@njit(cache=True, nogil=True)
def flag_nodes(parent: Any, node_of: Any, wild: Any, void: Any, flags: Any) -> Any:
    """What the map says of each node; `flags` may already have ASKED. Returns the number of branches."""
    for row in range(node_of.shape[0]):
        if wild[row]:
            flags[node_of[row]] |= VOID if void[row] else WILD
        else:
            flags[node_of[row]] |= ABSENT if void[row] else HELD
    for node in range(parent.shape[0] - 1, 0, -1):
        flags[parent[node]] |= CHILD
    branches = 0
    for node in range(parent.shape[0]):
        if flags[node] & WILD or (node and flags[parent[node]] & OPEN and not flags[node] & VOID):
            flags[node] |= OPEN
        if node == 0 or flags[node] & ~(HELD | OPEN):
            branches += 1
    return branches


@njit(cache=True, nogil=True)
def gather_branches(
    parent: Any,
    node_of: Any,
    wild: Any,
    void: Any,
    uri_m: Any,
    uri_r: Any,
    bounds: Any,
    line_lens: Any,
    flags: Any,
    branch_of: Any,
    up: Any,
    node: Any,
    leaves: Any,
    kinds: Any,
    size: Any,
    keys: Any,
    room: Any,
    total: Any,
    bound: Any,
) -> Any:
    """Fill the columns of the branches.

    leaves: held exact keys of plain leaves; kinds: children that hold something; size: held URIs, as far as known;
    keys, room: number and bytes of the lines of held exact keys at the branch (its own and its leaves'); total,
    bound: the inclusive frequency (URI-Ms, URI-Rs; bounds packed as in a table). `branch_of` a plain leaf is -1.
    """
    count = 0
    for i in range(parent.shape[0]):
        if i == 0 or flags[i] & ~(HELD | OPEN):
            branch_of[i] = count
            node[count] = i
            up[count] = -1 if i == 0 else branch_of[parent[i]]
            count += 1
        else:
            branch_of[i] = -1
    own = np.full((count, 2), -1, np.int64)
    own_bound = np.zeros(count, np.int64)
    for row in range(node_of.shape[0]):
        at = node_of[row]
        branch = branch_of[at]
        if branch < 0:
            branch = branch_of[parent[at]]
            leaves[branch] += 1
            kinds[branch] += 1
        if void[row]:
            continue
        if wild[row]:
            own[branch, 0] = uri_m[row]
            own[branch, 1] = uri_r[row]
            own_bound[branch] = bounds[row]
        else:
            keys[branch] += 1
            room[branch] += line_lens[row] + 1
            size[branch] += 1
            _add(total, bound, branch, uri_m[row], uri_r[row], bounds[row])
    for i in range(count - 1, -1, -1):
        if flags[node[i]] & WILD:
            m, m_bound = stated_total(own[i, 0], own_bound[i] & 3, total[i, 0], np.int64(bound[i] & 3))
            r, r_bound = stated_total(own[i, 1], own_bound[i] >> 2, total[i, 1], np.int64(bound[i] >> 2))
            total[i, 0] = m
            total[i, 1] = r
            bound[i] = m_bound | (r_bound << 2)
            size[i] = max(size[i], np.float64(r if r >= 0 else m), 1.0)
        if i and size[i] > 0:
            size[up[i]] += size[i]
            kinds[up[i]] += 1
            _add(total, bound, up[i], total[i, 0], total[i, 1], np.int64(bound[i]))


@njit(cache=True, nogil=True)
def _add(total: Any, bound: Any, at: Any, m: Any, r: Any, b: Any) -> Any:
    m, m_bound = add_counts(total[at, 0], np.int64(bound[at] & 3), m, np.int64(b & 3))
    r, r_bound = add_counts(total[at, 1], np.int64(bound[at] >> 2), r, np.int64(b >> 2))
    total[at, 0] = m
    total[at, 1] = r
    bound[at] = m_bound | (r_bound << 2)


@njit(cache=True, nogil=True)
def frequency_lengths(total: Any, bound: Any, length: Any) -> Any:
    """How many bytes the frequency of each branch is written with."""
    for i in range(length.shape[0]):
        length[i] = _digits(total[i, 0], bound[i] & 3)
        if total[i, 1] >= 0 or total[i, 0] < 0:
            length[i] += 1 + _digits(total[i, 1], bound[i] >> 2)


@njit(cache=True, nogil=True)
def _digits(value: Any, bound: Any) -> Any:
    if value < 0:
        return 0
    digits = 1 if bound == 0 else 2
    while value >= 10:
        value //= 10
        digits += 1
    return digits


@njit(cache=True, nogil=True)
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
    cost: Any,
    loss: Any,
    decide: Any,
) -> Any:
    """The best decisions for a price. `cost` and `loss` become, per branch and state, what its subtree costs and loses.

    listed, wild, void, zero: costs of the held exact keys, `v/*`, `v/* 0`, `v 0`; leave, own: expected lookups of
    absent URIs.
    """
    count = up.shape[0]
    cost[:] = 0
    loss[:] = 0.0
    for i in range(count - 1, -1, -1):
        decision = 0
        cost[i, 0] += listed[i]
        loss[i, 1] += leave[i]
        if own[i] > price * zero[i]:
            decision = PUT_ZERO
            cost[i, 1] += zero[i]
        else:
            loss[i, 1] += own[i]
        no = np.inf if is_open[i] else loss[i, 0] + price * cost[i, 0]
        yes = loss[i, 1] + price * cost[i, 1]
        no_cost, no_loss = cost[i, 0], loss[i, 0]
        if is_open[i] or (may_roll[i] and price * wild[i] + yes < no):
            decision |= PUT_WILD
            cost[i, 0] = cost[i, 1] + wild[i]
            loss[i, 0] = loss[i, 1]
        if may_roll[i] and price * void[i] + no < yes:
            decision |= PUT_VOID
            cost[i, 1] = no_cost + void[i]
            loss[i, 1] = no_loss
        decide[i] = decision
        if i:
            cost[up[i], 0] += cost[i, 0]
            cost[up[i], 1] += cost[i, 1]
            loss[up[i], 0] += loss[i, 0]
            loss[up[i], 1] += loss[i, 1]
    return cost[0, 0], loss[0, 0]


@njit(cache=True, nogil=True)
def weigh(
    up: Any, listed: Any, wild: Any, void: Any, zero: Any, leave: Any, own: Any, decide: Any, cost: Any, loss: Any
) -> Any:
    """What given decisions cost and lose, per branch and state."""
    cost[:] = 0
    loss[:] = 0.0
    for i in range(up.shape[0] - 1, -1, -1):
        cost[i, 0] += listed[i]
        loss[i, 1] += leave[i]
        if decide[i] & PUT_ZERO:
            cost[i, 1] += zero[i]
        else:
            loss[i, 1] += own[i]
        no_cost, no_loss = cost[i, 0], loss[i, 0]
        if decide[i] & PUT_WILD:
            cost[i, 0] = cost[i, 1] + wild[i]
            loss[i, 0] = loss[i, 1]
        if decide[i] & PUT_VOID:
            cost[i, 1] = no_cost + void[i]
            loss[i, 1] = no_loss
        if i:
            for state in range(2):
                cost[up[i], state] += cost[i, state]
                loss[up[i], state] += loss[i, state]
    return cost[0, 0], loss[0, 0]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def adopt(up: Any, chosen: Any, old: Any, new: Any) -> Any:
    """Take the new decisions in the subtrees that `chosen` marks; the marks spread downwards."""
    for i in range(up.shape[0]):
        if i and chosen[up[i]]:
            chosen[i] = True
        if chosen[i]:
            old[i] = new[i]


@njit(cache=True, nogil=True)
def states(up: Any, decide: Any, state: Any) -> Any:
    """What an unlisted URI below each branch is answered: 0 no, 1 yes."""
    for i in range(up.shape[0]):
        above = state[up[i]] if i else 0
        if above:
            state[i] = 0 if decide[i] & PUT_VOID else 1
        else:
            state[i] = 1 if decide[i] & PUT_WILD else 0


@njit(cache=True, nogil=True)
def keep_rows(
    parent: Any, node_of: Any, wild: Any, void: Any, branch_of: Any, up: Any, state: Any, decide: Any, keep: Any
) -> Any:
    """Which rows stay as they are: held exact keys that nothing covers, and known absences that are worth it."""
    kept = 0
    for row in range(node_of.shape[0]):
        at = node_of[row]
        branch = branch_of[at]
        if branch < 0:
            keep[row] = state[branch_of[parent[at]]] == 0
        elif wild[row]:
            above = state[up[branch]] if branch else 0
            keep[row] = void[row] and above == 1 and state[branch] == 0
        elif void[row]:
            keep[row] = state[branch] == 1 and decide[branch] & PUT_ZERO
        else:
            keep[row] = state[branch] == 0
        kept += keep[row]
    return kept


@njit(cache=True, nogil=True)
def place(data: Any, offsets: Any, key_lens: Any, text: Any, starts: Any, key_ends: Any, before: Any) -> Any:
    """For each new line of `text` (sorted by key) the row it comes before."""
    row = 0
    count = offsets.shape[0]
    for i in range(starts.shape[0]):
        size = key_ends[i] - starts[i]
        low, step = row, 1
        while low < count and _less(data, offsets[low], key_lens[low], text, starts[i], size):
            row = low + 1
            low += step
            step *= 2
        high = min(low, count)
        while row < high:
            middle = (row + high) // 2
            if _less(data, offsets[middle], key_lens[middle], text, starts[i], size):
                row = middle + 1
            else:
                high = middle
        before[i] = row


@njit(cache=True, nogil=True)
def _less(data: Any, a: Any, a_len: Any, text: Any, b: Any, b_len: Any) -> Any:
    for i in range(min(a_len, b_len)):
        if data[a + i] != text[b + i]:
            return data[a + i] < text[b + i]
    return a_len < b_len


@njit(cache=True, nogil=True)
def write_lines(
    data: Any,
    offsets: Any,
    line_lens: Any,
    keep: Any,
    text: Any,
    starts: Any,
    ends: Any,
    before: Any,
    at: Any,
    out: Any,
) -> Any:
    """Merge kept rows and new lines into `out` from where `at` (row, new line) stands; returns the bytes written."""
    size = 0
    row, new = at[0], at[1]
    while True:
        if new < starts.shape[0] and before[new] <= row:
            length = ends[new] - starts[new]
            if size + length + 1 > out.shape[0]:
                break
            out[size : size + length] = text[starts[new] : ends[new]]
            new += 1
        elif row < offsets.shape[0]:
            if not keep[row]:
                row += 1
                continue
            length = np.int64(line_lens[row])
            if size + length + 1 > out.shape[0]:
                break
            out[size : size + length] = data[offsets[row] : offsets[row] + length]
            row += 1
        else:
            break
        out[size + length] = 10
        size += length + 1
    at[0], at[1] = row, new
    return size
