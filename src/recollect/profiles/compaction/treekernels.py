"""Byte loops over the tree of keys, which is walked in the order of bytes.

Hides: how the tree is followed although its subtrees are not contiguous on disk.

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

from recollect.profiles.linekernels import (
    ABOUT,
    AT_LEAST,
    AT_MOST,
    F_BOUNDS,
    F_KEY_LEN,
    F_LINE_LEN,
    F_M,
    F_NEXT,
    F_R,
    F_TAIL,
    N_FIELDS,
    ODD,
    RECORD,
    closes,
    common_bytes,
    compare,
    parse_line,
)
from recollect.profiles.words import kernel

# Kinds of nodes.
ROOT, HOST, LONE, PORT, PATH = 0, 1, 2, 3, 4


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
