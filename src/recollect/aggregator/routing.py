"""Whom to ask for a URI, and why: pure decisions over evidence.

Hides: how maps, voids, filters, rules, learned usage and a caller's choice are weighed. Evidence in, decisions out; no
clock, no network, so that every decision can be explained, tested and replayed. `explain` makes words of them.

Order of weight: the caller's choice of archives; rules; a map or filter of holdings; what was learned. "No" skips,
"yes" and "unknown" ask; an archive that the caller names is asked whatever was learned. The asked ones come with the
largest expectation first, and `top_k` keeps the first k. An archive that rests (breaker) or asked for a pause is
skipped by name: absence is not failure, and neither is silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

Answer = Literal["yes", "no", "unknown"]

# An archive of which nothing is known: the share of all requests that found mementos in three years of an aggregator's
# log (Alam et al., "MementoMap: An Archive Profile Dissemination Framework", 2019, section 1).
USUAL_PROBABILITY = 0.0544


class Source(StrEnum):
    """Who decided."""

    NOTHING = ""
    RULE = "rule"
    MAP = "map"
    VOIDS = "voids"
    FILTER = "filter"
    LEARNED = "learned"
    SAMPLE = "sample"
    """A map of a sample."""
    CHOICE = "choice"
    RESTING = "resting"
    CACHE = "cache"


class Reason(StrEnum):
    """Why an archive is skipped."""

    NONE = ""
    HOLDS_NONE = "holds-none"
    RULE = "rule"
    UNLIKELY = "unlikely"
    NOT_CHOSEN = "not-chosen"
    NOT_BEST = "not-among-the-best"
    NOT_CACHED = "not-cached"
    PAUSED = "paused"
    """It asked for a pause (Retry-After)."""
    FAILING = "failing"
    """Its breaker is open."""
    SWITCHED_OFF = "switched-off"
    """An operator lets it rest."""


# Reasons that say nothing about what an archive holds: a lookup that was skipped for one is not complete.
UNHEARD = frozenset(
    {Reason.UNLIKELY, Reason.NOT_BEST, Reason.NOT_CACHED, Reason.PAUSED, Reason.FAILING, Reason.SWITCHED_OFF}
)


# Tuples, because a dozen of each are made for every lookup, and frozen dataclasses take twice the time.


class Rest(NamedTuple):
    """Why an archive must not be asked now, and for how long."""

    reason: Reason
    seconds: float = 0.0
    failures: int = 0
    last_failure: str = ""


class Evidence(NamedTuple):
    """What one source says about one archive and one URI."""

    answer: Answer
    source: Source
    key: str = ""
    """The deciding key of a map, or the pattern of a rule."""
    frequency: str = ""
    expected: float = 1.0
    """Expected mementos if asked; orders the archives, never excludes one by itself."""
    reason: Reason = Reason.HOLDS_NONE
    """What follows from a `no`."""


class Candidate(NamedTuple):
    """An archive that could be asked: its id, how likely it holds anything at all, and whether it may be asked now."""

    id: str
    probability: float = USUAL_PROBABILITY
    rest: Rest | None = None
    """Why it must not be asked now."""


class Decision(NamedTuple):
    """One archive: ask or skip, and the reason."""

    archive: str
    ask: bool
    source: Source
    key: str = ""
    frequency: str = ""
    expected: float = 0.0
    reason: Reason = Reason.NONE
    rest: Rest | None = None
    limit: int = 0
    """The k of `top_k`, with the reason NOT_BEST."""


def route(
    candidates: Sequence[Candidate],
    evidence: Mapping[str, Evidence],
    *,
    chosen: frozenset[str] | None = None,
    named: bool = False,
    top_k: int | None = None,
) -> tuple[Decision, ...]:
    """A decision for every candidate: the asked first, by expectation; then the skipped, in the order given.

    `chosen` are the archives the caller wants, None for all; with `named` they were named one by one, and what was
    learned about them does not count.
    """
    asked: list[Decision] = []
    skipped: list[Decision] = []
    for candidate in candidates:
        decision = _decide(candidate, evidence.get(candidate.id), chosen, named)
        (asked if decision.ask else skipped).append(decision)
    if len(asked) > 1:
        asked.sort(key=lambda decision: -decision.expected)
    if top_k is not None and len(asked) > top_k:
        skipped += [late._replace(ask=False, reason=Reason.NOT_BEST, limit=top_k) for late in asked[top_k:]]
        del asked[top_k:]
    return (*asked, *skipped)


def _decide(candidate: Candidate, found: Evidence | None, chosen: frozenset[str] | None, named: bool) -> Decision:
    if chosen is not None and candidate.id not in chosen:
        return Decision(candidate.id, False, Source.CHOICE, reason=Reason.NOT_CHOSEN)
    if found is not None and found.answer == "no" and not (named and found.reason is Reason.UNLIKELY):
        return Decision(candidate.id, False, found.source, found.key, found.frequency, reason=found.reason)
    if candidate.rest is not None:
        return Decision(candidate.id, False, Source.RESTING, reason=candidate.rest.reason, rest=candidate.rest)
    if found is None:
        return Decision(candidate.id, True, Source.NOTHING, expected=candidate.probability)
    expected = found.expected if found.answer == "yes" else candidate.probability * found.expected
    return Decision(candidate.id, True, found.source, found.key, found.frequency, expected)
