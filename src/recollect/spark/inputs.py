"""What is to be read, cut up for tasks, and reading it in a task.

Hides: two ways of reading. A path without a scheme is read by the tasks themselves with the embedded engine's own
reader, every kind of input as there. A URL is read by Spark: lines with its text reader (cut into splits, decompressed
by suffix), Parquet with its Parquet reader, whole archives (WARC, WACZ, ...) file by file; the lines then go through
the same scanner. Both give pieces of (source, start of the split), in order within a split, so that the driver can
number lines and tell problems as the embedded engine does.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from recollect.errors import UsageError
from recollect.formats.cdx import Layout
from recollect.formats.detect import Kind, Source, find_sources, inspect
from recollect.formats.parquet import found_columns
from recollect.model import Problem
from recollect.profiles.indexes.scan import LINE_KINDS, Piece, ScanOptions, scan, scan_range, scan_text
from recollect.spark.exchange import Sizes
from recollect.spark.files import HadoopFiles, Listed, is_url

HEAD = 1 << 18
_PART = re.compile(r"part-\d+.*\.ukvs")
Work = Callable[[Any], Any]
# The number of a source, and where in it a split begins.
Place = tuple[int, int]
Pieces = Iterator[Piece[Any]]


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that one task reads; `stop` None is all of it."""

    place: Place
    source: Source
    stop: int | None = None

    def pieces(self, work: Work, options: ScanOptions) -> Pieces:
        """Read it."""
        if self.stop is None:
            return scan([self.source], work, options)
        return scan_range(self.source, self.place[1], self.stop, work, options)


def find_inputs(
    spark: Any, names: Sequence[str], on_problem: Callable[[Problem], None] | None
) -> list[tuple[Source, bool]]:
    """The sources behind names, each with whether Spark has to read it."""
    found: list[tuple[Source, bool]] = []
    for remote, some in groupby(names, key=is_url):
        if not remote:
            found += [(source, False) for source in find_sources(some, on_problem)]
            continue
        files = HadoopFiles(spark)
        for listed in _files_behind(files, some, found):
            source = _inspected(files.head(listed.url, HEAD), listed.url, listed.name, listed.size)
            if source.kind is Kind.UNKNOWN:
                find_problem = Problem(listed.url, None, "no index, list, log, map or archive file that is known")
                if on_problem is None:
                    raise UsageError("cannot use a file", where=listed.url, why=find_problem.reason)
                on_problem(find_problem)
            else:
                found.append((source, True))
    for source, _ in found:
        if source.stream is not None:
            raise UsageError("Spark cannot read a pipe", where=source.label, hint="give files, or --engine embedded")
        if source.kind is Kind.ZIPNUM or (source.container == "blocks" and is_url(source.path)):
            raise UsageError("a ZipNum cluster by URL", where=source.label, hint="give its shards (cdx-*.gz) instead")
    return found


def _files_behind(files: HadoopFiles, urls: Iterable[str], found: list[tuple[Source, bool]]) -> Iterator[Listed]:
    """The files behind URLs; a folder that is a map in parts goes to `found` as one source."""
    for url in urls:
        listed = files.files(url)
        if any(_PART.match(one.name) for one in listed):
            found.append((Source(url, Kind.MAP, size=sum(one.size for one in listed if _PART.match(one.name))), True))
        else:
            yield from listed


def _inspected(head: bytes, url: str, name: str, size: int) -> Source:
    """What a file is, told by its head as for any file."""
    with tempfile.NamedTemporaryFile(prefix="recollect-", suffix=Path(name).suffix) as file:
        file.write(head)
        file.flush()
        return replace(inspect(file.name), path=url, size=size)


def splits_of(sources: Sequence[tuple[int, Source]], parallelism: int, sizes: Sizes) -> list[Split]:
    """Local sources cut up: plain files of lines by ranges, others whole."""
    total = sum(source.size or 0 for _, source in sources)
    size = max(sizes.smallest_split, min(sizes.split, total // max(3 * parallelism, 1)))
    splits: list[Split] = []
    for number, source in sources:
        if source.kind in LINE_KINDS and source.container == "plain" and source.size:
            ranges = range(0, source.size, size)
            splits += [Split((number, at), source, min(at + size, source.size)) for at in ranges]
        else:
            splits.append(Split((number, 0), source))
    return splits


# Makes blocks of a split, given its place and what reads it with some work.
Task = Callable[[Place, Callable[[Work], Pieces]], Iterator[bytes]]


def blocks_of(spark: Any, inputs: Sequence[tuple[Source, bool]], task: Task, sizes: Sizes, options: ScanOptions) -> Any:
    """An RDD of what `task` makes of every split."""
    context = spark.sparkContext
    local = [(number, source) for number, (source, remote) in enumerate(inputs) if not remote]
    remote = [(number, source) for number, (source, remote) in enumerate(inputs) if remote]
    found = []
    if local:
        splits = splits_of(local, context.defaultParallelism, sizes)
        found.append(context.parallelize(splits, min(len(splits), 20_000)).flatMap(_Local(task, options)))
    lines = [one for one in remote if one[1].kind in LINE_KINDS]
    for (kind, layout), some in _grouped(lines, lambda source: (source.kind, source.layout)):
        found.append(_text_blocks(spark, some, replace(some[0][1], kind=kind, layout=layout), task, options))
    for one in remote:
        if one[1].kind is Kind.PARQUET:
            found.append(_parquet_blocks(spark, one, task, options))
    others = [one for one in remote if one[1].kind not in (*LINE_KINDS, Kind.PARQUET, Kind.EMPTY)]
    found += [
        context.binaryFiles(source.path).flatMap(_Whole(task, number, source, options)) for number, source in others
    ]
    return context.union(found) if found else context.parallelize([], 1)


def _grouped(
    sources: Sequence[tuple[int, Source]], key: Callable[[Source], Any]
) -> Iterator[tuple[Any, list[tuple[int, Source]]]]:
    groups: dict[Any, list[tuple[int, Source]]] = {}
    for number, source in sources:
        groups.setdefault(key(source), []).append((number, source))
    yield from groups.items()


@dataclass(frozen=True, slots=True)
class _Local:
    """Reads a split that the task can open itself."""

    task: Task
    options: ScanOptions

    def __call__(self, split: Split) -> Iterator[bytes]:
        return self.task(split.place, lambda work: split.pieces(work, self.options))


@dataclass(frozen=True, slots=True)
class _Whole:
    """Reads a file that Spark has brought whole."""

    task: Task
    number: int
    source: Source
    options: ScanOptions

    def __call__(self, file: tuple[str, bytes]) -> Iterator[bytes]:
        with tempfile.NamedTemporaryFile(prefix="recollect-", suffix=Path(self.source.path).suffix) as copy:
            copy.write(file[1])
            copy.flush()
            here = replace(self.source, path=copy.name)

            def pieces(work: Work) -> Pieces:
                for piece in scan([here], work, self.options):
                    piece.problems = [replace(problem, file=self.source.label) for problem in piece.problems]
                    yield piece

            yield from self.task((self.number, 0), pieces)


def _text_blocks(
    spark: Any, sources: Sequence[tuple[int, Source]], like: Source, task: Task, options: ScanOptions
) -> Any:
    numbers = {_spelling(source.path): number for number, source in sources}
    # Only `\n` ends a line, as everywhere here; each line gets it back, so that a column's buffer is the text.
    frame = spark.read.option("lineSep", "\n").text([source.path for _, source in sources])
    frame = frame.selectExpr(
        "concat(cast(value as binary), X'0A') as line",
        "_metadata.file_path as path",
        "_metadata.file_block_start as start",
    )
    return frame.mapInArrow(_Lines(task, numbers, like, options), "block binary").rdd.map(_only)


def _parquet_blocks(spark: Any, one: tuple[int, Source], task: Task, options: ScanOptions) -> Any:
    number, source = one
    frame = spark.read.parquet(source.path)
    types = {name.lower(): (name, kind) for name, kind in frame.dtypes}
    columns = found_columns(types, source.path)
    like = replace(source, kind=Kind.CDX, layout=Layout("".join(columns), "\t", True))
    line = ", '\\t', ".join(_field(letter, *column) for letter, column in columns.items())
    frame = frame.selectExpr(
        f"cast(concat({line}, '\\n') as binary) as line",
        "_metadata.file_path as path",
        "_metadata.file_block_start as start",
    )
    return frame.mapInArrow(_Lines(task, {_spelling(source.path): number}, like, options), "block binary").rdd.map(
        _only
    )


def _field(letter: str, column: str, kind: str) -> str:
    """The Spark SQL expression of one field, as `formats.parquet` has it for DuckDB."""
    name = "`" + column.replace("`", "``") + "`"
    if kind.startswith(("timestamp", "date")):
        text = f"date_format({name}, 'yyyyMMddHHmmss')"
    elif letter == "b":
        text = f"left(regexp_replace(cast({name} as string), '[^0-9]', ''), 14)"
    else:
        text = f"regexp_replace(cast({name} as string), '[\\\\t\\\\r\\\\n]', ' ')"
    return f"coalesce(nullif({text}, ''), '-')"


def _spelling(url: str) -> str:
    """`file:///a` and `file:/a` are one."""
    return "file:" + url.removeprefix("file://") if url.startswith("file:///") else url


def _only(row: Any) -> bytes:
    return bytes(row[0])


@dataclass(frozen=True, slots=True)
class _Lines:
    """Reads lines that come from Spark in Arrow batches of (line, path, start of the split)."""

    task: Task
    numbers: dict[str, int]
    like: Source
    options: ScanOptions

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        texts = (text for batch in batches for text in _texts(batch))
        for (path, start), some in groupby(texts, key=lambda text: text[0]):
            source = replace(self.like, path=unquote(path))
            chunks = (text for _, text in some)

            def read(work: Work, source: Source = source, chunks: Iterator[bytes] = chunks) -> Pieces:
                return scan_text(source, chunks, work, self.options)

            for block in self.task((self.numbers[_spelling(unquote(path))], start), read):
                yield pa.RecordBatch.from_pydict({"block": pa.array([block], pa.binary())})


def _texts(batch: Any) -> Iterator[tuple[tuple[str, int], bytes]]:
    """The text of a batch, one for each split in it."""
    import numpy as np
    import pyarrow.compute as pc

    lines, paths, starts = batch.column(0), batch.column(1), batch.column(2)
    if not len(lines):
        return
    first = 0
    changes = pc.or_(pc.not_equal(paths[1:], paths[:-1]), pc.not_equal(starts[1:], starts[:-1]))
    cuts = (np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1).tolist() if len(lines) > 1 else []
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :]
    data = memoryview(lines.buffers()[2])
    for stop in (*cuts, len(lines)):
        yield (paths[first].as_py(), starts[first].as_py()), bytes(data[offsets[first] : offsets[stop]])
        first = stop
