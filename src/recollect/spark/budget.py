"""Compaction by budget on Spark: `profiles.compaction.budget` over the branches of all ranges; the same bytes out.

Every range of domains reduces its keys to branches with their partial sums (`gathered`); one task puts those together,
finds the price at which the whole map meets the budget, and spends what is left over; every range then writes its
lines by what was decided. Keys and lines never leave their range, and the driver gets decisions, a fraction of a byte
for each branch. What the one task needs is said in docs/scale.md.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zstandard

from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.logs import LogEntry
from recollect.formats.ukvs import Header
from recollect.model import ProgressCallback
from recollect.profiles.compaction.branches import branches_of
from recollect.profiles.compaction.budget import (
    COMPRESSED,
    Budget,
    BudgetCompaction,
    Case,
    Choice,
    TooSmall,
    budget_header,
    choose,
    key_limit,
    outcome,
    within_bytes,
)
from recollect.profiles.compaction.demand import Asked, asked_in, demand_over
from recollect.profiles.compaction.forecast import Fit
from recollect.profiles.maps.plainmap import open_plain
from recollect.spark.exchange import Sizes
from recollect.spark.files import Target, target_of
from recollect.spark.gathered import Decided, Part, asked_between, decided_for, gathered, part_of, spellings
from recollect.spark.maps import DOMAIN, NOWHERE, TOP, MapOnSpark, Ranged, find_map, in_ranges, plain_header, spooled
from recollect.spark.notes import notes
from recollect.spark.parts import Range, assemble, in_chunks, write_texts
from recollect.spark.session import Cluster, progress_of, session

# How deep the nodes lie that may roll up, by what `Choice.rolled_up` says.
_DEPTHS = {"": DOMAIN, "tlds": TOP, "root": NOWHERE}


@dataclass(frozen=True, slots=True)
class Plan(Choice):
    """A choice whose decisions are packed up for the ranges; `result` lacks what is known when all is written."""

    packed: dict[int, bytes]
    result: BudgetCompaction
    records: int


def compact_by_budget(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    budget: Budget,
    *,
    lookups: Iterable[LogEntry] | None = None,
    cluster: Cluster | None = None,
    parts: bool = False,
    sizes: Sizes | None = None,
    progress: ProgressCallback | None = None,
) -> BudgetCompaction:
    """Compact a map into another, or into itself, within a budget, on Spark; `lookups` says what people ask for."""
    if budget.min_accuracy is not None and lookups is None:
        raise UsageError("an accuracy can only be met for known lookups", hint="add --lookups LOG")
    output = os.fspath(target)
    with session(cluster or Cluster()) as spark:
        one = find_map(spark, os.fspath(source))
        if len(one.header.keys) > 1 or one.header.style != "ukvs" or one.header.lists_voids:
            raise UsageError("not a plain map of holdings", where=one.name, hint="--engine embedded")
        asked = None if lookups is None else asked_in(lookups, one.header.policy)
        deep = TOP if budget.rollup_tlds else DOMAIN
        while True:
            job = _Job(spark, one, budget, asked, sizes or Sizes(), deep, progress)
            try:
                plan = job.plan(Path(output).suffix.lower())
                needed = min(deep, _DEPTHS[plan.rolled_up])
                if needed == deep or not job.ranged.borders:
                    return job.write(plan, output, parts or output.endswith("/"))
            finally:
                job.close()
            # The budget is so small that nodes roll up which several ranges have, so ranges must be wider.
            deep = needed


class _Job:
    """The passes over the ranges of a map."""

    def __init__(
        self,
        spark: Any,
        one: MapOnSpark,
        budget: Budget,
        asked: Asked | None,
        sizes: Sizes,
        deep: int,
        progress: ProgressCallback | None,
    ) -> None:
        from pyspark import StorageLevel

        self._spark, self._map, self._budget, self._progress = spark, one, budget, progress
        self._header = plain_header(one.header)
        self.ranged: Ranged = in_ranges(spark, [one], sizes, lambda widest: min(widest, deep), progress)
        self._asked = spark.sparkContext.broadcast((asked, [] if asked is None else spellings(asked)))
        task = _GatherTask(self._header, one.name, self.ranged.borders, self._asked)
        self._columns = self.ranged.texts.mapPartitionsWithIndex(task).persist(StorageLevel.DISK_ONLY)

    def close(self) -> None:
        """Give back what workers hold."""
        self._columns.unpersist()
        self.ranged.blocks.unpersist()

    def plan(self, suffix: str) -> Plan:
        """The best decisions within the budget."""
        if self._budget.max_bytes is None:
            return self._chosen("keys", 0, None)
        return within_bytes(self._budget, suffix, self._chosen, lambda plan: self._size(plan, suffix))

    def _chosen(self, unit: str, limit: int, fit: Fit | None) -> Plan:
        task = _ChooseTask(self._budget, self._asked, unit, limit, fit)
        with progress_of(self._spark, "choosing", self._progress):
            # One task reads what every range has kept, in order.
            found: Plan | RecollectError = self._columns.coalesce(1).mapPartitions(task).collect()[0]
        if isinstance(found, RecollectError):
            raise found
        return found

    def _size(self, plan: Plan, suffix: str) -> int:
        """How large the map of a plan is on disk."""
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            trial = Path(folder) / f"trial{suffix}"
            _, size = self._written(plan, target_of(self._spark, str(trial), None), as_parts=False)
            return trial.stat().st_size if suffix in COMPRESSED else size

    def write(self, plan: Plan, output: str, as_parts: bool) -> BudgetCompaction:
        """Write every range as planned."""
        ranges, size = self._written(plan, target_of(self._spark, output, None), as_parts)
        return replace(
            plan.result,
            keys_in=plan.records,
            keys_out=sum(one.keys for one in ranges.values()),
            bytes_in=len(self._map.header.encode()) + self.ranged.size,
            bytes_out=size,
        )

    def _written(self, plan: Plan, place: Target, as_parts: bool) -> tuple[dict[int, Range], int]:
        told = notes(self._spark)
        task = _WriteTask(self._header, self._spark.sparkContext.broadcast(plan.packed), told)
        try:
            with progress_of(self._spark, "writing", self._progress):
                write_texts(self._spark, self.ranged.texts.mapPartitionsWithIndex(task), place)
            ranges: dict[int, Range] = told.value
            head = budget_header(self._map.header, self._budget, plan).encode()
            return ranges, assemble(place, head, ranges, {}, as_parts=as_parts)
        finally:
            place.discard()


@dataclass(frozen=True, slots=True)
class _GatherTask:
    """The branches of a range, packed; or why it has none, which no second try would change."""

    header: Header
    name: str
    borders: list[bytes]
    asked: Any

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        asked, keys = self.asked.value
        low = self.borders[number - 1] if number else b""
        high = self.borders[number] if number < len(self.borders) else None
        with spooled(pieces, [self.header]) as files, open_plain(files[0]) as plain:
            try:
                branches = branches_of(plain, 1)
            except FormatError:
                hint = f"recollect merge {self.name} -o tidy.ukvs, then compact that"
                yield _packed(FormatError("a map that is not plain, sorted and unique", where=self.name, hint=hint))
                return
            yield _packed(part_of(number, branches, None if asked is None else asked_between(keys, low, high)))


@dataclass(frozen=True, slots=True)
class _ChooseTask:
    """Puts the branches of all ranges together and chooses."""

    budget: Budget
    asked: Any
    unit: str
    limit: int
    fit: Fit | None

    def __call__(self, parts: Iterable[bytes]) -> Iterator[Plan | RecollectError]:
        found: list[Part] = []
        for part in map(_unpacked, parts):
            if isinstance(part, RecollectError):
                yield part
                return
            found.append(part)
        one = gathered(found)
        records = sum(part.records for part in found)
        del found
        asked = self.asked.value[0]
        demand = None if asked is None else demand_over(one.branches, asked)
        case = Case(one.branches) if demand is None else Case(demand.branches, demand)
        limit = self.limit or key_limit(one.branches, self.budget)
        try:
            choice = choose(case, self.budget, self.unit, limit, self.fit)
        except TooSmall as error:
            yield error
            return
        packed = {number: _packed(decided) for number, decided in decided_for(one, case, choice.solution)}
        bare = replace(choice.solution, decide=choice.solution.decide[:0])
        yield Plan(bare, choice.fit, choice.rolled_up, packed, outcome(case, choice), records)


@dataclass(frozen=True, slots=True)
class _WriteTask:
    """The lines of a range as planned."""

    header: Header
    packed: Any
    told: Any

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        note = Range()
        decided: Decided = _unpacked(self.packed.value[number])
        with spooled(pieces, [self.header]) as files, open_plain(files[0]) as plain:
            for text in in_chunks(decided.lines(branches_of(plain, 1))):
                note.saw(text)
                note.keys += text.count(b"\n")
                yield text
        self.told.add({number: note})


def _packed(value: Part | Decided | RecollectError) -> bytes:
    return zstandard.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 3)


def _unpacked(packed: bytes) -> Any:
    return pickle.loads(zstandard.decompress(packed))
