"""The shape of the tree of keys: depths (Table 7), levels with reduction and mean children (Table 8), keys per policy.

Hides the walk over sorted keys (`kernels.statistics`) and the sums over closed nodes. Keys come in pieces, in the order
of bytes, each once; then `finish`. What was counted (`TreeCounts`) adds up over trees that have no node in common.

RedQ of a level is how many keys would go if all deeper keys were cut there: (keys at or below the level - nodes of the
level) / all keys. The parents of a level are the nodes above it that have a child in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import statistics as kernels
from recollect.uris import POLICIES, parse_policy

_DEPTHS = 4096
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DepthRow:
    """One row of Table 7: domains and keys with exactly this depth of host, keys with exactly this depth of path."""

    depth: int
    domains: int
    host_keys: int
    path_keys: int


@dataclass(frozen=True, slots=True)
class LevelRow:
    """One row of Table 8."""

    level: str
    count: int
    keys: int
    maximum: int
    mean: float
    median: float
    standard_deviation: float
    reduction: float
    parents: int
    children: int
    mean_children: float


@dataclass(slots=True)
class _Level:
    """Closed nodes of one level: number of nodes by number of keys, nodes with a child, and children."""

    histogram: Counter[int] = field(default_factory=Counter)
    with_children: int = 0
    children: int = 0


def _by_depth() -> Ints:
    return np.zeros(_DEPTHS, np.int64)


def _by_host() -> Ints:
    return np.zeros(kernels.POLICY_HOSTS + 1, np.int64)


def _by_policy() -> Ints:
    return np.zeros((kernels.POLICY_HOSTS + 1, kernels.POLICY_PATHS), np.int64)


@dataclass(slots=True)
class TreeCounts:
    """What a walk counted, and the tables it gives. `host_depths`, `path_depths` and `domains` are by depth;
    `policies`, `cut` and `overlap` by depth of hosts (and paths): keys of whole hosts, hosts that are cut, both."""

    keys: int = 0
    addresses: int = 0  # different hosts that are IP addresses
    host_depths: Ints = field(default_factory=_by_depth)
    path_depths: Ints = field(default_factory=_by_depth)
    domains: Ints = field(default_factory=_by_depth)
    policies: Ints = field(default_factory=_by_policy)
    overlap: Ints = field(default_factory=_by_policy)
    cut: Ints = field(default_factory=_by_host)
    by_level: dict[tuple[int, int], _Level] = field(default_factory=dict)

    def level(self, kind: int, number: int) -> _Level:
        """The level of this number of hosts or of paths."""
        return self.by_level.setdefault((kind, number), _Level())

    def add(self, other: TreeCounts) -> None:
        """Add what was counted over other nodes."""
        self.keys += other.keys
        self.addresses += other.addresses
        for name in ("host_depths", "path_depths", "domains", "policies", "overlap", "cut"):
            mine: Ints = getattr(self, name)
            mine += getattr(other, name)
        for place, level in other.by_level.items():
            mine_too = self.level(*place)
            mine_too.histogram.update(level.histogram)
            mine_too.with_children += level.with_children
            mine_too.children += level.children

    @property
    def hosts(self) -> int:
        """Different hosts."""
        level = self.by_level.get((kernels.OF_PATHS, 0))
        return sum(level.histogram.values()) if level else 0

    def depths(self) -> list[DepthRow]:
        """Table 7, up to the deepest there is."""
        tables = (self.domains, self.host_depths, self.path_depths)
        deepest = max((int(np.flatnonzero(table)[-1]) for table in tables if table.any()), default=-1)
        return [DepthRow(depth, *(int(table[depth]) for table in tables)) for depth in range(deepest + 1)]

    def levels(self, kind: int) -> list[LevelRow]:
        """Table 8 for hosts (H1, H2, ...) or paths (P0, P1, ...)."""
        numbers = sorted(level for of, level in self.by_level if of == kind)
        return [self._row(kind, number) for number in numbers]

    def _row(self, kind: int, number: int) -> LevelRow:
        level = self.by_level[kind, number]
        items = sorted(level.histogram.items())
        count = sum(nodes for _, nodes in items)
        keys = sum(size * nodes for size, nodes in items)
        mean = keys / count
        deviation = (sum(nodes * (size - mean) ** 2 for size, nodes in items) / count) ** 0.5
        above = self.by_level.get((kind, number - 1))
        if above is None:  # the root of all hosts, or of each host's paths
            parents, children = (1, count) if kind == kernels.OF_HOSTS else (count, count)
        else:
            parents, children = above.with_children, above.children
        return LevelRow(
            f"{'H' if kind == kernels.OF_HOSTS else 'P'}{number}",
            count,
            keys,
            items[-1][0],
            mean,
            _median(items, count),
            deviation,
            reduction(keys, count, self.keys),
            parents,
            children,
            children / parents if parents else 0.0,
        )

    def policy_keys(self) -> dict[str, int]:
        """Number of keys under each HmPn policy of the 23."""
        found = {}
        for name in POLICIES:
            policy = parse_policy(name)
            if policy.parts is not None or name == "URIR":
                continue
            found[name] = self.keys if policy.paths is None else self._keys_of(policy.hosts, policy.paths)
        return found

    def _keys_of(self, hosts: int | None, paths: int) -> int:
        """Keys of whole hosts, plus hosts that are cut, less those that are both."""
        if hosts is None:
            return int(self.policies[:, paths].sum())
        whole = int(self.policies[: hosts + 1, paths].sum())
        return whole + int(self.cut[hosts]) - int(self.overlap[hosts, paths])


class TreeStats:
    """Takes sorted keys, counts."""

    def __init__(self) -> None:
        self.counts = counts = TreeCounts()
        self._walk = kernels.TreeWalk(
            counts.host_depths, counts.path_depths, counts.domains, counts.policies, counts.overlap, counts.cut
        )

    def add(self, text: NDArray[np.uint8], at: Ints, length: Ints) -> Ints:
        """Take the next keys: slices of a text. Returns for each the length of its TLD where it changes, else 0."""
        self.counts.keys += len(at)
        tlds = np.zeros(len(at), np.int64)
        done = 0
        while done < len(at):
            done = self._walk.add(text, at, length, done, tlds)
            self._drain()
        return tlds

    @property
    def outermost_paths(self) -> int:
        """Bit n: the outermost node that is still open has a key of its own, not only of its children, at Pn."""
        return self._walk.outermost_paths

    def finish(self) -> None:
        """All keys have come."""
        self._walk.close_all()
        self._drain()
        self.counts.addresses = self._walk.addresses

    def _drain(self) -> None:
        closed = np.frombuffer(self._walk.take_closed(), np.int64).reshape(-1, 4)
        if not closed.size:
            return
        codes = closed[:, 0] * _DEPTHS * 64 + closed[:, 1]
        # With counts, because np.unique alone imports numpy.ma (10 ms).
        for code in np.unique(codes, return_counts=True)[0].tolist():
            rows = closed[codes == code]
            level = self.counts.level(code // (_DEPTHS * 64), code % (_DEPTHS * 64))
            values, counts = np.unique(rows[:, 2], return_counts=True)
            level.histogram.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            level.with_children += int((rows[:, 3] > 0).sum())
            level.children += int(rows[:, 3].sum())


def reduction(keys: int, nodes: int, all_keys: int) -> float:
    """RedQ: the share of all keys that would go if the keys at or below a level were cut to the level's nodes."""
    return (keys - nodes) / all_keys


def _median(items: list[tuple[int, int]], count: int) -> float:
    seen = 0
    low = None
    for size, nodes in items:
        seen += nodes
        if low is None and seen > (count - 1) // 2:
            low = size
        if seen > count // 2:
            return (low if low is not None else size) / 2 + size / 2
    return 0.0
