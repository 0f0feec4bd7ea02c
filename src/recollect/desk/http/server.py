"""The desk as a process: database, budgets, mails, upkeep and workers of its own, until SIGTERM.

Hides: starting, the tasks that run beside requests, and ending. SIGTERM: no new requests, workers of this desk
give their jobs back, requests under way have `drain` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from recollect.archives.opening import CONTACT_VARIABLE, operator_agent
from recollect.archives.registry import load_archives
from recollect.desk import people
from recollect.desk.budget import ArchiveBudgets, Permits
from recollect.desk.database import Connection, hold_folder, open_database
from recollect.desk.http import (
    admin,
    api,
    language,
    operator_api,
    pages,
    preview,
    session,
    tasks,
    uploads,
    views,
    worker_api,
)
from recollect.desk.http.clock import SteadyClock
from recollect.desk.http.context import DESK, Desk, error_reply, status_of
from recollect.desk.outbox import transport_of
from recollect.desk.processes import private_folder, private_process
from recollect.desk.settings import DeskSettings
from recollect.desk.surveyor import Surveyor
from recollect.errors import RecollectError, ResourceError, UsageError
from recollect.sockets import address_of, bind
from recollect.ui.messages import message

log = logging.getLogger("recollect.desk")

_MAX_BODY = 1024 * 1024  # a worker reports what is missing


@web.middleware
async def _errors(request: web.Request, handler: Callable[[web.Request], object]) -> web.StreamResponse:
    """Every error as JSON for programs and as a page for people; nothing of a secret in a log."""
    desk = request.app[DESK]
    route = request.match_info.route.resource.canonical if request.match_info.route.resource else "other"
    for_programs = request.path.startswith(("/api/", "/health", "/ready", "/metrics"))
    status = 500
    views.operator.set(replace(views.operator_of(desk.settings), mail_trouble=bool(desk.mail_trouble)))
    try:
        response: web.StreamResponse = await handler(request)  # type: ignore[misc]
        status = response.status
    except web.HTTPException as error:
        status = error.status
        if for_programs or status < 400:
            raise
        response = pages.problem(desk, status, message("There is no such page") if status == 404 else error.reason, "")
    except RecollectError as error:
        status = status_of(error)[0]
        response = error_reply(error) if for_programs else pages.problem_of(desk, error)
    except (ConnectionError, asyncio.CancelledError):
        status = 499
        raise
    except Exception as error:  # one of the edges: an internal error must not look like an answer
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
    app = web.Application(middlewares=[language.middleware, _errors], client_max_size=_MAX_BODY)
    app[DESK] = desk
    for module in (api, uploads, operator_api, worker_api, pages, admin):
        app.add_routes(module.ROUTES)
    return app


async def serve(settings: DeskSettings, on_ready: Callable[[str, Desk], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    folder = Path(settings.data)
    settings = _checked(settings)
    private_process()
    private_folder(folder)
    _make_private(folder)
    if settings.contact:  # for surveys, and workers of this desk
        os.environ[CONTACT_VARIABLE] = settings.contact
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(hold_folder(folder))
        desk = await open_desk(settings)
        stack.callback(desk.database.close)
        stack.callback(desk.pool.shutdown, wait=True)
        listener = bind(settings.host, settings.port)
        address = address_of(listener)
        desk.base_url = (settings.base_url or address).rstrip("/")
        await _site(stack, create_app(desk), listener, settings.drain)
        if settings.preview_port is not None or not settings.base_url:
            # Another port is another origin; behind a public address the operator says where that is.
            place = bind(settings.host, settings.preview_port or 0)
            desk.preview_url = settings.preview_url or ("" if settings.base_url else address_of(place))
            await _site(stack, preview.create_app(desk), place, settings.drain)
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, desk.stopping.set)
        own = _local_address(listener)
        await desk.run(tasks.take_back, desk)
        beside = tasks.start(desk)
        workers = [loop.create_task(tasks.worker(desk, number, own)) for number in range(settings.workers)]
        (desk.folder / "desk.url").write_text(own + "\n")
        on_ready(address, desk)
        await desk.stopping.wait()
        desk.changed()  # whoever waits for a job, a change or a permit is let go
        desk.hub.wake()
        desk.permits.stop()
        if workers:
            await asyncio.wait(workers, timeout=settings.drain)
        for task in (*workers, *beside):
            task.cancel()
        await asyncio.gather(*workers, *beside, return_exceptions=True)
        if desk.surveyor is not None:
            await desk.surveyor.close()
        await desk.save_budgets()


def _make_private(folder: Path) -> None:
    """What an earlier version of the desk may have left readable."""
    for path in (*folder.glob("desk.sqlite*"), *folder.glob("*.token"), *folder.glob("outbox/*.eml")):
        path.chmod(0o600)
    for path in (folder / name for name in ("outbox", "results", "listings", "work")):
        if path.is_dir():
            private_folder(path)


def _checked(settings: DeskSettings) -> DeskSettings:
    """The settings, with addresses in one form; raises UsageError for what cannot work."""
    if settings.smtp and not settings.from_address:
        raise UsageError("mails need a sender", hint="--from-address desk@example.org")
    base, preview = (_origin(getattr(settings, name), name) for name in ("base_url", "preview_url"))
    if preview and preview == base:
        raise UsageError("previews need an origin of their own", hint="a second host name for --preview-url")
    operator_agent("", settings.contact)  # raises for what cannot stand in a header
    if preview and settings.preview_port is None:
        raise UsageError("previews need a port", hint="--preview-port 8081, which --preview-url leads to")
    return replace(settings, base_url=base, preview_url=preview)


def _origin(address: str, name: str) -> str:
    """Scheme, host and port as browsers name an origin; pages of a desk are at the root of theirs."""
    if not address:
        return ""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        flag = "--" + name.replace("_", "-")
        raise UsageError("not the address of a desk", where=address, hint=f"{flag} https://desk.example.org")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port not in (None, usual) else "")


async def open_desk(settings: DeskSettings, clock: Callable[[], float] | None = None) -> Desk:
    """A desk with its database, archives and credentials, not yet served."""
    clock = clock or SteadyClock()
    database = open_database(settings.database or Path(settings.data) / "desk.sqlite")
    if not database.claim_for_desk():
        database.close()
        raise ResourceError("another desk uses this database", hint="one desk, many workers: `recollect desk worker`")
    archives = load_archives(settings.archives)
    budgets = ArchiveBudgets(archives)
    database.transact(lambda c: budgets.load(c, clock()))
    desk: Desk

    def save() -> asyncio.Future[None]:
        return asyncio.ensure_future(desk.save_budgets())

    permits = Permits(budgets, clock, save)
    desk = Desk(settings, database, archives, permits, transport_of(settings), clock)
    listings = Path(settings.data) / "listings"
    desk.surveyor = Surveyor(listings, desk.usual_archives(), permits, desk.transact, clock, settings.listings_for)
    for role in ("worker", "operator"):
        _credential(desk, role)
    session.set_password(desk)
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


async def _site(stack: contextlib.AsyncExitStack, app: web.Application, listener: socket.socket, drain: float) -> None:
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=drain)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.SockSite(runner, listener, backlog=1024).start()


def _local_address(listener: socket.socket) -> str:
    """Where workers on this machine find the desk."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
