"""Mementos through the aggregator: the closest memento's body as it was captured.

Hides: which header belongs to the capture and which to the archive that replays it; fail-over to the next closest
memento when an archive cannot replay. Set-Cookie, the archive's own security policy and CORS headers never pass; a
redirect that was captured leads to its memento here, not to the live web. The page is foreign, so it is sandboxed.
Fields that are no fields (control characters, endless values) do not pass, and the length passes only if it is certain:
what a client or a proxy before us could frame otherwise than we do must not leave here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import datetime

from aiohttp import web

from recollect.aggregator.service import Answer
from recollect.archives.http1 import Headers
from recollect.archives.registry import Archive
from recollect.archives.replay import original_location
from recollect.archives.transport import Request, RequestKind, StreamedResponse
from recollect.datetimes import format_http_date, format_timestamp, parse_http_date
from recollect.errors import ArchiveError, FormatError
from recollect.formats.timemap import Memento, Place, link_header, resolve
from recollect.web.app import Context
from recollect.web.replies import COMMON, describe, error_reply
from recollect.web.target import Target

log = logging.getLogger("recollect.web")

PREFERENCES = ("original-content", "original-links", "original-headers")
MAX_BODY = 10**9
_TRIES = 3
_HOPS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_STAMP = re.compile(r"/(\d{14})(?:[a-z]{2}_)?/")
# What a replaying archive says for itself, or what concerns only the connection.
_DROPPED = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade"),
        *("transfer-encoding", "server", "date", "set-cookie", "set-cookie2", "content-security-policy"),
        *("content-security-policy-report-only", "strict-transport-security", "alt-svc", "nel", "report-to", "link"),
        *("vary", "location", "content-location", "accept-ranges", "via", "age", "expires", "cache-control", "pragma"),
        *("preference-applied", "clear-site-data", "refresh", "service-worker-allowed", "public-key-pins"),
        *("www-authenticate", "authentication-info", "content-length", "memento-datetime"),
    )
)
_LONGEST_FIELD = 8000
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def raw_preferences(request: web.BaseRequest) -> list[str]:
    """The preferences for an unchanged memento that a request names (and that we grant)."""
    wanted = ",".join(request.headers.getall("Prefer", ())).lower()
    words = {word.strip().partition(";")[0].strip() for word in wanted.split(",")}
    return [name for name in PREFERENCES if name in words]


def raw_location(context: Context, memento: Memento, uri_r: str) -> str:
    """Where the archive serves this memento unchanged."""
    archive = context.aggregator.world.by_id[memento.archive]
    stamp = _STAMP.search(memento.uri)
    return archive.raw_uri(memento.uri, stamp[1] if stamp else format_timestamp(memento.captured_at), uri_r)


async def replay(
    context: Context, request: web.BaseRequest, target: Target, answer: Answer, links: dict[str, str]
) -> web.StreamResponse:
    assert target.at is not None
    failures: list[str] = []
    for memento in _by_distance(answer, target.at):
        archive = context.aggregator.world.by_id[memento.archive]
        response = web.StreamResponse()
        try:
            await _pass_on(context, request, target, answer, memento, archive, response)
        except ArchiveError as error:
            if response.prepared:
                # The head is out; only a broken connection can say that the body is not whole.
                log.info("replay broke off: %s", error)
                raise ConnectionResetError(f"replay broke off: {error}") from error
            failures.append(f"{memento.archive}: {error}")
            continue
        return response
    hint = "; ".join(failures)
    return error_reply(502, "no archive could replay it", hint=hint, uri_r=target.uri_r, answer=answer, headers=links)


def _by_distance(answer: Answer, at: datetime) -> Iterator[Memento]:
    """The closest memento, then others by distance; at most a few, and each archive once."""
    choice = answer.negotiated(at)
    assert choice is not None
    tried = {choice.closest.archive}
    yield choice.closest
    others = sorted(answer.mementos, key=lambda memento: abs(memento.captured_at - at))
    for memento in others:
        if memento.archive not in tried and len(tried) < _TRIES:
            tried.add(memento.archive)
            yield memento


async def _pass_on(
    context: Context,
    request: web.BaseRequest,
    target: Target,
    answer: Answer,
    memento: Memento,
    archive: Archive,
    response: web.StreamResponse,
) -> None:
    """Write the memento to the client; raises ArchiveError if it cannot be had."""
    url = raw_location(context, memento, target.uri_r)
    method = "HEAD" if request.method == "HEAD" else "GET"
    for _ in range(_HOPS + 1):
        plain = {"Accept-Encoding": "identity"}
        wanted = Request(archive, url, plain, RequestKind.REPLAY, method, max_bytes=MAX_BODY, hops=0)
        async with context.client.stream(wanted) as upstream:
            captured = upstream.headers.get("memento-datetime")
            onward = upstream.headers.get("location")
            if upstream.status in _REDIRECTS and not captured and onward:
                # The archive sends us to the exact time it holds.
                url = resolve(url, onward) or ""
                continue
            if not captured and upstream.status >= 400:
                raise ArchiveError("no replay", where=archive.id, why=f"status {upstream.status}")
            _head(context, request, target, answer, memento, upstream, response)
            await response.prepare(request)
            if method == "GET":
                async for chunk in upstream:
                    await response.write(chunk)
            await response.write_eof()
            return
    raise ArchiveError("no replay", where=archive.id, why="too many redirects")


def _head(
    context: Context,
    request: web.BaseRequest,
    target: Target,
    answer: Answer,
    memento: Memento,
    upstream: StreamedResponse,
    response: web.StreamResponse,
) -> None:
    place = Place(context.base(request), target.uri_r)
    response.set_status(upstream.status)
    preferences = raw_preferences(request)
    for name, value in _captured_headers(upstream.headers, originals="original-headers" in preferences):
        response.headers.add(name, value)
    response.headers.update(COMMON)
    response.headers.update(describe(answer))
    response.headers["Memento-Datetime"] = format_http_date(_captured_at(upstream.headers) or memento.captured_at)
    length = upstream.headers.get("content-length")
    if length.isdecimal() and "transfer-encoding" not in upstream.headers:
        response.headers["Content-Length"] = length
    response.headers["Link"] = link_header(place, answer.negotiated(memento.captured_at))
    response.headers["Content-Location"] = memento.uri
    response.headers["Content-Security-Policy"] = "sandbox allow-forms allow-scripts"
    applied = preferences or ["original-content"]
    response.headers["Preference-Applied"] = ", ".join(applied)
    response.headers["Vary"] = "prefer"
    onward = upstream.headers.get("x-archive-orig-location") or upstream.headers.get("location")
    if upstream.status in _REDIRECTS and onward:
        there = original_location(onward, target.uri_r)
        if there is not None:
            stamp = format_timestamp(memento.captured_at)
            response.headers["Location"] = f"{place.base}/memento/proxy/{stamp}/{there}"


def _captured_at(headers: Headers) -> datetime | None:
    try:
        return parse_http_date(headers.get("memento-datetime"))
    except FormatError:
        return None


def _captured_headers(headers: Headers, *, originals: bool) -> Iterator[tuple[str, str]]:
    """The headers that pass: those of the capture, and `X-Archive-Orig-*` (under their own names if wanted)."""
    for name, value in headers:
        low = name.lower()
        if not _NAME.fullmatch(name) or _CONTROL.search(value) or len(value) > _LONGEST_FIELD:
            continue
        if low.startswith("x-archive-orig-"):
            own = low.removeprefix("x-archive-orig-")
            if not originals:
                yield name, value
            elif own not in _DROPPED and own not in ("content-encoding", "content-type"):
                yield name[len("x-archive-orig-") :], value
        elif low not in _DROPPED and not low.startswith(("access-control-", "x-recollect-")):
            yield name, value
