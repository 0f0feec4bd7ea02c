"""The live web, on loopback: what may be called, what comes back, what a failure is."""

from __future__ import annotations

import asyncio

import pytest

from loopback import Request, answer, loopback
from recollect.archives.live import Failure, Hop, LiveAnswer, LiveClient, is_public


def get(handler, path: str = "/", **options) -> tuple[LiveAnswer, list[Request]]:
    async def ask() -> tuple[LiveAnswer, list[Request]]:
        async with loopback(handler) as server:
            settings = {"allow_private": True, "pace": 0.0, "timeout": 2.0, **options}
            async with LiveClient(user_agent="test", **settings) as client:
                return await client.get(server.base + path), server.requests

    return asyncio.run(ask())


async def hello(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"<p>hello", Content_Type="text/html; charset=utf-8"))


def test_an_answer_has_status_type_and_body() -> None:
    got, requests = get(hello)
    assert (got.status, got.media_type, got.body, got.failure) == (200, "text/html", b"<p>hello", None)
    assert requests[0].headers["user-agent"] == "test"


def test_redirects_are_followed_and_told() -> None:
    async def moved(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path == "/":
            writer.write(answer(status="301 Moved", Location="/new"))
        else:
            await hello(request, writer)

    got, _ = get(moved)
    assert got.body == b"<p>hello"
    assert [hop.status for hop in got.hops] == [301]
    assert got.url.endswith("/new")


def test_endless_redirects_end() -> None:
    async def around(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(status="302 Found", Location="/"))

    got, requests = get(around)
    assert got.failure is Failure.REDIRECTS
    assert len(requests) == 6


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://a.example/", "http://u:p@127.0.0.1/", "http://[bad/"])
def test_redirects_to_other_schemes_or_with_secrets_are_not_followed(target: str) -> None:
    async def away(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(status="302 Found", Location=target))

    got, requests = get(away)
    assert got.failure is Failure.REFUSED
    assert len(requests) == 1
    assert isinstance(got.hops[0], Hop)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"]
)
def test_private_addresses_are_not_called_unless_allowed(host: str) -> None:
    async def ask() -> tuple[LiveAnswer, int]:
        async with loopback(hello) as server, LiveClient(user_agent="test", pace=0.0, timeout=2.0) as client:
            return await client.get(f"http://{host}:{server.port}/"), len(server.requests)

    got, requests = asyncio.run(ask())
    assert got.failure is Failure.REFUSED
    assert requests == 0


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("2002:7f00:0001::", False),
        ("::ffff:10.0.0.1", False),
        ("2606:4700::1", True),
    ],
)
def test_only_global_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


def test_large_bodies_are_cut_and_say_so() -> None:
    async def large(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"x" * 300_000))

    got, _ = get(large, max_body=100_000)
    assert (len(got.body), got.truncated) == (100_000, True)


def test_silence_is_a_time_out_and_a_closed_port_unreachable() -> None:
    async def silent(_request: Request, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    assert get(silent, timeout=0.2)[0].failure is Failure.TIMEOUT

    async def closed() -> LiveAnswer:
        async with loopback(hello) as server:
            port = server.port
        async with LiveClient(user_agent="test", allow_private=True, pace=0.0) as client:
            return await client.get(f"http://127.0.0.1:{port}/")

    assert asyncio.run(closed()).failure is Failure.UNREACHABLE


def test_noise_instead_of_http_is_a_bad_answer() -> None:
    async def noise(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\x01\x02 not http\r\n\r\n")

    assert get(noise)[0].failure is Failure.BAD_ANSWER


def test_a_name_that_does_not_exist_is_told_from_a_host_that_does_not_answer() -> None:
    async def ask() -> LiveAnswer:
        async with LiveClient(user_agent="test", pace=0.0, timeout=5.0) as client:
            return await client.get("http://does-not-exist.invalid/")

    assert asyncio.run(ask()).failure in (Failure.NO_NAME, Failure.UNREACHABLE)


def test_a_host_is_asked_at_most_once_a_second() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def ask() -> None:
        async with (
            loopback(hello) as server,
            LiveClient(user_agent="test", allow_private=True, sleep=sleep) as client,
        ):
            for _ in range(3):
                await client.get(server.base)

    asyncio.run(ask())
    assert len(slept) == 2
    assert 1.5 < slept[1] <= 2.0
