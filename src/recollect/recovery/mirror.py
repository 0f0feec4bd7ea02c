"""A whole website read from a server on loopback, for measuring; the live web is never crawled.

Hides: the crawl. Invariants: only the start's own host and port is asked, and only when it is a loopback address; the
number of resources is bounded.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable
from urllib.parse import urlsplit

from recollect.archives.client import ArchiveClient
from recollect.archives.opening import ClientOptions, open_client
from recollect.archives.registry import Archive
from recollect.archives.transport import Request
from recollect.blocking import blocking
from recollect.errors import ArchiveError, UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.links import read_document

MAX_RESOURCES = 100_000
_AT_ONCE = 8

Found = tuple[str, str, Callable[[], bytes]]


@blocking
def mirror(start: str) -> list[Found]:
    """(URI, media type, content) of everything linked from `start` on its own host."""
    host = urlsplit(start).hostname or ""
    if host != "localhost" and not _is_loopback(host):
        raise UsageError(
            "only a site on loopback can be measured", where=start, hint="crawl it into a WARC and give that file"
        )
    return asyncio.run(_crawl(start))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _crawl(start: str) -> list[Found]:
    site = Archive(id="site", timemap=start, concurrency=_AT_ONCE)
    origin = urlsplit(start).netloc
    seen = {visit_key(start)}
    found: list[Found] = []
    async with open_client(ClientOptions(concurrency=_AT_ONCE)) as client:
        frontier = [start]
        while frontier:
            batch, frontier = frontier[:_AT_ONCE], frontier[_AT_ONCE:]
            for answer in await asyncio.gather(*(_fetch(client, site, uri) for uri in batch)):
                if answer is None:
                    continue
                uri, media_type, body, links = answer
                found.append((uri, media_type, lambda body=body: body))  # type: ignore[misc]
                for link in links:
                    key = visit_key(link)
                    if urlsplit(link).netloc == origin and key not in seen and len(seen) < MAX_RESOURCES:
                        seen.add(key)
                        frontier.append(link)
    return found


async def _fetch(client: ArchiveClient, site: Archive, uri: str) -> tuple[str, str, bytes, list[str]] | None:
    try:
        answer = await client.send(Request(site, uri))
    except ArchiveError as error:
        raise UsageError("the site does not answer", where=uri, why=str(error)) from error
    if answer.status != 200:
        return None
    media_type = answer.headers.get("content-type")
    document = read_document(answer.body, uri, media_type)
    links = [link.uri for link in document.links if not link.guess] if document else []
    return uri, media_type, answer.body, links
