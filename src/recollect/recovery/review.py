"""Doubtful pages of a recovery, and what a person decides about them: the interface of every place that asks.

The terminal, the local page and the desk use the same three functions. All of them take the folder of a recovery, also
one that was downloaded and unzipped (`recovery.portable`):

    doubtful_pages(folder)                      the pages to ask about: DoubtfulPage with number, uri, captured_at,
                                                verdict, reason, confidence, file, similar
    page_for_review(folder, number)             the page as HTML for a frame with `sandbox`: no script, no request to
                                                any other host
    decide(folder, {uri: Decision.MINE, ...})   records the decisions and makes all outputs again; returns the report

A page is named by its URI. A decision holds for every page that is like it (`DoubtfulPage.similar`), unless that page
has a decision of its own or `similar=False`; it is remembered, so that a later run decides about captures like it by
itself. MINE makes a page an ordinary page. NOT_MINE makes it missing, and its bytes are not taken again.

Hides: how a choice names pages, which pages are alike, and that the outputs are made again. `report.suspects` are those
left to ask about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from recollect.datetimes import format_iso
from recollect.errors import FormatError, UsageError
from recollect.recovery.disk import on_this_disk
from recollect.recovery.filenames import ANY_SYSTEM, WINDOWS, file_names
from recollect.recovery.links import Document, read_document
from recollect.recovery.outputs import Outputs
from recollect.recovery.progress import Watch
from recollect.recovery.records import Recovered
from recollect.recovery.recover import remake
from recollect.recovery.report import Report
from recollect.recovery.similar import Sketch, alike, sketch_of
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Decision, Verdict

__all__ = ["Decision", "DoubtfulPage", "decide", "decide_suspects", "doubtful_pages", "page_for_review", "suspects"]

EVERYTHING = "all"
FRAME_POLICY = "sandbox; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self'"
"""The Content-Security-Policy of a page that is shown for review: pictures and styles of the site, nothing else."""


@dataclass(frozen=True, slots=True)
class DoubtfulPage:
    """A page to ask about. Numbers begin at 1, in order of address."""

    number: int
    uri: str
    captured_at: datetime
    archive: str
    uri_m: str
    verdict: Verdict
    reason: str
    confidence: float | None
    """The probability that the verdict is right; None from a version without it."""
    title: str
    file: str | None
    """The page in the recovered folder, relative to it: what a picture is made of."""
    similar: tuple[int, ...]
    """Numbers of the other pages that a decision about this one holds for."""

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "uri": self.uri,
            "verdict": self.verdict,
            "detail": self.reason,
            "confidence": self.confidence,
            "title": self.title,
            "captured_at": format_iso(self.captured_at),
            "archive": self.archive,
            "uri_m": self.uri_m,
            "file": self.file,
            "similar": list(self.similar),
        }


def suspects(out_dir: str | Path) -> tuple[Recovered, ...]:
    """The resources whose captures are all doubtful, in order; their number is their position, from 1."""
    with Store.open(Path(out_dir)) as store:
        return _suspects(store)


def doubtful_pages(out_dir: str | Path) -> tuple[DoubtfulPage, ...]:
    """The pages to ask a person about."""
    with Store.open(Path(out_dir)) as store:
        found = _suspects(store)
        documents = [_document(store, resource) for resource in found]
        files = _files(store)
    sketches = [sketch_of(document, resource.uri) for document, resource in zip(documents, found, strict=True)]
    pages = []
    for place, resource in enumerate(found):
        assert resource.suspect is not None
        like = tuple(other + 1 for other in _like(place, found, sketches))
        pages.append(
            DoubtfulPage(
                number=place + 1,
                uri=resource.uri,
                captured_at=resource.captured_at,
                archive=resource.archive,
                uri_m=resource.uri_m,
                verdict=resource.suspect,
                reason=resource.doubt,
                confidence=resource.confidence,
                title=documents[place].title[:200],
                file=files.get(resource.uri),
                similar=like,
            )
        )
    return tuple(pages)


def page_for_review(out_dir: str | Path, number: int) -> bytes:
    """A doubtful page as HTML whose links lead to the preview's addresses. Send it with `FRAME_POLICY`, or show it in
    a frame with `sandbox`."""
    from recollect.recovery.preview import rewritten

    with Store.open(Path(out_dir)) as store:
        found = _suspects(store)
        if not 1 <= number <= len(found):
            raise UsageError("no such page to review", where=str(number))
        return rewritten(store, found[number - 1])


def decide(
    out_dir: str | Path,
    decisions: Mapping[str, Decision],
    *,
    similar: bool = True,
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> Report:
    """Decide about pages, named by URI, and about those like them; make the outputs again.

    Raises UsageError for a page that is not doubtful. Of a page that is like several, the decision about the first
    holds.
    """
    folder = Path(out_dir)
    with on_this_disk(folder), Store.create(folder) as store:
        found = _suspects(store)
        places = {resource.uri: place for place, resource in enumerate(found)}
        for uri in decisions:
            if uri not in places:
                raise UsageError("no such page to review", where=uri, hint="doubtful_pages lists them")
        sketches = [sketch_of(_document(store, resource), resource.uri) for resource in found]
        chosen = {places[uri]: Decision(decision) for uri, decision in decisions.items()}
        if similar:
            for place in sorted(chosen):
                for other in _like(place, found, sketches):
                    chosen.setdefault(other, chosen[place])
        for place, decision in sorted(chosen.items()):
            store.add_precedent(found[place], sketches[place])
            (store.accept if decision is Decision.MINE else store.reject)(found[place])
    return remake(folder, watch=watch)


def decide_suspects(
    out_dir: str | Path,
    *,
    accept: Sequence[str] = (),
    reject: Sequence[str] = (),
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> Report:
    """Accept and reject pages, named by number, URI, glob or `all` (what nothing else names), and make the outputs
    again."""
    found = suspects(out_dir)
    taken, dropped = _chosen(found, accept), _chosen(found, reject)
    if both := taken & dropped:
        named = found[min(both)].uri
        raise UsageError("accepted and rejected at once", where=named, hint="name it in one of the two")
    rest = set(range(len(found))) - taken - dropped
    taken |= rest if EVERYTHING in accept else set()
    dropped |= rest - taken if EVERYTHING in reject else set()
    decisions = {found[place].uri: Decision.MINE for place in taken}
    decisions |= {found[place].uri: Decision.NOT_MINE for place in dropped}
    return decide(out_dir, decisions, similar=False, watch=watch)


def _suspects(store: Store) -> tuple[Recovered, ...]:
    return tuple(resource for resource in store.recovered() if resource.suspect is not None)


def _document(store: Store, resource: Recovered) -> Document:
    try:
        content = store.content(resource)
    except (OSError, FormatError):
        return Document("html")
    return read_document(content, resource.uri, resource.media_type, resource.charset) or Document("html")


def _files(store: Store) -> dict[str, str]:
    """Where each resource lies in the folder, as far as it was written."""
    outputs = Outputs.from_json(store.meta("outputs", {}))
    rules = WINDOWS if outputs.windows_names else ANY_SYSTEM
    names = file_names(((r.uri, r.media_type) for r in store.recovered(redirects=False)), rules=rules)
    return {uri: name for uri, name in names.items() if (store.out_dir / name).is_file()}


def _like(place: int, found: Sequence[Recovered], sketches: Sequence[Sketch]) -> list[int]:
    verdict = found[place].suspect
    return [
        other
        for other, resource in enumerate(found)
        if other != place
        and verdict is not None
        and resource.suspect == verdict
        and (resource.digest == found[place].digest or alike(sketches[place], sketches[other], verdict))
    ]


def _chosen(found: Sequence[Recovered], names: Sequence[str]) -> set[int]:
    chosen: set[int] = set()
    for name in names:
        if name == EVERYTHING:
            continue
        if name.isdigit() and 1 <= int(name) <= len(found):
            hits = {int(name) - 1}
        else:
            hits = {n for n, resource in enumerate(found) if name == resource.uri or fnmatchcase(resource.uri, name)}
        if not hits:
            raise UsageError("no such page to review", where=name, hint="give a number of the list, a URL, or all")
        chosen |= hits
    return chosen
