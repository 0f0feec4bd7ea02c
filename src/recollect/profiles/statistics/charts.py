"""Charts as SVG text: bars, stacked bars, curves, without script and without a style of their own.

Hides: scales, ticks and labels. Pure. Geometry is in attributes, colour in classes (`s0` to `s7` for series, `axis`,
`grid`, `note`), so that one style sheet serves light, dark and print. All text is escaped here. Every shape has a
`<title>`, which browsers show as a tooltip and screen readers say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 26, 42
COLOURS = 8
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one curve, in order; `marks` draws them as single dots, without a line."""

    name: str
    points: Sequence[Point]
    marks: bool = False
    titles: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction: what it shows, from where to where, logarithmic or not, and how its numbers are written."""

    label: str
    low: float
    high: float
    log: bool = False
    words: Callable[[float], str] = lambda value: number(value)

    def share(self, value: float) -> float:
        """Where a value lies, 0 to 1."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, self.low)) - low) / ((high - low) or 1.0)
        return (value - self.low) / ((self.high - self.low) or 1.0)

    def ticks(self) -> list[float]:
        """Round numbers within the axis, about six."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first) / 6))
            return [10.0**power for power in range(first, last + 1, every)] or [self.low, self.high]
        step = nice_step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor((self.high - first * step) / step + 1e-9)
        return [(first + place) * step for place in range(count + 1)]


def nice_step(span: float, about: int = 6) -> float:
    """1, 2 or 5 times a power of ten, so that about this number fits."""
    if span <= 0:
        return 1.0
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def number(value: float) -> str:
    """`0`, `0.25`, `12`, `3.4k`, `1.2M`: short, for axes."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def percent(value: float) -> str:
    """`12%`, `0.5%`."""
    return f"{value * 100:.3g}%"


def curves(series: Sequence[Series], x: Axis, y: Axis, *, title: str, height: int = 300, area: bool = False) -> str:
    """Lines or dots over two axes; with `area` the first series is filled below."""
    parts = [_axes(x, y, height)]
    for place, one in enumerate(series):
        spots = [(_x(x.share(px)), _y(y.share(py), height)) for px, py in one.points]
        if area and place == 0 and spots:
            floor = _y(0.0, height)
            path = f"M{spots[0][0]:.1f} {floor:.1f}L{_path(spots)}L{spots[-1][0]:.1f} {floor:.1f}Z"
            parts.append(f'<path class="area s{place % COLOURS}" d="{path}"/>')
        if not one.marks:
            parts.append(f'<path class="line s{place % COLOURS}" d="M{_path(spots)}"/>')
        if one.marks or len(spots) <= 40:
            parts += [
                f'<circle class="dot s{place % COLOURS}" cx="{px:.1f}" cy="{py:.1f}" r="{4 if one.marks else 3}">'
                f"<title>{escape(_title(one, at, x, y))}</title></circle>"
                for at, (px, py) in enumerate(spots)
            ]
    return _svg("".join(parts), height, title) + _legend([one.name for one in series])


def _title(one: Series, at: int, x: Axis, y: Axis) -> str:
    if at < len(one.titles):
        return one.titles[at]
    px, py = one.points[at]
    return f"{one.name}: {x.words(px)}, {y.words(py)}"


def stacked(columns: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], y: Axis, *, title: str) -> str:
    """A column for each name on the x axis, its parts one above the other in the order of `names`."""
    height = 280
    step = (WIDTH - LEFT - RIGHT) / max(len(columns), 1)
    parts = [_grid(y, height)]
    every = 1 + len(columns) // 16
    for place, (label, values) in enumerate(columns):
        left, below = LEFT + place * step + step * 0.12, 0.0
        for kind, value in enumerate(values):
            if value <= 0:
                continue
            bottom, top = _y(y.share(below), height), _y(y.share(below + value), height)
            parts.append(
                f'<rect class="bar s{kind % COLOURS}" x="{left:.1f}" y="{top:.1f}" width="{step * 0.76:.1f}" '
                f'height="{max(bottom - top, 0.5):.1f}"><title>{escape(f"{label} {names[kind]}: {y.words(value)}")}'
                "</title></rect>"
            )
            below += value
        if place % every == 0:
            parts.append(_label(left + step * 0.38, height - BOTTOM + 18, label, "middle"))
    return _svg("".join(parts), height, title) + _legend(names)


def ranked(rows: Sequence[tuple[str, float]], x: Axis, *, title: str, left: int = 210, width: int = WIDTH) -> str:
    """Bars from left to right, one a row, the name at its left and the number at its end."""
    row = 24
    height = row * len(rows) + 8
    bar_width = width - left - 90
    parts = []
    for place, (name, value) in enumerate(rows):
        top = place * row + 4
        long = max(x.share(value) * bar_width, 1.5)
        shown = name if len(name) <= 30 else name[:29] + "…"
        parts.append(
            _label(left - 8, top + 15, shown, "end")
            + f'<rect class="bar s0" x="{left}" y="{top}" width="{long:.1f}" height="{row - 6}" rx="3">'
            f"<title>{escape(f'{name}: {x.words(value)}')}</title></rect>"
            + _label(left + long + 6, top + 15, x.words(value), "start")
        )
    return _svg("".join(parts), height, title, width)


def _axes(x: Axis, y: Axis, height: int) -> str:
    parts = [_grid(y, height)]
    for value in x.ticks():
        at = _x(x.share(value))
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        parts.append(_label(at, height - BOTTOM + 16, x.words(value), "middle"))
    parts.append(_label(WIDTH - RIGHT, height - 4, x.label, "end", "note"))
    return "".join(parts)


def _grid(y: Axis, height: int) -> str:
    parts = []
    for value in y.ticks():
        at = _y(y.share(value), height)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_label(LEFT - 8, at + 4, y.words(value), "end"))
    floor = height - BOTTOM
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>')
    parts.append(_label(4, 12, y.label, "start", "note"))
    return "".join(parts)


def _x(share: float) -> float:
    return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)


def _y(share: float, height: int) -> float:
    return height - BOTTOM - min(max(share, 0.0), 1.0) * (height - BOTTOM - TOP)


def _path(spots: Sequence[Point]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)


def _label(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(body: str, height: int, title: str, width: int = WIDTH) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _legend(names: Sequence[str]) -> str:
    return f'<p class="legend">{"".join(_keys(names))}</p>' if len(names) > 1 else ""


def _keys(names: Sequence[str]) -> Iterator[str]:
    for place, name in enumerate(names):
        yield f'<span><i class="s{place % COLOURS}"></i>{escape(name)}</span>'
