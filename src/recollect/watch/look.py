"""Looking at a site: a polite sample of its live resources, and what archives hold of each (`watch.holdings`).

Hides: how the sample is drawn. It begins at the front page and follows links and embedded resources of the same site,
breadth first, pages and embedded resources in turn, and addresses that sitemaps name, at one request a second,
robots.txt honoured, conditional where a validator is known.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import urljoin, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.registry import Archive
from recollect.archives.robots import Robots, ask_robots
from recollect.archives.transport import Transport
from recollect.model import Progress, ProgressCallback
from recollect.recovery.fingerprint import SiteFingerprint, page_of, same_site
from recollect.recovery.judge import Rejection, is_error_page_of, judge
from recollect.recovery.links import Document, read_document
from recollect.recovery.verdicts import Verdict
from recollect.watch.holdings import HostListings, ResourceReport, archived
from recollect.watch.outside import OutsideLinks, outside_links
from recollect.watch.records import Facts, Resource
from recollect.watch.sitemaps import sitemap_addresses
from recollect.watch.states import Live

MOST_SECONDS = 600.0
"""For the live resources of a site, on one visit."""
MOST_ARCHIVE_SECONDS = 300.0
"""For archives, which may allow few requests a minute; what they were not asked for is asked for on the next visit."""
MOST_FAILURES = 5
MOST_KNOWN = 10
"""No new addresses are looked for when this many samples of them are known."""
ASK_ARCHIVES_EVERY = timedelta(days=7)
_GONE = frozenset((404, 410))
_NO_PAGE = frozenset({Verdict.SOFT_404, Verdict.ERROR_PAGE})


@dataclass
class Sample:
    """A sample of the live resources of a site, one answer at a time, so that no more than one body is held.

    Addresses that are known come first, the one asked longest ago before the others, then what pages lead to. A tenth
    of the sample is for addresses that are not known, so that new pages are found on sites larger than the sample.
    Ends early when the site stops answering, or after `MOST_SECONDS`: a slow site does not hold up the others.
    """

    client: LiveClient
    site: str
    most: int
    robots: Robots
    known: Mapping[str, Resource] = field(default_factory=dict)
    progress: ProgressCallback | None = None
    disallowed: set[str] = field(default_factory=set)
    """Addresses that robots.txt forbids."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """Addresses that sitemaps name, with the sitemap; asked after those that the front page links to."""
    sources: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    """By address, how many links lead there from the front page, and the page or sitemap that named it first."""

    async def answers(self, front: LiveAnswer) -> AsyncIterator[LiveAnswer]:
        """The answers, that for the front page first."""
        old = deque(self._by_age())
        self.sources[self.site] = self.sources[front.url] = (0, "")
        new = deque([*self._follow(front), *self.listed])
        for uri, sitemap in self.listed.items():
            self.sources.setdefault(uri, (None, sitemap))
        seen = {self.site, front.url}
        full = len(old) + 1 >= self.most
        limit = self.most - max(1, self.most // 10) if full and len(old) < MOST_KNOWN * self.most else self.most
        clock = asyncio.get_running_loop().time
        deadline = clock() + MOST_SECONDS
        count, failures = 1, 0
        started = clock()
        yield front
        deadline += clock() - started  # what archives took does not count
        while count < self.most and failures < MOST_FAILURES and clock() < deadline:
            queue = old if old and (count < limit or not new) else new
            if not queue:
                break
            uri = queue.popleft()
            if uri in seen or (queue is new and uri in self.known):
                continue
            seen.add(uri)
            if not self.robots.allow(uri):
                self.disallowed.add(uri)
                continue
            answer = await self.client.get(uri, conditional(self.known.get(uri)))
            count += 1
            failures = failures + 1 if answer.failure is not None else 0
            new.extend(one for one in self._follow(answer) if one not in seen)
            started = clock()
            yield answer
            deadline += clock() - started
            if self.progress is not None:
                self.progress(Progress("looking at the live site", count, self.most, "resources"))

    def _follow(self, answer: LiveAnswer) -> list[str]:
        """Addresses that a page names; notes how far they are from the front page."""
        found = _found_on(answer, self.site)
        before = self.sources.get(answer.asked, (None, ""))[0]
        hops = before + 1 if before is not None else None
        for uri in found:
            known = self.sources.get(uri)
            if known is None or (hops is not None and (known[0] is None or hops < known[0])):
                self.sources[uri] = (hops, answer.asked)
        return found

    def _by_age(self) -> list[str]:
        """Pages that are gone and not yet confirmed first, then those asked longest ago."""

        def asked(resource: Resource) -> tuple[bool, bool, str, str]:
            at = resource.live_at
            sure = resource.gone_since is None or resource.told_at is not None
            return sure, at is not None, at.isoformat() if at is not None else "", resource.uri

        return [resource.uri for resource in sorted(self.known.values(), key=asked)]


def conditional(resource: Resource | None) -> dict[str, str]:
    """The headers that ask for a resource only if it changed."""
    if resource is None or not resource.validator or resource.live is not Live.LIVE:
        return {}
    is_tag = resource.validator.startswith(('"', "W/"))
    return {"If-None-Match" if is_tag else "If-Modified-Since": resource.validator}


def _validator(answer: LiveAnswer) -> str:
    tag = answer.headers.get("etag", "")
    return tag if tag.startswith(('"', "W/")) else answer.headers.get("last-modified", "")


def _found_on(answer: LiveAnswer, site: str) -> list[str]:
    """Addresses of the site that a page names: pages and embedded resources in turn."""
    document = live_document(answer)
    if document is None:
        return []
    own = [link for link in document.links if not link.guess and same_site(link.uri, site)]
    embedded = list(dict.fromkeys(link.uri.partition("#")[0] for link in own if link.embedded))
    pages = list(dict.fromkeys(link.uri.partition("#")[0] for link in own if not link.embedded))
    mixed: list[str] = []
    for number in range(max(len(embedded), len(pages))):
        mixed += [*pages[number : number + 1], *embedded[number : number + 1]]
    return [uri for uri in mixed if urlsplit(uri).scheme in ("http", "https")]


def resource_of(site: str, answer: LiveAnswer, at: datetime, before: Resource | None = None) -> Resource:
    """What an answer says of a resource. An answer that confirms nothing leaves the last confirmed state."""
    known = before or Resource(site, answer.asked)
    if answer.failure is None and not same_site(answer.asked, answer.url):
        return known  # a redirect to another site, a login for instance, says nothing
    if answer.failure is None and answer.status == 304:
        return replace(known, live=Live.LIVE, live_at=at, gone_since=None, told_at=None)
    if answer.failure is None and answer.status in _GONE:
        # A media type is known of what was live once; a broken link never was.
        since = known.gone_since or (at if known.media_type else None)
        return replace(known, live=Live.GONE, live_at=at, gone_since=since)
    if answer.failure is None and 200 <= answer.status < 300:
        digest = hashlib.sha1(answer.body, usedforsecurity=False).hexdigest()
        seen = replace(known, media_type=answer.media_type, live=Live.LIVE, live_at=at, digest=digest)
        return replace(seen, validator=_validator(answer), gone_since=None, told_at=None)
    return known


def leads_home(answer: LiveAnswer, front: LiveAnswer, before: Resource | None) -> bool:
    """Whether a page that had content of its own now redirects to the front page: it is gone, whatever the status."""
    if before is None or not before.digest or not answer.hops or answer.failure is not None:
        return False
    digest = hashlib.sha1(front.body, usedforsecurity=False).hexdigest()
    return answer.url == front.url and answer.asked not in (front.asked, front.url) and before.digest != digest


_META = re.compile(rb"<meta\b([^<>]*+)", re.IGNORECASE)
_OF_ROBOTS = re.compile(rb"""\bname\s*+=\s*+["']?(?:robots|googlebot|archive\.org_bot|ia_archiver)\b""", re.IGNORECASE)
_NOARCHIVE = re.compile(rb"\bnoarchive\b", re.IGNORECASE)


def _refuses_archiving(content: bytes) -> bool:
    return any(_OF_ROBOTS.search(found[1]) and _NOARCHIVE.search(found[1]) for found in _META.finditer(content))


def facts_of(answer: LiveAnswer, before: Facts, source: tuple[int | None, str] | None) -> Facts:
    """Properties of an answer that matter for captures; of one without a body those that were known."""
    hops, place = source if source is not None else (before.hops, before.source)
    if answer.status == 304 or answer.status >= 400:
        return replace(before, hops=hops, source=place, seen=before.seen + (answer.status == 304))
    stored = {part.strip().lower() for part in answer.headers.get("cache-control", "").split(",")}
    header = "noarchive" in answer.headers.get("x-robots-tag", "").lower()
    noarchive = header or _refuses_archiving(answer.body[: 64 * 1024])
    return Facts(hops, place, noarchive, ", ".join(sorted(stored & {"no-store", "private"})), before.seen + 1)


def is_soft_404(answer: LiveAnswer, impossible: LiveAnswer, front: LiveAnswer) -> bool:
    """Whether an answer is the page that the site gives for an address that cannot exist.

    A site that answers everything with its front page (an application in the browser) gives no information this way.
    """
    both = (answer, impossible)
    if any(one.failure is not None or one.status != 200 or not one.body for one in both) or answer is front:
        return False
    if impossible.body == front.body or answer.body == front.body:
        return False
    if answer.media_type != impossible.media_type:
        return False
    return is_error_page_of(answer.body, impossible.body, front.body, answer.media_type)


def verdict_of(answer: LiveAnswer) -> Rejection | None:
    """What the judge of pages says of an answer."""
    document = live_document(answer)
    return judge(document, answer.url, answer.media_type, content=answer.body) if document is not None else None


@dataclass
class Look:
    """One look at a site: what it needs, and what it found out beside the resources."""

    live: LiveClient
    transport: Transport
    archives: Sequence[Archive]
    site: str
    sample: int
    fingerprint: SiteFingerprint | None = None
    """Learns every page that is seen."""
    progress: ProgressCallback | None = None
    disallowed: set[str] = field(default_factory=set)
    archive_seconds: float = MOST_ARCHIVE_SECONDS
    domain: Callable[[str], str] = lambda uri: urlsplit(uri).hostname or ""
    """The registered domain of a URI."""
    outside: list[OutsideLinks] = field(default_factory=list)
    """Links to other domains, of each page that was read."""
    unchanged: int = 0
    """Pages that did not change, and were not read."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """Addresses that sitemaps name."""

    async def resources(
        self, front: LiveAnswer, known: Mapping[str, Resource], at: datetime
    ) -> AsyncIterator[ResourceReport]:
        """Each resource of the sample, and what archives hold of it; bodies are not kept."""
        robots = await ask_robots(self.live, self.site)
        self.listed = await sitemap_addresses(self.live, self.site, robots, at)
        sample = Sample(self.live, self.site, self.sample, robots, known, self.progress, self.disallowed, self.listed)
        impossible = await self._impossible(robots, at)
        listings = HostListings(self.transport)
        clock, spent = asyncio.get_running_loop().time, 0.0
        async for answer in sample.answers(front):
            before = known.get(answer.asked)
            soft = impossible is not None and is_soft_404(answer, impossible, front)
            soft = soft or leads_home(answer, front, before)
            judged = verdict_of(answer) if not soft and answer is not front else None
            soft = soft or (judged is not None and judged.certain and judged.verdict in _NO_PAGE)
            resource = resource_of(self.site, replace(answer, status=404) if soft else answer, at, before)
            if not soft and judged is None:
                self._learn(answer, resource)
            self.unchanged += answer.status == 304 and "html" in resource.media_type
            facts = facts_of(
                replace(answer, status=404) if soft else answer, resource.facts, sample.sources.get(answer.asked)
            )
            resource = replace(resource, facts=facts)
            looked = ResourceReport(resource, answer)
            changed = before is not None and (
                before.digest != resource.digest or (before.gone_since is None and resource.gone_since is not None)
            )
            if (changed or is_stale(before, at)) and spent < self.archive_seconds:
                started = clock()
                looked = await archived(listings, self.archives, resource, answer, at)
                spent += clock() - started
            yield replace(looked, answer=replace(answer, body=b""))

    async def _impossible(self, robots: Robots, at: datetime) -> LiveAnswer | None:
        uri = impossible_address(self.site, at)
        return await self.live.get(uri) if robots.allow(uri) else None

    def _learn(self, answer: LiveAnswer, resource: Resource) -> None:
        document = live_document(answer)
        if self.fingerprint is not None and document is not None and document.form == "html":
            self.fingerprint.learn(page_of(document, resource.uri))
        if document is not None and document.form == "html":
            self.outside.append(outside_links(answer.body, answer.url, self.domain))


def is_stale(resource: Resource | None, at: datetime) -> bool:
    """Whether the archives have to be asked for a resource; a moment in the future is from a clock that was wrong."""
    if resource is None or resource.held_at is None:
        return True
    return not timedelta(0) <= at - resource.held_at < ASK_ARCHIVES_EVERY


def impossible_address(site: str, now: datetime) -> str:
    """An address that no site has, another every day."""
    token = hashlib.blake2b(f"{site} {now:%Y-%m-%d}".encode(), digest_size=8).hexdigest()
    return urljoin(site, f"/recollect-{token}.html")


def live_document(answer: LiveAnswer) -> Document | None:
    """The document of an answer that is a page of its own."""
    if answer.failure is not None or answer.status != 200:
        return None
    return read_document(answer.body, answer.url, answer.media_type)
