"""Byte loops over the lines of a map: reading lines, and walking the tree of keys in byte order.

Hides: how a line is taken apart, and how the tree is followed although its subtrees are not contiguous on disk.

The tree. Nodes: the root (`*`), host segments (`com`, `com,x`), a port below its host (`com,x:80`), the root of a
host's paths (named `com,x)`), path segments (`com,x)/a`). An exact key belongs to its node; `N/*`, `N,*` or `*` is
the wildcard of node N. A host whose first segment has only digits and dots (an IP address in either spelling), or
that begins with `[`, is one segment.

The walk. `/a`, `/a-b`, `/a/1` is the order of bytes, so `/a` is interrupted by its sibling. But a node can only go on
while its name is a byte prefix of the current key and the byte after it is no greater than its last separator (`/` in
paths, `:` in hosts). Nodes that can still go on are therefore prefixes of each other: a stack, no deeper than the
longest key, always sorted by length; ancestors lie below their descendants; a node that cannot go on will never come
back. So one pass over lines sorted by bytes sees every node opened once and closed once, children before parents, and
no line needs to be sorted again.

All kernels that call each other live in this file, because Numba's cache does not notice a changed callee in another
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recollect.profiles.words import copy_bytes, kernel, low_zeros, word_at

# Kinds of nodes.
ROOT, HOST, LONE, PORT, PATH = 0, 1, 2, 3, 4

# Bounds of a count, packed two bits each for URI-Ms (low) and URI-Rs (next two).
EXACT, AT_LEAST, AT_MOST, ABOUT = 0, 1, 2, 3

# What a line is.
RECORD, HEADER, BLANK, ODD = 0, 1, 2, 3

# Columns of `fields` filled by `parse_line`.
F_KEY_LEN, F_LINE_LEN, F_M, F_R, F_BOUNDS, F_TAIL, F_NEXT = 0, 1, 2, 3, 4, 5, 6
N_FIELDS = 7


@kernel
def common_bytes(data: Any, a: Any, b: Any, limit: Any) -> Any:
    """How many bytes the texts at a and b share, up to `limit`; eight at a time while both lie inside."""
    base = data.ctypes.data
    count = np.int64(0)
    last = min(limit, len(data) - max(a, b)) - 8
    while count <= last:
        differ = word_at(np.uintp(base), np.uintp(a + count)) ^ word_at(np.uintp(base), np.uintp(b + count))
        if differ:
            return count + np.int64(low_zeros(differ) >> np.uint64(3))
        count += 8
    while count < limit and data[a + count] == data[b + count]:
        count += 1
    return count


@kernel
def token_end(data: Any, at: Any, stop: Any) -> Any:
    """Where a token ends: the first byte up to 0x20."""
    base = data.ctypes.data
    ones = np.uint64(0x0101010101010101)
    highs = np.uint64(0x8080808080808080)
    while at + 8 <= stop:
        word = word_at(np.uintp(base), np.uintp(at))
        small = (word - ones * np.uint64(33)) & ~word & highs
        if small:
            return at + np.int64(low_zeros(small) >> np.uint64(3))
        at += 8
    while at < stop and data[at] > 32:
        at += 1
    return at


@kernel
def _parse_count(data: Any, at: Any, end: Any) -> Any:
    """A count at `at`: (value or -1, bound, position behind it); value -2 when it is no number we can hold."""
    value = np.int64(-1)
    bound = EXACT
    digits = 0
    while at < end and 48 <= data[at] <= 57:
        value = (value if digits else 0) * 10 + (data[at] - 48)
        digits += 1
        at += 1
    if digits > 18:
        return np.int64(-2), bound, at
    if digits and at < end:
        if data[at] == 43:
            bound = AT_LEAST
            at += 1
        elif data[at] == 45:
            bound = AT_MOST
            at += 1
        elif data[at] == 126:
            bound = ABOUT
            at += 1
    return value, bound, at


@kernel
def parse_line(data: Any, start: Any, stop: Any, known: Any, fields: Any) -> Any:
    """Take apart the line at `start`, of which `known` bytes are known to be of its key.

    Returns RECORD, HEADER, BLANK, or ODD: a line of another layout, for `formats.ukvs` to judge.
    """
    at = start + known
    if known == 0:
        first = data[start]
        if first == 10 or (first == 13 and (start + 1 == stop or data[start + 1] == 10)):
            fields[F_NEXT] = _line_end(data, start, stop) + 1
            return BLANK
        if first == 33 or first == 64:
            fields[F_NEXT] = _line_end(data, start, stop) + 1
            return HEADER
        if first == 34 or first == 35 or first == 123 or first <= 32:
            return ODD
    at = token_end(data, at, stop)
    fields[F_KEY_LEN] = at - start
    if at >= stop or data[at] != 32:
        return ODD
    m, m_bound, at = _parse_count(data, at + 1, stop)
    r = np.int64(-1)
    r_bound = EXACT
    slash = at < stop and data[at] == 47
    if slash:
        r, r_bound, at = _parse_count(data, at + 1, stop)
    if m == -2 or r == -2 or (m < 0 and not slash):
        return ODD
    fields[F_M] = m
    fields[F_R] = r
    fields[F_BOUNDS] = m_bound | (r_bound << 2)
    fields[F_TAIL] = 0
    if at < stop and data[at] == 32:
        while at < stop and data[at] == 32:
            at += 1
        if at < stop and data[at] == 123:
            fields[F_TAIL] = at - start
            at = _line_end(data, at, stop)
            if data[at - 1] == 13:
                at -= 1
    fields[F_LINE_LEN] = at - start
    if at < stop and data[at] == 13:
        at += 1
    if at < stop and data[at] != 10:
        return ODD
    fields[F_NEXT] = at + 1
    return RECORD


@kernel
def _line_end(data: Any, at: Any, stop: Any) -> Any:
    while at < stop and data[at] != 10:
        at += 1
    return at


@kernel
def count_lines(data: Any, start: Any, stop: Any) -> Any:
    """How many lines begin in [start, stop)."""
    count = 0
    for at in range(start, stop):
        if data[at] == 10:
            count += 1
    if stop > start and data[stop - 1] != 10:
        count += 1
    return count


@kernel
def compare(data: Any, a: Any, a_len: Any, b: Any, b_len: Any) -> Any:
    """Two keys of one file by bytes: negative, zero, positive."""
    shared = min(a_len, b_len)
    i = common_bytes(data, a, b, shared)
    if i < shared:
        return np.int64(data[a + i]) - np.int64(data[b + i])
    return a_len - b_len


@njit(cache=True, nogil=True)
def scan_table(
    data: Any,
    start: Any,
    stop: Any,
    offsets: Any,
    key_lens: Any,
    line_lens: Any,
    uri_m: Any,
    uri_r: Any,
    bounds: Any,
    tails: Any,
) -> Any:
    """Fill the columns of a table; returns (rows, status, offset): status 0, ODD, or -1 where order breaks or
    repeats."""
    fields = np.zeros(N_FIELDS, np.int64)
    row = 0
    at = start
    while at < stop:
        kind = parse_line(data, at, stop, 0, fields)
        if kind == ODD:
            return row, ODD, at
        if kind == RECORD:
            if row and compare(data, offsets[row - 1], key_lens[row - 1], at, fields[F_KEY_LEN]) >= 0:
                return row, -1, at
            offsets[row] = at
            key_lens[row] = fields[F_KEY_LEN]
            line_lens[row] = fields[F_LINE_LEN]
            uri_m[row] = fields[F_M]
            uri_r[row] = fields[F_R]
            bounds[row] = fields[F_BOUNDS]
            tails[row] = fields[F_TAIL]
            row += 1
        at = fields[F_NEXT]
    return row, 0, at


@kernel
def wildcard_kind(data: Any, off: Any, key_len: Any) -> Any:
    """PATH for `.../*`, HOST for `...,*`, ROOT for `*`, -1 for an exact key."""
    if data[off + key_len - 1] != 42:
        return -1
    if key_len == 1:
        return ROOT
    before = data[off + key_len - 2]
    if before != 47 and before != 44:
        return -1
    paren = False
    for i in range(key_len):
        if data[off + i] == 41:
            paren = True
            break
    if before == 47 and paren:
        return PATH
    if before == 44 and not paren:
        return HOST
    return -1


@kernel
def body_length(data: Any, off: Any, key_len: Any, wild: Any, paren: Any) -> Any:
    """Length of the name of the key's node: without wildcard; an exact key without its trailing slashes."""
    if wild == ROOT:
        return np.int64(0)
    if wild > 0:
        return np.int64(key_len - 2)
    length = key_len
    while length > paren + 1 and data[off + length - 1] == 47:
        length -= 1
    return np.int64(length)


@kernel
def is_lone(data: Any, off: Any, end: Any) -> Any:
    """Whether the host in [off, off + end) is one segment: an IP address in any spelling."""
    if end == 0:
        return False
    if data[off] == 91:
        return True
    colons = 0
    numeric = True
    first = True
    for i in range(end):
        byte = data[off + i]
        if byte == 58:
            colons += 1
            first = False
            if colons > 1:
                return True
        elif byte == 44:
            first = False
        elif first and not (48 <= byte <= 57 or byte == 46):
            numeric = False
    return numeric


@kernel
def is_on_path(data: Any, off: Any, node_len: Any, kind: Any, body: Any, paren: Any, lone: Any) -> Any:
    """Whether an open node (a byte prefix of the key) is an ancestor of the key's node, or that node itself."""
    if kind == ROOT or node_len == body:
        return True
    if node_len > body:
        return False
    byte = data[off + node_len]
    if kind == PATH:
        return byte == 47
    if node_len == paren:
        return True
    if kind == HOST:
        return not lone and (byte == 44 or byte == 58)
    return kind == LONE and byte == 58 and _lone_end(data, off, min(paren, body)) == node_len


@kernel
def _lone_end(data: Any, off: Any, end: Any) -> Any:
    """Where the one segment of an IP host ends: before its port, or at the end of the host."""
    at = np.int64(0)
    if data[off] == 91:
        while at < end and data[off + at] != 93:
            at += 1
        while at < end and data[off + at] != 58:
            at += 1
        return at
    colon = end
    colons = 0
    for i in range(end):
        if data[off + i] == 58:
            colons += 1
            colon = np.int64(i)
    return colon if colons == 1 else np.int64(end)


@kernel
def next_node(
    data: Any,
    off: Any,
    node_len: Any,
    kind: Any,
    depth: Any,
    body: Any,
    paren: Any,
    lone: Any,
    max_host: Any,
    max_path: Any,
) -> Any:
    """The child towards the key's node: (length of its name, kind, depth). Call only while node_len < body."""
    end = min(paren, body)
    if kind == PATH:
        at = node_len + 1
        if depth + 1 >= max_path:
            return body, PATH, depth + 1
        while at < body and data[off + at] != 47:
            at += 1
        return at, PATH, depth + 1
    if kind == ROOT and lone:
        return _lone_end(data, off, end), LONE, np.int64(1)
    if kind != ROOT and node_len == paren:
        return paren + 1, PATH, np.int64(1)
    if depth + 1 >= max_host:
        return end, HOST, depth + 1
    if kind != ROOT and data[off + node_len] == 58:
        return end, PORT, depth + 1
    at = np.int64(0) if kind == ROOT else node_len + 1
    while at < end and data[off + at] != 44 and data[off + at] != 58:
        at += 1
    return at, HOST, depth + 1


@njit(cache=True, nogil=True)
def build_tree(
    data: Any,
    offsets: Any,
    key_lens: Any,
    max_host: Any,
    max_path: Any,
    parent: Any,
    row_of: Any,
    name_len: Any,
    kind: Any,
    depth: Any,
    node_of: Any,
) -> Any:
    """Nodes in the order in which byte-sorted rows open them: parents before children, the root first.

    Returns the number of nodes, or -1 when the arrays have too little room for them.
    """
    stack = np.zeros(256, np.int64)
    top = 0
    parent[0] = -1
    row_of[0] = -1
    name_len[0] = 0
    kind[0] = ROOT
    depth[0] = 0
    nodes = 1
    room = parent.shape[0]
    for row in range(offsets.shape[0]):
        off = offsets[row]
        length = np.int64(key_lens[row])
        common = np.int64(0)
        if row > 0:
            base = offsets[row - 1]
            common = common_bytes(data, base, off, min(length, np.int64(key_lens[row - 1])))
        while top > 0:
            size = np.int64(name_len[stack[top]])
            last = 47 if kind[stack[top]] == PATH else 58
            if size <= common and (size == length or data[off + size] <= last):
                break
            top -= 1
        paren = np.int64(0)
        while paren < length and data[off + paren] != 41:
            paren += 1
        wildcard = wildcard_kind(data, off, length)
        body = body_length(data, off, length, wildcard, paren)
        lone = is_lone(data, off, min(paren, body))
        slot = top
        while not is_on_path(data, off, np.int64(name_len[stack[slot]]), kind[stack[slot]], body, paren, lone):
            slot -= 1
        node = stack[slot]
        size, sort, level = np.int64(name_len[node]), np.int64(kind[node]), np.int64(depth[node])
        while size < body:
            if nodes == room:
                return -1
            size, sort, level = next_node(data, off, size, sort, level, body, paren, lone, max_host, max_path)
            parent[nodes] = node
            row_of[nodes] = row
            name_len[nodes] = size
            kind[nodes] = sort
            depth[nodes] = min(level, 255)
            node = nodes
            nodes += 1
            top += 1
            if top == stack.shape[0]:
                bigger = np.zeros(2 * top, np.int64)
                bigger[:top] = stack
                stack = bigger
            stack[top] = node
        node_of[row] = node
    return nodes


@kernel
def mark_wildcards(data: Any, offsets: Any, key_lens: Any, wild: Any) -> Any:
    """Which rows are wildcards."""
    for row in range(offsets.shape[0]):
        wild[row] = wildcard_kind(data, offsets[row], np.int64(key_lens[row])) >= 0


# ---- compaction by weights
# ---------------------------------------------------------------------------------------------

# Registers of a compaction, kept between calls.
(
    R_AT,
    R_TOP,
    R_ENTRIES,
    R_FLUSHED,
    R_OUT,
    R_EVENTS,
    R_PREVIOUS,
    R_PREVIOUS_LEN,
    R_PAREN,
    R_LONE,
    R_PENDING,
    R_NEXT_ID,
    R_LINES,
    R_WRITTEN,
    R_ROLLUPS,
    R_PAUSE,
) = range(16)
N_REGISTERS = 16

# Columns of the stack of open nodes.
(
    S_LEN,
    S_KIND,
    S_DEPTH,
    S_PARENT,
    S_REF,
    S_CHILDREN,
    S_ROLLABLE,
    S_ROLLED,
    S_COVERED,
    S_HELD,
    S_START,
    S_OWN,
    S_OWN_M,
    S_OWN_R,
    S_OWN_B,
    S_SUM_M,
    S_SUM_R,
    S_SUM_B,
    S_JSON,
    S_WANTED,
) = range(20)
N_STACK = 20

# Columns of the entries: output lines that may still be taken back.
E_OFF, E_KEY_LEN, E_LINE_LEN, E_FLAGS, E_M, E_R, E_B, E_JSON = 0, 1, 2, 3, 4, 5, 6, 7
N_ENTRY = 8
IS_ROLLUP, IS_VOID, IS_WILD, IS_IMPURE, IS_DEAD, IS_HOST = 1, 2, 4, 8, 16, 32

# Events for the caller, who merges JSON: (what, node, a, b).
EVENT_LINE, EVENT_OWN, EVENT_CLOSE, EVENT_EMIT = 0, 1, 2, 3

# Why `compact` came back; ODD and the order faults end it, the others ask for room or give the caller a turn.
DONE, UNSORTED, OUT_FULL, ENTRIES_FULL, STACK_FULL, EVENTS_FULL, PAUSED = 0, -1, 10, 11, 12, 13, 14

OWN_NONE, OWN_TOTAL, OWN_VOID = 0, 1, 2
LARGEST = np.iinfo(np.int64).max


@kernel
def _closes(bound: Any) -> Any:
    """Whether a count with this bound may not be larger, so that 0 means none."""
    return bound == EXACT or bound == AT_MOST


@kernel
def _add_counts(a: Any, a_bound: Any, b: Any, b_bound: Any) -> Any:
    """The disjoint sum of two counts, as `formats.frequency.Count.__add__`."""
    if b == 0 and _closes(b_bound):
        return a, a_bound
    if a == 0 and _closes(a_bound):
        return b, b_bound
    if a < 0 and b < 0:
        return np.int64(-1), np.int64(EXACT)
    if a < 0:
        a, a_bound = np.int64(0), np.int64(AT_LEAST)
    if b < 0:
        b, b_bound = np.int64(0), np.int64(AT_LEAST)
    bound = a_bound | b_bound
    if a > LARGEST - b:
        if bound == AT_MOST:
            return np.int64(-1), np.int64(EXACT)
        return np.int64(LARGEST), (bound if bound != EXACT else np.int64(AT_LEAST))
    return a + b, bound


@kernel
def _stated_total(own: Any, own_bound: Any, below: Any, below_bound: Any) -> Any:
    """A wildcard's own count, which includes everything below it, unless what is below proves it too small."""
    if below == 0 and _closes(below_bound):
        return own, own_bound
    if own >= 0 and (below < 0 or below <= own or below_bound >= AT_MOST):
        return own, own_bound
    if below < 0:
        return own, own_bound
    if below_bound >= AT_MOST or own_bound == ABOUT:
        return below, np.int64(ABOUT)
    return below, np.int64(AT_LEAST)


@njit(inline="always")
def _total(stack: Any, slot: Any) -> Any:
    """(URI-Ms, URI-Rs, bounds) of a node: its wildcard's own total, else the sum of what is below."""
    m, r, b = stack[slot, S_SUM_M], stack[slot, S_SUM_R], stack[slot, S_SUM_B]
    if stack[slot, S_OWN] != OWN_TOTAL:
        return m, r, b
    own = stack[slot, S_OWN_B]
    m, m_bound = _stated_total(stack[slot, S_OWN_M], own & 3, m, b & 3)
    r, r_bound = _stated_total(stack[slot, S_OWN_R], own >> 2, r, b >> 2)
    return m, r, m_bound | (r_bound << 2)


@njit(inline="always")
def _add_to(stack: Any, slot: Any, m: Any, r: Any, b: Any) -> Any:
    m, m_bound = _add_counts(stack[slot, S_SUM_M], stack[slot, S_SUM_B] & 3, m, b & 3)
    r, r_bound = _add_counts(stack[slot, S_SUM_R], stack[slot, S_SUM_B] >> 2, r, b >> 2)
    stack[slot, S_SUM_M] = m
    stack[slot, S_SUM_R] = r
    stack[slot, S_SUM_B] = m_bound | (r_bound << 2)


@kernel
def _below(data: Any, entries: Any, i: Any, name_len: Any, kind: Any) -> Any:
    """Whether an entry that begins with a node's name is of its subtree."""
    if entries[i, E_KEY_LEN] == name_len:
        return True
    byte = data[entries[i, E_OFF] + name_len]
    if kind == PATH:
        return byte == 47
    return byte == 41 or byte == 44 or byte == 58


@kernel
def _copy_row(table: Any, to: Any, row: Any) -> Any:
    for column in range(table.shape[1]):
        table[to, column] = table[row, column]


@kernel
def _roll(data: Any, regs: Any, stack: Any, entries: Any, slot: Any) -> Any:
    """Decide that a node rolls up: take back the entries below it, but for voids, and cover the open nodes below
    it."""
    stack[slot, S_ROLLED] = 1
    size = stack[slot, S_LEN]
    kind = stack[slot, S_KIND]
    out = stack[slot, S_START]
    upper = slot + 1
    for i in range(stack[slot, S_START], regs[R_ENTRIES]):
        while upper <= regs[R_TOP] and stack[upper, S_START] <= i:
            stack[upper, S_START] = out
            upper += 1
        flags = entries[i, E_FLAGS]
        own = flags & IS_WILD and entries[i, E_KEY_LEN] == size + 2
        keep = flags & IS_VOID and not flags & IS_IMPURE and not own
        if keep or not _below(data, entries, i, size, kind):
            if out < i:
                _copy_row(entries, out, i)
            out += 1
    regs[R_ENTRIES] = out
    while upper <= regs[R_TOP]:
        stack[upper, S_START] = out
        upper += 1
    for above in range(slot + 1, regs[R_TOP] + 1):
        if not stack[above, S_COVERED]:
            stack[above, S_COVERED] = 1
            regs[R_PENDING] -= stack[above, S_ROLLABLE]


@kernel
def _insert_rollup(data: Any, regs: Any, stack: Any, entries: Any, slot: Any) -> Any:
    """Put the wildcard of a rolled-up node where it belongs among the entries that outlived it."""
    size = stack[slot, S_LEN]
    separator = 47 if stack[slot, S_KIND] == PATH else 44
    at = regs[R_ENTRIES]
    while at > stack[slot, S_START]:
        length = entries[at - 1, E_KEY_LEN]
        off = entries[at - 1, E_OFF]
        if length == size or data[off + size] < separator:
            break
        if data[off + size] == separator and (length == size + 1 or data[off + size + 1] < 42):
            break
        _copy_row(entries, at, at - 1)
        at -= 1
    entries[at, E_OFF] = stack[slot, S_REF]
    entries[at, E_KEY_LEN] = size + 2
    entries[at, E_FLAGS] = IS_ROLLUP | IS_WILD | (0 if separator == 47 else IS_HOST)
    m, r, b = _total(stack, slot)
    entries[at, E_M] = m
    entries[at, E_R] = r
    entries[at, E_B] = b
    entries[at, E_JSON] = stack[slot, S_JSON]
    regs[R_ENTRIES] += 1


@njit(inline="always")
def _close(data: Any, regs: Any, stack: Any, entries: Any, events: Any, tally: Any) -> Any:
    """Take the top node off the stack: its total goes to its parent, its wildcard to the entries if it rolled up."""
    slot = regs[R_TOP]
    up = stack[slot, S_PARENT]
    kept = stack[slot, S_ROLLED] and not stack[slot, S_COVERED]
    if stack[slot, S_CHILDREN] and stack[slot, S_DEPTH] < tally.shape[1]:
        tally[int(stack[slot, S_KIND] == PATH), stack[slot, S_DEPTH], 0] += 1
        tally[int(stack[slot, S_KIND] == PATH), stack[slot, S_DEPTH], 1] += stack[slot, S_CHILDREN]
    if stack[slot, S_OWN] == OWN_VOID and stack[slot, S_HELD]:
        # A void with something held below it would hide that, should a wider wildcard replace what is held.
        for i in range(regs[R_ENTRIES] - 1, stack[slot, S_START] - 1, -1):
            flags = entries[i, E_FLAGS]
            own = flags & IS_WILD and flags & IS_VOID and entries[i, E_KEY_LEN] == stack[slot, S_LEN] + 2
            if own and _below(data, entries, i, stack[slot, S_LEN], stack[slot, S_KIND]):
                entries[i, E_FLAGS] |= IS_IMPURE | (IS_DEAD if stack[slot, S_COVERED] else 0)
                break
    if kept:
        _insert_rollup(data, regs, stack, entries, slot)
        regs[R_ROLLUPS] += 1
    if stack[slot, S_HELD]:
        m, r, b = _total(stack, slot)
        _add_to(stack, up, m, r, b)
    if stack[slot, S_ROLLABLE] and not stack[slot, S_COVERED]:
        regs[R_PENDING] -= 1
    if stack[slot, S_JSON]:
        if stack[up, S_JSON] == 0 and stack[up, S_WANTED]:
            regs[R_NEXT_ID] += 1
            stack[up, S_JSON] = regs[R_NEXT_ID]
        events[regs[R_EVENTS], 0] = EVENT_CLOSE
        events[regs[R_EVENTS], 1] = stack[slot, S_JSON]
        events[regs[R_EVENTS], 2] = stack[up, S_JSON]
        events[regs[R_EVENTS], 3] = 1 if kept else 0
        regs[R_EVENTS] += 1
    regs[R_TOP] -= 1


@kernel
def _put_count(out: Any, at: Any, value: Any, bound: Any) -> Any:
    if value < 0:
        return at
    digits = 1
    rest = value // 10
    while rest:
        digits += 1
        rest //= 10
    for i in range(digits - 1, -1, -1):
        out[at + i] = 48 + value % 10
        value //= 10
    at += digits
    if bound != EXACT:
        out[at] = 43 if bound == AT_LEAST else (45 if bound == AT_MOST else 126)
        at += 1
    return at


@kernel
def _flush(data: Any, regs: Any, entries: Any, out: Any, events: Any) -> Any:
    """Write the entries; returns DONE, or what there was too little room for."""
    while regs[R_FLUSHED] < regs[R_ENTRIES]:
        i = regs[R_FLUSHED]
        flags = entries[i, E_FLAGS]
        if not flags & IS_DEAD:
            off = entries[i, E_OFF]
            rolled = flags & IS_ROLLUP
            size = entries[i, E_KEY_LEN] - 2 if rolled else entries[i, E_LINE_LEN]
            at = regs[R_OUT]
            if at + size + 64 > out.shape[0]:
                return OUT_FULL
            copy_bytes(np.uintp(out.ctypes.data + at), np.uintp(data.ctypes.data + off), np.uintp(size))
            at += size
            if rolled:
                out[at] = 44 if flags & IS_HOST else 47
                out[at + 1] = 42
                out[at + 2] = 32
                at = _put_count(out, at + 3, entries[i, E_M], entries[i, E_B] & 3)
                if entries[i, E_R] >= 0 or entries[i, E_M] < 0:
                    out[at] = 47
                    at = _put_count(out, at + 1, entries[i, E_R], entries[i, E_B] >> 2)
                if entries[i, E_JSON]:
                    if regs[R_EVENTS] >= events.shape[0]:
                        return EVENTS_FULL
                    events[regs[R_EVENTS], 0] = EVENT_EMIT
                    events[regs[R_EVENTS], 1] = entries[i, E_JSON]
                    events[regs[R_EVENTS], 2] = at
                    regs[R_EVENTS] += 1
            out[at] = 10
            regs[R_OUT] = at + 1
            regs[R_WRITTEN] += 1
        regs[R_FLUSHED] += 1
    regs[R_FLUSHED] = 0
    regs[R_ENTRIES] = 0
    return DONE


@njit(inline="always")
def _open(
    data: Any,
    regs: Any,
    stack: Any,
    slot_up: Any,
    off: Any,
    size: Any,
    kind: Any,
    depth: Any,
    host_cutoffs: Any,
    path_cutoffs: Any,
) -> Any:
    """Push a node.

    A host that is first met through a port, so of which nothing but ports is held, does not roll up: its wildcard
    (`x,*`) would belong before lines (`x-y)`) that have been written.
    """
    regs[R_TOP] += 1
    slot = regs[R_TOP]
    for column in range(N_STACK):
        stack[slot, column] = 0
    stack[slot, S_LEN] = size
    stack[slot, S_KIND] = kind
    stack[slot, S_DEPTH] = depth
    stack[slot, S_PARENT] = slot_up
    stack[slot, S_REF] = off
    stack[slot, S_START] = regs[R_ENTRIES]
    stack[slot, S_COVERED] = stack[slot_up, S_COVERED] or stack[slot_up, S_ROLLED]
    if (kind == HOST and depth < len(host_cutoffs) and host_cutoffs[depth] < np.inf and data[off + size] != 58) or (
        kind == PATH and depth < len(path_cutoffs) and path_cutoffs[depth] < np.inf
    ):
        stack[slot, S_ROLLABLE] = 1
        if not stack[slot, S_COVERED]:
            regs[R_PENDING] += 1
    stack[slot, S_WANTED] = stack[slot, S_ROLLABLE] or stack[slot_up, S_WANTED]
    return slot


@njit(inline="always")
def _hold(data: Any, regs: Any, stack: Any, entries: Any, slot: Any, host_cutoffs: Any, path_cutoffs: Any) -> Any:
    """Something is held at a node: count it as a child where it is new, and roll up parents that have too many."""
    while slot > 0 and not stack[slot, S_HELD]:
        stack[slot, S_HELD] = 1
        up = stack[slot, S_PARENT]
        kind = stack[up, S_KIND]
        if kind == PATH or stack[slot, S_KIND] != PATH:
            stack[up, S_CHILDREN] += 1
            if stack[up, S_ROLLABLE] and not stack[up, S_ROLLED] and not stack[up, S_COVERED]:
                cutoffs = path_cutoffs if kind == PATH else host_cutoffs
                if stack[up, S_CHILDREN] > cutoffs[stack[up, S_DEPTH]]:
                    _roll(data, regs, stack, entries, up)
        slot = up


@kernel
def compact(
    data: Any,
    stop: Any,
    regs: Any,
    fields: Any,
    stack: Any,
    entries: Any,
    out: Any,
    events: Any,
    tally: Any,
    host_cutoffs: Any,
    path_cutoffs: Any,
    max_host: Any,
    max_path: Any,
) -> Any:
    """Compact the lines from regs[R_AT] up to `stop`; returns DONE, a fault, or what to do before calling again.

    `host_cutoffs[d]` and `path_cutoffs[d]`: a node of depth d rolls up when it has more children; infinity means
    never. `tally[0 for hosts, 1 for paths, d]` counts nodes of depth d that have children, and those children.
    """
    while True:
        if regs[R_PENDING] == 0 and regs[R_ENTRIES] > 0:
            status = _flush(data, regs, entries, out, events)
            if status != DONE:
                return status
        if regs[R_ENTRIES] + regs[R_TOP] + 2 >= entries.shape[0]:
            return ENTRIES_FULL
        if regs[R_EVENTS] + regs[R_TOP] + 2 >= events.shape[0]:
            return EVENTS_FULL
        at = regs[R_AT]
        if at >= stop:
            break
        if at >= regs[R_PAUSE]:
            return PAUSED
        previous = regs[R_PREVIOUS]
        common = np.int64(0)
        if previous >= 0:
            common = common_bytes(data, previous, at, min(regs[R_PREVIOUS_LEN], stop - at))
        line = parse_line(data, at, stop, common, fields)
        if line == ODD:
            return ODD
        if line != RECORD:
            regs[R_AT] = fields[F_NEXT]
            continue
        size = fields[F_KEY_LEN]
        if previous >= 0 and (
            size == common or (common < regs[R_PREVIOUS_LEN] and data[at + common] < data[previous + common])
        ):
            return UNSORTED
        while regs[R_TOP] > 0:
            top = regs[R_TOP]
            name = stack[top, S_LEN]
            last = 47 if stack[top, S_KIND] == PATH else 58
            if name <= common and (name == size or data[at + name] <= last):
                break
            _close(data, regs, stack, entries, events, tally)
        if regs[R_PENDING] == 0 and regs[R_ENTRIES] > 0:
            continue  # closing has settled everything: flush first, then take this line
        if regs[R_TOP] + size + 2 >= stack.shape[0]:
            return STACK_FULL
        if previous < 0 or common <= regs[R_PAREN]:
            paren = np.int64(0)
            while paren < size and data[at + paren] != 41:
                paren += 1
            regs[R_PAREN] = paren
            regs[R_LONE] = is_lone(data, at, paren - 2 if paren == size and data[at + size - 1] == 42 else paren)
        paren = regs[R_PAREN]
        lone = regs[R_LONE] != 0
        wildcard = wildcard_kind(data, at, size)
        body = body_length(data, at, size, wildcard, paren)
        slot = regs[R_TOP]
        while not is_on_path(data, at, stack[slot, S_LEN], stack[slot, S_KIND], body, paren, lone):
            slot -= 1
        while stack[slot, S_LEN] < body:
            name, kind, depth = next_node(
                data,
                at,
                stack[slot, S_LEN],
                stack[slot, S_KIND],
                stack[slot, S_DEPTH],
                body,
                paren,
                lone,
                max_host,
                max_path,
            )
            slot = _open(data, regs, stack, slot, at, name, kind, depth, host_cutoffs, path_cutoffs)
        _take(regs, stack, entries, events, slot, at, wildcard, fields)
        bound = fields[F_BOUNDS] & 3
        if not (fields[F_M] == 0 and _closes(bound)):
            _hold(data, regs, stack, entries, slot, host_cutoffs, path_cutoffs)
        regs[R_PREVIOUS] = at
        regs[R_PREVIOUS_LEN] = size
        regs[R_LINES] += 1
        regs[R_AT] = fields[F_NEXT]
    while regs[R_TOP] > 0:
        _close(data, regs, stack, entries, events, tally)
    return _flush(data, regs, entries, out, events)


@njit(inline="always")
def _take(regs: Any, stack: Any, entries: Any, events: Any, slot: Any, at: Any, wildcard: Any, fields: Any) -> Any:
    """Add a line to its node and, unless it is covered, to the entries."""
    size = fields[F_KEY_LEN]
    bound = fields[F_BOUNDS] & 3
    void = fields[F_M] == 0 and _closes(bound)
    rolled = stack[slot, S_ROLLED] and not stack[slot, S_COVERED]
    if (void and not (rolled and wildcard >= 0)) or not (stack[slot, S_COVERED] or stack[slot, S_ROLLED]):
        i = regs[R_ENTRIES]
        entries[i, E_OFF] = at
        entries[i, E_KEY_LEN] = size
        entries[i, E_LINE_LEN] = fields[F_LINE_LEN]
        entries[i, E_FLAGS] = (IS_VOID if void else 0) | (IS_WILD if wildcard >= 0 else 0)
        regs[R_ENTRIES] = i + 1
    if void:
        if wildcard >= 0:
            stack[slot, S_OWN] = OWN_VOID
        return
    if wildcard >= 0:
        stack[slot, S_OWN] = OWN_TOTAL
        stack[slot, S_OWN_M] = fields[F_M]
        stack[slot, S_OWN_R] = fields[F_R]
        stack[slot, S_OWN_B] = fields[F_BOUNDS]
    else:
        _add_to(stack, slot, fields[F_M], fields[F_R], fields[F_BOUNDS])
    if fields[F_TAIL] and stack[slot, S_WANTED]:
        if stack[slot, S_JSON] == 0:
            regs[R_NEXT_ID] += 1
            stack[slot, S_JSON] = regs[R_NEXT_ID]
        events[regs[R_EVENTS], 0] = EVENT_OWN if wildcard >= 0 else EVENT_LINE
        events[regs[R_EVENTS], 1] = stack[slot, S_JSON]
        events[regs[R_EVENTS], 2] = at + fields[F_TAIL]
        events[regs[R_EVENTS], 3] = at + fields[F_LINE_LEN]
        regs[R_EVENTS] += 1


@kernel
def _goes_on(data: Any, first: Any, at: Any, stop: Any, size: Any) -> Any:
    """Whether a node named by the first `size` bytes at `first` may still go on at the line at `at`."""
    if at + size >= stop:
        return False
    return common_bytes(data, first, at, size) == size and data[at + size] <= 58


@kernel
def _line_start(data: Any, at: Any, floor: Any) -> Any:
    while at > floor and data[at - 1] != 10:
        at -= 1
    return at


@kernel
def _end_of_node(data: Any, at: Any, stop: Any, size: Any) -> Any:
    """The first line behind `at` where the node named by its first `size` bytes does not go on; by growing steps."""
    low = at
    step = np.int64(4096)
    high = stop
    while low + step < stop:
        probe = _line_start(data, low + step, low)
        if probe > low:
            if not _goes_on(data, at, probe, stop, size):
                high = probe
                break
            low = probe
        step *= 2
    while low < high:
        middle = _line_start(data, (low + high) >> 1, low)
        if _goes_on(data, at, middle, stop, size):
            low = min(_line_end(data, middle, high) + 1, high)
        else:
            high = middle
    return low


@kernel
def safe_cut(data: Any, start: Any, stop: Any, want: Any, whole_tlds: Any) -> Any:
    """The first start of a line at or after `want` where no node that may roll up goes on across it; `stop` if none."""
    at = min(want, stop)
    while start < at < stop and data[at - 1] != 10:
        at += 1
    while start < at < stop:
        previous = _line_start(data, at - 1, start)
        shared = common_bytes(data, previous, at, min(at - previous, stop - at))
        first = np.int64(0)
        if not whole_tlds:
            # Names shorter than a second host segment are of top-level domains, which do not roll up.
            while first < shared and data[at + first] != 44 and data[at + first] != 41 and data[at + first] != 58:
                first += 1
            first = first + 1 if first == shared or data[at + first] == 44 else np.int64(0)
        size = first + 1
        while size <= shared and at + size < stop and data[at + size] > 58:
            size += 1
        if size > shared or at + size >= stop:
            return at
        at = _end_of_node(data, at, stop, size)
    return at


@kernel
def lines_rise(data: Any, start: Any, at: Any, stop: Any) -> Any:
    """Whether the key of the line before `at` is below the key of the line at `at`."""
    before = at - 1
    while before > start and data[before - 1] != 10:
        before -= 1
    i = 0
    while at + i < stop and data[before + i] == data[at + i] and data[at + i] > 32:
        i += 1
    return at + i < stop and data[at + i] > 32 and (data[before + i] <= 32 or data[before + i] < data[at + i])
