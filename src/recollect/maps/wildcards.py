"""The wildcards of several maps, each with what it covers, while keys go by in the order of bytes.

Hides: that subtrees do not lie together in the order of bytes. A wildcard's *node* is its key without what makes it
one (`com,x)/a/*` → `com,x)/a`, `com,x)/*` → `com,x)`, `com,x,*` → `com,x`, `*` → nothing), and is a beginning of
every key it covers. So wildcards sorted by node come before all that they cover, and those that can still cover
something are prefixes of the current key: a stack no deeper than a key is long.

A map is known by its number. In a bit mask bit i stands for map i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from recollect.formats.frequency import Frequency, parse_token
from recollect.uris import covers

Layer = bytes  # the key columns after the first, joined: each combination is a map of its own
PerMap = dict[int, Frequency]


class Total:
    """A disjoint sum that grows; exact counts, which are nearly all, are added as plain numbers."""

    __slots__ = ("_m", "_r", "_rest")

    def __init__(self) -> None:
        self._m = self._r = 0
        self._rest: Frequency | None = None

    def add(self, frequency: Frequency) -> None:
        m, r = frequency.uri_m, frequency.uri_r
        if m.value is None or r.value is None or m.bound or r.bound:
            self._rest = frequency if self._rest is None else self._rest + frequency
        else:
            self._m += m.value
            self._r += r.value

    def sum(self) -> Frequency:
        if self._rest is None:
            return Frequency.exact(self._m, self._r)
        return self._rest + Frequency.exact(self._m, self._r) if self._m else self._rest


@dataclass(slots=True)
class Subtree:
    """A wildcard of at least one map. `entries` is what maps say of it, `below` what they list below it (outermost)."""

    node: bytes
    ordinal: int
    entries: dict[Layer, PerMap] = field(default_factory=dict)
    below: dict[Layer, dict[int, Total]] = field(default_factory=dict)
    results: dict[Layer, Frequency | None] = field(default_factory=dict)
    parent: Subtree | None = None
    outer: int = 0  # maps whose wider wildcards hold something here
    cover: int = 0  # maps whose most specific wildcard, this or a wider one, holds something here

    def placed(self, parent: Subtree | None) -> None:
        """Stand below `parent`, which is the next wildcard that covers this one."""
        self.parent = parent
        self.outer = self.cover = parent.cover if parent else 0
        for index in {index for entries in self.entries.values() for index in entries}:
            held = any(not entries[index].is_void for entries in self.entries.values() if index in entries)
            self.cover = self.cover | 1 << index if held else self.cover & ~(1 << index)

    def add_below(self, layer: Layer, index: int, frequency: Frequency) -> None:
        """Count what a map lists below; it matters only if the map's own entry here does not count it already."""
        if not frequency.is_void:
            below = self.below.setdefault(layer, {})
            if index not in below:
                below[index] = Total()
            below[index].add(frequency)

    def hand_up(self) -> None:
        """When all below has been seen: count this wildcard, or what is below it, for the one above."""
        if self.parent is None:
            return
        for layer in {*self.entries, *self.below}:
            listed = {index: total.sum() for index, total in self.below.get(layer, {}).items()}
            held = {index: f for index, f in self.entries.get(layer, {}).items() if not f.is_void}
            for index, frequency in {**listed, **held}.items():
                self.parent.add_below(layer, index, frequency)


def is_wildcard(key: bytes) -> bool:
    return key.endswith((b"/*", b",*")) or key == b"*"


def node_of(wildcard: bytes) -> bytes:
    """The beginning that all keys below a wildcard share."""
    return wildcard[:-2]


def wildcard_line(wildcard: bytes, index: int, frequency: Frequency, layer: Layer) -> bytes:
    """An entry as a line that sorts by node."""
    return b"%b\t%d\t%b\t%b" % (node_of(wildcard), index, str(frequency).encode(), layer)


def subtrees(lines: Iterable[bytes]) -> Iterator[Subtree]:
    """The subtrees of sorted wildcard lines, in the order of their nodes."""
    rows = (line.split(b"\t", 3) for line in lines)
    for ordinal, (node, entries) in enumerate(groupby(rows, key=lambda row: row[0])):
        subtree = Subtree(node, ordinal)
        for _, index, token, layer in entries:
            known = subtree.entries.setdefault(layer, {})
            number, frequency = int(index), parse_token(token)
            known[number] = known[number] + frequency if number in known else frequency
        yield subtree


class SubtreeStack:
    """The subtrees around the current key; keys must come in the order of bytes."""

    def __init__(self, sorted_subtrees: Iterator[Subtree], on_close: Callable[[Subtree], None] | None = None) -> None:
        self._coming = sorted_subtrees
        self._next = next(self._coming, None)
        self._stack: list[Subtree] = []
        self._on_close = on_close

    def around(self, key: bytes) -> Subtree | None:
        """The most specific subtree that covers an exact key."""
        self._advance(key)
        return self._covering(key)

    def of(self, wildcard: bytes) -> Subtree:
        """The subtree of a wildcard."""
        self._advance(wildcard)
        node = node_of(wildcard)
        return next(subtree for subtree in reversed(self._stack) if subtree.node == node)

    def close(self) -> None:
        """No more keys: all subtrees are done with."""
        while self._next is not None:
            self._push()
        self._pop_until(None)

    def _advance(self, key: bytes) -> None:
        while self._next is not None and self._next.node <= key:
            self._push()
        if self._stack and not key.startswith(self._stack[-1].node):
            self._pop_until(key)

    def _push(self) -> None:
        subtree = self._next
        assert subtree is not None
        self._pop_until(subtree.node)
        subtree.placed(self._covering(subtree.node))
        self._stack.append(subtree)
        self._next = next(self._coming, None)

    def _pop_until(self, key: bytes | None) -> None:
        while self._stack and (key is None or not key.startswith(self._stack[-1].node)):
            done = self._stack.pop()
            if self._on_close is not None:
                self._on_close(done)

    def _covering(self, key: bytes) -> Subtree | None:
        for subtree in reversed(self._stack):
            if _covers(subtree.node, key):
                return subtree
        return None


def _covers(node: bytes, key: bytes) -> bool:
    """Whether a node that is a beginning of the key covers it; the key may be the node of a wildcard."""
    closed = node.find(b")")
    if not node or closed == len(node) - 1:
        return True
    if key[:1].isdigit() and closed < 0:
        # An address is one segment, however it is written.
        exact = key if b")" in key else key + b")/"
        return covers(node + b",*", exact)
    following = key[len(node) : len(node) + 1]
    return following in (b"", b"/") if closed >= 0 else following in (b")", b",", b":")
