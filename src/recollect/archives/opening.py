"""Opening the client of archives: one function for commands, servers and the library, so that every request names its
operator and uses the proxies of the environment.

Hides: how the User-Agent header is composed. The operator is named by `contact` (a mail or web address) and
`user_agent`; where a caller gives neither, the variables RECOLLECT_CONTACT and RECOLLECT_USER_AGENT of the environment
hold. Commands set them by `--contact`, so that the processes they start inherit them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import inf

from recollect.archives.client import USER_AGENT, ArchiveClient
from recollect.archives.proxies import from_environment
from recollect.archives.transport import Permits
from recollect.errors import UsageError

CONTACT_VARIABLE = "RECOLLECT_CONTACT"
USER_AGENT_VARIABLE = "RECOLLECT_USER_AGENT"
# A header field takes visible ASCII; anything else would be refused by servers, or end the header.
_FIELD = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Limits and identity of a client; `ArchiveClient` describes the limits."""

    timeout: float = 30.0
    concurrency: int = 8
    in_flight: int | None = None
    patience: float = inf
    connect_timeout: float = 5.0
    backs_off: bool = True
    user_agent: str = ""
    contact: str = ""


def open_client(options: ClientOptions = ClientOptions(), *, permits: Permits | None = None) -> ArchiveClient:  # noqa: B008 - frozen
    """A client for archives, made inside a running loop; close it, or use `async with`."""
    return ArchiveClient(
        user_agent=operator_agent(options.user_agent, options.contact),
        timeout=options.timeout,
        concurrency=options.concurrency,
        in_flight=options.in_flight,
        patience=options.patience,
        connect_timeout=options.connect_timeout,
        backs_off=options.backs_off,
        permits=permits,
        proxies=from_environment,
    )


def operator_agent(user_agent: str = "", contact: str = "") -> str:
    """The User-Agent header for archives and live sites, with the operator's address.

    >>> operator_agent("recollect/1", "me@example.org")
    'recollect/1 <me@example.org>'
    """
    agent = user_agent or os.environ.get(USER_AGENT_VARIABLE, "") or USER_AGENT
    address = contact or os.environ.get(CONTACT_VARIABLE, "")
    for name, value in (("user agent", agent), ("contact", address)):
        if value and not _FIELD.fullmatch(value):
            raise UsageError(f"the {name} has characters that a header cannot hold", where=value[:80])
    return f"{agent} <{address}>" if address else agent
