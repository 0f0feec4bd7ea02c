"""The byte loops of statistics: sorted records to counts per SURT and year, sorted keys to the shape of the tree.

Hides Numba. `tabulate` reads merged records (see `mergekernels`) whose labels are months, six digits or nothing. `walk`
follows the tree of keys in the order of bytes, in which subtrees are not contiguous (`/a`, `/a-b`, `/a/1`): a node
stays open while its name is the beginning of the current key and the byte after it is no greater than its last
separator, so the open nodes are beginnings of each other, a stack; each node is opened once and closed once.

Levels: host segments count from 1 (a port is a segment below its host, an IP address is one segment), path segments
from 1, the root of a host's paths is level 0 of the paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recollect.profiles.indexes.kernels import _memcmp, _memcpy, part

HEADER = 24
FIRST_YEAR = 1900
YEARS = 300
HOST, PATH = 0, 1
# Deepest host that is told apart when counting keys of policies; policies know 1 to 5 and "any".
POLICY_HOSTS = 8
POLICY_PATHS = 6
STACK = 1 << 17
CLOSED = 1 << 18
# Fields of the state of `walk`.
DEPTH, FILLED, LAST, ADDRESSES, TLD_LENGTH = range(5)


@part
def _month_of(buf: Any, at: Any, length: Any) -> Any:
    """Months since `FIRST_YEAR`, or -1 without a (usable) time."""
    if length != 6:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(at, at + 6):
        value = value * 10 + np.int64(buf[i]) - 48
    month: Any = min(max(value % 100, 1), 12)
    year = value // 100 - FIRST_YEAR
    return year * 12 + month - 1 if 0 <= year < YEARS else np.int64(-1)


@part
def _same_start(base: Any, a: Any, b: Any, mine: Any, yours: Any, parts: Any) -> Any:
    """Whether two records agree in their first `parts` parts: 1 for the key, 2 for the SURT."""
    _memcpy(np.uintp(mine.ctypes.data), base + np.uintp(a), np.uintp(16))
    _memcpy(np.uintp(yours.ctypes.data), base + np.uintp(b), np.uintp(16))
    length = np.int64(0)
    for which in range(parts):
        if mine[which] != yours[which]:
            return False
        length += mine[which]
    return _memcmp(base + np.uintp(a + HEADER), base + np.uintp(b + HEADER), np.uintp(length)) == 0


@njit("int64(uint8[::1], int64)", cache=True, nogil=True)
def last_surt(buf: Any, begin: Any) -> Any:
    """Where the records of the last SURT in buf[begin:] begin."""
    mine, yours = np.zeros(4, np.int32), np.zeros(4, np.int32)
    base = np.uintp(buf.ctypes.data)
    at, start = begin, begin
    while at < buf.size:
        if not _same_start(base, at, start, mine, yours, 2):
            start = at
        at += HEADER + np.int64(mine[0]) + np.int64(mine[1]) + np.int64(mine[2])
    return start


@njit(
    "Tuple((int64, int64))(uint8[::1], int64, int64, int64[::1], int64[::1], boolean[::1], int64[:, ::1])",
    cache=True,
    nogil=True,
)
def tabulate(buf: Any, begin: Any, end: Any, surt_at: Any, surt_m: Any, new_key: Any, months: Any) -> Any:
    """SURTs of the records in buf[begin:end]: where each begins, its captures, whether it begins a new key.

    `months` gets captures, URI-Rs seen first, and (in the month of January) URI-Rs seen in the year. If `begin` is not
    0, the record before is at 0. Returns the number of SURTs and where the last record begins.
    """
    mine, yours, amount = np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(1, np.int64)
    base = np.uintp(buf.ctypes.data)
    at, count = begin, np.int64(0)
    before = np.int64(0) if begin > 0 else np.int64(-1)
    year_before = np.int64(-1)
    while at < end:
        same_key = before >= 0 and _same_start(base, at, before, mine, yours, 1)
        same_surt = count > 0 and same_key and _same_start(base, at, before, mine, yours, 2)
        _memcpy(np.uintp(mine.ctypes.data), base + np.uintp(at), np.uintp(16))
        _memcpy(np.uintp(amount.ctypes.data), base + np.uintp(at + 16), np.uintp(8))
        if not same_surt:
            surt_at[count], surt_m[count], new_key[count] = at, 0, not same_key
            count += 1
        surt_m[count - 1] += amount[0]
        month = _month_of(buf, at + HEADER + mine[0] + mine[1], mine[2])
        if month >= 0:
            months[0, month] += amount[0]
            if not same_surt or year_before < 0:
                months[1, month] += 1
            if not same_surt or month // 12 != year_before:
                months[2, month // 12 * 12] += 1
        year_before = month // 12 if month >= 0 else np.int64(-1)
        before = at
        at += HEADER + np.int64(mine[0]) + np.int64(mine[1]) + np.int64(mine[2])
    return count, before


@part
def _close(stack: Any, state: Any, closed: Any, domains: Any, overlap: Any) -> None:
    """Take the top node off the stack and note what it was."""
    top = state[DEPTH] - 1
    kind, level, keys, children = stack[top, 1], stack[top, 2], stack[top, 3], stack[top, 4]
    if kind == PATH and level == 0 and top > 0:
        below = top - 1
        stack[below, 5] |= stack[top, 5]
        domains[min(stack[below, 2], domains.size - 1)] += 1
    if kind == HOST and stack[top, 6] == 1:
        for n in range(POLICY_PATHS):
            if stack[top, 5] >> n & 1:
                overlap[min(level, POLICY_HOSTS), n] += 1
    row = state[FILLED]
    closed[row, 0], closed[row, 1], closed[row, 2], closed[row, 3] = kind, level, keys, children
    state[FILLED] += 1
    state[DEPTH] -= 1


@part
def _enter(stack: Any, state: Any, at: Any, length: Any, kind: Any, level: Any, parent: Any) -> Any:
    """The place of the current key's node that ends at `length`: found from `at` upwards in the stack, or pushed."""
    while at < state[DEPTH] and stack[at, 0] < length:
        at += 1
    if at == state[DEPTH]:
        stack[at, 0], stack[at, 1], stack[at, 2] = length, kind, level
        stack[at, 3], stack[at, 4], stack[at, 5], stack[at, 6] = 0, 0, 0, 0
        state[DEPTH] += 1
        if parent >= 0 and stack[parent, 1] == kind:
            stack[parent, 4] += 1
    stack[at, 3] += 1
    return at


@part
def _is_address(key: Any, at: Any, end: Any) -> Any:
    """Whether a host is an IP address: in brackets, or four numbers apart by commas."""
    if key[at] == 91:
        return True
    commas = 0
    for i in range(at, end):
        if key[i] == 44:
            commas += 1
        elif key[i] < 48 or key[i] > 57:
            return False
    return commas == 3


@njit(
    "int64(uint8[::1], int64[::1], int64[::1], int64, uint8[::1], int64[::1], int64[:, ::1], int64[:, ::1],"
    " int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1])",
    cache=True,
    nogil=True,
)
def walk(
    buf: Any, key_at: Any, key_length: Any, begin: Any, last: Any, state: Any, stack: Any, closed: Any,
    host_depths: Any, path_depths: Any, domains: Any, policy_keys: Any, cut: Any, overlap: Any, tlds: Any,
) -> Any:  # fmt: skip
    """Follow keys (sorted, each once) from `begin` on, until `closed` is nearly full; returns how far it came."""
    places = np.zeros(POLICY_PATHS, np.int64)
    for number in range(begin, key_at.size):
        if state[FILLED] + STACK // 2 > closed.shape[0]:
            return number
        start, length = key_at[number], key_length[number]
        key = buf[start : start + length]
        common = np.int64(0)
        limit = min(length, state[LAST])
        while common < limit and key[common] == last[common]:
            common += 1
        while state[DEPTH] > 0:
            name = stack[state[DEPTH] - 1, 0]
            separator = 47 if stack[state[DEPTH] - 1, 1] == PATH else 58
            if name > common or (name < length and key[name] > separator):
                _close(stack, state, closed, domains, overlap)
            else:
                break
        # Host segments.
        host_end = np.int64(0)
        while host_end < length and key[host_end] != 41:
            host_end += 1
        name_end = host_end
        port = host_end
        while port > 0 and 48 <= key[port - 1] <= 57:
            port -= 1
        if port > 1 and port < host_end and key[port - 1] == 58:
            name_end = port - 1
        lone = _is_address(key, 0, name_end)
        at, node, level = np.int64(0), np.int64(-1), np.int64(0)
        position = np.int64(0)
        while position < host_end:
            end = position + 1
            while end < name_end and (lone or key[end] != 44):
                end += 1
            if position >= name_end:
                end = host_end
            if node >= 0 and stack[node, 6] == 0:
                stack[node, 6] = 1
                cut[min(level, POLICY_HOSTS)] += 1
            level += 1
            node = _enter(stack, state, at, end, HOST, level, node)
            at = node + 1
            if level == 1:
                # The length of the top-level domain where it changes, else 0.
                tlds[number] = 0 if state[TLD_LENGTH] == end and common >= end else end
                state[TLD_LENGTH] = end
            position = end + 1 if end < name_end else end
        host_level = min(level, POLICY_HOSTS)
        host_depths[min(level, host_depths.size - 1)] += 1
        # Path segments.
        node = _enter(stack, state, at, min(host_end + 1, length), PATH, 0, node)
        at = node + 1
        places[0] = node
        if lone and stack[node, 3] == 1:
            state[ADDRESSES] += 1
        depth = np.int64(0)
        position = host_end + 2
        while position < length:
            end = position
            while end < length and key[end] != 47:
                end += 1
            depth += 1
            node = _enter(stack, state, at, end, PATH, depth, node)
            stack[node, 6] = 2 if end == position else 0
            at = node + 1
            if depth < POLICY_PATHS:
                places[depth] = node
            position = end + 1
        path_depths[min(depth, path_depths.size - 1)] += 1
        for n in range(POLICY_PATHS):
            t: Any = min(n, depth)
            while t > 0 and stack[places[t], 6] == 2:
                t -= 1
            if not stack[places[t], 5] >> n & 1:
                stack[places[t], 5] |= 1 << n
                policy_keys[host_level, n] += 1
        for i in range(common, length):
            last[i] = key[i]
        state[LAST] = length
    return np.int64(key_at.size)


@njit("void(int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1])", cache=True, nogil=True)
def close_all(state: Any, stack: Any, closed: Any, domains: Any, overlap: Any) -> None:
    """Close what is still open, when all keys have been seen."""
    while state[DEPTH] > 0:
        _close(stack, state, closed, domains, overlap)
