"""Where a command runs: on this machine or on Spark, chosen by the options of the command; `Engine` hides which.

The packages of both engines are imported when they are used, because each import takes longer than most commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.errors import UsageError
from recollect.model import Problem, ProgressCallback

if TYPE_CHECKING:
    from recollect.engines.spark.session import Cluster
    from recollect.formats.forms import Asked
    from recollect.formats.logs import LogEntry
    from recollect.maps.merge import MergeOptions, MergeResult
    from recollect.maps.scope import Selection
    from recollect.profiles.compaction.budget import Budget, BudgetCompaction
    from recollect.profiles.compaction.weights import Compaction, Weights
    from recollect.profiles.indexes.options import ProfileOptions
    from recollect.profiles.indexes.profile import ProfileResult
    from recollect.profiles.statistics.evaluate import Holder
    from recollect.profiles.statistics.stats import Stats

# A function that click decorates; its arguments are the options of the command.
Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["embedded", "spark"]),
        default="embedded",
        show_default=True,
        help="Run on this machine or on Spark; the results are equal.",
    ),
    click.option(
        "--master", metavar="URL", help="Spark's master: local[2], yarn, spark://host:7077.  [default: local[*]]"
    ),
    click.option("--conf", multiple=True, metavar="K=V", help="A Spark setting. Repeatable."),
)
_PARTS = click.option(
    "--parts",
    is_flag=True,
    help="With Spark, write a folder of ordered parts and a manifest; so does -o with a slash at its end.",
)


def engine_options(command: Command) -> Command:
    """--engine, --master, --conf and --parts, for a command that writes a map."""
    return where_options(_PARTS(command))


def where_options(command: Command) -> Command:
    """--engine, --master and --conf."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Describing:
    """How `stats` describes an archive."""

    chosen: Selection
    asked: Asked
    all_schemes: bool
    top: int
    threads: int | None
    memory_limit: int | None
    temp_dir: str | None


@dataclass(frozen=True, slots=True)
class Compacting:
    """A map to compact, and the file to write; `threads` 0 uses all cores."""

    source: str
    target: str
    threads: int
    on_problem: Callable[[Problem], None]
    progress: ProgressCallback


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs on this machine or on a Spark cluster, with the same results; `parts` writes folders of ordered parts
    on Spark."""

    cluster: Cluster | None = None
    parts: bool = False

    def profile(
        self, inputs: Sequence[str], output: str, options: ProfileOptions, progress: ProgressCallback
    ) -> ProfileResult:
        if self.cluster is None:
            from recollect.profiles.indexes.profile import profile

            return profile(inputs, output, options, progress=progress)
        from recollect.engines.spark import profile as spark

        return spark.profile(inputs, output, options=options, progress=progress, cluster=self.cluster, parts=self.parts)

    def stats(self, inputs: Sequence[str], how: Describing, progress: ProgressCallback) -> Stats:
        if self.cluster is None:
            from recollect.profiles.statistics.stats import stats

            return stats(
                inputs,
                chosen=how.chosen,
                all_schemes=how.all_schemes,
                asked=how.asked,
                top=how.top,
                threads=how.threads,
                memory_limit=how.memory_limit,
                temp_dir=how.temp_dir,
                progress=progress,
            )
        from recollect.engines.spark import stats as spark

        if how.memory_limit or how.threads:
            raise UsageError(
                "Spark shares out cores and memory", hint="--master 'local[4]', --conf spark.executor.memory=4g"
            )
        return spark.stats(
            inputs,
            chosen=how.chosen,
            all_schemes=how.all_schemes,
            asked=how.asked,
            top=how.top,
            temp_dir=how.temp_dir,
            progress=progress,
            cluster=self.cluster,
        )

    def merge(
        self,
        maps: Sequence[str],
        output: str,
        options: MergeOptions,
        on_problem: Callable[[Problem], None] | None,
        progress: ProgressCallback,
    ) -> MergeResult:
        if self.cluster is None:
            from recollect.maps.merge import merge_maps

            return merge_maps(maps, output, options, on_problem=on_problem, progress=progress)
        from recollect.engines.spark.merge import merge

        return merge(
            maps, output, options, on_problem=on_problem, progress=progress, cluster=self.cluster, parts=self.parts
        )

    def compact_by_weights(self, job: Compacting, weights: Weights, *, fit: bool) -> Compaction:
        if self.cluster is None:
            from recollect.profiles.compaction.weights import compact_by_weights

            return compact_by_weights(
                job.source,
                job.target,
                weights,
                fit=fit,
                threads=job.threads,
                on_problem=job.on_problem,
                progress=job.progress,
            )
        from recollect.engines.spark import compact as spark

        return spark.compact_by_weights(
            job.source, job.target, weights, fit=fit, progress=job.progress, cluster=self.cluster, parts=self.parts
        )

    def compact_by_budget(
        self, job: Compacting, budget: Budget, lookups: Iterable[LogEntry] | None
    ) -> BudgetCompaction:
        if self.cluster is None:
            from recollect.profiles.compaction.budget import compact_by_budget

            return compact_by_budget(
                job.source,
                job.target,
                budget,
                lookups=lookups,
                threads=job.threads,
                on_problem=job.on_problem,
                progress=job.progress,
            )
        from recollect.engines.spark import budget as spark

        return spark.compact_by_budget(
            job.source,
            job.target,
            budget,
            lookups=lookups,
            progress=job.progress,
            cluster=self.cluster,
            parts=self.parts,
        )

    def holder(self, read_here: Iterable[str]) -> Holder | None:
        """What says which lookups indexes hold, None for the one of `evaluate` itself. Raises if a file that is read on
        this machine, such as a map under evaluation, is not on it."""
        if self.cluster is None:
            return None
        from recollect.engines.spark.evaluate import held_on_spark
        from recollect.engines.spark.files import is_url

        for name in filter(is_url, read_here):
            raise UsageError(
                "maps and logs are read on this machine", where=name, hint="copy it here, and give its path"
            )
        return partial(held_on_spark, cluster=self.cluster)


def taken_engine(options: dict[str, Any], output: str = "") -> Engine:
    """Take the engine out of a command's options."""
    engine, master, conf = options.pop("engine"), options.pop("master"), options.pop("conf")
    parts = options.pop("parts", False)
    if engine == "spark":
        from recollect.engines.spark.session import Cluster, parse_conf

        return Engine(Cluster(master or "", parse_conf(conf)), parts)
    for given, name in ((master, "--master"), (conf, "--conf"), (parts, "--parts")):
        if given:
            raise UsageError(f"{name} is for Spark", hint="add --engine spark")
    if output.endswith("/"):
        raise UsageError("a folder where a file is expected", where=output, hint="parts are written by --engine spark")
    return Engine()
