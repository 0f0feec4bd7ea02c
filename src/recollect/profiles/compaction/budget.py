"""Compaction by budget: the map of at most N keys or bytes that has the fewest wrong answers.

Hides: the way from a map to its best compaction: what must be decided (`branches`), what people ask for (`prior`;
with a log `demand` and `forecast`), the optimum (`optimum`), and writing (`budgetlines`). Threads only share out the
reading, so the same map, log and budget give the same bytes on any machine.

Invariants: no held URI is lost; the result never exceeds its budget; a wildcard's frequency is the inclusive total
of what it covers. Wildcards of top-level domains, and `*`, are used only when asked for or when the budget cannot
be met without them, those of top-level domains also when a log shows that they pay; the result says so.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.containers import OnProblem, atomic_output
from recollect.formats.logs import LogEntry
from recollect.formats.ukvs import Header, open_map
from recollect.kernels import budget as kernels
from recollect.maps.plainmap import PlainMap, open_plain, tidied
from recollect.maps.samplescope import refuse_sample
from recollect.model import Progress, ProgressCallback
from recollect.profiles.compaction import forecast
from recollect.profiles.compaction.branches import Branches, branches_of
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.demand import Demand, asked_in, demand_over
from recollect.profiles.compaction.forecast import Fit, Forecaster, Smoothing, chances_in_clear
from recollect.profiles.compaction.optimum import FREE, Costs, ExpectedLookups, Optimiser, Solution
from recollect.profiles.compaction.prior import shares_of, spread
from recollect.profiles.compaction.validation import Validation, validated

COMPRESSED = (".gz", ".bgz", ".zst", ".zstd")
BETWEEN = 12  # maps tried between two optima
SAME_COST = 0.02  # two maps whose costs differ by a smaller share are alike in how well a forecast holds
ATTEMPTS = 12  # to meet a number of bytes that is known only when all is written


class TooSmall(RecollectError):
    """A budget that no map meets."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the result may be at most, or how good it must be. Exactly one is given; `max_cost` is keys per URI-R, and
    `min_accuracy` a share of lookups."""

    max_cost: float | None = None
    max_keys: int | None = None
    max_bytes: int | None = None
    min_accuracy: float | None = None
    rollup_tlds: bool = False
    sets: bool = False  # wildcards may carry hashed sets

    def __post_init__(self) -> None:
        limits = (self.max_cost, self.max_keys, self.max_bytes, self.min_accuracy)
        given = [limit for limit in limits if limit is not None]
        if len(given) != 1:
            raise UsageError("give one budget", hint="one of --max-cost, --max-keys, --max-bytes, --min-accuracy")
        if not given[0] > 0:
            raise UsageError("a budget must be above zero")
        if self.min_accuracy is not None and self.min_accuracy > 1:
            raise UsageError("no accuracy is above 100%")


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


class Case:
    """A map and what people ask of it: everything the optimum needs. Absences of the log stand after the branches."""

    def __init__(self, branches: Branches, demand: Demand | None = None) -> None:
        self.branches, self.demand = branches, demand
        self._forecaster: Forecaster | None = None
        self.up = branches.up if demand is None else np.concatenate((branches.up, demand.absence_at))

    @classmethod
    def of(cls, branches: Branches, lookups: Iterable[LogEntry] | None, policy: str = "HxPx") -> Case:
        """The case of a map and, if there is one, its log."""
        if lookups is None:
            return cls(branches)
        demand = demand_over(branches, asked_in(lookups, policy))
        return cls(demand.branches, demand)

    def expected(self, smoothing: Smoothing) -> ExpectedLookups:
        """What can be lost at each branch."""
        if self.demand is not None:
            self._forecaster = self._forecaster or Forecaster(self.demand, self.demand.tally())
            return self._forecaster.expected(smoothing)
        leave, own = spread(self.branches, shares_of(self.branches, smoothing.temper))
        # Below a wildcard of the input it is unknown what is absent, so no answer there is certainly wrong.
        leave[self.branches.is_open] = 0.0
        return ExpectedLookups(self.up, self.branches.is_open, leave, own)

    def costs(self, unit: str) -> Costs:
        """Of every line: 1 (`keys`), its bytes (`bytes`), or those it does not share with its parent (`novel`),
        which is about what remains of it in a compressed file."""
        branches = self.branches
        if unit == "keys":
            one = np.ones(1, np.int64)
            absences = np.zeros(len(self.up) - len(branches), np.int64)
            return Costs(np.concatenate((branches.keys, absences)), one, one, one)
        costs = Costs(branches.line_bytes, branches.wildcard_bytes(), branches.void_bytes(), branches.zero_bytes())
        if unit == "novel":
            shared = branches.shared_bytes()
            own = branches.keys - branches.leaves
            listed = costs.listed - branches.leaves * branches.name_length - own * shared
            costs = Costs(listed, costs.wild - shared, costs.void - shared, costs.zero - shared)
        if self.demand is None:
            return costs
        void = self.demand.log.name_length[self.demand.absence_node].astype(np.int64) + 5
        if unit == "novel":
            void -= branches.name_length[self.demand.absence_at]
        return forecast.with_absences(self.demand, costs, void)

    def may_roll(self, top: int) -> NDArray[np.bool_]:
        """Which branches may have a wildcard; see `Branches.may_roll`."""
        free = self.branches.may_roll(top)
        return np.concatenate((free, np.ones(len(self.up) - len(free), np.bool_)))


@dataclass(frozen=True, slots=True)
class Choice:
    """The decisions made, and how they came about."""

    solution: Solution
    fit: Fit
    rolled_up: str
    validation: Validation | None  # None without a log

    @property
    def expected_wrong(self) -> float:
        """The share of lookups expected to be answered wrongly."""
        return corrected(self.solution.loss, self.validation)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where that share is at 95%; None without a log."""
        return None if self.validation is None else self.validation.interval(self.expected_wrong)


def corrected(loss: float, validation: Validation | None) -> float:
    """What a forecast is after cross-validation; without a log, as it is."""
    return min(1.0, loss * (validation.factor if validation is not None else 1.0))


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
        if budget.sets:
            from recollect.profiles.compaction.withsets import compact_with_sets

            return compact_with_sets(plain, case, budget, target, threads or os.cpu_count() or 1)
        if budget.max_bytes is not None:
            choice = _within_bytes(plain, case, budget, target)
        else:
            choice = choose(case, budget, "keys", key_limit(case.branches, budget))
        _report_progress(progress, "writing", 3)
        return _write(plain, case, budget, choice, target)


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


def key_limit(branches: Branches, budget: Budget) -> int:
    """The budget in keys; 0 if it is an accuracy."""
    if budget.max_cost is not None:
        return int(budget.max_cost * branches.uri_rs + 1e-9)
    return budget.max_keys or 0


def choose(case: Case, budget: Budget, unit: str, limit: int, known: Choice | None = None) -> Choice:
    """The best decisions within the budget, with a log cross-validated; `known` is a choice for a similar limit, whose
    fit is taken."""
    choice, optimiser = fitted_choice(case, budget, unit, limit, known)
    if case.demand is None:
        return choice
    before = known.validation if known is not None else None
    choice = replace(choice, validation=_validated(case, optimiser, choice, before))
    if budget.min_accuracy is not None:
        # How well a forecast holds is known only for a size.
        assert choice.validation is not None
        found = _reaching(case, optimiser, budget.min_accuracy, choice.validation.factor)
        choice = replace(choice, solution=found)
        choice = replace(choice, validation=_validated(case, optimiser, choice, choice.validation))
    return choice


def fitted_choice(
    case: Case, budget: Budget, unit: str, limit: int, known: Choice | None = None
) -> tuple[Choice, Optimiser]:
    """The best decisions within the budget, not cross-validated, and what they were found with."""
    costs = case.costs(unit)
    accuracy = budget.min_accuracy
    expected = case.expected(Smoothing())
    optimiser = Optimiser(expected, costs, case.may_roll(1 if budget.rollup_tlds else 2))
    rolled_up = ""
    if accuracy is not None:
        # How large it gets is known only in the end, so the smoothing is fitted at the size of a first attempt.
        limit = _reaching(case, optimiser, accuracy, 1.0).cost
    else:
        rolled_up, optimiser = _raise_rollup_level(case, optimiser, limit)
    fit = Fit(Smoothing())
    if case.demand is not None:
        fit = known.fit if known else _fitted(case, optimiser, limit, free=not (rolled_up or budget.rollup_tlds))
        by_log = fit.tlds and not rolled_up
        rolled_up = "tlds" if by_log else rolled_up
        may_roll = case.may_roll(1) if by_log else optimiser.may_roll
        optimiser = Optimiser(case.expected(fit.smoothing), costs, may_roll, optimiser)
    if accuracy is not None:
        return Choice(_reaching(case, optimiser, accuracy, 1.0), fit, rolled_up, None), optimiser
    solutions = [optimiser.within(limit)]
    if fit.tlds or budget.rollup_tlds:
        # A wildcard over a top-level domain is a large step, and beside it a budget may be met better without any.
        spared = Optimiser(optimiser.expected, costs, case.may_roll(2), optimiser)
        solutions.append(spared.within(limit))
    best = min(filter(None, solutions), key=lambda one: one.loss)
    if best is not solutions[0]:
        optimiser = spared
    return Choice(best, fit, rolled_up, None), optimiser


def _validated(case: Case, optimiser: Optimiser, choice: Choice, known: Validation | None) -> Validation:
    """Cross-validation of maps that cost as much as the chosen one; `known` is enough if it is of such maps."""
    demand, solution = case.demand, choice.solution
    assert demand is not None
    if known is not None and abs(known.cost - solution.cost) <= SAME_COST * solution.cost:
        return known

    def solve(expected: ExpectedLookups) -> Solution:
        other = Optimiser(expected, optimiser.costs, optimiser.may_roll, optimiser)
        found = other.at_price(solution.price)
        if abs(found.cost - solution.cost) <= SAME_COST * solution.cost:
            return found
        return other.within(solution.cost, near=solution.price) or found

    return validated(
        demand, choice.fit.smoothing, solution.cost, solve, lambda one: chances_in_clear(demand, one, case.up)
    )


def _fitted(case: Case, optimiser: Optimiser, limit: int, *, free: bool) -> Fit:
    """The fit to a log; where wildcards over top-level domains are `free` to choose, with them if the log shows that
    they pay."""
    assert case.demand is not None
    tests = forecast.CrossValidation(case.demand)

    def solver(may_roll: NDArray[np.bool_]) -> Callable[[ExpectedLookups], Solution]:
        price = 0.0

        def solve(expected: ExpectedLookups) -> Solution:
            nonlocal price
            found = Optimiser(expected, optimiser.costs, may_roll, optimiser).within(limit, near=price, spend=False)
            assert found is not None
            price = found.price
            return found

        return solve

    fit = tests.fit(solver(optimiser.may_roll))
    wider = solver(case.may_roll(1))
    if free and tests.judge(fit.smoothing, wider).beats(fit):
        fit = replace(tests.fit(wider), tlds=True)
    return fit


def _raise_rollup_level(case: Case, optimiser: Optimiser, limit: int) -> tuple[str, Optimiser]:
    """Allow wildcards at higher levels, but only as high as the budget needs; returns the name of the level."""
    needed = 0
    for top, name in ((2, ""), (1, "tlds"), (0, "root")):
        if top < 2:
            optimiser = Optimiser(optimiser.expected, optimiser.costs, case.may_roll(top), optimiser)
        needed = optimiser.cheapest.cost
        if needed <= limit:
            return name, optimiser
    raise TooSmall(
        "no map is that small",
        why=f"the budget is {limit}, and the smallest map needs {needed}",
        hint="" if limit else "of a small archive a share is less than a key; give --max-keys",
    )


def _reaching(case: Case, optimiser: Optimiser, accuracy: float, factor: float) -> Solution:
    """The smallest map that reaches an accuracy, both on the log itself and as expected of lookups like these."""
    demand = case.demand
    assert demand is not None
    tally = demand.tally()
    allowed = (1 - accuracy) * tally.passing[0]

    def good(solution: Solution) -> bool:
        wrong = forecast.wrong_answers(demand, tally, solution, case.up)
        return bool(max(wrong, solution.loss * factor * tally.passing[0]) <= allowed)

    bad = optimiser.cheapest
    if good(bad):
        return bad
    low, high = np.log(1e-18), np.log(bad.price)
    best = optimiser.at_price(0.0)
    while high - low > 1e-6:
        middle = (low + high) / 2
        found = optimiser.at_price(float(np.exp(middle)))
        if good(found):
            best, low = found, middle
        else:
            bad, high = found, middle
    # Optima come in steps; between the last two there are maps that are good enough, too.
    least = bad.cost
    for _ in range(BETWEEN):
        if best.cost - least <= max(1, best.cost // 100):
            break
        found = optimiser.within((least + best.cost) // 2) or bad
        if good(found):
            best = found
        else:
            least = (least + best.cost) // 2
    return best


def _within_bytes(plain: PlainMap, case: Case, budget: Budget, target: str | os.PathLike[str]) -> Choice:
    suffix = Path(os.fspath(target)).suffix.lower()
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        trial = Path(folder) / f"trial{suffix}"

        def size_of(choice: Choice) -> int:
            _write(plain, case, budget, choice, trial)
            return trial.stat().st_size

        return within_bytes(
            budget, suffix, lambda unit, limit, known: choose(case, budget, unit, limit, known), size_of
        )


AnyChoice = TypeVar("AnyChoice", bound=Choice)


def within_bytes(
    budget: Budget,
    suffix: str,
    choose_at: Callable[[str, int, AnyChoice | None], AnyChoice],
    size_of: Callable[[AnyChoice], int],
) -> AnyChoice:
    """The choice for a size on disk, which is known only when all is written: try, measure, correct."""
    unit = "novel" if suffix in COMPRESSED else "bytes"
    assert budget.max_bytes is not None
    low, high = 0, None  # sizes in `unit` known to fit and not to fit
    best: AnyChoice | None = None
    limit, known = budget.max_bytes, None
    tried = 0, 0  # the last cost and size
    for _ in range(ATTEMPTS):
        try:
            choice = choose_at(unit, limit, known)
        except TooSmall:
            # Between what is too little for any map and what was too much there may be a map.
            low, limit = limit, (limit + high) // 2 if high is not None else limit
            if limit <= low:
                break
            continue
        known = choice
        size = size_of(choice)
        cost = choice.solution.cost
        if size <= budget.max_bytes:
            low, best = limit, choice
            if size > 0.99 * budget.max_bytes or choice.solution.price <= FREE:  # near enough, or nothing to gain
                break
        else:
            high = min(limit, cost)  # what it did not use made it no larger
        guess = int(_cost_for(budget.max_bytes, (cost, size), tried) * 0.998)
        tried = cost, size
        limit = min(max(guess, low + 1), high - 1 if high is not None else guess)
        if limit <= low:
            break
    if best is None:
        raise TooSmall("no map is that small", why=f"{budget.max_bytes} bytes are too few; headers count, too")
    return best


def _cost_for(size: int, one: tuple[int, int], other: tuple[int, int]) -> float:
    """At what cost a file may have a size, by two others on a line; headers are the part that costs nothing."""
    rise = (one[1] - other[1]) / (one[0] - other[0]) if one[0] != other[0] else 0.0
    return one[0] + (size - one[1]) / rise if rise > 0 else one[0] * size / one[1]


def _write(
    plain: PlainMap, case: Case, budget: Budget, choice: Choice, target: str | os.PathLike[str]
) -> BudgetCompaction:
    absent = case.demand.absent if case.demand is not None else None
    keys = 0
    head = budget_header(plain.header, budget, choice).encode()
    size = len(head)
    with atomic_output(target) as out:
        out.write(head)
        for piece in lines_of(case.branches, absent, choice.solution, case.up):
            out.write(piece)
            size += len(piece)
            keys += piece.count(b"\n")
    done = outcome(case, choice)
    return replace(done, keys_in=len(case.branches.rows), keys_out=keys, bytes_in=len(plain.data), bytes_out=size)


def outcome(case: Case, choice: Choice) -> BudgetCompaction:
    """What a choice comes to; keys and bytes are known only when it is written, and are 0."""
    solution, demand = choice.solution, case.demand
    state = solution.states(case.up)
    above = np.where(case.up >= 0, state[np.maximum(case.up, 0)], 0)
    zero = (state == 1) & ((solution.decide & kernels.PUT_ZERO) > 0)
    lookups, wrong = 0, None
    if demand is not None:
        tally = demand.tally()
        lookups = int(tally.passing[0])
        wrong = forecast.wrong_answers(demand, tally, solution, case.up) / max(1, lookups)
    return BudgetCompaction(
        keys_in=0,
        keys_out=0,
        wildcards=int(((state == 1) & (above == 0)).sum()),
        voids=int(((state == 0) & (above == 1)).sum() + zero.sum()),
        bytes_in=0,
        bytes_out=0,
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
    )


def budget_header(header: Header, budget: Budget, choice: Choice) -> Header:
    """The header of a compacted map, which says how it was compacted."""
    return set_header(header, budget, choice.expected_wrong)


def set_header(header: Header, budget: Budget, expected_wrong: float) -> Header:
    """The header of a map compacted by budget, with sets or without."""
    limits = ("max_cost", "max_keys", "max_bytes", "min_accuracy")
    how: dict[str, object] = {"by": "budget"}
    if budget.sets:
        how["sets"] = True
    how |= {name: limit for name in limits if (limit := getattr(budget, name)) is not None}
    if "compaction" not in header.meta:  # else it is unknown which answers of its wildcards are wrong
        how["expected_wrong"] = float(f"{min(1.0, expected_wrong):.4g}")
    # A map without any header gets ours, and says what its columns are.
    return replace(header, context=header.context or Header().context, meta={**header.meta, "compaction": how})
