"""Doors to the lines of a map; the loops are in `lines.pxd`, for other kernels to inline."""

from libc.stdint cimport int64_t

from recollect.kernels.lines cimport Line, RECORD, address_length, lines_in, pack_bounds, read_line


cdef class MapLine:
    """What `line_at` found; see `lines.pyi`."""

    cdef readonly int kind
    cdef readonly Py_ssize_t key_length
    cdef readonly Py_ssize_t length
    cdef readonly Py_ssize_t block
    cdef readonly Py_ssize_t next
    cdef readonly object m
    cdef readonly object r
    cdef readonly int bounds


def line_at(const unsigned char[::1] data not None, Py_ssize_t start):
    """The line that begins at `start`."""
    if not 0 <= start < data.shape[0]:
        raise IndexError("no line begins there")
    cdef Line line
    line.key_length = line.length = line.block = line.next = 0
    line.m.value = line.r.value = -1
    line.m.bound = line.r.bound = 0
    cdef MapLine found = MapLine.__new__(MapLine)
    found.kind = read_line(&data[0], start, data.shape[0], 0, &line)
    found.key_length, found.length = line.key_length, line.length
    found.block, found.next = line.block, line.next
    found.m, found.r, found.bounds = line.m.value, line.r.value, pack_bounds(line.m, line.r)
    return found


def lines_at(
    const unsigned char[::1] data not None,
    const int64_t[::1] positions not None,
    int64_t[::1] key_lengths not None,
    int64_t[::1] lengths not None,
    int64_t[::1] blocks not None,
    int64_t[::1] m not None,
    int64_t[::1] r not None,
    unsigned char[::1] bounds not None,
):
    """The records that begin at some positions, as columns; returns the row of one that is not a record, or -1."""
    cdef Py_ssize_t row, odd = -1, stop = data.shape[0]
    cdef Line line
    with nogil:
        for row in range(positions.shape[0]):
            if not 0 <= positions[row] < stop or read_line(&data[0], positions[row], stop, 0, &line) != RECORD:
                odd = row
                break
            key_lengths[row], lengths[row], blocks[row] = line.key_length, line.length, line.block
            m[row], r[row], bounds[row] = line.m.value, line.r.value, <unsigned char>pack_bounds(line.m, line.r)
    return odd


def count_lines(const unsigned char[::1] data not None, Py_ssize_t start, Py_ssize_t stop):
    """How many lines begin in [start, stop)."""
    if not 0 <= start <= stop <= data.shape[0]:
        raise IndexError("not a part of the data")
    if start == stop:
        return 0
    with nogil:
        count = lines_in(&data[0], start, stop)
    return count


def is_address(bytes host not None):
    """Whether the first segment of a host (what stands before `)`) is an IP address."""
    return address_length(host, len(host)) > 0
