"""Compaction by budget: the map of at most so many keys or bytes that answers the fewest lookups wrongly.

Hides: the way from a map to its best compaction: table and tree (`keytable`), what must be decided (`branches`), what people
may ask for (`prior`, `demand`), the optimum (`optimum`), and writing the result in the order of bytes. Everything runs in one
thread over arrays, so the same map, log and budget give the same bytes on any machine.

Invariants: no held URI is lost; the result never exceeds its budget; a wildcard's frequency is the inclusive total of what it
covers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.errors import RecollectError, UsageError
from recollect.formats.containers import OnProblem, atomic_output
from recollect.formats.ukvs import Header
from recollect.model import Progress, ProgressCallback
from recollect.profiles import budgetkernels as kernels
from recollect.profiles.branches import Branches, branches_of
from recollect.profiles.keytable import table_of, tree_of
from recollect.profiles.optimum import Costs, Optimiser, Solution, Stakes
from recollect.profiles.plainmap import PlainMap, open_plain
from recollect.profiles.prior import shares_of, spread

Bytes = NDArray[np.uint8]

PIECE = 1 << 22  # of output per step


@dataclass(frozen=True, slots=True)
class Budget:
    """What the result may be at most. Exactly one limit is given; `max_cost` is keys per URI-R."""

    max_keys: int | None = None
    max_cost: float | None = None
    rollup_tlds: bool = False

    def __post_init__(self) -> None:
        given = [limit for limit in (self.max_keys, self.max_cost) if limit is not None]
        if len(given) != 1:
            raise UsageError("give one budget", hint="--max-keys N or --max-cost 1%")
        if given[0] <= 0:
            raise UsageError("a budget must be above zero")


@dataclass(frozen=True, slots=True)
class BudgetCompaction:
    """What a compaction by budget did. `wrong` is the expected share of lookups answered yes for nothing."""

    keys_in: int
    keys_out: int
    wildcards: int
    voids: int
    bytes_in: int
    bytes_out: int
    uri_rs: int
    price: float
    wrong: float
    top: str

    @property
    def cost(self) -> float:
        """Keys per URI-R."""
        return self.keys_out / self.uri_rs


def compact_by_budget(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    budget: Budget,
    *,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> BudgetCompaction:
    """Compact a map into another, or into itself, within a budget."""
    with open_plain(source, on_problem) as plain:
        _tell(progress, "reading", 0, 3)
        branches = branches_of(tree_of(table_of(plain.data, name=plain.label)))
        _tell(progress, "choosing", 1, 3)
        stakes = stakes_of(branches)
        solution, top = choose(branches, stakes, budget)
        _tell(progress, "writing", 2, 3)
        return _write(plain, branches, solution, top, target)


def _tell(progress: ProgressCallback | None, stage: str, done: int, total: int) -> None:
    if progress is not None:
        progress(Progress(stage, done, total, "steps"))


def stakes_of(branches: Branches) -> Stakes:
    """What can be lost at each branch if nobody knows what people ask for."""
    leave, own = spread(branches, shares_of(branches))
    # Below a wildcard of the input nobody knows what is absent, so nothing there can be answered wrongly for sure.
    leave[branches.is_open] = 0.0
    return Stakes(branches.up, branches.is_open, leave, own)


def key_costs(branches: Branches) -> Costs:
    """Every line costs one."""
    one = np.ones(len(branches), np.int64)
    return Costs(branches.keys, one, one, one)


def choose(branches: Branches, stakes: Stakes, budget: Budget) -> tuple[Solution, str]:
    """The best decisions within the budget, and how far up wildcards had to be allowed for it."""
    limit = budget.max_keys
    if limit is None:
        assert budget.max_cost is not None
        limit = int(budget.max_cost * branches.uri_rs + 1e-9)
    costs = key_costs(branches)
    for top, name in ((2, ""), (1, "tlds"), (0, "root")):
        if budget.rollup_tlds and top == 2:
            continue
        solution = Optimiser(stakes, costs, branches.may_roll(top)).within(limit)
        if solution is not None:
            return solution, name
    raise RecollectError("no map is that small", why=f"{limit} keys are asked for, and one is needed at least")


def _write(
    plain: PlainMap, branches: Branches, solution: Solution, top: str, target: str | os.PathLike[str]
) -> BudgetCompaction:
    state = solution.states(branches.up)
    above = np.where(np.arange(len(state)) > 0, state[np.maximum(branches.up, 0)], 0)
    head = _header(plain.header, solution).encode()
    size = len(head)
    with atomic_output(target) as out:
        out.write(head)
        for piece in lines_of(branches, solution):
            out.write(piece)
            size += len(piece)
    return BudgetCompaction(
        keys_in=len(branches.tree.table),
        keys_out=solution.cost,
        wildcards=int(((state == 1) & (above == 0)).sum()),
        voids=int(
            ((state == 0) & (above == 1)).sum() + ((state == 1) & (solution.decide & kernels.PUT_ZERO > 0)).sum()
        ),
        bytes_in=len(plain.data),
        bytes_out=size,
        uri_rs=branches.uri_rs,
        price=solution.price,
        wrong=solution.loss,
        top=top,
    )


def lines_of(branches: Branches, solution: Solution) -> Iterator[bytes]:
    """The records of the compacted map in the order of bytes, in pieces."""
    table = branches.tree.table
    state = solution.states(branches.up)
    keep = np.zeros(len(table), np.bool_)
    kernels.keep_rows(
        branches.tree.parent,
        branches.tree.node_of,
        table.wild,
        table.void,
        branches.branch_of,
        branches.up,
        state,
        solution.decide,
        keep,
    )
    return _merged(branches, keep, _new_lines(branches, solution, state))


def _header(header: Header, solution: Solution) -> Header:
    how = {"by": "budget", "price": float(f"{solution.price:.6g}"), "expected_wrong": float(f"{solution.loss:.6g}")}
    return replace(header, meta={**header.meta, "compaction": how})


def _new_lines(branches: Branches, solution: Solution, state: NDArray[np.uint8]) -> list[tuple[bytes, bytes]]:
    """Lines that the map does not have yet, as (key, rest), sorted."""
    tree, up = branches.tree, branches.up
    above = np.where(np.arange(len(up)) > 0, state[np.maximum(up, 0)], 0)
    lines = []
    for branch in np.flatnonzero((state == 1) & (above == 0)).tolist():
        lines.append((tree.wildcard(branches.node[branch]), branches.frequency(branch)))
    for branch in np.flatnonzero((state == 0) & (above == 1) & (branches.flags & kernels.VOID == 0)).tolist():
        lines.append((tree.wildcard(branches.node[branch]), b"0"))
    zero = (state == 1) & (solution.decide & kernels.PUT_ZERO > 0) & (branches.flags & kernels.ABSENT == 0)
    for branch in np.flatnonzero(zero).tolist():
        lines.append((branches.exact(branch), b"0"))
    return sorted(lines)


def _merged(branches: Branches, keep: NDArray[np.bool_], lines: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Kept rows and new lines in the order of bytes, in pieces."""
    table = branches.tree.table
    text = np.frombuffer(b"".join(key + b" " + rest for key, rest in lines), np.uint8)
    ends = np.cumsum([len(key) + 1 + len(rest) for key, rest in lines], dtype=np.int64)
    starts = np.concatenate((np.zeros(min(1, len(lines)), np.int64), ends[:-1]))
    key_ends = starts + np.array([len(key) for key, _ in lines], np.int64)
    before = np.empty(len(lines), np.int64)
    kernels.place(table.data, table.offsets, table.key_lengths, text, starts, key_ends, before)
    longest = max((int(table.line_lengths.max()) if len(table) else 0, *(len(k) + len(r) for k, r in lines)), default=0)
    out = np.empty(max(PIECE, longest + 2), np.uint8)
    at = np.zeros(2, np.int64)
    while at[0] < len(table) or at[1] < len(lines):
        size = kernels.write_lines(
            table.data, table.offsets, table.line_lengths, keep, text, starts, ends, before, at, out
        )
        yield out[:size].tobytes()
