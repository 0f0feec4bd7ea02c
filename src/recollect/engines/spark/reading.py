"""Indexes read on Spark: records of each split, sorted and summed by its task, in blocks on the disks of workers.

Hides: splits, and what tasks report about them. Totals and problems come to the driver by the name of the split, so
that lines are numbered as if one process had read all; samples say where the records lie, so that ranges get alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from recollect.engines.spark import exchange
from recollect.engines.spark.exchange import Border, Sample, Sizes, first_of, last_of
from recollect.engines.spark.inputs import Place, blocks_of
from recollect.engines.spark.notes import notes, packed
from recollect.engines.spark.session import progress_of
from recollect.formats.detect import Source
from recollect.model import Problem, ProgressCallback
from recollect.profiles.indexes.profile import MAX_EXAMPLES, InputCounts
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.scan import ScanOptions, bad_input
from recollect.profiles.indexes.sorting import SortingSink

# For sorting in one task, of which a worker runs as many at once as it has cores.
TASK_MEMORY = 128 << 20
# Makes what takes the captures of a split, and where it sorts them, given the size of blocks.
MakeSink = Callable[[int], tuple[SortingSink, RunStore]]


def task_store(temp_dir: str | None, block: int) -> tuple[RunStore, str | None]:
    """What a task sorts in, and the folder for what memory cannot hold."""
    folder = temp_dir or os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
    folder = folder if folder and Path(folder).is_dir() else None
    return RunStore(TASK_MEMORY, folder, piece=block), folder


@dataclass(slots=True)
class SplitNote:
    """What a task reports about a split; `counts` is what its sink counted beside the records, packed."""

    sample: Sample
    size: int = 0
    first: Border = (b"", b"")
    last: Border = (b"", b"")
    tally: InputCounts = field(default_factory=InputCounts)
    counts: bytes = b""


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Reads a split; gives its records, sorted and summed."""

    sinks: MakeSink
    notes: Any
    samples: int
    block: int

    def __call__(self, place: Place, read: Callable[[Any], Iterator[Any]]) -> Iterator[bytes]:
        note = SplitNote(Sample(self.samples, self.block))
        sink, store = self.sinks(self.block)
        with closing(sink):
            for piece in read(sink.work):
                note.tally.lines += piece.lines
                note.tally.left_out.update(piece.left_out)
                for problem in piece.problems:
                    note.tally.note(problem)
                for result in piece.results:
                    note.tally.filtered.update(result.dropped)
                    note.tally.saw(result.first_time, result.last_time)
                    sink.take(result)
            block = None
            for block in filter(len, store.merged()):
                note.first = note.first if note.size else first_of(block)
                note.size += len(block)
                note.sample.add(block)
                yield block.tobytes()
            if block is not None:
                note.last = last_of(block)
            note.counts = packed(getattr(sink, "counts", None))
        self.notes.add({place: note})


@dataclass(frozen=True, slots=True)
class _CutTask:
    """Cuts blocks at the borders."""

    borders: list[Border]
    done: frozenset[int]

    def __call__(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        return (piece for piece in exchange.cut(blocks, self.borders) if piece[0] not in self.done)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: an RDD of blocks, and a note for each split, in the order of the input."""

    sources: Sequence[Source]
    blocks: Any
    notes: dict[Place, SplitNote]
    ranges: int  # into which the records are to be cut

    @property
    def size(self) -> int:
        """Bytes of records."""
        return sum(note.size for note in self.notes.values())

    def tally(self, found: Iterable[Problem], *, strict: bool = False) -> InputCounts:
        """All splits together; `found` are problems from before."""
        total = InputCounts()
        for problem in found:
            total.note(problem)
        for number, places in groupby(sorted(self.notes), key=lambda place: place[0]):
            lines = 0
            for place in places:
                part = self.notes[place].tally
                _add(total, part, lines, self.sources[number].label)
                lines += part.lines
        if strict and (total.damaged or total.problems):
            raise bad_input([*total.problems, *total.damaged][0])
        return total

    def places(self) -> Iterator[tuple[Border, int]]:
        """Samples of where the records lie, with weights."""
        for note in self.notes.values():
            for place in note.sample.places:
                yield place, note.sample.weight

    def cut(self, borders: list[Border], done: Iterable[int] = ()) -> Any:
        """An RDD of (range, block): blocks brought to the partitions of their ranges, without ranges that are done."""
        task = _CutTask(borders, frozenset(done))
        return self.blocks.mapPartitions(task).partitionBy(len(borders) + 1, exchange.itself)


@contextmanager
def reading(
    spark: Any,
    inputs: Sequence[tuple[Source, bool]],
    sinks: MakeSink,
    all_schemes: bool,
    sizes: Sizes,
    progress: ProgressCallback | None,
    detect_language: str = "",
    *,
    needed: Mapping[Place, bool] | None = None,
) -> Iterator[Reading]:
    """Read all inputs; what was read is on the workers' disks until the end of the body. Splits that an earlier reading
    found, and that are not `needed`, are left out."""
    from pyspark import StorageLevel

    reported = notes(spark)
    samples = max(8, exchange.SAMPLES // max(len(inputs), 1000))
    task = ScanTask(sinks, reported, samples, sizes.block)
    how = ScanOptions(threads=1, all_schemes=all_schemes, detect_language=detect_language)
    blocks = blocks_of(spark, inputs, task, sizes, how, needed=needed)
    blocks = blocks.persist(StorageLevel.DISK_ONLY)
    try:
        with progress_of(spark, "reading", progress):
            # Counted on the Java side: the blocks stay where they are.
            blocks._jrdd.count()
        found: dict[Place, SplitNote] = reported.value
        size = sum(note.size for note in found.values())
        ranges = exchange.ranges_for(size, spark.sparkContext.defaultParallelism, sizes)
        yield Reading([source for source, _ in inputs], blocks, found, ranges)
    finally:
        blocks.unpersist()


def _add(total: InputCounts, part: InputCounts, lines: int, label: str) -> None:
    """Add a split to the whole; `lines` stand before it in its source."""
    total.lines += part.lines
    total.filtered.update(part.filtered)
    total.left_out.update(part.left_out)
    total.skipped.update(part.skipped)
    total.flawed.update(part.flawed)
    total.damaged += part.damaged
    total.saw(part.first_time, part.last_time)
    remaining = MAX_EXAMPLES - len(total.problems)
    for problem in part.problems[:remaining]:
        total.problems.append(replace(problem, file=label, line=(problem.line or 0) + lines))
