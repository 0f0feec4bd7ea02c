"""Starting and keeping alive the processes that serve.

Hides: sockets, forks and signals. The parent binds the sockets, so all workers share them; it serves nothing itself.
It hands SIGTERM, SIGINT and SIGHUP on, starts a worker again that died, and ends when all have ended. With one worker
there is no parent: the process serves itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from recollect.aggregator.http.worker import Worker, load_archive_set, open_learned
from recollect.aggregator.switches import Switches
from recollect.errors import ResourceError
from recollect.settings import Settings
from recollect.sockets import address_of, bind

log = logging.getLogger("recollect.web")

_RESTART_SECONDS = 1.0
_RunWorker = Callable[[int, Callable[[], None]], None]


def serve(settings: Settings, on_ready: Callable[[str, str, str], None]) -> int:
    """Serve until a signal to stop; returns the exit code. `on_ready` gets the address, the operator's token, and the
    address of the operator's port if there is one."""
    _allow_more_files()
    archive_set = load_archive_set(settings)  # what cannot work must fail here, before the server accepts connections
    if settings.publish and not Path(settings.publish).is_dir():
        raise ResourceError("no folder of published maps", where=settings.publish, hint="recollect publish makes one")
    listener = bind(settings.host, settings.port)
    admin = bind("127.0.0.1", settings.admin_port) if settings.admin_port is not None else None
    token = settings.admin_token or secrets.token_urlsafe(24)
    instance = secrets.token_hex(6)
    parent_id = os.getpid()
    addresses = address_of(listener), token, address_of(admin) if admin is not None else ""
    learned = open_learned(settings, archive_set)  # before any fork, so that all workers share it

    switches = Switches()

    def worker(number: int, ready: Callable[[], None], shared: Path | None = None) -> None:
        serving = Worker(
            settings,
            archive_set,
            learned,
            token=token,
            instance=instance,
            number=number,
            shared=shared,
            parent=parent_id if shared is not None else None,
            switches=switches,
        )
        _run(serving.run(listener, ready, admin))

    if settings.workers <= 1:
        worker(0, lambda: on_ready(*addresses))
        return 0
    with tempfile.TemporaryDirectory(prefix="recollect-") as shared:
        parent = _Parent(
            settings.workers,
            lambda number, ready: worker(number, ready, Path(shared)),
            lambda: on_ready(*addresses),
        )
        return parent.run()


def _allow_more_files() -> None:
    """As many open files as the system lets us have: each client and each request to an archive is one."""
    import resource  # not on Windows

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _run(main: object) -> None:
    try:
        import uvloop  # the extra `speed`
    except ImportError:
        asyncio.run(main)  # type: ignore[arg-type]  # a coroutine
    else:
        uvloop.run(main)  # type: ignore[arg-type]


class _Parent:
    """Forks workers and looks after them."""

    def __init__(
        self, count: int, worker: Callable[[int, Callable[[], None]], None], on_ready: Callable[[], None]
    ) -> None:
        self._count = count
        self._worker = worker
        self._on_ready = on_ready
        self._running: dict[int, int] = {}
        self._stopping = False

    def run(self) -> int:
        read, write = os.pipe()
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, self._pass_on)
        for number in range(self._count):
            self._start(number, write if number == 0 else None)
        os.close(write)
        if os.read(read, 1):
            self._on_ready()
        os.close(read)
        while self._running:
            pid, status = os.wait()
            number = self._running.pop(pid)
            if self._stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            log.error("worker %d ended with %d, starting it again", number, code)
            time.sleep(_RESTART_SECONDS)
            if not self._stopping:
                self._start(number, None)
        return 0

    def _start(self, number: int, ready: int | None) -> None:
        pid = os.fork()
        if pid:
            self._running[pid] = number
            return
        code = 1
        try:
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(name, signal.SIG_DFL)
            self._worker(number, lambda: _report_ready(ready))
            code = 0
        except Exception:  # one of the three edges: a worker that cannot start must say why before it ends
            log.exception("worker %d failed", number)
        finally:
            os._exit(code)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGHUP:
            self._stopping = True
        for pid in list(self._running):
            os.kill(pid, number)


def _report_ready(pipe: int | None) -> None:
    if pipe is not None:
        os.write(pipe, b"1")
        os.close(pipe)
