"""What people asked for, laid over the tree of a map.

Hides: how lookups become keys (with or without `www.`, whichever goes deeper into the map), and how the tree of the
log is matched with the tree of the map without building one tree of both: in the order of bytes all descendants of
a node `N` begin with `N/` (`N,`, `N:`, `N)` in hosts), so a binary search finds whether the map has a node.

A lookup ends in one of three ways: at a branch itself (`stop`), at a plain leaf (held), or outside of the map's
tree, in an absent subtree (an `absence`) whose parent is a branch. Lookups below a wildcard of the map say nothing
about what is absent and are left out. For cross-validation the requests are dealt out at random, one by one, so that a
part is to the others what the next lookups are to the log.

A URI with `www.` is looked up both ways, and what either way finds counts (`maps.lookup`). So its second spelling can
be covered by a wildcard over the host where the first is not; `also` remembers where such spellings leave the tree.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadURI
from recollect.formats.logs import LogEntry
from recollect.kernels import budget as kernels
from recollect.kernels.branches import HELD, match
from recollect.maps.lookup import keys_of
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.keytable import KeyTree, table_of, tree_of
from recollect.uris import is_surt, key_of_uri, uri_key

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]


_GOLDEN = 0x9E3779B97F4A7C15
_DEALT = 64  # requests of a key are dealt out one by one up to this many
_WWW = re.compile(r"(?:[a-z]+://)?www\.", re.IGNORECASE)


def _key(uri: str) -> bytes:
    """The normal key of a URI or SURT; raises BadURI."""
    plainly_uri = uri.startswith(("http://", "https://")) and "://(" not in uri
    return key_of_uri(uri) if plainly_uri or not is_surt(uri) else uri_key(uri.encode("utf-8", "surrogateescape"))


@dataclass(slots=True)
class Asked:
    """A log as keys: how often each was asked for, and the key of an index that keeps `www.`, where it differs, with
    how often it was asked for so."""

    policy: str = "HxPx"
    counts: dict[bytes, int] = field(default_factory=dict)
    kept_www: dict[bytes, bytes] = field(default_factory=dict)
    with_www: dict[bytes, int] = field(default_factory=dict)
    requests: int = 0
    unusable: int = 0

    def add(self, entry: LogEntry) -> None:
        """Count one line of a log; what is not a web URI is counted as unusable."""
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
            self.with_www[key] = self.with_www.get(key, 0) + entry.count


def asked_in(entries: Iterable[LogEntry], policy: str = "HxPx") -> Asked:
    """The keys of a log, by the policy of a map."""
    asked = Asked(policy)
    for entry in entries:
        asked.add(entry)
    return asked


@dataclass(frozen=True, slots=True)
class LookupCounts:
    """Lookups by where they end: per branch those that pass it and those that stop there, per leaf, per absence; by
    rows of the log; and those that were looked up in a second spelling (`Also`)."""

    passing: Ints
    stop: Ints
    leaf: Ints
    absence: Ints
    rows: Ints
    also: Ints


@dataclass(frozen=True, slots=True)
class Also:
    """Lookups with two spellings, both of which have a place: the row of the log of each, and how many there are."""

    row: Nodes
    second: Nodes
    counts: Ints


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
    counts: Ints  # of each row of the log
    place: Nodes  # the branch or, after the branches, the absence of each row; -1 if neither
    steps: Nodes  # how many levels below its absence each row is
    sums: NDArray[np.uint64]  # of each row's key, by which its requests are dealt out
    unusable: int  # lines of the log that were no URIs of the web
    also: Also

    def absent(self, absence: int) -> bytes:
        """The key that covers an absence."""
        return self.log.wildcard(int(self.absence_node[absence]))

    def tally(self) -> LookupCounts:
        """All lookups of the log."""
        return self._tally(self.counts, self.also.counts)

    def halves(self) -> tuple[LookupCounts, LookupCounts]:
        """The log in two parts, each with half of the requests of every key; a single one goes to either of them by the
        checksum of its key: the same on every machine, and as good as chance."""
        rows, also = (
            (counts + (sums >> np.uint64(7) & np.uint64(1)).astype(np.int64)) // 2
            for sums, counts in ((self.sums, self.counts), (self.sums[self.also.row], self.also.counts))
        )
        return self._tally(rows, also), self._tally(self.counts - rows, self.also.counts - also)

    def parts(self, count: int) -> Iterator[tuple[LookupCounts, LookupCounts]]:
        """The log in N parts by chance: for each part all lookups but its own, and its own."""
        part = dealt(self.sums, self.counts, count)
        also = dealt(self.sums[self.also.row], self.also.counts, count)
        for number in range(count):
            yield (
                self._tally(self.counts - part[number], self.also.counts - also[number]),
                self._tally(part[number], also[number]),
            )

    def _tally(self, rows: Ints, also: Ints) -> LookupCounts:
        stop = np.zeros(len(self.log), np.int64)
        np.add.at(stop, self.log.node_of, rows)
        passing = stop.copy()
        kernels.add_upwards(self.log.parent, passing)
        nodes = np.flatnonzero(self.branch >= 0)
        by_branch = np.zeros((2, len(self.branches)), np.int64)
        by_branch[0, self.branch[nodes]] = passing[nodes]
        by_branch[1, self.branch[nodes]] = stop[nodes]
        leaf, absence = passing[self.leaf_node], passing[self.absence_node]
        return LookupCounts(by_branch[0], by_branch[1], leaf, absence, rows, also)


def dealt(sums: NDArray[np.uint64], counts: Ints, parts: int) -> Ints:
    """Requests of each key dealt out to parts as by chance, but the same on every machine; of a key with very many
    requests each part gets an even share of most of them."""
    even = np.maximum(counts - _DEALT, 0) // parts
    result = np.repeat(even[None, :], parts, axis=0)
    left = counts - even * parts
    active = np.arange(len(counts))
    for number in range(int(left.max(initial=0))):
        active = active[left[active] > number]
        chance = _mixed(sums[active] + np.uint64((number + 1) * parts * _GOLDEN % (1 << 64)))
        result[(chance % np.uint64(parts)).astype(np.int64), active] += 1
    return result


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the number."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def demand_over(branches: Branches, asked: Asked) -> Demand:
    """Lay a log over a map. Leaves below which people asked for something become branches."""
    best = _best_spellings(branches, asked)
    counts: dict[bytes, int] = {}
    for key, count in asked.counts.items():
        moved = asked.with_www[key] if key in best else 0
        for one, some in ((best.get(key, key), moved), (key, count - moved)):
            if some:
                counts[one] = counts.get(one, 0) + some
    # Second spellings are nodes of the tree, too, without counts.
    second = {best.get(key, key): key if key in best else kept for key, kept in asked.kept_www.items()}
    keys = sorted({*counts, *second.values()})
    log = tree_of(table_of(_text(keys)))
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
    place = branch.copy()
    place[absence_node] = len(branches) + np.arange(len(absence_node), dtype=np.int32)
    kernels.inherit(log.parent, place, len(branches))
    with_www = {best.get(key, key): count for key, count in asked.with_www.items()}
    places = place[log.node_of]
    return Demand(
        branches,
        log,
        branch,
        branches.rows.branch[leaf[leaf_node]],
        leaf_node,
        branch[above[absence_node]],
        absence_node,
        np.array([counts.get(key, 0) for key in keys], np.int64),
        places,
        _steps_below(log, absent),
        np.array([zlib.crc32(key) for key in keys], np.uint64),
        asked.unusable,
        _also(keys, places, second, with_www),
    )


def _steps_below(log: KeyTree, absent: NDArray[np.bool_]) -> Nodes:
    """How many levels each row is below an absent node; 0 for those that are not."""
    steps = np.zeros(len(log), np.int32)
    kernels.count_below(log.parent, absent.view(np.uint8), steps)
    return steps[log.node_of]


def _also(keys: list[bytes], places: Nodes, second: dict[bytes, bytes], counts: dict[bytes, int]) -> Also:
    """The lookups with two spellings that both have a place in the tree: neither is a leaf, which is held, nor below
    a wildcard of the map."""
    rows = {key: row for row, key in enumerate(keys)}
    pairs = [(rows[first], rows[other]) for first, other in second.items()]
    pairs = [(first, other) for first, other in pairs if places[first] >= 0 and places[other] >= 0]
    row, also = np.array(pairs, np.int32).reshape(-1, 2).T
    asked = np.array([counts.get(keys[one], 0) for one in row.tolist()], np.int64)
    return Also(row, also, asked)


def _text(keys: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(key + b" 1\n" for key in keys), np.uint8)


def _best_spellings(branches: Branches, asked: Asked) -> dict[bytes, bytes]:
    """The keys that are held, or else go deeper into the map, with `www.`; for an index may have kept it."""
    if not asked.kept_www:
        return {}
    keys = sorted({*asked.kept_www, *asked.kept_www.values()})
    log = tree_of(table_of(_text(keys)))
    depth = np.zeros(len(log), np.int64)
    branch, leaf = match_nodes(log, branches)
    kernels.matched_depths(log.parent, log.name_length, np.maximum(branch, leaf), depth)
    held = (leaf >= 0) | ((branch >= 0) & ((branches.flags[branch] & HELD) != 0))
    found = zip(held[log.node_of].tolist(), depth[log.node_of].tolist(), strict=True)
    reach = dict(zip(keys, found, strict=True))

    def beyond(kept: bytes, key: bytes) -> bool:
        # A host is four bytes longer with `,www`; it counts as deeper only if the map goes on below it.
        return reach[kept] > (reach[key][0], reach[key][1] + 4)

    return {key: kept for key, kept in asked.kept_www.items() if beyond(kept, key)}


def match_nodes(log: KeyTree, branches: Branches) -> tuple[Nodes, Ints]:
    """For each node of the log's tree the branch of that name, and the row of a plain leaf of that name; else -1."""
    branch, leaf = np.full(len(log), -1, np.int32), np.full(len(log), -1, np.int64)
    rows = branches.rows
    match(
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
