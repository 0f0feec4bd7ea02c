"""People: submitting, confirming, the secrets in their links, limits, the blocklist, and what they may see.

Hides: SQL and hashing. Invariants: a secret is random and only its SHA-256 is stored; a job is confirmed by the first
of its recipients who confirms; one recovery serves all who ask for the same; nothing here writes an address or a
secret into the history or a log; a submission is answered with a secret of the recipient that it made, never of one
that was there, so that whoever knows an address and a site learns nothing of its owner's job.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from recollect.desk import outbox, queue
from recollect.desk.database import Connection, Row, one
from recollect.desk.jobs import Job, Refused, Submission, host_name, host_of, job_of
from recollect.desk.reports import unanswered
from recollect.desk.settings import DAY, DeskSettings
from recollect.desk.states import ACTIVE, DELIVERED, Action, State
from recollect.desk.statistics import ending_of
from recollect.errors import RecollectError

_SHARED = tuple(sorted(state.value for state in (ACTIVE | DELIVERED | {State.PENDING})))
_MARKS = ", ".join("?" for _ in _SHARED)
CONFIRMATIONS = 50
"""How often a link of a mail can be answered in a day: each answer issues a secret."""


class Purpose(StrEnum):
    """What a secret in a link allows."""

    CONFIRM = "confirm"
    STATUS = "status"


class BadToken(RecollectError):
    """A link that is wrong or no longer valid."""


class Removed(RecollectError):
    """A link to a job that the operator removed."""


class TooMany(RecollectError):
    """A limit of submissions is reached."""


class Conflict(RecollectError):
    """An Idempotency-Key that was used for something else."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """One person who wants a job."""

    id: str
    job: str
    email: str | None
    name: str
    created: float
    confirmed_at: float | None
    picked_up_at: float | None
    left_at: float | None
    tell_more: bool


@dataclass(frozen=True, slots=True)
class Submitted:
    """What came of a submission."""

    job: str
    recipient: str
    token: str


def recipient_of(row: Row) -> Recipient:
    return Recipient(
        row["id"], row["job"], row["email"], row["name"] or "", row["created"], row["confirmed_at"],
        row["picked_up_at"], row["left_at"], bool(row["tell_more"]),
    )  # fmt: skip


# Secrets -------------------------------------------------------------------------------------------------------------


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def issue(c: Connection, recipient: str, purpose: Purpose, now: float) -> str:
    """A new secret for a link; only its hash is kept."""
    token = secrets.token_urlsafe(24)
    c.change("INSERT INTO token VALUES (?, ?, ?, ?)", hash_of(token), recipient, purpose.value, now)
    return token


def by_token(c: Connection, token: str, purpose: Purpose) -> Recipient:
    """Whose link it is; raises BadToken."""
    row = one(
        c.rows(
            "SELECT r.* FROM token t JOIN recipient r ON r.id = t.recipient WHERE t.hash = ? AND t.purpose = ?",
            hash_of(token), purpose.value,
        )
    )  # fmt: skip
    if row is None:
        if gone := one(c.rows("SELECT words FROM removed WHERE hash = ?", hash_of(token))):
            raise Removed(gone["words"])
        raise BadToken("this link is not valid", hint="check that it was copied completely, or ask again")
    return recipient_of(row)


# Submitting ----------------------------------------------------------------------------------------------------------


def network_of(address: str) -> str:
    """The network of a client address, for limits: IPv4 /24, IPv6 /48."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = getattr(ip, "ipv4_mapped", None) or ip
    return str(ipaddress.ip_network(f"{mapped}/{24 if mapped.version == 4 else 48}", strict=False))


def submit(
    c: Connection,
    asked: Submission,
    now: float,
    settings: DeskSettings,
    *,
    network: str = "",
    key: str = "",
    confirmed_by: str = "",
    source: str | None = None,
    estimate: float | None = None,
) -> Submitted:
    """Take a submission: a new job, or one more recipient of the job that does the same already.

    `key` is the client's Idempotency-Key; `confirmed_by` an operator who answers for the request, so that no mail is
    needed; `source` a job whose fetched resources can be used. Every submission is counted by the limits, repeated
    ones too, and makes a recipient of its own, who sees `pending` until the mail to the address is answered.
    """
    body = hashlib.sha256(json.dumps([asked.options(), asked.email]).encode()).hexdigest()
    key = hash_of(f"{network} {key}") if key else ""  # of this client: whoever else uses the same key learns nothing
    if key:
        c.lock(f"idempotency {key}")
    c.lock(f"submit {asked.fingerprint}")  # two who ask for the same at once get one job
    old = one(c.rows("SELECT body, answer FROM idempotency WHERE key = ?", key)) if key else None
    if old is not None and old["body"] != body:
        raise Conflict("this Idempotency-Key was used for another request")
    check_blocked(c, asked)
    if not confirmed_by:
        _check_limits(c, asked, now, settings, network)
    job = _before(c, old) or _same(c, asked, now, settings) or _new_job(c, asked, now, settings, source, estimate)
    recipient = _trusted(c, job, asked) if confirmed_by else ""
    recipient = recipient or _new_recipient(c, job, asked, now, network)
    token = issue(c, recipient, Purpose.STATUS, now)
    if confirmed_by:
        confirm(c, recipient, now, settings, actor=confirmed_by)
    else:
        # Again at most once an hour: no bombs of mails.
        once = f"confirm {job.id} {hash_of(asked.email.lower())} {now // 3600:.0f}"
        outbox.enqueue(c, outbox.Kind.CONFIRM, now, settings, recipient=recipient, job=job.id, once=once)
    if key and old is None:
        answer = json.dumps({"job": job.id})
        c.change("INSERT INTO idempotency VALUES (?, ?, ?, ?)", key, body, answer, now)
    return Submitted(job.id, recipient, token)


def _before(c: Connection, old: Row | None) -> Job | None:
    """The job of an earlier request with the same Idempotency-Key, if it is still there."""
    if old is None:
        return None
    row = one(c.rows("SELECT * FROM job WHERE id = ?", json.loads(old["answer"])["job"]))
    return job_of(row) if row is not None else None


def _trusted(c: Connection, job: Job, asked: Submission) -> str:
    """The confirmed recipient of a job with the same address, for who may speak for it: the operator, or the page of
    the person. One that is not confirmed may be a stranger's."""
    row = one(
        c.rows(
            "SELECT id FROM recipient WHERE job = ? AND email = ? AND left_at IS NULL AND confirmed_at IS NOT NULL",
            job.id, asked.email,
        )
    )  # fmt: skip
    return str(row["id"]) if row is not None else ""


def _same(c: Connection, asked: Submission, now: float, settings: DeskSettings) -> Job | None:
    """The job that does what is asked for already, or has done it lately; none that is about to expire, and none for
    who adds files: its result shows what is in them."""
    if asked.own_files:
        return None
    rows = c.rows(
        f"SELECT * FROM job WHERE fingerprint = ? AND state IN ({_MARKS}) ORDER BY created DESC LIMIT 1",
        asked.fingerprint, *_SHARED,
    )  # fmt: skip
    job = job_of(rows[0]) if rows else None
    if job is None:
        return None
    expires = job.state in DELIVERED and (job.expires_at or 0) < now + DAY
    lapses = job.state == State.PENDING and job.created < now - settings.pending_for / 2
    # A result that lacks what an archive did not give is not the next person's: archives are asked again.
    half = job.state in DELIVERED and bool(unanswered(job.result.get("summary", {})))
    return None if expires or lapses or half or job.result.get("outdated") else job


def _new_job(
    c: Connection, asked: Submission, now: float, settings: DeskSettings, source: str | None, estimate: float | None
) -> Job:
    queued = c.rows("SELECT count(*) AS n FROM job WHERE state IN ('pending', 'queued')")[0]["n"]
    if queued >= settings.max_queue:
        raise TooMany("the queue is full", why=f"{queued} jobs wait", hint="try again tomorrow")
    identifier = secrets.token_hex(8)
    fingerprint = f"own {identifier}" if asked.own_files else asked.fingerprint
    c.change(
        """INSERT INTO job (id, state, uri, site, wish, fingerprint, created, updated, place, source, estimate)
           VALUES (?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        identifier, asked.uri, asked.site, json.dumps(asked.options()), fingerprint, now, now, now, source,
        estimate,
    )  # fmt: skip
    queue.record(c, identifier, "submit", None, State.PENDING, now, "person", ending_of(asked.uri))
    return queue.get(c, identifier)


def _new_recipient(c: Connection, job: Job, asked: Submission, now: float, network: str) -> str:
    recipient = secrets.token_hex(8)
    c.change(
        "INSERT INTO recipient (id, job, email, name, network, created, language) VALUES (?, ?, ?, ?, ?, ?, ?)",
        recipient, job.id, asked.email, asked.name, network, now, asked.language,
    )  # fmt: skip
    return recipient


def check_blocked(c: Connection, asked: Submission) -> None:
    """Raise Refused, with the operator's reason, for what is on the blocklist."""
    email = asked.email.lower()
    for row in c.rows("SELECT kind, pattern, reason FROM block"):
        if row["kind"] == "site" and host_under(host_of(asked.uri), row["pattern"]):
            raise Refused("this site is not recovered here", where="uri", why=row["reason"])
        if row["kind"] == "address" and _address_under(email, row["pattern"]):
            raise Refused("no recoveries for this address", where="email", why=row["reason"])


def block(c: Connection, kind: str, pattern: str, reason: str, now: float) -> None:
    """Refuse a site (with its subdomains) or an e-mail address (or all of a domain) from now on."""
    c.change(
        "INSERT INTO block (kind, pattern, reason, created) VALUES (?, ?, ?, ?)",
        kind, block_pattern(kind, pattern), reason.strip()[:300], now,
    )  # fmt: skip


def block_pattern(kind: str, text: str) -> str:
    """A pattern as it is compared; a site may be typed in any way an address can be. Raises Refused."""
    text = text.strip().lower()[:300]
    if kind == "site":
        return host_name(text)
    domain = text.rpartition("@")[2].strip(".")
    if not domain or any(ch.isspace() for ch in text):
        raise Refused("this is not an e-mail address or @domain", where="pattern", hint="for example @mail.example")
    return f"{text.rpartition('@')[0]}@{domain}"


def host_under(host: str, pattern: str) -> bool:
    """Whether a host is that of a pattern or one of its subdomains."""
    return host == pattern or host.endswith(f".{pattern}")


def _address_under(email: str, pattern: str) -> bool:
    name, _, domain = pattern.rpartition("@")
    return email == pattern if name else host_under(email.rpartition("@")[2], domain)


def _check_limits(c: Connection, asked: Submission, now: float, settings: DeskSettings, network: str) -> None:
    buckets = {
        f"address {hash_of(asked.email.lower())}": (settings.per_address, "of this e-mail address"),
        f"site {hash_of(asked.site)}": (settings.per_site, "for this site"),
    }
    if network:
        buckets[f"network {hash_of(network)}"] = (settings.per_network, "from your network")
    for bucket, (limit, words) in buckets.items():
        if not allow(c, bucket, now, limit, DAY):
            raise TooMany(f"too many requests {words} today", why=f"{limit} are allowed", hint="try again tomorrow")


def allow(c: Connection, bucket: str, now: float, limit: int, period: float) -> bool:
    """Count one attempt of a bucket, unless its limit is reached."""
    c.lock(f"attempt {bucket}")
    c.change("DELETE FROM attempt WHERE bucket = ? AND at < ?", bucket, now - period)
    used = c.rows("SELECT count(*) AS n FROM attempt WHERE bucket = ?", bucket)[0]["n"]
    if used >= limit:
        return False
    c.change("INSERT INTO attempt VALUES (?, ?)", bucket, now)
    return True


# Confirming, leaving, picking up -------------------------------------------------------------------------------------


def confirm_by_link(c: Connection, token: str, now: float, settings: DeskSettings) -> Submitted:
    """The link of a mail was answered: its recipient confirms, and gets a secret for the page of the job.

    Whoever asks twice has confirmed the first request already: that one goes on, and the second, whoever sent it, ends.
    """
    person = by_token(c, token, Purpose.CONFIRM)
    if not allow(c, f"confirm {person.id}", now, CONFIRMATIONS, DAY):
        raise TooMany("this link was used too often today", hint="use the link to your job, or try again tomorrow")
    same = one(
        c.rows(
            """SELECT id FROM recipient WHERE job = ? AND email = ? AND id != ? AND confirmed_at IS NOT NULL
               AND left_at IS NULL ORDER BY created LIMIT 1""",
            person.job, person.email, person.id,
        )
    )  # fmt: skip
    recipient = person.id
    if same is not None and person.confirmed_at is None:
        recipient = str(same["id"])
        c.change(
            "UPDATE token SET recipient = ? WHERE recipient = ? AND purpose = ?", recipient, person.id, Purpose.CONFIRM
        )
        c.change("DELETE FROM recipient WHERE id = ?", person.id)
    confirm(c, recipient, now, settings)
    return Submitted(person.job, recipient, issue(c, recipient, Purpose.STATUS, now))


def confirm(c: Connection, recipient: str, now: float, settings: DeskSettings, actor: str = "person") -> Job:
    """The recipient wants it; the first one puts the job into the queue. Again changes nothing."""
    row = one(c.rows(f"SELECT * FROM recipient WHERE id = ?{c.lock_row}", recipient))
    if row is None:
        raise BadToken("this link is not valid")
    job = queue.get(c, row["job"], to_change=True)
    if row["confirmed_at"] is not None or row["left_at"] is not None:
        return job
    if job.state == State.EXPIRED or job.state == State.CANCELLED:
        return job
    c.change("UPDATE recipient SET confirmed_at = ? WHERE id = ?", now, recipient)
    if job.state == State.PENDING:
        queue.step(c, job, Action.CONFIRM, now, actor, place=now)
    elif job.state not in ACTIVE:
        announce(c, job, now, settings)
    return queue.get(c, job.id)


def announce(c: Connection, job: Job, now: float, settings: DeskSettings) -> None:
    """Mails to all confirmed recipients who did not get this one: ready, nothing found, or failed."""
    kinds = {
        State.READY: outbox.Kind.READY,
        State.PICKED_UP: outbox.Kind.READY,
        State.NOTHING_FOUND: outbox.Kind.NOTHING_FOUND,
        State.FAILED: outbox.Kind.FAILED,
    }
    kind = kinds.get(job.state)
    if kind is None:
        return
    for person in recipients(c, job.id):
        if person.confirmed_at is not None and person.email:
            once = f"{kind} {job.id} {job.fence} {person.id}"
            outbox.enqueue(c, kind, now, settings, recipient=person.id, job=job.id, once=once)
    if job.state == State.FAILED:
        once = f"operator {job.id} {job.fence}"
        outbox.enqueue(c, outbox.Kind.OPERATOR_FAILED, now, settings, job=job.id, once=once)


def recipients(c: Connection, job: str) -> list[Recipient]:
    """Who wants a job and has not left it."""
    rows = c.rows("SELECT * FROM recipient WHERE job = ? AND left_at IS NULL ORDER BY created, id", job)
    return [recipient_of(row) for row in rows]


def counts_by_job(c: Connection) -> dict[str, int]:
    """How many people want each job."""
    rows = c.rows("SELECT job, count(*) AS n FROM recipient WHERE left_at IS NULL GROUP BY job")
    return {row["job"]: int(row["n"]) for row in rows}


def leave(c: Connection, person: Recipient, now: float) -> Job:
    """The recipient does not want it any more; the last one to leave cancels the job."""
    job = queue.get(c, person.job, to_change=True)
    if person.confirmed_at is not None:  # unconfirmed requests in the same name
        c.change("DELETE FROM recipient WHERE job = ? AND email = ? AND confirmed_at IS NULL", person.job, person.email)
    c.change("UPDATE recipient SET left_at = ?, email = NULL, name = NULL WHERE id = ?", now, person.id)
    if not recipients(c, job.id) and job.state in (ACTIVE | {State.PENDING}):
        queue.step(c, job, Action.CANCEL, now, "person")
    return queue.get(c, job.id)


def pick_up(c: Connection, person: Recipient, now: float) -> None:
    """A result was downloaded."""
    if person.picked_up_at is None:
        c.change("UPDATE recipient SET picked_up_at = ? WHERE id = ?", now, person.id)
    job = queue.get(c, person.job, to_change=True)
    if job.state == State.READY:
        queue.step(c, job, Action.PICK_UP, now, "person")


def is_first(c: Connection, person: Recipient) -> bool:
    """Whether a recipient was the first to confirm: they decide about pages of a result that others share."""
    row = one(
        c.rows(
            """SELECT id FROM recipient WHERE job = ? AND confirmed_at IS NOT NULL AND left_at IS NULL
               ORDER BY confirmed_at, id LIMIT 1""",
            person.job,
        )
    )
    return row is not None and row["id"] == person.id


def language_of(c: Connection, job: Job) -> str:
    """The language of the pages in a result: of the first who confirmed the job, or the one it completes."""
    row = one(
        c.rows(
            """SELECT language FROM recipient WHERE job = ? AND confirmed_at IS NOT NULL
               ORDER BY confirmed_at, id LIMIT 1""",
            job.continues or job.id,
        )
    )
    return str(row["language"] or "") if row is not None else ""


def tell_more(c: Connection, person: Recipient, wanted: bool) -> None:
    """Whether the recipient wants to know when more turns up."""
    c.change("UPDATE recipient SET tell_more = ? WHERE id = ?", int(wanted), person.id)


# What a recipient sees -----------------------------------------------------------------------------------------------


def shown_state(job: Job, person: Recipient | None) -> State:
    """A recipient who has not confirmed sees `pending`, whatever others wait for, and one who left `cancelled`."""
    if person is not None and person.left_at is not None:
        return State.CANCELLED
    if person is not None and person.confirmed_at is None and job.state not in (State.EXPIRED, State.CANCELLED):
        return State.PENDING
    return job.state


def view(c: Connection, job: Job, person: Recipient | None, now: float) -> dict[str, Any]:
    """What a recipient sees of a job, except addresses of files: state, rank, estimate, progress, counts.

    Before a confirmation nothing shows whether others wait for the same job, or how far it is.
    """
    state = shown_state(job, person)
    if person is not None and state == State.PENDING:
        job = replace(
            job, state=State.PENDING, created=person.created, updated=person.created, progress=0.0, status={},
            estimate=None, reason="", result={}, retry_at=None,
        )  # fmt: skip
    status: Mapping[str, Any] = job.status
    fields: dict[str, Any] = {
        "id": job.id,
        "state": state.value,
        "uri": job.uri,
        "options": dict(job.options),
        "created": job.created,
        "updated": job.updated,
        "rank": queue.rank_of(c, job) if state == State.QUEUED else None,
        "estimate": queue.estimate_of(c, job, now) if state in (ACTIVE | {State.PENDING}) else None,
        "progress": round(job.progress, 4),
        "counts": {name: status.get(name, {}) for name in ("recovered", "queued", "missing")},
        "stage": status.get("stage", ""),
        "requests": status.get("requests", {}),
        "waiting_for": status.get("waiting_for", []) if state in ACTIVE else [],
        "resume_at": job.resume_at if state == State.WAITING else None,
        "retry_at": job.retry_at,
        "outages": [one.to_json() for one in unanswered(job.result.get("summary", {}))],
        "reason": job.reason,
    }
    if state in DELIVERED or state == State.NOTHING_FOUND:
        fields["summary"] = job.result.get("summary", {})
        fields["expires_at"] = job.expires_at
        fields["outdated"] = bool(job.result.get("outdated"))
        fields["rebuilding"] = bool(c.rows("SELECT 1 AS n FROM job WHERE continues = ? AND review != '{}'", job.id))
        fields["doubtful"] = [] if fields["rebuilding"] else fields["summary"].get("doubtful", [])
    return fields
