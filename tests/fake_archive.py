"""An archive on loopback that holds what a test gives it, and misbehaves where the test wants it to."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import Loopback, Request, answer, loopback
from recollect.archives.registry import Archive
from recollect.datetimes import format_http_date, parse_timestamp

START = "http://lost.example/"


def digest(body: bytes) -> str:
    return base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


@dataclass
class Fake:
    """An archive of pages that can misbehave: `overrides` has functions that answer for a path instead of it."""

    pages: dict[tuple[str, str], bytes] = field(default_factory=dict)  # (uri, timestamp) -> body
    types: dict[str, str] = field(default_factory=dict)
    status: dict[tuple[str, str], int] = field(default_factory=dict)
    overrides: dict[str, Callable[[Request], bytes]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, body: bytes | str, stamp: str = "20100101000000", media_type: str = "text/html") -> None:
        uri = path if "://" in path else f"http://lost.example{path}"
        self.pages[uri, stamp] = body.encode() if isinstance(body, str) else body
        self.types[uri] = media_type

    def rows(self, uri: str, match: str) -> list[dict[str, str]]:
        return [
            {
                "urlkey": "x",
                "timestamp": stamp,
                "url": own,
                "mime": self.types[own],
                "status": str(self.status.get((own, stamp), 200)),
                "digest": self.digests.get(own, digest(body)),
                "length": str(len(body)),
            }
            for (own, stamp), body in sorted(self.pages.items())
            if (own == uri if match == "exact" else own.startswith(uri))
        ]

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.times.append(time.monotonic())
        for part, override in self.overrides.items():
            if part in request.path:
                reply = override(request)
                writer.write(reply)
                await writer.drain()
                head, _, body = reply.partition(b"\r\n\r\n")
                if f"Content-Length: {len(body)}\r\n".encode() not in head + b"\r\n":
                    writer.close()  # cut short, or without a length
                return
        writer.write(self.reply(request))

    def reply(self, request: Request) -> bytes:
        split = urlsplit(request.path)
        if split.path == "/cdx":
            query = {name: values[0] for name, values in parse_qs(split.query).items()}
            rows = self.rows(query["url"], query.get("matchType", "exact"))
            return answer("".join(json.dumps(row) + "\n" for row in rows).encode())
        stamp, _, uri = request.path.removeprefix("/web/").partition("id_/")
        body = self.pages.get((uri, stamp))
        if body is None:
            return answer(b"not archived", "404 Not Found")
        moment = format_http_date(parse_timestamp(stamp))
        return answer(
            body,
            f"{self.status.get((uri, stamp), 200)} X",
            Content_Type=self.types[uri],
            Memento_Datetime=moment,
        )


@asynccontextmanager
async def serving(fake: Any, **fields: Any) -> AsyncIterator[tuple[Archive, Loopback]]:
    async with loopback(fake) as seen:
        places = {"cdx": f"{seen.base}/cdx", "raw": f"{seen.base}/web/{{timestamp}}id_/{{uri}}", **fields}
        yield Archive(**{"id": "fake", **places}), seen


def site(*paths: str) -> Fake:
    fake = Fake()
    fake.add("/", "<title>Home</title><p>Hello.</p>" + "".join(f"<a href='{path}'>x</a>" for path in paths))
    return fake


@contextmanager
def served(fake: Any, **fields: Any) -> Iterator[Archive]:
    """The fake as a running server for code that has an event loop of its own, or another process."""
    ready: list[Archive] = []
    started, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(fake, **fields) as (archive, _):
            ready.append(archive)
            started.set()
            while not stop.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield ready[0]
    finally:
        stop.set()
        thread.join(10)
