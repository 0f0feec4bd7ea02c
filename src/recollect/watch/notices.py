"""Notices about changes of watched sites, by mail, webhook and feed.

Hides: texts, retries and the order of steps. Each change is one row of the store, written with the visit that caused
it. Here the rows go out: a mail is handed to a `Mailer` under a key that never changes (handing it over twice is one
mail), a webhook is posted until it answers 2xx. A row is `sent` when all of its ways are done, so a process killed at
any moment begins again with the rows that are left.

An attempt is written down before it is made, and the next one is due minutes later. A process killed between the
answer of a server and its note repeats that one message; it carries the same Message-ID or `id`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote
from xml.etree import ElementTree

from recollect.archives.live import LiveAnswer
from recollect.datetimes import format_iso
from recollect.watch.records import Attempts, Pending, Site
from recollect.watch.recoveries import recovery_folder
from recollect.watch.states import Notice
from recollect.watch.store import Store

GIVE_UP_AFTER = timedelta(days=14)
_PAUSES = (timedelta(minutes=5), timedelta(hours=1), timedelta(hours=6), timedelta(days=1))
ATOM = "http://www.w3.org/2005/Atom"

Post = Callable[[Site, bytes, Mapping[str, str]], Awaitable[LiveAnswer]]
"""Posts to the webhook of a site."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail about a site; `key` is the same however often it is made."""

    key: str
    site: str
    subject: str
    body: str


class Mailer(Protocol):
    """A durable outbox."""

    def queue(self, letter: Letter, now: datetime) -> None:
        """Keep a letter until it is sent; a key that was queued before is not queued again."""

    def send(self, addresses: Mapping[str, str], now: datetime) -> int:
        """Send what is due to the address of each site; returns how many mails went out."""


_WORDS = {
    Notice.LOST: "{site} is lost",
    Notice.TAKEN_OVER: "{site} shows the content of someone else",
    Notice.MOVED: "{site} has moved",
    Notice.BACK: "{site} is back",
    Notice.REMINDER: "{site} is still {state}",
    Notice.RECOVERED: "{site} is recovered",
    Notice.NOT_RECOVERED: "{site} could not be recovered",
    Notice.OFFLINE: "{site} cannot be watched: nothing answers",
}


def headline(notice: Pending, site: Site | None) -> str:
    """The notice in one line."""
    state = site.status.state.value.replace("-", " ") if site is not None else "gone"
    return _WORDS[notice.kind].format(site=notice.site, state=state)


def key_of(notice: Pending) -> str:
    """The name of a notice: the same for the same cause."""
    return f"{notice.kind} {format_iso(notice.since)} {notice.site}"


def letter_of(notice: Pending, site: Site) -> Letter:
    """The mail of a notice."""
    lines = [headline(notice, site) + ".", "", f"Since: {format_iso(notice.since)}"]
    if notice.why:
        lines.append(f"Observed: {notice.why}")
    if notice.kind is Notice.MOVED and site.moved_to:
        lines.append(f"New address: {site.moved_to}")
    if notice.kind in (Notice.LOST, Notice.TAKEN_OVER, Notice.REMINDER):
        lines += ["", _copy(site), "The history: recollect watch history --data DIR " + site.uri]
    return Letter(key_of(notice), site.uri, headline(notice, site), "\n".join(lines) + "\n")


def _copy(site: Site) -> str:
    folder = recovery_folder(site)
    if folder and folder == site.recovery:
        return f"Recovered copy: {folder}"
    if folder:
        return f"A copy is being recovered from archives into {folder}; recollect watch status says when it is done."
    return f"Last recovered copy: {site.recovery}" if site.recovery else "No copy is recovered (--on-loss notify)."


def hook_of(notice: Pending, site: Site) -> dict[str, Any]:
    """The JSON a webhook gets."""
    return {
        "id": key_of(notice),
        "site": site.uri,
        "notice": notice.kind.value,
        "state": site.status.state.value,
        "since": format_iso(notice.since),
        "at": format_iso(notice.at),
        "why": notice.why,
        "moved_to": site.moved_to or None,
        "recovery": recovery_folder(site) or site.recovery or None,
        "text": headline(notice, site),
    }


async def deliver(store: Store, mailer: Mailer | None, post: Post, now: datetime) -> int:
    """Hand over and post every notice that is due; returns how many are done."""
    done = 0
    silent: set[str] = set()
    sites = {site.uri: site for site in store.sites()}
    for notice in store.pending():
        site = sites.get(notice.site)
        if site is not None:
            if site.email and mailer is None:
                continue
            if site.email and mailer is not None:
                mailer.queue(letter_of(notice, site), now)
            if site.webhook and not await _posted(store, notice, site, post, now, silent):
                continue
        with store.transaction():
            store.sent(notice.number, now)
        done += 1
    return done


async def _posted(store: Store, notice: Pending, site: Site, post: Post, now: datetime, silent: set[str]) -> bool:
    """Whether the webhook needs nothing more: it was posted, or given up. One that does not answer is added to
    `silent` and not posted to again in this round: its time-outs would hold up all others."""
    if site.webhook in silent:
        return False
    before = store.attempts(notice.number)
    if before is not None and before.done:
        return True
    # An attempt planned further ahead than any pause was planned by a clock that was wrong.
    if before is not None and now < before.next_at <= now + _PAUSES[-1]:
        return False
    count = before.count if before is not None else 0
    tried = Attempts(count + 1, now + _PAUSES[min(count, len(_PAUSES) - 1)])
    with store.transaction():
        store.put_attempts(notice.number, tried)
    content = json.dumps(hook_of(notice, site)).encode()
    answer = await post(
        site, content, {"Content-Type": "application/json", "Idempotency-Key": f'"{_urn(key_of(notice))}"'}
    )
    if answer.failure is not None:
        silent.add(site.webhook)
    good = answer.failure is None and 200 <= answer.status < 300
    error = "" if good else answer.why or f"status {answer.status}"
    over = good or now - notice.at >= GIVE_UP_AFTER
    with store.transaction():
        store.put_attempts(notice.number, Attempts(tried.count, tried.next_at, over, error))
    return over


def atom(sites: Mapping[str, Site], notices: list[Pending], now: datetime, *, most: int = 200) -> bytes:
    """All notices as an Atom feed, newest first; ids never change, so readers show each once."""
    ElementTree.register_namespace("", ATOM)
    feed = ElementTree.Element(f"{{{ATOM}}}feed")

    def add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
        safe = {key: _xml_text(value) for key, value in attributes.items()}
        element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", safe)
        element.text = _xml_text(text) or None
        return element

    add(feed, "id", "urn:recollect:watch")
    add(feed, "title", "Watched sites")
    add(feed, "updated", format_iso(max((notice.at for notice in notices), default=now)))
    add(add(feed, "author"), "name", "Recollect")
    for notice in notices[:most]:
        site = sites.get(notice.site)
        entry = add(feed, "entry")
        add(entry, "id", "urn:recollect:watch:" + _urn(key_of(notice)))
        add(entry, "title", headline(notice, site))
        add(entry, "updated", format_iso(notice.at))
        add(entry, "link", rel="alternate", href=notice.site)
        add(entry, "category", term=notice.kind.value)
        since = f"Since {format_iso(notice.since)}."
        add(entry, "summary", f"{since} {notice.why}".strip())
    ElementTree.indent(feed)
    content: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _urn(text: str) -> str:
    return quote(text, safe="")


def _xml_text(text: str) -> str:
    """Without characters that XML cannot hold: a site's answer may have any."""
    return "".join(c for c in text if c in "\t\n\r" or (c >= " " and not 0xD800 <= ord(c) <= 0xDFFF and c not in "￾￿"))
