"""Compaction with hashed sets on Spark: the map of `profiles.compaction.withsets`, byte for byte.

A set is of all that lies below its wildcard, and one optimum chooses all sets together, so the ranges of a map are not
worked on apart: Spark reads the map, wherever it lies, and one task puts it in order and compacts it, in the time and
memory of the embedded engine. The result is as small as its budget; the driver takes it and writes it to its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.maps import NOWHERE, MapOnSpark, in_ranges, spooled
from recollect.engines.spark.parts import assemble
from recollect.engines.spark.session import progress_of
from recollect.engines.spark.targets import target_of
from recollect.errors import RecollectError, UsageError
from recollect.formats.containers import open_input
from recollect.formats.ukvs import Header
from recollect.model import ProgressCallback
from recollect.profiles.compaction.budget import Budget, BudgetCompaction, Case, opened, set_header
from recollect.profiles.compaction.demand import Asked, demand_over
from recollect.profiles.compaction.withsets import compact_with_sets

MOST_BRANCHES = 1 << 25
"""More are too many for one task, which needs some 400 bytes for each: 13 GB."""


def compact_with_sets_on(
    spark: Any,
    one: MapOnSpark,
    budget: Budget,
    asked: Asked | None,
    output: str,
    *,
    as_parts: bool,
    sizes: Sizes,
    progress: ProgressCallback | None,
) -> BudgetCompaction:
    """Compact a map within a budget, with sets."""
    ranged = in_ranges(spark, [one], sizes, lambda _widest: NOWHERE, progress)
    try:
        shared = spark.sparkContext.broadcast(asked)
        task = _Task(one.header, one.name, budget, shared, Path(output).suffix.lower(), MOST_BRANCHES)
        with progress_of(spark, "choosing", progress):
            found = ranged.texts.mapPartitions(task).collect()
    finally:
        ranged.blocks.unpersist()
    made: tuple[BudgetCompaction, bytes] | RecollectError = found[0]
    if isinstance(made, RecollectError):
        raise made
    result: BudgetCompaction = made[0]
    text: bytes = made[1]
    head = set_header(one.header, budget, result.expected_wrong).encode()
    place = target_of(spark, output, as_parts=as_parts)
    try:
        size = assemble(place, head, {}, {0: (text, result.keys_out)} if text else {})
    finally:
        place.discard()
    return replace(result, bytes_in=ranged.size, bytes_out=size)


@dataclass(frozen=True, slots=True)
class _Task:
    """Compacts the only range of a map; gives what was done and the records, or why there are none."""

    header: Header
    name: str
    budget: Budget
    asked: Any
    suffix: str
    most: int

    def __call__(self, pieces: Iterable[Any]) -> Iterator[tuple[BudgetCompaction, bytes] | RecollectError]:
        try:
            with spooled(pieces, [self.header]) as files:
                yield self._compacted(files[0])
        except RecollectError as error:
            yield error

    def _compacted(self, source: str) -> tuple[BudgetCompaction, bytes]:
        target = Path(source).with_name(f"small{self.suffix}")
        with opened(source, 1) as (plain, branches):
            if len(branches) > self.most:
                raise UsageError(
                    "too large a map for hashed sets",
                    where=self.name,
                    why=f"{len(branches):,} branches, and one task takes {self.most:,}",
                    hint="compact it by weights first, then that with --sets; or leave out --sets",
                )
            asked = self.asked.value
            demand = None if asked is None else demand_over(branches, asked)
            case = Case(branches) if demand is None else Case(demand.branches, demand)
            result = compact_with_sets(plain, case, self.budget, target, 1)
        with open_input(target) as lines:
            return result, b"".join(line for line in lines if not line.startswith(b"!"))
