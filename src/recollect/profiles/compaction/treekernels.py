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
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recollect.profiles.words import kernel, low_zeros, word_at

# Kinds of nodes.
ROOT, HOST, LONE, PORT, PATH = 0, 1, 2, 3, 4

# Bounds of a count, packed two bits each for URI-Ms (low) and URI-Rs (next two).
EXACT, AT_LEAST, AT_MOST, ABOUT = 0, 1, 2, 3

# What a line is.
RECORD, HEADER, BLANK, ODD = 0, 1, 2, 3

# Columns of `fields` filled by `parse_line`.
F_KEY_LEN, F_LINE_LEN, F_M, F_R, F_BOUNDS, F_TAIL, F_NEXT = 0, 1, 2, 3, 4, 5, 6
N_FIELDS = 7

LARGEST = np.iinfo(np.int64).max


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
        digit = np.int64(data[at]) - 48
        value = value if digits else np.int64(0)
        if value > (LARGEST - digit) // 10:
            return np.int64(-2), bound, at
        value = value * 10 + digit
        digits += 1
        at += 1
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
            fields[F_NEXT] = line_end(data, start, stop) + 1
            return BLANK
        if first == 33 or first == 64:
            fields[F_NEXT] = line_end(data, start, stop) + 1
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
            at = line_end(data, at, stop)
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
def line_end(data: Any, at: Any, stop: Any) -> Any:
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


@kernel
def closes(bound: Any) -> Any:
    """Whether a count with this bound may not be larger, so that 0 means none."""
    return bound in (EXACT, AT_MOST)


@kernel
def add_counts(a: Any, a_bound: Any, b: Any, b_bound: Any) -> Any:
    """The disjoint sum of two counts, as `formats.frequency.Count.__add__`."""
    if b == 0 and closes(b_bound):
        return a, a_bound
    if a == 0 and closes(a_bound):
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
def stated_total(own: Any, own_bound: Any, below: Any, below_bound: Any) -> Any:
    """A wildcard's own count, which includes everything below it, unless what is below proves it too small."""
    if below == 0 and closes(below_bound):
        return own, own_bound
    if own >= 0 and (below < 0 or below <= own or below_bound >= AT_MOST):
        return own, own_bound
    if below < 0:
        return own, own_bound
    if below_bound >= AT_MOST or own_bound == ABOUT:
        return below, np.int64(ABOUT)
    return below, np.int64(AT_LEAST)
