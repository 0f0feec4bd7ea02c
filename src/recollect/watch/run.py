"""One round of a watch: visit the sites that are due, write down what was seen, and do what follows.

Hides: the order of things. The front pages of all due sites are asked first, so that a failure of our own network
(all canaries fail, or several sites at once) is told from theirs; then each site is judged, its resources are observed,
and all of it is written in one transaction. Notices are queued in that transaction and sent afterwards; a recovery
runs after it, too, and is begun again if the process dies.

Time comes in as an argument: a year of visits runs in seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import urljoin, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.registry import Archive
from recollect.archives.transport import Transport
from recollect.model import ProgressCallback
from recollect.watch.identity import page_of
from recollect.watch.look import Looked, archived, is_soft_404, live_sample, resource_of
from recollect.watch.notices import Mailer, deliver
from recollect.watch.registration import Registration, ask_rdap, changes, host_of
from recollect.watch.saving import SaveEndpoint, request_saves
from recollect.watch.states import (
    RULES,
    Live,
    Notice,
    Rules,
    Seen,
    SiteState,
    SiteStatus,
    after,
    next_visit,
    notice_of,
)
from recollect.watch.store import OnLoss, Past, Resource, Site, Store, counts_of
from recollect.watch.visit import Visit, judge_visit, live_document

SITES_AT_ONCE = 3
"""Without canaries, so many sites that fail at once, and no other that answers, mean that our network is down."""
VISITS_AT_ONCE = 8
"""Sites that are looked at in parallel; each still gets one request a second."""
ASK_ARCHIVES_EVERY = timedelta(days=7)
REMIND_EVERY = timedelta(days=30)
_OLD_ADDRESSES = 3

Recover = Callable[[Site, str], Awaitable[None]]
"""Recover a site as it was before its loss into a folder below the data folder; raises what a recovery raises."""


@dataclass(frozen=True)
class Tools:
    """What a round works with."""

    live: Callable[[bool], LiveClient]
    """Makes a client; the argument says whether private addresses are allowed."""
    archives: Callable[[str], tuple[Archive, ...]]
    """The archives of a file."""
    client: Transport
    canaries: Sequence[str] = ()
    rules: Rules = RULES
    recover: Recover | None = None
    mailer: Mailer | None = None
    rdap: str = ""
    """Address of an RDAP server; empty to ask none."""
    domain: Callable[[str], str] = host_of
    """The domain of a URI as registries know it."""
    save: SaveEndpoint | None = None
    own_services: bool = False
    """Whether the RDAP server and the save endpoint may be on a private address."""
    progress: ProgressCallback | None = None
    failed_at: dict[str, datetime] = field(default_factory=dict)
    """Recoveries that failed in this process; they are tried again a day later."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    visited: tuple[tuple[str, Visit, SiteStatus], ...] = ()
    recovered: tuple[str, ...] = ()
    failures: tuple[str, ...] = field(default=())
    """Recoveries and visits that failed, in words."""
    notices: int = 0
    saves: int = 0


async def run_round(store: Store, tools: Tools, now: datetime) -> Round:
    """Visit every site that is due."""
    due = store.due(now)
    clients = {allowed: tools.live(allowed) for allowed in {site.allow_private for site in due}}
    visited: list[tuple[str, Visit, SiteStatus]] = []
    failures: list[str] = []
    at_once = asyncio.Semaphore(VISITS_AT_ONCE)

    async def one(site: Site, front: LiveAnswer, offline: bool) -> None:
        async with at_once:
            try:
                visited.append(await _visit(store, tools, clients[site.allow_private], site, front, offline, now))
            except (Exception, RecursionError) as error:  # a fault with one site must not stop the others
                failures.append(f"{site.uri}: {type(error).__name__}: {error}")
                with store.transaction():
                    store.put_site(replace(site, next_visit=now + tools.rules.every))

    try:
        fronts = await asyncio.gather(*(clients[site.allow_private].get(site.uri) for site in due))
        offline = await _is_offline(fronts, clients, tools)
        await asyncio.gather(*(one(site, front, offline) for site, front in zip(due, fronts, strict=True)))
    finally:
        for client in clients.values():
            await client.close()
    _remind(store, now)
    recovered, not_recovered = await _recover(store, tools, now)
    notices = await _notify(store, tools, now)
    saves = 0
    if tools.save is not None:
        async with tools.live(tools.own_services) as client:
            saves = await request_saves(store, client, tools.save, now)
    store.compact(now)
    visited.sort(key=lambda item: item[0])
    return Round(tuple(visited), recovered, (*failures, *not_recovered), notices, saves)


async def _notify(store: Store, tools: Tools, now: datetime) -> int:
    """Send the notices that are due."""
    clients: dict[bool, LiveClient] = {}

    async def post(site: Site, content: bytes, headers: Mapping[str, str]) -> LiveAnswer:
        client = clients.setdefault(site.allow_private, tools.live(site.allow_private))
        return await client.post(site.webhook, content, headers)

    try:
        done = await deliver(store, tools.mailer, post, now)
    finally:
        for client in clients.values():
            await client.close()
    if tools.mailer is not None:
        addresses = {site.uri: site.email for site in store.sites() if site.email}
        await asyncio.to_thread(tools.mailer.send, addresses, now)
    return done


async def _is_offline(fronts: Sequence[LiveAnswer], clients: dict[bool, LiveClient], tools: Tools) -> bool:
    """Whether failures are our own: every canary fails, or, without canaries, every one of several sites does."""
    failed = [front for front in fronts if front.failure is not None]
    if not failed:
        return False
    if tools.canaries:
        client = clients.get(True) or next(iter(clients.values()))
        answers = await asyncio.gather(*(client.get(canary) for canary in tools.canaries))
        return all(answer.failure is not None for answer in answers)
    return len(fronts) >= SITES_AT_ONCE and len(failed) == len(fronts)


async def _visit(
    store: Store, tools: Tools, client: LiveClient, site: Site, front: LiveAnswer, offline: bool, now: datetime
) -> tuple[str, Visit, SiteStatus]:
    portrait = site.known()
    resources = {resource.uri: resource for resource in store.resources(site.uri)}
    visit = judge_visit(front, portrait, offline=offline)
    if visit.seen in (Seen.FOREIGN, Seen.FOREIGN_CONFIRMED):
        # Whether the addresses the site had are gone confirms it, or not.
        impossible = await client.get(impossible_address(site.uri, now))
        pages = [r.uri for r in resources.values() if "html" in r.media_type and r.uri not in (site.uri, front.url)]
        old = [await client.get(uri) for uri in pages[:_OLD_ADDRESSES]]
        now_registered = await _registration(tools, site)
        known = changes(Registration.from_json(site.registration), now_registered)
        visit = judge_visit(front, portrait, offline=offline, impossible=impossible, old=old, changes=known)
    status = after(site.status, visit.seen, now, tools.rules)
    looked: list[Looked] = []
    registration = site.registration
    if visit.seen is Seen.OWN:
        if _asks_registry(site, now):
            registered = await _registration(tools, site)
            registration = registered.to_json() if registered is not None else registration
        looked = await observe(tools, client, site, front, resources, now)
        for one in looked:
            document = live_document(one.answer) if one.answer is not None else None
            if document is not None and document.form == "html":
                portrait.learn(page_of(document, one.resource.uri))
    elif status.state in (SiteState.LOST, SiteState.TAKEN_OVER) and site.status.state is not status.state:
        looked = [Looked(replace(one, live=Live.GONE, live_at=now), None) for one in resources.values()]
    changed = replace(
        site,
        status=status,
        portrait=portrait.to_json(),
        registration=registration,
        last_visit=now,
        next_visit=next_visit(status, now, tools.rules),
        moved_to=visit.moved_to or site.moved_to,
    )
    _write(store, site, changed, visit, looked, resources, now)
    return site.uri, visit, status


def _asks_registry(site: Site, now: datetime) -> bool:
    """Whether the registry is asked on this visit: the first one, and then the first of every ISO week."""
    last = site.last_visit
    return not site.registration or last is None or last.isocalendar()[:2] != now.isocalendar()[:2]


async def _registration(tools: Tools, site: Site) -> Registration | None:
    if not tools.rdap:
        return None
    async with tools.live(tools.own_services) as client:
        return await ask_rdap(client, tools.rdap, tools.domain(site.uri))


def impossible_address(site: str, now: datetime) -> str:
    """An address that no site has, another every day."""
    token = hashlib.blake2b(f"{site} {now:%Y-%m-%d}".encode(), digest_size=8).hexdigest()
    return urljoin(site, f"/recollect-{token}.html")


async def observe(
    tools: Tools, client: LiveClient, site: Site, front: LiveAnswer, known: dict[str, Resource], now: datetime
) -> list[Looked]:
    """Look at a sample of the site's resources, and ask the archives about those not asked lately."""
    answers = await live_sample(client, site.uri, front, site.sample, known=known.values(), progress=tools.progress)
    archives = [archive for archive in tools.archives(site.archives) if not archive.ignore]
    impossible = await client.get(impossible_address(site.uri, now))
    looked = []
    for answer in answers:
        before = known.get(answer.asked)
        soft = is_soft_404(answer, impossible, front)
        resource = resource_of(site.uri, replace(answer, status=404) if soft else answer, now, before)
        stale = before is None or before.held_at is None or now - before.held_at >= ASK_ARCHIVES_EVERY
        if stale or (before is not None and before.digest != resource.digest):
            looked.append(await archived(tools.client, archives, resource, answer, now))
        else:
            looked.append(Looked(resource, answer))
    return looked


def _write(
    store: Store,
    before: Site,
    site: Site,
    visit: Visit,
    looked: Sequence[Looked],
    known: dict[str, Resource],
    now: datetime,
) -> None:
    status = site.status
    with store.transaction():
        store.add_visit(Past(site.uri, now, visit.seen, status.state, visit.why))
        for one in looked:
            store.put_resource(one.resource)
        everything = known | {one.resource.uri: one.resource for one in looked}
        store.add_tally(site.uri, now, counts_of(everything.values()))
        notice = notice_of(before.status, status)
        if notice is not None:
            assert status.since is not None
            store.add_notice(site.uri, notice, status.since, now, visit.why)
        store.put_site(site)


def _remind(store: Store, now: datetime) -> None:
    """A notice a month for what is still gone."""
    for site in store.sites():
        since = site.status.since
        if site.status.state in (SiteState.LOST, SiteState.TAKEN_OVER) and since is not None:
            months = (now - since) // REMIND_EVERY
            if months >= 1:
                with store.transaction():
                    store.add_notice(site.uri, Notice.REMINDER, since + months * REMIND_EVERY, now, "")


async def _recover(store: Store, tools: Tools, now: datetime) -> tuple[tuple[str, ...], tuple[str, ...]]:
    done, failures = [], []
    for site in store.sites():
        folder = recovery_folder(site)
        if tools.recover is None or not folder or site.recovery == folder:
            continue
        failed = tools.failed_at.get(folder)
        if failed is not None and abs(now - failed) < tools.rules.every:
            continue
        try:
            await tools.recover(site, folder)
        except Exception as error:
            tools.failed_at[folder] = now
            failures.append(f"{site.uri}: {error}")
            continue
        with store.transaction():
            fresh = store.site(site.uri)
            if fresh is not None:
                store.put_site(replace(fresh, recovery=folder))
        done.append(site.uri)
    return tuple(done), tuple(failures)


def recovery_folder(site: Site) -> str:
    """Where the recovery of a lost site goes, one for each loss; empty if none is wanted."""
    status = site.status
    if site.on_loss is not OnLoss.RECOVER or status.state not in (SiteState.LOST, SiteState.TAKEN_OVER):
        return ""
    host = re.sub(r"[^a-z0-9.-]", "_", (urlsplit(site.uri).netloc or "site").lower())
    assert status.since is not None
    return f"recovered/{host}-{status.since:%Y%m%d}"
