"""Whose site it was, and when: periods of ownership from a few looks at the site over the years.

Hides: how looks are brought together. Pure. An `Observation` is one capture of a page that shows the whole site, mostly
the front page. Observations that are alike (`SiteFingerprint`) are of one owner, however far apart: a site that was
sold and came back is one owner's with a gap. Pages of domain sellers have no owner; walls and error pages say nothing.

The owner is the first of them with a site: those who take a domain come later. An owner with next to nothing in the
listings, beside another with a site of many pages, does not count (a page of the registrar, a page under construction).

A moment has one of three standings: OWN near a look at the owner's site, FOREIGN between two looks at others' and
after the last one, OPEN in between, where each capture is judged by itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from recollect.datetimes import format_iso, format_timestamp, parse_timestamp
from recollect.recovery.fingerprint import FEWEST_LINKS, FEWEST_WORDS, Page, SiteFingerprint
from recollect.recovery.verdicts import PLACEHOLDERS, Verdict
from recollect.ui.messages import current

_SMALL_SHARE = 0.05  # of the largest site at this address, in listed pages
_HIJACKED_EVIDENCE = 3.0
_INNER_LENIENCE = 1.5  # a page below the front page may well be unlike it
_WILDCARD_EVIDENCE = 2.0  # the same bytes at many addresses
_GONE_EVIDENCE = 1.0  # most addresses that had content answer with errors
_SHORT_GAP = timedelta(days=30)
_YEAR = timedelta(days=365)
_NEAR = timedelta(days=200)
_NEVER_ANOTHER, _BETWEEN_OWN = 5.0, 2.0
WILDCARD = 3
_MOST_FIRST = 8  # looks spread over the years, before it is known that anything changed
_MOST_NOVEL = 6  # looks at times with quite other addresses
_FEWEST_NOVEL, _NOVEL_SHARE = 3, 0.6
MOST_GONE = 0.6


class Owner(StrEnum):
    """Who a period belongs to."""

    OWN = "own"
    OTHER = "other"
    PARKED = "parked"


class Standing(StrEnum):
    """What is known of a moment."""

    OWN = "own"
    OPEN = "open"
    FOREIGN = "foreign"


_SPEAKING = PLACEHOLDERS | {None, Verdict.HIJACKED, Verdict.LEADS_NOWHERE}
"""What the judge says of pages that tell an owner."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at the site. `page` is None for a capture that could not be read."""

    at: datetime
    page: Page | None
    verdict: Verdict | None = None
    """What the judge of pages says of it."""
    front: bool = True
    repeats: int = 0
    """How many other addresses have the very same bytes."""
    gone: float | None = None
    """Of the older addresses that were captured in the year after, the share that had no content any more."""

    @property
    def speaks(self) -> bool:
        """Whether it says anything about the owner."""
        return self.page is not None and self.verdict in _SPEAKING


@dataclass(frozen=True, slots=True)
class Period:
    """From the first to the last look at one owner's site in a row."""

    owner: Owner
    looks: tuple[datetime, ...]

    @property
    def start(self) -> datetime:
        return self.looks[0]

    @property
    def end(self) -> datetime:
        return self.looks[-1]

    def is_near(self, at: datetime) -> bool:
        """Whether a look at this owner's site is near a moment."""
        return any(abs(look - at) <= _NEAR for look in self.looks)

    def to_json(self) -> dict[str, Any]:
        return {"owner": self.owner, "from": format_iso(self.start), "to": format_iso(self.end)}


@dataclass(frozen=True, slots=True)
class Ownership:
    """The periods of a site, in order of time, and the fingerprint of its owner."""

    periods: tuple[Period, ...] = ()
    fingerprint: SiteFingerprint = field(default_factory=SiteFingerprint)

    @property
    def ended_at(self) -> datetime | None:
        """Since when the site is another's or parked; None while the last look shows the owner's."""
        own = [place for place, period in enumerate(self.periods) if period.owner is Owner.OWN]
        rest = self.periods[own[-1] + 1 :] if own else ()
        return rest[0].start if rest else None

    @property
    def foreign(self) -> bool:
        """Whether any period is not the owner's."""
        return any(period.owner is not Owner.OWN for period in self.periods)

    def standing(self, at: datetime) -> Standing:
        """What is known of a moment."""
        before = [p for p in self.periods if p.start <= at]
        if not before:
            own = not self.periods or (self.periods[0].owner is Owner.OWN and self.periods[0].is_near(at))
            return Standing.OWN if own else Standing.OPEN
        last = before[-1]
        if at <= last.end or last is self.periods[-1]:
            if last.owner is not Owner.OWN:
                return Standing.FOREIGN
            return Standing.OWN if last.is_near(at) else Standing.OPEN
        following = self.periods[len(before)]
        if Owner.OWN not in (last.owner, following.owner):
            return Standing.FOREIGN
        return Standing.OPEN

    def prior_evidence(self, at: datetime) -> float:
        """For a page of an open moment being the owner's, before it is read: much where no other owner was ever seen,
        some between two looks at the owner's site, nothing between the owner and another."""
        if not self.foreign:
            return _NEVER_ANOTHER
        within = any(p.owner is Owner.OWN and p.start <= at <= p.end for p in self.periods)
        return _BETWEEN_OWN if within else 0.0

    def to_json(self) -> dict[str, Any]:
        """All of it, for a journal."""
        periods = [[period.owner, [format_timestamp(look) for look in period.looks]] for period in self.periods]
        return {"periods": periods, "fingerprint": self.fingerprint.to_json()}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Ownership:
        periods = ((Owner(owner), tuple(map(parse_timestamp, looks))) for owner, looks in value.get("periods", ()))
        fingerprint = value.get("fingerprint")
        known = SiteFingerprint.from_json(fingerprint) if fingerprint else SiteFingerprint()
        return Ownership(tuple(Period(owner, looks) for owner, looks in periods), known)


def ownership_words(periods: Sequence[Period]) -> str:
    """The periods in a sentence, "" while the site was always its owner's."""
    if all(period.owner is Owner.OWN for period in periods):
        return ""
    _ = current().gettext
    parts = []
    for place, period in enumerate(periods):
        if period.owner is Owner.OWN:
            again = any(before.owner is Owner.OWN for before in periods[:place])
            parts.append(_("yours again until %(year)s") if again else _("yours until %(year)s"))
            parts[-1] %= {"year": period.end.year}
        else:
            name = _("another owner") if period.owner is Owner.OTHER else _("parked")
            parts.append(f"{name} ({_years(period)})")
    return _(", then ").join(parts)


def _years(period: Period) -> str:
    first, last = period.start.year, period.end.year
    return str(first) if first == last else current().gettext("%(first)s to %(last)s") % {"first": first, "last": last}


@dataclass(frozen=True, slots=True)
class ListedPages:
    """When which pages of the site were captured, by archives' listings: (moment, address), in order of time."""

    moments: tuple[datetime, ...] = ()
    addresses: tuple[str, ...] = ()
    errors: tuple[tuple[datetime, str], ...] = ()
    """Captures without content."""

    @staticmethod
    def of(captures: Sequence[tuple[datetime, str]], errors: Sequence[tuple[datetime, str]] = ()) -> ListedPages:
        ordered = sorted(captures)
        moments, addresses = tuple(at for at, _ in ordered), tuple(address for _, address in ordered)
        return ListedPages(moments, addresses, tuple(sorted(errors)))

    def gone(self, at: datetime, fewest: int = 5) -> float | None:
        """Of the older addresses that were captured in the year after a moment, the share without content; None where
        there are too few."""
        older = self.between(datetime.min.replace(tzinfo=UTC), at - _SHORT_GAP)
        alive = self.between(at, at + _YEAR) & older
        lost = {address for moment, address in self.errors if at <= moment <= at + _YEAR and address in older} - alive
        return len(lost) / (len(lost) + len(alive)) if len(lost) + len(alive) >= fewest else None

    def between(self, start: datetime, end: datetime) -> frozenset[str]:
        """The pages captured in a span of time."""
        return frozenset(self.addresses[bisect_left(self.moments, start) : bisect_right(self.moments, end)])


@dataclass
class _Group:
    """Looks at one owner's site."""

    fingerprint: SiteFingerprint = field(default_factory=SiteFingerprint)
    looks: list[Observation] = field(default_factory=list)
    hijacked: bool = False

    def add(self, look: Observation) -> None:
        assert look.page is not None
        self.fingerprint.learn(look.page)
        self.looks.append(look)
        self.hijacked = self.hijacked or look.verdict is Verdict.HIJACKED

    def evidence(self, look: Observation, listed: Container[str]) -> float:
        """For the look being of this owner."""
        assert look.page is not None
        signals = self.fingerprint.compare(look.page, listed)
        # One signal alone, such as the title of a short farewell, does not make another owner.
        little = look.front and look.page.words.total() < FEWEST_WORDS and _has_substance(self)
        alone = little and signals.own_evidence < 0 and signals.available < 2
        evidence = 0.0 if alone else signals.own_evidence + (_INNER_LENIENCE if not look.front else 0.0)
        if look.verdict is Verdict.HIJACKED and not self.hijacked:
            evidence -= _HIJACKED_EVIDENCE
        if look.repeats >= WILDCARD and all(known.repeats < WILDCARD for known in self.looks):
            evidence -= _WILDCARD_EVIDENCE
        if look.gone is not None and look.gone >= MOST_GONE:
            evidence -= _GONE_EVIDENCE
        return evidence


def find_ownership(observations: Sequence[Observation], listed: ListedPages = ListedPages()) -> Ownership:  # noqa: B008
    """The periods of a site from looks at it, in any order."""
    looks = sorted((look for look in observations if look.speaks), key=lambda look: look.at)
    groups, labels = _grouped(looks, listed)
    own = _own_group(groups, looks, labels, listed)
    if own is None:
        periods = tuple(_periods(looks, [Owner.PARKED for _ in looks]))
        return Ownership(periods if periods else ())
    owners = [Owner.PARKED if group is None else Owner.OWN if group is own else Owner.OTHER for group in labels]
    return Ownership(tuple(_periods(looks, owners)), own.fingerprint)


def _grouped(looks: Sequence[Observation], listed: ListedPages) -> tuple[list[_Group], list[_Group | None]]:
    groups: list[_Group] = []
    labels: list[_Group | None] = []
    for look in looks:
        if look.verdict in PLACEHOLDERS:
            labels.append(None)
            continue
        scored = [(group.evidence(look, _addresses(group, listed)), group) for group in groups]
        evidence, best = max(scored, key=lambda pair: pair[0], default=(-1.0, None))
        if best is None or evidence < 0:
            best = _Group()
            groups.append(best)
        best.add(look)
        labels.append(best)
    return groups, labels


def _addresses(group: _Group, listed: ListedPages) -> frozenset[str]:
    return listed.between(group.looks[0].at, group.looks[-1].at)


def _own_group(
    groups: Sequence[_Group], looks: Sequence[Observation], labels: Sequence[_Group | None], listed: ListedPages
) -> _Group | None:
    """The owner: the first with a site of some size."""
    if not groups:
        return None
    sizes = {id(group): 0 for group in groups}
    for (start, end), group in _spans(looks, labels):
        if group is not None:
            sizes[id(group)] += len(listed.between(start, end))
    largest = max(sizes.values())
    worthy = [g for g in groups if _has_substance(g) and sizes[id(g)] >= _SMALL_SHARE * largest]
    return (worthy or list(groups))[0]


def _spans(
    looks: Sequence[Observation], labels: Sequence[_Group | None]
) -> Iterator[tuple[tuple[datetime, datetime], _Group | None]]:
    """(start, end) around each look, half way to its neighbours, and its group."""
    for place, look in enumerate(looks):
        before = looks[place - 1].at if place else look.at - timedelta(days=3650)
        after = looks[place + 1].at if place + 1 < len(looks) else look.at + timedelta(days=3650)
        yield (look.at - (look.at - before) / 2, look.at + (after - look.at) / 2), labels[place]


def _has_substance(group: _Group) -> bool:
    """More than a page that says that something will come."""
    several = group.looks[-1].at - group.looks[0].at >= timedelta(days=365)
    return several or any(
        look.page is not None and (len(look.page.links) >= FEWEST_LINKS or look.page.words.total() >= FEWEST_WORDS)
        for look in group.looks
    )


def _periods(looks: Sequence[Observation], owners: Sequence[Owner]) -> Iterator[Period]:
    current: Period | None = None
    for look, owner in zip(looks, owners, strict=True):
        if current is not None and current.owner is owner:
            current = Period(owner, (*current.looks, look.at))
            continue
        if current is not None:
            yield current
        current = Period(owner, (look.at,))
    if current is not None:
        yield current


@dataclass(frozen=True, slots=True)
class Look:
    """A capture that can be looked at: its place in a list, its moment, its bytes' digest ("" when not known)."""

    at: datetime
    digest: str
    front: bool = True


def next_look(looks: Sequence[Look], observed: dict[int, Observation | None], listed: ListedPages) -> int | None:
    """The place of the capture to look at next, None when enough is known.

    The last and the first, and one soon after it, which shows how alike two pages of the owner are; some in the middle
    of the longest gaps where there are many captures, and of times with quite other addresses; then between two
    neighbours that are not of one owner, half way, until they are a month apart. Captures with the bytes of one that
    was seen are known.
    """
    if len({look.digest or place for place, look in enumerate(looks)}) < 2:
        return None  # the same bytes for ever
    known = _known(looks, observed)
    for place in (len(looks) - 1, 0, _second(looks)):
        if place not in known:
            return place
    if len(looks) > 4 and len(observed) < min(_MOST_FIRST, max(3, 2 + len(looks) // 6)):
        widest = _widest(looks, known)
        if widest is not None:
            return widest
    if len(observed) < _MOST_FIRST + _MOST_NOVEL:
        novel = _novel(looks, known, listed)
        if novel is not None:
            return novel
    seen = {place: look for place, look in sorted(known.items()) if look is not None and look.speaks}
    ownership = find_ownership(list(seen.values()), listed)
    for first, second in pairwise(seen):
        same = _owner_at(ownership, looks[first].at) is _owner_at(ownership, looks[second].at)
        if not same and looks[second].at - looks[first].at > _SHORT_GAP:
            middle = _middle(looks, known, first, second)
            if middle is not None:
                return middle
    return None


def all_observed(looks: Sequence[Look], observed: dict[int, Observation | None]) -> list[Observation]:
    """What was seen, and what is known by equal bytes."""
    return [observation for observation in _known(looks, observed).values() if observation is not None]


def _known(looks: Sequence[Look], observed: dict[int, Observation | None]) -> dict[int, Observation | None]:
    by_digest = {looks[place].digest: seen for place, seen in observed.items() if looks[place].digest and seen}
    known: dict[int, Observation | None] = {}
    for place, look in enumerate(looks):
        if place in observed:
            known[place] = observed[place]
        elif look.digest in by_digest:
            seen = by_digest[look.digest]
            known[place] = replace(seen, at=look.at, front=look.front)
    return known


def _widest(looks: Sequence[Look], known: dict[int, Observation | None]) -> int | None:
    """A capture in the middle of the longest time without one that is known."""
    gaps = ((looks[b].at - looks[a].at, _middle(looks, known, a, b)) for a, b in pairwise(sorted(known)))
    found = [(gap, place) for gap, place in gaps if place is not None and gap > 2 * _SHORT_GAP]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _second(looks: Sequence[Look]) -> int:
    """The first capture with other bytes than the first, if it is not much later; else the first."""
    later = (n for n, look in enumerate(looks) if look.digest != looks[0].digest and look.at - looks[0].at <= 2 * _YEAR)
    return next(later, 0)


def _novel(looks: Sequence[Look], known: dict[int, Observation | None], listed: ListedPages) -> int | None:
    """A capture of a time whose listed addresses are quite other ones than those near the looks so far: another site
    may have been there for a while, between two looks at the owner's."""
    spans = {place: _span(looks, place) for place in range(len(looks))}
    near: frozenset[str] = frozenset().union(*(listed.between(*spans[place]) for place in known))
    found = []
    for place, span in spans.items():
        there = listed.between(*span)
        new = len(there - near)
        if place not in known and new >= _FEWEST_NOVEL and new >= _NOVEL_SHARE * len(there):
            found.append((new / len(there), -place))
    return -max(found)[1] if found else None


def _span(looks: Sequence[Look], place: int) -> tuple[datetime, datetime]:
    """The time around a look, half way to its neighbours and at most `_NEAR`."""
    at = looks[place].at
    before = looks[place - 1].at if place else at - 2 * _NEAR
    after = looks[place + 1].at if place + 1 < len(looks) else at + 2 * _NEAR
    return max(at - (at - before) / 2, at - _NEAR), min(at + (after - at) / 2, at + _NEAR)


def _middle(looks: Sequence[Look], known: dict[int, Observation | None], first: int, second: int) -> int | None:
    between = [place for place in range(first + 1, second) if place not in known]
    if not between:
        return None
    half = looks[first].at + (looks[second].at - looks[first].at) / 2
    return min(between, key=lambda place: (abs(looks[place].at - half), place))


def _owner_at(ownership: Ownership, at: datetime) -> object:
    found = [period for period in ownership.periods if period.start <= at <= period.end]
    return found[0].owner if found else None
