"""One round of a watch: visit the sites that are due, write down what was seen, and do what follows.

Hides: the order of steps. A site that answers is judged and its resources are observed at once; sites that do not
answer wait until all are asked, so that a failure of the local network (`watch.network`) is known before it is counted
against them. Each visit is written in one transaction, with the notice it causes. Notices are sent first, then lost
sites are recovered, which may take hours.

Time comes in as an argument: a year of visits runs in seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.archives.names import NameServer, ask_name_servers, gives_answers
from recollect.archives.registry import Archive
from recollect.archives.robots import ask_robots
from recollect.archives.transport import Transport
from recollect.errors import RecollectError
from recollect.model import ProgressCallback
from recollect.watch.holdings import HostListings, Looked, archived
from recollect.watch.look import MOST_ARCHIVE_SECONDS, Look, impossible_address, is_stale
from recollect.watch.network import Witnesses, is_offline
from recollect.watch.notices import Mailer, deliver
from recollect.watch.records import Observation, Past, Resource, Site, counts_of
from recollect.watch.recoveries import Recoverer, run_recoveries
from recollect.watch.registration import Registration, ask_rdap, changes, host_of
from recollect.watch.saving import SaveEndpoint, follow_saves, request_saves
from recollect.watch.states import (
    RULES,
    Live,
    Notice,
    Rules,
    SiteState,
    SiteStatus,
    VisitResult,
    after,
    next_visit,
    notice_of,
)
from recollect.watch.store import Store
from recollect.watch.visit import Visit, judge_visit

VISITS_AT_ONCE = 16
"""Sites that are looked at in parallel; each still gets one request a second."""
REMIND_EVERY = timedelta(days=30)
REPORT_OFFLINE_AFTER = timedelta(hours=20)
"""A visit a day, a little earlier than the day before, still reports within a day."""
_OLD_ADDRESSES = 3


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
    recoverer: Recoverer | None = None
    mailer: Mailer | None = None
    rdap: str = ""
    """Address of an RDAP server; empty to ask none."""
    resolver: NameServer | None = None
    """DNS server that is asked for the name servers of a domain; None to ask none."""
    domain: Callable[[str], str] = host_of
    """The domain of a URI as registries know it."""
    save: SaveEndpoint | None = None
    own_services: bool = False
    """Whether canaries, the RDAP server and the save endpoint may be on a private address."""
    progress: ProgressCallback | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    visited: tuple[tuple[str, Visit, SiteStatus], ...] = ()
    recovered: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """Recoveries and visits that failed, as text."""
    notices: int = 0
    saves: int = 0
    offline_since: datetime | None = None
    """Since when nothing at all answers, if that has been reported."""


async def run_round(store: Store, tools: Tools, now: datetime, *, recoveries: bool = True) -> Round:
    """Visit every site that is due, and do what follows; without `recoveries` these are left to the caller."""
    visited, failures, faults = await _Visits(store, tools, now).run()
    _remind(store, now)
    offline = _report_offline(store, now)
    notices = await _notify(store, tools, now)
    recovered: tuple[str, ...] = ()
    if recoveries and tools.recoverer is not None:
        recovered, not_recovered = await run_recoveries(store, tools.recoverer, now)
        failures += not_recovered
        notices += await _notify(store, tools, now)
    saves = 0
    if tools.save is not None:
        async with tools.live(tools.own_services) as client:
            await follow_saves(store, client, tools.save, now)
            saves = await request_saves(store, client, tools.save, now)
    store.compact(now)
    if faults:
        raise faults[0]  # an error in the program: reported when everything else is done
    return Round(visited, recovered, failures, notices, saves, offline)


class _Visits:
    """The visits of one round."""

    def __init__(self, store: Store, tools: Tools, now: datetime) -> None:
        self.store, self.tools, self.now = store, tools, now
        self.visited: list[tuple[str, Visit, SiteStatus]] = []
        self.at_once = asyncio.Semaphore(VISITS_AT_ONCE)
        self.clients: dict[bool, LiveClient] = {}

    async def run(
        self,
    ) -> tuple[tuple[tuple[str, Visit, SiteStatus], ...], tuple[str, ...], tuple[BaseException, ...]]:
        """What was visited, what failed, as text, and errors of the program."""
        due = self.store.due(self.now)
        failures: list[str] = []
        faults: list[BaseException] = []
        try:
            fronts = await asyncio.gather(*map(self._ask_and_visit, due), return_exceptions=True)
            parked = [(site, front) for site, front in zip(due, fronts, strict=True) if isinstance(front, LiveAnswer)]
            offline = await self._is_offline(due, parked)
            late = await asyncio.gather(
                *(self._visit_late(site, front, offline) for site, front in parked), return_exceptions=True
            )
        finally:
            for client in self.clients.values():
                await client.close()
        pairs = [*zip(due, fronts, strict=True), *zip((site for site, _ in parked), late, strict=True)]
        for site, result in pairs:
            if isinstance(result, BaseException):
                self._postpone(site)
                expected = isinstance(result, (RecollectError, OSError))
                failures += [f"{site.uri}: {result}"] if expected else []
                faults += [] if expected else [result]
        return tuple(sorted(self.visited, key=lambda item: item[0])), tuple(failures), tuple(faults)

    def _client(self, allow_private: bool) -> LiveClient:
        if allow_private not in self.clients:
            self.clients[allow_private] = self.tools.live(allow_private)
        return self.clients[allow_private]

    async def _ask_and_visit(self, site: Site) -> LiveAnswer | None:
        """Visit a site; the answer for its front page if there was none, to be judged when all were asked."""
        async with self.at_once:
            front = await self._client(site.allow_private).get(site.uri)
            if front.failure is not None:
                return front
            await self._visit(site, front, offline=False)
            return None

    async def _visit_late(self, site: Site, front: LiveAnswer, offline: bool) -> None:
        async with self.at_once:
            await self._visit(site, front, offline)

    async def _is_offline(self, due: Sequence[Site], failed: Sequence[tuple[Site, LiveAnswer]]) -> bool:
        watched = self.store.sites()
        names = {site.uri for site in due}
        private = self.tools.own_services or any(site.allow_private for site in watched)
        sites = [site for site, _ in failed]
        local = any(site.allow_private for site in sites)
        listed = {one.id: one for site in sites for one in self.tools.archives(site.archives) if not one.ignore}
        resolver = self.tools.resolver
        witnesses = Witnesses(
            lambda site: self._client(site.allow_private).get(site.uri),
            lambda canary: self._client(private).get(canary),
            lambda front: self._client(local).get(front),
            (lambda domain: gives_answers(resolver, domain)) if resolver is not None else None,
            self.tools.canaries,
            tuple(listed.values()),
            tuple(dict.fromkeys(domain for site in sites if (domain := self.tools.domain(site.uri)))),
        )
        return await is_offline(sites, len(failed) < len(due), [s for s in watched if s.uri not in names], witnesses)

    def _postpone(self, site: Site) -> None:
        """A visit that failed on this side is repeated a day later."""
        with self.store.transaction():
            if (fresh := self.store.site(site.uri)) is not None:
                self.store.put_site(replace(fresh, next_visit=self.now + self.tools.rules.every))

    async def _visit(self, site: Site, front: LiveAnswer, offline: bool) -> None:
        tools, now = self.tools, self.now
        client = self._client(site.allow_private)
        known = {resource.uri: resource for resource in self.store.resources(site.uri)}
        visit = await self._judge(client, site, front, known, offline)
        status = after(site.status, visit.seen, now, tools.rules)
        looked: list[Looked] = []
        changed = replace(
            site,
            status=status,
            last_visit=now,
            next_visit=now + tools.rules.retries[0] if offline else next_visit(status, now, tools.rules),
            moved_to=visit.moved_to or site.moved_to,
        )
        archives = [archive for archive in tools.archives(site.archives) if not archive.ignore]
        if visit.seen is VisitResult.OWN:
            portrait = site.known()
            look = Look(client, tools.client, archives, site.uri, site.sample, portrait, tools.progress)
            looked = [one async for one in look.resources(front, known, now)]
            registration = await self._registration(site) if _asks_registry(site, now) else None
            changed = replace(
                changed,
                portrait=portrait.to_json(),
                registration=registration.to_json() if registration is not None else site.registration,
            )
        elif not offline:
            looked = await self._ask_archives(site, status, known, archives)
        self._write(site, changed, visit, looked, known)
        self.visited.append((site.uri, visit, status))

    async def _judge(
        self, client: LiveClient, site: Site, front: LiveAnswer, known: Mapping[str, Resource], offline: bool
    ) -> Visit:
        portrait = site.known()
        visit = judge_visit(front, portrait, offline=offline)
        if visit.seen not in (VisitResult.FOREIGN, VisitResult.FOREIGN_CONFIRMED):
            return visit
        # Whether the addresses the site had are gone confirms it, or not.
        robots = await ask_robots(client, site.uri)
        wanted = impossible_address(site.uri, self.now)
        impossible = await client.get(wanted) if robots.allow(wanted) else None
        pages = [
            one.uri
            for one in known.values()
            if "html" in one.media_type and one.live is Live.LIVE and one.uri not in (site.uri, front.url)
        ]
        old = [await client.get(uri) for uri in pages[:_OLD_ADDRESSES] if robots.allow(uri)]
        found = changes(Registration.from_json(site.registration), await self._registration(site))
        return judge_visit(front, portrait, offline=offline, impossible=impossible, old=old, changes=found)

    async def _ask_archives(
        self, site: Site, status: SiteStatus, known: Mapping[str, Resource], archives: Sequence[Archive]
    ) -> list[Looked]:
        """What archives hold of a site that cannot be looked at; with its loss all that was live is gone."""
        tools, now = self.tools, self.now
        lost = status.state in (SiteState.LOST, SiteState.TAKEN_OVER) and site.status.state is not status.state
        looked = []
        asked = 0
        listings = HostListings(tools.client)
        clock = asyncio.get_running_loop().time
        deadline = clock() + MOST_ARCHIVE_SECONDS
        for resource in sorted(known.values(), key=lambda one: (one.held_at is not None, one.held_at, one.uri)):
            noted = replace(resource, live=Live.GONE, live_at=now) if lost else resource
            if asked < site.sample and is_stale(resource, now) and clock() < deadline:
                asked += 1
                looked.append(await archived(listings, archives, noted, None, now))
            elif lost:
                looked.append(Looked(noted, None))
        return looked

    async def _registration(self, site: Site) -> Registration | None:
        """What registries and name servers say of a site's domain; None if none is asked or none answers."""
        tools = self.tools
        domain = tools.domain(site.uri)
        found = None
        if tools.rdap and domain:
            async with tools.live(tools.own_services) as client:
                found = await ask_rdap(client, tools.rdap, domain)
        servers = await ask_name_servers(tools.resolver, domain) if tools.resolver is not None and domain else ()
        if found is None and not servers:
            return None
        return replace(found or Registration(), served_by=servers)

    def _write(
        self, before: Site, site: Site, visit: Visit, looked: Sequence[Looked], known: Mapping[str, Resource]
    ) -> None:
        store, now, status = self.store, self.now, site.status
        with store.transaction():
            fresh = store.site(site.uri)
            if fresh is None:
                return  # removed meanwhile
            store.add_visit(Past(site.uri, now, visit.seen, status.state, visit.why))
            for one in looked:
                store.put_resource(one.resource)
                store.add_observation(_observation(one, now))
            everything = {**known, **{one.resource.uri: one.resource for one in looked}}
            store.add_tally(site.uri, now, counts_of(everything.values()))
            notice = notice_of(before.status, status)
            if notice is not None:
                assert status.since is not None
                store.add_notice(site.uri, notice, status.since, now, visit.why)
            store.put_site(replace(site, recovery=fresh.recovery))


def _observation(one: Looked, now: datetime) -> Observation:
    resource, answer = one.resource, one.answer
    status = answer.status if answer is not None and answer.failure is None else 0
    confirmed = resource.live if resource.live_at == now else Live.UNKNOWN
    return Observation(resource.site, resource.uri, now, status, confirmed, resource.held, resource.fresh)


async def _notify(store: Store, tools: Tools, now: datetime) -> int:
    """Send the notices that are due."""
    clients: dict[bool, LiveClient] = {}

    async def post(site: Site, content: bytes, headers: Mapping[str, str]) -> LiveAnswer:
        if site.allow_private not in clients:
            clients[site.allow_private] = tools.live(site.allow_private)
        return await clients[site.allow_private].post(site.webhook, content, headers)

    try:
        done = await deliver(store, tools.mailer, post, now)
    finally:
        for client in clients.values():
            await client.close()
    if tools.mailer is not None:
        addresses = {site.uri: site.email for site in store.sites() if site.email}
        await asyncio.to_thread(tools.mailer.send, addresses, now)
    return done


def _asks_registry(site: Site, now: datetime) -> bool:
    """Whether the registry is asked on this visit: the first one, and then the first of every ISO week."""
    last = site.last_visit
    return not site.registration or last is None or last.isocalendar()[:2] != now.isocalendar()[:2]


def _report_offline(store: Store, now: datetime) -> datetime | None:
    """A notice for each recipient when nothing has answered for a day; since when, if so. Either the network of the
    watch fails, or everything it asks: nobody would notice otherwise."""
    silent = {uri: at for uri, at in store.offline_since().items() if now - at >= REPORT_OFFLINE_AFTER}
    recipients: dict[tuple[str, str], list[Site]] = {}
    for site in store.sites():
        if site.uri in silent:
            recipients.setdefault((site.email, site.webhook), []).append(site)
    with store.transaction():
        for sites in recipients.values():
            months = (now - silent[sites[0].uri]) // REMIND_EVERY
            others = ", ".join(site.uri for site in sites[1:11])
            more = f" and {len(sites) - 11} more" if len(sites) > 11 else ""
            why = "neither the site nor any canary, archive or DNS server answers" + (
                f"; the same holds for {others}{more}" if others else ""
            )
            since = silent[sites[0].uri] + months * REMIND_EVERY
            store.add_notice(sites[0].uri, Notice.OFFLINE, since, now, why)
    return min(silent.values(), default=None)


def _remind(store: Store, now: datetime) -> None:
    """A notice a month for what is still gone."""
    for site in store.sites():
        since = site.status.since
        if site.status.state in (SiteState.LOST, SiteState.TAKEN_OVER) and since is not None:
            months = (now - since) // REMIND_EVERY
            if months >= 1:
                with store.transaction():
                    store.add_notice(site.uri, Notice.REMINDER, since + months * REMIND_EVERY, now, "")
