"""Random lives of a watched site: no alarm without its cause, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recollect.watch.states import GONE, SILENT, SiteState, SiteStatus, VisitResult, after, next_visit, notice_of

T0 = datetime(2026, 1, 1, tzinfo=UTC)
BAD = (VisitResult.FAILED, VisitResult.NO_NAME, VisitResult.PLACEHOLDER)
forward = st.lists(st.tuples(st.sampled_from(list(VisitResult)), st.floats(0.01, 5.0)), max_size=40)
anyhow = st.lists(st.tuples(st.sampled_from(list(VisitResult)), st.floats(-900.0, 900.0)), max_size=40)


@given(forward)
def test_a_loss_is_a_run_of_failures_that_lasted(visits: list[tuple[VisitResult, float]]) -> None:
    status, at = SiteStatus(), T0
    run: list[tuple[VisitResult, datetime]] = []  # the oracle: failures since anything else was seen
    for seen, days in visits:
        at += timedelta(days=days)
        before, status = status, after(status, seen, at)
        if seen in BAD:
            run.append((seen, at))
        elif seen not in SILENT:
            run = []
        if status.state is SiteState.LOST and before.state is not SiteState.LOST:
            lasted = run[-1][1] - run[0][1]
            nameless = all(one is VisitResult.NO_NAME for one, _ in run)
            assert lasted >= timedelta(days=3 if nameless else 7)
            assert len(run) >= (2 if nameless else 4)
            assert status.since == run[0][1]
        if status.state is SiteState.TAKEN_OVER and before.state is not SiteState.TAKEN_OVER:
            assert seen in (VisitResult.FOREIGN, VisitResult.FOREIGN_CONFIRMED)
            assert status.since is not None and at - status.since >= timedelta(days=3)
        if seen is VisitResult.OWN:
            assert status.state not in GONE
        assert next_visit(status, at) > at


@given(anyhow)
def test_with_a_clock_that_jumps_states_stay_sound(visits: list[tuple[VisitResult, float]]) -> None:
    status = SiteStatus()
    for seen, days in visits:
        at = T0 + timedelta(days=days)
        before, status = status, after(status, seen, at)
        if seen in SILENT:
            assert status == before
        if notice_of(before, status) is not None:
            assert status.since is not None
        assert (status.failing_since is None) == (status.failures == 0)
        assert timedelta(0) < next_visit(status, at) - at <= timedelta(days=1)


@given(anyhow, st.integers(2, 30))
def test_after_any_past_a_site_that_fails_for_long_is_noticed(
    visits: list[tuple[VisitResult, float]], start: int
) -> None:
    status = SiteStatus()
    for seen, days in visits:
        status = after(status, seen, T0 + timedelta(days=days))
    for day in range(12):
        status = after(status, VisitResult.FAILED, T0 + timedelta(days=start + day))
    assert status.state in GONE
