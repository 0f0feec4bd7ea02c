"""Archives that do not answer: a job waits and tries again, and a result is completed when they are back.

Hides: SQL, and when an archive is asked again. Invariants: failure is not absence, and never an answer for the next
person; what there is is delivered at once; the rest replaces it by itself, under the same links, and is announced only
when it adds something. A result is completed by a job of its own without recipients (`continues`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.desk import outbox, people, queue
from recollect.desk.database import Connection
from recollect.desk.jobs import Job, job_of
from recollect.desk.queue import Lease
from recollect.desk.reports import unanswered
from recollect.desk.settings import DeskSettings
from recollect.desk.states import ACTIVE, DELIVERED, State

FIRST_PAUSE = 600.0
_LONGEST_PAUSE = 6 * 3600.0
_MAX_TRIES = 12


def pause_after(tries: int) -> float:
    """Seconds until archives that did not answer are asked again: ten minutes, then twice as long, up to six hours."""
    return min(FIRST_PAUSE * 2.0 ** min(tries, 10), _LONGEST_PAUSE)


def put_off(c: Connection, job: Job, lease: Lease, now: float, result: Mapping[str, Any]) -> None:
    """No archive answered: the job waits without a worker, and tries again."""
    queue.defer(c, lease, now, now + pause_after(job.tries), "no archive answered")
    c.change("UPDATE job SET tries = tries + 1, result = ? WHERE id = ?", json.dumps(result), job.id)


def plan_retry(c: Connection, job: Job, now: float, settings: DeskSettings) -> None:
    """A result to which archives that did not answer may add something is tried again."""
    missing = bool(unanswered(job.result.get("summary", {})))
    over = job.tries >= _MAX_TRIES or now - (job.ready_at or now) > settings.retry_for
    at = None if not missing or over else now + pause_after(job.tries)
    c.change("UPDATE job SET retry_at = ?, tries = ? WHERE id = ?", at, job.tries + 1 if missing else 0, job.id)


def continue_due(c: Connection, now: float) -> list[str]:
    """Queue the jobs that complete results whose time has come."""
    rows = c.rows(
        f"SELECT * FROM job WHERE retry_at <= ? AND state IN ('ready', 'picked-up') AND expires_at > ?{c.lock_row}",
        now, now,
    )  # fmt: skip
    made = []
    for row in rows:
        c.change("UPDATE job SET retry_at = NULL WHERE id = ?", row["id"])
        if not _under_way(c, row["id"]):
            made.append(_continue(c, job_of(row), now))
    return made


def _under_way(c: Connection, job: str) -> bool:
    states = sorted(state.value for state in ACTIVE)
    marks = ", ".join("?" for _ in states)
    return bool(c.rows(f"SELECT 1 AS n FROM job WHERE continues = ? AND state IN ({marks})", job, *states))


def _continue(c: Connection, job: Job, now: float) -> str:
    identifier = secrets.token_hex(8)
    c.change(
        """INSERT INTO job
           (id, state, uri, site, wish, fingerprint, created, updated, place, source, continues, estimate)
           VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        identifier, job.uri, job.site, json.dumps(dict(job.options)), f"continues {identifier}", now, now, now, job.id,
        job.id, job.estimate,
    )  # fmt: skip
    queue.record(c, identifier, "continue", None, State.QUEUED, now, "desk", job.id)
    return identifier


def review(c: Connection, job: Job, decisions: Mapping[str, str], now: float) -> str:
    """Keep the answers of a person about doubtful pages, and queue the job that builds the result again from them."""
    answers = {**job.review, **decisions}
    c.change("UPDATE job SET review = ? WHERE id = ?", json.dumps(answers), job.id)
    queue.record(c, job.id, "review", job.state, job.state, now, "person", f"{len(decisions)} pages")
    c.change("DELETE FROM job WHERE continues = ? AND state = 'queued'", job.id)  # it would build from older answers
    made = _continue(c, job, now)
    c.change("UPDATE job SET review = ? WHERE id = ?", json.dumps(answers), made)
    return made


def complete(c: Connection, job: Job, now: float, settings: DeskSettings, results: Path) -> None:
    """Put the result of a job in the place of the one it completes; people hear of it when there is more."""
    rows = c.rows(f"SELECT * FROM job WHERE id = ?{c.lock_row}", job.continues)
    old = job_of(rows[0]) if rows else None
    if old is None or old.state not in DELIVERED:
        c.change("DELETE FROM job WHERE id = ?", job.id)
        return
    gain = _recovered(job) - _recovered(old)
    if gain >= 0 or job.review:  # pages that are not the person's are fewer
        for name in job.result.get("files", {}):
            path = results / job.id / name
            if path.exists():  # a transaction may run twice
                path.replace(results / old.id / name)
        c.change("UPDATE job SET result = ? WHERE id = ?", json.dumps(dict(job.result)), old.id)
        queue.record(c, old.id, "complete", old.state, old.state, now, "desk", f"{gain} more")
    plan_retry(c, queue.get(c, old.id), now, settings)
    c.change("DELETE FROM job WHERE id = ?", job.id)
    if gain <= 0:
        return
    for person in people.recipients(c, old.id):
        if person.confirmed_at is not None and person.email:
            once = f"completed {job.id} {person.id}"
            facts = {"gain": gain, "completed": True}
            outbox.enqueue(
                c, outbox.Kind.MORE_FOUND, now, settings, recipient=person.id, job=old.id, once=once, facts=facts
            )  # fmt: skip


def _recovered(job: Job) -> int:
    return int(job.result.get("summary", {}).get("recovered", 0))
