"""Asking one archive for what it holds of one resource: its TimeMap, its TimeGate, or its CDX listing.

Hides: pages and indexes of TimeMaps, which statuses mean what, and the many ways a TimeGate names its choice (redirects
of every kind, 200 with Content-Location, one or several Link headers, a redirect to another TimeGate). An answer with
`Memento-Datetime` is a memento whatever its status (RFC 7089, section 2.1.1): captured redirects and errors too.

Law 2: 404, 410, 204 and an empty TimeMap are `none`; a page of HTML with status 200 is an `error`, because it says
nothing. Whatever was read before a failure is kept, and `partial` says what is missing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from recollect.aggregator.outcomes import NO_TIMEMAP, Failure, Outcome, OutcomeKind, failed
from recollect.archives.client import ArchiveClient
from recollect.archives.listing import Query, list_captures
from recollect.archives.registry import Archive
from recollect.archives.transport import Request, Response
from recollect.datetimes import format_http_date, format_timestamp, parse_or_none, parse_timestamp
from recollect.errors import AnswerTooBig, ArchiveError
from recollect.formats.timemap import Link, Memento, TimeMap, parse_link_header, parse_timemap, resolve

_REDIRECTS = frozenset((300, 301, 302, 303, 307, 308))
_ABSENT = frozenset((204, 404, 410))
_STAMP = re.compile(r"/(\d{14})(?:[a-z]{2}_)?/")
_LARGE = 250_000  # bytes from which a body is read in a thread: a hostile one takes seconds
_TIMEGATE_HOPS = 4
# pywb's TimeGate, where all captures redirect to the page itself (http to https): its TimeMap is asked.
_BAD_REQUEST = 400
_TIMEGATE_BODY = 64 * 1024  # bodies of TimeGates say nothing; this lets a usual one be read, and its connection kept
ACCEPT = {"Accept": "application/link-format, application/json;q=0.8, */*;q=0.5"}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one archive may send for one resource."""

    max_bytes: int = 64 * 1024 * 1024
    """Over all pages."""
    max_pages: int = 100
    pages_at_once: int = 4
    budget: int | None = None
    """Requests for one lookup, over all archives: one each for the most probable, the rest for further pages."""


class RequestBudget:
    """Requests that are left of a lookup's budget, shared by all archives asked."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, wanted: int) -> int:
        """As many as are left, up to `wanted`."""
        taken = max(0, min(wanted, self.left))
        self.left -= taken
        return taken


LIMITS = Limits()


async def ask_timemap(
    client: ArchiveClient,
    archive: Archive,
    uri_r: str,
    *,
    deadline: float,
    headers: Mapping[str, str] = ACCEPT,
    limits: Limits = LIMITS,
    budget: RequestBudget | None = None,
) -> Outcome:
    """What the archive's TimeMap lists, all its pages included (as many as `limits` and `budget` allow)."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        response = await client.send(
            Request(
                archive,
                archive.timemap_uri(uri_r),
                headers,
                deadline=deadline,
                max_bytes=limits.max_bytes,
                partial=True,
            )
        )
    except ArchiveError as error:
        return failed(archive.id, error, loop.time() - started, 1)
    outcome = await _read(archive.id, response, deadline)
    if outcome.timemap.pages:
        left = replace(limits, max_bytes=limits.max_bytes - len(response.body))
        outcome = await _with_pages(client, archive, outcome, deadline, headers, left, budget)
        outcome = replace(outcome, elapsed=loop.time() - started)
    return outcome


async def _read(archive: str, response: Response, deadline: float) -> Outcome:
    """What a TimeMap lists. Reading ends at the deadline; mementos read until then are kept."""
    if len(response.body) < _LARGE:
        return _read_timemap(archive, response)
    clock = asyncio.get_running_loop().time
    return await asyncio.to_thread(_read_timemap, archive, response, lambda: clock() > deadline)


def _read_timemap(archive: str, response: Response, stop: Callable[[], bool] = lambda: False) -> Outcome:
    status = response.status
    if status in _ABSENT:
        return Outcome(archive, OutcomeKind.NONE, elapsed=response.elapsed)
    if not 200 <= status < 300:
        return _bad_status(archive, response)
    timemap = parse_timemap(response.body, response.headers.get("content-type"), response.url, stop=stop)
    why = response.truncated or timemap.missing or ("only a part of it was sent" if status == 206 else "")
    if timemap.uris or timemap.pages:
        return Outcome(archive, OutcomeKind.MEMENTOS, timemap, response.elapsed, partial=why)
    if why:
        return _error(archive, Failure.BAD_ANSWER, why, elapsed=response.elapsed)
    if timemap.kind == "empty" or (timemap.kind != "other" and not timemap.problems):
        return Outcome(archive, OutcomeKind.NONE, timemap, response.elapsed)
    why = timemap.problems[0] if timemap.problems else "no mementos could be read"
    return replace(_error(archive, Failure.NOT_A_TIMEMAP, why, elapsed=response.elapsed), timemap=timemap)


def _bad_status(archive: str, response: Response) -> Outcome:
    status = response.status
    why = "the archive asked for a pause" if status == 429 else ""
    return _error(archive, Failure.STATUS, why, status=status, elapsed=response.elapsed)


def _error(archive: str, failure: Failure, why: str, *, status: int = 0, elapsed: float = 0.0) -> Outcome:
    return Outcome(archive, OutcomeKind.ERROR, NO_TIMEMAP, elapsed, 1, failure, status, why)


async def _with_pages(
    client: ArchiveClient,
    archive: Archive,
    first: Outcome,
    deadline: float,
    headers: Mapping[str, str],
    limits: Limits,
    budget: RequestBudget | None,
) -> Outcome:
    """Follow the pages a TimeMap names, and those that they name."""
    read = [first.timemap]
    todo = [page.uri for page in first.timemap.pages]
    seen = {archive.timemap, *todo}
    missing = [first.partial] if first.partial else []
    requests, left, bound = 1, limits.max_bytes, f"only {limits.max_pages} are read"

    async def page(uri: str, most: int) -> tuple[TimeMap, str, int]:
        try:
            request = Request(archive, uri, headers, deadline=deadline, max_bytes=most, partial=True)
            response = await client.send(request)
        except ArchiveError as error:
            return NO_TIMEMAP, str(error), 0
        outcome = await _read(archive.id, response, deadline)
        return outcome.timemap, outcome.error or outcome.partial, len(response.body)

    while todo and requests < limits.max_pages:
        size = min(limits.pages_at_once, limits.max_pages - requests, len(todo))
        batch = todo[: budget.take(size) if budget is not None else size]
        if not batch:
            bound = "the budget of requests is used up"
            break
        most = left // len(batch)
        if most <= 0:
            bound = "it sent too much already"
            break
        del todo[: len(batch)]
        for uri, (got, why, length) in zip(batch, await asyncio.gather(*(page(u, most) for u in batch)), strict=True):
            requests += 1
            left -= length
            if why:
                missing.append(f"page {uri[:200]}: {why}")
            read.append(got)
            new = [more.uri for more in got.pages if more.uri not in seen]
            seen.update(new)
            todo.extend(new)
    if todo:
        missing.append(f"{len(todo)} more pages, {bound}")
    whole = TimeMap(
        original=first.timemap.original,
        timegate=first.timemap.timegate,
        moments=[moment for timemap in read for moment in timemap.moments],
        uris=[uri for timemap in read for uri in timemap.uris],
        problems=tuple(dict.fromkeys(problem for timemap in read for problem in timemap.problems)),
    )
    if whole.uris:
        return Outcome(archive.id, OutcomeKind.MEMENTOS, whole, requests=requests, partial="; ".join(missing[:3]))
    if missing:
        error = _error(archive.id, Failure.PAGES, "; ".join(missing[:3]))
        return replace(error, timemap=whole, requests=requests)
    return Outcome(archive.id, OutcomeKind.NONE, whole, requests=requests)


# CDX listings


class _Bounded:
    """The client with a deadline and a bound on all it reads, as listings know none."""

    def __init__(self, client: ArchiveClient, deadline: float, max_bytes: int) -> None:
        self._client = client
        self._deadline = deadline
        self._left = max_bytes
        self.requests = 0

    async def send(self, request: Request) -> Response:
        if self._left <= 0:
            raise AnswerTooBig("the listing is too long", where=request.archive.id)
        self.requests += 1
        limit = min(request.max_bytes, self._left)
        response = await self._client.send(request._replace(deadline=self._deadline, max_bytes=limit))
        self._left -= len(response.body)
        return response


async def ask_listing(
    client: ArchiveClient, archive: Archive, uri_r: str, *, deadline: float, limits: Limits = LIMITS
) -> Outcome:
    """What a CDX server lists for exactly this resource, for archives that offer nothing else; its raw replay addresses
    stand for URI-Ms."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    bounded = _Bounded(client, deadline, limits.max_bytes)
    query, mementos, cursor, cut = Query(uri_r, "exact"), [], "", ""
    try:
        while True:
            page = await list_captures(bounded, archive, query, cursor)
            mementos += [
                Memento(archive.raw_uri(row.locator, format_timestamp(row.captured_at), row.uri), row.captured_at)
                for row in page.rows
            ]
            cursor, cut = page.cursor, page.cut
            if not cursor or bounded.requests >= limits.max_pages:
                break
    except ArchiveError as error:
        if not mementos:
            return failed(archive.id, error, loop.time() - started, bounded.requests)
        cut = str(error)
    if cursor:
        cut = cut or f"only {limits.max_pages} pages are read"
    kind = OutcomeKind.MEMENTOS if mementos else OutcomeKind.NONE
    return Outcome(
        archive.id, kind, TimeMap.of(mementos), loop.time() - started, bounded.requests, partial=cut if mementos else ""
    )


# TimeGates


async def ask_timegate(
    client: ArchiveClient,
    archive: Archive,
    uri_r: str,
    at: datetime | None,
    *,
    deadline: float,
    headers: Mapping[str, str] | None = None,
) -> Outcome:
    """What the archive's TimeGate offers for a datetime (None: the most recent); an archive without one is asked for
    its TimeMap or listing."""
    if not archive.timegate and archive.timemap:
        return await ask_timemap(client, archive, uri_r, deadline=deadline, headers={**ACCEPT, **(headers or {})})
    if not archive.timegate:
        return await ask_listing(client, archive, uri_r, deadline=deadline)
    loop = asyncio.get_running_loop()
    started = loop.time()
    asked = {**(headers or {}), "Accept-Datetime": format_http_date(at or datetime.now(UTC))}
    url, requests = archive.timegate_uri(uri_r), 0
    try:
        while True:
            requests += 1
            response = await client.send(
                Request(archive, url, asked, deadline=deadline, max_bytes=_TIMEGATE_BODY, hops=0, partial=True)
            )
            outcome, onward = _read_timegate(archive.id, response)
            if not onward or requests > _TIMEGATE_HOPS:
                break
            url = onward
    except ArchiveError as error:
        return failed(archive.id, error, loop.time() - started, requests)
    if outcome.status == _BAD_REQUEST and archive.timemap:
        fields = {**ACCEPT, **(headers or {})}
        listed = await ask_timemap(client, archive, uri_r, deadline=deadline, headers=fields)
        outcome, requests = listed, requests + listed.requests
    return replace(outcome, elapsed=loop.time() - started, requests=requests)


def _read_timegate(archive: str, response: Response) -> tuple[Outcome, str]:
    """(outcome, where to go on): a redirect that names no memento may lead to another TimeGate."""
    status = response.status
    links = parse_link_header(response.headers.get_all("link"))
    mementos, knows = _linked_mementos(response.url, links)
    captured_at = parse_or_none(response.headers.get("memento-datetime"))
    onward = ""
    if captured_at is not None:
        chosen: Memento | None = _answered(response, captured_at, mementos)
    elif status in _ABSENT:
        return Outcome(archive, OutcomeKind.NONE), ""
    elif status not in _REDIRECTS and not 200 <= status < 300:
        return _bad_status(archive, response), ""
    else:
        chosen, onward = _redirected(response, mementos)
    if chosen is not None:
        mementos.setdefault(chosen.uri, chosen)
    elif onward and not mementos:
        return _error(archive, Failure.REDIRECT, "it leads to no memento"), onward
    if mementos:
        return Outcome(archive, OutcomeKind.MEMENTOS, TimeMap.of(mementos.values()), knows=knows), ""
    if status in _REDIRECTS:
        return _error(archive, Failure.STATUS, "a redirect without a readable Location", status=status), ""
    # A page without Memento-Datetime and without mementos: archives say "not here" in this way (UKWA).
    return Outcome(archive, OutcomeKind.NONE), ""


def _linked_mementos(base: str, links: Sequence[Link]) -> tuple[dict[str, Memento], frozenset[str]]:
    mementos: dict[str, Memento] = {}
    knows: set[str] = set()
    for link in links:
        if "memento" not in link.rels:
            continue
        uri = resolve(base, link.target)
        captured_at = parse_or_none(link.params.get("datetime", "")) if uri else None
        if uri is None or captured_at is None:
            continue
        mementos.setdefault(uri, Memento(uri, captured_at))
        knows.update(rel for rel in link.rels if rel in ("first", "prev", "next", "last"))
        if "previous" in link.rels:
            knows.add("prev")
    return mementos, frozenset(knows)


def _answered(response: Response, captured_at: datetime, mementos: Mapping[str, Memento]) -> Memento:
    """The memento that an answer with Memento-Datetime is. Its Location, if it was captured as a redirect, is where the
    old page led to and not a memento of this one; pywb rewrites it with the datetime of our request."""
    place = response.headers.get("content-location")
    uri = resolve(response.url, place) if place else None
    if uri is None:
        # Some TimeGates redirect to the memento and give its datetime at once.
        to = resolve(response.url, response.headers.get("location")) if response.status in _REDIRECTS else None
        stamp = _STAMP.search(to) if to else None
        if to and (to in mementos or (stamp and parse_timestamp(stamp[1]) == captured_at and _names(to, response.url))):
            uri = to
    if uri is None:
        uri = next((m.uri for m in mementos.values() if m.captured_at == captured_at), response.url)
    return mementos.get(uri) or Memento(uri, captured_at)


def _names(uri_m: str, asked: str) -> bool:
    """Whether a URI-M ends with the same URI-R as the address that was asked."""
    original = _STAMP.split(uri_m, maxsplit=1)[-1].partition("://")[2]
    return bool(original) and asked.rstrip("/").endswith(original.rstrip("/"))


def _redirected(response: Response, mementos: Mapping[str, Memento]) -> tuple[Memento | None, str]:
    """The memento that a TimeGate redirects to, or else the address it sends us to."""
    place = response.headers.get("location") if response.status in _REDIRECTS else ""
    uri = resolve(response.url, place) if place else None
    if uri is None:
        return None, ""
    if uri in mementos:
        return mementos[uri], ""
    stamp = _STAMP.search(uri)
    return (Memento(uri, parse_timestamp(stamp[1])), "") if stamp else (None, uri)
