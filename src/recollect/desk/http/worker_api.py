"""The API of workers: claim, report, ask for permits, upload, finish. Every call carries a worker's token.

Hides: uploads that arrive whole or not at all. Invariants: whoever does not hold the lease changes nothing, and a file
is checked against the lease again after it was received.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

from aiohttp import web

from recollect.archives.registry import Archive
from recollect.desk import outages, people, queue
from recollect.desk.child import archive_to_json
from recollect.desk.database import Connection
from recollect.desk.delivery import DOWNLOADS, STATE
from recollect.desk.http.context import (
    JOB_ID,
    LOCAL,
    BadRequest,
    Desk,
    desk_of,
    egress_of,
    json_body,
    json_reply,
    number,
    require,
    require_worker,
    whole_number,
)
from recollect.desk.http.uploads import files_of
from recollect.desk.jobs import Job
from recollect.desk.queue import Lease
from recollect.desk.reports import clean_status, clean_summary
from recollect.desk.states import DELIVERED, FINAL, State
from recollect.desk.surveyor import listing_key
from recollect.errors import ResourceError

_MAX_CLAIM = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DONE = "ok"
_MAX_JOBS = 1000
# A job that failed can be tried again, with what its worker has.
_OVER = frozenset(state.value for state in FINAL | DELIVERED) - {State.FAILED.value}


def seen(c: Connection, name: str, host: str, egress: str, now: float) -> None:
    """Note that a worker lives."""
    c.change(
        """INSERT INTO worker VALUES (?, ?, ?, 'active', ?, ?) ON CONFLICT (name) DO UPDATE SET
           last_seen = excluded.last_seen, host = excluded.host, egress = excluded.egress""",
        name,
        host[:100],
        egress[:100],
        now,
        now,
    )


async def claim(request: web.Request) -> web.Response:
    """The next job, or 204 when none came within the worker's patience."""
    desk = desk_of(request)
    await require(request, "worker")
    fields = await json_body(request)
    name = _worker(fields)
    await require_worker(request, name)
    loop = asyncio.get_running_loop()
    until = loop.time() + number(fields, "patience", 0.0, _MAX_CLAIM, 0.0)
    egress = egress_of(request, str(fields.get("egress", "")))
    host = str(fields.get("host", ""))

    def take(c: Connection) -> tuple[Job, str] | None:
        if first:
            seen(c, name, host, egress, desk.now())
        if not _has_disk_space(desk):
            return None
        job = queue.claim(c, name, desk.now(), desk.settings, desk.database.skip_locked)
        return (job, people.language_of(c, job)) if job is not None else None

    first = True
    while not desk.stopping.is_set():
        waiting = desk.work_to_do
        taken = await desk.transact(take)
        first = False
        if taken is not None:
            job, language = taken
            desk.changed(job.id)
            return json_reply({**assignment(desk, job), "language": language})
        left = until - loop.time()
        if left <= 0 or request.transport is None or request.transport.is_closing():
            break
        try:
            async with asyncio.timeout(min(left, 5.0)):
                await waiting.wait()
        except TimeoutError:
            continue
    return web.Response(status=204)


def _has_disk_space(desk: Desk) -> bool:
    return shutil.disk_usage(desk.folder).free >= desk.settings.min_free


def assignment(desk: Desk, job: Job) -> dict[str, Any]:
    """What a worker needs to know of a job: no address, no secret of a person."""
    chosen = job.options["archives"]
    archives: list[Archive] = [a for a in desk.archives if (a.id in chosen if chosen else not a.ignore)]
    source = f"/jobs/{job.source}/state" if job.source and JOB_ID.fullmatch(job.source) else None
    states = [f"/jobs/{job.id}/state", *([source] if source else [])]
    states.append(f"/listings/{listing_key(job.options)}")
    return {
        "id": job.id,
        "fence": job.fence,
        "uri": job.uri,
        "options": dict(job.options),
        "archives": [archive_to_json(archive) for archive in archives],
        "limits": {
            "resources": desk.settings.max_resources,
            "bytes": desk.settings.max_bytes,
            "min_free": desk.settings.min_free,
            "pictures": desk.settings.pictures,
            "wait": max(0.0, desk.settings.wait_for - (desk.now() - (job.started or desk.now()))),
        },
        "lease": desk.settings.lease,
        "heartbeat": desk.settings.heartbeat,
        "states": states,
        "source": source if job.continues is None else None,  # the same dates: nothing is chosen again
        "stuck_after": desk.settings.stuck_after,
        "contact": desk.settings.contact,
        "decisions": dict(job.review),
        "sources": [path.name for path in files_of(desk, job.id)],
    }


def _worker(fields: dict[str, Any]) -> str:
    name = str(fields.get("worker", ""))
    if not _NAME.fullmatch(name):
        raise BadRequest("a worker needs a name", why="letters, digits, dots, dashes, underscores")
    return name


async def _lease(request: web.Request) -> tuple[Desk, Lease, dict[str, Any]]:
    desk = desk_of(request)
    await require(request, "worker")
    fields = await json_body(request)
    fence, name = fields.get("fence"), _worker(fields)
    if isinstance(fence, bool) or not isinstance(fence, int) or not 0 <= fence < 2**53:
        raise BadRequest("`fence` is missing")
    await require_worker(request, name)
    return desk, Lease(_job_id(request), fence, name), fields


def _job_id(request: web.Request) -> str:
    identifier = request.match_info["job"]
    if not JOB_ID.fullmatch(identifier):
        raise queue.LeaseLost("there is no such job", where=identifier[:40])
    return identifier


async def beat(request: web.Request) -> web.Response:
    desk, lease, fields = await _lease(request)
    status = fields.get("status")
    share = None if fields.get("progress") is None else number(fields, "progress", 0.0, 1.0)
    now = desk.now()
    egress = egress_of(request, str(fields.get("egress", "")))
    survey = fields.get("survey")

    def work(c: Connection) -> None:
        queue.beat(
            c,
            lease,
            now,
            desk.settings,
            clean_status(status) if isinstance(status, dict) else None,
            share,
            str(fields.get("log", ""))[-16_000:],
        )
        if isinstance(survey, dict) and isinstance(survey.get("estimate"), dict):
            seconds = number(survey["estimate"], "seconds", 0.0, 1e9)
            c.change("UPDATE job SET estimate = ? WHERE id = ?", seconds, lease.job)
        seen(c, lease.worker, str(fields.get("host", "")), egress, now)

    await desk.transact(work)
    desk.hub.changed(lease.job)
    return json_reply({"state": _DONE})


async def permit(request: web.Request) -> web.Response:
    """Wait for one request to an archive; or until when there is no use in asking."""
    desk, lease, fields = await _lease(request)
    await desk.run(queue.held, lease, desk.now())
    archive, kind = str(fields.get("archive")), fields.get("kind")
    if kind not in ("index", "replay") or archive not in {a.id for a in desk.archives}:
        raise BadRequest("unknown archive or kind of request")
    egress = egress_of(request, str(fields.get("egress", "")))
    name = _permit_id(lease, fields["permit"]) if "permit" in fields else ""
    refusal = await desk.permits.acquire(lease.job, archive, kind, egress, permit=name)
    if refusal is not None:
        # Seconds, too: the clock of a worker's machine may be another.
        seconds = max(0.0, refusal.until - desk.now())
        return json_reply({"until": refusal.until, "seconds": seconds, "reason": refusal.reason})
    try:
        await desk.run(queue.held, lease, desk.now())  # the job may have ended while it waited
    except queue.LeaseLost:
        desk.permits.finished(lease.job, archive, 0 if name else 1, [name])
        raise
    return json_reply({"granted": True})


def _permit_id(lease: Lease, given: object) -> str:
    """The id of a permit: as its worker numbers it, and only of that worker."""
    if isinstance(given, bool) or not isinstance(given, int | str) or not _NAME.fullmatch(str(given)):
        raise BadRequest("`permit` is a number or a name")
    return f"{lease.worker} {lease.fence} {given}"


async def finished(request: web.Request) -> web.Response:
    """Requests to archives that are over: {"permits": {ARCHIVE: [ID, ...]}}, or of permits that were asked for without
    an id {"archives": {ARCHIVE: count}}. The first may be repeated, also by a worker that lost the job meanwhile."""
    desk, lease, fields = await _lease(request)
    named, counts = fields.get("permits", {}), fields.get("archives", {})
    if not isinstance(named, dict) or not isinstance(counts, dict) or not {"permits", "archives"} & fields.keys():
        raise BadRequest("`permits` or `archives` is not an object")
    for archive, permits in named.items():
        if not isinstance(permits, list):
            raise BadRequest("the permits of an archive are a list", where=str(archive)[:80])
        desk.permits.finished(lease.job, str(archive), 0, [_permit_id(lease, one) for one in permits])
    if "archives" in fields:
        await desk.run(queue.held, lease, desk.now())
        for archive in counts:
            desk.permits.finished(lease.job, str(archive), int(number(counts, archive, 0, 10_000)))
    return json_reply({"state": _DONE})


async def paused(request: web.Request) -> web.Response:
    desk, lease, fields = await _lease(request)
    await desk.run(queue.held, lease, desk.now())
    seconds = number(fields, "seconds", 0.0, 86_400.0)
    egress = egress_of(request, str(fields.get("egress", "")))
    kind = "replay" if fields.get("kind") == "replay" else "index"
    if str(fields.get("archive")) in {a.id for a in desk.archives}:
        desk.permits.pause(str(fields["archive"]), kind, egress, seconds)  # type: ignore[arg-type]
        await desk.save_budgets()
    return json_reply({"state": _DONE})


async def pack(request: web.Request) -> web.Response:
    desk, lease, _ = await _lease(request)

    def work(c: Connection) -> None:
        if queue.held(c, lease, desk.now()).state != State.PACKING:
            queue.pack(c, lease, desk.now(), desk.settings)

    await desk.transact(work)
    desk.changed(lease.job)
    return json_reply({"state": _DONE})


def _uploadable(name: str) -> bool:
    return name in (*DOWNLOADS, STATE) or re.fullmatch(r"thumb-[0-9]\.png", name) is not None


async def upload(request: web.Request) -> web.Response:
    """PUT a file; it gets its name when it is whole, has its checksum, and the lease still holds."""
    desk = desk_of(request)
    await require(request, "worker")
    name = request.match_info["file"]
    if not _uploadable(name):
        raise BadRequest("unknown file", where=name[:80])
    fence = whole_number(request.query.get("fence", ""), "fence")
    lease = Lease(_job_id(request), fence, request.query.get("worker", ""))
    await require_worker(request, lease.worker)
    await desk.run(queue.held, lease, desk.now())
    folder = desk.results(lease.job)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{secrets.token_hex(8)}.part"
    digest = hashlib.sha256()
    try:
        with temporary.open("wb") as file:
            size = 0
            async for piece in request.content.iter_chunked(1 << 20):
                size += len(piece)
                if size > 2 * desk.settings.max_bytes:
                    raise BadRequest("the file is too large", where=name)
                digest.update(piece)
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(_sync, file)
        if digest.hexdigest() != request.headers.get("X-Checksum-Sha256", ""):
            raise BadRequest("the file is incomplete", where=name)

        def keep(c: Connection) -> None:
            queue.held(c, lease, desk.now())  # locks the job: nothing changes until the file has its name
            if temporary.exists():  # a transaction may run twice
                temporary.replace(folder / name)
                _digest_file(folder, name).write_text(digest.hexdigest())

        await desk.transact(keep)
    except OSError as error:
        raise ResourceError("cannot keep the file", where=name, why=error.strerror or str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)
    return json_reply({"state": _DONE})


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _digest_file(folder: Path, name: str) -> Path:
    """Where the checksum of an uploaded file is kept until its job is delivered."""
    return folder / f".{name}.sha256"


def _delivered(folder: Path, declared: Any) -> dict[str, dict[str, Any]]:
    """The files of a result as they were uploaded; raises BadRequest when what the worker reports differs."""
    if not isinstance(declared, list) or not all(isinstance(one, dict) for one in declared):
        raise BadRequest("`files` is not a list")
    files = {}
    for one in declared:
        name, digest = str(one.get("name")), str(one.get("sha256"))
        if not _uploadable(name):
            raise BadRequest("unknown file", where=name[:80])
        path, kept = folder / name, _digest_file(folder, name)
        if not path.is_file() or not kept.is_file() or path.stat().st_size != one.get("size"):
            raise BadRequest("a file of the result is missing", where=name)
        if kept.read_text() != digest:
            raise BadRequest("a file of the result differs from its checksum", where=name)
        files[name] = {"size": path.stat().st_size, "sha256": digest}
    return files


async def deliver(request: web.Request) -> web.Response:
    desk, lease, fields = await _lease(request)
    files = await asyncio.to_thread(_delivered, desk.results(lease.job), fields.get("files"))
    result = {"files": files, "summary": clean_summary(fields.get("summary"))}

    def work(c: Connection) -> Job:
        now = desk.now()
        job = queue.deliver(c, lease, now, desk.settings, result)
        if job.continues is not None:
            outages.complete(c, job, now, desk.settings, desk.folder / "results")
        else:
            outages.plan_retry(c, job, now, desk.settings)
            people.announce(c, job, now, desk.settings)
        return job

    job = await desk.transact(work)
    desk.ended(lease.job)
    if job.continues is not None:
        desk.changed(job.continues)
        await asyncio.to_thread(shutil.rmtree, desk.results(job.id), ignore_errors=True)
    return json_reply({"state": _DONE})


async def nothing(request: web.Request) -> web.Response:
    desk, lease, fields = await _lease(request)

    def work(c: Connection) -> None:
        now = desk.now()
        found = queue.find_nothing(c, lease, now, {"summary": clean_summary(fields.get("summary"))})
        people.announce(c, found, now, desk.settings)

    await desk.transact(work)
    desk.ended(lease.job)
    return json_reply({"state": _DONE})


async def wait(request: web.Request) -> web.Response:
    desk, lease, fields = await _lease(request)
    now = desk.now()
    until = now + number(fields, "seconds", 1.0, 30 * 86_400.0)
    await desk.run(queue.defer, lease, now, until, str(fields.get("reason", ""))[:300])
    desk.ended(lease.job)
    return json_reply({"state": _DONE})


async def fail(request: web.Request) -> web.Response:
    """An error of the recovery. When no archive answered, it is tried again later; both have an end."""
    desk, lease, fields = await _lease(request)
    reason = str(fields.get("reason", ""))[:1000]

    def work(c: Connection) -> None:
        now = desk.now()
        job = queue.held(c, lease, now)
        if fields.get("silent") and now - job.created < desk.settings.retry_for:
            outages.put_off(c, job, lease, now, {"summary": clean_summary(fields.get("summary"))})
            return
        people.announce(c, queue.fail(c, lease, now, desk.settings, reason), now, desk.settings)

    await desk.transact(work)
    desk.ended(lease.job)
    return json_reply({"state": _DONE})


async def release(request: web.Request) -> web.Response:
    desk, lease, _ = await _lease(request)
    await desk.run(queue.release, lease, desk.now())
    desk.ended(lease.job)
    return json_reply({"state": _DONE})


async def state(request: web.Request) -> web.StreamResponse:
    """What was fetched for a job so far."""
    desk = desk_of(request)
    await require(request, "worker")
    return _sent(desk.results(request.match_info["job"]) / STATE)


async def listing(request: web.Request) -> web.StreamResponse:
    """The shared listings of a site."""
    desk = desk_of(request)
    await require(request, "worker")
    key = request.match_info["key"]
    assert desk.surveyor is not None
    path = desk.surveyor.state_file(key)
    try:
        fresh = path.stat().st_mtime > desk.now() - desk.settings.listings_for
    except FileNotFoundError:
        fresh = False
    return _sent(path) if fresh else web.Response(status=404)


def _sent(path: Path) -> web.StreamResponse:
    return web.FileResponse(path) if path.is_file() else web.Response(status=404)


async def me(request: web.Request) -> web.Response:
    """Who a worker is: the name that its token was made for, or none for the desk's own token."""
    owner = await require(request, "worker")
    return json_reply({"name": None if owner == LOCAL else owner})


async def over(request: web.Request) -> web.Response:
    """Which of some jobs have ended or are deleted: a worker removes what it has of them."""
    desk = desk_of(request)
    await require(request, "worker")
    jobs = (await json_body(request)).get("jobs")
    if not isinstance(jobs, list):
        raise BadRequest("`jobs` is not a list")
    asked = {str(one) for one in jobs[:_MAX_JOBS]}
    rows = await desk.transact(lambda c: c.rows("SELECT id, state FROM job"))
    kept = {row["id"] for row in rows if row["state"] not in _OVER}
    return json_reply({"over": sorted(asked - kept)})


_JOB = "/api/worker/jobs/{job}"
ROUTES = [
    web.get("/api/worker/me", me),
    web.post("/api/worker/over", over),
    web.post("/api/worker/claim", claim),
    web.post(f"{_JOB}/beat", beat),
    web.post(f"{_JOB}/permit", permit),
    web.post(f"{_JOB}/finished", finished),
    web.post(f"{_JOB}/paused", paused),
    web.post(f"{_JOB}/pack", pack),
    web.put(f"{_JOB}/files/{{file}}", upload),
    web.post(f"{_JOB}/deliver", deliver),
    web.post(f"{_JOB}/nothing", nothing),
    web.post(f"{_JOB}/wait", wait),
    web.post(f"{_JOB}/fail", fail),
    web.post(f"{_JOB}/release", release),
    web.get(f"{_JOB}/state", state),
    web.get("/api/worker/listings/{key:[0-9a-f]+}", listing),
]
