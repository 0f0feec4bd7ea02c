"""Statistics: sorted records to counts per SURT and month, sorted keys to the shape of the tree.

Levels: host segments count from 1 (a port is a segment below its host, an IP address is one segment), path segments
from 1, the root of a host's paths is level 0 of the paths.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from recollect.kernels.records cimport HEADER, Head, head_at
from recollect.kernels.walk cimport (
    Key, Node, PATH, Walk, end_walk, goes_on, reserve, nearest, start_walk, step_down, take_key,
)
from recollect.kernels.words cimport Bytes, common_bytes, same_bytes

cpdef enum:
    FIRST_YEAR = 1900
    YEARS = 300
    # Deepest host that is counted separately for keys of policies; policies know 1 to 5 and "any".
    POLICY_HOSTS = 8
    POLICY_PATHS = 6

# Families of levels.
cpdef enum:
    OF_HOSTS = 0
    OF_PATHS = 1

cdef enum:
    CLOSED = 1 << 18  # nodes that wait to be taken


# Records: SURTs with their captures by month.


cdef inline int64_t _month_of(Bytes label, Py_ssize_t length) noexcept nogil:
    """Months since FIRST_YEAR, or -1 without a (usable) time."""
    cdef int64_t value = 0, month, year
    cdef Py_ssize_t i
    if length != 6:
        return -1
    for i in range(6):
        value = value * 10 + label[i] - c"0"
    month = min(max(value % 100, 1), 12)
    year = value // 100 - FIRST_YEAR
    return year * 12 + month - 1 if 0 <= year < YEARS else -1


cdef inline bint _same_key(Bytes a, Bytes b) noexcept nogil:
    cdef Head mine = head_at(a), yours = head_at(b)
    return mine.key == yours.key and same_bytes(a + HEADER, b + HEADER, mine.key)


cdef inline bint _same_surt(Bytes a, Bytes b) noexcept nogil:
    cdef Head mine = head_at(a), yours = head_at(b)
    return (
        mine.key == yours.key
        and mine.rest == yours.rest
        and same_bytes(a + HEADER, b + HEADER, mine.key + mine.rest)
    )


cdef inline Py_ssize_t _size(Head head) noexcept nogil:
    return <Py_ssize_t>HEADER + head.key + head.rest + head.label


def last_surt(const unsigned char[::1] records, Py_ssize_t begin):
    """Where the records of the last SURT in records[begin:] begin."""
    cdef Py_ssize_t at = begin, start = begin
    cdef Bytes base
    if begin >= records.shape[0]:
        return begin
    base = &records[0]
    with nogil:
        while at < records.shape[0]:
            if not _same_surt(base + at, base + start):
                start = at
            at += _size(head_at(base + at))
    return start


def tabulate(
    const unsigned char[::1] records,
    Py_ssize_t begin,
    Py_ssize_t end,
    int64_t[::1] surt_at,
    int64_t[::1] surt_m,
    unsigned char[::1] new_key,
    int64_t[:, ::1] months,
):
    """SURTs of records[begin:end]: where each begins, its captures, whether it begins a new key.

    `months` gets captures, URI-Rs seen first, and (in the month of January) URI-Rs seen in the year. If `begin` is not
    0, the record before is at 0. Returns the number of SURTs and where the last record begins.
    """
    cdef Bytes base = &records[0]
    cdef Py_ssize_t at = begin, count = 0, before = 0 if begin > 0 else -1
    cdef int64_t month, year_before = -1
    cdef bint same_key, same_surt
    cdef Head head
    with nogil:
        while at < end:
            head = head_at(base + at)
            same_key = before >= 0 and _same_key(base + at, base + before)
            same_surt = count > 0 and same_key and _same_surt(base + at, base + before)
            if not same_surt:
                surt_at[count], surt_m[count], new_key[count] = at, 0, not same_key
                count += 1
            surt_m[count - 1] += head.captures
            month = _month_of(base + at + HEADER + head.key + head.rest, head.label)
            if month >= 0:
                months[0, month] += head.captures
                if not same_surt or year_before < 0:
                    months[1, month] += 1
                if not same_surt or month // 12 != year_before:
                    months[2, month // 12 * 12] += 1
            year_before = month // 12 if month >= 0 else -1
            before = at
            at += _size(head)
    return count, before


# Keys: the shape of their tree.


cdef struct OpenNode:  # what is known of an open node
    int64_t keys      # at it and below it
    int64_t children
    int policies      # bit n: it has a key of its own at Pn
    bint cut          # of a host: there are hosts below it
    bint empty        # of a path: its segment is empty


cdef struct Closed:
    int64_t family
    int64_t level
    int64_t keys
    int64_t children


cdef inline int _family(const Node *node) noexcept nogil:
    return OF_PATHS if node.kind == PATH else OF_HOSTS


cdef inline Py_ssize_t _level(const Node *node) noexcept nogil:
    return node.depth - 1 if node.kind == PATH else node.depth


cdef class TreeWalk:
    """Follows sorted keys, each once, and counts nodes; see `statistics.pyi`."""

    cdef int64_t[::1] _host_depths
    cdef int64_t[::1] _path_depths
    cdef int64_t[::1] _domains
    cdef int64_t[:, ::1] _policies
    cdef int64_t[:, ::1] _overlap
    cdef int64_t[::1] _cut
    cdef readonly Py_ssize_t addresses
    cdef Walk _walk
    cdef Key _key
    cdef OpenNode *_nodes
    cdef Py_ssize_t _node_capacity
    cdef Closed *_closed
    cdef Py_ssize_t _closed_count
    cdef Py_ssize_t _closed_capacity
    cdef unsigned char *_last  # the key before, which has to outlive its text
    cdef Py_ssize_t _last_length
    cdef Py_ssize_t _last_capacity
    cdef Py_ssize_t _tld_length

    def __cinit__(
        self,
        int64_t[::1] host_depths,
        int64_t[::1] path_depths,
        int64_t[::1] domains,
        int64_t[:, ::1] policies,
        int64_t[:, ::1] overlap,
        int64_t[::1] cut,
    ):
        self._host_depths, self._path_depths, self._domains = host_depths, path_depths, domains
        self._policies, self._overlap, self._cut = policies, overlap, cut
        self._last_length = -1
        if not start_walk(&self._walk, INT64_MAX, INT64_MAX) or not self._ensure_capacity(0):
            raise MemoryError

    def __dealloc__(self):
        end_walk(&self._walk)
        free(self._nodes)
        free(self._closed)
        free(self._last)

    def add(
        self,
        const unsigned char[::1] text,
        const int64_t[::1] key_at,
        const int64_t[::1] key_length,
        Py_ssize_t begin,
        int64_t[::1] tlds,
    ):
        """Follow the keys from number `begin` on, until many nodes have been closed; returns how far it came."""
        cdef Py_ssize_t number = begin
        cdef bint capacity = True
        with nogil:
            while number < key_at.shape[0] and self._closed_count < CLOSED:
                capacity = self._ensure_capacity(key_length[number])
                if not capacity:
                    break
                tlds[number] = self._add(&text[key_at[number]], key_length[number])
                number += 1
        if not capacity:
            raise MemoryError
        return number

    def close_all(self):
        """Close what is still open, when all keys have been seen."""
        if not self._ensure_capacity(self._walk.top):
            raise MemoryError
        while self._walk.top > 0:
            self._close()

    def take_closed(self):
        """Four numbers for each node closed since it was last called: its family, its level, its keys, its children."""
        rows = PyBytes_FromStringAndSize(<char *>self._closed, self._closed_count * <Py_ssize_t>sizeof(Closed))
        self._closed_count = 0
        return rows

    @property
    def outermost_paths(self):
        """Bit n: the outermost node that is still open has a key of its own, not only of its children, at Pn."""
        cdef int bits = 0
        if self._walk.top > 0:
            bits = self._nodes[1].policies
        if self._walk.top > 1 and self._walk.nodes[2].kind == PATH:
            bits |= self._nodes[2].policies
        return bits

    cdef bint _ensure_capacity(self, Py_ssize_t length) noexcept nogil:
        """Reserve space for what a key of this length adds: at most as many nodes as bytes are opened or closed."""
        cdef Py_ssize_t capacity
        cdef void *bigger
        if not reserve(&self._walk, length + 4):
            return False
        if self._node_capacity < self._walk.capacity:
            bigger = realloc(self._nodes, <size_t>self._walk.capacity * sizeof(OpenNode))
            if bigger == NULL:
                return False
            self._nodes, self._node_capacity = <OpenNode *>bigger, self._walk.capacity
        if self._closed_count + self._walk.capacity > self._closed_capacity:
            capacity = 2 * self._closed_capacity + self._walk.capacity
            bigger = realloc(self._closed, <size_t>capacity * sizeof(Closed))
            if bigger == NULL:
                return False
            self._closed, self._closed_capacity = <Closed *>bigger, capacity
        if length >= self._last_capacity:
            bigger = realloc(self._last, <size_t>(2 * length + 256))
            if bigger == NULL:
                return False
            self._last, self._last_capacity = <unsigned char *>bigger, 2 * length + 256
        return True

    cdef Py_ssize_t _add(self, Bytes text, Py_ssize_t length) noexcept nogil:
        """Follow a key; returns the length of its top-level domain where that changes, else 0."""
        cdef Py_ssize_t common = 0, slot, tld, changed
        if self._last_length > 0:
            common = common_bytes(self._last, text, min(length, self._last_length))
        memcpy(self._last + common, text + common, <size_t>(length - common))
        take_key(&self._key, self._last, 0, length, common if self._last_length >= 0 else -1)
        self._last_length = length
        while self._walk.top > 0 and not goes_on(&self._walk.nodes[self._walk.top], &self._key, common):
            self._close()
        slot = nearest(&self._walk, &self._key)
        while self._walk.nodes[slot].length < self._key.name:
            slot = step_down(&self._walk, slot, &self._key)
            self._open(slot)
        if self._walk.nodes[slot].kind != PATH:
            slot = self._open_paths(slot)
        tld = self._count(slot)
        changed = 0 if self._tld_length == tld and common >= tld else tld
        self._tld_length = tld
        return changed

    cdef void _open(self, Py_ssize_t slot) noexcept nogil:
        cdef Node *node = &self._walk.nodes[slot]
        cdef OpenNode *state = &self._nodes[slot]
        state.keys = state.children = 0
        state.policies = 0
        state.cut = False
        state.empty = node.kind == PATH and node.depth > 1 and self._last[node.length - 1] == c"/"
        if node.up > 0 and _family(&self._walk.nodes[node.up]) == _family(node):
            self._nodes[node.up].children += 1

    cdef Py_ssize_t _open_paths(self, Py_ssize_t slot) noexcept nogil:
        """The root of the paths of a key that ends with its host, without `)`."""
        cdef Node *node
        self._walk.top += 1
        node = &self._walk.nodes[self._walk.top]
        node.at, node.length, node.depth, node.up, node.kind = 0, self._key.length, 1, slot, PATH
        self._open(self._walk.top)
        return self._walk.top

    cdef Py_ssize_t _count(self, Py_ssize_t slot) noexcept nogil:
        """Count a key at its node and at all above it; returns the length of its top-level domain."""
        cdef Py_ssize_t[POLICY_PATHS] places  # its nodes in paths, by level
        cdef Py_ssize_t depth = _level(&self._walk.nodes[slot])
        cdef Py_ssize_t host_level = 0, tld = 0, level
        cdef Node *node
        cdef OpenNode *state
        while slot > 0:
            node, state = &self._walk.nodes[slot], &self._nodes[slot]
            level = _level(node)
            state.keys += 1
            if node.kind == PATH:
                if level < POLICY_PATHS:
                    places[level] = slot
                if level == 0 and state.keys == 1 and self._is_address():
                    self.addresses += 1
            elif host_level == 0:
                host_level = level
            elif not state.cut:
                state.cut = True
                self._cut[min(level, POLICY_HOSTS)] += 1
            if node.depth == 1 and node.kind != PATH:
                tld = node.length
            slot = node.up
        self._host_depths[min(host_level, self._host_depths.shape[0] - 1)] += 1
        self._path_depths[min(depth, self._path_depths.shape[0] - 1)] += 1
        self._count_policies(places, depth, min(host_level, POLICY_HOSTS))
        return tld

    cdef bint _is_address(self) noexcept nogil:
        """Whether the host of the key is an IP address, with a port or without."""
        cdef Py_ssize_t end = self._key.address
        return end > 0 and (end == self._key.host or self._last[end] == c":")

    cdef void _count_policies(
        self, const Py_ssize_t *places, Py_ssize_t depth, Py_ssize_t host_level
    ) noexcept nogil:
        """Count the key of each policy with n path segments, if it is new. Empty segments at the end are cut."""
        cdef Py_ssize_t n, level
        cdef OpenNode *state
        for n in range(POLICY_PATHS):
            level = min(n, depth)
            while level > 0 and self._nodes[places[level]].empty:
                level -= 1
            state = &self._nodes[places[level]]
            if not state.policies >> n & 1:
                state.policies |= 1 << n
                self._policies[host_level, n] += 1

    cdef void _close(self) noexcept nogil:
        """Take the top node off the stack and note what it was."""
        cdef Node *node = &self._walk.nodes[self._walk.top]
        cdef OpenNode *state = &self._nodes[self._walk.top]
        cdef Closed *closed = &self._closed[self._closed_count]
        cdef Py_ssize_t level = _level(node), n
        if node.kind == PATH:
            if level == 0 and node.up > 0:
                self._nodes[node.up].policies |= state.policies
                self._domains[min(self._walk.nodes[node.up].depth, self._domains.shape[0] - 1)] += 1
        elif state.cut:
            for n in range(POLICY_PATHS):
                if state.policies >> n & 1:
                    self._overlap[min(level, POLICY_HOSTS), n] += 1
        closed.family, closed.level, closed.keys, closed.children = _family(node), level, state.keys, state.children
        self._closed_count += 1
        self._walk.top -= 1
