"""Records: one SURT, and one value of what counts are decomposed by (the label), with its captures.

    int32 key length | int32 rest length | int32 label length | int32 0 | int64 captures | key | rest | label

in the byte order of the machine, ordered by key, then rest, then label, each as bytes. `rest` is what the key leaves of
the SURT: its tail when the key is its beginning, else byte 1 and the whole SURT; so two records of one key have the
same rest exactly when they have the same SURT.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from recollect.kernels.words cimport Bytes, compare_bytes

cpdef enum:
    HEADER = 24


cdef struct Head:
    int32_t key
    int32_t rest
    int32_t label
    int32_t unused
    int64_t captures


cdef inline Head head_at(Bytes record) noexcept nogil:
    """The head of a record, which may be at any address."""
    cdef Head head
    memcpy(&head, record, HEADER)
    return head


cdef inline Py_ssize_t record_size(Bytes record) noexcept nogil:
    cdef Head head = head_at(record)
    return <Py_ssize_t>HEADER + head.key + head.rest + head.label


cdef inline Py_ssize_t compare_records(Bytes a, Bytes b) noexcept nogil:
    """Order of two records; 0 when they differ in captures at most."""
    cdef Head mine = head_at(a), yours = head_at(b)
    cdef Py_ssize_t order
    a += HEADER
    b += HEADER
    order = compare_bytes(a, mine.key, b, yours.key)
    if order != 0:
        return order
    a += mine.key
    b += yours.key
    order = compare_bytes(a, mine.rest, b, yours.rest)
    if order != 0:
        return order
    return compare_bytes(a + mine.rest, mine.label, b + yours.rest, yours.label)


cdef inline Py_ssize_t whole_size(Bytes records, Py_ssize_t filled) noexcept nogil:
    """How many of the first `filled` bytes are whole records."""
    cdef Py_ssize_t at = 0, size
    while at + HEADER <= filled:
        size = record_size(records + at)
        if at + size > filled:
            break
        at += size
    return at
