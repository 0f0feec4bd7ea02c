"""What archives hold of the resources of a site, and how alike their newest copies are to the live ones.

Hides: how archives are asked and how copies are compared. A resource is asked for by its address; from the third of a
host on, an archive with a CDX interface is asked once for all that it lists of the host, because archives allow few
requests a minute (24 for the Internet Archive) and a watch has a hundred sites. A listing that is cut off, too large or
refused is not used, nor one that shows the front page alone or lacks what was found by its address: such a server may
not understand the question. Where a listing lacks an address with a query or a parameter (`;`), the archive is asked
for that address: archives differ in which of them they take for the same.

The newest copy is compared with the live resource: by the digest that the archive lists, else by its bytes, else by the
share of ten-word shingles. Failures are observations: an archive that fails makes a holding unknown, not absent. One
that keeps failing is left alone for the rest of the visit.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import urlsplit

from recollect.archives.listing import Page, Query, Row, dialect_of, list_captures, list_exact
from recollect.archives.live import LiveAnswer
from recollect.archives.registry import Archive
from recollect.archives.replay import Wanted, fetch
from recollect.archives.transport import Transport
from recollect.datetimes import format_timestamp
from recollect.errors import ArchiveError, BadURI, RecollectError
from recollect.recovery.decoding import decoded, effective_encoding
from recollect.recovery.measure import extract_text, similarity
from recollect.uris import surt
from recollect.watch.records import Resource
from recollect.watch.states import Held, held_by

MAX_COPY = 8 * 1024 * 1024
MAX_HOST_LISTING = 8 * 1024 * 1024
"""Bytes of the listing of a host, some 50,000 captures."""
ARCHIVE_TIMEOUT = 120.0
"""Seconds for a request to an archive, the wait for its turn included: sixteen sites share 24 requests a minute."""
MOST_FAILURES = 2
"""Failures of an archive in a row after which it is not asked again on this visit."""
ONE_BY_ONE = 2
"""Resources of a host that an archive is asked for by their addresses before it is asked for the whole host."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The newest copy of a resource in one archive."""

    archive: str
    captured_at: datetime
    locator: str = ""
    alike: float | None = None
    """How alike it is to the live resource, 0 to 1; None if it was not compared."""


@dataclass(frozen=True, slots=True)
class ResourceReport:
    """One resource: what the live web answered, which archives hold it and how fresh."""

    resource: Resource
    answer: LiveAnswer | None
    copies: tuple[Copy, ...] = ()
    failed: tuple[str, ...] = ()
    """Archives that did not answer."""
    answers: Mapping[str, bool | None] = field(default_factory=dict)
    """By archive that was asked, whether it holds the resource; None if it did not answer."""


@dataclass
class HostListings:
    """Newest copies of resources, for one visit of a site."""

    client: Transport
    _asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By archive and host, how many resources were asked for."""
    _found: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By archive and host, what was found by its address."""
    _listed: dict[tuple[str, str], Mapping[str, Row] | None] = field(default_factory=dict)
    """By archive and host, the newest good capture of each key; None if there is no whole listing."""
    _failures: dict[str, list[ArchiveError]] = field(default_factory=dict)
    """By archive, its failures since it last answered."""

    async def newest(self, archive: Archive, uri: str) -> Row | ArchiveError | None:
        """The newest good capture of a URI; None if there is none, an error if that is not known."""
        failures = self._failures.setdefault(archive.id, [])
        if len(failures) >= MOST_FAILURES:
            return failures[-1]
        found = await self._newest(archive, uri)
        if isinstance(found, ArchiveError):
            failures.append(found)
        else:
            failures.clear()
        return found

    async def _newest(self, archive: Archive, uri: str) -> Row | ArchiveError | None:
        host = urlsplit(uri).netloc.lower()
        place = (archive.id, host)
        self._asked[place] += 1
        if self._asked[place] > ONE_BY_ONE and archive.cdx and dialect_of(archive.cdx) != "commoncrawl":
            if place not in self._listed:
                self._listed[place] = await self._list(archive, host, self._found.get(place, set()))
            listed = self._listed[place]
            key = _key(uri)
            if listed is not None and key and (key in listed or not {"?", ";"} & {*key}):
                return listed.get(key)
        try:
            page: Page = await list_exact(self.client, archive, uri)
        except ArchiveError as error:
            return error
        if not page.rows and (page.cut or page.unread):
            return ArchiveError("the listing is not complete", where=archive.id, why=page.cut)
        newest = max(_good(page.rows), key=lambda row: row.captured_at, default=None)
        if newest is not None:
            self._found.setdefault(place, set()).add(_key(uri))
        return newest

    async def _list(self, archive: Archive, host: str, found: set[str]) -> dict[str, Row] | None:
        try:
            page = await list_captures(self.client, archive, Query(host, "host"), max_bytes=MAX_HOST_LISTING)
        except ArchiveError:
            return None
        if page.cursor or page.cut or page.unread:
            return None
        newest: dict[str, Row] = {}
        for row in _good(page.rows):
            key = _key(row.uri)
            if key not in newest or row.captured_at > newest[key].captured_at:
                newest[key] = row
        understood = not newest or any(not key.endswith(")/") for key in newest)
        return newest if understood and found <= newest.keys() else None


def _good(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.status is None or 200 <= row.status < 300]


def _key(uri: str) -> str:
    try:
        return surt(uri)
    except BadURI:
        return ""


async def archived(
    listings: HostListings, archives: Sequence[Archive], resource: Resource, answer: LiveAnswer | None, at: datetime
) -> ResourceReport:
    """Ask every archive for a resource, and compare the newest copy with the live one."""
    results = await asyncio.gather(*(listings.newest(archive, resource.uri) for archive in archives))
    said: dict[str, bool | None] = {}
    rows: list[tuple[Archive, Row]] = []
    for archive, result in zip(archives, results, strict=True):
        said[archive.id] = None if isinstance(result, ArchiveError) else result is not None
        if isinstance(result, Row):
            rows.append((archive, result))
    rows.sort(key=lambda pair: pair[1].captured_at, reverse=True)
    copies = [Copy(archive.id, row.captured_at, row.locator) for archive, row in rows]
    alike = None
    if rows and answer is not None and answer.body and not answer.truncated:
        alike = await _compare(listings.client, *rows[0], resource.uri, answer)
        copies[0] = replace(copies[0], alike=alike)
    noted = _held(resource, said, tuple(copy.archive for copy in copies), at)
    if rows:
        noted = replace(noted, copy=copy_address(*rows[0], resource.uri), copied_at=rows[0][1].captured_at)
    if alike is not None:
        noted = replace(noted, fresh=alike)
    failed = tuple(name for name, answered in said.items() if answered is None)
    return ResourceReport(noted, answer, tuple(copies), failed, said)


def copy_address(archive: Archive, row: Row, uri: str) -> str:
    """Where a person sees a capture (URI-M); empty if the archive shows none."""
    if row.locator.startswith(("http://", "https://")):
        return row.locator
    if not archive.raw or "{filename}" in archive.raw:
        return ""
    return archive.raw_uri("", format_timestamp(row.captured_at), uri).replace("id_/", "/", 1)


def _held(resource: Resource, said: dict[str, bool | None], holders: tuple[str, ...], at: datetime) -> Resource:
    """The resource with what archives said. Where that is not certain, what was known stays, unless it is refuted."""
    held = held_by(said)
    if held is not Held.UNKNOWN:
        return replace(resource, held=held, archives=holders, held_at=at)
    refuted = bool(resource.archives) and all(said.get(name) is False for name in resource.archives)
    if resource.held is Held.UNKNOWN or refuted:
        return replace(resource, held=Held.UNKNOWN, archives=())
    return resource


async def _compare(client: Transport, archive: Archive, row: Row, uri: str, answer: LiveAnswer) -> float | None:
    """How alike a copy is to the live resource; None if the copy cannot be had."""
    if row.digest and row.digest.rpartition(":")[2].upper() == _sha1_base32(answer.body):
        return 1.0
    body = bytearray()
    try:
        wanted = Wanted(uri, row.captured_at, row.locator)
        replay = await fetch(client, archive, wanted, body.extend, max_bytes=MAX_COPY)
        if replay.standing != "archived" or replay.status != 200:
            return None
        content = decoded(bytes(body), effective_encoding(replay.header("content-encoding"), bytes(body[:1024])))
    except (RecollectError, ValueError, OSError):
        return None
    if content == answer.body:
        return 1.0
    texts = [extract_text(one, answer.media_type) for one in (content, answer.body)]
    return similarity(texts[0], texts[1]) if texts[0] and texts[1] else 0.0


def _sha1_base32(body: bytes) -> str:
    """The digest of a payload as indexes of web archives write it."""
    return base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
