"""The plans of merging and of compaction by weights: `maps.merge` and `profiles.compaction.weights` on ranges of hosts.

Merge: a range holds whole domains of all maps, so what a wildcard covers is in its range. Wildcards of top-level
domains (and `*`) reach further: then ranges are of whole top-level domains, or there is one. Compaction: every node
that may roll up lies in one range, as it would in one process. Only a and k of `--fit` are of the whole map: a survey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recollect.engines.plan import DOMAIN, TOP, InputMap, Range, Survey, Work, without_header
from recollect.errors import FormatError, UsageError
from recollect.formats.containers import OnProblem, open_input, whole_lines
from recollect.maps.merge import MergeOptions, MergeResult, header_of, merge_maps
from recollect.maps.mergehead import Part, uri_rs_of_all
from recollect.maps.plainmap import PlainMap, open_plain
from recollect.maps.samplescope import refuse_sample
from recollect.model import Problem
from recollect.profiles.compaction.weights import (
    Compaction,
    NeedsTidying,
    Weights,
    compaction_header,
    fitted_to,
    run_all,
    without_rollups,
    without_wildcards,
)

MAX_PROBLEMS = 100  # that a range reports
# What is counted in each range and added up.
_MERGED = ("records", "keys", "duplicates", "voids_dropped", "conflicts", "wildcards")


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Maps into one."""

    sources: Sequence[str]
    merging: MergeOptions
    on_problem: OnProblem | None = None
    name: str = "merge"
    stage: str = "merging"

    def options(self) -> Mapping[str, object]:
        return {name: value for name, value in asdict(self.merging).items() if name not in ("updated_at", "temp_dir")}

    def check(self, maps: Sequence[InputMap]) -> None:
        if not maps:
            raise UsageError("nothing to merge", hint="recollect merge MAP... -o OUT")
        for one in maps:
            refuse_sample(one.header, one.name, "merged on Spark")
            if "frequency" not in one.header.values and one.header.style != "cdxj":
                raise FormatError("a map without frequencies cannot be merged", where=one.name)

    def depth(self, widest: int) -> int:
        return widest

    def survey(self, maps: Sequence[InputMap]) -> Survey | None:
        return None

    def surveyed(self, total: Any) -> dict[str, Any]:
        return {}

    def work(self, maps: Sequence[InputMap], found: Mapping[str, Any]) -> Work:
        style = header_of(_parts(maps), self.merging).style
        return _Merge(tuple(one.name for one in maps), replace(self.merging, style=style, temp_dir=None))

    def combine(
        self, maps: Sequence[InputMap], found: Mapping[str, Any], ranges: Mapping[int, Range], size: int
    ) -> tuple[bytes, MergeResult]:
        total, parts = MergeResult(len(maps)), _parts(maps)
        for _, one in sorted(ranges.items()):
            for problem in one.problems:
                if self.on_problem is None:
                    raise FormatError(problem.reason, where=problem.file, why=problem.excerpt)
                self.on_problem(problem)
            for name, count in zip(_MERGED, one.counts, strict=True):
                setattr(total, name, getattr(total, name) + count)
        header = header_of(parts, self.merging)
        return total.finished(header, uri_rs_of_all(parts), total.keys).encode(), total


def _parts(maps: Sequence[InputMap]) -> list[Part]:
    return [Part(Path(one.name).name, one.size, one.header) for one in maps]


@dataclass(frozen=True, slots=True)
class _Merge:
    """Merges a range."""

    names: tuple[str, ...]
    options: MergeOptions

    def __call__(self, files: Sequence[str], note: Range) -> Iterator[bytes]:
        merged, labels = f"{files[0]}.merged", dict(zip(files, self.names, strict=True))

        def report(problem: Problem) -> None:
            if len(note.problems) < MAX_PROBLEMS:
                # The number of the line is that in the range, which means nothing to a reader; its text does.
                note.problems.append(replace(problem, file=labels.get(problem.file, problem.file), line=None))

        result = merge_maps(files, merged, self.options, on_problem=report)
        note.keys, note.counts = result.keys, [getattr(result, name) for name in _MERGED]
        with open_input(merged) as stream:
            yield from _body(whole_lines(stream))


def _body(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without the header."""
    header = True
    for text in texts:
        if header:
            text = without_header(text)
            header = not text
        if text:
            yield text


@dataclass(frozen=True, slots=True)
class WeightsPlan:
    """A map compacted by weights."""

    source: str
    weights: Weights
    fit: bool = False
    name: str = "compact by weights"
    stage: str = "compacting"

    @property
    def sources(self) -> Sequence[str]:
        return [self.source]

    def options(self) -> Mapping[str, object]:
        return {**asdict(self.weights), "fit": self.fit}

    def check(self, maps: Sequence[InputMap]) -> None:
        for one in maps:
            refuse_sample(one.header, one.name, "compacted")
            if len(one.header.keys) > 1 or one.header.style != "ukvs":
                raise UsageError(
                    "a map with more columns than a key and a frequency", where=one.name, hint="--engine embedded"
                )

    def depth(self, widest: int) -> int:
        return TOP if self.weights.rollup_tlds else DOMAIN

    def survey(self, maps: Sequence[InputMap]) -> Survey | None:
        return _CountNodes(maps[0].name, without_rollups(self.weights)) if self.fit else None

    def surveyed(self, total: Any) -> dict[str, Any]:
        return asdict(self.weights if total is None else fitted_to(total, self.weights))

    def work(self, maps: Sequence[InputMap], found: Mapping[str, Any]) -> Work:
        return _Compact(maps[0].name, Weights(**found))

    def combine(
        self, maps: Sequence[InputMap], found: Mapping[str, Any], ranges: Mapping[int, Range], size: int
    ) -> tuple[bytes, Compaction]:
        weights = Weights(**found)
        head = compaction_header(maps[0].header, weights).encode()
        keys_in, keys_out, rollups = (sum(one.counts[at] for one in ranges.values()) for at in range(3))
        written = len(head) + sum(one.size for one in ranges.values())
        return head, Compaction(keys_in, keys_out, rollups, size, written, weights)


@dataclass(frozen=True, slots=True)
class _Compact:
    """Compacts a range."""

    name: str
    weights: Weights

    def __call__(self, files: Sequence[str], note: Range) -> Iterator[bytes]:
        counts = np.zeros(3, np.int64)
        for result in _results(files, self.name, self.weights):
            counts += (result.lines, result.written, result.rollups)
            result.text.seek(0)
            with closing(result.text) as text:
                while piece := text.read(1 << 20):
                    # Chunks must end with a line.
                    yield piece if piece.endswith(b"\n") else piece + text.readline()
        note.keys, note.counts = int(counts[1]), [int(count) for count in counts]


@dataclass(frozen=True, slots=True)
class _CountNodes:
    """How many nodes there are at each depth, and how many children they have."""

    name: str
    weights: Weights

    def __call__(self, files: Sequence[str]) -> Any:
        total: Any = 0
        for result in _results(files, self.name, self.weights, without_wildcards):
            result.text.close()
            total = total + np.asarray(result.tally)
        return total


def _results(
    files: Sequence[str], name: str, weights: Weights, of: Callable[[PlainMap], PlainMap] = lambda one: one
) -> Iterator[Any]:
    with open_plain(files[0]) as plain:
        try:
            yield from run_all(of(plain), weights, 1, None)
        except NeedsTidying:
            raise FormatError(
                "a map that is not plain, sorted and unique",
                where=name,
                why=f"put it in order first: recollect merge {name} -o tidy.ukvs",
            ) from None
