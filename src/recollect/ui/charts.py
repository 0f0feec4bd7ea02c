"""Charts as SVG: columns, rows, lines, stacked areas, a timeline, a calendar, a donut.

A chart is values: shapes with classes of the style sheet, drawn twice (for wide and for narrow screens, so that its
text is readable on a phone), and the table of its figures. `ui.chart()` in a template shows it. Pure.

Rules for all: a time axis is true to time; a value of None is a gap, not zero; labels that would touch are left out;
a log axis has powers of ten and no zero; each mark has its words as a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise

from recollect.ui.messages import current

WIDE, NARROW = 760.0, 360.0
_LETTER = 6.6  # width of a letter of 12 px, on average, rounded up
_LINE = 16.0
Cell = str | int | float
Colour = str
"""A class of the style sheet: c0 to c7, good, warn, bad, none, other."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One element of a drawing."""

    element: str
    attributes: Mapping[str, str | float]
    text: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart for screens of one size."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and the same figures as a table."""

    label: str
    drawings: tuple[Drawing, ...]  # wide, narrow
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    key: tuple[tuple[Colour, str], ...] = ()


@dataclass(slots=True)
class _Canvas:
    """Collects shapes; text is placed only where it touches no other text of its row."""

    width: float
    shapes: list[Shape] = field(default_factory=list)
    _taken: dict[float, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, element: str, text: str = "", title: str = "", **attributes: str | float) -> None:
        names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        shown = {name: round(value, 1) if isinstance(value, float) else value for name, value in names.items()}
        self.shapes.append(Shape(element, shown, text, title))

    def write(self, x: float, y: float, text: str, anchor: str = "middle", class_: str = "", space: float = 6) -> bool:
        """Write a text, unless it would touch another one at the same height."""
        long = text_width(text)
        left = x - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
        if anchor == "middle":  # inside of the drawing
            moved = min(max(left, 0.0), max(0.0, self.width - long))
            x, left = x + moved - left, moved
        row = self._taken.setdefault(round(y), [])
        if any(left < end + space and start < left + long + space for start, end in row):
            return False
        row.append((left, left + long))
        self.add("text", text, x=x, y=y, text_anchor=anchor, class_=class_)
        return True

    def drawing(self, height: float) -> Drawing:
        return Drawing(self.width, math.ceil(height), tuple(self.shapes))


def text_width(text: str) -> float:
    """How wide a text of 12 px is, with some room; letters of other scripts are wider."""
    return sum(_LETTER if ord(c) < 0x1100 else 2 * _LETTER for c in text)


def fitted(text: str, width: float) -> str:
    """A text cut to a width."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) + _LETTER > width:
        text = text[:-1]
    return text + "…"


def short(value: float) -> str:
    """`12k`, `3.4M`: a number for an axis."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            shown = f"{value / limit:.1f}" if value < 10 * limit and value % limit else f"{value / limit:.0f}"
            return shown.replace(".", current().decimal) + unit
    return current().number(value) if value == int(value) else current().number(value, 2)


def _both(draw: Callable[[float], Drawing]) -> tuple[Drawing, ...]:
    return draw(WIDE), draw(NARROW)


# Scales --------------------------------------------------------------------------------------------------------------


def ticks(most: float, log: bool = False) -> list[float]:
    """Round values from nothing (or one) to at least `most`."""
    if log:
        return [10.0**power for power in range(math.ceil(math.log10(max(most, 1.0))) + 1)] or [1.0]
    if most < 1e-9:
        return [0.0, 1.0]
    step = 10.0 ** math.floor(math.log10(most))
    step = next(step * part for part in (0.2, 0.25, 0.5, 1.0, 2.0, 2.5) if most / (step * part) <= 4.5)
    step = max(step, 1.0) if most >= 1 else step
    count = math.ceil(most / step - 1e-9)
    return [step * index for index in range(count + 1)]


def _height(value: float, top: float, log: bool) -> float:
    """The share of the axis that a value takes, from 0 to 1."""
    if log:
        return math.log10(max(value, 1.0)) / max(math.log10(max(top, 10.0)), 1e-9)
    return value / top if top else 0.0


def _grid(canvas: _Canvas, left: float, y_of: Callable[[float], float], values: Sequence[float]) -> None:
    for value in values:
        y = y_of(value)
        canvas.add("line", x1=left, x2=canvas.width, y1=y, y2=y, class_="grid")
        canvas.add("text", short(value), x=left - 6, y=y + 4, text_anchor="end")


def _time_axis(canvas: _Canvas, y: float, x_of: Callable[[datetime], float], first: datetime, last: datetime) -> None:
    """Years, or months of a short time, where their texts fit."""
    if (last - first).days > 800:
        years = range(first.year, last.year + 2)
        step = next(s for s in (1, 2, 5, 10, 20, 50) if len(years) / s * 44 <= canvas.width or s == 50)
        moments = [(datetime(year, 1, 1, tzinfo=UTC), str(year)) for year in years if year % step == 0]
    else:
        months = [(first.year + (first.month - 1 + n) // 12, (first.month - 1 + n) % 12 + 1) for n in range(28)]
        moments = [(datetime(year, month, 1, tzinfo=UTC), f"{year}-{month:02d}") for year, month in months]
    for moment, words in moments:
        if first <= moment <= last:
            canvas.add("line", x1=x_of(moment), x2=x_of(moment), y1=y, y2=y + 5, class_="axis")
            canvas.write(x_of(moment), y + 19, words)
    if not any(first <= moment <= last for moment, _ in moments):
        canvas.write(x_of(first), y + 19, f"{first:%Y-%m-%d}", "start")
        canvas.write(x_of(last), y + 19, f"{last:%Y-%m-%d}", "end")


def _seconds(moment: datetime | date | float) -> datetime:
    if isinstance(moment, datetime):
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if isinstance(moment, date):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return datetime.fromtimestamp(moment, UTC)


def _along(first: datetime, last: datetime, left: float, right: float) -> Callable[[datetime], float]:
    span = (last - first).total_seconds()
    if span <= 0:
        return lambda _moment: (left + right) / 2
    return lambda moment: left + (right - left) * (moment - first).total_seconds() / span


# Columns and rows ----------------------------------------------------------------------------------------------------


def columns(
    counts: Mapping[str, float | None],
    label: str,
    headers: tuple[str, str],
    *,
    log: bool = False,
    colours: Mapping[str, Colour] | None = None,
) -> Chart:
    """A column for each name, in the order given; None is drawn as missing."""
    kinds = colours or {}

    def draw(width: float) -> Drawing:
        canvas, tall, left, top = _Canvas(width), 150.0, 40.0, 18.0
        values = [value for value in counts.values() if value is not None]
        marks = ticks(max(values, default=0), log)
        step = (width - left) / max(len(counts), 6)
        base = top + tall
        _grid(canvas, left, lambda value: base - tall * _height(value, marks[-1], log), marks)
        for index, (name, value) in enumerate(counts.items()):
            wide = min(step * 0.76, 56.0)
            middle = left + (index + 0.5) * step
            x = middle - wide / 2
            words = f"{name}: {current().number(value) if value is not None else '–'}"
            if value is None:
                canvas.add("rect", title=words, x=x, y=top, width=wide, height=tall, class_="gap")
            else:
                high = max(tall * _height(value, marks[-1], log), 1.5 if value else 0.0)
                colour = f"fill-{kinds.get(name, 'c0')}"
                canvas.add(
                    "rect",
                    title=words,
                    x=x,
                    y=base - high,
                    width=wide,
                    height=high,
                    rx=min(3.0, wide / 4),
                    class_=colour,
                )
            canvas.write(middle, base + 18, name)
        return canvas.drawing(base + 24)

    rows = tuple((name, "–" if value is None else current().number(value)) for name, value in counts.items())
    return Chart(label, _both(draw), headers, rows)


def years(counts: Mapping[str, int]) -> dict[str, float | None]:
    """Counts for every year from the first to the last, zero where there is none."""
    known = sorted(int(year) for year in counts)
    return {str(year): counts.get(str(year), 0) for year in range(known[0], known[-1] + 1)} if known else {}


def shares(
    counts: Mapping[str, float], label: str, headers: tuple[str, str], colours: Sequence[Colour] = ("c0",)
) -> Chart:
    """A bar for each name, names on the left; for names too long for columns."""
    top = max(counts.values(), default=0.0)

    def draw(width: float) -> Drawing:
        canvas = _Canvas(width)
        room = min(width * 0.4, max((text_width(name) for name in counts), default=0.0) + 8)
        for index, (name, value) in enumerate(counts.items()):
            y, end = index * 26.0, width - 60
            long = max((end - room) * (value / top if top else 0.0), 1.5 if value else 0.0)
            canvas.add("text", fitted(name, room - 8), name, x=0, y=y + 16, class_="name")
            canvas.add(
                "rect", x=room, y=y + 4, width=long, height=16.0, rx=3, class_=f"fill-{colours[index % len(colours)]}"
            )
            canvas.add("text", current().number(value), x=room + long + 6, y=y + 16)
        return canvas.drawing(26.0 * len(counts) or 1)

    rows = tuple((name, current().number(value)) for name, value in counts.items())
    return Chart(label, _both(draw), headers, rows)


# Lines and areas -----------------------------------------------------------------------------------------------------

Point = tuple[datetime | date | float, float | None]


def lines(series: Mapping[str, Sequence[Point]], label: str, when: str, *, log: bool = False) -> Chart:
    """Values over time, a line each; a None interrupts the line."""
    known = {name: [(_seconds(at), value) for at, value in points] for name, points in series.items()}
    moments = sorted({at for points in known.values() for at, _ in points})
    key = tuple((f"c{index % 8}", name) for index, name in enumerate(known))
    headers = (when, *known)
    by_time = {name: dict(points) for name, points in known.items()}
    rows = tuple((f"{at:%Y-%m-%d}", *(_cell(by_time[name].get(at)) for name in known)) for at in moments)
    if not moments:
        return Chart(label, (), headers, rows, key)

    def draw(width: float) -> Drawing:
        canvas, tall, left, top = _Canvas(width), 200.0, 44.0, 12.0
        most = max((value for points in known.values() for _, value in points if value is not None), default=0.0)
        marks = ticks(most, log)
        x_of = _along(moments[0], moments[-1], left + 4, width - 6)

        def y_of(value: float) -> float:
            return top + tall - tall * _height(value, marks[-1], log)

        _grid(canvas, left, y_of, marks)
        for (colour, name), points in zip(key, known.values(), strict=True):
            for part in unbroken(points):
                path = " ".join(f"{x_of(at):.1f},{y_of(value):.1f}" for at, value in part)
                canvas.add("polyline", title=name, points=path, class_=f"line-{colour}")
                for at, value in part if len(points) <= 60 else part[:1] if len(part) == 1 else ():
                    words = f"{name}, {at:%Y-%m-%d}: {_cell(value)}"
                    canvas.add("circle", title=words, cx=x_of(at), cy=y_of(value), r=3, class_=f"fill-{colour}")
        _time_axis(canvas, top + tall, x_of, moments[0], moments[-1])
        return canvas.drawing(top + tall + 26)

    return Chart(label, _both(draw), headers, rows, key if len(key) > 1 else ())


def unbroken(points: Iterable[tuple[datetime, float | None]]) -> list[list[tuple[datetime, float]]]:
    """The parts of a line between its gaps."""
    parts: list[list[tuple[datetime, float]]] = [[]]
    for at, value in points:
        if value is None:
            parts.append([])
        else:
            parts[-1].append((at, value))
    return [part for part in parts if part]


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return current().number(value) if value == int(value) else current().number(value, 2)


def areas(
    moments: Sequence[datetime | date | float],
    layers: Mapping[str, Sequence[float]],
    colours: Sequence[Colour],
    label: str,
    when: str,
) -> Chart:
    """Layers on top of each other over time. Values hold until the next moment; a single moment is a bar."""
    times = [_seconds(moment) for moment in moments]
    key = tuple(zip(colours, layers, strict=True))
    rows = tuple(
        (f"{at:%Y-%m-%d %H:%M}", *(_cell(values[index]) for values in layers.values()))
        for index, at in enumerate(times)
    )
    if not times:
        return Chart(label, (), (when, *layers), rows, key)

    def draw(width: float) -> Drawing:
        canvas, tall, left, top = _Canvas(width), 200.0, 44.0, 12.0
        marks = ticks(max(sum(values) for values in zip(*layers.values(), strict=True)))
        x_of = _along(times[0], times[-1], left, width)
        xs = [x_of(at) for at in times] if times[0] < times[-1] else [left]
        xs = [*xs, width] if len(xs) == 1 else xs
        below = [0.0] * len(times)

        def steps(values: Sequence[float]) -> list[str]:
            ys = [
                top + tall - tall * _height(values[min(i, len(values) - 1)], marks[-1], False) for i in range(len(xs))
            ]
            turns = [(xs[0], ys[0])]
            for (_, y), (x, next_y) in pairwise(zip(xs, ys, strict=True)):
                turns += [(x, y), (x, next_y)]
            return [f"{x:.1f},{y:.1f}" for x, y in turns]

        for colour, (name, values) in zip(colours, layers.items(), strict=True):
            above = [low + value for low, value in zip(below, values, strict=True)]
            if any(values):
                points = " ".join([*steps(above), *reversed(steps(below))])
                canvas.add("polygon", title=name, points=points, class_=f"fill-{colour}")
            below = above
        _grid(canvas, left, lambda value: top + tall - tall * _height(value, marks[-1], False), marks)
        _time_axis(canvas, top + tall, x_of, times[0], times[-1])
        return canvas.drawing(top + tall + 26)

    return Chart(label, _both(draw), (when, *layers), rows, key)


def largest(counts: Mapping[str, Mapping[int, int]], most: int, others: str) -> dict[str, Mapping[int, int]]:
    """The `most` names with the largest sums; the rest together, under the name `others`."""
    ordered = sorted(counts, key=lambda name: -sum(counts[name].values()))
    kept: dict[str, Mapping[int, int]] = {name: counts[name] for name in ordered[:most]}
    rest: dict[int, int] = {}
    for name in ordered[most:]:
        for year, count in counts[name].items():
            rest[year] = rest.get(year, 0) + count
    return {**kept, others: rest} if rest else kept


# The life of a site --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """A time in the life of a site: its owner's, another owner's, or without captures."""

    first: date
    last: date
    colour: Colour
    words: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that matters: the chosen one, the last good capture."""

    at: date
    words: str


def life(
    counts: Mapping[str, Mapping[int, int]],
    label: str,
    headers: tuple[str, str],
    *,
    spans: Sequence[Span] = (),
    moments: Sequence[Moment] = (),
) -> Chart:
    """Captures per archive and year as dots on a line each, over the spans of owners, with marked moments."""
    ends = [span.first for span in spans] + [span.last for span in spans] + [moment.at for moment in moments]
    known = sorted({year for per_year in counts.values() for year in per_year} | {end.year for end in ends})
    if not known:
        return Chart(label, ())
    first, last = datetime(known[0], 1, 1, tzinfo=UTC), datetime(known[-1] + 1, 1, 1, tzinfo=UTC)
    most = max((n for per_year in counts.values() for n in per_year.values()), default=1)

    def draw(width: float) -> Drawing:
        canvas, row = _Canvas(width), 30.0
        narrow = width < WIDE
        room = 8.0 if narrow else min(190.0, max((text_width(name) for name in counts), default=0.0) + 16)
        x_of = _along(first, last, room, width - 8)
        top = _LINE * 2 * bool(moments) + 4
        height = (row + (_LINE if narrow else 0.0)) * len(counts)
        for span in spans:
            x, end = x_of(_seconds(span.first)), x_of(_seconds(span.last))
            wide = max(end - x, 2.0)
            canvas.add(
                "rect", title=span.words, x=x, y=top, width=wide, height=height + 6, class_=f"span-{span.colour}"
            )
        for index, (name, per_year) in enumerate(counts.items()):
            y = top + index * height / len(counts) + height / len(counts) - row / 2
            if narrow:
                canvas.add("text", fitted(name, width - room), name, x=room, y=y - 14, class_="name")
            else:
                shown = fitted(name, room - 12)
                canvas.add("text", shown, name, x=room - 12, y=y + 4, text_anchor="end", class_="name")
            canvas.add("line", x1=room, x2=width - 8, y1=y, y2=y, class_="rail")
            for year, count in sorted(per_year.items()):
                middle = x_of(datetime(year, 7, 2, tzinfo=UTC))
                size = 3.0 + 8.0 * math.sqrt(math.log1p(count) / math.log1p(most)) if count else 0.0
                if size:
                    words = f"{name}, {year}: {current().number(count)}"
                    canvas.add("circle", title=words, cx=middle, cy=y, r=size, class_=f"fill-c{index % 8}")
        for moment in moments:
            x = x_of(_seconds(moment.at))
            canvas.add("line", title=moment.words, x1=x, x2=x, y1=top - 2, y2=top + height + 6, class_="moment")
            words = fitted(moment.words, width)
            _ = canvas.write(x, top - 8, words, class_="moment-name") or canvas.write(
                x, top - 8 - _LINE, words, class_="moment-name"
            )
        _time_axis(canvas, top + height + 6, x_of, first, last)
        return canvas.drawing(top + height + 32)

    all_years = range(known[0], known[-1] + 1)
    rows = tuple((str(year), *(_cell(per_year.get(year, 0)) for per_year in counts.values())) for year in all_years)
    kinds = {span.colour: span.words for span in spans}
    return Chart(label, _both(draw), (headers[0], *counts), rows, tuple(kinds.items()))


# Calendar and donut --------------------------------------------------------------------------------------------------


def calendar(counts: Mapping[tuple[int, int], int], label: str, headers: tuple[str, str, str]) -> Chart:
    """Captures by year (rows) and month (columns), the more the darker; for long histories."""
    known = sorted({year for year, _ in counts})
    if not known:
        return Chart(label, ())
    most = max(counts.values())

    def draw(width: float) -> Drawing:
        canvas, left, cell = _Canvas(width), 40.0, min((width - 40) / 12, 34.0)
        for month in range(12):
            canvas.write(left + (month + 0.5) * cell, 12, str(month + 1), space=2)
        for index, year in enumerate(range(known[0], known[-1] + 1)):
            y = 20 + index * 20.0
            canvas.add("text", str(year), x=left - 6, y=y + 13, text_anchor="end")
            for month in range(1, 13):
                count = counts.get((year, month), 0)
                level = math.ceil(4 * math.log1p(count) / math.log1p(most)) if count else 0
                words = f"{year}-{month:02d}: {current().number(count)}"
                x = left + (month - 1) * cell
                canvas.add("rect", title=words, x=x + 1, y=y, width=cell - 2, height=18.0, rx=2, class_=f"heat{level}")
        return canvas.drawing(24 + 20.0 * (known[-1] - known[0] + 1))

    rows = tuple((str(year), str(month), current().number(count)) for (year, month), count in sorted(counts.items()))
    return Chart(label, _both(draw), headers, rows)


def donut(
    parts: Mapping[str, float], colours: Sequence[Colour], label: str, headers: tuple[str, str], middle: str = ""
) -> Chart:
    """Parts of a whole as a ring, with a text in its middle."""
    total = sum(parts.values())
    canvas, radius = _Canvas(140.0), 54.0
    around = 2 * math.pi * radius
    canvas.add("circle", cx=70, cy=70, r=radius, class_="ring none")
    at = 0.0
    for (name, value), colour in zip(parts.items(), colours, strict=True):
        if not total or not value:
            continue
        long = around * value / total
        words = f"{name}: {current().number(value)}"
        canvas.add(
            "circle", title=words, cx=70, cy=70, r=radius, class_=f"ring line-{colour}",
            stroke_dasharray=f"{long:.1f} {around - long:.1f}", stroke_dashoffset=-at, transform="rotate(-90 70 70)",
        )  # fmt: skip
        at += long
    canvas.add("text", middle, x=70, y=78, text_anchor="middle", class_="middle")
    key = tuple(
        (colour, f"{name}: {current().number(value)}")
        for (name, value), colour in zip(parts.items(), colours, strict=True)
    )
    rows = tuple((name, current().number(value)) for name, value in parts.items())
    return Chart(label, (canvas.drawing(140.0),), headers, rows, key)
