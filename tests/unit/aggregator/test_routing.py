"""Whom to ask: decisions from evidence alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.routing import Candidate, Decision, Evidence, route

THREE = [Candidate("a", 1.0), Candidate("b", 0.5), Candidate("c", 1.0)]


def asked(decisions: tuple[Decision, ...]) -> list[str]:
    return [decision.archive for decision in decisions if decision.ask]


def test_without_evidence_everybody_is_asked_the_likelier_first() -> None:
    assert asked(route(THREE, {})) == ["a", "c", "b"]


def test_a_no_skips_and_keeps_the_key_that_decided() -> None:
    decisions = route(THREE, {"a": Evidence("no", "map", "com,example,*", "0")})
    assert asked(decisions) == ["c", "b"]
    skipped = decisions[-1]
    assert (skipped.archive, skipped.source, skipped.key) == ("a", "map", "com,example,*")
    assert skipped.words == "skip (map com,example,* 0: holds none)"


def test_unknown_is_asked() -> None:
    assert "a" in asked(route(THREE, {"a": Evidence("unknown", "voids")}))


def test_expectation_orders_and_top_k_cuts() -> None:
    evidence = {"b": Evidence("yes", "map", "k", "90/1", 90.0), "c": Evidence("yes", "map", "k", "5/1", 5.0)}
    assert asked(route(THREE, evidence)) == ["b", "c", "a"]
    decisions = route(THREE, evidence, top_k=2)
    assert asked(decisions) == ["b", "c"]
    assert decisions[-1].archive == "a" and "best 2" in decisions[-1].reason


def test_a_choice_leaves_the_others_out() -> None:
    decisions = route(THREE, {}, chosen=frozenset({"b"}))
    assert asked(decisions) == ["b"]
    assert {decision.source for decision in decisions if not decision.ask} == {"choice"}


def test_a_resting_archive_is_skipped_by_name() -> None:
    (decision,) = route([Candidate("a", resting="5 failures")], {})
    assert not decision.ask
    assert decision.words == "skip (resting: 5 failures)"


ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
said = st.builds(
    Evidence, st.sampled_from(["yes", "no", "unknown"]), st.just("map"), st.just("k"), st.just("1"), st.floats(0, 100)
)


@given(ids, st.dictionaries(st.sampled_from("abcdefgh"), said), st.none() | st.integers(0, 9))
def test_every_candidate_is_decided_once_and_only_a_no_or_top_k_skips(
    names: list[str], evidence: dict[str, Evidence], top_k: int | None
) -> None:
    decisions = route([Candidate(name) for name in names], evidence, top_k=top_k)
    assert sorted(decision.archive for decision in decisions) == sorted(names)
    may_hold = {name for name in names if name not in evidence or evidence[name].answer != "no"}
    chosen = asked(decisions)
    assert set(chosen) <= may_hold
    assert len(chosen) == (len(may_hold) if top_k is None else min(top_k, len(may_hold)))
    expected = [decision.expected for decision in decisions if decision.ask]
    assert expected == sorted(expected, reverse=True)
