"""Restored copies send no requests: a zoo of active content in a real Chromium, whose every request is counted.

All names lead to a proxy on loopback that writes down what reaches it: the browser has no other way out. The tree and
the tree without scripts are opened from the disk, the re-hosting kit from a plain web server. Blockers of windows that
open by themselves are off (Playwright), so that the copies have to do without them.
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
from attack.zoo import SITE, UNSTOPPABLE, zoo
from recollect.recovery.outputs import Outputs, write_outputs
from recollect.recovery.restore import WITHOUT_SCRIPTS
from stores import fill
from web_servers import plain

needs.wheel("Playwright")
sync_api = pytest.importorskip("playwright.sync_api")
TABS = 40
FLAGS = [
    "--renderer-process-limit=4",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
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
            if ".outside.test" in line or (
                line and "HTTP/" not in line
            ):  # bytes of another protocol come by a mapped name
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
def tabs(outside: Outside) -> Iterator[list[sync_api.Page]]:
    """The tabs of one Chromium, which all tests share: a tab costs more than a page in it."""
    chromium = needs.program("Chromium")
    with sync_api.sync_playwright() as playwright:
        proxy = {"server": f"http://127.0.0.1:{outside.port}", "bypass": "127.0.0.1"}
        mapped = f"--host-resolver-rules=MAP *.outside.test 127.0.0.1:{outside.port}"  # what uses no proxy: WebRTC
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, mapped], proxy=proxy)
        context = browser.new_context()
        yield [context.new_page() for _ in range(TABS)]
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


def _visit(tabs: list[sync_api.Page], addresses: list[str]) -> None:
    """Open every address, some at a time, for as long as its timers may run, and leave it again."""
    for start in range(0, len(addresses) + len(tabs), len(tabs)):
        rest = addresses[start : start + len(tabs)]
        for tab, address in zip(tabs, rest + ["about:blank"] * (len(tabs) - len(rest)), strict=True):
            with contextlib.suppress(sync_api.Error):  # a download, or a document that is not shown
                tab.goto(address, wait_until="commit", timeout=5_000)
        # A page's own timer ends after its refresh of one second, however busy the machine is.
        for step in ("() => { window.timer = new Promise(done => setTimeout(done, 1500)) }", "() => window.timer"):
            for tab in tabs[: len(rest)]:
                with contextlib.suppress(sync_api.Error):
                    tab.evaluate(step)
        for window in tabs[0].context.pages:
            if window not in tabs:
                with contextlib.suppress(sync_api.Error):
                    window.close()


@pytest.mark.parametrize(
    ("copy", "place"),
    [("with/lost.example", "disk"), ("with/rehost/public", "server"), ("without/lost.example", "disk")],
)
def test_no_request_leaves_a_restored_site(
    copies: Path, tabs: list[sync_api.Page], outside: Outside, copy: str, place: str, tmp_path: Path
) -> None:
    folder = copies / copy
    names = _pages(folder)
    if copy.startswith("with/"):
        names = [name for name in names if Path(name).stem not in UNSTOPPABLE]
    assert len(names) > 140
    outside.seen.clear()
    if place == "disk":
        _visit(tabs, [(folder / name).as_uri() for name in names])
    else:
        with plain(folder, tmp_path) as port:
            _visit(tabs, [f"http://127.0.0.1:{port}/{quote(name)}" for name in names])
    assert sorted(set(outside.seen)) == []


def test_nothing_runs_in_the_copy_without_scripts(copies: Path, tabs: list[sync_api.Page]) -> None:
    """Every program of the zoo would at least leave a trace; here none is left to run, whatever the policy says."""
    marks = (b"<script", b"javascript:", b"onerror=", b"onload=")
    folder = copies / "without/lost.example"
    for path in folder.rglob("*"):
        content = path.read_bytes().lower() if path.is_file() else b""
        assert path.suffix not in (".js", ".mjs"), path
        assert [mark for mark in marks if mark in content] == [], path
    page = folder / "runs.html"  # the policy alone
    policy = WITHOUT_SCRIPTS.replace('"', "&quot;")
    page.write_text(f'<meta http-equiv="Content-Security-Policy" content="{policy}"><script>window.ran = 1</script>'
                    "<img src=x onerror='window.ran = 1'>")  # fmt: skip
    tabs[0].goto(page.as_uri())
    page.unlink()
    assert tabs[0].evaluate("() => window.ran") is None


def test_the_zoo_does_call_out_as_it_was_archived(tabs: list[sync_api.Page], outside: Outside, tmp_path: Path) -> None:
    """Else the other tests would show nothing."""
    for uri, _, content in zoo():
        path = tmp_path / uri.removeprefix(SITE).lstrip("/")
        path = path if path.name and not uri.endswith("/") else path / "index.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    outside.seen.clear()
    with plain(tmp_path, tmp_path) as port:
        _visit(tabs, [f"http://127.0.0.1:{port}/{quote(name)}" for name in _pages(tmp_path)[::2]])
    hosts = {
        line.split("//", 1)[-1].split(" ")[-2 if "//" not in line else 0].split("/")[0].split(":")[0]
        for line in outside.seen
    }
    assert len({host for host in hosts if host.endswith(".outside.test")}) > 35, sorted(hosts)
