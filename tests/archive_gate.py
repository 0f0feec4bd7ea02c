"""A gate in front of a real archive, for stories in which it fails: refuses, is silent, or lists what it does not give.

    with gate(archive) as door:
        door.refuse("/cdx", 503); door.silence("id_/"); door.open(); door.requests

Requests are forwarded to the archive as they are, and recorded as paths.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from pywb_archive import PywbArchive


@dataclass
class Gate:
    """The archive as seen through the gate, and what the gate does with paths that contain a text."""

    archive: PywbArchive
    status: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def refuse(self, part: str, status: int) -> None:
        self.status[part] = status

    def silence(self, part: str) -> None:
        self.silent.add(part)

    def open(self) -> None:
        """Answer everything from now on, and forget what was asked."""
        self.status.clear()
        self.silent.clear()
        self.requests.clear()


@contextmanager
def gate(archive: PywbArchive) -> Iterator[Gate]:
    """A running gate; it ends every request that is still silent."""
    upstream = urlsplit(archive.base)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            door.requests.append(self.path)
            if any(part in self.path for part in door.silent):
                door.released.wait(60)
                return
            refused = next((status for part, status in door.status.items() if part in self.path), None)
            if refused is not None:
                self.send_response(refused)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=30)
            connection.request("GET", self.path, headers={"Host": upstream.netloc})
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            skipped = ("transfer-encoding", "content-length", "connection", "server", "date")
            for name, value in answer.getheaders():
                if name.lower() not in skipped:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    door = Gate(replace(archive, base=f"http://127.0.0.1:{server.server_port}"))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield door
    finally:
        door.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
