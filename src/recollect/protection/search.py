"""Looking for shapes in long text, quickly and piece by piece.

Hides: how places are found at which a shape may begin. A shape names the texts (stems) of which each match has one at a
known place. All stems of all shapes are looked for at once: the first three bytes of each are marked in a table, and
NumPy looks every three bytes of a piece up in it. Only there are expressions tried: a dump of 100 MB is searched in the
time of reading it twice, where 60 searches by expression took minutes. Memory is that of a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

PIECE = 1 << 18
AHEAD = 1 << 13  # bytes behind a place that an expression may need
BACK = 1 << 12  # and before it
_BITS = 18
_FACTOR = np.uint32(0x9E3779B1)

Kind = TypeVar("Kind")
Test = Callable[[bytes, int], bool]


@dataclass(frozen=True, slots=True)
class Shape(Generic[Kind]):
    """Something to find: `test(text, place)` is asked where one of the stems, in small letters, begins."""

    kind: Kind
    stems: tuple[bytes, ...]
    test: Test


@dataclass(slots=True)
class Places:
    """Where a kind was found: the line of the first place, and how many there are."""

    line: int
    times: int = 0


@dataclass(slots=True)
class Search(Generic[Kind]):
    """Shapes, ready to be looked for in any number of texts."""

    shapes: Sequence[Shape[Kind]]
    _table: np.ndarray = field(init=False, repr=False)
    _by_start: dict[bytes, list[tuple[bytes, Shape[Kind]]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._table = np.zeros(1 << _BITS, dtype=np.bool_)
        self._by_start = {}
        for shape in self.shapes:
            for stem in shape.stems:
                if len(stem) < 3 or stem != stem.lower():
                    raise ValueError(f"not a stem: {stem!r}")
                self._by_start.setdefault(stem[:3], []).append((stem, shape))
        for start in self._by_start:
            self._table[_hashes(start)] = True

    def find(self, pieces: Iterable[bytes]) -> dict[Kind, Places]:
        """What the shapes match in a text that comes in pieces."""
        found: dict[Kind, Places] = {}
        lines = 0
        for text, start, end in _windows(pieces):
            for place, shape in self._matches(text, start, end):
                known = found.get(shape.kind)
                if known is None:
                    known = found[shape.kind] = Places(lines + text.count(b"\n", 0, place) + 1)
                known.times += 1
            lines += text.count(b"\n", 0, max(0, end - BACK))
        return found

    def _matches(self, text: bytes, start: int, end: int) -> Iterator[tuple[int, Shape[Kind]]]:
        lower = text.lower()
        for place in np.nonzero(self._table[_hashes(lower[start : end + 2])])[0].tolist():
            at = start + place
            for stem, shape in self._by_start.get(lower[at : at + 3], ()):
                if lower.startswith(stem, at) and shape.test(text, at):
                    yield at, shape


def _hashes(text: bytes) -> np.ndarray:
    """A number below 2^18 for each three bytes of a text that follow each other."""
    values = np.frombuffer(text, dtype=np.uint8).astype(np.uint32)
    if len(values) < 3:
        return np.zeros(0, dtype=np.uint32)
    joined = values[2:] << np.uint32(8)
    joined |= values[1:-1]
    joined <<= np.uint32(8)
    joined |= values[:-2]
    joined *= _FACTOR
    joined >>= np.uint32(32 - _BITS)
    return joined


def _windows(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """(text, start, end): every place of the whole is in one range from start to end, with text on both sides of it."""
    text, start = b"", 0
    for piece in _in_pieces(pieces):
        text += piece
        end = len(text) - AHEAD
        if end > start:
            yield text, start, end
            cut = max(0, end - BACK)
            text, start = text[cut:], end - cut
    yield text, start, len(text)


def _in_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for at in range(0, len(piece), PIECE):
            yield piece[at : at + PIECE]
