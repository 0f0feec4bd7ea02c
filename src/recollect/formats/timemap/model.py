"""Mementos of one resource: as one archive lists them (`TimeMap`), and merged across archives (`Mementos`).

Hides: the compact form. A moment is kept as `YYYYMMDDhh:mm:ss`, which sorts as it is. A memento is kept as the stem of
its link, `URI-M>; rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00`: archives send it so and we send it on so, and
everything else is a slice of it. Datetimes are made only on request. Lists are parallel, so 100,000 mementos
are 300,000 strings.

Invariants: `Mementos.rows` is sorted by moment, then archive in the order given, then URI, and holds no memento twice;
two answers made of the same TimeMaps are the same whatever order they arrived in.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice, repeat
from operator import eq, itemgetter
from typing import Any

from recollect.datetimes import format_http_date, parse_http_date
from recollect.errors import FormatError

# The address inside a URI-M: the second scheme, its host, its port.
_ADDRESS = re.compile(r"(https?://.*?)(https?)://[^/?#]*?(:\d+)(?=[/?#]|\Z)")
RELATION = '>; rel="memento"; datetime="'
"""What stands between the URI-M and the date of a stem."""
DATE = 25
"""Characters of a stem's date, `Thu, 01 Jan 2015 00:00:00`."""
AFTER_URI = len(RELATION) + DATE
"""Characters of a stem that follow the URI-M."""


@dataclass(frozen=True, slots=True)
class Memento:
    """One capture with its URI-M."""

    uri: str
    captured_at: datetime
    archive: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Another TimeMap that holds more of the same: a page, or an entry of an index."""

    uri: str
    since: datetime | None = None
    until: datetime | None = None
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class TimeMap:
    """What one archive lists for one resource, in the order it was sent."""

    original: str = ""
    timegate: str = ""
    moments: list[str] = field(default_factory=list)
    uris: list[str] = field(default_factory=list)
    stems: list[str] = field(default_factory=list, repr=False, compare=False)
    """Of each memento, the stem of its link; empty until it is first needed."""
    pages: tuple[Page, ...] = ()
    problems: tuple[str, ...] = ()
    missing: str = ""
    """The problem that may have cost mementos, if there is one."""
    kind: str = "link"
    """What the body was: `link`, `json`, `cdxj`, `empty`, or `other` (HTML, noise), which holds no mementos."""

    def __len__(self) -> int:
        return len(self.uris)

    def __iter__(self) -> Iterator[Memento]:
        return (Memento(uri, moment_to_datetime(m)) for m, uri in zip(self.moments, self.uris, strict=True))

    @classmethod
    def of(cls, mementos: Iterable[Memento]) -> TimeMap:
        """A TimeMap of mementos known from elsewhere, such as a TimeGate's Link header or a CDX listing."""
        known = list(mementos)
        return cls(moments=[datetime_to_moment(m.captured_at) for m in known], uris=[m.uri for m in known])


@dataclass(frozen=True, slots=True)
class Negotiated:
    """A choice by datetime, and its neighbours; those that do not exist, or are not known for certain, are None."""

    first: Memento | None
    prev: Memento | None
    closest: Memento
    next: Memento | None
    last: Memento | None


Row = tuple[str, int, str]
"""Moment, number of the archive in `Mementos.archives`, stem."""


@dataclass(frozen=True, slots=True)
class Mementos:
    """Mementos of one resource across archives, in order, each once."""

    archives: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Memento:
        moment, archive, stem = self.rows[index]
        return Memento(stem[:-AFTER_URI], moment_to_datetime(moment), self.archives[archive])

    def __iter__(self) -> Iterator[Memento]:
        return (self[i] for i in range(len(self.rows)))

    def since(self, at: datetime) -> int:
        """The number of the first memento captured at a moment or after it."""
        return bisect_left(self.rows, (datetime_to_moment(at),))

    def between(self, since: datetime | None, until: datetime | None) -> Mementos:
        """Those captured from `since` to `until`, both included."""
        if since is None and until is None:
            return self
        low = 0 if since is None else self.since(since)
        # The character after the last digit sorts after every row of that second.
        high = len(self.rows) if until is None else bisect_left(self.rows, (datetime_to_moment(until) + ";",))
        return Mementos(self.archives, self.rows[low:high])

    def page(self, number: int, size: int) -> Mementos:
        """Page `number`, counted from 1, of `size` mementos each."""
        return Mementos(self.archives, self.rows[(number - 1) * size : number * size])

    def per_year(self) -> dict[str, dict[int, int]]:
        """Mementos by archive and year, for archives that hold any."""
        table: dict[str, dict[int, int]] = {}
        for moment, archive, _ in self.rows:
            years = table.setdefault(self.archives[archive], {})
            year = int(moment[:4])
            years[year] = years.get(year, 0) + 1
        return table

    def negotiate(self, at: datetime | None) -> Negotiated | None:
        """The memento closest to `at` (None: the most recent) and its neighbours; None if there are no mementos.

        Closest by real time between moments. Two equally far: the earlier. Several of one moment: the one met first
        when coming from `at`, so that before the first it is the first, and after the last it is the last.
        """
        if not self.rows:
            return None
        return self._chosen(len(self.rows) - 1 if at is None else self._closest(at))

    def around(self, memento: Memento) -> Negotiated | None:
        """One of these mementos as the choice, and its neighbours; None if it is not among them."""
        i = self.since(memento.captured_at)
        moment = datetime_to_moment(memento.captured_at)
        while i < len(self.rows) and self.rows[i][0] == moment:
            if self[i] == memento:
                return self._chosen(i)
            i += 1
        return None

    def _chosen(self, i: int) -> Negotiated:
        last = len(self.rows) - 1
        return Negotiated(
            first=self[0],
            prev=self[i - 1] if i > 0 else None,
            closest=self[i],
            next=self[i + 1] if i < last else None,
            last=self[last],
        )

    def _closest(self, at: datetime) -> int:
        right = self.since(at)
        if right == 0:
            return 0
        if right == len(self.rows):
            return right - 1
        before = moment_to_datetime(self.rows[right - 1][0])
        after = moment_to_datetime(self.rows[right][0])
        wanted = moment_to_datetime(datetime_to_moment(at))
        return right if after - wanted < wanted - before else right - 1


def merge(timemaps: Sequence[tuple[str, TimeMap]]) -> Mementos:
    """Merge TimeMaps, each with its archive's id; the order of the archives breaks ties between equal moments.

    Left out: a URI-M already there (with another moment: the earlier stays), and of one archive and one moment the
    duplicate that differs only by a written-out default port, as the Internet Archive lists them.
    """
    archives = tuple(dict.fromkeys(name for name, _ in timemaps))
    order = {name: number for number, name in enumerate(archives)}
    rows: list[Row] = []
    names: set[str] = set()
    for name, timemap in timemaps:
        for start in range(0, len(timemap.uris), _PIECE):
            part = slice(start, start + _PIECE)
            moments, uris = timemap.moments[part], timemap.uris[part]
            stems = timemap.stems[part] or map(stem_of, moments, uris)
            rows.extend(zip(moments, repeat(order[name], len(moments)), stems, strict=True))
            names.update(uris)
    # The sort is stable and archives come in order: by the moment alone is enough, unless two are equal.
    rows = _sorted(rows, itemgetter(0))
    moments = [row[0] for row in rows]
    if any(
        any(map(eq, moments[start : start + _PIECE], moments[start + 1 : start + _PIECE + 1]))
        for start in range(0, len(moments), _PIECE)
    ):
        rows = _sorted(rows, lambda row: (row[0], row[1], row[2][:-AFTER_URI]))
        names -= _port_duplicates(rows, moments)
    return Mementos(archives, rows if len(names) == len(rows) else _named(rows, names))


_PIECE = 10_000
"""Rows that one call into compiled code handles: a thread that merges then leaves the interpreter to others in time."""


def _sorted(rows: list[Row], key: Callable[[Row], Any]) -> list[Row]:
    """As `sorted`; many rows in pieces, which are then merged."""
    if len(rows) <= 2 * _PIECE:
        return sorted(rows, key=key)
    pieces = [sorted(rows[start : start + _PIECE], key=key) for start in range(0, len(rows), _PIECE)]
    joined: list[list[Row]] = [pieces[0]]
    for piece in pieces[1:]:  # most TimeMaps come in order: their pieces follow one another
        if key(joined[-1][-1]) <= key(piece[0]):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined[0] if len(joined) == 1 else list(heapq.merge(*joined, key=key))


def stem_of(moment: str, uri: str) -> str:
    return f"{uri}{RELATION}{DAY_OF_MOMENT[moment[:8]]}{moment[8:]}"


def _named(rows: list[Row], names: set[str]) -> list[Row]:
    """The first row of each name."""
    kept: list[Row] = []
    for row in rows:
        uri = row[2][:-AFTER_URI]
        if uri in names:
            names.discard(uri)
            kept.append(row)
    return kept


def _port_duplicates(rows: list[Row], moments: list[str]) -> set[str]:
    """URI-Ms that have a duplicate of the same archive and moment which differs only by a default port written out."""
    tied = {moment for moment, after in zip(moments, islice(moments, 1, None), strict=False) if moment == after}
    held = {(moment, archive, stem[:-AFTER_URI]) for moment, archive, stem in rows if moment in tied}
    return {
        uri
        for moment, archive, uri in held
        if (short := _without_port(uri)) != uri and (moment, archive, short) in held
    }


def _without_port(uri: str) -> str:
    """The URI-M with the default port of the address it holds left out."""
    match = _ADDRESS.match(uri)
    if match is None or match[3] != (":80" if match[2] == "http" else ":443"):
        return uri
    return uri[: match.start(3)] + uri[match.end(3) :]


def moment_to_datetime(moment: str) -> datetime:
    return datetime(
        int(moment[:4]),
        int(moment[4:6]),
        int(moment[6:8]),
        int(moment[8:10]),
        int(moment[11:13]),
        int(moment[14:16]),
        tzinfo=UTC,
    )


def datetime_to_moment(at: datetime) -> str:
    m = at.astimezone(UTC)
    return f"{m.year:04d}{m.month:02d}{m.day:02d}{m.hour:02d}:{m.minute:02d}:{m.second:02d}"


MOST_DAYS = 50_000
"""Days kept at a time: a hostile archive could name every day of ten thousand years."""


class _Moments(dict[str, str]):
    """`Thu, 01 Jan 2015 ` to `20150101`; only days written exactly so are kept, others raise FormatError."""

    def __missing__(self, day: str) -> str:
        at = parse_http_date(f"{day}00:00:00 GMT")
        if format_http_date(at)[:17] != day:
            raise FormatError("not the day it says", where=repr(day))
        if len(self) > MOST_DAYS:
            self.clear()
        self[day] = datetime_to_moment(at)[:8]
        return self[day]


class _Days(dict[str, str]):
    """`20150101` to `Thu, 01 Jan 2015 `."""

    def __missing__(self, moment: str) -> str:
        if len(self) > MOST_DAYS:
            self.clear()
        self[moment] = format_http_date(moment_to_datetime(f"{moment}00:00:00"))[:17]
        return self[moment]


MOMENT_OF_DAY = _Moments()
DAY_OF_MOMENT = _Days()


def moment_to_timestamp(moment: str) -> str:
    """14 digits."""
    return moment.replace(":", "")
