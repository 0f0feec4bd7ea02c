"""Runs of a batch to sorted records or to lines of a map; sorted records merged; merged records to lines of a map.

`records.pxd` has the layout of a record. A line of a map is `key M/R`: captures, and SURTs that differ.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from recollect.kernels.records cimport HEADER, Head, compare_records, head_at, record_size, whole_size
from recollect.kernels.words cimport Bytes, compare_bytes, put_number, reversed_bytes, same_bytes, word_at

# Why `Merger.merge` came back, if not because a run needs more.
cpdef enum:
    DONE = -1
    FULL = -2

cdef enum:
    # The longest line beyond its key: two counts of 19 digits, space, slash, newline.
    LINE_EXTRA = 48


cdef inline Py_ssize_t put_line(
    unsigned char *out, Py_ssize_t to, Bytes key, Py_ssize_t length, int64_t m, int64_t r
) noexcept nogil:
    """Write `key M/R`; returns where the line ends."""
    memcpy(out + to, key, length)
    to += length
    out[to] = c" "
    to = put_number(out, to + 1, m)
    out[to] = c"/"
    to = put_number(out, to + 1, r)
    out[to] = c"\n"
    return to + 1


# -- runs of a batch ------------------------------------------------------------------------------


cdef struct Run:
    Bytes surt
    Bytes key
    int32_t surt_length
    int32_t key_length


cdef inline Py_ssize_t compare_runs(const Run *a, const Run *b) noexcept nogil:
    """Order of two runs as records are ordered: by key, then by what the key leaves of the SURT."""
    cdef Py_ssize_t order = compare_bytes(a.key, a.key_length, b.key, b.key_length)
    cdef int mine, yours
    cdef Py_ssize_t skip_a, skip_b
    if order != 0:
        return order
    mine, yours = rest_class(a), rest_class(b)
    if mine != yours:
        return mine - yours
    skip_a = 0 if mine == 1 else a.key_length
    skip_b = 0 if mine == 1 else b.key_length
    return compare_bytes(a.surt + skip_a, a.surt_length - skip_a, b.surt + skip_b, b.surt_length - skip_b)


cdef inline int rest_class(const Run *run) noexcept nogil:
    """Order of rests that begin differently: nothing, byte 1 (the whole SURT), a tail."""
    if run.key != run.surt:
        return 1
    return 0 if run.surt_length == run.key_length else 2


# -- sorted runs to lines -------------------------------------------------------------------------

# Neighbouring runs with one key, with captures and SURTs.
cdef struct Group:
    Bytes key
    int32_t length
    int64_t m
    int64_t r


cdef inline Py_ssize_t compare_groups(const Group *a, const Group *b) noexcept nogil:
    return compare_bytes(a.key, a.length, b.key, b.length)


cdef void sort_groups(Group *groups, Group *spare, Py_ssize_t count) noexcept nogil:
    """A merge sort that doubles sorted stretches; late groups are few."""
    cdef Py_ssize_t width = 1, left, middle, right, i, j, k
    while width < count:
        right = 0
        while right < count:
            left, middle = right, min(right + width, count)
            right = min(right + 2 * width, count)
            i, j = left, middle
            for k in range(left, right):
                if j >= right or (i < middle and compare_groups(&groups[i], &groups[j]) <= 0):
                    spare[k] = groups[i]
                    i += 1
                else:
                    spare[k] = groups[j]
                    j += 1
        memcpy(groups, spare, count * sizeof(Group))
        width *= 2


cdef struct Grouped:
    Py_ssize_t mains  # groups in order
    Py_ssize_t lates  # groups below the largest key before them
    int64_t uri_rs


cdef bint group_runs(
    const Run *runs, const int64_t *captures, Py_ssize_t count, Group *main, Group *late, Grouped *grouped
) noexcept nogil:
    """Group runs by their keys; False if the SURTs are not in order.

    Cutting `?` and trailing slashes leaves keys out of order (`com,x)/a?q` sorts after `com,x)/a/b`): these are late.
    """
    cdef Py_ssize_t number, order, mains = 0, lates = 0
    cdef const Run *run
    cdef const Run *before = NULL
    cdef Group *last = NULL
    cdef int64_t fresh
    grouped.uri_rs = 0
    for number in range(count):
        if captures[number] == 0:
            continue
        run = &runs[number]
        fresh = 1
        if before != NULL:
            order = compare_bytes(before.surt, before.surt_length, run.surt, run.surt_length)
            if order > 0:
                return False
            fresh = order < 0
        before = run
        grouped.uri_rs += fresh
        if last == NULL or last.length != run.key_length or not same_bytes(last.key, run.key, run.key_length):
            order = 1
            if mains > 0:
                order = compare_bytes(run.key, run.key_length, main[mains - 1].key, main[mains - 1].length)
            if order > 0:
                last = &main[mains]
                mains += 1
            elif order < 0:
                last = &late[lates]
                lates += 1
            else:  # the largest key again; what came between was late
                main[mains - 1].m += captures[number]
                main[mains - 1].r += fresh
                continue
            last[0] = Group(run.key, run.key_length, 0, 0)
        last.m += captures[number]
        last.r += fresh
    grouped.mains, grouped.lates = mains, lates
    return True


cdef Py_ssize_t put_groups(
    const Group *main, Py_ssize_t mains, const Group *late, Py_ssize_t lates, unsigned char *out, Py_ssize_t *keys
) noexcept nogil:
    """Merge groups in order with late ones in order into lines; returns their size."""
    cdef Py_ssize_t i = 0, j = 0, to = 0
    cdef const Group *first
    cdef int64_t m, r
    keys[0] = 0
    while i < mains or j < lates:
        if j >= lates or (i < mains and compare_groups(&main[i], &late[j]) <= 0):
            first = &main[i]
            i += 1
        else:
            first = &late[j]
            j += 1
        m, r = first.m, first.r
        while j < lates and compare_groups(first, &late[j]) == 0:
            m += late[j].m
            r += late[j].r
            j += 1
        to = put_line(out, to, first.key, first.length, m, r)
        keys[0] += 1
    return to


# -- runs in any order to records -----------------------------------------------------------------

# A run with a label. Mostly the first bytes of the key decide, which lie close together here.
cdef struct Item:
    uint64_t[3] words
    int32_t run
    int32_t label
    int64_t captures


cdef struct Label:
    Bytes text
    int32_t length


cdef inline void put_words(const Run *run, uint64_t *words) noexcept nogil:
    """The first 24 bytes of a key as numbers that order like them; zeros, which no key has, after its end."""
    cdef unsigned char[24] start
    cdef int i
    memset(start, 0, 24)
    memcpy(start, run.key, min(run.key_length, 24))
    for i in range(3):
        words[i] = reversed_bytes(word_at(start + 8 * i))


cdef inline Py_ssize_t compare_items(
    const Item *a, const Item *b, const Run *runs, const Label *labels
) noexcept nogil:
    cdef int i
    cdef Py_ssize_t order
    for i in range(3):
        if a.words[i] != b.words[i]:
            return -1 if a.words[i] < b.words[i] else 1
    if a.run != b.run:
        order = compare_runs(&runs[a.run], &runs[b.run])
        if order != 0:
            return order
    if a.label == b.label:
        return 0
    return compare_bytes(labels[a.label].text, labels[a.label].length, labels[b.label].text, labels[b.label].length)


cdef Item *sort_items(Item *items, Item *spare, Py_ssize_t count, const Run *runs, const Label *labels) noexcept nogil:
    """Sort items by merging stretches of doubling width; returns which of the two arrays holds the result."""
    cdef Py_ssize_t width = 1, left, middle, right, i, j, k
    while width < count:
        right = 0
        while right < count:
            left, middle = right, min(right + width, count)
            right = min(right + 2 * width, count)
            # Two neighbours that are in order already, as in sorted input, need no merging.
            if middle >= right or compare_items(&items[middle - 1], &items[middle], runs, labels) <= 0:
                memcpy(&spare[left], &items[left], (right - left) * sizeof(Item))
                continue
            i, j = left, middle
            for k in range(left, right):
                if j >= right or (i < middle and compare_items(&items[i], &items[j], runs, labels) <= 0):
                    spare[k] = items[i]
                    i += 1
                else:
                    spare[k] = items[j]
                    j += 1
        items, spare = spare, items
        width *= 2
    return items


cdef inline Py_ssize_t put_record(
    unsigned char *out, const Run *run, const Label *label, int64_t captures
) noexcept nogil:
    """Write a record; returns its size."""
    cdef bint whole = run.key != run.surt
    cdef Py_ssize_t skip = 0 if whole else run.key_length, at = HEADER
    cdef Head head
    head.key, head.rest, head.label = run.key_length, <int32_t>(run.surt_length - skip + whole), label.length
    head.unused, head.captures = 0, captures
    memcpy(out, &head, HEADER)
    memcpy(out + at, run.key, run.key_length)
    at += run.key_length
    if whole:
        out[at] = 1
        at += 1
    memcpy(out + at, run.surt + skip, run.surt_length - skip)
    at += run.surt_length - skip
    memcpy(out + at, label.text, label.length)
    return at + label.length


cdef Py_ssize_t put_records(
    const Item *items, Py_ssize_t count, const Run *runs, const Label *labels, unsigned char *out
) noexcept nogil:
    """Write sorted items as records, equal ones summed; returns their size."""
    cdef Py_ssize_t i = 0, at = 0
    cdef const Item *item
    cdef int64_t captures
    while i < count:
        item = &items[i]
        captures = item.captures
        i += 1
        while i < count and compare_items(item, &items[i], runs, labels) == 0:
            captures += items[i].captures
            i += 1
        at += put_record(out + at, &runs[item.run], &labels[item.label], captures)
    return at


cdef inline bint ends_with(const Run *run, const Label *name) noexcept nogil:
    """Whether the last path segment of a key is a name."""
    cdef Py_ssize_t at = run.key_length - name.length
    return at > 0 and run.key[at - 1] == c"/" and same_bytes(run.key + at, name.text, name.length)


cdef class Runs:
    """The runs of a batch: its SURTs, each with its key; see `records.pyi`."""

    cdef Run *runs
    cdef Py_ssize_t count
    cdef object text

    def __cinit__(
        self, const unsigned char[::1] text not None,
        const int32_t[::1] surt_at not None, const int32_t[::1] surt_length not None,
        const int32_t[::1] key_at not None, const int32_t[::1] key_length not None,
    ):
        cdef Py_ssize_t i, size = text.shape[0], count = surt_at.shape[0]
        cdef bint fits = surt_length.shape[0] == key_at.shape[0] == key_length.shape[0] == count
        cdef Bytes base = &text[0]
        self.text = text
        self.count = count
        self.runs = <Run *>calloc(max(count, 1), sizeof(Run))
        if self.runs == NULL:
            raise MemoryError
        if fits:
            for i in range(count):
                # Runs without captures may have no key; its length is -1 then, and it is not read.
                fits &= 0 <= surt_at[i] and 0 <= surt_length[i] <= size - surt_at[i]
                fits &= 0 <= key_at[i] and -1 <= key_length[i] <= size - key_at[i]
                self.runs[i] = Run(base + surt_at[i], base + key_at[i], surt_length[i], max(key_length[i], 0))
        if not fits:
            raise ValueError("runs outside of their text")

    def __dealloc__(self):
        free(self.runs)

    def lines(self, const int64_t[::1] captures not None):
        """Lines of the runs that have captures, their number, and that of SURTs; None if SURTs are not in order."""
        if captures.shape[0] != self.count:
            raise ValueError("captures for each run are needed")
        cdef Py_ssize_t i, capacity = 0, size = 0, keys = 0
        cdef Grouped grouped
        cdef bint ordered
        # In order, late, and a buffer to sort the late ones.
        cdef Group *groups = <Group *>malloc((3 * self.count + 1) * sizeof(Group))
        cdef unsigned char *out = NULL
        if groups == NULL:
            raise MemoryError
        cdef Group *late = groups + self.count
        try:
            with nogil:
                ordered = group_runs(self.runs, &captures[0], self.count, groups, late, &grouped)
            if not ordered:
                return None
            for i in range(grouped.mains):
                capacity += groups[i].length + LINE_EXTRA
            for i in range(grouped.lates):
                capacity += late[i].length + LINE_EXTRA
            out = <unsigned char *>malloc(capacity + 1)
            if out == NULL:
                raise MemoryError
            with nogil:
                sort_groups(late, late + self.count, grouped.lates)
                size = put_groups(groups, grouped.mains, late, grouped.lates, out, &keys)
            return out[:size], keys, grouped.uri_rs
        finally:
            free(groups)
            free(out)

    def records(
        self, const int32_t[::1] run not None, const int32_t[::1] label not None,
        const int64_t[::1] captures not None, labels,
    ):
        """Items (a run, a label, captures) as sorted records, equal ones summed."""
        cdef Py_ssize_t i, count = run.shape[0], capacity = 0, size
        cdef Py_ssize_t label_count = len(labels)
        cdef Item *items = <Item *>malloc((2 * count + 1) * sizeof(Item))
        cdef Item *ordered
        cdef Label *texts = NULL
        cdef unsigned char *out = NULL
        try:
            texts = labels_of(labels)
            if items == NULL:
                raise MemoryError
            if label.shape[0] != count or captures.shape[0] != count:
                raise ValueError("a label and captures for each item are needed")
            for i in range(count):
                if not (0 <= run[i] < self.count and 0 <= label[i] < label_count):
                    raise ValueError("no such run or label")
                items[i].run, items[i].label, items[i].captures = run[i], label[i], captures[i]
                put_words(&self.runs[run[i]], items[i].words)
                capacity += HEADER + self.runs[run[i]].key_length + 1 + self.runs[run[i]].surt_length
                capacity += texts[label[i]].length
            out = <unsigned char *>malloc(capacity + 1)
            if out == NULL:
                raise MemoryError
            with nogil:
                ordered = sort_items(items, items + count, count, self.runs, texts)
                size = put_records(ordered, count, self.runs, texts, out)
            return out[:size]
        finally:
            free(items)
            free(texts)
            free(out)

    def mark_ending_in(self, names, uint8_t[::1] found not None):
        """Put 1 for each run whose key has one of the names as its last path segment."""
        if found.shape[0] != self.count:
            raise ValueError("a place for each run is needed")
        cdef Label *texts = labels_of(names)
        cdef Py_ssize_t i, number, count = len(names)
        with nogil:
            for i in range(self.count):
                for number in range(count):
                    if ends_with(&self.runs[i], &texts[number]):
                        found[i] = 1
                        break
        free(texts)


cdef Label *labels_of(labels) except NULL:
    """Pointers to the texts of a sequence of bytes, which must outlive them; to be freed."""
    cdef Label *texts = <Label *>malloc((len(labels) + 1) * sizeof(Label))
    cdef Py_ssize_t i
    cdef bytes label
    if texts == NULL:
        raise MemoryError
    for i in range(len(labels)):
        label = labels[i]
        texts[i] = Label(label, len(label))
    return texts


# -- merging --------------------------------------------------------------------------------------

# What is in memory of a run: its next record and where the text ends.
cdef struct Source:
    Bytes head
    Bytes end


cdef inline void sift(int *heap, int size, int at, const Source *sources) noexcept nogil:
    """Put the run at a place of the heap where it belongs at or below it."""
    cdef int child
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and compare_records(sources[heap[child + 1]].head, sources[heap[child]].head) < 0:
            child += 1
        if compare_records(sources[heap[at]].head, sources[heap[child]].head) <= 0:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


cdef inline void add_captures(unsigned char *record, int64_t captures) noexcept nogil:
    cdef Head head = head_at(record)
    head.captures += captures
    memcpy(record, &head, HEADER)


cdef class Merger:
    """Merges sorted runs of records, equal ones summed; see `records.pyi`."""

    cdef Source *sources
    cdef int *heap
    cdef int size
    cdef int count
    cdef bint begun
    cdef list kept
    cdef readonly Py_ssize_t filled
    cdef Py_ssize_t last

    def __cinit__(self, int runs):
        if runs < 0:
            raise ValueError("a negative number of runs")
        self.sources = <Source *>calloc(runs + 1, sizeof(Source))
        self.heap = <int *>calloc(runs + 1, sizeof(int))
        if self.sources == NULL or self.heap == NULL:
            raise MemoryError
        self.count = runs
        self.kept = [None] * runs
        self.last = -1

    def __dealloc__(self):
        free(self.sources)
        free(self.heap)

    def feed(self, int run, const unsigned char[::1] records not None):
        """Give the next records of a run, whole ones, at least one: before merging, or when `merge` asks for them."""
        cdef Py_ssize_t size = records.shape[0]
        if not 0 <= run < self.count or (self.begun and (self.size == 0 or run != self.heap[0])):
            raise ValueError("this run was not asked for")
        if size == 0 or whole_size(&records[0], size) != size:
            raise ValueError("whole records are needed")
        self.kept[run] = records
        self.sources[run] = Source(&records[0], &records[0] + size)
        if self.begun:
            sift(self.heap, self.size, 0, self.sources)
        else:
            self.heap[self.size] = run
            self.size += 1

    def end(self, int run):
        """Say that the run `merge` asked for has no more records."""
        if not self.begun or self.size == 0 or run != self.heap[0]:
            raise ValueError("this run was not asked for")
        self.kept[run] = None
        self.size -= 1
        self.heap[0] = self.heap[self.size]
        sift(self.heap, self.size, 0, self.sources)

    def merge(self, unsigned char[::1] out not None):
        """Write into `out` until all is DONE, `out` is FULL, or the run that is returned needs more."""
        cdef int i, result = DONE
        cdef Source *top
        cdef Py_ssize_t length, capacity = out.shape[0]
        cdef unsigned char *target = &out[0]
        if self.filled > capacity:
            raise ValueError("the output buffer is smaller than before")
        if not self.begun:
            for i in range(self.size // 2 - 1, -1, -1):
                sift(self.heap, self.size, i, self.sources)
            self.begun = True
        with nogil:
            while self.size > 0:
                top = &self.sources[self.heap[0]]
                if top.head >= top.end:
                    result = self.heap[0]
                    break
                length = record_size(top.head)
                if self.last >= 0 and compare_records(target + self.last, top.head) == 0:
                    add_captures(target + self.last, head_at(top.head).captures)
                elif self.filled + length > capacity:
                    result = FULL
                    break
                else:
                    memcpy(target + self.filled, top.head, length)
                    self.last = self.filled
                    self.filled += length
                top.head += length
                if top.head < top.end:
                    sift(self.heap, self.size, 0, self.sources)
        return result

    def settled(self):
        """How much of `out` will not change: all but the last record, to which equal ones may be added."""
        return max(self.last, 0)

    def keep_last(self, unsigned char[::1] out not None):
        """Move the last record to the front of `out`; the others have been taken."""
        if self.last > 0 and self.filled <= out.shape[0]:
            memmove(&out[0], &out[self.last], self.filled - self.last)
            self.filled -= self.last
            self.last = 0


def whole_records(const unsigned char[::1] records not None, Py_ssize_t filled):
    """How many of the first `filled` bytes are whole records."""
    if not 0 <= filled <= records.shape[0]:
        raise IndexError("more bytes than there are")
    return whole_size(&records[0], filled) if filled else 0


def first_not_below(
    const unsigned char[::1] records not None, Py_ssize_t start, const unsigned char[::1] border not None
):
    """Where the first record at or after `start` is that does not stand before the border, a record."""
    cdef Py_ssize_t at = start, size = records.shape[0]
    if not 0 <= start <= size or border.shape[0] < HEADER or whole_size(&border[0], border.shape[0]) != border.shape[0]:
        raise ValueError("not a place and a record")
    with nogil:
        while at < size:
            if at + HEADER > size or at + record_size(&records[at]) > size:
                raise ValueError("whole records are needed")
            if compare_records(&records[at], &border[0]) >= 0:
                break
            at += record_size(&records[at])
    return at


# -- merged records to lines ----------------------------------------------------------------------


cdef class LineMaker:
    """Merged records to lines `key M/R`; the last key stays open until more is known; see `records.pyi`."""

    cdef unsigned char *open      # a copy of the record read last
    cdef bint any_open
    cdef int64_t m
    cdef int64_t r
    cdef readonly int64_t keys
    cdef readonly int64_t captures
    cdef readonly int64_t uri_rs

    def __dealloc__(self):
        free(self.open)

    def add(self, const unsigned char[::1] records not None):
        """The lines that are complete with these records, which are whole and in order."""
        cdef Py_ssize_t size = records.shape[0], written
        if size == 0:
            return b""
        if whole_size(&records[0], size) != size:
            raise ValueError("whole records are needed")
        # Each record is longer than half of its line.
        cdef Py_ssize_t before = record_size(self.open) if self.any_open else 0
        cdef unsigned char *out = <unsigned char *>malloc(2 * (size + before) + LINE_EXTRA)
        if out == NULL:
            raise MemoryError
        try:
            with nogil:
                written = self.put_lines(&records[0], size, out)
            return out[:written]
        finally:
            free(out)

    def finish(self):
        """The line of the key that is still open."""
        if not self.any_open:
            return b""
        cdef Py_ssize_t written
        cdef unsigned char *out = <unsigned char *>malloc(record_size(self.open) + LINE_EXTRA)
        if out == NULL:
            raise MemoryError
        written = self.put_open(self.open, out, 0)
        self.any_open = False
        line = out[:written]
        free(out)
        return line

    cdef Py_ssize_t put_open(self, Bytes record, unsigned char *out, Py_ssize_t to) noexcept nogil:
        self.keys += 1
        self.captures += self.m
        self.uri_rs += self.r
        return put_line(out, to, record + HEADER, head_at(record).key, self.m, self.r)

    cdef Py_ssize_t put_lines(self, Bytes records, Py_ssize_t size, unsigned char *out) except -1 nogil:
        cdef Py_ssize_t at = 0, to = 0
        cdef Bytes previous = self.open
        cdef Bytes text
        cdef Bytes other
        cdef Head mine, yours
        cdef bint same_key
        cdef unsigned char *grown
        while at < size:
            mine = head_at(records + at)
            same_key = False
            if self.any_open:
                yours = head_at(previous)
                text, other = records + at + HEADER, previous + HEADER
                same_key = mine.key == yours.key and same_bytes(text, other, mine.key)
                if not same_key:
                    to = self.put_open(previous, out, to)
                elif mine.rest == yours.rest and same_bytes(text + mine.key, other + mine.key, mine.rest):
                    self.r -= 1  # one SURT with another label
            if not same_key:
                self.any_open = True
                self.m = self.r = 0
            self.m += mine.captures
            self.r += 1
            previous = records + at
            at += record_size(previous)
        grown = <unsigned char *>realloc(self.open, record_size(previous))
        if grown == NULL:
            with gil:
                raise MemoryError
        self.open = grown
        memcpy(self.open, previous, record_size(previous))
        return to
