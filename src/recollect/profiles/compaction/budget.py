"""Compaction by budget: the map of at most N keys or bytes that has the fewest wrong answers.

Hides: the way from a map to its best compaction: what must be decided (`branches`), what people ask for (`prior`;
with a log `demand` and `forecast`), the optimum (`optimum`), the choice (`choice`), and writing (`budgetlines`). With
hashed sets a wildcard may carry a set (`maps.sets`): the nodes and keys below it, hashed, with few bits each. Threads
only share out the reading and coding, so the same map, log and budget give the same bytes on any machine.

Invariants: no held URI is lost; the result never exceeds its budget; a wildcard's frequency is the inclusive total
of what it covers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.containers import OnProblem, OutputTooLarge, atomic_output
from recollect.formats.logs import LogEntry
from recollect.formats.ukvs import Header, open_map
from recollect.kernels import setbudget as kernels
from recollect.maps.plainmap import PlainMap, open_plain, tidied
from recollect.maps.samplescope import refuse_sample
from recollect.model import Progress, ProgressCallback
from recollect.profiles.compaction.branches import Branches, branches_of
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.case import LIMITS, Budget, Case, TooSmall
from recollect.profiles.compaction.chances import wrong_answers
from recollect.profiles.compaction.choice import (
    Choice,
    choose,
    choose_with_sets,
    drafted_within_bytes,
    fitted_choice,
    reaching_with_sets,
    within_bytes,
)
from recollect.profiles.compaction.forecast import Smoothing
from recollect.profiles.compaction.optimum import Optimiser, Solution

__all__ = ["Budget", "BudgetCompaction", "Case", "TooSmall", "compact_by_budget", "opened"]

_DRAFTS = (0.997, 0.98, 0.9, 0.7)  # shares of a budget of bytes for drafts, whose size is nearly that of the map


@dataclass(frozen=True, slots=True)
class BudgetCompaction:
    """What a compaction by budget did. `expected_wrong` is the share of lookups expected to be answered yes for
    nothing: with a log of all lookups, without one of lookups of absent URIs; `wrong_in_log` what of the log itself
    is."""

    keys_in: int
    keys_out: int
    wildcards: int
    voids: int
    bytes_in: int
    bytes_out: int
    uri_rs: int
    price: float
    expected_wrong: float
    wrong_in_log: float | None
    lookups: int
    unusable_lookups: int
    smoothing: Smoothing | None
    rolled_up: str  # "", "tlds" or "root": how far up wildcards had to go, or go because the log shows that it pays
    rolled_up_by_log: bool
    sets: int = 0
    expected_wrong_interval: tuple[float, float] | None = None  # where `expected_wrong` is, with a log, at 95%
    folded: tuple[str, ...] = ()  # key columns of the input, which the budget's map does not have
    input_wildcards: int = 0  # of a map that was compacted before; what is absent below them is unknown

    @property
    def cost(self) -> float:
        """Keys per URI-R."""
        return self.keys_out / self.uri_rs


def compact_by_budget(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    budget: Budget,
    *,
    lookups: Iterable[LogEntry] | None = None,
    threads: int = 0,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> BudgetCompaction:
    """Compact a map into another, or into itself, within a budget; `lookups` says what people ask for."""
    if budget.min_accuracy is not None and lookups is None:
        raise UsageError("an accuracy can only be met for known lookups", hint="add --lookups LOG")
    if columns := _columns_of(os.fspath(source)):
        from recollect.profiles.compaction.columns import folded

        with folded(os.fspath(source), on_problem) as wholes:
            done = compact_by_budget(wholes, target, budget, lookups=lookups, threads=threads, progress=progress)
        return replace(done, folded=columns)
    _report_progress(progress, "reading", 0)
    with opened(source, threads, on_problem) as (plain, branches):
        _report_progress(progress, "reading lookups", 1)
        case = Case.of(branches, lookups, plain.header.policy)
        _report_progress(progress, "choosing", 2)
        job = _Job(plain, case, budget, Path(os.fspath(target)), threads or os.cpu_count() or 1)
        return job.run(progress)


def _columns_of(path: str) -> tuple[str, ...]:
    """The further key columns of a map in a file; a pipe, which can be read once only, is taken to have none."""
    if not Path(path).is_file():
        return ()
    with open_map(path, lambda _problem: None) as file:
        return file.header.keys[1:]


@contextmanager
def opened(
    source: str | os.PathLike[str], threads: int = 0, on_problem: OnProblem | None = None
) -> Iterator[tuple[PlainMap, Branches]]:
    """A map and its branches; put in order first if it is not plain, sorted and unique."""
    threads = threads or os.cpu_count() or 1
    with open_plain(source, on_problem) as plain:
        refuse_sample(plain.header, plain.label, "compacted")
        if plain.header.lists_voids:
            raise RecollectError(
                "a map of voids has nothing to compact by budget",
                where=plain.label,
                hint="merge it into a map of holdings",
            )
        try:
            branches = branches_of(plain, threads)
        except FormatError:
            with tidied(plain, on_problem) as tidy:
                yield tidy, branches_of(tidy, threads)
            return
        yield plain, branches


def _report_progress(progress: ProgressCallback | None, stage: str, done: int) -> None:
    if progress is not None:
        progress(Progress(stage, done, 4, "steps"))


@dataclass(frozen=True, slots=True)
class _Job:
    """One compaction: the map, what is asked of it, the budget, and the file to write."""

    plain: PlainMap
    case: Case
    budget: Budget
    target: Path
    threads: int

    def run(self, progress: ProgressCallback | None) -> BudgetCompaction:
        """Choose and write."""
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            trial = Path(folder) / f"trial{self.target.suffix.lower()}"
            if self.budget.sets:
                return self._with_sets(trial)
            choice = self._in_clear(trial)
            _report_progress(progress, "writing", 3)
            return self._outcome(choice, *self.write(choice, self.target))

    @property
    def _unit(self) -> str:
        return self.budget.unit(self.target.suffix.lower())

    @property
    def _limit(self) -> int:
        return self.budget.max_bytes or self.budget.keys(self.case.branches.uri_rs)

    def _in_clear(self, trial: Path) -> Choice:
        budget = self.budget
        if budget.max_bytes is None:
            return choose(self.case, budget, "keys", self._limit)

        def choose_at(limit: int, known: Choice | None) -> Choice:
            return choose(self.case, budget, self._unit, limit, known)

        def size_of(choice: Choice) -> int:
            self.write(choice, trial)
            return trial.stat().st_size

        return within_bytes(budget.max_bytes, choose_at, size_of)

    def _with_sets(self, trial: Path) -> BudgetCompaction:
        budget, limit = self.budget, self._limit
        clear = fitted_choice(self.case, budget, self._unit, limit)

        def size_of(solution: Solution) -> int:
            self.write(Choice(solution, clear.optimiser, clear.fit, ""), trial, draft=True)
            return trial.stat().st_size

        for share in _DRAFTS:

            def solve(optimiser: Optimiser, most: int = int(limit * share)) -> Solution | None:
                if budget.min_accuracy is not None:
                    return reaching_with_sets(self.case, optimiser, budget.min_accuracy, clear.fit.smoothing)
                if budget.max_bytes is None:
                    return optimiser.within(limit)
                return drafted_within_bytes(optimiser, most, size_of)

            choice = choose_with_sets(self.case, budget, clear, self._unit, solve)
            if choice is None:
                raise TooSmall("no map is that small", why=f"the budget is {limit}")
            try:
                return self._outcome(choice, *self.write(choice, self.target, max_bytes=budget.max_bytes))
            except OutputTooLarge:
                continue  # the next one is chosen smaller; what is in the target's place stays
        raise TooSmall("no map with sets was found that is this small", why=f"the budget is {limit}")

    def write(
        self, choice: Choice, target: Path, *, draft: bool = False, max_bytes: int | None = None
    ) -> tuple[int, int]:
        """Write the map; returns its keys and the bytes of its text. Raises OutputTooLarge, and leaves what is in the
        target's place, if it has more than `max_bytes` on disk."""
        head = _header(self.plain.header, self.budget, choice.expected_wrong).encode()
        keys, size = 0, len(head)
        with atomic_output(target, max_bytes=max_bytes) as out:
            out.write(head)
            for piece in lines_of(self.case, choice.solution, self.threads, draft=draft):
                out.write(piece)
                size += len(piece)
                keys += piece.count(b"\n")
        return keys, size

    def _outcome(self, choice: Choice, keys: int, size: int) -> BudgetCompaction:
        case, solution, demand = self.case, choice.solution, self.case.demand
        lookups, wrong = 0, None
        if demand is not None:
            tally = demand.tally()
            lookups = int(tally.passing[0])
            wrong = wrong_answers(demand, tally, solution) / max(1, lookups)
        return BudgetCompaction(
            keys_in=len(case.branches.rows),
            keys_out=keys,
            wildcards=int(((solution.put & (kernels.PUT_WILD | kernels.PUT_ANCHOR)) != 0).sum()),
            voids=int(((solution.put & (kernels.PUT_VOID | kernels.PUT_ZERO)) != 0).sum()),
            bytes_in=len(self.plain.data),
            bytes_out=size,
            uri_rs=case.branches.uri_rs,
            price=solution.price,
            expected_wrong=choice.expected_wrong,
            expected_wrong_interval=choice.interval,
            input_wildcards=case.branches.wildcards,
            wrong_in_log=wrong,
            lookups=lookups,
            unusable_lookups=demand.unusable if demand is not None else 0,
            smoothing=choice.fit.smoothing if demand is not None else None,
            rolled_up=choice.rolled_up,
            rolled_up_by_log=choice.fit.tlds and choice.rolled_up == "tlds",
            sets=solution.sets,
        )


def _header(header: Header, budget: Budget, expected_wrong: float) -> Header:
    """The header of a compacted map, which says how it was compacted."""
    how: dict[str, object] = {"by": "budget"}
    if budget.sets:
        how["sets"] = True
    how |= {name: limit for name in LIMITS if (limit := getattr(budget, name)) is not None}
    if "compaction" not in header.meta:  # else it is unknown which answers of its wildcards are wrong
        how["expected_wrong"] = float(f"{min(1.0, expected_wrong):.4g}")
    # A map without any header gets ours, and says what its columns are.
    return replace(header, context=header.context or Header().context, meta={**header.meta, "compaction": how})
