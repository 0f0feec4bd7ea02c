"""One process that serves: built from settings, ended by SIGTERM, refreshed by SIGHUP.

Hides: the life of a server. Start: archives and maps are read, then the socket is served. SIGHUP: both are read again
and replace the old ones at once; if that fails, the old ones stay and the reason is logged. SIGTERM: the server accepts
no new connections, running requests have `drain` seconds, then the cache and the log are written and the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from recollect.aggregator.archiveset import ArchiveSet
from recollect.aggregator.ask import Limits
from recollect.aggregator.cache import Cache, Lifetimes
from recollect.aggregator.http.access import AccessLog
from recollect.aggregator.http.app import App, Context
from recollect.aggregator.http.endpoints import ENDPOINTS
from recollect.aggregator.http.metrics import Metrics, leave
from recollect.aggregator.http.operator import exposition
from recollect.aggregator.http.protocol import Server
from recollect.aggregator.http.replies import archives_of
from recollect.aggregator.learn import TARGET_RECALL, Learned
from recollect.aggregator.learn import open_learned as load_learned
from recollect.aggregator.service import Aggregator, LookupResult
from recollect.aggregator.stores import open_store
from recollect.aggregator.switches import Switches
from recollect.archives.opening import ClientOptions, open_client
from recollect.archives.registry import is_web_address, load_archives
from recollect.errors import RecollectError
from recollect.routing.maps import Maps, stamp_of
from recollect.settings import Settings

log = logging.getLogger("recollect.web")

_MAX_LINE = 16 * 1024
_KEEP_ALIVE = 75.0
_SAVE_SECONDS = 60.0
_ROUND_SECONDS = 0.02
_QUIET_ROUNDS = 50


def load_archive_set(settings: Settings) -> ArchiveSet:
    """The archives and their maps as the settings name them; problems with single maps are logged."""
    archives = load_archives(settings.archives)
    maps = Maps.open(settings.maps, archives)
    for problem in maps.problems:
        log.warning("map left out: %s", problem)
    for warning in maps.warnings:
        log.warning("%s", warning)
    return ArchiveSet(archives, maps if maps.maps else None)


class Worker:
    """A serving process; `run` returns after a signal to stop, when everything has ended."""

    def __init__(
        self,
        settings: Settings,
        archive_set: ArchiveSet,
        learned: Learned | None,
        *,
        token: str,
        instance: str,
        number: int = 0,
        shared: Path | None = None,
        parent: int | None = None,
        switches: Switches | None = None,
    ) -> None:
        self._settings = settings
        self._archive_set = archive_set
        self._learned = learned
        self._token = token
        self._instance = instance
        self._number = number
        self._shared = shared
        self._parent = parent
        self._switches = switches
        self._stop: asyncio.Event | None = None
        self._stamps: object = None

    async def run(
        self, listener: socket.socket, on_ready: Callable[[], None], admin: socket.socket | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        # Large answers make many objects but no cycles: collect garbage rarely, never among permanent objects, and
        # among few objects at a time, because all clients wait meanwhile.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 100, 50)
        # Large answers are read in threads: the loop gets the interpreter back after 1 ms instead of 5.
        sys.setswitchinterval(0.001)
        self._stamps = self._stamp()
        async with contextlib.AsyncExitStack() as stack:
            context = await self._context(stack)
            server, site = await self._serve(stack, App(context, ENDPOINTS), listener)
            if admin is not None:
                await self._serve(stack, App(context, ENDPOINTS, operator=True), admin)
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(name, self._stop.set)
            loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(self._reload_quietly(context)))
            housekeeping = loop.create_task(self._housekeeping(context))
            if self._parent is not None:
                watching = loop.create_task(self._watch_parent(self._parent))
                stack.callback(watching.cancel)
            if self._settings.discover and self._number == 0:
                discovering = loop.create_task(self._discover(context))
                stack.callback(discovering.cancel)
            on_ready()
            await self._stop.wait()
            context.draining = True
            housekeeping.cancel()
            waiting = listener.dup()  # keeps those who have connected but were not accepted yet
            await site.stop()
            await self._drain(context, server, waiting)
            await asyncio.to_thread(self._save_learned)

    async def _context(self, stack: contextlib.AsyncExitStack) -> Context:
        settings = self._settings
        client = await stack.enter_async_context(
            open_client(
                ClientOptions(
                    user_agent=settings.user_agent,
                    contact=settings.contact,
                    concurrency=settings.concurrency,
                    in_flight=settings.in_flight,
                    patience=settings.patience,
                    timeout=settings.deadline,
                    connect_timeout=settings.connect_timeout,
                    backs_off=False,
                )
            )
        )
        metrics = Metrics(self._number)
        context: Context

        def on_answer(answer: LookupResult) -> None:
            metrics.answer(answer)
            if context.monitor.watchers:
                context.monitor.publish("lookup", {"uri": answer.uri_r, "archives": archives_of(answer)})

        aggregator = Aggregator(
            client,
            self._archive_set,
            deadline=settings.deadline,
            top_k=settings.top_k,
            target_recall=settings.target_recall,
            near=settings.near,
            max_stale_loss=settings.max_stale_loss,
            floor=settings.floor,
            any_status=settings.any_status,
            limits=Limits(settings.max_answer, settings.max_pages, budget=settings.budget),
            cache=_cache(settings),
            learner=self._learned,
            switches=self._switches,
            on_answer=on_answer,
        )
        stack.push_async_callback(aggregator.close)
        access = AccessLog(settings.access_log) if settings.access_log else None
        if access is not None:
            stack.callback(access.close)
        context = Context(
            aggregator,
            client,
            settings,
            self._token,
            self._instance,
            metrics=metrics,
            access=access,
            shared=self._shared,
        )
        context.reload = lambda: self._reload_all(context)
        return context

    async def _serve(
        self, stack: contextlib.AsyncExitStack, app: App, listener: socket.socket
    ) -> tuple[web.Server, web.SockSite]:
        server = Server(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=_KEEP_ALIVE,
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_LINE,
        )
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.SockSite(runner, listener, backlog=1024)
        await site.start()
        return server, site

    async def _drain(self, context: Context, server: web.Server, waiting: socket.socket) -> None:
        """Wait for requests under way, but not for watchers. Connections that are kept have time to send one more
        request, whose answer closes them, until none has sent one for a second; those that connected before or within
        this second are served, too. The second is counted in rounds of the loop, each of which reads what has arrived:
        by the clock alone, requests that wait while the machine is busy would be lost."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.drain
        rounds = quiet = 0
        while loop.time() < until and quiet < _QUIET_ROUNDS:
            if rounds <= _QUIET_ROUNDS:
                await _accept_all(server, waiting)
            if rounds == _QUIET_ROUNDS:
                waiting.close()
            if context.metrics.in_flight <= context.monitor.watchers and not server.connections:
                break
            before = server.requests_count
            await asyncio.sleep(_ROUND_SECONDS)
            rounds += 1
            busy = context.metrics.in_flight > context.monitor.watchers or server.requests_count != before
            quiet = 0 if busy else quiet + 1
        waiting.close()

    async def _watch_parent(self, parent: int) -> None:
        """A worker whose parent was killed ends at once, so that a new instance finds the port free."""
        while os.getppid() == parent:
            await asyncio.sleep(0.1)
        log.error("the parent process is gone: worker %d ends", self._number)
        asyncio.get_running_loop().call_later(0.5, os._exit, 1)
        self._settings = replace(self._settings, drain=0.2)
        assert self._stop is not None
        self._stop.set()

    async def _housekeeping(self, context: Context) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._settings.refresh
        save_due = loop.time() + _SAVE_SECONDS
        while True:
            await asyncio.sleep(1.0)
            if context.access is not None:
                context.access.flush()
            if self._learned is not None:
                self._learned.age()
                if loop.time() >= save_due:
                    save_due = loop.time() + _SAVE_SECONDS
                    await asyncio.to_thread(self._save_learned)
            if self._shared is not None:
                leave(self._shared, self._number, exposition(context))
            if self._settings.refresh and loop.time() >= due:
                due = loop.time() + self._settings.refresh
                if self._stamp() != self._stamps:
                    await self._reload_quietly(context)

    def _save_learned(self) -> None:
        """One of the workers, which all learn in the same memory, writes it down."""
        if self._learned is None or not self._settings.state or self._number:
            return
        try:
            self._learned.save(_learned_file(self._settings.state))
        except (RecollectError, OSError) as error:
            log.warning("what was learned cannot be written: %s", error)

    async def _discover(self, context: Context) -> None:
        """Fetch the maps that archives publish, again and again, in a process of its own: a hostile map can then
        neither hold up a lookup nor take our memory."""
        settings = self._settings
        command = [sys.executable, "-m", "recollect", "discover", "--maps", str(settings.maps)]
        command += ["--archives", settings.archives] if settings.archives else []
        while True:
            process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=PIPE)
            try:
                _, said = await process.communicate()
            except asyncio.CancelledError:
                process.terminate()
                raise
            if process.returncode:
                log.warning("discovery: %s", said.decode("utf-8", "replace").strip()[-500:] or "some maps failed")
            if self._stamp() != self._stamps:
                await self._reload_all_quietly(context)
            await asyncio.sleep(settings.discover)

    async def _reload(self, context: Context) -> str:
        """Read archives and maps again; on failure the old ones stay. Returns a summary as text."""
        if context.access is not None:
            context.access.reopen()
        try:
            stamp = self._stamp()
            archive_set = await asyncio.to_thread(load_archive_set, self._settings)
            if self._learned is not None and not self._learned.use(_learned_ids(archive_set)):
                log.warning("too many new archives for the learned model: it starts again, in this process")
                self._learned = context.aggregator.learner = open_learned(self._settings, archive_set)
            if self._learned is not None:
                _start_from_samples(self._learned, archive_set)
            context.aggregator.archive_set = self._archive_set = archive_set
            self._stamps = stamp
        except OSError as error:
            raise RecollectError("cannot read", where=str(error.filename), why=error.strerror or str(error)) from error
        words = f"{len(archive_set.usual)} archives, {len(archive_set.maps.maps) if archive_set.maps else 0} maps"
        log.info("reloaded: %s", words)
        return words

    async def _reload_quietly(self, context: Context) -> None:
        try:
            await self._reload(context)
        except RecollectError as error:
            log.error("reload failed, nothing was changed: %s", error)

    async def _reload_all_quietly(self, context: Context) -> None:
        try:
            await self._reload_all(context)
        except RecollectError as error:
            log.error("reload failed, nothing was changed: %s", error)

    async def _reload_all(self, context: Context) -> str:
        words = await self._reload(context)
        if self._settings.workers > 1:
            os.kill(os.getppid(), signal.SIGHUP)
        return words

    def _stamp(self) -> object:
        """Changes when the list of archives or a map does."""
        settings = self._settings
        local = settings.archives and not is_web_address(settings.archives)
        listed = Path(settings.archives).stat() if local and settings.archives else None
        maps = stamp_of(settings.maps, self._archive_set.archives)
        return (listed.st_ino, listed.st_size, listed.st_mtime_ns) if listed else (), maps


async def _accept_all(server: web.Server, listener: socket.socket) -> None:
    """Serve all connections that wait to be accepted."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(BlockingIOError):
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            await loop.connect_accepted_socket(server, connection)


def open_learned(settings: Settings, archive_set: ArchiveSet) -> Learned | None:
    """The learned model, shared by all processes that are forked after this."""
    if not settings.learn:
        return None
    target = TARGET_RECALL if settings.target_recall is None else settings.target_recall
    ranks = settings.target_recall is not None and settings.floor > 0
    model = Learned(_learned_ids(archive_set), explore=settings.explore, target_recall=target, ranks=ranks)
    if settings.state:
        load_learned(model, _learned_file(settings.state), log.warning)
    _start_from_samples(model, archive_set)
    return model


def _start_from_samples(model: Learned, archive_set: ArchiveSet) -> None:
    """Begin with the counts of samples, for archives without lookups so far."""
    for archive, probes in archive_set.maps.probes() if archive_set.maps is not None else ():
        model.start_from(archive, probes)


def _learned_file(state: str) -> Path:
    return Path(state) / "learned"


def _learned_ids(archive_set: ArchiveSet) -> tuple[str, ...]:
    return tuple(archive.id for archive in archive_set.archives)


def _cache(settings: Settings) -> Cache | None:
    where = settings.cache
    if where in ("none", "no", "off"):
        return None
    if where == "memory" and settings.state:
        Path(settings.state).mkdir(parents=True, exist_ok=True)
        where = str(Path(settings.state) / "cache.sqlite")
    return Cache(
        lifetimes=Lifetimes(settings.fresh, settings.stale, settings.negative),
        max_bytes=settings.cache_size,
        store=open_store(where, settings.cache_size, log.warning),
        on_problem=log.warning,
    )
