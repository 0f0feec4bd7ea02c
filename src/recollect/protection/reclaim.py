"""Blocks of protected pages from the archives: every capture of every page, until enough is there.

Hides: listing, the order of fetching, and the store. A few captures of the front page come first, for the manifest;
then all pages' captures from the newest to the oldest. Bytes that are known by their digest are fetched once. Fetched
payloads stay in the recovery's store (`OUT/.recollect`), so a later run asks only for what is new. Invariant: fetching
ends when the newest known version of every class is complete, or when nothing is left to fetch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.archives.client import ArchiveClient
from recollect.archives.opening import ClientOptions, open_client
from recollect.archives.registry import Archive
from recollect.archives.replay import Wanted, fetch
from recollect.blocking import blocking
from recollect.datetimes import format_timestamp
from recollect.errors import ArchiveError, BadURI, FormatError, UsageError
from recollect.protection.collect import Collector
from recollect.protection.sources import MAX_PAGE
from recollect.recovery.canonical import visit_key
from recollect.recovery.choose import Candidate, is_content, resolve_revisits
from recollect.recovery.decoding import decoded, effective_encoding
from recollect.recovery.journal import Journal
from recollect.recovery.links import read_document
from recollect.recovery.lister import Lister, site_queries
from recollect.recovery.meter import Meter, evenly, quotas_of
from recollect.recovery.options import Options
from recollect.recovery.scope import Scope
from recollect.recovery.store import FOLDER, Store

TIMEOUT = 120.0
_AT_ONCE = 8
_FRONT = 3  # captures of the front page that are looked at first
_MAX_PAGES = 20_000  # of archives that list nothing, asked page by page


@dataclass(frozen=True, slots=True)
class Searched:
    """How a search went: captures that could hold blocks, those that were fetched, and what failed."""

    listed: int
    fetched: int
    unlisted: tuple[tuple[str, str], ...]  # (archive, why) where the listing is not whole
    failed: tuple[tuple[str, str], ...]  # (URI, why) of captures that did not come


@dataclass(frozen=True, slots=True)
class Step:
    """How far a search is, for whoever watches."""

    stage: str
    done: int
    total: int


def is_recovery(folder: Path) -> bool:
    """Is this the folder of a recovery?"""
    return (folder / FOLDER / "journal.db").is_file()


def stored_pages(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The pages in the store of a recovery, or of an earlier reclaim: where each was captured, and its content."""
    with Store.open(folder) as store:
        for resource in store.recovered(redirects=False):
            yield f"{resource.uri} {format_timestamp(resource.captured_at)}", store.content(resource)
        for held in Journal(store).held_captures():
            content = decoded(store.payload_path(held.sha256).read_bytes(), held.encoding)
            yield f"{held.uri} {format_timestamp(held.captured_at)}", content


@blocking
def search_archives(
    uri: str,
    archives: Sequence[Archive],
    collector: Collector,
    folder: Path,
    *,
    until: str | None = None,
    on_step: Callable[[Step], None] = lambda _step: None,
) -> Searched:
    """Fetch captures of a site into the collector; `folder` keeps what came."""
    try:
        scope = Scope((uri if "://" in uri else f"http://{uri}",))
        visit_key(scope.start[0])
    except BadURI as error:
        raise UsageError("not a URL", where=uri, hint="for example http://lost.example/") from error

    async def run(store: Store) -> Searched:
        async with open_client(ClientOptions(concurrency=_AT_ONCE, timeout=TIMEOUT)) as client:
            return await _Search(store, client, archives, Options(scope), collector, until, on_step).run()

    with Store.create(folder) as store:
        return asyncio.run(run(store))


class _Search:
    """One run."""

    def __init__(
        self,
        store: Store,
        client: ArchiveClient,
        archives: Sequence[Archive],
        options: Options,
        collector: Collector,
        until: str | None,
        on_step: Callable[[Step], None],
    ) -> None:
        self._store, self._options, self._collector = store, options, collector
        self._until, self._on_step = until, on_step
        self._archives = {archive.id: evenly(archive) for archive in archives}
        self._journal = Journal(store)
        self._meter = Meter(client, self._journal, quotas_of(archives, options.quotas))
        self._lister = Lister(self._meter, self._journal, options.rules)
        self._seen: set[tuple[str, str]] = set()  # (key, digest) and (URI-M, "") that came
        self._pages: set[str] = set()
        self._fetched = self._listed = 0
        self._failed: list[tuple[str, str]] = []

    async def run(self) -> Searched:
        scope = self._options.scope
        archives = list(self._archives.values())
        self._on_step(Step("listing", 0, 0))
        self._journal.forget_listings()
        await asyncio.gather(
            self._lister.list_site(archives, site_queries(scope)), self._lister.ask_front(archives, scope.start)
        )
        candidates = self._candidates()
        home = {visit_key(uri, self._options.rules) for uri in scope.start}
        front = [pair for pair in candidates if pair[0] in home][:_FRONT]
        await asyncio.gather(*(self._fetch(key, candidate) for key, candidate in front))
        await self._fetch_all(candidates)
        await self._ask_page_by_page()
        unlisted = [
            (listing.archive, listing.detail or listing.state)
            for listing in self._journal.listings().values()
            if listing.state in ("failed", "part")
        ]
        return Searched(self._listed, self._fetched, tuple(unlisted), tuple(self._failed))

    def _candidates(self) -> list[tuple[str, Candidate]]:
        """Captures that can hold blocks, the newest first."""
        by_key: dict[str, list[Candidate]] = {}
        for key, candidate in self._journal.all_captures():
            by_key.setdefault(key, []).append(candidate)
        found = [
            (key, candidate)
            for key, candidates in by_key.items()
            for candidate in resolve_revisits(candidates)
            if is_content(candidate.status)
            and _may_be_page(candidate.media_type)
            and candidate.archive in self._archives
            and self._options.scope.holds(candidate.uri)
        ]
        # Of one second a record with its bytes goes before a revisit of them.
        found.sort(
            key=lambda pair: (pair[1].captured_at, not pair[1].revisit, pair[1].archive, pair[1].uri), reverse=True
        )
        return found

    async def _fetch_all(self, candidates: Sequence[tuple[str, Candidate]]) -> None:
        self._listed += len(candidates)
        left = deque(candidates)
        while left and not self._collector.is_satisfied(self._until):
            await asyncio.gather(*(self._fetch(key, candidate) for key, candidate in self._batch(left)))
            self._on_step(Step("fetching", len(candidates) - len(left), len(candidates)))

    def _batch(self, left: deque[tuple[str, Candidate]]) -> list[tuple[str, Candidate]]:
        """The next few captures whose bytes are not known yet. Others with the same bytes wait: these may not come."""
        chosen: dict[tuple[str, str], tuple[str, Candidate]] = {}
        waiting: list[tuple[str, Candidate]] = []
        while left and len(chosen) < 2 * _AT_ONCE:
            pair = left.popleft()
            name = _name(*pair)
            if name in chosen:
                waiting.append(pair)
            elif name not in self._seen:
                chosen[name] = pair
        left.extendleft(reversed(waiting))
        return list(chosen.values())

    async def _fetch(self, key: str, candidate: Candidate) -> None:
        archive = self._archives[candidate.archive]
        try:
            content = self._stored(candidate)
            if content is None:
                content = await self._meter.patiently(archive, lambda: self._receive(archive, candidate))
                self._fetched += 1
        except (ArchiveError, FormatError) as error:
            self._failed.append((_uri_m(candidate), str(error)))
            return
        self._seen.add(_name(key, candidate))
        self._collector.add(f"{candidate.uri} {format_timestamp(candidate.captured_at)} ({archive.id})", content)
        document = read_document(content, candidate.uri, candidate.media_type or "text/html")
        if document is not None:
            self._pages.update(link.uri for link in document.links if link.kind == "page" and not link.guess)

    def _stored(self, candidate: Candidate) -> bytes | None:
        held = self._journal.held_capture(candidate)
        path = self._store.payload_path(held.sha256) if held is not None else None
        return decoded(path.read_bytes(), held.encoding) if held and path is not None and path.exists() else None

    async def _receive(self, archive: Archive, candidate: Candidate) -> bytes:
        wanted = Wanted(candidate.uri, candidate.captured_at, candidate.locator)
        with self._store.incoming() as incoming:
            replay = await fetch(self._meter, archive, wanted, incoming.write, max_bytes=MAX_PAGE)
            if replay.standing != "archived" or replay.location is not None:
                raise ArchiveError("the capture is not a page", where=replay.uri_m, why=replay.detail or "a redirect")
            encoding = effective_encoding(replay.header("content-encoding"), incoming.peek(65536))
            content = decoded(incoming.peek(), encoding)
            payload = incoming.keep()
        self._journal.hold_capture(candidate, encoding, payload.sha256)
        return content

    async def _ask_page_by_page(self) -> None:
        """Archives that have no listing but hold the front page are asked for each page that is known by now."""
        start = self._options.scope.start
        archives = [
            archive
            for archive in self._archives.values()
            if not archive.cdx
            and (archive.timemap or archive.timegate)
            and not self._lister.holds_no_front(archive, start)
        ]
        asked: set[str] = set()
        while archives and not self._collector.is_satisfied(self._until) and len(asked) < _MAX_PAGES:
            listed = {c.uri for _, c in self._journal.all_captures()}
            fresh = sorted(uri for uri in (self._pages | listed) - asked if self._options.scope.holds(uri))
            if not fresh:
                return
            for begin in range(0, len(fresh), _AT_ONCE):
                if self._collector.is_satisfied(self._until):
                    return
                group = fresh[begin : begin + _AT_ONCE]
                asked.update(group)
                await asyncio.gather(*(self._ask(archive, uri) for archive in archives for uri in group))
                await self._fetch_all([pair for pair in self._candidates() if pair[1].uri in group])

    async def _ask(self, archive: Archive, uri: str) -> None:
        try:
            await self._lister.ask_one(archive, uri, visit_key(uri, self._options.rules))
        except BadURI:
            return
        except ArchiveError as error:
            self._failed.append((f"{archive.id}: {uri}", str(error)))


def _may_be_page(media_type: str) -> bool:
    return "html" in media_type or media_type in (
        "",
        "-",
        "unk",
        "warc/revisit",
        "text/plain",
        "application/octet-stream",
    )


def _name(key: str, candidate: Candidate) -> tuple[str, str]:
    """What is fetched once: the bytes of a page, if the listing has their digest, else the capture."""
    return (key, candidate.digest) if candidate.digest else (_uri_m(candidate), "")


def _uri_m(candidate: Candidate) -> str:
    return f"{candidate.archive} {format_timestamp(candidate.captured_at)} {candidate.uri}"
