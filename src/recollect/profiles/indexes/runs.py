"""Sorting without limit: sorted runs in memory, spilled to disk when memory is full, merged at the end.

Hides the external merge sort. `RunStore.add` takes sorted records (see `mergekernels`); when they exceed the budget
they are merged into one run on disk; `merged` gives all records in order, equal ones summed, in pieces. Runs on disk
are plain records in unnamed temporary files, which vanish with the process whatever happens.

Invariant: memory stays within the budget plus one piece per run that is being merged.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import ResourceError
from recollect.profiles.indexes import mergekernels as kernels

Bytes = NDArray[np.uint8]
PIECE = 4 << 20
# Room for a run that is read back; 1,000 runs then take 256 MB.
REFILL = 1 << 18
# So many runs are merged at once; more are merged in rounds.
FAN_IN = 512


class RunStore:
    """Sorted runs of records; use as a context manager, which removes what is on disk."""

    def __init__(self, budget: int, temp_dir: str | os.PathLike[str] | None = None, *, piece: int = PIECE) -> None:
        self._budget = budget
        self._folder = Path(temp_dir or tempfile.gettempdir())
        self._piece = piece
        self._memory: list[Bytes] = []
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

    def add(self, run: Bytes) -> None:
        """Take a run of sorted records."""
        if run.size == 0:
            return
        self._memory.append(run)
        self._held += run.size
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
                hint="name a folder with more room: --temp-dir DIR",
            ) from error
        return file

    def merged(self) -> Iterator[Bytes]:
        """All records in order, equal ones summed. Each piece is only good until the next is asked for."""
        return self._merged(self._files, self._memory)

    def _merged(self, files: list[IO[bytes]], memory: list[Bytes]) -> Iterator[Bytes]:
        readers = [_Run(run) for run in memory] + [_FileRun(file) for file in files]
        readers = [reader for reader in readers if reader.fill()]
        heads = np.array([reader.head for reader in readers], np.uintp)
        ends = np.array([reader.end for reader in readers], np.uintp)
        heap = np.arange(len(readers), dtype=np.int64)
        state = np.array([len(readers), 0, -1], np.int64)
        out = np.empty(self._piece, np.uint8)
        kernels.heapify(heads, heap, state)
        while True:
            result = int(kernels.merge(heads, ends, heap, state, out))
            if result == kernels.DONE:
                yield out[: state[1]]
                return
            if result == kernels.FULL:
                # The last record may still grow, so it stays.
                last, to = int(state[2]), int(state[1])
                if last > 0:
                    yield out[:last]
                    out[: to - last] = out[last:to].copy()
                    state[1], state[2] = to - last, 0
                else:
                    out = np.concatenate([out, np.empty(len(out), np.uint8)])
                continue
            if readers[result].fill():
                heads[result], ends[result] = readers[result].head, readers[result].end
            else:
                state[0] -= 1
                heap[0] = heap[state[0]]
            kernels.heapify(heads, heap, state)


class _Run:
    """A run in memory: read once."""

    def __init__(self, records: Bytes) -> None:
        self._records: Bytes | None = records

    def fill(self) -> bool:
        """Make the next records available from `head` to `end`; False when there are none."""
        if self._records is None:
            return False
        self._kept = self._records
        self._records = None
        self.head = self._kept.ctypes.data
        self.end = self.head + self._kept.size
        return True


class _FileRun(_Run):
    """A run on disk: whole records are read into a buffer, again and again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._buffer = np.empty(REFILL, np.uint8)
        self._rest: Any = b""
        self._offset = 0

    def fill(self) -> bool:
        kept = len(self._rest)
        if kept * 2 > len(self._buffer):
            self._buffer = np.empty(len(self._buffer) * 2, np.uint8)
        view = self._buffer.data
        view[:kept] = self._rest
        count = os.preadv(self._file.fileno(), [view[kept:]], self._offset)
        self._offset += count
        filled = kept + count
        whole = int(kernels.whole_records(self._buffer, filled))
        if whole == 0 and count > 0:
            self._rest = bytes(view[:filled])
            return self.fill()
        self._rest = bytes(view[whole:filled])
        self.head = self._buffer.ctypes.data
        self.end = self.head + whole
        return whole > 0
