"""Recoveries of lost sites: started once for each loss, started again when they failed, followed when a desk has them.

Hides: which recovery is due. A row is written before a recovery starts, so that `status` shows it; a process killed
meanwhile starts it again, and a recovery resumes what its folder has. A job at a desk is asked for until it ends, and
its end is a notice, as that of a recovery that runs here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol
from urllib.parse import urlsplit

from recollect.errors import RecollectError
from recollect.watch.pageloss import lost_pages
from recollect.watch.records import OnLoss, RecoveryRecord, RecoveryState, Resource, Site
from recollect.watch.states import RULES, Notice, SiteState
from recollect.watch.store import Store

AGAIN_AFTER = timedelta(days=1)
FOLLOW_EVERY = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class RecoveryProgress:
    """How a recovery stands."""

    state: RecoveryState
    job: str = ""
    token: str = ""
    detail: str = ""


class Recoverer(Protocol):
    """Who recovers sites: this process, or a desk."""

    async def start(self, site: Site, folder: str, pages: Sequence[Resource] = ()) -> RecoveryProgress:
        """Recover a site as it was before its loss, or just these pages of it; raises RecollectError or OSError if that
        fails."""

    async def follow(self, recovery: RecoveryRecord) -> RecoveryProgress:
        """Ask how a job stands; raises RecollectError if the desk does not answer."""


async def run_recoveries(store: Store, recoverer: Recoverer, now: datetime) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Start and follow what is due; the sites that were recovered or queued, and what failed, as text."""
    done: list[str] = []
    failures: list[str] = []
    for site in store.sites():
        folder = recovery_folder(site)
        before = store.recovery(folder) if folder else None
        more = before is not None and _lost_since(store, site, before)
        if not folder or (before is not None and not more and not _is_due(before, now)):
            continue
        after, failure = await _start(store, recoverer, site, folder, now)
        if failure:
            failures.append(failure)
        if after.state is not RecoveryState.FAILED:
            done.append(site.uri)
    for queued in store.recoveries():
        if queued.state is RecoveryState.QUEUED and queued.at != now and _is_time(queued.next_at, now):
            failure = await _follow(store, recoverer, queued, now)
            if failure:
                failures.append(failure)
    return tuple(done), tuple(failures)


def _lost_since(store: Store, site: Site, before: RecoveryRecord) -> bool:
    """Whether more pages were reported as lost since the recovery of lost pages."""
    if site.status.state is not SiteState.PAGES_LOST:
        return False
    return any(one.told_at is not None and one.told_at > before.at for one in lost_pages(store.resources(site.uri)))


def _is_due(recovery: RecoveryRecord, now: datetime) -> bool:
    """Whether to start again: it was interrupted, or it failed a day ago. A job that failed is the desk's to retry."""
    if recovery.state is RecoveryState.RUNNING:
        return True
    return recovery.state is RecoveryState.FAILED and not recovery.job and _is_time(recovery.next_at, now)


def _is_time(next_at: datetime, now: datetime) -> bool:
    """Whether a planned moment has come; one further ahead than any pause was planned by a clock that was wrong."""
    return next_at <= now or next_at > now + 2 * AGAIN_AFTER


async def _start(
    store: Store, recoverer: Recoverer, site: Site, folder: str, now: datetime
) -> tuple[RecoveryRecord, str]:
    failed_before = store.recovery(folder)
    row = RecoveryRecord(folder, site.uri, RecoveryState.RUNNING, now, now)
    _put(store, row, site)
    try:
        lost = lost_pages(store.resources(site.uri)) if site.status.state is SiteState.PAGES_LOST else ()
        progress = await recoverer.start(site, folder, lost)
    except (RecollectError, OSError) as error:
        progress = RecoveryProgress(RecoveryState.FAILED, detail=str(error))
    failure = f"{site.uri}: {progress.detail}" if progress.state is RecoveryState.FAILED else ""
    pause = FOLLOW_EVERY if progress.state is RecoveryState.QUEUED else AGAIN_AFTER
    row = RecoveryRecord(
        folder, site.uri, progress.state, now, now + pause, progress.job, progress.token, progress.detail
    )
    _put(store, row, site)
    with store.transaction():
        if store.site(site.uri) is not None:
            _tell_end(store, row, first=failed_before is None)
    return row, failure


def _tell_end(store: Store, row: RecoveryRecord, *, first: bool) -> None:
    """The notice of a recovery that ended here; one that failed is reported once, and tried again."""
    kinds = {RecoveryState.DONE: Notice.RECOVERED, RecoveryState.NOTHING_FOUND: Notice.NOT_RECOVERED}
    if row.state in kinds:
        store.add_notice(row.site, kinds[row.state], row.at, row.at, row.detail)
    elif row.state is RecoveryState.FAILED and first:
        store.add_notice(row.site, Notice.NOT_RECOVERED, row.at, row.at, f"{row.detail}; it is tried again every day")


async def _follow(store: Store, recoverer: Recoverer, queued: RecoveryRecord, now: datetime) -> str:
    later = replace(queued, at=now, next_at=now + FOLLOW_EVERY)
    try:
        progress = await recoverer.follow(queued)
    except RecollectError as error:
        with store.transaction():
            store.put_recovery(replace(later, detail=str(error)))
        return f"{queued.site}: {error}"
    with store.transaction():
        if store.site(queued.site) is None:
            return ""
        store.put_recovery(replace(later, state=progress.state, detail=progress.detail))
        if progress.state is not RecoveryState.QUEUED:
            kind = Notice.RECOVERED if progress.state is RecoveryState.DONE else Notice.NOT_RECOVERED
            store.add_notice(queued.site, kind, now, now, progress.detail)
    return ""


def _put(store: Store, row: RecoveryRecord, site: Site) -> None:
    """Write how a recovery stands; what started is the site's last recovery. Not for a site removed meanwhile."""
    with store.transaction():
        fresh = store.site(site.uri)
        if fresh is None:
            return
        store.put_recovery(row)
        if row.state not in (RecoveryState.RUNNING, RecoveryState.FAILED) and fresh.recovery != row.folder:
            store.put_site(replace(fresh, recovery=row.folder))


def recovery_folder(site: Site) -> str:
    """Where the recovery of a lost site, or of lost pages, goes, one for each loss; empty if none is wanted.

    A site that its host hides is recovered when that lasts as long as a loss; lost pages are recovered again with each
    notice, which names more of them."""
    status = site.status
    since = status.since
    if site.on_loss is not OnLoss.RECOVER or since is None:
        return ""
    lasted = site.last_visit - since if site.last_visit is not None else timedelta(0)
    gone = status.state in (SiteState.LOST, SiteState.TAKEN_OVER)
    if status.state is SiteState.PAGES_LOST:
        first = site.notes.pages_since[:10].replace("-", "") or f"{since:%Y%m%d}"
        return _folder(site, f"-pages-{first}")
    return _folder(site, f"-{since:%Y%m%d}") if gone or (status.is_hidden and lasted >= RULES.lost_after) else ""


def _folder(site: Site, end: str) -> str:
    host = re.sub(r"[^a-z0-9.-]", "_", (urlsplit(site.uri).netloc or "site").lower())
    # Sites of one host differ in path or scheme only.
    plain = site.uri == f"http://{urlsplit(site.uri).netloc}/"
    mark = "" if plain else "-" + hashlib.blake2b(site.uri.encode(), digest_size=4).hexdigest()
    return f"recovered/{host}{mark}{end}"
