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

    data: str = _setting("desk", "text", "folder of the desk: results, mails without SMTP, the SQLite file")
    database: str = _setting("", "text", "postgresql://… instead of SQLite in `data`", secret=True)
    archives: str | None = _setting(
        None, "text", "list of archives (TOML or JSON); the built-in list of public archives if unset"
    )
    host: str = _setting("127.0.0.1", "text", "address to listen on")
    port: int = _setting(1209, "port", "port to listen on; 0 lets the system choose")
    base_url: str = _setting("", "text", "public address of the desk, for links in mails")
    preview_url: str = _setting("", "text", "address of a separate origin for browsable previews; none if unset")
    preview_port: int | None = _setting(None, "port", "port that serves the previews of `preview_url`")
    workers: int = _setting(
        1, "amount", "recoveries at a time on this machine; 0 leaves all to `recollect desk worker`"
    )
    smtp: str = _setting("", "text", "mail server as host:port; mails are files in `data`/outbox if unset")
    smtp_user: str = _setting("", "text", "user name for the mail server")
    smtp_password: str = _setting("", "text", "password for the mail server", secret=True)
    smtp_tls: str = _setting("auto", "text", "`auto` (STARTTLS if offered), `starttls`, `tls` or `none`")
    from_address: str = _setting("", "text", "sender of the mails")
    operator_address: str = _setting("", "text", "where the operator gets mails about failures and takedowns")
    contact: str = _setting("", "text", "mail or web address added to the user agent that archives see")
    operator_name: str = _setting("", "text", "name of who offers the service: on pages and as the sender of mails")
    operator_logo: str = _setting("", "text", "file of a logo (SVG or PNG) for the head of pages")
    operator_colour: str = _setting("", "text", "main colour of pages, as #204060")
    imprint: str = _setting("", "text", "text of the page /imprint; no such page if unset")
    privacy: str = _setting("", "text", "text that the page /privacy ends with")
    footer: str = _setting("", "text", "text at the foot of every page")
    admin_password: str = _setting(
        "", "text", "password of the admin pages; generated and printed if unset", secret=True
    )
    lease: float = _setting(60.0, "duration", "how long a worker may send no report before its job is queued again")
    heartbeat: float = _setting(10.0, "duration", "how often a worker reports")
    stuck_after: float = _setting(
        300.0, "duration", "how long a recovery may make no progress, with no request under way, before it is restarted"
    )
    wait_for: float = _setting(
        6 * 3600.0, "duration", "how long a job waits for an archive that refuses, before what there is is delivered"
    )
    retry_for: float = _setting(
        3 * DAY, "duration", "how long archives that do not answer are asked again, before a job without result fails"
    )
    max_crashes: int = _setting(3, "count", "number of crashes after which a job fails")
    pending_for: float = _setting(10 * DAY, "duration", "time limit to confirm a job")
    first_reminder: float = _setting(7 * DAY, "duration", "when the first reminder to download a result is sent")
    second_reminder: float = _setting(21 * DAY, "duration", "when the second reminder is sent")
    last_notice: float = _setting(27 * DAY, "duration", "when the user is notified that the result will be removed")
    keep_for: float = _setting(28 * DAY, "duration", "how long results are kept")
    forget_after: float = _setting(
        7 * DAY, "duration", "when an e-mail address is deleted after the result was downloaded"
    )
    mail_for: float = _setting(3 * DAY, "duration", "how long delivery of a mail is retried")
    listings_for: float = _setting(7 * DAY, "duration", "how long listings are shared between jobs")
    relist_after: float = _setting(
        30 * DAY, "duration", "when archives are asked again for users who want to know about new captures"
    )
    relist_gain: float = _setting(0.05, "share", "gain in resources from which such a user gets a mail")
    tell_for: float = _setting(365 * DAY, "duration", "how long the e-mail address of such a user is kept")
    per_address: int = _setting(20, "count", "submissions per e-mail address and day")
    per_network: int = _setting(60, "count", "submissions per network (IPv4 /24, IPv6 /48) and day")
    per_site: int = _setting(30, "count", "submissions per site and day")
    surveys_per_network: int = _setting(60, "count", "surveys per network and hour")
    max_queue: int = _setting(10_000, "count", "length of the queue from which new jobs are refused")
    max_resources: int = _setting(200_000, "count", "largest number of resources of one recovery")
    max_bytes: int = _setting(20 * 10**9, "size", "size limit of one recovery")
    upload_bytes: int = _setting(10**9, "size", "size limit of the files that a person adds to one job; 0 takes none")
    upload_files: int = _setting(10, "count", "number of files that a person may add to one job")
    min_free: int = _setting(10**9, "size", "free disk space below which no new job is started")
    pictures: int = _setting(3, "amount", "pictures of recovered pages, where Chromium is installed")
    drain: float = _setting(10.0, "duration", "time for running requests to finish when the desk stops")

    @property
    def address(self) -> str:
        """The sender, also without one set."""
        return self.from_address or "desk@localhost"
