"""Listing a site in every archive: what survey shows and what the crawl chooses from.

Hides: which query fits a scope, both spellings of a host, listings that are cut off (then split by years where the
server allows it), resuming in the middle. Invariants: a listing is recorded as `done` only when nothing suggests that
more follows; each page is committed together with the place from which to go on; a failure is recorded as one, never as
empty.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from recollect.archives.listing import Page, Query, Row, dialect_of, list_captures, list_exact
from recollect.archives.registry import Archive
from recollect.errors import ArchiveError, ArchiveTimeout, ArchiveUnreachable, BadAnswer, BadURI
from recollect.recovery.canonical import Rules, spellings, split, visit_key
from recollect.recovery.choose import Candidate
from recollect.recovery.journal import Journal, Listing, ListingState
from recollect.recovery.local import LocalSources
from recollect.recovery.meter import Meter
from recollect.recovery.scope import Scope

FIRST_YEAR = 1991
_FRONT = "front "


@dataclass(frozen=True, slots=True)
class SiteQuery:
    """One listing of a part of the site: `name` is its place in the journal, `prefix` the visit keys it covers."""

    name: str
    query: Query
    prefix: str
    is_site: bool = True  # not something beside it, for which one spelling of the host will do

    def covers(self, key: str) -> bool:
        """Would this listing hold the key, if the archive does?"""
        if self.query.match == "exact":
            return key == self.prefix
        if self.query.match == "domain":
            host = key.partition("://")[2].partition("/")[0].partition(":")[0]
            return host == self.prefix or host.endswith("." + self.prefix)
        if not key.startswith(self.prefix):
            return self.prefix.endswith("/") and key == self.prefix[:-1]
        return self.prefix.endswith("/") or len(key) == len(self.prefix) or key[len(self.prefix)] in "/?"


def site_queries(scope: Scope) -> list[SiteQuery]:
    """The listings a scope needs."""
    queries: dict[str, SiteQuery] = {}
    for uri, prefix in zip(scope.start, scope.prefixes, strict=True):
        scheme, host, _, _ = split(uri)
        if scope.extent == "subdomains":
            bare = host.removeprefix("www.") if scope.rules.fold_www else host
            queries.setdefault(prefix, SiteQuery(f"domain {prefix}", Query(bare, "domain"), prefix))
            continue
        if scope.extent == "page":
            queries.setdefault(prefix, SiteQuery(f"page {prefix}", Query(uri, "exact"), prefix))
            continue
        # Without the final slash a prefix also finds the folder's own page, which indexes keep without one.
        path = "/" + prefix.partition("://")[2].partition("/")[2]
        address = f"{scheme}://{host}{path.rstrip('/') or '/'}"
        queries.setdefault(prefix, SiteQuery(f"prefix {prefix}", Query(address, "prefix"), prefix))
    return list(queries.values())


def side_query(key: str, scope: Scope) -> SiteQuery | None:
    """The listing for what pages embed from beside the site: another host, or another folder of the same host.

    None for what lies in the root of the site's own host: that would list everything of a host that is not wanted.
    """
    origin, _, path = key.partition("://")[2].partition("/")
    base = key[: key.index("://") + 3] + origin
    hosts = {prefix.partition("://")[2].partition("/")[0] for prefix in scope.prefixes}
    if origin not in hosts:
        return SiteQuery(f"prefix {base}/", Query(f"{base}/", "prefix"), f"{base}/", is_site=False)
    folder, slash, _ = path.partition("?")[0].partition("/")
    if not slash:
        return None
    prefix = f"{base}/{folder}/"
    return SiteQuery(f"prefix {prefix}", Query(prefix[:-1], "prefix"), prefix, is_site=False)


@dataclass(frozen=True, slots=True)
class Lister:
    """Lists a site into the journal."""

    meter: Meter
    journal: Journal
    rules: Rules
    on_page: Callable[[str, int], None] = lambda _archive, _captures: None
    at: datetime | None = None  # the date that TimeGates are asked for; the newest when None
    local: LocalSources | None = None  # files and folders that are read like archives

    async def list_site(self, archives: Sequence[Archive], queries: Sequence[SiteQuery]) -> None:
        """Every query in every archive that has a listing, side by side; what is done already is not asked again."""
        known = self.journal.listings()
        tasks = []
        for archive in archives:
            if not archive.cdx:
                continue
            for query in queries:
                old = known.get((archive.id, query.name))
                if old is None or old.state in ("part", "failed"):
                    tasks.append(self._list(archive, query, old))
        await asyncio.gather(*tasks)

    async def ask_front(self, archives: Sequence[Archive], uris: Sequence[str]) -> None:
        """Ask archives that list nothing for the start pages: one that holds none of them is not asked for the rest."""
        known = self.journal.listings()
        await asyncio.gather(
            *(
                self._front(archive, uri)
                for archive in archives
                if not archive.cdx and (archive.timemap or archive.timegate)
                for uri in uris
                if (archive.id, _front_name(uri)) not in known
            )
        )

    async def _front(self, archive: Archive, uri: str) -> None:
        site = SiteQuery(_front_name(uri), Query(uri, "exact"), "")
        try:
            page = await self.ask_one(archive, uri, visit_key(uri, self.rules))
        except ArchiveError as error:
            self._fail(archive, site, error)
        else:
            self._set(archive, site, "truncated", len(page.rows), "it lists no sites, only single pages")

    def holds_no_front(self, archive: Archive, uris: Sequence[str]) -> bool:
        """Was an archive without a listing asked for the start pages, and holds none?"""
        known = self.journal.listings()
        answers = [known.get((archive.id, _front_name(uri))) for uri in uris]
        return not archive.cdx and all(a is not None and a.state != "failed" and not a.captures for a in answers)

    async def _list(self, archive: Archive, site: SiteQuery, old: Listing | None) -> None:
        if archive.is_local:
            return await self._list_local(archive, site)
        cursor = old.cursor if old is not None and old.state == "part" else ""
        count = old.captures if old is not None and cursor else 0
        try:
            count, last = await self._pages(archive, site, site.query, cursor, count)
            if not count and site.is_site and (other := _other_host(site.query)) is not None:
                count, last = await self._pages(archive, site, other, "", count)
            cut = last.cut
            if cut and dialect_of(archive.cdx) == "plain":
                count, cut = await self._by_years(archive, site, count, cut)
            cut = cut or _unread(last)
        except ArchiveError as error:
            self._fail(archive, site, error)
            if isinstance(error, (ArchiveTimeout, ArchiveUnreachable)):
                self.meter.down.setdefault(archive.id, str(error))
        else:
            self._set(archive, site, "truncated" if cut else "done", count, cut)

    async def _list_local(self, archive: Archive, site: SiteQuery) -> None:
        """A file is listed once, with all that the scope may need of it; every query is answered by that."""
        assert self.local is not None
        try:
            count, cut = await self.local.list_into(self.journal, archive, lambda n: self.on_page(archive.id, n))
        except ArchiveError as error:
            self._fail(archive, site, error)
        else:
            self._set(archive, site, "truncated" if cut else "done", count, cut)

    async def _pages(
        self, archive: Archive, site: SiteQuery, query: Query, cursor: str, count: int
    ) -> tuple[int, Page]:
        """Page after page into the journal; how many captures came, and the last page."""
        while True:
            page = await list_captures(self.meter, archive, query, cursor)
            with self.journal.transaction():
                self.journal.add_captures(self._keyed(archive, page.rows))
                count += len(page.rows)
                if page.cursor:
                    self.journal.set_listing(Listing(archive.id, site.name, "part", page.cursor, count))
            self.on_page(archive.id, count)
            cursor = page.cursor
            if not cursor:
                return count, page

    async def _by_years(self, archive: Archive, site: SiteQuery, count: int, cut: str) -> tuple[int, str]:
        """A listing cut at a limit may come whole in pieces: try by years, those of the captures seen and later."""
        for year in range(FIRST_YEAR, datetime.now(UTC).year + 1):
            start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
            piece = Query(site.query.uri, site.query.match, start, end)
            try:
                page = await list_captures(self.meter, archive, piece)
            except BadAnswer:
                return count, cut  # the server refuses dates (OutbackCDX does)
            if any(not start <= row.captured_at <= end for row in page.rows):
                return count, cut  # the server takes no notice of dates
            with self.journal.transaction():
                self.journal.add_captures(self._keyed(archive, page.rows))
            count += len(page.rows)
            if page.cut:
                return count, page.cut
        return count, ""

    async def ask_one(self, archive: Archive, uri: str, key: str) -> Page:
        """What one archive holds of one resource; its captures go into the journal under the key."""
        if archive.is_local and self.local is not None:
            await self.local.list_into(self.journal, archive, lambda _count: None)
            return Page(())
        page = await list_exact(self.meter, archive, uri, self.at)
        if not archive.cdx:
            # Without a list only asking shows under which spelling a resource is held.
            for other in spellings(uri):
                if page.rows:
                    break
                page = await list_exact(self.meter, archive, other, self.at)
        with self.journal.transaction():
            self.journal.add_captures((key, _candidate(archive, row)) for row in page.rows)
        return page

    def _keyed(self, archive: Archive, rows: Iterable[Row]) -> Iterable[tuple[str, Candidate]]:
        for row in rows:
            try:
                yield visit_key(row.uri, self.rules), _candidate(archive, row)
            except BadURI:
                continue

    def _fail(self, archive: Archive, site: SiteQuery, error: ArchiveError) -> None:
        with self.journal.transaction():
            self.journal.note_failure(archive.id, error.kind, str(error))
        self._set(archive, site, "failed", 0, str(error))

    def _set(self, archive: Archive, site: SiteQuery, state: ListingState, count: int, detail: str) -> None:
        with self.journal.transaction():
            self.journal.set_listing(Listing(archive.id, site.name, state, "", count, detail))


def _front_name(uri: str) -> str:
    return _FRONT + uri


def is_front(name: str) -> bool:
    """Is this the name of a question for a start page, not of a listing?"""
    return name.startswith(_FRONT)


def _unread(page: Page) -> str:
    return f"{page.unread} of its lines cannot be read" if page.unread else ""


def _other_host(query: Query) -> Query | None:
    """The same query with or without www, for servers that keep the two apart."""
    scheme, mark, rest = query.uri.partition("://")
    if not mark:
        return None
    rest = rest[4:] if rest.startswith("www.") else "www." + rest
    return Query(f"{scheme}://{rest}", query.match, query.start, query.end)


def _candidate(archive: Archive, row: Row) -> Candidate:
    # Without a raw address, and without a date in its URI-M to make one of, only the rewritten page can be had.
    altered = not archive.raw and archive.raw_uri(row.locator, "", row.uri) == row.locator
    # The listing has the type of what is held; the name tells that of the resource.
    named = mimetypes.guess_type(row.uri.partition("?")[0].partition("#")[0])[0] or ""
    altered = altered or any(archive.alters(kind) for kind in (row.media_type, named) if kind)
    return Candidate(
        archive.id,
        row.uri,
        row.captured_at,
        row.status,
        row.media_type,
        row.digest,
        row.length,
        row.revisit,
        altered,
        row.locator,
    )
