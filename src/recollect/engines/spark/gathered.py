"""The branches of all ranges of a map in one place, small: what compaction by budget decides about, without its keys.

A range sends the columns of its branches (see `profiles.compaction.branches`), about 50 bytes each. Its plain leaves,
which most keys are, are in the sums of their branches. Only where there is a log names come along: of the branches, and
the lines of those leaves that people asked for, which is all that laying a log over the tree looks at.

Ranges share the root and top-level domains, which become one branch each; so the columns, and the numbers of branches,
are those that one process gets from the whole map, and everything that follows from them is the same to the last bit.
The way back: what is decided about a range's branches, about leaves that became branches, and voids over absent ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import walk
from recollect.kernels.branches import OWN, add_total
from recollect.kernels.lines import line_at
from recollect.profiles.compaction.branches import BRANCH, Branches, Rows
from recollect.profiles.compaction.budget import Case
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.demand import Asked, match_nodes
from recollect.profiles.compaction.keytable import table_of, tree_of
from recollect.profiles.compaction.optimum import Solution

Ints = NDArray[np.int64]
# Columns that are counted for each branch separately, and so add up where ranges share one.
_ADDED = ("leaves", "held_children", "size", "keys", "line_bytes")
_SMALL = {"leaves": np.int32, "held_children": np.int32, "keys": np.int32, "depth": np.int32, "name_length": np.int32}
_COLUMNS = (
    "up",
    "name_length",
    "kind",
    "depth",
    "flags",
    "leaves",
    "held_children",
    "size",
    "keys",
    "line_bytes",
    "total",
    "bound",
)


@dataclass(frozen=True, slots=True)
class Part:
    """The branches of one range. `tops`: those that other ranges may have, too, by name; `text` has a line for each
    branch (its name) and for each leaf that the log asks for, `rows` says whose it is, and `leaf` its row in the range
    (-1 for a name). Both are empty without a log."""

    number: int
    records: int
    columns: dict[str, Any]
    tops: dict[bytes, int]
    text: bytes = b""
    rows: tuple[Any, ...] = ()


def part_of(number: int, branches: Branches, asked: Sequence[bytes] | None) -> Part:
    """What a range sends; `asked` are the sorted keys of the log in the range."""
    columns = {name: getattr(branches, name) for name in _COLUMNS}
    columns |= {name: columns[name].astype(kind) for name, kind in _SMALL.items() if _fits(columns[name], kind)}
    shared = np.flatnonzero((branches.kind == walk.HOST) & (branches.depth == 1))
    tops = {branches.name(top): top for top in (0, *shared.tolist())}
    text, rows = (b"", ()) if asked is None else _lines(branches, asked)
    return Part(number, len(branches.rows), columns, tops, text, rows)


def _fits(column: Any, kind: Any) -> bool:
    return not column.size or int(column.max()) <= np.iinfo(kind).max


def asked_between(keys: Sequence[bytes], low: bytes, high: bytes | None) -> Sequence[bytes]:
    """Of sorted keys those of a range."""
    return keys[bisect_left(keys, low) : len(keys) if high is None else bisect_left(keys, high)]


def spellings(asked: Asked) -> list[bytes]:
    """All keys that a log may stand for, sorted."""
    return sorted({*asked.counts, *asked.kept_www.values()})


def _lines(branches: Branches, asked: Sequence[bytes]) -> tuple[bytes, tuple[Any, ...]]:
    """Lines in order: a name for each branch, and the leaves that are asked for."""
    found = [(branches.name(branch), branch, OWN, -1, b" 1\n") for branch in range(1, len(branches))]
    text = b"".join(key + b" 1\n" for key in asked)
    if text:
        leaf = match_nodes(tree_of(table_of(np.frombuffer(text, np.uint8))), branches)[1]
        data = branches.data
        for row in np.unique(leaf[leaf >= 0]).tolist():
            start = int(branches.rows.offset[row])
            line = line_at(data, start)
            key = start + line.key_length
            rest = data[key : start + line.length].tobytes() + b"\n"
            found.append(
                (data[start:key].tobytes(), int(branches.rows.branch[row]), int(branches.rows.role[row]), row, rest)
            )
    found.sort()
    lines = [key + rest for key, *_, rest in found]
    offsets = np.cumsum([0, *map(len, lines)])[:-1]
    branch, role, leaf_rows = (np.array([one[at] for one in found], np.int64) for at in (1, 2, 3))
    return b"".join(lines), (offsets, branch, role.astype(np.uint8), leaf_rows)


@dataclass(frozen=True, slots=True)
class Gathered:
    """All ranges as one, and the way back. `numbers`: for each range the numbers of its branches in the whole; `leaf`:
    for each row of the whole the row in its range; `starts`: where the rows of each range begin."""

    branches: Branches
    parts: tuple[int, ...]
    numbers: tuple[Ints, ...]
    leaf: Ints
    starts: Ints


def gathered(parts: Sequence[Part]) -> Gathered:
    """Put ranges together, in order."""
    known: dict[bytes, int] = {}
    numbers: list[Ints] = []
    fresh: list[NDArray[np.bool_]] = []
    count = 0
    for part in parts:
        number = np.full(len(part.columns["up"]), -1, np.int64)
        for name, top in part.tops.items():
            number[top] = known.get(name, -1)
        new = number < 0
        number[new] = count + np.arange(int(new.sum()))
        count += int(new.sum())
        known |= {name: int(number[top]) for name, top in part.tops.items()}
        numbers.append(number)
        fresh.append(new)
    columns = {name: np.concatenate([one.columns[name][new] for one, new in zip(parts, fresh, strict=True)])
               for name in _COLUMNS}  # fmt: skip
    columns |= {name: columns[name].astype(np.int64) for name in _SMALL}
    ups = [number[np.maximum(one.columns["up"], 0)] for one, number in zip(parts, numbers, strict=True)]
    columns["up"] = np.concatenate([up[new] for up, new in zip(ups, fresh, strict=True)]).astype(np.int32)
    columns["up"][0] = -1
    for part, number, new in zip(parts, numbers, fresh, strict=True):
        for top in np.flatnonzero(~new).tolist():
            _add(columns, int(number[top]), part, top)
    rows, name_at, data, starts = _rows(parts, numbers, count)
    leaf = np.concatenate([part.rows[3] for part in parts if part.rows]) if len(rows) else np.zeros(0, np.int64)
    whole = Branches(data, rows, name_at=name_at, **columns)
    return Gathered(whole, tuple(part.number for part in parts), tuple(numbers), leaf, starts)


def _add(columns: dict[str, Any], at: int, part: Part, top: int) -> None:
    """Add what a range says of a branch that an earlier one has."""
    mine = part.columns
    if at and columns["size"][at] > 0 and mine["size"][top] > 0:
        columns["held_children"][0] -= 1  # both ranges count it as a child of the root
    for name in _ADDED:
        columns[name][at] += mine[name][top]
    columns["flags"][at] |= mine["flags"][top]
    box = np.zeros(1, BRANCH)
    box["total"][0], box["bound"][0] = columns["total"][at], columns["bound"][at]
    uri_m, uri_r = mine["total"][top].tolist()
    add_total(box, 0, uri_m, uri_r, int(mine["bound"][top]))
    columns["total"][at], columns["bound"][at] = box["total"][0], box["bound"][0]


def _rows(parts: Sequence[Part], numbers: Sequence[Ints], count: int) -> tuple[Rows, Ints, Any, Ints]:
    """The lines of all ranges, where each branch's name is, the text, and where the lines of each range begin."""
    name_at = np.zeros(count, np.int64)
    offsets, branches, roles, begin, starts = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [], 0, [0]
    for part, number in zip(parts, numbers, strict=True):
        if part.rows:
            offset, branch, role, leaf = part.rows
            name_at[number[branch[leaf < 0]]] = begin + offset[leaf < 0]
            offsets.append(begin + offset)
            branches.append(number[branch].astype(np.int32))
            roles.append(role)
            begin += len(part.text)
        starts.append(sum(map(len, offsets)))
    data = np.frombuffer(b"".join(part.text for part in parts), np.uint8)
    role = np.concatenate(roles) if roles else np.zeros(0, np.uint8)
    return Rows(np.concatenate(offsets), np.concatenate(branches), role), name_at, data, np.array(starts)


@dataclass(frozen=True, slots=True)
class Decided:
    """What is to be done in a range: decisions about its branches, then about its leaves that are branches to the log
    (`grown`, rows of the range); `voids`: (branch, key) of absent subtrees that are named as absent."""

    decide: NDArray[np.uint8]
    grown: Ints
    voids: tuple[tuple[int, bytes], ...]

    def lines(self, branches: Branches) -> Iterator[bytes]:
        """The records of the range."""
        if len(self.grown):
            branches = branches.grown(self.grown)
        absences = np.array([branch for branch, _ in self.voids], np.int32)
        up = np.concatenate((branches.up, absences))
        # A void is written for what is absent below a wildcard; these are all that are worth one.
        decide = np.concatenate((self.decide, np.full(len(absences), 2, np.uint8)))
        return lines_of(branches, lambda number: self.voids[number][1], Solution(0.0, 0, 0.0, decide), up)


def decided_for(one: Gathered, case: Case, solution: Solution) -> Iterator[tuple[int, Decided]]:
    """The decisions for each range, by its number."""
    known = len(one.branches)
    grown = case.branches.rows.branch >= known
    places = np.flatnonzero(grown)
    places = places[np.argsort(case.branches.rows.branch[places])]
    voids = _voids(case, solution)
    for index, (number, numbers) in enumerate(zip(one.parts, one.numbers, strict=True)):
        mine = places[(places >= one.starts[index]) & (places < one.starts[index + 1])]
        added = case.branches.rows.branch[mine].astype(np.int64)
        whole = np.concatenate((numbers, added))
        local = dict(zip(whole.tolist(), range(len(whole)), strict=True)) if voids else {}
        taken = tuple((local[branch], key) for branch, key in voids if branch in local)
        yield number, Decided(solution.decide[whole], one.leaf[mine], taken)


def _voids(case: Case, solution: Solution) -> list[tuple[int, bytes]]:
    """Absences that get a void: the branch above each, and its key."""
    if case.demand is None:
        return []
    state, count = solution.states(case.up), len(case.branches)
    above = state[case.up[count:]]
    found = np.flatnonzero((state[count:] == 0) & (above == 1)).tolist()
    return [(int(case.up[count + absence]), case.demand.absent(absence)) for absence in found]
