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

from typing import Any

import numpy as np
from numba import njit, types

# What a line turned out to be.
GOOD, ODD = 0, 1
# What a file is, for `parse`.
SURT_LIST, CDX, CDXJ = 0, 1, 2
# Fields of `spec`.
KIND, DELIMITER, FIELDS, KEY, TIME, URL, MEDIA, STATUS = range(8)
# Fields of `counts`.
LINES, RUNS, MEDIA_TYPES, CONSUMED = range(4)
MEDIA_SLOTS = 4096
MAX_MEDIA = 1024

_memchr: Any = types.ExternalFunction("memchr", types.uintp(types.uintp, types.int32, types.uintp))
_memcmp: Any = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


@njit(inline="never")
def _find(base: Any, byte: Any, begin: Any, end: Any) -> Any:
    """Where `byte` is next in base[begin:end], or `end`."""
    at = _memchr(np.uintp(base + begin), np.int32(byte), np.uintp(end - begin))
    return end if at == 0 else np.int64(at - np.uintp(base))


@njit
def _same(base: Any, a: Any, b: Any, length: Any) -> Any:
    return _memcmp(np.uintp(base + a), np.uintp(base + b), np.uintp(length)) == 0


@njit
def _compare(base: Any, a: Any, a_length: Any, b: Any, b_length: Any) -> Any:
    """Order of two slices as bytes."""
    order = _memcmp(np.uintp(base + a), np.uintp(base + b), np.uintp(min(a_length, b_length)))
    return np.int64(order) if order != 0 else a_length - b_length


@njit
def _scan_surt(buf: Any, begin: Any, end: Any, delimiter: Any, ordinary: Any) -> Any:
    """(end of the SURT, end of its key); the key's end is -1 if the SURT is out of the ordinary."""
    i = begin
    key_end = np.int64(-1)
    # Host: `ordinary` bit 1, then perhaps a port, then `)/`, with no comma before. A dot in a host that begins with a
    # digit may be an address, which is turned around.
    dotted = False
    while i < end and ordinary[buf[i]] & 1:
        dotted |= buf[i] == 46
        i += 1
    if begin < i < end and buf[i - 1] != 44 and not (dotted and buf[begin] < 58):
        if buf[i] == 58:
            port = i + 1
            i = port
            while i < end and 48 <= buf[i] <= 57:
                i += 1
            if i == port:
                i = begin
        if i + 1 < end and i > begin and buf[i] == 41 and buf[i + 1] == 47:
            root = i + 2
            i = root
            while i < end and ordinary[buf[i]] & 2:
                i += 1
            if i == end or buf[i] == delimiter or buf[i] == 63:
                key_end = i
                while key_end > root and buf[key_end - 1] == 47:
                    key_end -= 1
    while i < end and buf[i] != delimiter:
        i += 1
    return i, key_end


@njit
def _scan_time(buf: Any, begin: Any, end: Any) -> Any:
    """The number of the 14 digits at `begin`, or -1."""
    if begin + 14 > end:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(begin, begin + 14):
        digit = np.int64(buf[i]) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    return value


@njit
def _scan_status(buf: Any, begin: Any, end: Any) -> Any:
    """Three digits, 0 for an absent status, -1 for something else."""
    if end - begin == 3 and 49 <= buf[begin] <= 57:
        tens, ones = np.int64(buf[begin + 1]) - 48, np.int64(buf[begin + 2]) - 48
        if 0 <= tens <= 9 and 0 <= ones <= 9:
            return (np.int64(buf[begin]) - 48) * 100 + tens * 10 + ones
    if end == begin or (end - begin == 1 and buf[begin] == 45):
        return np.int64(0)
    return np.int64(-1)


@njit
def _is_web(buf: Any, begin: Any, end: Any) -> Any:
    """`http://` or `https://`."""
    if end - begin < 8 or buf[begin] != 104 or buf[begin + 1] != 116 or buf[begin + 2] != 116 or buf[begin + 3] != 112:
        return False
    i = begin + 5 if buf[begin + 4] == 115 else begin + 4
    return buf[i] == 58 and buf[i + 1] == 47 and buf[i + 2] == 47


@njit
def _media_number(
    buf: Any, base: Any, begin: Any, end: Any, slots: Any, media_at: Any, media_length: Any, counts: Any
) -> Any:
    """The number of a media type, -1 for `-` or nothing, -2 when there are too many kinds."""
    length = end - begin
    if length == 0 or (length == 1 and buf[begin] == 45):
        return np.int64(-1)
    mixed = np.uint64(length)
    for i in range(max(begin, end - 12), end):
        mixed = mixed * np.uint64(31) + np.uint64(buf[i])
    slot = np.int64((mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(52))
    while slots[slot] >= 0:
        number = slots[slot]
        if media_length[number] == length and _same(base, media_at[number], begin, length):
            return np.int64(number)
        slot = (slot + 1) & (MEDIA_SLOTS - 1)
    number = counts[MEDIA_TYPES]
    if number == MAX_MEDIA:
        return np.int64(-2)
    slots[slot] = number
    media_at[number] = begin
    media_length[number] = length
    counts[MEDIA_TYPES] += 1
    return np.int64(number)


@njit
def _field_of(buf: Any, begin: Any, end: Any) -> Any:
    """Which field a JSON name is: URL, MEDIA, STATUS; 0 for one not needed; -1 for one the careful parser must read."""
    length = end - begin
    c = buf[begin] if length > 0 else 0
    if length == 3 and c == 117 and buf[begin + 1] == 114 and buf[begin + 2] == 108:  # url
        return URL
    if (
        c == 109 and length >= 4 and buf[begin + 1] == 105 and buf[begin + 2] == 109 and buf[begin + 3] == 101
    ):  # mime...
        if length == 4 or length == 8 or (length == 9 and buf[begin + 4] == 95):  # mime, mimetype, mime_type
            return MEDIA
        return 0 if length == 13 else -1  # mime-detected is another thing
    if c == 115 and length >= 6 and buf[begin + 1] == 116 and buf[begin + 2] == 97 and buf[begin + 3] == 116:  # stat...
        return STATUS if length == 6 or length == 10 or length == 11 else -1  # status, statuscode, status_code
    if c == 111 and length == 8:  # original
        return URL
    if length <= 1 or (c == 117 and length == 6) or (c == 116 and length == 9):  # m, s, u; urlkey; timestamp
        return -1
    return 0


@njit
def _scan_json(buf: Any, base: Any, begin: Any, end: Any, spans: Any) -> Any:
    """Read a flat JSON object in [begin, end); spans of URL, MEDIA and STATUS. False if anything is unusual."""
    i = begin
    if i >= end or buf[i] != 123:
        return False
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
        field = _field_of(buf, name, i)
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
        if buf[i] == 34:
            value = i + 1
            i = _find(base, 34, value, end)
            if i >= end or buf[i - 1] == 92:
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


@njit
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


@njit(
    "void(uint8[::1], int64[::1], uint8[::1], int32[::1], int32[::1], int64[::1], int16[::1], int16[::1],"
    " uint8[::1], int32[::1], int32[::1], int32[::1], int16[::1], int32[::1], int32[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def parse(
    buf: Any, spec: Any, ordinary: Any,
    starts: Any, run_of: Any, times: Any, statuses: Any, media: Any, states: Any,
    surt_at: Any, surt_length: Any, key_length: Any,
    slots: Any, media_at: Any, media_length: Any, counts: Any,
) -> None:  # fmt: skip
    """Lines to columns, until the text ends or the columns are full; `counts` says how far it came."""
    base = buf.ctypes.data
    end = np.int64(buf.size)
    kind = spec[KIND]
    delimiter = spec[DELIMITER]
    spans = np.full(16, -1, np.int64)
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
            i, key_end = _scan_surt(buf, p, stop, delimiter, ordinary)
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
                if i + 16 < stop and buf[i + 15] == delimiter and _scan_json(buf, base, i + 16, stop, spans):
                    time = _scan_time(buf, i + 1, stop)
                else:
                    time = np.int64(-1)
            elif _scan_fields(base, p, stop, spec, spans) and (
                spec[TIME] < 0 or spans[2 * TIME + 1] - spans[2 * TIME] == 14
            ):
                time = np.int64(0) if spec[TIME] < 0 else _scan_time(buf, spans[2 * TIME], stop)
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


ORDINARY = np.zeros(256, np.uint8)
for _byte in b"abcdefghijklmnopqrstuvwxyz0123456789-_.,":
    ORDINARY[_byte] |= 1
for _byte in range(0x21, 0x7F):
    if not 65 <= _byte <= 90 and _byte not in b"*#?":
        ORDINARY[_byte] |= 2


@njit
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


@njit
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


@njit
def _put_line(base: Any, at: Any, length: Any, m: Any, r: Any, out: Any, to: Any) -> Any:
    _memcpy(np.uintp(out.ctypes.data + to), np.uintp(base + at), np.uintp(length))
    to += length
    out[to] = 32
    to = _put_number(out, to + 1, m)
    out[to] = 47
    to = _put_number(out, to + 1, r)
    out[to] = 10
    return to + 1


@njit(
    "Tuple((int64, int64, int64))(uint8[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], uint8[::1])",
    cache=True,
    nogil=True,
)
def block(buf: Any, surt_at: Any, surt_length: Any, key_at: Any, key_length: Any, captures: Any, out: Any) -> Any:
    """Runs to sorted lines `key M/R`; returns bytes, keys and URI-Rs written, or -1 if the SURTs are not in order."""
    base = buf.ctypes.data
    count = captures.size
    # Groups of neighbouring runs with one key; `late` ones are below the largest key so far.
    at, length = np.empty(count, np.int32), np.empty(count, np.int32)
    ms, rs = np.empty(count, np.int64), np.empty(count, np.int64)
    main, late, temp = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    groups, mains, lates, total = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    before: Any = np.int64(-1)
    for run in range(count):
        if captures[run] == 0:
            continue
        fresh = 1
        if before >= 0:
            order = _compare(base, surt_at[before], surt_length[before], surt_at[run], surt_length[run])
            if order > 0:
                return np.int64(-1), np.int64(0), np.int64(0)
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
    return np.int64(to), np.int64(keys), total


@njit("boolean[::1](uint8[::1], int32[::1], int32[::1], uint8[::1], int64[::1])", cache=True, nogil=True)
def ends_in(buf: Any, key_at: Any, key_length: Any, names: Any, name_ends: Any) -> Any:
    """For each key whether its last path segment is one of the names."""
    found = np.zeros(key_at.size, np.bool_)
    for run in range(key_at.size):
        start = np.int64(0)
        for end in name_ends:
            length = end - start
            at = key_at[run] + key_length[run] - length
            if key_length[run] > length and buf[at - 1] == 47:
                same = True
                for i in range(length):
                    same &= buf[at + i] == names[start + i]
                found[run] |= same
            start = end
    return found
