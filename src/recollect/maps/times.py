"""How far from a datetime the captures of a key lie, by a map with periods.

Hides: where a map has them: in a column (`profile --by year --by-columns`), or in the JSON block of a line
(`{"datetime": {"2005": "1/1"}}`). A map lists all captures, so the nearest of its periods is a lower bound of the
distance. A line without periods, or with one that cannot be read, may hold captures of any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from recollect.datetimes import format_timestamp, parse_timestamp
from recollect.errors import FormatError
from recollect.formats.ukvs import Header, Period, Record, lenient
from recollect.formats.ukvs.records import parse_line
from recollect.maps.maptext import MapText


def seconds_away(text: MapText, keys: Sequence[bytes], at: datetime) -> float | None:
    """Seconds between `at` and the nearest period with captures of the keys; None if the map has no times."""
    records: list[Record] = []
    for key in keys:
        found = text.find(key)
        if found is not None:
            records += [parse_line(line, text.header) for line in found[1]]
    return nearest(periods_of(records, text.header), at)


def nearest(periods: Iterable[Period | None], at: datetime) -> float | None:
    """Seconds between `at` and the nearest of some periods; None if there are none, or one is unknown."""
    best: float | None = None
    digits = format_timestamp(at)
    for period in periods:
        if period is None:
            return None
        away = _away(period, digits, at)
        best = away if best is None else min(best, away)
    return best


def _away(period: Period, digits: str, at: datetime) -> float:
    if digits < period.first:
        return (parse_timestamp(period.first) - at).total_seconds()
    if digits > period.last:
        return max(0.0, (at - parse_timestamp(period.last, end=True)).total_seconds())
    return 0.0


def periods_of(records: Sequence[Record], header: Header) -> Iterator[Period | None]:
    """The periods in which the records of one key hold captures; None for one that is unknown."""
    column = header.keys.index("datetime") - 1 if "datetime" in header.keys[1:] else None
    held = [record for record in records if not record.frequency.is_void]
    if column is not None:
        parts = [record for record in held if record.more_keys[column] != b":"]
        for record in parts:
            yield _period(record.more_keys[column])
        if not parts and held:
            yield None
        return
    for record in held:
        yield from _in_block(record)


def _in_block(record: Record) -> Iterator[Period | None]:
    block = lenient.loads(record.json.encode("utf-8", "surrogateescape")) if record.json else None
    stated = block.get("datetime") if isinstance(block, dict) else None
    if isinstance(stated, str):
        yield _period(stated)
    elif isinstance(stated, dict) and stated:
        for token in stated:
            yield _period(str(token))
    else:
        yield None


def _period(token: str | bytes) -> Period | None:
    try:
        return Period.parse(token)
    except FormatError:
        return None
