"""What people asked for, laid over the tree of a map.

Hides: how lookups become keys (with or without `www.`, whichever goes deeper into the map), and how the tree of the
log is matched with the tree of the map without building one tree of both: in the order of bytes all descendants of
a node `N` begin with `N/` (`N,`, `N:`, `N)` in hosts), so a binary search tells whether the map has a node.

A lookup ends in one of four ways: at a branch itself (`stop`), at a plain leaf (held), or outside of the map's
tree, in an absent subtree (an `absence`) whose parent is a branch. Lookups below a wildcard of the map tell nothing
about what is absent and are left out. Counts are split in two halves, A and B, request by request, for
cross-validation.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recollect.errors import BadURI
from recollect.formats.logs import LogEntry
from recollect.profiles.branches import Branches, branches_of
from recollect.profiles.keytable import KeyTree, table_of, tree_of
from recollect.profiles.treekernels import PATH
from recollect.uris import is_surt, key_of_uri, uri_key

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]


_WWW = re.compile(r"(?:[a-z]+://)?www\.", re.IGNORECASE)


def _key(uri: str) -> bytes:
    """The normal key of a URI or SURT; raises BadURI."""
    plainly_uri = uri.startswith(("http://", "https://")) and "://(" not in uri
    return key_of_uri(uri) if plainly_uri or not is_surt(uri) else uri_key(uri.encode("utf-8", "surrogateescape"))


@dataclass(slots=True)
class Asked:
    """A log as keys: how often each was asked for, and the key of an index that keeps `www.`, where it differs."""

    counts: dict[bytes, int] = field(default_factory=dict)
    kept_www: dict[bytes, bytes] = field(default_factory=dict)
    requests: int = 0
    unusable: int = 0

    def add(self, entry: LogEntry) -> None:
        """Count one line of a log; what is no URI of the web is counted as unusable."""
        try:
            key = _key(entry.uri)
        except BadURI:
            self.unusable += 1
            return
        self.requests += entry.count
        self.counts[key] = self.counts.get(key, 0) + entry.count
        if _WWW.match(entry.uri):
            host, _, path = key.partition(b")")
            self.kept_www[key] = host + b",www)" + path


def asked_in(entries: Iterable[LogEntry]) -> Asked:
    """The keys of a log."""
    asked = Asked()
    for entry in entries:
        asked.add(entry)
    return asked


@dataclass(frozen=True, slots=True)
class Tally:
    """Lookups by where they end: per branch those that pass it and those that stop there, per leaf, per absence."""

    passing: Ints
    stop: Ints
    leaf: Ints
    absence: Ints


@dataclass(frozen=True, slots=True)
class Demand:
    """A log over the branches of a map. Leaves and absences are listed with their branch (`leaf_at`, `absence_at`)."""

    branches: Branches
    log: KeyTree
    match: Nodes
    leaf_at: Nodes
    leaf_node: Nodes
    absence_at: Nodes
    absence_node: Nodes
    counts: Ints  # two halves for each row of the log
    requests: int
    unusable: int  # lines of the log that were no URIs of the web

    def tally(self, halves: tuple[int, ...] = (0, 1)) -> Tally:
        """The lookups of these halves of the log."""
        passing = np.zeros(len(self.log), np.int64)
        np.add.at(passing, self.log.node_of, self.counts[list(halves)].sum(axis=0))
        stop = passing.copy()
        _sum_up(self.log.parent, passing)
        branch = np.where(self.match >= 0, self.branches.branch_of[np.maximum(self.match, 0)], -1)
        nodes = np.flatnonzero(branch >= 0)
        by_branch = np.zeros((2, len(self.branches)), np.int64)
        by_branch[0, branch[nodes]] = passing[nodes]
        by_branch[1, branch[nodes]] = stop[nodes]
        return Tally(by_branch[0], by_branch[1], passing[self.leaf_node], passing[self.absence_node])


def demand_over(tree: KeyTree, asked: Asked) -> Demand:
    """Lay a log over a map's tree; the branches are those of the map and whatever people asked for things below."""
    log, counts = _log_tree(tree, asked)
    match = match_nodes(log, tree)
    inner = np.unique(log.parent[1:])
    branches = branches_of(tree, match[inner][match[inner] >= 0])
    found = match >= 0
    branch = np.where(found, branches.branch_of[np.maximum(match, 0)], -1)
    above = np.maximum(log.parent, 0)
    leaf = np.flatnonzero(found & (branch < 0)).astype(np.int32)
    leaf_at = branches.branch_of[tree.parent[match[leaf]]]
    absence = np.flatnonzero(~found & found[above]).astype(np.int32)
    absence_at = branch[above[absence]].astype(np.int32)
    known = ~branches.is_open[absence_at]
    return Demand(
        branches, log, match, leaf_at, leaf, absence_at[known], absence[known], counts, asked.requests, asked.unusable
    )


def _log_tree(tree: KeyTree, asked: Asked) -> tuple[KeyTree, Ints]:
    """The tree of the keys that count, and both halves of their counts."""
    best = _best_spellings(tree, asked)
    counts: dict[bytes, int] = {}
    for first, count in asked.counts.items():
        key = best.get(first, first)
        counts[key] = counts.get(key, 0) + count
    keys = sorted(counts)
    log = tree_of(table_of(_text(keys)))
    both = np.array([counts[key] for key in keys], np.int64)
    # An odd request goes to one half by a sum over its key: the same on every machine, and like the toss of a coin.
    odd = np.array([zlib.crc32(key) >> 7 & 1 for key in keys], np.int64)
    return log, np.stack(((both + odd) // 2, both - (both + odd) // 2))


def _text(keys: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(key + b" 1\n" for key in keys), np.uint8)


def _best_spellings(tree: KeyTree, asked: Asked) -> dict[bytes, bytes]:
    """The keys that go deeper into the map with `www.`, for an index may have kept it."""
    if not asked.kept_www:
        return {}
    keys = sorted({*asked.kept_www, *asked.kept_www.values()})
    log = tree_of(table_of(_text(keys)))
    depth = np.zeros(len(log), np.int64)
    _depths(log.parent, log.name_length, match_nodes(log, tree), depth)
    reach = dict(zip(keys, depth[log.node_of].tolist(), strict=True))
    # A host is four bytes longer with `,www`; it counts as deeper only if the map goes on below it.
    return {key: kept for key, kept in asked.kept_www.items() if reach[kept] > reach[key] + 4}


def match_nodes(log: KeyTree, tree: KeyTree) -> Nodes:
    """For each node of the log's tree the node of the map's tree with the same name, or -1."""
    match = np.full(len(log), -1, np.int32)
    first = np.zeros(len(log), np.int64)
    offsets = log.table.offsets[np.maximum(log.row, 0)] if len(log.table) else np.zeros(len(log), np.int64)
    _match(
        log.table.data,
        offsets,
        log.name_length,
        log.kind,
        log.parent,
        tree.table.data,
        tree.table.offsets,
        tree.table.key_lengths,
        tree.node_of,
        tree.parent,
        tree.name_length,
        tree.kind,
        first,
        match,
    )
    return match


@njit(cache=True, nogil=True)
def _match(text, starts, lengths, kinds, ups, data, offsets, key_lens, node_of, parent, name_len, kind, first, match):  # type: ignore[no-untyped-def]
    match[0] = 0
    for i in range(1, starts.shape[0]):
        if match[ups[i]] < 0:
            continue
        # What may follow a name, in the order of bytes: nothing, then a separator.
        low = first[ups[i]]
        for separator in (0, 41, 44, 47, 58):
            if separator and (separator == 47) != (kinds[i] == PATH):
                continue
            row = _find(text, starts[i], lengths[i], separator, data, offsets, key_lens, low)
            if row < 0:
                continue
            node = node_of[row]
            while node > 0 and name_len[node] > lengths[i]:
                node = parent[node]
            if name_len[node] == lengths[i] and kind[node] == kinds[i]:
                match[i] = node
                first[i] = row
                break


@njit(cache=True, nogil=True)
def _find(text, start, length, separator, data, offsets, key_lens, low):  # type: ignore[no-untyped-def]
    """The first row from `low` on whose key is the name (separator 0), or begins with name and separator; -1 if
    none."""
    count = offsets.shape[0]
    step = 1
    high = low
    while high < count and _before(text, start, length, separator, data, offsets[high], key_lens[high]):
        low = high + 1
        high += step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) // 2
        if _before(text, start, length, separator, data, offsets[middle], key_lens[middle]):
            low = middle + 1
        else:
            high = middle
    if low == count or key_lens[low] < length or (separator == 0 and key_lens[low] != length):
        return -1
    for i in range(length):
        if data[offsets[low] + i] != text[start + i]:
            return -1
    if separator and (key_lens[low] == length or data[offsets[low] + length] != separator):
        return -1
    return low


@njit(cache=True, nogil=True)
def _before(text, start, length, separator, data, offset, key_len):  # type: ignore[no-untyped-def]
    """Whether a row's key comes before a name with a separator."""
    for i in range(min(length, key_len)):
        if data[offset + i] != text[start + i]:
            return data[offset + i] < text[start + i]
    if key_len <= length:
        return key_len < length or separator != 0
    return separator != 0 and data[offset + length] < separator


@njit(cache=True, nogil=True)
def _sum_up(parent, passing):  # type: ignore[no-untyped-def]
    for i in range(parent.shape[0] - 1, 0, -1):
        passing[parent[i]] += passing[i]


@njit(cache=True, nogil=True)
def _depths(parent, lengths, match, depth):  # type: ignore[no-untyped-def]
    for i in range(1, parent.shape[0]):
        depth[i] = lengths[i] if match[i] >= 0 else depth[parent[i]]
