"""The lines of a map as columns, its keys as a tree in arrays, where a map can be cut; the walk is in `walk.pxd`."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from recollect.kernels.lines cimport Line, IRREGULAR, RECORD, compare_keys, line_end, pack_bounds, read_line
from recollect.kernels.words cimport Bytes, common_bytes, find_byte
from recollect.kernels.walk cimport (
    Key, NO_WILDCARD, ROOT, Walk, end_walk, goes_on, reserve, nearest, start_walk, step_down, take_key, wildcard_kind,
)

# Why a scan stopped, next to IRREGULAR.
cpdef enum:
    UNSORTED = -1


def scan_table(
    const unsigned char[::1] data,
    int64_t[::1] offsets,
    int32_t[::1] key_lengths,
    int32_t[::1] line_lengths,
    int64_t[::1] uri_m,
    int64_t[::1] uri_r,
    unsigned char[::1] bounds,
    int32_t[::1] blocks,
    unsigned char[::1] wild,
):
    """Fill the columns of a table; returns (rows, status, offset): 0, IRREGULAR, or UNSORTED where keys do not rise."""
    cdef Py_ssize_t stop = data.shape[0]
    cdef Py_ssize_t at = 0, row = 0
    cdef int kind = 0
    cdef Line line
    if stop == 0:
        return 0, 0, 0
    cdef Bytes text = &data[0]
    with nogil:
        while at < stop:
            kind = read_line(text, at, stop, 0, &line)
            if kind == IRREGULAR:
                break
            if kind == RECORD:
                if row and compare_keys(text, offsets[row - 1], key_lengths[row - 1], at, line.key_length) >= 0:
                    kind = UNSORTED
                    break
                offsets[row] = at
                key_lengths[row] = <int32_t>line.key_length
                line_lengths[row] = <int32_t>line.length
                uri_m[row] = line.m.value
                uri_r[row] = line.r.value
                bounds[row] = <unsigned char>pack_bounds(line.m, line.r)
                blocks[row] = <int32_t>line.block
                wild[row] = _is_wildcard(text + at, line.key_length)
                row += 1
            at = line.next
    return row, kind if kind in (IRREGULAR, UNSORTED) else 0, at


cdef inline bint _is_wildcard(Bytes key, Py_ssize_t length) noexcept nogil:
    if key[length - 1] != c"*":
        return False
    return wildcard_kind(key, length, find_byte(key, c")", 0, length)) != NO_WILDCARD


def build_tree(
    const unsigned char[::1] data,
    const int64_t[::1] offsets,
    const int32_t[::1] key_lengths,
    Py_ssize_t max_host,
    Py_ssize_t max_path,
    int32_t[::1] parent,
    int32_t[::1] row_of,
    int32_t[::1] name_length,
    unsigned char[::1] kind,
    unsigned char[::1] depth,
    int32_t[::1] node_of,
):
    """Nodes in the order in which byte-sorted rows open them: parents before children, the root first.

    Returns the number of nodes, or -1 when the arrays are too small for them.
    """
    cdef Walk walk
    cdef int32_t *numbers = NULL  # of the open nodes, by slot
    cdef Py_ssize_t nodes
    memset(&walk, 0, sizeof(Walk))
    parent[0] = row_of[0] = -1
    name_length[0] = 0
    kind[0] = ROOT
    depth[0] = 0
    if offsets.shape[0] == 0:
        return 1
    with nogil:
        nodes = 0
        if start_walk(&walk, max_host, max_path):
            nodes = _build(
                &walk, &numbers, &data[0], offsets, key_lengths, parent, row_of, name_length, kind, depth, node_of
            )
        end_walk(&walk)
        free(numbers)
    if nodes == 0:
        raise MemoryError
    return nodes


cdef Py_ssize_t _build(
    Walk *walk,
    int32_t **numbers,
    Bytes data,
    const int64_t[::1] offsets,
    const int32_t[::1] key_lengths,
    int32_t[::1] parent,
    int32_t[::1] row_of,
    int32_t[::1] name_length,
    unsigned char[::1] kind,
    unsigned char[::1] depth,
    int32_t[::1] node_of,
) noexcept nogil:
    """The nodes of all rows; 0 without memory, -1 when the arrays are too small."""
    cdef Py_ssize_t row, slot, nodes = 1, known = 0, common = -1
    cdef int32_t *bigger
    cdef Key key
    memset(&key, 0, sizeof(Key))
    for row in range(offsets.shape[0]):
        if row:
            common = common_bytes(
                data + offsets[row - 1], data + offsets[row], min(key_lengths[row], key_lengths[row - 1])
            )
        take_key(&key, data, offsets[row], key_lengths[row], common)
        while walk.top > 0 and not goes_on(&walk.nodes[walk.top], &key, common):
            walk.top -= 1
        if not reserve(walk, key.length + 2):
            return 0
        if known < walk.capacity:
            bigger = <int32_t *>realloc(numbers[0], <size_t>walk.capacity * sizeof(int32_t))
            if bigger == NULL:
                return 0
            numbers[0], known = bigger, walk.capacity
            bigger[0] = 0
        slot = nearest(walk, &key)
        while walk.nodes[slot].length < key.name:
            if nodes == parent.shape[0]:
                return -1
            parent[nodes] = numbers[0][slot]
            slot = step_down(walk, slot, &key)
            row_of[nodes] = <int32_t>row
            name_length[nodes] = <int32_t>walk.nodes[slot].length
            kind[nodes] = <unsigned char>walk.nodes[slot].kind
            depth[nodes] = <unsigned char>min(walk.nodes[slot].depth, 255)
            numbers[0][slot] = <int32_t>nodes
            nodes += 1
        node_of[row] = numbers[0][slot]
    return nodes


# Where a map can be cut, so that its parts can be worked on apart.


cdef bint _node_goes_on(Bytes data, Py_ssize_t first, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t size) noexcept nogil:
    """Whether a node named by the first `size` bytes at `first` may still go on at the line at `at`."""
    if at + size >= stop:
        return False
    return common_bytes(data + first, data + at, size) == size and data[at + size] <= c":"


cdef Py_ssize_t _line_start(Bytes data, Py_ssize_t at, Py_ssize_t floor) noexcept nogil:
    while at > floor and data[at - 1] != c"\n":
        at -= 1
    return at


cdef Py_ssize_t _end_of_node(Bytes data, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t size) noexcept nogil:
    """The first line after `at` where the node named by its first `size` bytes does not go on; by growing steps."""
    cdef Py_ssize_t low = at, high = stop, step = 4096, probe
    while low + step < stop:
        probe = _line_start(data, low + step, low)
        if probe > low:
            if not _node_goes_on(data, at, probe, stop, size):
                high = probe
                break
            low = probe
        step *= 2
    while low < high:
        probe = _line_start(data, (low + high) >> 1, low)
        if _node_goes_on(data, at, probe, stop, size):
            low = min(line_end(data, probe, high) + 1, high)
        else:
            high = probe
    return low


def safe_cut(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t want, bint whole_tlds):
    """The first start of a line at or after `want` where no node that may roll up goes on across it; else `stop`."""
    if start < 0 or stop > data.shape[0] or want < 0:
        raise IndexError("not a part of the data")
    if start >= stop:
        return min(want, stop)
    cdef Bytes text = &data[0]
    cdef Py_ssize_t at = min(want, stop)
    cdef Py_ssize_t before, shared, first, size
    with nogil:
        while start < at < stop and text[at - 1] != c"\n":
            at += 1
        while start < at < stop:
            before = _line_start(text, at - 1, start)
            shared = common_bytes(text + before, text + at, min(at - before, stop - at))
            first = 0
            if not whole_tlds:
                # Names shorter than a second host segment are of top-level domains, which do not roll up.
                while first < shared and not _ends_segment(text[at + first]):
                    first += 1
                first = first + 1 if first == shared or text[at + first] == c"," else 0
            size = first + 1
            while size <= shared and at + size < stop and text[at + size] > c":":
                size += 1
            if size > shared or at + size >= stop:
                break
            at = _end_of_node(text, at, stop, size)
    return at


cdef inline bint _ends_segment(unsigned char byte) noexcept nogil:
    return byte == c"," or byte == c")" or byte == c":"


def lines_rise(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t at, Py_ssize_t stop):
    """Whether the key of the line before `at` is below the key of the line at `at`."""
    cdef Py_ssize_t before = at - 1, i = 0
    if not 0 <= start < at <= stop <= data.shape[0]:
        raise IndexError("not a part of the data")
    while before > start and data[before - 1] != c"\n":
        before -= 1
    while at + i < stop and data[before + i] == data[at + i] and data[at + i] > c" ":
        i += 1
    return at + i < stop and data[at + i] > c" " and (data[before + i] <= c" " or data[before + i] < data[at + i])
