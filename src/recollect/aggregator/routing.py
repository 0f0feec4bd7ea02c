"""Whom to ask for a URI, and why: pure decisions over evidence.

Hides: how maps, voids, filters, rules, learned usage and a caller's choice are weighed. Evidence in, decisions out; no
clock, no network, so that every decision can be explained, tested and replayed.

Order of weight: the caller's choice of archives; rules; a map or filter of holdings; what was learned. "No" skips,
"yes" and "unknown" ask. The asked ones come with the largest expectation first, and `top_k` keeps the first k. An
archive that rests (breaker) or asked for a pause is skipped by name: absence is not failure, and neither is silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Answer = Literal["yes", "no", "unknown"]

# An archive nobody said anything about: the share of all requests that found mementos in three years of an aggregator's
# log (Alam et al., "MementoMap: An Archive Profile Dissemination Framework", 2019, section 1).
USUAL_PROBABILITY = 0.0544


# Tuples, because a dozen of each are made for every lookup, and frozen dataclasses take twice the time.


class Evidence(NamedTuple):
    """What one source says about one archive and one URI."""

    answer: Answer
    source: str
    """`map`, `voids`, `filter`, `rule` or `learned`."""
    key: str = ""
    """The deciding key of a map, or the pattern of a rule."""
    frequency: str = ""
    expected: float = 1.0
    """Expected mementos if asked; orders the archives, never excludes one by itself."""
    reason: str = "holds none"
    """What follows from a `no`, in words."""


class Candidate(NamedTuple):
    """An archive that could be asked: its id, how likely it holds anything at all, and whether it may be asked now."""

    id: str
    probability: float = USUAL_PROBABILITY
    resting: str = ""
    """Why it must not be asked now, or empty."""


class Decision(NamedTuple):
    """One archive: ask or skip, and the reason."""

    archive: str
    ask: bool
    source: str
    key: str = ""
    frequency: str = ""
    expected: float = 0.0
    reason: str = ""

    @property
    def words(self) -> str:
        """`skip (map no key: holds none)`, for headers and people."""
        why = self.why
        return f"{'ask' if self.ask else 'skip'} ({why})" if why else ("ask" if self.ask else "skip")

    @property
    def why(self) -> str:
        """`map no key: holds none`: who said it, by which key and frequency, and what follows."""
        said = self.source
        if self.key:
            said = f"{said} {self.key}"
        if self.frequency:
            said = f"{said} {self.frequency}"
        return f"{said}: {self.reason}" if self.reason else said


def route(
    candidates: Sequence[Candidate],
    evidence: Mapping[str, Evidence],
    *,
    chosen: frozenset[str] | None = None,
    top_k: int | None = None,
) -> tuple[Decision, ...]:
    """A decision for every candidate: the asked first, by expectation; then the skipped, in the order given.

    `chosen` are the archives the caller wants, None for all.
    """
    asked: list[Decision] = []
    skipped: list[Decision] = []
    for candidate in candidates:
        decision = _decide(candidate, evidence.get(candidate.id), chosen)
        (asked if decision.ask else skipped).append(decision)
    if len(asked) > 1:
        asked.sort(key=lambda decision: -decision.expected)
    if top_k is not None and len(asked) > top_k:
        for late in asked[top_k:]:
            reason = f"only the best {top_k} are asked"
            skipped.append(Decision(late.archive, False, late.source, late.key, late.frequency, late.expected, reason))
        del asked[top_k:]
    return (*asked, *skipped)


def _decide(candidate: Candidate, found: Evidence | None, chosen: frozenset[str] | None) -> Decision:
    if chosen is not None and candidate.id not in chosen:
        return Decision(candidate.id, False, "choice", reason="the request leaves it out")
    if found is not None and found.answer == "no":
        return Decision(candidate.id, False, found.source, found.key, found.frequency, reason=found.reason)
    if candidate.resting:
        return Decision(candidate.id, False, "resting", reason=candidate.resting)
    if found is None:
        return Decision(candidate.id, True, "", expected=candidate.probability)
    expected = found.expected if found.answer == "yes" else candidate.probability * found.expected
    return Decision(candidate.id, True, found.source, found.key, found.frequency, expected)
