"""Sorting without limit: sorted runs in memory, spilled to disk when memory is full, merged at the end.

Hides the external merge sort. `RunStore.add` takes sorted records (see `kernels.records`); when they exceed the budget
they are merged into one run on disk; `merged` gives all records in order, equal ones summed, in pieces. Runs on disk
are plain records in unnamed temporary files, which the system deletes with the process.

Invariant: memory stays within the budget plus one piece per run that is being merged.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from recollect.errors import ResourceError
from recollect.kernels.records import DONE, FULL, Merger, whole_records

Bytes = NDArray[np.uint8]
PIECE = 4 << 20
# Buffer of a run that is read back; 1,000 runs then take 256 MB.
REFILL = 1 << 18
# Number of runs merged at once; more are merged in rounds.
FAN_IN = 512


class RunStore:
    """Sorted runs of records; use as a context manager, which removes what is on disk."""

    def __init__(self, budget: int, temp_dir: str | os.PathLike[str] | None = None, *, piece: int = PIECE) -> None:
        self._budget = budget
        self._folder = Path(temp_dir or tempfile.gettempdir())
        self._piece = piece
        self._memory: list[bytes] = []
        self._held = 0
        self._files: list[IO[bytes]] = []
        self.spilled = 0

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back memory and disk."""
        for file in self._files:
            file.close()
        self._files, self._memory, self._held = [], [], 0

    def add(self, run: bytes) -> None:
        """Take a run of sorted records."""
        if not run:
            return
        self._memory.append(run)
        self._held += len(run)
        if self._held > self._budget:
            self._spill()

    def _spill(self) -> None:
        """Merge what is in memory into one run on disk."""
        if len(self._files) >= FAN_IN:
            self._files = [self._write(self._merged(self._files, []))]
        self._files.append(self._write(self._merged([], self._memory)))
        self._memory, self._held = [], 0

    def _write(self, pieces: Iterator[Bytes]) -> IO[bytes]:
        try:
            file = tempfile.TemporaryFile(dir=self._folder, prefix="recollect-")  # noqa: SIM115 - closed by close()
            for piece in pieces:
                file.write(piece.data)
                self.spilled += piece.size
            file.flush()
        except OSError as error:
            raise ResourceError(
                "cannot sort on disk",
                where=str(self._folder),
                why=error.strerror or str(error),
                hint="name a folder with more space: --temp-dir DIR",
            ) from error
        return file

    def merged(self) -> Iterator[Bytes]:
        """All records in order, equal ones summed. Each piece is only good until the next is asked for."""
        return self._merged(self._files, self._memory)

    def _merged(self, files: list[IO[bytes]], memory: list[bytes]) -> Iterator[Bytes]:
        readers = [_FileRun(file) for file in files]
        merger = Merger(len(memory) + len(readers))
        for number, run in enumerate(memory):
            merger.feed(number, run)
        for number, reader in enumerate(readers, len(memory)):
            if len(first := reader.next()):
                merger.feed(number, first)
        out = np.empty(self._piece, np.uint8)
        while True:
            result = merger.merge(out)
            if result == DONE:
                yield out[: merger.filled]
                return
            if result == FULL:
                if settled := merger.settled():
                    yield out[:settled]
                    merger.keep_last(out)
                else:  # one record does not fit
                    out = np.concatenate([out, np.empty(len(out), np.uint8)])
                continue
            more = readers[result - len(memory)].next() if result >= len(memory) else b""
            if len(more):
                merger.feed(result, more)
            else:
                merger.end(result)


class _FileRun:
    """A run on disk: whole records are read into a buffer, again and again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._buffer = np.empty(REFILL, np.uint8)
        self._rest = b""
        self._offset = 0

    def next(self) -> Bytes:
        """The next records, good until they are asked for again; none at the end."""
        while True:
            kept = len(self._rest)
            if kept * 2 > len(self._buffer):
                self._buffer = np.empty(len(self._buffer) * 2, np.uint8)
            view = self._buffer.data
            view[:kept] = self._rest
            count = os.preadv(self._file.fileno(), [view[kept:]], self._offset)
            self._offset += count
            filled = kept + count
            whole = whole_records(self._buffer, filled)
            self._rest = bytes(view[whole:filled])
            if whole or not count:
                return self._buffer[:whole]
