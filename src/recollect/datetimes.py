"""Datetimes of web archives: 14 digits, RFC 1123 and ISO 8601, always aware and in UTC inside the program.

Hides: padding of short timestamps, calendar oddities in real indexes (month 00, day 31 in June, second 60), and HTTP
dates in all their spellings. Invariants: every datetime returned is aware, in UTC, with no microseconds; one without a
zone is taken as UTC, never as the machine's own time; whatever cannot be read raises `FormatError`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta

from recollect.errors import FormatError, UsageError

_DIGITS = re.compile(r"[0-9]{4}(?:[0-9]{2}){0,5}")
_YEAR_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
# What people type of a date: 2014, 2014-06, 20140630, 2014-06-30 12:30, 2014-06-30T12:30:00Z.
_ASKED = re.compile(
    r"(\d{4})(?:-?(\d\d)(?:-?(\d\d)(?:[T ]?(\d\d)(?::?(\d\d)(?::?(\d\d))?)?Z?)?)?)?", re.ASCII | re.IGNORECASE
)
_ASKED_HINT = "write it as 2014, 2014-06, 2014-06-30, 20140630120000 or 2014-06-30T12:00:00Z"
_LEAP_SECOND = re.compile(r"(?<=:[0-9]{2}:)60")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ZONE = r"(?:\s*(gmt|utc|ut|z|[+-]\d{2}:?\d{2}))?"
# RFC 9110 section 5.6.7 in its first two forms, read as archives really send them: any case, one-digit days, wrong
# weekday, full names of months, GMT, UTC, +0000 or a real offset.
_HTTP = re.compile(
    r"(?:[a-z]{3,9},?\s+)?(\d{1,2})[\s-]+([a-z]{3})[a-z]*[\s-]+(\d{4}|\d{2})\s+(\d{1,2}):(\d\d)(?::(\d\d))?" + _ZONE,
    re.IGNORECASE | re.ASCII,
)
# And in its third, that of asctime(3): Sun Nov  6 08:49:37 1994.
_ASCTIME = re.compile(
    r"[a-z]{3,9},?\s+([a-z]{3})[a-z]*\s+(\d{1,2})\s+(\d{1,2}):(\d\d)(?::(\d\d))?\s+(\d{4})" + _ZONE,
    re.IGNORECASE | re.ASCII,
)


def parse_timestamp(text: str, *, end: bool = False) -> datetime:
    """The moment of a 4 to 14 digit timestamp; a short one stands for its first moment, or its last with `end`.

    Fields out of range are moved to the nearest real moment, as archives do (20190231 is 28 February),
    because real indexes hold such captures and they must not be lost.
    """
    if not _DIGITS.fullmatch(text):
        raise _not("a timestamp", text, "4 to 14 digits, two at a time, are needed")
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
    m = _utc(moment)
    return f"{m.year:04d}{m.month:02d}{m.day:02d}{m.hour:02d}{m.minute:02d}{m.second:02d}"


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def parse_http_date(text: str) -> datetime:
    """An HTTP date, read tolerantly (any case, one-digit day, wrong weekday, UTC, numeric offset, asctime)."""
    stripped = text.strip()
    if match := _HTTP.fullmatch(stripped):
        day, month, year, hour, minute, second, zone = match.groups()
    elif match := _ASCTIME.fullmatch(stripped):
        month, day, hour, minute, second, year, zone = match.groups()
    else:
        raise _not("an HTTP date", text, "expected like 'Thu, 31 May 2007 20:35:00 GMT'")
    try:
        moment = datetime(
            _full_year(year), _month(month), int(day), int(hour), int(minute), min(int(second or 0), 59), tzinfo=UTC
        )
        return moment - _offset(zone)
    except (ValueError, OverflowError) as error:
        raise _not("an HTTP date", text, str(error)) from error


def _full_year(text: str) -> int:
    """Two digits are of the years 1970 to 2069, as in dates of the web."""
    year = int(text)
    return year if len(text) == 4 else year + (1900 if year >= 70 else 2000)


def _month(name: str) -> int:
    title = name.title()
    if title not in _MONTHS:
        raise ValueError(f"no month {name!r}")
    return _MONTHS.index(title) + 1


def _offset(zone: str | None) -> timedelta:
    if not zone or zone[0] not in "+-":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"no such offset {zone!r}")
    ahead = timedelta(hours=hours, minutes=minutes)
    return ahead if zone[0] == "+" else -ahead


def _not(what: str, text: str, why: str) -> FormatError:
    return FormatError(f"not {what}", where=ascii(text[:80]), why=why)


def format_http_date(moment: datetime) -> str:
    """RFC 1123 in GMT, whatever the locale."""
    m = _utc(moment)
    day = f"{_DAYS[m.weekday()]}, {m.day:02d} {_MONTHS[m.month - 1]} {m.year:04d}"
    return f"{day} {m.hour:02d}:{m.minute:02d}:{m.second:02d} GMT"


def parse_any(text: str) -> datetime:
    """A datetime in whatever form people type: digits, ISO 8601 (also `2018-09`), or an HTTP date."""
    stripped = text.strip()
    if month := _YEAR_MONTH.fullmatch(stripped):
        stripped = month[1] + month[2]
    if _DIGITS.fullmatch(stripped):
        return parse_timestamp(stripped)
    try:
        return _utc(datetime.fromisoformat(_LEAP_SECOND.sub("59", stripped))).replace(microsecond=0)
    except (ValueError, OverflowError):
        pass
    try:
        return parse_http_date(stripped)
    except FormatError:
        forms = "expected like 20070531203500, 2007-05-31T20:35:00Z or 'Thu, 31 May 2007 20:35:00 GMT'"
        raise _not("a datetime", text, forms) from None


def format_iso(moment: datetime) -> str:
    """`2018-09-03T13:27:52Z`."""
    m = _utc(moment)
    return f"{m.year:04d}-{m.month:02d}-{m.day:02d}T{m.hour:02d}:{m.minute:02d}:{m.second:02d}Z"


def parse_asked(text: str, *, end: bool = False) -> datetime:
    """The moment that a person asks for; a year, month, day or minute is its first second, or its last with `end`.

    Unlike the times of an index, a day that no calendar has is a mistake of whoever typed it: raises UsageError.
    """
    if _ASKED.fullmatch(text.strip()):
        return parse_timestamp(asked_digits(text), end=end)
    try:
        return parse_any(text)
    except FormatError as error:
        raise UsageError("not a date", where=ascii(text[:80]), hint=_ASKED_HINT) from error


def asked_digits(text: str) -> str:
    """The 4 to 14 digits of a date that a person typed: `2014-06` is `201406`; raises UsageError."""
    match = _ASKED.fullmatch(text.strip())
    if match is None:
        raise UsageError("not a date", where=ascii(text[:80]), hint=_ASKED_HINT)
    digits = "".join(part for part in match.groups() if part)
    if not format_timestamp(parse_timestamp(digits)).startswith(digits):
        raise UsageError("not a date", where=ascii(text[:80]), why="there is no such day or time", hint=_ASKED_HINT)
    return digits


def parse_or_none(text: str | None) -> datetime | None:
    """What `parse_any` makes of a text; None where there is none or it cannot be read."""
    if not text:
        return None
    try:
        return parse_any(text)
    except FormatError:
        return None


def format_day(timestamp: str | int) -> str:
    """`2018-09-03` of 14 digits."""
    digits = f"{timestamp:014d}" if isinstance(timestamp, int) else timestamp
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
