"""One round of a watch: visit the sites that are due (`watch.visits`), and do what follows.

Hides: the order of steps. Notices are sent first, then lost sites are recovered, which may take hours, then archives
are asked to save. Time comes in as an argument: a year of visits runs in seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.datetimes import format_iso
from recollect.watch.notices import deliver
from recollect.watch.records import Site
from recollect.watch.recoveries import run_recoveries
from recollect.watch.saving import follow_saves, request_saves
from recollect.watch.states import HIDDEN, Notice, SiteState, SiteStatus
from recollect.watch.store import Store
from recollect.watch.visit import Visit
from recollect.watch.visits import VISITS_AT_ONCE, Tools, Visits

__all__ = ["VISITS_AT_ONCE", "Round", "Tools", "run_round"]
REMIND_EVERY = timedelta(days=30)
REPORT_OFFLINE_AFTER = timedelta(hours=20)
"""A visit a day, a little earlier than the day before, still reports within a day."""


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
    visited, failures, faults = await Visits(store, tools, now).run()
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


async def _notify(store: Store, tools: Tools, now: datetime) -> int:
    """Send the notices that are due."""
    clients: dict[bool, LiveClient] = {}

    async def post(site: Site, content: bytes, headers: Mapping[str, str]) -> LiveAnswer:
        if site.allow_private not in clients:
            clients[site.allow_private] = tools.live(site.allow_private)
        return await clients[site.allow_private].post(site.webhook, content, headers)

    try:
        done = await deliver(store, tools.mailer, post, now, tools.accept)
    finally:
        for client in clients.values():
            await client.close()
    if tools.mailer is not None:
        addresses = {site.uri: site.email for site in store.sites() if site.email}
        await asyncio.to_thread(tools.mailer.send, addresses, now)
    return done


def _report_offline(store: Store, now: datetime) -> datetime | None:
    """A notice for each recipient when nothing has answered for a day; since when, if so. Either the network of the
    watch fails, or everything it asks; without this notice it stays unseen."""
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
            began = silent[sites[0].uri]
            why = f"since {format_iso(began)} neither the site nor any canary, archive or DNS server answers" + (
                f"; the same holds for {others}{more}" if others else ""
            )
            since = began + months * REMIND_EVERY
            store.add_notice(sites[0].uri, Notice.OFFLINE, since, now, why)
    return min(silent.values(), default=None)


_REMINDED = HIDDEN | {SiteState.LOST, SiteState.TAKEN_OVER, SiteState.BAD_CERTIFICATE}


def _remind(store: Store, now: datetime) -> None:
    """A notice a month for what is still gone."""
    for site in store.sites():
        since = site.status.since
        if site.status.state in _REMINDED and since is not None:
            months = (now - since) // REMIND_EVERY
            if months >= 1:
                with store.transaction():
                    store.add_notice(site.uri, Notice.REMINDER, since + months * REMIND_EVERY, now, "")
