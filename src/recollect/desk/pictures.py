"""Pictures of recovered pages, made by Chromium where there is one.

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
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

_SECONDS = 20.0
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


@contextmanager
def _served(folder: Path) -> Iterator[int]:
    """The folder on a port of this machine, while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Files", (_Files,), {"root": folder.resolve()}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _draw(program: str, port: int, address: str, picture: Path) -> bool:
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
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS)
        process.kill()  # its own subprocesses end when it does
        process.wait()
    return picture.is_file() and picture.stat().st_size > 0
