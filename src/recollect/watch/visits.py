"""The visits of one round: what each site shows, what of it is gone, and what archives hold.

Hides: the order of requests. A site that answers is judged and its resources are observed at once; sites that do not
answer wait until all are asked, so that a failure of the local network (`watch.network`) is known before it is counted
against them. Each visit is written in one transaction, with the notices it causes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.archives.certificates import Certificate
from recollect.archives.live import Failure, LiveAnswer, LiveClient
from recollect.archives.names import NameServer, ask_name_servers, gives_answers
from recollect.archives.registry import Archive
from recollect.archives.robots import ask_robots
from recollect.archives.transport import Transport
from recollect.datetimes import format_iso
from recollect.errors import RecollectError
from recollect.model import Progress, ProgressCallback
from recollect.quantities import counted
from recollect.recovery.fingerprint import SiteFingerprint
from recollect.watch.holdings import HostListings, ResourceReport, archived
from recollect.watch.look import MOST_ARCHIVE_SECONDS, Look, impossible_address, is_stale
from recollect.watch.network import Witnesses, is_offline
from recollect.watch.notices import Mailer
from recollect.watch.outside import MOST_DOMAINS, injected
from recollect.watch.pageloss import lost_pages
from recollect.watch.records import Notes, Observation, Resource, Site, VisitRecord, counts_of
from recollect.watch.recoveries import Recoverer
from recollect.watch.registration import Registration, ask_rdap, changes, host_of, merged
from recollect.watch.saving import SaveEndpoint
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
from recollect.watch.visit import Visit, certified, judge_visit
from recollect.watch.warnings import DueNotice, certificate_warning, domain_warning, needs_fresh_registration

VISITS_AT_ONCE = 16
"""Sites that are looked at in parallel; each still gets one request a second."""
TELL_PAGES_EVERY = timedelta(days=7)
"""Between notices of a site about lost pages."""
_OLD_ADDRESSES = 3
_MORE_WHEN_UNSURE = 3
"""How many times the sample is looked at while pages are gone and not yet confirmed."""
_MOST_DISALLOWED = 50


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
    accept: Callable[[Site], str] = lambda _: ""
    """The address by which an owner accepts the present content of a site."""


class Visits:
    """The visits of one round."""

    def __init__(self, store: Store, tools: Tools, now: datetime) -> None:
        self.store, self.tools, self.now = store, tools, now
        self.visited: list[tuple[str, Visit, SiteStatus]] = []
        self.at_once = asyncio.Semaphore(VISITS_AT_ONCE)
        self.clients: dict[bool, LiveClient] = {}
        self.due = self.begun = 0
        self.registered: set[str] = set()
        """Sites whose registry answered in this round."""

    async def run(
        self,
    ) -> tuple[tuple[tuple[str, Visit, SiteStatus], ...], tuple[str, ...], tuple[BaseException, ...]]:
        """What was visited, what failed, as text, and errors of the program."""
        due = self.store.due(self.now)
        self.due = len(due)
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
            self._begin()
            client = self._client(site.allow_private)
            front, problem = await client.get(site.uri), ""
            if front.failure is Failure.CERTIFICATE:
                # The server answers. What it shows behind the certificate decides what to say.
                behind = await client.get(site.uri, verify=False)
                front, problem = (behind, front.why) if behind.failure is None else (front, "")
            if front.failure is not None:
                return front
            await self._visit(site, front, problem=problem)
            return None

    def _begin(self) -> None:
        """Show that a site is visited, before it answers."""
        self.begun += 1
        if self.tools.progress is not None:
            self.tools.progress(Progress("visiting sites", self.begun, self.due, "sites"))

    async def _visit_late(self, site: Site, front: LiveAnswer, offline: bool) -> None:
        async with self.at_once:
            await self._visit(site, front, offline=offline)

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
            (*self.tools.canaries, *dict.fromkeys(site.canary for site in sites if site.canary)),
            tuple(listed.values()),
            tuple(dict.fromkeys(domain for site in sites if (domain := self.tools.domain(site.uri)))),
        )
        return await is_offline(sites, len(failed) < len(due), [s for s in watched if s.uri not in names], witnesses)

    def _postpone(self, site: Site) -> None:
        """A visit that failed on this side is repeated a day later."""
        with self.store.transaction():
            if (fresh := self.store.site(site.uri)) is not None:
                self.store.put_site(replace(fresh, next_visit=self.now + self.tools.rules.every))

    async def _visit(self, site: Site, front: LiveAnswer, *, offline: bool = False, problem: str = "") -> None:
        client = self._client(site.allow_private)
        rules = replace(self.tools.rules, every=site.every)
        known = {resource.uri: resource for resource in self.store.resources(site.uri)}
        archives = [archive for archive in self.tools.archives(site.archives) if not archive.ignore]
        visit = await self._judge(client, site, front, known, offline)
        certificate = await client.certificate(front.url) if front.failure is None else None
        visit = certified(visit, certificate, problem, self.now)
        changed = site
        looked: list[ResourceReport] = []
        if visit.seen is VisitResult.OWN:
            changed, looked = await self._look(site, front, known, archives)
            lost = lost_pages({**known, **{one.resource.uri: one.resource for one in looked}}.values(), rules)
            if lost:
                why = f"{counted(len(lost), 'page')} of {site.uri} that were live are gone"
                visit = replace(visit, seen=VisitResult.PAGES_LOST, why=why)
        status = after(site.status, visit.seen, self.now, rules)
        if visit.seen not in (VisitResult.OWN, VisitResult.PAGES_LOST) and not offline:
            looked = await self._ask_archives(site, status, known, archives)
        if not offline and site.uri not in self.registered and self._ends_soon(site):
            fresh = await self._registration(site)
            changed = replace(changed, registration=_known_registration(changed, fresh))
        changed = replace(
            changed,
            status=status,
            last_visit=self.now,
            next_visit=self.now + rules.retries[0] if offline else next_visit(status, self.now, rules),
            moved_to=visit.moved_to or site.moved_to,
        )
        self._write(site, changed, visit, looked, known, certificate)
        self.visited.append((site.uri, visit, status))

    def _ends_soon(self, site: Site) -> bool:
        """Whether a registration that is known ends soon: then the registry is asked again, since it may be renewed."""
        before = Registration.from_json(site.registration)
        return needs_fresh_registration(before.ends if before is not None else None, self.now)

    async def _look(
        self, site: Site, front: LiveAnswer, known: Mapping[str, Resource], archives: Sequence[Archive]
    ) -> tuple[Site, list[ResourceReport]]:
        """Look at the resources of a site that shows its own content; the site with what was learned of it."""
        tools, now = self.tools, self.now
        fingerprint = SiteFingerprint() if site.notes.accept else site.known()
        unsure = any(one.gone_since is not None and one.told_at is None for one in known.values())
        look = Look(
            *(self._client(site.allow_private), tools.client, archives, site.uri),
            site.sample * (_MORE_WHEN_UNSURE if unsure else 1),
            *(fingerprint, tools.progress),
            domain=lambda uri: tools.domain(uri) or host_of(uri),
        )
        looked = [one async for one in look.resources(front, known, now)]
        registration = await self._registration(site) if _asks_registry(site, now) else None
        return replace(
            site,
            fingerprint=fingerprint.to_json(),
            registration=_known_registration(site, registration),
            notes=_noted(site.notes, look),
        ), looked

    async def _judge(
        self, client: LiveClient, site: Site, front: LiveAnswer, known: Mapping[str, Resource], offline: bool
    ) -> Visit:
        fingerprint = SiteFingerprint() if site.notes.accept else site.known()
        visit = judge_visit(front, fingerprint, offline=offline)
        if visit.seen.value in site.notes.refuted and front.status < 400:
            return replace(visit, seen=VisitResult.OWN, why="")
        if visit.seen not in (VisitResult.FOREIGN, VisitResult.FOREIGN_CONFIRMED):
            return visit
        if site.notes.accept:
            return replace(visit, seen=VisitResult.OWN, why="accepted by the owner", confirmations=())
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
        return judge_visit(front, fingerprint, offline=offline, impossible=impossible, old=old, changes=found)

    async def _ask_archives(
        self, site: Site, status: SiteStatus, known: Mapping[str, Resource], archives: Sequence[Archive]
    ) -> list[ResourceReport]:
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
                looked.append(ResourceReport(noted, None))
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
        if found is not None:
            self.registered.add(site.uri)
        if found is None and not servers:
            return None
        return replace(found or Registration(), served_by=servers)

    def _write(
        self,
        before: Site,
        site: Site,
        visit: Visit,
        looked: Sequence[ResourceReport],
        known: Mapping[str, Resource],
        certificate: Certificate | None,
    ) -> None:
        """Write a visit and all that follows from it. What people changed meanwhile (`watch edit`, `accept`) stays."""
        store, now, status = self.store, self.now, site.status
        with store.transaction():
            fresh = store.site(site.uri)
            if fresh is None:
                return  # removed meanwhile
            if (fresh.status, fresh.notes) != (before.status, before.notes):
                return  # accepted meanwhile: the next visit begins from there
            store.add_visit(VisitRecord(site.uri, now, visit.seen, status.state, visit.why))
            for one in looked:
                store.put_resource(one.resource)
                store.add_observation(_observation(one, now))
            everything = {**known, **{one.resource.uri: one.resource for one in looked}}
            store.add_tally(site.uri, now, counts_of(everything.values()))
            notice = notice_of(before.status, status)
            if notice is not None and notice is not Notice.PAGES_LOST:
                assert status.since is not None
                store.add_notice(site.uri, notice, status.since, now, visit.why)
            if status.state is SiteState.PAGES_LOST:
                self._tell_lost_pages(site, tuple(everything.values()))
            for warned in self._warnings(before, site, certificate):
                store.add_notice(site.uri, warned.kind, warned.since, now, warned.why)
            until = format_iso(certificate.until) if certificate is not None else site.notes.certificate_until
            store.put_site(
                replace(
                    fresh,
                    status=status,
                    fingerprint=site.fingerprint,
                    registration=site.registration,
                    last_visit=site.last_visit,
                    next_visit=site.next_visit,
                    moved_to=site.moved_to,
                    notes=replace(
                        site.notes,
                        certificate_until=until,
                        pages_since=_pages_since(site, visit, now),
                        placeholder=visit.seen is VisitResult.PLACEHOLDER,
                    ),
                )
            )

    def _tell_lost_pages(self, site: Site, resources: Sequence[Resource]) -> None:
        """A notice when pages are lost that no notice named, at most one a week."""
        store, now = self.store, self.now
        lost = lost_pages(resources, self.tools.rules)
        untold = [one for one in lost if one.told_at is None]
        last = max((one.told_at for one in lost if one.told_at is not None), default=None)
        if not untold or (last is not None and timedelta(0) <= now - last < TELL_PAGES_EVERY):
            return
        for one in untold:
            store.put_resource(replace(one, told_at=now))
        since = min(one.gone_since for one in untold if one.gone_since is not None)
        store.add_notice(
            site.uri, Notice.PAGES_LOST, now, now, f"{counted(len(lost), 'page')} gone, first {since:%Y-%m-%d}"
        )

    def _warnings(self, before: Site, site: Site, certificate: Certificate | None) -> list[DueNotice]:
        registration = Registration.from_json(site.registration)
        ends = registration.ends if registration is not None else None
        found = [
            certificate_warning(certificate, self.now),
            domain_warning(
                *(self.tools.domain(site.uri) or host_of(site.uri), ends, self.now),
                answered=site.uri in self.registered,
            ),
        ]
        if site.notes.injected and not before.notes.injected:
            why = "Most pages link to domains that they did not link to before: " + ", ".join(site.notes.injected[:20])
            found.append(DueNotice(Notice.NEW_LINKS, self.now, why))
        return [one for one in found if one is not None]


def _known_registration(site: Site, answer: Registration | None) -> str:
    """What is known of a domain after a question; without an answer that is what was known before."""
    return merged(Registration.from_json(site.registration), answer).to_json() if answer else site.registration


def _pages_since(site: Site, visit: Visit, now: datetime) -> str:
    """When the first of the pages was reported that are lost now; an outage in between does not begin a new loss."""
    if visit.seen is VisitResult.OWN:
        return ""
    return site.notes.pages_since or (format_iso(now) if visit.seen is VisitResult.PAGES_LOST else "")


def _noted(notes: Notes, look: Look) -> Notes:
    """What is remembered of a site's links to other domains; what looks like spam is not learned."""
    spam = injected(look.outside, notes.outside, look.unchanged) if notes.learned and not notes.accept else ()
    seen = {domain for page in look.outside for domain in page.domains}
    return replace(
        notes,
        outside=tuple(dict.fromkeys([*sorted(seen - {*spam}), *notes.outside]))[:MOST_DOMAINS],
        injected=spam,
        learned=True,
        accept=False,
        disallowed=tuple(sorted(look.disallowed))[:_MOST_DISALLOWED],
    )


def _observation(one: ResourceReport, now: datetime) -> Observation:
    resource, answer = one.resource, one.answer
    status = answer.status if answer is not None and answer.failure is None else 0
    confirmed = resource.live if resource.live_at == now else Live.UNKNOWN
    return Observation(
        *(resource.site, resource.uri, now, status, confirmed, resource.held, resource.fresh), one.answers
    )


def _asks_registry(site: Site, now: datetime) -> bool:
    """Whether the registry is asked on this visit: the first one, and then the first of every ISO week."""
    last = site.last_visit
    return not site.registration or last is None or last.isocalendar()[:2] != now.isocalendar()[:2]
