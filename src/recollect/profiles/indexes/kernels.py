"""The byte loops of profiling, compiled: lines of an index to columns, columns to sorted lines of a map.

Hides Numba. Everything here is a fast path with a way out: whatever is not plainly ordinary (an escape in the JSON, a
key with upper case, a line with too few fields) is marked `ODD` and left to the careful parser in `formats.cdx`, so the
results are those of the careful parser. Nothing here decides that a line is bad.

`parse` fills, for each line: its start, the number of its run (neighbouring lines with one SURT), the 14 digits of its
time, its status (0 for none), the number of its media type (-1 for none) and a state. For each run: where the SURT is,
its length, and the length of the URI key within it, which is a prefix of the SURT. Media types are numbered as they are
first seen in the chunk; a table of hashes finds them again.

Keys made here need no change to be in normal form: lower case ASCII, `)/` after the host, no `*`, no `#`. A run whose
key is not so has a key length of -1, and `uris.uri_key` makes its key.

`block` turns runs into lines of a map. Cutting `?` and trailing slashes leaves keys out of order (`com,x)/a?q` sorts
after `com,x)/a/b`), so keys below the largest one so far are set aside, sorted, and merged in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, types

from recollect.profiles.indexes.kernelfields import (
    CDXJ,
    CONSUMED,
    DELIMITER,
    FIELDS,
    GOOD,
    KEY,
    KIND,
    LAST_MEDIA,
    LEARNT,
    LINES,
    MAX_MEDIA,
    MEDIA,
    MEDIA_SLOTS,
    MEDIA_TYPES,
    ODD,
    RUNS,
    STATUS,
    SURT_LIST,
    TIME,
    URL,
)
from recollect.profiles.words import low_zeros, word_at

_Function = TypeVar("_Function", bound=Callable[..., Any])


def part(function: _Function) -> _Function:
    """Compile a function into those that call it. It borrows its arrays and makes none (see `words`)."""
    options: dict[str, Any] = {"_nrt": False}
    return cast(_Function, njit(**options)(function))


# How `native` compiles the functions that others call; all else here is compiled into them.
SIGNATURES = {
    "parse": (
        "void(uint8[::1], int64[::1], uint8[::1], int64[::1], int32[::1], int32[::1], int64[::1], int16[::1],"
        " int16[::1], uint8[::1], int32[::1], int32[::1], int32[::1], int16[::1], int32[::1], int32[::1],"
        " int64[::1], int64[::1], int64[::1], int64[::1])"
    ),
    "block": (
        "void(uint8[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], uint8[::1],"
        " int32[:, ::1], int64[:, ::1], int64[::1])"
    ),
    "ends_in": ("void(uint8[::1], int32[::1], int32[::1], uint8[::1], int64[::1], uint8[::1])"),
}

_memchr: Any = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))
_memcmp: Any = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


@part
def _find(base: Any, byte: Any, begin: Any, end: Any) -> Any:
    """Where `byte` is next in base[begin:end], or `end`."""
    at = _memchr(np.uintp(base + begin), np.int32(byte), np.uintp(end - begin))
    return end if at == 0 else np.int64(at - np.uintp(base))


@part
def _same(base: Any, a: Any, b: Any, length: Any) -> Any:
    return _memcmp(np.uintp(base + a), np.uintp(base + b), np.uintp(length)) == 0


@part
def _compare(base: Any, a: Any, a_length: Any, b: Any, b_length: Any) -> Any:
    """Order of two slices as bytes."""
    order = _memcmp(np.uintp(base + a), np.uintp(base + b), np.uintp(min(a_length, b_length)))
    return np.int64(order) if order != 0 else a_length - b_length


@part
def _common(buf: Any, base: Any, a: Any, b: Any, limit: Any) -> Any:
    """How many bytes the texts at a and b share, up to `limit`."""
    count = np.int64(0)
    while count + 8 <= limit:
        differ = word_at(np.uintp(base), np.uintp(a + count)) ^ word_at(np.uintp(base), np.uintp(b + count))
        if differ:
            return count + np.int64(low_zeros(differ) >> np.uint64(3))
        count += 8
    while count < limit and buf[a + count] == buf[b + count]:
        count += 1
    return count


@part
def _scan_host(buf: Any, begin: Any, end: Any, ordinary: Any) -> Any:
    """Where the path of a SURT begins, behind `)/`; -1 if its host is out of the ordinary.

    An ordinary host is of bytes with bit 1 in `ordinary`, then perhaps a port, with no comma before either. A dot in a
    host that begins with a digit may be an address, which is turned around.
    """
    i = begin
    dotted = False
    while i < end and ordinary[buf[i]] & 1:
        dotted |= buf[i] == 46
        i += 1
    if i == begin or i >= end or buf[i - 1] == 44 or (dotted and buf[begin] < 58):
        return np.int64(-1)
    if buf[i] == 58:
        port = i + 1
        i = port
        while i < end and 48 <= buf[i] <= 57:
            i += 1
        if i == port:
            return np.int64(-1)
    return i + 2 if i + 1 < end and buf[i] == 41 and buf[i + 1] == 47 else np.int64(-1)


@part
def _scan_surt(
    buf: Any, base: Any, begin: Any, end: Any, delimiter: Any, ordinary: Any, before: Any, length: Any, marks: Any
) -> Any:
    """(end of the SURT at `begin`, end of its key or -1 if it is out of the ordinary).

    The SURT before, at `before`, is mostly the same for some way. `marks` says how far it was ordinary: where its path
    began and where its path ended, counted from its start (0: not at all), and where its key ended; and then the same
    of this one.
    """
    i = begin
    root, stop = np.int64(0), np.int64(0)
    key_end = np.int64(-1)
    common = _common(buf, base, before, begin, min(length, end - begin)) if marks[0] > 0 else np.int64(0)
    if marks[0] > 0 and common >= marks[0]:
        root = begin + marks[0]
        if common > marks[1]:  # the same path and the beginning of a query
            stop, key_end = begin + marks[1], begin + marks[2]
        i = begin + common
    else:
        path = _scan_host(buf, begin, end, ordinary)
        if path >= 0:
            root = i = path
    if root > 0 and key_end < 0:
        while i < end and ordinary[buf[i]] & 2:
            i += 1
        if i == end or buf[i] == delimiter or buf[i] == 63:
            stop = key_end = i
            while key_end > root and buf[key_end - 1] == 47:
                key_end -= 1
    while i < end and buf[i] > 32:
        i += 1
    if i < end and buf[i] != delimiter:  # white space that sets nothing apart, or so it seems
        key_end = np.int64(-1)
        while i < end and buf[i] != delimiter:
            i += 1
    marks[0] = root - begin if key_end >= 0 else 0
    marks[1], marks[2] = stop - begin, key_end - begin
    return i, key_end


@part
def _eight_digits(word: Any) -> Any:
    """The number that eight ASCII digits spell, the first lowest in the word; -1 if they are no digits."""
    high, six = np.uint64(0xF0F0F0F0F0F0F0F0), np.uint64(0x0606060606060606)
    if (word & high) | (((word + six) & high) >> np.uint64(4)) != np.uint64(0x3333333333333333):
        return np.int64(-1)
    # Neighbours are joined in pairs, then in fours, then in eights.
    word = ((word & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    return np.int64(((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32))


@part
def _scan_time(base: Any, begin: Any, end: Any) -> Any:
    """The number of the 14 digits at `begin`, or -1; they are read as eight and eight that share two."""
    if begin + 14 > end:
        return np.int64(-1)
    first = _eight_digits(word_at(np.uintp(base), np.uintp(begin)))
    last = _eight_digits(word_at(np.uintp(base), np.uintp(begin + 6)))
    if first < 10000 or last < 0:
        return np.int64(-1)
    # A moment that no calendar has is put right by the careful parser.
    month, day, clock = first // 100 % 100, first % 100, last % 1000000
    if month < 1 or month > 12 or day < 1 or day > 31 or clock >= 240000 or clock // 100 % 100 > 59 or clock % 100 > 59:
        return np.int64(-1)
    if day > 28 and (month == 2 or (day == 31 and (month == 4 or month == 6 or month == 9 or month == 11))):
        return np.int64(-1)
    return first * 1000000 + clock


@part
def _scan_status(buf: Any, begin: Any, end: Any) -> Any:
    """Three digits, 0 for an absent status, -1 for something else."""
    if end - begin == 3 and 49 <= buf[begin] <= 57:
        tens, ones = np.int64(buf[begin + 1]) - 48, np.int64(buf[begin + 2]) - 48
        if 0 <= tens <= 9 and 0 <= ones <= 9:
            return (np.int64(buf[begin]) - 48) * 100 + tens * 10 + ones
    if end == begin or (end - begin == 1 and buf[begin] == 45):
        return np.int64(0)
    return np.int64(-1)


@part
def _is_web(buf: Any, begin: Any, end: Any) -> Any:
    """`http://` or `https://`."""
    if end - begin < 8 or buf[begin] != 104 or buf[begin + 1] != 116 or buf[begin + 2] != 116 or buf[begin + 3] != 112:
        return False
    i = begin + 5 if buf[begin + 4] == 115 else begin + 4
    return buf[i] == 58 and buf[i + 1] == 47 and buf[i + 2] == 47


@part
def _media_number(
    buf: Any, base: Any, begin: Any, end: Any, slots: Any, media_at: Any, media_length: Any, counts: Any
) -> Any:
    """The number of a media type, -1 for `-` or nothing, -2 for one with an escape or when there are too many kinds."""
    length = end - begin
    if length == 0 or (length == 1 and buf[begin] == 45):
        return np.int64(-1)
    # Most lines have the media type of the line before.
    last = counts[LAST_MEDIA]
    if last >= 0 and media_length[last] == length and _same(base, media_at[last], begin, length):
        return last
    for i in range(begin, end):
        if buf[i] == 92:
            return np.int64(-2)
    mixed = np.uint64(length)
    for i in range(max(begin, end - 12), end):
        mixed = mixed * np.uint64(31) + np.uint64(buf[i])
    slot = np.int64((mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(52))
    while slots[slot] >= 0:
        number = slots[slot]
        if media_length[number] == length and _same(base, media_at[number], begin, length):
            counts[LAST_MEDIA] = number
            return np.int64(number)
        slot = (slot + 1) & (MEDIA_SLOTS - 1)
    number = counts[MEDIA_TYPES]
    if number == MAX_MEDIA:
        return np.int64(-2)
    slots[slot] = number
    media_at[number] = begin
    media_length[number] = length
    counts[MEDIA_TYPES] += 1
    counts[LAST_MEDIA] = number
    return np.int64(number)


@part
def _field_of(buf: Any, begin: Any, end: Any, names: Any) -> Any:
    """Which field a JSON name is: URL, MEDIA, STATUS; 0 for one not needed; -1 for one the careful parser must read."""
    length = end - begin
    at = 0
    # `names` holds for each name its length, its field, its bytes.
    while at < names.size:
        size = names[at]
        if size == length:
            same = True
            for i in range(size):
                same &= np.int64(buf[begin + i]) == names[at + 2 + i]
            if same:
                return names[at + 1]
        at += size + 2
    return np.int64(0)


@part
def _is_closed(buf: Any, begin: Any, end: Any) -> Any:
    """Whether the last byte that is no blank is `}`."""
    i = end - 1
    while i > begin and (buf[i] == 32 or buf[i] == 13):
        i -= 1
    return buf[i] == 125


@part
def _scan_alike(buf: Any, base: Any, begin: Any, end: Any, known: Any, spans: Any) -> Any:
    """Read a JSON object whose first three names are those of a line before (`known`), spelled the same."""
    i = begin
    for n in range(3):
        at, length, field = known[3 * n], known[3 * n + 1], known[3 * n + 2]
        if i + length > end or not _same(base, at, i, length):
            return False
        i += length
        spans[2 * field] = i
        i = _find(base, 34, i, end)
        if i >= end or buf[i - 1] == 92:
            return False
        spans[2 * field + 1] = i
    return _is_closed(buf, i, end)


@part
def _scan_json(buf: Any, base: Any, begin: Any, end: Any, names: Any, known: Any, spans: Any) -> Any:
    """Read a flat JSON object in [begin, end); spans of URL, MEDIA and STATUS. False if anything is unusual.

    When these are the first three, nothing is read behind them but the closing brace, and `known` learns where the
    text before each value is.
    """
    i = begin
    if i >= end or buf[i] != 123:
        return False
    pairs, text = 0, i
    i += 1
    while True:
        while i < end and buf[i] == 32:
            i += 1
        if i >= end or buf[i] != 34:
            return False
        name = i + 1
        i = name
        while i < end and buf[i] != 34 and buf[i] != 92:
            i += 1
        if i + 1 >= end or buf[i] == 92:
            return False
        field = _field_of(buf, name, i, names)
        if field < 0 or (field > 0 and spans[2 * field] >= 0):
            return False
        i += 1
        while i < end and buf[i] == 32:
            i += 1
        if i >= end or buf[i] != 58:
            return False
        i += 1
        while i < end and buf[i] == 32:
            i += 1
        if i >= end:
            return False
        quoted = buf[i] == 34
        if quoted:
            value = i + 1
            i = _find(base, 34, value, end)
            if i >= end or _find(base, 92, value, i) < i:
                return False
            value_end = i
            i += 1
        else:
            value = i
            while i < end and 48 <= buf[i] <= 57:
                i += 1
            value_end = i
            if value_end == value or (buf[value] == 48 and value_end > value + 1):
                return False
        if field > 0:
            spans[2 * field] = value
            spans[2 * field + 1] = value_end
        if field > 0 and quoted and pairs < 3:
            known[3 * pairs], known[3 * pairs + 1], known[3 * pairs + 2] = text, value - text, field
            pairs += 1
            text = value_end
            if pairs == 3:
                known[LEARNT] = 1
                return _is_closed(buf, i, end)
        else:
            pairs = 4
        while i < end and buf[i] == 32:
            i += 1
        if i >= end:
            return False
        if buf[i] == 44:
            i += 1
            continue
        if buf[i] != 125:
            return False
        i += 1
        while i < end and (buf[i] == 32 or buf[i] == 13):
            i += 1
        return i == end


@part
def _scan_fields(base: Any, begin: Any, end: Any, spec: Any, spans: Any) -> Any:
    """Spans of the wanted fields of a CDX line in [begin, end) and whether the number of fields is right."""
    at = begin
    last = spec[FIELDS] - 1
    if last < 0:
        return False
    for index in range(last + 1):
        stop = _find(base, spec[DELIMITER], at, end)
        if (stop == end) != (index == last):
            return False
        for field in range(KEY, STATUS + 1):
            if spec[field] == index:
                spans[2 * field] = at
                spans[2 * field + 1] = stop
        at = stop + 1
    return True


def parse(
    buf: Any, spec: Any, ordinary: Any, names: Any,
    starts: Any, run_of: Any, times: Any, statuses: Any, media: Any, states: Any,
    surt_at: Any, surt_length: Any, key_length: Any,
    slots: Any, media_at: Any, media_length: Any, counts: Any, spans: Any, known: Any, marks: Any,
) -> None:  # fmt: skip
    """Lines to columns, until the text ends or the columns are full; `counts` says how far it came."""
    base = buf.ctypes.data
    end = np.int64(buf.size)
    kind = spec[KIND]
    delimiter = spec[DELIMITER]
    known[LEARNT] = 0
    marks[0] = 0
    line = np.int64(0)
    run = np.int64(-1)
    p = np.int64(0)
    while p < end and line < starts.size:
        stop = _find(base, 10, p, end)
        following = stop + 1
        if stop > p and buf[stop - 1] == 13:
            stop -= 1
        # The SURT: the first field, compared with the one before.
        if (
            run >= 0
            and p + surt_length[run] <= stop
            and _same(base, surt_at[run], p, surt_length[run])
            and (p + surt_length[run] == stop or buf[p + surt_length[run]] == delimiter)
        ):
            i = p + surt_length[run]
        else:
            before = surt_at[run] if run >= 0 else p
            length = surt_length[run] if run >= 0 else 0
            i, key_end = _scan_surt(buf, base, p, stop, delimiter, ordinary, before, length, marks)
            run += 1
            surt_at[run] = p
            surt_length[run] = i - p
            key_length[run] = key_end - p if key_end >= 0 else -1
        starts[line] = p
        run_of[line] = run
        time = np.int64(0)
        status = np.int64(0)
        number = np.int64(-1)
        state = GOOD
        if kind == SURT_LIST:
            if i != stop or i == p:
                state = ODD
        else:
            for j in range(2 * KEY, 2 * STATUS + 2):
                spans[j] = -1
            if kind == CDXJ:
                time = np.int64(-1)
                if i + 16 < stop and buf[i + 15] == delimiter:
                    read = known[LEARNT] == 1 and _scan_alike(buf, base, i + 16, stop, known, spans)
                    if not read:
                        for j in range(2 * URL, 2 * STATUS + 2):
                            spans[j] = -1
                        read = _scan_json(buf, base, i + 16, stop, names, known, spans)
                    if read:
                        time = _scan_time(base, i + 1, stop)
            elif _scan_fields(base, p, stop, spec, spans) and (
                spec[TIME] < 0 or spans[2 * TIME + 1] - spans[2 * TIME] == 14
            ):
                time = np.int64(0) if spec[TIME] < 0 else _scan_time(base, spans[2 * TIME], stop)
            else:
                time = np.int64(-1)
            if spans[2 * STATUS] >= 0:
                status = _scan_status(buf, spans[2 * STATUS], spans[2 * STATUS + 1])
            if spans[2 * MEDIA] >= 0:
                at, to = spans[2 * MEDIA], spans[2 * MEDIA + 1]
                number = _media_number(buf, base, at, to, slots, media_at, media_length, counts)
            if (
                time < 0
                or status < 0
                or number < -1
                or (spans[2 * URL] >= 0 and not _is_web(buf, spans[2 * URL], spans[2 * URL + 1]))
            ):
                state = ODD
        # A header, a line of JSON, an empty line: nothing here begins like a host.
        if stop == p or not ordinary[buf[p]] & 1:
            state = ODD
        times[line] = time
        statuses[line] = status
        media[line] = number
        states[line] = state
        line += 1
        p = following
    counts[LINES] = line
    counts[RUNS] = run + 1
    counts[CONSUMED] = min(p, end)


@part
def _sort(base: Any, at: Any, length: Any, order: Any, count: Any, temp: Any) -> None:
    """Sort `order[:count]` by the slices its numbers stand for; a stable merge sort that doubles sorted stretches."""
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle = min(left + width, count)
            right = min(left + 2 * width, count)
            i, j = left, middle
            for k in range(left, right):
                if j >= right or (
                    i < middle and _compare(base, at[order[i]], length[order[i]], at[order[j]], length[order[j]]) <= 0
                ):
                    temp[k] = order[i]
                    i += 1
                else:
                    temp[k] = order[j]
                    j += 1
        for k in range(count):
            order[k] = temp[k]
        width *= 2


@part
def _put_number(out: Any, at: Any, value: Any) -> Any:
    digits: Any = 1
    limit: Any = np.int64(10)
    while value >= limit and digits < 19:
        limit *= 10
        digits += 1
    for i in range(at + digits - 1, at - 1, -1):
        out[i] = 48 + value % 10
        value //= 10
    return at + digits


@part
def _put_line(base: Any, at: Any, length: Any, m: Any, r: Any, out: Any, to: Any) -> Any:
    _memcpy(np.uintp(out.ctypes.data + to), np.uintp(base + at), np.uintp(length))
    to += length
    out[to] = 32
    to = _put_number(out, to + 1, m)
    out[to] = 47
    to = _put_number(out, to + 1, r)
    out[to] = 10
    return to + 1


def block(
    buf: Any, surt_at: Any, surt_length: Any, key_at: Any, key_length: Any, captures: Any, out: Any,
    numbers: Any, sums: Any, results: Any,
) -> None:  # fmt: skip
    """Runs to sorted lines `key M/R`; results are bytes, keys and URI-Rs written, or -1 if SURTs are not in order.

    `numbers` (5 rows) and `sums` (2 rows) are room for as many groups as there are runs.
    """
    base = buf.ctypes.data
    count = captures.size
    # Groups of neighbouring runs with one key; `late` ones are below the largest key so far.
    at, length, main, late, temp = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    ms, rs = sums[0], sums[1]
    groups, mains, lates, total = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    before: Any = np.int64(-1)
    for run in range(count):
        if captures[run] == 0:
            continue
        fresh = 1
        if before >= 0:
            order = _compare(base, surt_at[before], surt_length[before], surt_at[run], surt_length[run])
            if order > 0:
                results[0] = -1
                return
            fresh = 1 if order < 0 else 0
        before = run
        total += fresh
        if groups > 0:
            last = groups - 1
            if length[last] == key_length[run] and _same(base, at[last], key_at[run], key_length[run]):
                ms[last] += captures[run]
                rs[last] += fresh
                continue
        order = 1
        if mains > 0:
            largest = main[mains - 1]
            order = _compare(base, key_at[run], key_length[run], at[largest], length[largest])
            if order == 0:
                ms[largest] += captures[run]
                rs[largest] += fresh
                continue
        at[groups], length[groups], ms[groups], rs[groups] = key_at[run], key_length[run], captures[run], fresh
        if order > 0:
            main[mains] = groups
            mains += 1
        else:
            late[lates] = groups
            lates += 1
        groups += 1
    _sort(base, at, length, late, lates, temp)
    i, j, to, keys = 0, 0, 0, 0
    while i < mains or j < lates:
        if j >= lates:
            take = main[i]
        elif i >= mains:
            take = late[j]
        else:
            order = _compare(base, at[main[i]], length[main[i]], at[late[j]], length[late[j]])
            take = main[i] if order <= 0 else late[j]
        m, r = np.int64(0), np.int64(0)
        while i < mains and (
            main[i] == take or _compare(base, at[main[i]], length[main[i]], at[take], length[take]) == 0
        ):
            m += ms[main[i]]
            r += rs[main[i]]
            i += 1
        while j < lates and (
            late[j] == take or _compare(base, at[late[j]], length[late[j]], at[take], length[take]) == 0
        ):
            m += ms[late[j]]
            r += rs[late[j]]
            j += 1
        to = _put_line(base, at[take], length[take], m, r, out, to)
        keys += 1
    results[0], results[1], results[2] = to, keys, total


def ends_in(buf: Any, key_at: Any, key_length: Any, names: Any, name_ends: Any, found: Any) -> None:
    """For each key whether its last path segment is one of the names."""
    for run in range(key_at.size):
        start = np.int64(0)
        for number in range(name_ends.size):
            length = name_ends[number] - start
            at = key_at[run] + key_length[run] - length
            if key_length[run] > length and buf[at - 1] == 47:
                same = True
                for i in range(length):
                    same &= buf[at + i] == names[start + i]
                if same:
                    found[run] = 1
            start = name_ends[number]
