"""The description of the interface in the form of OpenAPI 3.1, made from one table."""

from __future__ import annotations

from typing import Any

from recollect import __version__

_URI = ("uri", "path", "The URI-R, as it is or percent-encoded; to the end of the path")
_KIND = ("format", "path", "link, json or cdxj")
_AT = ("datetime", "path", "YYYY[MM[DD[hh[mm[ss]]]]]")
_ARCHIVE = ("archive", "path", "The id of an archive, as /archives lists it")
_ARCHIVES = ("archives", "query", "Only these archives (a,b) or all but these (!a,b)")
_FROM = ("from", "query", "Only mementos from then on (needs an encoded URI-R)")
_TO = ("to", "query", "Only mementos up to then (needs an encoded URI-R)")
_PAGE = ("page", "query", "Page of the TimeMap, from 1 (needs an encoded URI-R; or /timemap/{format}/{page}/{uri})")
_ACCEPT = ("Accept-Datetime", "header", "The datetime wanted, RFC 1123")
_PREFER = ("Prefer", "header", "wait=SECONDS; for mementos original-content, original-links, original-headers")

# path, summary, parameters, status of success, media type
_PATHS: tuple[tuple[str, str, tuple[tuple[str, str, str], ...], str, str], ...] = (
    (
        "/timemap/{format}/{uri}",
        "All mementos of a resource",
        (_KIND, _URI, _ARCHIVES, _FROM, _TO, _PAGE, _PREFER),
        "200",
        "application/link-format",
    ),
    ("/timegate/{uri}", "Redirect by datetime", (_URI, _ARCHIVES, _ACCEPT, _PREFER), "302", "text/html"),
    (
        "/memento/{datetime}/{uri}",
        "Redirect to the closest memento",
        (_AT, _URI, _ARCHIVES, _PREFER),
        "302",
        "text/html",
    ),
    (
        "/memento/{format}/{datetime}/{uri}",
        "First, previous, closest, next and last memento",
        (_KIND, _AT, _URI, _ARCHIVES),
        "200",
        "application/json",
    ),
    ("/memento/proxy/{datetime}/{uri}", "The closest memento itself, unchanged", (_AT, _URI, _PREFER), "200", "*/*"),
    ("/summary/{uri}", "Mementos per archive and year", (_URI, _ARCHIVES, _FROM, _TO), "200", "application/json"),
    ("/route/{uri}", "Whom a lookup would ask, and why", (_URI, _ARCHIVES), "200", "application/json"),
    ("/stream/{uri}", "A lookup as it goes, as server-sent events", (_URI, _ARCHIVES), "200", "text/event-stream"),
    ("/archives", "The archives and their states", (), "200", "application/json"),
    ("/monitor", "Lookups of everybody, as server-sent events", (), "200", "text/event-stream"),
    ("/about", "What this is", (), "200", "text/plain"),
    ("/health", "Whether it serves", (), "200", "application/json"),
    (
        "/ready",
        "Whether lookups can be answered: 503 while stopping or while every archive rests",
        (),
        "200",
        "application/json",
    ),
    ("/metrics", "Counters for Prometheus (operator)", (), "200", "text/plain"),
    ("/openapi.json", "This description", (), "200", "application/json"),
    ("/.well-known/mementomap", "The map this server publishes, if any", (), "200", "application/octet-stream"),
)


def description(base: str) -> dict[str, Any]:
    """The OpenAPI document of an aggregator served at `base`."""
    paths = {path: {"get": _operation(*rest)} for path, *rest in _PATHS}  # type: ignore[arg-type]  # a row of the table
    paths["/reload"] = {"post": _operation("Read archives and maps anew (operator)", (), "200", "application/json")}
    paths["/rest/{archive}"] = {
        "post": _operation("Stop asking an archive (operator)", (_ARCHIVE,), "200", "application/json")
    }
    paths["/wake/{archive}"] = {
        "post": _operation("Ask an archive again (operator)", (_ARCHIVE,), "200", "application/json")
    }
    for path in ("/metrics", "/reload", "/rest/{archive}", "/wake/{archive}"):
        for operation in paths[path].values():
            operation["security"] = [{"token": []}]
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


def _operation(
    summary: str, parameters: tuple[tuple[str, str, str], ...], status: str, media_type: str
) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [
            {"name": n, "in": where, "required": where == "path", "description": text, "schema": {"type": "string"}}
            for n, where, text in parameters
        ],
        "responses": {
            status: {"description": summary, "content": {media_type: {}}},
            "default": {
                "description": "An error, always of this shape",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
