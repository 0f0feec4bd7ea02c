"""Lookup of partial keys (`com,example)/2009/*`, `pt,roda,*`): does a map hold anything below them?

Hides: the ranges of a subtree. (Partial-key lookup: Alam et al. 2016, section 4.) A line that holds something at or
below the wildcard is a yes, as is the wildcard itself or a wider one, unless a nearer one is a void. Otherwise it is a
no, as far as the map's scope goes. The frequency is that of the wildcard's own line, else the sum of the lines below
it: a lower bound where wildcards are among them, or many.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice

from recollect.errors import BadURI
from recollect.formats.frequency import UNKNOWN, VOID, Frequency
from recollect.formats.ukvs import Header
from recollect.formats.ukvs.periods import Period
from recollect.formats.ukvs.records import parse_line
from recollect.maps.columnquery import Conditions, held_of
from recollect.maps.maptext import MapText
from recollect.uris.keys import ancestors, uri_key

MOST_LINES = 1 << 16


def partial_key(text: str) -> bytes | None:
    """The wildcard that a text is, in normal form; None if it is a URI or a whole key."""
    raw = text.strip().encode("utf-8", "surrogateescape")
    if raw == b"*":
        return raw
    if (raw.endswith(b",*") and b")" not in raw and b"://" not in raw and b"/" not in raw) or (
        raw.endswith(b"/*") and b")" in raw and b"?" not in raw
    ):
        stem = raw[:-2]
    else:
        return None
    try:
        key = uri_key(stem if b")" in stem else stem + b")/")
    except BadURI:
        return None
    if b")" not in stem:
        return key[:-2] + b",*"
    return key + b"*" if key.endswith(b")/") else key + b"/*"


def find_below(
    text: MapText, header: Header, wildcard: bytes, at: Period | None, conditions: Conditions
) -> tuple[bytes, Frequency] | None:
    """The deciding key and what is held below a wildcard; None if no line says anything of it."""
    own = _frequency_of(text, header, wildcard, at, conditions)
    if own is not None and own.held:
        return wildcard, own
    total, first, lines = VOID, b"", 0
    for key, frequency in islice(_below(text, header, wildcard, at, conditions), MOST_LINES + 1):
        lines += 1
        if frequency.held is False or key == wildcard:
            continue
        first = first or key
        if key.endswith(b"*") or lines > MOST_LINES:
            total = total + (frequency if total.is_void else UNKNOWN)
        else:
            total = total + frequency
    if first:
        return first, total
    if own is not None:
        return wildcard, own
    for above in ancestors(wildcard):
        frequency_above = _frequency_of(text, header, above, at, conditions)
        if frequency_above is not None:
            return above, frequency_above
    return None


def _frequency_of(
    text: MapText, header: Header, key: bytes, at: Period | None, conditions: Conditions
) -> Frequency | None:
    lines = [line for line in text.lines_under(key) if line.split(None, 1)[0] == key]
    return held_of([parse_line(line, header) for line in lines], header, at, conditions) if lines else None


def _below(
    text: MapText, header: Header, wildcard: bytes, at: Period | None, conditions: Conditions
) -> Iterator[tuple[bytes, Frequency]]:
    for start, exact in _ranges(wildcard):
        lines = text.lines_under(start)
        rows = groupby(lines, key=lambda line: line.split(None, 1)[0])
        for key, same in rows:
            if not exact or key in (start, start + b"/"):
                yield key, held_of([parse_line(line, header) for line in same], header, at, conditions)
            elif key > start + b"/":
                break


def _ranges(wildcard: bytes) -> list[tuple[bytes, bool]]:
    """Beginnings of keys at or below a wildcard, and whether only that very key is meant."""
    if wildcard == b"*":
        return [(b"", False)]
    stem = wildcard[:-2]
    if b")" not in wildcard:
        return [(stem + b")", False), (stem + b",", False), (stem + b":", False)]
    if stem.endswith(b")"):
        return [(stem + b"/", False)]
    return [(stem, True), (stem + b"/", False), (stem + b"?", False)]
