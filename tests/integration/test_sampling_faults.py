"""Sampling archives that misbehave: no failure, cut listing or foreign row ever becomes a "no", and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pywb_archive import Capture, pywb_archive
from recollect.archives.registry import load_archives
from recollect.cli import main
from recollect.formats.ukvs import Header
from recollect.maps.lookup import open_map
from recollect.routing.maps import Maps
from recollect.sampling.journal import NAME
from recollect.uris import key_of_uri


@dataclass
class Reply:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass
class Server:
    address: str
    paths: list[str] = field(default_factory=list)


@contextmanager
def serving(reply: Callable[[str, int], Reply]) -> Iterator[Server]:
    """A server that answers by path and number of the request."""
    state = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.paths.append(self.path)
            made = reply(self.path, len(state.paths))
            time.sleep(made.delay)
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Result:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict:
        return json.loads(self.stdout)


def run(*arguments: object) -> Result:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main.run([str(argument) for argument in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def registry(folder: Path, **keys: object) -> str:
    path = folder / "archives.json"
    path.write_text(json.dumps([{"id": "mine", "name": "mine", **keys}]))
    return str(path)


def sampled(folder: Path, kind: str, listed: str, *options: object) -> Result:
    return run("sample", kind, "mine", "--archives", listed, *options, "-o", folder / "run", "--json")


def answer_of(folder: Path, uri: str) -> str:
    assert run("sample", "map", folder / "run", "-o", folder / "mine.ukvs").exit_code == 0
    holdings = open_map(folder / "mine.ukvs")
    try:
        return holdings.lookup(uri).answer
    finally:
        holdings.close()


def test_an_empty_domain_listing_does_not_speak_for_ports_nor_an_exact_one_for_queries(tmp_path: Path) -> None:
    """pywb's domain listing has no ports, and its exact listing no queries; both share the key of what is asked."""
    held = ["http://ports.example.org:8080/a", "http://query.example.org/page?id=1"]
    captures = [Capture(uri, "20150101000000", b"<p>here") for uri in held]
    (tmp_path / "keys.txt").write_text("ports.example.org\nhttp://query.example.org/page\nnothing.example.org\n")
    with pywb_archive(tmp_path / "pywb", captures) as archive:
        listed = registry(tmp_path, cdx=archive.cdx)
        asked = sampled(tmp_path, "prefixes", listed, "--keys", tmp_path / "keys.txt").json
        assert (asked["empty_listings"], asked["errors_now"]) == (3, 0)
    assert answer_of(tmp_path, held[0]) == "unknown"
    assert answer_of(tmp_path, held[1]) == "unknown"
    for uri in ("http://ports.example.org/a", "http://sub.ports.example.org/", "http://nothing.example.org/x"):
        assert answer_of(tmp_path, uri) == "no"
    (tmp_path / "maps").mkdir()
    (tmp_path / "mine.ukvs").rename(tmp_path / "maps" / "mine.ukvs")
    maps = Maps.open(tmp_path / "maps", load_archives(listed))
    assert [maps.may_hold("mine", uri) for uri in (*held, "http://nothing.example.org/x")] == [True, True, False]
    maps.close()
    (tmp_path / "urls.txt").write_text("\n".join(held))
    lines = b"".join(b"%b 1/1\n" % key for key in sorted(map(key_of_uri, held)))
    (tmp_path / "held.ukvs").write_bytes(Header().encode() + lines)
    how = ("--holdings", tmp_path / "held.ukvs", "--lookups", tmp_path / "urls.txt", "--json")
    assert run("evaluate", tmp_path / "maps" / "mine.ukvs", *how).exit_code == 0, "no false negative"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html><body>Server error</body></html>"),
        Reply(b"Temporary failure reason: the backend is not reachable now"),
        Reply(b'{"error": "too busy"}'),
        Reply(b"["),
        Reply(b'[["urlkey","timestamp","original"'),
        Reply(b'[["urlkey","timestamp","original"]'),
        Reply(b"404 page not found", 404),
        Reply(b'{"detail": "Not Found"}', 404),
        Reply(b"", 404),
        Reply(b"<h1>Not Found</h1>", 404),
        Reply(b"", 503),
        Reply(b"", 500),
        Reply(b'{"url": "http://other.example/", "timestamp": "20150101000000", "status": "200"}\n'),
        Reply(b'{"url": "http://exa mple:bad:port/", "timestamp": "20150101000000", "status": "200"}\n'),
        Reply(b'{"url": "http://gone.org/", "timestamp": "never", "status": "200"}\n'),
        Reply(b'{"url": "http://gone.org/", "timestamp": "20150101000000", "sta'),
    ],
    ids=lambda reply: f"{reply.status} {reply.body[:24].decode()}",
)
def test_an_answer_that_is_not_a_complete_listing_says_no_to_nothing(tmp_path: Path, reply: Reply) -> None:
    (tmp_path / "keys.txt").write_text("gone.org\norg,gone)/a/*\n")
    with serving(lambda _path, _number: reply) as server:
        listed = registry(tmp_path, cdx=f"{server.address}/cdx")
        result = sampled(tmp_path, "prefixes", listed, "--keys", tmp_path / "keys.txt")
    assert result.json["empty_listings"] == 0
    if result.json["listings"]:
        assert answer_of(tmp_path, "http://gone.org/a/b") == "unknown"
    else:
        assert result.exit_code == 3


def test_a_listing_that_says_nothing_matches_is_empty(tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text("gone.org\n")
    none = Reply(b'{"message": "No Captures found for: gone.org"}', 404)
    with serving(lambda _path, _number: none) as server:
        listed = registry(tmp_path, cdx=f"{server.address}/cdx")
        assert sampled(tmp_path, "prefixes", listed, "--keys", tmp_path / "keys.txt").json["empty_listings"] == 1
    assert answer_of(tmp_path, "http://gone.org/a") == "no"


def test_pages_continue_after_a_failure_and_no_page_is_asked_twice(tmp_path: Path) -> None:
    """The Internet Archive's dialect, three pages, of which the second fails once."""
    failed = []

    def reply(path: str, _number: int) -> Reply:
        page = 1 if "resumeKey=" not in path else int(path.partition("resumeKey=")[2][0])
        if page == 2 and not failed:
            failed.append(page)
            return Reply(b"", 500)
        rows: list[list[str]] = [["timestamp", "original"], ["20150101000000", f"http://www.gone.org/{page}"]]
        return Reply(json.dumps([*rows, [], [f"{page + 1} key"]] if page < 3 else rows).encode())

    (tmp_path / "keys.txt").write_text("gone.org\n")
    with serving(reply) as server:
        listed = registry(tmp_path, cdx=f"{server.address}/cdx/search/cdx")
        first = sampled(tmp_path, "prefixes", listed, "--keys", tmp_path / "keys.txt")
        assert (first.exit_code, first.json["errors_now"], first.json["seen"]) == (3, 1, 1)
        second = sampled(tmp_path, "prefixes", listed, "--keys", tmp_path / "keys.txt")
        assert (second.exit_code, second.json["seen"]) == (0, 3)
        asked = Counter(server.paths)
    assert sorted(asked.values())[:-1] == [1, 1], "only the failed page was asked for twice"
    assert answer_of(tmp_path, "http://gone.org/1") == "yes"
    assert answer_of(tmp_path, "http://gone.org/new") == "yes", "something below the domain is held"


@pytest.mark.parametrize(
    "body",
    [b"<html>login</html>", b"{}", b'{"response_items": {"a": 1}}', b"[1, 2]", b"", b"[" * 200_000],
    ids=["page", "object", "items", "array", "nothing", "deep"],
)
def test_a_search_that_answers_in_another_form_is_an_error(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "seed.txt").write_text("one\ntwo\n")
    with serving(lambda _path, _number: Reply(body)) as server:
        listed = registry(tmp_path, search=f"{server.address}/textsearch")
        result = sampled(tmp_path, "search", listed, "--terms", tmp_path / "seed.txt", "--queries", 2)
    assert (result.exit_code, result.json["queries"], result.json["errors_now"]) == (3, 0, 2)


def test_duplicates_and_results_that_are_not_pages_count_once_or_not_at_all(tmp_path: Path) -> None:
    items = [{"originalURL": uri} for uri in ("http://a.pt/", "https://www.a.pt", "mailto:x@a.pt", "http://[bad")]
    body = json.dumps({"response_items": [*items, {"title": "no address"}]}).encode()
    (tmp_path / "seed.txt").write_text("lisboa\n")
    with serving(lambda _path, _number: Reply(body)) as server:
        listed = registry(tmp_path, search=f"{server.address}/textsearch")
        result = sampled(tmp_path, "search", listed, "--terms", tmp_path / "seed.txt")
    assert (result.exit_code, result.json["seen"], result.json["uri_rs"]["value"]) == (0, 1, 1)


def test_a_short_retry_after_is_waited_for_and_a_failed_url_is_not_absent(tmp_path: Path) -> None:
    def reply(path: str, number: int) -> Reply:
        if number == 1:
            return Reply(b"", 429, {"Retry-After": "1"})
        if "broken" in path:
            return Reply(b"<html>oops</html>", 200, {"Content-Type": "text/html"})
        return Reply(b"", 404)

    (tmp_path / "urls.txt").write_text("http://a.example/\nhttp://broken.example/\nhttp://b.example/\n")
    with serving(reply) as server:
        listed = registry(tmp_path, timemap=f"{server.address}/timemap/link/", concurrency=1)
        started = time.monotonic()
        result = sampled(tmp_path, "uris", listed, "--list", tmp_path / "urls.txt", "--probes", 50)
        assert time.monotonic() - started >= 0.9, "the pause was kept"
        assert (result.json["probes"], result.json["held"]) == (2, 0)
        assert result.json["errors"] == 1
        before = len(server.paths)
        again = sampled(tmp_path, "uris", listed, "--list", tmp_path / "urls.txt", "--probes", 50)
        assert again.json["asked_now"] == 1, "only what failed is asked again"
        assert all("broken" in path for path in server.paths[before:])
    assert answer_of(tmp_path, "http://a.example/") == "unknown"


def test_a_killed_run_goes_on_and_asks_nothing_twice_that_was_answered(tmp_path: Path) -> None:
    uris = [f"http://site{number}.example/" for number in range(60)]
    (tmp_path / "urls.txt").write_text("\n".join(uris))
    with serving(lambda _path, _number: Reply(b"", 404, delay=0.03)) as server:
        listed = registry(tmp_path, timemap=f"{server.address}/timemap/link/", concurrency=1)
        command = [sys.executable, "-m", "recollect", "sample", "uris", "mine", "--archives", listed]
        command += ["--list", str(tmp_path / "urls.txt"), "--probes", "60", "-o", str(tmp_path / "run")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while len(server.paths) < 10 and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        journal = tmp_path / "run" / NAME
        whole = [line for line in journal.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        answered = {entry["uri"] for entry in map(json.loads, whole) if entry.get("kind") == "uri"}
        with journal.open("ab") as file:
            file.write(b'{"kind": "uri", "outcome": "ab')
        before = len(server.paths)
        result = sampled(tmp_path, "uris", listed, "--list", tmp_path / "urls.txt", "--probes", 60)
        later = server.paths[before:]
    assert (result.exit_code, result.json["probes"]) == (0, 60)
    assert 0 < len(answered) < 60
    assert not [path for path in later if path.removeprefix("/timemap/link/") in answered]
    assert len(server.paths) <= 61, "at most the question that was under way is asked again"


def test_two_commands_do_not_write_one_run(tmp_path: Path) -> None:
    from recollect.sampling.journal import Journal

    (tmp_path / "urls.txt").write_text("http://a.example/\n")
    listed = registry(tmp_path, timemap="http://127.0.0.1:9/")
    with Journal(tmp_path / "run", "mine"):
        refused = sampled(tmp_path, "uris", listed, "--list", tmp_path / "urls.txt")
    assert refused.exit_code == 1
    assert "another command writes this run" in refused.stderr


@pytest.mark.parametrize(
    ("kind", "option", "content", "place"),
    [
        ("prefixes", "--keys", b"example.com\n\ncom,*\n", ":3"),
        ("prefixes", "--keys", b"example.com\nnot a key\n", ":2"),
        ("prefixes", "--keys", b"com,example)/a*\n", ":1"),
        ("prefixes", "--keys", b"com,example)/\nhttp://\xff/\n*\n", ":2"),
        ("prefixes", "--keys", b"", "empty"),
        ("search", "--terms", b"lisboa\ncora\xe7\xe3o\n", ":2"),
        ("search", "--terms", "lisboa\nporto\n".encode("utf-16"), ":1"),
        ("search", "--terms", b"\n \n", "empty"),
        ("uris", "--list", b"", "empty"),
        ("uris", "--list", b"\nnot a url\n", ":2"),
    ],
)
def test_a_bad_file_is_an_error_with_its_line_before_anything_is_asked(
    tmp_path: Path, kind: str, option: str, content: bytes, place: str
) -> None:
    (tmp_path / "in.txt").write_bytes(content)
    with serving(lambda _path, _number: Reply()) as server:
        keys = {"cdx": f"{server.address}/cdx", "search": f"{server.address}/s", "timemap": f"{server.address}/t/"}
        result = sampled(tmp_path, kind, registry(tmp_path, **keys), option, tmp_path / "in.txt")
        assert result.exit_code == 2
        assert "in.txt" in result.stderr and place in result.stderr
        assert not server.paths
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("way", ["timemap", "timegate", "cdx"])
def test_odd_urls_are_asked_about_or_reported_with_their_line(tmp_path: Path, way: str) -> None:
    unusual = (
        "http://exämple.com/ü\n\thttp://tab.example/ \nhttp://a.example/?q=a b\nhttp://a.example:99999/\nmailto:a@b\n"
    )
    (tmp_path / "urls.txt").write_bytes(
        unusual.encode() + b"http://a.example/\xff\xfe\n" + b"http://b.example/" + b"x" * 5000
    )
    with serving(lambda _path, _number: Reply(b"", 200 if way == "cdx" else 404)) as server:
        address = f"{server.address}/{way}" + "/" * (way != "cdx")
        result = sampled(tmp_path, "uris", registry(tmp_path, **{way: address}), "--list", tmp_path / "urls.txt")
        assert (result.exit_code, result.json["probes"], result.json["errors"]) == (0, 4, 0)
        assert not any("%09" in path for path in server.paths)
    for number in (3, 4, 5):
        assert f"urls.txt:{number}:" in result.stderr
    assert run("sample", "map", tmp_path / "run", "-o", tmp_path / "mine.ukvs").exit_code == 0


@pytest.mark.parametrize("holds", [True, False])
def test_an_archive_that_holds_all_or_nothing_gives_a_sound_map(tmp_path: Path, holds: bool) -> None:
    memento = b'<http://x.test/2015/http://a/>; rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00 GMT"'
    (tmp_path / "urls.txt").write_text("\n".join(f"http://site{number}.example/" for number in range(120)))
    with serving(lambda _path, _number: Reply(memento) if holds else Reply(b"", 404)) as server:
        listed = registry(tmp_path, timemap=f"{server.address}/t/")
        result = sampled(tmp_path, "uris", listed, "--list", tmp_path / "urls.txt", "--probes", 110)
    assert (result.json["probes"], result.json["held"]) == (110, 110 * holds)
    made = run("sample", "map", tmp_path / "run", "-o", tmp_path / "mine.ukvs", "--target-recall", "99%", "--json")
    promises = {one["target_recall"]: one["enough_probes"] for one in made.json["promises"]}
    assert promises == {0.9: holds, 0.95: holds, 0.99: holds}
    assert answer_of(tmp_path, "http://other.example/") == "unknown"
    (tmp_path / "maps").mkdir()
    (tmp_path / "mine.ukvs").rename(tmp_path / "maps" / "mine.ukvs")
    maps = Maps.open(tmp_path / "maps", load_archives(listed))
    assert maps.may_hold("mine", "http://other.example/"), "it is as likely as the URLs of the sample"
    maps.close()


def test_solrwayback_is_asked_and_read_in_its_own_dialect(tmp_path: Path) -> None:
    pages = {"lisboa": ["http://a.pt/", "http://b.pt/"], "porto": ["http://c.pt/"]}

    def reply(path: str, _number: int) -> Reply:
        asked = parse_qs(urlsplit(path).query)
        assert asked["rows"] == ["50"]
        found = [{"url": uri, "title": "porto antigo", "content": ["rio"]} for uri in pages.get(asked["query"][0], [])]
        return Reply(json.dumps({"response": {"numFound": len(found), "docs": found}}).encode())

    (tmp_path / "seed.txt").write_text("lisboa\n")
    with serving(reply) as server:
        search = {
            "url": f"{server.address}/solrwayback/services/frontend/solr/search/results/",
            "dialect": "solrwayback",
        }
        listed = registry(tmp_path, search=search)
        result = sampled(tmp_path, "search", listed, "--terms", tmp_path / "seed.txt", "--queries", 3)
    assert (result.json["queries"], result.json["seen"]) == (3, 3)
    assert answer_of(tmp_path, "http://c.pt/") == "yes"
