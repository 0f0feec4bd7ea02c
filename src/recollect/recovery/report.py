"""The report of a recovery: each resource with archive and capture date, and what is missing and why.

It exists as a value, as JSON, as Warrick's table and as a page. Reads only the store and its journal. Everything that
came from an archive is escaped wherever it is written: into HTML as text, into the table without tabs and line breaks.
Layout of summary.tsv (McCown 2007, figure 27): when recovered, URL, media type, file, archive, date of capture, other
archives with dates; a resource without content has MISSING, KNOWN (listed, in scope, never linked) or QUEUED as its
type, and words at the end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recollect import __version__
from recollect.datetimes import format_iso, parse_timestamp
from recollect.recovery.figures import Figures, figures_of
from recollect.recovery.journal import Journal
from recollect.recovery.local import LocalSource, local_notes, local_sources
from recollect.recovery.measure import Difference
from recollect.recovery.options import Options
from recollect.recovery.ownership import Ownership, Period
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.protected import ProtectedFiles, protected_files
from recollect.recovery.records import Missing, Recovered, Substitute
from recollect.recovery.sentences import summary as sentences
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Reason
from recollect.ui.messages import SOURCE, message, using

# How far an embedded resource may be from its page: names and limits.
_SPREAD = (
    (message("same day"), timedelta(days=1)),
    (message("same week"), timedelta(days=7)),
    (message("same month"), timedelta(days=31)),
    (message("same year"), timedelta(days=366)),
    (message("further"), timedelta.max),
)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the report says."""

    start: tuple[str, ...]
    resources: tuple[Recovered, ...]
    redirects: int
    missing: tuple[Missing, ...]
    queued: tuple[str, ...]
    known: tuple[str, ...]  # listed in scope, never linked, as far as the crawl came
    requests: Mapping[str, int]
    listings: Mapping[str, str]  # archive -> how its listing went, where that matters
    coherence: Mapping[str, int]
    furthest: tuple[tuple[str, str, int], ...]  # (resource, page, days apart)
    files: Mapping[str, str]
    front: str | None  # the file to open first
    finished_at: datetime | None
    ended_at: datetime | None
    complete: bool = True  # nothing is left to fetch; only then is it known that no link leads to what is `known`
    outside: tuple[tuple[str, str], ...] = ()  # (URI, page) of what pages embed from outside the scope
    neutral: Mapping[str, str] = field(default_factory=dict)  # embedded and not there -> a page that embeds it
    kept: Mapping[str, str] = field(default_factory=dict)  # a person's file -> the new version beside it
    figures: Figures = field(default_factory=Figures)
    ownership: tuple[Period, ...] = ()  # whose site it was, and when; empty where nothing changed
    captures: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # archive -> year -> captures it lists
    at: datetime | None = None  # the day that was asked for (--at)
    versions: int = 0  # further captures that were kept (--all-captures)
    versions_left_out: Mapping[str, int] = field(default_factory=dict)  # those that were not, by outcome
    substitutes: tuple[tuple[Substitute, str], ...] = ()  # found under another address, which stands beside
    protected: ProtectedFiles | None = None  # blocks of the server's own files in the recovered pages
    sources: tuple[LocalSource, ...] = ()  # files and folders that were read like archives
    notes: Mapping[tuple[str, str, datetime], str] = field(default_factory=dict)  # on captures of these

    def note(self, resource: Recovered) -> str:
        """What a reader has to know about the capture of a file: the origin of its time, whether it is whole."""
        return self.notes.get((resource.archive, resource.uri, resource.captured_at), "")

    @property
    def suspects(self) -> tuple[Recovered, ...]:
        """Pages whose captures are all doubtful: the best one was kept, for a person to decide."""
        return tuple(resource for resource in self.resources if resource.suspect is not None)

    def days_from_day(self, resource: Recovered) -> int | None:
        """Days from the day that was asked for to the capture: negative before it; None where no day was asked for."""
        return (resource.captured_at.date() - self.at.date()).days if self.at is not None else None

    @property
    def distances(self) -> dict[str, int]:
        """How many resources were captured how far from the day that was asked for."""
        if self.at is None:
            return {}
        spread = dict.fromkeys((name for name, _ in _SPREAD), 0)
        for resource in self.resources:
            apart = timedelta(days=abs(self.days_from_day(resource) or 0))
            spread[next(name for name, limit in _SPREAD if apart < limit)] += 1
        return spread

    @property
    def needed(self) -> int:
        """Everything the pages link to within the site and need for their look, wherever that is."""
        return len(self.resources) + len(self.missing) + len(self.outside)

    @property
    def outside_hosts(self) -> dict[str, int]:
        """Resources that pages need from outside the scope, by host, most first."""
        return dict(Counter(urlsplit(uri).netloc for uri, _ in self.outside).most_common())

    @property
    def by_archive(self) -> dict[str, int]:
        return dict(Counter(resource.archive for resource in self.resources).most_common())

    @property
    def by_reason(self) -> dict[Reason, int]:
        return dict(Counter(missing.reason for missing in self.missing).most_common())

    @property
    def total_requests(self) -> int:
        return sum(self.requests.values())

    @property
    def efficiency(self) -> float | None:
        """Recovered resources per request (McCown 2007, equation 24)."""
        return len(self.resources) / self.total_requests if self.total_requests else None

    @property
    def difference(self) -> Difference:
        """An estimate without the lost site: altered counts as changed, what is linked is the site."""
        altered = sum(bool(r.altered or r.live or r.suspect) for r in self.resources)
        gone = len(self.missing) + len(self.outside)
        return Difference.of_counts(altered, gone, 0, lost=self.needed, recovered=len(self.resources))


def make_report(
    store: Store,
    files: Mapping[str, str],
    *,
    neutral: Mapping[str, str] | None = None,
    kept: Mapping[str, str] | None = None,
) -> Report:
    """Sum up a store. `files` are the names of the restored tree, by URI; `neutral` and `kept` are as in the report."""
    journal = Journal(store)
    resources = tuple(store.recovered(redirects=False))
    spread, furthest = _coherence(store, resources)
    finished, ended = store.meta("finished_at"), store.meta("ended_at")
    return Report(
        start=tuple(store.start),
        resources=resources,
        redirects=sum(1 for resource in store.recovered() if resource.is_redirect),
        missing=tuple(store.missing()),
        queued=tuple(uri for _, uri, _ in store.queued()),
        known=tuple(known_not_fetched(store)),
        requests={name: usage.requests for name, usage in journal.usages().items()},
        listings={x.archive: f"{x.state}: {x.detail}" for x in journal.listings().values() if x.state != "done"},
        coherence=spread,
        furthest=furthest,
        files=files,
        front=_front(store, resources, files),
        finished_at=parse_timestamp(finished) if finished else None,
        ended_at=parse_timestamp(ended) if ended else None,
        complete=bool(store.meta("complete", True)) and not any(True for _ in store.queued()),
        outside=tuple((uri, page) for uri, page in store.outside() if store.find(uri) is None),
        neutral=neutral or {},
        kept=kept or {},
        figures=figures_of(store),
        ownership=Ownership.from_json(store.meta("ownership") or {}).periods,
        captures=_captures(journal, resources),
        at=_day_asked_for(store),
        versions=sum(1 for _ in journal.versions()),
        versions_left_out=store.meta("captures_left_out") or {},
        substitutes=tuple((one, _address(store, one.target)) for one in store.substitutes()),
        protected=protected_files(store.content(resource) for resource in resources if resource.kind == "page"),
        sources=local_sources(store),
        notes=local_notes(store),
    )


def _day_asked_for(store: Store) -> datetime | None:
    options = store.meta("options")
    return Options.from_json(options).dates.at if options is not None else None


def _address(store: Store, key: str) -> str:
    resource = store.get(key)
    return resource.uri if resource is not None else key


def _captures(journal: Journal, resources: Sequence[Recovered]) -> dict[str, dict[int, int]]:
    """How many captures each archive lists of each year; of an archive without a listing, those that were used."""
    counts: dict[str, dict[int, int]] = {}
    for _, capture in journal.all_captures():
        per_year = counts.setdefault(capture.archive, {})
        per_year[capture.captured_at.year] = per_year.get(capture.captured_at.year, 0) + 1
    listed = set(counts)
    for resource in resources:
        if resource.archive not in listed:
            per_year = counts.setdefault(resource.archive, {})
            per_year[resource.captured_at.year] = per_year.get(resource.captured_at.year, 0) + 1
    return counts


def _front(store: Store, resources: tuple[Recovered, ...], files: Mapping[str, str]) -> str | None:
    """Where the start URI leads to; else the first page there is."""
    found = [store.resolve(uri) for uri in store.start]
    found += [resource for resource in resources if resource.kind == "page"]
    return next((files[resource.uri] for resource in found if resource is not None and resource.uri in files), None)


def known_not_fetched(store: Store) -> Iterator[str]:
    """Listed and in scope, but no link led there: the exhaustive policy would fetch them."""
    options = store.meta("options")
    if options is None:
        return
    scope = Options.from_json(options).scope
    for uri in Journal(store).unreached():
        if scope.holds(uri):
            yield uri


def _coherence(
    store: Store, resources: tuple[Recovered, ...]
) -> tuple[dict[str, int], tuple[tuple[str, str, int], ...]]:
    """How far the embedded resources are from their pages in time."""
    by_key = {resource.key: resource for resource in resources}
    near = store.embedded_keys()
    spread = dict.fromkeys((name for name, _ in _SPREAD), 0)
    distances = []
    for resource in resources:
        page = by_key.get(resource.found_on or "")
        if page is None or resource.key not in near:
            continue
        apart = abs(resource.captured_at - page.captured_at)
        spread[next(name for name, limit in _SPREAD if apart <= limit)] += 1
        distances.append((apart, resource.uri, page.uri))
    distances.sort(key=lambda item: (-item[0], item[1]))
    return spread, tuple((uri, page, apart.days) for apart, uri, page in distances[:20] if apart.days > 31)


def _in_english(report: Report) -> list[str]:
    """Programs read JSON: its sentences do not depend on the reader's language."""
    with using(SOURCE):
        return sentences(report.figures)


# JSON ----------------------------------------------------------------------------------------------------------------


def to_json(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {
        "recollect": __version__,
        "start": list(report.start),
        "finished_at": format_iso(report.finished_at) if report.finished_at else None,
        "ended_at": format_iso(report.ended_at) if report.ended_at else None,
        "ownership": [period.to_json() for period in report.ownership],
        "protected": (
            {"pages": report.protected.pages, "classes": list(report.protected.classes)} if report.protected else None
        ),
        "figures": report.figures.to_json(),
        "sentences": _in_english(report),
        "totals": {
            "recovered": len(report.resources),
            "pages": sum(resource.kind == "page" for resource in report.resources),
            "redirects": report.redirects,
            "missing": len(report.missing),
            "queued": len(report.queued),
            "known_not_fetched": len(report.known),
            "needed": report.needed,
            "needed_elsewhere": len(report.outside),
            "suspects": len(report.suspects),
            "bytes": sum(resource.length for resource in report.resources),
            "requests": report.total_requests,
            "efficiency": round(report.efficiency, 4) if report.efficiency is not None else None,
        },
        "by_archive": report.by_archive,
        "sources": [
            {
                "id": one.id,
                "name": one.name,
                "kind": one.kind,
                "depth": one.depth,
                "entries_looked_at": one.entries,
                "entries_of_the_site": one.in_scope,
                "entries_taken": report.by_archive.get(one.id, 0),
                "entries_damaged": one.damaged,
            }
            for one in report.sources
        ],
        "missing_by_reason": report.by_reason,
        "requests": dict(report.requests),
        "listings": dict(report.listings),
        "coherence": dict(report.coherence),
        "furthest": [{"uri": uri, "page": page, "days": days} for uri, page, days in report.furthest],
        "at": format_iso(report.at) if report.at else None,
        "distances": report.distances,
        "resources": [
            _resource_json(resource, report.files)
            | {"days_from_at": report.days_from_day(resource), "note": report.note(resource)}
            for resource in report.resources
        ],
        "missing": [
            {
                "uri": m.uri,
                "reason": m.reason,
                "verdict": m.verdict,
                "detail": m.detail,
                "kind": m.kind,
                "found_on": m.found_on,
            }
            for m in report.missing
        ],
        "all_captures": {
            "kept": report.versions,
            "left_out": {name: n for name, n in report.versions_left_out.items() if name != "kept"},
        },
        "found_under": [
            {"uri": one.uri, "found_under": address, "rule": one.rule, "evidence": one.evidence}
            for one, address in report.substitutes
        ],
        "suspects": [
            {"uri": r.uri, "verdict": r.suspect, "detail": r.doubt, "captured_at": format_iso(r.captured_at)}
            for r in report.suspects
        ],
        "complete": report.complete,
        "needed_elsewhere": [{"uri": uri, "page": page} for uri, page in report.outside],
        "needed_elsewhere_by_host": report.outside_hosts,
        "neutralized": [{"uri": uri, "page": page} for uri, page in sorted(report.neutral.items())],
        "kept_files": [{"file": name, "new": new} for name, new in sorted(report.kept.items())],
        "queued": list(report.queued),
        "known_not_fetched": list(report.known),
    }


def _resource_json(resource: Recovered, files: Mapping[str, str]) -> dict[str, Any]:
    return {
        "uri": resource.uri,
        "file": files.get(resource.uri),
        "media_type": resource.media_type,
        "length": resource.length,
        "digest": resource.digest,
        "archive": resource.archive,
        "captured_at": format_iso(resource.captured_at),
        "uri_m": resource.uri_m,
        "altered": resource.altered,
        "live": resource.live,
        "suspect": resource.suspect,
        "found_on": resource.found_on,
        "other_archives": {name: format_iso(at) for name, at in resource.other_archives},
    }


# Warrick's table -----------------------------------------------------------------------------------------------------


def summary_lines(report: Report) -> Iterator[str]:
    """The reconstruction summary, one resource per line."""
    now = _when(report.finished_at)
    for r in report.resources:
        others = ", ".join(f"{name}:{at:%Y-%m-%d}" for name, at in r.other_archives)
        file = report.files.get(r.uri, "")
        days = report.days_from_day(r)
        distance = () if days is None else (f"{days:+d} days",)
        captured = f"{r.captured_at:%Y-%m-%d}"
        yield _line(_when(r.fetched_at), r.uri, r.media_type, file, r.archive, captured, others, *distance)
    by_address = {r.uri: r for r in report.resources}
    for one, address in report.substitutes:
        r = by_address[address]
        words = f"found under {address} by the rule {one.rule} ({one.evidence})"
        captured = f"{r.captured_at:%Y-%m-%d}"
        yield _line(now, one.uri, r.media_type, report.files.get(address, ""), r.archive, captured, words)
    for m in report.missing:
        yield _line(now, m.uri, "MISSING", "", "", "", f"{m.reason}: {m.detail}" if m.detail else m.reason)
    for uri in report.known:
        yield _line(now, uri, "KNOWN", "", "", "", "listed, " + known_reason(report))
    for uri, page in report.outside:
        yield _line(now, uri, "MISSING", "", "", "", f"outside the scope (--assets anywhere): needed by {page}")
    for uri in report.queued:
        yield _line(now, uri, "QUEUED", "", "", "", "still to be fetched")


def known_reason(report: Report) -> str:
    """Why something is listed and was not fetched. Unknown is not no: links that were not read may lead there."""
    return "but no link led there" if report.complete else "not reached before the run ended"


def _when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""


def _line(*cells: str) -> str:
    return "\t".join(" ".join(cell.split()) for cell in cells)


# Files ---------------------------------------------------------------------------------------------------------------


def write_report(report: Report, files: OwnFiles, *, summary: Path | None = None) -> None:
    """report.html, report.json and summary.tsv (or another place for the summary)."""
    from recollect.recovery.reportpage import report_page

    texts = {
        str(summary.resolve()) if summary else "summary.tsv": "".join(line + "\n" for line in summary_lines(report)),
        "report.json": json.dumps(to_json(report), ensure_ascii=False, indent=2) + "\n",
        "report.html": report_page(report),
    }
    for name, content in texts.items():
        files.write(name, content.encode("utf-8", "replace"))
