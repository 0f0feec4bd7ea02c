"""Compaction by weights, as published: a node with more children than its depth allows becomes one wildcard.

A node of depth d (hosts: `com` is 1, `com,x` is 2; paths: the root of a host is 1) rolls up when the number of its
distinct children that hold something exceeds weight · a · d^-k, with separate a and k for hosts and paths (Alam et
al. 2019, section 5.3). The shallowest node wins. A top-level domain rolls up only when asked, an IP address never octet
by octet.

One pass over the map in the order of bytes (`kernels/walk.pxd`). Kept in memory are the open nodes (as deep as a key is
long) and the output lines below nodes that have not been decided yet. A node is decided as soon as it has too many
children, so an undecided one has at most as many children as its cutoff: memory depends on depth and cutoffs, not on
the number of keys. Work is cut at places where no node goes on and shared out among threads; the result is the same
byte for byte.

What a rolled-up wildcard says:
- its total is the disjoint sum of what is below; a wildcard in the input counts for everything below it (inclusive
  totals), unless the sum below proves it too small, which then is a lower bound;
- a void (`0`) below it stays, as long as nothing held lies below the void; else the void is dropped, so that it hides
  nothing;
- JSON blocks below it are merged, of a wildcard with a block only its own, for it includes the others.
"""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from recollect.errors import FormatError, UsageError
from recollect.formats.containers import OnProblem, atomic_output
from recollect.formats.frequency import Frequency
from recollect.formats.ordered import in_order
from recollect.formats.ukvs import Header
from recollect.kernels import rollup as kernels
from recollect.kernels import walk
from recollect.kernels.lines import count_lines
from recollect.maps.jsonmerge import merged_block
from recollect.maps.plainmap import PlainMap, open_plain, tidied
from recollect.maps.samplescope import refuse_sample
from recollect.maps.sets import without_sets
from recollect.model import Progress, ProgressCallback

if TYPE_CHECKING:  # NumPy takes as long to import as all the rest of `recollect compact`; only fitting needs it
    import numpy as np
    from numpy.typing import NDArray

_WILDCARD_LINE = re.compile(rb"^[^ \t\n]*\*[ \t][^\n]*\n?", re.MULTILINE)
PIECE = 1 << 23  # of input for a task, where the map is large enough
SMALLEST = 1 << 16  # of input for a task; less is not worth a thread
TURN = 1 << 20  # of input between two looks at the output
JOIN_AT = 256  # blocks of one node that wait to be joined in one go
IN_MEMORY = 1 << 26  # output of one task beyond this goes to a temporary file


@dataclass(frozen=True, slots=True)
class Weights:
    """How many children a node may have. The defaults of a and k are the published ones, of Arquivo.pt."""

    host_weight: float = 4.0
    path_weight: float = 2.0
    host_a: float = 16.329
    host_k: float = 0.714
    path_a: float = 24.546
    path_k: float = 1.429
    max_host_depth: int = 8
    max_path_depth: int = 9
    rollup_tlds: bool = False

    def __post_init__(self) -> None:
        numbers = (self.host_weight, self.path_weight, self.host_a, self.path_a)
        if any(not number >= 0 for number in numbers):
            raise UsageError("a weight or a below zero", hint="weights are 0 (roll up all) to inf (nothing)")
        if self.max_host_depth < 1 or self.max_path_depth < 1:
            raise UsageError("a depth limit below 1")

    def host_cutoffs(self) -> array[float]:
        """By depth; index 0 is the root, which never rolls up."""
        cutoffs = _cutoffs(self.host_weight, self.host_a, self.host_k, self.max_host_depth)
        if not self.rollup_tlds and len(cutoffs) > 1:
            cutoffs[1] = math.inf
        return cutoffs

    def path_cutoffs(self) -> array[float]:
        """By depth; the root of a host's paths is 1."""
        return _cutoffs(self.path_weight, self.path_a, self.path_k, self.max_path_depth)


def _cutoffs(weight: float, a: float, k: float, max_depth: int) -> array[float]:
    """Cutoffs of depths below `max_depth`; at the limit what lies deeper is one segment, so nothing is left to roll
    up."""
    if weight == math.inf:
        return array("d", [math.inf] * max_depth)
    return array("d", [math.inf, *(weight * a * float(depth) ** -k for depth in range(1, max_depth))])


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    keys_in: int
    keys_out: int
    rollups: int
    bytes_in: int
    bytes_out: int
    weights: Weights


def compact_by_weights(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    weights: Weights | None = None,
    *,
    fit: bool = False,
    threads: int = 0,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> Compaction:
    """Compact a map into another, or into itself. With `fit`, a and k are fitted to the map's own tree first."""
    weights = weights or Weights()
    with open_plain(source, on_problem) as plain:
        refuse_sample(plain.header, plain.label, "compacted")
        if len(plain.header.keys) > 1:
            return _compact_columns(plain, target, weights, fit, threads, on_problem)
        try:
            return _compact(plain, target, weights, fit, threads, progress)
        except NeedsTidying:
            with tidied(plain, on_problem) as tidy:
                return _compact(tidy, target, weights, fit, threads, progress)


def _compact_columns(
    plain: PlainMap,
    target: str | os.PathLike[str],
    weights: Weights,
    fit: bool,
    threads: int,
    on_problem: OnProblem | None,
) -> Compaction:
    """Compact a map with more key columns."""
    from recollect.profiles.compaction.columns import compact_columns

    def compact(wholes: Path, compacted: Path) -> tuple[Compaction, Header]:
        done = compact_by_weights(wholes, compacted, weights, fit=fit, threads=threads)
        return done, compaction_header(plain.header, done.weights)

    result, keys_in, keys_out = compact_columns(plain.path, plain.header, os.fspath(target), compact, on_problem)
    size = 0 if os.fspath(target) == "-" else Path(target).stat().st_size
    return replace(result, keys_in=keys_in, keys_out=keys_out, bytes_in=len(plain.data), bytes_out=size)


def fit_weights(plain: PlainMap, weights: Weights, threads: int = 0) -> Weights:
    """The weights with a and k fitted to the mean number of children by depth, as the published ones were."""
    import numpy as np

    keys = without_wildcards(plain)
    tallies = [np.asarray(result.tally) for result in run_all(keys, without_rollups(weights), threads, None)]
    return fitted_to(np.sum(tallies, axis=0), weights) if tallies else weights


def without_wildcards(plain: PlainMap) -> PlainMap:
    """The map without wildcards, below which the tree is unknown; the map itself if it has none."""
    if not _WILDCARD_LINE.search(plain.data, plain.start):
        return plain
    return replace(plain, data=memoryview(_WILDCARD_LINE.sub(b"", plain.data[plain.start :])), start=0)


def without_rollups(weights: Weights) -> Weights:
    """Weights under which nothing rolls up, so that every node and its children are counted at the levels of a fit."""
    return replace(weights, host_weight=math.inf, path_weight=math.inf, max_host_depth=10, max_path_depth=11)


def fitted_to(tally: NDArray[np.int64], weights: Weights) -> Weights:
    """The weights with a and k fitted to counts of nodes and children by depth, by the rule of `recollect stats`."""
    from recollect.profiles.compaction.fit import fit_hosts, fit_paths

    # Children of nodes of host depth d are level d + 1; of path depth d (the root is 1), level d.
    host, path = fit_hosts(_mean_children(tally[0], 1)), fit_paths(_mean_children(tally[1], 0))
    if host is not None:
        weights = replace(weights, host_a=host[0], host_k=host[1])
    if path is not None:
        weights = replace(weights, path_a=path[0], path_k=path[1])
    return weights


def _mean_children(tally: NDArray[np.int64], deeper: int) -> dict[int, float]:
    """Mean children by the level of the children."""
    return {depth + deeper: children / nodes for depth, (nodes, children) in enumerate(tally.tolist()) if nodes}


def _compact(
    plain: PlainMap,
    target: str | os.PathLike[str],
    weights: Weights,
    fit: bool,
    threads: int,
    progress: ProgressCallback | None,
) -> Compaction:
    if fit:
        weights = fit_weights(plain, weights, threads)
    header = compaction_header(plain.header, weights)
    keys_in = keys_out = rollups = 0
    with atomic_output(target) as out:
        head = header.encode()
        out.write(head)
        size = len(head)
        for result in run_all(plain, weights, threads, progress):
            keys_in += result.lines
            keys_out += result.written
            rollups += result.rollups
            size += result.copy_to(out)
    return Compaction(keys_in, keys_out, rollups, len(plain.data), size, weights)


def compaction_header(header: Header, weights: Weights) -> Header:
    """The header of a compacted map, which says how it was compacted."""
    how = {
        "by": "weights",
        "host": [_finite(weights.host_weight), round(weights.host_a, 6), round(weights.host_k, 6)],
        "path": [_finite(weights.path_weight), round(weights.path_a, 6), round(weights.path_k, 6)],
    }
    # A map without any header gets ours, and says what its columns are.
    return replace(header, context=header.context or Header().context, meta={**header.meta, "compaction": how})


def _finite(weight: float) -> float | str:
    return weight if weight < math.inf else "inf"


class NeedsTidying(FormatError):
    """The map is not plain, sorted and unique after all. If a tidied map raises it, a key is quoted."""

    def __init__(self, plain: PlainMap, at: int) -> None:
        line = count_lines(plain.data, 0, at) + 1
        super().__init__("a line that cannot be compacted", where=f"{plain.label}:{line}", why="its key is quoted")


@dataclass(slots=True)
class _Result:
    """The output of one task; `tally` as `kernels.Rollup` counts it."""

    lines: int
    written: int
    rollups: int
    tally: memoryview
    text: IO[bytes]

    def copy_to(self, out: Any) -> int:
        self.text.seek(0)
        size = 0
        while piece := self.text.read(1 << 20):
            out.write(piece)
            size += len(piece)
        self.text.close()
        return size


def run_all(plain: PlainMap, weights: Weights, threads: int, progress: ProgressCallback | None) -> Iterator[_Result]:
    """The results of all tasks in the order of the map, a few ahead of the reader."""
    threads = threads or os.cpu_count() or 1
    data = plain.data
    if threads == 1 or len(data) <= SMALLEST:
        for start, stop in _tasks(plain, weights, PIECE):
            yield _run(plain, start, stop, weights)
            _report_progress(progress, stop, len(data))
        return
    # Small maps are still shared out evenly.
    size = min(PIECE, max(SMALLEST, (len(data) - plain.start) // (2 * threads) + 1))
    tasks = (partial(_run_to, plain, start, stop, weights) for start, stop in _tasks(plain, weights, size))
    for stop, result in in_order(tasks, threads, ahead=2 * threads, name="compact"):
        yield result
        _report_progress(progress, stop, len(data))


def _run_to(plain: PlainMap, start: int, stop: int, weights: Weights) -> tuple[int, _Result]:
    return stop, _run(plain, start, stop, weights)


def _report_progress(progress: ProgressCallback | None, done: int, total: int) -> None:
    if progress is not None:
        progress(Progress("compacting", done, total, "bytes"))


def _tasks(plain: PlainMap, weights: Weights, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of about `size` bytes between which no node goes on that may roll up."""
    data, start, end = plain.data, plain.start, len(plain.data)
    while start < end:
        stop = walk.safe_cut(data, start, end, min(start + size, end), weights.rollup_tlds)
        if stop < end and not walk.lines_rise(data, start, stop, end):
            raise NeedsTidying(plain, stop)
        yield start, stop
        start = stop


def _run(plain: PlainMap, start: int, stop: int, weights: Weights) -> _Result:
    """Compact one range."""
    depths = max(weights.max_host_depth, weights.max_path_depth) + 1
    tally = memoryview(bytearray(2 * depths * 2 * 8)).cast("q", (2, depths, 2))
    rollup = kernels.Rollup(plain.data, start, stop, weights.host_cutoffs(), weights.path_cutoffs(), tally)
    text: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - handed on in the result
    blocks = _Blocks(plain.data)
    pause = start
    while True:
        pause += TURN
        status = rollup.run(pause)
        for piece in blocks.settle(rollup.take_events(), rollup.take_output()):
            text.write(piece)
        if status == kernels.DONE:
            return _Result(rollup.lines, rollup.written, rollup.rollups, tally, text)
        if status != kernels.PAUSED:
            raise NeedsTidying(plain, rollup.at)


class _Blocks:
    """JSON blocks on their way up the tree, by the numbers that the kernel gives to nodes."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._own: dict[int, str] = {}
        self._below: dict[int, list[str]] = {}
        self._rolled: dict[int, str] = {}

    def settle(self, events: list[tuple[int, int, int, int]], out: bytes) -> Iterator[bytes]:
        """Follow the kernel's events; yields its output with merged blocks put in."""
        written = 0
        for what, node, first, second in events:
            if what == kernels.EVENT_LINE:
                self._add(node, self._text(first, second))
            elif what == kernels.EVENT_OWN:
                self._own[node] = self._text(first, second)
            elif what == kernels.EVENT_CLOSE:
                self._close(node, first, second)
            else:
                block = self._rolled.pop(node).encode("utf-8", "surrogateescape")
                yield out[written:first] + (b" " + block if block else b"")
                written = first
        yield out[written:] if written else out

    def _text(self, start: int, stop: int) -> str:
        return self._data[start:stop].tobytes().decode("utf-8", "surrogateescape")

    def _add(self, node: int, block: str) -> None:
        blocks = self._below.setdefault(node, [])
        blocks.append(block)
        if len(blocks) >= JOIN_AT:
            blocks[:] = [_joined(blocks)]

    def _close(self, node: int, parent: int, flags: int) -> None:
        below = self._below.pop(node, [])
        block = self._own.pop(node, "") or _joined(below)
        if parent:
            self._add(parent, block)
        if flags & kernels.CLOSE_KEPT:
            self._rolled[node] = _joined([block], partial=bool(flags & kernels.CLOSE_BARE))


def _joined(blocks: list[str], *, partial: bool = False) -> str:
    """One block for blocks of different keys, whose counts add up."""
    if len(blocks) > 1 or partial:
        return merged_block(blocks, Frequency.__add__, partial=partial)[0]
    return without_sets(blocks[0])
