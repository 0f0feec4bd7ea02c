"""Bringing equal keys together: sorted records cut at common borders and sent to the task of their range.

Hides: borders. Records (see `kernels.records`) travel as opaque blocks of about a megabyte, sorted inside, so
that Spark moves bytes and never looks at rows. Each task has summed up its own records before (one host with a tenth
of all captures is then one record per URI-R and task), and borders are chosen by the weight of samples, so that ranges
are of like size. A border lies between keys; only a key that is heavier than a range (`com)/` of an H1P0 profile) is
cut inside, between SURTs: its counts are added up afterwards (`seams`).

Border layout: a record without label, so that it is below every record of its key and rest.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.kernels.records import HEADER, first_not_below

SAMPLES = 1 << 16
_HEAD = struct.Struct("<iiiiq")
Border = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Sizes:
    """In bytes, of what the work is cut into; results are the same whatever they are."""

    split: int = 128 << 20  # of input for a task, if there is much of it
    smallest_split: int = 8 << 20
    block: int = 1 << 20  # of records that travel together
    range: int = 64 << 20  # of records for a task that writes, which are sorted in memory
    smallest_range: int = 4 << 20


def first_of(records: NDArray[np.uint8]) -> Border:
    """Key and rest of the first record of a block."""
    view = records.data
    key, rest, _, _, _ = _HEAD.unpack_from(view)
    return bytes(view[HEADER : HEADER + key]), bytes(view[HEADER + key : HEADER + key + rest])


def last_of(records: NDArray[np.uint8]) -> Border:
    """Key and rest of the last record of a block."""
    view, at, last = records.data, 0, 0
    while at < len(records):
        key, rest, label, _, _ = _HEAD.unpack_from(view, at)
        at, last = at + HEADER + key + rest + label, at
    return first_of(records[last:])


@dataclass(slots=True)
class Sample:
    """Places in the order of records, one for every N blocks; never more than `limit` places."""

    limit: int
    block: int
    every: int = 1
    places: list[Border] = field(default_factory=list)
    _seen: int = 0

    @property
    def weight(self) -> int:
        """What each place stands for."""
        return self.every * self.block

    def add(self, block: NDArray[np.uint8]) -> None:
        """Take note of a block."""
        if self._seen % self.every == 0:
            self.places.append(first_of(block))
        self._seen += 1
        if len(self.places) > self.limit:
            self.places = self.places[::2]
            self.every *= 2


def borders_of(samples: Iterable[tuple[Border, int]], ranges: int) -> list[Border]:
    """Borders between this number of ranges of similar weight, or fewer."""
    ordered = sorted(samples)
    total = sum(weight for _, weight in ordered)
    borders: list[Border] = []
    done = 0
    for place, weight in ordered:
        if done * ranges >= total * (len(borders) + 1) and len(borders) + 1 < ranges:
            # Before the key, unless the range before has begun in it already.
            border = (place[0], b"")
            if borders and border <= borders[-1]:
                border = place
            if not borders or border > borders[-1]:
                borders.append(border)
        done += weight
    return borders


def ranges_for(size: int, parallelism: int, sizes: Sizes) -> int:
    """Number of ranges for this number of bytes of records."""
    return max(1, -(-size // sizes.range), min(parallelism, -(-size // sizes.smallest_range)))


def cut(blocks: Iterable[Any], borders: Sequence[Border]) -> Iterator[tuple[int, bytes]]:
    """Each block in pieces, with the number of the range each belongs to."""
    limits = [_as_record(border) for border in borders]
    for block in blocks:
        records = np.frombuffer(bytearray(block), np.uint8)
        number = bisect_right(borders, first_of(records))
        at = 0
        while at < len(records):
            end = len(records) if number == len(limits) else first_not_below(records, at, limits[number])
            if end > at:
                yield number, records[at:end].tobytes()
            at = end
            number += 1


def _as_record(border: Border) -> bytes:
    key, rest = border
    return _HEAD.pack(len(key), len(rest), 0, 0, 0) + key + rest


def itself(number: int) -> int:
    """The partition of a range: its own number."""
    return number
