"""Byte loops of lookup: all keys that speak for a URI are searched in the text of a map in one call.

Hides: binary search by byte position in sorted lines of any length, and the order in which candidates are tried.

A key K is searched first; where it would stand is also where everything near it stands. All lines that begin with a
given prefix of K are neighbours of that place, so a wildcard over a prefix that neither neighbour shares cannot exist
and is not searched; the others are searched outwards from there in growing steps, near things being near.

Text: lines sorted by the bytes of their first token, which ends at the first byte up to 0x20. Positions are byte
offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.profiles.words import copy_bytes, high_zeros, kernel, low_zeros, word_at

NONE, EXACT, WILD = 0, 1, 2
YES, NO, UNSURE = 0, 1, 2
UNKNOWN = np.iinfo(np.int64).min
# Endings of a key. Numbers of NumPy, because Numba compiles a kernel anew for every plain number it is called with.
ZERO, SLASH, BELOW_PATH, BELOW_HOST = np.int64(0), np.int64(1), np.int64(47), np.int64(44)


@kernel
def _same(text: Any, at: Any, stop: Any, key: Any, i: Any, size: Any) -> Any:
    """How many bytes of key[:size] stand at text[at:stop], of which the first i are known to."""
    size = min(size, stop - at)
    last = size - 8
    while i <= last:
        differ = word_at(np.uintp(text.ctypes.data), np.uintp(at + i)) ^ word_at(np.uintp(key.ctypes.data), np.uintp(i))
        if differ:
            return i + np.int64(low_zeros(differ) >> np.uint64(3))
        i += 8
    while i < size and text[at + i] == key[i]:
        i += 1
    return i


@kernel
def _order(text: Any, at: Any, stop: Any, key: Any, size: Any, end: Any, known: Any) -> Any:
    """The token at `at` against key[:size] and an ending: (sign, bytes in common), `known` of them known.

    Endings: 0 nothing, SLASH a slash, a separator (`/` or `,`) that separator and `*`.
    """
    i = known
    if i < size:
        i = _same(text, at, stop, key, i, size)
        if i < size:
            byte = text[at + i] if at + i < stop else 10
            return (-1 if byte <= 32 or byte < key[i] else 1), i
    if end and i == size:
        byte = text[at + i] if at + i < stop else 10
        wanted = 47 if end == SLASH else end
        if byte != wanted:
            return (-1 if byte < wanted else 1), i
        i += 1
    if end > SLASH and i == size + 1:
        byte = text[at + i] if at + i < stop else 10
        if byte != 42:
            return (-1 if byte < 42 else 1), i
        i += 1
    byte = text[at + i] if at + i < stop else 10
    return (0 if byte <= 32 else 1), i


@kernel
def _line_start(text: Any, at: Any, floor: Any) -> Any:
    """The start of the line that holds `at`, or `floor`."""
    base = np.uintp(text.ctypes.data)
    newlines = np.uint64(0x0A0A0A0A0A0A0A0A)
    lows = np.uint64(0x7F7F7F7F7F7F7F7F)
    while at - 8 >= floor:
        word = word_at(base, np.uintp(at - 8)) ^ newlines
        zeros = ~(((word & lows) + lows) | word | lows)
        if zeros:
            return at - np.int64(high_zeros(zeros) >> np.uint64(3))
        at -= 8
    while at > floor and text[at - 1] != 10:
        at -= 1
    return at


@kernel
def _line_after(text: Any, at: Any, stop: Any) -> Any:
    while at < stop and text[at] != 10:
        at += 1
    return min(at + 1, stop)


@kernel
def _lower_bound(
    text: Any, low: Any, high: Any, stop: Any, key: Any, size: Any, end: Any, low_known: Any, high_known: Any
) -> Any:
    """The first line in [low, high) that is not below the key; `high` if all are. Both ends are starts of lines.

    `low_known` bytes of the key are shared by the line before `low`, `high_known` by the line at `high`: what both
    share, everything between them shares.
    """
    while low < high:
        middle = _line_start(text, (low + high) >> 1, low)
        sign, shared = _order(text, middle, stop, key, size, end, min(low_known, high_known))
        if sign < 0:
            low = _line_after(text, middle + shared, high)
            low_known = shared
        else:
            high = middle
            high_known = shared
    return low


@kernel
def _seek(text: Any, start: Any, stop: Any, near: Any, key: Any, size: Any, end: Any) -> Any:
    """The first line not below the key, searched outwards from the line at `near`, by growing steps."""
    if near < 0:
        return _lower_bound(text, start, stop, stop, key, size, end, ZERO, ZERO)
    step = 128
    sign = 1
    shared = ZERO
    if near < stop:
        sign, shared = _order(text, near, stop, key, size, end, ZERO)
        if sign == 0:
            return near
    if sign < 0:
        low, low_known = near, shared
        while low + step < stop:
            high = _line_start(text, low + step, low)
            if high > low:
                sign, shared = _order(text, high, stop, key, size, end, ZERO)
                if sign >= 0:
                    return _lower_bound(text, low, high, stop, key, size, end, low_known, shared)
                low, low_known = high, shared
            step *= 4
        return _lower_bound(text, low, stop, stop, key, size, end, low_known, ZERO)
    high, high_known = near, shared
    while high - step > start:
        low = _line_start(text, high - step, start)
        sign, shared = _order(text, low, stop, key, size, end, ZERO)
        if sign < 0:
            return _lower_bound(text, low, high, stop, key, size, end, shared, high_known)
        high, high_known = low, shared
        step *= 4
    return _lower_bound(text, start, high, stop, key, size, end, ZERO, high_known)


@kernel
def _is_lone(key: Any, paren: Any) -> Any:
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


@kernel
def _wildcard(text: Any, start: Any, stop: Any, near: Any, key: Any, name: Any, separator: Any, memory: Any) -> Any:
    """(whether the wildcard of key[:name] exists, its place), by way of the memory if there is one."""
    if name < len(memory) and memory[name] != UNKNOWN:
        at = memory[name]
        return at >= 0, at if at >= 0 else -1 - at
    at = _seek(text, start, stop, near, key, name, separator)
    found = at < stop and _order(text, at, stop, key, name, separator, ZERO)[0] == 0
    if name < len(memory):
        memory[name] = at if found else -1 - at
    return found, at


@kernel
def search(text: Any, start: Any, stop: Any, near: Any, everything: Any, key: Any, memory: Any) -> Any:
    """Look up a key: (position of the deciding line or -1, bytes of K it speaks for, NONE/EXACT/WILD, place of K).

    `near` is a start of a line to search outwards from (the place of the last key, in a sorted batch), or -1;
    `everything` is the position of the line of `*`, or -1; `memory` holds, by the length of a name, where the wildcards
    over the beginnings of this key are (or -1 - p if there is none and p is its place), or UNKNOWN; it may be empty.
    An exact key is also tried with a slash at its end, and the root of a host without it, as other makers write them.
    """
    size: Any = np.int64(len(key))
    place = _seek(text, start, stop, near, key, size, ZERO)
    shared = ZERO
    if place < stop:
        sign, shared = _order(text, place, stop, key, size, ZERO, ZERO)
        if sign == 0:
            return place, size, EXACT, place
    if place > start:
        _, common = _order(text, _line_start(text, place - 1, start), stop, key, size, ZERO, ZERO)
        shared = max(shared, common)
    paren = 0
    while paren < size and key[paren] != 41:
        paren += 1
    name = size
    if size == paren + 2 and key[paren + 1] == 47:
        name = paren + 1
    if name <= shared:
        end = SLASH if name == size else ZERO
        at = _seek(text, start, stop, place, key, name, end)
        if at < stop and _order(text, at, stop, key, name, end, ZERO)[0] == 0:
            return at, size, EXACT, place
    # Each wider wildcard stands before the narrower one, near the start of a wider range: go on from there.
    at = place
    while name > paren:
        if name <= shared:
            found, at = _wildcard(text, start, stop, at, key, name, BELOW_PATH, memory)
            if found:
                return at, name, WILD, place
        name -= 1
        while name > paren and key[name] != 47:
            name -= 1
    lone = paren > 0 and _is_lone(key, paren)
    at = place
    while name > 0:
        if name <= shared and (name == paren or key[name] == 58 or (key[name] == 44 and not lone)):
            found, at = _wildcard(text, start, stop, at, key, name, BELOW_HOST, memory)
            if found:
                return at, name, WILD, place
        name -= 1
    if everything >= 0:
        return everything, 0, WILD, place
    return -1, 0, NONE, place


@kernel
def place(text: Any, start: Any, stop: Any, key: Any) -> Any:
    """Where the first line is whose token is not below the key."""
    return _seek(text, start, stop, np.int64(-1), key, np.int64(len(key)), ZERO)


@kernel
def _rises(text: Any, low: Any, high: Any, stop: Any) -> Any:
    """Whether the token of the line at `low` is not above that of the line at `high`."""
    i = 0
    while high + i < stop and text[low + i] == text[high + i] and text[low + i] > 32:
        i += 1
    return text[low + i] <= 32 or (high + i < stop and text[low + i] < text[high + i])


@kernel
def looks_sorted(text: Any, start: Any, stop: Any, windows: Any, lines: Any) -> Any:
    """Whether tokens rise in `windows` places of so many lines each, and from place to place; all if windows is 0."""
    step = max((stop - start) // windows, 1) if windows else stop - start
    last = np.int64(-1)
    at = start
    while at < stop:
        for _ in range(lines if windows else stop - start):
            if at >= stop:
                return True
            if last >= 0 and not _rises(text, last, at, stop):
                return False
            last = at
            at = _line_after(text, at, stop)
        if at + step >= stop:
            return True
        at = _line_start(text, at + step, at)
    return True


@kernel
def search_many(
    text: Any,
    start: Any,
    stop: Any,
    everything: Any,
    keys: Any,
    offsets: Any,
    sizes: Any,
    order: Any,
    memory: Any,
    positions: Any,
    names: Any,
    kinds: Any,
) -> Any:
    """Look up many keys of the buffer `keys`, in the order given by `order`, which sorts them.

    `memory` has room for the longest key; what one key found out is used for the next as far as they begin alike.
    """
    near = np.int64(-1)
    known = np.int64(0)
    for i in range(order.shape[0]):
        row = order[i]
        key = keys[offsets[row] : offsets[row] + sizes[row]]
        common = np.int64(0)
        if i:
            last = order[i - 1]
            common = _same(keys, offsets[last], offsets[last] + sizes[last], key, ZERO, sizes[row])
        for name in range(common + 1, known + 1):
            memory[name] = UNKNOWN
        known = sizes[row]
        positions[row], names[row], kinds[row], near = search(text, start, stop, near, everything, key, memory)


@kernel
def _above(keys: Any, offsets: Any, sizes: Any, a: Any, b: Any) -> Any:
    """Whether key a sorts after key b."""
    base = np.uintp(keys.ctypes.data)
    first, second = offsets[a], offsets[b]
    size = min(sizes[a], sizes[b])
    i = np.int64(0)
    while i + 8 <= size:
        differ = word_at(base, np.uintp(first + i)) ^ word_at(base, np.uintp(second + i))
        if differ:
            i += np.int64(low_zeros(differ) >> np.uint64(3))
            return keys[first + i] > keys[second + i]
        i += 8
    while i < size:
        if keys[first + i] != keys[second + i]:
            return keys[first + i] > keys[second + i]
        i += 1
    return sizes[a] > sizes[b]


@kernel
def sort_keys(keys: Any, offsets: Any, sizes: Any, order: Any, spare: Any) -> Any:
    """Sort the row numbers in `order` by the bytes of their keys: bottom-up merge sort, quick on what is sorted
    already."""
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
                    if left < middle and (right >= high or not _above(keys, offsets, sizes, order[left], order[right])):
                        spare[out] = order[left]
                        left += 1
                    else:
                        spare[out] = order[right]
                        right += 1
                for out in range(low, high):
                    order[out] = spare[out]
            low = high
        width *= 2


@kernel
def split_lines(text: Any, offsets: Any, sizes: Any) -> Any:
    """Where the lines of a text lie, without white space around them and without empty ones; returns their number."""
    count = 0
    at = np.int64(0)
    stop = len(text)
    while at < stop:
        end = at
        while end < stop and text[end] != 10:
            end += 1
        after = end + 1
        while end > at and text[end - 1] <= 32:
            end -= 1
        while at < end and text[at] <= 32:
            at += 1
        if end > at:
            offsets[count] = at
            sizes[count] = end - at
            count += 1
        at = after
    return count


@kernel
def _plain_surt(text: Any, at: Any, end: Any) -> Any:
    """Length of the key of a SURT that is plain as in `lookup`, with a query or a slash behind it or not; else -1."""
    i = at
    while i < end and (97 <= text[i] <= 122 or text[i] in (44, 45, 95) or (48 <= text[i] <= 57 and i > at)):
        i += 1
    if i == at or i + 1 >= end or text[i] != 41 or text[i + 1] != 47:
        return -1
    if not 97 <= text[at] <= 122 or text[i - 1] == 44:
        return -1
    i += 2
    root = i
    while i < end and text[i] != 63:
        byte = text[i]
        if byte == 47:
            if text[i - 1] == 47:
                return -1
        elif not (97 <= byte <= 122 or 48 <= byte <= 57 or byte in (45, 46, 95, 126)):
            return -1
        i += 1
    if i > root and text[i - 1] == 47:
        i -= 1
    return i - at


@kernel
def plain_surts(text: Any, offsets: Any, sizes: Any, keys: Any) -> Any:
    """For each line the length of its key, which is its beginning, or -1 for lines that `lookup.keys_of` must see."""
    for row in range(len(keys)):
        keys[row] = _plain_surt(text, offsets[row], offsets[row] + sizes[row])


@kernel
def _verdict(text: Any, at: Any, stop: Any) -> Any:
    """(answer, start and end of the key, start and end of the frequency) of a record's line."""
    key_end = at
    while key_end < stop and text[key_end] > 32:
        key_end += 1
    start = key_end
    while start < stop and text[start] in (32, 9):
        start += 1
    end = start
    while end < stop and text[end] > 32:
        end += 1
    i = start
    while i < end and text[i] == 48:
        i += 1
    answer = YES
    if i > start and (i == end or text[i] in (45, 47)):
        answer = NO
    elif end == start or (end == start + 1 and text[start] in (45, 47)):
        answer = UNSURE
    return answer, key_end, start, end


@kernel
def answers_at(text: Any, stop: Any, positions: Any, answers: Any) -> Any:
    """The answers (YES, NO, UNSURE) of the lines at some positions; those of negative ones are left as they are."""
    for row in range(len(positions)):
        if positions[row] >= 0:
            answers[row] = _verdict(text, positions[row], stop)[0]


@kernel
def _put(out: Any, to: Any, text: Any, start: Any, end: Any) -> Any:
    copy_bytes(np.uintp(out.ctypes.data + to), np.uintp(text.ctypes.data + start), np.uintp(end - start))
    return to + end - start


@kernel
def write_answers(
    text: Any,
    stop: Any,
    positions: Any,
    absent: Any,
    words: Any,
    lines: Any,
    offsets: Any,
    sizes: Any,
    out: Any,
    tally: Any,
) -> Any:
    """Write `line TAB answer TAB key TAB frequency` for each line; returns the bytes written.

    `positions` are those of deciding lines, -1 for none (then the answer is `absent`), -2 for a line that is no URI.
    `words` holds the answers, eight bytes each, padded with zeros; `tally` counts them.
    """
    to = np.int64(0)
    for row in range(len(positions)):
        at = positions[row]
        answer, key_end, start, end = absent, at, at, at
        if at >= 0:
            answer, key_end, start, end = _verdict(text, at, stop)
        elif at == -2:
            answer = UNSURE
        to = _put(out, to, lines, offsets[row], offsets[row] + sizes[row])
        out[to] = 9
        to += 1
        for i in range(8 * answer, 8 * answer + 8):
            if words[i]:
                out[to] = words[i]
                to += 1
        out[to] = 9
        to += 1
        if at >= 0:
            to = _put(out, to, text, at, key_end)
            out[to] = 9
            to = _put(out, to + 1, text, start, end)
        else:
            out[to] = 45
            out[to + 1] = 9
            out[to + 2] = 45
            to += 3
        out[to] = 10
        to += 1
        tally[answer] += 1
    return to
