"""When an archive is left alone, tried, and taken back."""

from __future__ import annotations

from recollect.aggregator.breaker import (
    CONSECUTIVE,
    FIRST_REST,
    HOSTS,
    LONGEST_REST,
    PROBES,
    SILENCE,
    WINDOW,
    Breaker,
)


def uri(number: int) -> str:
    """One of many URIs of a few hosts."""
    return f"http://host{number % HOSTS}.example/{number}"


def opened() -> Breaker:
    breaker = Breaker()
    suspicions = [breaker.failure(0.0, "timeout", uri(n)) for n in range(CONSECUTIVE)]
    assert suspicions == [False] * (CONSECUTIVE - 1) + [True]
    assert breaker.closed, "failures alone do not open it"
    breaker.proved(0.0, good=False)
    return breaker


def test_a_few_failures_do_not_open_it() -> None:
    breaker = Breaker()
    for n in range(CONSECUTIVE - 1):
        assert not breaker.failure(0.0, "status 503", uri(n))
    assert breaker.allows(0.0)
    breaker.success(0.0)
    for n in range(CONSECUTIVE - 1):
        assert not breaker.failure(0.0, "status 503", uri(n))
    assert breaker.allows(0.0)


def test_failures_in_a_row_between_good_answers_of_the_same_second_are_chance() -> None:
    breaker = Breaker()
    breaker.success(10.0)
    for n in range(2 * CONSECUTIVE):
        assert not breaker.failure(10.0 + SILENCE / 2, "status 503", uri(n))
    assert breaker.failure(10.0 + SILENCE, "status 503", "http://x.example/")


def test_failures_in_a_row_open_it_for_a_while() -> None:
    breaker = opened()
    assert not breaker.allows(FIRST_REST - 0.1)
    assert not breaker.would_allow(FIRST_REST - 0.1)
    state = breaker.state(5.0)
    assert (state.name, state.failures, state.rest_left, state.last_failure) == ("open", 5, FIRST_REST - 5, "timeout")


def test_half_of_the_last_answers_failing_opens_it_too() -> None:
    breaker = Breaker()
    suspicions = []
    for n in range(WINDOW // 2):
        breaker.success(0.0, f"http://x.example/good/{n}")
        suspicions.append(breaker.failure(0.0, "timeout", uri(n)))
    assert suspicions == [False] * (WINDOW // 2 - 1) + [True]
    breaker.proved(0.0, good=False)
    assert not breaker.allows(1.0)


def test_in_the_window_each_uri_counts_once() -> None:
    breaker = Breaker()
    for n in range(3 * WINDOW):
        breaker.success(0.0, f"http://x.example/good/{n}")
        assert not breaker.failure(0.0, "status 500", "http://evil.example/")


def test_one_uri_and_one_host_make_no_archive_suspicious() -> None:
    breaker = Breaker()
    assert not any(breaker.failure(9.0, "status 500", "http://evil.example/") for _ in range(3 * WINDOW))
    assert not any(breaker.failure(9.0, "status 500", f"http://evil.example/{n}") for n in range(3 * WINDOW))
    assert not breaker.failure(9.0, "status 500", "http://other.example/")
    assert breaker.failure(9.0, "status 500", "http://third.example/")


def test_an_archive_that_cannot_be_reached_is_suspicious_whatever_it_is_asked_for() -> None:
    breaker = Breaker()
    suspicions = [breaker.failure(9.0, "unreachable", uri(0), unreachable=True) for _ in range(CONSECUTIVE)]
    assert suspicions == [False] * (CONSECUTIVE - 1) + [True]


def test_what_is_known_to_be_good_decides() -> None:
    breaker = Breaker()
    for _ in range(3):
        suspicions = [breaker.failure(9.0, "status 500", uri(n)) for n in range(2 * CONSECUTIVE)]
        assert suspicions.count(True) == 1, "one proof at a time"
        breaker.proved(9.0, good=True)
        assert breaker.closed
        breaker._good_at = 0.0  # time passes


def test_a_probe_that_one_uri_fails_does_not_keep_it_open() -> None:
    breaker = opened()
    for _ in range(PROBES):
        assert breaker.allows(FIRST_REST)
        assert breaker.failure(FIRST_REST, "status 500", "http://evil.example/")
        assert not breaker.allows(FIRST_REST), "the proof is under way"
        breaker.proved(FIRST_REST, good=True)
    assert breaker.closed


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
        assert breaker.failure(now, "timeout", "http://x.example/")
        breaker.proved(now, good=False)
        rest = min(rest * 2, LONGEST_REST)
        assert not breaker.allows(now + rest - 0.1)
        now += rest
    assert rest == LONGEST_REST


def test_a_probe_whose_client_left_is_free_again() -> None:
    breaker = opened()
    assert breaker.allows(FIRST_REST)
    breaker.abandoned()
    assert breaker.allows(FIRST_REST)
