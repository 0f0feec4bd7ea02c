"""The interface of LANL's Time Travel service (2014 to 2025), so that software written for it works by another address.

    /api/json/DATETIME/URI     the mementos around a datetime; `uri` is a list, as there one moment may have several
    /list/DATETIME/URI         the page for people
    /404.js                    a script for the error page of a site: offers the captures of the page that is gone

`/memento/DATETIME/URI`, `/timegate/URI`, `/timemap/json/URI` and `/timemap/link/URI` are those of the aggregator.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlsplit

from aiohttp import web

from recollect.aggregator.http.app import Context, RequestRecord
from recollect.aggregator.http.lookups import memento
from recollect.aggregator.http.replies import redirect, reply
from recollect.aggregator.http.target import clean_uri
from recollect.ui.pages import asset

_DATED = re.compile(r"(?:html/)?(?:\d{4,14}/)?(?=.)")


async def api(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    """What `/memento/json/...` answers, in the shape of Time Travel; other formats as they are."""
    answer = await memento(context, request, rest, seen)
    if answer.status != 200 or not rest.startswith("json/") or not isinstance(answer, web.Response):
        return answer
    assert isinstance(answer.body, bytes)
    document = json.loads(answer.body)
    for one in document["mementos"].values():
        one["uri"] = [one["uri"]]
    answer.body = json.dumps(document, indent=2).encode() + b"\n"
    return answer


async def listing(context: Context, request: web.BaseRequest, rest: str, seen: RequestRecord) -> web.StreamResponse:
    """To the page that shows all captures."""
    dated = _DATED.match(rest)
    seen.uri_r = clean_uri(rest[dated.end() :] if dated else rest)
    return redirect(f"{urlsplit(context.base(request)).path}/?uri={quote(seen.uri_r, safe='')}", {})


async def error_page_script(
    _context: Context, _request: web.BaseRequest, _rest: str, _seen: RequestRecord
) -> web.StreamResponse:
    headers = {"Cache-Control": "public, max-age=86400", "Access-Control-Allow-Origin": "*"}
    return reply(200, asset("404.js"), "text/javascript; charset=utf-8", headers)
