"""The picture of a tradeoff: an SVG that needs nothing else, a page with its numbers, and the numbers as JSON.

Hides: scales, ticks and the placement of labels. One panel has relative cost (keys per URI-R) as its axis, one the
bytes of the compressed file, both logarithmic. Accuracy is on a linear scale from the lowest point up; in the panel by
bytes on a logarithmic scale of wrong answers, where 99% and 99.9% are as far apart as 90% and 99%. Colours follow the
reader's light or dark preference and are dark on white in print; shapes distinguish the series without them: a line
with dots is by budget, a dashed line with squares has hashed sets, diamonds are weights, the ring is the knee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any

from recollect.profiles.compaction.tradeoff import Point, Tradeoff
from recollect.quantities import counted, format_size

WIDTH, HEIGHT = 800, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 64, 62
MOST_NINES = 4  # the logarithmic scale of wrong answers ends at 99.99% right
LEAST_WRONG = 10.0**-MOST_NINES
LABEL = 240  # about the width of the knee's words

_STYLE = """
.tradeoff { --ink: #1b1f24; --soft: #5c6570; --grid: #dfe3e8; --ground: #ffffff; }
.tradeoff { --budget: #0b62c4; --weights: #b4530a; --sets: #1a7f37; }
@media (prefers-color-scheme: dark) {
  .tradeoff { --ink: #e8eaed; --soft: #a3abb5; --grid: #343a42; --ground: #14171b; }
  .tradeoff { --budget: #6db3ff; --weights: #ffa657; --sets: #56d364; }
}
@media print {
  .tradeoff { --ink: #000; --soft: #333; --grid: #ccc; --ground: #fff; }
  .tradeoff { --budget: #003c8f; --weights: #7a3300; --sets: #0a4a1c; }
}
.tradeoff text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.tradeoff .title { font-size: 16px; font-weight: 600; }
.tradeoff .soft { fill: var(--soft); }
.tradeoff .small { font-size: 11px; }
.tradeoff .ground { fill: var(--ground); }
.tradeoff .grid { stroke: var(--grid); }
.tradeoff .line { fill: none; stroke: var(--budget); stroke-width: 2; }
.tradeoff .dot { fill: var(--budget); }
.tradeoff .sets { fill: none; stroke: var(--sets); stroke-width: 2; stroke-dasharray: 7 4; }
.tradeoff .square { fill: var(--sets); }
.tradeoff .diamond { fill: var(--ground); stroke: var(--weights); stroke-width: 1.5; }
.tradeoff .knee { fill: none; stroke: var(--ink); stroke-width: 2; }
.tradeoff .lead { stroke: var(--ink); }
.tradeoff .halo { paint-order: stroke; stroke: var(--ground); stroke-width: 5px; stroke-linejoin: round; }
"""


def as_json(result: Tradeoff) -> dict[str, Any]:
    """The numbers, for programs."""
    return {
        "map": result.label,
        "keys": result.keys,
        "uri_rs": result.uri_rs,
        "lookups": result.lookups,
        "unusable_lookups": result.unusable_lookups,
        # With a log, each half of it is answered by maps made from the other half.
        "accuracy_is": "cross-validated" if result.lookups else "expected",
        "budget": [_numbers(point) for point in result.budget],
        "weights": [_numbers(point) for point in result.weights],
        "sets": [_numbers(point) for point in result.sets],
        "knee": _numbers(result.knee) if result.knee else None,
    }


def _numbers(point: Point) -> dict[str, Any]:
    return {name: value for name, value in asdict(point).items() if value is not None}


def as_svg(result: Tradeoff) -> str:
    """One self-contained picture: a panel by relative cost, and one by bytes."""
    first, *others = _panels(result)
    height = HEIGHT * (1 + len(others))
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tradeoff" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="t d">',
            f'<title id="t">Cost and accuracy of maps of {escape(result.label)}</title>',
            f'<desc id="d">{escape(sentence(result))}</desc><style>{_STYLE}</style>',
            f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
            *_body(result, first),
            *(
                f'<g transform="translate(0 {number * HEIGHT})">{"".join(_body(result, panel))}</g>'
                for number, panel in enumerate(others, 1)
            ),
            "</svg>\n",
        )
    )


def as_html(result: Tradeoff) -> str:
    """The picture with its table beneath, as one page."""
    rows = [("budget", "", point) for point in result.budget]
    rows += [("sets", "", point) for point in result.sets]
    rows += [("weights", f"{point.host_weight:g} / {point.path_weight:g}", point) for point in result.weights]
    table = "".join(
        f"<tr{' class=knee' if point == result.knee else ''}><td>{how}<td>{weights}<td>{point.keys:,}"
        f"<td>{_percent(point.cost)}<td>{'' if point.bytes is None else f'{point.bytes:,}'}"
        f"<td>{_percent(point.accuracy)}"
        for how, weights, point in rows
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Cost and accuracy: {escape(result.label)}</title><style>"
        ":root { color-scheme: light dark; } "
        "body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; padding: 0 1rem; } "
        "svg { width: 100%; height: auto; } .scroll { overflow-x: auto; } "
        "table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } "
        "th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8884; } "
        "th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } .knee { font-weight: 600; } "
        "</style></head><body>"
        f"<h1>Cost and accuracy of maps of {escape(result.label)}</h1><p>{escape(sentence(result))}</p>"
        f'{as_svg(result)}<h2>Numbers</h2><div class="scroll" tabindex="0"><table><thead><tr><th>made by'
        "<th>weights (host / path)<th>keys<th>relative cost<th>bytes, compressed<th>accuracy</thead>"
        f"<tbody>{table}</tbody></table></div>"
        f"<p>{escape(_method(result))}</p></body></html>\n"
    )


def sentence(result: Tradeoff) -> str:
    """The result of the picture, as a sentence."""
    return _about_keys(result) + _about_sets(result)


def _about_sets(result: Tradeoff) -> str:
    """How a map with sets compares with the map of the knee."""
    knee = result.knee
    if knee is None or knee.bytes is None:
        return ""
    best = max((one for one in result.sets if one.bytes and one.bytes <= knee.bytes), key=_accuracy, default=None)
    if best is None or best.accuracy < knee.accuracy:
        return ""
    small, right = format_size(best.bytes), _percent(best.accuracy)
    return (
        f" That map has {format_size(knee.bytes)}, compressed; with hashed sets (--sets) {small} answer {right} right."
    )


def _accuracy(point: Point) -> float:
    return point.accuracy


def _about_keys(result: Tradeoff) -> str:
    known = f"{counted(result.keys, 'key')} for {counted(result.uri_rs, 'URI-R')}"
    if result.knee is None:
        return f"{known}. The curve has no knee: accuracy rises evenly with size."
    right = f"{_percent(result.knee.accuracy)} of lookups are answered right"
    return (
        f"{known}. Beyond {_percent(result.knee.cost)} ({counted(result.knee.keys, 'key')}), where {right}"
        f"{'' if result.lookups else ' as expected without a log'}, more keys help little."
    )


def _method(result: Tradeoff) -> str:
    return f"{_judged(result)} Bytes are those of the map as a .zst file."


def _judged(result: Tradeoff) -> str:
    if result.lookups:
        return (
            f"Accuracy is the share of {counted(result.lookups, 'lookup')} answered correctly. Maps by budget are made "
            "from one half of the log and evaluated on the other; weights do not use it and are evaluated on all."
        )
    return (
        "There was no log, so accuracy is what the built-in estimate expects of lookups of absent URIs. "
        "Give --lookups LOG to measure."
    )


def _percent(share: float) -> str:
    """Enough digits to distinguish points at either end."""
    distance = min(share, 1 - share) if 0 < share < 1 else 1.0
    digits = min(4, max(1, 1 - floor(log10(distance * 100)))) if distance < 0.1 else 1
    return f"{share:.{digits}%}" if 0 < share < 1 else f"{share:.0%}"


@dataclass(frozen=True, slots=True)
class _Panel:
    """What one panel shows: its axis, the maps with sets if it has them, and whether accuracy is by wrong answers."""

    axis: str
    x: Callable[[Point], float]
    tick: Callable[[int], str]
    sets: tuple[Point, ...] = ()
    by_wrong: bool = False


def _panels(result: Tradeoff) -> list[_Panel]:
    by_cost = _Panel("relative cost (keys per URI-R)", lambda point: point.cost, _share_at)
    if not result.sets:
        return [by_cost]
    by_bytes = _Panel("bytes of the compressed map", lambda point: point.bytes or 0.0, _bytes_at, result.sets, True)
    return [by_cost, by_bytes]


def _share_at(power: int) -> str:
    return f"{100 * 10.0**power:g}%"


def _bytes_at(power: int) -> str:
    return f"{10 ** (power % 3)} {('B', 'kB', 'MB', 'GB', 'TB')[power // 3]}"


class _Scale:
    """From points to places in a panel."""

    def __init__(self, points: list[Point], panel: _Panel) -> None:
        self._of = panel.x
        sizes = [size for size in map(panel.x, points) if size > 0] or [0.01]
        self.first = floor(log10(min(sizes)))
        self.last = max(self.first + 1, ceil(log10(max(sizes))))
        lowest = min((point.accuracy for point in points), default=0.0)
        self._by_wrong = panel.by_wrong
        self._nines = min(max(0, -ceil(log10(max(1 - lowest, LEAST_WRONG)))), MOST_NINES - 1)  # of the lowest line
        self.step = next((step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if (1 - lowest) / step <= 8), 0.2)
        self.floor = min(floor(lowest / self.step) * self.step, 1 - self.step)

    def at(self, size: float) -> float:
        """Where a size lies from left to right; sizes of 0 are at the left edge."""
        share = (log10(max(size, 10.0**self.first)) - self.first) / (self.last - self.first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def x(self, point: Point) -> float:
        return self.at(self._of(point))

    def ticks(self) -> list[tuple[float, str]]:
        """Accuracies with a line across the panel, and their labels."""
        if self._by_wrong:
            wrong = [10.0**-power for power in range(self._nines, MOST_NINES + 1)]
            return [(1 - share, f"{100 * (1 - share):g}%") for share in wrong]
        steps = range(round((1 - self.floor) / self.step) + 1)
        accuracies = [self.floor + tick * self.step for tick in steps]
        return [(one, f"{100 * one:g}%" if self.step >= 0.01 else f"{one:.1%}") for one in accuracies]

    def y(self, accuracy: float) -> float:
        share = (accuracy - self.floor) / (1 - self.floor)
        if self._by_wrong:
            share = (-log10(max(1 - accuracy, LEAST_WRONG)) - self._nines) / (MOST_NINES - self._nines)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _body(result: Tradeoff, panel: _Panel) -> list[str]:
    points = [*result.budget, *result.weights, *panel.sets]
    scale = _Scale(points, panel)
    parts = _axes(scale, panel)
    parts.append(f'<text class="title" x="{LEFT}" y="24">Accuracy for a size: {escape(result.label)}</text>')
    basis = f"{result.lookups:,} unseen lookups" if result.lookups else "expected without a log"
    parts += _legend(basis, sets=bool(panel.sets))
    for kind, curve in (("line", result.budget), ("sets", panel.sets)):
        line = " ".join(f"{scale.x(point):.1f},{scale.y(point.accuracy):.1f}" for point in curve)
        parts.append(f'<polyline class="{kind}" points="{line}"/>' if curve else "")
    for point in result.budget:
        place = f'cx="{scale.x(point):.1f}" cy="{scale.y(point.accuracy):.1f}"'
        parts.append(f'<circle class="dot" {place} r="2.5"><title>{_words(point)}</title></circle>')
    for point in panel.sets:
        place = f'x="{scale.x(point) - 2.5:.1f}" y="{scale.y(point.accuracy) - 2.5:.1f}"'
        parts.append(f'<rect class="square" {place} width="5" height="5"><title>sets: {_words(point)}</title></rect>')
    for point in result.weights:
        parts += _diamond(scale.x(point), scale.y(point.accuracy), point)
    if result.knee is not None:
        parts += _knee(scale, result.knee, result.budget if not panel.sets else panel.sets)
    return parts


def _axes(scale: _Scale, panel: _Panel) -> list[str]:
    parts = []
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for power in range(scale.first, scale.last + 1):
        x = scale.at(10.0**power)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        label = panel.tick(power)
        parts.append(f'<text class="soft" text-anchor="middle" x="{x:.1f}" y="{bottom + 20}">{label}</text>')
    for accuracy, label in scale.ticks():
        y = scale.y(accuracy)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="soft" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{label}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<text text-anchor="middle" x="{middle:.1f}" y="{HEIGHT - 18}">{panel.axis}</text>')
    parts.append(
        f'<text text-anchor="middle" transform="translate(18 {(TOP + bottom) / 2:.1f}) rotate(-90)">accuracy</text>'
    )
    return parts


def _legend(basis: str, *, sets: bool) -> list[str]:
    parts = [
        f'<line class="line" x1="{LEFT}" y1="42" x2="{LEFT + 26}" y2="42"/>'
        f'<circle class="dot" cx="{LEFT + 13}" cy="42" r="2.5"/>'
        f'<text x="{LEFT + 33}" y="46">by budget</text>',
        f'<path class="diamond" d="{_diamond_path(LEFT + 120, 42)}"/>'
        f'<text x="{LEFT + 131}" y="46">by weights (host/path)</text>',
        f'<text class="soft" text-anchor="end" x="{WIDTH - RIGHT}" y="46">{escape(basis)}</text>',
    ]
    if sets:
        parts.append(
            f'<line class="sets" x1="{LEFT + 285}" y1="42" x2="{LEFT + 311}" y2="42"/>'
            f'<rect class="square" x="{LEFT + 295.5}" y="39.5" width="5" height="5"/>'
            f'<text x="{LEFT + 318}" y="46">with sets</text>'
        )
    return parts


def _diamond_path(x: float, y: float) -> str:
    return f"M{x - 4.5:.1f} {y:.1f}L{x:.1f} {y - 4.5:.1f}L{x + 4.5:.1f} {y:.1f}L{x:.1f} {y + 4.5:.1f}Z"


def _diamond(x: float, y: float, point: Point) -> list[str]:
    parts = [f'<path class="diamond" d="{_diamond_path(x, y)}"><title>{_words(point)}</title></path>']
    if point.host_weight == point.path_weight:
        label = f"{point.host_weight:g}/{point.path_weight:g}"
        parts.append(f'<text class="small soft" x="{x + 7:.1f}" y="{y + 13:.1f}">{label}</text>')
    return parts


def _knee(scale: _Scale, knee: Point, budget: Sequence[Point]) -> list[str]:
    """A ring and its words: above the curve where there is free ground, else below, over other marks."""
    x, y = scale.x(knee), scale.y(knee.accuracy)
    start = min(x + 4, WIDTH - RIGHT - LABEL)
    over = [scale.y(point.accuracy) for point in budget if start - 20 <= scale.x(point) <= start + LABEL]
    above = min(over, default=y) - 12
    words = f"knee: {_percent(knee.cost)} of cost, {_percent(knee.accuracy)} right"
    parts = [f'<circle class="knee" cx="{x:.1f}" cy="{y:.1f}" r="8"/>']
    if above > TOP + 12:
        parts.append(f'<line class="lead" x1="{x:.1f}" y1="{y - 8:.1f}" x2="{x:.1f}" y2="{above + 4:.1f}"/>')
        parts.append(f'<text class="halo" x="{start:.1f}" y="{above:.1f}">{words}</text>')
    else:
        parts.append(f'<text class="halo" x="{start + 8:.1f}" y="{y + 24:.1f}">{words}</text>')
    return parts


def _words(point: Point) -> str:
    how = "" if point.host_weight is None else f"weights {point.host_weight:g}/{point.path_weight:g}: "
    size = "" if point.bytes is None else f", {format_size(point.bytes)}"
    return f"{how}{counted(point.keys, 'key')}{size}, {_percent(point.cost)} of cost, {_percent(point.accuracy)} right"
