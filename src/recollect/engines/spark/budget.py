"""Compaction by budget on Spark: `profiles.compaction.budget` over the branches of all ranges; the same bytes out.

Every range of domains reduces its keys to branches with their partial sums (`gathered`); one task puts those together,
finds the price at which the whole map meets the budget, and spends what is left over; every range then writes its
lines by what was decided. Keys and lines never leave their range, and the driver gets decisions, a fraction of a byte
for each branch. Where there are too many branches for one task, the price is found from what every range costs and
loses (`prices`): the budget holds as well, but what is left over is spent by ranges, so the map may differ a little.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.gathered import Decided, Part, asked_between, decided_for, gathered, part_of, spellings
from recollect.engines.spark.mapplan import MapPlan, identity_of_maps, unfinished
from recollect.engines.spark.maps import (
    DOMAIN,
    NOWHERE,
    TOP,
    MapOnSpark,
    Ranged,
    find_maps,
    in_ranges,
    plain_header,
    spooled,
)
from recollect.engines.spark.notes import Range, notes, packed, unpacked
from recollect.engines.spark.parts import assemble, in_chunks, pieces_of
from recollect.engines.spark.prices import (
    Floats,
    Masses,
    Survey,
    costs_of,
    masses_of,
    optimiser_of,
    price_for,
    survey_of,
)
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.engines.spark.setbudget import compact_with_sets_on
from recollect.engines.spark.staging import Target
from recollect.engines.spark.targets import check_target, target_of
from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.logs import LogEntry
from recollect.formats.ukvs import Header
from recollect.maps.plainmap import open_plain
from recollect.maps.samplescope import refuse_sample
from recollect.model import ProgressCallback
from recollect.profiles.compaction.branches import Branches, branches_of
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
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.demand import Asked, asked_in, demand_over
from recollect.profiles.compaction.forecast import Fit, Smoothing

# More are too many for one task, which needs some 200 bytes for each: 13 GB.
MOST_BRANCHES = 1 << 26
# How deep the nodes lie that may roll up, by what `Choice.rolled_up` says.
_DEPTHS = {"": DOMAIN, "tlds": TOP, "root": NOWHERE}


@dataclass(frozen=True, slots=True)
class Plan(Choice):
    """A choice for the ranges: its decisions packed up, or a price for each range and the lookups at nodes that ranges
    share. `result` lacks what is known when all is written."""

    packed: dict[int, bytes]
    result: BudgetCompaction
    records: int
    prices: dict[int, float] = field(default_factory=dict)
    masses: Masses = field(default_factory=dict)


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
        (one,) = find_maps(spark, [os.fspath(source)])
        refuse_sample(one.header, one.name, "compacted")
        if len(one.header.keys) > 1 or one.header.style != "ukvs" or one.header.lists_voids:
            raise UsageError("not a plain map of holdings", where=one.name, hint="--engine embedded")
        as_parts = parts or output.endswith("/")
        check_target(spark, output, as_parts=as_parts)
        asked = None if lookups is None else asked_in(lookups, one.header.policy)
        if budget.sets:
            return compact_with_sets_on(
                spark, one, budget, asked, output, as_parts=as_parts, sizes=sizes or Sizes(), progress=progress
            )
        deep = TOP if budget.rollup_tlds else DOMAIN
        while True:
            job = _Job(spark, one, budget, asked, sizes or Sizes(), deep, progress)
            try:
                plan = job.plan(Path(output).suffix.lower())
                needed = min(deep, _DEPTHS[plan.rolled_up])
                if needed == deep or not job.ranged.borders:
                    return job.write(plan, output, as_parts)
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
        self._deep = deep
        self._asked = spark.sparkContext.broadcast((asked, [] if asked is None else spellings(asked)))
        reported = notes(spark)
        task = _GatherTask(self._header, one.name, self.ranged.borders, self._asked, reported)
        self._columns = self.ranged.texts.mapPartitionsWithIndex(task).persist(StorageLevel.DISK_ONLY)
        with progress_of(spark, "surveying", progress):
            self._columns._jrdd.count()
        self._branches: int = sum(reported.value.values())

    def close(self) -> None:
        """Give back what workers hold."""
        self._columns.unpersist()
        self.ranged.blocks.unpersist()

    def plan(self, suffix: str) -> Plan:
        """The best decisions within the budget."""
        if self._branches > MOST_BRANCHES:
            return self._priced()
        if self._budget.max_bytes is None:
            return self._chosen("keys", 0, None)
        return within_bytes(self._budget, suffix, self._chosen, lambda plan: self._size(plan, suffix))

    def _chosen(self, unit: str, limit: int, known: Plan | None) -> Plan:
        bare = None if known is None else Choice(known.solution, known.fit, known.rolled_up, known.validation)
        task = _ChooseTask(self._budget, self._asked, unit, limit, bare)
        with progress_of(self._spark, "choosing", self._progress):
            # One task reads what every range has kept, in order.
            found: Plan | RecollectError = self._columns.coalesce(1).mapPartitions(task).collect()[0]
        if isinstance(found, RecollectError):
            raise found
        return found

    def _priced(self) -> Plan:
        """A price for each range, for a map that is too large for one task."""
        budget = self._budget
        if self._asked.value[0] is not None or budget.max_bytes is not None:
            raise UsageError(
                "too large a map for a budget with a log, or in bytes",
                where=self._map.name,
                why=f"{self._branches:,} branches, and one task takes {MOST_BRANCHES:,}",
                hint="compact it by weights first, without a budget, then that by budget; or give --max-cost alone",
            )
        deep = self._deep
        parts = self._columns.map(unpacked)
        for error in parts.filter(lambda part: isinstance(part, RecollectError)).take(1):
            raise error
        survey: Survey = parts.map(lambda part: survey_of(part, deep)).reduce(Survey.together)
        masses = masses_of(survey.crossings)
        limit = budget.max_keys or int((budget.max_cost or 0) * survey.uri_rs + 1e-9)

        def costs_at(row: Floats) -> dict[int, Floats]:
            with progress_of(self._spark, "choosing", self._progress):
                return dict(parts.mapPartitions(lambda some: costs_of(some, deep, masses, row)).collect())

        prices, solution = price_for(limit, costs_at)
        result = BudgetCompaction(
            keys_in=0,
            keys_out=0,
            wildcards=0,
            voids=0,
            bytes_in=0,
            bytes_out=0,
            uri_rs=survey.uri_rs,
            price=solution.price,
            expected_wrong=solution.loss,
            wrong_in_log=None,
            lookups=0,
            unusable_lookups=0,
            smoothing=None,
            rolled_up="",
            rolled_up_by_log=False,
        )
        return Plan(solution, Fit(Smoothing()), "", None, {}, result, survey.records, prices, masses)

    def _size(self, plan: Plan, suffix: str) -> int:
        """How large the map of a plan is on disk: counted by the tasks, or compressed here, where sizes are decided."""
        if suffix not in COMPRESSED:
            return self._written(plan, None)[1]
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            trial = Path(folder) / f"trial{suffix}"
            self._written(plan, target_of(self._spark, str(trial), as_parts=False))
            return trial.stat().st_size

    def write(self, plan: Plan, output: str, as_parts: bool) -> BudgetCompaction:
        """Write every range as planned."""
        place = target_of(self._spark, output, as_parts=as_parts, identity=self._identity(plan))
        ranges, size = self._written(plan, place)
        result = plan.result
        if plan.prices:
            wildcards, voids = (sum(one.counts[at] for one in ranges.values()) for at in (0, 1))
            result = replace(result, wildcards=wildcards, voids=voids)
        return replace(
            result,
            keys_in=plan.records,
            keys_out=sum(one.keys for one in ranges.values()),
            bytes_in=self.ranged.size,
            bytes_out=size,
        )

    def _identity(self, plan: Plan) -> str:
        """The identity of writing a plan: its decisions are made again by every run."""
        decided = pickle.dumps((sorted(plan.packed.items()), sorted(plan.prices.items()), sorted(plan.masses.items())))
        options = {
            **asdict(self._budget),
            "borders": [border.decode("latin-1") for border in self.ranged.borders],
            "decided": hashlib.sha256(decided).hexdigest(),
        }
        return identity_of_maps(self._spark, "compact by budget", options, [self._map])

    def _written(self, plan: Plan, place: Target | None) -> tuple[dict[int, Range], int]:
        """What ranges wrote to a place, or would write; and the bytes of the map."""
        reported = notes(self._spark)
        decided = _Priced(plan.prices, plan.masses, self._deep) if plan.prices else _Packed(plan.packed)
        known, ranges = (None, {}) if place is None else unfinished(place, self._progress)
        task = _WriteTask(self._header, self._spark.sparkContext.broadcast(decided), reported, frozenset(ranges))
        try:
            texts = self.ranged.texts.mapPartitionsWithIndex(task)
            with progress_of(self._spark, "sizing" if place is None else "writing", self._progress):
                if place is None:
                    texts.foreach(_nothing)
                else:
                    if known is None:
                        place.begin(MapPlan(self.ranged.borders, self.ranged.size).as_json())
                    place.receive(texts, reported)
            ranges |= reported.value
            head = budget_header(self._map.header, self._budget, plan).encode()
            if place is None:
                return ranges, sum(piece.size for piece in pieces_of(head, ranges, {}))
            return ranges, assemble(place, head, ranges, {})
        finally:
            if place is not None:
                place.discard()


def _nothing(_text: bytes) -> None:
    """What is done with texts that are only counted."""


@dataclass(frozen=True, slots=True)
class _GatherTask:
    """The branches of a range, packed; or why it has none, which no second try would change."""

    header: Header
    name: str
    borders: list[bytes]
    asked: Any
    reported: Any

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        asked, keys = self.asked.value
        low = self.borders[number - 1] if number else b""
        high = self.borders[number] if number < len(self.borders) else None
        with spooled(pieces, [self.header]) as files, open_plain(files[0]) as plain:
            try:
                branches = branches_of(plain, 1)
            except FormatError:
                hint = f"recollect merge {self.name} -o tidy.ukvs, then compact that"
                yield packed(FormatError("a map that is not plain, sorted and unique", where=self.name, hint=hint))
                return
            yield packed(part_of(number, branches, None if asked is None else asked_between(keys, low, high)))
            self.reported.add({number: len(branches)})


@dataclass(frozen=True, slots=True)
class _ChooseTask:
    """Puts the branches of all ranges together and chooses."""

    budget: Budget
    asked: Any
    unit: str
    limit: int
    known: Choice | None

    def __call__(self, parts: Iterable[bytes]) -> Iterator[Plan | RecollectError]:
        found: list[Part] = []
        for part in map(unpacked, parts):
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
            choice = choose(case, self.budget, self.unit, limit, self.known)
        except TooSmall as error:
            yield error
            return
        decisions = {number: packed(decided) for number, decided in decided_for(one, case, choice.solution)}
        bare = replace(choice.solution, decide=choice.solution.decide[:0])
        yield Plan(bare, choice.fit, choice.rolled_up, choice.validation, decisions, outcome(case, choice), records)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Decisions that were made for all ranges together."""

    packed: dict[int, bytes]

    def lines(self, number: int, branches: Branches, _note: Range) -> Iterator[bytes]:
        """The records of a range."""
        decided: Decided = unpacked(self.packed[number])
        return decided.lines(branches)


@dataclass(frozen=True, slots=True)
class _Priced:
    """Decisions that every range makes at its price."""

    prices: dict[int, float]
    masses: Masses
    deep: int

    def lines(self, number: int, branches: Branches, note: Range) -> Iterator[bytes]:
        """The records of a range."""
        if number not in self.prices:
            return iter(())
        case, optimiser = optimiser_of(branches, self.deep, branches.name, self.masses)
        solution = optimiser.at_price(self.prices[number])
        made = outcome(case, Choice(solution, Fit(Smoothing()), "", None))
        note.counts = [made.wildcards, made.voids]
        return lines_of(branches, None, solution, case.up)


@dataclass(frozen=True, slots=True)
class _WriteTask:
    """The lines of a range as planned."""

    header: Header
    decided: Any
    reported: Any
    done: frozenset[int]  # ranges that are finished

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        return iter(()) if number in self.done else self._lines(number, pieces)

    def _lines(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        note = Range(counts=[0, 0])
        with spooled(pieces, [self.header]) as files, open_plain(files[0]) as plain:
            for text in in_chunks(self.decided.value.lines(number, branches_of(plain, 1), note)):
                note.saw(text)
                note.keys += text.count(b"\n")
                yield text
        self.reported.add({number: note})
