"""What an operator can set of the desk: one frozen value.

Hides nothing. Durations are seconds, sizes bytes. Where a value comes from (file, environment, flag) is `config`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DAY = 86_400.0


def _setting(default: Any, kind: str, meaning: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"kind": kind, "help": meaning, "secret": secret})


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """Everything an operator can set of the desk."""

    data: str = _setting("desk", "text", "directory of the desk: results, mails without SMTP, the SQLite file")
    database: str = _setting("", "text", "postgresql://… instead of SQLite in `data`", secret=True)
    archives: str | None = _setting(None, "text", "list of archives (TOML or JSON); the public ones that ship if unset")
    host: str = _setting("127.0.0.1", "text", "address to listen on")
    port: int = _setting(1209, "port", "port to listen on; 0 lets the system choose")
    base_url: str = _setting("", "text", "public address of the desk, as it stands in mails")
    preview_url: str = _setting("", "text", "address of a separate origin for browsable previews; none if unset")
    preview_port: int | None = _setting(None, "port", "port that serves the previews of `preview_url`")
    workers: int = _setting(1, "amount", "recoveries at a time on this machine; 0 leaves all to `recollect worker`")
    smtp: str = _setting("", "text", "mail server as host:port; mails are files in `data`/outbox if unset")
    smtp_user: str = _setting("", "text", "user name for the mail server")
    smtp_password: str = _setting("", "text", "password for the mail server", secret=True)
    smtp_tls: str = _setting("auto", "text", "`auto` (STARTTLS if offered), `starttls`, `tls` or `none`")
    from_address: str = _setting("", "text", "sender of the mails")
    operator_address: str = _setting("", "text", "where the operator gets mails about failures and takedowns")
    contact: str = _setting("", "text", "mail or web address added to the user agent that archives see")
    admin_password: str = _setting("", "text", "password of the admin pages; made up and printed if unset", secret=True)
    lease: float = _setting(60.0, "duration", "how long a worker may be silent before its job is queued again")
    heartbeat: float = _setting(10.0, "duration", "how often a worker reports")
    max_crashes: int = _setting(3, "count", "crashes of one job until it fails")
    pending_for: float = _setting(10 * DAY, "duration", "time to confirm a job")
    first_reminder: float = _setting(7 * DAY, "duration", "first reminder to pick a result up")
    second_reminder: float = _setting(21 * DAY, "duration", "second reminder")
    last_notice: float = _setting(27 * DAY, "duration", "notice that the result is about to be removed")
    keep_for: float = _setting(28 * DAY, "duration", "how long results are kept")
    forget_after: float = _setting(7 * DAY, "duration", "when an address is deleted after the result was picked up")
    mail_for: float = _setting(3 * DAY, "duration", "how long the delivery of a mail is tried")
    listings_for: float = _setting(7 * DAY, "duration", "how long listings are shared between jobs")
    relist_after: float = _setting(30 * DAY, "duration", "when archives are asked again for who wants to know of more")
    relist_gain: float = _setting(0.05, "share", "gain in resources from which a mail about more is written")
    per_address: int = _setting(20, "count", "submissions of one e-mail address a day")
    per_network: int = _setting(60, "count", "submissions of one network (IPv4 /24, IPv6 /48) a day")
    per_site: int = _setting(30, "count", "submissions for one site a day")
    surveys_per_network: int = _setting(60, "count", "surveys of one network an hour")
    max_queue: int = _setting(10_000, "count", "jobs in the queue until new ones are refused")
    max_resources: int = _setting(200_000, "count", "resources of one recovery")
    max_bytes: int = _setting(20 * 10**9, "size", "size of one recovery")
    min_free: int = _setting(10**9, "size", "free disk space under which no new work is taken")
    pictures: int = _setting(3, "amount", "pictures of recovered pages, where Chromium is installed")
    drain: float = _setting(10.0, "duration", "time that requests under way have when the desk stops")

    @property
    def address(self) -> str:
        """The sender, also without one set."""
        return self.from_address or "desk@localhost"
