"""What people asked for, laid over the tree of a map.

Hides: how lookups become keys (with or without `www.`, whichever goes deeper into the map), and how the tree of the
log is matched with the tree of the map without building one tree of both: in the order of bytes all descendants of
a node `N` begin with `N/` (`N,`, `N:`, `N)` in hosts), so a binary search tells whether the map has a node.

A lookup ends in one of three ways: at a branch itself (`stop`), at a plain leaf (held), or outside of the map's
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
from numpy.typing import NDArray

from recollect.errors import BadURI
from recollect.formats.logs import LogEntry
from recollect.profiles.compaction import demandkernels as kernels
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.keytable import KeyTree, table_of, tree_of
from recollect.profiles.maps.lookup import keys_of
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

    policy: str = "HxPx"
    counts: dict[bytes, int] = field(default_factory=dict)
    kept_www: dict[bytes, bytes] = field(default_factory=dict)
    requests: int = 0
    unusable: int = 0

    def add(self, entry: LogEntry) -> None:
        """Count one line of a log; what is no URI of the web is counted as unusable."""
        try:
            key = _key(entry.uri) if self.policy == "HxPx" else keys_of(entry.uri, self.policy)[0]
        except BadURI:
            self.unusable += 1
            return
        self.requests += entry.count
        self.counts[key] = self.counts.get(key, 0) + entry.count
        if self.policy == "HxPx" and _WWW.match(entry.uri):
            host, _, path = key.partition(b")")
            self.kept_www[key] = host + b",www)" + path


def asked_in(entries: Iterable[LogEntry], policy: str = "HxPx") -> Asked:
    """The keys of a log, by the policy of a map."""
    asked = Asked(policy)
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
    """A log over the branches of a map. Leaves and absences are listed with their branch (`leaf_at`, `absence_at`) and
    the node of the log's tree that stands for them."""

    branches: Branches
    log: KeyTree
    branch: Nodes  # of each node of the log's tree; -1 for leaves and what is absent
    leaf_at: Nodes
    leaf_node: Nodes
    absence_at: Nodes
    absence_node: Nodes
    counts: Ints  # two halves for each row of the log
    unusable: int  # lines of the log that were no URIs of the web

    def absent(self, absence: int) -> bytes:
        """The key that covers an absence."""
        return self.log.wildcard(int(self.absence_node[absence]))

    def tally(self, halves: tuple[int, ...] = (0, 1)) -> Tally:
        """The lookups of these halves of the log."""
        stop = np.zeros(len(self.log), np.int64)
        np.add.at(stop, self.log.node_of, self.counts[list(halves)].sum(axis=0))
        passing = stop.copy()
        kernels.sum_up(self.log.parent, passing)
        nodes = np.flatnonzero(self.branch >= 0)
        by_branch = np.zeros((2, len(self.branches)), np.int64)
        by_branch[0, self.branch[nodes]] = passing[nodes]
        by_branch[1, self.branch[nodes]] = stop[nodes]
        return Tally(by_branch[0], by_branch[1], passing[self.leaf_node], passing[self.absence_node])


def demand_over(branches: Branches, asked: Asked) -> Demand:
    """Lay a log over a map. Leaves below which people asked for something become branches."""
    log, counts = _log_tree(branches, asked)
    branch, leaf = match_nodes(log, branches)
    inner = np.unique(log.parent[1:])
    inner = inner[leaf[inner] >= 0]
    branch[inner] = len(branches) + np.arange(len(inner))
    branches = branches.grown(leaf[inner])
    leaf[inner] = -1
    above = np.maximum(log.parent, 0)
    leaf_node = np.flatnonzero(leaf >= 0).astype(np.int32)
    absent = (branch < 0) & (leaf < 0) & (branch[above] >= 0)
    absent[absent] = ~branches.is_open[branch[above[absent]]]
    absence_node = np.flatnonzero(absent).astype(np.int32)
    return Demand(
        branches,
        log,
        branch,
        branches.rows.branch[leaf[leaf_node]],
        leaf_node,
        branch[above[absence_node]],
        absence_node,
        counts,
        asked.unusable,
    )


def _log_tree(branches: Branches, asked: Asked) -> tuple[KeyTree, Ints]:
    """The tree of the keys that count, and both halves of their counts."""
    best = _best_spellings(branches, asked)
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


def _best_spellings(branches: Branches, asked: Asked) -> dict[bytes, bytes]:
    """The keys that go deeper into the map with `www.`, for an index may have kept it."""
    if not asked.kept_www:
        return {}
    keys = sorted({*asked.kept_www, *asked.kept_www.values()})
    log = tree_of(table_of(_text(keys)))
    depth = np.zeros(len(log), np.int64)
    branch, leaf = match_nodes(log, branches)
    kernels.depths(log.parent, log.name_length, np.maximum(branch, leaf), depth)
    reach = dict(zip(keys, depth[log.node_of].tolist(), strict=True))
    # A host is four bytes longer with `,www`; it counts as deeper only if the map goes on below it.
    return {key: kept for key, kept in asked.kept_www.items() if reach[kept] > reach[key] + 4}


def match_nodes(log: KeyTree, branches: Branches) -> tuple[Nodes, Ints]:
    """For each node of the log's tree the branch of that name, and the row of a plain leaf of that name; else -1."""
    branch, leaf = np.full(len(log), -1, np.int32), np.full(len(log), -1, np.int64)
    rows = branches.rows
    kernels.match(
        log.table.data,
        log.table.offsets[np.maximum(log.row, 0)] if len(log.table) else np.zeros(len(log), np.int64),
        log.name_length,
        log.kind,
        log.parent,
        branches.data,
        rows.offset,
        rows.branch,
        rows.role,
        branches.up,
        branches.name_length,
        branches.kind,
        np.zeros(len(log), np.int64),
        branch,
        leaf,
    )
    return branch, leaf
