"""Who owned the site when: which captures to look at, one after the other, until the periods are known.

Hides: where looks come from. Front pages first; for years in which archives captured pages and no front page, one or
two of those pages. `recovery.ownership` decides what to look at next and what it means; nothing is asked for twice, and
a capture that was looked at and is taken later costs no second request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from recollect.recovery.choose import Candidate, is_content, resolve_revisits
from recollect.recovery.fingerprint import address_of, is_generic
from recollect.recovery.journal import Journal
from recollect.recovery.options import Options
from recollect.recovery.ownership import (
    ListedPages,
    Look,
    Observation,
    Ownership,
    all_observed,
    find_ownership,
    next_look,
)

MOST_LOOKS = 24
_INNER_LOOKS = 2  # pages below the front page, for a year without one
_YEAR = timedelta(days=365)
Observe = Callable[[Candidate, bool], Awaitable[Observation | None]]


@dataclass(frozen=True, slots=True)
class OwnerEvidence:
    """Captures to look at, in order of time, and what listings say of pages over time."""

    looks: tuple[Look, ...]
    candidates: tuple[Candidate, ...]
    listed: ListedPages


def owner_evidence(journal: Journal, options: Options, front: frozenset[str], usable: frozenset[str]) -> OwnerEvidence:
    """What the listings offer. `front` are the keys of the start pages, `usable` the archives that may be asked."""
    fronts: list[Candidate] = []
    pages: list[Candidate] = []
    content, errors = [], []
    captures: dict[str, list[Candidate]] = {}
    for key, candidate in journal.all_captures():
        captures.setdefault(key, []).append(candidate)
    for key, group in captures.items():
        if not options.scope.holds(group[0].uri):
            continue
        for c in resolve_revisits(group):
            if not options.dates.in_range(c.captured_at):
                continue
            if not is_content(c.status):
                errors.append((c.captured_at, address_of(c.uri)))
            elif "html" in c.media_type or key in front or not c.media_type:
                content.append((c.captured_at, address_of(c.uri)))
                if c.archive in usable:
                    (fronts if key in front else pages).append(c)
    chosen = [(c, True) for c in fronts] + [(c, False) for c in _inner(pages, fronts)]
    chosen.sort(key=lambda pair: (pair[0].captured_at, pair[0].archive, pair[0].uri))
    looks = tuple(Look(c.captured_at, c.digest, is_front) for c, is_front in chosen)
    return OwnerEvidence(looks, tuple(c for c, _ in chosen), ListedPages.of(content, errors))


def _inner(pages: Sequence[Candidate], fronts: Sequence[Candidate]) -> list[Candidate]:
    """A few pages of each year that has no front page near: those that were captured most often."""
    counts = Counter(c.uri for c in pages)
    bare = [c for c in pages if all(abs(c.captured_at - f.captured_at) > _YEAR for f in fronts)]
    chosen: dict[int, dict[str, Candidate]] = {}
    for c in sorted(bare, key=lambda c: (-counts[c.uri], c.uri, c.captured_at)):
        year = chosen.setdefault(c.captured_at.year, {})
        if len(year) < _INNER_LOOKS:
            year.setdefault(c.uri, c)
    return [c for year in chosen.values() for c in year.values()]


async def search_ownership(evidence: OwnerEvidence, observe: Observe, most: int = MOST_LOOKS) -> Ownership:
    """Look at captures until the periods are known, or `most` were looked at."""
    observed: dict[int, Observation | None] = {}
    while len(observed) < most:
        place = next_look(evidence.looks, observed, evidence.listed)
        if place is None:
            break
        seen = await observe(evidence.candidates[place], evidence.looks[place].front)
        if seen is not None:
            seen = replace(seen, gone=evidence.listed.gone(seen.at))
        observed[place] = seen
    return find_ownership(all_observed(evidence.looks, observed), evidence.listed)


def own_addresses(ownership: Ownership, listed: ListedPages) -> frozenset[str]:
    """Addresses that were captured in the owner's time, without those that all sites have."""
    own: set[str] = set()
    for period in ownership.periods:
        if period.owner == "own":
            own |= listed.between(period.start - _YEAR if period is ownership.periods[0] else period.start, period.end)
    return frozenset(address for address in own if not is_generic(address))
