"""Quantities that people type and read: sizes in bytes, durations in seconds, shares.

The one grammar of each, for options, settings and HTTP parameters. Units of a thousand (`MB`) and of 1,024 (`MiB`) are
different; case and spaces do not matter. Whatever cannot be read raises `UsageError` with a hint.
"""

from __future__ import annotations

import math
import re

from recollect.errors import UsageError

YEAR = 365.25 * 86400
_SIZE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(?:([kmgtp]?)(i?)b?|bytes?)", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DURATION_PART = r"(\d++(?:\.\d++)?+|\.\d++)\s*+(ms|[smhdwy]|sec|min|(?:second|minute|hour|day|week|year)s?|)\s*+"
_DURATION = re.compile(rf"(?:{_DURATION_PART})+", re.IGNORECASE | re.ASCII)
_PART = re.compile(_DURATION_PART, re.IGNORECASE | re.ASCII)
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": YEAR}
_SIZE_HINT = "write it as 500000, 500kB, 64MB or 2GiB"
_DURATION_HINT = "write it as 30, 500ms, 10m, 24h, 7d, 1h30m or 2y"
_SHARE_HINT = "write it as 1% or 0.01"


def parse_size(text: str | float, *, least: int = 1) -> int:
    """Bytes of `500000`, `500 kB`, `64MB`, `1.5g`, `2GiB`."""
    match = None if isinstance(text, bool) else _SIZE.fullmatch(str(text).strip())
    if match is None or (match[3] and not match[2]):
        raise UsageError("not a size", where=repr(text), hint=_SIZE_HINT)
    size = int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[(match[2] or "").lower()])
    if size < least:
        raise UsageError("a size that is too small", where=repr(text), why=f"at least {least} is needed")
    return size


def format_size(count: float | None) -> str:
    """`1.4 GB` (powers of ten, as disks are sold)."""
    value = float(count or 0)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def parse_duration(text: str | float, *, least: float = 0.0) -> float:
    """Seconds of `30`, `1.5`, `500ms`, `10m`, `10 min`, `24h`, `7d`, `1h30m`."""
    spelled = str(text).strip()
    parts = _PART.findall(spelled) if not isinstance(text, bool) and _DURATION.fullmatch(spelled) else []
    # A number without its unit is seconds only when it stands alone: "1h30" could mean two things.
    if not parts or (len(parts) > 1 and not all(unit for _, unit in parts)):
        raise UsageError("not a duration", where=repr(text), hint=_DURATION_HINT)
    seconds = math.fsum(float(number) * _SECONDS[_unit(unit)] for number, unit in parts)
    if seconds < least:
        raise UsageError("a duration that is too short", where=repr(text), why=f"at least {least:g} s are needed")
    return seconds


def _unit(spelled: str) -> str:
    unit = spelled.lower()
    return unit if unit == "ms" else unit[:1]


def format_duration(seconds: float) -> str:
    """`under a second`, `40 s`, `12 min`, `3 h 20 min`, `2 days`, `3 years`."""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
    if seconds < 2 * YEAR:
        return f"{seconds / 86400:.0f} days"
    return f"{seconds / YEAR:.0f} years"


def parse_share(text: str | float, *, zero: bool = False) -> float:
    """`1%`, `0.5 %` or `0.01`: above 0 (or from 0 on, with `zero`) and up to 1."""
    spelled = str(text).strip()
    try:
        if isinstance(text, bool):
            raise ValueError
        share = float(spelled[:-1]) / 100 if spelled.endswith("%") else float(spelled)
    except ValueError:
        raise UsageError("not a share", where=repr(text), hint=_SHARE_HINT) from None
    if not (0 <= share <= 1) or (share == 0 and not zero):
        why = f"not {'from' if zero else 'above'} 0% and up to 100%"
        raise UsageError("not a share", where=repr(text), why=why, hint=_SHARE_HINT)
    return share


def format_percent(part: int, whole: int) -> str:
    """`63%`, rounded down: 100% is written only of the whole, and `less than 1%` where there is something."""
    share = 100 * part // whole if whole else 0
    return "less than 1%" if part and not share else f"{share}%"


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 lookup`, `1,200 lookups`, `0 entries`: a number with its noun."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
