"""The polite client against servers that behave, stall, throttle, lie, truncate and redirect."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import time
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from loopback import Loopback, Request, answer, loopback
from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive, Rate
from recollect.archives.transport import Request as Asked
from recollect.archives.transport import RequestKind, Response
from recollect.errors import (
    AnswerTooBig,
    ArchiveError,
    ArchiveThrottled,
    ArchiveTimeout,
    ArchiveUnreachable,
    BadAnswer,
    RequestRefused,
)


def run(test: Coroutine[Any, Any, None]) -> None:
    uvloop.run(asyncio.wait_for(test, 20))


async def get(client: ArchiveClient, archive: Archive, url: str, **options: Any) -> Response:
    return await client.send(Asked(archive, url, **options))


def archive_at(server: Loopback, **fields: Any) -> Archive:
    return Archive(id="a", timemap=f"{server.base}/timemap/", **fields)


def always(data: bytes) -> Callable[[Request, asyncio.StreamWriter], Awaitable[None]]:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return handler


def test_a_connection_is_used_again_also_after_misses() -> None:
    async def main() -> None:
        async with loopback(always(answer(b"none", "404 Not Found"))) as server, ArchiveClient() as client:
            archive = archive_at(server)
            for _ in range(10):
                response = await get(client, archive, archive.timemap_uri("http://x.example/"))
                assert (response.status, response.body) == (404, b"none")
            assert (len(server.requests), server.connections) == (10, 1)
            assert server.requests[0].line == "GET /timemap/http://x.example/ HTTP/1.1"
            assert "recollect" in server.requests[0].headers["user-agent"]

    run(main())


def test_a_connection_closed_while_idle_is_replaced_without_an_error() -> None:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"ok"))
        await writer.drain()
        writer.close()  # though keep-alive was promised

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            for _ in range(5):
                assert (await get(client, archive_at(server), server.base + "/")).body == b"ok"

    run(main())


def test_at_most_so_many_requests_at_a_time_in_the_order_of_asking() -> None:
    inside = peak = 0

    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal inside, peak
        inside += 1
        peak = max(peak, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        writer.write(answer(b"ok"))

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive = archive_at(server, concurrency=3)
            await asyncio.gather(*(get(client, archive, f"{server.base}/{i}") for i in range(20)))
            assert peak == 3
            assert server.connections == 3
            assert {r.path for r in server.requests[:3]} == {"/0", "/1", "/2"}
            assert client.in_use(archive) == 0

    run(main())


def test_stalled_archives_never_take_the_places_of_others() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path.startswith("/stall"):
            await asyncio.sleep(1.0)
        writer.write(answer(b"ok"))

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient(concurrency=100, in_flight=12) as client:
            stalled, quick, third = (Archive(id=name, timemap=f"{server.base}/") for name in ("s", "q", "t"))
            for archive in (stalled, quick, third):
                await get(client, archive, server.base + "/")
            loop = asyncio.get_running_loop()
            waiting = [asyncio.ensure_future(get(client, stalled, f"{server.base}/stall/{n}")) for n in range(40)]
            await asyncio.sleep(0.1)
            assert client.in_use(stalled) == 12, "it may use the connections that no other archive needs"
            started = loop.time()
            await asyncio.gather(*(get(client, quick, f"{server.base}/{n}") for n in range(60)))
            assert loop.time() - started < 0.8, "the others get their share at once"
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert [client.in_use(archive) for archive in (stalled, quick, third)] == [0, 0, 0]
            assert (await get(client, stalled, server.base + "/")).body == b"ok"

    run(main())


def test_who_waits_too_long_for_a_place_is_reported_and_takes_none() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3 if request.path == "/slow" else 0)
        writer.write(answer(b"ok"))

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive, loop = archive_at(server, concurrency=1), asyncio.get_running_loop()
            slow = asyncio.ensure_future(get(client, archive, server.base + "/slow"))
            await asyncio.sleep(0.05)
            with pytest.raises(ArchiveThrottled, match="no free place"):
                await get(client, archive, server.base + "/", deadline=loop.time() + 0.1)
            await slow
            assert client.in_use(archive) == 0
            assert (await get(client, archive, server.base + "/", deadline=loop.time() + 1)).body == b"ok"

    run(main())


def test_a_rate_is_kept() -> None:
    async def main() -> None:
        async with loopback(always(answer(b"ok"))) as server, ArchiveClient() as client:
            archive = archive_at(server, index_rate=Rate(20, 1))  # 5 at once, then one every 50 ms
            started = time.monotonic()
            await asyncio.gather(*(get(client, archive, f"{server.base}/{i}") for i in range(10)))
            assert 0.2 <= time.monotonic() - started < 1.0

    run(main())


def test_a_rate_that_leaves_no_time_is_an_error_and_not_a_wait() -> None:
    async def main() -> None:
        async with loopback(always(answer(b"ok"))) as server, ArchiveClient() as client:
            archive = archive_at(server, index_rate=Rate(1, 1))
            await get(client, archive, server.base + "/")
            with pytest.raises(ArchiveThrottled):
                await get(client, archive, server.base + "/", deadline=asyncio.get_running_loop().time() + 0.1)
            assert client.in_use(archive) == 0

    run(main())


def test_patience_bounds_the_wait_for_a_turn_and_not_the_answer() -> None:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.4)
        writer.write(answer(b"ok"))

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient(patience=0.2) as client:
            archive, loop = archive_at(server, index_rate=Rate(1, 1)), asyncio.get_running_loop()
            assert (await get(client, archive, server.base + "/", deadline=loop.time() + 5)).body == b"ok"
            started = loop.time()
            with pytest.raises(ArchiveThrottled):
                await get(client, archive, server.base + "/", deadline=loop.time() + 5)
            assert loop.time() - started < 0.3

    run(main())


class Desk:
    """Permits that are counted, and refused once they are used up."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.taken: list[tuple[str, RequestKind]] = []
        self.pauses: list[tuple[str, RequestKind, float]] = []

    async def acquire(self, archive: Archive, kind: RequestKind, deadline: float) -> None:
        await asyncio.sleep(0)
        assert deadline > asyncio.get_running_loop().time()
        if not self.left:
            raise ArchiveThrottled("no permit", where=archive.id)
        self.left -= 1
        self.taken.append((archive.id, kind))

    def paused(self, archive: Archive, kind: RequestKind, seconds: float) -> None:
        self.pauses.append((archive.id, kind, seconds))


def test_every_request_takes_a_permit_redirects_included_and_pauses_are_reported() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path == "/moved":
            writer.write(answer(b"", "302 Found", Location="/there"))
        elif request.path == "/busy":
            writer.write(answer(b"", "429 Too Many", Retry_After="7"))
        else:
            writer.write(answer(b"ok"))

    async def test() -> None:
        desk = Desk(4)
        async with loopback(handler) as server, ArchiveClient(permits=desk) as client:
            archive = archive_at(server)
            assert (await get(client, archive, server.base + "/moved")).body == b"ok"
            async with client.stream(Asked(archive, server.base + "/", kind=RequestKind.REPLAY)) as response:
                assert b"".join([chunk async for chunk in response]) == b"ok"
            assert (await get(client, archive, server.base + "/busy")).status == 429
            other = Archive("other", timemap=server.base + "/")
            with pytest.raises(ArchiveThrottled, match="no permit"):
                await get(client, other, server.base + "/")
            assert len(server.requests) == 4
        index, replay = RequestKind.INDEX, RequestKind.REPLAY
        assert [kind for _, kind in desk.taken] == [index, index, replay, index]
        assert [(kind, round(seconds)) for _, kind, seconds in desk.pauses] == [(index, 7)]

    run(test())


def test_retry_after_is_honoured() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(
            answer(b"", "429 Too Many Requests", Retry_After="1") if len(seen.requests) == 1 else answer(b"ok")
        )

    seen = Loopback()

    async def main() -> None:
        nonlocal seen
        async with loopback(handler) as server, ArchiveClient() as client:
            seen = server
            archive = archive_at(server)
            loop = asyncio.get_running_loop()
            assert (await get(client, archive, server.base + "/")).status == 429
            assert 0.5 < client.pause_left(archive) <= 1
            with pytest.raises(ArchiveThrottled):
                await get(client, archive, server.base + "/", deadline=loop.time() + 0.2)
            started = loop.time()
            assert (await get(client, archive, server.base + "/")).body == b"ok"
            assert 0.5 < loop.time() - started < 2
            assert len(server.requests) == 2

    run(main())


def test_the_deadline_covers_a_stalled_answer_and_a_stalled_body() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path == "/body":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            await writer.drain()
        await asyncio.sleep(5)

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive, loop = archive_at(server), asyncio.get_running_loop()
            for path in ("/head", "/body"):
                started = loop.time()
                with pytest.raises(ArchiveTimeout):
                    await get(client, archive, server.base + path, deadline=started + 0.2)
                assert loop.time() - started < 0.5
            response = await get(client, archive, server.base + "/body", deadline=loop.time() + 0.2, partial=True)
            assert response.body == b"half"
            assert response.truncated
            assert client.in_use(archive) == 0

    run(main())


def test_a_connection_that_is_never_accepted_ends_at_the_deadline() -> None:
    async def main() -> None:
        import socket

        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            port = listener.getsockname()[1]
            full = [socket.socket() for _ in range(4)]  # fills the backlog, so that the next handshake hangs
            for one in full:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            async with ArchiveClient() as client:
                archive = Archive(id="a", timemap=f"http://127.0.0.1:{port}/")
                with pytest.raises(ArchiveTimeout):
                    await get(client, archive, archive.timemap, deadline=asyncio.get_running_loop().time() + 0.3)
            for one in full:
                one.close()

    run(main())


def test_a_tls_handshake_that_hangs_ends_at_the_deadline() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    async def main() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with ArchiveClient() as client:
            archive = Archive(id="a", timemap=f"https://127.0.0.1:{port}/")
            started = time.monotonic()
            with pytest.raises(ArchiveTimeout):
                await get(client, archive, archive.timemap, deadline=asyncio.get_running_loop().time() + 0.3)
            assert time.monotonic() - started < 1
        server.close()

    run(main())


def test_https_with_and_without_a_certificate_we_trust(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 "
        f"-keyout {key} -out {cert}".split(),
        capture_output=True,
    )
    assert made.returncode == 0, made.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def main() -> None:
        async with loopback(always(answer(b"secret")), ssl=context) as server:
            archive = Archive(id="a", timemap=f"https://127.0.0.1:{server.port}/")
            async with ArchiveClient(tls=ssl.create_default_context(cafile=str(cert))) as client:
                for _ in range(2):
                    assert (await get(client, archive, archive.timemap)).body == b"secret"
                assert server.connections == 1
            async with ArchiveClient() as client:
                with pytest.raises(ArchiveUnreachable):
                    await get(client, archive, archive.timemap)

    run(main())


def test_no_one_listens() -> None:
    async def main() -> None:
        async with loopback(always(b"")) as server:
            port = server.port
        async with ArchiveClient() as client:
            archive = Archive(id="a", timemap=f"http://127.0.0.1:{port}/")
            with pytest.raises(ArchiveUnreachable):
                await get(client, archive, archive.timemap)

    run(main())


def test_size_is_bounded_also_after_decompression() -> None:
    bomb = gzip.compress(b"0" * 10_000_000, mtime=0)

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path == "/bomb":
            writer.write(answer(bomb, Content_Encoding="gzip"))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000)
            writer.close()

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive = archive_at(server)
            for path in ("/bomb", "/big"):
                with pytest.raises(AnswerTooBig):
                    await get(client, archive, server.base + path, max_bytes=50_000)
                cut = await get(client, archive, server.base + path, max_bytes=50_000, partial=True)
                assert (len(cut.body), bool(cut.truncated)) == (50_000, True)
            whole = await get(client, archive, server.base + "/bomb", decode=False)
            assert whole.body == bomb

    run(main())


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
        ("deflate, gzip", gzip.compress(zlib.compress(b"hello"), mtime=0)),
        ("gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
    ],
)
def test_compressed_answers_are_read(coding: str, packed: bytes) -> None:
    async def main() -> None:
        async with loopback(always(answer(packed, Content_Encoding=coding))) as server, ArchiveClient() as client:
            assert (await get(client, archive_at(server), server.base + "/")).body == b"hello"

    run(main())


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", BadAnswer),
        (b"garbage and more garbage\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", BadAnswer),
        (b"", ArchiveUnreachable),
        (answer(gzip.compress(b"", mtime=0), Content_Encoding="deflate, gzip"), BadAnswer),
        (answer(gzip.compress(b"", mtime=0), Content_Encoding=", ".join(["gzip"] * 100)), BadAnswer),
    ],
)
def test_broken_answers_are_named(sent: bytes, error: type[ArchiveError]) -> None:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive = archive_at(server)
            with pytest.raises(error):
                await get(client, archive, server.base + "/")
            assert client.in_use(archive) == 0

    run(main())


def test_redirects_are_followed_inside_the_archive_only() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        places = {
            "/start": "/middle",
            "/middle": "end//http://x.example/../y",
            "/loop": "/loop",
            "/away": f"http://127.0.0.1:{other}/secret",
            "/scheme": "file:///etc/passwd",
        }
        place = places.get(request.path)
        writer.write(answer(b"", "302 Found", Location=place) if place else answer(request.path.encode()))

    other = 0

    async def main() -> None:
        nonlocal other
        async with (
            loopback(always(answer(b"secret"))) as elsewhere,
            loopback(handler) as server,
            ArchiveClient() as client,
        ):
            other = elsewhere.port
            archive = archive_at(server, headers=(("Authorization", "Bearer s3cret"),))
            landed = await get(client, archive, server.base + "/start")
            assert (landed.body, landed.url) == (
                b"/end//http://x.example/../y",
                server.base + "/end//http://x.example/../y",
            )
            kept = await get(client, archive, server.base + "/start", hops=0)
            assert (kept.status, kept.headers.get("location")) == (302, "/middle")
            with pytest.raises(BadAnswer):
                await get(client, archive, server.base + "/loop")
            for path in ("/away", "/scheme"):
                with pytest.raises(RequestRefused):
                    await get(client, archive, server.base + path)
            assert elsewhere.requests == []
            wide = Archive(
                id="b", timemap=f"{server.base}/", allow_hosts=(f"127.0.0.1:{other}",), headers=archive.headers
            )
            assert (await get(client, wide, server.base + "/away")).body == b"secret"
            assert server.requests[-1].headers["authorization"] == "Bearer s3cret"
            assert "authorization" not in elsewhere.requests[0].headers

    run(main())


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "http://user@127.0.0.1/", "http://other.example/", "http://127.0.0.1:1/", "http://[::1", "", "x"],
)
def test_urls_of_other_hosts_are_refused(url: str) -> None:
    async def main() -> None:
        async with ArchiveClient() as client:
            with pytest.raises(RequestRefused):
                await get(client, Archive(id="a", timemap="http://127.0.0.1:9/"), url)

    run(main())


def test_nothing_in_a_url_or_header_becomes_another_header() -> None:
    async def main() -> None:
        async with loopback(always(answer(b"ok"))) as server, ArchiveClient() as client:
            archive = archive_at(server)
            await get(client, archive, server.base + "/a b\r\nX-Evil: 1\u00e9#frag")
            assert server.requests[0].line == "GET /a%20b%0D%0AX-Evil:%201%C3%A9 HTTP/1.1"
            assert "x-evil" not in server.requests[0].headers
            for headers in ({"A": "b\r\nC: d"}, {"A\r\nB": "c"}, {"A:": "c"}):
                with pytest.raises(RequestRefused):
                    await get(client, archive, server.base + "/", headers=headers)

    run(main())


def test_a_cancelled_caller_leaves_no_request() -> None:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        writer.write(answer(b"late"))

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive = archive_at(server, concurrency=1)
            first = asyncio.ensure_future(get(client, archive, server.base + "/1"))
            queued = asyncio.ensure_future(get(client, archive, server.base + "/2"))
            await asyncio.sleep(0.1)
            queued.cancel()
            first.cancel()
            await asyncio.gather(first, queued, return_exceptions=True)
            assert client.in_use(archive) == 0
            assert (await get(client, archive, server.base + "/3")).body == b"late"
            assert [request.path for request in server.requests] == ["/1", "/3"]
            assert server.connections == 2

    run(main())


def test_a_body_streams_in_bounded_memory_and_its_connection_is_used_again() -> None:
    size = 8_000_000

    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // 100_000):
            writer.write(b"x" * 100_000)
            await writer.drain()

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive = archive_at(server)
            for _ in range(2):
                async with client.stream(Asked(archive, server.base + "/")) as response:
                    await asyncio.sleep(0.05)
                    got = 0
                    async for chunk in response:
                        got += len(chunk)
                        await asyncio.sleep(0)
                    assert got == size
            assert server.connections == 1
            async with client.stream(Asked(archive, server.base + "/")) as response:
                async for _ in response:
                    break  # a reader that has enough
            with pytest.raises(AnswerTooBig):
                async with client.stream(Asked(archive, server.base + "/", max_bytes=1_000_000)) as response:
                    async for _ in response:
                        pass
            assert client.in_use(archive) == 0

    run(main())


def test_a_stream_ends_at_its_deadline_and_says_so_when_cut() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        if request.path == "/stall":
            await asyncio.sleep(5)
        writer.close()

    async def main() -> None:
        async with loopback(handler) as server, ArchiveClient() as client:
            archive, loop = archive_at(server), asyncio.get_running_loop()
            for path, error in (("/stall", ArchiveTimeout), ("/cut", BadAnswer)):
                got = b""
                with pytest.raises(error):
                    async with client.stream(
                        Asked(archive, server.base + path, deadline=loop.time() + 0.3)
                    ) as response:
                        async for chunk in response:
                            got += chunk
                assert got == b"half"

    run(main())


def test_a_gzip_bomb_leaves_the_loop_free() -> None:
    bomb = gzip.compress(bytes(100_000_000), 9)

    async def test() -> None:
        loop = asyncio.get_running_loop()
        ticks = 0

        async def ticking() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        async with loopback(always(answer(bomb, Content_Encoding="gzip"))) as server, ArchiveClient() as client:
            archive = archive_at(server)
            await get(client, archive, server.base + "/", decode=False)  # the connection is made
            running = asyncio.ensure_future(ticking())
            began = loop.time()
            await get(client, archive, server.base + "/", decode=False)
            undecoded, ticks = ticks, 0
            cut = await get(client, archive, server.base + "/", max_bytes=64_000_000, partial=True)
            assert (len(cut.body), "more than" in cut.truncated) == (64_000_000, True)
            running.cancel()
            # Decoding takes tens of milliseconds; done on the loop, no tick would happen meanwhile.
            assert ticks > undecoded + 5, (ticks, undecoded, loop.time() - began)

    run(test())
