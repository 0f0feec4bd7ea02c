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
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import urljoin, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.registry import Archive
from recollect.archives.transport import Transport
from recollect.model import ProgressCallback
from recollect.watch.identity import page_of
from recollect.watch.look import Looked, archived, live_sample, resource_of
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
    progress: ProgressCallback | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    visited: tuple[tuple[str, Visit, SiteStatus], ...] = ()
    recovered: tuple[str, ...] = ()
    failures: tuple[str, ...] = field(default=())
    """Recoveries that failed, in words."""


async def run_round(store: Store, tools: Tools, now: datetime) -> Round:
    """Visit every site that is due."""
    due = store.due(now)
    clients = {allowed: tools.live(allowed) for allowed in {site.allow_private for site in due}}
    visited = []
    try:
        fronts = await asyncio.gather(*(clients[site.allow_private].get(site.uri) for site in due))
        offline = await _is_offline(fronts, clients, tools)
        for site, front in zip(due, fronts, strict=True):
            visited.append(await _visit(store, tools, clients[site.allow_private], site, front, offline, now))
    finally:
        for client in clients.values():
            await client.close()
    _remind(store, now)
    recovered, failures = await _recover(store, tools)
    store.compact(now)
    return Round(tuple(visited), recovered, failures)


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
        visit = judge_visit(front, portrait, offline=offline, impossible=impossible, old=old)
    status = after(site.status, visit.seen, now, tools.rules)
    looked: list[Looked] = []
    if visit.seen is Seen.OWN:
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
        last_visit=now,
        next_visit=next_visit(status, now, tools.rules),
        moved_to=visit.moved_to or site.moved_to,
    )
    _write(store, site, changed, visit, looked, resources, now)
    return site.uri, visit, status


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
    looked = []
    for answer in answers:
        before = known.get(answer.asked)
        resource = resource_of(site.uri, answer, now, before)
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


async def _recover(store: Store, tools: Tools) -> tuple[tuple[str, ...], tuple[str, ...]]:
    done, failures = [], []
    for site in store.sites():
        folder = recovery_folder(site)
        if tools.recover is None or not folder or site.recovery == folder:
            continue
        try:
            await tools.recover(site, folder)
        except Exception as error:
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
