"""What ties a watch to the desk: mails through the desk's outbox, recoveries as jobs of a desk.

The rooms `watch` and `service` do not know each other; this is where the protocol of one meets the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, UsageError
from recollect.service.database import Connection, Row, open_database
from recollect.service.outbox import Kind, Transport, compose, enqueue, send_due, transport_of
from recollect.service.settings import DAY, DeskSettings

if TYPE_CHECKING:
    from recollect.watch.notices import Letter
    from recollect.watch.store import Site

_LONGEST_PAUSE = 2 * 3600.0


class OutboxMailer:
    """The desk's outbox in the folder of a watch: each mail is a row until it is sent."""

    def __init__(self, folder: Path, smtp: str, from_address: str) -> None:
        self._settings = DeskSettings(data=str(folder), smtp=smtp, from_address=from_address, mail_for=14 * DAY)
        self._database = open_database(folder / "outbox.sqlite3")
        self._transport: Transport = transport_of(self._settings)

    def queue(self, letter: Letter, now: datetime) -> None:
        facts = {"subject": letter.subject, "body": letter.body}

        def work(c: Connection) -> None:
            enqueue(
                *(c, Kind.WATCH, now.timestamp(), self._settings),
                recipient=letter.site,
                once=letter.key,
                facts=facts,
            )

        self._database.transact(work)

    def send(self, addresses: Mapping[str, str], now: datetime) -> int:
        """Send what is due. A mail planned further ahead than any pause was planned by a clock that was wrong."""
        at = now.timestamp()
        self._database.transact(
            lambda c: c.change(
                "UPDATE outbox SET next_at = ?, created = ? WHERE state = 'waiting' AND next_at > ?",
                *(at, at, at + _LONGEST_PAUSE),
            )
        )

        def render(_: Connection, row: Row, moment: float) -> EmailMessage | None:
            address = addresses.get(row["recipient"], "")
            facts = json.loads(row["facts"])
            if not address:
                return None
            return compose(self._settings, row["message_id"], address, facts["subject"], facts["body"], moment)

        return send_due(self._database, self._transport, render, at, self._settings)

    def close(self) -> None:
        self._database.close()


@dataclass(frozen=True, slots=True)
class DeskJobs:
    """A desk that recovers lost sites."""

    address: str
    token: str = ""

    def submit(self, site: Site) -> str:
        """Queue the recovery of a site as it was before its loss; the job's id. Asking again gives the same job."""
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        if not site.email:
            raise UsageError("a job at a desk needs an address for its mails", where=site.uri, hint="watch add --email")
        since = site.status.since
        asked = {"uri": site.uri, "email": site.email} | ({"to": f"{since:%Y%m%d%H%M%S}"} if since else {})
        fields = {"Content-Type": "application/json", "Idempotency-Key": f'"watch {since} {site.uri}"'}
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        url = f"{self.address.rstrip('/')}/api/jobs"
        request = Request(url, json.dumps(asked).encode(), fields, method="POST")
        try:
            with urlopen(request, timeout=60) as answer:
                return str(json.loads(answer.read(1 << 20))["id"])
        except HTTPError as error:
            why = f"status {error.code}: {error.read(500).decode('utf-8', 'replace')}"
            raise RecollectError("the desk does not take the job", where=url, why=why) from error
        except (URLError, OSError, ValueError, KeyError, TypeError) as error:
            raise RecollectError("the desk does not answer", where=url, why=str(error)) from error
