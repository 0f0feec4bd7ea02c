"""WSGI and ASGI middleware that puts precomputed blocks into dynamic pages.

    app = ProtectWSGI(app, "site.blocks")        Flask: app.wsgi_app = ProtectWSGI(app.wsgi_app, "site.blocks")
    app = ProtectASGI(app, "site.blocks")        Starlette: Middleware(ProtectASGI, blocks="site.blocks")

Hides: the protocols. All clients get the same page (no cloaking). Responses stream; Content-Length, ETag and
conditional requests stay correct; HEAD has the headers of GET. Other responses (other types, encoded bodies, ranges,
errors) pass unchanged. Compress after this middleware, not before it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from recollect.protection.blocksfile import Bundle, path_of
from recollect.protection.inject import (
    Headers,
    Injector,
    changed_headers,
    injected,
    is_fit,
    is_xml,
    make_carrier,
    with_tag,
    without_tag,
)

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WSGIApp = Callable[[Environ, StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
ASGIApp = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]
_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


class ProtectWSGI:
    """Wraps a WSGI application."""

    def __init__(self, app: WSGIApp, blocks: str | Path) -> None:
        self._app = app
        self._bundle = Bundle(blocks)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        bundle = self._bundle
        bundle.refresh(time.monotonic())
        tag = bundle.tag
        environ = _plain_request(environ, tag)
        state: list[Injector] = []

        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            state.clear()
            code = int(status.split()[0])
            method = environ["REQUEST_METHOD"]
            if is_fit(method, code, headers):
                xml = is_xml(headers)
                carrier = make_carrier(bundle.text_for(_wsgi_path(environ)), bundle.style, is_xml=xml)
                headers = changed_headers(headers, len(carrier), tag)
                if method != "HEAD":
                    state.append(Injector(carrier, is_xml=xml))
            elif code == 304:
                headers = [(name, with_tag(value, tag) if name.lower() == "etag" else value) for name, value in headers]
            write = start_response(status, headers, exc_info) if exc_info else start_response(status, headers)
            # The old way to send a body; what is written goes through the same injector.
            return (lambda data: write(state[0].feed(data))) if state else write

        return _WSGIBody(self._app(environ, start), state)


class _WSGIBody:
    """The body of a response; whether it is changed is known when the application has started it."""

    def __init__(self, inner: Iterable[bytes], state: list[Injector]) -> None:
        self._inner, self._state = inner, state

    def __iter__(self) -> Iterator[bytes]:
        pieces = iter(self._inner)
        first = next(pieces, b"")  # applications may start the response as late as here

        def all_pieces() -> Iterator[bytes]:
            yield first
            yield from pieces

        if self._state:
            yield from injected(all_pieces(), self._state[0])
        else:
            yield from all_pieces()

    def close(self) -> None:
        close = getattr(self._inner, "close", None)
        if close is not None:
            close()


def _plain_request(environ: Environ, tag: str) -> Environ:
    """The request without what the application cannot know: our part of ETags; ranges are of bytes it does not send."""
    changed = dict(environ)
    for name in _CONDITIONS:
        if name in changed:
            changed[name] = without_tag(changed[name], tag)
    if _may_be_page(changed.get("PATH_INFO", "")):
        changed.pop("HTTP_RANGE", None)
    return changed


def _may_be_page(path: str) -> bool:
    last = path.rpartition("/")[2]
    return "." not in last or last.rpartition(".")[2].lower() in ("html", "htm", "xhtml", "php", "asp", "aspx", "jsp")


def _wsgi_path(environ: Environ) -> str:
    path = (environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1", "replace")
    query = environ.get("QUERY_STRING", "")
    return path_of(_quoted(path) + (f"?{query}" if query else ""))


def _quoted(path: bytes) -> str:
    from urllib.parse import quote

    return quote(path, safe="/:@!$&'()*+,;=~-._%") or "/"


class ProtectASGI:
    """Wraps an ASGI application."""

    def __init__(self, app: ASGIApp, blocks: str | Path) -> None:
        self._app = app
        self._bundle = Bundle(blocks)

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._bundle.refresh(time.monotonic())
        response = _ASGIResponse(self._bundle, scope, send)
        await self._app(_plain_scope(scope, self._bundle.tag), receive, response.send)


class _ASGIResponse:
    """One response on its way."""

    def __init__(self, bundle: Bundle, scope: Message, send: Callable[[Message], Awaitable[None]]) -> None:
        self._bundle, self._scope, self._send = bundle, scope, send
        self._injector: Injector | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = self._started(message)
        elif message["type"] == "http.response.body" and self._injector is not None:
            body = self._injector.feed(message.get("body", b""))
            if not message.get("more_body", False):
                body += self._injector.finish()
            message = {**message, "body": body}
        await self._send(message)

    def _started(self, message: Message) -> Message:
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in message.get("headers", ())]
        method, tag = self._scope["method"], self._bundle.tag
        if is_fit(method, message["status"], headers):
            xml = is_xml(headers)
            carrier = make_carrier(self._bundle.text_for(_asgi_path(self._scope)), self._bundle.style, is_xml=xml)
            headers = changed_headers(headers, len(carrier), tag)
            if method != "HEAD":
                self._injector = Injector(carrier, is_xml=xml)
        elif message["status"] == 304:
            headers = [(name, with_tag(value, tag) if name.lower() == "etag" else value) for name, value in headers]
        return {**message, "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in headers]}


def _asgi_path(scope: Message) -> str:
    raw = scope.get("raw_path") or _quoted(scope["path"].encode()).encode()
    query = scope.get("query_string", b"").decode("latin-1")
    return path_of(raw.decode("latin-1").partition("?")[0] + (f"?{query}" if query else ""))


def _plain_scope(scope: Message, tag: str) -> Message:
    drop_range = _may_be_page(scope["path"])
    headers = []
    for name, value in scope["headers"]:
        if name in (b"if-none-match", b"if-match"):
            value = without_tag(value.decode("latin-1"), tag).encode("latin-1")
        if name == b"range" and drop_range:
            continue
        headers.append((name, value))
    return {**scope, "headers": headers}
