"""Which page carries which block: versions kept or made, numbers given out. Pure.

Invariants: a class whose files, lock and compression did not change keeps its version, so that what archives captured
before still counts; a page keeps its block of that version; a new version is newer than every version the site had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.datetimes import format_timestamp, parse_timestamp
from recollect.protection.block import Version
from recollect.protection.code import Code
from recollect.protection.collect import newest_first
from recollect.protection.keys import SigningKey

PERIODS = 8  # after this number of periods, block numbers start again: higher numbers cost more to make
_SLACK = 10  # a version is kept while the wanted need differs by less than a tenth


@dataclass(frozen=True, slots=True)
class Content:
    """What one class holds now; `content` recognises it."""

    name: str
    content: str


def content_id(key: SigningKey, archive: bytes, how: str) -> str:
    """The same files, packed and locked in the same way, have the same id; only the owner of the key can compute it."""
    return key.digest(hashlib.sha256(archive).digest() + how.encode()).hex()[:16]


def kept_version(
    known: Iterable[Version], name: str, content: str, need: int, code: Code, public: bytes
) -> Version | None:
    """The newest version of a class that still says what is wanted."""
    same = [
        v
        for v in known
        if (v.name, v.content, v.code, v.key) == (name, content, code, public)
        and abs(v.need - need) <= max(v.need, need) // _SLACK
    ]
    newest = max((v.at for v in known if v.name == name), default="")
    return next((v for v in newest_first(same) if v.at == newest), None)


def new_moment(known: Iterable[Version], now: datetime) -> str:
    """When a new version is made: now, or just after the newest version there is."""
    newest = max((v.at for v in known), default="")
    moment = format_timestamp(now)
    if newest < moment:
        return moment
    return format_timestamp(parse_timestamp(newest) + timedelta(seconds=1))


def period_of(version_at: str, now: datetime, rotate: float | None) -> int:
    """How many periods of rotation have passed since a version was made, modulo PERIODS."""
    if not rotate:
        return 0
    age = (now - parse_timestamp(version_at)).total_seconds()
    return max(0, int(age // rotate)) % PERIODS


def give_numbers(pages: Sequence[str], had: Mapping[str, int], period: int) -> dict[str, int]:
    """A number for every page: the one it had, if that belongs to the period, else the lowest that is free.

    Period p has the numbers from p times the smallest power of two that holds all pages.
    """
    stride = 1 << max(0, len(pages) - 1).bit_length()
    window = range(period * stride, (period + 1) * stride)
    taken: set[int] = set()
    numbers: dict[str, int] = {}
    for name in pages:
        number = had.get(name)
        if number is not None and number in window and number not in taken:
            numbers[name] = number
            taken.add(number)
    free = (number for number in window if number not in taken)
    for name in pages:
        if name not in numbers:
            numbers[name] = next(free)
    return numbers
