"""Reading inputs piece by piece, in parallel, in order.

Hides: cutting files into pieces at the ends of lines, threads, read-ahead, and which reader a kind of file needs. A
plain file is cut by offsets and its pieces are read by the threads that parse them; a compressed file is unpacked in a
thread of its own and its text handed out in pieces; records of other formats are gathered into batches.

`scan` calls `work` for each batch (in some thread; NumPy and the kernels release the interpreter lock) and yields
the result of each piece in the order of the input, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError
from recollect.formats import cdx
from recollect.formats.cdx import Capture
from recollect.formats.containers import BOM, CUT_LINE, InputStream, open_input
from recollect.formats.detect import Kind, Source
from recollect.formats.ordered import in_order
from recollect.formats.zipnum import read_blocks
from recollect.kernels.surts import surts_of_list
from recollect.model import Problem
from recollect.profiles.indexes.batch import BATCH_LINES, Batch, Columns, Parser, batch_of, format_of, read_batch

T = TypeVar("T")
R = TypeVar("R")
LINE_KINDS = (Kind.CDX, Kind.CDXJ, Kind.SURTS, Kind.URLS)
# Text per piece. Larger pieces bring nothing, and every thread holds one or two.
PIECE = 8 << 20
_GATHERED = 8192


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to read; the results are the same whatever the sizes and threads."""

    threads: int = 2
    piece: int = PIECE
    batch_lines: int = BATCH_LINES
    all_schemes: bool = False
    strict: bool = False
    detect_language: str = ""
    """The detector of languages for WARC and ARC files; empty for none."""


@dataclass(slots=True)
class Piece(Generic[T]):
    """What came of one piece of a source. `consumed` is how far into the file (as it is on disk) it reached."""

    source: Source
    results: list[T] = field(default_factory=list)
    lines: int = 0
    problems: list[Problem] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    consumed: int = 0
    first_line: int = 0  # lines of the source that stand before the piece


def scan(sources: Sequence[Source], work: Callable[[Batch], T], options: ScanOptions) -> Iterator[Piece[T]]:
    """Every piece of every source, in order, with the results of `work` for its batches."""
    reader = _Reader(work, options)
    pieces = in_order(reader.tasks(sources), options.threads, ahead=options.threads, name="scan")
    yield from _numbered(pieces, options.strict)


def scan_range(
    source: Source, start: int, stop: int, work: Callable[[Batch], T], options: ScanOptions
) -> Iterator[Piece[T]]:
    """The lines of a plain file that begin in [start, stop), in this thread; lines are numbered from there."""
    return _numbered(_Reader(work, options).range_pieces(source, start, stop), options.strict)


def scan_text(
    source: Source, texts: Iterable[bytes], work: Callable[[Batch], T], options: ScanOptions
) -> Iterator[Piece[T]]:
    """Lines of a source that the caller has read, in texts of whole lines, in this thread."""
    return _numbered(_Reader(work, options).text_pieces(source, texts), options.strict)


def _numbered(pieces: Iterable[Piece[T]], strict: bool) -> Iterator[Piece[T]]:
    """Pieces in order, their lines numbered by the source."""
    lines = 0
    source: Source | None = None
    for piece in pieces:
        if piece.source is not source:
            source, lines = piece.source, 0
        # Only here is it known how many lines stand before the piece.
        piece.problems = [
            problem if problem.line is None else replace(problem, line=lines + problem.line)
            for problem in piece.problems
        ]
        piece.first_line = lines
        lines += piece.lines
        if strict and piece.problems:
            raise bad_input(piece.problems[0])
        yield piece


def bad_input(problem: Problem) -> FormatError:
    """What `strict` raises."""
    return FormatError(
        "bad input",
        where=problem.file if problem.line is None else f"{problem.file}:{problem.line}",
        why=problem.reason,
        hint="without --strict such lines are skipped and counted",
    )


class _Reader(Generic[T]):
    """Makes tasks of sources, and does them."""

    def __init__(self, work: Callable[[Batch], T], options: ScanOptions) -> None:
        self._work = work
        self._options = options
        self._local = threading.local()
        # Buffers of pieces are reused: to free and allocate such amounts again and again fragments the heap.
        self._buffers: deque[NDArray[np.uint8]] = deque()

    def tasks(self, sources: Sequence[Source]) -> Iterator[Callable[[], Piece[T]]]:
        for source in sources:
            if source.kind is Kind.PARQUET:
                yield from self._parquet_tasks(source, alone=len(sources) == 1)
            elif source.kind not in LINE_KINDS:
                yield from self._record_tasks(source)
            elif source.container == "plain" and source.stream is None:
                yield from self._range_tasks(source, 0, Path(source.path).stat().st_size)
            elif source.container == "blocks":
                yield from self._block_tasks(source)
            else:
                yield from self._stream_tasks(source)

    def _range_tasks(self, source: Source, start: int, stop: int) -> Iterator[Callable[[], Piece[T]]]:
        size = Path(source.path).stat().st_size
        for offset in range(start, stop, self._options.piece):
            yield partial(self._plain_piece, source, offset, min(offset + self._options.piece, stop), size)

    def range_pieces(self, source: Source, start: int, stop: int) -> Iterator[Piece[T]]:
        """The pieces of a part of a plain file."""
        return (task() for task in self._range_tasks(source, start, stop))

    def text_pieces(self, source: Source, texts: Iterable[bytes]) -> Iterator[Piece[T]]:
        """The pieces of a source whose text is given."""
        return (self._stream_piece(source, _joined([text]), 0) for text in texts)

    def _plain_piece(self, source: Source, offset: int, until: int, size: int) -> Piece[T]:
        """The lines that begin in [offset, until) of a plain file."""
        with Path(source.path).open("rb", buffering=0) as file:
            # One byte more in front shows whether a line begins at the offset.
            begin = max(offset - 1, 0)
            text = self._buffer(until - begin + (1 << 16))
            filled = _fill(file.fileno(), text, 0, begin, size)
            last = until - begin
            first = _after_bom(text) if offset == 0 else _newline(text, 0, min(last, filled)) + 1
            if offset and first == 0:  # the whole piece is inside one line, which began before
                return Piece(source, consumed=until)
            if begin + filled < size or last < filled:
                end = _newline(text, last - 1, filled)
                while end < 0 and begin + filled < size:
                    text = np.concatenate([text[:filled], np.empty(filled, np.uint8)])
                    more = _fill(file.fileno(), text, filled, begin + filled, size)
                    end = _newline(text, filled, filled + more)
                    filled += more
                filled = end + 1 if end >= 0 else filled
        piece = self._lines(source, text[first:filled])
        piece.consumed = until
        return piece

    def _buffer(self, size: int) -> NDArray[np.uint8]:
        buffer: NDArray[np.uint8] | None = getattr(self._local, "buffer", None)
        if buffer is None or len(buffer) < size:
            buffer = self._local.buffer = np.empty(size, np.uint8)
        return buffer

    def _stream_tasks(self, source: Source) -> Iterator[Callable[[], Piece[T]]]:
        problems: list[Problem] = []
        stream = source.stream or open_input(source.path, problems.append)
        with stream:
            for text in _pieces(stream, self._options.piece, problems, self._buffers):
                yield partial(self._stream_piece, source, text, stream.consumed)
        if source.stream is not None:  # damage found while detecting the format is not reported yet
            problems += [Problem(source.label, None, why) for why in (stream.damage, stream.flaw) if why]
        if problems:
            yield partial(Piece, source, problems=problems, consumed=source.size or 0)

    def _block_tasks(self, source: Source) -> Iterator[Callable[[], Piece[T]]]:
        problems: list[Problem] = []
        blocks: list[bytes] = []
        held = 0
        for block in read_blocks(source.path, problems.append):
            blocks.append(block)
            held += len(block)
            if held >= self._options.piece:
                yield partial(self._stream_piece, source, _joined(blocks), 0)
                blocks, held = [], 0
        if blocks:
            yield partial(self._stream_piece, source, _joined(blocks), 0)
        yield partial(Piece, source, problems=problems, consumed=source.size or 0)

    def _parquet_tasks(self, source: Source, *, alone: bool) -> Iterator[Callable[[], Piece[T]]]:
        from recollect.formats.parquet import ParquetIndex

        try:
            index = ParquetIndex(source.path)
            as_cdx = replace(source, kind=Kind.CDX, layout=index.layout)
            for text, done in index.lines():
                consumed = (source.size or 0) * done // max(index.rows, 1)
                yield partial(self._stream_piece, as_cdx, _joined([text]), consumed)
        except FormatError as error:
            if alone:
                raise
            problem = Problem(source.label, None, f"{error.what}: {error.why}")
            yield partial(Piece, source, problems=[problem], consumed=source.size or 0)

    def _stream_piece(self, source: Source, text: NDArray[np.uint8], consumed: int) -> Piece[T]:
        piece = self._lines(source, text)
        piece.consumed = consumed
        if isinstance(text.base, np.ndarray):
            self._buffers.append(text.base)
        return piece

    def _lines(self, source: Source, text: NDArray[np.uint8]) -> Piece[T]:
        columns: Columns | None = getattr(self._local, "columns", None)
        if columns is None:
            columns = self._local.columns = Columns(self._options.batch_lines)
        form = format_of(source.kind, source.layout)
        parser = parser_of(source, self._options.all_schemes)
        piece: Piece[T] = Piece(source)
        if source.kind is Kind.URLS:
            text = _with_surts(text)
        at = 0
        while at < len(text):
            batch, at = read_batch(columns, text, at, form, parser, self._options.all_schemes)
            self._finish(piece, batch)
        return piece

    def _record_tasks(self, source: Source) -> Iterator[Callable[[], Piece[T]]]:
        # The readers of all other formats, which indexes do not need.
        from recollect.formats.captures import read_captures
        from recollect.formats.languages import detector_of

        problems: list[Problem] = []
        left_out: Counter[str] = Counter()
        notes: list[str] = []
        gathered: list[Capture] = []

        def flush() -> Callable[[], Piece[T]]:
            piece: Piece[T] = Piece(source, [], 0, problems.copy(), left_out.copy(), notes.copy())
            task = partial(self._gathered_piece, piece, gathered.copy())
            problems.clear()
            left_out.clear()
            notes.clear()
            gathered.clear()
            return task

        other = partial(_count, left_out)
        named = self._options.detect_language
        reading = read_captures(
            source,
            problems.append,
            other,
            all_schemes=self._options.all_schemes,
            detect=detector_of(named) if named else None,
            on_note=notes.append,
        )
        for capture in reading:
            gathered.append(capture)
            if len(gathered) >= _GATHERED:
                yield flush()
        yield flush()

    def _gathered_piece(self, piece: Piece[T], captures: list[Capture]) -> Piece[T]:
        lines = (
            len(captures) + sum(piece.left_out.values()) + sum(problem.line is not None for problem in piece.problems)
        )
        if captures:
            self._finish(piece, batch_of(captures))
        piece.lines = lines
        piece.consumed = piece.source.size or 0
        return piece

    def _finish(self, piece: Piece[T], batch: Batch) -> None:
        label = piece.source.label
        batch.offset = piece.lines
        piece.results.append(self._work(batch))
        piece.left_out.update(batch.left_out)
        piece.problems += [
            Problem(label, piece.lines + line + 1, reason, excerpt, bool(batch.alive[line]))
            for line, reason, excerpt in batch.problems
        ]
        piece.lines += len(batch.run_of)


def _with_surts(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A list of URLs with SURTs in the places of ordinary ones, which leaves few lines to the careful parser."""
    buffer = np.empty(len(text), np.uint8)
    return buffer[: surts_of_list(text, buffer)]


def _joined(blocks: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(b"".join(blocks)), np.uint8)


def _count(counter: Counter[str], kind: str) -> None:
    counter[kind] += 1


def parser_of(source: Source, all_schemes: bool) -> Parser:
    """The careful parser for the lines of a source."""
    if source.kind is Kind.CDX:
        return partial(cdx.parse_cdx, layout=source.layout, all_schemes=all_schemes)
    return partial(cdx.parse_cdxj if source.kind is Kind.CDXJ else cdx.parse_surt, all_schemes=all_schemes)


def _fill(descriptor: int, text: NDArray[np.uint8], at: int, offset: int, size: int) -> int:
    """Read the file from `offset` into text[at:], as far as both reach."""
    view = text.data[at:]
    wanted = min(len(view), size - offset)
    got = 0
    while got < wanted:
        count = os.preadv(descriptor, [view[got:wanted]], offset + got)
        if count == 0:
            break
        got += count
    return got


def _newline(text: NDArray[np.uint8], begin: int, end: int) -> int:
    """Where the first newline at or after `begin` is, or -1."""
    step = 1 << 12
    for start in range(begin, end, step):
        found = np.flatnonzero(text[start : min(start + step, end)] == 10)
        if found.size:
            return start + int(found[0])
    return -1


def _after_bom(text: NDArray[np.uint8]) -> int:
    return len(BOM) if text[: len(BOM)].tobytes() == BOM else 0


def _pieces(
    stream: InputStream, size: int, problems: list[Problem], buffers: deque[NDArray[np.uint8]]
) -> Iterator[NDArray[np.uint8]]:
    """The stream in pieces of whole lines, each the beginning of an array taken from `buffers` if one is free."""
    if stream.peek(len(BOM)).startswith(BOM):
        stream.read(len(BOM))
    rest: NDArray[np.uint8] = np.empty(0, np.uint8)
    while True:
        text = buffers.popleft() if buffers and size >= 2 * len(rest) else np.empty(max(size, 2 * len(rest)), np.uint8)
        text[: len(rest)] = rest
        filled = len(rest)
        view = text.data
        while filled < len(text) and (count := stream.readinto(view[filled:])):
            filled += count
        if filled < len(text):
            break
        lines = np.flatnonzero(text[-(1 << 16) :] == 10)
        if not lines.size:
            lines = np.flatnonzero(text == 10)
            cut = int(lines[-1]) + 1 if lines.size else 0
        else:
            cut = len(text) - min(1 << 16, len(text)) + int(lines[-1]) + 1
        if cut:
            yield text[:cut]
        rest = text[cut:filled].copy()
    if stream.damage and filled and text[filled - 1] != 10:
        lines = np.flatnonzero(text[:filled] == 10)
        cut = int(lines[-1]) + 1 if lines.size else 0
        excerpt = text[cut : min(cut + 80, filled)].tobytes().decode("utf-8", "replace")
        problems.append(Problem(stream.label, None, CUT_LINE, excerpt))
        filled = cut
    if filled:
        yield text[:filled]
