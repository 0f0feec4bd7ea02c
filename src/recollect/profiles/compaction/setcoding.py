"""The hashed sets of a compacted map: the members of each, and its JSON block.

A set is a trie: a node in it is a gate, which says how many bits what is next below it has, or a stop, below which all
is yes. What a set leaves out, or holds in more specific lines, is decided there.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import setbudget as kernels
from recollect.kernels import walk
from recollect.kernels.branches import HELD, LEAF, OPEN, row_names
from recollect.kernels.branches import JSON as WITH_BLOCK
from recollect.kernels.sets import BITS, PART_EQUATIONS, STOP, VALUE_BITS, encode_set
from recollect.maps.sets import block_of
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.optimum import SetBits, Solution

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

SOLVED = 1.014  # bits of a part for each of its equations


def encoded_sets(
    branches: Branches, solution: Solution, set_bits: SetBits, anchors: Ints, threads: int
) -> dict[int, str]:
    """The JSON block of each anchor's set; without threads, one of the same size."""
    if not len(anchors):
        return {}
    anchor, at, length, suffix, bits, value = _members(branches, solution, set_bits)
    order = np.argsort(anchor, kind="stable")
    anchor, at, length, suffix, bits = anchor[order], at[order], length[order], suffix[order], bits[order]
    value = value[order]
    starts, ends = np.searchsorted(anchor, anchors), np.searchsorted(anchor, anchors, side="right")

    def encode(number: int) -> str:
        mine = slice(int(starts[number]), int(ends[number]))
        if not threads:
            return _drafted(bits[mine], value[mine], number)
        parts, data = encode_set(branches.data, at[mine], length[mine], suffix[mine], bits[mine], value[mine])
        return block_of(parts, data, int(set_bits.bits_out[anchors[number]]))

    if not threads:
        return dict(zip(anchors.tolist(), map(encode, range(len(anchors))), strict=True))
    with ThreadPoolExecutor(threads, "recollect-sets") as pool:
        return dict(zip(anchors.tolist(), pool.map(encode, range(len(anchors))), strict=True))


def _drafted(bits: Bytes, value: NDArray[np.int8], seed: int) -> str:
    """A block of the size of a set's. The seed makes trials, and so the map that they lead to, repeatable."""
    equations = int(bits.sum(dtype=np.int64)) + VALUE_BITS * int((value >= 0).sum())
    parts = max(1, (equations + PART_EQUATIONS // 2) // PART_EQUATIONS)
    return block_of(parts, random.Random(seed).randbytes(2 * parts + int(equations * SOLVED / 8) + 1), 1)


def _members(
    branches: Branches, solution: Solution, set_bits: SetBits
) -> tuple[Ints, Ints, Ints, Bytes, Bytes, NDArray[np.int8]]:
    """All members of all sets: their anchor, where their name is and how long, what stands after it, bits, value."""
    count = len(branches)
    put, bits_in, bits_out = solution.put[:count], set_bits.bits_in[:count], set_bits.bits_out[:count]
    owner = set_bits.anchor
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
        np.concatenate((owner[inner], owner[own], owner[leaf_branch])).astype(np.int64),
        np.concatenate((branches.name_at[inner], branches.name_at[own], leaf_at)),
        np.concatenate((branches.name_length[inner], branches.name_length[own], leaf_length)),
        np.concatenate(
            (np.where(branches.kind[inner] == walk.PATH, 2, 3), np.where(is_root[own], 1, 0), leaf_suffix)
        ).astype(np.uint8),
        np.concatenate((bits_in[inner], bits_in[own], bits_out[leaf_branch])),
        np.concatenate((values, none)),
    )
