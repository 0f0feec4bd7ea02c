"""Totals of a node: URI-Ms and URI-Rs together, added up and stated by wildcards."""

from recollect.kernels.lines cimport ABOUT, AT_LEAST, AT_MOST, Count, Line, add_counts, closes


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
