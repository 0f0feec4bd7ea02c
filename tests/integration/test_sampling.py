"""Sampling real archives from outside: pywb for TimeMaps and listings, SQLite's full-text search for TextSearch."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pywb_archive import Capture, PywbArchive, pywb_archive
from recollect.cli import main
from recollect.maps.lookup import open_map

TOPICS = ["harbour ships sailors", "kitchen bread ovens", "mountain snow trails", "library shelves readers"]
PAGES = {
    f"http://{'www.' if number % 2 else ''}site{number % 7}.example.{'pt' if number % 3 else 'com'}/page{number}": (
        f"{TOPICS[number % 4]} word{chr(97 + number % 13) * 4} {TOPICS[(number + number // 9) % 4].split()[0]}"
    )
    for number in range(40)
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PywbArchive]:
    captures = [
        Capture(uri, f"2015010100{number:02}00", f"<title>{text}</title>{text}".encode())
        for number, (uri, text) in enumerate(PAGES.items())
    ]
    with pywb_archive(tmp_path_factory.mktemp("pywb"), captures) as running:
        yield running


@dataclass
class TextSearch:
    """What the search server saw, and how it behaves."""

    address: str = ""
    queries: list[str] = field(default_factory=list)
    refuse_after: int = 10**9


@contextmanager
def text_search() -> Iterator[TextSearch]:
    """A server that speaks Arquivo.pt's TextSearch over an FTS5 table."""
    state = TextSearch()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            state.queries.append(asked["q"][0])
            if len(state.queries) > state.refuse_after:
                self.send_response(429)
                self.send_header("Retry-After", "3600")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = json.dumps({"response_items": _rows(asked["q"][0], int(asked["maxItems"][0]))}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}/textsearch"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _rows(query: str, most: int) -> list[dict[str, str]]:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE VIRTUAL TABLE page USING fts5(uri UNINDEXED, text)")
        database.executemany("INSERT INTO page VALUES (?, ?)", PAGES.items())
        wanted = '"' + query.replace('"', "") + '"'
        found = database.execute("SELECT uri, text FROM page WHERE page MATCH ? ORDER BY rank LIMIT ?", (wanted, most))
        return [{"originalURL": uri, "title": text, "snippet": f"<em>{text}</em>", "tstamp": ""} for uri, text in found]


def registry(folder: Path, **keys: str) -> str:
    path = folder / "archives.json"
    path.write_text(json.dumps([{"id": "mine", **keys}]))
    return str(path)


@dataclass
class Result:
    exit_code: int
    stdout: str


def run(*arguments: object) -> Result:
    out = StringIO()
    with redirect_stdout(out):
        code = main.run([str(argument) for argument in arguments])
    return Result(code, out.getvalue())


def summary(result: Result) -> dict:
    return json.loads(result.stdout)


@pytest.mark.parametrize("way", ["timemap", "timegate", "cdx"])
def test_known_urls_are_asked_about_once_and_become_a_map(archive: PywbArchive, tmp_path: Path, way: str) -> None:
    listed = registry(tmp_path, **{way: getattr(archive, way)})
    absent = [f"http://site{number}.example.org/gone{number}" for number in range(20)]
    (tmp_path / "urls.txt").write_text("\n".join([*PAGES, *absent]))
    asking = ("sample", "uris", "mine", "--archives", listed, "--list", tmp_path / "urls.txt", "-o", tmp_path / "run")
    first = summary(run(*asking, "--probes", 20, "--json"))
    assert (first["asked_now"], first["probes"], first["errors_now"]) == (20, 20, 0)
    more = summary(run(*asking, "--probes", 60, "--json"))
    assert (more["asked_now"], more["probes"], more["held"]) == (40, 60, 40)
    assert summary(run(*asking, "--probes", 60, "--json"))["asked_now"] == 0

    made = run("sample", "map", tmp_path / "run", "-o", tmp_path / "mine.ukvs", "--target-recall", "90%", "--json")
    promises = {one["target_recall"]: one for one in summary(made)["promises"]}
    assert promises[0.9]["enough_probes"]
    assert promises[0.9]["recall"] >= 0.9
    assert not promises[0.99]["enough_probes"]
    assert summary(made)["share_held"]["low"] < 40 / 60 < summary(made)["share_held"]["high"]
    holdings = open_map(tmp_path / "mine.ukvs")
    assert holdings.header.meta["scope"] == "sample"
    assert all(holdings.lookup(uri).answer == "yes" for uri in PAGES)
    assert str(holdings.lookup(next(iter(PAGES))).frequency) == "1+/1+"
    assert all(holdings.lookup(uri).answer == "unknown" for uri in [*absent, "http://never.asked.example.net/"])
    holdings.close()
    assert run("validate", tmp_path / "mine.ukvs").exit_code == 0


def test_listed_prefixes_say_no_only_where_a_complete_listing_was_empty(archive: PywbArchive, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text(
        "site1.example.pt\norg,nothing,*\npt,example,site2)/*\nhttp://site3.example.pt/page10\n"
    )
    listed = registry(tmp_path, cdx=archive.cdx)
    asking = (
        "sample",
        "prefixes",
        "mine",
        "--archives",
        listed,
        "--keys",
        tmp_path / "keys.txt",
        "-o",
        tmp_path / "run",
    )
    first = summary(run(*asking, "--json"))
    assert (first["asked_now"], first["errors_now"], first["empty_listings"]) == (4, 0, 1)
    assert summary(run(*asking, "--json"))["asked_now"] == 0
    assert run("sample", "map", tmp_path / "run", "-o", tmp_path / "mine.ukvs").exit_code == 0
    holdings = open_map(tmp_path / "mine.ukvs")
    assert holdings.lookup("http://nothing.org/x").answer == "no"
    assert holdings.lookup("http://elsewhere.org/x").answer == "unknown"
    assert holdings.lookup("http://site1.example.pt/page1").answer == "yes"
    counted = holdings.lookup("http://site1.example.pt/other")
    held = [uri for uri in PAGES if "site1.example.pt" in uri]
    assert str(counted.frequency) == f"{len(held)}/{len(held)}"
    holdings.close()


def test_a_learned_vocabulary_finds_more_than_a_fixed_list(tmp_path: Path) -> None:
    (tmp_path / "seed.txt").write_text("harbour\n")
    with text_search() as search:
        listed = registry(tmp_path, search=search.address)
        asking = ("sample", "search", "mine", "--archives", listed, "--terms", tmp_path / "seed.txt", "--results", 5)
        fixed = summary(run(*asking, "--queries", 12, "--fixed", "-o", tmp_path / "fixed", "--json"))
        learned = summary(run(*asking, "--queries", 12, "-o", tmp_path / "learned", "--json"))
        assert (fixed["queries"], learned["queries"]) == (1, 12)
        assert learned["seen"] > 3 * fixed["seen"]
        before = list(search.queries)
        assert summary(run(*asking, "--queries", 15, "-o", tmp_path / "learned", "--json"))["queries"] == 15
        assert len(set(search.queries[1:])) == len(search.queries) - 1, "no word is asked for twice in a run"
        assert len(search.queries) == len(before) + 3
    made = summary(run("sample", "map", tmp_path / "learned", "-o", tmp_path / "mine.ukvs", "--json"))
    assert made["uri_rs"]["low"] <= len(PAGES) <= made["uri_rs"]["high"] * 1.5
    holdings = open_map(tmp_path / "mine.ukvs")
    assert sum(holdings.lookup(uri).answer == "yes" for uri in PAGES) >= made["seen"]
    holdings.close()


def test_an_archive_that_asks_for_a_long_pause_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "seed.txt").write_text("harbour\nkitchen\nmountain\nlibrary\n")
    with text_search() as search:
        listed = registry(tmp_path, search=search.address)
        asking = ("sample", "search", "mine", "--archives", listed, "--terms", tmp_path / "seed.txt", "--queries", 4)
        search.refuse_after = 2
        stopped = run(*asking, "-o", tmp_path / "run", "--json")
        assert stopped.exit_code == 3
        assert summary(stopped)["queries"] == 2
        assert len(search.queries) <= 4, "it does not go on asking"
        search.refuse_after = 10**9
        assert summary(run(*asking, "-o", tmp_path / "run", "--json"))["queries"] == 4


def test_an_archive_that_fails_is_not_one_that_holds_nothing(tmp_path: Path) -> None:
    listed = registry(tmp_path, timemap="http://127.0.0.1:9/timemap/")
    (tmp_path / "urls.txt").write_text("\n".join(PAGES))
    asking = ("sample", "uris", "mine", "--archives", listed, "--list", tmp_path / "urls.txt", "-o", tmp_path / "run")
    failed = run(*asking, "--probes", 30, "--json")
    assert failed.exit_code == 3
    assert summary(failed)["probes"] == 0
    assert "in a row" in summary(failed)["stopped"]
    assert run("sample", "map", tmp_path / "run", "-o", tmp_path / "no.ukvs").exit_code == 2
    assert not (tmp_path / "no.ukvs").exists()
