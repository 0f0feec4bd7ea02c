"""What a watch remembers: round trips, one notice per cause, thinning, and nothing half written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.errors import UsageError
from recollect.watch.records import Observation, OnLoss, Resource, Site, VisitRecord, counts_of
from recollect.watch.states import Held, Live, Notice, ResourceState, SiteState, SiteStatus, VisitResult
from recollect.watch.store import Store

T0 = datetime(2026, 1, 1, tzinfo=UTC)
STATUS = SiteStatus(SiteState.SUSPECT, T0, T0, T0 + timedelta(days=1), 3, 1, T0, True, T0 + timedelta(days=2))
SITE = Site(
    *(
        "http://a.example/",
        T0,
        T0 + timedelta(days=1),
        20,
        OnLoss.NOTIFY,
        "archives.toml",
        True,
        "a@b.example",
        "http://hook/",
    ),
    *(STATUS, '{"links": ["/x"], "title": [], "pages": []}', "{}", T0, "http://b.example/", "recovered/a"),
)


def test_a_site_is_kept_as_it_is(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_site(SITE)
    with Store(tmp_path, create=False) as store:
        assert store.sites() == [SITE]
        assert store.site(SITE.uri) == SITE
        assert list(store.sites()[0].known().links) == ["/x"]
        assert store.remove(SITE.uri)
        assert not store.remove(SITE.uri)
        assert store.sites() == []


def test_a_resource_is_kept_as_it_is(tmp_path: Path) -> None:
    resource = Resource("s", "u", "text/html", Live.LIVE, T0, Held.HELD, T0, 0.5, "d", "e", ("ia", "pt"))
    with Store(tmp_path) as store:
        store.put_resource(resource)
        store.put_resource(Resource("s", "v"))
        assert store.resources("s") == [resource, Resource("s", "v")]
        assert counts_of(store.resources("s"))[ResourceState.REPLICATED] == 1
        assert counts_of(store.resources("s"))[ResourceState.UNKNOWN] == 1


def test_sites_are_due_when_their_time_has_come_or_the_clock_went_back(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_site(SITE)
        assert store.due(T0) == []
        assert store.due(T0 + timedelta(days=1)) == [SITE]
        assert store.due(T0 - timedelta(days=300)) == [SITE]


def test_a_site_that_was_never_visited_is_due_whatever_the_clock_says(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_site(replace(SITE, last_visit=None, next_visit=T0 + timedelta(hours=21)))
        assert len(store.due(T0)) == 1


def test_every_observation_is_kept_for_a_year_and_then_changes_and_one_a_month(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for number in range(500):
            at = T0 + timedelta(days=number)
            for name in ("u", "v"):
                live = Live.GONE if (name, number) == ("u", 50) else Live.LIVE
                store.add_observation(Observation("s", name, at, 200, live, Held.HELD, 0.5))
        assert len(store.observations("s")) == 1000
        assert store.observations("s")[0] == Observation("s", "u", T0, 200, Live.LIVE, Held.HELD, 0.5)
        store.compact(T0 + timedelta(days=500))
        kept = store.observations("s")
        assert sum(one.at >= T0 + timedelta(days=135) for one in kept) == 2 * 365
        assert sum(one.live is Live.GONE for one in kept) == 1
        assert len(kept) < 2 * (365 + 12)
        store.remove("s")
        assert store.observations("s") == []


def test_a_database_of_an_earlier_version_is_opened(tmp_path: Path) -> None:
    import sqlite3

    with Store(tmp_path) as store:
        store.put_site(replace(SITE, status=replace(STATUS, last_failed=None)))
    db = sqlite3.connect(tmp_path / "watch.sqlite3")
    db.execute("ALTER TABLE site DROP COLUMN last_failed")
    db.close()
    with Store(tmp_path) as store:
        assert store.sites() == [replace(SITE, status=replace(STATUS, last_failed=None))]


def test_a_notice_is_queued_once_per_cause_and_pending_until_sent(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        assert store.add_notice("s", Notice.LOST, T0, T0, "why")
        assert not store.add_notice("s", Notice.LOST, T0, T0 + timedelta(days=1), "again")
        assert store.add_notice("s", Notice.LOST, T0 + timedelta(days=90), T0, "another loss")
        first, second = store.pending()
        store.sent(first.number, T0)
        assert store.pending() == [second]


def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(RuntimeError), store.transaction():
            store.put_site(SITE)
            raise RuntimeError
        assert store.sites() == []


def test_old_observations_are_thinned_to_one_a_month_and_changes_stay(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for number in range(500):
            state = SiteState.LOST if number == 100 else SiteState.FINE
            at = T0 + timedelta(days=number)
            store.add_visit(VisitRecord("s", at, VisitResult.OWN, state, ""))
            store.add_tally("s", at, {ResourceState.REPLICATED: number})
        store.compact(T0 + timedelta(days=500))
        kept = store.visits("s")
        assert sum(past.at >= T0 + timedelta(days=135) for past in kept) == 365
        assert SiteState.LOST in {past.state for past in kept}
        assert len(kept) < 365 + 15
        assert len(store.tallies("s")) < 365 + 8
        assert store.compact(T0 + timedelta(days=500)) == 0


def test_a_folder_that_watches_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is watched"):
        Store(tmp_path / "empty", create=False)


def test_a_changed_site_replaces_the_old_one(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_site(SITE)
        store.put_site(replace(SITE, sample=7))
        assert [site.sample for site in store.sites()] == [7]
