"""Merging as text: sorted lines of several maps become one text, as long as every line is an ordinary one.

A line that one map alone has is copied as it stands, so it must be spelled as `ukvs.Writer` would spell it. Of a key
that several lines have, those lines are added up if all hold something exactly or at least, and have no JSON block.
Anything else is not decided here: `join` gives up on the whole text, and `maps.merge` reads it record by
record. Keys must rise from line to line of the result: if they do, no key was missed or parted, however the maps were
sorted.
"""

from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from recollect.kernels.counts cimport Total, total_of
from recollect.kernels.lines cimport (
    ABOUT, AT_LEAST, AT_MOST, Count, EXACT, Line, IRREGULAR, RECORD, compare_keys, put_count, read_line,
)
from recollect.kernels.words cimport Bytes, compare_bytes, find_byte

# Why `join` came back without a text: a line needs more thought; a wildcard or a key out of order, so does all of it.
cpdef enum:
    ODD_LINE = -1
    NOT_PLAIN = -2


cdef struct Source:  # a map: its next line, and where its lines end
    Py_ssize_t at
    Py_ssize_t end
    Line line


cdef struct Counts:
    Py_ssize_t records
    Py_ssize_t keys
    Py_ssize_t duplicates
    Py_ssize_t first_length
    Py_ssize_t last
    Py_ssize_t last_length


cdef bint _is_canonical(Bytes data, const Source *source) noexcept nogil:
    """Whether a line is spelled as a writer spells it."""
    cdef Py_ssize_t m_at = source.at + source.line.key_length + 1
    cdef Py_ssize_t end = source.at + source.line.length
    cdef Py_ssize_t slash, frequency_end
    if data[m_at] == c"0" and m_at + 1 < end and data[m_at + 1] != c"/" and data[m_at + 1] != c" ":
        return False
    slash = m_at
    while slash < end and data[slash] != c"/" and data[slash] != c" ":
        slash += 1
    frequency_end = slash
    if slash < end and data[slash] == c"/":
        if source.line.r.value < 0:
            return False
        if data[slash + 1] == c"0" and slash + 2 < end and data[slash + 2] != c" ":
            return False
        while frequency_end < end and data[frequency_end] != c" ":
            frequency_end += 1
    if source.line.block:
        return frequency_end + 1 == source.at + source.line.block and data[end - 1] == c"}"
    return frequency_end == end


cdef inline bint _is_addable(const Line *line) noexcept nogil:
    """Whether a line holds something, exactly or at least, and says no more than that."""
    return (
        line.block == 0
        and line.m.value > 0
        and line.r.value != 0
        and line.m.bound <= AT_LEAST
        and line.r.bound <= AT_LEAST
    )


cdef bint _add(Total *total, const Line *line, bint disjoint) noexcept nogil:
    """Add a line to a total; False if the sum is too large. See `formats.frequency`."""
    if total.m.value > INT64_MAX - line.m.value:
        return False
    total.m.value += line.m.value
    total.m.bound |= line.m.bound
    if line.r.value < 0 or total.r.value < 0:
        total.r.bound = EXACT if line.r.value < 0 and total.r.value < 0 else AT_LEAST
        total.r.value = max(line.r.value, total.r.value)
    elif disjoint:
        if total.r.value > INT64_MAX - line.r.value:
            return False
        total.r.value += line.r.value
        total.r.bound |= line.r.bound
    else:
        total.r.value = max(line.r.value, total.r.value)
        total.r.bound = AT_LEAST
    return True


cdef inline Py_ssize_t _put_total(unsigned char *out, Py_ssize_t at, const Total *total) noexcept nogil:
    out[at] = c" "
    at = put_count(out, at + 1, total.m)
    if total.r.value >= 0:
        out[at] = c"/"
        at = put_count(out, at + 1, total.r)
    out[at] = c"\n"
    return at + 1


cdef void _enqueue(
    Bytes data, const Source *sources, Py_ssize_t *queue, Py_ssize_t others, Py_ssize_t index
) noexcept nogil:
    """Put map `index` in its place among the `others` after the head of the queue, by key, then by number."""
    cdef Py_ssize_t place = 1, other, order
    while place <= others:
        other = queue[place]
        order = compare_keys(
            data, sources[other].at, sources[other].line.key_length, sources[index].at, sources[index].line.key_length
        )
        if order > 0 or (order == 0 and other > index):
            break
        queue[place - 1] = other
        place += 1
    queue[place - 1] = index


cdef Py_ssize_t _join(
    Bytes data,
    Source *sources,
    Py_ssize_t *queue,
    Py_ssize_t maps,
    bint disjoint,
    unsigned char *out,
    Counts *counts,
) noexcept nogil:
    cdef Py_ssize_t i, waiting = 0, written = 0, first, last, following, start, key_length, line_length, size, same
    cdef Py_ssize_t before = 0, before_length = 0
    cdef Total total
    cdef bint addable
    for i in range(maps):
        if sources[i].at < sources[i].end:
            if read_line(data, sources[i].at, sources[i].end, 0, &sources[i].line) != RECORD:
                return ODD_LINE
            for first in range(waiting, 0, -1):
                queue[first] = queue[first - 1]
            _enqueue(data, sources, queue, waiting, i)
            waiting += 1
    while waiting:
        first = queue[0]
        start, key_length = sources[first].at, sources[first].line.key_length
        if written and compare_keys(data, before, before_length, start, key_length) >= 0:
            return NOT_PLAIN
        if data[start + key_length - 1] == c"*":
            return NOT_PLAIN
        before, before_length = start, key_length
        if not _is_canonical(data, &sources[first]):
            return ODD_LINE
        addable = _is_addable(&sources[first].line)
        line_length = sources[first].line.length
        total = total_of(&sources[first].line)
        last, same = first, 0
        while True:
            sources[last].at = sources[last].line.next  # the map whose line was taken goes on
            if sources[last].at < sources[last].end:
                if read_line(data, sources[last].at, sources[last].end, 0, &sources[last].line) != RECORD:
                    return ODD_LINE
                _enqueue(data, sources, queue, waiting - 1, last)
            else:
                waiting -= 1
                for i in range(waiting):
                    queue[i] = queue[i + 1]
            if waiting == 0:
                break
            following = queue[0]
            if compare_keys(
                data, start, key_length, sources[following].at, sources[following].line.key_length
            ) != 0:
                break
            same += 1
            counts.duplicates += following == last
            last = following
            if not (addable and _is_addable(&sources[last].line) and _add(&total, &sources[last].line, disjoint)):
                return ODD_LINE
        size = key_length if same else line_length
        memcpy(out + written, data + start, <size_t>size)
        counts.last, counts.last_length = written, key_length
        if written == 0:
            counts.first_length = key_length
        written += size
        if same:
            written = _put_total(out, written, &total)
        else:
            out[written] = c"\n"
            written += 1
        counts.records += same + 1
        counts.keys += 1
    return written


def join(
    const unsigned char[::1] data,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    bint disjoint,
    unsigned char[::1] out,
):
    """Merge the lines data[starts[i]:ends[i]] of all maps i into `out`, which is as large as the data.

    Returns the length of the text (or ODD_LINE, NOT_PLAIN) and the number of records, of keys, of duplicates in one
    map, the length of the first key, where the last key begins, and its length.
    """
    cdef Py_ssize_t maps = starts.shape[0], i, length = 0
    cdef Counts counts
    cdef Source *sources
    cdef Py_ssize_t *queue
    counts.records = counts.keys = counts.duplicates = counts.first_length = counts.last = counts.last_length = 0
    if out.shape[0] < data.shape[0]:
        raise IndexError("an output array is too small")
    sources = <Source *>calloc(<size_t>(maps + 1), sizeof(Source))
    queue = <Py_ssize_t *>calloc(<size_t>(maps + 1), sizeof(Py_ssize_t))
    if sources == NULL or queue == NULL:
        free(sources)
        free(queue)
        raise MemoryError
    for i in range(maps):
        sources[i].at, sources[i].end = starts[i], ends[i]
    if data.shape[0]:
        with nogil:
            length = _join(&data[0], sources, queue, maps, disjoint, &out[0], &counts)
    free(sources)
    free(queue)
    return (
        length, counts.records, counts.keys, counts.duplicates, counts.first_length, counts.last, counts.last_length
    )


# Counts held against those of another text.


cdef inline bint _holds(Count said, int64_t found, bint at_least) noexcept nogil:
    """Whether a count is true of what was found; with `at_least`, whether it can be, as there may be more."""
    if said.value < 0:
        return True
    if said.bound == ABOUT:
        return True
    if said.bound != AT_LEAST and found > said.value:
        return False
    return at_least or said.bound == AT_MOST or found >= said.value


def compare_counts(
    const unsigned char[::1] said,
    Py_ssize_t said_at,
    const unsigned char[::1] exact,
    Py_ssize_t exact_at,
    bint at_least,
    int64_t[:, ::1] differ,
):
    """Hold the counts of a map against those of an exact map, key by key; both are sorted. Wildcards are passed over.

    Pairs that do not agree go to `differ` as places in both texts, -1 where a text has no such key. Keys of the exact
    map alone count only if they have no `)`. Returns (place in the map, place in the exact one, keys compared, pairs in
    `differ`, whether a line is not a plain record); it came to the end if both places are at the ends of the texts.
    """
    cdef Py_ssize_t compared = 0, found = 0, order
    cdef Py_ssize_t said_stop = said.shape[0], exact_stop = exact.shape[0]
    cdef Bytes mine = &said[0] if said_stop else NULL
    cdef Bytes yours = &exact[0] if exact_stop else NULL
    cdef Line a, b
    cdef bint irregular = False
    with nogil:
        while (said_at < said_stop or exact_at < exact_stop) and found < differ.shape[0]:
            if said_at < said_stop:
                order = read_line(mine, said_at, said_stop, 0, &a)
                if order == IRREGULAR:
                    irregular = True
                    break
                if order != RECORD or mine[said_at + a.key_length - 1] == c"*":
                    said_at = a.next
                    continue
            if exact_at < exact_stop:
                order = read_line(yours, exact_at, exact_stop, 0, &b)
                if order == IRREGULAR:
                    irregular = True
                    break
                if order != RECORD:
                    exact_at = b.next
                    continue
            if said_at >= said_stop:
                order = 1
            elif exact_at >= exact_stop:
                order = -1
            else:
                order = compare_bytes(mine + said_at, a.key_length, yours + exact_at, b.key_length)
            if order > 0:
                if find_byte(yours + exact_at, c")", 0, b.key_length) == b.key_length:
                    differ[found, 0], differ[found, 1] = -1, exact_at
                    found += 1
                exact_at = b.next
                continue
            compared += 1
            if order < 0 or not (
                _holds(a.m, b.m.value, at_least) and _holds(a.r, b.r.value, at_least)
            ):
                differ[found, 0], differ[found, 1] = said_at, exact_at if order == 0 else -1
                found += 1
            said_at = a.next
            if order == 0:
                exact_at = b.next
    return min(said_at, said_stop), min(exact_at, exact_stop), compared, found, irregular
