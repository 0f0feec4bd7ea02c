"""Who a domain is registered to and which name servers serve it, and what changed since.

Hides: the JSON of RDAP (RFC 9083). An RDAP server is asked only where one is configured. The registrar, the
registrant's handle and the date of registration show whether the domain changed hands; the name servers, of RDAP and
of DNS, show whether it is served from elsewhere. What an answer does not have is unknown, and what is unknown has not
changed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.watch.visit import Confirmation

_MOST_NAME_SERVERS = 32


@dataclass(frozen=True, slots=True)
class Registration:
    """What a registry and DNS say of a domain; empty where they say nothing."""

    registrar: str = ""
    registrant: str = ""
    registered: str = ""
    name_servers: tuple[str, ...] = ()
    """As the registry lists them."""
    served_by: tuple[str, ...] = ()
    """As DNS answers."""
    expires: str = ""
    """When the registration ends, as the registry writes it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Registration | None:
        if not text:
            return None
        value = json.loads(text)
        return cls(
            *(value["registrar"], value["registrant"], value["registered"]),
            tuple(value.get("name_servers", ())),
            tuple(value.get("served_by", ())),
            value.get("expires", ""),
        )

    @property
    def ends(self) -> datetime | None:
        """When the registration ends; None if that is not known."""
        try:
            moment = datetime.fromisoformat(self.expires)
        except ValueError:
            return None
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def parse_rdap(content: bytes) -> Registration | None:
    """The registration of an RDAP answer for a domain; None if it is not one."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("objectClassName") != "domain":
        return None
    events = {str(event.get("eventAction")): str(event.get("eventDate", "")) for event in _objects(value, "events")}
    by_role: dict[str, str] = {}
    for entity in _objects(value, "entities"):
        for role in entity.get("roles") or ():
            by_role.setdefault(str(role), str(entity.get("handle") or ""))
    servers = (str(server.get("ldhName") or "").rstrip(".").lower() for server in _objects(value, "nameservers"))
    names = tuple(sorted({name for name in servers if name})[:_MOST_NAME_SERVERS])
    return Registration(
        *(by_role.get("registrar", ""), by_role.get("registrant", ""), events.get("registration", ""), names),
        expires=events.get("expiration", ""),
    )


def _objects(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    listed = value.get(name)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def merged(before: Registration | None, now: Registration) -> Registration:
    """What is known after an answer: a field that it does not have stays as it was."""
    if before is None:
        return now
    fields = {name: value or getattr(before, name) for name, value in asdict(now).items()}
    return Registration(**fields)


def changes(before: Registration | None, now: Registration | None) -> tuple[Confirmation, ...]:
    """What changed hands. Name servers have changed when none of the old ones is left."""
    if before is None or now is None:
        return ()
    found = []
    pairs = (
        (before.registrar, now.registrar),
        (before.registrant, now.registrant),
        (before.registered, now.registered),
    )
    if any(old and new and old != new for old, new in pairs):
        found.append(Confirmation.REGISTRATION)
    servers = ((before.name_servers, now.name_servers), (before.served_by, now.served_by))
    if any(old and new and not {*old} & {*new} for old, new in servers):
        found.append(Confirmation.NAME_SERVERS)
    return tuple(found)


async def ask_rdap(client: LiveClient, server: str, domain: str) -> Registration | None:
    """What an RDAP server says of a domain; None if it does not answer."""
    answer: LiveAnswer = await client.get(
        f"{server.rstrip('/')}/domain/{quote(domain, safe='.-')}", {"Accept": "application/rdap+json"}
    )
    good = answer.failure is None and answer.status == 200 and not answer.truncated
    return parse_rdap(answer.body) if good else None


def host_of(uri: str) -> str:
    try:
        return (urlsplit(uri).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""
