"""The texts of mails. Pure except for the secret that a link needs, which is issued when the mail is sent."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any

from recollect.desk.database import Connection, Row, one
from recollect.desk.outbox import Kind, Render, compose
from recollect.desk.outcome import headline, sentence
from recollect.desk.people import Purpose, issue
from recollect.desk.reports import figures_of
from recollect.desk.settings import DAY, DeskSettings
from recollect.ui.messages import current, using
from recollect.ui.pages import render as page

_MAX_URI = 300  # mail servers refuse lines of more than 998 bytes
_WIDTH = 78


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
        purpose = Purpose.CONFIRM if kind is Kind.CONFIRM else Purpose.STATUS
        token = issue(c, person["id"], purpose, now)
        link = f"{base_url}/confirm/{token}" if kind is Kind.CONFIRM else status_url(base_url, job["id"], token)
        with using(person["language"] or ""):
            name = "completed" if facts.get("completed") else kind.value
            subject, body = letter(name, _values(settings, job, person["name"] or "", facts), link)
        return compose(settings, row["message_id"], person["email"], subject, body, now)

    return render


def status_url(base_url: str, job: str, token: str) -> str:
    """The page of a job for one recipient."""
    return f"{base_url}/jobs/{job}?token={token}"


def letter(name: str, values: Mapping[str, Any], link: str) -> tuple[str, str]:
    """Subject and text of a mail to a person, in the current language: a template of `desk/templates/mails`."""
    subject, _, body = page(f"desk/mails/{name}.txt", link=link, **values).partition("\n")
    lines = (
        line if line.startswith((" ", link)) else textwrap.fill(line, _WIDTH, break_long_words=False)
        for line in body.splitlines()
    )
    return subject, "\n".join(lines) + "\n"


def _values(settings: DeskSettings, job: Row, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    from recollect.desk.jobs import host_of

    figures = figures_of(json.loads(job["result"]).get("summary", {}))
    texts = current()
    return {
        "greeting": texts.gettext("Hello %(name)s,") % {"name": name} if name else texts.gettext("Hello,"),
        "uri": _mail_uri(job["uri"]),
        "host": host_of(job["uri"]),
        "pending_days": round(settings.pending_for / DAY),
        "headline": headline(figures),
        "sentence": sentence(figures),
        "expires": job["expires_at"],
        "gain": int(facts.get("gain", 0)),
    }


def _mail_uri(uri: str) -> str:
    """Host and path on one line, without anything that a mail program makes a link of: a mail has one link, the one
    to the desk."""
    text = uri.partition("://")[2].partition("?")[0].replace("://", ":").rstrip("/")
    return text if len(text) <= _MAX_URI else f"{text[:_MAX_URI]}…"


def _to_operator(kind: Kind, job: Row | None, facts: Mapping[str, Any], base_url: str) -> tuple[str, str]:
    if kind is Kind.OPERATOR_TAKEDOWN:
        return letter(kind, {}, f"{base_url}/admin/takedowns")
    where = f"{base_url}/admin/jobs/{job['id']}" if job is not None else f"{base_url}/admin"
    return letter(kind, {"reason": job["reason"] if job is not None else facts.get("reason", "")}, where)
