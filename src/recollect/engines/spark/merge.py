"""Merging maps on Spark: `recollect.maps.merge` on ranges of hosts; the same bytes out.

A range holds whole domains of all maps, so what a wildcard covers is in its range. Wildcards of top-level domains (and
`*`) reach further: then ranges are of whole top-level domains (or there is one).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.mapplan import MapPlan, identity_of_maps, unfinished
from recollect.engines.spark.maps import find_maps, in_ranges, plain_header, spooled, without_header
from recollect.engines.spark.notes import Range
from recollect.engines.spark.parts import assemble, in_chunks
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.engines.spark.targets import target_of
from recollect.errors import FormatError, UsageError
from recollect.formats.containers import OnProblem, open_input, whole_lines
from recollect.formats.ukvs import Header
from recollect.maps.merge import MergeOptions, MergeResult, merge_maps
from recollect.maps.mergehead import Part, merged_header, uri_rs_of_all
from recollect.maps.samplescope import refuse_sample
from recollect.model import Problem, ProgressCallback

MAX_PROBLEMS = 100
# What is counted in each range and added up.
_COUNTS = ("records", "keys", "duplicates", "voids_dropped", "conflicts", "wildcards")


def merge(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    options: MergeOptions | None = None,
    *,
    cluster: Cluster | None = None,
    parts: bool = False,
    sizes: Sizes | None = None,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> MergeResult:
    """Merge maps into one on Spark. Each task reports its first problems only."""
    from recollect.engines.spark.notes import notes

    options, target = options or MergeOptions(), os.fspath(output)
    if not paths:
        raise UsageError("nothing to merge", hint="recollect merge MAP... -o OUT")
    with session(cluster or Cluster()) as spark, ExitStack() as stack:
        maps = find_maps(spark, [os.fspath(path) for path in paths])
        for one in maps:
            refuse_sample(one.header, one.name, "merged on Spark")
            if "frequency" not in one.header.values and one.header.style != "cdxj":
                raise FormatError("a map without frequencies cannot be merged", where=one.name)
        named = [Part(Path(one.name).name, one.size, one.header) for one in maps]
        header = merged_header(
            named,
            archive=options.archive,
            updated_at=options.updated_at,
            disjoint=options.disjoint,
            style=options.style,
        )
        chosen = {name: value for name, value in asdict(options).items() if name not in ("updated_at", "temp_dir")}
        identity = identity_of_maps(spark, "merge", chosen, maps)
        place = target_of(spark, target, as_parts=parts or target.endswith("/"), identity=identity)
        stack.callback(place.discard)
        plan, ranges = unfinished(place, progress)
        if plan is None or not plan.is_done(ranges):
            known = None if plan is None else plan.borders
            ranged = in_ranges(
                spark, maps, sizes or Sizes(), lambda widest: widest, progress, borders=known, done=ranges
            )
            stack.callback(ranged.blocks.unpersist)
            if plan is None:
                place.begin(MapPlan(ranged.borders, ranged.size).as_json())
            reported = notes(spark)
            names = tuple(one.name for one in maps)
            headers = tuple(plain_header(one.header) for one in maps)
            task = _MergeTask(names, headers, replace(options, style=header.style), reported, frozenset(ranges))
            with progress_of(spark, "merging", progress):
                place.receive(ranged.texts.mapPartitionsWithIndex(task), reported)
            ranges |= reported.value
        result = _total(len(maps), ranges, on_problem)
        assemble(place, result.finished(header, uri_rs_of_all(named), result.keys).encode(), ranges, {})
        return result


def _total(maps: int, ranges: dict[int, Range], report: OnProblem | None) -> MergeResult:
    total = MergeResult(maps)
    for _, one in sorted(ranges.items()):
        for problem in one.problems:
            if report is None:
                raise FormatError(problem.reason, where=problem.file, why=problem.excerpt)
            report(problem)
        for name, count in zip(_COUNTS, one.counts, strict=True):
            setattr(total, name, getattr(total, name) + count)
    return total


@dataclass(frozen=True, slots=True)
class _MergeTask:
    """Merges a range."""

    names: tuple[str, ...]
    headers: tuple[Header, ...]
    options: MergeOptions
    reported: Any
    done: frozenset[int]  # ranges that are finished

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        return iter(()) if number in self.done else self._lines(number, pieces)

    def _lines(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        note = Range()
        with spooled(pieces, self.headers) as files:
            merged = f"{files[0]}.merged"
            labels = dict(zip(files, self.names, strict=True))

            def report(problem: Problem) -> None:
                if len(note.problems) < MAX_PROBLEMS:
                    # The number of the line is that in the range, which means nothing to a reader; its text does.
                    note.problems.append(replace(problem, file=labels.get(problem.file, problem.file), line=None))

            result = merge_maps(files, merged, replace(self.options, temp_dir=None), on_problem=report)
            with open_input(merged) as stream:
                for text in in_chunks(_body(whole_lines(stream))):
                    note.saw(text)
                    yield text
        note.keys = result.keys
        note.counts = [getattr(result, name) for name in _COUNTS]
        self.reported.add({number: note})


def _body(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without the header."""
    header = True
    for text in texts:
        if header:
            text = without_header(text)
            header = not text
        if text:
            yield text
