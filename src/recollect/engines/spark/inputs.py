"""What is to be read, cut up for tasks, and reading it in a task.

Hides: two ways of reading. A path without a scheme is read by the tasks themselves with the embedded engine's own
reader, every kind of input as there. A URL is read by Spark: lines with its text reader (cut into splits, decompressed
by suffix), Parquet with its Parquet reader, whole archives (WARC, WACZ, ...) file by file; the lines then go through
the same scanner. Both give pieces of (source, start of the split), in order within a split, so that the driver can
number lines and report problems as the embedded engine does.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.files import (
    HadoopFiles,
    Listed,
    as_written,
    at_once,
    is_url,
    lines_behind,
    spelling,
    texts_of,
)
from recollect.engines.spark.targets import seen_by_workers
from recollect.errors import UsageError
from recollect.formats.cdx import Layout
from recollect.formats.detect import Kind, Source, find_sources, inspect
from recollect.formats.forms import Asked
from recollect.formats.parquet import found_columns
from recollect.model import Problem
from recollect.profiles.indexes.scan import LINE_KINDS, Piece, ScanOptions, scan, scan_range, scan_text

HEAD = 1 << 18
# Files that workers are asked about; if they see these, they see their folders.
_ASKED_ABOUT = 1000
_PART = re.compile(r"part-\d.*\.ukvs")
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
    spark: Any,
    names: Sequence[str],
    on_problem: Callable[[Problem], None] | None,
    *,
    asked: Asked | None = None,
    on_ignored: Callable[[Problem], None] | None = None,
) -> list[tuple[Source, bool]]:
    """The sources of names, each with whether Spark has to read it; others are reported as in `find_sources`."""
    found: list[tuple[Source, bool]] = []
    for remote, some in groupby(names, key=is_url):
        if not remote:
            found += [
                (_absolute(source), False)
                for source in find_sources(some, on_problem, asked=asked, on_ignored=on_ignored)
            ]
            continue
        files = HadoopFiles(spark)
        listed_files = list(_files_behind(files, some, found))
        for listed, source in zip(listed_files, at_once(partial(_inspected, files, asked), listed_files), strict=True):
            if source.kind is Kind.UNKNOWN:
                report = on_ignored or on_problem
                if report is None:
                    raise UsageError("cannot use a file", where=listed.url, why=source.what)
                report(Problem(listed.url, None, source.what))
            else:
                found.append((source, True))
    for source, _ in found:
        if source.stream is not None:
            raise UsageError("Spark cannot read a pipe", where=source.label, hint="give files, or --engine embedded")
        if source.kind is Kind.ZIPNUM or (source.container == "blocks" and is_url(source.path)):
            raise UsageError("a ZipNum cluster by URL", where=source.label, hint="give its shards (cdx-*.gz) instead")
    check_seen(spark, [source.path for source, remote in found if not remote])
    return found


def check_seen(spark: Any, paths: Sequence[str]) -> None:
    """Raise if a worker does not see a path, before all work."""
    unseen = seen_by_workers(spark, paths[:_ASKED_ABOUT])
    if unseen:
        raise UsageError(
            "workers do not have this file",
            where=unseen[0],
            why="a path without a scheme is opened by every worker",
            hint="put it on a file system that all share, or in a store, and name it by URL (hdfs:, s3a:)",
        )


def _absolute(source: Source) -> Source:
    """A source that tasks find wherever they run, called as it was given."""
    if source.path == "-" or Path(source.path).is_absolute():
        return source
    return replace(source, path=str(Path(source.path).absolute()), name=source.label)


def _files_behind(files: HadoopFiles, urls: Iterable[str], found: list[tuple[Source, bool]]) -> Iterator[Listed]:
    """The files at URLs; a folder that is a map in parts goes to `found` as one source."""
    for url in urls:
        parts = files.parts(url)
        listed = files.files(url) if parts is None else []
        if parts is not None:
            found.append((Source(url, Kind.MAP, size=sum(one.size for one in parts)), True))
        elif any(_PART.match(one.name) for one in listed):
            found.append((Source(url, Kind.MAP, size=sum(one.size for one in listed if _PART.match(one.name))), True))
        else:
            yield from listed


def _inspected(files: HadoopFiles, asked: Asked | None, listed: Listed) -> Source:
    """What a file is, detected from its first bytes as for any file."""
    with tempfile.NamedTemporaryFile(prefix="recollect-", suffix=Path(listed.name).suffix) as file:
        file.write(files.head(listed, HEAD))
        file.flush()
        return replace(inspect(file.name, asked), path=listed.url, size=listed.size)


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


def blocks_of(
    spark: Any,
    inputs: Sequence[tuple[Source, bool]],
    task: Task,
    sizes: Sizes,
    options: ScanOptions,
    *,
    needed: Mapping[Place, bool] | None = None,
) -> Any:
    """An RDD of what `task` makes of every split; of those in `needed` only what is needed."""
    context = spark.sparkContext
    local = [(number, source) for number, (source, remote) in enumerate(inputs) if not remote]
    remote = [(number, source) for number, (source, remote) in enumerate(inputs) if remote]
    splits = splits_of(local, context.defaultParallelism, sizes) if local else []
    if needed is not None:
        splits, remote = _still_needed(splits, remote, needed)
    found = []
    if splits:
        found.append(context.parallelize(splits, min(len(splits), 20_000)).flatMap(_Local(task, options)))
    lines = [one for one in remote if one[1].kind in LINE_KINDS]
    for some in _grouped(lines, {source.path: (source.kind, source.layout, source.form) for _, source in lines}):
        frame = lines_behind(spark, [source.path for _, source in some])
        found.append(_frame_blocks(frame, some, some[0][1], task, options))
    tables = [one for one in remote if one[1].kind is Kind.PARQUET]
    schemas = at_once(HadoopFiles(spark).schema, [source.path for _, source in tables])
    for some in _grouped(tables, dict(zip((source.path for _, source in tables), schemas, strict=True))):
        found.append(_parquet_blocks(spark, some, task, options))
    others = {
        spelling(one[1].path): one for one in remote if one[1].kind not in (*LINE_KINDS, Kind.PARQUET, Kind.EMPTY)
    }
    if others:
        paths = ",".join(as_written(source.path) for _, source in others.values())
        found.append(context.binaryFiles(paths).flatMap(_Whole(task, others, options)))
    return context.union(found) if found else context.parallelize([], 1)


def _still_needed(
    splits: list[Split], remote: list[tuple[int, Source]], needed: Mapping[Place, bool]
) -> tuple[list[Split], list[tuple[int, Source]]]:
    """The splits and files that have to be read again. Inputs may be cut up otherwise than they were (by other
    parallelism): then all their splits are."""
    here, there = {split.place[0] for split in splits}, {number for number, _ in remote}
    if {split.place for split in splits} == {place for place in needed if place[0] in here}:
        splits = [split for split in splits if needed[split.place]]
    of_files = {number: [wanted for place, wanted in needed.items() if place[0] == number] for number in there}
    return splits, [one for one in remote if not of_files[one[0]] or any(of_files[one[0]])]


def _grouped(sources: Sequence[tuple[int, Source]], keys: Mapping[str, Hashable]) -> Iterable[list[tuple[int, Source]]]:
    """Sources that can be read together, by the key of each path."""
    groups: dict[Hashable, list[tuple[int, Source]]] = {}
    for number, source in sources:
        groups.setdefault(keys[source.path], []).append((number, source))
    return groups.values()


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
    sources: dict[str, tuple[int, Source]]
    options: ScanOptions

    def __call__(self, file: tuple[str, bytes]) -> Iterator[bytes]:
        number, source = self.sources[spelling(file[0])]
        with tempfile.NamedTemporaryFile(prefix="recollect-", suffix=Path(source.path).suffix) as copy:
            copy.write(file[1])
            copy.flush()
            here = replace(source, path=copy.name)

            def pieces(work: Work) -> Pieces:
                for piece in scan([here], work, self.options):
                    piece.problems = [replace(problem, file=source.label) for problem in piece.problems]
                    yield piece

            yield from self.task((number, 0), pieces)


def _frame_blocks(
    frame: Any, some: Sequence[tuple[int, Source]], like: Source, task: Task, options: ScanOptions
) -> Any:
    """Blocks of lines that Spark reads, all of one kind."""
    numbers = {spelling(source.path): number for number, source in some}
    return frame.mapInArrow(_Lines(task, numbers, like, options), "block binary").rdd.map(_only)


def _parquet_blocks(spark: Any, some: Sequence[tuple[int, Source]], task: Task, options: ScanOptions) -> Any:
    """Of files with one schema."""
    source = some[0][1]
    frame = spark.read.parquet(*(as_written(one.path) for _, one in some))
    types = {name.lower(): (name, kind) for name, kind in frame.dtypes}
    columns = found_columns(types, source.path)
    like = replace(source, kind=Kind.CDX, layout=Layout("".join(columns), "\t", True))
    line = ", '\\t', ".join(_field(letter, *column) for letter, column in columns.items())
    frame = frame.selectExpr(
        f"cast(concat({line}, '\\n') as binary) as line",
        "_metadata.file_path as path",
        "_metadata.file_block_start as start",
    )
    return _frame_blocks(frame, some, like, task, options)


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

        for (path, start), some in groupby(texts_of(batches), key=lambda text: text[0]):
            source = replace(self.like, path=path)
            chunks = (text for _, text in some)

            def read(work: Work, source: Source = source, chunks: Iterator[bytes] = chunks) -> Pieces:
                return scan_text(source, chunks, work, self.options)

            for block in self.task((self.numbers[path], start), read):
                yield pa.RecordBatch.from_pydict({"block": pa.array([block], pa.binary())})
