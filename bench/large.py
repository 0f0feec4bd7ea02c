"""How long other clients wait while one archive sends a TimeMap of 64 MB, or a gzip bomb:
`make bench-aggregator ARGS=--large`.

One archive answers with the large TimeMap (link or JSON), one with gzip that unpacks to a gigabyte, one with a small
TimeMap. While a lookup of the large one is answered (by each endpoint), one client asks for /health and one for the
small TimeMap, again and again; what is printed is how long these two waited.
"""

from __future__ import annotations

import gzip
import http.client
import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PAGE = "http://lost.example/some/path/as/long/as/usual"
MEMENTOS = 420_000
BOMB = 1 << 30  # bytes
Serve = Callable[..., object]
ARCHIVES = ("link", "json", "bomb", "small")
FORK = multiprocessing.get_context("fork")
ALONE = 5.0  # seconds without a large answer, to compare with
ENDPOINTS = ("timemap/link/", "timemap/json/", "summary/", "memento/link/2010/", "?uri=")


def _moments() -> Iterator[tuple[str, str]]:
    """(14 digits, RFC 1123) of one capture every half hour."""
    for number in range(MEMENTOS // 48):
        at = datetime(2001, 1, 1) + timedelta(days=number)
        for half in range(48):
            clock = f"{half // 2:02d}:{half % 2 * 30:02d}:00"
            yield f"{at:%Y%m%d}{clock.replace(':', '')}", f"{at:%a, %d %b %Y} {clock} GMT"


def _link() -> bytes:
    lines = [
        f'<http://web.archive.example/web/{stamp}/{PAGE}>; rel="memento"; datetime="{words}"; license="none"'
        for stamp, words in _moments()
    ]
    return ",\n".join([f'<{PAGE}>; rel="original"', *lines]).encode()


def _json() -> bytes:
    rows = [{"datetime": words, "uri": f"http://web.archive.example/web/{stamp}/{PAGE}"} for stamp, words in _moments()]
    return json.dumps({"original_uri": PAGE, "mementos": {"list": rows}}).encode()


def _small() -> bytes:
    return (
        f'<{PAGE}>; rel="original",\n<http://web.archive.example/web/20150101000000/{PAGE}>; '
        'rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00 GMT"'
    ).encode()


def _answer_for_ever(listening: socket.socket) -> None:
    """Serve the archives; the path of each begins with its name."""
    bodies = {"link": _link(), "json": _json(), "bomb": gzip.compress(bytes(BOMB), 1), "small": _small()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body of a small answer in one segment
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            name = self.path.split("/")[1]
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if name == "json" else "application/link-format")
            if name == "bomb":
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(bodies[name])))
            self.end_headers()
            self.wfile.write(bodies[name])

        def log_message(self, *_: object) -> None:
            """Quiet."""

    httpd = ThreadingHTTPServer(listening.getsockname(), Handler, bind_and_activate=False)
    httpd.socket.close()
    httpd.socket = listening
    httpd.serve_forever()


@contextmanager
def _archives(folder: Path) -> Iterator[None]:
    """Running archives, in a process of their own so that they do not share an interpreter with the clients."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        process = FORK.Process(target=_answer_for_ever, args=(listening,), daemon=True)
        process.start()
    listed = [{"id": name, "name": name, "timemap": f"{base}/{name}/timemap/link/"} for name in ARCHIVES]
    (folder / "archives.json").write_text(json.dumps(listed))
    try:
        _fetch(base.removeprefix("http://"), "/small/")  # it is ready
        yield
    finally:
        process.kill()
        process.join()


class _Client(threading.Thread):
    """Asks for one path again and again; `waits` are the seconds that each answer took."""

    def __init__(self, netloc: str, path: str, busy: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.waits: list[float] = []
        self._netloc, self._path, self._busy = netloc, path, busy

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._netloc, timeout=60)
        while self._busy():
            began = time.perf_counter()
            connection.request("GET", self._path)
            connection.getresponse().read()
            self.waits.append(time.perf_counter() - began)
            time.sleep(0.005)
        connection.close()


def _fetch(netloc: str, path: str) -> None:
    connection = http.client.HTTPConnection(netloc, timeout=300)
    connection.request("GET", path)
    response = connection.getresponse()
    while response.read(1 << 20):
        pass
    connection.close()


def _milliseconds(waits: list[float]) -> str:
    ordered = sorted(waits)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{ordered[len(ordered) // 2] * 1000:.1f} / {p99 * 1000:.0f} / {ordered[-1] * 1000:.0f}"


def _beside(netloc: str, busy: Callable[[], bool]) -> str:
    """How long /health and a small TimeMap took while something was busy."""
    clients = [_Client(netloc, "/health", busy), _Client(netloc, f"/timemap/link/{PAGE}?archives=small", busy)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return " | ".join(_milliseconds(client.waits) for client in clients)


def run_large(folder: Path, server: Serve) -> None:
    """Print the waits; `server` starts an aggregator over the archives of a folder."""
    with (
        _archives(folder),
        server(folder, "--no-learn", "--no-cache", "--deadline", "120", max_answer="80MB") as (  # type: ignore[attr-defined]
            address,
            _,
        ),
    ):
        netloc = urlsplit(address).netloc
        print(
            "| large answer | endpoint | seconds | /health: p50 / p99 / longest ms | TimeMap: p50 / p99 / longest ms |"
        )
        print("| --- | --- | --- | --- | --- |")
        end = time.perf_counter() + ALONE
        print(f"| none | | {ALONE} | {_beside(netloc, lambda: time.perf_counter() < end)} |", flush=True)
        for archive, endpoint in [(one, endpoint) for one in ("link", "json", "bomb") for endpoint in ENDPOINTS]:
            # The page for people takes no choice of archives: it asks all of them.
            if (endpoint == "?uri=" and archive != "link") or (archive == "bomb" and endpoint != ENDPOINTS[0]):
                continue
            path = f"/{endpoint}{PAGE}" + ("" if endpoint == "?uri=" else f"?archives={archive}")
            process = FORK.Process(target=_fetch, args=(netloc, path), daemon=True)
            began = time.perf_counter()
            process.start()
            waits = _beside(netloc, process.is_alive)
            took = time.perf_counter() - began
            print(f"| {archive} | /{endpoint} | {took:.1f} | {waits} |", flush=True)
