"""t_a, TTL_c and P_r from observations whose truth is known, and advice from the gaps of a site."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.watch.advice import Gap, advise, missing_pages
from recollect.watch.measures import measure
from recollect.watch.records import Facts, Notes, Observation, Resource, Site
from recollect.watch.states import Held, Live

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SITE = "http://club.example/"


def life(uri: str, born: int, gone: int, cached: int, purged: int, days: int = 160) -> list[Observation]:
    """Daily observations of a resource that an archive holds from day `cached` to day `purged`."""
    return [
        Observation(
            *(SITE, uri, T0 + timedelta(days=day), 200 if day < gone else 404),
            Live.LIVE if day < gone else Live.GONE,
            Held.HELD if cached <= day <= purged else Held.NOT_HELD,
            answers={"one": cached <= day <= purged},
        )
        for day in range(born, days)
    ]


def test_measures_are_those_of_the_lives() -> None:
    rows = [
        *life("a", born=0, gone=999, cached=0, purged=999),  # there before the watch: no t_a
        *life("b", born=10, gone=50, cached=22, purged=98),
        *life("c", born=20, gone=60, cached=28, purged=90),
        *life("d", born=30, gone=999, cached=999, purged=999),  # never captured
    ]
    [one] = measure(sorted(rows, key=lambda row: row.at))
    assert (one.t_a, one.new, one.never) == (10.0, 2, 1)
    assert one.ttl_c == pytest.approx((159 + 76 + 62) / 3)
    assert (one.p_r, one.held, one.resources, one.censored) == (1.0, 1, 4, 1)
    assert one.endangered == pytest.approx((48 + 30) / 2)
    assert (one.endangered_now, one.vulnerable_now) == (0, 1)


ANSWER = st.sampled_from([True, False, None, "not asked"])
LIVES = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(st.tuples(st.sampled_from([Live.LIVE, Live.GONE, Live.UNKNOWN]), ANSWER), min_size=1, max_size=9),
    min_size=1,
)


@given(LIVES, st.dictionaries(st.sampled_from("abcd"), st.integers(0, 6)))
def test_measures_are_those_of_a_count_by_hand(lives: dict, births: dict) -> None:
    """Section IV.1 by hand: a table of days for each resource, all of them visited every day."""
    lives = {"front": [(Live.LIVE, True)] * 16, **lives}
    table = {uri: dict(enumerate(days, births.get(uri, 0) if uri != "front" else 0)) for uri, days in lives.items()}
    rows = [
        Observation(
            *(SITE, uri, T0 + timedelta(days=day), 200 if live is Live.LIVE else 404, live, Held.UNKNOWN),
            answers={} if held == "not asked" else {"one": held},
        )
        for day in range(16)
        for uri, days in table.items()
        if day in days
        for live, held in [days[day]]
    ]
    [one] = measure(rows)
    ta, ttl, asked, good, danger, endangered, vulnerable, never = [], [], 0, 0, [], 0, 0, 0
    for days in table.values():
        questions = [(day, held) for day, (_, held) in days.items() if held != "not asked"]
        seen = [day for day, (live, _) in days.items() if live is Live.LIVE]
        if not questions or not seen:
            continue
        yes = [day for day, held in questions if held]
        lost = [day for day, (live, _) in days.items() if live is Live.GONE and day > max(seen)]
        certain = [held for _, held in questions if held is not None]
        new = min(seen) > 0 and questions[0][1] is False
        ta += [yes[0] - min(seen)] if new and yes else []
        never += new and not yes
        ttl += [yes[-1] - yes[0]] if yes else []
        within = [held for day, held in questions if yes and yes[0] <= day <= yes[-1]]
        asked, good = asked + len(within), good + sum(held is True for held in within)
        danger += [max(0, yes[-1] - lost[0])] if lost and yes else []
        endangered += bool(lost) and certain[-1:] == [True]
        vulnerable += not lost and certain[-1:] == [False]
    for name, values in {"t_a": ta, "ttl_c": ttl, "endangered": danger}.items():
        expected = sum(values) / len(values) if values else None
        assert getattr(one, name) == (None if expected is None else pytest.approx(expected)), name
    assert (one.p_r, one.questions) == (pytest.approx(good / asked), asked)
    assert (one.never, one.endangered_now, one.vulnerable_now) == (never, endangered, vulnerable)


def test_pages_that_a_sample_finds_late_are_not_new() -> None:
    rows = [*life("a", 0, 999, 0, 999, 20), *life("b", 0, 999, 0, 999, 20), *life("late", 9, 999, 15, 999, 20)]
    rows.sort(key=lambda row: row.at)
    assert [measure(rows, sample)[0].t_a for sample in (None, 3, 2)] == [6.0, 6.0, None]


def test_an_archive_that_fails_at_times_has_a_lower_probability_of_recovery() -> None:
    rng = random.Random(5)
    rows = [replace(row, answers={"one": True if rng.random() < 0.8 else None}) for row in life("a", 0, 999, 0, 999)]
    [one] = measure(rows)
    assert one.p_r == pytest.approx(0.8, abs=0.08)
    assert measure([]) == ()
    assert measure([replace(row, answers={}) for row in rows]) == (), "what was not asked is unknown"


def page(path: str, held: Held = Held.NOT_HELD, **facts) -> Resource:
    return Resource(SITE, SITE + path, "text/html", Live.LIVE, T0, held, T0, facts=Facts(**{"hops": 1, **facts}))


def test_advice_names_the_pages_of_each_gap_and_nothing_without_one() -> None:
    site = Site(SITE, T0, T0, notes=Notes(disallowed=(f"{SITE}private",)))
    resources = [
        page("fine", Held.HELD),
        page("news", noarchive=True),
        page("cart", cache="no-store"),
        page("alone", hops=None, source=f"{SITE}sitemap.xml"),
        page("far", hops=5),
        page("a/b/c/d/e"),
        page("list?a=1&b=2"),
    ]
    given = {one.gap: one for one in advise(site, resources)}
    pages = {gap: [uri.removeprefix(SITE) for uri in one.pages] for gap, one in given.items()}
    assert pages[Gap.NOARCHIVE] == ["news"] and pages[Gap.CACHE] == ["cart"] and pages[Gap.UNLINKED] == ["alone"]
    assert pages[Gap.FAR] == ["far"] and pages[Gap.DEEP] == ["a/b/c/d/e"] and pages[Gap.PARAMETERS] == ["list?a=1&b=2"]
    assert pages[Gap.ROBOTS] == ["private"]
    assert given[Gap.SUBMIT].count == 6 and list(given)[-1] is Gap.SUBMIT
    assert advise(replace(site, notes=Notes()), [page("fine", Held.HELD)]) == ()
    unknown = replace(page("later"), held=Held.UNKNOWN)
    assert advise(replace(site, notes=Notes()), [unknown]) == (), "unknown is not a gap"
    alone = advise(replace(site, notes=Notes()), resources[1:2])
    assert alone[0].text.partition(":")[0] == "1 address says “noarchive”"
    assert not any("{" in advice.text for advice in given.values())
    told = {page.uri.removeprefix(SITE): page for page in missing_pages(resources)}
    assert told["alone"].linked_from == f"{SITE}sitemap.xml" and told["alone"].hops is None and "fine" not in told
    assert (told["a/b/c/d/e"].folders, told["list?a=1&b=2"].parameters, told["cart"].cache_control) == (
        4,
        2,
        "no-store",
    )
