"""What statistics count on the way: batches by media type and status, then sorted SURTs, keys and nodes, each once.

Hides the pieces: a SURT or a key that lies across the border of two pieces is counted once. What was counted
(`CaptureCounts`, `SurtCounts`) is small, and adds up over parts of the input and over ranges of SURTs.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from random import Random

import numpy as np
from numpy.typing import NDArray

from recollect.formats.detect import Source
from recollect.kernels import statistics as kernels
from recollect.kernels.records import HEADER
from recollect.model import Progress, ProgressCallback
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.decompose import items_by
from recollect.profiles.indexes.profile import InputCounts
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.scan import ScanOptions, scan
from recollect.profiles.indexes.select import Filter
from recollect.profiles.indexes.sinks import Result, kept_of
from recollect.profiles.indexes.sorting import Records, SortingSink
from recollect.profiles.statistics.policycosts import DomainPolicies
from recollect.profiles.statistics.treestats import TreeCounts, TreeStats

_LENGTHS = struct.Struct("<ii")


@dataclass(slots=True)
class CaptureCounts:
    """Captures by media type and status, by year and class of status, by year and media type."""

    grid: Counter[tuple[str, int]] = field(default_factory=Counter)
    shares: Counter[tuple[int, int]] = field(default_factory=Counter)
    media_years: Counter[tuple[int, str]] = field(default_factory=Counter)

    def add(self, other: CaptureCounts) -> None:
        """Add those of other captures."""
        self.grid.update(other.grid)
        self.shares.update(other.shares)
        self.media_years.update(other.media_years)


@dataclass(slots=True)
class _Counted(Records):
    counts: CaptureCounts = field(default_factory=CaptureCounts)


class CountingSink(SortingSink):
    """Sorts SURTs by month, and counts media types, statuses and years on the way."""

    def __init__(self, chosen: Filter, store: RunStore, temp_dir: str | None) -> None:
        super().__init__(chosen, store, temp_dir, items=items_by(("month",)))
        self.counts = CaptureCounts()

    def work(self, batch: Batch) -> Result:
        keep, dropped = self._filter.apply(batch)
        result = _Counted(dropped, *kept_of(batch, keep))
        self._sort(batch, keep, result)
        lines = np.flatnonzero(keep)
        weights = np.ones(len(lines), np.int64) if batch.weights is None else batch.weights[lines]
        statuses = batch.statuses[lines].astype(np.int64)
        for code, count in _counted(batch.media[lines].astype(np.int64) * 1000 + statuses, weights):
            result.counts.grid[batch.media_types[code // 1000] or "-", code % 1000] += count
        for code, count in _counted(batch.times[lines] // 10**10 * 10 + statuses // 100, weights):
            result.counts.shares[code // 10, code % 10] += count
        kinds = max(len(batch.media_types), 1)
        for code, count in _counted(
            batch.times[lines] // 10**10 * kinds + batch.media[lines].astype(np.int64), weights
        ):
            result.counts.media_years[code // kinds, batch.media_types[code % kinds] or "-"] += count
        return result

    def take(self, result: Result) -> None:
        super().take(result)
        assert isinstance(result, _Counted)
        self.counts.add(result.counts)


def _counted(codes: NDArray[np.int64], weights: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    values, which = np.unique(codes, return_inverse=True)
    sums = np.bincount(which, weights, minlength=len(values)).astype(np.int64)
    yield from zip(values.tolist(), sums.tolist(), strict=True)


def read_all(
    sources: list[Source], sink: CountingSink, how: ScanOptions, tally: InputCounts, progress: ProgressCallback | None
) -> None:
    done = 0
    total = None if any(source.size is None for source in sources) else sum(source.size or 0 for source in sources)
    reached: dict[int, int] = {}
    for piece in scan(sources, sink.work, how):
        tally.lines += piece.lines
        tally.left_out.update(piece.left_out)
        for problem in piece.problems:
            tally.note(problem)
        for result in piece.results:
            tally.filtered.update(result.dropped)
            tally.saw(result.first_time, result.last_time)
            sink.take(result)
        reached[id(piece.source)] = piece.consumed
        done = sum(reached.values())
        if progress is not None:
            progress(Progress("reading", done, total, "bytes", tally.lines))


class LargestHosts:
    """The hosts with most captures. Keys come in the order of bytes, in which those of one host are together."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._host = b""
        self._captures = 0
        self.largest: list[tuple[int, bytes]] = []

    def add(self, key: bytes, captures: int) -> None:
        host = key.partition(b")")[0]
        if host != self._host:
            self.finish()
            self._host, self._captures = host, 0
        self._captures += captures

    def add_late(self, host: bytes, captures: int) -> None:
        """More captures of a host, when all keys have come."""
        known = [entry for entry in self.largest if entry[1] == host]
        for entry in known:
            self.largest.remove(entry)
            heapify(self.largest)
            captures += entry[0]
        self._offer(captures, host)

    def finish(self) -> None:
        """No more keys of this host."""
        if self._host:
            self._offer(self._captures, self._host)
        self._host = b""

    def _offer(self, captures: int, host: bytes) -> None:
        heappush(self.largest, (captures, host))
        if len(self.largest) > self._top:
            heappop(self.largest)

    def take(self, other: LargestHosts) -> None:
        """Take other hosts."""
        for captures, host in other.largest:
            self._offer(captures, host)

    def rows(self) -> list[tuple[str, int]]:
        """Host as in a SURT, and captures; the largest first."""
        ranked = sorted(self.largest, key=lambda item: (-item[0], item[1]))
        return [(host.decode("utf-8", "replace"), captures) for captures, host in ranked]


class Sample:
    """Some SURTs by chance, each as likely as the other (reservoir); the same seed and input give the same."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self._size = size
        self._random = Random(seed)
        self._seen = 0
        self.surts: list[bytes] = []

    def offer(self, text: bytes, at: int) -> None:
        """The record at `at`."""
        if self._size:
            place = self._place()
            if place is not None:
                self.surts[place] = _surt(text, at)

    def offer_key(self, key: bytes) -> None:
        if self._size:
            place = self._place()
            if place is not None:
                self.surts[place] = key

    def _place(self) -> int | None:
        self._seen += 1
        if self._seen <= self._size:
            self.surts.append(b"")
            return self._seen - 1
        place = int(self._random.random() * self._seen)
        return place if place < self._size else None


@dataclass(slots=True)
class SurtCounts:
    """What a range of sorted SURTs holds. `months`: captures, URI-Rs seen first, URI-Rs seen in the year (January)."""

    top: int
    hosts: LargestHosts
    tree: TreeCounts = field(default_factory=TreeCounts)
    domains: Counter[str] = field(default_factory=Counter)
    histogram: Counter[int] = field(default_factory=Counter)
    months: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, kernels.YEARS * 12), np.int64))
    largest: list[tuple[int, bytes]] = field(default_factory=list)
    tlds: Counter[str] = field(default_factory=Counter)
    uri_rs: int = 0

    @classmethod
    def empty(cls, top: int) -> SurtCounts:
        """Nothing counted."""
        return cls(top, LargestHosts(top))

    def note_large(self, found: list[tuple[int, bytes]]) -> None:
        """Take SURTs with their captures, later in order; of equals the first in order stays, whatever the pieces."""
        self.largest = sorted(self.largest + found, key=lambda item: -item[0])[: self.top]

    def add(self, later: SurtCounts) -> None:
        """Add a range of SURTs that come later, with other hosts and other nodes."""
        self.hosts.take(later.hosts)
        self.tree.add(later.tree)
        self.domains.update(later.domains)
        self.histogram.update(later.histogram)
        self.months += later.months
        self.note_large(later.largest)
        self.tlds.update(later.tlds)
        self.uri_rs += later.uri_rs

    def add_wildcard(self, key: bytes, captures: int) -> None:
        """A wildcard of a map that no other one covers: it counts for its host, or for its hosts together."""
        self.tlds[tld_of(key)] += captures
        self.hosts.add_late(key.partition(b")")[0], captures)

    def top_uri_rs(self) -> list[tuple[str, int]]:
        return [(surt.decode("utf-8", "replace"), captures) for captures, surt in self.largest]

    def top_tlds(self) -> list[tuple[str, int]]:
        found = sorted(((name, count) for name, count in self.tlds.items() if count), key=lambda row: (-row[1], row[0]))
        return found[: self.top]


class SortedSurts:
    """Goes through sorted SURTs once and counts what the tables need."""

    def __init__(self, top: int, sample: Sample | None = None) -> None:
        self.sample = sample or Sample(0)
        self.counts = SurtCounts.empty(top)
        self._tree = TreeStats()
        self._domains = DomainPolicies()
        self._tld = ""

    def read(self, store: RunStore) -> None:
        """All records of the store; a SURT whose records are in two pieces is counted with the second."""
        before = rest = np.empty(0, np.uint8)
        for piece in store.merged():
            text = np.concatenate([before, rest, piece])
            if len(text) == len(before):
                continue
            cut = kernels.last_surt(text, len(before))
            last = self._tabulate(text, len(before), cut)
            rest = text[cut:].copy()
            before = text[last:cut].copy() if last >= 0 else before
        if rest.size:
            self._tabulate(np.concatenate([before, rest]), len(before), len(before) + len(rest))
        self.finish()

    def finish(self) -> None:
        """All SURTs, or keys of a map, have come."""
        self._tree.finish()
        self.counts.tree.add(self._tree.counts)
        self._domains.finish()
        self.counts.domains.update(self._domains.counts)
        self.counts.hosts.finish()

    def _tabulate(self, text: NDArray[np.uint8], begin: int, end: int) -> int:
        if begin == end:
            return -1
        capacity = (end - begin) // HEADER + 1
        at, captures, fresh = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.bool_)
        count, last = kernels.tabulate(text, begin, end, at, captures, fresh.view(np.uint8), self.counts.months)
        at, captures, fresh = at[:count], captures[:count], fresh[:count]
        self.counts.uri_rs += count
        values, counts = np.unique(captures, return_counts=True)
        self.counts.histogram.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        data = text.tobytes()
        self._note_large(data, at, captures)
        for start, count in zip(at.tolist(), captures.tolist(), strict=True):
            key, rest = _split(data, start)
            self.counts.hosts.add(key, count)
            self.sample.offer(data, start)
            self._domains.add(key, rest.partition(b"?")[2].partition(b"#")[0])
        self._add_keys(text, at, captures, fresh)
        return last

    def _note_large(self, text: bytes, at: NDArray[np.int64], captures: NDArray[np.int64]) -> None:
        order = np.argsort(-captures, kind="stable")[: self.counts.top].tolist()
        self.counts.note_large([(int(captures[number]), _surt(text, int(at[number]))) for number in order])

    def _add_keys(
        self, text: NDArray[np.uint8], at: NDArray[np.int64], captures: NDArray[np.int64], fresh: NDArray[np.bool_]
    ) -> None:
        starts = np.flatnonzero(fresh)
        if not fresh[0]:
            # More SURTs of a key that has been seen.
            until = int(starts[0]) if starts.size else len(at)
            self.counts.tlds[self._tld] += int(captures[:until].sum())
        if not starts.size:
            return
        sums = np.add.reduceat(captures, starts)
        places = at[starts] + HEADER
        lengths = np.array([_LENGTHS.unpack_from(text.data, start)[0] for start in at[starts].tolist()], np.int64)
        self.add_keys(text, places, lengths, sums)

    def add_keys(
        self, text: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int64], captures: NDArray[np.int64]
    ) -> None:
        """Keys with their captures, in order."""
        tlds = self._tree.add(text, at, length)
        changes = np.flatnonzero(tlds)
        until = int(changes[0]) if changes.size else len(at)
        if until:
            self.counts.tlds[self._tld] += int(captures[:until].sum())
        if changes.size:
            sums = np.add.reduceat(captures, changes)
            for number, total in zip(changes.tolist(), sums.tolist(), strict=True):
                start = int(at[number])
                self._tld = tld_of(text[start : start + int(tlds[number])].tobytes())
                self.counts.tlds[self._tld] += total

    def add_listed(self, keys: list[bytes], counts: list[int]) -> None:
        """Keys of a map, in order."""
        if not keys:
            return
        for key, count in zip(keys, counts, strict=True):
            self.counts.hosts.add(key, count)
            self.sample.offer_key(key)
        lengths = np.array([len(key) for key in keys], np.int64)
        text = np.frombuffer(bytearray(b"".join(keys)), np.uint8)
        captures = np.array(counts, np.int64)
        self.add_keys(text, np.cumsum(lengths) - lengths, lengths, captures)
        order = np.argsort(-captures, kind="stable")[: self.counts.top].tolist()
        self.counts.note_large([(counts[number], keys[number]) for number in order])


def tld_of(key: bytes) -> str:
    """The row of a key or wildcard in the table of top-level domains."""
    name = key.partition(b")")[0].partition(b",")[0].partition(b":")[0].decode("utf-8", "replace")
    return "IP addresses" if name[:1] in "0123456789[" else name


def _split(text: bytes, at: int) -> tuple[bytes, bytes]:
    """Key and rest of the record at `at`."""
    key, rest = _LENGTHS.unpack_from(text, at)
    start = at + HEADER
    return text[start : start + key], text[start + key : start + key + rest]


def _surt(text: bytes, at: int) -> bytes:
    key, rest = _split(text, at)
    return rest[1:] if rest.startswith(b"\x01") else key + rest
