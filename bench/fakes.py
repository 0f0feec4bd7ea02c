"""Fake archives on loopback, for the aggregator's benchmark where ../shared/tools/fake_archive.py is not there.

    python bench/fakes.py --base-port 19000 --n 12 --latency-ms 50 --hits .36,.09 --mementos 10

Archive i listens on base-port + i and answers TimeMaps after a set latency; whether it holds a URI follows from a
checksum of both, so that maps can be made of the same hits. `/stats` counts, `/reset` zeroes. The flags are those of
the shared tool.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import zlib
from email.utils import formatdate
from functools import lru_cache
from typing import Any

_START = 946684800  # 2000-01-01


def hit(archive: int, uri: bytes, share: float) -> bool:
    return zlib.crc32(b"%d %s" % (archive, uri)) / 4294967296 < share


class Counts:
    n = hits = miss = fail = conns = 0


@lru_cache(maxsize=100_000)
def timemap(archive: int, origin: str, uri: str, mementos: int) -> bytes:
    step = 86400 * 365 * 20 // max(mementos, 1)
    offset = zlib.crc32(f"{uri}#{archive}".encode()) % step
    lines = [f'<{uri}>; rel="original"', f'<{origin}/timegate/{uri}>; rel="timegate"']
    for k in range(mementos):
        date = formatdate(_START + offset + k * step, usegmt=True)
        lines.append(f'<{origin}/web/{20000101000000 + k}/{uri}>; rel="memento"; datetime="{date}"')
    return (",\n".join(lines) + "\n").encode()


class Archive(asyncio.Protocol):
    def __init__(self, number: int, options: argparse.Namespace, share: float, latency: float) -> None:
        self.number, self.options, self.share, self.latency = number, options, share, latency
        self.origin = f"http://127.0.0.1:{options.base_port + number}"
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        Counts.conns += 1

    def data_received(self, data: bytes) -> None:
        *requests, self.buffer = (self.buffer + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1]
            wait = 0.0 if path in (b"/stats", b"/reset") else self.latency
            asyncio.get_running_loop().call_later(wait, self.answer, path)

    def answer(self, path: bytes) -> None:
        if path == b"/stats":
            counts = {name: getattr(Counts, name) for name in ("n", "hits", "miss", "fail", "conns")}
            return self.send(b"200 OK", json.dumps(counts).encode())
        if path == b"/reset":
            Counts.n = Counts.hits = Counts.miss = Counts.fail = Counts.conns = 0
            return self.send(b"200 OK", b"ok")
        Counts.n += 1
        if random.random() < self.options.drop:
            Counts.fail += 1
            return self.transport.abort()
        if random.random() < self.options.fail:
            Counts.fail += 1
            return self.send(b"503 Service Unavailable", b"busy")
        uri = path.removeprefix(b"/timemap/link/")
        if not hit(self.number, uri, self.share):
            Counts.miss += 1
            return self.send(b"404 Not Found", b"none")
        Counts.hits += 1
        return self.send(b"200 OK", timemap(self.number, self.origin, uri.decode(), self.options.mementos))

    def send(self, status: bytes, body: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))


async def main(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    shares = [float(share) for share in options.hits.split(",")] if options.hits else []
    slow = dict(part.split(":") for part in options.slow.split(",") if part)
    for number in range(options.n):
        share = shares[number] if number < len(shares) else options.hit
        latency = float(slow.get(str(number), options.latency_ms)) / 1000
        await loop.create_server(
            lambda number=number, share=share, latency=latency: Archive(number, options, share, latency),
            "127.0.0.1",
            options.base_port + number,
            backlog=4096,
        )
    print(f"{options.n} archives", flush=True)
    await asyncio.Event().wait()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-port", type=int, default=19000)
    parser.add_argument("--n", type=int, default=12)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--hit", type=float, default=0.3)
    parser.add_argument("--hits", default="")
    parser.add_argument("--mementos", type=int, default=10)
    parser.add_argument("--fail", type=float, default=0.0)
    parser.add_argument("--drop", type=float, default=0.0)
    parser.add_argument("--slow", default="")
    return parser.parse_args()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(options()))
