"""Every transition of a watched site, and every state of a resource."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from recollect.watch.states import (
    GONE,
    SILENT,
    Held,
    Live,
    Notice,
    ResourceState,
    SiteState,
    SiteStatus,
    VisitResult,
    after,
    held_by,
    next_visit,
    notice_of,
    resource_state,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    return T0 + timedelta(days=number)


def life(*visits: tuple[float, VisitResult]) -> SiteStatus:
    status = SiteStatus()
    for number, seen in visits:
        status = after(status, seen, day(number))
    return status


@pytest.mark.parametrize(("live", "held"), list(product(Live, Held)))
def test_a_resource_is_unknown_unless_both_sides_are_known(live: Live, held: Held) -> None:
    state = resource_state(live, held)
    assert (state is ResourceState.UNKNOWN) == (live is Live.UNKNOWN or held is Held.UNKNOWN)


def test_an_archive_that_failed_is_not_one_that_holds_nothing() -> None:
    assert held_by({"a": False, "b": None}) is Held.UNKNOWN
    assert held_by({"a": True, "b": None}) is Held.HELD
    assert held_by({"a": False, "b": False}) is Held.NOT_HELD
    assert held_by({}) is Held.UNKNOWN


def test_short_outages_are_not_losses() -> None:
    assert (
        life((0, VisitResult.OWN), (1, VisitResult.FAILED), (1.1, VisitResult.FAILED), (2, VisitResult.OWN)).state
        is SiteState.FINE
    )
    suspect = life((0, VisitResult.OWN), *((number, VisitResult.FAILED) for number in (1, 2, 3, 4)))
    assert suspect.state is SiteState.SUSPECT
    assert after(suspect, VisitResult.OWN, day(5)).state is SiteState.FINE


def test_a_week_of_failures_is_a_loss_that_began_with_the_first() -> None:
    lost = life((0, VisitResult.OWN), *((number, VisitResult.FAILED) for number in range(1, 9)))
    assert lost.state is SiteState.LOST
    assert lost.since == day(1)
    assert lost.last_own == day(0)


def test_two_visits_a_week_apart_are_too_few_failures() -> None:
    assert life((0, VisitResult.OWN), (1, VisitResult.FAILED), (9, VisitResult.FAILED)).state is SiteState.SUSPECT


def test_a_name_that_does_not_resolve_is_lost_after_three_days() -> None:
    assert (
        life((0, VisitResult.OWN), *((number, VisitResult.NO_NAME) for number in (1, 2, 3, 4))).state is SiteState.LOST
    )
    mixed = life(
        (0, VisitResult.OWN), (1, VisitResult.FAILED), *((number, VisitResult.NO_NAME) for number in (2, 3, 4))
    )
    assert mixed.state is SiteState.SUSPECT


@pytest.mark.parametrize("seen", sorted(SILENT))
@pytest.mark.parametrize("before", [(), ((0, VisitResult.OWN),), ((0, VisitResult.OWN), (1, VisitResult.FAILED))])
def test_a_visit_that_says_nothing_changes_nothing(
    seen: VisitResult, before: tuple[tuple[float, VisitResult], ...]
) -> None:
    status = life(*before)
    for number in range(2, 30):
        assert after(status, seen, day(number)) == status


def test_foreign_content_is_a_takeover_when_confirmed_and_seen_twice_three_days_apart() -> None:
    assert life((0, VisitResult.OWN), (1, VisitResult.FOREIGN_CONFIRMED)).state is SiteState.SUSPECT
    assert life((0, VisitResult.OWN), (1, VisitResult.FOREIGN), (9, VisitResult.FOREIGN)).state is SiteState.SUSPECT
    taken = life((0, VisitResult.OWN), (1, VisitResult.FOREIGN), (4, VisitResult.FOREIGN_CONFIRMED))
    assert taken.state is SiteState.TAKEN_OVER
    assert taken.since == day(1)
    assert life(
        (0, VisitResult.OWN),
        (1, VisitResult.FOREIGN_CONFIRMED),
        (2, VisitResult.OWN),
        (5, VisitResult.FOREIGN_CONFIRMED),
    ).state is (SiteState.SUSPECT)


def test_failures_between_do_not_refute_foreign_content() -> None:
    flapping = [(float(day), VisitResult.FOREIGN_CONFIRMED if day % 2 else VisitResult.FAILED) for day in range(1, 6)]
    assert life((0, VisitResult.OWN), *flapping).state is SiteState.TAKEN_OVER


def test_failures_months_apart_are_not_one_outage() -> None:
    run = ((0, VisitResult.OWN), (1, VisitResult.FAILED), (1.1, VisitResult.FAILED), (1.4, VisitResult.FAILED))
    assert life(*run, (400, VisitResult.FAILED)).state is SiteState.FINE, "the clock jumped, or the watch did not run"
    assert life(*run, *((400 + n, VisitResult.FAILED) for n in range(8))).state is SiteState.LOST
    assert life((0, VisitResult.OWN), *((30 * n, VisitResult.FAILED) for n in range(1, 5))).state is SiteState.LOST


def test_a_lost_name_that_comes_back_with_foreign_content_is_taken_over() -> None:
    lost = ((0, VisitResult.OWN), *((number, VisitResult.FAILED) for number in range(1, 9)))
    assert life(*lost, (20, VisitResult.FOREIGN), (24, VisitResult.FOREIGN_CONFIRMED)).state is SiteState.TAKEN_OVER


@pytest.mark.parametrize("gone", sorted(GONE))
def test_a_site_that_is_gone_comes_back_and_is_fine_after_a_week(gone: SiteState) -> None:
    back = after(SiteStatus(gone, day(0), last_own=day(0)), VisitResult.OWN, day(30))
    assert (back.state, back.since) == (SiteState.BACK, day(30))
    assert after(back, VisitResult.OWN, day(31)).state is SiteState.BACK
    assert after(back, VisitResult.OWN, day(37)).state is SiteState.FINE


def test_a_permanent_redirect_to_another_host_is_a_move() -> None:
    assert life((0, VisitResult.OWN), (1, VisitResult.MOVED)).state is SiteState.MOVED


def test_a_visit_from_before_what_is_known_changes_nothing() -> None:
    status = life((10, VisitResult.OWN))
    assert after(status, VisitResult.FAILED, day(9)) == status


@pytest.mark.parametrize(("state", "seen"), list(product(SiteState, VisitResult)))
def test_every_state_has_an_answer_to_every_visit(state: SiteState, seen: VisitResult) -> None:
    status = SiteStatus(state, day(0) if state is not SiteState.NEW else None)
    later = after(status, seen, day(1))
    if seen in SILENT:
        assert later == status
    if later.state is not status.state:
        assert later.since is not None
    assert notice_of(later, later) is None


def test_each_change_is_noticed_once_and_a_suspicion_alarms_no_one() -> None:
    visits = [
        (0.0, VisitResult.OWN),
        *((float(number), VisitResult.FAILED) for number in range(1, 12)),
        (13.0, VisitResult.OWN),
    ]
    notices = []
    status = SiteStatus()
    for number, seen in visits:
        later = after(status, seen, day(number))
        notices.append(notice_of(status, later))
        status = later
    assert [notice for notice in notices if notice is not None] == [Notice.LOST, Notice.BACK]


def test_failures_are_looked_at_again_soon_and_then_daily() -> None:
    status = SiteStatus()
    waits = []
    for number in range(5):
        status = after(status, VisitResult.FAILED, day(number))
        waits.append((next_visit(status, day(number)) - day(number)) / timedelta(hours=1))
    assert waits == [1, 6, 24, 24, 24]
    assert next_visit(life((0, VisitResult.OWN)), day(0)) == day(1)
