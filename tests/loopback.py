"""Servers on loopback that answer exactly the bytes a test wants, for what well-behaved servers never do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Handler = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    line: str
    headers: dict[str, str]

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


@dataclass
class Loopback:
    """What a server saw: its address, the requests, and how many connections were made and are open."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode() + body


@asynccontextmanager
async def loopback(handler: Handler, *, ssl: object = None) -> AsyncIterator[Loopback]:
    """A server that gives every request to `handler`, on a port of its own, until the block ends."""
    seen = Loopback()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        seen.open += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *fields = head.decode("latin-1").rstrip().split("\r\n")
                headers = {name.strip().lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
                request = Request(line, headers)
                seen.requests.append(request)
                await handler(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            seen.open -= 1
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ssl)  # type: ignore[arg-type]
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
