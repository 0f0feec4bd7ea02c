"""The decaying collection, run: a real server, a crawler, a flat cache that purges, a real archive (pywb), and `watch`.

    make experiment-decay                                  160 simulated days of 954 files, in a minute or two
    make experiment-decay ARGS='--bins 6 --last 20 --days 40 -o small.html'

Each day the crawler asks the server for what is due; then the live pages are asked for and the cache is listed, both
over HTTP, and the states of all pages go into a watch. In the end all that was crawled is a WARC with simulated dates,
served by pywb, and `watch` asks it for every page. Out come Table 6 and Figures 15 and 60 as one page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

from collection import GOOGLE, MSN, TABLE_6, TERMINAL, YAHOO, Collection, Crawler, Measures, measure, simulate
from recollect.archives.client import ArchiveClient
from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.registry import load_archives
from recollect.recovery.links import read_document
from recollect.ui.look import Html, card, document, key, notice, table, tag
from recollect.ui.pages import INLINED
from recollect.watch.board import board_of
from recollect.watch.holdings import HostListings, archived
from recollect.watch.look import resource_of
from recollect.watch.pages.board import over_time
from recollect.watch.records import Resource, counts_of
from recollect.watch.states import ResourceState, held_by
from recollect.watch.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pywb_archive import Capture, pywb_archive

T0 = datetime(2005, 6, 1, tzinfo=UTC)
TOLERANCE = 0.10
FORGIVEN = 3
"""Days that a copy may not answer before it counts as purged."""


@dataclass
class World:
    """The server's collection, the crawler's cache, and the day it is."""

    collection: Collection
    crawler: Crawler
    day: int = 0


@contextmanager
def served(world: World) -> Iterator[str]:
    """The collection at `/`, and the listing of the cache at `/cache`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # headers and body in one packet

        def do_GET(self) -> None:
            if self.path == "/cache":
                status, kind, body = 200, "application/json", json.dumps(world.crawler.held(world.day)).encode()
            else:
                status, kind, body = world.collection.answer(self.path, world.day)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def crawl(world: World, client: LiveClient, base: str) -> list[Capture]:
    """One day of the crawler: index pages first, which lead to the others."""
    crawler, captures = world.crawler, []
    stamp = f"{T0 + timedelta(days=world.day, hours=1):%Y%m%d%H%M%S}"
    queue = [path for path, file in world.collection.files.items() if file.kind == "index"]
    queue += [path for path in crawler.due(world.day) if path not in queue]
    for path in queue:
        answer = await client.get(base + path)
        if not path.endswith("index.html"):
            crawler.visited(path, world.day, answer.status)
        if answer.status == 200 and answer.media_type == "text/html":
            found = read_document(answer.body, answer.url, answer.media_type)
            for link in found.links if found is not None else ():
                if not link.uri.endswith("index.html"):
                    crawler.learn(link.uri.removeprefix(base), world.day)
        if answer.status == 200 and (world.day == 0 or not path.endswith("index.html")):
            captures.append(Capture(base + path, stamp, answer.body, answer.media_type))
    return captures


async def observe(
    world: World, client: LiveClient, base: str, known: dict[str, Resource], seen: dict[str, list[int]]
) -> None:
    """One day of the watch: every page that was live yesterday is asked for, and the cache is listed."""
    at = T0 + timedelta(days=world.day, hours=12)
    with urlopen(base + "/cache", timeout=60) as listing:
        held = set(json.load(listing))
    for file in world.collection.pages:
        before = known.get(file.path)
        resource = before
        if before is None or before.state not in (ResourceState.ENDANGERED, ResourceState.UNRECOVERABLE):
            answer: LiveAnswer = await client.get(base + file.path)
            resource = resource_of(base + "/", answer, at, before)
        assert resource is not None
        if file.path in held:
            seen.setdefault(file.path, []).append(world.day)
        # A copy that does not answer today is often there tomorrow; it is gone when it was not seen for some days.
        days = seen.get(file.path)
        is_held = days is not None and world.day - days[-1] <= FORGIVEN
        known[file.path] = replace(resource, held=held_by({"cache": is_held}), held_at=at)


async def run(world: World, base: str, days: int, store: Store) -> tuple[dict[str, list[int]], list[Capture]]:
    """All days: on which ones each page was in the cache, and everything that was crawled."""
    known: dict[str, Resource] = {}
    seen: dict[str, list[int]] = {}
    captures: list[Capture] = []
    async with LiveClient(user_agent="recollect experiment", allow_private=True, pace=0.0) as client:
        for day in range(days):
            world.day = day
            captures += await crawl(world, client, base)
            await observe(world, client, base, known, seen)
            with store.transaction():
                store.add_tally(base + "/", T0 + timedelta(days=day), counts_of(known.values()))
            if sys.stderr.isatty():
                print(f"\rday {day + 1} of {days}", end="", file=sys.stderr)
    return seen, captures


async def ask_archive(
    world: World, base: str, registry: Path, most: int | None = None
) -> tuple[dict[str, Resource], int]:
    """What `watch` says of every page when it asks pywb on the last day; how many differ from the crawler's log."""
    archives = load_archives(str(registry))
    at = T0 + timedelta(days=world.day)
    found, wrong = {}, 0
    async with ArchiveClient() as client:
        listings = HostListings(client)
        for file in world.collection.pages[:most]:
            resource = Resource(base + "/", base + file.path)
            looked = await archived(listings, archives, resource, None, at)
            found[file.path] = looked.resource
            crawled = [day for day, status in world.crawler.crawled.get(file.path, ()) if status == 200]
            newest = max((copy.captured_at for copy in looked.copies), default=None)
            expected = T0 + timedelta(days=crawled[-1], hours=1) if crawled else None
            wrong += newest != expected
    return found, wrong


def report(
    world: World, store: Store, seen: Mapping[str, Sequence[int]], columns: Mapping[str, Measures], archive: str
) -> str:
    """The page."""
    names = ("% crawled", "% cached", "t_a, days", "TTL_c, days", "P_r", "endangered, days")
    rows = []
    for index, name in enumerate(names):
        row: list[str | Html] = [name]
        for engine, measured in columns.items():
            ours, paper = astuple(measured)[index], astuple(TABLE_6[engine])[index]
            text = f"{ours:.2f}" if name == "P_r" else f"{ours:.1f}"
            row += [text, f"{paper:.2f}" if name == "P_r" else f"{paper:.1f}"]
            row.append("yes" if _near(ours, paper) else tag("b", "no"))
        rows.append(row)
    headers = ["", *(f"{engine}, {word}" for engine in columns for word in ("measured", "paper", "within 10%"))]
    missed = [engine for engine, measured in columns.items() if not reproduced(engine, measured)]
    say = notice(
        f"Not reproduced within 10%: {', '.join(missed) or 'none'}. Google is measured over HTTP; the others simulated."
    )
    board = board_of(store, T0)
    return document(
        "The decaying collection",
        tag("h1", "The decaying collection"),
        tag("p", f"{world.collection.count(0)} files on day 0, {len(world.collection.pages)} pages. {archive}"),
        say,
        card("Table 6: caching of HTML pages", table(headers, rows, numbers=range(1, 10), caption="Table 6")),
        card(
            "Figure 15: crawled",
            _dots(world, _crawls(world)),
            key({"crawled": "risk", "gone (404)": "good"} | {"removed from the server": "bad"}),
        ),
        card(
            "Figure 15: cached",
            _dots(world, _cached(seen)),
            key({"in the cache": "risk", "removed from the server": "bad"}),
        ),
        over_time(board.series, "Figure 60: states of the pages over time"),
        files=INLINED,
        narrow=False,
    )


def _near(ours: float, paper: float) -> bool:
    return abs(ours - paper) <= TOLERANCE * paper


def reproduced(engine: str, measured: Measures) -> bool:
    return all(_near(a, b) for a, b in zip(astuple(measured), astuple(TABLE_6[engine]), strict=True))


def _crawls(world: World) -> dict[str, list[tuple[int, int, str]]]:
    return {
        path: [(day, 1, "risk" if status == 200 else "good") for day, status in visits]
        for path, visits in world.crawler.crawled.items()
    }


def _cached(seen: Mapping[str, Sequence[int]]) -> dict[str, list[tuple[int, int, str]]]:
    runs: dict[str, list[tuple[int, int, str]]] = {}
    for path, days in seen.items():
        mine = runs.setdefault(path, [])
        for day in days:
            if mine and mine[-1][0] + mine[-1][1] == day:
                mine[-1] = (mine[-1][0], mine[-1][1] + 1, "risk")
            else:
                mine.append((day, 1, "risk"))
    return runs


def _dots(world: World, runs: Mapping[str, Sequence[tuple[int, int, str]]]) -> Html:
    """Pages from the shortest life (top) to the longest, days from left to right."""
    pages = sorted(world.collection.pages, key=lambda file: (file.days or 0, file.path))
    width = world.day + 1
    parts = []
    for row, file in enumerate(pages):
        parts += [
            f'<rect class="fill-{kind}" x="{4 * day}" y="{row}" width="{4 * span - 0.5}" height="1"/>'
            for day, span, kind in runs.get(file.path, ())
        ]
        parts.append(f'<rect class="fill-bad" x="{4 * (file.days or 0)}" y="{row}" width="1.5" height="1"/>')
    label = "Pages by days on the server, over the days of the experiment"
    box = f'viewBox="0 0 {4 * width} {len(pages)}"'
    return Html(f'<svg class="areas" {box} role="img" aria-label="{label}">{"".join(parts)}</svg>')


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bins", type=int, default=30)
    parser.add_argument("--last", type=int, default=TERMINAL, help="the last day on which files are removed")
    parser.add_argument("--days", type=int, default=160)
    parser.add_argument("-o", "--output", default="decay.html")
    given = parser.parse_args(arguments)
    world = World(Collection(given.bins, given.last), Crawler(GOOGLE))
    with tempfile.TemporaryDirectory() as folder, served(world) as base, Store(Path(folder) / "watch") as store:
        seen, captures = asyncio.run(run(world, base, given.days, store))
        registry = Path(folder) / "archives.json"
        with pywb_archive(Path(folder) / "pywb", captures) as pywb:
            entry = {"id": "pywb", "timemap": pywb.timemap, "cdx": pywb.cdx, "raw": pywb.raw}
            registry.write_text(json.dumps([entry]))
            asked, wrong = asyncio.run(ask_archive(world, base, registry))
        held = sum(bool(resource.archives) for resource in asked.values())
        archive = f"pywb holds {held} of {len(asked)} pages; {wrong} differ from the crawler's log."
        columns = {"Google": measure(world.collection.pages, world.crawler, seen)}
        columns |= {policy.name: simulate(world.collection, policy, given.days) for policy in (YAHOO, MSN)}
        Path(given.output).write_text(report(world, store, seen, columns, archive))
    print(archive)
    for engine, measured in columns.items():
        pairs = zip(fields(measured), astuple(measured), astuple(TABLE_6[engine]), strict=True)
        shown = ", ".join(f"{one.name} {ours:.3g} ({paper:.3g})" for one, ours, paper in pairs)
        print(f"{engine}: {shown}: {'within 10%' if reproduced(engine, measured) else 'not reproduced within 10%'}")
    print(f"{given.output}: Table 6, Figures 15 and 60")
    full = (given.bins, given.last) == (30, TERMINAL)
    return 1 if wrong or (full and not reproduced("Google", columns["Google"])) else 0


if __name__ == "__main__":
    raise SystemExit(main())
