"""Small archives on loopback, and a real `recollect serve` in front of them, for tests that go over the wire.

    with small_archives() as archives:
        archives.add("one", {"http://a.example/": ["20150101000000"]})
        archives.add("two", {}, delay=2)
        with serving(archives.write(tmp_path), "--no-learn") as base: ...

Every archive is a path on one server: TimeMaps at /ID/timemap/link/URI, a TimeGate at /ID/web/URI, mementos at
/ID/web/TIMESTAMP[id_]/URI.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from recollect.datetimes import format_http_date, parse_http_date, parse_timestamp


@dataclass
class SmallArchive:
    """What one archive holds and how it behaves."""

    id: str
    holdings: dict[str, list[str]]
    delay: float = 0.0
    status: int = 200
    body: bytes | None = None
    fields: dict[str, str] = field(default_factory=dict)
    """Header fields of `body`."""
    keys: dict[str, Any] = field(default_factory=dict)


@dataclass
class SmallArchives:
    """The archives of one server, and the requests they got as (method, path)."""

    server: ThreadingHTTPServer
    archives: dict[str, SmallArchive] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    """`asked ID` and `answered ID` in the order in which it happened."""
    redirects: dict[tuple[str, str], str] = field(default_factory=dict)
    """Captures that are redirects: (archive, URI-R) to where they led."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def add(self, name: str, holdings: dict[str, list[str]], **options: Any) -> None:
        """An archive; `keys` are more keys of its entry in the registry."""
        self.archives[name] = SmallArchive(name, holdings, **options)

    def write(self, folder: Path) -> Path:
        """The registry of these archives as a file."""
        entries = [
            {
                "id": archive.id,
                "name": archive.id.title(),
                "timemap": f"{self.base}/{archive.id}/timemap/link/",
                "timegate": f"{self.base}/{archive.id}/web/",
                **archive.keys,
            }
            for archive in self.archives.values()
        ]
        path = folder / "archives.json"
        path.write_text(json.dumps(entries))
        return path

    def uri_m(self, name: str, timestamp: str, uri: str, kind: str = "") -> str:
        return f"{self.base}/{name}/web/{timestamp}{kind}/{uri}"


class _Handler(BaseHTTPRequestHandler):
    archives: SmallArchives
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.archives.requests.append((self.command, self.path))
        name, _, rest = self.path[1:].partition("/")
        self.archives.events.append(f"asked {name}")
        archive = self.archives.archives.get(name)
        if archive is None:
            return self._send(404, b"no such archive")
        memento = re.fullmatch(r"web/(\d{14})(id_)?/(.*)", rest)
        if memento is not None:
            return self._memento(archive, *memento.groups())
        time.sleep(archive.delay)
        if archive.body is not None or archive.status != 200:
            return self._send(archive.status, archive.body or b"", archive.fields)
        if rest.startswith("web/"):
            return self._timegate(archive, rest.removeprefix("web/"))
        return self._timemap(archive, rest.removeprefix("timemap/link/"))

    do_HEAD = do_GET

    def _timemap(self, archive: SmallArchive, uri: str) -> None:
        stamps = archive.holdings.get(uri, [])
        if not stamps:
            return self._send(404, b"")
        lines = [f'<{uri}>; rel="original"'] + [self._link(archive, stamp, uri) for stamp in stamps]
        return self._send(200, ",\n".join(lines).encode(), {"Content-Type": "application/link-format"})

    def _link(self, archive: SmallArchive, stamp: str, uri: str, rel: str = "memento") -> str:
        moment = format_http_date(parse_timestamp(stamp))
        return f'<{self.archives.uri_m(archive.id, stamp, uri)}>; rel="{rel}"; datetime="{moment}"'

    def _timegate(self, archive: SmallArchive, uri: str) -> None:
        stamps = sorted(archive.holdings.get(uri, []))
        if not stamps:
            return self._send(404, b"")
        wanted = self.headers.get("Accept-Datetime")
        at = parse_http_date(wanted) if wanted else parse_timestamp(stamps[-1])
        closest = min(stamps, key=lambda stamp: abs(parse_timestamp(stamp) - at))
        links = [self._link(archive, closest, uri), f'<{uri}>; rel="original"']
        fields = {"Location": self.archives.uri_m(archive.id, closest, uri), "Link": ", ".join(links)}
        return self._send(302, b"", {**fields, "Vary": "accept-datetime"})

    def _memento(self, archive: SmallArchive, stamp: str, raw: str | None, uri: str) -> None:
        kind = "raw" if raw else "replayed"
        moment = format_http_date(parse_timestamp(stamp))
        onward = self.archives.redirects.get((archive.id, uri))
        if onward is not None:
            return self._send(301, b"", {"Location": onward, "Memento-Datetime": moment})
        body = f"<!doctype html><title>{stamp}</title><p>{kind} {archive.id} {stamp} {uri}".encode()
        return self._send(200, body, {"Content-Type": "text/html; charset=utf-8", "Memento-Datetime": moment})

    def _send(self, status: int, body: bytes, fields: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (fields or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.archives.events.append(f"answered {self.path[1:].partition('/')[0]}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def small_archives() -> Iterator[SmallArchives]:
    """A server for small archives, on a port of its own, until the block ends."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    archives = handler.archives = SmallArchives(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield archives
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Server:
    """A running `recollect serve`: its address, its process, and what it said."""

    base: str
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def serving(registry: Path, *flags: str, seconds: float = 30) -> Iterator[str]:
    """`recollect serve` on a port of its own; gives its address."""
    with server_process(registry, *flags, seconds=seconds) as server:
        yield server.base


@contextmanager
def server_process(registry: Path, *flags: str, seconds: float = 30) -> Iterator[Server]:
    """The same, with its process."""
    log = registry.with_name("serve.log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "recollect", "serve", "--archives", str(registry), "--port", "0", *flags],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "XDG_CONFIG_HOME": str(registry.parent)},
        )
    try:
        yield Server(_address(process, log, seconds), process, log)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


def _address(process: subprocess.Popen[bytes], log: Path, seconds: float) -> str:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up and process.poll() is None:
        found = re.search(r"http://[\w.:]+", log.read_text())
        if found is not None:
            return found[0].rstrip("/")
        time.sleep(0.05)
    raise RuntimeError(f"recollect serve did not start:\n{log.read_text()[-2000:]}")
