"""The archives that are asked and what is known of them, as one frozen value.

Hides: which archives are asked by default, and the priority of rules, maps and the learned model. Needs no network and
no event loop, so that `recollect route` starts quickly.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Protocol

from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.archives.registry import Archive
from recollect.model import Answer
from recollect.routing.choice import USUAL_PROBABILITY, Candidate, Evidence, Reason, Source, combined
from recollect.routing.maps import Maps


class Learner(Protocol):
    """Evidence that grows by answers."""

    def evidence(self, uri_r: str) -> Mapping[str, Evidence]: ...

    def learn(self, uri_r: str, outcomes: Sequence[Outcome], *, extra: Collection[str] = ()) -> None: ...


def has_mementos(archive: Archive) -> bool:
    """Whether the archive has URI-Ms at all: a listing of WARC records, as of Common Crawl, has none."""
    return bool(archive.timemap or archive.timegate or (archive.cdx and "{timestamp}" in archive.raw))


@dataclass(frozen=True, eq=False)
class ArchiveSet:
    """The archives that are asked, and what their maps say."""

    archives: tuple[Archive, ...]
    maps: Maps | None = None

    @cached_property
    def by_id(self) -> dict[str, Archive]:
        return {archive.id: archive for archive in self.archives}

    @cached_property
    def cache_keys(self) -> dict[str, str]:
        return {a.id: f"{a.id}#{zlib.crc32(f'{a.timemap} {a.timegate}'.encode()):08x}" for a in self.archives}

    @cached_property
    def usual(self) -> frozenset[str]:
        """Those asked when the caller names none."""
        return frozenset(archive.id for archive in self.archives if not archive.ignore and has_mementos(archive))

    @cached_property
    def none(self) -> dict[str, Outcome]:
        """The outcome `none` of each archive: most of a cache is made of them, so they are made once."""
        return {archive.id: Outcome(archive.id, OutcomeKind.NONE) for archive in self.archives}

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """All archives, as if none was paused."""
        return {
            a.id: Candidate(a.id, USUAL_PROBABILITY if a.probability is None else a.probability)
            for a in self.archives
            if has_mementos(a)
        }

    @cached_property
    def usual_candidates(self) -> list[Candidate]:
        return [self.candidates[archive.id] for archive in self.archives if archive.id in self.usual]

    @cached_property
    def unlearned(self) -> tuple[str, ...]:
        """Archives that are never skipped for what was learned."""
        return tuple(archive.id for archive in self.archives if not archive.learn)

    @cached_property
    def ruled(self) -> tuple[Archive, ...]:
        return tuple(archive for archive in self.archives if archive.only or archive.never)

    def evidence(
        self, uri_r: str, learner: Learner | None = None, at: datetime | None = None, *, any_status: bool = False
    ) -> dict[str, Evidence]:
        """What is known of a resource, by archive: rules before maps, maps before what was learned. With `at`, maps
        with times give the distance of the captures from it."""
        found: dict[str, Evidence] = {}
        if learner is not None:
            found.update(learner.evidence(uri_r))
            for archive_id in self.unlearned:
                found.pop(archive_id, None)
        if self.maps is not None:
            for archive_id, said in self.maps.evidence(uri_r, at, any_status=any_status).items():
                found[archive_id] = combined(said, found[archive_id]) if archive_id in found else said
        for archive in self.ruled:
            rule = archive.rule(uri_r)
            if rule is not None:
                found[archive.id] = Evidence(Answer.NO, Source.RULE, rule, reason=Reason.RULE)
        return found
