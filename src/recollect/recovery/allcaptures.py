"""Every capture of what came back, not only the best one (`--all-captures`): a site's history in its WARC and WACZ.

Hides: which captures those are, and which of them need a request. Captures of another owner's time, errors, and what
the judge does not take for the page are left out. A capture with the bytes of one that is here already (by the digests
of the listings) costs no request: it is recorded as a repetition, in the WARC a revisit record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from recollect.recovery.acquire import Acquired, Acquirer
from recollect.recovery.choose import Candidate, in_order, resolve_revisits
from recollect.recovery.journal import Journal, Queued
from recollect.recovery.knowledge import SiteKnowledge
from recollect.recovery.meter import OutOfQuota
from recollect.recovery.options import Options
from recollect.recovery.ownership import Standing
from recollect.recovery.records import Recovered, Version
from recollect.recovery.store import Store

_WORKERS = 8


def captures_wanted(
    captures: Iterable[Candidate], options: Options, archives: Sequence[str], site: SiteKnowledge | None = None
) -> list[Candidate]:
    """The captures of one resource that belong to its history, in order of time; each moment and content once."""
    known = resolve_revisits(captures)
    if site is not None and not options.keep_suspects:
        known = [c for c in known if site.ownership.standing(c.captured_at) is not Standing.FOREIGN]
    wanted: dict[object, Candidate] = {}
    place = {name: number for number, name in enumerate(archives)}
    ordered = in_order(known, options.dates, archives=archives)
    for c in sorted(ordered, key=lambda c: (c.captured_at, place.get(c.archive, len(place)), c.archive, c.uri)):
        same = (c.digest if options.all_captures == "unique" and c.digest else c.captured_at, c.digest)
        wanted.setdefault(same, c)
    return list(wanted.values())


class AllCaptures:
    """Fetches the history of a recovery."""

    def __init__(
        self, store: Store, acquirer: Acquirer, options: Options, archives: Sequence[str], site: SiteKnowledge
    ) -> None:
        self._store = store
        self._journal = Journal(store)
        self._acquirer = acquirer
        self._options = options
        self._archives = archives
        self._site = site
        self.outcomes: Counter[str] = Counter()

    async def run(self, stop: Callable[[], bool], on_done: Callable[[], None]) -> None:
        """All captures of every recovered resource; what is here already is not asked for again."""
        waiting = [resource for resource in self._store.recovered() if not resource.live]
        waiting.reverse()

        async def work() -> None:
            while waiting and not stop():
                await self._history(waiting.pop(), stop)
                on_done()

        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(work())

    async def _history(self, resource: Recovered, stop: Callable[[], bool]) -> None:
        known = resolve_revisits(self._journal.candidates(resource.key))
        here = {(one.resource.captured_at, one.resource.archive) for one in self._journal.versions(resource.key)}
        here.add((resource.captured_at, resource.archive))
        bytes_of = self._payloads(resource, known)
        chosen = next((c for c in known if _is_of(c, resource)), None)
        usable = [c for c in known if c.archive in self._archives]
        for candidate in captures_wanted(usable, self._options, self._archives, self._site):
            if stop():
                return
            same = chosen is not None and candidate.digest == chosen.digest
            if (candidate.captured_at, candidate.archive) in here:
                continue
            if self._options.all_captures == "unique" and candidate.digest and same:
                continue
            if chosen is not None and candidate.captured_at == chosen.captured_at and same:
                continue  # another archive's record of the same visit
            await self._one(resource, candidate, known, bytes_of)

    def _payloads(self, resource: Recovered, known: Sequence[Candidate]) -> dict[str, Version]:
        """Digest of a listing -> the version with these bytes."""
        versions = [Version(resource), *self._journal.versions(resource.key)]
        found: dict[str, Version] = {}
        for one in versions:
            for c in known:
                if c.digest and one.repeats is None and _is_of(c, one.resource) and not one.resource.is_redirect:
                    found.setdefault(c.digest, one)
        return found

    async def _one(
        self, resource: Recovered, candidate: Candidate, known: Sequence[Candidate], bytes_of: dict[str, Version]
    ) -> None:
        original = bytes_of.get(candidate.digest) if candidate.digest else None
        if original is not None and not candidate.is_redirect:
            self._repeat(candidate, original)
            return
        item = Queued(resource.key, candidate.uri, resource.kind, resource.found_on)
        try:
            acquired = await self._acquirer.capture(item, candidate, known, self._site)
        except OutOfQuota:
            self.outcomes["out-of-quota"] += 1
            return
        if not isinstance(acquired, Acquired):
            self.outcomes[acquired.outcome] += 1
            return
        version = Version(acquired.resource)
        with self._journal.transaction():
            self._journal.add_version(version, acquired.payload.sha256)
        self.outcomes["kept"] += 1
        if candidate.digest and not acquired.resource.is_redirect and not acquired.resource.altered:
            bytes_of.setdefault(candidate.digest, version)

    def _repeat(self, candidate: Candidate, original: Version) -> None:
        """A capture of bytes that are here."""
        first = original.resource
        place, at = self._acquirer.address(candidate), candidate.captured_at
        again = replace(first, captured_at=at, archive=candidate.archive, uri=candidate.uri, uri_m=place)
        with self._journal.transaction():
            self._journal.add_version(Version(again, first.captured_at), self._store.payload_name(first))
        self.outcomes["kept"] += 1


def _is_of(candidate: Candidate, resource: Recovered) -> bool:
    return candidate.archive == resource.archive and candidate.captured_at == resource.captured_at


def left_out(outcomes: Mapping[str, int]) -> int:
    """Captures that were not taken: refused by the judge, or not delivered."""
    return sum(count for outcome, count in outcomes.items() if outcome != "kept")
