"""All that a dashboard shows: the resources in each state over time, and every site as it stands.

Hides: the summing over sites. Pure over a store. Sites are visited at different hours; at each moment a site counts
with its last tally, so that the sum does not jump between visits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect.datetimes import format_iso
from recollect.watch.advice import Advice, MissingPage, advise, missing_pages
from recollect.watch.measures import Keeping, measure
from recollect.watch.pageloss import lost_pages
from recollect.watch.records import RecoveryRecord, Resource, SaveState, Site, VisitRecord, counts_of, held_of
from recollect.watch.registration import Registration
from recollect.watch.states import RULES, ResourceState
from recollect.watch.store import Store

MOST_POINTS = 400
MOST_VISITS = 40
Counts = Mapping[ResourceState, int]


@dataclass(frozen=True, slots=True)
class Line:
    """One site."""

    site: Site
    counts: Counts
    recovery: RecoveryRecord | None = None
    """The recovery of its last loss."""
    saves: Mapping[SaveState, int] = field(default_factory=dict)
    offline_since: datetime | None = None
    """Since when visits say nothing, because nothing at all answers."""
    lost: tuple[Resource, ...] = ()
    """Lost pages of a live site."""

    @property
    def recoverable(self) -> float | None:
        return share_of(self.counts)

    @property
    def unseen_since(self) -> datetime | None:
        """When the content of a site that counts as fine was last seen, if visits since then showed nothing, such as a
        wall against robots; None if it was seen lately."""
        status, visited = self.site.status, self.site.last_visit
        if status.is_gone or status.last_own is None or visited is None:
            return None
        return status.last_own if visited - status.last_own >= RULES.suspect_after else None

    def to_json(self) -> dict[str, Any]:
        """A site for programs."""
        site, recovery = self.site, self.recovery
        registration = Registration.from_json(site.registration)
        return {
            "site": site.uri,
            "state": site.status.state.value,
            "since": _iso(site.status.since),
            "last_visit": _iso(site.last_visit),
            "next_visit": _iso(site.next_visit),
            "last_own": _iso(site.status.last_own),
            "offline_since": _iso(self.offline_since),
            "moved_to": site.moved_to or None,
            "recoverable": share_of(self.counts),
            "resources": {state.value: self.counts[state] for state in ResourceState},
            "recovery": site.recovery or None,
            "recovery_state": recovery.state.value if recovery is not None else None,
            "recovery_detail": (recovery.detail or None) if recovery is not None else None,
            "job": (recovery.job or None) if recovery is not None else None,
            "lost_pages": [
                {"uri": one.uri, "since": _iso(one.gone_since), "copy": one.copy or None} for one in self.lost
            ],
            "new_links": list(site.notes.injected),
            "certificate_until": site.notes.certificate_until or None,
            "domain_until": _iso(registration.ends) if registration is not None else None,
            "every_hours": site.every.total_seconds() / 3600,
            "saves": {state.value: self.saves.get(state, 0) for state in SaveState},
        }


def _iso(moment: datetime | None) -> str | None:
    return format_iso(moment) if moment is not None else None


@dataclass(frozen=True, slots=True)
class Detail:
    """All that the page of one site shows."""

    line: Line
    keeping: tuple[Keeping, ...]
    advice: tuple[Advice, ...]
    visits: tuple[VisitRecord, ...]
    """The last ones, newest first."""
    missing: tuple[MissingPage, ...] = ()
    """Live resources that no archive holds."""

    def to_json(self) -> dict[str, Any]:
        return self.line.to_json() | {
            "archives": [one.to_json() for one in self.keeping],
            "advice": [one.to_json() for one in self.advice],
            "missing": [one.to_json() for one in self.missing],
        }


@dataclass(frozen=True, slots=True)
class Board:
    """A watch at one moment, and how it came to be."""

    at: datetime
    lines: tuple[Line, ...]
    series: tuple[tuple[datetime, Counts], ...]

    @property
    def total(self) -> Counts:
        return {state: sum(line.counts[state] for line in self.lines) for state in ResourceState}

    def to_json(self) -> dict[str, Any]:
        return {
            "at": format_iso(self.at),
            "sites": [line.to_json() for line in self.lines],
            "series": [
                {"at": format_iso(at), **{state.value: counts[state] for state in ResourceState}}
                for at, counts in self.series
            ],
        }


def share_of(counts: Counts) -> float | None:
    """The share that archives hold, of what is known."""
    held, known = held_of(counts)
    return held / known if known else None


def lines_of(store: Store) -> tuple[Line, ...]:
    """Every site of a store."""
    found = []
    offline = store.offline_since()
    for site in store.sites():
        saves = Counter(one.state for one in store.saves(site.uri).values())
        last = next(iter(store.recoveries(site.uri)), None)
        resources = store.resources(site.uri)
        lost = lost_pages(resources) if not site.status.is_gone else ()
        found.append(Line(site, counts_of(resources), last, saves, offline.get(site.uri), lost))
    return tuple(found)


def detail_of(store: Store, uri: str) -> Detail | None:
    """The page of one site; None if it is not watched."""
    line = next((one for one in lines_of(store) if one.site.uri == uri), None)
    if line is None:
        return None
    keeping = measure(store.observations(uri), line.site.sample)
    resources = store.resources(uri)
    visits = tuple(store.visits(uri)[: -MOST_VISITS - 1 : -1])
    return Detail(line, keeping, advise(line.site, resources, keeping), visits, missing_pages(resources))


def board_of(store: Store, at: datetime) -> Board:
    """The dashboard of a store."""
    return Board(at, lines_of(store), _series(store))


def _series(store: Store) -> tuple[tuple[datetime, Counts], ...]:
    times = store.tally_times()
    every = -(-len(times) // MOST_POINTS) or 1
    wanted = {*times[::-1][::every], *times[:1]}
    last: dict[str, Counts] = {}
    points: dict[datetime, Counts] = {}
    for site, at, counts in store.tallies():
        last[site] = counts
        if at in wanted:
            points[at] = {state: sum(one.get(state, 0) for one in last.values()) for state in ResourceState}
    return tuple(points.items())
