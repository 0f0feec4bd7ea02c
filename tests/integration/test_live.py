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


def test_redirects_are_followed_and_reported() -> None:
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


@pytest.mark.parametrize(
    "target",
    [
        *("file:///etc/passwd", "ftp://a.example/", "gopher://127.0.0.1:25/_HELO", "http://u:p@127.0.0.1/"),
        *("http://[bad/", "http://127.0.0.1:99999/", "data:text/html,x", "//u@127.0.0.1/"),
    ],
)
def test_redirects_to_other_schemes_or_with_secrets_are_not_followed(target: str) -> None:
    async def away(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(status="302 Found", Location=target))

    got, requests = get(away)
    assert got.failure is Failure.REFUSED
    assert len(requests) == 1
    assert isinstance(got.hops[0], Hop)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "169.254.169.254"),
        # As some libraries read numbers:
        *("2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.1", "0", "127.0.0.1."),
        # As IDNA reads letters:
        *(
            "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
            "127\u30020\u30020\u30021",
            "\uff11\uff12\uff17.0.0.1",
            "\u24dbocalhost",
        ),
        *("[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::ffff:0:7f00:1]", "[fec0::1]", "[2002:7f00:1::]"),
    ],
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
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("64:ff9b::a00:1", False),
        ("::7f00:1", False),
        ("fec0::1", False),
        ("ff02::1", False),
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


def test_a_name_that_does_not_exist_differs_from_a_host_that_does_not_answer() -> None:
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
    assert all(0.9 < pause <= 1.0 for pause in slept)


def test_a_redirect_of_a_public_site_to_a_private_address_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first hop is taken for public; the second one is not."""
    from recollect.archives import live

    real = live.is_public
    monkeypatch.setattr(live, "is_public", lambda address: address == "127.0.0.1" or real(address))

    async def ask(target: str) -> tuple[LiveAnswer, int]:
        async def away(_request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(status="301 Moved", Location=target.format(port=server.port)))

        async with loopback(away) as server, LiveClient(user_agent="test", pace=0.0, timeout=2.0) as client:
            return await client.get(server.base), len(server.requests)

    for target in ("http://127.0.0.2:{port}/", "http://[::1]:{port}/", "http://10.0.0.1/", "http://localhost.:1/"):
        got, requests = asyncio.run(ask(target))
        assert (got.failure in (Failure.REFUSED, Failure.NO_NAME), requests) == (True, 1), target


def test_a_name_that_changes_its_address_between_two_requests_is_checked_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: first a public address, then a private one; and both at once."""
    from recollect.archives import live

    async def ask() -> list[LiveAnswer]:
        async def close(_request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(b"hello", Connection="close"))

        async with loopback(close) as server, LiveClient(user_agent="test", pace=0.0, timeout=2.0) as client:
            loop = asyncio.get_running_loop()
            answers: list[list[str]] = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2", "127.0.0.1"]]

            async def lie(host: str, port: int, **_: object) -> list:
                return [(2, 1, 6, "", (address, server.port)) for address in answers.pop(0)]

            real = live.is_public
            monkeypatch.setattr(loop, "getaddrinfo", lie)
            monkeypatch.setattr(live, "is_public", lambda address: address == "127.0.0.1" or real(address))
            return [await client.get(f"http://rebind.example:{server.port}/{number}") for number in range(3)]

    first, second, third = asyncio.run(ask())
    assert (first.failure, first.status) == (None, 200)
    assert second.failure is Failure.REFUSED
    assert third.failure is None


def test_a_small_answer_that_unpacks_to_a_gigabyte_is_cut() -> None:
    import resource
    import zlib

    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()])
    assert len(packed) < 1_000_000

    async def bomb(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(packed, Content_Type="text/html", Content_Encoding="gzip"))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    got, _ = get(bomb, timeout=20.0)
    assert (len(got.body), got.truncated) == (8 * 1024 * 1024, True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_the_wait_for_a_turn_is_not_the_hosts_fault() -> None:
    async def slow(_request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(answer(b"late"))

    async def ask() -> list[LiveAnswer]:
        async with (
            loopback(slow) as server,
            LiveClient(user_agent="test", allow_private=True, pace=0.0, timeout=0.5) as client,
        ):
            return await asyncio.gather(*(client.get(f"{server.base}/{number}") for number in range(5)))

    assert [one.failure for one in asyncio.run(ask())] == [None] * 5
