"""The reconstruction diagram (dissertation, figure 37): a disc that shows a reconstruction at a glance.

The core is the lost site: light for identical, dark for changed, with a hole as large as the share that is missing;
the crust around it is what was added. Areas are to scale: the hole's area is to the core's as missing is to |L|, the
dark sector's angle is the changed share of what was recovered, and the crust's area is to the recovered part as added
is to the rest of R.
"""

from __future__ import annotations

import math
from html import escape

from recollect.recovery.measure import Difference

_CORE = 80.0


def diagram_svg(difference: Difference, *, title: str = "", size: int = 240) -> str:
    """A self-contained SVG; colours work on light and dark ground, and in print."""
    hole = _CORE * math.sqrt(difference.missing)
    recovered = 1.0 - difference.missing
    changed = min(difference.changed / recovered, 1.0) if recovered > 0 else 0.0
    body_area = _CORE**2 - hole**2
    added = difference.added
    # added/|R| = crust / (crust + body); a site that has only additions gets a full crust.
    crust_area = body_area * added / (1 - added) if added < 1 else _CORE**2
    crust = min(math.sqrt(_CORE**2 + crust_area), 118.0) if added > 0 else _CORE
    words = f"changed {difference.changed:.1%}, missing {difference.missing:.1%}, added {difference.added:.1%}"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-120 -120 240 240" role="img" '
        f'width="{size}" height="{size}">',
        f"<title>{escape(title + ': ' if title else '')}{words}</title>",
    ]
    if crust > _CORE:
        parts.append(f'<path fill="#f0b429" fill-rule="evenodd" d="{_ring(_CORE, crust)}"/>')
    if body_area > 1e-9:
        parts.append(f'<path fill="#9ecae1" fill-rule="evenodd" d="{_ring(hole, _CORE)}"/>')
    if changed > 0:
        parts.append(f'<path fill="#2b6ca3" fill-rule="evenodd" d="{_sector(hole, _CORE, changed)}"/>')
    parts.append(f'<circle r="{_CORE:g}" fill="none" stroke="#777" stroke-dasharray="3 3"/>')
    parts.append("</svg>")
    return "".join(parts)


def _ring(inner: float, outer: float) -> str:
    def circle(r: float) -> str:
        return f"M{r:.2f} 0A{r:.2f} {r:.2f} 0 1 1 {-r:.2f} 0A{r:.2f} {r:.2f} 0 1 1 {r:.2f} 0Z"

    return circle(outer) + (circle(inner) if inner > 0 else "")


def _sector(inner: float, outer: float, share: float) -> str:
    if share >= 0.9999:
        return _ring(inner, outer)
    angle = 2 * math.pi * share
    large = 1 if share > 0.5 else 0

    def point(radius: float, at: float) -> str:
        return f"{radius * math.sin(at):.2f} {-radius * math.cos(at):.2f}"

    return (
        f"M{point(outer, 0)}A{outer:.2f} {outer:.2f} 0 {large} 1 {point(outer, angle)}"
        f"L{point(inner, angle)}A{inner:.2f} {inner:.2f} 0 {large} 0 {point(inner, 0)}Z"
    )
