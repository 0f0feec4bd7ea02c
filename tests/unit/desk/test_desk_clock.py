"""The clock of a desk runs on while the machine's clock jumps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.desk.http.clock import SteadyClock


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_of_an_hour_ends_no_lease_and_is_followed_in_time(jump: float) -> None:
    wall, passed = 1000.0, 0.0
    clock = SteadyClock(lambda: wall, lambda: passed)
    wall += jump
    before = clock()
    wall, passed = wall + 60, passed + 60
    assert 57 <= clock() - before <= 63, "a minute stays a minute"
    for _ in range(100):
        wall, passed = wall + 3600, passed + 3600
        now = clock()
    assert now == pytest.approx(wall)


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(-1e5, 1e5))))
def test_it_never_goes_backwards_and_is_never_quicker_than_a_twentieth(steps: list[tuple[float, float]]) -> None:
    wall, passed = 1e9, 0.0
    clock = SteadyClock(lambda: wall, lambda: passed)
    last = clock()
    for seconds, jump in steps:
        wall, passed = wall + seconds + jump, passed + seconds
        now = clock()
        assert last + 0.949 * seconds - 1e-6 <= now <= last + 1.051 * seconds + 1e-6
        last = now
