"""The text of a map compacted by budget: kept lines and new ones, in the order of bytes.

Hides: which lines stay, what wildcards say (inclusive totals, merged JSON blocks), and the merge of both. A
wildcard's block is its own if the map had it, else the blocks of the keys below it joined as disjoint; where some
keys below have none, its counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recollect.formats.frequency import Frequency
from recollect.profiles import budgetkernels as kernels
from recollect.profiles.branches import Branches
from recollect.profiles.demand import Demand
from recollect.profiles.jsonmerge import merged_block
from recollect.profiles.optimum import Solution

PIECE = 1 << 22  # of output per step
JOIN_AT = 64  # blocks are joined when so many have come together, so that they do not pile up


def lines_of(branches: Branches, demand: Demand | None, solution: Solution, up: NDArray[np.int32]) -> Iterator[bytes]:
    """The records of the compacted map, in pieces; `up` has the absences of `demand` after the branches."""
    table, tree = branches.tree.table, branches.tree
    state = solution.states(up)
    above = np.where(up >= 0, state[np.maximum(up, 0)], 0)
    keep = np.zeros(len(table), np.bool_)
    kernels.keep_rows(
        tree.parent,
        tree.node_of,
        table.wild,
        table.void,
        branches.branch_of,
        branches.up,
        state,
        solution.decide,
        keep,
    )
    lines = _wildcards(branches, np.flatnonzero((state == 1) & (above == 0)))
    count = len(branches)
    new_void = (state == 0) & (above == 1)
    new_void[:count] &= (branches.flags & kernels.VOID) == 0
    for branch in np.flatnonzero(new_void).tolist():
        if branch < count:
            lines.append((tree.wildcard(int(branches.node[branch])), b"0"))
        else:
            assert demand is not None
            lines.append((demand.log.wildcard(int(demand.absence_node[branch - count])), b"0"))
    zero = (state[:count] == 1) & ((solution.decide[:count] & kernels.PUT_ZERO) > 0)
    for branch in np.flatnonzero(zero & ((branches.flags & kernels.ABSENT) == 0)).tolist():
        lines.append((branches.exact(branch), b"0"))
    return _merged(branches, keep, sorted(lines))


def _wildcards(branches: Branches, chosen: NDArray[np.int64]) -> list[tuple[bytes, bytes]]:
    """Wildcard keys with their totals and JSON blocks."""
    blocks = _blocks(branches, chosen)
    lines = []
    for branch in chosen.tolist():
        value = branches.frequency(branch)
        if branch in blocks:
            value += b" " + blocks[branch].encode("utf-8", "surrogateescape")
        lines.append((branches.tree.wildcard(int(branches.node[branch])), value))
    return lines


def _blocks(branches: Branches, chosen: NDArray[np.int64]) -> dict[int, str]:
    """The JSON blocks of chosen branches, from the rows below them."""
    tree, table = branches.tree, branches.tree.table
    rows = np.flatnonzero(table.tails > 0)
    if not len(rows):
        return {}
    wanted = np.zeros(len(branches), np.bool_)
    wanted[chosen] = True
    inside = wanted.copy()
    for branch in range(1, len(branches)):
        inside[branch] |= inside[branches.up[branch]]
    own: dict[int, str] = {}
    below: dict[int, list[str]] = {}
    bare = np.zeros(len(branches), np.bool_)
    for row in np.flatnonzero(~table.void).tolist():
        node = int(tree.node_of[row])
        branch = int(branches.branch_of[node])
        branch = branch if branch >= 0 else int(branches.branch_of[tree.parent[node]])
        if not inside[branch]:
            continue
        if not table.tails[row]:
            bare[branch] |= not table.wild[row]
            continue
        start = int(table.offsets[row])
        text = table.data[start + int(table.tails[row]) : start + int(table.line_lengths[row])].tobytes()
        block = text.decode("utf-8", "surrogateescape")
        if table.wild[row]:
            own[branch] = block
        else:
            _add(below, branch, block)
    done: dict[int, str] = {}
    for branch in range(len(branches) - 1, -1, -1):
        found = below.pop(branch, [])
        block = own.get(branch) or (_joined(found) if found else "")
        if block and wanted[branch]:
            partial = bool(bare[branch]) and branch not in own
            done[branch] = _joined([block], partial=partial)
        up = int(branches.up[branch])
        if up >= 0 and inside[up]:
            if block:
                _add(below, up, block)
            if branch not in own and (bare[branch] or (branches.size[branch] > 0 and not block)):
                bare[up] = True
    return done


def _add(below: dict[int, list[str]], branch: int, block: str) -> None:
    blocks = below.setdefault(branch, [])
    blocks.append(block)
    if len(blocks) >= JOIN_AT:
        blocks[:] = [_joined(blocks)]


def _joined(blocks: list[str], *, partial: bool = False) -> str:
    """One block for blocks of different keys, whose counts add up."""
    return merged_block(blocks, Frequency.__add__, partial=partial)[0] if len(blocks) > 1 or partial else blocks[0]


def _merged(branches: Branches, keep: NDArray[np.bool_], lines: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Kept rows and new lines in the order of bytes, in pieces."""
    table = branches.tree.table
    text = np.frombuffer(b"".join(key + b" " + value for key, value in lines), np.uint8)
    ends = np.cumsum([len(key) + 1 + len(value) for key, value in lines], dtype=np.int64)
    starts = np.concatenate((np.zeros(min(1, len(lines)), np.int64), ends[:-1]))
    key_ends = starts + np.array([len(key) for key, _ in lines], np.int64)
    before = np.empty(len(lines), np.int64)
    kernels.place(table.data, table.offsets, table.key_lengths, text, starts, key_ends, before)
    longest = max(int(table.line_lengths.max(initial=0)), int((ends - starts).max(initial=0)))
    out = np.empty(max(PIECE, longest + 1), np.uint8)
    at = np.zeros(2, np.int64)
    while at[0] < len(table) or at[1] < len(lines):
        size = kernels.write_lines(
            table.data, table.offsets, table.line_lengths, keep, text, starts, ends, before, at, out
        )
        yield out[:size].tobytes()
