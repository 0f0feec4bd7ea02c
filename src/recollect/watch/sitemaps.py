"""Addresses that the sitemaps of a live site name.

Hides: how sitemaps are looked for (those of robots.txt, else `/sitemap.xml`), gzip, and bounds. Content is read by the
reader of recoveries (`recovery.links`); an index of sitemaps is known by its root element. Of an index with more files
than a visit asks for, each day's visit asks for others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urljoin, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.robots import Robots
from recollect.errors import FormatError
from recollect.recovery.decoding import decoded
from recollect.recovery.fingerprint import same_site
from recollect.recovery.links import read_document

MOST_FILES = 8
"""Sitemaps that are asked for on one visit."""
MOST_ADDRESSES = 10_000
_PLACE = "/sitemap.xml"
_INDEX = re.compile(rb"<(?:\w{1,20}:)?sitemapindex\b")
_HEAD = 4096
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 64 * 1024 * 1024
"""A sitemap has at most 50 MB (sitemaps.org)."""


async def sitemap_addresses(client: LiveClient, site: str, robots: Robots, at: datetime) -> dict[str, str]:
    """Addresses of the site, each with the sitemap that names it, in order."""
    waiting = [place for place in robots.sitemaps if same_site(place, site)] or [urljoin(site, _PLACE)]
    addresses: dict[str, str] = {}
    asked: set[str] = set()
    while waiting and len(asked) < MOST_FILES and len(addresses) < MOST_ADDRESSES:
        place = waiting.pop(0)
        if place in asked or not robots.allow(place):
            continue
        asked.add(place)
        answer = await client.get(place)
        if answer.failure is not None or answer.status != 200 or "html" in answer.media_type:
            continue
        content = _unpacked(answer)
        listed = [uri for uri in _listed(content, answer) if same_site(uri, site)]
        if _INDEX.search(content[:_HEAD]):
            turn = at.toordinal() * (MOST_FILES - 1) % len(listed) if len(listed) >= MOST_FILES else 0
            waiting += listed[turn:] + listed[:turn]
        else:
            addresses |= {uri: place for uri in listed[: MOST_ADDRESSES - len(addresses)] if uri not in addresses}
    return addresses


def _unpacked(answer: LiveAnswer) -> bytes:
    """The content of a sitemap; that of one that the site keeps in gzip, unpacked."""
    if not answer.body.startswith(_GZIP):
        return answer.body
    try:
        return decoded(answer.body, "gzip", limit=_MOST_BYTES, cut=True)
    except FormatError:
        return b""


def _listed(content: bytes, answer: LiveAnswer) -> Iterator[str]:
    """The addresses in a sitemap: XML in any form, or one address a line."""
    plain = content is answer.body
    document = read_document(content, answer.url.removesuffix(".gz"), answer.media_type if plain else "")
    if document is None or document.form not in ("xml", "urls"):
        # A list of addresses may have any name.
        document = read_document(content, urljoin(answer.url, "/sitemap.txt"), "text/plain")
    for link in document.links if document is not None and document.form in ("xml", "urls") else ():
        uri = link.uri.partition("#")[0]
        if urlsplit(uri).scheme in ("http", "https"):
            yield uri
