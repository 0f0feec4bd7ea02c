"""Replies: the headers every answer carries, errors of one shape, and what an answer says about its archives.

Hides: header names and JSON shapes. An error is always
`{"error": {"status", "kind", "message", "hint"?, "uri"?, "archives"?}}`, whatever the endpoint.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from aiohttp import HttpVersion11, web

from recollect import __version__
from recollect.aggregator.explain import outcomes_json, words
from recollect.aggregator.http.target import TooLong
from recollect.aggregator.outcomes import Outcome
from recollect.aggregator.service import LookupResult
from recollect.errors import RecollectError
from recollect.formats.timemap import safe_uri
from recollect.routing.choice import Decision

SERVER = f"recollect/{__version__}"
METHODS = "GET, HEAD, OPTIONS"
# MemGator's headers, and those of this server.
COMMON = {
    "Server": SERVER,
    "Vary": "prefer",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Link, Location, X-Memento-Count, Server, Memento-Datetime, Age, Vary,"
    " Preference-Applied, X-Recollect-Route, X-Recollect-Partial, X-Recollect-Cache",
}
_KINDS = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    414: "uri-too-long",
    416: "range-not-satisfiable",
    431: "field-too-long",
    500: "internal-error",
    501: "not-enabled",
    502: "archives-failed",
    503: "unavailable",
    504: "archives-timed-out",
    508: "loop-detected",
}


def reply(status: int, body: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> web.Response:
    fields = {**COMMON, "Content-Type": media_type}
    if headers:
        fields.update(headers)
    return web.Response(status=status, body=body, headers=fields)


_Response = TypeVar("_Response", bound=web.StreamResponse)
OPERATOR = "operator"
"""Key of a request: whether it came through the operator's port, whose answers have no CORS headers."""


STOPPING = "stopping"
"""Key of a request: a function that returns whether the server stops; connections then end with their answers."""


def stream_reply(
    request: web.BaseRequest, headers: Mapping[str, str], common: Mapping[str, str] = COMMON
) -> web.StreamResponse:
    """A reply that is written in pieces. Clients of HTTP/1.0 know no chunks: the end of the connection is its end."""
    response = web.StreamResponse(headers={**common, **headers})
    if request[STOPPING]() or request.version < HttpVersion11:
        response.force_close()
    return without_cors(response) if request.get(OPERATOR) else response


def without_cors(response: _Response) -> _Response:
    for name in [name for name in response.headers if name.lower().startswith("access-control-")]:
        del response.headers[name]
    return response


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    body = json.dumps(value, indent=2, default=str).encode() + b"\n"
    return reply(status, body, "application/json", headers)


def error_reply(
    status: int,
    message: str,
    *,
    kind: str = "",
    hint: str = "",
    uri_r: str = "",
    answer: LookupResult | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    error: dict[str, Any] = {"status": status, "kind": kind or _KINDS.get(status, "error"), "message": message}
    if hint:
        error["hint"] = hint
    if uri_r:
        error["uri"] = uri_r
    if answer is not None:
        error["archives"] = archives_of(answer)
    # Not indented: most responses are that no archive holds the page, and indenting is slow.
    return reply(status, json.dumps({"error": error}).encode() + b"\n", "application/json", headers)


def refusal(error: RecollectError, *, uri_r: str = "", headers: Mapping[str, str] | None = None) -> web.Response:
    """400 (or 414) for a question that cannot be meant, in the words of the error."""
    return error_reply(
        414 if isinstance(error, TooLong) else 400, str(error), hint=error.hint, uri_r=uri_r, headers=headers
    )


def redirect(location: str, headers: Mapping[str, str]) -> web.Response:
    place = safe_uri(location)
    body = f'<a href="{html.escape(place)}">Found</a>\n'.encode()
    return reply(302, body, "text/html; charset=utf-8", {**headers, "Location": place})


# What an answer says about its archives


def describe(answer: LookupResult) -> dict[str, str]:
    """Headers: how each archive was decided on, what is missing, and where the answer came from."""
    fields = {"X-Recollect-Route": route_header(answer.decisions), "X-Recollect-Cache": answer.cache}
    if answer.age >= 1:
        fields["Age"] = str(int(answer.age))
    partial = [f"{outcome.archive}={_short(outcome)}" for outcome in answer.failed]
    partial += [f"{decision.archive}=skipped" for decision in answer.unheard]
    if partial:
        fields["X-Recollect-Partial"] = _plain(", ".join(partial))
    return fields


def route_header(decisions: tuple[Decision, ...]) -> str:
    return _plain(", ".join([f"{decision.archive}={words(decision)}" for decision in decisions]))


def _plain(text: str) -> str:
    """Fit for a header, whatever an archive said; long lists are cut."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(c if " " <= c <= "~" else "?" for c in text)
    return text if len(text) <= 6000 else text[:5997] + "..."


def _short(outcome: Outcome) -> str:
    return outcome.error or "incomplete"


def archives_of(answer: LookupResult) -> list[dict[str, Any]]:
    """Per archive: asked, skipped or failed, and why; for JSON."""
    return outcomes_json(answer.decisions, answer.outcomes)
