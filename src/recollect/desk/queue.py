"""The queue: claims by lease with a fence, and every other step of a job. Functions over one transaction.

Hides: SQL, and the order of the queue. Invariants:
- a state changes only by `step`, which asks the table of `states` and adds one event to the history;
- a claim raises the fence of its job by one; whoever reports with an older fence, or after the lease ran out, is
  refused, so that one worker at a time can change a job;
- a job that comes back (crash, release, resume) has the place it had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recollect.desk.database import Connection, Row, Value, one
from recollect.desk.jobs import Job, host_of, job_of
from recollect.desk.settings import DeskSettings
from recollect.desk.states import CLAIMED, Action, BadTransition, State, after
from recollect.desk.statistics import facts_of
from recollect.errors import RecollectError
from recollect.ui.messages import message

TYPICAL_SECONDS = 120.0
"""A site of the size Brass recovered on average, at the Internet Archive's rate."""
_LOG_BYTES = 64_000
HISTORY_PAGE = 10_000
"""Events that are read at a time: a history has no end."""


class LeaseLost(RecollectError):
    """The worker no longer holds the job: its lease ran out, or another worker took or ended the job."""


class JobOver(LeaseLost):
    """The job is gone or has ended: what a worker has fetched for it is of no use."""


class UnknownJob(RecollectError):
    """There is no such job."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker holds while it works."""

    job: str
    fence: int
    worker: str


def get(c: Connection, job: str, *, to_change: bool = False) -> Job:
    """A job by its id, which no other transaction changes meanwhile if it is read `to_change`; raises UnknownJob."""
    row = one(c.rows(f"SELECT * FROM job WHERE id = ?{c.lock_row if to_change else ''}", job))
    if row is None:
        raise UnknownJob("no such job", where=job)
    return job_of(row)


def step(c: Connection, job: Job, action: Action, now: float, actor: str, detail: str = "", **columns: Value) -> State:
    """Change the state of a job and write that into the history; raises BadTransition for what may not be."""
    state = after(job.state, action)
    values: dict[str, Value] = {"state": state.value, "updated": now, **columns}
    if state not in CLAIMED:
        values |= {"lease_until": None, "worker": None}
    names = ", ".join(f"{name} = ?" for name in values)
    changed = c.change(
        f"UPDATE job SET {names} WHERE id = ? AND state = ? AND fence = ?",
        *values.values(), job.id, job.state.value, job.fence,
    )  # fmt: skip
    if not changed:
        raise BadTransition("the job changed in the meantime", where=job.id)
    record(c, job.id, action.value, job.state, state, now, actor, _without_site(detail, job))
    return state


def _without_site(detail: str, job: Job) -> str:
    """Words for the history, which keeps no address of a site: a job can be deleted, the history cannot."""
    for name in (job.uri, host_of(job.uri), job.site):
        detail = re.sub(re.escape(name), "(site)", detail, flags=re.IGNORECASE) if name else detail
    return detail


def record(
    c: Connection, job: str, action: str, before: State | None, state: State, now: float, actor: str, detail: str = ""
) -> None:
    """Add one event to the history."""
    c.change(
        "INSERT INTO event (at, job, action, before, after, actor, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
        now, job, action, before.value if before else None, state.value, actor, detail[:20_000],
    )  # fmt: skip


# What workers do -----------------------------------------------------------------------------------------------------


def claim(c: Connection, worker: str, now: float, settings: DeskSettings, skip_locked: str = "") -> Job | None:
    """The first job of the queue that this worker may take, now leased to it; None when there is none."""
    seen = one(c.rows("SELECT state FROM worker WHERE name = ?", worker))
    if seen is not None and seen["state"] != "active":
        return None
    row = one(
        c.rows(
            "SELECT * FROM job WHERE state = 'queued' AND (pinned IS NULL OR pinned = ?) "
            f"ORDER BY place, id LIMIT 1{skip_locked}",
            worker,
        )
    )
    if row is None:
        return None
    job = job_of(row)
    fence = job.fence + 1
    started = job.started if job.started is not None else now
    lease = {"fence": fence, "worker": worker, "lease_until": now + settings.lease, "started": started}
    step(c, job, Action.CLAIM, now, f"worker {worker}", f"fence {fence}", pinned=None, **lease)  # type: ignore[arg-type]
    return get(c, job.id)


def held(c: Connection, lease: Lease, now: float) -> Job:
    """The job of a lease; raises LeaseLost when it is not held any more."""
    try:
        job = get(c, lease.job, to_change=True)
    except UnknownJob:
        raise JobOver("the job is gone", where=lease.job) from None
    if job.state in (State.CANCELLED, State.EXPIRED):
        raise JobOver("the job has ended", where=lease.job, why=f"it is {job.state}")
    if job.state not in CLAIMED or (job.fence, job.worker) != (lease.fence, lease.worker):
        raise LeaseLost(
            "the job is not held by this worker", where=lease.job, why=f"it is {job.state}, fence {job.fence}"
        )
    if job.lease_until is None or job.lease_until < now:
        raise LeaseLost("the lease ran out", where=lease.job)
    return job


def beat(
    c: Connection,
    lease: Lease,
    now: float,
    settings: DeskSettings,
    status: Mapping[str, Any] | None = None,
    share: float | None = None,
    log: str = "",
) -> Job:
    """The worker lives: its lease is longer, and what it reports is kept. Progress never goes backwards."""
    job = held(c, lease, now)
    encoded = json.dumps(status) if status is not None else json.dumps(job.status)
    text = (job.log + log)[-_LOG_BYTES:]
    c.change(
        "UPDATE job SET lease_until = ?, status = ?, progress = ?, log = ?, updated = ? WHERE id = ? AND fence = ?",
        now + settings.lease, encoded, max(job.progress, share or 0.0), text, now, job.id, job.fence,
    )  # fmt: skip
    return job


def pack(c: Connection, lease: Lease, now: float, settings: DeskSettings) -> None:
    """The recovery is complete; its files are packed and sent."""
    job = held(c, lease, now)
    step(c, job, Action.PACK, now, f"worker {lease.worker}", lease_until=now + settings.lease, worker=lease.worker)


def deliver(c: Connection, lease: Lease, now: float, settings: DeskSettings, result: Mapping[str, Any]) -> Job:
    """The result is with the desk."""
    job = held(c, lease, now)
    step(
        c, job, Action.DELIVER, now, f"worker {lease.worker}", facts_of(job.options, result.get("summary", {})),
        result=json.dumps(result), progress=1.0, reason="", ready_at=now, expires_at=now + settings.keep_for,
        relist_at=now + settings.relist_after,
    )  # fmt: skip
    return get(c, job.id)


def find_nothing(c: Connection, lease: Lease, now: float, result: Mapping[str, Any]) -> Job:
    """The archives hold nothing of it."""
    job = held(c, lease, now)
    facts = facts_of(job.options, result.get("summary", {}))
    step(c, job, Action.FIND_NOTHING, now, f"worker {lease.worker}", facts, result=json.dumps(result), progress=1.0)
    return get(c, job.id)


def defer(c: Connection, lease: Lease, now: float, until: float, reason: str) -> Job:
    """Nothing can be asked for until a moment: the job waits without a worker."""
    job = held(c, lease, now)
    step(c, job, Action.DEFER, now, f"worker {lease.worker}", reason, resume_at=until, held=0, reason=reason)
    return get(c, job.id)


def fail(c: Connection, lease: Lease, now: float, settings: DeskSettings, reason: str) -> Job:
    """The recovery ended with an error: queued again, and failed the last time."""
    return _crashed(c, held(c, lease, now), now, settings, f"worker {lease.worker}", reason)


def release(c: Connection, lease: Lease, now: float) -> None:
    """The worker shuts down: another one takes the job."""
    step(c, held(c, lease, now), Action.RELEASE, now, f"worker {lease.worker}")


def _crashed(c: Connection, job: Job, now: float, settings: DeskSettings, actor: str, reason: str) -> Job:
    crashes = job.crashes + 1
    action = Action.FAIL if crashes >= settings.max_crashes else Action.CRASH
    step(c, job, action, now, actor, reason, crashes=crashes, reason=reason[:1000])
    return get(c, job.id)


def reap(c: Connection, now: float, settings: DeskSettings) -> list[Job]:
    """Jobs of workers that fell silent: queued again at their place, failed after too many crashes."""
    rows = c.rows(f"SELECT * FROM job WHERE state IN ('running', 'packing') AND lease_until < ?{c.lock_row}", now)
    return [_crashed(c, job_of(row), now, settings, "desk", "the worker fell silent") for row in rows]


def resume_due(c: Connection, now: float) -> list[str]:
    """Waiting jobs whose time has come."""
    rows = c.rows(f"SELECT * FROM job WHERE state = 'waiting' AND held = 0 AND resume_at <= ?{c.lock_row}", now)
    for row in rows:
        step(c, job_of(row), Action.RESUME, now, "desk", resume_at=None, reason="")
    return [row["id"] for row in rows]


# What operators and people do ----------------------------------------------------------------------------------------


def cancel(c: Connection, job: str, now: float, actor: str) -> None:
    step(c, get(c, job, to_change=True), Action.CANCEL, now, actor)


def retry(c: Connection, job: str, now: float, actor: str) -> None:
    """Once more from the end of the queue; what was fetched is used."""
    step(
        c, get(c, job, to_change=True), Action.RETRY, now, actor, place=now, crashes=0, reason="", progress=0.0,
        started=None, ready_at=None, expires_at=None, result="{}",
    )  # fmt: skip


def pause(c: Connection, job: str, now: float, actor: str) -> None:
    """Out of the queue until the operator resumes it; a running one is taken from its worker at its next report."""
    found = get(c, job, to_change=True)
    step(c, found, Action.PAUSE, now, actor, held=1, resume_at=None, reason="paused by the operator")


def resume(c: Connection, job: str, now: float, actor: str) -> None:
    step(c, get(c, job, to_change=True), Action.RESUME, now, actor, held=0, resume_at=None, reason="")


def pin(c: Connection, job: str, worker: str | None, now: float, actor: str) -> None:
    """Let one worker start a job, before all others; None lets any."""
    found = get(c, job, to_change=True)
    if found.state != State.QUEUED:
        raise BadTransition("only a queued job can be started on a machine", where=job, why=f"it is {found.state}")
    c.change("UPDATE job SET pinned = ?, updated = ? WHERE id = ?", worker, now, job)
    record(c, job, "pin", found.state, found.state, now, actor, worker or "any worker")
    if worker is not None:
        move(c, job, 1, now, actor)


def move(c: Connection, job: str, rank: int, now: float, actor: str) -> None:
    """Give a queued job a rank: 1 is the next to be claimed."""
    found = get(c, job, to_change=True)
    if found.state != State.QUEUED:
        raise BadTransition("only a queued job can be moved", where=job, why=f"it is {found.state}")
    rows = c.rows("SELECT id, place FROM job WHERE state = 'queued' AND id != ? ORDER BY place, id", job)
    rank = max(1, min(rank, len(rows) + 1))
    before = rows[rank - 2]["place"] if rank > 1 else None
    behind = rows[rank - 1]["place"] if rank <= len(rows) else None
    if before is None:
        place = behind - 1.0 if behind is not None else found.place
    elif behind is None:
        place = before + 1.0
    else:
        place = (before + behind) / 2
        if not before < place < behind:  # no number is left between the two
            _spread(c, [row["id"] for row in rows], job, rank)
            record(c, job, "move", found.state, found.state, now, actor, f"to rank {rank}")
            return
    c.change("UPDATE job SET place = ?, updated = ? WHERE id = ?", place, now, job)
    record(c, job, "move", found.state, found.state, now, actor, f"to rank {rank}")


def _spread(c: Connection, others: list[str], job: str, rank: int) -> None:
    """Number the whole queue again, below all places that confirmations will get."""
    order = [*others[: rank - 1], job, *others[rank - 1 :]]
    for number, name in enumerate(order):
        c.change("UPDATE job SET place = ? WHERE id = ?", float(number + 1), name)


def note_listed(c: Connection, job: str, resources: int) -> None:
    """Remember what archives list now, so that a later gain is counted from here; who asks again gets a new job."""
    found = get(c, job, to_change=True)
    summary = {**found.result.get("summary", {}), "listed": resources}
    result = {**found.result, "summary": summary, "outdated": True}
    c.change("UPDATE job SET result = ? WHERE id = ?", json.dumps(result), job)


REMOVED = message("the operator of this service removed this request")
TAKEN_DOWN = message("this site was taken down at the request of its owner")


def delete(c: Connection, job: str, now: float, actor: str, words: str = REMOVED) -> Job:
    """Remove a job and its people; the history stays, and `words` answer the links that people have. `erasing.delete`
    removes what else there is of it."""
    found = get(c, job, to_change=True)
    if found.state in CLAIMED:
        raise BadTransition("a job that a worker holds cannot be deleted", where=job, hint="cancel it first")
    record(c, job, "delete", found.state, found.state, now, actor)
    c.change(
        """INSERT INTO removed SELECT t.hash, ?, ? FROM token t JOIN recipient r ON r.id = t.recipient WHERE r.job = ?
           ON CONFLICT (hash) DO NOTHING""" if c.lock_row else
        """INSERT OR IGNORE INTO removed SELECT t.hash, ?, ? FROM token t JOIN recipient r ON r.id = t.recipient
           WHERE r.job = ?""",
        words, now, job,
    )  # fmt: skip
    c.change("DELETE FROM job WHERE id = ?", job)
    return found


# What can be seen ----------------------------------------------------------------------------------------------------


def rank_of(c: Connection, job: Job) -> int | None:
    """Place in the queue, 1 is next; None for a job that is not queued."""
    if job.state != State.QUEUED:
        return None
    ahead = c.rows(
        "SELECT count(*) AS n FROM job WHERE state = 'queued' AND (place < ? OR (place = ? AND id < ?))",
        job.place, job.place, job.id,
    )  # fmt: skip
    return int(ahead[0]["n"]) + 1


def estimate_of(c: Connection, job: Job, now: float) -> dict[str, float] | None:
    """Estimated seconds of waiting and of working: jobs ahead, how long each takes, how many workers there are."""
    working = job.estimate if job.estimate is not None else TYPICAL_SECONDS
    if job.state in CLAIMED:
        waited = now - (job.started or now)
        share = job.progress
        left = waited * (1 - share) / share if share > 0.05 else max(working - waited, 1.0)
        return {"waiting": 0.0, "working": round(left, 1)}
    if job.state == State.WAITING and job.resume_at is not None:
        return {"waiting": round(max(0.0, job.resume_at - now), 1), "working": round(working * (1 - job.progress), 1)}
    if job.state not in (State.QUEUED, State.PENDING):
        return None
    condition, values = "place < ?", [job.place]
    if job.state == State.PENDING:  # confirmed now, it would be the last
        condition, values = "place < ?", [float("9e18")]
    ahead = c.rows(
        f"""SELECT coalesce(sum(coalesce(estimate, ?)), 0) AS seconds FROM job
            WHERE (state = 'queued' AND {condition}) OR state IN ('running', 'packing')""",
        TYPICAL_SECONDS, *values,
    )  # fmt: skip
    return {"waiting": round(float(ahead[0]["seconds"]) / workers_at_work(c, now), 1), "working": round(working, 1)}


def workers_at_work(c: Connection, now: float) -> int:
    """How many workers were heard of lately; at least one, as jobs wait for one to come."""
    rows = c.rows("SELECT count(*) AS n FROM worker WHERE state = 'active' AND last_seen > ?", now - 120)
    return max(1, int(rows[0]["n"]))


_ABOUT = """(id = ? OR lower(uri) LIKE ? ESCAPE '!' OR EXISTS
    (SELECT 1 FROM recipient r WHERE r.job = job.id AND lower(r.email) LIKE ? ESCAPE '!'))"""


def about(text: str) -> tuple[str, str, str]:
    """The values of a search for an id, a part of a site's address, or a part of an e-mail address."""
    plain = text.strip().lower()[:200]
    pattern = "%" + re.sub(r"([!%_])", r"!\1", plain) + "%"
    return plain, pattern, pattern


def jobs(c: Connection, *, state: str = "", limit: int = 1000, offset: int = 0, search: str = "") -> list[Job]:
    """Jobs for the operator, queued ones in their order, others newest first; `search` is for `about`."""
    tests = [*(["state = ?"] if state else []), *([_ABOUT] if search else [])]
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    values = (*((state,) if state else ()), *(about(search) if search else ()))
    order = "place, id" if state == State.QUEUED else "updated DESC, id"
    rows = c.rows(f"SELECT * FROM job {where} ORDER BY {order} LIMIT ? OFFSET ?", *values, limit, offset)
    return [job_of(row) for row in rows]


def ranks(c: Connection) -> dict[str, int]:
    """The ranks of all queued jobs: one query, where one for each job would take time by the square of the queue."""
    rows = c.rows("SELECT id FROM job WHERE state = 'queued' ORDER BY place, id")
    return {row["id"]: number for number, row in enumerate(rows, 1)}


def counts(c: Connection) -> dict[str, int]:
    """How many jobs are in each state."""
    found = {row["state"]: int(row["n"]) for row in c.rows("SELECT state, count(*) AS n FROM job GROUP BY state")}
    return {state.value: found.get(state.value, 0) for state in State}


def history(c: Connection, job: str = "", since: int = 0, limit: int = HISTORY_PAGE) -> list[Row]:
    """Events after the number `since`, oldest first."""
    where, values = ("AND job = ?", (job,)) if job else ("", ())
    return c.rows(f"SELECT * FROM event WHERE number > ? {where} ORDER BY number LIMIT ?", since, *values, limit)
