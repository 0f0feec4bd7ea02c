"""The lines of a map, `key M/R {block}` (docs/ukvs.md): one reader of lines, counts, and the test for an IP address.

A line of another layout is IRREGULAR, for `formats.ukvs` to judge. Nothing here decides that a line is bad.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from recollect.kernels.words cimport Bytes, common_bytes, find_byte, is_digit, low_zeros, put_number, repeated, word_at

# Bounds of a count: `5`, `5+`, `5-`, `5~`. The sum of two has the bits of both.
cpdef enum:
    EXACT = 0
    AT_LEAST = 1
    AT_MOST = 2
    ABOUT = 3

# What a line is.
cpdef enum:
    RECORD = 0
    HEADER = 1
    BLANK = 2
    IRREGULAR = 3

cdef enum:
    NOT_STATED = -1  # value of a count that is not there
    TOO_LARGE = -2


cdef struct Count:
    int64_t value
    int bound


cdef struct Line:
    Py_ssize_t key_length
    Py_ssize_t length  # without the end of the line
    Py_ssize_t block   # where the JSON block begins, counted from the start of the line; 0: there is none
    Py_ssize_t next    # where the next line begins, counted from the start of the data
    Count m
    Count r


cdef inline Py_ssize_t line_end(Bytes data, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    """Where the newline is at or after `at`, or `stop`."""
    while at < stop and data[at] != c"\n":
        at += 1
    return at


cdef inline Py_ssize_t token_end(Bytes data, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    """Where a token ends: the first byte up to 0x20."""
    cdef uint64_t word, small
    while at + 8 <= stop:
        word = word_at(data + at)
        # The highest bit of each byte that is below 0x21 (exact for the lowest such byte, which is the one wanted).
        small = (word - repeated(0x21)) & ~word & repeated(0x80)
        if small:
            return at + (low_zeros(small) >> 3)
        at += 8
    while at < stop and data[at] > c" ":
        at += 1
    return at


cdef inline Py_ssize_t read_count(Bytes data, Py_ssize_t at, Py_ssize_t stop, Count *count) noexcept nogil:
    """Read the count at `at`, NOT_STATED if there is no digit, TOO_LARGE if it does not fit; returns where it ends."""
    cdef int digit
    count.value = NOT_STATED
    count.bound = EXACT
    if at >= stop or not is_digit(data[at]):
        return at
    count.value = 0
    while at < stop and is_digit(data[at]):
        digit = data[at] - c"0"
        if count.value > (INT64_MAX - digit) // 10:
            count.value = TOO_LARGE
            return at
        count.value = count.value * 10 + digit
        at += 1
    if at < stop:
        if data[at] == c"+":
            count.bound = AT_LEAST
        elif data[at] == c"-":
            count.bound = AT_MOST
        elif data[at] == c"~":
            count.bound = ABOUT
        if count.bound != EXACT:
            at += 1
    return at


cdef inline int read_line(
    Bytes data, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t known, Line *line
) noexcept nogil:
    """Take apart the line at `start`, whose first `known` bytes are known to be of its key; says what the line is.

    RECORD fills all of `line`; HEADER and BLANK fill `next`; IRREGULAR fills `key_length` at most.
    """
    cdef Py_ssize_t at = start + known
    cdef unsigned char first
    cdef bint slash
    if known == 0:
        first = data[start]
        if first == c"\n" or (first == c"\r" and (start + 1 == stop or data[start + 1] == c"\n")):
            line.next = line_end(data, start, stop) + 1
            return BLANK
        if first == c"!" or first == c"@":
            line.next = line_end(data, start, stop) + 1
            return HEADER
        if first == c'"' or first == c"#" or first == c"{" or first <= c" ":
            return IRREGULAR
    at = token_end(data, at, stop)
    line.key_length = at - start
    if at >= stop or data[at] != c" ":
        return IRREGULAR
    at = read_count(data, at + 1, stop, &line.m)
    line.r.value = NOT_STATED
    line.r.bound = EXACT
    slash = at < stop and data[at] == c"/"
    if slash:
        at = read_count(data, at + 1, stop, &line.r)
    if line.m.value == TOO_LARGE or line.r.value == TOO_LARGE or (line.m.value == NOT_STATED and not slash):
        return IRREGULAR
    line.block = 0
    if at < stop and data[at] == c" ":
        while at < stop and data[at] == c" ":
            at += 1
        if at < stop and data[at] == c"{":
            line.block = at - start
            at = line_end(data, at, stop)
            if data[at - 1] == c"\r":
                at -= 1
    line.length = at - start
    if at < stop and data[at] == c"\r":
        at += 1
    if at < stop and data[at] != c"\n":
        return IRREGULAR
    line.next = at + 1
    return RECORD


cdef inline int64_t lines_in(Bytes data, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """How many lines begin in [start, stop)."""
    cdef int64_t count = 0
    cdef Py_ssize_t at
    for at in range(start, stop):
        count += data[at] == c"\n"
    if stop > start and data[stop - 1] != c"\n":
        count += 1
    return count


cdef inline Py_ssize_t compare_keys(
    Bytes data, Py_ssize_t a, Py_ssize_t a_length, Py_ssize_t b, Py_ssize_t b_length
) noexcept nogil:
    """Two keys of one file by bytes: negative, zero, positive. Neighbours share much, so words are compared."""
    cdef Py_ssize_t shared = min(a_length, b_length)
    cdef Py_ssize_t i = common_bytes(data + a, data + b, shared)
    if i < shared:
        return <int>data[a + i] - <int>data[b + i]
    return a_length - b_length


cdef inline bint closes(int bound) noexcept nogil:
    """Whether a count with this bound cannot be larger, so that 0 means none."""
    return bound == EXACT or bound == AT_MOST


cdef inline Count add_counts(Count a, Count b) noexcept nogil:
    """The disjoint sum of two counts, as `formats.frequency.Count.__add__`."""
    cdef Count total
    if b.value == 0 and closes(b.bound):
        return a
    if a.value == 0 and closes(a.bound):
        return b
    total.value, total.bound = NOT_STATED, EXACT
    if a.value < 0 and b.value < 0:
        return total
    if a.value < 0:
        a.value, a.bound = 0, AT_LEAST
    if b.value < 0:
        b.value, b.bound = 0, AT_LEAST
    cdef int bound = a.bound | b.bound
    if a.value > INT64_MAX - b.value:
        if bound != AT_MOST:
            total.value = INT64_MAX
            total.bound = bound if bound != EXACT else AT_LEAST
        return total
    total.value, total.bound = a.value + b.value, bound
    return total


cdef inline Py_ssize_t put_count(unsigned char *text, Py_ssize_t at, Count count) noexcept nogil:
    """Write a count, or nothing for one that is not stated; returns where it ends."""
    if count.value < 0:
        return at
    at = put_number(text, at, count.value)
    if count.bound != EXACT:
        text[at] = c"+" if count.bound == AT_LEAST else c"-" if count.bound == AT_MOST else c"~"
        at += 1
    return at


# Bounds of both counts in one small number, as columns of keys hold them: URI-Ms in the low two bits, then URI-Rs.

cdef inline int pack_bounds(Count m, Count r) noexcept nogil:
    return m.bound | (r.bound << 2)


cdef inline int m_bound(int bounds) noexcept nogil:
    return bounds & 3


cdef inline int r_bound(int bounds) noexcept nogil:
    return bounds >> 2


cdef inline Py_ssize_t address_length(Bytes host, Py_ssize_t length) noexcept nogil:
    """Length of the IP address that is the first segment of a host (what stands before `)`); 0 if that is a name.

    Like `uris.keys.segments`: a bracket, as in `[2001:db8::1]:80`, or four numbers up to 255 with commas between, as in
    `4,3,2,1`, `4,3,2,1:80` and `4,3,2,1,www`, but not in `4,3,2,999`.
    """
    cdef Py_ssize_t i = 0
    cdef int octets = 0, digits, value
    if length > 0 and host[0] == c"[":
        i = find_byte(host, c"]", 0, length)
        while i < length and host[i] != c":" and host[i] != c",":
            i += 1
        return i
    while octets < 4:
        digits = value = 0
        while i < length and is_digit(host[i]) and digits < 4:
            value = value * 10 + (host[i] - c"0")
            digits += 1
            i += 1
        if digits == 0 or digits > 3 or value > 255:
            return 0
        octets += 1
        if octets < 4:
            if i >= length or host[i] != c",":
                return 0
            i += 1
    return i if i == length or host[i] == c":" or host[i] == c"," else 0
