"""All that a dashboard shows: the resources in each state over time, and every site as it stands.

Hides: the summing over sites. Pure over a store. Sites are visited at different hours; at each moment a site counts
with its last tally, so that the sum does not jump between visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.datetimes import format_iso
from recollect.watch.states import ResourceState
from recollect.watch.store import Site, Store, counts_of

MOST_POINTS = 400
Counts = Mapping[ResourceState, int]


@dataclass(frozen=True, slots=True)
class Line:
    """One site."""

    site: Site
    counts: Counts

    @property
    def recoverable(self) -> float | None:
        return share_of(self.counts)


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
            "sites": [site_json(line.site, line.counts) for line in self.lines],
            "series": [
                {"at": format_iso(at), **{state.value: counts[state] for state in ResourceState}}
                for at, counts in self.series
            ],
        }


def share_of(counts: Counts) -> float | None:
    """The share that archives hold, of what is known."""
    known = sum(counts.values()) - counts[ResourceState.UNKNOWN]
    return (counts[ResourceState.REPLICATED] + counts[ResourceState.ENDANGERED]) / known if known else None


def site_json(site: Site, counts: Counts) -> dict[str, Any]:
    """A site for programs."""

    def iso(moment: datetime | None) -> str | None:
        return format_iso(moment) if moment is not None else None

    return {
        "site": site.uri,
        "state": site.status.state.value,
        "since": iso(site.status.since),
        "last_visit": iso(site.last_visit),
        "next_visit": iso(site.next_visit),
        "last_own": iso(site.status.last_own),
        "moved_to": site.moved_to or None,
        "recoverable": share_of(counts),
        "resources": {state.value: counts[state] for state in ResourceState},
        "recovery": site.recovery or None,
    }


def board_of(store: Store, at: datetime) -> Board:
    """The dashboard of a store."""
    lines = tuple(Line(site, counts_of(store.resources(site.uri))) for site in store.sites())
    return Board(at, lines, _series(store))


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
