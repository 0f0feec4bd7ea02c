"""The part of a map's tree that compaction by budget decides about, as columns.

Hides: how records, wildcards and voids of a map become numbers per branch (see `budgetkernels`), and what a
branch's lines would be: their text and their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.profiles import budgetkernels as kernels
from recollect.profiles import treekernels
from recollect.profiles.keytable import KeyTree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BOUNDS = ("", "+", "-", "~")


@dataclass(frozen=True, slots=True)
class Branches:
    """One row per branch, parents first; branch 0 is the root. See `budgetkernels.gather_branches` for the columns."""

    tree: KeyTree
    branch_of: NDArray[np.int32]  # of each node; -1 for a plain leaf
    up: NDArray[np.int32]
    node: NDArray[np.int32]
    flags: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    depth: NDArray[np.uint8]
    leaves: Ints
    kinds: Ints
    size: Floats
    keys: Ints
    room: Ints
    total: Ints
    bound: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.up)

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Below a wildcard of the input: what is not listed may be held."""
        return np.asarray((self.flags & kernels.OPEN) != 0)

    @property
    def is_path(self) -> NDArray[np.bool_]:
        return np.asarray(self.kind == treekernels.PATH)

    @property
    def uri_rs(self) -> int:
        """How many URI-Rs the map speaks for: as stated, else one for each key."""
        stated = int(self.total[0, 1])
        return stated if stated > 0 else max(1, int(self.size[0]))

    def may_roll(self, top: int) -> NDArray[np.bool_]:
        """Which branches may have a wildcard: `top` is 2 to spare top-level domains and the root, 1 the root, 0
        none."""
        depth = np.where(self.kind == treekernels.LONE, 2, self.depth)
        free = self.is_path | (depth >= top)
        return np.asarray(free | ((self.flags & (kernels.WILD | kernels.VOID)) != 0))

    def wildcard_bytes(self) -> Ints:
        """Length of the line `name/* frequency`."""
        length = np.zeros(len(self), np.int64)
        kernels.frequency_lengths(self.total, self.bound, length)
        return length + self._name_lengths() + 4

    def void_bytes(self) -> Ints:
        """Length of the line `name/* 0`."""
        return self._name_lengths() + 5

    def zero_bytes(self) -> Ints:
        """Length of the line `name 0`."""
        root = self.is_path & (self.depth == 1)
        return np.asarray(self._name_lengths() + 3 + root)

    def name_bytes(self) -> Ints:
        """Length of the name."""
        return self.tree.name_length[self.node].astype(np.int64)

    def shared_bytes(self) -> Ints:
        """Length of the parent's name, which a line has in common with others."""
        shared = self.name_bytes()[np.maximum(self.up, 0)]
        shared[0] = 0
        return shared

    def _name_lengths(self) -> Ints:
        names = self.name_bytes()
        names[0] = -1  # `*` has no separator
        return names

    def exact(self, branch: int) -> bytes:
        """The exact key of a branch in paths."""
        name = self.tree.name(int(self.node[branch]))
        return name + b"/" if self.depth[branch] == 1 else name

    def frequency(self, branch: int) -> bytes:
        """The inclusive frequency of all that is held below a branch."""
        uri_m, uri_r = (int(count) for count in self.total[branch])
        bound = int(self.bound[branch])
        m = f"{uri_m}{BOUNDS[bound & 3]}" if uri_m >= 0 else ""
        if uri_r < 0:
            return (m or "/").encode()
        return f"{m}/{uri_r}{BOUNDS[bound >> 2]}".encode()


def branches_of(tree: KeyTree, asked: NDArray[np.int32] | None = None) -> Branches:
    """The branches of a tree. `asked` names nodes that are branches in any case, because people ask for what is
    below."""
    table = tree.table
    void = table.void
    flags = np.zeros(len(tree), np.uint8)
    if asked is not None:
        flags[asked] = kernels.ASKED
    count = kernels.flag_nodes(tree.parent, tree.node_of, table.wild, void, flags)
    branch_of = np.empty(len(tree), np.int32)
    up, node = np.empty(count, np.int32), np.empty(count, np.int32)
    leaves, kinds, keys, room = (np.zeros(count, np.int64) for _ in range(4))
    size = np.zeros(count)
    total, bound = np.zeros((count, 2), np.int64), np.zeros(count, np.uint8)
    kernels.gather_branches(
        tree.parent,
        tree.node_of,
        table.wild,
        void,
        table.uri_m,
        table.uri_r,
        table.bounds,
        table.line_lengths,
        flags,
        branch_of,
        up,
        node,
        leaves,
        kinds,
        size,
        keys,
        room,
        total,
        bound,
    )
    return Branches(
        tree,
        branch_of,
        up,
        node,
        flags[node],
        tree.kind[node],
        tree.depth[node],
        leaves,
        kinds,
        size,
        keys,
        room,
        total,
        bound,
    )
