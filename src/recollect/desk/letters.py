"""What the mails say. Pure except for the secret that a link needs, which is issued when the mail is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

from recollect.desk.database import Connection, Row, one
from recollect.desk.outbox import Kind, Render, compose
from recollect.desk.people import Purpose, issue
from recollect.desk.settings import DAY, DeskSettings

_MAX_URI = 300  # mail servers refuse lines of more than 998 bytes
_CONFIRM = """Hello{name},

we received a request, most likely from you, to bring this website back from web
archives:

    {uri}

Please confirm it here:

{link}

The page has a button; only pressing it starts the work. If you did not ask for this,
do nothing: the request is removed after {pending_days} days and you get no more mail.
"""
_READY = """Hello{name},

your website is back, as far as the archives have it:

    {uri}

We recovered {recovered}{missing}. See what came back and download it here:

{link}

You can close that page and come back at any time. The files are kept until {expires}.
"""
_NOTHING = """Hello{name},

we are sorry: the web archives we asked have nothing of

    {uri}

This page lists the archives we asked, and what you can still try:

{link}
"""
_FAILED = """Hello{name},

the recovery of

    {uri}

ended with an error on our side. The operator knows about it; you need not do anything.
Its state is here:

{link}
"""
_REMINDER = """Hello{name},

your recovered website is still waiting for you:

    {uri}

Download it here:

{link}

The files are removed on {expires}.
"""
_LAST = """Hello{name},

this is the last notice: your recovered website

    {uri}

is removed on {expires}. Download it here before that:

{link}
"""
_MORE = """Hello{name},

you asked to hear if more turns up of

    {uri}

The archives now list {gain}. This page has a button to get it:

{link}
"""
_SUBJECTS = {
    Kind.CONFIRM: "Please confirm: bring back {host}",
    Kind.READY: "Your website {host} is back",
    Kind.NOTHING_FOUND: "Nothing found of {host}",
    Kind.FAILED: "A problem with the recovery of {host}",
    Kind.REMINDER: "Your website {host} waits for you",
    Kind.LAST_NOTICE: "Last notice: {host} is about to be removed",
    Kind.MORE_FOUND: "More has turned up of {host}",
}
_BODIES = {
    Kind.CONFIRM: _CONFIRM,
    Kind.READY: _READY,
    Kind.NOTHING_FOUND: _NOTHING,
    Kind.FAILED: _FAILED,
    Kind.REMINDER: _REMINDER,
    Kind.LAST_NOTICE: _LAST,
    Kind.MORE_FOUND: _MORE,
}


def renderer(settings: DeskSettings, base_url: str) -> Render:
    """The function that makes messages of outbox rows; `base_url` has no slash at its end."""

    def render(c: Connection, row: Row, now: float) -> EmailMessage | None:
        kind = Kind(row["kind"])
        job = one(c.rows("SELECT * FROM job WHERE id = ?", row["job"])) if row["job"] else None
        facts = json.loads(row["facts"])
        if row["recipient"] is None:
            subject, body = _to_operator(kind, job, facts, base_url)
            return compose(settings, row["message_id"], settings.operator_address, subject, body, now)
        person = one(c.rows("SELECT * FROM recipient WHERE id = ? AND left_at IS NULL", row["recipient"]))
        if person is None or not person["email"] or job is None:
            return None
        values = _values(settings, job, person["name"] or "", facts)
        purpose = Purpose.CONFIRM if kind is Kind.CONFIRM else Purpose.STATUS
        token = issue(c, person["id"], purpose, now)
        link = f"{base_url}/confirm/{token}" if kind is Kind.CONFIRM else status_url(base_url, job["id"], token)
        subject = _SUBJECTS[kind].format(**values)
        return compose(
            settings, row["message_id"], person["email"], subject, _BODIES[kind].format(link=link, **values), now
        )

    return render


def status_url(base_url: str, job: str, token: str) -> str:
    """The page of a job for one recipient."""
    return f"{base_url}/jobs/{job}?token={token}"


def _values(settings: DeskSettings, job: Row, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    from recollect.desk.jobs import host_of

    summary = json.loads(job["result"]).get("summary", {})
    recovered, missing = summary.get("recovered", 0), summary.get("missing", 0)
    expires = job["expires_at"]
    return {
        "name": f" {name}" if name else "",
        "uri": _mail_uri(job["uri"]),
        "host": host_of(job["uri"]),
        "pending_days": round(settings.pending_for / DAY),
        "recovered": "1 file" if recovered == 1 else f"{recovered:,} files",
        "missing": f"; {missing:,} more are in no archive or could not be fetched" if missing else "",
        "expires": f"{datetime.fromtimestamp(expires, UTC):%d %B %Y}" if expires else "later",
        "gain": _more_files(int(facts.get("gain", 0))),
    }


def _more_files(number: int) -> str:
    return "1 more file than before" if number == 1 else f"{number:,} more files than before"


def _mail_uri(uri: str) -> str:
    """Host and path on one line, without anything that a mail program makes a link of: a mail has one link, the one
    to the desk."""
    text = uri.partition("://")[2].partition("?")[0].replace("://", ":").rstrip("/")
    return text if len(text) <= _MAX_URI else f"{text[:_MAX_URI]}…"


def _to_operator(kind: Kind, job: Row | None, facts: Mapping[str, Any], base_url: str) -> tuple[str, str]:
    if kind is Kind.OPERATOR_TAKEDOWN:
        return "Takedown request", f"There is a new request to take a site down:\n\n{base_url}/admin/takedowns\n"
    where = f"{base_url}/admin/jobs/{job['id']}" if job is not None else f"{base_url}/admin"
    reason = job["reason"] if job is not None else facts.get("reason", "")
    return "A recovery failed", f"A job failed after its last attempt:\n\n    {reason}\n\n{where}\n"
