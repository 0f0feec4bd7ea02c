"""Statistics on Spark: `recollect.profiles.statistics.stats` in ranges of domains; the same tables out.

Media types, statuses and years are counted as splits are read. Then every range of domains is gone through by the task
that has it, as one process would go through all (`statranges`), and what ranges counted is added up by the driver:
histograms, tops and totals, some kilobytes for each range however large it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from recollect.engines.plan import DOMAIN
from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.inputs import find_inputs
from recollect.engines.spark.maps import borders_between, find_maps, in_ranges, plain_header, spooled
from recollect.engines.spark.notes import packed, unpacked
from recollect.engines.spark.reading import Reading, reading, task_store
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.errors import FormatError
from recollect.formats.detect import Kind, Source
from recollect.formats.forms import Asked
from recollect.formats.ukvs import Header
from recollect.maps.scope import Selection
from recollect.model import Problem, ProgressCallback
from recollect.profiles.indexes.profile import MAX_EXAMPLES, InputCounts
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.select import Filter
from recollect.profiles.statistics.maptotals import MapCounts, count_map
from recollect.profiles.statistics.statranges import RangeCounts, RangeSurts, crossing, joined
from recollect.profiles.statistics.stats import Stats, check_top, one_map, tables, tables_of_map
from recollect.profiles.statistics.statscan import CaptureCounts, CountingSink


def stats(
    paths: Iterable[str | os.PathLike[str]],
    *,
    chosen: Selection | None = None,
    all_schemes: bool = False,
    asked: Asked | None = None,
    top: int = 10,
    temp_dir: str | os.PathLike[str] | None = None,
    cluster: Cluster | None = None,
    sizes: Sizes | None = None,
    progress: ProgressCallback | None = None,
) -> Stats:
    """The tables of the papers for indexes, or as many as possible for one map, on Spark."""
    check_top(top)
    names = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    found: list[Problem] = []
    with session(cluster or Cluster()) as spark:
        ignored: list[Problem] = []
        inputs = find_inputs(spark, names, found.append, asked=asked, on_ignored=ignored.append)
        sources = [source for source, _ in inputs]
        if not sources and ignored:
            hint = f"recollect inspect {ignored[0].file}"
            raise FormatError("nothing to read", where=ignored[0].file, why=ignored[0].reason, hint=hint)
        if any(source.kind in (Kind.MAP, Kind.PROFILE) for source in sources):
            one_map(sources, chosen)
            return _of_map(spark, sources[0], top, found, sizes or Sizes(), progress)
        folder = None if temp_dir is None else os.fspath(temp_dir)
        sinks = _Sinks(chosen or Selection(), folder)
        with reading(spark, inputs, sinks, all_schemes, sizes or Sizes(), progress) as read:
            captured = CaptureCounts()
            for note in read.notes.values():
                captured.add(unpacked(note.counts))
            with progress_of(spark, "counting", progress):
                ranges = _ranges(read, top, folder, (sizes or Sizes()).block)
            return tables(captured, joined(top, ranges), sources, read.tally(found))


def _ranges(read: Reading, top: int, folder: str | None, block: int) -> Iterator[RangeCounts]:
    """What each range holds, in order."""
    borders = borders_between(((key, weight) for (key, _), weight in read.places()), read.ranges, DOMAIN)
    task = _CountTask(top, folder, borders, block)
    # Partitions come in their order.
    counted: list[bytes] = read.cut([(key, b"") for key in borders]).mapPartitionsWithIndex(task).collect()
    return map(unpacked, counted)


@dataclass(frozen=True, slots=True)
class _Sinks:
    """Makes what counts and sorts captures, for a task."""

    chosen: Selection
    folder: str | None

    def __call__(self, block: int) -> tuple[CountingSink, RunStore]:
        store, folder = task_store(self.folder, block)
        return CountingSink(Filter(self.chosen), store, folder), store


def _around(borders: Sequence[bytes], number: int) -> Sequence[bytes]:
    """The borders on both sides of a range."""
    return borders[max(number - 1, 0) : number + 1]


@dataclass(frozen=True, slots=True)
class _CountTask:
    """Goes through a range of SURTs."""

    top: int
    folder: str | None
    borders: list[bytes]
    block: int

    def __call__(self, number: int, pieces: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        store, _ = task_store(self.folder, self.block)
        seen = RangeSurts(self.top, _around(self.borders, number))
        with closing(store):
            for _, block in pieces:
                store.add(bytes(block))
            seen.read(store)
        yield packed(seen.counted)


def _of_map(
    spark: Any, source: Source, top: int, found: list[Problem], sizes: Sizes, progress: ProgressCallback | None
) -> Stats:
    (one,) = find_maps(spark, [source.path])
    ranged = in_ranges(spark, [one], sizes, lambda _widest: DOMAIN, progress)
    try:
        task = _MapTask(top, ranged.borders, plain_header(one.header), source.label)
        with progress_of(spark, "counting", progress):
            parts: list[bytes] = ranged.texts.mapPartitionsWithIndex(task).collect()
    finally:
        ranged.blocks.unpersist()
    tally, total = InputCounts(), MapCounts()
    for problem in found:
        tally.note(problem)

    def keys() -> Iterator[RangeCounts]:
        for part in map(unpacked, parts):
            total.add(part.records)
            tally.skipped.update(part.tally.skipped)
            tally.flawed.update(part.tally.flawed)
            # The line number is that in its range, which means nothing to users; the text is in the problem.
            examples = part.tally.problems[: MAX_EXAMPLES - len(tally.problems)]
            tally.problems.extend(replace(problem, line=None) for problem in examples)
            yield part.keys

    seen = joined(top, keys())
    return tables_of_map(total, one.header, seen, [source], tally)


@dataclass(frozen=True, slots=True)
class _MapPart:
    """What a range of a map holds."""

    keys: RangeCounts
    records: MapCounts
    tally: InputCounts


@dataclass(frozen=True, slots=True)
class _MapTask:
    """Goes through a range of a map."""

    top: int
    borders: list[bytes]
    header: Header
    name: str

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        tally = InputCounts()

        def report(problem: Problem) -> None:
            tally.note(replace(problem, file=self.name))

        borders = _around(self.borders, number)
        seen = RangeSurts(self.top, borders)
        with spooled(pieces, [self.header]) as files:
            records = count_map(files[0], report, seen, {name for border in borders for name in crossing(border)})
        yield packed(_MapPart(seen.counted, records, tally))
