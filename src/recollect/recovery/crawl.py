"""The crawl of the archives: list, follow links, fetch, until the frontier is empty.

Hides: the frontier, the workers, resuming, the sweep after redirects that lead nowhere. All state that matters is in
the journal: a crawl that is killed at any moment goes on from there.

Order: listings (unless the policy is naive); then the start pages, which also show when the site ended (since when its
front page is parked or belongs to another site); then everything else in the order of discovery, by as many workers as
the archives allow. With the exhaustive policy, the default, what is listed and not linked follows: pages, then files.
So an interrupted run has the best part, and what comes after the links is known to be linked from no page reached.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from urllib.parse import urljoin

from recollect.archives.opening import ClientOptions, open_client
from recollect.archives.registry import Archive
from recollect.archives.transport import Permits
from recollect.datetimes import format_timestamp
from recollect.errors import BadURI
from recollect.recovery.acquire import Acquired, Acquirer
from recollect.recovery.allcaptures import AllCaptures
from recollect.recovery.canonical import UrlVariants, visit_key
from recollect.recovery.choose import Candidate
from recollect.recovery.fingerprint import page_of
from recollect.recovery.journal import Journal, Queued, now_utc
from recollect.recovery.knowledge import SiteKnowledge
from recollect.recovery.links import Document, Link
from recollect.recovery.lister import Lister, SiteQuery, side_query, site_queries
from recollect.recovery.local import LocalSources
from recollect.recovery.meter import PATIENCE, TIMEOUT, Meter, OutOfQuota, evenly, quotas_of
from recollect.recovery.options import Options
from recollect.recovery.otheraddress import OtherAddresses
from recollect.recovery.owners import own_addresses, owner_evidence, search_ownership
from recollect.recovery.ownership import Ownership, Standing
from recollect.recovery.plan import Attempt, RecoveryPolicy
from recollect.recovery.progress import Event, Finished, Status
from recollect.recovery.records import Kind, Missing, Recovered
from recollect.recovery.store import Store
from recollect.recovery.verdicts import RETRIED, Reason, Stage, Stop, Verdict

_MAX_WORKERS = 96
_DEFAULT_CONCURRENCY = 8
# Fetched by browsers and crawlers without a link.
_UNLINKED = ("/favicon.ico", "/robots.txt", "/sitemap.xml", "/sitemap.xml.gz", "/sitemap_index.xml", "/sitemap.txt")
_STATUS_EVERY = 0.2
_ONE_OWNER = timedelta(days=1)  # captures of one crawl, mirror or copy are of one owner, however they differ
_MAX_BESIDE = 50  # other hosts and folders that are listed
_MAX_DERIVED = 500  # addresses that rules give and no archive lists, asked for one by one


class Crawl:
    """One run of a recovery."""

    def __init__(
        self,
        store: Store,
        archives: Sequence[Archive],
        options: Options,
        *,
        on_status: Callable[[Status], None] = lambda _status: None,
        on_event: Callable[[Event], None] = lambda _event: None,
        on_listed: Callable[[Journal], bool | RecoveryPolicy] = lambda _journal: True,
        may_hold: Callable[[Archive, str], bool] = lambda _archive, _uri: True,
        patience: float = PATIENCE,
        longest_pause: float = inf,
        stop: Callable[[], bool] = lambda: False,
        wait: bool = False,
        permits: Permits | None = None,
        on_reading: Callable[[str], None] = lambda _capture: None,
        skip: frozenset[str] = frozenset(),
        idle: Sequence[str] = (),
        local: LocalSources | None = None,
    ) -> None:
        self.store = store
        self.journal = Journal(store)
        self._local = local  # files and folders that are read like archives
        self.options = options
        self.archives = [evenly(archive) for archive in archives]
        self._on_status = on_status
        self._on_event = on_event
        self._on_listed = on_listed
        self._may_hold = may_hold
        self._patience = patience
        self._longest_pause = longest_pause
        self._stop = stop
        self._wait = wait  # for the next period, when requests run out
        self._permits = permits
        self._on_reading = on_reading
        self._skip = skip
        self._site = SiteKnowledge(reviewed=store.reviewed(), precedents=store.precedents())
        self._idle = tuple(idle)  # archives of this recovery that this run does not ask
        self._queries: list[SiteQuery] = []
        self._beside: dict[str, asyncio.Future[None]] = {}
        self._queue: deque[Queued] = deque()
        self._seen: set[str] = set()
        self._listed: set[str] = set()
        self._variants = UrlVariants(options.rules)
        self._counts: dict[str, dict[str, int]] = {"recovered": {}, "queued": {}, "missing": {}}
        self._began = self._fetching_since = time.monotonic()
        self._done = 0
        self._kept = 0
        self._last_status = 0.0
        self._stopped: Stop | None = None
        self._captures = 0
        self._derived = 0

    async def run(self) -> Finished:
        """Recover until there is nothing left to do, or until asked to stop."""
        async with open_client(
            ClientOptions(concurrency=_DEFAULT_CONCURRENCY, timeout=TIMEOUT), permits=self._permits
        ) as client:
            self._client = client
            quotas = quotas_of(self.archives, self.options.quotas)
            self._meter = Meter(
                client, self.journal, quotas, patience=self._patience, longest_pause=self._longest_pause
            )
            lister = self._lister = Lister(
                self._meter,
                self.journal,
                self.options.rules,
                self._page_listed,
                self.options.dates.at or self.options.dates.end,
                self._local,
            )
            self._acquirer = Acquirer(
                self.store,
                self.journal,
                self._meter,
                lister,
                self.archives,
                self.options,
                may_hold=self._may_hold,
                on_reading=self._on_reading,
                skip=self._skip,
                idle=self._idle,
                load=lambda archive: client.in_use(archive) / (archive.concurrency or _DEFAULT_CONCURRENCY),
            )
            await self._list(lister)
            answer = self._on_listed(self.journal)
            if not answer:
                return Finished(False, Stop.DECLINED)
            if isinstance(answer, str):
                self.options = replace(self.options, policy=answer)
                self.store.set_meta("options", self.options.to_json())
            self._load()
            self._fetching_since = time.monotonic()
            await self._find_owner()
            await self._start_pages()
            await self._drain()
            while self._sweep() or self._unlinked() or self._fill_gaps() or await self._renewed():
                await self._drain()
            await self._fetch_history()
        self._show(Stage.DONE, force=True)
        return self._finished()

    # Listing -------------------------------------------------------------------------------------------------------

    async def _list(self, lister: Lister) -> None:
        self._show(Stage.LISTING, force=True)
        self.journal.forget_failures(archive.id for archive in self.archives)
        if self.options.policy == "naive":
            return
        queries = site_queries(self.options.scope)
        start = self.options.scope.start
        await asyncio.gather(lister.list_site(self.archives, queries), lister.ask_front(self.archives, start))
        self._site = replace(
            self._site,
            empty=frozenset(archive.id for archive in self.archives if lister.holds_no_front(archive, start)),
            front=frozenset(visit_key(uri, self.options.rules) for uri in start),
        )
        self._learn(queries)

    def _learn(self, queries: Sequence[SiteQuery]) -> None:
        """Take in what was listed: who listed everything, which keys there are, which bytes are many pages'."""
        self._queries += queries
        states = self.journal.listings()
        complete = tuple(
            (name, query)
            for name in (*(archive.id for archive in self.archives), *self._idle)
            for query in queries
            if (listing := states.get((name, query.name))) is not None and listing.state == "done"
        )
        content, redirects = self.journal.listed_keys()
        self._listed = content | redirects
        self._site = replace(
            self._site,
            complete=self._site.complete + complete,
            repeats=self.journal.repeated_digests(),
            listed=frozenset(content),
        )
        self._variants.learn_from(content, redirects)

    async def _list_beside(self, key: str) -> None:
        """What pages embed from elsewhere (a CDN, another folder) is listed when it is first met: one request for each
        archive instead of one for each resource."""
        if self.options.policy == "naive" or any(query.covers(key) for query in self._queries):
            return
        query = side_query(key, self.options.scope)
        if query is None or (query.name not in self._beside and len(self._beside) >= _MAX_BESIDE):
            return
        if query.name not in self._beside:
            self._beside[query.name] = asyncio.ensure_future(self._lister.list_site(self.archives, [query]))
        await self._beside[query.name]
        if query not in self._queries:
            self._learn([query])

    def _page_listed(self, archive: str, captures: int) -> None:
        self._captures += captures
        self._show(Stage.LISTING)

    # The frontier --------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Take up the journal's frontier, and put the seeds on it."""
        self._seen = self.store.keys()
        self._seen |= {key for key, _, _ in self.store.aliases()}
        self._counts = {"recovered": {}, "queued": {}, "missing": {}}
        for (state, kind), count in self.store.counts().items():
            self._counts[state][kind] = count
        self._queue = deque(self.journal.queue())
        with self.journal.transaction():
            for uri in self.options.scope.start:
                self._enqueue(uri, "page", None, None)
            if self.options.recursive:
                for uri in self._implied():
                    self._enqueue(uri, "asset", None, None, guess=True)
            for uri, page in list(self.store.outside()):
                if self.options.scope.holds(uri, embedded=True):  # resumed with a wider scope
                    self.store.remove_outside(uri)
                    owner = self.store.get(page)
                    self._enqueue(uri, "asset", page, owner.captured_at if owner else None)

    def _implied(self) -> Iterable[str]:
        return dict.fromkeys(urljoin(uri, path) for uri in self.options.scope.start for path in _UNLINKED)

    def _unlinked(self) -> bool:
        """Put what is listed and not linked on the frontier: pages first, files when those are done."""
        if self.options.policy != "exhaustive" or not self.options.recursive or self._should_stop():
            return False
        with self.journal.transaction():
            self._enqueue_listed(pages_only=True)
            if not self._queue:
                self._enqueue_listed()
        return bool(self._queue)

    def _enqueue_listed(self, *, pages_only: bool = False) -> None:
        for key, uri, is_page in self.journal.listed_resources():
            if key in self._listed and (is_page or not pages_only) and self.options.scope.holds(uri):
                self._enqueue(uri, "page" if is_page else "asset", None, None)

    def _enqueue(
        self, uri: str, kind: Kind, found_on: str | None, near: datetime | None, *, guess: bool = False
    ) -> None:
        """Put a URI on the frontier unless it was there; the caller commits."""
        try:
            key = visit_key(uri, self.options.rules)
        except BadURI:
            return
        if key in self._seen or (guess and key not in self._listed):
            return
        self._seen.add(key)
        for other in self._variants.stand_ins(key)[:1]:
            self.store.add_alias(key, other, "listed under another spelling")
            if other in self._seen:
                return
            self._seen.add(other)
            key, uri = other, self.journal.spelling(other) or uri
        item = Queued(key, uri, kind, found_on, near, guess)
        if self.journal.enqueue(item):
            self._queue.append(item)
            self._count("queued", kind, 1)

    def _count(self, state: str, kind: str, change: int) -> None:
        self._counts[state][kind] = self._counts[state].get(kind, 0) + change

    # Fetching ------------------------------------------------------------------------------------------------------

    async def _start_pages(self) -> None:
        """The start pages first: they show when the site ended."""
        start = {visit_key(uri, self.options.rules) for uri in self.options.scope.start}
        start |= {target for key, target, _ in self.store.aliases() if key in start}
        first = [item for item in self._queue if item.key in start]
        self._queue = deque(item for item in self._queue if item.key not in start)
        for some in range(0, len(first), _DEFAULT_CONCURRENCY):
            await asyncio.gather(*(self._one(item) for item in first[some : some + _DEFAULT_CONCURRENCY]))
        found = [self.store.get(key) for key in start]
        if self.options.recursive and all(page is None or page.suspect is not None for page in found):
            # Without a front page no link leads anywhere: begin from every listed page, or else from everything.
            with self.journal.transaction():
                self._enqueue_listed(pages_only=True)
                if not self._queue:
                    self._enqueue_listed()

    async def _find_owner(self) -> None:
        """Whose site it was, and when: captures of other owners are not taken."""
        if self.options.keep_suspects or self.options.dates.at is not None:
            return
        if self.options.policy == "naive":
            await self._ask_start()
        start = frozenset(visit_key(uri, self.options.rules) for uri in self.options.scope.start)
        usable = frozenset(a.id for a in self.archives if self._meter.budget(a.id) != 0)
        evidence = owner_evidence(self.journal, self.options, start, usable)
        times = [candidate.captured_at for candidate in evidence.candidates]
        if not times or max(times) - min(times) < _ONE_OWNER:
            return
        known = self.store.meta("ownership") or {}
        if known.get("looks") == len(evidence.looks):
            ownership = Ownership.from_json(known)
        else:
            try:
                ownership = await search_ownership(
                    evidence, lambda candidate, front: self._acquirer.observe(candidate, self._site, front=front)
                )
            except OutOfQuota:
                return
            self.store.set_meta("ownership", {"looks": len(evidence.looks), **ownership.to_json()})
        ended = ownership.ended_at
        self.store.set_meta("ended_at", format_timestamp(ended) if ended is not None else None)
        addresses = own_addresses(ownership, evidence.listed)
        self._site = replace(self._site, ownership=ownership, addresses=addresses)

    async def _ask_start(self) -> None:
        """Without listings, the captures of the start pages have to be asked for."""
        first = [item for item in self._queue if item.uri in self.options.scope.start]
        for item in first:
            await self._acquirer.ask_all(item, self._site)

    async def _drain(self) -> None:
        count = sum(_workers_for(archive) for archive in self.archives)
        busy = 0
        wake = asyncio.Event()

        async def work() -> None:
            nonlocal busy
            while not self._should_stop():
                # Waiting: for links from pages on their way, or to see whether what is on its way is enough.
                if not self._queue or self._enough(busy):
                    if not busy:
                        wake.set()
                        return
                    wake.clear()
                    await wake.wait()
                    continue
                item = self._queue.popleft()
                busy += 1
                try:
                    await self._one(item)
                finally:
                    busy -= 1
                    wake.set()

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(max(1, min(count, _MAX_WORKERS))):
                    group.create_task(work())
        except BaseExceptionGroup as group_error:
            raise _first_of(group_error) from None  # one fault ends all workers; theirs is the same or its consequence

    async def _fetch_history(self) -> None:
        """All captures of what came back, when they are wanted."""
        if not self.options.all_captures or self._should_stop():
            return
        history = AllCaptures(
            self.store, self._acquirer, self.options, [archive.id for archive in self.archives], self._site
        )
        await history.run(self._should_stop, lambda: self._show(Stage.RECOVERING))
        self.store.set_meta("captures_left_out", dict(sorted(history.outcomes.items())))

    async def _renewed(self) -> bool:
        """Wait until there are requests again for what had none; False when nothing waits for that."""
        lacking = [archive.id for archive in self.archives if self._meter.budget(archive.id) == 0]
        if not self._wait or not lacking or self._stopped or not self.journal.requeue([Reason.OUT_OF_QUOTA]):
            return False
        until = time.monotonic() + min(self._meter.renewed_in(name) for name in lacking) + 0.1
        while time.monotonic() < until and not self._should_stop():
            self._show(Stage.WAITING, force=True)
            await asyncio.sleep(min(1.0, max(0.0, until - time.monotonic())))
        self._load()
        return not self._stopped

    def _should_stop(self) -> bool:
        if not self._stopped and self._stop():
            self._stopped = Stop.ASKED
        if not self._stopped and self._enough(0):
            self._stopped = Stop.LIMIT
        return self._stopped is not None

    def _enough(self, under_way: int) -> bool:
        return self.options.limit is not None and self._kept + under_way >= self.options.limit

    async def _one(self, item: Queued) -> None:
        await self._list_beside(item.key)
        result = await self._acquirer.acquire(item, self._site)
        with self.journal.transaction():
            if isinstance(result, Acquired):
                self._keep(item, result)
            elif self._is_forgotten(item, result):
                self.store.forget(item.key)
            else:
                self.store.add_missing(result)
        self._done += 1
        self._count("queued", item.kind, -1)
        if isinstance(result, Acquired):
            self._kept += not result.resource.is_redirect
            self._count("recovered", result.resource.kind, 1)
        elif self._is_forgotten(item, result):
            return
        else:
            self._count("missing", item.kind, 1)
        self._on_event(_event(result))
        self._show(Stage.RECOVERING)

    def _is_forgotten(self, item: Queued, missing: Missing) -> bool:
        """A guessed resource that no archive holds is not a loss, unless all that is listed is wanted."""
        wanted = self.options.policy == "exhaustive" and item.key in self._listed
        return item.guess and missing.reason not in RETRIED and not wanted

    def _keep(self, item: Queued, acquired: Acquired) -> None:
        resource = acquired.resource
        self.store.add_recovered(resource, acquired.payload.sha256)
        own = visit_key(resource.uri, self.options.rules)
        if own != resource.key and own not in self._seen:
            # An archive without a listing held it under another spelling: links in that spelling mean it, too.
            self._seen.add(own)
            self.store.add_alias(own, resource.key, "held under another spelling")
        if resource.redirect_to is not None:
            # Followed inside the archives, near the same time, also when only one resource was asked for.
            self._enqueue(resource.redirect_to, item.kind, resource.key, resource.captured_at)
            return
        if acquired.document is not None and acquired.document.form == "html" and resource.suspect is None:
            self._learn_page(acquired.document, resource)
        if acquired.document is not None and self.options.recursive:
            for link in acquired.document.links:
                self._follow(link, resource.key, resource.captured_at)

    def _learn_page(self, document: Document, resource: Recovered) -> None:
        """A page of the owner's time belongs to the fingerprint by which others are judged."""
        ownership = self._site.ownership
        if ownership.periods and ownership.standing(resource.captured_at) is Standing.OWN:
            ownership.fingerprint.learn(page_of(document, resource.uri))

    def _follow(self, link: Link, page: str, captured_at: datetime) -> None:
        if self.options.scope.holds(link.uri, embedded=link.embedded):
            near = captured_at if link.embedded else None
            self._enqueue(link.uri, link.kind, page, near, guess=link.guess)
        elif link.embedded and not link.guess:
            self.store.add_outside(link.uri, page)

    def _sweep(self) -> bool:
        """Redirects that ended nowhere are taken back: an older capture with content may exist."""
        dangling = [r for r in self.store.recovered() if r.is_redirect and self.store.resolve(r.uri) is None]
        if self._stopped or not dangling:
            return False
        with self.journal.transaction():
            for resource in dangling:
                tried = self._tried(resource.key, resource.archive, resource.captured_at, resource.uri)
                verdict = Verdict.REDIRECTED_AWAY
                detail = f"{verdict}: to {resource.redirect_to}, which could not be recovered"
                attempt = Attempt(tried.archive, tried.uri, tried.captured_at, "rejected", detail, verdict=verdict)
                self.journal.add_attempt(resource.key, attempt)
                self.journal.requeue_key(resource.key)
                self._count("recovered", resource.kind, -1)
                self._count("queued", resource.kind, 1)
                self._queue.append(Queued(resource.key, resource.uri, resource.kind, resource.found_on))
        return True

    def _fill_gaps(self) -> bool:
        """Pages that are missing under one address and archived under another one, by rules of the site's own; True
        when such an address has to be asked for first."""
        if self._stopped or not self.options.rules.learn or not self.options.recursive:
            return False
        known = OtherAddresses(self.store, self._site.ownership)
        with self.journal.transaction():
            for gap in known.gaps():
                substitute = known.substitute(gap)
                if substitute is not None:
                    self.store.add_substitute(substitute)
                    self._count("missing", substitute.kind, -1)
                elif gap.key not in self._seen and self._derived < _MAX_DERIVED and self._may_be_held(gap.key):
                    self._derived += 1
                    self._seen.add(gap.key)
                    item = Queued(gap.key, gap.key, gap.missing.kind, guess=True)
                    if self.journal.enqueue(item):
                        self._queue.append(item)
                        self._count("queued", item.kind, 1)
        return bool(self._queue)

    def _may_be_held(self, key: str) -> bool:
        """Is it listed, or does any archive give no list of it?"""
        if not self.options.scope.holds(key):
            return False
        return key in self._listed or any(not self._site.covers(archive.id, key) for archive in self.archives)

    def _tried(self, key: str, archive: str, captured_at: datetime, uri: str) -> Candidate:
        """The candidate a resource came from: the archive may have given one of another moment than was asked for."""
        known = [c for c in self.journal.candidates(key) if c.archive == archive and c.uri == uri]
        return min(known, key=lambda c: abs(c.captured_at - captured_at), default=Candidate(archive, uri, captured_at))

    # Telling -------------------------------------------------------------------------------------------------------

    def _show(self, stage: Stage, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._last_status < _STATUS_EVERY:
            return
        self._last_status = now
        self._on_status(self._status(stage, now))

    def _status(self, stage: Stage, now: float) -> Status:
        left = sum(self._counts["queued"].values())
        speed = self._done / max(now - self._fetching_since, 0.001)
        budgets = {a.id: b for a in self.archives if (b := self._meter.budget(a.id)) is not None}
        return Status(
            stage,
            recovered=dict(self._counts["recovered"]),
            queued=dict(self._counts["queued"]),
            missing=dict(self._counts["missing"]),
            requests={name: usage.requests for name, usage in self.journal.usages().items()},
            budgets=budgets,
            paused={
                a.id: p for a in self.archives if stage == Stage.RECOVERING and (p := self._client.pause_left(a)) > 1
            },
            seconds_left=left / speed if self._done and left else None,
            listed=self._captures,
        )

    def _finished(self) -> Finished:
        failed = any(listing.state in ("failed", "part") for listing in self.journal.listings().values())
        self.store.set_meta("finished_at", format_timestamp(now_utc()))
        self.store.set_meta("requests", sum(usage.requests for usage in self.journal.usages().values()))
        complete = not (self.journal.unsettled() or failed)
        self.store.set_meta("complete", complete)
        return Finished(complete, self._stopped, time.monotonic() - self._began)


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _workers_for(archive: Archive) -> int:
    """More than an archive takes at once, so that those who wait for a busy one do not keep another idle; but no more
    than its rate lets through in half a minute, so that no request times out before its turn."""
    limit = 3 * (archive.concurrency or _DEFAULT_CONCURRENCY)
    return min(limit, max(1, int(30 * archive.replay_rate.per_second))) if archive.replay_rate else limit


def _event(result: Acquired | Missing) -> Event:
    if isinstance(result, Missing):
        detail = f"{result.reason}: {result.detail}" if result.detail else result.reason
        return Event(result.uri, "missing", detail=detail, reason=result.reason, verdict=result.verdict)
    resource = result.resource
    leads = f"redirect to {resource.redirect_to}" if resource.redirect_to else resource.media_type
    at = resource.captured_at
    return Event(resource.uri, "recovered", resource.archive, at, leads, verdict=resource.suspect)
