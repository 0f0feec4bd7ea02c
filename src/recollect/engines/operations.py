"""Operations that an engine runs, and the engine of this machine. An engine is a class with `run`; a third one is one
class more.

What operations need is imported when they run, because each import takes longer than most commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from recollect.model import Problem, ProgressCallback

if TYPE_CHECKING:
    from recollect.engines.plan import MapPlan
    from recollect.formats.forms import Asked
    from recollect.formats.logs import LogEntry
    from recollect.maps.merge import MergeOptions, MergeResult
    from recollect.maps.scope import Selection
    from recollect.profiles.compaction.budget import BudgetCompaction
    from recollect.profiles.compaction.case import Budget
    from recollect.profiles.compaction.weights import Compaction, Weights
    from recollect.profiles.indexes.options import ProfileOptions
    from recollect.profiles.indexes.profile import ProfileResult
    from recollect.profiles.statistics.evaluate import DistinctLookups, Known
    from recollect.profiles.statistics.stats import Stats

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class Operation(Protocol[Made]):
    """An operation, with all that it needs but the place where it runs."""

    def here(self, progress: ProgressCallback) -> Made:
        """Run it on this machine."""


class Engine(Protocol):
    """Runs operations; their results are equal, whatever the engine."""

    def run(self, operation: Operation[Result], progress: ProgressCallback) -> Result: ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """This machine, with all its cores."""

    def run(self, operation: Operation[Result], progress: ProgressCallback) -> Result:
        return operation.here(progress)


@dataclass(frozen=True, slots=True)
class Profile:
    """Profile indexes into a map."""

    inputs: Sequence[str]
    output: str
    options: ProfileOptions

    def here(self, progress: ProgressCallback) -> ProfileResult:
        from recollect.profiles.indexes.profile import profile

        return profile(self.inputs, self.output, self.options, progress=progress)


@dataclass(frozen=True, slots=True)
class Describe:
    """The statistics of an archive."""

    inputs: Sequence[str]
    chosen: Selection
    asked: Asked
    all_schemes: bool
    top: int
    threads: int | None
    memory_limit: int | None
    temp_dir: str | None

    def here(self, progress: ProgressCallback) -> Stats:
        from recollect.profiles.statistics.stats import stats

        return stats(
            self.inputs,
            chosen=self.chosen,
            all_schemes=self.all_schemes,
            asked=self.asked,
            top=self.top,
            threads=self.threads,
            memory_limit=self.memory_limit,
            temp_dir=self.temp_dir,
            progress=progress,
        )


@dataclass(frozen=True, slots=True)
class FindHeld:
    """Which lookups indexes hold, by the keys of a policy."""

    names: Sequence[str]
    policy: str
    lookups: DistinctLookups

    def here(self, progress: ProgressCallback) -> Known:
        from recollect.profiles.statistics.evaluate import held_here

        return held_here(self.names, self.policy, self.lookups, progress)


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge maps."""

    maps: Sequence[str]
    output: str
    options: MergeOptions
    on_problem: Callable[[Problem], None] | None

    def here(self, progress: ProgressCallback) -> MergeResult:
        from recollect.maps.merge import merge_maps

        return merge_maps(self.maps, self.output, self.options, on_problem=self.on_problem, progress=progress)

    def plan(self) -> MapPlan[MergeResult]:
        """How it is shared out."""
        from recollect.engines.mapplans import MergePlan

        return MergePlan(self.maps, self.options, self.on_problem)


@dataclass(frozen=True, slots=True)
class CompactByWeights:
    """Compact a map by weights; `threads` 0 uses all cores."""

    source: str
    output: str
    weights: Weights
    fit: bool
    threads: int
    on_problem: Callable[[Problem], None]

    def here(self, progress: ProgressCallback) -> Compaction:
        from recollect.profiles.compaction.weights import compact_by_weights

        return compact_by_weights(
            self.source,
            self.output,
            self.weights,
            fit=self.fit,
            threads=self.threads,
            on_problem=self.on_problem,
            progress=progress,
        )

    def plan(self) -> MapPlan[Compaction]:
        """How it is shared out."""
        from recollect.engines.mapplans import WeightsPlan

        return WeightsPlan(self.source, self.weights, self.fit)


@dataclass(frozen=True, slots=True)
class CompactByBudget:
    """Compact a map within a budget, which decides about the whole map at once; `threads` 0 uses all cores."""

    source: str
    output: str
    budget: Budget
    lookups: Iterable[LogEntry] | None
    threads: int
    on_problem: Callable[[Problem], None]

    def here(self, progress: ProgressCallback) -> BudgetCompaction:
        from recollect.profiles.compaction.budget import compact_by_budget

        return compact_by_budget(
            self.source,
            self.output,
            self.budget,
            lookups=self.lookups,
            threads=self.threads,
            on_problem=self.on_problem,
            progress=progress,
        )
