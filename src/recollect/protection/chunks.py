"""What changed in files that cannot be read again: a list of the chunks of an archive, and a delta made with it.

A version that is encrypted for recipients cannot be opened by the machine that protects the site. To carry only what
changed, that machine keeps, in the pages themselves, a list of the version's chunks: length and keyed digest of each.
The newest archive is cut in the same way; chunks that are in the list are named by their place in the version, all
others are carried. Cutting depends on content (the last 32 bytes decide), so an inserted line moves no other boundary.

Hides: where chunks end, and the form of the list. Pure. Invariant: `splice(base, *delta(list_chunks(base), newest))` is
`newest`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.errors import FormatError

SUFFIX = "-chunks"
_MARK = b"recollect-chunks-1\n"
_ENTRY = struct.Struct(">I12s")
_DIGEST = 12
_LEAST_AVERAGE, _MOST_AVERAGE = 1 << 11, 1 << 16
_CHUNKS = 4096  # that an archive is cut into, about, while the average allows it
_WINDOW = 32  # bytes that decide about a boundary
_PIECE = 1 << 17
_GEAR = np.frombuffer(hashlib.shake_256(b"recollect chunks").digest(1024), dtype="<u4")

Digest = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of an archive, in order: (length, digest)."""

    average: int
    entries: tuple[tuple[int, bytes], ...]

    def to_bytes(self) -> bytes:
        return _MARK + struct.pack(">I", self.average) + b"".join(_ENTRY.pack(*entry) for entry in self.entries)

    @classmethod
    def from_bytes(cls, data: bytes) -> Chunks:
        head = len(_MARK) + 4
        if not data.startswith(_MARK) or len(data) < head or (len(data) - head) % _ENTRY.size:
            raise FormatError("not a list of chunks")
        (average,) = struct.unpack_from(">I", data, len(_MARK))
        if not _LEAST_AVERAGE <= average <= _MOST_AVERAGE or average & (average - 1):
            raise FormatError("not a list of chunks", why=f"an average of {average}")
        return cls(average, tuple(_ENTRY.iter_unpack(data[head:])))


@dataclass(frozen=True, slots=True)
class Delta:
    """How an archive is put together: ranges of the version (offset, length), or of `literals` where offset is -1."""

    ranges: tuple[tuple[int, int], ...]
    literals: bytes


def chunks_class(name: str) -> str:
    """The class that carries the list of chunks of a class."""
    return name + SUFFIX


def is_chunks_class(name: str) -> bool:
    return name.endswith(SUFFIX)


def list_chunks(archive: bytes, digest: Digest) -> Chunks:
    """The chunks of an archive; `digest` is keyed, so that only its owner recognises content."""
    average = _LEAST_AVERAGE
    while average < _MOST_AVERAGE and average * _CHUNKS < len(archive):
        average *= 2
    return Chunks(average, _entries(archive, average, digest))


def delta(known: Chunks, newest: bytes, digest: Digest) -> Delta:
    """The newest archive in terms of a version of which only the list of chunks is known."""
    places: dict[tuple[int, bytes], int] = {}
    offset = 0
    for entry in known.entries:
        places.setdefault(entry, offset)
        offset += entry[0]
    ranges: list[tuple[int, int]] = []
    literals: list[bytes] = []
    at = 0
    for entry in _entries(newest, known.average, digest):
        length, place = entry[0], places.get(entry, -1)
        last = ranges[-1] if ranges else None
        if last is not None and (last[0] == place == -1 or (place >= 0 and last[0] >= 0 and sum(last) == place)):
            ranges[-1] = (last[0], last[1] + length)
        else:
            ranges.append((place, length))
        if place < 0:
            literals.append(newest[at : at + length])
        at += length
    return Delta(tuple(ranges), b"".join(literals))


def splice(base: bytes, change: Delta, most: int) -> bytes:
    """The archive that a delta leads to; raises FormatError for one that does not fit, or leads to more than `most`."""
    if sum(length for _, length in change.ranges) > most:
        raise FormatError("the changes lead to more than allowed")
    pieces, taken = [], 0
    for offset, length in change.ranges:
        source, start = (change.literals, taken) if offset == -1 else (base, offset)
        if length < 0 or start < 0 or start + length > len(source):
            raise FormatError("the changes do not fit their version")
        pieces.append(source[start : start + length])
        taken += length if offset == -1 else 0
    return b"".join(pieces)


def _entries(data: bytes, average: int, digest: Digest) -> tuple[tuple[int, bytes], ...]:
    entries, at = [], 0
    for end in _ends(data, average):
        entries.append((end - at, digest(data[at:end])[:_DIGEST]))
        at = end
    return tuple(entries)


def _ends(data: bytes, average: int) -> Sequence[int]:
    """Where chunks end: of a quarter to four times the average length."""
    least, most = average // 4, average * 4
    ends: list[int] = []
    last = 0
    for candidate in (*_candidates(data, average), len(data)):
        while candidate - last > most:
            last += most
            ends.append(last)
        if candidate - last >= least or (candidate == len(data) and candidate > last):
            ends.append(candidate)
            last = candidate
    return ends


def _candidates(data: bytes, average: int) -> list[int]:
    """Places behind which the bytes before them make a boundary: where a rolling sum of theirs has zeros."""
    shift = np.uint32(32 - (average.bit_length() - 1))
    found: list[int] = []
    for start in range(0, len(data), _PIECE):
        begin = max(0, start - _WINDOW + 1)
        sums = _GEAR[np.frombuffer(data, dtype=np.uint8, count=min(start + _PIECE, len(data)) - begin, offset=begin)]
        width = 1
        while width < _WINDOW:  # sums of twice as many bytes from two sums, each time
            sums[width:] += sums[:-width] << np.uint32(width)
            width *= 2
        places = np.nonzero((sums >> shift) == 0)[0] + begin + 1
        found += [int(place) for place in places if place > start]
    return found
