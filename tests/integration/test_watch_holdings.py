"""What archives hold of a site's resources: few requests, and no absence that an archive did not show."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from recollect.archives.client import ArchiveClient
from recollect.archives.live import LiveClient
from recollect.archives.registry import Archive
from recollect.watch.holdings import HostListings, archived
from recollect.watch.look import Look
from recollect.watch.records import Resource
from recollect.watch.states import Held, Live
from watch_sites import sites

SITE = "http://club.example/"
HELD = ["", "races", "boats", "oars", "list?page=2"]
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Cdx:
    """A CDX server: what it holds, how it lists hosts, and what it was asked for."""

    address: str = ""
    held: list[str] = field(default_factory=lambda: list(HELD))
    hosts: str = "whole"
    delay: float = 0.0
    status: int = 200
    asked: list[str] = field(default_factory=list)

    def rows(self, uri: str, match: str) -> list[dict[str, str]]:
        if match == "host" and self.hosts != "ignored":
            found = self.held[: 2 if self.hosts == "others" else None]
        else:
            wanted = uri.partition("://")[2].removeprefix("club.example").strip("/")
            found = [path for path in self.held if path == wanted]
        return [{"url": SITE + path, "timestamp": stamp, "status": "200"} for path in found for stamp in STAMPS]


STAMPS = ("20250101000000", "20240101000000")


@contextmanager
def cdx_server() -> Iterator[Cdx]:
    state = Cdx()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(state.delay)
            asked = parse_qs(urlsplit(self.path).query)
            if not asked:  # a TimeMap
                state.asked.append("timemap")
                self.send_error(404)
                return
            uri, match = asked["url"][0], asked["matchType"][0]
            state.asked.append(match)
            rows = state.rows(uri, match)
            body = "".join(json.dumps(row) + "\n" for row in rows).encode()
            if match == "host" and state.hosts == "cut":
                body = body[:-10]
            refused = match == "host" and state.hosts == "refused"
            self.send_response(400 if refused else state.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}/cdx"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def holdings(state: Cdx, paths: list[str]) -> dict[str, Held]:
    async def ask() -> dict[str, Held]:
        async with ArchiveClient() as client:
            listings = HostListings(client)
            archive = Archive("mine", cdx=state.address)
            found = {}
            for path in paths:
                looked = await archived(listings, [archive], Resource(SITE, SITE + path), None, AT)
                found[path] = looked.resource.held
                assert all(copy.captured_at.year == 2025 for copy in looked.copies), "the newest"
        return found

    return asyncio.run(ask())


PATHS = ["", "races", "boats", "lost", "oars", "Boats/", "list?page=2", "list?page=3", "gone"]
TRUTH = {path: Held.HELD if path in HELD or path == "Boats/" else Held.NOT_HELD for path in PATHS}


def test_a_host_is_listed_once_and_only_missing_queries_are_asked_for_one_by_one() -> None:
    with cdx_server() as state:
        assert holdings(state, PATHS) == TRUTH
        assert state.asked == ["exact", "exact", "host", "exact"]
        state.asked.clear()
        assert holdings(state, PATHS[:2]) == {path: TRUTH[path] for path in PATHS[:2]}
        assert state.asked == ["exact", "exact"], "a few resources are not worth a listing"


def test_an_archive_without_anything_is_asked_three_times() -> None:
    with cdx_server() as state:
        state.held = []
        plain = [path for path in PATHS if "?" not in path]
        assert set(holdings(state, plain).values()) == {Held.NOT_HELD}
        assert state.asked == ["exact", "exact", "host"]


@pytest.mark.parametrize("hosts", ["ignored", "others", "cut", "refused"])
def test_a_listing_that_may_not_be_whole_shows_no_absence(hosts: str) -> None:
    with cdx_server() as state:
        state.hosts = hosts
        if hosts == "others":  # a listing that lacks what was found by its address
            state.held = ["boats", "oars", "", "races", "list?page=2"]
        paths = [path for path in PATHS if path != "Boats/"]
        assert holdings(state, paths) == {path: TRUTH[path] for path in paths}
        assert state.asked.count("host") == 1, "asked for once"


def test_an_archive_that_keeps_failing_is_left_alone_and_says_nothing() -> None:
    with cdx_server() as state:
        state.status = 500
        assert set(holdings(state, PATHS).values()) == {Held.UNKNOWN}
        assert len(state.asked) == 2


def test_an_archive_that_takes_long_does_not_keep_a_visit_from_the_live_resources() -> None:
    """What archives were not asked for on one visit is asked for on the next ones."""
    known: dict[str, Resource] = {}

    async def visit(base: str, archive: Archive) -> list[Resource]:
        async with LiveClient(user_agent="t", allow_private=True, pace=0.0) as live, ArchiveClient() as client:
            look = Look(live, client, [archive], base, 10, archive_seconds=0.3)
            front = await live.get(base)
            return [one.resource async for one in look.resources(front, known, AT)]

    with sites() as web, cdx_server() as state:
        state.delay = 0.2
        state.held = []
        archive = Archive("mine", timemap=state.address.replace("/cdx", "/timemap/"))
        unknown: list[int] = []
        while not unknown or (unknown[-1] and len(unknown) < 8):
            seen = asyncio.run(visit(web.uri(0), archive))
            assert len(seen) == 4 and all(one.live is Live.LIVE for one in seen)
            known |= {one.uri: one for one in seen}
            unknown.append(sum(one.held is Held.UNKNOWN for one in known.values()))
        assert unknown[0] >= 2 and unknown[-1] == 0
        assert len(state.asked) == 4, "each once"
