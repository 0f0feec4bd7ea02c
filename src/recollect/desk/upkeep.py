"""Changes over time: leases that run out, waits that end, reminders, expiry, forgetting. The clock is an argument.

Hides: SQL. `tick` may be called at any moment and any number of times; what it has done once it does not do again, and
what it missed between two calls it does at the next.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from recollect.desk import outages, outbox, people, queue
from recollect.desk.database import Connection
from recollect.desk.jobs import job_of
from recollect.desk.settings import DAY, DeskSettings
from recollect.desk.states import Action, State

log = logging.getLogger("recollect.desk")

MAILS_FOR = 60 * DAY
"""How long the operator sees that a mail was sent."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What one tick did: jobs whose files are to be removed, jobs that changed, and jobs to list again."""

    expired: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    relist: tuple[str, ...] = ()


def tick(c: Connection, now: float, settings: DeskSettings) -> Upkeep:
    """Everything that is due at a moment."""
    changed = []
    for job in queue.reap(c, now, settings):
        changed.append(job.id)
        if job.state == State.FAILED:
            people.announce(c, job, now, settings)
    changed += queue.resume_due(c, now)
    changed += outages.continue_due(c, now)
    _remind(c, now, settings)
    expired = _expire(c, now, settings)
    _forget(c, now, settings)
    relist = c.rows(
        """SELECT id FROM job WHERE relist_at <= ? AND EXISTS
           (SELECT 1 FROM recipient r WHERE r.job = job.id AND r.tell_more = 1 AND r.email IS NOT NULL)""",
        now,
    )
    return Upkeep(tuple(expired), tuple(changed + expired), tuple(row["id"] for row in relist))


def _remind(c: Connection, now: float, settings: DeskSettings) -> None:
    """A mail at each of three moments after a result is ready, to those who have not picked it up."""
    moments = (
        (1, settings.first_reminder, outbox.Kind.REMINDER),
        (2, settings.second_reminder, outbox.Kind.REMINDER),
        (3, settings.last_notice, outbox.Kind.LAST_NOTICE),
    )
    rows = c.rows(
        """SELECT r.id, r.job, r.reminders, j.ready_at, j.expires_at FROM recipient r JOIN job j ON j.id = r.job
           WHERE j.state IN ('ready', 'picked-up') AND r.picked_up_at IS NULL AND r.confirmed_at IS NOT NULL
           AND r.left_at IS NULL AND r.email IS NOT NULL AND r.reminders < 3 AND j.ready_at <= ?""",
        now - settings.first_reminder,
    )
    for row in rows:
        due = [(number, kind) for number, after, kind in moments if now >= row["ready_at"] + after]
        number, kind = due[-1] if due else (0, None)
        # After a long sleep of the desk only the last of the missed mails is of use, and none after the end.
        if kind is None or number <= row["reminders"] or now >= row["expires_at"]:
            continue
        c.change("UPDATE recipient SET reminders = ? WHERE id = ?", number, row["id"])
        once = f"reminder {number} {row['id']} {row['ready_at']}"
        outbox.enqueue(c, kind, now, settings, recipient=row["id"], job=row["job"], once=once)


def _expire(c: Connection, now: float, settings: DeskSettings) -> list[str]:
    rows = c.rows(
        f"""SELECT * FROM job WHERE (state IN ('ready', 'picked-up') AND expires_at <= ?)
            OR (state = 'pending' AND created <= ?){c.lock_row}""",
        now, now - settings.pending_for,
    )  # fmt: skip
    for row in rows:
        # What the archives listed then is what a later listing is compared with, for those who want to know of more.
        kept = {"listed": json.loads(row["result"]).get("summary", {}).get("listed")}
        queue.step(c, job_of(row), Action.EXPIRE, now, "desk", result=json.dumps({"summary": kept}), log="")
        c.change(
            "UPDATE recipient SET email = NULL, name = NULL, network = NULL WHERE job = ? AND tell_more = 0", row["id"]
        )
    return [row["id"] for row in rows]


def _forget(c: Connection, now: float, settings: DeskSettings) -> None:
    """Addresses go some days after the pick-up; those of people who asked to hear of more, after a year. Traces of
    visits go after a day."""
    c.change(
        """UPDATE recipient SET email = NULL, name = NULL, network = NULL
           WHERE picked_up_at <= ? AND tell_more = 0 AND email IS NOT NULL""",
        now - settings.forget_after,
    )
    c.change("UPDATE recipient SET network = NULL WHERE network IS NOT NULL AND created <= ?", now - DAY)
    c.change(
        """UPDATE recipient SET email = NULL, name = NULL WHERE email IS NOT NULL AND job IN
           (SELECT id FROM job WHERE state IN ('failed', 'cancelled', 'nothing-found') AND updated <= ?)""",
        now - settings.forget_after,
    )
    c.change(
        """UPDATE recipient SET email = NULL, name = NULL, tell_more = 0
           WHERE email IS NOT NULL AND tell_more = 1 AND created <= ?""",
        now - settings.tell_for,
    )
    c.change(
        "UPDATE takedown SET email = NULL WHERE email IS NOT NULL AND state != 'open' AND created <= ?",
        now - settings.keep_for,
    )
    c.change("DELETE FROM removed WHERE at < ?", now - 365 * DAY)
    c.change("DELETE FROM attempt WHERE at < ?", now - DAY)
    c.change("DELETE FROM idempotency WHERE created < ?", now - DAY)
    c.change("DELETE FROM session WHERE expires < ?", now)
    c.change("DELETE FROM outbox WHERE state IN ('sent', 'dropped') AND created < ?", now - MAILS_FOR)
