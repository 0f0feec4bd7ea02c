"""Statistics of a range of SURTs, and the join of ranges: what lies on borders is counted once.

Borders (see `spark.maps.border_at`) lie between domains, so no host, key or node crosses one but a top-level domain,
and none lies among IP addresses. A top-level domain that may go on beyond a border of its range is walked separately;
its parts in all ranges are put together at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import statistics as kernels
from recollect.profiles.statistics.policycosts import DomainPolicies, Parts, keys_of_domain
from recollect.profiles.statistics.statscan import SortedSurts, SurtCounts
from recollect.profiles.statistics.treestats import TreeCounts, TreeStats

Ints = NDArray[np.int64]


def crossing(border: bytes) -> set[bytes]:
    """The top-level domains that may have keys on both sides of a border: what follows the name there is no greater
    than the last byte that may follow it in a key."""
    ends = (at for at in range(1, len(border)) if border[at] <= ord(":") and b"," not in border[:at])
    return {border[:end] for end in ends}


@dataclass(slots=True)
class TopCounts:
    """A top-level domain as far as it lies in a range: the tree below it, at which Pn it has keys of its own (as bits),
    and the parts of its own SURTs."""

    tree: TreeCounts = field(default_factory=TreeCounts)
    paths: int = 0
    parts: set[Parts] = field(default_factory=set)

    def add(self, other: TopCounts) -> None:
        """Add the same top-level domain in another range."""
        self.tree.add(other.tree)
        self.paths |= other.paths
        self.parts |= other.parts

    def as_one(self) -> TreeCounts:
        """The tree with one node where each range had one."""
        tree = self.tree
        level = tree.level(kernels.OF_HOSTS, 1)
        level.histogram = Counter({tree.keys: 1})
        level.with_children = int(level.children > 0)
        tree.cut[1] = min(int(tree.cut[1]), 1)
        tree.overlap[1] = [tree.cut[1] * (self.paths >> n & 1) for n in range(kernels.POLICY_PATHS)]
        return tree


@dataclass(slots=True)
class RangeCounts:
    """What a range holds: whole nodes together, top-level domains on its borders one by one."""

    whole: SurtCounts
    tops: dict[bytes, TopCounts]


class RangeSurts(SortedSurts):
    """Goes through the sorted SURTs of a range between two borders."""

    def __init__(self, top: int, borders: Iterable[bytes]) -> None:
        super().__init__(top)
        names = {name for border in borders for name in crossing(border)}
        self._trees = {name: TreeStats() for name in names} | {b"": self._tree}
        self._tlds = dict.fromkeys(self._trees, "")
        self._current = b""
        self._domains = DomainPolicies(names)
        self._tops: dict[bytes, TopCounts] = {}

    def add_keys(self, text: NDArray[np.uint8], at: Ints, length: Ints, captures: Ints) -> None:
        def key(number: int) -> bytes:
            return text[at[number] : at[number] + length[number]].tobytes()

        for name, first, end in self._pieces(key, len(at)):
            self._turn_to(name)
            super().add_keys(text, at[first:end], length[first:end], captures[first:end])

    def _pieces(self, key: Callable[[int], bytes], count: int) -> Iterator[tuple[bytes, int, int]]:
        """Sorted keys cut up by whose tree they belong to; the empty name has what crosses no border."""
        found = []
        for name in self._trees:
            # Only these may follow a name, and its ports come after its domains.
            for low, high in ((b"", b"\0"), (b")", b"*"), (b",", b"-"), (b":", b";")) if name else ():
                first = bisect_left(range(count), name + low, key=key)
                found.append((first, bisect_left(range(count), name + high, key=key), name))
        done = 0
        for first, end, name in sorted(found):
            if end > first:
                if first > done:
                    yield b"", done, first
                yield name, first, end
                done = end
        if count > done:
            yield b"", done, count

    def _turn_to(self, name: bytes) -> None:
        self._tlds[self._current] = self._tld
        self._current, self._tree, self._tld = name, self._trees[name], self._tlds[name]

    def finish(self) -> None:
        self._turn_to(b"")
        super().finish()
        for name, tree in self._trees.items():
            if name and tree.counts.keys:
                paths = tree.outermost_paths
                tree.finish()
                self._tops[name] = TopCounts(tree.counts, paths, self._domains.parts.get(name, set()))

    @property
    def counted(self) -> RangeCounts:
        """What was counted, when all has come."""
        return RangeCounts(self.counts, self._tops)


def joined(top: int, ranges: Iterable[RangeCounts]) -> SurtCounts:
    """All ranges, in order, as one."""
    whole = SurtCounts.empty(top)
    tops: dict[bytes, TopCounts] = {}
    for one in ranges:
        whole.add(one.whole)
        for name, counted in one.tops.items():
            tops.setdefault(name, TopCounts()).add(counted)
    for counted in tops.values():
        whole.tree.add(counted.as_one())
        if counted.parts:
            whole.domains.update(keys_of_domain(counted.parts))
    return whole
