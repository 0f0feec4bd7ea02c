"""How archives keep a site, measured from the watch's own observations (McCown 2007, sections IV.1 and IV.2).

Hides: what is counted. Pure. For each archive, over the pages of a site:

    t_a          days from the first sight of a new resource to the first visit on which the archive holds it
    TTL_c        days from then to the last visit on which the archive holds it
    P_r          share of the questions in that time that the archive answers with a copy; a failure counts as none
    endangered   days from the moment a resource is gone to the last visit on which the archive holds it

Only resources that appeared after the first visit have a known beginning, so only these count for t_a: not those that a
sample found later on a site larger than the sample, and not those that the archive held when they were first seen.
Where a resource is still held, TTL_c and the endangered period go on: they are lower bounds, and `censored` counts
them. Archives are asked once a week, so days are exact to a week; what was never asked is unknown, and not zero.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from recollect.watch.records import Observation
from recollect.watch.states import Live

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Keeping:
    """How one archive keeps the resources of a site; None where nothing was observed."""

    archive: str
    resources: int
    """Resources that the archive was asked for."""
    held: int
    """Those that it holds, by its last answer."""
    t_a: float | None
    new: int
    """Resources that appeared while the watch ran and were held later, on which `t_a` rests."""
    never: int
    """Resources that appeared while the watch ran and were never held."""
    ttl_c: float | None
    censored: int
    """Resources that are still held: their time goes on."""
    p_r: float | None
    questions: int
    endangered: float | None
    endangered_now: int
    vulnerable_now: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _History:
    """One resource at one archive: the questions in order, and when it was first seen and first gone."""

    answers: tuple[tuple[datetime, bool | None], ...]
    first: datetime
    is_new: bool
    gone: datetime | None
    live: Live

    @property
    def positive(self) -> list[datetime]:
        return [at for at, held in self.answers if held]

    @property
    def last(self) -> bool | None:
        """The last certain answer."""
        return next((held for _, held in reversed(self.answers) if held is not None), None)


def measure(observations: Sequence[Observation], sample: int | None = None) -> tuple[Keeping, ...]:
    """The measures of every archive that was asked, by name. `observations` are of one site, oldest first; `sample` is
    how many resources a visit looks at, if that is limited."""
    if not observations:
        return ()
    whole = _whole_visits(observations, sample)
    by_uri: dict[str, list[Observation]] = {}
    for one in observations:
        by_uri.setdefault(one.uri, []).append(one)
    names = sorted({name for one in observations for name in one.answers})
    found = []
    for name in names:
        histories = [made for rows in by_uri.values() if (made := _history(rows, name, whole)) is not None]
        found.append(_keeping(name, histories))
    return tuple(found)


def _whole_visits(observations: Sequence[Observation], sample: int | None) -> list[tuple[datetime, bool]]:
    """By visit that looked at live resources, oldest first, whether it looked at all that it knew of."""
    counts = Counter(one.at for one in observations if one.status)
    return [(at, sample is None or count < sample) for at, count in sorted(counts.items())]


def _appeared(first: datetime, whole: Sequence[tuple[datetime, bool]]) -> bool:
    """Whether a resource is new on the visit that saw it first: the visit before looked at everything."""
    place = bisect_left(whole, (first, False))
    return place > 0 and whole[place - 1][1]


def _history(rows: Sequence[Observation], archive: str, whole: Sequence[tuple[datetime, bool]]) -> _History | None:
    answers = tuple((one.at, one.answers[archive]) for one in rows if archive in one.answers)
    seen = next((one.at for one in rows if one.live is Live.LIVE), None)
    if not answers or seen is None:
        return None
    last_live = max(one.at for one in rows if one.live is Live.LIVE)
    gone = next((one.at for one in rows if one.live is Live.GONE and one.at > last_live), None)
    is_new = _appeared(seen, whole) and answers[0][1] is False
    return _History(answers, seen, is_new, gone, Live.GONE if gone is not None else Live.LIVE)


def _keeping(name: str, histories: Sequence[_History]) -> Keeping:
    new = [one for one in histories if one.is_new]
    arrived = [(one.positive[0] - one.first) / _DAY for one in new if one.positive]
    spans = [(one.positive[-1] - one.positive[0]) / _DAY for one in histories if one.positive]
    within = [
        held is True
        for one in histories
        if one.positive
        for at, held in one.answers
        if one.positive[0] <= at <= one.positive[-1]
    ]
    endangered = [
        max(0.0, (one.positive[-1] - one.gone) / _DAY) for one in histories if one.gone is not None and one.positive
    ]
    return Keeping(
        name,
        len(histories),
        sum(one.last is True for one in histories),
        _mean(arrived),
        len(arrived),
        len(new) - len(arrived),
        _mean(spans),
        sum(one.last is True for one in histories),
        sum(within) / len(within) if within else None,
        len(within),
        _mean(endangered),
        sum(one.live is Live.GONE and one.last is True for one in histories),
        sum(one.live is Live.LIVE and one.last is False for one in histories),
    )


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return fmean(listed) if listed else None
