"""One estimate: a chance for every archive, and a wanted recall that decides how many are asked."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.explain import decision_json, words
from recollect.aggregator.referer import with_page
from recollect.routing.choice import (
    SECOND_CHANCE,
    UNHEARD,
    Answer,
    Candidate,
    Evidence,
    Reason,
    Source,
    combined,
    pooled,
    route,
    updated,
)

chances = st.floats(0.0, 1.0)
names = "abcdefgh"
candidates = st.lists(st.sampled_from(names), unique=True, max_size=8).flatmap(
    lambda ids: st.tuples(*(st.builds(Candidate, st.just(one), chances, st.none()) for one in ids)).map(list)
)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    answer = draw(st.sampled_from(Answer))
    chance = draw(st.none() | chances)
    return Evidence(
        answer,
        draw(st.sampled_from([Source.MAP, Source.SAMPLE, Source.LEARNED])),
        "k",
        "1",
        draw(st.floats(0, 100)),
        draw(st.sampled_from([Reason.HOLDS_NONE, Reason.UNLIKELY])),
        chance,
        (Source.SAMPLE,) if chance is not None else (),
        draw(st.sampled_from([0.25, 1.0, 8.0])),
        exact=answer == "yes" and draw(st.booleans()),
        explored=draw(st.booleans()),
        gap=draw(st.sampled_from([0.0, 0.0, 10.0, 20.0])),
    )


known = st.dictionaries(st.sampled_from(names), evidences())


@given(candidates, known, st.floats(0.01, 1.0))
def test_asking_in_order_of_chance_reaches_the_wanted_recall_with_as_few_as_that_takes(
    asked_about: list[Candidate], evidence: dict[str, Evidence], target: float
) -> None:
    evidence = {name: said._replace(gap=0.0) for name, said in evidence.items()}
    decisions = route(asked_about, evidence, target_recall=target)
    assert sorted(d.archive for d in decisions) == sorted(one.id for one in asked_about)
    asked = [d for d in decisions if d.ask]
    late = [d for d in decisions if d.reason is Reason.BEYOND_TARGET]
    assert {d.reason for d in decisions if not d.ask} <= {Reason.HOLDS_NONE, Reason.BEYOND_TARGET}
    total = math.fsum(d.chance or 0.0 for d in (*asked, *late))
    reached = math.fsum(d.chance or 0.0 for d in asked)
    assert reached >= target * total * (1 - 1e-9)
    optional = [d for d in asked if not d.always]
    if optional:  # without the last of them the target is missed
        assert reached - (optional[-1].chance or 0.0) < target * total * (1 + 1e-9)
        assert all((d.chance or 0.0) <= (optional[-1].chance or 0.0) for d in late)
    assert not any(evidence[d.archive].exact for d in late if d.archive in evidence)
    assert {d.archive for d in asked} >= {
        one.id for one in asked_about if one.id in evidence and evidence[one.id].exact
    }


@given(candidates, known, st.none() | st.floats(0.01, 1.0), st.none() | st.sampled_from([5.0, 15.0]))
def test_a_skip_is_certain_or_counts_as_unheard_and_has_one_line(
    asked_about: list[Candidate], evidence: dict[str, Evidence], target: float | None, near: float | None
) -> None:
    decisions = route(asked_about, evidence, target_recall=target, near=near)
    for decision in decisions:
        assert decision.chance is not None and 0.0 <= decision.chance <= 1.0
        fields = decision_json(decision)
        assert fields["chance"] == round(decision.chance, 4)
        assert "\n" not in words(decision)
        certain = decision.archive in evidence and evidence[decision.archive].answer == "no"
        certain = certain and evidence[decision.archive].reason is Reason.HOLDS_NONE
        assert certain == (not decision.ask and decision.reason not in UNHEARD)
        assert decision.ask or certain or decision.reason in SECOND_CHANCE
        if decision.reason is Reason.FAR_IN_TIME:
            assert near is not None and evidence[decision.archive].gap > near
    gaps = [decision.gap for decision in decisions if decision.ask]
    assert gaps == sorted(gaps) or target is not None


@given(evidences(), evidences())
def test_a_certain_no_and_an_exact_key_outweigh_every_estimate(first: Evidence, second: Evidence) -> None:
    both = combined(first, second)
    certain = [e for e in (first, second) if e.answer == "no" and e.reason is Reason.HOLDS_NONE]
    if certain:
        assert both == certain[0]
    elif first.exact or second.exact:
        assert both.exact
    else:
        assert both.answer == first.answer
        chances = [e.chance for e in (first, second) if e.chance is not None]
        assert (both.chance is None) == (not chances)
        if both.chance is not None:
            assert min(chances) - 2e-6 <= both.chance <= max(chances) + 2e-6


@given(st.lists(chances, min_size=1, max_size=5), st.sampled_from([0.25, 1.0, 8.0]))
def test_pooling_stays_between_the_estimates_and_a_factor_moves_the_chance_its_way(
    several: list[float], factor: float
) -> None:
    chance = pooled(several)
    assert min(several) - 2e-6 <= chance <= max(several) + 2e-6
    moved = updated(chance, factor)
    assert 0.0 <= moved <= 1.0
    assert (moved >= chance) if factor >= 1 else (moved <= chance)


@given(candidates, known, st.dictionaries(st.sampled_from(names), st.booleans()))
def test_the_page_that_embeds_a_uri_orders_but_never_skips(
    asked_about: list[Candidate], evidence: dict[str, Evidence], holders: dict[str, bool]
) -> None:
    before = {d.archive: d for d in route(asked_about, evidence)}
    after = {d.archive: d for d in route(asked_about, with_page(evidence, holders))}
    for archive, decision in after.items():
        assert decision.ask == before[archive].ask
        mine, yours = decision.chance or 0.0, before[archive].chance or 0.0
        if archive in holders:
            assert mine >= yours if holders[archive] else mine <= yours
        else:
            assert mine == yours
