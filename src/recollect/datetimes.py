"""Datetimes of web archives: 14 digits, RFC 1123 and ISO 8601, always aware and in UTC inside the program.

Hides: padding of short timestamps, calendar oddities in real indexes (month 00, day 31 in June, second 60),
and the two-way HTTP date. Invariant: every datetime returned is aware, in UTC, with no microseconds.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime

from recollect.errors import FormatError

_DIGITS = re.compile(r"\d{4}(?:\d\d){0,5}")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# RFC 7231 IMF-fixdate, read as archives really send it: any case, one-digit days, wrong weekday,
# GMT, UTC, +0000 or a real offset.
_HTTP = re.compile(
    r"(?:[a-z]{3,9},?\s+)?(\d{1,2})[\s-]+([a-z]{3})[a-z]*[\s-]+(\d{4}|\d{2})\s+(\d{1,2}):(\d\d)(?::(\d\d))?"
    r"\s*(gmt|utc|ut|z|[+-]\d{4})?",
    re.IGNORECASE,
)


def parse_timestamp(text: str, *, end: bool = False) -> datetime:
    """The moment of a 4 to 14 digit timestamp; a short one stands for its first moment, or its last with `end`.

    Fields out of range are moved to the nearest real moment, as archives do (20190231 is 28 February),
    because real indexes hold such captures and they must not be lost.
    """
    if not _DIGITS.fullmatch(text):
        raise FormatError("not a timestamp", where=repr(text), why="4 to 14 digits, two at a time, are needed")
    year = max(int(text[:4]), 1)
    fields = [int(text[i : i + 2]) if i < len(text) else None for i in range(4, 14, 2)]
    month = _clamp(fields[0], 1, 12, end)
    day = _clamp(fields[1], 1, monthrange(year, month)[1], end)
    hour = _clamp(fields[2], 0, 23, end)
    minute = _clamp(fields[3], 0, 59, end)
    second = _clamp(fields[4], 0, 59, end)
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _clamp(value: int | None, low: int, high: int, end: bool) -> int:
    if value is None:
        return high if end else low
    return min(max(value, low), high)


def format_timestamp(moment: datetime) -> str:
    """14 digits, in UTC."""
    m = moment.astimezone(UTC)
    return f"{m.year:04d}{m.month:02d}{m.day:02d}{m.hour:02d}{m.minute:02d}{m.second:02d}"


def parse_http_date(text: str) -> datetime:
    """An HTTP date, read tolerantly (any case, one-digit day, wrong weekday, UTC, numeric offset)."""
    match = _HTTP.fullmatch(text.strip())
    if match is None:
        raise FormatError(
            "not an HTTP date", where=repr(text[:80]), why="expected like 'Thu, 31 May 2007 20:35:00 GMT'"
        )
    day, month, year, hour, minute, second, zone = match.groups()
    try:
        month_number = _MONTHS.index(month.title()) + 1
        full_year = int(year) if len(year) == 4 else int(year) + (1900 if int(year) >= 70 else 2000)
        moment = datetime(
            full_year, month_number, int(day), int(hour), int(minute), min(int(second or 0), 59), tzinfo=UTC
        )
        if zone and zone[0] in "+-":
            moment = datetime.strptime(f"{moment:%Y-%m-%dT%H:%M:%S}{zone}", "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FormatError("not an HTTP date", where=repr(text[:80]), why=str(error)) from error
    return moment


def format_http_date(moment: datetime) -> str:
    """RFC 1123 in GMT, whatever the locale."""
    m = moment.astimezone(UTC)
    day = f"{_DAYS[m.weekday()]}, {m.day:02d} {_MONTHS[m.month - 1]} {m.year:04d}"
    return f"{day} {m.hour:02d}:{m.minute:02d}:{m.second:02d} GMT"


def parse_any(text: str) -> datetime:
    """A datetime in whatever form people type: digits, ISO 8601, or an HTTP date."""
    stripped = text.strip()
    if _DIGITS.fullmatch(stripped):
        return parse_timestamp(stripped)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        return parse_http_date(stripped)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(microsecond=0)


def format_iso(moment: datetime) -> str:
    """`2018-09-03T13:27:52Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
