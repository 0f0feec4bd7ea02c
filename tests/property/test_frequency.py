"""Frequency arithmetic against its meaning: every true value a count allows must be allowed by the result."""

import contextlib
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.formats.frequency import Count, Frequency, merge

bounds = st.sampled_from(["", "+", "-", "~"])
counts = st.one_of(st.just(Count(None)), st.builds(Count, st.integers(0, 6), bounds))
frequencies = st.builds(Frequency, counts, counts)
LIMIT = 8


def allowed(count: Count) -> list[int]:
    low, high = count.interval
    return list(range(low, LIMIT + 1 if high is None else high + 1))


def allows(count: Count, value: int) -> bool:
    low, high = count.interval
    return low <= value and (high is None or value <= high)


@given(frequencies)
def test_text_round_trip(frequency):
    once = Frequency.parse(str(frequency))
    assert str(Frequency.parse(str(once))) == str(once)
    assert once.uri_m.interval == frequency.uri_m.interval
    assert once.uri_r.interval == frequency.uri_r.interval
    assert once.held == frequency.held


@given(st.text(max_size=12) | st.binary(max_size=12))
def test_any_text_is_a_frequency_or_a_format_error(text):
    from recollect.errors import FormatError

    with contextlib.suppress(FormatError):
        str(Frequency.parse(text))


@given(counts, counts)
def test_the_true_sum_is_always_allowed(a, b):
    total = a + b
    assert all(allows(total, x + y) for x, y in product(allowed(a), allowed(b)))


@given(counts, counts)
def test_every_true_size_of_a_union_is_allowed(a, b):
    union = a.union(b)
    for x, y in product(allowed(a), allowed(b)):
        assert all(allows(union, size) for size in range(max(x, y), x + y + 1))


@given(counts, counts)
def test_a_union_is_exact_only_when_it_must_be(a, b):
    union = a.union(b)
    if not union.bound and union.value is not None:
        sizes = {n for x, y in product(allowed(a), allowed(b)) for n in range(max(x, y), x + y + 1)}
        assert sizes == {union.value}


@pytest.mark.parametrize("operation", [Frequency.__add__, merge])
@given(data=st.data())
def test_order_and_grouping_do_not_matter(operation, data):
    a, b, c = (data.draw(frequencies) for _ in range(3))
    a, b, c = (Frequency.parse(str(f)) for f in (a, b, c))
    assert operation(a, b) == operation(b, a)
    assert operation(operation(a, b), c) == operation(a, operation(b, c))


@given(frequencies, frequencies)
def test_what_may_be_held_never_becomes_a_void(a, b):
    for result in (a + b, merge(a, b)):
        assert result.is_void == (a.is_void and b.is_void)
