"""When an archive is left alone, tried, and taken back."""

from __future__ import annotations

from recollect.aggregator.breaker import CONSECUTIVE, FIRST_REST, LONGEST_REST, PROBES, SILENCE, WINDOW, Breaker


def opened() -> Breaker:
    breaker = Breaker()
    for _ in range(CONSECUTIVE):
        breaker.failure(0.0, "timeout")
    return breaker


def test_a_few_failures_do_not_open_it() -> None:
    breaker = Breaker()
    for _ in range(CONSECUTIVE - 1):
        breaker.failure(0.0, "status 503")
    assert breaker.allows(0.0)
    breaker.success(0.0)
    for _ in range(CONSECUTIVE - 1):
        breaker.failure(0.0, "status 503")
    assert breaker.allows(0.0)


def test_failures_in_a_row_between_good_answers_of_the_same_second_are_chance() -> None:
    breaker = Breaker()
    breaker.success(10.0)
    for _ in range(2 * CONSECUTIVE):
        breaker.failure(10.0 + SILENCE / 2, "status 503")
    assert breaker.allows(10.0 + SILENCE / 2)
    breaker.failure(10.0 + SILENCE, "status 503")
    assert not breaker.allows(10.0 + SILENCE)


def test_failures_in_a_row_open_it_for_a_while() -> None:
    breaker = opened()
    assert not breaker.allows(FIRST_REST - 0.1)
    assert not breaker.would_allow(FIRST_REST - 0.1)
    state = breaker.state(5.0)
    assert (state.name, state.failures, state.rest_left, state.last_failure) == ("open", 5, FIRST_REST - 5, "timeout")


def test_half_of_the_last_answers_failing_opens_it_too() -> None:
    breaker = Breaker()
    for _ in range(WINDOW // 2):
        breaker.success(0.0)
        breaker.failure(0.0, "timeout")
    assert not breaker.allows(1.0)


def test_it_probes_with_one_request_at_a_time_before_it_closes() -> None:
    breaker = opened()
    for number in range(PROBES):
        assert breaker.would_allow(FIRST_REST)
        assert breaker.allows(FIRST_REST)
        assert not breaker.allows(FIRST_REST), "a second request while the probe is out"
        assert not breaker.closed
        breaker.success(FIRST_REST)
        assert breaker.closed == (number == PROBES - 1)
    assert breaker.allows(FIRST_REST) and breaker.allows(FIRST_REST)


def test_a_failed_probe_doubles_the_rest_up_to_a_limit() -> None:
    breaker, now, rest = opened(), FIRST_REST, FIRST_REST
    for _ in range(10):
        assert breaker.allows(now)
        breaker.failure(now, "timeout")
        rest = min(rest * 2, LONGEST_REST)
        assert not breaker.allows(now + rest - 0.1)
        now += rest
    assert rest == LONGEST_REST


def test_a_probe_whose_client_left_is_free_again() -> None:
    breaker = opened()
    assert breaker.allows(FIRST_REST)
    breaker.abandoned()
    assert breaker.allows(FIRST_REST)
