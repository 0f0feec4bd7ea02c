"""Reading maps: header first, then records as a stream, in constant memory.

Hides: pieces of lines, the fast path for ordinary lines and the slow path for the others. An unreadable line is
reported to `on_problem` with its number and skipped; without `on_problem` it raises FormatError. White space at the
ends of lines, CRLF, a byte-order mark and empty lines are skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from recollect.errors import FormatError, NotSorted
from recollect.formats.containers import BOM, OnProblem, open_input, whole_lines
from recollect.formats.frequency import parse_token
from recollect.formats.ukvs.header import Builder, Header
from recollect.formats.ukvs.records import Record, parse_line, shown
from recollect.model import Problem

# A line that is plainly good, of a map with a key and a frequency.
_GOOD = re.compile(rb'^([^\s"{!@#]\S*)[ \t]+([^\s"{]\S*)(?:[ \t]+(\{(?:.*\S)?))?[ \t\r]*$', re.MULTILINE)
_NOT_DATA = (b"!", b"@", b"#", b"")


class MapFile:
    """An open map: `header`, then its records by iterating once, or its data lines in `pieces`."""

    def __init__(self, path: str | os.PathLike[str], on_problem: OnProblem | None = None) -> None:
        self._stream = open_input(path, on_problem)
        self._on_problem = on_problem
        self.label = self._stream.label
        self._builder = Builder()
        self._line = 1
        try:
            self._pieces = whole_lines(self._stream, on_problem)
            self._first = self._read_header()
            simple = self.header.keys[1:] == () and self.header.values == ("frequency",)
            self._good = _GOOD if simple else None
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> MapFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    @property
    def consumed(self) -> int:
        """Bytes of the file read so far, for progress."""
        return self._stream.consumed

    def pieces(self) -> Iterator[bytes]:
        """The data lines as they are, in pieces of about 1 MB of whole lines; only the last may lack its newline."""
        if self._first:
            yield self._first
        yield from self._pieces

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, *, ordered: bool = False) -> Iterator[Record]:
        """The records; with `ordered` raises NotSorted where the first key column is below the line before."""
        records = self._records()
        return self._ordered(records) if ordered else records

    def _read_header(self) -> bytes:
        """Read up to the first data line; returns the rest of its piece."""
        for piece in self._pieces:
            at = len(BOM) if self._line == 1 and piece.startswith(BOM) else 0
            while at < len(piece):
                end = piece.find(b"\n", at) + 1 or len(piece)
                line = piece[at:end].strip()
                if line[:1] not in _NOT_DATA:
                    self.header = self._builder.header(line)
                    return piece[at:]
                if line[:1] in (b"!", b"@"):
                    try:
                        self._builder.add(line)
                    except FormatError as error:
                        self._report(self._line, str(error), line)
                at = end
                self._line += 1
        self.header = self._builder.header()
        return b""

    @property
    def line(self) -> int:
        """The number of the line that comes next."""
        return self._line

    def _records(self) -> Iterator[Record]:
        for piece in self.pieces():
            first, count = self._line, _lines_in(piece)
            self._line += count
            yield from self.records_of(piece, first)

    def records_of(self, piece: bytes, first: int) -> Iterator[Record]:
        """The records of some whole lines of this map, of which the first has the number `first`."""
        rows = self._good.findall(piece) if self._good else ()
        if len(rows) != _lines_in(piece):
            yield from self._one_by_one(piece, first)
            return
        new = tuple.__new__
        for index, (key, token, block) in enumerate(rows):
            try:
                frequency = parse_token(token)
            except FormatError as error:
                self._report(first + index, str(error), key + b" " + token)
                continue
            # Millions of times; this is Record(...) without the detour over its keyword arguments.
            yield new(Record, (key, (), frequency, block.decode("utf-8", "surrogateescape") if block else "", ()))

    def _one_by_one(self, piece: bytes, first: int) -> Iterator[Record]:
        for number, line in enumerate(piece.removesuffix(b"\n").split(b"\n"), first):
            line = line.strip()
            if not line:
                continue
            if line[:1] in _NOT_DATA:
                self._report(number, "header after data" if line[:1] != b"#" else "comment after data", line)
                continue
            try:
                yield parse_line(line, self.header)
            except FormatError as error:
                self._report(number, str(error), line)

    def _ordered(self, records: Iterator[Record]) -> Iterator[Record]:
        before = b""
        for record in records:
            key = record[0]
            if key < before:
                raise NotSorted(
                    "a map that is not sorted",
                    where=self.label,
                    why=f"{shown(key)} comes after {shown(before)}",
                    hint="see `recollect validate`; sort it with `LC_ALL=C sort`",
                )
            before = key
            yield record

    def _report(self, line: int, reason: str, excerpt: bytes) -> None:
        if self._on_problem is None:
            raise FormatError(reason, where=f"{self.label}:{line}", hint=f"see `recollect validate {self.label}`")
        self._on_problem(Problem(self.label, line, reason, shown(excerpt)))


def _lines_in(piece: bytes) -> int:
    return piece.count(b"\n") + (piece != b"" and not piece.endswith(b"\n"))


def open_map(path: str | os.PathLike[str], on_problem: OnProblem | None = None) -> MapFile:
    """Open a map in any container, or stdin for `-`, and read its header."""
    return MapFile(path, on_problem)


def read(
    path: str | os.PathLike[str], on_problem: OnProblem | None = None, *, ordered: bool = False
) -> tuple[Header, Iterator[Record]]:
    """The header of a map and its records as a stream; the file is closed at their end."""
    opened = open_map(path, on_problem)

    def records() -> Iterator[Record]:
        with opened:
            yield from opened.records(ordered=ordered)

    return opened.header, records()
