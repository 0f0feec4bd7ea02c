"""The text of a map compacted by budget: kept lines and new ones, in the order of bytes.

Hides: which lines stay, what wildcards say (inclusive totals, merged JSON blocks), and the merge of both. A
wildcard's block is its own if the map had it, else the blocks of the keys below it joined as disjoint; where some
keys below have none, its counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from recollect.formats.frequency import Frequency
from recollect.kernels import budget as kernels
from recollect.kernels.branches import ABSENT, JSON, LEAF, OWN, TOTAL, VOID
from recollect.kernels.setbudget import PUT_ANCHOR, PUT_VOID, PUT_WILD, PUT_ZERO
from recollect.maps.jsonmerge import merged_block
from recollect.maps.sets import items_of, with_sets, without_sets
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.case import Case
from recollect.profiles.compaction.optimum import Solution
from recollect.profiles.compaction.setcoding import encoded_sets

PIECE = 1 << 22  # of output per step
JOIN_AT = 64  # blocks are joined when this number is reached, to bound the number of blocks


def lines_of(case: Case, solution: Solution, threads: int = 1, *, draft: bool = False) -> Iterator[bytes]:
    """The records of the compacted map, in pieces. A draft has sets of the same size with bits by chance, which
    compress as little as theirs."""
    branches, put = case.branches, solution.put
    count = len(branches)
    keep = np.zeros(len(branches.rows), np.bool_)
    kernels.keep_rows(branches.rows.branch, branches.rows.role, branches.up, solution.state, put, keep.view(np.uint8))
    lines = wildcard_lines(branches, np.flatnonzero((put & PUT_WILD) != 0))
    if solution.bits is not None:
        anchors = np.flatnonzero((put & PUT_ANCHOR) != 0)
        blocks = encoded_sets(branches, solution, solution.bits, anchors, 0 if draft else threads)
        lines += wildcard_lines(branches, anchors, blocks)
    void = (put & PUT_VOID) != 0
    void[:count] &= (branches.flags & VOID) == 0  # the map has the others already
    for branch in np.flatnonzero(void).tolist():
        lines.append((branches.wildcard(branch) if branch < count else case.absent(branch - count)) + b" 0")
    zero = (put[:count] & PUT_ZERO) != 0
    for branch in np.flatnonzero(zero & ((branches.flags & ABSENT) == 0)).tolist():
        lines.append(branches.exact(branch) + b" 0")
    # A key ends at a space, which is below all bytes of keys, so lines are in the order of their keys.
    return merged_lines(branches, keep, sorted(lines))


def wildcard_lines(branches: Branches, chosen: NDArray[np.int64], sets: Mapping[int, str] | None = None) -> list[bytes]:
    """Wildcard keys with their totals and JSON blocks; `sets` has the blocks of those with hashed sets."""
    lengths = branches.wildcard_bytes(chosen) - 1
    ends = np.cumsum(lengths)
    text = np.empty(int(lengths.sum()), np.uint8)
    kernels.write_wildcards(
        branches.data,
        chosen,
        branches.name_at,
        branches.name_length,
        branches.is_path.view(np.uint8),
        branches.total,
        branches.bound,
        ends - lengths,
        text,
    )
    whole = text.tobytes()
    lines = [whole[start:end] for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
    if (branches.rows.role & JSON).any():
        blocks = _blocks(branches, chosen)
        for number, branch in enumerate(chosen.tolist()):
            if blocks.get(branch):
                own = blocks[branch]
                if sets:
                    own = with_sets(own, items_of(sets[branch]))
                lines[number] += b" " + own.encode("utf-8", "surrogateescape")
            elif sets:
                lines[number] += b" " + sets[branch].encode()
    elif sets:
        lines = [line + b" " + sets[branch].encode() for line, branch in zip(lines, chosen.tolist(), strict=True)]
    return lines


def _blocks(branches: Branches, chosen: NDArray[np.int64]) -> dict[int, str]:
    """The JSON blocks of chosen branches, from the rows below them."""
    wanted = np.zeros(len(branches), np.bool_)
    wanted[chosen] = True
    inside = wanted.copy()
    for branch in range(1, len(branches)):
        inside[branch] |= inside[branches.up[branch]]
    own: dict[int, str] = {}
    below: dict[int, list[str]] = {}
    bare = np.zeros(len(branches), np.bool_)
    rows = branches.rows
    role = rows.role & ~np.uint8(JSON)
    for row in np.flatnonzero(inside[rows.branch] & np.isin(role, (LEAF, OWN, TOTAL))).tolist():
        branch = int(rows.branch[row])
        if not rows.role[row] & JSON:
            bare[branch] |= role[row] != TOTAL
        elif role[row] == TOTAL:
            own[branch] = branches.block(row)
        else:
            _add(below, branch, branches.block(row))
    done: dict[int, str] = {}
    for branch in range(len(branches) - 1, -1, -1):
        found = below.pop(branch, [])
        block = own.get(branch) or (_joined(found) if found else "")
        if block and wanted[branch]:
            done[branch] = _joined([block], partial=bool(bare[branch]) and branch not in own)
        up = int(branches.up[branch])
        if up >= 0 and inside[up]:
            if block:
                _add(below, up, block)
            bare[up] |= branch not in own and bool(bare[branch] or (branches.size[branch] > 0 and not block))
    return done


def _add(below: dict[int, list[str]], branch: int, block: str) -> None:
    blocks = below.setdefault(branch, [])
    blocks.append(block)
    if len(blocks) >= JOIN_AT:
        blocks[:] = [_joined(blocks)]


def _joined(blocks: list[str], *, partial: bool = False) -> str:
    """One block for blocks of different keys, whose counts add up."""
    if len(blocks) > 1 or partial:
        return merged_block(blocks, Frequency.__add__, partial=partial)[0]
    return without_sets(blocks[0])


def merged_lines(branches: Branches, keep: NDArray[np.bool_], lines: list[bytes]) -> Iterator[bytes]:
    """Kept rows and new lines in the order of bytes, in pieces."""
    data, offset = branches.data, branches.rows.offset
    text = np.frombuffer(b"".join(lines), np.uint8)
    lengths = np.array([len(line) for line in lines], np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    before = np.empty(len(lines), np.int64)
    kernels.place(data, offset, text, starts, before)
    out = np.empty(PIECE, np.uint8)
    row = new = 0
    needed = 1
    while needed:
        if needed > len(out):
            out = np.empty(needed, np.uint8)
        size, row, new, needed = kernels.write_lines(
            data, offset, keep.view(np.uint8), text, starts, ends, before, row, new, out
        )
        if size:
            yield out[:size].tobytes()
