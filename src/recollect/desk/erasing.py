"""Deleting: everything that is stored of a person, and everything that is stored of a job.

Hides: SQL, and where traces of a person and of a site are. Invariants: of a person nothing stays but the hashes of the
secrets of their links, which are answered with words; of a job that is deleted nothing stays that names its site: the
history keeps counts and the ending of the address. Rows go here; `Erased` names the files, which go after the
transaction.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from recollect.desk import people, queue
from recollect.desk.database import Connection
from recollect.desk.jobs import Job, host_of, job_of
from recollect.desk.states import DELIVERED, Action
from recollect.desk.surveyor import listing_keys
from recollect.recovery.scope import registered_domain
from recollect.ui.messages import message

FORGOTTEN = message("your data was deleted, as you wished")


@dataclass(frozen=True, slots=True)
class Erased:
    """What is gone from the database: jobs, listings of archives by their keys, mails by their Message-IDs."""

    jobs: tuple[str, ...] = ()
    listings: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()

    def __add__(self, other: Erased) -> Erased:
        return Erased(self.jobs + other.jobs, self.listings + other.listings, self.mails + other.mails)


def forget(c: Connection, person: people.Recipient, now: float) -> Erased:
    """Delete what is stored of a recipient at once: of all requests with their address, if they have confirmed it. A
    job without other recipients goes with it."""
    rows = [{"id": person.id}]
    if person.confirmed_at is not None and person.email:
        rows = c.rows("SELECT id FROM recipient WHERE lower(email) = ? ORDER BY created, id", person.email.lower())
        rows = rows or [{"id": person.id}]
    erased = Erased()
    for row in rows:
        found = c.rows("SELECT * FROM recipient WHERE id = ?", row["id"])
        if found:  # requests in the same name go with the first
            erased += _forget_one(c, people.recipient_of(found[0]), now)
    return erased


def _forget_one(c: Connection, person: people.Recipient, now: float) -> Erased:
    job = people.leave(c, person, now)
    c.change("UPDATE recipient SET network = NULL, tell_more = 0 WHERE id = ?", person.id)
    c.change("UPDATE outbox SET state = 'dropped' WHERE recipient = ? AND state = 'waiting'", person.id)
    mails = c.rows("SELECT message_id FROM outbox WHERE recipient = ?", person.id)
    erased = Erased(mails=tuple(row["message_id"] for row in mails))
    if people.recipients(c, job.id):
        return erased
    if job.state in DELIVERED:
        queue.step(c, job, Action.EXPIRE, now, "person")
    return erased + delete(c, job.id, now, "person", FORGOTTEN)


def delete(c: Connection, job: str, now: float, actor: str, words: str = queue.REMOVED) -> Erased:
    """Delete a job with its people, the jobs that complete it, its mails and the listings of its site."""
    own = [job_of(row) for row in c.rows("SELECT * FROM job WHERE continues = ?", job)]
    for one in own:
        c.change("DELETE FROM job WHERE id = ?", one.id)
    mails = c.rows("SELECT message_id FROM outbox WHERE job = ?", job)
    c.change("DELETE FROM outbox WHERE job = ?", job)
    found = queue.delete(c, job, now, actor, words)
    jobs = (job, *(one.id for one in own))
    return Erased(jobs, _forget_listings(c, found), tuple(row["message_id"] for row in mails))


def _forget_listings(c: Connection, job: Job) -> tuple[str, ...]:
    """Listings of the site, unless another job of the site is there; asking archives again is all that it costs."""
    if c.rows("SELECT 1 AS n FROM job WHERE site = ? LIMIT 1", job.site):
        return ()
    keys = set(listing_keys(job.options))
    for row in c.rows("SELECT key, survey FROM listing"):
        start = json.loads(row["survey"]).get("start") or ()
        if any(registered_domain(host_of(uri)) == job.site for uri in start):
            keys.add(row["key"])
    for key in keys:
        c.change("DELETE FROM listing WHERE key = ?", key)
    return tuple(sorted(keys))


def mails_without_address(c: Connection) -> set[str]:
    """Message-IDs of mails to people whose address is deleted."""
    rows = c.rows(
        """SELECT o.message_id FROM outbox o JOIN recipient r ON r.id = o.recipient
           WHERE r.email IS NULL AND o.state != 'waiting'"""
    )
    return {row["message_id"] for row in rows}
