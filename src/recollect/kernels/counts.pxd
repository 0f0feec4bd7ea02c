"""Totals of a node: URI-Ms and URI-Rs together, added up and stated by wildcards."""

from recollect.kernels.lines cimport (
    ABOUT, AT_LEAST, AT_MOST, Count, EXACT, Line, NOT_STATED, add_counts, closes,
)


cdef struct Total:
    Count m
    Count r


cdef inline Total total_of(const Line *line) noexcept nogil:
    cdef Total total
    total.m, total.r = line.m, line.r
    return total


cdef inline Total add_totals(Total a, Total b) noexcept nogil:
    """The disjoint sum."""
    cdef Total total
    total.m, total.r = add_counts(a.m, b.m), add_counts(a.r, b.r)
    return total


cdef inline bint is_void(const Line *line) noexcept nogil:
    """Whether a line says that nothing is held: `0`, `0-`, `0/20`."""
    return line.m.value == 0 and closes(line.m.bound)


cdef inline Count union_counts(Count a, Count b) noexcept nogil:
    """Of two sets that may share members, as `formats.frequency.Count.union`: at least the largest, at most the sum."""
    cdef Count union
    if b.value == 0 and closes(b.bound):
        return a
    if a.value == 0 and closes(a.bound):
        return b
    if a.bound == AT_MOST and b.bound == AT_MOST:
        return add_counts(a, b)
    union.value, union.bound = NOT_STATED, EXACT
    if a.value >= 0 and a.bound != AT_MOST:
        union.value, union.bound = a.value, ABOUT if a.bound == ABOUT else AT_LEAST
    if b.value >= 0 and b.bound != AT_MOST:
        union.value = max(union.value, b.value)
        union.bound = ABOUT if b.bound == ABOUT or union.bound == ABOUT else AT_LEAST
    return union


cdef inline Total merged_total(const Line *line, Total more) noexcept nogil:
    """A line's counts and more of them, as `formats.frequency.merge`: captures add, URI-Rs may be shared."""
    cdef Total total = total_of(line)
    cdef bint more_is_void = more.m.value == 0 and closes(more.m.bound)
    if is_void(line) != more_is_void:
        return more if is_void(line) else total
    total.m, total.r = add_counts(total.m, more.m), union_counts(total.r, more.r)
    return total


cdef inline Count stated_count(Count own, Count below) noexcept nogil:
    """A wildcard's own count, which includes everything below it, unless what is below proves it too small."""
    if below.value == 0 and closes(below.bound):
        return own
    if below.value < 0 or (own.value >= 0 and (below.value <= own.value or below.bound >= AT_MOST)):
        return own
    below.bound = ABOUT if below.bound >= AT_MOST or own.bound == ABOUT else AT_LEAST
    return below


cdef inline Total stated_total(Total own, Total below) noexcept nogil:
    cdef Total total
    total.m, total.r = stated_count(own.m, below.m), stated_count(own.r, below.r)
    return total
