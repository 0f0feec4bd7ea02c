"""Whom to ask for a URI, and why: pure decisions over evidence.

Hides: how maps, voids, filters, rules, learned usage and a caller's choice are weighed. Evidence in, decisions out; no
clock, no network, so that every decision can be explained, tested and replayed.

Order of weight: the caller's choice of archives; rules; a map or filter of holdings; what was learned. "No" skips,
"yes" and "unknown" ask. The asked ones come with the largest expectation first, and `top_k` keeps the first k. An
archive that rests (breaker) or asked for a pause is skipped by name: absence is not failure, and neither is silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from recollect.errors import UsageError

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says about one archive and one URI."""

    answer: Answer
    source: str
    """`map`, `voids`, `filter`, `rule` or `learned`."""
    key: str = ""
    """The deciding key of a map, or the pattern of a rule."""
    frequency: str = ""
    expected: float = 1.0
    """Expected mementos if asked; orders the archives, never excludes one by itself."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An archive that could be asked: its id, how likely it holds anything at all, and whether it may be asked now."""

    id: str
    probability: float = 1.0
    resting: str = ""
    """Why it must not be asked now, or empty."""


@dataclass(frozen=True, slots=True)
class Decision:
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
        """`skip (map: no key)`, for headers and people."""
        parts = [self.source] if self.source else []
        if self.key:
            parts.append(self.key)
        if self.frequency:
            parts.append(self.frequency)
        if self.reason:
            parts.append(self.reason)
        return f"{'ask' if self.ask else 'skip'} ({' '.join(parts)})" if parts else ("ask" if self.ask else "skip")


@dataclass(frozen=True, slots=True)
class Choice:
    """The caller's archives: only these, or all but those."""

    ids: frozenset[str] = frozenset()
    exclude: bool = False

    @classmethod
    def parse(cls, text: str, known: Sequence[str]) -> Choice:
        """`a,b` only these; `!a,!b` (or `!a,b`) all but these. Unknown names are errors."""
        names = [name.strip() for name in text.split(",") if name.strip()]
        negated = [name.startswith("!") for name in names]
        if not names or (any(negated) and not negated[0]):
            raise UsageError(
                "which archives", where=repr(text[:80]), why="either names, or names to leave out", hint="a,b or !a,b"
            )
        ids = frozenset(name.removeprefix("!") for name in names)
        strangers = sorted(ids - set(known))
        if strangers:
            raise UsageError("no such archive", where=", ".join(strangers)[:200], hint=f"known are {', '.join(known)}")
        return cls(ids, negated[0])

    def admits(self, archive: str) -> bool:
        return (archive not in self.ids) if self.exclude else (not self.ids or archive in self.ids)

    def __str__(self) -> str:
        return ",".join(f"!{name}" if self.exclude else name for name in sorted(self.ids))


EVERYBODY = Choice()


def route(
    candidates: Sequence[Candidate],
    evidence: Mapping[str, Evidence],
    *,
    choice: Choice = EVERYBODY,
    top_k: int | None = None,
) -> tuple[Decision, ...]:
    """A decision for every candidate: the asked first, by expectation; then the skipped, in the order given."""
    asked: list[Decision] = []
    skipped: list[Decision] = []
    for candidate in candidates:
        decision = _decide(candidate, evidence.get(candidate.id), choice)
        (asked if decision.ask else skipped).append(decision)
    if len(asked) > 1:
        asked.sort(key=lambda decision: -decision.expected)
    if top_k is not None and len(asked) > top_k:
        for late in asked[top_k:]:
            reason = f"only the best {top_k} are asked"
            skipped.append(
                Decision(late.archive, False, late.source, late.key, late.frequency, late.expected, reason)
            )
        del asked[top_k:]
    return (*asked, *skipped)


def _decide(candidate: Candidate, found: Evidence | None, choice: Choice) -> Decision:
    if not choice.admits(candidate.id):
        return Decision(candidate.id, False, "choice", reason="the request leaves it out")
    if found is not None and found.answer == "no":
        return Decision(candidate.id, False, found.source, found.key, found.frequency, reason="holds none")
    if candidate.resting:
        return Decision(candidate.id, False, "resting", reason=candidate.resting)
    if found is None:
        return Decision(candidate.id, True, "", expected=candidate.probability)
    expected = found.expected if found.answer == "yes" else candidate.probability * found.expected
    return Decision(candidate.id, True, found.source, found.key, found.frequency, expected)
