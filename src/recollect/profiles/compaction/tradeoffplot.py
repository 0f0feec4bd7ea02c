"""The picture of a tradeoff: an SVG that needs nothing else, a page with its numbers, and the numbers as JSON.

Hides: scales, ticks and where words go. Cost is on a logarithmic scale, accuracy on a linear one from the lowest point
up. Colours follow the reader's light or dark preference and are dark on white in print; shapes tell the series apart
without them: a line with dots is by budget, diamonds are weights, the ring is the knee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from math import ceil, floor, log10
from typing import Any

from recollect.profiles.compaction.tradeoff import Point, Tradeoff

WIDTH, HEIGHT = 800, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 64, 62
LABEL = 240  # about the width of the knee's words

_STYLE = """
.tradeoff { --ink: #1b1f24; --soft: #5c6570; --grid: #dfe3e8; --ground: #ffffff; }
.tradeoff { --budget: #0b62c4; --weights: #b4530a; }
@media (prefers-color-scheme: dark) {
  .tradeoff { --ink: #e8eaed; --soft: #a3abb5; --grid: #343a42; --ground: #14171b; }
  .tradeoff { --budget: #6db3ff; --weights: #ffa657; }
}
@media print {
  .tradeoff { --ink: #000; --soft: #333; --grid: #ccc; --ground: #fff; --budget: #003c8f; --weights: #7a3300; }
}
.tradeoff text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.tradeoff .title { font-size: 16px; font-weight: 600; }
.tradeoff .soft { fill: var(--soft); }
.tradeoff .small { font-size: 11px; }
.tradeoff .ground { fill: var(--ground); }
.tradeoff .grid { stroke: var(--grid); }
.tradeoff .line { fill: none; stroke: var(--budget); stroke-width: 2; }
.tradeoff .dot { fill: var(--budget); }
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
        "accuracy_is": "of the log, each half answered by maps made from the other" if result.lookups else "a guess",
        "budget": [_numbers(point) for point in result.budget],
        "weights": [_numbers(point) for point in result.weights],
        "knee": _numbers(result.knee) if result.knee else None,
    }


def _numbers(point: Point) -> dict[str, Any]:
    return {name: value for name, value in asdict(point).items() if value is not None}


def as_svg(result: Tradeoff) -> str:
    """One self-contained picture."""
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tradeoff" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="t d">',
            f'<title id="t">Cost and accuracy of maps of {escape(result.label)}</title>',
            f'<desc id="d">{escape(sentence(result))}</desc><style>{_STYLE}</style>',
            f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
            *_body(result),
            "</svg>\n",
        )
    )


def as_html(result: Tradeoff) -> str:
    """The picture with its table beneath, as one page."""
    rows = [("budget", "", point) for point in result.budget]
    rows += [("weights", f"{point.host_weight:g} / {point.path_weight:g}", point) for point in result.weights]
    table = "".join(
        f"<tr{' class=knee' if point == result.knee else ''}><td>{how}<td>{weights}<td>{point.keys:,}"
        f"<td>{_percent(point.cost)}<td>{_percent(point.accuracy)}"
        for how, weights, point in rows
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Cost and accuracy: {escape(result.label)}</title><style>"
        "body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; padding: 0 1rem; "
        "color-scheme: light dark; } svg { width: 100%; height: auto; } "
        "table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } "
        "th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8884; } "
        "th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } .knee { font-weight: 600; } "
        "</style></head><body>"
        f"<h1>Cost and accuracy of maps of {escape(result.label)}</h1><p>{escape(sentence(result))}</p>"
        f"{as_svg(result)}<h2>Numbers</h2><table><thead><tr><th>made by<th>weights (host / path)<th>keys"
        f"<th>relative cost<th>accuracy</thead><tbody>{table}</tbody></table>"
        f"<p>{escape(_method(result))}</p></body></html>\n"
    )


def sentence(result: Tradeoff) -> str:
    """What the picture says, in words."""
    known = f"{result.keys:,} keys for {result.uri_rs:,} URI-Rs"
    if result.knee is None:
        return f"{known}. The curve has no knee: accuracy rises evenly with size."
    right = f"{_percent(result.knee.accuracy)} of lookups are answered right"
    return (
        f"{known}. Beyond {_percent(result.knee.cost)} ({result.knee.keys:,} keys), where {right}"
        f"{'' if result.lookups else ' by the built-in guess'}, more keys help little."
    )


def _method(result: Tradeoff) -> str:
    if result.lookups:
        return (
            f"Accuracy is the share of {result.lookups:,} lookups answered right. Maps by budget learned from one half "
            "of the log and were judged by the other; weights learn nothing and were judged by all of it."
        )
    return (
        "There was no log, so accuracy is what the built-in guess expects of lookups of absent URIs. "
        "Give --lookups LOG to measure."
    )


def _percent(share: float) -> str:
    """Enough digits to tell points apart at either end."""
    distance = min(share, 1 - share) if 0 < share < 1 else 1.0
    digits = min(4, max(1, 1 - floor(log10(distance * 100)))) if distance < 0.1 else 1
    return f"{share:.{digits}%}" if 0 < share < 1 else f"{share:.0%}"


class _Scale:
    """From cost and accuracy to places in the picture."""

    def __init__(self, points: list[Point]) -> None:
        costs = [point.cost for point in points if point.cost > 0] or [0.01]
        self.first, self.last = floor(log10(min(costs))), max(0, ceil(log10(max(costs))))
        lowest = min((point.accuracy for point in points), default=0.0)
        self.step = next((step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if (1 - lowest) / step <= 8), 0.2)
        self.floor = min(floor(lowest / self.step) * self.step, 1 - self.step)

    def x(self, cost: float) -> float:
        share = (log10(cost) - self.first) / max(1, self.last - self.first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, accuracy: float) -> float:
        share = (accuracy - self.floor) / (1 - self.floor)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _body(result: Tradeoff) -> list[str]:
    points = [*result.budget, *result.weights]
    scale = _Scale(points)
    parts = _axes(scale)
    parts.append(f'<text class="title" x="{LEFT}" y="24">Accuracy for a size: {escape(result.label)}</text>')
    basis = f"{result.lookups:,} lookups, unseen when the map was made" if result.lookups else "expected by the guess"
    parts += _legend(basis)
    line = " ".join(f"{scale.x(point.cost):.1f},{scale.y(point.accuracy):.1f}" for point in result.budget)
    parts.append(f'<polyline class="line" points="{line}"/>')
    for point in result.budget:
        place = f'cx="{scale.x(point.cost):.1f}" cy="{scale.y(point.accuracy):.1f}"'
        parts.append(f'<circle class="dot" {place} r="2.5"><title>{_words(point)}</title></circle>')
    for point in result.weights:
        parts += _diamond(scale.x(point.cost), scale.y(point.accuracy), point)
    if result.knee is not None:
        parts += _knee(scale, result.knee, result.budget)
    return parts


def _axes(scale: _Scale) -> list[str]:
    parts = []
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for power in range(scale.first, scale.last + 1):
        x = scale.x(10.0**power)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        label = f"{100 * 10.0**power:g}%"
        parts.append(f'<text class="soft" text-anchor="middle" x="{x:.1f}" y="{bottom + 20}">{label}</text>')
    for tick in range(round((1 - scale.floor) / scale.step) + 1):
        accuracy = scale.floor + tick * scale.step
        y = scale.y(accuracy)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="soft" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{100 * accuracy:g}%</text>'
            if scale.step >= 0.01
            else f'<text class="soft" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{accuracy:.1%}</text>'
        )
    middle = (LEFT + right) / 2
    parts.append(f'<text text-anchor="middle" x="{middle:.1f}" y="{HEIGHT - 18}">relative cost (keys per URI-R)</text>')
    parts.append(
        f'<text text-anchor="middle" transform="translate(18 {(TOP + bottom) / 2:.1f}) rotate(-90)">accuracy</text>'
    )
    return parts


def _legend(basis: str) -> list[str]:
    return [
        f'<line class="line" x1="{LEFT}" y1="42" x2="{LEFT + 26}" y2="42"/>'
        f'<circle class="dot" cx="{LEFT + 13}" cy="42" r="2.5"/>'
        f'<text x="{LEFT + 33}" y="46">by budget</text>',
        f'<path class="diamond" d="{_diamond_path(LEFT + 120, 42)}"/>'
        f'<text x="{LEFT + 131}" y="46">by weights (host/path)</text>',
        f'<text class="soft" text-anchor="end" x="{WIDTH - RIGHT}" y="46">{escape(basis)}</text>',
    ]


def _diamond_path(x: float, y: float) -> str:
    return f"M{x - 4.5:.1f} {y:.1f}L{x:.1f} {y - 4.5:.1f}L{x + 4.5:.1f} {y:.1f}L{x:.1f} {y + 4.5:.1f}Z"


def _diamond(x: float, y: float, point: Point) -> list[str]:
    parts = [f'<path class="diamond" d="{_diamond_path(x, y)}"><title>{_words(point)}</title></path>']
    if point.host_weight == point.path_weight:
        label = f"{point.host_weight:g}/{point.path_weight:g}"
        parts.append(f'<text class="small soft" x="{x + 7:.1f}" y="{y + 13:.1f}">{label}</text>')
    return parts


def _knee(scale: _Scale, knee: Point, budget: Sequence[Point]) -> list[str]:
    """A ring and its words: above the curve where there is free ground, else below, over whatever is there."""
    x, y = scale.x(knee.cost), scale.y(knee.accuracy)
    start = min(x + 4, WIDTH - RIGHT - LABEL)
    over = [scale.y(point.accuracy) for point in budget if start - 20 <= scale.x(point.cost) <= start + LABEL]
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
    return f"{how}{point.keys:,} keys, {_percent(point.cost)} of cost, {_percent(point.accuracy)} right"
