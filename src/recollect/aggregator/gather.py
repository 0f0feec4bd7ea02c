"""Asking the chosen archives in parallel, and merging their answers.

Hides: the one deadline, the order of arrival (the answer does not depend on it), how archives that are asked last
wait for the others, and what may be claimed about neighbours when only TimeGates were asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from recollect.aggregator.ask import ACCEPT, LIMITS, Limits, RequestBudget, ask_listing, ask_timegate, ask_timemap
from recollect.aggregator.outcomes import Failure, Outcome, OutcomeKind
from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive
from recollect.errors import RecollectError
from recollect.formats.timemap import Memento, Mementos, Negotiated, merge

log = logging.getLogger("recollect.aggregator")

OnOutcome = Callable[[Outcome], None]

HEAD_START = 1.0
"""Seconds that archives with captures far from the asked datetime wait for the others, at most."""
_SHARE_OF_TIME = 0.25
"""The same as a share of the time until the deadline."""


async def gather_timemaps(
    client: ArchiveClient,
    archives: Sequence[Archive],
    uri_r: str,
    *,
    deadline: float,
    headers: Mapping[str, str] | None = None,
    limits: Limits = LIMITS,
    on_outcome: OnOutcome | None = None,
) -> list[Outcome]:
    """The outcomes of asking every archive for its TimeMap, in the order of `archives`. `deadline` is a moment of the
    loop's clock; archives that did not answer by then are `timeout` errors, what they sent so far is kept."""
    fields = {**ACCEPT, **headers} if headers else ACCEPT
    budget = RequestBudget(limits.budget - len(archives)) if limits.budget is not None else None

    def ask(archive: Archive) -> Awaitable[Outcome]:
        if not archive.timemap and archive.cdx:
            return ask_listing(client, archive, uri_r, deadline=deadline, limits=limits)
        if not archive.timemap:
            return ask_timegate(client, archive, uri_r, None, deadline=deadline, headers=headers)
        return ask_timemap(client, archive, uri_r, deadline=deadline, headers=fields, limits=limits, budget=budget)

    return await _all(ask, archives, on_outcome)


async def gather_timegates(
    client: ArchiveClient,
    archives: Sequence[Archive],
    uri_r: str,
    at: datetime | None,
    *,
    deadline: float,
    headers: Mapping[str, str] | None = None,
    on_outcome: OnOutcome | None = None,
    gaps: Mapping[str, float] | None = None,
) -> list[Outcome]:
    """The same through TimeGates, for a datetime (None: the most recent). `gaps` says how far from it the captures of
    archives are known to lie: an archive is asked when those nearer in time have answered, or had their head start."""

    def ask(archive: Archive) -> Awaitable[Outcome]:
        return ask_timegate(client, archive, uri_r, at, deadline=deadline, headers=headers)

    if not gaps or len(archives) < 2:
        return await _all(ask, archives, on_outcome)
    moment = asyncio.get_running_loop().time()
    until = moment + min(HEAD_START, _SHARE_OF_TIME * (deadline - moment))
    return await _all(_nearest_first(ask, archives, gaps, until), archives, on_outcome)


def _nearest_first(
    ask: Callable[[Archive], Awaitable[Outcome]], archives: Sequence[Archive], gaps: Mapping[str, float], until: float
) -> Callable[[Archive], Awaitable[Outcome]]:
    """The same asking, in which an archive waits for the answers of those with smaller gaps, `until` a moment."""
    answers = {archive.id: asyncio.Event() for archive in archives}

    async def in_turn(archive: Archive) -> Outcome:
        mine = gaps.get(archive.id, 0.0)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                for nearer, answered in answers.items():
                    if gaps.get(nearer, 0.0) < mine:
                        await answered.wait()
        try:
            return await ask(archive)
        finally:
            answers[archive.id].set()

    return in_turn


async def _all(
    ask: Callable[[Archive], Awaitable[Outcome]], archives: Sequence[Archive], on_outcome: OnOutcome | None
) -> list[Outcome]:
    async def ask_and_report(archive: Archive) -> Outcome:
        try:
            outcome = await ask(archive)
        except UNREADABLE as error:
            outcome = _fault(archive, error)
        if on_outcome is not None:
            on_outcome(outcome)
        return outcome

    if len(archives) == 1:
        return [await ask_and_report(archives[0])]
    if on_outcome is not None:
        return await asyncio.gather(*map(ask_and_report, archives))
    # Without a coroutine around each: this is done for every lookup.
    outcomes = await asyncio.gather(*map(ask, archives), return_exceptions=True)
    return [
        _fault(archive, outcome) if isinstance(outcome, BaseException) else outcome
        for archive, outcome in zip(archives, outcomes, strict=True)
    ]


UNREADABLE = (RecollectError, ValueError, LookupError, ArithmeticError, RecursionError)
"""What data that a parser does not expect can raise."""


def _fault(archive: Archive, error: BaseException) -> Outcome:
    """Reading what one archive sent failed. That is our fault, but the answers of the others are good."""
    if not isinstance(error, UNREADABLE):
        raise error
    log.error("reading the answer of %s failed", archive.id, exc_info=error)
    return Outcome(archive.id, OutcomeKind.ERROR, failure=Failure.INTERNAL, why=type(error).__name__)


def merged(outcomes: Sequence[Outcome]) -> Mementos:
    """All mementos in order; archives in the order of `outcomes` break ties."""
    return merge([(outcome.archive, outcome.timemap) for outcome in outcomes if outcome.timemap.uris])


def negotiated(outcomes: Sequence[Outcome], mementos: Mementos, at: datetime | None) -> Negotiated | None:
    """The closest of all mementos (`outcomes`, merged), with those neighbours that are certain.

    A TimeGate names its choice and perhaps some neighbours of it. If its choice lies before the closest of all, it has
    nothing between the two; so `prev` is certain if every archive chose something earlier, or named its own `prev`, or
    chose its first. The same holds for `next`; `first` and `last` need every archive to name them.
    """
    return _certain(outcomes, mementos.negotiate(at), at)


def around(outcomes: Sequence[Outcome], mementos: Mementos, memento: Memento) -> Negotiated | None:
    """One memento as the choice, with those neighbours that are certain."""
    return _certain(outcomes, mementos.around(memento), memento.captured_at)


def _certain(outcomes: Sequence[Outcome], choice: Negotiated | None, at: datetime | None) -> Negotiated | None:
    """A choice with only those neighbours that no unknown memento can come before."""
    partly = [outcome for outcome in outcomes if outcome.knows is not None and outcome.timemap.uris]
    if choice is None or not partly:
        return choice
    own = [_own_choice(outcome, at) for outcome in partly]
    return replace(
        choice,
        first=choice.first if all("first" in knows for _, knows, _ in own) else None,
        prev=choice.prev if all(_settled(choice.closest, one, before=True) for one in own) else None,
        next=choice.next if all(_settled(choice.closest, one, before=False) for one in own) else None,
        last=choice.last if all("last" in knows for _, knows, _ in own) else None,
    )


_Own = tuple[Memento, frozenset[str], Mementos]


def _own_choice(outcome: Outcome, at: datetime | None) -> _Own:
    listed = merged([outcome])
    choice = listed.negotiate(at)
    assert choice is not None and outcome.knows is not None
    return choice.closest, outcome.knows, listed


def _settled(closest: Memento, own: _Own, *, before: bool) -> bool:
    chosen, knows, listed = own
    if before:
        earlier = chosen.captured_at < closest.captured_at
        return earlier or "prev" in knows or ("first" in knows and chosen == listed[0])
    later = chosen.captured_at > closest.captured_at
    return later or "next" in knows or ("last" in knows and chosen == listed[-1])
