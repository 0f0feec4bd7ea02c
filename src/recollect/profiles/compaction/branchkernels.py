"""Byte loops from the lines of a map to its branches, in one pass; see `branches` for what a branch is.

Hides: the walk (`treekernels`) with its stack of nodes that can still go on. A node with one held exact key waits on
the stack; if it is closed without a child it is a plain leaf and is only counted at its parent, if a child comes it
becomes a branch. So branches are numbered in the order in which they get their first child, wildcard or void: parents
before children, and the same whether a map is scanned whole or in parts. Everything known lives in arrays of the
caller, so the scan can come back for more room and go on where it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.profiles.compaction.treekernels import (
    PATH,
    body_length,
    is_lone,
    is_on_path,
    next_node,
    stated_total,
    wildcard_kind,
)
from recollect.profiles.linekernels import (
    F_BOUNDS,
    F_KEY_LEN,
    F_LINE_LEN,
    F_M,
    F_NEXT,
    F_R,
    F_TAIL,
    LARGEST,
    ODD,
    RECORD,
    add_counts,
    closes,
    common_bytes,
    parse_line,
)
from recollect.profiles.words import inlined, kernel

# Flags of a branch: what records there are at its node, whether the map leaves open what lies below it, and whether it
# would be a plain leaf, had nobody asked for something below it.
HELD, ABSENT, WILD, VOID, OPEN, GROWN = 1, 2, 4, 8, 16, 32

# Roles of a row: a plain leaf of its branch; of its branch itself the held exact key, the exact void, the wildcard, the
# wildcard void; a second spelling of an exact void, which says nothing more. JSON is added where a line has a block.
LEAF, OWN, ZERO, TOTAL, NONE, AGAIN = 0, 1, 2, 3, 4, 5
JSON = 8

# Registers of a scan.
G_AT, G_TOP, G_ROWS, G_BRANCHES, G_PREVIOUS, G_PREVIOUS_LEN, G_PAREN, G_LONE = 0, 1, 2, 3, 4, 5, 6, 7
N_REGISTERS = 8

# Columns of the stack of open nodes; T_BRANCH is -1 and T_ROW its only row while a node is a leaf.
T_LEN, T_KIND, T_DEPTH, T_AT, T_UP, T_BRANCH, T_ROW, T_SIZE, T_M, T_R, T_B = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
N_STACK = 11

# Columns of a branch; B_OWN is where the line of its wildcard is.
B_UP, B_AT, B_LEN, B_KIND, B_DEPTH, B_FLAGS, B_LEAVES, B_KEYS, B_ROOM = 0, 1, 2, 3, 4, 5, 6, 7, 8
B_M, B_R, B_BOUND, B_OWN = 9, 10, 11, 12
N_BRANCH = 13

DONE, UNSORTED, BRANCHES_FULL, STACK_FULL = 0, -1, 10, 11


@inlined
def _add_held(branch: Any, at: Any, size: Any, m: Any, r: Any, b: Any) -> Any:
    """Count a held exact key of `size` bytes a line at a branch."""
    branch[at, B_KEYS] += 1
    branch[at, B_ROOM] += size + 1
    add_total(branch, at, m, r, b)


@kernel
def add_total(branch: Any, at: Any, m: Any, r: Any, b: Any) -> Any:
    """Add a frequency to a branch's total."""
    held = branch[at, B_BOUND]
    m, m_bound = add_counts(branch[at, B_M], held & 3, m, b & 3)
    r, r_bound = add_counts(branch[at, B_R], held >> 2, r, b >> 2)
    branch[at, B_M] = m
    branch[at, B_R] = r
    branch[at, B_BOUND] = m_bound | (r_bound << 2)


@inlined
def _close(regs: Any, stack: Any, branch: Any, row_branch: Any) -> Any:
    """Take the top node off the stack; a leaf is counted at its parent."""
    top = regs[G_TOP]
    if stack[top, T_BRANCH] < 0:
        at = stack[top, T_UP]
        row = stack[top, T_ROW]
        row_branch[row] = at
        branch[at, B_LEAVES] += 1
        _add_held(branch, at, stack[top, T_SIZE], stack[top, T_M], stack[top, T_R], stack[top, T_B])
    regs[G_TOP] -= 1


@kernel
def _promote(regs: Any, stack: Any, slot: Any, branch: Any, row_branch: Any, role: Any) -> Any:
    """Make the node in a slot a branch, if it is none; returns its number."""
    if stack[slot, T_BRANCH] >= 0:
        return stack[slot, T_BRANCH]
    at = regs[G_BRANCHES]
    regs[G_BRANCHES] += 1
    for column in range(N_BRANCH):
        branch[at, column] = 0
    branch[at, B_UP] = stack[slot, T_UP]
    branch[at, B_AT] = stack[slot, T_AT]
    branch[at, B_LEN] = stack[slot, T_LEN]
    branch[at, B_KIND] = stack[slot, T_KIND]
    branch[at, B_DEPTH] = stack[slot, T_DEPTH]
    stack[slot, T_BRANCH] = at
    row = stack[slot, T_ROW]
    if row >= 0:
        row_branch[row] = at
        role[row] = OWN | (role[row] & JSON)
        branch[at, B_FLAGS] = HELD
        _add_held(branch, at, stack[slot, T_SIZE], stack[slot, T_M], stack[slot, T_R], stack[slot, T_B])
    return at


@kernel
def scan(
    data: Any,
    stop: Any,
    regs: Any,
    fields: Any,
    stack: Any,
    offsets: Any,
    row_branch: Any,
    role: Any,
    branch: Any,
) -> Any:
    """Take in the lines from regs[G_AT] up to `stop`; returns DONE, a fault (ODD, UNSORTED), or what is too small."""
    while regs[G_AT] < stop:
        at = regs[G_AT]
        previous = regs[G_PREVIOUS]
        common = np.int64(0)
        if previous >= 0:
            common = common_bytes(data, previous, at, min(regs[G_PREVIOUS_LEN], stop - at))
        line = parse_line(data, at, stop, common, fields)
        if line == ODD:
            return ODD
        if line != RECORD:
            regs[G_AT] = fields[F_NEXT]
            continue
        size = fields[F_KEY_LEN]
        if previous >= 0 and (
            size == common or (common < regs[G_PREVIOUS_LEN] and data[at + common] < data[previous + common])
        ):
            return UNSORTED
        # A key makes at most as many nodes as it has bytes.
        if regs[G_BRANCHES] + size + 2 > branch.shape[0]:
            return BRANCHES_FULL
        while regs[G_TOP] > 0:
            top = regs[G_TOP]
            name = stack[top, T_LEN]
            last = 47 if stack[top, T_KIND] == PATH else 58
            if name <= common and (name == size or data[at + name] <= last):
                break
            _close(regs, stack, branch, row_branch)
        if regs[G_TOP] + size + 2 > stack.shape[0]:
            return STACK_FULL
        if previous < 0 or common <= regs[G_PAREN]:
            paren = np.int64(0)
            while paren < size and data[at + paren] != 41:
                paren += 1
            regs[G_PAREN] = paren
            regs[G_LONE] = is_lone(data, at, paren - 2 if paren == size and data[at + size - 1] == 42 else paren)
        wildcard = wildcard_kind(data, at, size)
        row = regs[G_ROWS]
        offsets[row] = at
        role[row] = JSON if fields[F_TAIL] else 0
        body = body_length(data, at, size, wildcard, regs[G_PAREN])
        slot, fresh = _walk(data, at, body, regs, stack, branch, row_branch, role)
        _take(regs, stack, slot, fresh, wildcard, fields, row_branch, role, branch)
        regs[G_ROWS] = row + 1
        regs[G_PREVIOUS] = at
        regs[G_PREVIOUS_LEN] = size
        regs[G_AT] = fields[F_NEXT]
    while regs[G_TOP] > 0:
        _close(regs, stack, branch, row_branch)
    return DONE


@inlined
def _walk(data: Any, at: Any, body: Any, regs: Any, stack: Any, branch: Any, row_branch: Any, role: Any) -> Any:
    """Open the nodes down to a key's own; returns its slot and whether it is new."""
    paren, lone = regs[G_PAREN], regs[G_LONE] != 0
    slot = regs[G_TOP]
    while not is_on_path(data, at, stack[slot, T_LEN], stack[slot, T_KIND], body, paren, lone):
        slot -= 1
    fresh = False
    while stack[slot, T_LEN] < body:
        up = _promote(regs, stack, slot, branch, row_branch, role)
        name, kind, depth = next_node(
            data,
            at,
            stack[slot, T_LEN],
            stack[slot, T_KIND],
            stack[slot, T_DEPTH],
            body,
            paren,
            lone,
            np.int64(LARGEST),
            np.int64(LARGEST),
        )
        regs[G_TOP] += 1
        slot = regs[G_TOP]
        stack[slot, T_LEN] = name
        stack[slot, T_KIND] = kind
        stack[slot, T_DEPTH] = depth
        stack[slot, T_AT] = at
        stack[slot, T_UP] = up
        stack[slot, T_BRANCH] = -1
        stack[slot, T_ROW] = -1
        fresh = True
    return slot, fresh


@inlined
def _take(
    regs: Any,
    stack: Any,
    slot: Any,
    fresh: Any,
    wildcard: Any,
    fields: Any,
    row_branch: Any,
    role: Any,
    branch: Any,
) -> Any:
    """Note what a record says of its node."""
    row = regs[G_ROWS]
    m, r, b = fields[F_M], fields[F_R], fields[F_BOUNDS]
    void = m == 0 and closes(b & 3)
    if fresh and wildcard < 0 and not void:
        stack[slot, T_ROW] = row
        stack[slot, T_SIZE] = fields[F_LINE_LEN]
        stack[slot, T_M] = m
        stack[slot, T_R] = r
        stack[slot, T_B] = b
        return
    at = _promote(regs, stack, slot, branch, row_branch, role)
    row_branch[row] = at
    if wildcard < 0 and not void:
        branch[at, B_FLAGS] |= HELD
        role[row] |= OWN
        _add_held(branch, at, fields[F_LINE_LEN], m, r, b)
    elif wildcard < 0:
        role[row] |= AGAIN if branch[at, B_FLAGS] & ABSENT else ZERO
        branch[at, B_FLAGS] |= ABSENT
    elif void:
        role[row] |= NONE
        branch[at, B_FLAGS] |= VOID
    else:
        role[row] |= TOTAL
        branch[at, B_FLAGS] |= WILD
        branch[at, B_OWN] = regs[G_AT]


@kernel
def sum_up(data: Any, fields: Any, branch: Any, kinds: Any, size: Any) -> Any:
    """Bottom-up, once all rows are in: inclusive totals, children that hold something, held URIs as far as known; then
    top-down which branches are open. A wildcard speaks for everything below it (`stated_total`)."""
    for i in range(branch.shape[0] - 1, -1, -1):
        kinds[i] += branch[i, B_LEAVES]
        size[i] += branch[i, B_KEYS]
        if branch[i, B_FLAGS] & WILD:
            parse_line(data, branch[i, B_OWN], len(data), 0, fields)
            below, own = branch[i, B_BOUND], fields[F_BOUNDS]
            m, m_bound = stated_total(fields[F_M], own & 3, branch[i, B_M], below & 3)
            r, r_bound = stated_total(fields[F_R], own >> 2, branch[i, B_R], below >> 2)
            branch[i, B_M] = m
            branch[i, B_R] = r
            branch[i, B_BOUND] = m_bound | (r_bound << 2)
            size[i] = max(size[i], np.float64(r if r >= 0 else m), 1.0)
        if i > 0 and size[i] > 0:
            up = branch[i, B_UP]
            size[up] += size[i]
            kinds[up] += 1
            add_total(branch, up, branch[i, B_M], branch[i, B_R], branch[i, B_BOUND])
    for i in range(branch.shape[0]):
        flags = branch[i, B_FLAGS]
        if flags & WILD or (i > 0 and branch[branch[i, B_UP], B_FLAGS] & OPEN and not flags & VOID):
            branch[i, B_FLAGS] = flags | OPEN
