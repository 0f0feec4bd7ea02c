"""How many blocks to ask for: sizes against the odds that enough pages are captured.

Hides: the arithmetic. `least_need` is equation 26 of McCown 2007 (r = ⌈s / z⌉). The number of captured pages is
beta-binomial: of `asked` pages `captured` were found in archives, which says this much, and no more, about the share of
pages that will be there when they are needed. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, lgamma

from recollect.protection.block import text_bytes
from recollect.protection.code import MARGIN, MAX_NEED, Geometry
from recollect.protection.markup import SCRIPT_CLOSE, SCRIPT_OPEN

CERTAINTY = 0.999
"""The chance to restore everything that is recommended where the share of captured pages was measured."""
DEFAULT_CERTAINTY = 0.95
"""The same where it is assumed."""
ASSUMED_SHARE = 0.5
"""Of the pages that archives capture while a version lives, where nothing is measured."""
DEFAULT_SHARE = 0.4
MEASURED_DAYS = 90.0
"""Over how many days fresh captures of a site are counted."""
DAYS = {"daily": 1.0, "weekly": 7.0, "monthly": 30.0}
# Base64 of the largest block of Table 23 (150 KB), and below the 214 KB at which the smallest cache cut pages.
DEFAULT_GROWTH = 204_800
_AT_LEAST_NEED = 0.99
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is known of captures: of `asked` pages, `captured` have at least one."""

    asked: int
    captured: int


def least_need(size: int, block_bytes: int) -> int:
    """How many blocks of this size an object fills (equation 26); one even for an empty object."""
    return max(1, -(-size // block_bytes))


def growth(sizes: Sequence[int], need: int) -> int:
    """By how many bytes a page grows that carries one block of each object."""
    blocks = sum(text_bytes(Geometry(size, need).block_bytes) + 1 for size in sizes)
    return blocks - 1 + len(SCRIPT_OPEN) + len(SCRIPT_CLOSE)


def need_for_growth(sizes: Sequence[int], limit: int) -> int | None:
    """The fewest blocks with which no page grows by more than `limit`; None when even the headers are more."""
    if growth(sizes, min(MAX_NEED, max(1, sum(sizes)))) > limit:
        return None
    low, high = 1, MAX_NEED
    while low < high:
        middle = (low + high) // 2
        if growth(sizes, middle) <= limit:
            high = middle
        else:
            low = middle + 1
    return low


def chance(pages: int, enough: int, coverage: Coverage) -> float:
    """The probability that at least `enough` of `pages` are captured, given what was seen (uniform prior)."""
    if enough <= 0:
        return 1.0
    if enough > pages:
        return 0.0
    a, b = coverage.captured + 1, coverage.asked - coverage.captured + 1
    return min(1.0, sum(_mass(pages, count, a, b) for count in range(enough, pages + 1)))


def chance_at_share(pages: int, enough: int, share: float) -> float:
    """The probability that at least `enough` of `pages` are captured when each is with probability `share`."""
    if enough <= 0:
        return 1.0
    if enough > pages or share <= 0:
        return 0.0
    if share >= 1:
        return 1.0
    from math import log, log1p

    total = sum(
        exp(_choose(pages, count) + count * log(share) + (pages - count) * log1p(-share))
        for count in range(enough, pages + 1)
    )
    return min(1.0, total)


def surely_captured(pages: int, coverage: Coverage, certainty: float = CERTAINTY) -> int:
    """The largest number of captured pages that is reached with this certainty."""
    a, b = coverage.captured + 1, coverage.asked - coverage.captured + 1
    below = 0.0
    for count in range(pages + 1):
        below += _mass(pages, count, a, b)
        if below > 1 - certainty:
            return count
    return pages


def need_for_coverage(pages: int, coverage: Coverage) -> int:
    """The largest need that is met 99.9% of the time; 0 when none is."""
    return max(0, surely_captured(pages, coverage) - MARGIN)


def need_for_risk(pages: int, share: float = ASSUMED_SHARE, certainty: float = DEFAULT_CERTAINTY) -> int:
    """The largest need, so the least growth, with which everything comes back with this certainty when a share of the
    pages is captured; at least 1."""
    low, high = 1, max(1, pages - MARGIN)
    while low < high:
        middle = (low + high + 1) // 2
        if chance_at_share(pages, middle + MARGIN, share) >= certainty:
            low = middle
        else:
            high = middle - 1
    return low


def pages_for_risk(need: int) -> int:
    """The fewest pages of which `need` are captured with 95% certainty, when half of them are; `need_for_risk` in
    reverse."""
    low, high = need, 4 * need + 40
    while low < high:
        middle = (low + high) // 2
        if chance_at_share(middle, need + MARGIN, ASSUMED_SHARE) >= DEFAULT_CERTAINTY:
            high = middle
        else:
            low = middle + 1
    return low


def chance_to_restore(pages: int, need: int, share: float) -> float:
    """The probability that an object comes back when each page is captured with probability `share`. Exactly `need`
    blocks suffice 99 times of 100 (RFC 6330); recommendations count on two more, to be sure."""
    enough, more = chance_at_share(pages, need, share), chance_at_share(pages, need + 1, share)
    return more + _AT_LEAST_NEED * (enough - more)


def share_within(share: float, of_days: float, days: float) -> float:
    """The share of pages captured within `days`, when `share` of them are within `of_days`: each page has the same
    chance each day."""
    if share >= 1:
        return 1.0
    return float(1 - (1 - share) ** (days / of_days))


LIFETIMES = (30.0, 60.0, 90.0, 180.0, 365.0)
"""Days that a version may live, from which one is recommended."""


def lifetime_for(pages: int, need: int, share: float, of_days: float) -> float:
    """The days that a version has to live so that it comes back with 95% certainty, when `share` of the pages are
    captured within `of_days`; the longest of LIFETIMES if none suffices."""
    for days in LIFETIMES:
        if chance_at_share(pages, need + MARGIN, share_within(share, of_days, days)) >= DEFAULT_CERTAINTY:
            return days
    return LIFETIMES[-1]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The chance that the newest version is restored, by how often files change."""

    changes: str  # daily, weekly, monthly
    alone: float  # when each change makes a new version
    living: float  # when a version lives at least `every` and changes are carried apart


def forecasts(pages: int, need: int, share: float, of_days: float, every_days: float) -> list[Forecast]:
    """What becomes of versions that live a day, a week, a month; and of those that live longer by `--every`."""

    def chance_after(days: float) -> float:
        return chance_to_restore(pages, need, share_within(share, of_days, days))

    return [Forecast(name, chance_after(days), chance_after(max(days, every_days))) for name, days in DAYS.items()]


def need_for_share(pages: int, share: float) -> int:
    """A share of the pages as a number of blocks; always leaves the margin."""
    return max(1, min(ceil(share * pages - 1e-9), pages - MARGIN))


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of the plan's table. `chance` is None while nothing is known of captures."""

    need: int
    pages: int
    growth: int
    chance: float | None

    @property
    def share(self) -> float:
        """The share of pages with which recovery is promised."""
        return min(1.0, (self.need + MARGIN) / self.pages)


def choices(sizes: Sequence[int], pages: int, coverage: Coverage | None, needs: Sequence[int] = ()) -> list[Choice]:
    """The table: a line for every tenth of the pages, and for each of `needs`."""
    wanted = {need_for_share(pages, share) for share in SHARES} | set(needs)
    return [
        Choice(
            need, pages, growth(sizes, need), chance(pages, need + MARGIN, coverage) if coverage is not None else None
        )
        for need in sorted(wanted)
    ]


def _mass(pages: int, count: int, a: int, b: int) -> float:
    return exp(_choose(pages, count) + _beta(count + a, pages - count + b) - _beta(a, b))


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
