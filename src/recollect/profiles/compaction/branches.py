"""The part of a map's tree that compaction by budget decides about, as columns.

A branch is a node of the tree of keys with anything to decide: every node but a plain leaf, which is one held exact
key with nothing below it and no wildcard. Plain leaves are only counted at their parent, so there are about ten times
fewer branches than keys. Branch 0 is the root; a parent's number is smaller than its children's, so a loop backwards
goes bottom-up.

Hides: the scan of the map's text (`kernels.branches`) in parts, one for each thread, joined so that the numbers are the
same for any number of parts; and what a branch's lines would be: their text and their bytes. About 13 bytes a row
and 150 a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError, NotSorted
from recollect.kernels import branches as kernels
from recollect.kernels import walk
from recollect.kernels.lines import line_at
from recollect.maps.plainmap import PlainMap

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BOUNDS = ("", "+", "-", "~")
SMALL = 1 << 20  # bytes of text that are not worth a second thread
POWERS = 10 ** np.arange(1, 19)  # each is the first number with one more digit

# A branch as the scan makes it, as `Branch` in `kernels/branches.pxd`.
BRANCH = np.dtype(
    [(name, np.int64) for name in ("up", "at", "length", "kind", "depth", "flags", "leaves", "keys", "line_bytes")]
    + [("total", np.int64, (2,)), ("bound", np.int64), ("own", np.int64)]
)
Scanned = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Rows:
    """The records of a map in file order: where each is, its branch (a leaf's is its parent's) and its role there."""

    offset: Ints
    branch: NDArray[np.int32]
    role: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offset)

    def part(self, start: int, stop: int) -> Rows:
        """Some of them, not copied."""
        return Rows(
            self.offset[start:stop],
            self.branch[start:stop],
            self.role[start:stop],
        )

    def without_gaps(self, taken: Sequence[tuple[int, int]]) -> Rows:
        """The rows of these ranges (start, length), moved together."""
        end = 0
        for start, length in taken:
            if start != end:
                for column in (self.offset, self.branch, self.role):
                    column[end : end + length] = column[start : start + length]
            end += length
        return self.part(0, end)


@dataclass(frozen=True, slots=True)
class Branches:
    """One row per branch. `leaves`, `keys`, `line_bytes`: plain leaves, and number and bytes of the lines of held exact
    keys (its own and its leaves'); `held_children`: children that hold something; `size`: held URIs below, if known;
    `total`, `bound`: the inclusive frequency (URI-Ms, URI-Rs; -1 is not stated; two bits of bounds each)."""

    data: Bytes
    rows: Rows
    up: NDArray[np.int32]
    name_at: Ints
    name_length: Ints
    kind: NDArray[np.uint8]
    depth: Ints
    flags: NDArray[np.uint8]
    leaves: Ints
    held_children: Ints
    size: Floats
    keys: Ints
    line_bytes: Ints
    total: Ints
    bound: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.up)

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Below a wildcard of the input: what is not listed may be held."""
        return np.asarray((self.flags & kernels.OPEN) != 0)

    @property
    def wildcards(self) -> int:
        """How many wildcards the input has."""
        return int(((self.flags & kernels.WILD) != 0).sum())

    @property
    def is_path(self) -> NDArray[np.bool_]:
        """A node in paths, not in hosts."""
        return np.asarray(self.kind == walk.PATH)

    @property
    def all_leaves(self) -> Ints:
        """Leaves, those that are branches only because people asked for something below them among them."""
        grown = (self.flags & kernels.GROWN) != 0
        return self.leaves + np.bincount(self.up[grown], minlength=len(self)) if grown.any() else self.leaves

    @property
    def uri_rs(self) -> int:
        """How many URI-Rs the map covers: as stated, and at least one for each key."""
        return max(1, int(self.total[0, 1]), int(self.size[0]) if self.bound[0] >> 2 or self.total[0, 1] < 0 else 0)

    def may_roll(self, top: int) -> NDArray[np.bool_]:
        """Which branches may have a wildcard: `top` is 2 to spare the root and top-level domains, 1 the root, 0
        none. What had one may have one."""
        depth = np.where(self.kind == walk.ADDRESS, 2, self.depth)
        free = self.is_path | (depth >= top)
        return np.asarray(free | ((self.flags & (kernels.WILD | kernels.VOID)) != 0))

    def name(self, branch: int) -> bytes:
        """`com,x`, `com,x)` (the root of its paths), `com,x)/a`; empty for the root."""
        start = int(self.name_at[branch])
        return self.data[start : start + int(self.name_length[branch])].tobytes()

    def wildcard(self, branch: int) -> bytes:
        """The key that covers a branch and all below it."""
        if branch == 0:
            return b"*"
        return self.name(branch) + (b"/*" if self.kind[branch] == walk.PATH else b",*")

    def exact(self, branch: int) -> bytes:
        """The exact key of a branch in paths."""
        return self.name(branch) + (b"/" if self.depth[branch] == 1 else b"")

    def block(self, row: int) -> str:
        """The JSON block of a record that has one."""
        start = int(self.rows.offset[row])
        line = line_at(self.data, start)
        return self.data[start + line.block : start + line.length].tobytes().decode("utf-8", "surrogateescape")

    def frequency(self, branch: int) -> bytes:
        """The inclusive frequency of all that is held below a branch."""
        uri_m, uri_r = (int(count) for count in self.total[branch])
        bound = int(self.bound[branch])
        m = f"{uri_m}{BOUNDS[bound & 3]}" if uri_m >= 0 else ""
        if uri_r < 0:
            return (m or "/").encode()
        return f"{m}/{uri_r}{BOUNDS[bound >> 2]}".encode()

    def wildcard_bytes(self, of: Ints | slice = slice(None)) -> Ints:
        """Length of the line `name/* frequency`, of all branches or of some."""
        uri_m, uri_r = self.total[of].T
        bound = self.bound[of]
        value = _digits(uri_m, bound & 3)
        value += np.where((uri_r >= 0) | (uri_m < 0), 1 + _digits(uri_r, bound >> 2), 0)
        return self._wildcard_lengths()[of] + value + 2

    def void_bytes(self) -> Ints:
        """Length of the line `name/* 0`."""
        return self._wildcard_lengths() + 3

    def zero_bytes(self) -> Ints:
        """Length of the line `name 0`."""
        return np.asarray(self.name_length + 3 + (self.is_path & (self.depth == 1)))

    def shared_bytes(self) -> Ints:
        """Length of the parent's name, which a line has in common with others."""
        shared = self.name_length[np.maximum(self.up, 0)]
        shared[0] = 0
        return shared

    def _wildcard_lengths(self) -> Ints:
        lengths = self.name_length + 2
        lengths[0] = 1  # `*` has no separator
        return lengths

    def grown(self, rows: Ints) -> Branches:
        """The same with these plain leaves (rows of theirs) as branches of their own, after all others."""
        branch = np.zeros(len(rows), BRANCH)
        up = self.rows.branch[rows]
        line_bytes, length = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        for number, row in enumerate(rows.tolist()):
            line = line_at(self.data, int(self.rows.offset[row]))
            kernels.add_total(branch, number, line.m, line.r, line.bounds)
            line_bytes[number], length[number] = line.length + 1, line.key_length
        leaves, keys, space = self.leaves.copy(), self.keys.copy(), self.line_bytes.copy()
        np.subtract.at(leaves, up, 1)
        np.subtract.at(keys, up, 1)
        np.subtract.at(space, up, line_bytes)
        ends = self.data[self.rows.offset[rows] + length - 1]
        row_branch, role = self.rows.branch.copy(), self.rows.role.copy()
        row_branch[rows] = len(self) + np.arange(len(rows))
        role[rows] = kernels.OWN | (role[rows] & kernels.JSON)
        one = np.ones(len(rows), np.int64)
        below_path = self.kind[up] == walk.PATH
        return Branches(
            self.data,
            replace(self.rows, branch=row_branch, role=role),
            np.concatenate((self.up, up)),
            np.concatenate((self.name_at, self.rows.offset[rows])),
            np.concatenate((self.name_length, length - (ends == ord("/")))),
            np.concatenate((self.kind, np.full(len(rows), walk.PATH, np.uint8))),
            np.concatenate((self.depth, np.where(below_path, self.depth[up] + 1, 1))),
            np.concatenate((self.flags, kernels.HELD | kernels.GROWN | (self.flags[up] & kernels.OPEN))),
            np.concatenate((leaves, 0 * one)),
            np.concatenate((self.held_children, 0 * one)),
            np.concatenate((self.size, one.astype(float))),
            np.concatenate((keys, one)),
            np.concatenate((space, line_bytes)),
            np.concatenate((self.total, branch["total"])),
            np.concatenate((self.bound, branch["bound"].astype(np.uint8))),
        )


def _digits(count: Ints, bound: NDArray[Any]) -> Ints:
    """Bytes of a count as it is written; none for one that is not stated."""
    digits = 1 + np.searchsorted(POWERS, count, side="right")
    return np.where(count < 0, 0, digits + (bound != 0))


def branches_of(plain: PlainMap, threads: int = 1) -> Branches:
    """The branches of a map; raises NotSorted or FormatError where its records are not plain, sorted and unique."""
    ranges = _ranges(plain, threads)
    data = plain.array
    with ThreadPoolExecutor(max(1, threads), "recollect-scan") as pool:
        lines = np.cumsum([0, *pool.map(lambda piece: _count_lines(data, *piece), ranges)])
        rows = _empty_rows(int(lines[-1]))
        # Where memory is first touched costs more than the scan itself, so parts share arrays and are moved together.
        starts = lines // 4 + 4096 * np.arange(len(lines))
        whole = np.empty(int(starts[-1]), BRANCH)

        def scan(part: int) -> tuple[int, Scanned]:
            own = rows.part(lines[part], lines[part + 1])
            return _scan(plain, *ranges[part], own, whole[starts[part] : starts[part + 1]])

        parts = list(pool.map(scan, range(len(ranges))))
    branch = _joined(data, rows, lines, parts, whole)
    rows = rows.without_gaps([(int(start), taken) for start, (taken, _) in zip(lines, parts, strict=False)])
    del parts
    held_children, size = np.zeros(len(branch), np.int64), np.zeros(len(branch))
    kernels.sum_up(data, branch, held_children, size)
    # What a pass of the optimum reads is copied, the rest stays where it is.
    return Branches(
        data,
        rows,
        branch["up"].astype(np.int32),
        branch["at"],
        branch["length"],
        branch["kind"].astype(np.uint8),
        branch["depth"],
        branch["flags"].astype(np.uint8),
        branch["leaves"],
        held_children,
        size,
        branch["keys"].copy(),
        branch["line_bytes"].copy(),
        branch["total"],
        branch["bound"].astype(np.uint8),
    )


def _count_lines(data: Bytes, start: int, stop: int) -> int:
    """Most records of a range. NumPy compares and counts many bytes at once, in pieces that stay in the
    processor's cache."""
    steps = range(start, stop, 1 << 18)
    return 1 + sum(int(np.count_nonzero(data[step : min(step + (1 << 18), stop)] == 10)) for step in steps)


def _empty_rows(count: int) -> Rows:
    return Rows(
        np.empty(count, np.int64),
        np.empty(count, np.int32),
        np.empty(count, np.uint8),
    )


def _ranges(plain: PlainMap, threads: int) -> list[tuple[int, int]]:
    """Parts of the text between which no node goes on, but the root and top-level domains."""
    data, start, end = plain.data, plain.start, len(plain.data)
    size = max(SMALL, (end - start) // max(1, threads) + 1)
    ranges: list[tuple[int, int]] = []
    while start < end or not ranges:
        stop = walk.safe_cut(data, start, end, min(start + size, end), False)
        if stop < end and not walk.lines_rise(data, start, stop, end):
            raise NotSorted("keys out of order or repeated", where=plain.label)
        ranges.append((start, stop))
        start = stop
    return ranges


def _scan(plain: PlainMap, start: int, stop: int, rows: Rows, branch: Scanned) -> tuple[int, Scanned]:
    """Scan a part into its rows and, as long as they fit, into `branch`; returns how many rows there are, and the
    part's branches."""
    data = plain.array
    scan = kernels.BranchScan(data, start, stop, rows.offset, rows.branch, rows.role)
    while (status := scan.run(branch)) == kernels.BRANCHES_FULL:
        branch = np.concatenate((branch, np.empty_like(branch)))
    if status != kernels.DONE:
        line = _count_lines(data, 0, scan.at)
        where = f"{plain.label}:{line}"
        if status == kernels.UNSORTED:
            raise NotSorted("keys out of order or repeated", where=where)
        raise FormatError("a line that is not a plain record", where=where)
    return scan.rows, branch[: scan.branches]


def _joined(data: Bytes, rows: Rows, lines: Ints, parts: Sequence[tuple[int, Scanned]], whole: Scanned) -> Scanned:
    """The branches of all parts as one, in `whole` if they fit: the root and top-level domains that several parts have
    become one branch each."""
    known: dict[bytes, int] = {}
    doubles: list[tuple[int, Scanned]] = []
    if any(branch.base is not whole for _, branch in parts):
        whole = np.empty(sum(len(branch) for _, branch in parts), BRANCH)
    count = 0
    for start, (taken, branch) in zip(lines, parts, strict=False):
        tops = {_name(data, branch, top): top for top in [0, *_shared(branch)]}
        number = np.full(len(branch), -1, np.int64)
        for name, top in tops.items():
            if name in known:
                number[top] = known[name]
                doubles.append((known[name], branch[top : top + 1].copy()))
        new = number < 0
        number[new] = count + np.arange(new.sum())
        known |= {name: int(number[top]) for name, top in tops.items()}
        branch["up"][1:] = number[branch["up"][1:]]
        mine = rows.branch[start : start + taken]
        mine[:] = number[mine]
        # Few are doubles, so the others move in a few long pieces, always downwards.
        edges = [-1, *np.flatnonzero(~new).tolist(), len(branch)]
        for before, after in pairwise(edges):
            piece = branch[before + 1 : after]
            whole[count : count + len(piece)] = piece
            count += len(piece)
    for at, double in doubles:
        _add_double(whole, at, double)
    return whole[:count]


def _shared(branch: Scanned) -> list[int]:
    """Branches of top-level domains, which may go on in other parts."""
    tops = (branch["kind"] == walk.HOST) & (branch["depth"] == 1)
    return [int(top) for top in np.flatnonzero(tops)]


def _name(data: Bytes, branch: Scanned, at: int) -> bytes:
    start, length = int(branch["at"][at]), int(branch["length"][at])
    return data[start : start + length].tobytes()


def _add_double(joined: Scanned, branch: int, double: Scanned) -> None:
    """What another part says of the same branch."""
    joined["flags"][branch] |= double["flags"][0]
    for column in ("leaves", "keys", "line_bytes"):
        joined[column][branch] += double[column][0]
    uri_m, uri_r = double["total"][0].tolist()
    kernels.add_total(joined, branch, uri_m, uri_r, int(double["bound"][0]))
    if double["flags"][0] & kernels.WILD:
        joined["own"][branch] = double["own"][0]
