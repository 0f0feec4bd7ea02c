"""Profiling on Spark: `recollect.profiles.indexes.profile`, many machines wide, with the same bytes out.

Hides the three steps. (1) Every split is read by the embedded engine's scanner, filters and keys; its records are
sorted and summed in the task, and kept on the workers' disks in blocks. (2) From samples of them borders are chosen,
and the blocks are cut there and sent to the tasks of their ranges. (3) Each of those merges its blocks and writes its
lines. The driver adds up totals, numbers the lines of problems and writes the header.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from recollect.engines.plan import Range, in_chunks
from recollect.engines.spark.exchange import Border, Sizes
from recollect.engines.spark.inputs import find_inputs
from recollect.engines.spark.localtarget import LocalTarget
from recollect.engines.spark.parts import assemble, pieces_of
from recollect.engines.spark.reading import Reading, reading, task_store
from recollect.engines.spark.readplan import Input, ReadPlan, identity_of_profile
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.engines.spark.staging import Target
from recollect.engines.spark.targets import target_of
from recollect.errors import UsageError
from recollect.formats.detect import Kind, Source
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.indexes.decompose import DecomposingSink
from recollect.profiles.indexes.inspection import key_notes
from recollect.profiles.indexes.options import DIMENSIONS, ProfileOptions
from recollect.profiles.indexes.policykeys import rekeying
from recollect.profiles.indexes.profile import (
    InputCounts,
    ProfileResult,
    as_cdxj,
    header_of,
    refuse_empty,
    usable,
)
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.select import Filter
from recollect.profiles.indexes.sinks import Totals
from recollect.profiles.indexes.sorting import SortingSink


def profile(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    cluster: Cluster | None = None,
    parts: bool = False,
    sizes: Sizes | None = None,
    options: ProfileOptions | None = None,
    progress: ProgressCallback | None = None,
    **changes: Any,
) -> ProfileResult:
    """Profile what an archive holds, on Spark. Options are those of `recollect.profile`.

    `parts` writes a folder of ordered parts instead of one file, as an output that ends in a slash does.
    """
    chosen = replace(options or ProfileOptions(), **changes)
    names = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    target = None if output is None else os.fspath(output)
    with session(cluster or Cluster()) as spark:
        return _Job(spark, chosen, sizes or Sizes(), progress).run(names, target, parts or (target or "").endswith("/"))


class _Job:
    """One run."""

    def __init__(self, spark: Any, options: ProfileOptions, sizes: Sizes, progress: ProgressCallback | None) -> None:
        from recollect.engines.spark.notes import notes

        self._spark = spark
        self._options = options
        self._sizes = sizes
        self._progress = progress
        self._ranges = notes(spark)

    def run(self, names: Sequence[str], output: str | None, as_parts: bool) -> ProfileResult:
        options, spark = self._options, self._spark
        found: list[Problem] = []
        ignored: list[Problem] = []
        on_problem = None if options.strict else found.append
        inputs = find_inputs(spark, names, on_problem, asked=options.asked, on_ignored=ignored.append)
        sources = usable([source for source, _ in inputs], output, [*found, *ignored])
        inputs = [(source, remote) for source, remote in inputs if source in sources]
        refuse_maps(sources)
        if as_parts and output in (None, "-"):
            raise UsageError("parts need a folder", hint="-o map/ writes map/part-00000.ukvs and so on")
        identity = identity_of_profile(spark, options, inputs)
        target = target_of(spark, output or "-", as_parts=as_parts, temp_dir=options.temp_dir, identity=identity)
        try:
            plan, ranges = self._written(inputs, target, lambda read: self._tally(read, inputs, found, ignored))
            totals, seams = added_up(ranges, options)
            tally = plan.tally
            refuse_empty(options, totals.captures, tally)
            header = header_of(options, sources, totals, tally)
            text = None
            if output is None:
                assert isinstance(target, LocalTarget)
                text = target.text(pieces_of(header.encode(), ranges, seams))
            else:
                assemble(target, header.encode(), ranges, seams)
        finally:
            target.discard()
        return ProfileResult(totals, tally, tuple(sources), header, output, text, False, plan.size)

    def _tally(
        self, read: Reading, inputs: Sequence[Input], found: Sequence[Problem], ignored: Sequence[Problem]
    ) -> InputCounts:
        tally = read.tally(found, strict=self._options.strict)
        tally.ignored += ignored
        if self._options.compare_keys:
            tally.notes += key_notes([source for source, remote in inputs if not remote])
        return tally

    def _written(
        self, inputs: Sequence[Input], target: Target, tally_of: Callable[[Reading], InputCounts]
    ) -> tuple[ReadPlan, dict[int, Range]]:
        """Write the ranges that no earlier run has finished; returns all of them, and what was read."""
        earlier = target.earlier()
        plan = None if earlier is None else ReadPlan.of_json(earlier.state)
        done = {} if earlier is None or plan is None else earlier.ranges
        if plan is not None and len(done) > len(plan.borders):
            return plan, done
        if self._progress is not None and plan is not None:
            self._progress(Progress("going on from finished parts", len(done), len(plan.borders) + 1, "parts"))
        needed = None if plan is None else plan.needed(done)
        options = self._options
        how = (Sinks(options), options.all_schemes, self._sizes, self._progress, options.detect_language)
        with reading(self._spark, inputs, *how, needed=needed) as read:
            if plan is None:
                plan = ReadPlan.of(read, tally_of(read))
                target.begin(plan.as_json())
            task = RangeTask(self._options, self._ranges, plan.borders, self._sizes.block, frozenset(done))
            with progress_of(self._spark, "writing", self._progress):
                target.receive(read.cut(plan.borders, done).mapPartitionsWithIndex(task), self._ranges)
        return plan, done | self._ranges.value


def refuse_maps(sources: Sequence[Source]) -> None:
    """Raise if a map is among the inputs, which are indexes."""
    maps = [source.label for source in sources if source.kind in (Kind.MAP, Kind.PROFILE)]
    if maps:
        raise UsageError(
            "a map among the inputs", where=maps[0], hint="--engine embedded takes maps; or recollect merge MAP... "
        )


@dataclass(frozen=True, slots=True)
class Sinks:
    """Makes what sorts records and makes lines of them, for a task."""

    options: ProfileOptions

    def __call__(self, block: int) -> tuple[SortingSink, RunStore]:
        options = self.options
        store, folder = task_store(options.temp_dir, block)
        chosen, rekey = Filter(options.chosen), rekeying(options.policy)
        if not options.by:
            return SortingSink(chosen, store, folder, rekey=rekey), store
        columns = options.by_columns
        return DecomposingSink(chosen, store, options.by, columns=columns, temp_dir=folder, rekey=rekey), store


@dataclass(frozen=True, slots=True)
class RangeTask:
    """Merges the blocks of a range into lines."""

    options: ProfileOptions
    notes: Any
    borders: list[Border]
    block: int
    done: frozenset[int] = frozenset()  # ranges that are finished

    def __call__(self, number: int, pieces: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        return iter(()) if number in self.done else self._lines(number, pieces)

    def _lines(self, number: int, pieces: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        note = Range()
        sink, store = Sinks(self.options)(self.block)
        with closing(sink):
            for _, block in pieces:
                store.add(bytes(block))
            sink.finish()
            totals = sink.totals()
            note.keys, note.captures, note.uri_rs = totals.keys, totals.captures, totals.uri_rs
            for text in in_chunks(self._own(number, sink.lines(), note)):
                whole = as_cdxj(text) if self.options.output_format == "cdxj" else text
                note.saw(whole)
                yield whole
        note.keys -= len({line.split(b" ", 1)[0] for line in note.seams})
        self.notes.add({number: note})

    def _own(self, number: int, texts: Iterable[bytes], note: Range) -> Iterator[bytes]:
        """The lines that are this range's alone; those of keys that a border cuts are set aside."""
        low = self.borders[number - 1] if number else (b"", b"")
        high = self.borders[number] if number < len(self.borders) else (b"", b"")
        for text in texts:
            if low[1]:
                while text.startswith(low[0] + b" "):
                    line, _, text = text.partition(b"\n")
                    note.seams.append(line)
            if high[1] and text:
                at = 0 if text.startswith(high[0] + b" ") else text.find(b"\n" + high[0] + b" ") + 1 or len(text)
                note.seams += text[at:].splitlines()
                text = text[:at]
            if text:
                yield text


def added_up(ranges: dict[int, Range], options: ProfileOptions) -> tuple[Totals, dict[int, tuple[bytes, int]]]:
    """What all ranges hold, and the lines of keys that were made in several."""
    seams, keys = _seams(ranges, options)
    sums = (sum(getattr(one, name) for one in ranges.values()) for name in ("keys", "captures", "uri_rs"))
    total = Totals(*sums)
    return replace(total, keys=total.keys + keys), seams


def _seams(ranges: dict[int, Range], options: ProfileOptions) -> tuple[dict[int, tuple[bytes, int]], int]:
    """The lines of keys that were made in several ranges, added up, by the range before which they stand; and how many
    keys these are."""
    found: dict[bytes, list[bytes]] = {}
    places: dict[bytes, int] = {}
    for number, one in sorted(ranges.items()):
        for line in one.seams:
            key = line.split(b" ", 1)[0]
            found.setdefault(key, []).append(line)
            # A key that one range has alone after all stands where that range ends.
            places[key] = number + 1 if key not in places else min(places[key], number + 1)
    seams: dict[int, tuple[bytes, int]] = {}
    for key, lines in sorted(found.items()):
        text = _added(key, lines, options)
        text = as_cdxj(text) if options.output_format == "cdxj" else text
        before = seams.get(places[key], (b"", 0))
        seams[places[key]] = (before[0] + text, before[1] + 1)
    return seams, len(found)


def _added(key: bytes, lines: Sequence[bytes], options: ProfileOptions) -> bytes:
    """Lines of one key, of disjoint sets of SURTs, as one (or one for each combination of columns)."""
    width = len(options.by) + 1 if options.by_columns else 1
    rows: dict[tuple[bytes, ...], list[int]] = {}
    parts: dict[str, dict[str, list[int]]] = {}
    for line in lines:
        words = line.split(b" ", width + 1)
        _count(rows.setdefault(tuple(words[1:width]), [0, 0]), words[width])
        for name, values in json.loads(words[width + 1]).items() if len(words) > width + 1 else ():
            for value, frequency in values.items():
                _count(parts.setdefault(name, {}).setdefault(value, [0, 0]), frequency.encode())
    block = b""
    if parts:
        names = dict.fromkeys(DIMENSIONS[dimension] for dimension in options.by)
        # A missing value is written `-` and sorted as nothing.
        ordered = {
            name: {
                value: f"{m}/{r}"
                for value, (m, r) in sorted(parts[name].items(), key=lambda item: item[0] if item[0] != "-" else "")
            }
            for name in names
            if name in parts
        }
        block = b" " + json.dumps(ordered, ensure_ascii=False).encode("utf-8", "replace")
    return b"".join(
        b"%b %d/%d%b\n" % (b" ".join((key, *values)), m, r, block) for values, (m, r) in sorted(rows.items())
    )


def _count(counts: list[int], frequency: bytes) -> None:
    m, _, r = frequency.partition(b"/")
    counts[0] += int(m)
    counts[1] += int(r)
