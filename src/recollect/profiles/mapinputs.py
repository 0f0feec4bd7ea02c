"""Maps that are read more than once, key by key: sorted first if they are not, spooled if they come from a pipe.

Hides: passes, the external sort, and that stdin cannot be read again. Law 5: the order of a map is checked, never
trusted.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter, le
from pathlib import Path
from typing import BinaryIO

from recollect.errors import FormatError
from recollect.formats.containers import OnProblem
from recollect.formats.ukvs import Header, Record, open_map
from recollect.formats.ukvs.records import parse_line, shown
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.linesort import LineSorter

REPORT_EVERY = 1 << 14
_FIRST_WORD = re.compile(rb"^[ \t\r]*(\S+)", re.MULTILINE)
_WILDCARD = re.compile(rb"\*[ \t]")
_SURT_COLUMNS = frozenset(("surt", "surt_uri"))

Found = tuple[bytes, int, list[Record]]


class MapInput:
    """A map that is read several times, sorted first if it is not."""

    def __init__(self, path: str, index: int, temp_dir: str | None) -> None:
        self.index = index
        self.label = "<stdin>" if path == "-" else path
        self.header = Header()
        self.has_wildcards = False
        self.sorter: LineSorter | None = None
        self.size: int | None = None
        self.consumed = 0
        self._path = path
        self._temp_dir = temp_dir
        self._stack = ExitStack()

    def __enter__(self) -> MapInput:
        if self._path == "-":
            self._spool(sys.stdin.buffer)
        elif not Path(self._path).is_file() and not Path(self._path).is_dir():
            with Path(self._path).open("rb") as pipe:
                self._spool(pipe)
        self.size = Path(self._path).stat().st_size
        return self

    def _spool(self, pipe: BinaryIO) -> None:
        """Keep what can be read once only."""
        spool = tempfile.NamedTemporaryFile(dir=self._temp_dir, prefix="recollect-")  # noqa: SIM115
        self._stack.callback(spool.close)
        shutil.copyfileobj(pipe, spool)
        spool.flush()
        self._path = spool.name

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def survey(self, meter: Meter) -> None:
        """Read the header, and learn whether the map is sorted and has wildcards."""
        before, ordered = b"", True
        with open_map(self._path, ignore) as opened:
            self.header = opened.header
            for piece in opened.pieces():
                words = _FIRST_WORD.findall(piece)
                if words:
                    ordered = ordered and before <= words[0] and all(map(le, words, islice(words, 1, None)))
                    before = words[-1]
                self.has_wildcards = self.has_wildcards or _WILDCARD.search(piece) is not None
                self.consumed = opened.consumed
                meter.show("surveying")
        self.has_wildcards = self.has_wildcards and self.header.keys[0] in _SURT_COLUMNS
        if not ordered:
            self._sort()

    def _sort(self) -> None:
        self.sorter = self._stack.enter_context(LineSorter(self._temp_dir))
        with open_map(self._path, ignore) as opened:
            for piece in opened.pieces():
                for line in piece.split(b"\n"):
                    if line := line.strip():
                        self.sorter.add(line)

    def found(self, on_problem: OnProblem | None = None) -> Iterator[Found]:
        """The records of each key, in order of keys; problems are told to `on_problem`, or raise."""
        for key, records in groupby(self._records(on_problem), key=itemgetter(0)):
            yield key, self.index, list(records)

    def _records(self, on_problem: OnProblem | None) -> Iterator[Record]:
        if self.sorter is not None:
            yield from self._sorted_records(on_problem)
            return
        with open_map(self._path, on_problem and self._renamed(on_problem)) as opened:
            for count, record in enumerate(opened):
                if not count % REPORT_EVERY:
                    self.consumed = opened.consumed
                yield record

    def _sorted_records(self, on_problem: OnProblem | None) -> Iterator[Record]:
        assert self.sorter is not None
        for line in self.sorter:
            try:
                if line[:1] in (b"!", b"@", b"#"):
                    raise FormatError("header or comment after data")
                yield parse_line(line, self.header)
            except FormatError as error:
                if on_problem is None:
                    raise FormatError(str(error), where=self.label) from error
                on_problem(Problem(self.label, None, str(error), shown(line)))

    def _renamed(self, on_problem: OnProblem) -> OnProblem:
        """Problems of a spool are problems of stdin."""
        return lambda problem: on_problem(replace(problem, file=self.label))


def ignore(_problem: Problem) -> None:
    """Problems are told by the last pass alone, so that each is told once."""


class Meter:
    """Progress over all inputs, in bytes as they are on disk."""

    def __init__(self, inputs: Sequence[MapInput], progress: ProgressCallback | None) -> None:
        self._inputs = inputs
        self._progress = progress

    def show(self, stage: str) -> None:
        if self._progress is not None:
            sizes = [item.size for item in self._inputs]
            total = None if None in sizes else sum(size or 0 for size in sizes)
            self._progress(Progress(stage, sum(item.consumed for item in self._inputs), total, "bytes"))
