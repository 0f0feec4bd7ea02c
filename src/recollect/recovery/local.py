"""Files and folders of this disk as archives: the planner lists and fetches them like any other, without rate limits.

Hides: that a file is read and not asked. Each source (`recollect.sources`) becomes an `Archive` whose `is_local` is
true; two functions stand in for requests: `list_into` puts all captures that the scope may need into the journal, once,
in pieces; `fetch` reads one capture by the place that the listing gave. Everything else (choice, judgement, report,
WARC) does not know the difference.

Invariants: only URLs in scope enter the journal; cookies and credentials of a browser's cache never do; addresses of
captures name the file, not the folders above it; times and marks that a reader has to know (the time of a file, an
entry that is not whole) are kept beside the capture.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from recollect.archives.listing import clean_digest
from recollect.archives.registry import Archive
from recollect.archives.replay import ReplayResponse
from recollect.errors import AnswerTooBig, BadAnswer, BadURI, FormatError, UsageError
from recollect.model import Problem
from recollect.quantities import counted
from recollect.recovery.canonical import visit_key
from recollect.recovery.choose import REDIRECTS, Candidate
from recollect.recovery.journal import Journal, Note
from recollect.recovery.scope import Scope
from recollect.recovery.sources import Sources
from recollect.recovery.store import Store
from recollect.sources.model import Source, SourceCapture, SourcePayload, TimeOrigin
from recollect.sources.recognise import open_source

_BATCH = 2000
_WAYBACK = ("web.archive.org", "archive.org")
_LOOKED_AT = 50_000  # captures from which the address of a collection is inferred


@dataclass(slots=True)
class _Open:
    """One open source, and what its listing came to."""

    source: Source
    archive: Archive
    problems: list[str] = field(default_factory=list)
    listed: tuple[int, str] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LocalSources:
    """The open files and folders of a recovery."""

    def __init__(self, opened: Sequence[_Open], scope: Scope, on_problem: Callable[[str], None]) -> None:
        self._open = {one.archive.id: one for one in opened}
        self._scope = scope
        self._on_problem = on_problem

    @property
    def archives(self) -> list[Archive]:
        return [one.archive for one in self._open.values()]

    async def list_into(self, journal: Journal, archive: Archive, on_count: Callable[[int], None]) -> tuple[int, str]:
        """List a source into the journal, unless this was done; (captures, why the list may not be all)."""
        one = self._open[archive.id]
        async with one.lock:
            if one.listed is None:
                one.listed = await self._list(journal, one, on_count)
        return one.listed

    async def _list(self, journal: Journal, one: _Open, on_count: Callable[[int], None]) -> tuple[int, str]:
        def note(problem: Problem) -> None:
            one.problems.append(str(problem))
            if len(one.problems) <= 10:
                self._on_problem(str(problem))

        count = 0
        try:
            scope = self._scope
            if one.source.private and scope.assets == "anywhere":
                scope = replace(scope, assets="domain")  # anywhere would be all that a person visited
            captures = one.source.captures(lambda uri: scope.holds(uri, embedded=True), note)
            while batch := list(islice(captures, _BATCH)):
                with journal.transaction():
                    journal.add_captures(self._keyed(one.archive.id, batch))
                    journal.add_notes(
                        Note(one.archive.id, c.url, c.captured_at, c.origin, c.marks)
                        for c in batch
                        if c.marks or c.origin is TimeOrigin.FILE
                    )
                count += len(batch)
                on_count(count)
                await asyncio.sleep(0)  # requests to archives go on
        except (FormatError, OSError) as error:
            raise BadAnswer("it cannot be read", where=one.archive.name, why=str(error)) from error
        self._remember(journal.store, one)
        cut = f"{counted(len(one.problems), 'place')} of it cannot be read" if one.problems else ""
        return count, cut

    def _keyed(self, archive: str, batch: Iterable[SourceCapture]) -> Iterator[tuple[str, Candidate]]:
        for capture in batch:
            try:
                key = visit_key(capture.url, self._scope.rules)
            except BadURI:
                continue
            yield (
                key,
                Candidate(
                    archive,
                    capture.url,
                    capture.captured_at,
                    capture.status,
                    capture.media_type,
                    capture.digest,
                    capture.length,
                    capture.revisit,
                    capture.altered,
                    capture.place,
                ),
            )

    def _remember(self, store: Store, one: _Open) -> None:
        """Keep what the report says about a source."""
        tally = one.source.tally
        known = {entry["id"]: entry for entry in store.meta("local_sources") or []}
        known[one.archive.id] = {
            "id": one.archive.id,
            "name": one.archive.name,
            "kind": one.source.kind,
            "depth": one.source.depth,
            "private": one.source.private,
            "entries": tally.entries,
            "in_scope": tally.taken,
            "damaged": tally.damaged + len(one.problems),
        }
        store.set_meta("local_sources", list(known.values()))

    def fetch(
        self,
        journal: Journal,
        archive: Archive,
        candidate: Candidate,
        sink: Callable[[bytes], None],
        *,
        max_bytes: int,
    ) -> ReplayResponse:
        """Read one capture; its body goes to `sink`. Raises ArchiveError like a fetch from an archive."""
        one = self._open[archive.id]
        address = f"file:{quote(one.source.name, safe='')}#{quote(candidate.locator, safe='@:+/=,')}"
        try:
            payload = one.source.read(candidate.locator)
            if payload.refers_to is not None:
                payload = self._original(journal, one, payload)
            size = 0
            for chunk in payload.chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise AnswerTooBig("larger than the limit", where=address, why=f"more than {max_bytes:,} bytes")
                sink(chunk)
        except (FormatError, OSError) as error:
            raise BadAnswer("the capture cannot be read", where=address, why=str(error)) from error
        location = payload.header("location") if payload.status in REDIRECTS else ""
        target = urljoin(candidate.uri, location) if location else None
        return ReplayResponse(
            "archived", payload.status, address, candidate.captured_at, payload.headers, target, payload.wrapped
        )

    def _original(self, journal: Journal, one: _Open, revisit: SourcePayload) -> SourcePayload:
        """The bytes of a revisit are those of the record with its digest; its own head holds where it has one."""
        assert revisit.refers_to is not None
        uri, digest = revisit.refers_to
        place = journal.place_of(one.archive.id, clean_digest(digest), uri) if digest else None
        if place is None:
            raise FormatError("a revisit of a record that is not in the file")
        original = one.source.read(place)
        if not revisit.status or not revisit.headers:
            return original
        return SourcePayload(revisit.status, revisit.headers, original.chunks)


@contextmanager
def open_local(
    sources: Sources | None, scope: Scope, taken: Iterable[str], on_problem: Callable[[str], None]
) -> Iterator[LocalSources]:
    """The files and folders of a recovery; `taken` are the ids of its archives."""
    with ExitStack() as stack:
        opened: list[_Open] = []
        ids = set(taken)
        for path in sources.also if sources is not None else ():
            source = open_source(Path(path), sources.base if sources else "", lambda p: on_problem(str(p)))
            stack.callback(source.close)
            name = _unique(_id_of(source), ids)
            ids.add(name)
            opened.append(_Open(source, _archive(name, source)))
        yield LocalSources(opened, scope, on_problem)


def _archive(name: str, source: Source) -> Archive:
    place = f"file:{quote(source.name, safe='')}"
    people = source.name if source.name.startswith(source.kind) else f"{source.name} ({source.kind})"
    return Archive(name, people, cdx=place, raw=f"{place}#{{timestamp}}/{{uri}}", allow_hosts=_WAYBACK)


def _id_of(source: Source) -> str:
    """An id that fits where those of archives do."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", source.name).strip("-._")[:60] or "files"


def _unique(name: str, taken: Iterable[str]) -> str:
    number = 2
    unique = name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique


# The address of a collection -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InferredStart:
    """The address that a collection is of, and why."""

    uri: str
    words: str


def infer_start(paths: Sequence[str], base: str = "") -> InferredStart:
    """The site that files are a collection of: that of their seeds, else the host with most pages.

    Raises UsageError for a browser's cache, out of which only URLs in scope are read, and for files without captures.
    """
    pages: Counter[str] = Counter()
    others: Counter[str] = Counter()
    addresses: dict[str, str] = {}  # the shortest address of each origin, those of pages first
    seeds: list[str] = []
    for path in paths:
        source = open_source(Path(path), base)
        try:
            if source.private:
                raise UsageError(
                    "a browser's cache needs an address",
                    where=path,
                    why="only that site is read out of it",
                    hint=f"recollect recover http://lost.example/ --only {path} -o site/",
                )
            seeds += source.seeds()
            for capture in islice(source.captures(lambda _uri: True, lambda _problem: None), _LOOKED_AT):
                is_page = "html" in capture.media_type
                origin, good = _origin(capture.url), capture.status in (200, None)
                (pages if is_page else others)[origin] += good
                if is_page and good:
                    addresses[origin] = min(addresses.get(origin, capture.url), capture.url, key=_shortest)
        finally:
            source.close()
    if base and (pages or others):
        return InferredStart(base, "the address that --base gives")
    return _inferred(seeds, pages or others, addresses)


def _shortest(uri: str) -> tuple[int, str]:
    """A front page goes before all others: the fewest folders, no query, the shortest name."""
    parts = urlsplit(uri)
    depth = 0 if parts.path in ("", "/") else parts.path.count("/") + 1
    return depth + 100 * bool(parts.query), uri


def _inferred(seeds: Sequence[str], counts: Counter[str], addresses: Mapping[str, str]) -> InferredStart:
    hosts: Counter[str] = Counter()
    for origin, count in counts.items():
        hosts[_host(origin)] += count
    if not hosts:
        raise UsageError("no pages in it", hint="recollect inspect PATH says what is in a file or folder")
    seeded = Counter(_host(_origin(uri)) for uri in seeds if _host(_origin(uri)) in hosts)
    host = _host(_origin(seeds[0])) if seeds and _host(_origin(seeds[0])) in hosts else ""
    if not host:
        host = max(seeded or hosts, key=lambda name: ((seeded or hosts)[name], hosts[name], name))
    origin = max((o for o in counts if _host(o) == host), key=lambda o: (counts[o], o))
    home = addresses.get(origin, "")
    is_front = urlsplit(home).path in ("", "/")
    first = next((uri for uri in seeds if _host(_origin(uri)) == host), "")
    share = f"{hosts[host]:,} of {counted(sum(hosts.values()), 'page')} are of {host}"
    why = f"the first page of the collection; {share}" if seeded else share
    return InferredStart(home if is_front and home else first or home or f"{origin}/", why)


def _origin(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme.lower()}://{parts.netloc.lower().rpartition('@')[2]}"


def _host(origin: str) -> str:
    return origin.partition("://")[2].removeprefix("www.")


# What the report says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A file or folder of a recovery: how many of its entries were looked at, and how many are of the site."""

    id: str
    name: str
    kind: str
    depth: str
    private: bool
    entries: int
    in_scope: int
    damaged: int

    def words(self, taken: int) -> str:
        """`1,234 entries looked at, 56 of the site, 40 taken`."""
        some = f"{counted(self.entries, 'entry', 'entries')} looked at, {self.in_scope:,} of the site, {taken:,} taken"
        return some + (f", {self.damaged:,} damaged" if self.damaged else "")


def local_sources(store: Store) -> tuple[LocalSource, ...]:
    """The files and folders of a recovery."""
    return tuple(LocalSource(**entry) for entry in store.meta("local_sources") or [])


def local_notes(store: Store) -> dict[tuple[str, str, datetime], str]:
    """(archive, URI, time) -> what a reader has to know about a capture: `time of the file`, `partial`, `expired`."""
    notes = {}
    for note in Journal(store).notes():
        words = ["time of the file"] if note.origin == TimeOrigin.FILE else []
        notes[note.archive, note.uri, note.captured_at] = ", ".join([*words, *note.marks])
    return notes
