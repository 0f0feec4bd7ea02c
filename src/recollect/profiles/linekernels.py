"""Byte loops over the lines of a map: a line taken apart, two keys compared, counts read, added and written.

Hides: the layout of a line, `key M/R {block}` (see docs/ukvs.md), read eight bytes at a time. A line of another layout
is ODD, for `formats.ukvs` to judge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.profiles.words import kernel, low_zeros, word_at

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
def put_count(text: Any, at: Any, value: Any, bound: Any) -> Any:
    """Write a count, or nothing for one that is not stated; returns where it ends."""
    if value < 0:
        return at
    digits = 1
    rest = value // 10
    while rest:
        digits += 1
        rest //= 10
    for i in range(digits - 1, -1, -1):
        text[at + i] = 48 + value % 10
        value //= 10
    at += digits
    if bound:
        text[at] = 43 if bound == AT_LEAST else (45 if bound == AT_MOST else 126)
        at += 1
    return at
