"""From batches to the lines of a map.

Hides which of two ways was taken. `SortedSink` is for input in the order of its SURTs (checked, never trusted): every
SURT is seen once, so counting runs is exact, and only the lines of the map are held. `sorting.SortingSink`
is for everything else: all SURTs go through an external sort. When the first finds disorder it raises `NotSorted`, and
the caller starts again with the second.

Sorted input still gives a few keys out of order, since cutting `?` moves `com,x)/a?q` in front of `com,x)/a/b`. Within
a batch `kernels.records` puts them right; across batches such keys are beginnings of the SURT at the border, so they
are few: they are held aside and patched into the lines when all is read.

Both give lines `key M/R`, sorted by bytes, keys unique.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.errors import NotSorted, ResourceError
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.select import Filter

# Keys out of order that a sorted input may have, before it counts as unsorted.
MAX_LATE = 1 << 20
SPOOL = 32 << 20
_Late = tuple[bytes, list[int]]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a map holds."""

    keys: int = 0
    captures: int = 0
    uri_rs: int = 0

    @property
    def known_uri_rs(self) -> int | None:
        """None where they were not counted: captures have at least one."""
        return self.uri_rs if self.uri_rs or not self.captures else None

    @property
    def gamma(self) -> float | None:
        """Captures per URI-R; None for an empty map."""
        return self.captures / self.uri_rs if self.uri_rs else None


@dataclass(slots=True)
class Result:
    """What came of one batch."""

    dropped: Counter[str]
    kept: int
    first_time: int
    last_time: int


class Sink(Protocol):
    """Takes batches (in any thread), then their results in order; after `finish` it has totals and gives the lines."""

    def work(self, batch: Batch) -> Result: ...
    def take(self, result: Result) -> None: ...
    def finish(self) -> None: ...
    def lines(self) -> Iterator[bytes]: ...
    def totals(self) -> Totals: ...
    def close(self) -> None: ...


def kept_of(batch: Batch, keep: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Captures kept, and their first and last times (0 if none has a time)."""
    kept = int(keep.sum() if batch.weights is None else batch.weights[keep].sum())
    times = batch.times[keep]
    times = times[times > 0]
    return (kept, int(times.min()), int(times.max())) if times.size else (kept, 0, 0)


@dataclass(slots=True)
class _Block(Result):
    text: bytes = b""
    keys: int = 0
    uri_rs: int = 0
    first_surt: bytes = b""
    last_surt: bytes = b""
    first_key: bytes = b""


class SortedSink:
    """Lines straight from sorted SURTs."""

    def __init__(self, chosen: Filter, temp_dir: str | os.PathLike[str] | None = None, *, spool: int = SPOOL) -> None:
        self._filter = chosen
        self._blocks = Spool(temp_dir, spool)
        self._first_keys: list[bytes] = []
        self._late: dict[bytes, list[int]] = {}
        self._last_surt = b""
        self._last_key = b""
        self._keys = self._captures = self._uri_rs = 0

    def work(self, batch: Batch) -> Result:
        keep, dropped = self._filter.apply(batch)
        captures = batch.captures(keep)
        block = _Block(dropped, *kept_of(batch, keep))
        runs = np.flatnonzero(captures)
        if runs.size == 0:
            return block
        made = batch.runs().lines(captures)
        if made is None:
            raise NotSorted("the input is not sorted by SURT")
        block.text, block.keys, block.uri_rs = made
        first = int(runs[0])
        block.first_surt, block.last_surt = batch.surt(first), batch.surt(int(runs[-1]))
        block.first_key = batch.key(first)
        return block

    def take(self, result: Result) -> None:
        assert isinstance(result, _Block)
        if not result.text:
            return
        if result.first_surt < self._last_surt:
            raise NotSorted("the input is not sorted by SURT")
        self._keys += result.keys
        self._captures += result.kept
        self._uri_rs += result.uri_rs
        if result.first_surt == self._last_surt:
            # One SURT on both sides of the border has been counted twice.
            self._add_late(result.first_key, 0, -1)
            self._uri_rs -= 1
        text = self._set_aside(result.text)
        self._last_surt = result.last_surt
        if text:
            self._blocks.add(text)
            self._first_keys.append(text[: text.index(b" ")])
            self._last_key = text[text.rfind(b"\n", 0, -1) + 1 : text.rfind(b" ")]

    def _set_aside(self, text: bytes) -> bytes:
        """Keys at the start of a block that are not above all before go aside; returns the rest of the block."""
        at = 0
        while at < len(text):
            space = text.index(b" ", at)
            key = text[at:space]
            if key > self._last_key:
                break
            end = text.index(b"\n", space)
            m, _, r = text[space + 1 : end].partition(b"/")
            self._add_late(key, int(m), int(r))
            self._keys -= 1
            at = end + 1
        return text[at:] if at else text

    def _add_late(self, key: bytes, m: int, r: int) -> None:
        counts = self._late.setdefault(key, [0, 0])
        counts[0] += m
        counts[1] += r
        if len(self._late) > MAX_LATE:
            raise NotSorted("the input is not sorted by SURT")

    def finish(self) -> None:
        for text, late in self._with_late():
            done = 0
            for key, _ in late:
                done, found = _line_of(text, key, done)
                self._keys += not found

    def lines(self) -> Iterator[bytes]:
        for text, late in self._with_late():
            yield _patched(text, late) if late else text

    def _with_late(self) -> Iterator[tuple[bytes, list[_Late]]]:
        """Each block, with the late keys that belong in it."""
        late = sorted(self._late.items())
        at = 0
        for number, text in enumerate(self._blocks):
            end = len(late)
            if number + 1 < len(self._first_keys):
                end = bisect_left(late, self._first_keys[number + 1], key=lambda item: item[0])
            yield text, late[at:end]
            at = end

    def totals(self) -> Totals:
        return Totals(self._keys, self._captures, self._uri_rs)

    def close(self) -> None:
        self._blocks.close()


def _patched(text: bytes, late: list[_Late]) -> bytes:
    """A block with late keys put in, in order."""
    parts = []
    done = 0
    for key, (m, r) in late:
        at, found = _line_of(text, key, done)
        end = at
        if found:
            end = text.index(b"\n", at) + 1
            old_m, _, old_r = text[at + len(key) + 1 : end - 1].partition(b"/")
            m, r = m + int(old_m), r + int(old_r)
        parts += [text[done:at], b"%b %d/%d\n" % (key, m, r)]
        done = end
    parts.append(text[done:])
    return b"".join(parts)


def _line_of(text: bytes, key: bytes, low: int) -> tuple[int, bool]:
    """Where the line of a key is or would be in sorted lines from `low` (a line's start) on; whether it is there."""
    high = len(text)
    while low < high:
        middle = text.rfind(b"\n", low, (low + high) // 2) + 1 or low
        here = text[middle : text.index(b" ", middle)]
        if here == key:
            return middle, True
        if here < key:
            low = text.index(b"\n", middle) + 1
        else:
            high = middle
    return low, False


class Spool:
    """Pieces of text, in memory up to a limit and beyond it in an unnamed temporary file; may be read many times."""

    def __init__(self, temp_dir: str | os.PathLike[str] | None = None, limit: int = SPOOL) -> None:
        self._folder = Path(temp_dir or tempfile.gettempdir())
        self._limit = limit
        self._memory: list[bytes] = []
        self._held = 0
        self._file: IO[bytes] | None = None
        self._lengths: list[int] = []

    def add(self, text: bytes) -> None:
        """Keep one more piece."""
        self._lengths.append(len(text))
        if self._file is None and self._held + len(text) <= self._limit:
            self._memory.append(text)
            self._held += len(text)
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, prefix="recollect-")  # noqa: SIM115
            self._file.write(text)
        except OSError as error:
            raise ResourceError(
                "no disk space for the map",
                where=str(self._folder),
                why=error.strerror or str(error),
                hint="name a folder with more space: --temp-dir DIR",
            ) from error

    def __iter__(self) -> Iterator[bytes]:
        yield from self._memory
        if self._file is not None:
            self._file.seek(0)
            for length in self._lengths[len(self._memory) :]:
                yield self._file.read(length)

    def close(self) -> None:
        """Give back memory and disk."""
        self._memory, self._lengths = [], []
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
