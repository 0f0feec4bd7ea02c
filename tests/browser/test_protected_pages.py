"""Protected pages look the same in a real browser, in every charset and kind of markup, and no script error occurs."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from protected_sites import KEY, contents, protect, write_app
from recollect.protection.collect import Collector
from recollect.protection.markup import Style
from recollect.protection.site import remove

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")

XHTML = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>XHTML &#8212; strict</title></head>
<body><h1>XHTML</h1><p>Zürich<br />café</p></body></html>
"""
JAPANESE = "<html><head><meta charset={}><title>日本語</title></head><body><h1>日本語</h1><p>表示ソ能</p></body></html>"
PAGES: dict[str, bytes] = {
    "plain.html": b"<!DOCTYPE html><html><head><title>Plain</title></head><body><h1>Plain</h1></body></html>",
    "strict.xhtml": XHTML.encode(),
    "prefixed.xhtml": b"<?xml version='1.0'?><h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:body>pre</h:body></h:html>",
    "frames.html": b"<html><head><title>Frames</title></head><frameset cols='50%,50%'><frame src='plain.html'>"
    b"<frame src='utf16.html'></frameset></html>",
    "headless.html": b"<frameset><frame src='plain.html'></frameset>",
    "nobody.html": b"<title>No body</title><p>just a paragraph",
    "utf16.html": "<html><head><title>UTF-16</title></head><body><h1>Ünïcödé ☃</h1></body></html>".encode("utf-16"),
    "utf16be.html": "\ufeff<html><body><h1>big endian ☃</h1></body></html>".encode("utf-16-be"),
    "sjis.html": JAPANESE.format("shift_jis").encode("shift_jis"),
    "jis.html": JAPANESE.format("iso-2022-jp").encode("iso2022_jp"),
    "scripts.html": b"<body><h1>Scripts</h1><script>document.write('<p>written</' + 'p><!-- </body> -->')</script>"
    b"<textarea></body></textarea></body>",
    "quirks.html": b"<table><tr><td width=100%>quirks<td>mode</table></body></html>\n<!-- generated </body> -->\n",
}


@pytest.fixture(params=list(Style))
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str, Style]]:
    """A folder with the pages, plain in before/ and protected in after/, on loopback."""
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        for name, content in PAGES.items():
            (tmp_path / folder / name).write_bytes(content)
    app = write_app(tmp_path / "app", 30_000)
    done = protect(tmp_path / "after", [f"{app}/"], need=4, style=request.param)
    assert done.unfit == () and done.spread.pages == len(PAGES)

    class Handler(http.server.SimpleHTTPRequestHandler):
        # No charset, as of a plain server.
        extensions_map: ClassVar = {".html": "text/html", ".xhtml": "application/xhtml+xml"}

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, f"http://127.0.0.1:{server.server_address[1]}", request.param
    server.shutdown()
    server.server_close()


def test_pages_look_the_same_and_carry_everything(served: tuple[Path, str, Style], page: sync_api.Page) -> None:
    _folder, base, _style = served
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    look = """() => ({text: document.body ? document.body.innerText : '', title: document.title,
        charset: document.characterSet, mode: document.compatMode, frames: window.frames.length,
        height: document.documentElement.scrollHeight, root: document.documentElement.localName,
        children: document.body ? [...document.body.children].filter(e => e.localName != 'script').length : 0})"""
    for name in PAGES:
        seen = []
        for version in ("before", "after"):
            response = page.goto(f"{base}/{version}/{name}")
            assert response is not None and response.status == 200
            seen.append((page.evaluate(look), page.screenshot()))
        assert seen[0][0] == seen[1][0], name
        assert "parsererror" not in page.content() and seen[0][1] == seen[1][1], f"{name} looks different"
        assert seen[0][0]["text"] or seen[0][0]["frames"], f"{name} shows nothing"
    assert errors == []


def test_what_a_browser_saves_of_a_page_still_carries_its_block(
    served: tuple[Path, str, Style], page: sync_api.Page
) -> None:
    """As crawlers with a browser do: the serialised document, not the bytes that were sent."""
    folder, base, _style = served
    collector = Collector([KEY.public])
    for name in PAGES:
        page.goto(f"{base}/after/{name}")
        collector.add(name, page.content().encode())
    assert not collector.refusals and collector.carrying >= len(PAGES) - 2
    assert collector.restore("files") is not None
    remove(folder / "after")
    assert contents(folder / "after") == PAGES
