"""Real web servers on a free port of loopback: nginx, Apache, Caddy, and the plainest of all."""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MODULES = Path("/usr/lib/apache2/modules")


def find(name: str) -> str | None:
    """A server's program, also where only root has it in the path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _running(command: list[str], port: int, log: Path, **environment: str) -> Iterator[int]:
    with log.open("wb") as out:
        # A session of its own: Apache ends its whole process group.
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **environment}, start_new_session=True
        )
    try:
        end = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def plain(public: Path, _work: Path) -> Iterator[int]:
    """A server without any rule."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(public)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def nginx(public: Path, work: Path) -> Iterator[int]:
    port = free_port()
    rules = (public.parent / "nginx.conf").read_bytes().decode("utf-8", "surrogateescape")
    rules = rules.replace("listen 80;", f"listen 127.0.0.1:{port};")
    rules = "\n".join(f"    root {public};" if "    root /" in line else line for line in rules.splitlines())
    (work / "site.conf").write_text(rules + "\n", "utf-8", "surrogateescape")
    temporary = "".join(f"{n}_temp_path {work}/t-{n};\n" for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    (work / "nginx.conf").write_text(
        f"daemon off;\n{user}worker_processes 1;\npid {work}/nginx.pid;\nerror_log {work}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}include {work}/site.conf;\n}}\n"
    )
    program = find("nginx")
    assert program is not None
    with _running([program, "-c", str(work / "nginx.conf"), "-p", str(work)], port, work / "nginx.log") as found:
        yield found


@contextlib.contextmanager
def apache(public: Path, work: Path) -> Iterator[int]:
    port = free_port()
    modules = ("mpm_event", "authz_core", "mime", "dir", "rewrite", "headers")
    loaded = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in modules)
    user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    (work / "apache.conf").write_text(
        f"ServerRoot {work}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {work}/apache.pid\n{loaded}{user}"
        f"ErrorLog {work}/error.log\nTypesConfig /dev/null\nDocumentRoot {public}\nDefaultRuntimeDir {work}\n"
        f"DirectoryIndex index.html\n<Directory {public}>\nAllowOverride All\nRequire all granted\n</Directory>\n"
    )
    program = find("apache2") or find("httpd")
    assert program is not None
    command = [program, "-f", str(work / "apache.conf"), "-DFOREGROUND"]
    with _running(command, port, work / "apache.log") as found:
        yield found


@contextlib.contextmanager
def caddy(public: Path, work: Path) -> Iterator[int]:
    port = free_port()
    rules = (public.parent / "Caddyfile").read_text()
    lines = []
    for line in rules.splitlines():
        if line.startswith("http://"):
            line = f"http://127.0.0.1:{port} {{"
        elif line.startswith("\troot"):
            line = f"\troot * {public}"
        lines.append(line)
    (work / "Caddyfile").write_text("{\n\tadmin off\n}\n" + "\n".join(lines) + "\n")
    program = find("caddy")
    assert program is not None
    command = [program, "run", "--adapter", "caddyfile", "--config", str(work / "Caddyfile")]
    with _running(command, port, work / "caddy.log", HOME=str(work), XDG_DATA_HOME=str(work)) as found:
        yield found


SERVERS: dict[str, Callable[[Path, Path], contextlib.AbstractContextManager[int]]] = {
    "plain": plain,
    "nginx": nginx,
    "apache": apache,
    "caddy": caddy,
}


def present(name: str) -> bool:
    """Is this server on this machine?"""
    return name == "plain" or find({"apache": "apache2"}.get(name, name)) is not None


def get(port: int, target: str) -> tuple[int, str, bytes, str]:
    """Status, media type, body and Location of one answer; redirects are not followed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest("GET", target)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers.get_content_type(), answer.read(), answer.headers.get("Location", "")
    finally:
        connection.close()
