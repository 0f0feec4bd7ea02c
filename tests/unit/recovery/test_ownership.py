"""Periods of ownership from looks at a site."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from recollect.recovery.fingerprint import Page
from recollect.recovery.ownership import (
    ListedPages,
    Look,
    Observation,
    Owner,
    Ownership,
    Standing,
    find_ownership,
    next_look,
    ownership_words,
)
from recollect.recovery.verdicts import Verdict


def day(year: int, month: int = 1) -> datetime:
    return datetime(year, month, 1, tzinfo=UTC)


def page(name: str, words: str) -> Page:
    text = Counter({f"{words}{n}": 2 for n in range(40)})
    return Page(frozenset(f"/{name}/{n}" for n in range(6)), frozenset(name.split()), text)


CLUB, SHOP, BANK = page("rowing club", "boat"), page("garden shop", "chair"), page("first bank", "coin")


def looks(*seen: tuple[int, Page, Verdict | None]) -> list[Observation]:
    return [Observation(day(year), shown, verdict) for year, shown, verdict in seen]


def owners(ownership: Ownership) -> list[tuple[Owner, int, int]]:
    return [(period.owner, period.start.year, period.end.year) for period in ownership.periods]


def test_one_owner_has_one_period_and_no_end() -> None:
    found = find_ownership(looks((2003, CLUB, None), (2001, CLUB, None), (2009, CLUB, None)))
    assert owners(found) == [(Owner.OWN, 2001, 2009)] and found.ended_at is None and not found.foreign
    assert ownership_words(found.periods) == ""


def test_takers_and_sellers_end_a_site_at_the_first_of_them() -> None:
    found = find_ownership(
        looks(
            (2001, CLUB, None), (2003, CLUB, None), (2005, SHOP, None), (2007, BANK, None), (2009, SHOP, Verdict.PARKED)
        )
    )
    assert owners(found) == [(Owner.OWN, 2001, 2003), (Owner.OTHER, 2005, 2007), (Owner.PARKED, 2009, 2009)]
    assert found.ended_at == day(2005)
    assert ownership_words(found.periods) == "yours until 2003, then another owner (2005 to 2007), then parked (2009)"
    assert [found.standing(day(year)) for year in (2001, 2004, 2006, 2008, 2020)] == [
        *(Standing.OWN, Standing.OPEN, Standing.FOREIGN, Standing.FOREIGN, Standing.FOREIGN)
    ]
    assert Ownership.from_json(found.to_json()) == found


def test_a_return_is_the_owner_again() -> None:
    found = find_ownership(looks((2001, CLUB, None), (2005, SHOP, None), (2009, CLUB, None)))
    assert owners(found) == [(Owner.OWN, 2001, 2001), (Owner.OTHER, 2005, 2005), (Owner.OWN, 2009, 2009)]
    assert found.ended_at is None and found.foreign and found.standing(day(2007)) is Standing.OPEN
    assert ownership_words(found.periods).endswith("yours again until 2009")


def test_walls_and_errors_say_nothing_about_owners() -> None:
    for verdict in (Verdict.ANTI_BOT, Verdict.LOGIN, Verdict.SOFT_404, Verdict.COOKIE_WALL, Verdict.ERROR_PAGE):
        found = find_ownership(looks((2001, CLUB, None), (2005, SHOP, verdict)))
        assert owners(found) == [(Owner.OWN, 2001, 2001)], verdict


def test_a_registrars_page_before_a_site_is_not_its_owner() -> None:
    small = Page(frozenset(), frozenset({"soon"}), Counter({"soon": 1}))
    listed = ListedPages.of([(day(2005), f"/rowing club/{n}") for n in range(60)])
    found = find_ownership(looks((2001, small, None), (2005, CLUB, None), (2006, CLUB, None)), listed)
    assert owners(found)[-1] == (Owner.OWN, 2005, 2006)


def test_nothing_seen_is_no_reason_to_reject_anything() -> None:
    assert find_ownership([]).standing(day(2005)) is Standing.OWN


@pytest.mark.parametrize("count", [2, 5, 40, 400])
def test_the_change_is_found_with_few_looks(count: int) -> None:
    """Each capture has bytes of its own; the change is between two of them."""
    every = [Look(day(2000 + n // 12, n % 12 + 1), f"d{n}") for n in range(count)]
    for change in {1, count // 2, count - 1}:
        observed: dict[int, Observation | None] = {}
        while (place := next_look(every, observed, ListedPages())) is not None:
            assert place not in observed
            observed[place] = Observation(every[place].at, CLUB if place < change else SHOP)
        assert len(observed) <= 18
        found = find_ownership([seen for seen in observed.values() if seen is not None])
        assert found.ended_at is not None and (found.ended_at - every[change].at).days <= 31


def test_equal_bytes_are_looked_at_once_and_all_of_them_count() -> None:
    """A seller's page that is the same to the byte for years: the first of them is the end."""
    every = [Look(day(2000 + n), "club" if n < 4 else "seller") for n in range(12)]
    observed: dict[int, Observation | None] = {}
    while (place := next_look(every, observed, ListedPages())) is not None:
        verdict = None if place < 4 else Verdict.PARKED
        observed[place] = Observation(every[place].at, CLUB if place < 4 else SHOP, verdict)
    assert len(observed) == 2
    from recollect.recovery.ownership import all_observed

    assert find_ownership(all_observed(every, observed)).ended_at == day(2004)


def test_one_digest_for_ever_needs_no_look() -> None:
    assert next_look([Look(day(2000 + n), "same") for n in range(5)], {}, ListedPages()) is None


def test_the_share_of_older_addresses_that_are_gone() -> None:
    listed = ListedPages.of(
        [(day(2001), f"/{n}") for n in range(10)] + [(day(2005, 2), "/0")],
        [(day(2005, 2), f"/{n}") for n in range(1, 8)],
    )
    assert listed.gone(day(2005)) == 7 / 8 and listed.gone(day(2009)) is None
