"""Sorting lines of any number: sorted runs in unnamed temporary files, merged when read; again as often as wanted.

Hides the external sort of maps and of what merging learns about them (`runs` sorts the records of an index). Order is
that of bytes. Memory: `budget` bytes of lines, and one buffer per run.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, cast

from recollect.errors import ResourceError

BUDGET = 64 << 20
# What Python needs to hold a short line beside its bytes.
_OVERHEAD = 64
# Files open at once; more runs are merged into one first.
_FAN_IN = 128


class LineSorter:
    """Takes lines (without newlines) in any order and gives them sorted; use as a context manager."""

    def __init__(self, temp_dir: str | os.PathLike[str] | None = None, *, budget: int = BUDGET) -> None:
        self._folder = temp_dir
        self._budget = budget
        self._lines: list[bytes] = []
        self._size = 0
        self._sorted = True
        self._runs: list[BinaryIO] = []

    def __enter__(self) -> LineSorter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for run in self._runs:
            run.close()
        self._runs.clear()
        self._lines.clear()

    def __bool__(self) -> bool:
        return bool(self._lines or self._runs)

    def add(self, line: bytes) -> None:
        """Take one line."""
        self._lines.append(line)
        self._sorted = False
        self._size += len(line) + _OVERHEAD
        if self._size > self._budget:
            self._spill()

    def __iter__(self) -> Iterator[bytes]:
        """All lines in order. Nothing may be added meanwhile; only one such iterator is in use at a time."""
        self._sort()
        if not self._runs:
            return iter(self._lines)
        return heapq.merge(*(_lines_of(run) for run in self._runs), self._lines)

    def _sort(self) -> None:
        if not self._sorted:
            self._lines.sort()
            self._sorted = True

    def _spill(self) -> None:
        self._sort()
        run = self._written(self._lines)
        self._lines.clear()
        self._size = 0
        self._runs.append(run)
        if len(self._runs) >= _FAN_IN:
            whole = self._written(heapq.merge(*(_lines_of(run) for run in self._runs)))
            for run in self._runs:
                run.close()
            self._runs = [whole]

    def _written(self, lines: Iterable[bytes]) -> BinaryIO:
        run = cast(BinaryIO, tempfile.TemporaryFile(dir=self._folder, buffering=1 << 18))  # noqa: SIM115
        try:
            run.writelines(line + b"\n" for line in lines)
            run.flush()
        except OSError as error:
            run.close()
            raise ResourceError(
                "cannot sort",
                where=str(self._folder or tempfile.gettempdir()),
                why=error.strerror or str(error),
                hint="name a folder with more space: --temp-dir DIR",
            ) from error
        return run


def _lines_of(run: BinaryIO) -> Iterator[bytes]:
    run.seek(0)
    for line in run:
        yield line[:-1]
