"""Byte loops of lookup: all keys that speak for a URI are searched in the text of a map in one call.

Hides: binary search by byte position in sorted lines of any length, and the order in which candidates are tried.

A key K is searched first; where it would stand is also where everything near it stands. All lines that begin with a given prefix
of K are neighbours of that place, so a wildcard over a prefix that neither neighbour shares cannot exist and is not
searched; the others are searched outwards from there in growing steps, near things being near.

Text: lines sorted by the bytes of their first token, which ends at the first byte up to 0x20. Positions are byte offsets.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NONE, EXACT, WILD = 0, 1, 2
SLASH = 1


@njit(cache=True, nogil=True)
def _order(text, at, stop, key, size, end):
    """The token at `at` against key[:size] and an ending: (sign, bytes in common).

    Endings: 0 nothing, SLASH a slash, a separator (`/` or `,`) that separator and `*`.
    """
    i = 0
    while i < size:
        byte = text[at + i] if at + i < stop else 10
        if byte != key[i]:
            return (-1 if byte <= 32 or byte < key[i] else 1), i
        i += 1
    if end:
        byte = text[at + i] if at + i < stop else 10
        wanted = 47 if end == SLASH else end
        if byte != wanted:
            return (-1 if byte < wanted else 1), i
        i += 1
        if end != SLASH:
            byte = text[at + i] if at + i < stop else 10
            if byte != 42:
                return (-1 if byte < 42 else 1), i
            i += 1
    byte = text[at + i] if at + i < stop else 10
    return (0 if byte <= 32 else 1), i


@njit(cache=True, nogil=True)
def _line_start(text, at, floor):
    while at > floor and text[at - 1] != 10:
        at -= 1
    return at


@njit(cache=True, nogil=True)
def _line_after(text, at, stop):
    while at < stop and text[at] != 10:
        at += 1
    return min(at + 1, stop)


@njit(cache=True, nogil=True)
def _lower_bound(text, low, high, stop, key, size, end):
    """The first line in [low, high) that is not below the key; `high` if all are. Both ends are starts of lines."""
    while low < high:
        middle = _line_start(text, (low + high) >> 1, low)
        sign, _ = _order(text, middle, stop, key, size, end)
        if sign < 0:
            low = _line_after(text, middle, high)
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _seek(text, start, stop, near, key, size, end):
    """The first line not below the key, searched outwards from the line at `near`."""
    if near < 0:
        return _lower_bound(text, start, stop, stop, key, size, end)
    step = 256
    if near < stop:
        sign, _ = _order(text, near, stop, key, size, end)
        if sign == 0:
            return near
    else:
        sign = 1
    if sign < 0:
        low = near
        while True:
            high = low + step
            if high >= stop:
                high = stop
                break
            high = _line_start(text, high, low)
            if high > low:
                sign, _ = _order(text, high, stop, key, size, end)
                if sign >= 0:
                    break
                low = high
            step *= 4
        return _lower_bound(text, low, high, stop, key, size, end)
    high = near
    while True:
        low = high - step
        if low <= start:
            low = start
            break
        low = _line_start(text, low, start)
        sign, _ = _order(text, low, stop, key, size, end)
        if sign < 0:
            break
        high = low
        step *= 4
    return _lower_bound(text, low, high, stop, key, size, end)


@njit(cache=True, nogil=True)
def _is_lone(key, paren):
    """As `treekernels.is_lone`, on a key of its own: whether the host is an IP address, one segment."""
    if key[0] == 91:
        return True
    commas = 0
    for i in range(paren):
        byte = key[i]
        if byte == 58:
            break
        if byte == 44:
            commas += 1
        elif not 48 <= byte <= 57:
            return False
    return commas == 3


@njit(cache=True, nogil=True)
def search(text, start, stop, near, everything, key):
    """Look up a key: (position of the deciding line or -1, bytes of K it speaks for, NONE/EXACT/WILD, place of K).

    `near` is a start of a line to search outwards from (the place of the last key, in a sorted batch), or -1;
    `everything` is the position of the line of `*`, or -1. An exact key is also tried with a slash at its end, and the root
    of a host without it, as other makers write them.
    """
    size = len(key)
    place = _seek(text, start, stop, near, key, size, 0)
    shared = 0
    if place < stop:
        sign, shared = _order(text, place, stop, key, size, 0)
        if sign == 0:
            return place, size, EXACT, place
    if place > start:
        _, common = _order(text, _line_start(text, place - 1, start), stop, key, size, 0)
        shared = max(shared, common)
    paren = 0
    while paren < size and key[paren] != 41:
        paren += 1
    name = size
    if size == paren + 2 and key[paren + 1] == 47:
        name = paren + 1
    if name <= shared:
        end = SLASH if name == size else 0
        at = _seek(text, start, stop, place, key, name, end)
        if at < stop and _order(text, at, stop, key, name, end)[0] == 0:
            return at, size, EXACT, place
    while name > paren:
        if name <= shared:
            at = _seek(text, start, stop, place, key, name, 47)
            if at < stop and _order(text, at, stop, key, name, 47)[0] == 0:
                return at, name, WILD, place
        name -= 1
        while name > paren and key[name] != 47:
            name -= 1
    lone = paren > 0 and _is_lone(key, paren)
    while name > 0:
        if name <= shared and (name == paren or key[name] == 58 or (key[name] == 44 and not lone)):
            at = _seek(text, start, stop, place, key, name, 44)
            if at < stop and _order(text, at, stop, key, name, 44)[0] == 0:
                return at, name, WILD, place
        name -= 1
    if everything >= 0:
        return everything, 0, WILD, place
    return -1, 0, NONE, place


@njit(cache=True, nogil=True)
def search_many(text, start, stop, everything, keys, offsets, sizes, order, positions, names, kinds):
    """Look up many keys of the buffer `keys`, in the order given by `order` (which sorts them)."""
    near = np.int64(-1)
    for i in range(order.shape[0]):
        row = order[i]
        key = keys[offsets[row] : offsets[row] + sizes[row]]
        positions[row], names[row], kinds[row], near = search(text, start, stop, near, everything, key)


@njit(cache=True, nogil=True)
def _above(keys, offsets, sizes, a, b):
    """Whether key a sorts after key b."""
    first = offsets[a]
    second = offsets[b]
    for i in range(min(sizes[a], sizes[b])):
        x = keys[first + i]
        y = keys[second + i]
        if x != y:
            return x > y
    return sizes[a] > sizes[b]


@njit(cache=True, nogil=True)
def sort_keys(keys, offsets, sizes, order, spare):
    """Sort the row numbers in `order` by the bytes of their keys: bottom-up merge sort, quick on what is sorted already."""
    count = order.shape[0]
    width = 1
    while width < count:
        low = 0
        while low < count:
            middle = min(low + width, count)
            high = min(low + 2 * width, count)
            if middle < high and _above(keys, offsets, sizes, order[middle - 1], order[middle]):
                left, right = low, middle
                for out in range(low, high):
                    if left < middle and (
                        right >= high or not _above(keys, offsets, sizes, order[left], order[right])
                    ):
                        spare[out] = order[left]
                        left += 1
                    else:
                        spare[out] = order[right]
                        right += 1
                order[low:high] = spare[low:high]
            low = high
        width *= 2
