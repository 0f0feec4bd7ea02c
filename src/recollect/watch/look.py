"""Looking at a site: a polite sample of its live resources, and what archives hold of each.

Hides: how the sample is drawn and how copies are compared. It begins at the front page and follows links and embedded
resources of the same site, breadth first, a few of each kind in turn, at one request a second, robots.txt honoured.
Each resource is asked for at every archive; where one holds it, the newest copy of the first few is fetched and
compared with the live one: the same bytes, or the share of ten-word shingles in common.

Failures are observations: an archive that fails makes a holding unknown, not absent.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from recollect.archives.listing import Page, Row, list_exact
from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.registry import Archive
from recollect.archives.replay import Wanted, fetch
from recollect.archives.transport import Transport
from recollect.errors import ArchiveError, RecollectError
from recollect.model import Progress, ProgressCallback
from recollect.recovery.decoding import decoded, effective_encoding
from recollect.recovery.links import Document, read_document
from recollect.recovery.measure import extract_text, similarity
from recollect.watch.identity import same_site
from recollect.watch.states import Held, Live, held_by
from recollect.watch.store import Resource

MAX_COPY = 8 * 1024 * 1024
AGENT = "recollect"
_GONE = frozenset((404, 410))
_SAME_PAGE = 0.9


@dataclass(frozen=True, slots=True)
class Copy:
    """The newest copy of a resource in one archive."""

    archive: str
    captured_at: datetime
    locator: str = ""
    alike: float | None = None
    """How alike it is to the live resource, 0 to 1; None if it was not compared."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One resource: what the live web answered, which archives hold it and how fresh."""

    resource: Resource
    answer: LiveAnswer | None
    copies: tuple[Copy, ...] = ()
    failed: tuple[str, ...] = ()
    """Archives that did not answer."""


@dataclass
class Robots:
    """What robots.txt allows; without one, or with one that cannot be read, everything."""

    parser: RobotFileParser = field(default_factory=RobotFileParser)

    @classmethod
    async def of(cls, client: LiveClient, site: str) -> Robots:
        answer = await client.get(urljoin(site, "/robots.txt"))
        robots = cls()
        if answer.status in (401, 403):
            robots.parser.disallow_all = True  # type: ignore[attr-defined]  # not in the stubs
        elif answer.failure is None and answer.status == 200 and "html" not in answer.media_type:
            robots.parser.parse(answer.body.decode("utf-8", "replace").splitlines())
        else:
            robots.parser.allow_all = True  # type: ignore[attr-defined]
        return robots

    def allow(self, uri: str) -> bool:
        return self.parser.can_fetch(AGENT, uri)


async def live_sample(
    client: LiveClient,
    site: str,
    front: LiveAnswer,
    most: int,
    *,
    known: Iterable[Resource] = (),
    progress: ProgressCallback | None = None,
) -> list[LiveAnswer]:
    """The answers for up to `most` addresses of a site: those known before first, then what its pages lead to."""
    robots = await Robots.of(client, site)
    before = {resource.uri: resource for resource in known}
    waiting = deque([*before, *_found_on(front, site)])
    seen = {site, front.url}
    answers = [front]
    while waiting and len(answers) < most:
        uri = waiting.popleft()
        if uri in seen or not robots.allow(uri):
            continue
        seen.add(uri)
        old = before.get(uri)
        answer = await client.get(uri, {"If-None-Match": old.etag} if old is not None and old.etag else None)
        answers.append(answer)
        waiting.extend(one for one in _found_on(answer, site) if one not in seen)
        if progress is not None:
            progress(Progress("looking at the live site", len(answers), most, "resources"))
    return answers


def _found_on(answer: LiveAnswer, site: str) -> list[str]:
    """Addresses of the site that a page names: pages and embedded resources in turn."""
    document = _document(answer)
    if document is None:
        return []
    own = [link for link in document.links if not link.guess and same_site(link.uri, site)]
    embedded = list(dict.fromkeys(link.uri.partition("#")[0] for link in own if link.embedded))
    pages = list(dict.fromkeys(link.uri.partition("#")[0] for link in own if not link.embedded))
    mixed: list[str] = []
    for number in range(max(len(embedded), len(pages))):
        mixed += [*pages[number : number + 1], *embedded[number : number + 1]]
    return [uri for uri in mixed if urlsplit(uri).scheme in ("http", "https")]


def _document(answer: LiveAnswer) -> Document | None:
    if answer.failure is not None or answer.status != 200:
        return None
    return read_document(answer.body, answer.url, answer.media_type)


def resource_of(site: str, answer: LiveAnswer, at: datetime, before: Resource | None = None) -> Resource:
    """What an answer says of a resource. An answer that confirms nothing leaves the last confirmed state."""
    known = before or Resource(site, answer.asked)
    if answer.failure is None and not same_site(answer.asked, answer.url):
        return known  # a redirect to another site, a login for instance, says nothing
    if answer.failure is None and answer.status == 304:
        return replace(known, live=Live.LIVE, live_at=at)
    if answer.failure is None and answer.status in _GONE:
        return replace(known, live=Live.GONE, live_at=at)
    if answer.failure is None and 200 <= answer.status < 300:
        digest = hashlib.sha1(answer.body, usedforsecurity=False).hexdigest()
        etag = answer.headers.get("etag", "")
        return replace(known, media_type=answer.media_type, live=Live.LIVE, live_at=at, digest=digest, etag=etag)
    return known


def is_soft_404(answer: LiveAnswer, impossible: LiveAnswer, front: LiveAnswer) -> bool:
    """Whether an answer is the page that the site gives for an address that cannot exist.

    A site that answers everything with its front page (an application in the browser) tells nothing this way.
    """
    both = (answer, impossible)
    if any(one.failure is not None or one.status != 200 or not one.body for one in both) or answer is front:
        return False
    if impossible.body == front.body or answer.body == front.body:
        return False
    if answer.body == impossible.body:
        return True
    if answer.media_type != impossible.media_type or "html" not in answer.media_type:
        return False
    first, second, home = (extract_text(one.body, one.media_type) for one in (answer, impossible, front))
    if not first or not second:
        return False
    return similarity(first, second) >= _SAME_PAGE and similarity(second, home or "") < _SAME_PAGE


async def archived(
    client: Transport, archives: Sequence[Archive], resource: Resource, answer: LiveAnswer | None, at: datetime
) -> Looked:
    """Ask every archive for a resource, and compare the newest copy with the live one."""
    results = await asyncio.gather(*(_newest(client, archive, resource.uri) for archive in archives))
    said: dict[str, bool | None] = {}
    copies: list[Copy] = []
    for archive, result in zip(archives, results, strict=True):
        said[archive.id] = None if isinstance(result, ArchiveError) else result is not None
        if isinstance(result, Row):
            copies.append(Copy(archive.id, result.captured_at, result.locator))
    copies.sort(key=lambda copy: copy.captured_at, reverse=True)
    by_id = {archive.id: archive for archive in archives}
    alike = None
    if copies and answer is not None and answer.body and not answer.truncated:
        alike = await _compare(client, by_id[copies[0].archive], copies[0], resource.uri, answer)
        copies[0] = replace(copies[0], alike=alike)
    held = held_by(said)
    holders = tuple(copy.archive for copy in copies)
    noted = replace(resource, held=held, archives=holders, fresh=alike if alike is not None else resource.fresh)
    if held is not Held.UNKNOWN:
        noted = replace(noted, held_at=at)
    elif resource.held is not Held.UNKNOWN:
        noted = replace(noted, held=resource.held, archives=resource.archives)
    return Looked(noted, answer, tuple(copies), tuple(name for name, answered in said.items() if answered is None))


async def _newest(client: Transport, archive: Archive, uri: str) -> Row | ArchiveError | None:
    try:
        page: Page = await list_exact(client, archive, uri)
    except ArchiveError as error:
        return error
    if not page.rows and (page.cut or page.unread):
        return ArchiveError("the listing is not complete", where=archive.id, why=page.cut)
    good = [row for row in page.rows if row.status is None or 200 <= row.status < 300]
    return max(good, key=lambda row: row.captured_at, default=None)


async def _compare(client: Transport, archive: Archive, copy: Copy, uri: str, answer: LiveAnswer) -> float | None:
    body = bytearray()
    try:
        wanted = Wanted(uri, copy.captured_at, copy.locator)
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
