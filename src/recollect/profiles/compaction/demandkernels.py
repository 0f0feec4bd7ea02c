"""Loops over the tree of a log: matching it with the branches of a map, and sums; see `demand`."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.profiles.compaction.branchkernels import JSON, LEAF
from recollect.profiles.compaction.treekernels import PATH
from recollect.profiles.linekernels import token_end
from recollect.profiles.words import kernel


@kernel
def match(
    text: Any,
    starts: Any,
    lengths: Any,
    kinds: Any,
    ups: Any,
    data: Any,
    offsets: Any,
    row_branch: Any,
    role: Any,
    up: Any,
    name_len: Any,
    kind: Any,
    first: Any,
    branch: Any,
    leaf: Any,
) -> Any:
    """For each node of the log (name in `text`) the branch of that name and kind, or the row of a plain leaf."""
    branch[0] = 0
    for i in range(1, starts.shape[0]):
        if branch[ups[i]] < 0:
            continue
        # What may follow a name, in the order of bytes: nothing, then a separator. Only `/` follows in paths.
        for separator in (0, 41, 44, 47, 58):
            if separator and (separator == 47) != (kinds[i] == PATH):
                continue
            row = _find(text, starts[i], lengths[i], separator, data, offsets, first[ups[i]])
            if row < 0:
                continue
            end = token_end(data, offsets[row], len(data))
            if role[row] & ~JSON == LEAF and end - offsets[row] - (data[end - 1] == 47) <= lengths[i]:
                leaf[i] = row
                break
            at = row_branch[row]
            while at > 0 and name_len[at] > lengths[i]:
                at = up[at]
            if name_len[at] == lengths[i] and kind[at] == kinds[i]:
                branch[i] = at
                first[i] = row
                break


@kernel
def _find(text: Any, start: Any, length: Any, separator: Any, data: Any, offsets: Any, low: Any) -> Any:
    """The first row from `low` on whose key is the name (separator 0) or begins with name and separator; else -1."""
    count = offsets.shape[0]
    step = 1
    high = low
    while high < count and _order(text, start, length, separator, data, offsets[high]) < 0:
        low = high + 1
        high += step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) // 2
        if _order(text, start, length, separator, data, offsets[middle]) < 0:
            low = middle + 1
        else:
            high = middle
    if low < count and _order(text, start, length, separator, data, offsets[low]) == 0:
        return low
    return -1


@kernel
def _order(text: Any, start: Any, length: Any, separator: Any, data: Any, offset: Any) -> Any:
    """A row's key against a name with a separator: below 0 if it comes before, 0 if it is or begins with it. A key
    ends at a space, which is below all of its bytes."""
    for i in range(length):
        if data[offset + i] != text[start + i]:
            return np.int64(data[offset + i]) - np.int64(text[start + i])
    return np.int64(data[offset + length]) - (separator if separator else 32)


@kernel
def sum_up(parent: Any, passing: Any) -> Any:
    """Add up from the leaves to the root."""
    for i in range(parent.shape[0] - 1, 0, -1):
        passing[parent[i]] += passing[i]


@kernel
def depths(parent: Any, lengths: Any, match: Any, depth: Any) -> Any:
    """How many bytes of each node's name the map has."""
    for i in range(1, parent.shape[0]):
        depth[i] = lengths[i] if match[i] >= 0 else depth[parent[i]]


@kernel
def inherit(parent: Any, value: Any, least: Any) -> Any:
    """Give nodes without a value that of their parent, if it is at least `least`."""
    for i in range(1, parent.shape[0]):
        if value[i] < 0 and value[parent[i]] >= least:
            value[i] = value[parent[i]]
