"""Compiled functions refuse offsets and arrays that do not fit their data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.kernels import records, search, walk

TEXT = b"com,a)/ 1/1\ncom,a)/b 1/1\ncom,b)/ 1/1\n"
OFFSETS = st.integers(-(2**40), 2**40) | st.integers(-3, len(TEXT) + 3)


@given(OFFSETS, OFFSETS, OFFSETS, st.booleans())
def test_safe_cut_stays_in_its_data(start: int, stop: int, want: int, whole: bool) -> None:
    if start < 0 or stop > len(TEXT) or want < 0:
        with pytest.raises(IndexError):
            walk.safe_cut(TEXT, start, stop, want, whole)
    else:
        assert walk.safe_cut(TEXT, start, stop, want, whole) <= max(stop, want)


@given(OFFSETS, OFFSETS, OFFSETS)
def test_lines_rise_stays_in_its_data(start: int, at: int, stop: int) -> None:
    if 0 <= start < at <= stop <= len(TEXT):
        assert walk.lines_rise(TEXT, start, at, stop) in (True, False)
    else:
        with pytest.raises(IndexError):
            walk.lines_rise(TEXT, start, at, stop)


@given(st.binary(max_size=200), st.integers(0, 5), st.integers(0, 5))
def test_split_lines_needs_arrays_for_all_lines(text: bytes, first: int, second: int) -> None:
    lines = [line for line in text.split(b"\n") if any(byte > 32 for byte in line)]
    offsets, lengths = np.zeros(first, np.int64), np.zeros(second, np.int64)
    if len(lines) > min(first, second):
        with pytest.raises(IndexError):
            search.split_lines(text, offsets, lengths)
    else:
        assert search.split_lines(text, offsets, lengths) == len(lines)


@given(st.binary(max_size=120), st.integers(-5, 130), st.binary(max_size=60))
def test_records_are_read_only_where_they_are_whole(data: bytes, start: int, border: bytes) -> None:
    try:
        at = records.first_not_below(data, start, border)
    except ValueError:
        return
    assert start <= at <= len(data)


@given(st.binary(max_size=120), st.integers(-5, 130))
def test_whole_records_are_counted_in_what_is_there(data: bytes, filled: int) -> None:
    if 0 <= filled <= len(data):
        assert 0 <= records.whole_records(data, filled) <= filled
    else:
        with pytest.raises(IndexError):
            records.whole_records(data, filled)
