"""Synthetic lives of sites, replayed through the rules: how often a watch is wrong, and how soon it is right.

Hides: the simulation. Seeded, without a clock or a network: a life is what a visit at any moment would show; visits
happen when `next_visit` says, and `after` draws the conclusions, as in a real watch.

Every site has 12 short outages a year (half a day on average), half a long one (2.5 days on average, exponential), 2%
of visits that fail for no reason and 1% on which the local network is down. On top of this one thing happens:

    steady     nothing                                      moved      a permanent redirect to another host
    loss       the server is gone; for a third, the name    return     gone for 30 to 120 days, then as before
    parking    a page of a domain seller                    redesign   content looks foreign for 0 to 5 visits,
    takeover   another site's content; each visit is                   not confirmed
               confirmed with a probability of 0.8
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from statistics import median, quantiles

from recollect.watch.states import RULES, Rules, SiteState, SiteStatus, VisitResult, after, next_visit

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


EXPECTED = {
    Story.LOSS: {SiteState.LOST},
    Story.RETURN: {SiteState.LOST},
    Story.PARKING: {SiteState.TAKEN_OVER},
    Story.TAKEOVER: {SiteState.TAKEN_OVER},
    Story.MOVED: {SiteState.MOVED},
    Story.STEADY: set(),
    Story.REDESIGN: set(),
}
_ALARMS = frozenset({SiteState.LOST, SiteState.TAKEN_OVER, SiteState.MOVED})


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
        if happened and self.story in (Story.LOSS, Story.RETURN):
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


def replay(life: Life, rng: random.Random, rules: Rules = RULES) -> Outcome:
    """Watch a life from its first day to its last."""
    status, at = SiteStatus(), _START
    false_alarms = visits = since_event = 0
    detected = returned = None
    while (day := (at - _START) / timedelta(days=1)) < _YEAR:
        seen = life.seen(day, rng, since_event)
        since_event += day >= life.event
        before, status = status.state, after(status, seen, at, rules)
        visits += 1
        if status.state is not before and status.state in _ALARMS:
            true = day >= life.event and status.state in EXPECTED[life.story]
            false_alarms += not true
            if true and detected is None:
                detected = day - life.event
        if day >= life.back and detected is not None and returned is None and status.state is SiteState.BACK:
            returned = day - life.back
        at = next_visit(status, at, rules)
    quiet = life.event if EXPECTED[life.story] else _YEAR
    return Outcome(life.story, quiet, false_alarms, detected, returned, visits)


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
    )
