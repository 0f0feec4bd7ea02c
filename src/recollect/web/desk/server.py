"""The desk as a process: database, budgets, mails, upkeep and workers of its own, until SIGTERM.

Hides: starting, the tasks that run beside requests, and ending. SIGTERM: no new requests, workers of this desk
give their jobs back, requests under way have `drain` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from recollect.archives.registry import load_archives
from recollect.errors import RecollectError, UsageError
from recollect.service import people, queue
from recollect.service.budget import Budgets, Permits
from recollect.service.database import Connection, open_database
from recollect.service.jobs import job_of
from recollect.service.letters import renderer
from recollect.service.outbox import Kind, enqueue, send_due, transport_of
from recollect.service.settings import DeskSettings
from recollect.service.states import Action
from recollect.service.surveyor import Surveyor
from recollect.service.upkeep import tick
from recollect.web.desk import admin, api, operator_api, pages, preview, worker_api
from recollect.web.desk.context import DESK, Desk, error_reply, status_of
from recollect.web.serve import address_of, bind

log = logging.getLogger("recollect.desk")

_TICK = 1.0
_RESTART = 2.0
_MAX_BODY = 1024 * 1024  # a worker reports what is missing


@web.middleware
async def _errors(request: web.Request, handler: Callable[[web.Request], object]) -> web.StreamResponse:
    """Every error as JSON for programs and as a page for people; nothing of a secret in a log."""
    desk = request.app[DESK]
    route = request.match_info.route.resource.canonical if request.match_info.route.resource else "other"
    for_programs = request.path.startswith(("/api/", "/health", "/ready", "/metrics"))
    status = 500
    try:
        response: web.StreamResponse = await handler(request)  # type: ignore[misc]
        status = response.status
    except web.HTTPException as error:
        status = error.status
        if for_programs or status < 400:
            raise
        response = pages.problem(desk, status, "There is no such page" if status == 404 else error.reason, "")
    except RecollectError as error:
        status = status_of(error)[0]
        response = error_reply(error) if for_programs else pages.problem_of(desk, error)
    except (ConnectionError, asyncio.CancelledError):
        status = 499
        raise
    except Exception as error:  # one of the edges: a fault of ours must not look like an answer
        log.exception("request failed: %s %s", request.method, route)
        wrong = RecollectError("internal error", why=type(error).__name__)
        response = error_reply(wrong) if for_programs else pages.problem_of(desk, wrong)
        response.set_status(500)
    finally:
        key = (route, status)
        desk.requests[key] = desk.requests.get(key, 0) + 1
    return response


def create_app(desk: Desk) -> web.Application:
    """The desk's pages and APIs."""
    app = web.Application(middlewares=[_errors], client_max_size=_MAX_BODY)
    app[DESK] = desk
    for module in (api, operator_api, worker_api, pages, admin):
        app.add_routes(module.ROUTES)
    return app


async def serve(settings: DeskSettings, on_ready: Callable[[str, Desk], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    folder = Path(settings.data)
    folder.mkdir(parents=True, exist_ok=True)
    _check(settings)
    desk = await open_desk(settings)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(desk.database.close)
        stack.callback(desk.pool.shutdown, wait=True)
        listener = bind(settings.host, settings.port)
        address = address_of(listener)
        desk.base_url = (settings.base_url or address).rstrip("/")
        await _site(stack, create_app(desk), listener)
        if settings.preview_port is not None:
            await _site(stack, preview.create_app(desk), bind(settings.host, settings.preview_port))
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, desk.stopping.set)
        own = _local_address(listener)
        await desk.run(_take_back, desk)
        tasks = [loop.create_task(_upkeep(desk)), loop.create_task(_mails(desk))]
        tasks += [loop.create_task(_worker(desk, number, own)) for number in range(settings.workers)]
        (desk.folder / "desk.url").write_text(own + "\n")
        on_ready(address, desk)
        await desk.stopping.wait()
        desk.changed()  # whoever waits for a job is let go
        await asyncio.wait(tasks[2:] or tasks[:1], timeout=settings.drain)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if desk.surveyor is not None:
            await desk.surveyor.close()
        await desk.run(desk.permits.budgets.save)


def _check(settings: DeskSettings) -> None:
    if settings.smtp and not settings.from_address:
        raise UsageError("mails need a sender", hint="--from-address desk@example.org")
    if settings.preview_url and settings.preview_url.rstrip("/") == settings.base_url.rstrip("/"):
        raise UsageError("previews need an origin of their own", hint="a second host name for --preview-url")


async def open_desk(settings: DeskSettings, clock: Callable[[], float] = time.time) -> Desk:
    """A desk with its database, archives and credentials, not yet served."""
    database = open_database(settings.database or Path(settings.data) / "desk.sqlite")
    archives = load_archives(settings.archives)
    budgets = Budgets(archives)
    database.transact(lambda c: budgets.load(c, clock()))
    desk: Desk

    def save() -> asyncio.Future[None]:
        return asyncio.ensure_future(desk.run(budgets.save))

    permits = Permits(budgets, clock, save)
    desk = Desk(settings, database, archives, permits, transport_of(settings), clock)
    listings = Path(settings.data) / "listings"
    desk.surveyor = Surveyor(listings, desk.usual_archives(), permits, desk.transact, clock, settings.listings_for)
    for role in ("worker", "operator"):
        _credential(desk, role)
    admin.set_password(desk)
    return desk


def _credential(desk: Desk, role: str) -> None:
    """The token of this desk's own workers and of its operator, in a file that only the desk's user can read."""
    path = desk.folder / f"{role}.token"
    if not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
    digest = people.hash_of(path.read_text().strip())

    def keep(c: Connection) -> None:
        c.change(
            """INSERT INTO credential VALUES ('local', ?, ?, ?) ON CONFLICT (name) DO NOTHING"""
            if role == "worker"
            else """INSERT INTO credential VALUES ('operator', ?, ?, ?) ON CONFLICT (name) DO NOTHING""",
            role,
            digest,
            desk.now(),
        )
        name = "local" if role == "worker" else "operator"
        c.change("UPDATE credential SET hash = ? WHERE name = ?", digest, name)

    desk.database.transact(keep)


async def _site(stack: contextlib.AsyncExitStack, app: web.Application, listener: socket.socket) -> None:
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.SockSite(runner, listener, backlog=1024).start()


def _local_address(listener: socket.socket) -> str:
    """Where workers on this machine find the desk."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


# Beside requests -----------------------------------------------------------------------------------------------------


async def _upkeep(desk: Desk) -> None:
    while True:
        try:
            done = await desk.run(tick, desk.now(), desk.settings)
            for job in done.expired:
                await asyncio.to_thread(shutil.rmtree, desk.results(job), ignore_errors=True)
            if done.changed:
                desk.changed(*done.changed)
            for job in done.relist:
                await _relist(desk, job)
            await desk.run(desk.permits.budgets.save)
            await asyncio.to_thread(_sweep, desk)
        except RecollectError as error:
            log.warning("upkeep: %s", error)
        await asyncio.sleep(_TICK)


def _sweep(desk: Desk) -> None:
    """Remove listings that are too old, and halves of uploads."""
    oldest = desk.now() - desk.settings.listings_for
    for place in (desk.folder / "listings").glob("*"):
        if place.stat().st_mtime < oldest:
            shutil.rmtree(place, ignore_errors=True)
    for part in (desk.folder / "results").glob("*/.*.part"):
        with contextlib.suppress(FileNotFoundError):
            if part.stat().st_mtime < desk.now() - 86_400:
                part.unlink()


async def _relist(desk: Desk, job_id: str) -> None:
    """Ask the archives again for who wants to know of more; write only of a real gain."""
    now = desk.now()
    job = await desk.run(queue.get, job_id)
    await desk.transact(
        lambda c: c.change("UPDATE job SET relist_at = ? WHERE id = ?", now + desk.settings.relist_after, job_id)
    )
    assert desk.surveyor is not None
    listed = await desk.surveyor.fresh(job.options)
    had = int(job.result.get("summary", {}).get("recovered", 0))
    gain = int(listed.found.get("resources", 0)) - had
    if listed.state != "done" or gain < max(1, desk.settings.relist_gain * had):
        return

    def write(c: Connection) -> None:
        for person in people.recipients(c, job_id):
            if person.tell_more and person.email:
                once = f"more {person.id} {gain}"
                enqueue(
                    c,
                    Kind.MORE_FOUND,
                    now,
                    desk.settings,
                    recipient=person.id,
                    job=job_id,
                    once=once,
                    facts={"gain": gain},
                )

    await desk.transact(write)


async def _mails(desk: Desk) -> None:
    render = renderer(desk.settings, desk.base_url)
    loop = asyncio.get_running_loop()
    while True:
        try:
            now = desk.now()
            await loop.run_in_executor(desk.pool, send_due, desk.database, desk.transport, render, now, desk.settings)
        except RecollectError as error:
            log.warning("mails: %s", error)
        await asyncio.sleep(_TICK)


def _local_name(desk: Desk) -> str:
    """How workers of this desk's own process are called; another desk has other names."""
    return f"local-{hashlib.sha256(str(desk.folder.resolve()).encode()).hexdigest()[:6]}"


def _take_back(c: Connection, desk: Desk) -> None:
    """Jobs of the desk's workers of an earlier run: those workers ended with the desk."""
    rows = c.rows("SELECT * FROM job WHERE state IN ('running', 'packing')")
    for row in rows:
        if str(row["worker"]).startswith(_local_name(desk) + "-"):
            queue.step(c, job_of(row), Action.RELEASE, desk.now(), "desk", "the desk was started again")


async def _worker(desk: Desk, number: int, address: str) -> None:
    """One worker process of this desk, started again when it ends."""
    work = desk.folder / "work"
    command = [sys.executable, "-m", "recollect", "worker", "--desk", address]
    command += ["--token-file", str(desk.folder / "worker.token"), "--work", str(work)]
    command += ["--name", f"{_local_name(desk)}-{number + 1}", "--with-parent"]
    while not desk.stopping.is_set():
        process = await asyncio.create_subprocess_exec(*command, start_new_session=True, stdin=PIPE)
        ended = asyncio.ensure_future(process.wait())
        stopping = asyncio.ensure_future(desk.stopping.wait())
        try:
            await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done() and not ended.done():
                process.terminate()
                await ended
                return
            log.warning("worker %d ended with %s, starting it again", number + 1, process.returncode)
            await asyncio.sleep(_RESTART)
        finally:
            stopping.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
