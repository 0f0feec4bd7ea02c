"""Restored and previewed sites in a real browser: they work, and they send no request to other hosts."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.recovery.outputs import Outputs, write_outputs
from stores import fill

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed: the copy was not opened in a browser"
)
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: the copy was not opened")
PIXEL = bytes.fromhex("47494638396101000100800000ff0000ffffff21f90400000000002c00000000010001000002024401003b")


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def live_web() -> Iterator[tuple[str, list[str]]]:
    """A server that stands for the live web, with the requests that reached it."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(b"document.title = 'taken over'")

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("missing", ["neutral", "keep"])
def test_a_restored_page_works_and_runs_no_live_code(tmp_path: Path, browser: sync_api.Browser, missing: str) -> None:
    with live_web() as (live, seen):
        page = f"""<!DOCTYPE html><html><head><title>Home</title><link rel=stylesheet href="/s.css">
          <script src="{live}/gone.js"></script><link rel=stylesheet href="{live}/gone.css"></head><body>
          <script src="/ok.js"></script><iframe src="{live}/frame"></iframe><img src="{live}/gone.png">
          <img id=here src="/i.gif"><p style="background: url({live}/bg.png)">text</p>
          <script>fetch("{live}/fetched").catch(() => 0); new Image().src = "{live}/beacon";
          const s = document.createElement("script"); s.src = "{live}/injected.js"; document.body.append(s);</script>
          <a id=gone href="{live}/never.html">gone</a></body></html>"""
        site = [
            (f"{live}/", "text/html", page.encode()),
            (f"{live}/s.css", "text/css", f"p {{ color: rgb(1, 2, 3) }} b {{ c: url({live}/font.woff) }}".encode()),
            (f"{live}/ok.js", "text/javascript", b"window.ok = 1"),
            (f"{live}/i.gif", "image/gif", PIXEL),
        ]
        with fill(tmp_path, site, start=f"{live}/", missing=[f"{live}/never.html"]) as store:
            report = write_outputs(store, Outputs(missing=missing), lambda _p: None)  # type: ignore[arg-type]
        assert report.front is not None
        window = browser.new_page()
        window.goto((tmp_path / report.front).resolve().as_uri())
        window.wait_for_timeout(500)
        assert seen == [], "nothing reached the live web"
        assert window.title() == "Home" and window.evaluate("window.ok") == 1
        assert window.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(1, 2, 3)"
        assert window.evaluate("document.querySelector('#here').naturalWidth") == 1
        href = window.get_attribute("#gone", "href")
        assert href is not None
        if missing == "keep":
            assert href == f"{live}/never.html"
        else:
            window.click("#gone")
            window.wait_for_function("document.title === 'Not recovered'")
            assert window.locator("li:target").inner_text().startswith(f"{live}/never.html")
        window.close()
    assert {f"{live}/gone.js", f"{live}/gone.css", f"{live}/frame", f"{live}/gone.png", f"{live}/bg.png"} <= set(
        report.neutral
    )


@contextmanager
def previewed(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "recollect", "preview", str(folder), "-q"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "at http://127.0.0.1:" in line, line
        yield line.split(" at ")[1].split(" (")[0]
    finally:
        process.terminate()
        process.wait(10)


APP = b"""<!DOCTYPE html><title>App</title><script type="module" src="/app.mjs"></script>
<svg width=20 height=20><use href="/sprite.svg#dot"></use></svg><a id=list href="/list.php?p=2">two</a>
<img src="http://cdn.lost.example/i.gif"><a id=never href="/never">n</a><p id=out></p>"""
SITE = [
    ("http://lost.example/", "text/html", APP),
    ("http://lost.example/app.mjs", "text/javascript", b"import {name} from './lib/name.mjs';"
     b"const data = await (await fetch('/data.json?x=1')).json();"
     b"document.querySelector('#out').textContent = name + ' ' + data.value;"),
    ("http://lost.example/lib/name.mjs", "text/javascript", b"export const name = 'module';"),
    ("http://lost.example/data.json?x=1", "application/json", b'{"value": 7}'),
    ("http://lost.example/sprite.svg", "image/svg+xml",
     b'<svg xmlns="http://www.w3.org/2000/svg"><symbol id="dot"><rect width="20" height="20"/></symbol></svg>'),
    ("http://lost.example/list.php?p=2", "text/html", b"<title>two</title><a href='/old'>old</a>"),
    ("http://cdn.lost.example/i.gif", "image/gif", PIXEL),
]  # fmt: skip


def test_a_preview_serves_the_site_under_its_own_addresses(tmp_path: Path, browser: sync_api.Browser) -> None:
    redirects = [("http://lost.example/old", "http://lost.example/list.php?p=2")]
    fill(
        tmp_path, SITE, redirects=redirects, missing=["http://lost.example/never"], start="http://lost.example/"
    ).close()
    with previewed(tmp_path) as address:
        window = browser.new_page()
        asked: list[str] = []
        window.on("request", lambda request: asked.append(request.url))
        window.goto(address)
        window.wait_for_function("document.querySelector('#out').textContent === 'module 7'")
        assert window.evaluate("document.querySelector('svg').getBBox().width") == 20, "the sprite is drawn"
        assert window.evaluate("document.images[0].naturalWidth") == 1, "of another host"
        window.click("#list")
        window.wait_for_function("document.title === 'two'")
        assert window.url == address + "list.php?p=2"
        window.goto(address + "old")
        assert window.url == address + "list.php?p=2", "an old redirect leads on"
        answer = window.goto(address + "never")
        assert answer is not None and answer.status == 404 and window.title() == "Not recovered"
        assert all(url.startswith((address, "data:")) for url in asked)
        window.close()
