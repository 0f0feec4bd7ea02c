"""The Spark engine: runs any plan over the ranges of maps, and goes on from the finished parts of an earlier run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar, cast

import numpy as np

from recollect.engines.operations import (
    CompactByBudget,
    CompactByWeights,
    Describe,
    FindHeld,
    Merge,
    Operation,
    Profile,
)
from recollect.engines.plan import MapPlan, Range, Survey, Work, in_chunks
from recollect.engines.spark.budget import compact_by_budget
from recollect.engines.spark.evaluate import held_on_spark
from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.maps import MapOnSpark, find_maps, in_ranges, plain_header, spooled
from recollect.engines.spark.notes import notes, packed, unpacked
from recollect.engines.spark.parts import assemble
from recollect.engines.spark.profile import profile
from recollect.engines.spark.resume import identity_of, stamps_of
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.engines.spark.staging import Target
from recollect.engines.spark.stats import stats
from recollect.engines.spark.targets import target_of
from recollect.errors import UsageError
from recollect.formats.ukvs import Header
from recollect.model import Progress, ProgressCallback
from recollect.profiles.compaction.budget import BudgetCompaction
from recollect.profiles.indexes.profile import ProfileResult
from recollect.profiles.statistics.evaluate import Known
from recollect.profiles.statistics.stats import Stats

Result = TypeVar("Result")


def run_plan(
    plan: MapPlan[Result],
    output: str | os.PathLike[str],
    *,
    cluster: Cluster | None = None,
    parts: bool = False,
    sizes: Sizes | None = None,
    progress: ProgressCallback | None = None,
) -> Result:
    """Make the map of a plan on Spark; `parts` writes a folder of ordered parts, as an output with a slash at its end
    does."""
    target = os.fspath(output)
    with session(cluster or Cluster()) as spark, ExitStack() as stack:
        maps = find_maps(spark, plan.sources)
        plan.check(maps)
        identity = _identity(spark, plan, maps)
        place = target_of(spark, target, as_parts=parts or target.endswith("/"), identity=identity)
        stack.callback(place.discard)
        split, ranges = _unfinished(place, progress)
        if split is None or len(ranges) <= len(split.borders):
            borders = None if split is None else split.borders
            ranged = in_ranges(spark, maps, sizes or Sizes(), plan.depth, progress, borders=borders, done=ranges)
            stack.callback(ranged.blocks.unpersist)
            headers = tuple(plain_header(one.header) for one in maps)
            if split is None:
                total = None
                if (survey := plan.survey(maps)) is not None:
                    with progress_of(spark, "fitting", progress):
                        sums = ranged.texts.mapPartitions(_SurveyTask(headers, survey)).collect()
                    total = reduce(np.add, map(unpacked, sums))
                split = _Split(ranged.borders, ranged.size, plan.surveyed(total))
                place.begin(split.as_json())
            reported = notes(spark)
            task = RangeTask(headers, plan.work(maps, split.found), reported, frozenset(ranges))
            with progress_of(spark, plan.stage, progress):
                place.receive(ranged.texts.mapPartitionsWithIndex(task), reported)
            ranges |= reported.value
        head, result = plan.combine(maps, split.found, ranges, split.size)
        assemble(place, head, ranges, {})
        return result


@dataclass(frozen=True, slots=True)
class RangeTask:
    """Does the work on a range."""

    headers: tuple[Header, ...]
    work: Work
    reported: Any
    done: frozenset[int]  # ranges that are finished

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        return iter(()) if number in self.done else self._lines(number, pieces)

    def _lines(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        note = Range()
        with spooled(pieces, self.headers) as files:
            for text in in_chunks(self.work(files, note)):
                note.saw(text)
                yield text
        self.reported.add({number: note})


@dataclass(frozen=True, slots=True)
class _SurveyTask:
    """Surveys a range."""

    headers: tuple[Header, ...]
    survey: Survey

    def __call__(self, pieces: Iterable[Any]) -> Iterator[bytes]:
        with spooled(pieces, self.headers) as files:
            yield packed(self.survey(files))


@dataclass(frozen=True, slots=True)
class _Split:
    """What a later run of the same plan needs to make only the ranges that are missing: the borders between ranges,
    the bytes of all maps, and what was surveyed."""

    borders: list[bytes]
    size: int
    found: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The split as JSON has it."""
        borders = [border.decode("latin-1") for border in self.borders]
        return {"borders": borders, "size": self.size, "found": self.found}

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> _Split | None:
        """The split that JSON has; None if it has none."""
        try:
            borders = [border.encode("latin-1") for border in values["borders"]]
            return cls(borders, int(values["size"]), dict(values["found"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def _identity(spark: Any, plan: MapPlan[Any], maps: Sequence[MapOnSpark]) -> str:
    stamps = stamps_of(spark, [path for one in maps for path, _ in one.files])
    return identity_of(plan.name, {**plan.options(), "maps": [one.name for one in maps]}, stamps)


def _unfinished(target: Target, progress: ProgressCallback | None) -> tuple[_Split | None, dict[int, Range]]:
    """What an earlier run of the same plan split and finished."""
    earlier = target.earlier()
    split = None if earlier is None else _Split.of_json(earlier.state)
    if earlier is None or split is None:
        return None, {}
    if progress is not None:
        progress(Progress("going on from finished parts", len(earlier.ranges), len(split.borders) + 1, "parts"))
    return split, earlier.ranges


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A Spark cluster; `parts` writes maps as folders of ordered parts."""

    cluster: Cluster
    parts: bool = False

    def run(self, operation: Operation[Result], progress: ProgressCallback) -> Result:
        """Run an operation: its plan, or what Spark has for it."""
        if isinstance(operation, Merge | CompactByWeights):
            plan = cast(MapPlan[Result], operation.plan())
            return run_plan(plan, operation.output, cluster=self.cluster, parts=self.parts, progress=progress)
        return cast(Result, _RUN[type(operation)](self, operation, progress))


def _profile(engine: SparkEngine, work: Profile, progress: ProgressCallback) -> ProfileResult:
    return profile(
        work.inputs, work.output, options=work.options, progress=progress, cluster=engine.cluster, parts=engine.parts
    )


def _describe(engine: SparkEngine, work: Describe, progress: ProgressCallback) -> Stats:
    if work.memory_limit or work.threads:
        raise UsageError(
            "Spark shares out cores and memory", hint="--master 'local[4]', --conf spark.executor.memory=4g"
        )
    return stats(
        work.inputs,
        chosen=work.chosen,
        all_schemes=work.all_schemes,
        asked=work.asked,
        top=work.top,
        temp_dir=work.temp_dir,
        progress=progress,
        cluster=engine.cluster,
    )


def _find_held(engine: SparkEngine, work: FindHeld, progress: ProgressCallback) -> Known:
    return held_on_spark(work.names, work.policy, work.lookups, progress, cluster=engine.cluster)


def _by_budget(engine: SparkEngine, work: CompactByBudget, progress: ProgressCallback) -> BudgetCompaction:
    return compact_by_budget(
        work.source,
        work.output,
        work.budget,
        lookups=work.lookups,
        on_problem=work.on_problem,
        progress=progress,
        cluster=engine.cluster,
        parts=engine.parts,
    )


# Operations on indexes, and those that look at a map as a whole.
_RUN: Mapping[type, Callable[[SparkEngine, Any, ProgressCallback], Any]] = {
    Profile: _profile,
    Describe: _describe,
    FindHeld: _find_held,
    CompactByBudget: _by_budget,
}
