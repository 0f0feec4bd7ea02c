"""What the lines of one key hold of what a request names: a time, a language, a media type, a status.

Hides: the two places of such parts, key columns (rows are combinations) and JSON blocks (each dimension by itself).
A row of the whole (`:`, `-`) is used only where the key has no other rows. A part without a value (`?`, `-`) may have
any, so it makes a sum a lower bound, and unknown where nothing else is left. Nothing listed under a value is "none
held", unless a part is a lower bound itself (as after a merge): the rest may lie anywhere, so it is unknown. What a map
does not divide by is unknown, except times and statuses, which then count as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from recollect.errors import FormatError
from recollect.formats.frequency import UNKNOWN, VOID, Frequency, merge
from recollect.formats.ukvs import Header, lenient
from recollect.formats.ukvs.periods import Period
from recollect.formats.ukvs.records import Record

Conditions = tuple[tuple[str, str], ...]
"""Pairs of a dimension (`language`, `media_type`, `status`) and the value that is asked for."""
NAMES = {
    "datetime": ("datetime",),
    "language": ("language", "languages", "lang"),
    "media_type": ("media_type", "mime", "mimetype", "mime_type", "media-type", "type"),
    "status": ("status", "http_status", "statuscode"),
}
_AS_A_WHOLE = ("datetime", "status")
_WHOLE = (b":", b"-")
_NONE = ("?", "-", "")

Matches = Callable[[str], bool | None]
"""Whether a value is the one asked for; None if it may be."""


def held_of(records: Sequence[Record], header: Header, at: Period | None, conditions: Conditions) -> Frequency:
    """What the records of one key hold of what is asked for."""
    tests: dict[str, Matches] = {name: _test(name, value) for name, value in conditions}
    if at is not None:
        tests["datetime"] = _in_period(at)
    columns = {
        name: header.keys.index(spelled) - 1 for name in tests for spelled in NAMES[name] if spelled in header.keys[1:]
    }
    parts = [one for one in records if any(token not in _WHOLE for token in one.more_keys)]
    rest = {name: test for name, test in tests.items() if name not in columns}
    if not columns or not parts:
        whole = [one for one in records if one not in parts] or list(records)
        missing = {name: test for name, test in tests.items() if name in columns and name not in _AS_A_WHOLE}
        return _summed([_in_block(one, rest | missing) for one in whole])
    # The whole of the other columns is in each combination, so rows of combinations alone are summed.
    sure, maybe = list[Frequency](), list[Frequency]()
    for record in parts:
        found = [tests[name](record.more_keys[place].decode("utf-8", "replace")) for name, place in columns.items()]
        if False not in found:
            (maybe if None in found else sure).append(_in_block(record, rest))
    return _with_perhaps(sure, maybe)


def _with_perhaps(sure: Sequence[Frequency], maybe: Sequence[Frequency]) -> Frequency:
    perhaps = any(one.held is not False for one in maybe)
    held = [one for one in sure if one.held is not False]
    if not held:
        return UNKNOWN if perhaps else VOID
    total = reduce(merge, held)
    return merge(total, UNKNOWN) if perhaps else total


def _summed(frequencies: Sequence[Frequency]) -> Frequency:
    return reduce(merge, frequencies, VOID)


def _in_block(record: Record, tests: Mapping[str, Matches]) -> Frequency:
    """The frequency of a record that its JSON sets apart (`{"datetime": {"2014": "5/2"}}`), for each dimension."""
    if not tests or record.frequency.is_void:
        return record.frequency
    block = lenient.loads(record.json.encode("utf-8", "surrogateescape")) if record.json else {}
    found = [
        _of_dimension(block if isinstance(block, dict) else {}, name, test, record) for name, test in tests.items()
    ]
    if any(one.is_void for one in found):
        return VOID
    # What has both values is not in the block: each alone says that it may be there.
    return found[0] if len(found) == 1 else UNKNOWN if any(one != record.frequency for one in found) else found[0]


def _of_dimension(block: Mapping[str, Any], name: str, test: Matches, record: Record) -> Frequency:
    listed = next((block[spelled] for spelled in NAMES[name] if spelled in block), None)
    if isinstance(listed, str):
        listed = {listed: str(record.frequency)}
    if not isinstance(listed, dict) or not listed:
        return record.frequency if name in _AS_A_WHOLE else UNKNOWN
    sure, maybe = list[Frequency](), list[Frequency]()
    for value, part in listed.items():
        stated = part.get("frequency", "/") if isinstance(part, dict) else part
        frequency, answer = Frequency.parse(str(stated)), test(str(value))
        if answer is not False:
            (maybe if answer is None else sure).append(frequency)
        elif frequency.uri_m.bound in ("+", "~"):
            maybe.append(UNKNOWN)
    return _with_perhaps(sure, maybe)


def _in_period(at: Period) -> Matches:
    def meets(token: str) -> bool | None:
        try:
            period = Period.parse(token)
        except FormatError:
            return True  # a capture without a time counts in each
        return period.first <= at.last and at.first <= period.last

    return meets


def _test(name: str, value: str) -> Matches:
    wanted = value.strip().lower()
    if name == "status":
        pattern = re.compile(re.escape(wanted).replace("x", r"\d"))
    elif name == "media_type":
        wanted = wanted if "/" in wanted else f"{wanted}/*"
        pattern = re.compile(re.escape(wanted).replace(r"\*", "[^;]*") + r"\s*(?:;.*)?")
    else:
        pattern = re.compile(re.escape(wanted) + r"(?:[-_].*)?")

    def matches(token: str) -> bool | None:
        text = token.strip('"').lower()
        return None if text in _NONE else pattern.fullmatch(text) is not None

    return matches
