"""Mails: each is a row before it is sent, and is tried until it is delivered, refused or too old.

Hides: SQL, retries, SMTP, and the folder that replaces a mail server. Invariants: a row holds neither address nor
secret (both are put in when it is sent); its Message-ID never changes; what was queued `once` is queued once; a mail
that the server refuses permanently is `failed` and shown to the operator, everything else is tried again.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import smtplib
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, formataddr
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from recollect.desk.database import Connection, Database, Row, one
from recollect.desk.processes import private_folder
from recollect.desk.settings import DeskSettings
from recollect.errors import RecollectError, ResourceError
from recollect.formats.containers import atomic_output

log = logging.getLogger("recollect.desk")

_FIRST_PAUSE = 60.0
_MAX_PAUSE = 3600.0
_IN_FLIGHT = 300.0
_BATCH = 50
_JUST_SENT = 60.0


class Kind(StrEnum):
    """What a mail is about."""

    CONFIRM = "confirm"
    READY = "ready"
    NOTHING_FOUND = "nothing-found"
    FAILED = "failed"
    REMINDER = "reminder"
    LAST_NOTICE = "last-notice"
    MORE_FOUND = "more-found"
    OPERATOR_FAILED = "operator-failed"
    OPERATOR_TAKEDOWN = "operator-takedown"
    WATCH = "watch"
    """The state of a watched site changed."""


class NotNow(RecollectError):
    """The mail server is down, or asks to try later."""


class Never(RecollectError):
    """The mail server refuses this mail permanently."""


class Transport(Protocol):
    """Where mails go."""

    def send(self, message: EmailMessage) -> None:
        """Deliver; raises NotNow or Never."""


@dataclass(frozen=True, slots=True)
class FolderTransport:
    """A file for each mail, for a desk without a mail server."""

    folder: Path

    def send(self, message: EmailMessage) -> None:
        try:
            private_folder(self.folder)
            with atomic_output(self._file(str(message["Message-ID"])), private=True) as file:
                file.write(message.as_bytes())
        except (OSError, ResourceError) as error:
            why = getattr(error, "strerror", None) or getattr(error, "why", "") or str(error)
            raise NotNow("cannot write the mail", where=str(self.folder), why=why) from error

    def remove(self, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            self._file(message_id).unlink(missing_ok=True)

    def _file(self, message_id: str) -> Path:
        return self.folder / f"{message_id.strip('<>').partition('@')[0]}.eml"


@dataclass(frozen=True, slots=True)
class SmtpTransport:
    """A mail server."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    tls: str = "auto"
    timeout: float = 30.0

    def send(self, message: EmailMessage) -> None:
        try:
            with self._connect() as server:
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            code, words = next(iter(error.recipients.values()))
            raise _refusal(code, words) from error
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code, error.smtp_error) from error
        except (OSError, smtplib.SMTPException) as error:
            raise NotNow("the mail server does not answer", where=f"{self.host}:{self.port}", why=str(error)) from error

    def _connect(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout, context=context)
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=self.timeout)
            server.ehlo()
            if self.tls == "starttls" or (self.tls == "auto" and server.has_extn("starttls")):
                server.starttls(context=context)
                server.ehlo()
        if self.user:
            server.login(self.user, self.password)
        return server


def _refusal(code: int, words: bytes | str) -> RecollectError:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    # The address of a person may stand in the answer; only the code goes into the log.
    kind = Never if 500 <= code < 600 and code not in (503, 530, 535) else NotNow
    return kind(f"the mail server answers {code}", why=text[:300])


def transport_of(settings: DeskSettings) -> Transport:
    """The mail server of the settings, or the folder."""
    if not settings.smtp:
        return FolderTransport(Path(settings.data) / "outbox")
    host, _, port = settings.smtp.rpartition(":")
    if not host or not port.isdigit():
        host, port = settings.smtp, "25"
    return SmtpTransport(host.strip("[]"), int(port), settings.smtp_user, settings.smtp_password, settings.smtp_tls)


def remove_copies(transport: Transport, message_ids: Iterable[str]) -> None:
    """Delete the files of mails, where files take the place of a mail server."""
    if isinstance(transport, FolderTransport):
        transport.remove(message_ids)


def enqueue(
    c: Connection,
    kind: Kind,
    now: float,
    settings: DeskSettings,
    *,
    recipient: str | None = None,
    job: str | None = None,
    once: str,
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Queue a mail; False when it was queued before. Mails to the operator need an address of theirs."""
    if recipient is None and not settings.operator_address:
        return False
    domain = settings.address.rpartition("@")[2]
    message_id = f"<{kind}-{secrets.token_hex(12)}@{domain}>"
    return bool(
        c.change(
            """INSERT INTO outbox (kind, recipient, job, facts, once, message_id, state, created, next_at)
               VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?, ?) ON CONFLICT (once) DO NOTHING""",
            kind.value, recipient, job, json.dumps(dict(facts or {})), once, message_id, now, now,
        )
    )  # fmt: skip


Render = Callable[[Connection, Row, float], EmailMessage | None]
"""Makes the message of a row, with its address and secrets; None when no recipient is left."""


def send_due(
    database: Database,
    transport: Transport,
    render: Render,
    now: float,
    settings: DeskSettings,
    on_trouble: Callable[[str], None] = lambda _why: None,
) -> int:
    """Send what is due; returns how many mails went out. A server that is down ends the round. `on_trouble` gets why a
    mail could not be sent for the server's sake, and an empty text after one that could."""
    sent = 0
    for _ in range(_BATCH):
        taken = database.transact(lambda c: _take(c, now, render))
        if taken is None:
            break
        down = False
        if taken.message is None:
            settle = partial(_settle, row=taken.row, state=taken.state, now=now, error=taken.error)
        else:
            settle, down = _send(transport, taken.row, taken.message, now, settings)
            sent += settle.keywords.get("state") == "sent"
            on_trouble(str(settle.keywords.get("error", "")) if settle.func is _later else "")
        database.transact(settle)
        if down:
            break
    return sent


def _send(
    transport: Transport, row: Row, message: EmailMessage, now: float, settings: DeskSettings
) -> tuple[partial[None], bool]:
    """Try one mail; how its row is settled, and whether the mail server is down."""
    try:
        transport.send(message)
    except Never as error:
        log.warning("mail %s (%s) is refused: %s", row["number"], row["kind"], error.what)
        return partial(_settle, row=row, state="failed", now=now, error=_without_address(error, message)), False
    except NotNow as error:
        log.warning("mail %s (%s) waits: %s", row["number"], row["kind"], error.what)
        words = _without_address(error, message)
        # No answer at all: the others would not fare better.
        return partial(_later, row=row, now=now, settings=settings, error=words), bool(error.where)
    return partial(_settle, row=row, state="sent", now=now, error=""), False


@dataclass(frozen=True, slots=True)
class _Taken:
    """A mail to send, or why there is none."""

    row: Row
    message: EmailMessage | None
    state: str = "dropped"
    error: str = "no recipient is left"


def _take(c: Connection, now: float, render: Render) -> _Taken | None:
    due = "SELECT * FROM outbox WHERE state = 'waiting' AND next_at <= ?"
    row = one(c.rows(f"{due} ORDER BY next_at, number LIMIT 1{c.lock_row}", now))
    if row is None:
        return None
    # No other sender takes it meanwhile; after a crash here it is due again later.
    c.change("UPDATE outbox SET next_at = ?, attempts = attempts + 1 WHERE number = ?", now + _IN_FLIGHT, row["number"])
    try:
        return _Taken(row, render(c, row, now))
    except (LookupError, ValueError) as error:  # one mail that cannot be written must not keep the others
        log.exception("mail %s (%s) cannot be written", row["number"], row["kind"])
        return _Taken(row, None, "failed", f"cannot be written: {type(error).__name__}")


def _without_address(error: RecollectError, message: EmailMessage) -> str:
    """What a mail server says, without the person's address: that is deleted when its time comes, this is not."""
    return re.sub(re.escape(str(message["To"])), "(address)", str(error), flags=re.IGNORECASE)


def _settle(c: Connection, row: Row, state: str, now: float, error: str) -> None:
    c.change(
        "UPDATE outbox SET state = ?, sent_at = ?, error = ? WHERE number = ?",
        state, now if state == "sent" else None, error[:500], row["number"],
    )  # fmt: skip


def _later(c: Connection, row: Row, now: float, settings: DeskSettings, error: str) -> None:
    if now - row["created"] >= settings.mail_for:
        _settle(c, row, "failed", now, f"given up after {settings.mail_for / 86400:.0f} days: {error}")
        return
    pause = min(_FIRST_PAUSE * 2 ** min(row["attempts"], 10), _MAX_PAUSE)
    c.change("UPDATE outbox SET next_at = ?, error = ? WHERE number = ?", now + pause, error[:500], row["number"])


def send_again(c: Connection, number: int, now: float) -> bool:
    """Let the operator try a mail once more; one that went out meanwhile, or by a first click, is not sent twice."""
    return bool(
        c.change(
            """UPDATE outbox SET state = 'waiting', next_at = ?, created = ?, attempts = 0
               WHERE number = ? AND (state != 'sent' OR sent_at <= ?)""",
            now, now, number, now - _JUST_SENT,
        )
    )  # fmt: skip


def mails(c: Connection, limit: int = 200, search: Sequence[str] = ()) -> list[Row]:
    """The newest mails, without addresses; with `search` (of `queue.about`) those of jobs and people it is about."""
    if not search:
        return c.rows("SELECT * FROM outbox ORDER BY number DESC LIMIT ?", limit)
    return c.rows(
        """SELECT o.* FROM outbox o LEFT JOIN job j ON j.id = o.job LEFT JOIN recipient r ON r.id = o.recipient
           WHERE o.job = ? OR lower(j.uri) LIKE ? ESCAPE '!' OR lower(r.email) LIKE ? ESCAPE '!'
           ORDER BY o.number DESC LIMIT ?""",
        *search, limit,
    )  # fmt: skip


def counts(c: Connection) -> dict[str, int]:
    rows = c.rows("SELECT state, count(*) AS n FROM outbox GROUP BY state")
    return {row["state"]: int(row["n"]) for row in rows}


def compose(settings: DeskSettings, message_id: str, to: str, subject: str, body: str, now: float) -> EmailMessage:
    """A message as every mail of the desk is: one recipient, marked as automatic."""
    message = EmailMessage()
    message["From"] = formataddr((settings.operator_name or "Recollect", settings.address))
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
    message["Message-ID"] = message_id
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    # Short lines of plain text, and 7bit wherever possible: links stay whole.
    message.set_content(body, cte="7bit" if body.isascii() else "8bit")
    return message
