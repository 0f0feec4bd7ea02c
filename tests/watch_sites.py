"""Many small sites on one server for tests of a watch: each on a loopback address of its own (127.0.1.1, 127.0.1.2...).

with sites() as web:
    web.at(1).mood = "failing"
    watch = [web.uri(number) for number in range(100)]
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = "The rowing club meets every morning at the river and trains its members in boats for the races of spring. " * 4
PAGE = f"<title>River Rowing Club</title><p>{TEXT}<a href=/races>r</a><a href=/boats>b</a><a href=/oars>o</a>"
SUSPENDED = "<title>Account Suspended</title><h1>This Account has been suspended.</h1><p>Contact your hosting provider."
NGINX = (
    "<title>Welcome to nginx!</title><h1>Welcome to nginx!</h1><p>If you see this page, the nginx web server is "
    "successfully installed and working. Further configuration is required."
)
MAINTENANCE = "<title>Maintenance</title><p>Briefly unavailable for scheduled maintenance. Check back in a minute."
EXPIRED = "<title>club.example</title><p>This domain has expired. If you are the owner, renew your domain now."


@dataclass
class One:
    """A site: its pages, how it behaves, and when it was asked for what."""

    pages: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("/", "/races", "/boats", "/oars"), PAGE))
    robots: tuple[int, str] = (404, "")
    status: int = 200
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[float, str]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By path, media type and content, beside the pages."""
    redirects: dict[str, str] = field(default_factory=dict)
    hook: Callable[[str], None] = lambda _path: None

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.asked]


@dataclass
class Web:
    port: int = 0
    scheme: str = "http"
    sites: dict[str, One] = field(default_factory=dict)

    def at(self, number: int) -> One:
        return self.sites.setdefault(f"127.0.1.{number + 1}", One())

    def uri(self, number: int) -> str:
        self.at(number)
        return f"{self.scheme}://127.0.1.{number + 1}:{self.port}/"


@contextmanager
def sites(tls: ssl.SSLContext | None = None) -> Iterator[Web]:
    web = Web(scheme="https" if tls is not None else "http")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site = web.sites.setdefault(self.headers["Host"].partition(":")[0], One())
            site.asked.append((time.monotonic(), self.path))
            site.hook(self.path)
            time.sleep(site.delay)
            condition = self.headers.get("If-Modified-Since", "") or self.headers.get("If-None-Match", "")
            status, body = site.status, site.pages.get(self.path.partition("?")[0])
            kind = "text/html"
            if self.path == "/robots.txt":
                status, body, kind = *site.robots, "text/plain"
            elif self.path in site.files:
                status, (kind, body) = 200, site.files[self.path]
            elif self.path in site.redirects:
                status, body = 302, ""
            elif body is None:
                status = 404
            elif condition:
                site.conditions.append(self.path)
                status, body = 304, ""
            data = (body or "").encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if self.path in site.redirects:
                self.send_header("Location", site.redirects[self.path])
            for name, value in site.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    web.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
