"""Mementos through the aggregator: the closest memento's body as it was captured.

Hides: which header belongs to the capture and which to the archive that replays it; fail-over to the next closest
memento when an archive cannot replay. Set-Cookie, the archive's own security policy and CORS headers never pass; a
redirect that was captured leads to its memento here, not to the live web. The page is foreign, so it is sandboxed.
Invalid header fields (control characters, endless values) do not pass, and the length passes only if it is certain:
what a client or a proxy could frame differently must not be sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from recollect.aggregator.http.app import Context
from recollect.aggregator.http.replies import COMMON, OPERATOR, describe, error_reply, stream_reply, without_cors
from recollect.aggregator.http.target import Target
from recollect.aggregator.service import LARGE, LookupResult
from recollect.archives.http1 import Headers
from recollect.archives.registry import Archive
from recollect.archives.replay import Wanted, address_of, open_capture, original_location
from recollect.archives.transport import StreamedResponse
from recollect.datetimes import format_http_date, format_timestamp, parse_http_date
from recollect.errors import ArchiveError, BadAnswer, FormatError
from recollect.formats.timemap import Memento, Mementos, Place, link_header

log = logging.getLogger("recollect.web")

PREFERENCES = ("original-content", "original-links", "original-headers")
MAX_BODY = 10**9
_TRIES = 3
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_RANGES = re.compile(r"bytes=(?=\d|-\d)(\d{0,15})-(\d{0,15})(,[\d\s,-]{0,200})?")
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
    return address_of(context.aggregator.archive_set.by_id[memento.archive], _wanted(memento, uri_r))[0]


def _wanted(memento: Memento, uri_r: str) -> Wanted:
    return Wanted(uri_r, memento.captured_at, memento.uri)


async def replay(
    context: Context, request: web.BaseRequest, target: Target, answer: LookupResult, links: dict[str, str]
) -> web.StreamResponse:
    assert target.at is not None
    failures: list[str] = []
    async for memento in _by_distance(answer, target.at):
        archive = context.aggregator.archive_set.by_id[memento.archive]
        response = stream_reply(request, {}, {})
        try:
            await _pass_on(context, request, target, answer, memento, archive, response)
        except ArchiveError as error:
            if response.prepared:
                # The head is out; only a broken connection can say that the body is not whole.
                log.info("replay broke off: %s", error)
                raise ConnectionResetError(f"replay broke off: {error}") from error
            failures.append(f"{memento.archive}: {error}")
            continue
        except _NoSuchRange as wrong:
            there = {"Content-Range": str(wrong)} if str(wrong) else {}
            return error_reply(416, "no byte of it lies in this range", uri_r=target.uri_r, headers={**links, **there})
        return response
    hint = "; ".join(failures)
    return error_reply(502, "no archive could replay it", hint=hint, uri_r=target.uri_r, answer=answer, headers=links)


async def _by_distance(answer: LookupResult, at: datetime) -> AsyncIterator[Memento]:
    """The closest memento, then those of other archives by distance; at most a few, and each archive once."""
    choice = answer.negotiated(at)
    assert choice is not None
    yield choice.closest
    mementos = answer.mementos
    large = len(mementos) >= LARGE
    nearest = await asyncio.to_thread(nearest_of_each, mementos, at) if large else nearest_of_each(mementos, at)
    others = [memento for memento in nearest if memento.archive != choice.closest.archive]
    for memento in others[: _TRIES - 1]:
        yield memento


def nearest_of_each(mementos: Mementos, at: datetime) -> list[Memento]:
    """Of each archive the memento nearest to a datetime (of two as near the earlier), the nearest first."""
    middle = mementos.since(at)
    nearest: dict[str, Memento] = {}
    for side in (range(middle - 1, -1, -1), range(middle, len(mementos))):  # earlier ones, then later ones
        met: set[int] = set()
        for number in side:
            archive = mementos.rows[number][1]
            if archive in met:
                continue
            met.add(archive)
            memento = mementos[number]
            known = nearest.get(memento.archive)
            if known is None or abs(memento.captured_at - at) < abs(known.captured_at - at):
                nearest[memento.archive] = memento
            if len(met) == len(mementos.archives):
                break
    return sorted(nearest.values(), key=lambda memento: abs(memento.captured_at - at))


async def _pass_on(
    context: Context,
    request: web.BaseRequest,
    target: Target,
    answer: LookupResult,
    memento: Memento,
    archive: Archive,
    response: web.StreamResponse,
) -> None:
    """Write the memento to the client; raises ArchiveError if it cannot be had."""
    if _asked_range(request):
        # Some archives fail for ranges that they cannot serve (pywb, for one that ends after the body).
        with contextlib.suppress(_NoRanges):
            await _write(context, request, target, answer, memento, archive, response, ranged=True)
            return
    await _write(context, request, target, answer, memento, archive, response, ranged=False)


async def _write(
    context: Context,
    request: web.BaseRequest,
    target: Target,
    answer: LookupResult,
    memento: Memento,
    archive: Archive,
    response: web.StreamResponse,
    *,
    ranged: bool,
) -> None:
    """The same, asking the archive for the range the client wants, or for everything."""
    fields = {"Accept-Encoding": "identity"} | ({"Range": request.headers["Range"]} if ranged else {})
    method = "HEAD" if request.method == "HEAD" else "GET"
    wanted = _wanted(memento, target.uri_r)
    try:
        async with open_capture(context.client, archive, wanted, max_bytes=MAX_BODY, method=method, headers=fields) as (
            capture,
            upstream,
        ):
            if ranged and upstream.status not in (200, 206):
                raise _NoRanges
            if capture.standing != "archived":
                raise ArchiveError("no replay", where=archive.id, why=capture.detail)
            part = _part(request, upstream)
            _head(context, request, target, answer, memento, upstream, response)
            if part is not None:
                response.set_status(206)
                response.headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{part.length}"
                response.headers["Content-Length"] = str(part.stop - part.start)
            await response.prepare(request)
            if method == "GET":
                async for chunk in _cut(upstream, part):
                    await response.write(chunk)
            await response.write_eof()
    except BadAnswer as error:
        if ranged and not response.prepared:
            raise _NoRanges from error
        raise


# Ranges. An archive that serves them is passed on; for one that does not, the part is cut out here.


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes from `start` to before `stop` of a body of `length`."""

    start: int
    stop: int
    length: int


class _NoRanges(Exception):
    """The archive does not serve this range; the whole body may be had."""


class _NoSuchRange(Exception):
    """Nothing of the body lies in the range that was asked for."""


def _asked_range(request: web.BaseRequest) -> re.Match[str] | None:
    """The range a request asks for; None also for one that is malformed, which is ignored (RFC 9110, section 14.2)."""
    asked = _RANGES.fullmatch(request.headers.get("Range", "")) if request.method == "GET" else None
    if asked is None or (asked[1] and asked[2] and int(asked[2]) < int(asked[1])):
        return None
    return asked


def _part(request: web.BaseRequest, upstream: StreamedResponse) -> _Part | None:
    """The part to cut out of a whole body; None if the archive did so, or nothing is to be cut: the length is unknown,
    several ranges are asked for, or the client's part is of another version (`If-Range`)."""
    length = upstream.headers.get("content-length")
    asked = _asked_range(request)
    if upstream.status != 200 or not length.isdecimal() or "transfer-encoding" in upstream.headers or asked is None:
        return None
    had = request.headers.get("If-Range")
    if asked[3] or (
        had is not None and had not in (upstream.headers.get("etag"), upstream.headers.get("last-modified"))
    ):
        return None
    first, last, size = asked[1], asked[2], int(length)
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(size, int(last) + 1) if last else size
    if start >= stop:
        raise _NoSuchRange(f"bytes */{size}")
    return _Part(start, stop, size)


async def _cut(chunks: StreamedResponse, part: _Part | None) -> AsyncIterator[bytes]:
    at = 0
    async for chunk in chunks:
        if part is None:
            yield chunk
            continue
        inside = chunk[max(0, part.start - at) : max(0, part.stop - at)]
        at += len(chunk)
        if inside:
            yield inside
        if at >= part.stop:
            return


def _head(
    context: Context,
    request: web.BaseRequest,
    target: Target,
    answer: LookupResult,
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
    if request.get(OPERATOR):
        without_cors(response)
    response.headers.update(describe(answer))
    response.headers["Memento-Datetime"] = format_http_date(_captured_at(upstream.headers) or memento.captured_at)
    length = upstream.headers.get("content-length")
    if length.isdecimal() and "transfer-encoding" not in upstream.headers:
        response.headers["Content-Length"] = length
        response.headers["Accept-Ranges"] = "bytes"
    response.headers["Link"] = link_header(place, answer.around(memento))
    response.headers["Content-Location"] = memento.uri
    response.headers["Content-Security-Policy"] = "sandbox allow-forms allow-scripts"
    applied = preferences or ["original-content"]
    response.headers["Preference-Applied"] = ", ".join(applied)
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
