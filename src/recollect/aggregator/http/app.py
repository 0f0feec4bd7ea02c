"""The aggregator over HTTP: one handler for every request.

Hides: dispatch, methods, CORS, access rules of endpoints, and how an error becomes a response. The endpoints of
lookups are in `lookups` and `replay`, those of the operator in `operator`.

The URI-R stands in the path as the client sent it, so requests are dispatched by their raw target and never through a
router that decodes or merges anything.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from recollect.aggregator.http.access import AccessLog, caller_of
from recollect.aggregator.http.metrics import Metrics
from recollect.aggregator.http.monitor import Monitor
from recollect.aggregator.http.replies import METHODS, OPERATOR, STOPPING, error_reply, refusal, reply, without_cors
from recollect.aggregator.service import Aggregator, LookupResult
from recollect.archives.client import ArchiveClient
from recollect.errors import BadURI, UsageError
from recollect.settings import Settings

log = logging.getLogger("recollect.web")

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")
_FIRST = re.compile(r"/+([^/?]*)/?")
# As pywb's `memento+http://HOST/` asks: a TimeGate at the root, and mementos by their 14 digits.
_URI = re.compile(r"(?:https?|ftp)(?::|%3A)", re.IGNORECASE)
_WAYBACK = re.compile(r"\d{4,14}(?:id_)?")
_VIA = "recollect-"
_ALLOWED_HEADERS = "Accept-Datetime, Prefer, Cache-Control, Accept, Authorization"


@dataclass
class Context:
    """What every endpoint can reach."""

    aggregator: Aggregator
    client: ArchiveClient
    settings: Settings
    token: str
    instance: str
    """Names this aggregator in Via headers, so that a lookup that comes round again is noticed."""
    metrics: Metrics = field(default_factory=Metrics)
    monitor: Monitor = field(default_factory=Monitor)
    access: AccessLog | None = None
    shared: Path | None = None
    """Where workers leave their counters for each other."""
    draining: bool = False
    reload: Callable[[], Awaitable[str]] | None = None

    def base(self, request: web.BaseRequest) -> str:
        """The address of this server as the client knows it."""
        if self.settings.base_url:
            return self.settings.base_url.rstrip("/")
        host = request.headers.get("Host", "")
        if not _HOST.fullmatch(host):
            host = f"{self.settings.host}:{self.settings.port}"
        return f"http://{host}"


@dataclass(slots=True)
class RequestRecord:
    """What a request turned out to be, for the log and the counters."""

    endpoint: str = "other"
    uri_r: str = ""
    answer: LookupResult | None = None
    operator: bool = False
    """Whether it came from an operator: by the token, or through the operator's own port."""


Endpoint = Callable[[Context, web.BaseRequest, str, RequestRecord], Awaitable[web.StreamResponse]]


class App:
    """Call it with a request: `web.Server(App(context, endpoints))`."""

    def __init__(self, context: Context, endpoints: dict[str, Endpoint], *, operator: bool = False) -> None:
        """With `operator`, requests need no token: for a port that only an operator reaches."""
        self.context = context
        self._endpoints = endpoints
        self._operator = operator
        self._prefix = re.sub(r"^https?://[^/]*", "", context.settings.base_url).rstrip("/")

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        context = self.context
        loop = asyncio.get_running_loop()
        started = loop.time()
        seen = RequestRecord()
        context.metrics.in_flight += 1
        status = 499
        try:
            response = await self._answer(request, seen)
            status = response.status
        except asyncio.CancelledError:
            context.metrics.disconnects += 1
            raise
        except ConnectionError:
            # The client left during the response, or a replay ended early: no response can be sent.
            context.metrics.disconnects += 1
            if request.transport is not None:
                request.transport.abort()
            response = web.Response(status=status)
        except (BadURI, UsageError) as error:
            response = refusal(error, uri_r=seen.uri_r)
            status = response.status
        except Exception as error:  # one of the three edges: an internal error must not look like an answer
            # Not the path: it may have a password in it, which the URI-R that was read from it has not.
            log.exception("request failed: %s %s %s", request.method, seen.endpoint, seen.uri_r[:500])
            response, status = error_reply(500, f"internal error: {type(error).__name__}", uri_r=seen.uri_r), 500
        finally:
            seconds = loop.time() - started
            context.metrics.in_flight -= 1
            context.metrics.request(seen.endpoint, status, seconds)
            if seen.uri_r and context.access is not None:
                caller = caller_of(request, context.settings.trusted_proxies)
                context.access.lookup(seen.endpoint, seen.uri_r, status, seconds, seen.answer, caller)
        if context.draining and not response.prepared:
            # The client must not send its next request here; on a connection that is kept it would be lost.
            response.force_close()
            response.headers["Connection"] = "close"
        return without_cors(response) if self._operator and not response.prepared else response

    async def _answer(self, request: web.BaseRequest, seen: RequestRecord) -> web.StreamResponse:
        request[OPERATOR] = self._operator
        request[STOPPING] = lambda: self.context.draining
        if self._operator and not _from_here(request):
            return error_reply(
                403, "this port is for an operator on this machine", hint="no other Host or Origin is served"
            )
        target = request.raw_path
        if self._prefix and target.startswith(self._prefix + "/"):
            target = target[len(self._prefix) :]
        if not target.startswith("/"):
            # A proxy's request, or a client that sends the whole URL: only its path is for us.
            target = re.sub(r"^(?:[a-z]+://[^/?]*|\*)", "", target)
            target = target if target.startswith("/") else f"/{target}"
        first = _FIRST.match(target)
        assert first is not None  # the pattern matches any path
        word, rest = first[1], target[first.end() :]
        name = word
        if _URI.match(word):
            name, rest = "timegate", target.lstrip("/")
        elif _WAYBACK.fullmatch(word):
            name, rest = "memento", target.lstrip("/")
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return error_reply(404, f"no such page: /{word[:100]}", hint="/about lists the endpoints")
        seen.endpoint = name or "page"
        refused = self._method(request, name)
        if refused is not None:
            return refused
        seen.operator = self._operator or self._authorized(request)
        if name in _OPERATOR and not seen.operator:
            return error_reply(
                401,
                "this is for the operator",
                hint="send the token: Authorization: Bearer TOKEN (serve --admin-token, or printed at start)",
                headers={"WWW-Authenticate": 'Bearer realm="recollect"'},
            )
        if f"{_VIA}{self.context.instance}" in request.headers.get("Via", ""):
            return error_reply(508, "lookup loop: a configured archive sends this lookup back to this server")
        return await endpoint(self.context, request, rest, seen)

    def _method(self, request: web.BaseRequest, name: str) -> web.Response | None:
        allowed = "POST, OPTIONS" if name in _POST else METHODS
        if request.method == "OPTIONS":
            return reply(
                204,
                b"",
                "text/plain",
                {
                    "Allow": allowed,
                    "Access-Control-Allow-Methods": allowed,
                    "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
                    "Access-Control-Max-Age": "86400",
                },
            )
        if request.method not in allowed.split(", "):
            return error_reply(405, f"{request.method[:20]} is not for this page", headers={"Allow": allowed})
        return None

    def _authorized(self, request: web.BaseRequest) -> bool:
        """Whether the request carries the operator's token."""
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        token = self.context.token
        return (
            bool(token)
            and scheme.lower() == "bearer"
            and hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
        )


_OPERATOR = frozenset({"metrics", "reload", "rest", "wake"})
_POST = frozenset({"reload", "rest", "wake"})
_LOCAL = re.compile(r"(?:https?://)?(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)


def _from_here(request: web.BaseRequest) -> bool:
    """Whether Host and Origin are those of this machine: a page of another site, or a name that was made to point here
    (DNS rebinding), must not reach the operator's port through a browser."""
    named = [request.headers.get("Host", ""), *request.headers.getall("Origin", ())]
    return all(_LOCAL.fullmatch(one) for one in named)


def via(context: Context, request: web.BaseRequest) -> str:
    """The Via header for archives: who asked us, and us."""
    before = request.headers.get("Via", "")
    ours = f"1.1 {_VIA}{context.instance}"
    return f"{before[:500]}, {ours}" if before and before.isascii() and before.isprintable() else ours
