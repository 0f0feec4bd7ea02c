"""What archives hold of a site's resources: few requests, and no absence that an archive did not show."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive
from recollect.watch.holdings import HostListings, archived
from recollect.watch.records import Resource
from recollect.watch.states import Held

SITE = "http://club.example/"
HELD = ["", "races", "boats", "oars", "list?page=2"]
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Cdx:
    """A CDX server: what it holds, how it lists hosts, and what it was asked for."""

    address: str = ""
    held: list[str] = field(default_factory=lambda: list(HELD))
    hosts: str = "whole"
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
            asked = parse_qs(urlsplit(self.path).query)
            uri, match = asked["url"][0], asked["matchType"][0]
            state.asked.append(match)
            rows = state.rows(uri, match)
            body = "".join(json.dumps(row) + "\n" for row in rows).encode()
            if match == "host" and state.hosts == "cut":
                body = body[:-10]
            refused = match == "host" and state.hosts == "refused"
            self.send_response(400 if refused else 200)
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
