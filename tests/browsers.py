"""Real browsers that visit a small site, for tests of what they leave on the disk.

The site is served by a proxy on loopback, under any host name: `http://lost.example/` needs no DNS, and when the proxy
ends the site is gone.
"""

from __future__ import annotations

import gzip
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import needs

CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One response of the site; `zipped` is sent with a content encoding."""

    body: bytes
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    zipped: bool = False

    @property
    def sent(self) -> bytes:
        return gzip.compress(self.body, mtime=0) if self.zipped else self.body


@dataclass
class Site:
    """A site of answers by URL, behind a proxy."""

    answers: Mapping[str, Answer]
    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def served(answers: Mapping[str, Answer]) -> Iterator[Site]:
    """The site, reachable by its proxy until the block ends."""
    site = Site(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = self.path if "://" in self.path else f"http://{self.headers.get('Host', '')}{self.path}"
            site.requests.append(url)
            answer = site.answers.get(url, Answer(b"<title>Not found</title>not found", status=404))
            self.send_response(answer.status)
            for name, value in (("Content-Type", answer.media_type), *answer.headers):
                self.send_header(name, value)
            if answer.zipped:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(answer.sent)))
            self.end_headers()
            self.wfile.write(answer.sent)

        do_HEAD = do_GET

        def do_CONNECT(self) -> None:
            self.send_error(502)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium_context(profile: Path, site: Site, *flags: str) -> Iterator[Any]:
    """A Chromium with a profile of its own, whose only network is the site's proxy."""
    executable = needs.program("Chromium")
    needs.wheel("Playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=executable,
            args=[*CHROMIUM_FLAGS, f"--proxy-server={site.proxy}", "--proxy-bypass-list=<-loopback>", *flags],
        )
        try:
            yield context
        finally:
            context.close()


def visit_with_chromium(profile: Path, site: Site, urls: Sequence[str], *flags: str) -> None:
    """Visit pages one by one, then close the browser, which writes its cache to the disk."""
    with chromium_context(profile, site, *flags) as context:
        page = context.new_page()
        for url in urls:
            page.goto(url, wait_until="networkidle")


def visit_with_firefox(profile: Path, site: Site, urls: Sequence[str]) -> None:
    """Visit pages one by one with a Firefox that has a profile of its own."""
    executable = needs.program("Firefox")
    profile.mkdir(parents=True, exist_ok=True)
    prefs = {
        "network.proxy.type": 1,
        "network.proxy.http": "127.0.0.1",
        "network.proxy.http_port": site.port,
        "network.proxy.no_proxies_on": "",
        "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False,
        "app.update.enabled": False,
        "datareporting.policy.dataSubmissionEnabled": False,
        "browser.shell.checkDefaultBrowser": False,
        "browser.cache.disk.smart_size.enabled": False,
        "dom.security.https_first": False,
    }
    words = {True: "true", False: "false"}
    lines = [
        f'user_pref("{name}", {words.get(value, value) if not isinstance(value, str) else repr(value)});'
        if not isinstance(value, int) or isinstance(value, bool)
        else f'user_pref("{name}", {value});'
        for name, value in prefs.items()
    ]
    (profile / "user.js").write_text("\n".join(lines).replace("'", '"'))
    for number, url in enumerate(urls):
        picture = profile / f"picture-{number}.png"
        command = [
            executable,
            "--headless",
            "--no-remote",
            "--profile",
            str(profile),
            "--screenshot",
            str(picture),
            url,
        ]
        subprocess.run(
            command, check=True, capture_output=True, timeout=90, env={"HOME": str(profile), "PATH": "/usr/bin:/bin"}
        )
