"""Errors of the HTTP layer itself, in the shape of all others.

Hides: what aiohttp's parser refuses before there is a request: control bytes, lines and fields that are too long, an
invalid method or version.
"""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from recollect.aggregator.http.replies import error_reply, without_cors

log = logging.getLogger("recollect.web")


class Protocol(RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What a client is answered whose bytes are not a request, or when answering failed."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer is sent already") from exc
        if isinstance(exc, LineTooLong):
            # The parser names only what it was reading: of the request line, its target.
            line = exc.args[0]
            status = 414 if line[:1] in ("/", b"/") or line[:4] in ("http", b"http") else 431
        if status >= 500:
            log.error("request failed", exc_info=exc)
            words = "internal error"
        else:
            words = {414: "the request line is too long", 431: "a header field is too long"}.get(
                status, "not a request of HTTP/1.1"
            )
        response = without_cors(error_reply(status, words))
        response.force_close()
        response.headers["Connection"] = "close"
        return response


class Server(web.Server):
    """As aiohttp's, with our errors."""

    def __call__(self) -> RequestHandler:
        return Protocol(self, loop=self._loop, **self._kwargs)
