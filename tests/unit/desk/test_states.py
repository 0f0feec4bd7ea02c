"""The table of states is complete: every state, every action."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.desk.states import (
    ACTIVE,
    CLAIMED,
    DELIVERED,
    FINAL,
    TRANSITIONS,
    Action,
    BadTransition,
    State,
    after,
    allowed,
    progress,
)

TABLE = """
pending queued running waiting packing ready picked-up expired failed cancelled nothing-found
confirm queued . . . . . . . . . .
claim . running . . . . . . . . .
defer . . waiting . waiting . . . . . .
pause . waiting waiting waiting . . . . . . .
resume . . . queued . . . . . . .
pack . . packing . . . . . . . .
deliver . . . . ready . . . . . .
find-nothing . . nothing-found . . . . . . . .
pick-up . . . . . picked-up picked-up . . . .
expire expired . . . . expired expired . . . .
fail . . failed . failed . . . . . .
crash . . queued . queued . . . . . .
release . . queued . queued . . . . . .
cancel cancelled cancelled cancelled cancelled cancelled . . . . . .
retry . . . . . . . queued queued queued queued
"""


def test_the_table_is_exactly_this() -> None:
    head, *lines = (line.split() for line in TABLE.strip().splitlines())
    states = [State(name) for name in head]
    assert set(states) == set(State)
    assert {Action(line[0]) for line in lines} == set(Action)
    for name, *cells in lines:
        for state, cell in zip(states, cells, strict=True):
            if cell == ".":
                with pytest.raises(BadTransition):
                    after(state, Action(name))
            else:
                assert after(state, Action(name)) == State(cell)


def test_every_state_belongs_to_one_group_and_none_is_a_dead_end() -> None:
    groups = [ACTIVE, DELIVERED, FINAL, frozenset((State.PENDING,))]
    assert sum(len(group) for group in groups) == len(State)
    assert frozenset().union(*groups) == set(State)
    assert CLAIMED < ACTIVE
    assert all(allowed(state) for state in State)
    assert {state for state, _ in TRANSITIONS} == set(State)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=30))
def test_progress_never_goes_backwards_and_stays_a_share(seen: list[tuple[int, int]]) -> None:
    shown = 0.0
    for processed, queued in seen:
        then = progress(processed, queued, shown)
        assert 0.0 <= shown <= then <= 1.0
        shown = then


def test_progress_is_equation_19() -> None:
    assert progress(35, 37) == 35 / 72
    assert progress(0, 0) == 0.0
