"""Restored copies send no requests: a zoo of active content in a real Chromium, whose every request is counted.

All names lead to a proxy on loopback that writes down what reaches it: the browser has no other way out. Pages are
opened from the disk and from a plain web server, from the tree, the tree without scripts and the re-hosting kit.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import needs
from attack.zoo import SITE, zoo
from recollect.recovery.outputs import Outputs, write_outputs
from stores import fill
from web_servers import plain

needs.wheel("Playwright")
sync_api = pytest.importorskip("playwright.sync_api")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-features=OptimizationHints,MediaRouter,Translate,CertificateTransparencyComponentUpdater"]
FLAGS += ["--no-first-run", "--disable-sync", "--disable-default-apps", "--no-pings=false"]


class Outside:
    """A proxy that answers every request with an empty page, and remembers its first line."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(10)
            line = connection.recv(65536).split(b"\r\n", 1)[0].decode("latin-1")
            if ".outside.test" in line:
                self.seen.append(line)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    proxy = Outside()
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def context(outside: Outside) -> Iterator[sync_api.BrowserContext]:
    chromium = needs.program("Chromium")
    with sync_api.sync_playwright() as playwright:
        proxy = {"server": f"http://127.0.0.1:{outside.port}", "bypass": "127.0.0.1"}
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS, proxy=proxy)
        yield browser.new_context()
        browser.close()


@pytest.fixture(scope="module")
def copies() -> Iterator[Path]:
    """The zoo restored with scripts and without."""
    folder = Path(tempfile.mkdtemp(prefix="zoo-"))
    for name, scripts in (("with", True), ("without", False)):
        with fill(folder / name, zoo(), start=f"{SITE}/", charset=None) as store:
            write_outputs(store, Outputs(warc=False, wacz=False, scripts=scripts), lambda _p: None)
    yield folder
    shutil.rmtree(folder)


def _pages(folder: Path) -> list[str]:
    known = (".html", ".svg", ".xml", ".xhtml", ".xsl", ".pdf", "b")
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name.endswith(known))


def _visit(context: sync_api.BrowserContext, addresses: list[str]) -> None:
    """Open every address, some at a time, for as long as its timers may run."""
    for start in range(0, len(addresses), 50):
        windows = []
        for address in addresses[start : start + 50]:
            window = context.new_page()
            windows.append(window)
            with contextlib.suppress(sync_api.Error):  # a download, or a document that is not shown
                window.goto(address, wait_until="commit", timeout=5_000)
        windows[-1].wait_for_timeout(2_000)  # a refresh of one second
        for window in context.pages:
            with contextlib.suppress(sync_api.Error):
                window.close()


@pytest.mark.parametrize(
    ("copy", "place"),
    [
        ("with/lost.example", "disk"),
        ("with/lost.example", "server"),
        ("without/lost.example", "disk"),
        ("with/rehost/public", "server"),
    ],
)
def test_no_request_leaves_a_restored_site(
    copies: Path, context: sync_api.BrowserContext, outside: Outside, copy: str, place: str, tmp_path: Path
) -> None:
    folder = copies / copy
    names = _pages(folder)
    assert len(names) > 80
    outside.seen.clear()
    if place == "disk":
        _visit(context, [(folder / name).as_uri() for name in names])
    else:
        with plain(folder, tmp_path) as port:
            _visit(context, [f"http://127.0.0.1:{port}/{quote(name)}" for name in names])
    assert sorted(set(outside.seen)) == []


def test_the_zoo_does_call_out_as_it_was_archived(
    context: sync_api.BrowserContext, outside: Outside, tmp_path: Path
) -> None:
    """Else the other tests would show nothing."""
    for uri, _, content in zoo():
        path = tmp_path / uri.removeprefix(SITE).lstrip("/")
        path = path if path.name and not uri.endswith("/") else path / "index.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    outside.seen.clear()
    with plain(tmp_path, tmp_path) as port:
        _visit(context, [f"http://127.0.0.1:{port}/{quote(name)}" for name in _pages(tmp_path)])
    hosts = {
        line.split("//", 1)[-1].split(" ")[-2 if "//" not in line else 0].split("/")[0].split(":")[0]
        for line in outside.seen
    }
    assert len({host for host in hosts if host.endswith(".outside.test")}) > 50, sorted(hosts)
