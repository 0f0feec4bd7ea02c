"""Compaction by budget with hashed sets: lines, wildcards, voids and sets chosen together.

A wildcard may carry a set (`maps.sets`): the nodes and keys below it, hashed, with few bits each. It is a trie: a node
in a set is a gate, which says how many bits what is next below it has, or a stop, below which all is yes. What a set
leaves out, or holds in more specific lines, is decided there. `kernels.setbudget` has the optimum for a price per byte;
the price is searched until the file, as it is written, fits the budget.

Hides: the search for the price, the members of each set, and writing them.
"""

from __future__ import annotations

import copy
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import setbudget as kernels
from recollect.kernels import walk
from recollect.kernels.branches import ABSENT, HELD, LEAF, OPEN, VOID, row_names
from recollect.kernels.branches import JSON as WITH_BLOCK
from recollect.kernels.budget import keep_rows
from recollect.kernels.sets import BITS, PART_EQUATIONS, STOP, VALUE_BITS, encode_set
from recollect.maps.sets import block_of
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.budgetlines import merged_lines, wildcard_lines
from recollect.profiles.compaction.optimum import Costs, ExpectedLookups

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

# Bytes of a member's bit in the file: base64 has 6 bits a byte, which compression takes back; parts have a directory,
# and equations need a few bits more than there are.
PLAIN_BIT = 1.05 / 6
PACKED_BIT = 1.06 / 8
ANCHOR_BYTES = 52  # of a line's JSON block without its bits
MOST_BITS = 48_000 * 8  # in a set, so that lines stay below 64 kB
NO_BYTES = 1e-9  # the share of a key that a byte counts for where a budget counts keys
SOLVED = 1.014  # bits of a part for each of its equations
ROUNDS = 60  # of the search for a price
NEAR, FIRST_NEAR = 0.002, 0.03  # of the wanted cost


@dataclass(frozen=True, slots=True)
class SetSolution:
    """What is put down for each branch and, after them, for each absence; `cost` is in units of the budget."""

    price: float
    cost: float
    loss: float
    state: Bytes
    put: Bytes
    bits_in: Bytes
    bits_out: Bytes
    anchor: NDArray[np.int32]

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return int(((self.put & kernels.PUT_ANCHOR) != 0).sum())


class SetOptimiser:
    """Optima with sets over one tree."""

    def __init__(
        self,
        branches: Branches,
        expected: ExpectedLookups,
        costs: Costs,
        may_roll: NDArray[np.bool_],
        *,
        unit: str,
    ) -> None:
        self.branches, self.expected = branches, expected
        count = len(expected.up)
        self._listed, self._wild, self._void, self._zero = (
            np.ascontiguousarray(np.broadcast_to(one, count), np.int64)
            for one in (costs.listed, costs.wild, costs.void, costs.zero)
        )
        self._may_roll = np.ascontiguousarray(may_roll).view(np.uint8)
        self._leaves = np.zeros(count, np.int64)
        self._leaves[: len(branches)] = branches.leaves
        self._flags = np.zeros(count, np.uint8)
        self._flags[: len(branches)] = branches.flags
        self._bit = {"bytes": PLAIN_BIT, "novel": PACKED_BIT, "keys": NO_BYTES}[unit]
        self._anchor = 0.0 if unit == "keys" else float(ANCHOR_BYTES)
        self._sums, self._bits = np.empty((count, 2 + kernels.WAYS)), np.empty((count, kernels.WAYS))
        self._ways = np.empty((count, 4 + kernels.WAYS), np.uint8)

    def with_expected(self, expected: ExpectedLookups) -> SetOptimiser:
        """Optima over the same tree for other lookups, with the same arrays to work in."""
        other = copy.copy(self)
        other.expected = expected
        return other

    def with_rolls(self, may_roll: NDArray[np.bool_]) -> SetOptimiser:
        """Optima over the same tree with wildcards at other branches, with the same arrays to work in."""
        other = copy.copy(self)
        other._may_roll = np.ascontiguousarray(may_roll).view(np.uint8)
        return other

    def at_price(self, price: float) -> SetSolution:
        """The exact optimum for a price per unit."""
        expected, count = self.expected, len(self.expected.up)
        value = kernels.choose(
            expected.up, len(self.branches), self._flags, self._may_roll, self._leaves,
            self._listed, self._wild, self._void, self._zero,
            expected.leave, expected.own, price, price * self._bit, price * self._anchor, MOST_BITS,
            self._sums, self._bits, self._ways,
        )  # fmt: skip
        state, put, bits_in, bits_out = (np.zeros(count, np.uint8) for _ in range(4))
        anchor = np.empty(count, np.int32)
        loss = kernels.settle(
            expected.up,
            len(self.branches),
            self._ways,
            expected.leave,
            expected.own,
            state,
            put,
            bits_in,
            bits_out,
            anchor,
        )
        return SetSolution(price, max(0.0, (value - loss) / price), loss, state, put, bits_in, bits_out, anchor)

    def within(self, limit: float, near: float = 0.0, slack: float = NEAR) -> SetSolution | None:
        """The best optimum that costs at most this much, or less by a share of `slack`; None if none does."""
        stake = float(self.expected.leave.sum() + self.expected.own.sum()) or 1.0
        high = low = None
        price = near or 0.03 * stake / max(1.0, limit)
        step = 4.0
        for _ in range(ROUNDS):
            found = self.at_price(price)
            if found.cost <= limit:
                high = found
                if found.cost > limit * (1 - slack) or price < stake * 1e-15:
                    break
            else:
                low = found
            if high is None or low is None:
                price = price / step if low is None else price * step
                step = min(step * 2, 64.0)
                if price > 4 * stake:
                    return None
                continue
            if high.price / low.price < 1.0005:
                break
            price = self._between(high, low, limit)
        return high

    def prices_between(self, least: float, most: float, count: int) -> Floats:
        """Prices of maps from one that costs about `least` to one that costs about `most`, in rising size."""
        ends = [self.within(least * 1.02), self.within(max(most, least * 1.1))]
        stake = float(self.expected.leave.sum() + self.expected.own.sum()) or 1.0
        high = ends[0].price if ends[0] else stake
        low = min(ends[1].price if ends[1] else high, high)
        return np.geomspace(high, max(low, stake * 1e-15), count)

    @staticmethod
    def _between(high: SetSolution, low: SetSolution, limit: float) -> float:
        """A price between two, as if cost were a power of price."""
        share = 0.5
        if low.cost > high.cost > 0:
            share = float(np.log(limit / high.cost) / np.log(low.cost / high.cost))
        share = min(max(share, 0.1), 0.9)
        return float(np.exp(np.log(high.price) + share * (np.log(low.price) - np.log(high.price))))


def lines_with_sets(
    branches: Branches,
    absent: Callable[[int], bytes] | None,
    solution: SetSolution,
    threads: int = 1,
    *,
    draft: bool = False,
) -> Iterator[bytes]:
    """The records of the compacted map, in pieces; `absent` says what key covers an absence.

    A draft has sets of the same size with bits by chance, which compress as little as theirs.
    """
    count = len(branches)
    put = solution.put
    keep = np.zeros(len(branches.rows), np.bool_)
    keep_rows(branches.rows.branch, branches.rows.role, branches.up, solution.state, put, keep.view(np.uint8))
    lines = wildcard_lines(branches, np.flatnonzero((put & kernels.PUT_WILD) != 0))
    anchors = np.flatnonzero((put & kernels.PUT_ANCHOR) != 0)
    lines += wildcard_lines(branches, anchors, _encoded(branches, solution, anchors, 0 if draft else threads))
    void = (put & kernels.PUT_VOID) != 0
    void[:count] &= (branches.flags & VOID) == 0  # the map has the others already
    for branch in np.flatnonzero(void).tolist():
        if branch < count:
            lines.append(branches.wildcard(branch) + b" 0")
        else:
            assert absent is not None
            lines.append(absent(branch - count) + b" 0")
    zero = (put[:count] & kernels.PUT_ZERO) != 0
    for branch in np.flatnonzero(zero & ((branches.flags & ABSENT) == 0)).tolist():
        lines.append(branches.exact(branch) + b" 0")
    return merged_lines(branches, keep, sorted(lines))


def _encoded(branches: Branches, solution: SetSolution, anchors: Ints, threads: int) -> dict[int, str]:
    """The JSON block of each anchor's set; without threads, one of the same size."""
    if not len(anchors):
        return {}
    anchor, at, length, suffix, bits, value = _members(branches, solution)
    order = np.argsort(anchor, kind="stable")
    anchor, at, length, suffix, bits = anchor[order], at[order], length[order], suffix[order], bits[order]
    value = value[order]
    starts, ends = np.searchsorted(anchor, anchors), np.searchsorted(anchor, anchors, side="right")

    def encode(number: int) -> str:
        mine = slice(int(starts[number]), int(ends[number]))
        if not threads:
            return _drafted(bits[mine], value[mine], number)
        parts, data = encode_set(branches.data, at[mine], length[mine], suffix[mine], bits[mine], value[mine])
        return block_of(parts, data, int(solution.bits_out[anchors[number]]))

    if not threads:
        return dict(zip(anchors.tolist(), map(encode, range(len(anchors))), strict=True))
    with ThreadPoolExecutor(threads, "recollect-sets") as pool:
        return dict(zip(anchors.tolist(), pool.map(encode, range(len(anchors))), strict=True))


def _drafted(bits: Bytes, value: NDArray[np.int8], seed: int) -> str:
    """A block of the size of a set's. The seed makes trials, and so the map that they lead to, repeatable."""
    equations = int(bits.sum(dtype=np.int64)) + VALUE_BITS * int((value >= 0).sum())
    parts = max(1, (equations + PART_EQUATIONS // 2) // PART_EQUATIONS)
    return block_of(parts, random.Random(seed).randbytes(2 * parts + int(equations * SOLVED / 8) + 1), 1)


def _members(branches: Branches, solution: SetSolution) -> tuple[Ints, Ints, Ints, Bytes, Bytes, NDArray[np.int8]]:
    """All members of all sets: their anchor, where their name is and how long, what stands after it, bits, value."""
    count = len(branches)
    put, bits_in, bits_out = solution.put[:count], solution.bits_in[:count], solution.bits_out[:count]
    value_of = np.zeros(max(BITS) + 1, np.int8)
    value_of[list(BITS)] = np.arange(1, len(BITS) + 1)
    inner = np.flatnonzero((put & (kernels.PUT_GATE | kernels.PUT_STOP)) != 0)
    values = np.where((put[inner] & kernels.PUT_GATE) != 0, value_of[bits_out[inner]], STOP).astype(np.int8)
    in_set = kernels.PUT_GATE | kernels.PUT_STOP | kernels.PUT_MEMBER | kernels.PUT_ANCHOR
    # Below a wildcard of the input a key may be held that is not listed.
    held = (branches.flags & np.where((put & kernels.PUT_STOP) != 0, HELD | OPEN, HELD)) != 0
    own = np.flatnonzero(((put & in_set) != 0) & held)
    is_root = branches.is_path & (branches.depth == 1)
    rows = branches.rows
    leaves = np.flatnonzero(
        ((rows.role & ~np.uint8(WITH_BLOCK)) == LEAF) & (solution.state[rows.branch] == kernels.ASKS_SET)
    )
    leaf_at = rows.offset[leaves]
    leaf_length, leaf_suffix = np.empty(len(leaves), np.int64), np.empty(len(leaves), np.uint8)
    row_names(branches.data, leaf_at, leaf_length, leaf_suffix)
    leaf_branch = rows.branch[leaves]
    none = np.full(len(own) + len(leaves), -1, np.int8)
    return (
        np.concatenate((solution.anchor[inner], solution.anchor[own], solution.anchor[leaf_branch])).astype(np.int64),
        np.concatenate((branches.name_at[inner], branches.name_at[own], leaf_at)),
        np.concatenate((branches.name_length[inner], branches.name_length[own], leaf_length)),
        np.concatenate(
            (np.where(branches.kind[inner] == walk.PATH, 2, 3), np.where(is_root[own], 1, 0), leaf_suffix)
        ).astype(np.uint8),
        np.concatenate((bits_in[inner], bits_in[own], bits_out[leaf_branch])),
        np.concatenate((values, none)),
    )


def within_bytes_of_sets(
    limit: int,
    suffix: str,
    choose_at: Callable[[float, float, float], SetSolution | None],
    write: Callable[[SetSolution, Path], None],
) -> SetSolution | None:
    """The solution for a size on disk, which is known only when all is written: try, measure, correct."""
    best: SetSolution | None = None
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        trial = Path(folder) / f"trial{suffix}"
        wanted, low, high, near = float(limit), 0.0, float("inf"), 0.0
        for number in range(7):
            # The first draft only shows how large a map of its cost is.
            found = choose_at(wanted, near, NEAR if number else FIRST_NEAR)
            if found is None:
                low = wanted
                if high == float("inf"):
                    break
            else:
                write(found, trial)
                size = trial.stat().st_size
                near = found.price
                if size <= limit:
                    low = max(low, wanted)
                    if best is None or found.loss <= best.loss:
                        best = found
                    if size > 0.99 * limit or found.cost < 0.9 * wanted:
                        break
                else:
                    high = min(high, wanted, found.cost)
                wanted = found.cost * limit / size * 0.996
            if not low < wanted < high:
                wanted = (low + high) / 2 if high < float("inf") else low * 1.05
            if high - low < 0.004 * limit:
                break
    return best


def suffix_of(target: str | os.PathLike[str]) -> str:
    return Path(os.fspath(target)).suffix.lower()
