"""Several sorted maps side by side, a stretch of keys at a time: the lines of all maps below a common key.

Hides: pieces of files. Memory is a window per map. No key is in two stretches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.formats.ukvs import MapFile, Record

_WORD = re.compile(rb"\S+")


class Stretch(NamedTuple):
    """Lines of a map: whole, sorted, and the number of the first."""

    opened: MapFile
    text: bytes
    line: int

    def records(self) -> Iterator[Record]:
        """Read the lines one by one; unreadable ones are reported."""
        return self.opened.records_of(self.text, self.line)


class _Window:
    """The lines of a map that have been read and not handed out."""

    def __init__(self, opened: MapFile) -> None:
        self._opened = opened
        self._pieces = opened.pieces()
        self._line = opened.line
        self._text = b""
        self.ended = False

    def fill(self, size: int) -> None:
        """Have at least `size` bytes, if there are as many."""
        parts, held = [self._text], len(self._text)
        while held < size and not self.ended:
            piece = next(self._pieces, b"")
            self.ended = not piece
            parts.append(piece)
            held += len(piece)
        self._text = b"".join(parts)

    def last_key(self) -> bytes:
        """The key of the last line."""
        end = len(self._text)
        while end:
            start = self._text.rfind(b"\n", 0, end - 1) + 1
            if found := _WORD.search(self._text, start, end):
                return found[0]
            end = start
        return b""

    def take(self, below: bytes | None) -> Stretch:
        """Hand out the lines whose keys are below a key, or all."""
        cut = len(self._text) if below is None else _first_not_below(self._text, below)
        taken = Stretch(self._opened, self._text[:cut], self._line)
        self._text = self._text[cut:]
        self._line += taken.text.count(b"\n")
        return taken


def stretches(maps: Sequence[MapFile], size: int) -> Iterator[list[Stretch]]:
    """The maps from their first key to their last, in stretches of about `size` bytes for each map."""
    windows = [_Window(opened) for opened in maps]
    size = max(size, 1)
    wanted = size
    while True:
        for window in windows:
            window.fill(wanted)
        going_on = [window.last_key() for window in windows if not window.ended]
        # What follows in a map that goes on may have its last key again, and nothing below.
        below = min(going_on) if going_on else None
        taken = [window.take(below) for window in windows]
        if any(stretch.text for stretch in taken):
            yield taken
        elif not going_on:
            return
        # If nothing was taken, one key fills a window.
        wanted = size if any(stretch.text for stretch in taken) else 4 * wanted


def _first_not_below(text: bytes, key: bytes) -> int:
    """Where the first line begins whose key is not below `key`."""
    low, high = 0, len(text)
    while low < high:
        start = text.rfind(b"\n", low, (low + high) // 2) + 1 or low
        found = _WORD.search(text, start, high)
        if found is None or found[0] >= key:
            high = start
        else:
            low = text.find(b"\n", found.end()) + 1 or len(text)
    return low
