"""The timeline: captures of one resource across archives, drawn as SVG without script or style of its own.

Hides: scales, bins and labels. One row an archive, one mark a bin of time (its size grows with the number of captures,
its link leads to the middle one), and above them bars for all archives together. At most `BINS` marks a row, however
many captures there are. All geometry is in attributes, all colour in classes, so a strict content policy holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from recollect.formats.timemap import Mementos
from recollect.quantities import counted

BINS = 100
LEFT, RIGHT, ROW, BARS, TOP = 176, 14, 26, 64, 22
WIDTH = 1000
COLOURS = 8
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """From moments to pixels, over whole years or, for short spans, whole months."""

    start: datetime
    end: datetime

    @classmethod
    def around(cls, first: datetime, last: datetime) -> Scale:
        if last.year - first.year >= 2:
            return cls(datetime(first.year, 1, 1, tzinfo=UTC), _year_after(last))
        end = _month_after(last)
        return cls(datetime(first.year, first.month, 1, tzinfo=UTC), end)

    def x(self, at: datetime) -> float:
        share = (at - self.start) / (self.end - self.start)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def edges(self) -> list[datetime]:
        """Where bins begin."""
        return [self.start + (self.end - self.start) * number / BINS for number in range(BINS)]

    def middle(self, number: int) -> float:
        return LEFT + (number + 0.5) / BINS * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[tuple[float, str]]:
        """Where grid lines stand, with their labels; at most a dozen or so."""
        years = self.end.year - self.start.year
        if years >= 2 and self.start.month == 1:
            step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000) if years / s <= 14)
            first = self.start.year + -self.start.year % step
            return [(self.x(datetime(y, 1, 1, tzinfo=UTC)), str(y)) for y in range(first, self.end.year, step)]
        ticks: list[tuple[float, str]] = []
        at = self.start
        while at < self.end:
            year = f" {at.year}" if at.month == 1 or not ticks else ""
            ticks.append((self.x(at), MONTHS[at.month - 1][:3] + year))
            at = _month_after(at)
        return ticks[:: 1 + len(ticks) // 13]


def _year_after(at: datetime) -> datetime:
    return datetime(at.year + 1, 1, 1, tzinfo=UTC) if at.year < 9999 else datetime.max.replace(tzinfo=UTC)


def _month_after(at: datetime) -> datetime:
    if at.month == 12:
        return _year_after(at)
    return datetime(at.year, at.month + 1, 1, tzinfo=UTC)


_Bins = dict[int, list[int]]
"""Numbers of the captures in each bin that has any."""


def timeline(mementos: Mementos, names: Mapping[str, str]) -> str:
    """The timeline of captures (there must be some); `names` are the archives' names by id."""
    scale = Scale.around(mementos[0].captured_at, mementos[-1].captured_at)
    held = _binned(mementos, scale)
    height = TOP + BARS + ROW * len(held) + 12
    parts = [
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="group" '
        'aria-label="Captures by time, one row for each archive">',
        _grid(scale, height),
        _bars(held, scale),
    ]
    for row, (archive, bins) in enumerate(held.items()):
        parts.append(_row(mementos, scale, bins, names.get(archive, archive), row))
    return "".join([*parts, "</svg>"])


def _binned(mementos: Mementos, scale: Scale) -> dict[str, _Bins]:
    """Bins by archive, those with most captures first."""
    held: dict[str, _Bins] = {archive: {} for archive in in_order(mementos)}
    starts = [mementos.since(edge) for edge in scale.edges()]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(mementos)], strict=True)):
        for at in range(start, end):
            archive = mementos.archives[mementos.rows[at][1]]
            held[archive].setdefault(number, []).append(at)
    return held


def in_order(mementos: Mementos) -> list[str]:
    """The archives that hold any, those with most captures first: the order of rows and of colours."""
    totals: dict[int, int] = {}
    for _, archive, _ in mementos.rows:
        totals[archive] = totals.get(archive, 0) + 1
    return [mementos.archives[number] for number in sorted(totals, key=lambda number: (-totals[number], number))]


def _grid(scale: Scale, height: int) -> str:
    lines = [
        f'<g class="tick"><line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height}"/>'
        f'<text x="{x + 3:.1f}" y="{TOP - 8}">{label}</text></g>'
        for x, label in scale.ticks()
    ]
    return "".join(lines)


def _bars(held: Mapping[str, _Bins], scale: Scale) -> str:
    totals: dict[int, int] = {}
    for bins in held.values():
        for number, found in bins.items():
            totals[number] = totals.get(number, 0) + len(found)
    most = max(totals.values())
    edges = scale.edges()
    width = (WIDTH - LEFT - RIGHT) / BINS - 1.5
    base = TOP + BARS - 10
    parts = [f'<text class="row-name all" x="{LEFT - 12}" y="{base - 2}">all archives</text>']
    for number, count in sorted(totals.items()):
        tall = max(2.0, math.sqrt(count / most) * (BARS - 18))
        year = edges[number].year
        parts.append(
            f'<a class="mark" href="#y{year}" aria-label="{_captures(count)}, {year}"><rect class="bar" '
            f'x="{scale.middle(number) - width / 2:.1f}" y="{base - tall:.1f}" width="{width:.1f}" height="{tall:.1f}" '
            f'rx="1.5"><title>{_captures(count)}, {year}</title></rect></a>'
        )
    return "".join(parts)


def _row(mementos: Mementos, scale: Scale, bins: _Bins, name: str, row: int) -> str:
    y = TOP + BARS + ROW * row + ROW / 2
    shown = name if len(name) <= 25 else name[:24] + "…"
    parts = [
        f'<g class="row c{row % COLOURS}"><line class="rail" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>',
        f'<text class="row-name" x="{LEFT - 12}" y="{y + 4}">{escape(shown)}<title>{escape(name)}</title></text>',
    ]
    for number, found in sorted(bins.items()):
        parts.append(_mark(mementos, found, scale.middle(number), y, name))
    return "".join([*parts, "</g>"])


def _mark(mementos: Mementos, rows: list[int], x: float, y: float, name: str) -> str:
    middle = mementos[rows[len(rows) // 2]]
    first, last = mementos[rows[0]].captured_at, mementos[rows[-1]].captured_at
    radius = min(9.0, 3.2 + math.log2(len(rows)) * 0.8)
    when = day(first) if first.date() == last.date() else f"{day(first)} to {day(last)}"
    label = f"{name}: {_captures(len(rows))}, {when}"
    return (
        f'<a class="mark" href="{escape(middle.uri)}" rel="noreferrer" aria-label="{escape(label)}">'
        f'<circle cx="{x:.1f}" cy="{y}" r="{radius:.1f}"><title>{escape(label)}</title></circle></a>'
    )


def day(at: datetime) -> str:
    """`3 September 2018`, whatever the locale."""
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"


def _captures(count: int) -> str:
    return "1 capture" if count == 1 else f"{counted(count, 'capture')}"
