"""The endpoints that look a resource up: TimeMaps, TimeGate, memento descriptions, summary, route, stream.

Hides: how an answer of the aggregator becomes one of RFC 7089. A TimeGate's replies all carry `Vary: accept-datetime`
and a Link header, errors too (section 4.5.3); a redirect of `/memento/` carries the Link but no Vary, as it does not
negotiate.

No mementos is 404, if at least one archive answered (the reply names those that did not). If every archive asked
failed, it is unknown: 502, or 504 when all were too late.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import Any, TypeVar

from aiohttp import web

from recollect.aggregator.explain import decision_json, outcome_json
from recollect.aggregator.http.app import Context, RequestRecord, via
from recollect.aggregator.http.monitor import to_event
from recollect.aggregator.http.replay import raw_location, raw_preferences, replay
from recollect.aggregator.http.replies import (
    COMMON,
    archives_of,
    describe,
    error_reply,
    json_reply,
    redirect,
    refusal,
    reply,
    stream_reply,
)
from recollect.aggregator.http.target import Target, page_of, parse_target
from recollect.aggregator.outcomes import Failure, Outcome, OutcomeKind
from recollect.aggregator.service import LARGE, USUAL_POLICY, CachePolicy, LookupRequest, LookupResult
from recollect.archives.registry import choose
from recollect.datetimes import format_iso, parse_http_date
from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.timemap import MEDIA_TYPES, Mementos, Paging, Place, link_header, write_memento, write_timemap
from recollect.routing.choice import Decision, Reason

_CLIENT_SECONDS = 300
_COMPRESS_FROM = 1000
_WAIT = re.compile(r"(?:^|,)\s*wait\s*=\s*\"?(\d{1,4}(?:\.\d+)?)\"?\s*(?:$|[,;])", re.IGNORECASE)
_DIRECTIVE = re.compile(r'([a-z-]+)(?:\s*=\s*"?([^",\s]*)"?)?')


async def timemap(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    target = _target(context, "timemap", rest, seen)
    answer = seen.answer = await context.aggregator.timemaps(_lookup(context, request, target))
    place = Place(context.base(request), target.uri_r)
    media_type = MEDIA_TYPES[target.kind]
    plain = not target.options and target.page is None
    if plain and answer.entry is not None and (target.kind, place.base) in answer.entry.rendered:
        count, body, etag = answer.entry.rendered[target.kind, place.base]
        fields = {"X-Memento-Count": count, **describe(answer), **_caching(answer, etag)}
        return (_conditional(request, etag, fields) if etag else None) or _packed(reply(200, body, media_type, fields))
    mementos = answer.mementos
    if target.since or target.until:
        mementos = mementos.between(target.since, target.until)
    if not mementos.rows:
        return _nothing(context, target, answer, {"X-Memento-Count": "0"})
    paging = Paging(target.page, context.settings.page_size) if target.page is not None else None
    if paging is not None and paging.number > (last := paging.count(len(mementos))):
        return error_reply(404, f"no such page: {paging.number}: the last is {last}", uri_r=target.uri_r)
    etag = await _aside(mementos, lambda: _etag(target, place, mementos))
    headers = {"X-Memento-Count": str(len(mementos)), **describe(answer), **_caching(answer, etag)}
    unchanged = _conditional(request, etag, headers)
    if unchanged is not None:
        return unchanged
    extra = {"archives": archives_of(answer)} if target.kind == "json" else None
    chunks = write_timemap(target.kind, place, mementos, paging=paging, extra=extra)
    if len(mementos) >= LARGE and paging is None:
        return await _streamed(request, chunks, {**headers, "Content-Type": media_type})
    body = await _aside(mementos, lambda: b"".join(chunks))
    if plain and answer.entry is not None and context.aggregator.cache is not None:
        key, rendered = (target.kind, place.base), (headers["X-Memento-Count"], body, etag)
        context.aggregator.cache.remember(target.uri_r, answer.entry, key, rendered, len(body) + 200)
    return _packed(reply(200, body, media_type, headers))


def _etag(target: Target, place: Place, mementos: Mementos) -> str:
    """Changes with what a TimeMap lists. Weak: the JSON form also has how long each archive took."""
    digest = hashlib.blake2b(f"{target.kind} {place.base} {target.page} {len(mementos)}".encode(), digest_size=12)
    for start in range(0, len(mementos), _DIGESTED):
        rows = mementos.rows[start : start + _DIGESTED]
        digest.update("\n".join([f"{archive} {stem}" for _, archive, stem in rows]).encode())
    return f'W/"{digest.hexdigest()}"'


_DIGESTED = 1000
_Made = TypeVar("_Made")


async def _aside(mementos: Mementos, make: Callable[[], _Made]) -> _Made:
    """What `make` makes of mementos; of many in a thread, so that other clients do not wait."""
    return make() if len(mementos) < LARGE else await asyncio.to_thread(make)


def _caching(answer: LookupResult, etag: str) -> dict[str, str]:
    """A complete answer may be kept for a while; one that lacks archives must be asked for again."""
    complete = not answer.failed and not answer.unheard
    kept = f"public, max-age={_CLIENT_SECONDS}" if complete else "no-cache"
    return {"Cache-Control": kept, "Vary": "accept-encoding, prefer", **({"ETag": etag} if etag else {})}


def _conditional(request: web.BaseRequest, etag: str, headers: dict[str, str]) -> web.Response | None:
    """304 if the client has this already (RFC 9110, section 13.1.2)."""
    had = {one.strip() for one in request.headers.get("If-None-Match", "").split(",")}
    if etag not in had and "*" not in had and etag.removeprefix("W/") not in had:
        return None
    return web.Response(status=304, headers={**COMMON, **headers})


def _packed(response: web.Response) -> web.Response:
    """Compressed, if the client takes it and it is worth it."""
    if len(response.body or b"") >= _COMPRESS_FROM:  # type: ignore[arg-type]  # always bytes here
        response.enable_compression()
    return response


async def timegate(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    target = _target(context, "timegate", rest, seen)
    place = Place(context.base(request), target.uri_r)
    headers = {"Vary": "accept-datetime, prefer", "Link": link_header(place, None)}
    try:
        at = _accept_datetime(request)
    except RecollectError as error:
        return refusal(error, uri_r=target.uri_r, headers=headers)
    answer = seen.answer = await context.aggregator.timegates(_lookup(context, request, target), at)
    choice = answer.negotiated(at)
    if choice is None:
        return _nothing(context, target, answer, headers)
    headers = {**describe(answer), "Vary": "accept-datetime, prefer", "Link": link_header(place, choice)}
    return redirect(choice.closest.uri, headers)


async def memento(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    target = _target(context, "memento", rest, seen)
    assert target.at is not None
    place = Place(context.base(request), target.uri_r)
    lookup = _lookup(context, request, target)
    if target.kind in MEDIA_TYPES:
        answer = seen.answer = await context.aggregator.timemaps(lookup)
    else:
        answer = seen.answer = await context.aggregator.timegates(lookup, target.at)
    choice = answer.negotiated(target.at)
    links = {"Link": link_header(place, choice)}
    if choice is None:
        return _nothing(context, target, answer, links)
    if target.kind in MEDIA_TYPES:
        extra = {"archives": archives_of(answer)} if target.kind == "json" else None
        body = write_memento(target.kind, place, choice, extra)
        return reply(200, body, MEDIA_TYPES[target.kind], {**links, **describe(answer)})
    if target.kind in ("proxy", "raw"):
        return await replay(context, request, target, answer, links)
    preferences = raw_preferences(request)
    fields = {**describe(answer), **links}
    location = choice.closest.uri
    if preferences:
        location = raw_location(context, choice.closest, target.uri_r)
        fields["Preference-Applied"] = ", ".join(preferences)
    return redirect(location, fields)


async def summary(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    target = _target(context, "summary", rest, seen)
    answer = seen.answer = await context.aggregator.timemaps(_lookup(context, request, target))
    mementos = answer.mementos.between(target.since, target.until)
    if not mementos.rows:
        return _nothing(context, target, answer, {"X-Memento-Count": "0"})
    table = await _aside(mementos, mementos.per_year)
    years: dict[int, int] = {}
    for counts in table.values():
        for year, count in counts.items():
            years[year] = years.get(year, 0) + count
    document = {
        "original_uri": target.uri_r,
        "mementos": len(mementos),
        "first": format_iso(mementos[0].captured_at),
        "last": format_iso(mementos[-1].captured_at),
        "years": {str(year): years[year] for year in sorted(years)},
        "per_archive": {
            archive: {"mementos": sum(counts.values()), "years": {str(y): counts[y] for y in sorted(counts)}}
            for archive, counts in table.items()
        },
        "archives": archives_of(answer),
    }
    return json_reply(document, headers={"X-Memento-Count": str(len(mementos)), **describe(answer)})


async def route(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    """How a lookup would be routed; with Accept-Datetime, how a TimeGate would be."""
    target = _target(context, "route", rest, seen)
    decisions = context.aggregator.route(
        target.uri_r,
        _chosen(context, target),
        named=_named(target),
        at=_accept_datetime(request),
        page=_page(request, target),
    )
    entries = [decision_json(decision) for decision in decisions]
    asked = sum(decision.ask for decision in decisions)
    return json_reply({"uri": target.uri_r, "ask": asked, "skip": len(decisions) - asked, "archives": entries})


async def stream(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    """Server-sent events: how the lookup is routed, each archive's outcome as it comes with its mementos, the end."""
    target = _target(context, "stream", rest, seen)
    lookup = _lookup(context, request, target)
    response = stream_reply(
        request, {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    if request.method == "HEAD":
        await response.write_eof()
        return response
    decisions = {d.archive: d for d in _routed(context, lookup)}
    first = {"uri": target.uri_r, "archives": [decision_json(d) for d in decisions.values()]}
    await response.write(to_event("route", first))
    answer = seen.answer = await _send_outcomes(context, response, lookup, decisions)
    complete = not answer.failed and not answer.unheard
    last = {"mementos": len(answer.mementos), "complete": complete, "archives": archives_of(answer)}
    await response.write(to_event("done", last))
    await response.write_eof()
    return response


def _routed(context: Context, lookup: LookupRequest) -> tuple[Decision, ...]:
    return context.aggregator.route(lookup.uri_r, lookup.chosen, named=lookup.named, page=lookup.page)


async def _send_outcomes(
    context: Context, response: web.StreamResponse, lookup: LookupRequest, decisions: dict[str, Decision]
) -> LookupResult:
    queue: asyncio.Queue[Outcome | None] = asyncio.Queue()
    task = asyncio.get_running_loop().create_task(
        context.aggregator.timemaps(replace(lookup, on_outcome=queue.put_nowait))
    )
    task.add_done_callback(lambda _: queue.put_nowait(None))
    sent: set[str] = set()

    async def send(outcome: Outcome) -> None:
        sent.add(outcome.archive)
        said = outcome_json(decisions[outcome.archive], outcome)
        large = outcome.count >= LARGE
        event = await asyncio.to_thread(_archive_event, said, outcome) if large else _archive_event(said, outcome)
        await response.write(event)

    try:
        while (outcome := await queue.get()) is not None:
            await send(outcome)
        answer = await task
        for outcome in answer.outcomes:  # those that were in the cache
            if outcome.archive not in sent:
                await send(outcome)
    finally:
        task.cancel()
    return answer


def _archive_event(said: dict[str, Any], outcome: Outcome) -> bytes:
    """An event with all captures of an archive; encoded in parts, as one call for all would hold up other threads."""
    captures = list(zip(outcome.timemap.moments, outcome.timemap.uris, strict=True))
    parts = [
        json.dumps([[moment.replace(":", ""), uri] for moment, uri in captures[start : start + LARGE]])[1:-1]
        for start in range(0, len(captures), LARGE)
    ]
    head = json.dumps(said)[:-1]
    return f'event: archive\ndata: {head}, "list": [{", ".join(parts)}]}}\n\n'.encode()


# What a request means


def _target(context: Context, endpoint: str, rest: str, seen: RequestRecord) -> Target:
    target = parse_target(endpoint, rest, context.aggregator.archive_set.by_id)
    seen.uri_r = target.uri_r
    return target


def _lookup(context: Context, request: web.BaseRequest, target: Target) -> LookupRequest:
    wait = _WAIT.search(",".join(request.headers.getall("Prefer"))) if "Prefer" in request.headers else None
    return LookupRequest(
        target.uri_r,
        _chosen(context, target),
        _named(target),
        float(wait[1]) if wait else None,
        _cache_policy(request),
        via(context, request),
        page=_page(request, target),
    )


def _page(request: web.BaseRequest, target: Target) -> str:
    """The page that embeds what is asked for, by the Referer."""
    referer = request.headers.get("Referer", "")
    page = page_of(referer, request.headers.get("Host", "")) if referer else ""
    return page if page != target.uri_r else ""


def _chosen(context: Context, target: Target) -> frozenset[str] | None:
    if not target.archives:
        return None
    try:
        return frozenset(archive.id for archive in choose(context.aggregator.archive_set.archives, target.archives))
    except FormatError as error:
        raise UsageError(error.what, where=error.where, why=error.why, hint="/archives lists them") from error


def _named(target: Target) -> bool:
    """Whether the request names the archives it wants, and not only those it does not."""
    return any(not name.strip().startswith("!") for name in target.archives.split(",") if name.strip())


def _cache_policy(request: web.BaseRequest) -> CachePolicy:
    """RFC 9111 section 5.2.1, where it makes sense for a response from several archives."""
    text = request.headers.get("Cache-Control", "").lower()
    if not text:
        return CachePolicy(read=False) if request.headers.get("Pragma", "").lower() == "no-cache" else USUAL_POLICY
    directives = {match[1]: match[2] for match in _DIRECTIVE.finditer(text)}
    age = directives.get("max-age") or ""
    return CachePolicy(
        read="no-cache" not in directives and "no-store" not in directives,
        store="no-store" not in directives,
        only="only-if-cached" in directives,
        max_age=float(age) if age.isdigit() else None,
    )


def _accept_datetime(request: web.BaseRequest) -> datetime | None:
    text = request.headers.get("Accept-Datetime", "").strip()
    if not text:
        return None
    try:
        return parse_http_date(text)
    except FormatError as error:
        raise UsageError(
            "malformed Accept-Datetime", where=repr(text[:80]), why="expected like 'Thu, 31 May 2007 20:35:00 GMT'"
        ) from error


# Replies


def _nothing(context: Context, target: Target, answer: LookupResult, headers: dict[str, str]) -> web.StreamResponse:
    """No mementos: no archive holds any, or none could answer."""
    fields = {**headers, **describe(answer)}
    asked = [outcome for outcome in answer.outcomes if outcome.kind is OutcomeKind.ERROR]
    if any(decision.reason is Reason.NOT_CACHED for decision in answer.unheard):
        return error_reply(504, "not in the cache", kind="not-cached", uri_r=target.uri_r, headers=fields)
    if asked and len(asked) == len(answer.outcomes):
        late = all(outcome.failure in (Failure.TIMEOUT, Failure.THROTTLED) for outcome in asked)
        message = "no archive answered in time" if late else "no archive could answer"
        return error_reply(504 if late else 502, message, uri_r=target.uri_r, answer=answer, headers=fields)
    if not answer.outcomes and answer.unheard:
        seconds = context.aggregator.rest_left(decision.archive for decision in answer.unheard)
        fields["Retry-After"] = str(max(1, ceil(seconds)))
        message = "the archives that may hold it are resting"
        return error_reply(503, message, uri_r=target.uri_r, answer=answer, headers=fields)
    partly = "; some archives did not answer" if answer.failed or answer.unheard else ""
    return error_reply(404, f"no mementos found{partly}", uri_r=target.uri_r, answer=answer, headers=fields)


async def _streamed(request: web.BaseRequest, chunks: Iterable[bytes], headers: dict[str, str]) -> web.StreamResponse:
    response = stream_reply(request, headers)
    response.enable_compression()
    await response.prepare(request)
    if request.method != "HEAD":
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)  # a client that reads fast would otherwise keep the loop to itself
    await response.write_eof()
    return response
