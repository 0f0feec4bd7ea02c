"""Addresses that the sitemaps of a live site name.

Hides: how sitemaps are looked for (those of robots.txt, else `/sitemap.xml`), and bounds. They are read by the reader
of recoveries (`recovery.links`), which knows indexes of sitemaps, plain lists and gzip.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from recollect.archives.live import LiveClient
from recollect.archives.robots import Robots
from recollect.recovery.fingerprint import same_site
from recollect.recovery.links import read_document

MOST_FILES = 5
"""Sitemaps that are asked for on one visit."""
MOST_ADDRESSES = 10_000
_PLACE = "/sitemap.xml"


async def sitemap_addresses(client: LiveClient, site: str, robots: Robots) -> dict[str, str]:
    """Addresses of the site, each with the sitemap that names it, in order."""
    waiting = [one for one in robots.sitemaps if same_site(one, site)] or [urljoin(site, _PLACE)]
    found: dict[str, str] = {}
    seen: set[str] = set()
    while waiting and len(seen) < MOST_FILES and len(found) < MOST_ADDRESSES:
        place = waiting.pop(0)
        if place in seen or not robots.allow(place):
            continue
        seen.add(place)
        answer = await client.get(place)
        if answer.failure is not None or answer.status != 200 or "html" in answer.media_type:
            continue
        document = read_document(answer.body, answer.url, answer.media_type)
        if document is None or document.form not in ("xml", "urls"):
            continue
        for link in document.links:
            uri = link.uri.partition("#")[0]
            if not same_site(uri, site) or urlsplit(uri).scheme not in ("http", "https"):
                continue
            if _is_sitemap(uri):
                waiting.append(uri)
            elif len(found) < MOST_ADDRESSES:
                found.setdefault(uri, place)
    return found


def _is_sitemap(uri: str) -> bool:
    """Whether an address that a sitemap names is one itself: indexes name files of XML."""
    return urlsplit(uri).path.lower().endswith((".xml", ".xml.gz")) or "sitemap" in uri.rpartition("/")[2].lower()
