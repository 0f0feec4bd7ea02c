"""What every endpoint of the desk can reach, and the headers and errors all of them share.

Hides: threads (the database is asked in a few of them), who a client is, and how an error becomes a reply.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from recollect.archives.registry import Archive
from recollect.desk import budget, people, queue
from recollect.desk.budget import Permits
from recollect.desk.database import Connection, Database, DatabaseUnavailable, one
from recollect.desk.http.hub import Hub
from recollect.desk.jobs import Job, Refused
from recollect.desk.outbox import Transport
from recollect.desk.settings import DeskSettings
from recollect.desk.states import BadTransition
from recollect.desk.surveyor import EGRESS, Busy, Surveyor
from recollect.errors import RecollectError, ResourceError

log = logging.getLogger("recollect.desk")

_Result = TypeVar("_Result")
BODY_SECONDS = 30.0
"""A form or a report has to arrive within this time; files of results may take longer."""
LOCAL = "local"
"""The name of the token of the desk's own workers, in its folder."""
JOB_ID = re.compile(r"[0-9a-f]{16}")
_LOOPBACK = re.compile(r"127\.|::1$|::ffff:127\.")
JSON_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@dataclass
class Desk:
    """The desk while it runs."""

    settings: DeskSettings
    database: Database
    archives: tuple[Archive, ...]
    permits: Permits
    transport: Transport
    clock: Callable[[], float]
    base_url: str = ""
    mail_trouble: str = ""
    """Why the mail server took no mail the last time; empty when it did."""
    preview_url: str = ""
    """The origin of previews; empty without them."""
    hub: Hub = field(default_factory=Hub)
    surveyor: Surveyor | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    work_to_do: asyncio.Event = field(default_factory=asyncio.Event)
    requests: dict[tuple[str, int], int] = field(default_factory=dict)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8, thread_name_prefix="desk-db"))

    @property
    def folder(self) -> Path:
        return Path(self.settings.data)

    def results(self, job: str) -> Path:
        """Where the files of a job are; the id comes from the desk, and is checked again."""
        if not JOB_ID.fullmatch(job):
            raise queue.UnknownJob("no such job", where=job[:40])
        return self.folder / "results" / job

    def usual_archives(self) -> list[Archive]:
        return [archive for archive in self.archives if not archive.ignore]

    def now(self) -> float:
        return self.clock()

    async def transact(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run a function in one transaction, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, self.database.transact, work)

    async def run(self, work: Callable[..., _Result], *given: Any, **named: Any) -> _Result:
        """Run a function of the service in one transaction of its own: run(queue.get, job)."""
        return await self.transact(lambda c: work(c, *given, **named))

    async def save_budgets(self) -> None:
        """Keep what archives were asked and when they may be asked again."""
        await self.run(budget.write, self.permits.budgets.snapshot())

    def taken_away(self, job: str, at: float | None = None) -> None:
        """A job that was taken from its worker, which notices within seconds: its requests to archives end then."""
        self.permits.taken_away(job, self.now() if at is None else at)
        self.changed(job)

    def ended(self, job: str) -> None:
        """A job that its worker gave back: its requests to archives are over."""
        self.permits.ended(job)
        self.changed(job)

    def changed(self, *jobs: str) -> None:
        """Tell those who watch, and workers that wait for something to do."""
        for job in jobs:
            self.hub.changed(job)
        self.work_to_do.set()
        self.work_to_do = asyncio.Event()


DESK: web.AppKey[Desk] = web.AppKey("desk", Desk)


def desk_of(request: web.Request) -> Desk:
    return request.app[DESK]


# Who asks ------------------------------------------------------------------------------------------------------------


def client_of(request: web.Request) -> str:
    """The address of the client; behind a trusted proxy, the last one it added."""
    remote = request.remote or ""
    forwarded = request.headers.get("X-Forwarded-For", "")
    if forwarded and desk_of(request).settings.base_url and _LOOPBACK.match(remote):
        return forwarded.rpartition(",")[2].strip()[:60]
    return remote


def network_of(request: web.Request) -> str:
    """The network that limits count; none for this machine itself."""
    client = client_of(request)
    return "" if _LOOPBACK.match(client) else people.network_of(client)


def egress_of(request: web.Request, named: str) -> str:
    """From where a worker asks archives: as it is called, or the address it comes from."""
    client = client_of(request)
    return named or (EGRESS if _LOOPBACK.match(client) else client)


def bearer(request: web.Request) -> str:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


async def has_role(request: web.Request, role: str) -> str:
    """The name of the credential a request carries, if it is of this role; else empty."""
    token = bearer(request)
    if not token:
        return ""
    found = await desk_of(request).run(_credential, people.hash_of(token), role)
    return found or ""


def _credential(c: Connection, given: str, role: str) -> str | None:
    row = one(c.rows("SELECT name, hash FROM credential WHERE hash = ? AND role = ?", given, role))
    return row["name"] if row is not None and hmac.compare_digest(row["hash"], given) else None


async def require_worker(request: web.Request, name: str) -> None:
    """Raise Denied unless the token is that of this worker: its own, or the desk's for all names that have none."""
    owner = await require(request, "worker")
    if owner == LOCAL:
        bound = await desk_of(request).transact(
            lambda c: c.rows("SELECT name FROM credential WHERE role = 'worker' AND name != ?", LOCAL)
        )
        if any(_is_of(name, row["name"]) for row in bound):
            raise Denied("this name belongs to another token", hint="--name NAME, or the token that was made for it")
    elif not _is_of(name, owner):
        raise Denied("the token belongs to another worker", hint=f"--name {owner}")


def _is_of(name: str, owner: str) -> bool:
    """Whether a worker is the one that a token was made for, or one of several on its machine: NAME, NAME-2."""
    return name == owner or name.startswith(f"{owner}-")


async def require(request: web.Request, role: str) -> str:
    name = await has_role(request, role)
    if not name:
        raise Denied(f"only the {role} may do this", hint="send the token: Authorization: Bearer TOKEN")
    return name


class Denied(RecollectError):
    """No token, or a wrong one."""


class BadRequest(RecollectError):
    """A request that cannot be read."""


class TooSlow(RecollectError):
    """A body that did not arrive in time."""


class Gone(RecollectError):
    """What was there has been removed."""


async def authorized(request: web.Request) -> tuple[Job, people.Recipient | None]:
    """The job of the address, for its recipient (token) or the operator; raises Denied."""
    desk = desk_of(request)
    identifier = request.match_info["job"]
    token = request.query.get("token", "") or bearer(request)

    def find(c: Connection) -> tuple[Job, people.Recipient | None] | None:
        try:
            person = people.by_token(c, token, people.Purpose.STATUS)
        except people.BadToken:
            if _credential(c, people.hash_of(token), "operator") is None:
                return None
            return queue.get(c, identifier), None
        return (queue.get(c, identifier), person) if person.job == identifier else None

    found = await desk.transact(find) if token else None
    if found is None:
        raise Denied("this address needs the token of its job", hint="use the whole link of your mail")
    return found


def same_origin(request: web.Request) -> bool:
    """Whether a form was sent from a page of the desk: browsers name the origin of a POST, and `null` for a sandboxed
    page."""
    origin = request.headers.get("Origin")
    if origin is None:
        return request.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")
    desk = desk_of(request)
    return origin in (desk.base_url, f"http://{request.host}", f"https://{request.host}")


def check_origin(request: web.Request) -> None:
    """Refuse what a page of another origin sends; programs name none."""
    if not same_origin(request):
        raise Denied("this request was sent from another page", hint="programs send no Origin")


# Replies -------------------------------------------------------------------------------------------------------------

_STATUS: tuple[tuple[type[RecollectError], int, str], ...] = (
    (Refused, 400, "refused"),
    (BadRequest, 400, "bad-request"),
    (TooSlow, 408, "too-slow"),
    (Denied, 403, "forbidden"),
    (Gone, 410, "gone"),
    (people.Removed, 410, "removed"),
    (Busy, 503, "busy"),
    (people.BadToken, 404, "bad-token"),
    (people.TooMany, 429, "too-many"),
    (people.Conflict, 422, "conflict"),
    (queue.JobOver, 409, "job-over"),
    (queue.LeaseLost, 409, "lease-lost"),
    (queue.UnknownJob, 404, "not-found"),
    (BadTransition, 409, "bad-transition"),
    (DatabaseUnavailable, 503, "unavailable"),
    (ResourceError, 507, "no-space"),
)


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    body = json.dumps(value, default=str).encode() + b"\n"
    return web.Response(status=status, body=body, headers={**JSON_HEADERS, **(headers or {})})


def status_of(error: RecollectError) -> tuple[int, str]:
    return next(((status, kind) for cls, status, kind in _STATUS if isinstance(error, cls)), (400, "error"))


def error_reply(error: RecollectError) -> web.Response:
    status, kind = status_of(error)
    fields: dict[str, Any] = {"status": status, "kind": kind, "message": error.what}
    for name in ("why", "hint"):
        if getattr(error, name):
            fields[name] = getattr(error, name)
    if isinstance(error, Refused):
        fields["field"] = error.field
    headers = {"Retry-After": "3600"} if status == 429 else {}
    return json_reply({"error": fields}, status, headers)


async def json_body(request: web.Request) -> dict[str, Any]:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            value = await request.json()
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON", why=str(error)[:200]) from error
    except TimeoutError:
        raise TooSlow("the body did not arrive in time", why=f"within {BODY_SECONDS:.0f} s") from None
    if not isinstance(value, dict):
        raise BadRequest("the body is not a JSON object")
    return value


def number(fields: Mapping[str, Any], name: str, least: float, most: float, default: float | None = None) -> float:
    """A finite number of a body, within bounds; raises BadRequest."""
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadRequest(f"`{name}` is not a number")
    return float(min(max(value, least), most))


def whole_number(text: str, name: str, most: int = 10**15) -> int:
    """A number of an address, from 0 to `most`; raises BadRequest."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadRequest(f"`{name}` is not a whole number", where=text[:40])
    return min(int(text), most)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
