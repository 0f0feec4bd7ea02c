"""An operator's main colour for every screen: as it is where it can be read, else lighter or darker. Pure.

Hides: relative luminance and contrast (WCAG 2.2, 1.4.3). Invariant: links and buttons in the colour have a contrast of
at least 4.5 to the papers of `look.css`, light and dark, and texts on the colour to it.
"""

from __future__ import annotations

import re

_LEAST = 4.6  # a little more than 4.5: browsers round
_LIGHT, _DARK = ("#f6f3ec", "#fffdf8"), ("#17181a", "#1f2124", "#2a2c30")
_INKS = ("#ffffff", "#000000")
_HEX = re.compile(r"#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})")
Colour = tuple[int, int, int]


def accent_css(colour: str) -> str:
    """The style sheet that gives pages a main colour, written as #204060 or #246; empty for anything else."""
    if not _HEX.fullmatch(colour):
        return ""
    light, dark = readable(colour, _LIGHT, towards=0), readable(colour, _DARK, towards=255)
    return (
        f":root {{ --accent: {light}; --accent-ink: {ink_on(light)}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ --accent: {dark}; --accent-ink: {ink_on(dark)}; }} }}\n"
    )


def readable(colour: str, papers: tuple[str, ...], *, towards: int) -> str:
    """The colour, mixed with black (0) or white (255) until it can be read on all papers."""
    red, green, blue = _read(colour)
    for step in range(51):
        mixed = tuple(round(part + (towards - part) * step / 50) for part in (red, green, blue))
        shown = "#{:02x}{:02x}{:02x}".format(*mixed)
        if all(contrast(shown, paper) >= _LEAST for paper in papers):
            return shown
    raise AssertionError("black and white can be read on every paper")


def ink_on(colour: str) -> str:
    """White or black, whichever can be read better on a colour."""
    return max(_INKS, key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in _read(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _read(colour: str) -> Colour:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
