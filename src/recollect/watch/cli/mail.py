"""What ties a watch to the desk: mails through the desk's outbox, recoveries as jobs of a desk.

The rooms `watch` and `service` do not know each other; this is where the protocol of one meets the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from recollect.desk.database import Connection, Row, open_database
from recollect.desk.outbox import Kind, Transport, compose, enqueue, send_due, transport_of
from recollect.desk.settings import DAY, DeskSettings
from recollect.desk.states import DELIVERED, State
from recollect.errors import RecollectError, UsageError
from recollect.formats.containers import atomic_output
from recollect.watch.records import RecoveryState
from recollect.watch.recoveries import RecoveryProgress

if TYPE_CHECKING:
    from recollect.watch.notices import Letter
    from recollect.watch.records import RecoveryRecord, Resource, Site
    from recollect.watch.recoveries import Recoverer

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
    data: Path = Path()
    local: Recoverer | None = None
    """Recovers lost pages of a live site: a desk recovers whole sites."""

    async def start(self, site: Site, folder: str, pages: Sequence[Resource] = ()) -> RecoveryProgress:
        """Queue the recovery of a site as it was before its loss. Asking again gives the same job."""
        if pages and self.local is not None:
            return await self.local.start(site, folder, pages)
        if not site.email:
            raise UsageError("a job at a desk needs an address for its mails", where=site.uri, hint="watch add --email")
        since = site.status.since
        asked = {"uri": site.uri, "email": site.email} | ({"to": f"{since:%Y%m%d%H%M%S}"} if since else {})
        key = hashlib.blake2b(f"watch {since} {site.uri}".encode(), digest_size=16).hexdigest()
        fields = {"Content-Type": "application/json", "Idempotency-Key": f'"{key}"'}
        reply = await self._ask("/api/jobs", json.dumps(asked).encode(), fields)
        place = self.data / folder
        place.mkdir(parents=True, exist_ok=True)
        with atomic_output(place / "job.json") as file:
            file.write(json.dumps({"desk": self.address, "job": reply["id"]}).encode() + b"\n")
        return RecoveryProgress(
            RecoveryState.QUEUED, str(reply["id"]), str(reply.get("token", "")), str(reply.get("state", ""))
        )

    async def follow(self, recovery: RecoveryRecord) -> RecoveryProgress:
        """How a job stands."""
        reply = await self._ask(f"/api/jobs/{quote(recovery.job)}?{urlencode({'token': recovery.token})}", None, {})
        state = str(reply.get("state", ""))
        if state in DELIVERED:
            return RecoveryProgress(RecoveryState.DONE, detail=str(reply.get("status_url") or state))
        ended = {State.NOTHING_FOUND: RecoveryState.NOTHING_FOUND} | dict.fromkeys(
            (State.FAILED, State.CANCELLED, State.EXPIRED), RecoveryState.FAILED
        )
        found = next((value for word, value in ended.items() if word == state), RecoveryState.QUEUED)
        return RecoveryProgress(found, detail=" ".join(filter(None, (state, str(reply.get("reason") or "")))))

    async def _ask(self, path: str, content: bytes | None, fields: dict[str, str]) -> dict[str, Any]:
        """The JSON that the desk answers; the operator chose the desk, so it may be on a private address."""
        from recollect.archives.live import LiveClient
        from recollect.archives.opening import operator_agent

        url = self.address.rstrip("/") + path
        headers = fields | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        async with LiveClient(user_agent=operator_agent(), allow_private=True) as client:
            answer = await (client.get(url, headers) if content is None else client.post(url, content, headers))
        where = self.address.rstrip("/") + path.partition("?")[0]
        if answer.failure is not None:
            raise RecollectError("the desk does not answer", where=where, why=answer.why)
        if not 200 <= answer.status < 300:
            why = f"status {answer.status}: {_refusal(answer.body)}"
            raise RecollectError("the desk does not take the request", where=where, why=why)
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise RecollectError("the desk sent an unexpected response", where=where, why=str(error)) from error
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            raise RecollectError("the desk sent an unexpected response", where=where, why="no id of a job")
        return value


def _refusal(body: bytes) -> str:
    """Why a desk refuses, in its own words: those of its JSON, else the beginning of its answer."""
    try:
        error = json.loads(body)["error"]
        return "; ".join(str(error[name]) for name in ("message", "hint") if error.get(name))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return " ".join(body[:500].decode("utf-8", "replace").split())
