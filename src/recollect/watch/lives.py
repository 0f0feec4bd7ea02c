"""Synthetic lives of sites, replayed through the rules: how often a watch is wrong, and how soon it is right.

Hides: the simulation. Seeded, without a clock or a network: a life is what a visit at any moment would show; visits
happen when `next_visit` says, and `after` draws the conclusions, as in a real watch.

Every site has 12 short outages a year (half a day on average), half a long one (2.5 days on average, exponential), 2%
of visits that fail for no reason and 1% on which the local network is down. On top of this one thing happens:

    steady     nothing                                      moved      a permanent redirect to another host
    loss       the server is gone; for a third, the name    return     gone for 30 to 120 days, then as before
    parking    a page of a domain seller                    redesign   content looks foreign for 0 to 5 visits,
    takeover   another site's content; each visit is                   not confirmed
               confirmed with a probability of 0.8          suspended  a page of the host, for ever
    server     a server with four sites dies; archives      default    a web server's own page, for ever
               and DNS answer with a probability of 0.9     stuck      a maintenance page that stays
    pages      half of ten pages are gone, for ever         expired    the certificate expires

Every site also has 6 maintenance windows a year (3 hours on average), 0.5% of visits on which a fifth of its pages
is not found (a deployment that is under way), and certificates of 90 days that are renewed 30 days before their end, 5%
of them later, up to the last hours. These come from random numbers of their own.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from statistics import median, quantiles

from recollect.archives.certificates import Certificate
from recollect.archives.live import Failure, LiveAnswer
from recollect.archives.registry import Archive
from recollect.watch.network import Witnesses, is_offline
from recollect.watch.records import Site
from recollect.watch.states import (
    GONE,
    HIDDEN,
    RULES,
    Rules,
    SiteState,
    SiteStatus,
    VisitResult,
    after,
    next_visit,
)
from recollect.watch.warnings import certificate_warning

_START = datetime(2026, 1, 1, tzinfo=UTC)
_YEAR = 365.0
_SHORT, _SHORT_DAYS = 12, 0.5
_LONG, _LONG_DAYS = 0.5, 2.5
_NOISE, _OFFLINE = 0.02, 0.01
_CONFIRMED = 0.8


class Story(StrEnum):
    """What happens to a site in its year."""

    STEADY = "steady"
    REDESIGN = "redesign"
    LOSS = "loss"
    PARKING = "parking"
    TAKEOVER = "takeover"
    MOVED = "moved"
    RETURN = "return"
    SERVER = "server"
    PAGES = "pages"
    EXPIRED = "expired"
    SUSPENDED = "suspended"
    DEFAULT = "default"
    STUCK = "stuck"


EXPECTED = {
    Story.LOSS: {SiteState.LOST},
    Story.RETURN: {SiteState.LOST},
    Story.PARKING: {SiteState.TAKEN_OVER},
    Story.TAKEOVER: {SiteState.TAKEN_OVER},
    Story.MOVED: {SiteState.MOVED},
    Story.SERVER: {SiteState.LOST},
    Story.PAGES: {SiteState.PAGES_LOST},
    Story.EXPIRED: {SiteState.BAD_CERTIFICATE},
    Story.SUSPENDED: {SiteState.SUSPENDED},
    Story.DEFAULT: {SiteState.DEFAULT_PAGE},
    Story.STUCK: {SiteState.MAINTENANCE},
    Story.STEADY: set(),
    Story.REDESIGN: set(),
}
_ALARMS = GONE | HIDDEN | {SiteState.PAGES_LOST, SiteState.BAD_CERTIFICATE}
_SHOWN = {
    Story.EXPIRED: VisitResult.CERTIFICATE_EXPIRED,
    Story.SUSPENDED: VisitResult.SUSPENDED,
    Story.DEFAULT: VisitResult.DEFAULT_PAGE,
    Story.STUCK: VisitResult.MAINTENANCE,
}
_WINDOWS, _WINDOW_DAYS = 6, 0.125
_DEPLOYING, _NOT_FOUND, _PAGES = 0.005, 0.2, 10
_WITNESS = 0.9
_SITES_OF_SERVER = 4
_VALID, _RENEWED, _LATE = 90.0, 30.0, 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a watch did on one life; days are since the event."""

    story: Story
    days: float
    """How long it was watched before the event, or at all where none came."""
    false_alarms: int
    detected: float | None
    returned: float | None
    visits: int
    warned: float | None = None
    """Days before the end of its certificate that a warning came; None without one."""
    false_warnings: int = 0
    """Warnings of certificates that were renewed after them."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How a watch did on all lives of one story."""

    story: Story
    lives: int
    years: float
    """Watched while nothing was wrong."""
    false_alarms: float
    """A site and year, while nothing was wrong."""
    detected: float | None
    """The share of events that were noticed; None where there is none."""
    days_median: float | None
    days_p95: float | None
    back_median: float | None
    visits_a_day: float
    warned: float | None = None
    """The share of certificates that ended of which a warning came before; None where none ended."""
    warned_days: float | None = None
    """How many days before the end, median."""
    false_warnings: float = 0.0
    """Warnings of certificates that were renewed after them, a site and year."""


@dataclass(frozen=True)
class Life:
    """A year of a site."""

    story: Story
    event: float
    back: float
    outages: tuple[tuple[float, float], ...]
    nameless: bool
    foreign_visits: int

    def seen(self, day: float, rng: random.Random, since_event: int) -> VisitResult:
        """What a visit shows. `since_event` counts the visits since the event."""
        if rng.random() < _OFFLINE:
            return VisitResult.OFFLINE
        happened = self.event <= day < self.back
        if happened and self.story in (Story.LOSS, Story.RETURN, Story.SERVER):
            return VisitResult.NO_NAME if self.nameless else VisitResult.FAILED
        place = bisect_right(self.outages, (day, _YEAR * 9)) - 1
        if (place >= 0 and day < self.outages[place][1]) or rng.random() < _NOISE:
            return VisitResult.FAILED
        if happened and self.story is Story.MOVED:
            return VisitResult.MOVED
        if happened and self.story is Story.PARKING:
            return VisitResult.FOREIGN_CONFIRMED
        if happened and self.story is Story.TAKEOVER:
            return VisitResult.FOREIGN_CONFIRMED if rng.random() < _CONFIRMED else VisitResult.FOREIGN
        if happened and self.story in _SHOWN:
            return _SHOWN[self.story]
        if happened and self.story is Story.REDESIGN and since_event < self.foreign_visits:
            return VisitResult.FOREIGN
        return VisitResult.OWN


def make_life(story: Story, rng: random.Random) -> Life:
    """A year of a site to which one thing happens."""
    outages: list[tuple[float, float]] = []
    for expected, days in ((_SHORT, _SHORT_DAYS), (_LONG, _LONG_DAYS)):
        day = rng.expovariate(expected / _YEAR)
        while day < _YEAR:
            outages.append((day, day + rng.expovariate(1 / days)))
            day += rng.expovariate(expected / _YEAR)
    event = _YEAR if story is Story.STEADY else rng.uniform(60, 200)
    back = event + rng.uniform(30, 120) if story is Story.RETURN else _YEAR * 2
    return Life(story, event, back, _merged(outages), rng.random() < 1 / 3, rng.randrange(6))


def _merged(outages: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(outages):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


@dataclass
class _Pages:
    """The pages of a live site, as visits see them: pages that are not found while something is deployed, and those
    that are lost."""

    life: Life
    rng: random.Random
    gone: dict[int, datetime] = field(default_factory=dict)

    def visit(self, day: float, at: datetime, rules: Rules) -> bool:
        """Whether a page is lost for certain on this visit."""
        lost = range(_PAGES // 2) if self.life.story is Story.PAGES and self.life.event <= day < self.life.back else ()
        deploying = self.rng.random() < _DEPLOYING
        if not deploying and not lost:
            self.gone.clear()
            return False
        missing = {page for page in range(_PAGES) if deploying and self.rng.random() < _NOT_FOUND} | {*lost}
        self.gone = {page: self.gone.get(page, at) for page in missing}
        return any(at - since >= rules.page_apart for since in self.gone.values())


def _windows(rng: random.Random) -> tuple[tuple[float, float], ...]:
    starts = sorted(rng.uniform(0, _YEAR) for _ in range(_WINDOWS))
    return tuple((day, day + rng.expovariate(1 / _WINDOW_DAYS)) for day in starts)


@dataclass
class _Certificates:
    """The certificates of a site, oldest first, and the warnings about them."""

    life: Life
    rng: random.Random
    listed: list[tuple[float, Certificate]] = field(default_factory=list)
    """From which day on each is used."""
    told: set[datetime] = field(default_factory=set)
    warned: float | None = None
    false_warnings: int = 0

    def __post_init__(self) -> None:
        """From the last one back: that of a site whose certificate expires ends with the event."""
        last = self.life.event if self.life.story is Story.EXPIRED else _YEAR + self.rng.uniform(_RENEWED, _VALID)
        while last > 0:
            left = self.rng.uniform(0.0, _RENEWED) if self.rng.random() < _LATE else _RENEWED
            begins = last - _VALID
            self.listed.insert(0, (begins, Certificate(_moment(begins), _moment(last))))
            last = begins + left

    def visit(self, day: float, at: datetime) -> None:
        """Note the warning that is due on a visit."""
        used = next((one for begins, one in reversed(self.listed) if begins <= day), None)
        warning = certificate_warning(used, at)
        if used is None or warning is None or warning.since in self.told:
            return
        self.told.add(warning.since)
        if self.life.story is Story.EXPIRED and used is self.listed[-1][1]:
            self.warned = self.warned or (used.until - at) / timedelta(days=1)
        else:
            self.false_warnings += 1


def _moment(day: float) -> datetime:
    return _START + timedelta(days=day)


def _server_is_offline(status: SiteStatus, rng: random.Random, loop: asyncio.AbstractEventLoop) -> bool:
    """What `watch.network` says of a server that died with all its sites, while archives and DNS answer mostly."""
    sites = [Site(f"http://site{number}.example/", _START, _START, status=status) for number in range(_SITES_OF_SERVER)]

    async def ask(uri: str) -> LiveAnswer:
        return LiveAnswer(uri, uri, 200) if rng.random() < _WITNESS else LiveAnswer(uri, uri, failure=Failure.TIMEOUT)

    async def ask_site(site: Site) -> LiveAnswer:
        return LiveAnswer(site.uri, site.uri, failure=Failure.UNREACHABLE)

    async def ask_dns(_: str) -> bool:
        return rng.random() < _WITNESS

    archives = (Archive("one", timemap="http://one.example/"), Archive("two", timemap="http://two.example/"))
    witnesses = Witnesses(ask_site, ask, ask, ask_dns, (), archives, ("site.example",))
    return loop.run_until_complete(is_offline(sites, False, (), witnesses))


def _shown(life: Life, seen: VisitResult, day: float, more: _More) -> VisitResult:
    """What a visit shows with all that this life has beside outages."""
    if seen is not VisitResult.OFFLINE and life.story is Story.SERVER and day >= life.event and not more.status.is_gone:
        return VisitResult.OFFLINE if _server_is_offline(more.status, more.rng, more.loop) else seen
    if seen is not VisitResult.OWN:
        return seen
    if any(start <= day < end for start, end in more.windows):
        return VisitResult.MAINTENANCE
    more.certificates.visit(day, more.at)
    return VisitResult.PAGES_LOST if more.pages.visit(day, more.at, more.rules) else seen


@dataclass
class _More:
    """What a replay needs beside the life itself."""

    rng: random.Random
    windows: tuple[tuple[float, float], ...]
    pages: _Pages
    rules: Rules
    certificates: _Certificates
    loop: asyncio.AbstractEventLoop
    status: SiteStatus = SiteStatus()  # noqa: RUF009 - frozen
    at: datetime = _START


def replay(life: Life, rng: random.Random, rules: Rules = RULES) -> Outcome:
    """Watch a life from its first day to its last."""
    own = random.Random(f"{life.event} {life.outages[:1]} {life.foreign_visits}")
    certificates = _Certificates(life, random.Random(f"certificates {life.event} {life.outages[:1]}"))
    loop = asyncio.new_event_loop()
    try:
        return _replay(life, rng, rules, _More(own, _windows(own), _Pages(life, own), rules, certificates, loop))
    finally:
        loop.close()


def _replay(life: Life, rng: random.Random, rules: Rules, more: _More) -> Outcome:
    status, at = SiteStatus(), _START
    false_alarms = visits = since_event = 0
    detected = returned = None
    while (day := (at - _START) / timedelta(days=1)) < _YEAR:
        more.status, more.at = status, at
        seen = _shown(life, life.seen(day, rng, since_event), day, more)
        since_event += day >= life.event
        before, status = status.state, after(status, seen, at, rules)
        visits += 1
        if status.state is not before and status.state in _ALARMS:
            true = day >= life.event and status.state in EXPECTED[life.story]
            # A site that is suspended may fail for a week later on, and is lost then: only the time before counts.
            counts = day < life.event or life.story not in (*_SHOWN, Story.PAGES)
            false_alarms += counts and not true
            if true and detected is None:
                detected = day - life.event
        if day >= life.back and detected is not None and returned is None and status.state is SiteState.BACK:
            returned = day - life.back
        at = at + rules.retries[0] if seen is VisitResult.OFFLINE else next_visit(status, at, rules)
    quiet = life.event if EXPECTED[life.story] else _YEAR
    known = more.certificates
    return Outcome(*(life.story, quiet, false_alarms, detected, returned, visits), known.warned, known.false_warnings)


def evaluate_lives(lives: int, seed: int, rules: Rules = RULES) -> Iterator[Figures]:
    """The figures of every story, each over `lives` sites."""
    for story in Story:
        rng = random.Random(f"{seed} {story}")
        outcomes = [replay(make_life(story, rng), rng, rules) for _ in range(lives)]
        yield _figures(story, outcomes)


def _figures(story: Story, outcomes: list[Outcome]) -> Figures:
    days = [one.detected for one in outcomes if one.detected is not None]
    back = [one.returned for one in outcomes if one.returned is not None]
    years = sum(one.days for one in outcomes) / _YEAR
    warned = [one.warned for one in outcomes if one.warned is not None]
    return Figures(
        story,
        len(outcomes),
        years,
        sum(one.false_alarms for one in outcomes) / years,
        len(days) / len(outcomes) if EXPECTED[story] else None,
        median(days) if days else None,
        quantiles(days, n=20)[-1] if len(days) > 1 else None,
        median(back) if back else None,
        sum(one.visits for one in outcomes) / (_YEAR * len(outcomes)),
        len(warned) / len(outcomes) if story is Story.EXPIRED else None,
        median(warned) if warned else None,
        sum(one.false_warnings for one in outcomes) / years,
    )
