"""Maps that are read more than once, key by key: sorted first if they are not, spooled if they come from a pipe.

Hides: passes, the external sort, pages of one map, and that stdin cannot be read again. Law 5: the order of a map is
checked, never trusted.
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
from typing import Any, BinaryIO

from recollect.errors import FormatError, UsageError
from recollect.formats.containers import OnProblem
from recollect.formats.parts import is_parted, parted_size
from recollect.formats.ukvs import Header, MapFile, Record, lenient, open_map
from recollect.formats.ukvs.records import parse_line, shown
from recollect.maps.linesort import LineSorter
from recollect.model import Problem, Progress, ProgressCallback

REPORT_EVERY = 1 << 14
_FIRST_WORD = re.compile(rb"^[ \t\r]*(\S+)", re.MULTILINE)
WILDCARD = re.compile(rb"\*[ \t]")
_SURT_COLUMNS = frozenset(("surt", "surt_uri"))

Found = tuple[bytes, int, list[Record]]


class MapInput:
    """A map, perhaps in pages, that is read several times; sorted first if it is not."""

    def __init__(self, paths: Sequence[str], index: int, temp_dir: str | None) -> None:
        self.index = index
        self.label = _label(paths[0])
        self.header = Header()
        self.has_wildcards = False
        self.sorter: LineSorter | None = None
        self.size = 0
        self._files = {_label(path): path for path in paths}
        self._temp_dir = temp_dir
        self._unreported: list[Problem] = []
        self._stack = ExitStack()
        self._before = 0
        self._current: MapFile | None = None

    @property
    def consumed(self) -> int:
        """Bytes read in this pass, for progress."""
        return self._before + (self._current.consumed if self._current else 0)

    def __enter__(self) -> MapInput:
        for label, path in self._files.items():
            if path == "-":
                self._files[label] = self._spool(sys.stdin.buffer)
            elif not Path(path).is_file() and not Path(path).is_dir():
                with Path(path).open("rb") as pipe:
                    self._files[label] = self._spool(pipe)
            file = Path(self._files[label])
            self.size += parted_size(file) if is_parted(file) else file.stat().st_size
        label, path = next(iter(self._files.items()))
        with _open(label, path, ignore) as opened:
            self.header = opened.header
        return self

    def _spool(self, pipe: BinaryIO) -> str:
        """Keep what can be read once only."""
        spool = tempfile.NamedTemporaryFile(dir=self._temp_dir, prefix="recollect-")  # noqa: SIM115
        self._stack.callback(spool.close)
        shutil.copyfileobj(pipe, spool)
        spool.flush()
        return spool.name

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def survey(self, meter: Meter) -> None:
        """Learn whether the map is sorted and has wildcards."""
        before, ordered = b"", True
        for opened in self._opened(ignore):
            for piece in opened.pieces():
                words = _FIRST_WORD.findall(piece)
                if words:
                    ordered = ordered and before <= words[0] and all(map(le, words, islice(words, 1, None)))
                    before = words[-1]
                self.has_wildcards = self.has_wildcards or WILDCARD.search(piece) is not None
                meter.show("surveying")
        self.has_wildcards = self.has_wildcards and self.header.keys[0] in _SURT_COLUMNS
        if not ordered:
            self._sort()

    def found(self, on_problem: OnProblem | None = None) -> Iterator[Found]:
        """The records of each key, in order of keys; problems are reported to `on_problem`, or raise."""
        records = self._records(on_problem) if self.sorter is None else self._sorted_records(on_problem)
        return one_by_one(records, self.index)

    @property
    def is_one_file_of_surts(self) -> bool:
        """Whether its lines can be taken as they stand."""
        return len(self._files) == 1 and self.header.keys[0] in _SURT_COLUMNS

    def opened(self, on_problem: OnProblem | None) -> MapFile:
        """The only file of the map; problems name it as the user did."""
        ((label, path),) = self._files.items()
        self._before = 0
        self._current = _open(label, path, on_problem)
        return self._current

    def _opened(self, on_problem: OnProblem | None) -> Iterator[MapFile]:
        """The files of the map, one after the other; problems name the file as the user did."""
        self._before = 0
        for label, path in self._files.items():
            with _open(label, path, on_problem) as opened:
                self._current = opened
                yield opened
                self._before += opened.consumed
                self._current = None

    def _records(self, on_problem: OnProblem | None) -> Iterator[Record]:
        for opened in self._opened(on_problem):
            yield from opened

    def _sort(self) -> None:
        self.sorter = self._stack.enter_context(LineSorter(self._temp_dir))
        for opened in self._opened(self._unreported.append):
            for piece in opened.pieces():
                for line in piece.split(b"\n"):
                    if line := line.strip():
                        self.sorter.add(line)

    def _sorted_records(self, on_problem: OnProblem | None) -> Iterator[Record]:
        assert self.sorter is not None

        def report(problem: Problem) -> None:
            if on_problem is None:
                raise FormatError(problem.reason, where=problem.file)
            on_problem(problem)

        for problem in self._unreported:
            report(problem)
        for line in self.sorter:
            try:
                if line[:1] in (b"!", b"@", b"#"):
                    raise FormatError("header or comment after data")
                yield parse_line(line, self.header)
            except FormatError as error:
                report(Problem(self.label, None, str(error), shown(line)))


def one_by_one(records: Iterator[Record], index: int) -> Iterator[Found]:
    """The records of each key of map `index`."""
    for key, same in groupby(records, key=itemgetter(0)):
        yield key, index, list(same)


def _open(label: str, path: str, on_problem: OnProblem | None) -> MapFile:
    def report(problem: Problem) -> None:
        assert on_problem is not None
        on_problem(replace(problem, file=label))

    return open_map(path, report if on_problem else None)


def _label(path: str) -> str:
    return "<stdin>" if path == "-" else path


def pages_together(paths: Sequence[str]) -> list[list[str]]:
    """The files of each map: pages of one map (`page` and `pages` in their `!meta`) belong together, in their order."""
    maps: list[list[str]] = []
    pages: dict[str, dict[int, str]] = {}
    for path in paths:
        meta = _page_meta(path)
        if meta is None:
            maps.append([path])
            continue
        of_one = lenient.dumps({name: value for name, value in meta.items() if name not in ("page", "links")})
        pages.setdefault(of_one, {})[meta["page"]] = path
    for of_one, found in pages.items():
        count = lenient.loads(of_one)["pages"]
        missing = [number for number in range(1, count + 1) if number not in found]
        if missing:
            raise UsageError(
                "pages of a map are missing",
                where=next(iter(found.values())),
                why=f"of {count} pages {', '.join(map(str, missing[:10]))} are not given",
                hint="give all pages; without them what they hold would be missing",
            )
        maps.append([found[number] for number in range(1, count + 1)])
    return maps


def _page_meta(path: str) -> dict[str, Any] | None:
    if path == "-" or not Path(path).is_file():
        return None
    with open_map(path, ignore) as opened:
        meta = {**opened.header.meta, "id": dict(opened.header.id)}
    numbers = (meta.get("page"), meta.get("pages"))
    return meta if all(isinstance(number, int) for number in numbers) else None


def ignore(_problem: Problem) -> None:
    """Only the last pass reports problems, so that each is reported once."""


class Meter:
    """Progress over all inputs, in bytes as they are on disk."""

    def __init__(self, inputs: Sequence[MapInput], progress: ProgressCallback | None) -> None:
        self._inputs = inputs
        self._progress = progress

    def show(self, stage: str) -> None:
        if self._progress is not None:
            total = sum(item.size for item in self._inputs)
            self._progress(Progress(stage, sum(item.consumed for item in self._inputs), total, "bytes"))
