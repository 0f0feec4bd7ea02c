"""What the archives hold of a site, before anything is fetched: a table, a timeline, and what a recovery would cost.

Hides: counting. Pure over the journal's captures and the archives' limits; the asking is the lister's. Estimates are
upper bounds: everything listed in scope, one request each, at the archives' own pace (McCown 2007, equations 16 to 18).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Any

from recollect.archives.registry import Archive
from recollect.datetimes import format_iso
from recollect.recovery.choose import Candidate, in_order, is_content, resolve_revisits
from recollect.recovery.journal import Journal
from recollect.recovery.lister import is_front
from recollect.recovery.meter import quotas_of
from recollect.recovery.options import Options
from recollect.recovery.ownership import Ownership, Period, Standing

KINDS = ("html", "image", "style", "script", "document", "media", "other", "redirect", "error")
# What a site still links to in its last year is captured in that year: the one estimate of links before any is read.
_RECENT = timedelta(days=366)
_LOCAL = 300.0  # captures a second that are read from a file of this disk
_UNLIMITED = 20.0  # requests a second an archive without a limit is taken to answer


class ListingState(StrEnum):
    """How the listing of one archive went."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    FAILED = "failed"
    NO_LISTING = "no listing"  # it lists no sites, only single pages
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class ArchiveSurvey:
    """One archive: how its listing went, and what is in it of the site."""

    id: str
    name: str
    state: ListingState
    detail: str = ""
    captures: int = 0
    resources: int = 0
    first: datetime | None = None
    last: datetime | None = None
    last_good: datetime | None = None
    chosen: int = 0  # resources a recovery would take from here


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a recovery: upper bounds for what is counted in it."""

    resources: int = 0
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    over_quota: tuple[str, ...] = ()  # archives that need more than one period of their quota

    def to_json(self) -> dict[str, Any]:
        return {
            "resources": self.resources,
            "requests": self.requests,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 1),
            "over_quota": list(self.over_quota),
        }


@dataclass(frozen=True, slots=True)
class Survey:
    """The whole site over all archives."""

    start: tuple[str, ...]
    archives: tuple[ArchiveSurvey, ...]
    captures: int = 0
    resources: int = 0
    per_year: dict[int, int] = field(default_factory=dict)
    per_kind: dict[str, int] = field(default_factory=dict)  # captures
    first: datetime | None = None
    last: datetime | None = None
    last_good: datetime | None = None
    all: Estimate = Estimate()  # exhaustive: everything that is listed
    ownership: tuple[Period, ...] = ()  # whose site it was, and when; empty where that was not looked at
    linked: Estimate = Estimate()  # knowledgeable: what is still linked at the end

    @property
    def complete(self) -> bool:
        """Did every archive that lists answer in full?"""
        incomplete = (ListingState.FAILED, ListingState.TRUNCATED)
        return all(archive.state not in incomplete for archive in self.archives)

    def to_json(self) -> dict[str, Any]:
        def iso(moment: datetime | None) -> str | None:
            return format_iso(moment) if moment is not None else None

        return {
            "start": list(self.start),
            "captures": self.captures,
            "resources": self.resources,
            "first": iso(self.first),
            "last": iso(self.last),
            "last_good": iso(self.last_good),
            "per_year": {str(year): count for year, count in sorted(self.per_year.items())},
            "per_type": self.per_kind,
            "ownership": [period.to_json() for period in self.ownership],
            "estimate": self.all.to_json(),
            "estimate_linked": self.linked.to_json(),
            "archives": [
                {
                    "id": a.id,
                    "name": a.name,
                    "state": a.state,
                    "detail": a.detail,
                    "captures": a.captures,
                    "resources": a.resources,
                    "first": iso(a.first),
                    "last": iso(a.last),
                    "last_good": iso(a.last_good),
                    "chosen": a.chosen,
                }
                for a in self.archives
            ],
        }


def kind_of(candidate: Candidate) -> str:
    """The kind of a capture, for counting."""
    if candidate.is_redirect:
        return "redirect"
    if not is_content(candidate.status):
        return "error"
    media = candidate.media_type
    if "html" in media:
        return "html"
    if media.startswith("image/"):
        return "image"
    if media == "text/css":
        return "style"
    if "javascript" in media or "ecmascript" in media:
        return "script"
    if media.startswith(("audio/", "video/")) or "flash" in media:
        return "media"
    documents = ("pdf", "msword", "officedocument", "excel", "powerpoint", "postscript", "text/plain", "rtf")
    return "document" if any(word in media for word in documents) else "other"


class _SurveyCounts:
    """Counts of one archive, or of all."""

    def __init__(self) -> None:
        self.captures = 0
        self.resources = 0
        self.years: Counter[int] = Counter()
        self.kinds: Counter[str] = Counter()
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.last_good: datetime | None = None

    def add(
        self, captures: Iterable[Candidate], shared: Mapping[str, int], is_home: bool, ownership: Ownership
    ) -> None:
        fetchable = False
        for c in captures:
            self.captures += 1
            self.years[c.captured_at.year] += 1
            self.kinds[kind_of(c)] += 1
            self.first = min(self.first or c.captured_at, c.captured_at)
            self.last = max(self.last or c.captured_at, c.captured_at)
            if is_content(c.status):
                fetchable = True
                # A front page goes on being captured when the domain is parked; the pages below show when it ended.
                own = ownership.standing(c.captured_at) is not Standing.FOREIGN
                if own and (ownership.periods or (not is_home and c.digest not in shared)):
                    self.last_good = max(self.last_good or c.captured_at, c.captured_at)
        self.resources += fetchable


def survey(
    journal: Journal,
    archives: Sequence[Archive],
    options: Options,
    skipped: Mapping[str, str],
    ownership: Ownership | None = None,
) -> Survey:
    """Sum up what the journal knows. `skipped` says why archives were not asked. `last_good` is the last capture of the
    owner's time, as far as `ownership` knows it; else the last page below the front page with bytes of its own."""
    owners = ownership or Ownership()
    total = _SurveyCounts()
    each = {archive.id: _SurveyCounts() for archive in archives}
    chosen: list[tuple[Candidate, datetime]] = []  # the best capture of each resource, and when it was last seen
    shared = journal.repeated_digests()  # parked domains and error pages answer many URLs with the same bytes
    for key, group in groupby(journal.all_captures(), key=lambda pair: pair[0]):
        captures = resolve_revisits(candidate for _, candidate in group)
        if not options.scope.holds(captures[0].uri):
            continue
        is_home = options.scope.is_home(key)
        total.add(captures, shared, is_home, owners)
        for name, own in groupby(sorted(captures, key=lambda c: c.archive), key=lambda c: c.archive):
            if name in each:
                each[name].add(own, shared, is_home, owners)
        best = _chosen(captures, archives, options)
        chosen += [(candidate, max(c.captured_at for c in captures)) for candidate in best]
    last_good = total.last_good or total.last
    recent = [c for c, seen in chosen if last_good is not None and seen >= last_good - _RECENT]
    counts = Counter(candidate.archive for candidate, _ in chosen)
    listing = sum(usage.listed for usage in journal.usages().values())
    return Survey(
        options.scope.start,
        tuple(_archive(a, each[a.id], journal, skipped, counts[a.id]) for a in archives),
        total.captures,
        total.resources,
        dict(sorted(total.years.items())),
        {kind: total.kinds[kind] for kind in KINDS if total.kinds[kind]},
        total.first,
        total.last,
        last_good,
        _estimate([c for c, _ in chosen], archives, options, listing),
        owners.periods,
        _estimate(recent, archives, options, listing),
    )


def _chosen(captures: Sequence[Candidate], archives: Sequence[Archive], options: Options) -> list[Candidate]:
    """The captures of one resource that a recovery would fetch; equal bytes cost one request."""
    order = in_order(captures, options.dates, archives=[a.id for a in archives])
    if not options.all_captures:
        return order[:1]
    return list({c.digest or (c.archive, c.captured_at): c for c in reversed(order)}.values())


def _estimate(chosen: Sequence[Candidate], archives: Sequence[Archive], options: Options, listing: int) -> Estimate:
    counts = Counter(candidate.archive for candidate in chosen)
    quotas = quotas_of(archives, options.quotas)
    read = sum(counts[archive.id] for archive in archives if archive.is_local)  # from this disk, without a request
    return Estimate(
        len(chosen),
        len(chosen) - read + listing,
        sum(candidate.length or 0 for candidate in chosen),
        max((_seconds(archive, counts[archive.id], options) for archive in archives), default=0.0),
        tuple(name for name, quota in quotas.items() if counts[name] > quota.limit),
    )


def _archive(
    archive: Archive, tally: _SurveyCounts, journal: Journal, skipped: Mapping[str, str], chosen: int
) -> ArchiveSurvey:
    listings = [listing for (name, _), listing in journal.listings().items() if name == archive.id]
    state, detail = ListingState.NO_LISTING, ""
    if archive.id in skipped:
        state, detail = ListingState.NOT_ASKED, skipped[archive.id]
    elif listings:
        worst = min(listings, key=lambda x: ("failed", "part", "truncated", "done").index(x.state))
        state = _STATES[worst.state]
        if is_front(worst.query) and state == ListingState.TRUNCATED:
            state = ListingState.NO_LISTING
        detail = worst.detail
    return ArchiveSurvey(
        archive.id,
        archive.name or archive.id,
        state,
        detail,
        tally.captures,
        tally.resources,
        tally.first,
        tally.last,
        tally.last_good or tally.last,
        chosen,
    )


_STATES = {
    "done": ListingState.COMPLETE,
    "truncated": ListingState.TRUNCATED,
    "part": ListingState.FAILED,
    "failed": ListingState.FAILED,
}


def _seconds(archive: Archive, requests: int, options: Options) -> float:
    """How long this number of captures takes from one archive, under its rate and its quota."""
    unlimited = _LOCAL if archive.is_local else _UNLIMITED
    rate = archive.replay_rate.per_second if archive.replay_rate else unlimited
    seconds = requests / rate
    quota = quotas_of([archive], options.quotas).get(archive.id)
    if quota is not None and requests > quota.limit:
        seconds = max(seconds, (requests - 1) // quota.limit * quota.period)
    return seconds
