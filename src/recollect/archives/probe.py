"""Asking an archive one question: does it hold any capture of a URI?

Hides: which of its addresses is the cheapest to ask. The first page of a TimeMap is enough (a long one is cut), a
listing is asked for one row, a TimeGate is not followed to the memento it names.

Absence is not failure: 404 and an empty answer are False; everything that is neither a find nor an absence raises.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from recollect.archives.listing import Query, listing_url, nothing_matches, parse_listing
from recollect.archives.transport import Request, Response, Sender
from recollect.errors import ArchiveError, BadAnswer
from recollect.formats.timemap import parse_link_header, parse_timemap
from recollect.formats.timemap.described import described

if TYPE_CHECKING:
    from recollect.archives.registry import Archive

_ENOUGH = 256 * 1024
_ABSENT = (204, 404, 410)
_REDIRECTS = (301, 302, 303, 307, 308)
_STAMP = re.compile(r"/\d{14}(?:[a-z]{2}_)?/")
_TIMEGATE_HOPS = 4
_TIMEGATE_BODY = 64 * 1024
# Any datetime will do, because every capture is a find.
_ANY_TIME = {"Accept-Datetime": "Thu, 01 Jan 2015 00:00:00 GMT"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """What an archive shows of a URI: whether it holds it, and captures by year, media type and language as far as it
    lists them."""

    held: bool
    years: dict[str, int] = field(default_factory=dict)
    media_types: dict[str, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)


async def sighted(client: Sender, archive: Archive, uri: str) -> Sighting:
    """Whether the archive holds a URI, and what its TimeMap lists; raises ArchiveError when it does not say."""
    if archive.timemap:
        return await _by_timemap(client, archive, uri)
    return Sighting(await holds(client, archive, uri))


async def holds(client: Sender, archive: Archive, uri: str) -> bool:
    """Whether the archive holds a URI; raises ArchiveError when it does not say."""
    if archive.timemap:
        return (await _by_timemap(client, archive, uri)).held
    if archive.cdx:
        return await _by_listing(client, archive, uri)
    if archive.timegate:
        return await _by_timegate(client, archive, uri)
    raise ArchiveError("the archive has no address to ask", where=archive.id)


async def _by_timemap(client: Sender, archive: Archive, uri: str) -> Sighting:
    accept = {"Accept": "application/link-format, application/json;q=0.8, */*;q=0.5"}
    request = Request(archive, archive.timemap_uri(uri), accept, max_bytes=_ENOUGH, partial=True)
    response = await client.send(request)
    if response.status in _ABSENT:
        return Sighting(False)
    _refuse_failure(archive, response)
    timemap = parse_timemap(response.body, response.headers.get("content-type"), response.url)
    if timemap.uris or timemap.pages:
        years = Counter(str(memento.captured_at.year) for memento in timemap)
        stated = described(response.body, timemap.kind)
        return Sighting(True, dict(years), stated.get("media_type", {}), stated.get("language", {}))
    if timemap.kind == "other" or timemap.problems or response.truncated:
        raise BadAnswer("not a TimeMap", where=archive.id, why=response.truncated or "nothing in it can be read")
    return Sighting(False)


async def _by_listing(client: Sender, archive: Archive, uri: str) -> bool:
    url = listing_url(archive.cdx, Query(uri, "exact")) + "&limit=1"
    response = await client.send(Request(archive, url, max_bytes=_ENOUGH, partial=True))
    if response.status == 404 and nothing_matches(response.body):
        return False
    _refuse_failure(archive, response)
    rows, _, unread = parse_listing(response.body)
    if not rows and (unread or response.truncated):
        raise BadAnswer("not a listing", where=archive.id)
    return bool(rows)


async def _by_timegate(client: Sender, archive: Archive, uri: str) -> bool:
    url = archive.timegate_uri(uri)
    for _ in range(_TIMEGATE_HOPS):
        response = await client.send(Request(archive, url, _ANY_TIME, max_bytes=_TIMEGATE_BODY, hops=0, partial=True))
        links = parse_link_header(response.headers.get_all("link"))
        if response.headers.get("memento-datetime") or any("memento" in link.rels for link in links):
            return True
        if response.status in _ABSENT:
            return False
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or not location:
            break
        url = urljoin(url, location)
        if _STAMP.search(url):
            return True
    raise BadAnswer("the TimeGate names no memento", where=archive.id, why=f"status {response.status}")


def _refuse_failure(archive: Archive, response: Response) -> None:
    if response.status >= 300:
        raise BadAnswer("the archive did not answer", where=archive.id, why=f"status {response.status}")
