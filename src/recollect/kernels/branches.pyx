"""From the lines of a map to its branches, in one pass; see `profiles.compaction.branches` for what a branch is.

A node with one held exact key waits on the stack of the walk; if it is closed without a child it is a plain leaf and
is only counted at its parent, if a child comes it becomes a branch. So branches are numbered in the order in which they
get their first child, wildcard or void: parents before children, and the same whether a map is scanned whole or in
parts.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from recollect.kernels.branches cimport (
    ABSENT, AGAIN, Branch, HELD, JSON, LEAF, NONE, OPEN, OWN, TOTAL, VOID, WILD, ZERO,
)
from recollect.kernels.counts cimport Total, add_totals, is_void, stated_total, total_of
from recollect.kernels.lines cimport Line, IRREGULAR, RECORD, m_bound, pack_bounds, r_bound, read_line, token_end
from recollect.kernels.walk cimport (
    HOST, Key, NO_WILDCARD, PATH, Walk, end_walk, goes_on, reserve, nearest, start_walk, step_down, take_key,
)
from recollect.kernels.words cimport Bytes, common_bytes, is_digit

# Why `run` came back: all is done, a fault (or IRREGULAR) at the line at `at`, or the array of branches is too small.
cpdef enum:
    DONE = 0
    UNSORTED = -1
    BRANCHES_FULL = 10

cdef enum:
    NO_MEMORY = 11


cdef struct Open:  # what is known of an open node; before it is a branch, `row` is its only record or -1
    Py_ssize_t branch
    Py_ssize_t row
    Py_ssize_t length
    Total total


cdef inline Total _total(const Branch *branch) noexcept nogil:
    cdef Total total
    total.m.value, total.m.bound = branch.total[0], m_bound(<int>branch.bound)
    total.r.value, total.r.bound = branch.total[1], r_bound(<int>branch.bound)
    return total


cdef inline void _set_total(Branch *branch, Total total) noexcept nogil:
    branch.total[0], branch.total[1] = total.m.value, total.r.value
    branch.bound = pack_bounds(total.m, total.r)


cdef inline void _add_held(Branch *branch, const Open *node) noexcept nogil:
    """Count a held exact key at a branch."""
    branch.keys += 1
    branch.line_bytes += node.length + 1
    _set_total(branch, add_totals(_total(branch), node.total))


cdef class BranchScan:
    """A scan of the lines in [start, stop) into rows (where each is, its branch, its role) and branches."""

    cdef const unsigned char[::1] _data
    cdef int64_t[::1] _offsets
    cdef int32_t[::1] _row_branch
    cdef unsigned char[::1] _role
    cdef Branch[::1] _branch
    cdef Bytes _text
    cdef Py_ssize_t _stop
    cdef Walk _walk
    cdef Key _key
    cdef bint _begun
    cdef Open *_open
    cdef Py_ssize_t _open_capacity
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t branches

    def __cinit__(
        self,
        const unsigned char[::1] data,
        Py_ssize_t start,
        Py_ssize_t stop,
        int64_t[::1] offsets,
        int32_t[::1] row_branch,
        unsigned char[::1] role,
    ):
        if not 0 <= start <= stop <= data.shape[0]:
            raise IndexError("not a part of the data")
        self._data, self._stop, self.at = data, stop, start
        self._text = &data[0] if data.shape[0] else NULL
        self._offsets, self._row_branch, self._role = offsets, row_branch, role
        if not start_walk(&self._walk, INT64_MAX, INT64_MAX) or not self._ensure_capacity():
            raise MemoryError
        self._open[0].row = -1
        self._open[0].branch = 0
        self.branches = 1

    def __dealloc__(self):
        end_walk(&self._walk)
        free(self._open)

    def run(self, Branch[::1] branch):
        """Go on, into `branch`, which begins with what earlier calls wrote."""
        cdef int status
        self._branch = branch
        if not self._begun:
            memset(&branch[0], 0, sizeof(Branch))
            branch[0].up = -1
        with nogil:
            status = self._run()
        if status == NO_MEMORY:
            raise MemoryError
        return status

    cdef bint _ensure_capacity(self) noexcept nogil:
        cdef void *bigger
        if self._open_capacity < self._walk.capacity:
            bigger = realloc(self._open, <size_t>self._walk.capacity * sizeof(Open))
            if bigger == NULL:
                return False
            self._open, self._open_capacity = <Open *>bigger, self._walk.capacity
        return True

    cdef int _run(self) noexcept nogil:
        cdef Line line
        cdef Py_ssize_t common, slot
        cdef int kind
        cdef bint fresh
        while self.at < self._stop:
            common = 0
            if self._begun:
                common = common_bytes(
                    self._text + self._key.at, self._text + self.at, min(self._key.length, self._stop - self.at)
                )
            kind = read_line(self._text, self.at, self._stop, common, &line)
            if kind == IRREGULAR:
                return IRREGULAR
            if kind != RECORD:
                self.at = line.next
                continue
            if self._begun and not self._rises(&line, common):
                return UNSORTED
            # A key makes at most as many nodes as it has bytes.
            if self.branches + line.key_length + 2 > self._branch.shape[0]:
                return BRANCHES_FULL
            take_key(&self._key, self._text, self.at, line.key_length, common if self._begun else -1)
            self._begun = True
            while self._walk.top > 0 and not goes_on(&self._walk.nodes[self._walk.top], &self._key, common):
                self._close()
            if not reserve(&self._walk, self._key.length + 2) or not self._ensure_capacity():
                return NO_MEMORY
            self._offsets[self.rows] = self.at
            self._role[self.rows] = JSON if line.block else 0
            slot = nearest(&self._walk, &self._key)
            fresh = False
            while self._walk.nodes[slot].length < self._key.name:
                self._promote(slot)
                slot = step_down(&self._walk, slot, &self._key)
                self._open[slot].branch = self._open[slot].row = -1
                fresh = True
            self._take(slot, fresh, &line)
            self.rows += 1
            self.at = line.next
        while self._walk.top > 0:
            self._close()
        return DONE

    cdef bint _rises(self, const Line *line, Py_ssize_t common) noexcept nogil:
        if line.key_length == common:
            return False
        return common == self._key.length or self._text[self.at + common] > self._text[self._key.at + common]

    cdef void _close(self) noexcept nogil:
        """Take the top node off the stack; a leaf is counted at its parent."""
        cdef Open *node = &self._open[self._walk.top]
        cdef Py_ssize_t up
        if node.branch < 0:
            up = self._open[self._walk.nodes[self._walk.top].up].branch
            self._row_branch[node.row] = <int32_t>up
            self._branch[up].leaves += 1
            _add_held(&self._branch[up], node)
        self._walk.top -= 1

    cdef Py_ssize_t _promote(self, Py_ssize_t slot) noexcept nogil:
        """Make the node in a slot a branch, if it is none; returns its number. Its parent is one."""
        cdef Open *node = &self._open[slot]
        cdef Branch *branch
        if node.branch >= 0:
            return node.branch
        node.branch = self.branches
        self.branches += 1
        branch = &self._branch[node.branch]
        memset(branch, 0, sizeof(Branch))
        branch.up = self._open[self._walk.nodes[slot].up].branch
        branch.at, branch.length = self._walk.nodes[slot].at, self._walk.nodes[slot].length
        branch.kind, branch.depth = self._walk.nodes[slot].kind, self._walk.nodes[slot].depth
        if node.row >= 0:
            self._row_branch[node.row] = <int32_t>node.branch
            self._role[node.row] = OWN | (self._role[node.row] & JSON)
            branch.flags = HELD
            _add_held(branch, node)
        return node.branch

    cdef void _take(self, Py_ssize_t slot, bint fresh, const Line *line) noexcept nogil:
        """Note what a record says of its node."""
        cdef Open record
        cdef Branch *branch
        cdef Py_ssize_t at
        cdef bint void = is_void(line)
        cdef bint wild = self._key.wildcard != NO_WILDCARD
        record.branch, record.row, record.length, record.total = -1, self.rows, line.length, total_of(line)
        if fresh and not wild and not void:
            self._open[slot] = record
            return
        at = self._promote(slot)
        branch = &self._branch[at]
        self._row_branch[self.rows] = <int32_t>at
        if not wild and not void:
            branch.flags |= HELD
            self._role[self.rows] |= OWN
            _add_held(branch, &record)
        elif not wild:
            self._role[self.rows] |= AGAIN if branch.flags & ABSENT else ZERO
            branch.flags |= ABSENT
        elif void:
            self._role[self.rows] |= NONE
            branch.flags |= VOID
        else:
            self._role[self.rows] |= TOTAL
            branch.flags |= WILD
            branch.own = self.at


def add_total(Branch[::1] branch, Py_ssize_t at, int64_t uri_m, int64_t uri_r, int bounds):
    """Add a frequency to a branch's total."""
    cdef Total more
    more.m.value, more.m.bound = uri_m, m_bound(bounds)
    more.r.value, more.r.bound = uri_r, r_bound(bounds)
    _set_total(&branch[at], add_totals(_total(&branch[at]), more))


def sum_up(const unsigned char[::1] data, Branch[::1] branch, int64_t[::1] held_children, double[::1] size):
    """Bottom-up, once all rows are in: inclusive totals, children that hold something, held URIs if known; then
    top-down which branches are open. A wildcard covers everything below it."""
    cdef Py_ssize_t i, count = branch.shape[0]
    cdef Branch *one
    cdef Branch *up
    cdef Line line
    with nogil:
        for i in range(count - 1, -1, -1):
            one = &branch[i]
            held_children[i] += one.leaves
            size[i] += one.keys
            if one.flags & WILD:
                read_line(&data[0], one.own, data.shape[0], 0, &line)
                _set_total(one, stated_total(total_of(&line), _total(one)))
                size[i] = max(size[i], <double>(one.total[1] if one.total[1] >= 0 else one.total[0]), 1.0)
            if i > 0 and size[i] > 0:
                up = &branch[one.up]
                size[one.up] += size[i]
                held_children[one.up] += 1
                _set_total(up, add_totals(_total(up), _total(one)))
        for i in range(count):
            one = &branch[i]
            if one.flags & WILD or (i > 0 and branch[one.up].flags & OPEN and not one.flags & VOID):
                one.flags |= OPEN


def row_names(
    const unsigned char[::1] data, const int64_t[::1] offsets, int64_t[::1] lengths, unsigned char[::1] roots
):
    """The length of the name of each row's node: its key without trailing slashes; `roots` marks the roots of hosts,
    whose exact key has a slash after its name."""
    cdef Py_ssize_t row, at, end
    with nogil:
        for row in range(offsets.shape[0]):
            at = offsets[row]
            end = token_end(&data[0], at, data.shape[0])
            while end > at + 1 and data[end - 1] == c"/":
                end -= 1
            lengths[row] = end - at
            roots[row] = data[end - 1] == c")" and _first_paren(&data[at], end - at) == end - at - 1


cdef inline Py_ssize_t _first_paren(Bytes key, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at = 0
    while at < length and key[at] != c")":
        at += 1
    return at


# A log over a map: its nodes matched with branches and leaves.


def match(
    const unsigned char[::1] text,
    const int64_t[::1] starts,
    const int32_t[::1] lengths,
    const unsigned char[::1] log_kind,
    const int32_t[::1] ups,
    const unsigned char[::1] data,
    const int64_t[::1] offsets,
    const int32_t[::1] row_branch,
    const unsigned char[::1] role,
    const int32_t[::1] up,
    const int64_t[:] name_length,
    const unsigned char[::1] kind,
    int64_t[::1] first,
    int32_t[::1] branch,
    int64_t[::1] leaf,
):
    """For each node of the log (name in `text`) the branch of that name and kind, or the row of a plain leaf.

    The rows that begin with a name are of its node, with one exception: between the rows of a host of numbers (`4,3`)
    lie those of addresses (`4,3,2,1`), which do not belong to it. They are passed over, each of them once for every
    depth of the log's tree at most.
    """
    cdef Py_ssize_t i, row, at, end
    cdef Bytes name
    cdef bint among_addresses
    cdef unsigned char separator
    cdef unsigned char *separators = [0, c")", c",", c"/", c":"]
    cdef int which
    branch[0] = 0
    with nogil:
        for i in range(1, starts.shape[0]):
            if branch[ups[i]] < 0:
                continue
            name = &text[starts[i]]
            among_addresses = log_kind[i] == HOST and is_digit(name[0])
            # What may follow a name, in the order of bytes: nothing, then a separator. Only `/` follows in paths.
            for which in range(5):
                separator = separators[which]
                if separator and (separator == c"/") != (log_kind[i] == PATH):
                    continue
                row = _find(name, lengths[i], separator, data, offsets, first[ups[i]])
                while row >= 0:
                    end = token_end(&data[0], offsets[row], data.shape[0])
                    if role[row] & ~JSON == LEAF and end - offsets[row] - (data[end - 1] == c"/") <= lengths[i]:
                        leaf[i] = row
                        break
                    at = row_branch[row]
                    while at > 0 and name_length[at] > lengths[i]:
                        at = up[at]
                    if name_length[at] == lengths[i] and kind[at] == log_kind[i]:
                        branch[i] = <int32_t>at
                        first[i] = row
                        break
                    row += 1
                    if not among_addresses or row == offsets.shape[0]:
                        row = -1
                    elif _order(name, lengths[i], separator, data, offsets[row]) != 0:
                        row = -1
                if row >= 0:
                    break


cdef Py_ssize_t _find(
    Bytes name,
    Py_ssize_t length,
    unsigned char separator,
    const unsigned char[::1] data,
    const int64_t[::1] offsets,
    Py_ssize_t low,
) noexcept nogil:
    """The first row from `low` on whose key is the name (separator 0) or begins with name and separator; else -1."""
    cdef Py_ssize_t count = offsets.shape[0], high = low, step = 1, middle
    while high < count and _order(name, length, separator, data, offsets[high]) < 0:
        low = high + 1
        high += step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) // 2
        if _order(name, length, separator, data, offsets[middle]) < 0:
            low = middle + 1
        else:
            high = middle
    if low < count and _order(name, length, separator, data, offsets[low]) == 0:
        return low
    return -1


cdef int _order(
    Bytes name, Py_ssize_t length, unsigned char separator, const unsigned char[::1] data, Py_ssize_t offset
) noexcept nogil:
    """A row's key against a name with a separator: below 0 if it comes before, 0 if it is or begins with it. A key
    ends at a space, which is below all of its bytes."""
    cdef Bytes key = &data[0] + offset
    cdef Py_ssize_t limit = min(length, data.shape[0] - offset)
    cdef Py_ssize_t i = common_bytes(key, name, limit)
    if i < length:
        return <int>(key[i] if i < limit else 0) - <int>name[i]
    return <int>key[length] - <int>(separator if separator else c" ")
