"""The aggregator: looks one resource up in all archives and merges their mementos.

Hides: the order of steps. Cache, then routing, then breakers and Retry-After pauses, then gathering within one
deadline; then the outcomes go to the cache, the breakers and the learner. Lookups of one resource at one time share one
gathering; when the last waiting client leaves, the gathering is cancelled.

The archives and their maps are one frozen `ArchiveSet`, replaced as a whole on reload; a lookup keeps the one it began
with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import is_

from recollect.aggregator.archiveset import ArchiveSet, Learner
from recollect.aggregator.ask import Limits
from recollect.aggregator.breaker import Breaker, BreakerState
from recollect.aggregator.cache import Cache, Entry, Kept, now
from recollect.aggregator.gather import OnOutcome, around, gather_timegates, gather_timemaps, merged, negotiated
from recollect.aggregator.outcomes import Failure, Outcome, OutcomeKind
from recollect.aggregator.referer import page_holders, with_page
from recollect.aggregator.switches import Switches
from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive
from recollect.formats.timemap import Memento, Mementos, Negotiated
from recollect.routing.choice import (
    MAX_STALE_LOSS,
    SECOND_CHANCE,
    UNHEARD,
    Decision,
    Reason,
    Rest,
    Source,
    route,
)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What the client allows (its Cache-Control)."""

    read: bool = True
    store: bool = True
    only: bool = False
    max_age: float | None = None


USUAL_POLICY = CachePolicy()


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """One client's question."""

    uri_r: str
    chosen: frozenset[str] | None = None
    named: bool = False
    """Whether the chosen archives were named one by one: then they are asked whatever was learned about them."""
    wait: float | None = None
    """Seconds the client is ready to wait, if less than the server's deadline."""
    policy: CachePolicy = USUAL_POLICY
    via: str = ""
    on_outcome: OnOutcome | None = None
    page: str = ""
    """URI-R of the page that embeds the resource, if that is known."""


@dataclass(frozen=True)
class LookupResult:
    """What the archives said about one resource."""

    uri_r: str
    decisions: tuple[Decision, ...]
    outcomes: tuple[Outcome, ...]
    """Of the asked archives, in the order of the list of archives."""
    elapsed: float = 0.0
    cache: str = "miss"
    """`miss`, `hit`, `stale` (and being refreshed), or `partly`."""
    age: float = 0.0
    entry: Entry | None = field(default=None, repr=False)
    """Of the cache, if it remembers this very answer."""

    @property
    def mementos(self) -> Mementos:
        # Not a cached_property: before Python 3.12 all answers share its lock, and the event loop would wait for the
        # thread that merges a large one.
        found: Mementos | None = self.__dict__.get("_mementos")
        if found is None:
            found = self.__dict__["_mementos"] = merged(self.outcomes)
        return found

    def around(self, memento: Memento) -> Negotiated | None:
        """A memento of this answer as the choice, with its neighbours."""
        return around(self.outcomes, self.mementos, memento)

    def negotiated(self, at: datetime | None) -> Negotiated | None:
        return negotiated(self.outcomes, self.mementos, at)

    @cached_property
    def failed(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.kind is OutcomeKind.ERROR or outcome.partial)

    @cached_property
    def skipped(self) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if not decision.ask)

    @cached_property
    def unheard(self) -> tuple[Decision, ...]:
        """Archives that might hold something but were not asked: resting, unlikely by what was learned, beyond the best
        k, or not in the cache that alone was to be asked."""
        return tuple(decision for decision in self.skipped if decision.reason in UNHEARD)


@dataclass(frozen=True, slots=True)
class _Asking:
    """How archives are asked for one lookup."""

    lookup: LookupRequest
    deadline: float
    """A moment of the loop's clock."""
    at: datetime | None = None
    through_timegates: bool = False


_FlightKey = tuple[str, frozenset[str] | None, bool, str]


class _Flight:
    """A gathering under way, and how many wait for it."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[LookupResult]) -> None:
        self.task = task
        self.waiting = 0


class Aggregator:
    """Answers lookups. Make it inside a running loop; `close` it."""

    def __init__(
        self,
        client: ArchiveClient,
        archive_set: ArchiveSet,
        *,
        deadline: float = 30.0,
        top_k: int | None = None,
        target_recall: float | None = None,
        near: float | None = None,
        max_stale_loss: float | None = MAX_STALE_LOSS,
        floor: float = 0.0,
        any_status: bool = False,
        limits: Limits | None = None,
        cache: Cache | None = None,
        learner: Learner | None = None,
        switches: Switches | None = None,
        on_answer: Callable[[LookupResult], None] | None = None,
    ) -> None:
        self.archive_set = archive_set
        self.cache = cache
        self.deadline = deadline
        self._client = client
        self._limits = limits or Limits()
        self._top_k = min((k for k in (top_k, self._limits.budget) if k is not None), default=None)
        self._target_recall = target_recall
        self._near = near
        self._max_stale_loss = max_stale_loss
        self._floor = floor
        self._any_status = any_status
        self.learner = learner
        self._on_answer = on_answer or (lambda _: None)
        self._loop = asyncio.get_running_loop()
        self._breakers: dict[str, Breaker] = {}
        self._known_good: dict[str, str] = {}
        self._proofs: set[asyncio.Task[None]] = set()
        self._switches = switches or Switches()
        self._switched: tuple[int, frozenset[str]] = (0, frozenset())
        self._flights: dict[_FlightKey, _Flight] = {}
        self._refreshing: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        tasks = [*self._refreshing.values(), *self._proofs, *(flight.task for flight in self._flights.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.cache is not None:
            await self.cache.close()

    # --- routing

    def route(
        self,
        uri_r: str,
        chosen: frozenset[str] | None = None,
        *,
        named: bool = False,
        at: datetime | None = None,
        page: str = "",
    ) -> tuple[Decision, ...]:
        """Which archives a lookup asks, and why. `at` is the datetime a TimeGate is asked for, `page` the
        URI-R of the page that embeds the resource."""
        archive_set = self.archive_set
        candidates = archive_set.usual_candidates if chosen is None else list(archive_set.candidates.values())
        if (
            self.switched_off
            or self._client.any_paused
            or not all(breaker.closed for breaker in self._breakers.values())
        ):
            candidates = [one._replace(rest=self._rest(archive_set.by_id[one.id])) for one in candidates]
        evidence = archive_set.evidence(uri_r, self.learner, at, any_status=self._any_status)
        if page:
            evidence = with_page(evidence, self._holders(page))
        return route(
            candidates,
            evidence,
            chosen=chosen,
            named=named,
            top_k=self._top_k,
            target_recall=self._target_recall,
            near=self._near,
            max_stale_loss=self._max_stale_loss,
            floor=self._floor,
            uri_r=uri_r,
        )

    def _routed(self, lookup: LookupRequest, at: datetime | None) -> tuple[Decision, ...]:
        return self.route(lookup.uri_r, lookup.chosen, named=lookup.named, at=at, page=lookup.page)

    @property
    def _selects(self) -> bool:
        """Whether the order of the archives decides which are asked at all."""
        return self._top_k is not None or self._target_recall is not None

    def _holders(self, page: str) -> dict[str, bool]:
        """By archive whether it holds a page, where that is known: by its map, or by what it answered lately."""
        held: dict[str, bool] = {}
        if self.archive_set.maps is not None:
            held = page_holders(self.archive_set.maps.evidence(page))
        entry = self.cache.peek(page) if self.cache is not None else None
        if entry is not None:
            for archive, key in self.archive_set.cache_keys.items():
                kept = entry.kept.get(key)
                if kept is not None:
                    held[archive] = kept.outcome.kind is OutcomeKind.MEMENTOS
        return held

    def _rest(self, archive: Archive) -> Rest | None:
        if archive.id in self.switched_off:
            return Rest(Reason.SWITCHED_OFF)
        pause = self._client.pause_left(archive)
        if pause:
            return Rest(Reason.PAUSED, pause)
        breaker = self._breakers.get(archive.id)
        if breaker is None or breaker.closed or breaker.would_allow(self._loop.time()):
            return None
        state = breaker.state(self._loop.time())
        return Rest(Reason.FAILING, state.rest_left, state.failures, state.last_failure)

    @property
    def switched_off(self) -> frozenset[str]:
        """Archives that an operator lets rest, in whichever process."""
        seen, off = self._switched
        if self._switches.number == seen:
            return off
        number, switched = self._switches.read()
        for archive, when in switched.woken:
            if when > seen and archive in self.archive_set.by_id:
                self._breakers.pop(archive, None)
                self._client.end_pause(self.archive_set.by_id[archive])
        self._switched = (number, switched.off)
        return switched.off

    def wake(self, archive: str) -> None:
        """Ask an archive again from now on: an operator's word ends its rest, its breaker's and its pause."""
        self._switches.switch(archive, on=True)

    def let_rest(self, archive: str) -> None:
        """Do not ask an archive until it is woken."""
        self._switches.switch(archive, on=False)

    # --- lookups

    async def timemaps(self, lookup: LookupRequest) -> LookupResult:
        """Everything the archives list for a resource."""
        if self.cache is None:
            return await self._gather(lookup, None)
        entry = self.cache.peek(lookup.uri_r)
        plain = lookup.policy is USUAL_POLICY and lookup.on_outcome is None
        if entry is not None and plain and lookup.chosen is None:
            ready = self._ready(entry)
            if ready is not None:
                return ready
        if entry is None and lookup.policy.read:
            entry = await self.cache.get(lookup.uri_r)
        if plain and lookup.wait is None:
            return await self._shared(lookup, entry)
        return await self._gather(lookup, entry)

    async def timegates(self, lookup: LookupRequest, at: datetime | None) -> LookupResult:
        """What the archives offer for a datetime; from cached TimeMaps where they are all there."""
        if self.cache is not None and lookup.policy.read:
            entry = await self.cache.get(lookup.uri_r)
            if entry is not None:
                decisions = self._routed(lookup, at)
                kept, _ = self._usable(lookup, self.archive_set, entry)
                if all(decision.archive in kept for decision in decisions if decision.ask):
                    return await self._gather(lookup, entry, at)
        if lookup.policy.only:
            return await self._gather(lookup, None)
        return await self._gather(lookup, None, at, through_timegates=True)

    def _ready(self, entry: Entry) -> LookupResult | None:
        """The answer made last time, if nothing it is made of has aged since."""
        if not _ready(entry, self.archive_set):
            return None
        _, _, oldest, answer = entry.answer
        moment = now()
        ready = LookupResult(
            answer.uri_r, answer.decisions, answer.outcomes, 0.0, "hit", max(0.0, moment - oldest), entry
        )
        if "_mementos" in answer.__dict__:
            ready.__dict__["_mementos"] = answer.mementos  # merged once
        self._on_answer(ready)
        return ready

    async def _shared(self, lookup: LookupRequest, entry: Entry | None) -> LookupResult:
        key = (lookup.uri_r, lookup.chosen, lookup.named, lookup.page if self._selects else "")
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(self._loop.create_task(self._gather(lookup, entry)))
            flight.task.add_done_callback(lambda _: self._landed(key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.waiting == 1:
                flight.task.cancel()
                self._landed(key, flight)  # whoever asks from now on must not wait for what is being cancelled
            raise
        finally:
            flight.waiting -= 1

    def _landed(self, key: _FlightKey, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _gather(
        self, lookup: LookupRequest, entry: Entry | None, at: datetime | None = None, *, through_timegates: bool = False
    ) -> LookupResult:
        started, archive_set = self._loop.time(), self.archive_set
        deadline = started + (self.deadline if lookup.wait is None else min(lookup.wait, self.deadline))
        asking = _Asking(lookup, deadline, at, through_timegates)
        decisions = self._routed(lookup, at)
        kept, stale = self._usable(lookup, archive_set, entry) if entry is not None else ({}, [])
        todo = [archive_set.by_id[d.archive] for d in decisions if d.ask and d.archive not in kept]
        fetched: list[Outcome] = []
        if todo and lookup.policy.only:
            missing = {archive.id for archive in todo}
            decisions = tuple(_not_cached(one) if one.archive in missing else one for one in decisions)
        elif todo:
            asked, turned_away = self._admit(todo)
            fetched = await self._ask(
                asking,
                asked,
                extra={d.archive for d in decisions if d.ask and d.unlikely},
                gaps={d.archive: d.gap for d in decisions if d.ask and d.gap},
            )
            if turned_away:
                decisions = tuple(turned_away.get(decision.archive, decision) for decision in decisions)
        if not lookup.policy.only and not any(
            one.timemap.uris for one in (*(kept[d.archive].outcome for d in decisions if d.archive in kept), *fetched)
        ):
            decisions, more = await self._ask_the_unlikely(asking, decisions, kept)
            fetched += more
        if fetched and self.cache is not None and not through_timegates and lookup.policy.store:
            entry = self._keep(lookup, archive_set, fetched) or entry
        if stale:
            self._refresh(lookup, [archive_set.by_id[archive] for archive in stale])
        used = [kept[d.archive] for d in decisions if d.ask and d.archive in kept]
        answer = LookupResult(
            lookup.uri_r,
            decisions,
            _in_order(archive_set, [*(one.outcome for one in used), *fetched]),
            self._loop.time() - started,
            _word(used, stale, fetched),
            max((now() - one.at for one in used), default=0.0),
        )
        if sum(outcome.count for outcome in answer.outcomes) >= LARGE:
            await self._merge(answer, entry)
        if entry is not None and lookup.chosen is None and at is None and not (through_timegates or lookup.page):
            self._remember(entry, archive_set, answer)
        self._on_answer(answer)
        return answer

    async def _merge(self, answer: LookupResult, entry: Entry | None) -> None:
        """Merge a large answer in a thread, or take what was merged of the same outcomes before."""
        if entry is not None and entry.merged is not None:
            outcomes, mementos = entry.merged
            if len(outcomes) == len(answer.outcomes) and all(map(is_, outcomes, answer.outcomes)):
                answer.__dict__["_mementos"] = mementos
                return
        await asyncio.to_thread(lambda: answer.mementos)
        if self.cache is not None and entry is not None and answer.cache == "hit":
            self.cache.remember_merged(answer.uri_r, entry, answer.outcomes, answer.mementos)

    async def _ask_the_unlikely(
        self, asking: _Asking, decisions: tuple[Decision, ...], kept: Mapping[str, Kept]
    ) -> tuple[tuple[Decision, ...], list[Outcome]]:
        """Before the answer is that nothing was found: ask those that are skipped only because they are unlikely, not
        needed for the wanted recall, or known to hold nothing near the asked datetime."""
        unlikely = {d.archive for d in decisions if d.reason in SECOND_CHANCE}
        if not unlikely:
            return decisions, []
        todo = [self.archive_set.by_id[a] for a in unlikely if a in self.archive_set.by_id and a not in kept]
        resting = {archive.id: rest for archive in todo if (rest := self._rest(archive)) is not None}
        asked, turned_away = self._admit([archive for archive in todo if archive.id not in resting])
        for archive_id, rest in resting.items():
            turned_away[archive_id] = Decision(archive_id, False, Source.RESTING, reason=rest.reason, rest=rest)
        outcomes = await self._ask(asking, asked, extra=unlikely) if asked else []
        changed = {d.archive: d._replace(ask=True, reason=Reason.NONE) for d in decisions if d.archive in unlikely}
        changed |= turned_away
        return tuple(changed.get(decision.archive, decision) for decision in decisions), outcomes

    async def _ask(
        self,
        asking: _Asking,
        archives: Sequence[Archive],
        *,
        extra: Collection[str] = (),
        gaps: Mapping[str, float] | None = None,
    ) -> list[Outcome]:
        lookup = asking.lookup
        headers = {"Via": lookup.via} if lookup.via else None
        try:
            if asking.through_timegates:
                outcomes = await gather_timegates(
                    self._client,
                    archives,
                    lookup.uri_r,
                    asking.at,
                    deadline=asking.deadline,
                    headers=headers,
                    on_outcome=lookup.on_outcome,
                    gaps=gaps,
                )
            else:
                outcomes = await gather_timemaps(
                    self._client,
                    archives,
                    lookup.uri_r,
                    deadline=asking.deadline,
                    headers=headers,
                    limits=self._limits,
                    on_outcome=lookup.on_outcome,
                )
        except BaseException:
            for archive in archives:
                if archive.id in self._breakers:
                    self._breakers[archive.id].abandoned()
            raise
        self._report(lookup.uri_r, outcomes, impatient=lookup.wait is not None)
        if self.learner is not None:
            self.learner.learn(lookup.uri_r, outcomes, extra=extra or (lookup.chosen or () if lookup.named else ()))
        return outcomes

    # --- breakers

    def _admit(self, todo: Sequence[Archive]) -> tuple[list[Archive], dict[str, Decision]]:
        """Those whose breaker lets them be asked, and for the others why not."""
        if not self._breakers:
            return list(todo), {}
        asked: list[Archive] = []
        turned_away: dict[str, Decision] = {}
        moment = self._loop.time()
        for archive in todo:
            breaker = self._breakers.get(archive.id)
            if breaker is None or breaker.allows(moment):
                asked.append(archive)
            else:
                rest = self._rest(archive) or Rest(Reason.FAILING)
                turned_away[archive.id] = Decision(archive.id, False, Source.RESTING, reason=rest.reason, rest=rest)
        return asked, turned_away

    def _report(self, uri_r: str, outcomes: Sequence[Outcome], *, impatient: bool) -> None:
        """Report to the breakers how each archive did."""
        moment = self._loop.time()
        for outcome in outcomes:
            breaker = self._breakers.get(outcome.archive)
            if outcome.kind is not OutcomeKind.ERROR:
                self._known_good[outcome.archive] = uri_r
            if outcome.harm and not (impatient and outcome.failure is Failure.TIMEOUT):
                if breaker is None:
                    breaker = self._breakers[outcome.archive] = Breaker()
                unreachable = outcome.failure is Failure.UNREACHABLE
                if breaker.failure(moment, outcome.error, uri_r, unreachable=unreachable):
                    proof = self._loop.create_task(self._prove(outcome.archive, breaker))
                    self._proofs.add(proof)
                    proof.add_done_callback(self._proofs.discard)
            elif breaker is not None:
                if outcome.failure in (Failure.THROTTLED, Failure.TIMEOUT):
                    breaker.abandoned()
                else:
                    breaker.success(moment, uri_r)

    async def _prove(self, archive_id: str, breaker: Breaker) -> None:
        """Ask an archive that keeps failing for something it answered before, or else something harmless: only if that
        fails too, the archive is to blame and not what it was asked for."""
        good = False
        archive = self.archive_set.by_id.get(archive_id)
        try:
            if archive is not None:
                deadline = self._loop.time() + min(self.deadline, _PROOF_SECONDS)
                known = self._known_good.get(archive_id, _HARMLESS)
                (outcome,) = await gather_timemaps(self._client, [archive], known, deadline=deadline)
                good = not outcome.harm
        finally:
            breaker.proved(self._loop.time(), good=good)

    def rest_left(self, archives: Iterable[str]) -> float:
        """Seconds until the first of these may be asked again."""
        states = self.states()
        return min((max(states[a][0].rest_left, states[a][1]) for a in archives if a in states), default=0.0)

    def states(self) -> dict[str, tuple[BreakerState, float, int]]:
        """Per archive: its breaker, the pause it asked for in seconds, and requests under way."""
        moment = self._loop.time()
        _ = self.switched_off  # whatever an operator woke has a new breaker
        resting = Breaker()
        return {
            archive.id: (
                self._breakers.get(archive.id, resting).state(moment),
                self._client.pause_left(archive),
                self._client.in_use(archive),
            )
            for archive in self.archive_set.archives
        }

    # --- the cache

    def _usable(
        self, lookup: LookupRequest, archive_set: ArchiveSet, entry: Entry
    ) -> tuple[dict[str, Kept], list[str]]:
        """Outcomes in the entry that may be used, by archive, and which of them are stale."""
        policy = lookup.policy
        if self.cache is None or not policy.read:
            return {}, []
        usable: dict[str, Kept] = {}
        stale: list[str] = []
        moment = now()
        for archive, key in archive_set.cache_keys.items():
            kept = entry.kept.get(key)
            if kept is None:
                continue
            age = moment - kept.at
            fresh, longest = self.cache.lifetimes.of(kept.outcome)
            if age > longest or (policy.max_age is not None and age > policy.max_age):
                continue
            usable[archive] = kept
            if age > fresh:
                stale.append(archive)
        return usable, stale

    def _keep(self, lookup: LookupRequest, archive_set: ArchiveSet, outcomes: Sequence[Outcome]) -> Entry | None:
        assert self.cache is not None
        moment = now()
        kept = {
            archive_set.cache_keys[outcome.archive]: Kept(
                archive_set.none[outcome.archive] if outcome.kind is OutcomeKind.NONE else outcome, moment
            )
            for outcome in outcomes
            if outcome.kind is not OutcomeKind.ERROR and not outcome.partial and outcome.knows is None
        }
        return self.cache.update(lookup.uri_r, kept) if kept else None

    def _remember(self, entry: Entry, archive_set: ArchiveSet, answer: LookupResult) -> None:
        """Keep the whole answer in the entry until the first of its parts ages."""
        # Only for what is asked a second time: most is not, and the memory is better used.
        if self.cache is None or answer.cache != "hit" or not answer.outcomes or _ready(entry, archive_set):
            return
        if any(decision.reason not in SECOND_CHANCE for decision in answer.unheard):
            return
        kept = [entry.kept.get(archive_set.cache_keys[outcome.archive]) for outcome in answer.outcomes]
        whole = [one for one in kept if one is not None]
        if len(whole) == len(kept):
            until = min(one.at + self.cache.lifetimes.of(one.outcome)[0] for one in whole)
            self.cache.remember_answer(answer.uri_r, entry, (until, archive_set, min(one.at for one in whole), answer))

    def _refresh(self, lookup: LookupRequest, archives: Sequence[Archive]) -> None:
        """Request stale outcomes again, after the response."""
        if lookup.uri_r in self._refreshing or len(self._refreshing) >= _MOST_REFRESHING:
            return

        async def refresh() -> None:
            try:
                asked, _ = self._admit(archives)
                quiet = LookupRequest(lookup.uri_r, via=lookup.via)
                asking = _Asking(quiet, self._loop.time() + self.deadline)
                self._keep(quiet, self.archive_set, await self._ask(asking, asked))
            finally:
                self._refreshing.pop(lookup.uri_r, None)

        self._refreshing[lookup.uri_r] = self._loop.create_task(refresh())


LARGE = 4000
"""Mementos from which an answer is put together in a thread, and sent in chunks."""
_MOST_REFRESHING = 64
_PROOF_SECONDS = 10.0
_HARMLESS = "http://example.com/"


def _ready(entry: Entry, archive_set: ArchiveSet) -> bool:
    """Whether the answer an entry remembers is still right."""
    return entry.answer is not None and entry.answer[1] is archive_set and now() < entry.answer[0]


def _in_order(archive_set: ArchiveSet, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """In the order of the list of archives, so that the answer does not depend on who was expected to hold most."""
    if len(outcomes) < 2:
        return tuple(outcomes)
    by_archive = {outcome.archive: outcome for outcome in outcomes}
    return tuple(by_archive[archive] for archive in archive_set.by_id if archive in by_archive)


def _not_cached(decision: Decision) -> Decision:
    return Decision(decision.archive, False, Source.CACHE, reason=Reason.NOT_CACHED)


def _word(used: Sequence[Kept], stale: Sequence[str], fetched: Sequence[Outcome]) -> str:
    if stale:
        return "stale"
    if used:
        return "partly" if fetched else "hit"
    return "miss"
