"""Pictures of recovered pages, made by Chromium where there is one: of a result, and of what came of one so far.

Hides: finding Chromium and keeping a foreign page harmless. The recovered folder is served on a port of this machine
that lives as long as the pictures take; the policy of every answer lets a page load styles, pictures and fonts of the
folder and nothing else, runs no script, and follows no redirect. The browser reaches that port only: every other
address goes to a proxy that does not exist. Time and number are bounded. Without Chromium, or when it fails, there are
no pictures.
"""

from __future__ import annotations

import mimetypes
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from recollect.errors import RecollectError

_SECONDS = 20.0
_FIRST, _BETWEEN = 5.0, 10.0
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "media-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'"
)


def chromium() -> str | None:
    """The path of Chromium, if it is installed."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def thumbnails(folder: Path, front: str | None, target: Path, most: int) -> list[Path]:
    """Pictures of the front page and some others, as thumb-N.png in `target`."""
    program = chromium() if most else None
    if program is None:
        return []
    made = []
    with _served(folder) as port:
        for number, page in enumerate(_pages(folder, front)[:most]):
            picture = target / f"thumb-{number}.png"
            name = quote(page.relative_to(folder).as_posix())
            if _draw(program, port, f"http://127.0.0.1:{port}/{name}", picture):
                made.append(picture)
    return made


def _pages(folder: Path, front: str | None) -> list[Path]:
    """The front page, then the shortest names: those near the root."""
    hosts = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    found = [path for host in hosts if host.name != "rehost" for path in host.rglob("*.htm*") if path.is_file()]
    found.sort(key=lambda path: (len(path.relative_to(folder).parts), path.as_posix()))
    first = [folder / front] if front else []
    return list(dict.fromkeys([*first, *found]))


class EarlyPictures(threading.Thread):
    """Draws pages while a recovery goes on, at most one in ten seconds, the front page first; `made` gets each picture.

    It reads what is stored so far; a recovery that is over before the first one is due is not delayed.
    """

    def __init__(self, folder: Path, most: int, made: Callable[[Path], None]) -> None:
        super().__init__(daemon=True, name="early pictures")
        self._folder, self._made = folder, made
        self._most = most if chromium() is not None else 0
        self._target = folder.with_name(f"{folder.name}.early")
        self._over = threading.Event()

    def run(self) -> None:
        shutil.rmtree(self._target, ignore_errors=True)
        drawn: list[str] = []
        while len(drawn) < self._most and not self._over.wait(_BETWEEN if drawn else _FIRST):
            with suppress(RecollectError, sqlite3.Error, OSError):  # the store is not there yet, or is being written
                if uri := self._next(drawn):
                    self._draw(uri, self._target / f"thumb-{len(drawn)}.png")
                    drawn.append(uri)

    def stop(self) -> None:
        """End, with the browser; the pictures so far stay."""
        self._over.set()
        if self.is_alive():
            self.join()

    def _next(self, drawn: list[str]) -> str:
        from recollect.recovery.preview import front
        from recollect.recovery.store import Store

        with Store.open(self._folder) as store:
            if any(urlsplit(uri).path.lower().endswith(".css") for _, uri, _ in store.queued()):
                return ""  # its pages would be drawn without their styles
            first = front(store)
            pages = [one for one in store.recovered(redirects=False) if one.kind == "page" and one.suspect is None]
            pages.sort(key=lambda one: (urlsplit(one.uri).path.count("/"), len(one.uri), one.uri))
            found = [*([first] if first is not None else []), *pages]
            return next((one.uri for one in found if one.uri not in drawn), "")

    def _draw(self, uri: str, picture: Path) -> None:
        program = chromium()
        assert program is not None
        self._target.mkdir(exist_ok=True)
        split = urlsplit(uri)
        address = (split.path or "/") + (f"?{split.query}" if split.query else "")
        with _served(self._folder, _Stored) as port:
            if _draw(program, port, f"http://127.0.0.1:{port}{address}", picture, self._over):
                self._made(picture)


class _Files(BaseHTTPRequestHandler):
    """Regular files below a folder, and nothing else."""

    root: Path

    def do_GET(self) -> None:
        path = (self.root / unquote(self.path.partition("?")[0]).lstrip("/")).resolve()
        if not path.is_relative_to(self.root) or not path.is_file():
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", mimetypes.guess_type(path.name)[0] or "application/octet-stream")
        self.send_header("Content-Length", str(path.stat().st_size))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        with path.open("rb") as file, suppress(ConnectionError):
            shutil.copyfileobj(file, self.wfile)

    def log_message(self, *_: object) -> None:
        pass


class _Stored(_Files):
    """Pages and files of a recovery that goes on, under the addresses that they had."""

    def do_GET(self) -> None:
        from recollect.recovery.preview import reply
        from recollect.recovery.store import Store

        with Store.open(self.root) as store:
            answer = reply(store, self.path)
        self.send_response(answer.status)
        for name, value in answer.headers:
            if name != "Content-Security-Policy":
                self.send_header(name, value)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(answer.body)


@contextmanager
def _served(folder: Path, handler: type[_Files] = _Files) -> Iterator[int]:
    """The folder on a port of this machine, while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Files", (handler,), {"root": folder.resolve()}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _draw(program: str, port: int, address: str, picture: Path, over: threading.Event | None = None) -> bool:
    with tempfile.TemporaryDirectory(prefix="recollect-picture-") as profile:
        command = [
            program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--proxy-server=http://127.0.0.1:9", f"--proxy-bypass-list=<-loopback>;127.0.0.1:{port}",
            f"--user-data-dir={profile}", "--window-size=1024,768", f"--screenshot={picture}", address,
        ]  # fmt: skip
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        # In the process group of the recovery, which a worker kills as a whole.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and not (over is not None and over.is_set()):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
                break
        process.kill()  # its own subprocesses end when it does
        process.wait()
    return picture.is_file() and picture.stat().st_size > 0
