"""A watched site over simulated weeks: a real server that fails, parks and comes back, and a real archive (pywb)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path

import pytest

from pywb_archive import Capture, pywb_archive
from recollect.archives.live import LiveClient
from recollect.cli import main

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = "The rowing club meets every morning at the river and trains its members in boats for the races of spring. " * 4
PAGES = {
    "/": (
        "text/html",
        f"<title>River Rowing Club</title><p>{TEXT}<a href=/races>r</a><a href=/boats>b</a><a href=/new>n</a>"
        "<img src=/logo.png>",
    ),
    "/races": ("text/html", f"<title>Races of the River Rowing Club</title><p>Races. {TEXT}<a href=/>home</a>"),
    "/boats": ("text/html", f"<title>Boats of the River Rowing Club</title><p>Boats. {TEXT}<a href=/>home</a>"),
    "/new": ("text/html", f"<title>News of the River Rowing Club</title><p>News. {TEXT}"),
    "/private": ("text/html", "<p>not for robots"),
    "/logo.png": ("image/png", "PNG"),
}
PARKED = "<title>club</title><p>This domain is for sale. Buy this domain today.<a href=/offer>offer</a>"


@dataclass
class LiveSite:
    """A site whose behaviour a test changes."""

    base: str = ""
    mood: str = "fine"
    asked: list[str] = field(default_factory=list)


@contextmanager
def live_site() -> Iterator[LiveSite]:
    site = LiveSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            status, kind, body = 200, "text/html", ""
            if site.mood == "failing":
                status = 503
            elif site.mood == "forbidden":
                status = 403
            elif site.mood == "moved" and self.headers["Host"].startswith("127."):
                self.send_response(301)
                self.send_header("Location", f"http://localhost:{server.server_port}/there")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            elif self.path == "/robots.txt":
                kind, body = "text/plain", "User-agent: *\nDisallow: /private\n"
            elif site.mood == "parked":
                body = PARKED
            elif self.path in PAGES:
                kind, body = PAGES[self.path]
            else:
                status = 404
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    site.base = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Watch:
    folder: Path
    site: LiveSite
    registry: Path

    def run(self, *arguments: object) -> tuple[int, str]:
        out = StringIO()
        with redirect_stdout(out):
            code = main.run(["watch", *map(str, arguments)])
        return code, out.getvalue()

    def day(self, number: float) -> dict:
        at = (T0 + timedelta(days=number)).isoformat()
        code, out = self.run("run", "--data", self.folder, "--now", at, "--json")
        assert code in (0, 3), out
        return json.loads(out)

    def status(self) -> dict:
        return json.loads(self.run("status", "--data", self.folder, "--json")[1])[0]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    quick = {**(LiveClient.__init__.__kwdefaults__ or {}), "pace": 0.0}
    monkeypatch.setattr(LiveClient.__init__, "__kwdefaults__", quick)
    with live_site() as site:
        captures = [
            Capture(site.base.rstrip("/") + path, "20251201000000", body.encode(), kind)
            for path, (kind, body) in PAGES.items()
            if path not in ("/new", "/private")
        ]
        with pywb_archive(tmp_path / "pywb", captures) as archive:
            registry = tmp_path / "archives.json"
            registry.write_text(
                json.dumps([{"id": "mine", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}])
            )
            made = Watch(tmp_path / "watch", site, registry)
            yield made


def add(watch: Watch, *options: str) -> None:
    code, _ = watch.run(
        *("add", watch.site.base, "--data", watch.folder, "--archives", watch.registry, "--allow-private"),
        *("--now", T0.isoformat(), *options),
    )
    assert code == 0


def test_what_would_come_back_if_a_site_were_lost_today(watch: Watch, tmp_path: Path) -> None:
    page = tmp_path / "check.html"
    code, out = watch.run(
        *("check", watch.site.base, "--archives", watch.registry, "--allow-private", "--json", "-o", page)
    )
    report = json.loads(out)
    assert code == 0
    assert report["resources"] == {"total": 5, "held": 4, "fresh": 4, "unknown": 0}
    assert report["recoverable"] == 0.8
    assert report["by_type"]["images"]["held"] == 1
    assert [uri.rpartition("/")[2] for uri in report["vulnerable"]] == ["new"]
    assert "/private" not in watch.site.asked
    assert "80%" in page.read_text()
    assert 'rel="stylesheet"' not in page.read_text()


def test_a_site_that_fails_for_a_week_is_lost_and_can_come_back(watch: Watch) -> None:
    add(watch)
    watch.day(0)
    counts = watch.status()["resources"]
    assert (counts["replicated"], counts["vulnerable"], counts["unknown"]) == (4, 1, 0)
    watch.site.mood = "failing"
    states = []
    for number in range(1, 10):
        watch.day(number)
        states.append(watch.status()["state"])
    assert states == ["fine"] * 3 + ["suspect"] * 4 + ["lost"] * 2
    lost = watch.status()
    assert lost["since"].startswith("2026-01-02")
    assert (lost["resources"]["endangered"], lost["resources"]["unrecoverable"]) == (4, 1)
    folder = watch.folder / lost["recovery"]
    assert any(path.name.startswith("races") for path in folder.rglob("*")), "the site was recovered"
    assert watch.run("status", "--data", watch.folder, "--fail-on", "lost")[0] == 1
    watch.site.mood = "fine"
    watch.day(10)
    assert watch.status()["state"] == "back"
    watch.day(18)
    assert watch.status()["state"] == "fine"


def test_a_refusal_is_not_a_loss(watch: Watch) -> None:
    add(watch, "--on-loss", "notify")
    watch.day(0)
    watch.site.mood = "forbidden"
    for number in range(1, 30):
        watch.day(number)
    assert watch.status()["state"] == "fine"
    assert "fine, not seen since 2026-01-01" in watch.run("status", "--data", watch.folder)[1]
    page = watch.folder / "page.html"
    assert watch.run("dashboard", "--data", watch.folder, "-o", page)[0] == 0
    assert "not seen since 2026-01-01" in page.read_text()
    watch.site.mood = "fine"
    watch.day(30)
    assert "not seen since" not in watch.run("status", "--data", watch.folder)[1]


def test_a_round_without_a_site_that_is_due_says_so(watch: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    add(watch)
    watch.day(0)
    again = (T0 + timedelta(hours=1)).isoformat()
    assert watch.run("run", "--data", watch.folder, "--now", again) == (0, "")
    assert "no site is due" in capsys.readouterr().err
    watch.run("run", "--data", watch.folder, "--now", (T0 + timedelta(days=1)).isoformat())
    assert "visiting 1 site" in capsys.readouterr().err


def test_a_parked_domain_is_a_takeover_after_three_days(watch: Watch) -> None:
    add(watch, "--on-loss", "notify")
    watch.day(0)
    watch.site.mood = "parked"
    watch.day(1)
    assert watch.status()["state"] == "suspect"
    for number in (2, 3, 4):
        watch.day(number)
    assert watch.status()["state"] == "taken-over"


def test_a_permanent_redirect_to_another_host_is_a_move(watch: Watch) -> None:
    add(watch, "--on-loss", "notify")
    watch.day(0)
    watch.site.mood = "moved"
    watch.day(1)
    assert watch.status()["state"] == "moved"


def test_private_addresses_are_refused_unless_allowed(watch: Watch) -> None:
    assert watch.run("add", watch.site.base, "--data", watch.folder)[0] == 2
    assert watch.run("add", "http://localhost/", "--data", watch.folder)[0] == 2
    assert watch.run("add", "ftp://site.example/", "--data", watch.folder)[0] == 2
