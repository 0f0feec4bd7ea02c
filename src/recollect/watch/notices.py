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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote
from xml.etree import ElementTree

from recollect.archives.live import LiveAnswer
from recollect.datetimes import format_iso
from recollect.quantities import counted, format_percent
from recollect.watch.accepting import can_accept
from recollect.watch.pageloss import lost_pages
from recollect.watch.records import Attempts, NoticeRecord, OnLoss, Resource, Site, counts_of, held_of
from recollect.watch.recoveries import recovery_folder
from recollect.watch.states import Held, Notice, SiteState
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
    Notice.PAGES_LOST: "{site} has lost pages",
    Notice.PAGES_BACK: "{site}: all lost pages are there again",
    Notice.BAD_CERTIFICATE: "{site}: visitors see a warning about its certificate",
    Notice.SUSPENDED: "{site} is suspended by its host",
    Notice.DOMAIN_EXPIRED: "{site}: the registration of its domain has ended",
    Notice.DEFAULT_PAGE: "{site} shows the default page of a web server",
    Notice.MAINTENANCE: "{site} shows a maintenance page",
    Notice.CERTIFICATE_EXPIRES: "{site}: its certificate expires soon",
    Notice.DOMAIN_EXPIRES: "{site}: the registration of its domain ends",
    Notice.NEW_LINKS: "{site} links to new domains from most pages",
    Notice.OFFLINE: "{site} cannot be watched: nothing answers",
}
_OF_PAGES = {
    Notice.RECOVERED: "{site}: lost pages are recovered",
    Notice.NOT_RECOVERED: "{site}: lost pages could not be recovered",
}
_MEANING = {
    Notice.SUSPENDED: "Your files may still be there. Ask your hosting provider why the account is suspended.",
    Notice.DOMAIN_EXPIRED: "Your files may still be there. Most registrars renew a domain for some weeks after its "
    "end; later, anyone can register it.",
    Notice.DEFAULT_PAGE: "The server answers, but does not know the site: its configuration was lost or changed. "
    "Your files may still be there.",
    Notice.MAINTENANCE: "Visitors see that the site is being worked on. Your files may still be there. If the work is "
    "done, end the maintenance mode.",
    Notice.CERTIFICATE_EXPIRES: "It was not renewed in time. When it has expired, visitors see a warning.",
    Notice.DOMAIN_EXPIRES: "If it is not renewed, the site disappears, and anyone can register the domain.",
    Notice.NEW_LINKS: "If you did not add these links, the site may have been broken into: search spam is put into "
    "the templates of a site, often where no reader sees it.",
    Notice.OFFLINE: "Either the network of the machine that watches fails, or all that it asks. Until something "
    "answers, no loss can be noticed.",
}
_ACCEPTABLE = (
    *(Notice.TAKEN_OVER, Notice.PAGES_LOST, Notice.NEW_LINKS, Notice.LOST, Notice.REMINDER),
    *(Notice.SUSPENDED, Notice.DOMAIN_EXPIRED, Notice.DEFAULT_PAGE, Notice.MAINTENANCE),
)
_MOST_LISTED = 100


@dataclass(frozen=True)
class Background:
    """All that a mail tells beside the notice itself."""

    folder: Path = Path()
    """The data folder of the watch."""
    resources: tuple[Resource, ...] = ()
    accept: str = ""
    """Address that accepts the present content; empty if none can be given."""
    detail: str = ""
    """How a recovery ended."""

    @property
    def lost(self) -> tuple[Resource, ...]:
        return lost_pages(self.resources)

    @property
    def share(self) -> str:
        """How much would come back, of what is known."""
        held, known = held_of(counts_of(self.resources))
        if not known:
            return "It is not known which of its resources archives hold."
        share = format_percent(held, known)
        return f"Archives hold {held:,} of {counted(known, 'resource')} known of the site: {share} would come back."


def headline(notice: NoticeRecord, site: Site | None) -> str:
    """The notice in one line."""
    state = site.status.state.value.replace("-", " ") if site is not None else "gone"
    of_pages = site is not None and site.status.state is SiteState.PAGES_LOST
    words = _OF_PAGES.get(notice.kind) if of_pages else None
    return (words or _WORDS[notice.kind]).format(site=notice.site, state=state)


def key_of(notice: NoticeRecord) -> str:
    """The name of a notice: the same for the same cause."""
    return f"{notice.kind} {format_iso(notice.since)} {notice.site}"


def letter_of(notice: NoticeRecord, site: Site, background: Background | None = None) -> Letter:
    """The mail of a notice."""
    known = background or Background()
    lines = [headline(notice, site) + ".", ""]
    if (since := _since(notice, site, known)) is not None:
        lines.append(f"Since: {format_iso(since)}")
    if notice.kind is Notice.BAD_CERTIFICATE:
        lines.append(f"{notice.why[:1].upper()}{notice.why[1:]}; visitors see a warning. Your files are still there.")
    elif notice.why:
        lines.append(notice.why if notice.kind in _ENDS else f"Observed: {notice.why}")
    if notice.kind is Notice.MOVED and site.moved_to:
        lines.append(f"New address: {site.moved_to}")
    if meaning := _MEANING.get(notice.kind):
        lines += ["", meaning]
    if notice.kind is Notice.PAGES_LOST:
        lines += ["", *_lost_pages(known.lost), "", _copy(site, known.folder)]
    elif notice.kind in _RECOVERABLE:
        lines += ["", known.share, _copy(site, known.folder)]
    elif notice.kind in _ENDS:
        lines += ["", *([f"Folder: {known.folder / site.recovery}"] if site.recovery else [])]
    if notice.kind in _ACCEPTABLE and can_accept(site):
        lines += ["", *_accept(site, known)]
    lines += ["", f"The history: recollect watch history {site.uri} --data {known.folder}"]
    return Letter(key_of(notice), site.uri, headline(notice, site), "\n".join(lines) + "\n")


_ENDS = (Notice.RECOVERED, Notice.NOT_RECOVERED)
_WITHOUT_SINCE = (*_ENDS, Notice.CERTIFICATE_EXPIRES, Notice.DOMAIN_EXPIRES, Notice.OFFLINE)


def _since(notice: NoticeRecord, site: Site, known: Background) -> datetime | None:
    """When the cause of a notice began: of a reminder and of lost pages not the moment of the notice."""
    if notice.kind in _WITHOUT_SINCE:
        return None
    if notice.kind is Notice.REMINDER:
        return site.status.since
    gone = [one.gone_since for one in known.lost if one.gone_since is not None]
    return min(gone, default=notice.since) if notice.kind is Notice.PAGES_LOST else notice.since


_RECOVERABLE = (
    *(Notice.LOST, Notice.TAKEN_OVER, Notice.REMINDER, Notice.SUSPENDED, Notice.DOMAIN_EXPIRED, Notice.DEFAULT_PAGE),
    Notice.MAINTENANCE,
)


def _lost_pages(lost: Sequence[Resource]) -> list[str]:
    """Each lost page with its copy."""
    held = sum(bool(one.copy) for one in lost)
    lines = [f"{counted(len(lost), 'page')} lost, {held:,} with a copy in an archive:", ""]
    for one in lost[:_MOST_LISTED]:
        when = f" ({one.copied_at:%Y-%m-%d})" if one.copied_at is not None else ""
        since = f", gone since {one.gone_since:%Y-%m-%d}" if one.gone_since is not None else ""
        unknown = "no copy in an archive" if one.held is Held.NOT_HELD else "copies not known"
        lines += [f"  {one.uri}{since}", f"    {one.copy}{when}" if one.copy else f"    {unknown}"]
    if len(lost) > _MOST_LISTED:
        lines.append(f"  and {len(lost) - _MOST_LISTED:,} more: recollect watch status --json lists all")
    return lines


def _accept(site: Site, known: Background) -> list[str]:
    lines = ["If this is as you want it, say so, and the watch takes the present content for the site's:"]
    if known.accept:
        lines.append(f"  {known.accept}")
    return [*lines, f"  recollect watch accept {site.uri} --data {known.folder}"]


def _copy(site: Site, data: Path) -> str:
    folder = recovery_folder(site)
    if folder and folder == site.recovery:
        return f"Recovered copy: {data / folder}"
    if folder:
        return f"A copy is being recovered from archives into {data / folder}; a mail follows when it is there."
    if site.recovery:
        return f"Last recovered copy: {data / site.recovery}"
    return "No copy is recovered (--on-loss notify)." if site.on_loss is OnLoss.NOTIFY else _LATER


_LATER = "If it stays so for a week, a copy is recovered from archives."


def hook_of(notice: NoticeRecord, site: Site, lost: Sequence[Resource] = ()) -> dict[str, Any]:
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
        "pages": [{"uri": one.uri, "copy": one.copy or None} for one in lost[:_MOST_LISTED]],
        "text": headline(notice, site),
    }


async def deliver(
    store: Store, mailer: Mailer | None, post: Post, now: datetime, accept: Callable[[Site], str] = lambda _: ""
) -> int:
    """Hand over and post every notice that is due; returns how many are done. `accept` gives the address by which an
    owner accepts the present content."""
    done = 0
    silent: set[str] = set()
    sites = {site.uri: site for site in store.sites()}
    for notice in store.pending():
        site = sites.get(notice.site)
        if site is not None:
            if site.email and mailer is None:
                continue
            if site.email and mailer is not None:
                resources = tuple(store.resources(site.uri))
                known = Background(store.folder.resolve(), resources, accept(site))
                mailer.queue(letter_of(notice, site, known), now)
            if site.webhook and not await _posted(store, notice, site, post, now, silent):
                continue
        with store.transaction():
            store.sent(notice.number, now)
        done += 1
    return done


async def _posted(store: Store, notice: NoticeRecord, site: Site, post: Post, now: datetime, silent: set[str]) -> bool:
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
    content = json.dumps(hook_of(notice, site, lost_pages(store.resources(site.uri)))).encode()
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


def atom(sites: Mapping[str, Site], notices: list[NoticeRecord], now: datetime, *, most: int = 200) -> bytes:
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
