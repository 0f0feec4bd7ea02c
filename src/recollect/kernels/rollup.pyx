"""Compaction by weights: which nodes roll up, and what is written; see `profiles.compaction.weights` for the rules.

One pass over the lines walks the tree (`walk.pxd`) and keeps, by slot, what is known of the nodes that can still go on.
Output lines wait as *entries* while a node above them is open that may still roll up; a node that rolls up takes back
the entries below it. When no such node is open, the entries are written.

JSON blocks are merged by the caller, who hears of them by events.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove, memset

from recollect.kernels.counts cimport Total, add_totals, is_void, stated_total, total_of
from recollect.kernels.lines cimport HEADER, Line, IRREGULAR, RECORD, put_count, read_line
from recollect.kernels.walk cimport (
    HOST, Key, NO_WILDCARD, Node, PATH, Walk, end_walk, goes_on, reserve, nearest, start_walk,
    step_down, take_key,
)
from recollect.kernels.words cimport Bytes, common_bytes, is_digit

# Why `run` came back: all is done, the caller's turn, or a fault (next to IRREGULAR) at the line at `at`.
cpdef enum:
    DONE = 0
    UNSORTED = -1
    PAUSED = 14

cdef enum:
    NO_MEMORY = 15

# Events for the caller, who merges JSON: a line's block or a wildcard's own (node, where it begins, where it ends), a
# node closed (node, parent or 0, flags), a rolled-up line written (node, where in the output its block belongs).
cpdef enum:
    EVENT_LINE = 0
    EVENT_OWN = 1
    EVENT_CLOSE = 2
    EVENT_EMIT = 3

# Flags of a closed node: it rolled up and stays; something held below it has no block of its own.
cpdef enum:
    CLOSE_KEPT = 1
    CLOSE_BARE = 2

# What an entry is: a rolled-up wildcard of paths or (IS_HOST) hosts, else a line of the input. An impure void has
# something held below it, a dead one is not written.
cdef enum:
    IS_ROLLUP = 1
    IS_VOID = 2
    IS_WILD = 4
    IS_IMPURE = 8
    IS_DEAD = 16
    IS_HOST = 32

# The wildcard of a node in the input: none, a total, a void.
cdef enum:
    OWN_NONE = 0
    OWN_TOTAL = 1
    OWN_VOID = 2


cdef struct Known:  # what is known of an open node
    Py_ssize_t children     # that hold something
    Py_ssize_t first_entry  # entries from here on may be below it
    Py_ssize_t blocks      # the number by which the caller knows its JSON blocks; 0: there are none
    Total sum              # of what is below it
    Total own              # of its wildcard in the input
    int wildcard           # OWN_...
    bint rollable          # its depth allows it
    bint rolled            # it has too many children
    bint covered           # a node above it rolled up
    bint held              # something held is at it or below it
    bint wanted            # its blocks may be needed by a node that may roll up
    bint bare              # something held at it or below it has no block


cdef struct Entry:
    Py_ssize_t at
    Py_ssize_t key_length
    Py_ssize_t line_length
    Py_ssize_t blocks
    Total total
    int flags


cdef struct Event:
    Py_ssize_t node
    Py_ssize_t first
    Py_ssize_t second
    int what


cdef class Rollup:
    """A compaction of the lines in [start, stop)."""

    cdef const unsigned char[::1] _data
    cdef const double[::1] _host_cutoffs
    cdef const double[::1] _path_cutoffs
    cdef int64_t[:, :, ::1] _tally
    cdef Bytes _text
    cdef Py_ssize_t _stop
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t lines
    cdef readonly Py_ssize_t written
    cdef readonly Py_ssize_t rollups
    cdef Walk _walk
    cdef Key _key
    cdef bint _begun
    cdef Py_ssize_t _pending  # open nodes that may still roll up
    cdef Py_ssize_t _next_blocks
    cdef Known *_known
    cdef Py_ssize_t _known_capacity
    cdef Entry *_entries
    cdef Py_ssize_t _entry_count
    cdef Py_ssize_t _entry_capacity
    cdef Event *_events
    cdef Py_ssize_t _event_count
    cdef Py_ssize_t _event_capacity
    cdef unsigned char *_out
    cdef Py_ssize_t _out_size
    cdef Py_ssize_t _out_capacity

    def __cinit__(
        self,
        const unsigned char[::1] data,
        Py_ssize_t start,
        Py_ssize_t stop,
        const double[::1] host_cutoffs,
        const double[::1] path_cutoffs,
        int64_t[:, :, ::1] tally,
    ):
        if not 0 <= start <= stop <= data.shape[0]:
            raise IndexError("not a part of the data")
        self._data, self._stop, self.at = data, stop, start
        self._text = &data[0] if data.shape[0] else NULL
        self._host_cutoffs, self._path_cutoffs, self._tally = host_cutoffs, path_cutoffs, tally
        if not start_walk(&self._walk, host_cutoffs.shape[0], path_cutoffs.shape[0]) or not self._ensure_capacity():
            raise MemoryError
        memset(&self._known[0], 0, sizeof(Known))

    def __dealloc__(self):
        end_walk(&self._walk)
        free(self._known)
        free(self._entries)
        free(self._events)
        free(self._out)

    def run(self, Py_ssize_t pause):
        """Go on up to the first line at or after `pause`: DONE, PAUSED, or a fault (IRREGULAR, UNSORTED) at `at`."""
        cdef int status
        with nogil:
            status = self._run(pause)
        if status == NO_MEMORY:
            raise MemoryError
        return status

    def take_output(self):
        """The lines written since it was last called."""
        text = PyBytes_FromStringAndSize(<char *>self._out, self._out_size)
        self._out_size = 0
        return text

    def take_events(self):
        """The events since it was last called: (what, node, first, second). Places are in the input, or for
        EVENT_EMIT in the output that is next taken."""
        cdef Py_ssize_t i
        events = [
            (self._events[i].what, self._events[i].node, self._events[i].first, self._events[i].second)
            for i in range(self._event_count)
        ]
        self._event_count = 0
        return events

    cdef int _run(self, Py_ssize_t pause) noexcept nogil:
        cdef Line line
        cdef Py_ssize_t common, slot
        cdef int kind
        while True:
            if self._pending == 0 and self._entry_count > 0 and not self._flush():
                return NO_MEMORY
            if self.at >= self._stop:
                while self._walk.top > 0:
                    if not self._ensure_capacity():
                        return NO_MEMORY
                    self._close()
                return DONE if self._entry_count == 0 or self._flush() else NO_MEMORY
            if self.at >= pause:
                return PAUSED
            common = 0
            if self._begun:
                common = common_bytes(
                    self._text + self._key.at, self._text + self.at, min(self._key.length, self._stop - self.at)
                )
            kind = read_line(self._text, self.at, self._stop, common, &line)
            if kind == IRREGULAR or kind == HEADER:  # headers stand before all records
                return IRREGULAR
            if kind != RECORD:
                self.at = line.next
                continue
            if self._begun and not self._rises(&line, common):
                return UNSORTED
            take_key(&self._key, self._text, self.at, line.key_length, common if self._begun else -1)
            self._begun = True
            while self._walk.top > 0 and not goes_on(&self._walk.nodes[self._walk.top], &self._key, common):
                if not self._ensure_capacity():
                    return NO_MEMORY
                self._close()
            if self._pending == 0 and self._entry_count > 0 and not self._flush():
                return NO_MEMORY
            if not reserve(&self._walk, self._key.length + 2) or not self._ensure_capacity():
                return NO_MEMORY
            slot = nearest(&self._walk, &self._key)
            while self._walk.nodes[slot].length < self._key.name:
                slot = step_down(&self._walk, slot, &self._key)
                self._open(slot)
            self._take(slot, &line)
            if not is_void(&line):
                self._hold(slot)
            self.lines += 1
            self.at = line.next

    cdef bint _rises(self, const Line *line, Py_ssize_t common) noexcept nogil:
        """Whether the key at `at` is above the one before, with which it has `common` bytes in common."""
        if line.key_length == common:
            return False
        return common == self._key.length or self._text[self.at + common] > self._text[self._key.at + common]

    cdef bint _ensure_capacity(self) noexcept nogil:
        """Reserve space for what one line, or the closing of one node, adds; False without memory."""
        cdef void *bigger
        if self._known_capacity < self._walk.capacity:
            bigger = realloc(self._known, <size_t>self._walk.capacity * sizeof(Known))
            if bigger == NULL:
                return False
            self._known, self._known_capacity = <Known *>bigger, self._walk.capacity
        if self._entry_count + 2 > self._entry_capacity:
            bigger = realloc(self._entries, <size_t>(2 * self._entry_capacity + 1024) * sizeof(Entry))
            if bigger == NULL:
                return False
            self._entries, self._entry_capacity = <Entry *>bigger, 2 * self._entry_capacity + 1024
        if self._event_count + 2 > self._event_capacity:
            bigger = realloc(self._events, <size_t>(2 * self._event_capacity + 1024) * sizeof(Event))
            if bigger == NULL:
                return False
            self._events, self._event_capacity = <Event *>bigger, 2 * self._event_capacity + 1024
        return True

    cdef void _open(self, Py_ssize_t slot) noexcept nogil:
        """A new node.

        A host that first appears with a port, so that only its ports are held, does not roll up: its wildcard
        (`x,*`) would belong before lines (`x-y)`) that have been written. Neither does one that begins with a digit,
        where IP addresses, which no wildcard of hosts covers, may lie between its lines.
        """
        cdef Node *node = &self._walk.nodes[slot]
        cdef Known *known = &self._known[slot]
        cdef Known *above = &self._known[node.up]
        cdef Bytes name = self._text + node.at
        memset(known, 0, sizeof(Known))
        known.first_entry = self._entry_count
        known.covered = above.covered or above.rolled
        if node.kind == HOST and node.depth < self._host_cutoffs.shape[0]:
            known.rollable = (
                self._host_cutoffs[node.depth] < INFINITY
                and name[node.length] != c":"
                and not is_digit(name[0])
            )
        elif node.kind == PATH and node.depth < self._path_cutoffs.shape[0]:
            known.rollable = self._path_cutoffs[node.depth] < INFINITY
        if known.rollable and not known.covered:
            self._pending += 1
        known.wanted = known.rollable or above.wanted

    cdef void _take(self, Py_ssize_t slot, const Line *line) noexcept nogil:
        """Add a line to its node and, unless it is covered, to the entries."""
        cdef Known *known = &self._known[slot]
        cdef Entry *entry
        cdef bint void = is_void(line)
        cdef bint wild = self._key.wildcard != NO_WILDCARD
        cdef bint kept = known.rolled and not known.covered
        if (void and not (kept and wild)) or not (known.covered or known.rolled):
            entry = &self._entries[self._entry_count]
            entry.at, entry.key_length, entry.line_length, entry.blocks = self.at, line.key_length, line.length, 0
            entry.flags = (IS_VOID if void else 0) | (IS_WILD if wild else 0)
            self._entry_count += 1
        if void:
            if wild:
                known.wildcard = OWN_VOID
            return
        if wild:
            known.wildcard = OWN_TOTAL
            known.own = total_of(line)
        else:
            known.sum = add_totals(known.sum, total_of(line))
        if not line.block:
            known.bare = True
        elif known.wanted:
            self._number_blocks(known)
            self._add_event(
                EVENT_OWN if wild else EVENT_LINE, known.blocks, self.at + line.block, self.at + line.length
            )

    cdef void _number_blocks(self, Known *known) noexcept nogil:
        if known.blocks == 0:
            self._next_blocks += 1
            known.blocks = self._next_blocks

    cdef void _add_event(self, int what, Py_ssize_t node, Py_ssize_t first, Py_ssize_t second) noexcept nogil:
        cdef Event *event = &self._events[self._event_count]
        event.what, event.node, event.first, event.second = what, node, first, second
        self._event_count += 1

    cdef void _hold(self, Py_ssize_t slot) noexcept nogil:
        """Something is held at a node: count it as a child where it is new, and roll up parents that have too many."""
        cdef Node *node
        cdef Node *parent
        cdef Known *above
        cdef double cutoff
        while slot > 0 and not self._known[slot].held:
            self._known[slot].held = True
            node = &self._walk.nodes[slot]
            parent, above = &self._walk.nodes[node.up], &self._known[node.up]
            if parent.kind == PATH or node.kind != PATH:
                above.children += 1
                if above.rollable and not above.rolled and not above.covered:
                    cutoff = (self._path_cutoffs if parent.kind == PATH else self._host_cutoffs)[parent.depth]
                    if above.children > cutoff:
                        self._roll(node.up)
            slot = node.up

    cdef bint _is_below(self, const Entry *entry, const Node *node) noexcept nogil:
        """Whether an entry that begins with a node's name is of its subtree."""
        cdef unsigned char after
        if entry.key_length == node.length:
            return True
        after = self._text[entry.at + node.length]
        if node.kind == PATH:
            return after == c"/"
        return after == c")" or after == c"," or after == c":"

    cdef void _roll(self, Py_ssize_t slot) noexcept nogil:
        """Decide that a node rolls up: take back the entries below it, except voids, and cover the nodes below it."""
        cdef Node *node = &self._walk.nodes[slot]
        cdef Py_ssize_t kept = self._known[slot].first_entry
        cdef Py_ssize_t upper = slot + 1, i
        cdef Entry *entry
        cdef bint own, keep
        self._known[slot].rolled = True
        for i in range(kept, self._entry_count):
            while upper <= self._walk.top and self._known[upper].first_entry <= i:
                self._known[upper].first_entry = kept
                upper += 1
            entry = &self._entries[i]
            own = entry.flags & IS_WILD and entry.key_length == node.length + 2
            keep = entry.flags & IS_VOID and not entry.flags & IS_IMPURE and not own
            if keep or not self._is_below(entry, node):
                if kept < i:
                    self._entries[kept] = entry[0]
                kept += 1
        self._entry_count = kept
        while upper <= self._walk.top:
            self._known[upper].first_entry = kept
            upper += 1
        for i in range(slot + 1, self._walk.top + 1):
            if not self._known[i].covered:
                self._known[i].covered = True
                self._pending -= self._known[i].rollable

    cdef void _close(self) noexcept nogil:
        """Close the top node: its total goes to its parent, its wildcard to the entries if it rolled up."""
        cdef Py_ssize_t slot = self._walk.top
        cdef Node *node = &self._walk.nodes[slot]
        cdef Known *known = &self._known[slot]
        cdef Known *above = &self._known[node.up]
        cdef bint kept = known.rolled and not known.covered
        if known.children and node.depth < self._tally.shape[1]:
            self._tally[node.kind == PATH, node.depth, 0] += 1
            self._tally[node.kind == PATH, node.depth, 1] += known.children
        if known.wildcard == OWN_VOID and known.held:
            self._mark_impure(node, known)
        if kept:
            self._insert_rollup(node, known)
            self.rollups += 1
        if known.held:
            above.sum = add_totals(above.sum, self._total(known))
            above.bare |= known.bare
        if known.rollable and not known.covered:
            self._pending -= 1
        if known.blocks:
            if above.wanted:
                self._number_blocks(above)
            self._add_event(
                EVENT_CLOSE, known.blocks, above.blocks, (CLOSE_KEPT if kept else 0) | (CLOSE_BARE if known.bare else 0)
            )
        self._walk.top -= 1

    cdef Total _total(self, const Known *known) noexcept nogil:
        """What is held at a node and below: its wildcard's own total, else the sum of what is below."""
        return stated_total(known.own, known.sum) if known.wildcard == OWN_TOTAL else known.sum

    cdef void _mark_impure(self, const Node *node, const Known *known) noexcept nogil:
        """A void with something held below it would hide that, should a wider wildcard replace what is held."""
        cdef Py_ssize_t i
        cdef Entry *entry
        for i in range(self._entry_count - 1, known.first_entry - 1, -1):
            entry = &self._entries[i]
            if (
                entry.flags & IS_WILD
                and entry.flags & IS_VOID
                and entry.key_length == node.length + 2
                and self._is_below(entry, node)
            ):
                entry.flags |= IS_IMPURE | (IS_DEAD if known.covered else 0)
                return

    cdef void _insert_rollup(self, const Node *node, const Known *known) noexcept nogil:
        """Put the wildcard of a rolled-up node where it belongs among the entries that outlived it."""
        cdef unsigned char separator = c"/" if node.kind == PATH else c","
        cdef Py_ssize_t at = self._entry_count
        cdef Entry *entry
        cdef Bytes key
        while at > known.first_entry:
            entry = &self._entries[at - 1]
            key = self._text + entry.at
            if entry.key_length == node.length or key[node.length] < separator:
                break
            if key[node.length] == separator and (
                entry.key_length == node.length + 1 or key[node.length + 1] < c"*"
            ):
                break
            at -= 1
        memmove(&self._entries[at + 1], &self._entries[at], <size_t>(self._entry_count - at) * sizeof(Entry))
        entry = &self._entries[at]
        entry.at, entry.key_length, entry.line_length = node.at, node.length + 2, 0
        entry.flags = IS_ROLLUP | IS_WILD | (0 if node.kind == PATH else IS_HOST)
        entry.total, entry.blocks = self._total(known), known.blocks
        self._entry_count += 1

    cdef bint _flush(self) noexcept nogil:
        """Write the entries; False without memory."""
        cdef Py_ssize_t i, at, size
        cdef Entry *entry
        cdef unsigned char *out
        for i in range(self._entry_count):
            entry = &self._entries[i]
            if entry.flags & IS_DEAD:
                continue
            size = entry.key_length - 2 if entry.flags & IS_ROLLUP else entry.line_length
            if not self._have_output(size + 64) or not self._ensure_capacity():
                return False
            out, at = self._out, self._out_size
            memcpy(out + at, self._text + entry.at, <size_t>size)
            at += size
            if entry.flags & IS_ROLLUP:
                out[at] = c"," if entry.flags & IS_HOST else c"/"
                out[at + 1] = c"*"
                out[at + 2] = c" "
                at = put_count(out, at + 3, entry.total.m)
                if entry.total.r.value >= 0 or entry.total.m.value < 0:
                    out[at] = c"/"
                    at = put_count(out, at + 1, entry.total.r)
                if entry.blocks:
                    self._add_event(EVENT_EMIT, entry.blocks, at, 0)
            out[at] = c"\n"
            self._out_size = at + 1
            self.written += 1
        self._entry_count = 0
        return True

    cdef bint _have_output(self, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t capacity = self._out_capacity
        cdef void *bigger
        if self._out_size + size <= capacity:
            return True
        while capacity < self._out_size + size:
            capacity = 2 * capacity + (1 << 16)
        bigger = realloc(self._out, <size_t>capacity)
        if bigger == NULL:
            return False
        self._out, self._out_capacity = <unsigned char *>bigger, capacity
        return True
