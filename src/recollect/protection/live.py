"""Pages of a live site, as visitors and crawlers get them: whether a CDN, minifier or cache removed their blocks.

Hides: which pages are fetched. Links of the same host are followed from the start page, nearest first, up to a number
of pages; or the paths of a list are fetched. One request a second, as the watch asks.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.opening import operator_agent
from recollect.errors import ResourceError

_HREF = re.compile(rb"<a\s[^<>]{0,2000}?href\s{0,9}=\s{0,9}[\"']?([^\"'\s>#]{1,2000})", re.IGNORECASE)
_NOT_PAGES = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|ico|css|js|json|xml|pdf|zip|gz|mp[34]|webm|woff2?|txt)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LivePage:
    """A page as it was served, or why there is none."""

    url: str
    content: bytes
    failure: str = ""


async def live_pages(
    start: str, paths: Sequence[str] = (), *, most: int = 30, allow_private: bool = False
) -> AsyncIterator[LivePage]:
    """The pages of a site: those of `paths`, or those that links lead to."""
    waiting = deque([urljoin(start, path) for path in paths] or [start])
    known = set(waiting)
    host = urlsplit(start).netloc.lower()
    pace = 0.0 if allow_private else 1.0
    async with LiveClient(user_agent=operator_agent(), allow_private=allow_private, pace=pace) as client:
        given = 0
        while waiting and given < most:
            answer = await client.get(waiting.popleft())
            if answer.failure is not None and not given:
                raise ResourceError("the site does not answer", where=start, why=answer.why)
            page = _page_of(answer)
            if page is None:
                continue
            given += 1
            yield page
            if not paths:
                for url in _links(answer, host):
                    if url not in known:
                        known.add(url)
                        waiting.append(url)


def _page_of(answer: LiveAnswer) -> LivePage | None:
    """The page of an answer; None for what is not a page."""
    if answer.failure is not None:
        return LivePage(answer.asked, b"", answer.why)
    if answer.status != 200:
        return LivePage(answer.asked, b"", f"status {answer.status}")
    return LivePage(answer.url, answer.body) if "html" in answer.media_type else None


def _links(answer: LiveAnswer, host: str) -> list[str]:
    found = []
    for match in _HREF.finditer(answer.body):
        try:
            url = urljoin(answer.url, match[1].decode("utf-8", "replace").replace("&amp;", "&"))
            parts = urlsplit(url)
        except ValueError:
            continue
        if parts.scheme in ("http", "https") and parts.netloc.lower() == host and not _NOT_PAGES.search(parts.path):
            found.append(url.partition("#")[0])
    return found
