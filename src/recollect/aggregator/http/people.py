"""The endpoints for people: `/` with its form and result, and `/_/`, the style sheet and script of the pages.

Hides: how a page is sent in pieces. `?uri=` is the page whose captures are shown; with `at=` (a date) the reader is
sent to the capture nearest to it.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from recollect.aggregator.http.app import Context, RequestRecord, via
from recollect.aggregator.http.pages import captures_page, home_page, onward_page, problem_page
from recollect.aggregator.http.published import LINK
from recollect.aggregator.http.replies import SERVER, error_reply, reply, stream_reply
from recollect.aggregator.http.target import clean_uri
from recollect.aggregator.service import LookupRequest
from recollect.errors import RecollectError
from recollect.formats.timemap import Place
from recollect.ui.look import ASSET_TYPES, HEADERS, asset

_DATE = re.compile(r"\d{4}(?:-?\d\d){0,2}")


async def page(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    base = context.base(request)
    root = urlsplit(base).path
    options = dict(parse_qsl(rest.removeprefix("?"), errors="surrogateescape"))
    typed = options.get("uri") or options.get("url") or ""
    if not typed.strip():
        home = _page(200, home_page(context.aggregator.archive_set.archives, root))
        if context.settings.publish:
            home.headers["Link"] = LINK
        return home
    try:
        uri_r = seen.uri_r = clean_uri(typed.strip())
    except RecollectError as error:
        return _page(400, problem_page("Not the address of a page", str(error), typed, root))
    place = Place(base, uri_r)
    at = options.get("at", "")
    if _DATE.fullmatch(at):
        digits = at.replace("-", "")
        # Noon, so that the nearest is nearest to the day. No redirect: a form's may not lead off this server.
        return _page(
            200, onward_page(f"{root}/memento/{digits + '120000' * (len(digits) == 8)}/{place.original}", root)
        )
    response = stream_reply(request, {**HEADERS, "Cache-Control": "no-store"}, {"Server": SERVER})
    await response.prepare(request)
    if request.method != "HEAD":
        lookup = LookupRequest(uri_r, via=via(context, request))
        async for piece in captures_page(context.aggregator, lookup, place, context.settings.desk):
            await response.write(piece.encode("utf-8", "replace"))
    await response.write_eof()
    return response


async def assets(_context: Context, _request: web.BaseRequest, rest: str, _seen: RequestRecord) -> web.StreamResponse:
    name = rest.partition("?")[0]
    if name not in ASSET_TYPES:
        return error_reply(404, "no such file")
    return reply(200, asset(name), ASSET_TYPES[name], {"Cache-Control": "max-age=3600"})


def _page(status: int, text: str) -> web.Response:
    body = text.encode("utf-8", "replace")
    return web.Response(status=status, body=body, headers={"Server": SERVER, **HEADERS})
