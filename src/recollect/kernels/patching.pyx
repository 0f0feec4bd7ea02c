"""Patching a map: its text is copied, with the counts of some lines raised, other blocks in some, and lines added.

What changes is known before (`profiles.upkeep.patch`); here it is written. Both lists are in the order of the text, so
one pass is enough, and all that does not change is copied in long pieces.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from recollect.kernels.counts cimport Total, merged_total
from recollect.kernels.lines cimport Line, RECORD, m_bound, put_count, r_bound, read_line
from recollect.kernels.words cimport Bytes


cdef inline Total _total(int64_t m, int64_t r, int bounds) noexcept nogil:
    cdef Total total
    total.m.value, total.m.bound = m, m_bound(bounds)
    total.r.value, total.r.bound = r, r_bound(bounds)
    return total


cdef Py_ssize_t _put_frequency(unsigned char *out, Py_ssize_t at, const Total *total) noexcept nogil:
    """Write a frequency as `formats.frequency` does; returns where it ends."""
    at = put_count(out, at, total.m)
    if total.r.value >= 0 or total.m.value < 0:
        out[at] = c"/"
        at = put_count(out, at + 1, total.r)
    return at


cdef inline Py_ssize_t _copy(unsigned char *out, Py_ssize_t to, Bytes text, Py_ssize_t length) noexcept nogil:
    if length > 0:
        memcpy(out + to, text, <size_t>length)
    return to + length


def write_patched(
    const unsigned char[::1] text not None,
    Py_ssize_t start,
    const int64_t[::1] changed not None,
    const int64_t[::1] more_m not None,
    const int64_t[::1] more_r not None,
    const unsigned char[::1] more_bounds not None,
    const unsigned char[::1] blocks not None,
    const int64_t[::1] block_ends not None,
    const int64_t[::1] places not None,
    const unsigned char[::1] keys not None,
    const int64_t[::1] offsets not None,
    const int64_t[::1] lengths not None,
    const int64_t[::1] m not None,
    const int64_t[::1] r not None,
    const unsigned char[::1] bounds not None,
    unsigned char[::1] out not None,
):
    """Write text[start:] with its changes to `out`; returns the length, or -1 where a changed line is not a record.

    The lines at `changed` get `more` counts and the block that ends at their `block_ends`, if that is not empty; before
    the lines at `places` a key of `keys` is added with its counts. `out` has space for all of that and 48 bytes a
    change.
    """
    cdef Py_ssize_t at = start, stop = text.shape[0], to = 0, change = 0, addition = 0, block = 0
    cdef Py_ssize_t changes = changed.shape[0], additions = places.shape[0], place
    cdef Line line
    cdef Total total, own
    if out.shape[0] == 0:
        return 0
    cdef Bytes source = &text[0] if stop else NULL
    cdef unsigned char *target = &out[0]
    with nogil:
        while change < changes or addition < additions:
            if change == changes or (addition < additions and places[addition] <= changed[change]):
                place = places[addition]
                to = _copy(target, to, source + at, place - at)
                at = place
                if to and target[to - 1] != c"\n":
                    target[to] = c"\n"
                    to += 1
                to = _copy(target, to, &keys[offsets[addition]], lengths[addition])
                target[to] = c" "
                total = _total(m[addition], r[addition], bounds[addition])
                to = _put_frequency(target, to + 1, &total)
                addition += 1
            else:
                place = changed[change]
                if read_line(source, place, stop, 0, &line) != RECORD:
                    to = -1
                    break
                to = _copy(target, to, source + at, place - at + line.key_length + 1)
                own = _total(more_m[change], more_r[change], more_bounds[change])
                total = merged_total(&line, own)
                to = _put_frequency(target, to, &total)
                if block_ends[change] > block:
                    target[to] = c" "
                    to = _copy(target, to + 1, &blocks[block], block_ends[change] - block)
                    block = block_ends[change]
                elif line.block:
                    target[to] = c" "
                    to = _copy(target, to + 1, source + place + line.block, line.length - line.block)
                at = min(line.next, stop)
                change += 1
            target[to] = c"\n"
            to += 1
        if to >= 0 and at < stop:
            to = _copy(target, to, source + at, stop - at)
            if target[to - 1] != c"\n":
                target[to] = c"\n"
                to += 1
    return to
