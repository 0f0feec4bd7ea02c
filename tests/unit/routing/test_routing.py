"""Which archives to ask: decisions from evidence alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.explain import decision_json, words
from recollect.routing.choice import Candidate, Decision, Evidence, Reason, Rest, Source, route

THREE = [Candidate("a", 1.0), Candidate("b", 0.5), Candidate("c", 1.0)]


def asked(decisions: tuple[Decision, ...]) -> list[str]:
    return [decision.archive for decision in decisions if decision.ask]


def test_without_evidence_all_archives_are_asked_the_most_probable_first() -> None:
    assert asked(route(THREE, {})) == ["a", "c", "b"]


def test_a_no_skips_and_keeps_the_key_that_decided() -> None:
    decisions = route(THREE, {"a": Evidence("no", Source.MAP, "com,example,*", "0")})
    assert asked(decisions) == ["c", "b"]
    skipped = decisions[-1]
    assert (skipped.archive, skipped.source, skipped.key) == ("a", "map", "com,example,*")
    assert words(skipped) == "skip (map com,example,* 0: holds none)"


def test_unknown_is_asked() -> None:
    assert "a" in asked(route(THREE, {"a": Evidence("unknown", Source.VOIDS)}))


def test_expectation_orders_and_top_k_cuts() -> None:
    evidence = {"b": Evidence("yes", Source.MAP, "k", "90/1", 90.0), "c": Evidence("yes", Source.MAP, "k", "5/1", 5.0)}
    assert asked(route(THREE, evidence)) == ["b", "c", "a"]
    decisions = route(THREE, evidence, top_k=2)
    assert asked(decisions) == ["b", "c"]
    assert (decisions[-1].archive, decisions[-1].reason) == ("a", Reason.NOT_BEST)
    assert words(decisions[-1]) == "skip (only the best 2 are asked)"


def test_an_estimate_orders_by_its_own_probability_and_not_by_the_usual_one_as_well() -> None:
    sampled = Evidence("unknown", Source.SAMPLE, expected=0.9, chance=0.9, sources=(Source.SAMPLE,))
    first, second = route([Candidate("unknown"), Candidate("sampled")], {"sampled": sampled}, top_k=1)
    assert (first.archive, first.ask, first.expected) == ("sampled", True, 0.9)
    assert (second.archive, second.ask) == ("unknown", False)


def test_a_choice_leaves_the_others_out() -> None:
    decisions = route(THREE, {}, chosen=frozenset({"b"}))
    assert asked(decisions) == ["b"]
    assert {decision.source for decision in decisions if not decision.ask} == {"choice"}


def test_a_resting_archive_is_skipped_by_name() -> None:
    rest = Rest(Reason.FAILING, 12.0, 5, "timeout")
    (decision,) = route([Candidate("a", rest=rest)], {})
    assert (decision.ask, decision.reason) == (False, Reason.FAILING)
    assert words(decision) == "skip (resting: 5 failures (timeout), next try in 12 s)"
    (paused,) = route([Candidate("a", rest=Rest(Reason.PAUSED, 60.0))], {})
    assert words(paused) == "skip (resting: Retry-After: 60 s left)"


def test_an_archive_that_is_named_is_asked_whatever_was_learned_but_not_against_its_map() -> None:
    unlikely = Evidence("no", Source.LEARNED, reason=Reason.UNLIKELY)
    mapped = Evidence("no", Source.MAP)
    evidence = {"a": unlikely, "b": mapped}
    assert asked(route(THREE, evidence, chosen=frozenset("ab"))) == []
    assert asked(route(THREE, evidence, chosen=frozenset("ab"), named=True)) == ["a"]


def test_every_reason_has_words_and_one_shape() -> None:
    for reason in Reason:
        decision = Decision("a", False, Source.MAP, "k", "1/1", reason=reason, rest=Rest(reason, 1.0), limit=3)
        fields = decision_json(decision)
        assert set(fields) <= {"id", "decision", "source", "by", "key", "frequency", "code", "reason"}
        assert fields.get("code", "") == reason.value
        assert bool(fields.get("reason")) == (reason is not Reason.NONE)


ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
said = st.tuples(st.sampled_from(["yes", "no", "unknown"]), st.floats(0, 100)).map(
    lambda pair: Evidence(pair[0], Source.MAP, "k", "1", pair[1])  # type: ignore[arg-type]
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
