"""The API of the operator: jobs, workers, archives, mails, history, statistics; and health for machines.

Hides: only formats. Everything except health needs the operator's token.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from aiohttp import web

from recollect import __version__
from recollect.datetimes import format_iso
from recollect.desk import outbox, people, queue
from recollect.desk.database import Connection, Row
from recollect.desk.http import removing
from recollect.desk.http.context import (
    BadRequest,
    Desk,
    desk_of,
    has_role,
    json_body,
    json_reply,
    require,
    whole_number,
)
from recollect.desk.jobs import Job
from recollect.desk.statistics import statistics
from recollect.errors import RecollectError

_FIELDS = ("number", "at", "job", "action", "before", "after", "actor", "detail")


def _iso(moment: float | None) -> str | None:
    from datetime import UTC, datetime

    return format_iso(datetime.fromtimestamp(moment, UTC)) if moment is not None else None


def job_json(job: Job, rank: int | None, recipients: int, now: float) -> dict[str, Any]:
    """What the operator sees of a job; no addresses of people."""
    shown = {
        name: getattr(job, name)
        for name in ("id", "uri", "fence", "crashes", "worker", "pinned", "reason", "progress", "held")
    }
    moments = ("created", "updated", "started", "ready_at", "expires_at", "resume_at", "lease_until")
    return {
        **shown,
        **{name: _iso(getattr(job, name)) for name in moments},
        "state": job.state.value,
        "options": dict(job.options),
        "rank": rank,
        "age": round(now - job.created, 1),
        "recipients": recipients,
        "counts": {name: job.status.get(name, {}) for name in ("recovered", "queued", "missing")},
    }


def _one_job(c: Connection, identifier: str, now: float) -> dict[str, Any]:
    job = queue.get(c, identifier)
    return job_json(job, queue.rank_of(c, job), len(people.recipients(c, identifier)), now)


async def jobs(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    state = request.query.get("state", "")
    limit = whole_number(request.query.get("limit") or "200", "limit", 10_000)
    offset = whole_number(request.query.get("offset") or "0", "offset")

    def work(c: Connection) -> dict[str, Any]:
        found = queue.jobs(c, state=state, limit=limit, offset=offset, search=request.query.get("q", ""))
        wanted, ranks = people.counts_by_job(c), queue.ranks(c)
        now = desk.now()
        return {
            "counts": queue.counts(c),
            "jobs": [job_json(job, ranks.get(job.id), wanted.get(job.id, 0), now) for job in found],
        }

    return json_reply(await desk.transact(work))


async def change(request: web.Request) -> web.Response:
    """POST /api/jobs/ID/ACTION for the operator."""
    desk = desk_of(request)
    actor = f"operator {await require(request, 'operator')}"
    fields = await json_body(request) if request.can_read_body else {}
    job = request.match_info["job"]
    await act(desk, request.match_info["action"], job, fields, actor)
    return json_reply(await desk.run(_one_job, job, desk.now()))


async def act(desk: Desk, action: str, job: str, fields: dict[str, Any], actor: str) -> None:
    """What the operator does with a job, from the API and from the admin pages."""
    now = desk.now()
    if action == "move":
        await desk.run(queue.move, job, _rank(fields), now, actor)
    elif action == "start":
        await desk.run(queue.pin, job, str(fields.get("worker") or "") or None, now, actor)
    elif action in ("retry", "pause", "resume", "cancel"):
        work: Callable[..., None] = getattr(queue, action)
        await desk.run(work, job, now, actor)
    else:
        raise BadRequest("unknown action", where=action[:40])
    if action in ("pause", "cancel"):
        desk.taken_away(job)
    desk.changed(job)


def _rank(fields: dict[str, Any]) -> int:
    try:
        return max(1, min(int(fields["rank"]), 10**9))
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise BadRequest("`rank` is a number, 1 is next") from error


async def remove(request: web.Request) -> web.Response:
    desk = desk_of(request)
    actor = f"operator {await require(request, 'operator')}"
    await removing.delete(desk, request.match_info["job"], actor)
    return web.Response(status=204)


# Workers, archives, mails --------------------------------------------------------------------------------------------


def worker_rows(c: Connection, now: float) -> list[dict[str, Any]]:
    rows = c.rows(
        """SELECT w.*, (SELECT j.id FROM job j WHERE j.worker = w.name AND j.state IN ('running', 'packing') LIMIT 1)
           AS job FROM worker w ORDER BY last_seen DESC"""
    )
    return [{**row, "silent_seconds": round(now - row["last_seen"], 1)} for row in rows]


async def workers(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    return json_reply({"workers": await desk.run(worker_rows, desk.now())})


async def change_worker(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    await act_worker(desk, request.match_info["action"], request.match_info["worker"])
    return json_reply({"workers": await desk.run(worker_rows, desk.now())})


async def act_worker(desk: Desk, action: str, name: str) -> None:
    sql = {
        "drain": "UPDATE worker SET state = 'draining' WHERE name = ?",
        "wake": "UPDATE worker SET state = 'active' WHERE name = ?",
        "remove": "DELETE FROM worker WHERE name = ?",
    }.get(action)
    if sql is None:
        raise BadRequest("unknown action", where=action[:40])
    await desk.transact(lambda c: c.change(sql, name))


def archive_rows(desk: Desk) -> list[dict[str, Any]]:
    budgets = desk.permits.budgets
    now = desk.now()
    lanes = budgets.lanes
    return [
        {
            "id": archive.id,
            "name": archive.name or archive.id,
            "ignored": archive.ignore,
            "resting": budgets.resting.get(archive.id),
            "concurrency": archive.concurrency,
            "in_use": budgets.in_use(archive.id),
            "lanes": [
                {
                    "kind": lane.kind,
                    "egress": lane.egress,
                    "interval": round(lane.interval, 4),
                    "given": lane.given,
                    "waiting": sum(len(line) for line in lane.waiting.values()),
                    "paused_until": lane.paused_until if lane.paused_until > now else None,
                    "quota_left": lane.quota.left(now) if lane.quota else None,
                }
                for lane in lanes
                if lane.archive == archive.id
            ],
        }
        for archive in desk.archives
    ]


async def archives(request: web.Request) -> web.Response:
    await require(request, "operator")
    return json_reply({"archives": archive_rows(desk_of(request))})


async def change_archive(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    fields = await json_body(request) if request.can_read_body else {}
    await act_archive(desk, request.match_info["action"], request.match_info["archive"], str(fields.get("reason", "")))
    return json_reply({"archives": archive_rows(desk)})


async def act_archive(desk: Desk, action: str, archive: str, reason: str) -> None:
    if archive not in {one.id for one in desk.archives}:
        raise BadRequest("unknown archive", where=archive[:100])
    if action not in ("rest", "wake"):
        raise BadRequest("unknown action", where=action[:40])
    budgets = desk.permits.budgets
    await desk.transact(lambda c: c.change("DELETE FROM rest WHERE archive = ?", archive))
    budgets.resting.pop(archive, None)
    if action == "wake":  # also from a pause that the archive asked for: the operator knows better
        budgets.wake(archive)
        await desk.save_budgets()
    if action == "rest":
        words = reason[:200] or "by the operator"
        await desk.transact(lambda c: c.change("INSERT INTO rest VALUES (?, ?, ?)", archive, desk.now(), words))
        budgets.resting[archive] = words


async def mails(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    asked = request.query.get("q", "")
    found = await desk.run(outbox.mails, search=queue.about(asked) if asked else ())
    return json_reply({"counts": await desk.run(outbox.counts), "mails": found})


async def send_again(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    number = whole_number(request.match_info["number"], "number")
    done = await desk.run(outbox.send_again, number, desk.now())
    known = done or bool(await desk.transact(lambda c: c.rows("SELECT 1 AS n FROM outbox WHERE number = ?", number)))
    return json_reply({"queued": done}, 200 if done else 409 if known else 404)


# History and statistics ----------------------------------------------------------------------------------------------


def as_csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_FIELDS)
    for row in rows:
        cells = [_iso(row["at"]) if name == "at" else row[name] for name in _FIELDS]
        # A cell that begins like a formula would be run by spreadsheet programs.
        writer.writerow([f"'{cell}" if str(cell)[:1] in "=+-@" else cell for cell in cells])
    return out.getvalue()


def as_xml(rows: Sequence[Row]) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<history>"]
    for row in rows:
        attributes = " ".join(
            f"{name}={quoteattr(str(_iso(row[name]) if name == 'at' else row[name]))}"
            for name in _FIELDS[:-1]
            if row[name] is not None
        )
        lines.append(f"  <event {attributes}>{escape(row['detail'])}</event>")
    return "\n".join([*lines, "</history>", ""])


async def history(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    return await history_reply(desk, request.match_info.get("format", "json"), request.query.get("job", ""))


async def whole_history(desk: Desk, job: str = "") -> list[Row]:
    """All events, read in pages so that other requests get their turn in between."""
    rows: list[Row] = []
    while page := await desk.run(queue.history, job, rows[-1]["number"] if rows else 0):
        rows += page
        if len(page) < queue.HISTORY_PAGE:
            break
    return rows


async def history_reply(desk: Desk, kind: str, job: str = "") -> web.Response:
    rows = await whole_history(desk, job)
    if kind == "csv":
        return web.Response(text=as_csv(rows), content_type="text/csv", charset="utf-8")
    if kind == "xml":
        return web.Response(text=as_xml(rows), content_type="application/xml", charset="utf-8")
    return json_reply({"events": [{**row, "at": _iso(row["at"])} for row in rows]})


async def show_statistics(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await require(request, "operator")
    return json_reply(asdict(statistics(await whole_history(desk))))


# Machines ------------------------------------------------------------------------------------------------------------


async def health(request: web.Request) -> web.Response:
    """Whether the process lives."""
    desk = desk_of(request)
    stopping = desk.stopping.is_set()
    return json_reply({"status": "stopping" if stopping else "ok", "version": __version__}, 503 if stopping else 200)


async def ready(request: web.Request) -> web.Response:
    """Whether the desk can serve: the database answers and there is disk space. Mail that is down shows in the body
    only: mails wait in the outbox, and a load balancer must not take the pages away."""
    desk = desk_of(request)
    free = shutil.disk_usage(desk.folder).free
    fields: dict[str, Any] = {"database": True, "free_bytes": free, "mail": not desk.mail_trouble}
    try:
        await desk.run(queue.counts)
    except RecollectError:
        fields["database"] = False
    fine = fields["database"] and free >= desk.settings.min_free and not desk.stopping.is_set()
    return json_reply({"ready": fine, **fields}, 200 if fine else 503)


def _sample(name: str, value: int, **labels: str) -> str:
    """One line of Prometheus' text format."""
    inside = ",".join(f'{label}="{_label(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def metrics(request: web.Request) -> web.Response:
    """Counters in the text format of Prometheus. They name no person and no site; the addresses of workers only to
    the operator."""
    desk = desk_of(request)
    operator = await has_role(request, "operator")
    states = await desk.run(queue.counts)
    posted = await desk.run(outbox.counts)
    lines = ["# TYPE recollect_desk_jobs gauge"]
    lines += [_sample("recollect_desk_jobs", count, state=state) for state, count in states.items()]
    lines.append("# TYPE recollect_desk_mails gauge")
    lines += [_sample("recollect_desk_mails", count, state=state) for state, count in sorted(posted.items())]
    lines.append("# TYPE recollect_desk_permits_total counter")
    given: dict[tuple[tuple[str, str], ...], int] = {}
    for lane in desk.permits.budgets.lanes:
        labels = {"archive": lane.archive, "kind": lane.kind, **({"egress": lane.egress} if operator else {})}
        key = tuple(labels.items())
        given[key] = given.get(key, 0) + lane.given
    lines += [_sample("recollect_desk_permits_total", count, **dict(key)) for key, count in given.items()]
    lines += ["# TYPE recollect_desk_watchers gauge", f"recollect_desk_watchers {desk.hub.watchers}"]
    lines.append("# TYPE recollect_desk_requests_total counter")
    for (route, status), count in sorted(desk.requests.items()):
        lines.append(_sample("recollect_desk_requests_total", count, route=route, status=str(status)))
    return web.Response(text="\n".join(lines) + "\n", content_type="text/plain", charset="utf-8")


ROUTES = [
    web.get("/api/jobs", jobs),
    web.post("/api/jobs/{job}/{action:move|start|retry|pause|resume}", change),
    web.delete("/api/jobs/{job}", remove),
    web.get("/api/workers", workers),
    web.post("/api/workers/{worker}/{action}", change_worker),
    web.get("/api/archives", archives),
    web.post("/api/archives/{archive}/{action}", change_archive),
    web.get("/api/mails", mails),
    web.post("/api/mails/{number:\\d+}/send", send_again),
    web.get("/api/history", history),
    web.get("/api/history.{format:json|csv|xml}", history),
    web.get("/api/statistics", show_statistics),
    web.get("/health", health),
    web.get("/ready", ready),
    web.get("/metrics", metrics),
]
