"""The endpoints about the aggregator itself: health, archives and their states, counters, events, reload, about.

Hides: what every client may see (which archives are asked, and whether they pause) and what only an operator may see
(failures in detail, counters, reload). Credentials of archives are never shown.
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from recollect import __version__
from recollect.aggregator.breaker import BreakerState, State
from recollect.aggregator.http.app import Context, RequestRecord
from recollect.aggregator.http.metrics import together
from recollect.aggregator.http.monitor import MAX_WATCHERS
from recollect.aggregator.http.openapi import description
from recollect.aggregator.http.replies import error_reply, json_reply, reply, stream_reply
from recollect.archives.registry import Archive
from recollect.errors import RecollectError


async def health(context: Context, _request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    if context.draining:
        return json_reply({"status": "stopping"}, 503, {"Cache-Control": "no-store"})
    document = {"status": "ok", "version": __version__, "archives": len(context.aggregator.archive_set.usual)}
    return json_reply(document, headers={"Cache-Control": "no-store"})


async def ready(context: Context, _request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    """Whether lookups can be answered now: not while stopping, nor while every archive rests."""
    states = context.aggregator.states()
    resting = [
        archive
        for archive in sorted(context.aggregator.archive_set.usual)
        if archive in context.aggregator.switched_off
        or states[archive][1]
        or states[archive][0].name is not State.CLOSED
    ]
    usual = len(context.aggregator.archive_set.usual)
    status = "stopping" if context.draining else "archives-resting" if resting and len(resting) == usual else "ready"
    document = {"status": status, "archives": usual, "resting": resting}
    return json_reply(document, 200 if status == "ready" else 503, {"Cache-Control": "no-store"})


async def rest(context: Context, _request: web.BaseRequest, rest: str, _seen: RequestRecord) -> web.StreamResponse:
    """Do not ask an archive, in any process, until it is woken."""
    return _switch(context, rest, on=False)


async def wake(context: Context, _request: web.BaseRequest, rest: str, _seen: RequestRecord) -> web.StreamResponse:
    """Ask an archive again: ends an operator's rest, the breaker's and a pause."""
    return _switch(context, rest, on=True)


def _switch(context: Context, rest: str, *, on: bool) -> web.Response:
    archive = rest.partition("?")[0].strip("/")
    if archive not in context.aggregator.archive_set.by_id:
        return error_reply(404, f"no such archive: {archive[:100]}", hint="/archives lists them")
    (context.aggregator.wake if on else context.aggregator.let_rest)(archive)
    return json_reply({"archive": archive, "state": "awake" if on else "resting"})


async def archives(context: Context, _request: web.BaseRequest, _rest: str, seen: RequestRecord) -> web.StreamResponse:
    """Readable for MemGator, too: an array of objects with its keys, and ours."""
    states = context.aggregator.states()
    known = context.aggregator.archive_set.maps
    mapped = known.describe() if known is not None else {}
    entries = []
    for archive in context.aggregator.archive_set.archives:
        breaker, pause, busy = states[archive.id]
        entry = _public(archive) | {
            "state": _state(context, archive.id, breaker, pause),
            "map": mapped.get(archive.id, ""),
        }
        if seen.operator:
            entry["detail"] = {
                "failures": breaker.failures,
                "last_failure": breaker.last_failure,
                "next_try_seconds": round(breaker.rest_left, 1),
                "pause_seconds": round(pause, 1),
                "in_use": busy,
            }
        entries.append(entry)
    return json_reply(entries, headers={"Cache-Control": "no-store"})


def _state(context: Context, archive: str, breaker: BreakerState, pause: float) -> str:
    if archive in context.aggregator.switched_off:
        return "switched off"
    return "paused" if pause else breaker.name.value


def _public(archive: Archive) -> dict[str, Any]:
    shown = {name: getattr(archive, name) for name in ("id", "name", "timemap", "timegate", "ignore")}
    if archive.probability is not None:
        shown["probability"] = archive.probability
    return shown


async def metrics(context: Context, _request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    body = together(exposition(context), context.shared, context.metrics.worker).encode()
    return reply(200, body, "text/plain; version=0.0.4; charset=utf-8")


def exposition(context: Context) -> str:
    """The counters of this worker."""
    gauges = {
        name: (state.name.value, pause, busy) for name, (state, pause, busy) in context.aggregator.states().items()
    }
    cache = context.aggregator.cache
    maps = context.aggregator.archive_set.maps
    ages = {} if maps is None else maps.ages()
    lines = context.metrics.lines(gauges, (len(cache), cache.bytes) if cache is not None else None, ages)
    return "".join(f"{line}\n" for line in lines)


async def reload(context: Context, _request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    assert context.reload is not None
    try:
        words = await context.reload()
    except RecollectError as error:
        return error_reply(500, f"nothing was changed: {error}", hint=error.hint)
    return json_reply({"reloaded": words})


async def monitor(context: Context, request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    if not context.settings.monitor:
        return error_reply(501, "monitoring is not enabled", hint="serve --monitor")
    if context.monitor.watchers >= MAX_WATCHERS:
        return error_reply(503, "too many are watching", headers={"Retry-After": "60"})
    response = stream_reply(
        request, {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    if request.method == "HEAD":
        await response.write_eof()
        return response
    async for event in context.monitor.watch():
        if context.draining:
            break
        await response.write(event)
    return response


async def openapi(context: Context, request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    known = [archive.id for archive in context.aggregator.archive_set.archives]
    return reply(
        200, json.dumps(description(context.base(request), known), indent=2).encode() + b"\n", "application/json"
    )


async def about(context: Context, request: web.BaseRequest, _rest: str, _seen: RequestRecord) -> web.StreamResponse:
    base = context.base(request)
    archive_set = context.aggregator.archive_set
    names = [f"{n}. {a.name} ({a.id})" for n, a in enumerate((a for a in archive_set.archives if not a.ignore), 1)]
    lines = [
        f"Recollect {__version__}, a Memento aggregator that asks only the archives that can answer",
        "",
        f"TimeMap:  {base}/timemap/{{FORMAT}}/{{URI-R}}",
        f"TimeGate: {base}/timegate/{{URI-R}} [Accept-Datetime]",
        f"Memento:  {base}/memento[/{{FORMAT}}|proxy]/{{DATETIME}}/{{URI-R}}",
        f"Summary:  {base}/summary/{{URI-R}}",
        f"Route:    {base}/route/{{URI-R}}",
        f"Stream:   {base}/stream/{{URI-R}}",
        f"Archives: {base}/archives",
        f"API:      {base}/openapi.json",
        "",
        "  {FORMAT}          => link|json|cdxj",
        "  {DATETIME}        => YYYY[MM[DD[hh[mm[ss]]]]]",
        "  [Accept-Datetime] => Header in RFC1123 format",
        "",
        "Archives",
        "",
        *names,
        "",
    ]
    return reply(200, "\n".join(lines).encode(), "text/plain; charset=utf-8")
