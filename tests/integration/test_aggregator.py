"""The aggregator against archives that answer, stall, page, fail and lie (in one process, over real sockets)."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import uvloop

from loopback import Loopback, Request, answer, loopback
from recollect.aggregator import ask as ask_module
from recollect.aggregator import cache as cache_module
from recollect.aggregator import gather as gather_module
from recollect.aggregator import service as service_module
from recollect.aggregator.archiveset import ArchiveSet
from recollect.aggregator.ask import Limits
from recollect.aggregator.cache import Cache, Lifetimes
from recollect.aggregator.explain import why
from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.aggregator.service import Aggregator, CachePolicy, LookupRequest, LookupResult
from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive
from recollect.datetimes import format_http_date, parse_timestamp
from recollect.formats.timemap import Mementos, parse_timemap
from recollect.routing.choice import Evidence, Reason, Source

URI = "http://x.example/"
Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def run(test: Coroutine[Any, Any, None]) -> None:
    uvloop.run(asyncio.wait_for(test, 20))


def timemap(*stamps: str, base: str = "http://127.0.0.1/web", more: str = "") -> bytes:
    links = [f'<{URI}>; rel="original"']
    links += [f'<{base}/{s}/{URI}>; rel="memento"; datetime="{format_http_date(parse_timestamp(s))}"' for s in stamps]
    return (",\n".join(links) + more).encode()


def holds(*stamps: str) -> Handler:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(timemap(*stamps)) if stamps else answer(b"", "404 Not Found"))

    return handler


def says(data: bytes) -> Handler:
    async def handler(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return handler


async def stalls(_: Request, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


@asynccontextmanager
async def aggregator(
    handlers: dict[str, Handler], *, fields: dict[str, dict[str, Any]] | None = None, **options: Any
) -> AsyncIterator[tuple[Aggregator, dict[str, Loopback]]]:
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(loopback(handler)) for name, handler in handlers.items()}
        archives = tuple(
            Archive(
                name,
                timemap=f"{server.base}/timemap/",
                timegate=f"{server.base}/timegate/",
                **(fields or {}).get(name, {}),
            )
            for name, server in servers.items()
        )
        client = await stack.enter_async_context(ArchiveClient(backs_off=False))
        service = Aggregator(client, ArchiveSet(archives), **{"deadline": 2.0, **options})
        stack.push_async_callback(service.close)
        yield service, servers


def test_answers_are_merged_in_order_whoever_answers_first() -> None:
    async def late(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await holds("20100101000000", "20150101000000")(request, writer)

    async def main() -> None:
        async with aggregator({"late": late, "quick": holds("20120101000000"), "none": holds()}) as (service, _):
            got = await service.timemaps(LookupRequest(URI))
            assert [(m.archive, m.captured_at.year) for m in got.mementos] == [
                ("late", 2010),
                ("quick", 2012),
                ("late", 2015),
            ]
            assert {o.archive: o.kind for o in got.outcomes} == {
                "late": "mementos",
                "quick": "mementos",
                "none": "none",
            }
            assert not got.failed

    run(main())


def test_one_deadline_holds_for_all_and_names_who_was_late() -> None:
    async def main() -> None:
        async with aggregator({"good": holds("2015"), "slow": stalls}, deadline=0.3) as (service, _):
            started = asyncio.get_running_loop().time()
            got = await service.timemaps(LookupRequest(URI))
            assert asyncio.get_running_loop().time() - started < 0.5
            assert len(got.mementos) == 1
            assert [(o.archive, o.error) for o in got.failed] == [("slow", "timeout")]

    run(main())


@pytest.mark.parametrize(
    ("data", "kind", "error"),
    [
        (answer(timemap("2015")), "mementos", ""),
        (answer(b""), "none", ""),
        (answer(b"", "404 Not Found"), "none", ""),
        (answer(b"", "410 Gone"), "none", ""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "none", ""),
        (answer(b"<html><body>Nothing here</body></html>", Content_Type="text/html"), "error", "not a TimeMap"),
        (answer(b"\x00<<<>>>"), "error", "not a TimeMap"),
        (answer(b"", "403 Forbidden"), "error", "status 403"),
        (answer(b"", "429 Too Many Requests"), "error", "status 429"),
        (answer(b"", "503 Service Unavailable"), "error", "status 503"),
        (b"not http at all\r\n\r\n", "error", "bad answer"),
    ],
)
def test_absence_failure_and_mementos_are_distinguished(data: bytes, kind: str, error: str) -> None:
    async def main() -> None:
        async with aggregator({"a": says(data)}) as (service, _):
            got = await service.timemaps(LookupRequest(URI))
            assert [(o.kind, o.error) for o in got.outcomes] == [(kind, error)]

    run(main())


def test_a_body_cut_short_is_used_and_named() -> None:
    async def cut(_: Request, writer: asyncio.StreamWriter) -> None:
        body = timemap("2015", "2016")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) + 500) + body)
        writer.close()

    async def main() -> None:
        async with aggregator({"a": cut}) as (service, _):
            got = await service.timemaps(LookupRequest(URI))
            assert len(got.mementos) == 2
            assert got.failed[0].partial

    run(main())


def test_pages_are_followed_and_bounded() -> None:
    async def paged(request: Request, writer: asyncio.StreamWriter) -> None:
        number = int(request.path.rpartition("page=")[2]) if "page=" in request.path else 1
        onward = f"http://127.0.0.1:{port}/timemap/{URI}?page={number + 1}"
        more = f',\n<{onward}>; rel="timemap"; type="application/link-format"'
        writer.write(answer(timemap(f"{2000 + number}0101000000", more=more if number < last else "")))

    port = last = 0

    async def main() -> None:
        nonlocal port, last
        async with aggregator({"a": paged}, limits=Limits(max_pages=5)) as (service, servers):
            port = servers["a"].port
            last = 4
            got = await service.timemaps(LookupRequest(URI))
            assert (len(got.mementos), got.failed) == (4, ())
            last = 1000
            got = await service.timemaps(LookupRequest(URI))
            assert len(got.mementos) == 5
            assert "more pages" in got.failed[0].partial
            assert len(servers["a"].requests) == 9

    run(main())


def test_pages_together_are_not_larger_than_one_answer_may_be() -> None:
    many = [f"{1900 + n}0101000000" for n in range(100)]

    async def paged(request: Request, writer: asyncio.StreamWriter) -> None:
        if "page=" in request.path:
            writer.write(answer(timemap(*many, base=f"http://127.0.0.1/{request.path[-3:]}")))
            return
        pages = [f'<?page={n:03}>; rel="timemap"; type="application/link-format"' for n in range(90)]
        writer.write(answer(timemap("2015", more=",\n" + ",\n".join(pages))))

    async def main() -> None:
        async with aggregator({"a": paged}, limits=Limits(max_bytes=100_000)) as (service, servers):
            got = await service.timemaps(LookupRequest(URI))
            assert len(servers["a"].requests) < 30
            assert sum(len(m.uri) for m in got.mementos) < 100_000
            assert "more than" in got.failed[0].partial

    run(main())


def test_a_body_that_takes_long_to_read_holds_up_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(body: bytes, content_type: str, base: str, **options: Any) -> Any:
        if len(body) > 10_000:
            time.sleep(0.3)
        return parse_timemap(body, content_type, base, **options)

    monkeypatch.setattr(ask_module, "parse_timemap", reads)
    monkeypatch.setattr(ask_module, "_LARGE", 10_000)

    async def main() -> None:
        large = timemap("2015", more="," + "\n" * 20_000)
        async with aggregator({"a": says(answer(large))}) as (service, _):
            task = asyncio.ensure_future(service.timemaps(LookupRequest(URI)))
            ticks = 0
            while not task.done():
                await asyncio.sleep(0.01)
                ticks += 1
            assert len((await task).mementos) == 1
            assert ticks > 10

    run(main())


def test_a_page_cut_short_is_named() -> None:
    async def paged(request: Request, writer: asyncio.StreamWriter) -> None:
        if "page=" not in request.path:
            more = ',\n<?page=2>; rel="timemap"; type="application/link-format"'
            writer.write(answer(timemap("2015", more=more)))
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + timemap("2016", "2017"))
        writer.close()

    async def main() -> None:
        async with aggregator({"a": paged}) as (service, _):
            got = await service.timemaps(LookupRequest(URI))
            assert len(got.mementos) == 3
            assert "page=2" in got.failed[0].partial

    run(main())


def test_an_unreadable_answer_affects_only_its_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(body: bytes, content_type: str, base: str, **options: Any) -> Any:
        if b"poison" in body:
            raise IndexError
        return parse_timemap(body, content_type, base, **options)

    monkeypatch.setattr(ask_module, "parse_timemap", reads)

    async def main() -> None:
        async with aggregator({"a": says(answer(b"poison")), "b": holds("2016")}) as (service, _):
            reported: list[str] = []
            for on_outcome in (None, lambda outcome: reported.append(outcome.archive)):
                got = await service.timemaps(LookupRequest(URI, on_outcome=on_outcome))
                assert len(got.mementos) == 1
                assert [(o.archive, o.error) for o in got.failed] == [("a", "internal error")]
            assert sorted(reported) == ["a", "b"]

    run(main())


def test_a_budget_of_requests_is_kept() -> None:
    async def paged(request: Request, writer: asyncio.StreamWriter) -> None:
        number = int(request.path.rpartition("page=")[2]) if "page=" in request.path else 1
        more = f',\n</timemap/{URI}?page={number + 1}>; rel="timemap"; type="application/link-format"'
        writer.write(answer(timemap(f"{2000 + number}0101000000", more=more)))

    async def main() -> None:
        handlers = {"a": paged, "b": paged, "c": paged}
        async with aggregator(handlers, limits=Limits(budget=7)) as (service, servers):
            got = await service.timemaps(LookupRequest(URI))
            assert sum(len(server.requests) for server in servers.values()) == 7
            assert all("budget" in outcome.partial for outcome in got.failed)
        async with aggregator(handlers, limits=Limits(budget=2)) as (service, servers):
            got = await service.timemaps(LookupRequest(URI))
            assert sum(len(server.requests) for server in servers.values()) == 2
            assert [decision.archive for decision in got.unheard] == ["c"]

    run(main())


def test_pages_on_other_hosts_are_not_fetched() -> None:
    async def main() -> None:
        async with loopback(holds("2001")) as elsewhere:
            more = f',\n<{elsewhere.base}/more>; rel="timemap"; type="application/link-format"'
            async with aggregator({"a": says(answer(timemap("2015", more=more)))}) as (service, _):
                got = await service.timemaps(LookupRequest(URI))
                assert len(got.mementos) == 1
                assert "not one of the archive's hosts" in got.failed[0].partial
                assert elsewhere.requests == []

    run(main())


def test_an_archive_that_has_only_a_listing_is_asked_for_that() -> None:
    rows = [["timestamp", "original"], ["20150101000000", URI], ["20160101000000", URI]]

    async def main() -> None:
        async with loopback(says(answer(json.dumps(rows).encode()))) as server, ArchiveClient() as client:
            archive = Archive("a", cdx=f"{server.base}/cdx", raw=f"{server.base}/web/{{timestamp}}id_/{{uri}}")
            records = Archive("b", cdx=f"{server.base}/cdx", raw=f"{server.base}/{{filename}}")
            service = Aggregator(client, ArchiveSet((archive, records)), deadline=2.0)
            for got in (await service.timemaps(LookupRequest(URI)), await service.timegates(LookupRequest(URI), None)):
                assert [decision.archive for decision in got.decisions] == ["a"], "records of WARCs are not mementos"
                assert got.mementos[0].uri == f"{server.base}/web/20150101000000id_/{URI}"
                assert len(got.mementos) == 2

    run(main())


# TimeGates


def gate(status: str = "302 Found", **headers: str) -> Handler:
    return says(answer(b"", status, **headers))


WEB = "http://127.0.0.1/web/20140101000000/http://x.example/"
FULL = (
    f'<{URI}>; rel="original", '
    '<http://127.0.0.1/web/2010/a>; rel="first memento"; datetime="Fri, 01 Jan 2010 00:00:00 GMT", '
    '<http://127.0.0.1/web/2013/a>; rel="prev memento"; datetime="Tue, 01 Jan 2013 00:00:00 GMT", '
    f'<{WEB}>; rel="memento"; datetime="Wed, 01 Jan 2014 00:00:00 GMT", '
    '<http://127.0.0.1/web/2019/a>; rel="next last memento"; datetime="Tue, 01 Jan 2019 00:00:00 GMT"'
)


@pytest.mark.parametrize(
    "handler",
    [
        gate(Location=WEB, Link=FULL),
        gate("301 Moved", Location=WEB, Link=FULL),
        gate("303 See Other", Location=WEB),
        gate("307 Temporary Redirect", Location=WEB),
        gate("308 Permanent Redirect", Location="/web/20140101000000/http://x.example/"),
        gate("200 OK", Content_Location=WEB, Memento_Datetime="Wed, 01 Jan 2014 00:00:00 GMT"),
        gate("200 OK", Memento_Datetime="Wed, 01 Jan 2014 00:00:00 GMT"),
        gate("200 OK", Link=FULL),
    ],
)
def test_every_habit_of_timegates_is_understood(handler: Handler) -> None:
    async def main() -> None:
        async with aggregator({"a": handler}) as (service, servers):
            at = datetime(2014, 6, 1, tzinfo=UTC)
            got = await service.timegates(LookupRequest(URI), at)
            choice = got.negotiated(at)
            assert choice is not None
            assert choice.closest.captured_at == datetime(2014, 1, 1, tzinfo=UTC)
            assert servers["a"].requests[0].headers["accept-datetime"] == "Sun, 01 Jun 2014 00:00:00 GMT"

    run(main())


def test_a_timegate_may_send_to_another_timegate() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if "/other/" in request.path:
            writer.write(answer(b"", "302 Found", Location=WEB))
        else:
            writer.write(answer(b"", "302 Found", Location="/other/" + URI))

    async def main() -> None:
        async with aggregator({"a": handler}) as (service, _):
            got = await service.timegates(LookupRequest(URI), None)
            assert [m.uri for m in got.mementos] == [WEB]

    run(main())


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (gate("404 Not Found"), "none"),
        (gate("200 OK"), "none"),
        (gate("302 Found"), "error"),
        (gate("302 Found", Location="/loop"), "error"),
        (gate("503 Busy"), "error"),
    ],
)
def test_timegates_without_a_memento(handler: Handler, kind: str) -> None:
    async def main() -> None:
        async with aggregator({"a": handler}) as (service, _):
            got = await service.timegates(LookupRequest(URI), None)
            assert [o.kind for o in got.outcomes] == [kind]

    run(main())


def test_neighbours_are_claimed_only_when_certain() -> None:
    at = datetime(2014, 6, 1, tzinfo=UTC)

    async def choice(*handlers: Handler) -> Any:
        async with aggregator({f"a{n}": handler for n, handler in enumerate(handlers)}) as (service, _):
            return (await service.timegates(LookupRequest(URI), at)).negotiated(at)

    later = gate(Location="http://127.0.0.1/web/20160101000000/http://x.example/")
    earlier = gate(Location="http://127.0.0.1/web/20120101000000/http://x.example/")

    async def main() -> None:
        full = await choice(gate(Location=WEB, Link=FULL))
        years = [m.captured_at.year for m in (full.first, full.prev, full.closest, full.next, full.last)]
        assert years == [2010, 2013, 2014, 2019, 2019]
        bare = await choice(gate(Location=WEB))
        assert (bare.first, bare.prev, bare.next, bare.last) == (None, None, None, None)
        # The other archive's choice lies later: it has nothing between, but we cannot know what it has before.
        both = await choice(gate(Location=WEB, Link=FULL), later)
        assert (both.prev, both.next.captured_at.year, both.first, both.last) == (None, 2016, None, None)
        both = await choice(gate(Location=WEB, Link=FULL), earlier)
        assert (both.prev.captured_at.year, both.next) == (2013, None)

    run(main())


# Resting


def test_a_failing_archive_is_left_alone_and_taken_back() -> None:
    broken = True

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"", "503 Busy") if broken else answer(timemap("2015")))

    async def main() -> None:
        nonlocal broken
        async with aggregator({"a": handler, "b": holds("2010")}) as (service, servers):
            for number in range(8):
                got = await service.timemaps(LookupRequest(f"http://x{number}.example/"))
                await asyncio.gather(*service._proofs)
            assert len(servers["a"].requests) == 6, "five lookups, and one for something harmless"
            assert servers["a"].requests[-1].path.endswith("http://example.com/")
            assert [d.archive for d in got.unheard] == ["a"]
            assert "5 failures" in why(got.unheard[0])
            assert service.states()["a"][0].name == "open"
            broken = False
            service._breakers["a"]._open_until = 0.0  # time passes
            results = await asyncio.gather(*(service.timemaps(LookupRequest(URI)) for _ in range(10)))
            assert len(servers["a"].requests) == 7, "one probe at a time"
            assert sum(not one.unheard for one in results) == 1
            await service.timemaps(LookupRequest(URI))
            assert service.states()["a"][0].name == "closed"
            assert len((await service.timemaps(LookupRequest(URI))).mementos) == 2

    run(main())


def test_a_pause_is_kept_and_reported() -> None:
    async def main() -> None:
        busy = says(answer(b"", "429 Too Many Requests", Retry_After="60"))
        async with aggregator({"a": busy, "b": holds("2010")}) as (service, servers):
            await service.timemaps(LookupRequest(URI))
            got = await service.timemaps(LookupRequest(URI))
            assert len(servers["a"].requests) == 1
            assert got.unheard[0].reason is Reason.PAUSED
            assert 55 < service.rest_left(["a"]) <= 60
            assert service.rest_left(["a", "b"]) == 0, "the other may be asked at once"
            assert len(got.mementos) == 1

    run(main())


def test_who_waits_for_a_place_when_the_archive_asks_for_a_pause_is_reported() -> None:
    async def main() -> None:
        async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.1)
            writer.write(answer(b"", "429 Too Many Requests", Retry_After="60"))

        async with aggregator({"a": handler}) as (service, servers):
            # The client has eight requests out at a time: the ninth waits for a place.
            got = await asyncio.gather(*(service.timemaps(LookupRequest(f"http://x.example/{n}")) for n in range(9)))
            assert len(servers["a"].requests) == 8
            assert [one.failed[0].error for one in got] == ["status 429"] * 8 + ["throttled"]
            assert "asked us to wait" in got[8].failed[0].why

    run(main())


def test_an_impatient_client_does_not_count_against_an_archive() -> None:
    async def main() -> None:
        async with aggregator({"a": stalls}) as (service, _):
            for _ in range(8):
                got = await service.timemaps(LookupRequest(URI, wait=0.02))
                assert [o.error for o in got.failed] == ["timeout"]
            assert service.states()["a"][0].name == "closed"

    run(main())


def test_a_client_that_leaves_cancels_the_requests() -> None:
    async def main() -> None:
        async with aggregator({"a": stalls, "b": stalls}) as (service, servers):
            task = asyncio.ensure_future(service.timemaps(LookupRequest(URI)))
            await asyncio.sleep(0.1)
            assert [server.open for server in servers.values()] == [1, 1]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert [service.states()[name][2] for name in servers] == [0, 0]

    run(main())


# The cache


def cached(**lifetimes: float) -> dict[str, Any]:
    return {
        "cache": Cache(
            lifetimes=Lifetimes(**{"fresh": 100, "stale": 100, "negative": 10, **lifetimes}), max_bytes=10**7
        )
    }


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the cache, moved by hand."""
    now = [1e9]
    monkeypatch.setattr(cache_module, "time", lambda: now[0])
    return now


def test_answers_are_fresh_then_stale_then_gone(clock: list[float]) -> None:
    async def main() -> None:
        async with aggregator({"a": holds("2015"), "b": holds()}, **cached()) as (service, servers):
            calls = [len(server.requests) for server in servers.values()]

            async def ask() -> tuple[str, list[int]]:
                got = await service.timemaps(LookupRequest(URI))
                assert len(got.mementos) == 1
                await asyncio.sleep(0.05)  # a refresh after the response
                return got.cache, [len(server.requests) for server in servers.values()]

            assert calls == [0, 0]
            assert await ask() == ("miss", [1, 1])
            assert await ask() == ("hit", [1, 1])
            clock[0] += 11
            assert await ask() == ("partly", [1, 2]), "`none` lives shorter"
            clock[0] += 95
            assert (await ask())[0] == "stale"
            assert len(servers["a"].requests) == 2, "requested again after the response"
            assert (await ask())[0] in ("hit", "partly")
            clock[0] += 500
            assert (await ask())[0] == "miss"

    run(main())


def test_the_client_decides_about_the_cache(clock: list[float]) -> None:
    async def main() -> None:
        async with aggregator({"a": holds("2015")}, **cached()) as (service, servers):

            async def ask(**policy: Any) -> LookupResult:
                return await service.timemaps(LookupRequest(URI, policy=CachePolicy(**policy)))

            assert (await ask(only=True)).outcomes == ()
            assert len(servers["a"].requests) == 0
            await ask(store=False)
            assert (await ask(only=True)).outcomes == ()
            await ask()
            assert (await ask(only=True)).cache == "hit"
            count = len(servers["a"].requests)
            await ask(read=False)
            assert len(servers["a"].requests) == count + 1
            clock[0] += 50
            await ask(max_age=60.0)
            assert len(servers["a"].requests) == count + 1
            await ask(max_age=20.0)
            assert len(servers["a"].requests) == count + 2

    run(main())


def test_what_one_client_allows_does_not_change_the_answers_of_others() -> None:
    async def main() -> None:
        async with aggregator({"a": holds("2015"), "b": holds("2016")}, **cached()) as (service, _):
            await service.timemaps(LookupRequest(URI, chosen=frozenset({"a"})))
            for _ in range(2):
                got = await service.timemaps(LookupRequest(URI, policy=CachePolicy(only=True)))
                assert [m.archive for m in got.mementos] == ["a"]
                assert [d.archive for d in got.unheard] == ["b"], "an answer that is not whole says so"
            assert len((await service.timemaps(LookupRequest(URI))).mementos) == 2
            assert service.cache is not None
            for _ in range(3):
                await service.timemaps(LookupRequest(URI))
            size = service.cache.bytes
            for _ in range(100):
                await service.timemaps(LookupRequest(URI, policy=CachePolicy(max_age=1000.0)))
            assert service.cache.bytes == size

    run(main())


def test_answers_from_the_cache_are_reported_too() -> None:
    caches: list[str] = []

    async def main() -> None:
        options = {**cached(), "on_answer": lambda answer: caches.append(answer.cache)}
        async with aggregator({"a": holds("2015")}, **options) as (service, _):
            for _ in range(4):
                await service.timemaps(LookupRequest(URI))

    run(main())
    assert caches == ["miss", "hit", "hit", "hit"]


def test_who_asks_while_a_gathering_is_cancelled_gets_an_answer() -> None:
    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        await holds("2015")(request, writer)

    async def main() -> None:
        async with aggregator({"a": slow}, **cached()) as (service, _):
            first = asyncio.ensure_future(service.timemaps(LookupRequest(URI)))
            await asyncio.sleep(0.01)
            first.cancel()
            second = asyncio.ensure_future(service.timemaps(LookupRequest(URI)))
            assert len((await second).mementos) == 1
            assert first.cancelled()

    run(main())


def test_failures_and_partial_answers_are_never_kept() -> None:
    state = "fail"

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if state == "fail":
            writer.write(answer(b"", "500 Oops"))
        elif state == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + timemap("2015"))
            writer.close()
        else:
            writer.write(answer(timemap("2015", "2016")))

    async def main() -> None:
        nonlocal state
        async with aggregator({"a": handler}, **cached()) as (service, _):
            assert (await service.timemaps(LookupRequest(URI))).failed
            state = "cut"
            assert len((await service.timemaps(LookupRequest(URI))).mementos) == 1
            state = "good"
            got = await service.timemaps(LookupRequest(URI))
            assert (len(got.mementos), got.failed) == (2, ())

    run(main())


def test_lookups_at_the_same_time_share_one_gathering() -> None:
    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await holds("2015")(request, writer)

    async def main() -> None:
        async with aggregator({"a": slow}, **cached()) as (service, servers):
            tasks = [asyncio.ensure_future(service.timemaps(LookupRequest(URI))) for _ in range(20)]
            await asyncio.sleep(0.02)
            tasks[0].cancel()
            answers = await asyncio.gather(*tasks[1:])
            assert all(len(one.mementos) == 1 for one in answers)
            assert len(servers["a"].requests) == 1
            alone = asyncio.ensure_future(service.timemaps(LookupRequest("http://y.example/")))
            await asyncio.sleep(0.02)
            alone.cancel()
            await asyncio.gather(alone, return_exceptions=True)
            await asyncio.sleep(0)
            assert service.states()["a"][2] == 0, "no client waits, so no archive is asked"

    run(main())


def test_a_timegate_answers_from_cached_timemaps() -> None:
    async def main() -> None:
        async with aggregator({"a": holds("2010", "2015")}, **cached()) as (service, servers):
            await service.timemaps(LookupRequest(URI))
            at = datetime(2011, 1, 1, tzinfo=UTC)
            got = await service.timegates(LookupRequest(URI), at)
            choice = got.negotiated(at)
            assert choice is not None and choice.closest.captured_at.year == 2010
            assert choice.next is not None and choice.next.captured_at.year == 2015
            assert len(servers["a"].requests) == 1

    run(main())


def test_a_large_answer_is_merged_once_for_all_who_ask_for_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    merging: list[bool] = []
    on_loop = threading.get_ident()

    def merged(outcomes: Sequence[Outcome]) -> Mementos:
        merging.append(threading.get_ident() == on_loop)
        return gather_module.merged(outcomes)

    monkeypatch.setattr(service_module, "merged", merged)
    monkeypatch.setattr(service_module, "LARGE", 2)

    async def main() -> None:
        async with aggregator({"a": holds("2010", "2015", "2016")}, **cached()) as (service, _):
            answers = [await service.timemaps(LookupRequest(URI)) for _ in range(4)]
            answers.append(await service.timegates(LookupRequest(URI), datetime(2011, 1, 1, tzinfo=UTC)))
            assert [one.cache for one in answers] == ["miss", "hit", "hit", "hit", "hit"]
            assert all(len(one.mementos) == 3 for one in answers)
            assert merging == [False, False], "the first answer, and the first from the cache: never on the loop"
            await service.timemaps(LookupRequest(URI, policy=CachePolicy(read=False)))
            assert len((await service.timemaps(LookupRequest(URI))).mementos) == 3
            assert merging == [False] * 4, "what was merged of older outcomes is not used for new ones"

    run(main())


# Mementos of any status (RFC 7089, section 2.1.1), as pywb sends them


def captured(status: str, stamp: str, *, location: str = "", **fields: str) -> Handler:
    """A TimeGate that answers with the capture itself; its Location, if any, has our datetime in it."""
    moment = format_http_date(parse_timestamp(stamp))

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        uri_m = f"/web/{stamp}mp_/{URI}"
        extra = {"Location": location} if location else {}
        link = f'<{URI}>; rel="original", <{uri_m}>; rel="memento"; datetime="{moment}"; collection="x"'
        writer.write(
            answer(
                b"",
                status,
                **extra,
                **fields,
                Memento_Datetime=moment,
                Content_Location=uri_m,
                Link=link,
                Vary="prefer",
            )
        )

    return handler


@pytest.mark.parametrize(
    "status",
    ["301 Moved Permanently", "302 Found", "404 Not Found", "403 Forbidden", "500 Error", "503 Busy", "429 Slow"],
)
def test_a_response_with_memento_datetime_is_a_memento_whatever_its_status(status: str) -> None:
    async def main() -> None:
        location = f"/web/20200101000000mp_/{URI}elsewhere" if status.startswith("3") else ""
        gate = captured(status, "20100517120000", location=location, Retry_After="600")
        async with aggregator({"a": gate}) as (service, _):
            for _ in range(7):
                got = await service.timegates(LookupRequest(URI), parse_timestamp("20200101000000"))
                assert [(m.uri.partition("/web/")[2], m.captured_at.year) for m in got.mementos] == [
                    (f"20100517120000mp_/{URI}", 2010)
                ]
            assert not got.unheard and not got.failed, "an archived error is not a failure of the archive"
            assert service.rest_left(["a"]) == 0

    run(main())


def test_a_redirect_to_the_memento_that_already_gives_its_datetime() -> None:
    async def main() -> None:
        moment = format_http_date(parse_timestamp("20100517120000"))
        to = f"/web/20100517120000/{URI}"
        gate = says(answer(b"", "302 Found", Location=to, Memento_Datetime=moment))
        async with aggregator({"a": gate}) as (service, _):
            got = await service.timegates(LookupRequest(URI), parse_timestamp("2020"))
            assert [m.uri.endswith(to) for m in got.mementos] == [True]

    run(main())


# Hostile URIs, and what was learned


def test_a_uri_that_breaks_an_archive_does_not_switch_it_off_for_others() -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        evil = "evil" in request.path
        writer.write(answer(b"", "500 Internal Server Error") if evil else answer(timemap("2015")))

    async def main() -> None:
        async with aggregator({"a": handler}) as (service, servers):
            for _ in range(2):  # without and with an answer that is known to be good
                for number in range(60):
                    await service.timemaps(LookupRequest(f"http://evil.example/{number}"))
                await asyncio.gather(*service._proofs)
                assert service.states()["a"][0].name == "closed"
                got = await service.timemaps(LookupRequest(URI))
                assert len(got.mementos) == 1 and not got.unheard
            proofs = [r.path for r in servers["a"].requests if "evil" not in r.path and not r.path.endswith(URI)]
            assert len(proofs) < 20, "at most one request in five is a proof"

    run(main())


class Convinced:
    """A learner that is sure that some archives hold nothing."""

    def __init__(self, *empty: str) -> None:
        self.empty = empty
        self.learned: list[tuple[str, bool, bool]] = []

    def evidence(self, uri_r: str) -> dict[str, Evidence]:
        return {a: Evidence("no", Source.LEARNED, reason=Reason.UNLIKELY) for a in self.empty}

    def learn(self, uri_r: str, outcomes: Sequence[Outcome], *, extra: Collection[str] = ()) -> None:
        self.learned += [(o.archive, o.kind is OutcomeKind.MEMENTOS, o.archive in extra) for o in outcomes]


@pytest.mark.parametrize("through_timegates", [False, True])
def test_before_nothing_is_answered_those_skipped_by_learning_alone_are_asked(through_timegates: bool) -> None:
    async def main() -> None:
        learner = Convinced("small")
        held = captured("200 OK", "20150101000000") if through_timegates else holds("2015")
        async with aggregator({"big": holds(), "small": held}, learner=learner) as (service, _):
            ask = (
                service.timegates(LookupRequest(URI), None)
                if through_timegates
                else service.timemaps(LookupRequest(URI))
            )
            got = await ask
            assert len(got.mementos) == 1
            assert not got.unheard
            assert learner.learned == [("big", False, False), ("small", True, True)]

    run(main())


def test_a_found_answer_names_those_skipped_by_learning_and_a_named_archive_is_asked() -> None:
    async def main() -> None:
        learner = Convinced("small", "kept")
        handlers = {"big": holds("2010"), "small": holds("2015"), "kept": holds("2016")}
        async with aggregator(handlers, learner=learner, fields={"kept": {"learn": False}}) as (service, servers):
            got = await service.timemaps(LookupRequest(URI))
            assert [d.archive for d in got.unheard] == ["small"]
            assert [m.archive for m in got.mementos] == ["big", "kept"], "learn = false: it is always asked"
            named = await service.timemaps(LookupRequest(URI, frozenset({"small"}), named=True))
            assert [m.archive for m in named.mementos] == ["small"]
            assert len(servers["small"].requests) == 1

    run(main())


def test_a_wanted_recall_asks_the_likely_and_the_others_before_a_404() -> None:
    async def main() -> None:
        handlers = {"likely": holds("2015"), "rare": holds("2016")}
        fields = {"likely": {"probability": 0.9}, "rare": {"probability": 0.01}}
        async with aggregator(handlers, fields=fields, target_recall=0.95) as (service, servers):
            got = await service.timemaps(LookupRequest(URI))
            assert [(d.archive, d.reason) for d in got.unheard] == [("rare", Reason.BEYOND_TARGET)]
            assert len(servers["rare"].requests) == 0
            assert [m.archive for m in got.mementos] == ["likely"]
        async with aggregator({**handlers, "likely": holds()}, fields=fields, target_recall=0.95) as (service, _):
            got = await service.timemaps(LookupRequest(URI))
            assert [m.archive for m in got.mementos] == ["rare"]
            assert got.unheard == ()

    run(main())


def test_the_page_that_embeds_a_resource_changes_which_archives_a_target_recall_asks() -> None:
    async def main() -> None:
        handlers = {"one": holds("2015"), "two": holds("2015"), "three": holds("2015")}
        async with aggregator(handlers, target_recall=0.6, **cached()) as (service, _):
            page = await service.timemaps(
                LookupRequest("http://page.example/", chosen=frozenset({"three"}), named=True)
            )
            assert len(page.mementos) == 1
            asked = [d.archive for d in service.route(URI, page="http://page.example/") if d.ask]
            assert asked == ["three"]
            decision = service.route(URI, page="http://page.example/")[0]
            assert decision.sources == (Source.PRIOR, Source.REFERER)
            assert service.route(URI)[0].archive == "one"

    run(main())
