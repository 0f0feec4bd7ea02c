"""The description of the interface in the form of OpenAPI 3.1, made from one table.

Exact: every status that an endpoint answers with, the media type of each, and for parameters their enumerations and
patterns. A test sends what the description allows, and what it does not (schemathesis).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recollect import __version__
from recollect.formats.timemap import MEDIA_TYPES

JSON = "application/json"
EVENTS = "text/event-stream"
_MOMENT = r"^(19|20)[0-9]{2}((0[1-9]|1[0-2])((0[1-9]|1[0-9]|2[0-8])(([01][0-9]|2[0-3])([0-5][0-9]([0-5][0-9])?)?)?)?)?$"


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    where: str
    meaning: str
    schema: dict[str, Any]
    example: str = ""


@dataclass(frozen=True, slots=True)
class _Operation:
    path: str
    summary: str
    parameters: tuple[_Parameter, ...] = ()
    good: tuple[tuple[str, tuple[str, ...]], ...] = (("200", (JSON,)),)
    """Statuses of success with their media types."""
    bad: tuple[int, ...] = ()
    method: str = "get"
    operator: bool = False


_URI = _Parameter(
    "uri",
    "path",
    "The URI-R, as it is or percent-encoded; to the end of the path",
    {"type": "string", "pattern": r"^https?://[a-z0-9-]+(\.[a-z0-9-]+)*(/[A-Za-z0-9._~-]*)*$", "maxLength": 8000},
    "http://example.com/",
)
_KIND = _Parameter("format", "path", "link, json or cdxj", {"type": "string", "enum": list(MEDIA_TYPES)})
_AT = _Parameter("datetime", "path", "YYYY[MM[DD[hh[mm[ss]]]]]", {"type": "string", "pattern": _MOMENT}, "20150101")
_ARCHIVE = _Parameter(
    "archive",
    "path",
    "The id of an archive, as /archives lists it",
    {"type": "string", "pattern": r"^[A-Za-z0-9._-]+$"},
)
_ARCHIVES = _Parameter(
    "archives",
    "query",
    "Only these archives (a,b) or all but these (!a,b); ids as /archives lists them",
    {"type": "string", "pattern": r"^!?[A-Za-z0-9._-]+(,!?[A-Za-z0-9._-]+)*$"},
)
_DATE = {"type": "string", "pattern": _MOMENT}
_FROM = _Parameter("from", "query", "Only mementos at or after this datetime (needs an encoded URI-R)", _DATE)
_TO = _Parameter("to", "query", "Only mementos up to this datetime (needs an encoded URI-R)", _DATE)
_PAGE = _Parameter(
    "page",
    "query",
    "Page of the TimeMap, from 1 (needs an encoded URI-R; or /timemap/{format}/{page}/{uri})",
    {"type": "integer", "minimum": 1, "maximum": 999_999},
)
_ACCEPT = _Parameter(
    "Accept-Datetime",
    "header",
    "The datetime wanted, RFC 1123",
    {
        "type": "string",
        "pattern": r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), (0[1-9]|1[0-9]|2[0-8])"
        r" (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (19|20)[0-9]{2}"
        r" ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9] GMT$",
    },
    "Thu, 01 Jan 2015 00:00:00 GMT",
)
# Of these, what is not understood is ignored, as HTTP wants it: any text is allowed.
_PREFER = _Parameter(
    "Prefer",
    "header",
    "wait=SECONDS; for mementos original-content, original-links, original-headers",
    {"type": "string"},
    "wait=5",
)
_RANGE = _Parameter("Range", "header", "A part of the body", {"type": "string"}, "bytes=0-999")
_NONE_MATCH = _Parameter(
    "If-None-Match", "header", "An ETag that the client has; 304 if it still holds", {"type": "string"}
)

_LOOKUP = (400, 404, 414, 502, 503, 504, 508)
_REDIRECT = (("302", ("text/html",)),)
_OPERATIONS: tuple[_Operation, ...] = (
    _Operation(
        "/timemap/{format}/{uri}",
        "All mementos of a resource",
        (_KIND, _URI, _ARCHIVES, _FROM, _TO, _PAGE, _PREFER, _NONE_MATCH),
        (("200", tuple(MEDIA_TYPES.values())), ("304", ())),
        _LOOKUP,
    ),
    _Operation("/timegate/{uri}", "Redirect by datetime", (_URI, _ARCHIVES, _ACCEPT, _PREFER), _REDIRECT, _LOOKUP),
    _Operation(
        "/memento/{datetime}/{uri}",
        "Redirect to the closest memento",
        (_AT, _URI, _ARCHIVES, _PREFER),
        _REDIRECT,
        _LOOKUP,
    ),
    _Operation(
        "/memento/{format}/{datetime}/{uri}",
        "First, previous, closest, next and last memento",
        (_KIND, _AT, _URI, _ARCHIVES, _PREFER),
        (("200", tuple(MEDIA_TYPES.values())),),
        _LOOKUP,
    ),
    _Operation(
        "/memento/proxy/{datetime}/{uri}",
        "The closest memento itself, unchanged, with the status it was captured with",
        (_AT, _URI, _ARCHIVES, _PREFER, _RANGE),
        (("200", ("*/*",)), ("206", ("*/*",)), ("3XX", ("*/*",))),
        (*_LOOKUP, 416),
    ),
    _Operation(
        "/api/json/{datetime}/{uri}",
        "The same in the shape of LANL's Time Travel: `uri` is a list",
        (_AT, _URI, _ARCHIVES, _PREFER),
        bad=_LOOKUP,
    ),
    _Operation("/list/{datetime}/{uri}", "To the page for people", (_AT, _URI), _REDIRECT, (400, 414, 508)),
    _Operation("/404.js", "Script for the error page of a site", (), (("200", ("text/javascript",)),)),
    _Operation("/summary/{uri}", "Mementos per archive and year", (_URI, _ARCHIVES, _FROM, _TO, _PREFER), bad=_LOOKUP),
    _Operation("/route/{uri}", "Which archives a lookup would ask, and why", (_URI, _ARCHIVES), bad=(400, 414, 508)),
    _Operation(
        "/stream/{uri}",
        "A lookup as it goes, as server-sent events",
        (_URI, _ARCHIVES, _PREFER),
        (("200", (EVENTS,)),),
        (400, 414, 508),
    ),
    _Operation("/archives", "The archives and their states"),
    _Operation("/monitor", "All lookups, as server-sent events", (), (("200", (EVENTS,)),), (501, 503)),
    _Operation("/about", "What this is", (), (("200", ("text/plain",)),)),
    _Operation("/health", "Whether it serves; 503 while it stops", (), (("200", (JSON,)), ("503", (JSON,)))),
    _Operation(
        "/ready",
        "Whether lookups can be answered: 503 while stopping or while every archive rests",
        (),
        (("200", (JSON,)), ("503", (JSON,))),
    ),
    _Operation("/metrics", "Counters for Prometheus (operator)", (), (("200", ("text/plain",)),), operator=True),
    _Operation("/openapi.json", "This description"),
    _Operation("/.well-known/mementomap", "The map this server publishes, if any", (), (("200", ("*/*",)),), (404,)),
    _Operation("/reload", "Read archives and maps again (operator)", bad=(500,), method="post", operator=True),
    _Operation(
        "/rest/{archive}",
        "Stop asking an archive, in all processes (operator)",
        (_ARCHIVE,),
        bad=(404,),
        method="post",
        operator=True,
    ),
    _Operation(
        "/wake/{archive}", "Ask an archive again (operator)", (_ARCHIVE,), bad=(404,), method="post", operator=True
    ),
)


def description(base: str, archives: Sequence[str] = ()) -> dict[str, Any]:
    """The OpenAPI document of an aggregator served at `base`; with the ids of its archives, as an enumeration."""
    paths: dict[str, Any] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation, archives)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Recollect, a Memento aggregator", "version": __version__},
        "servers": [{"url": base}],
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "kind", "message"],
            "properties": {
                "status": {"type": "integer"},
                "kind": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "uri": {"type": "string"},
                "archives": {"type": "array", "items": {"type": "object"}},
            },
        }
    },
}
_MEANINGS = {
    400: "The request cannot be meant",
    401: "The operator's token is missing",
    404: "Nothing found",
    405: "Another method",
    414: "The URI-R is too long",
    416: "No byte lies in the range",
    500: "Nothing was changed",
    501: "Not enabled",
    502: "No archive could answer",
    503: "Archives rest, or the server is busy",
    504: "No archive answered in time",
    508: "The lookup came from this server",
}


def _described(operation: _Operation, archives: Sequence[str]) -> dict[str, Any]:
    wrong = {"content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    refused = (401, *operation.bad) if operation.operator else operation.bad
    responses: dict[str, Any] = {
        status: {"description": operation.summary, "content": {kind: {} for kind in kinds}}
        for status, kinds in operation.good
    }
    for status in sorted({405, *refused}):
        responses[str(status)] = {"description": _MEANINGS[status], **wrong}
    if "/proxy/" in operation.path:
        responses["4XX"] = {"description": "An error that was captured", "content": {"*/*": {}}}
        responses["5XX"] = {"description": "An error that was captured", "content": {"*/*": {}}}
    described = {
        "summary": operation.summary,
        "parameters": [_parameter(one, archives) for one in operation.parameters],
        "responses": responses,
    }
    return described | ({"security": [{"token": []}]} if operation.operator else {})


def _parameter(one: _Parameter, archives: Sequence[str]) -> dict[str, Any]:
    schema = one.schema
    if archives and one is _ARCHIVE:
        schema = {"type": "string", "enum": list(archives)}
    elif archives and one is _ARCHIVES:
        name = f"!?({'|'.join(map(re.escape, archives))})"
        schema = {"type": "string", "pattern": f"^{name}(,{name})*$"}
    described = {"name": one.name, "in": one.where, "required": one.where == "path", "description": one.meaning}
    return described | {"schema": schema} | ({"example": one.example} if one.example else {})
