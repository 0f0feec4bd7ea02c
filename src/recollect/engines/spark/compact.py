"""Compaction by weights on Spark: `recollect.profiles.compaction.weights` on ranges of hosts; the same bytes out.

A range holds whole domains (with `--rollup-tlds` whole top-level domains), so every node that may roll up is decided in
one task, as it would be in one process. Only a and k of `--fit` are of the whole map: the counts of children by depth
are added up over all ranges in a first pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.mapplan import MapPlan, identity_of_maps, unfinished
from recollect.engines.spark.maps import DOMAIN, TOP, find_maps, in_ranges, plain_header, spooled
from recollect.engines.spark.notes import Range
from recollect.engines.spark.parts import assemble, in_chunks
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.engines.spark.targets import target_of
from recollect.errors import FormatError, UsageError
from recollect.formats.ukvs import Header
from recollect.maps.plainmap import PlainMap, open_plain
from recollect.maps.samplescope import refuse_sample
from recollect.model import ProgressCallback
from recollect.profiles.compaction.weights import (
    Compaction,
    NeedsTidying,
    Weights,
    compaction_header,
    fitted_to,
    run_all,
    without_rollups,
    without_wildcards,
)


def compact_by_weights(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    weights: Weights | None = None,
    *,
    fit: bool = False,
    cluster: Cluster | None = None,
    parts: bool = False,
    sizes: Sizes | None = None,
    progress: ProgressCallback | None = None,
) -> Compaction:
    """Compact a map into another, or into itself, on Spark."""
    from recollect.engines.spark.notes import notes

    weights, output = weights or Weights(), os.fspath(target)
    with session(cluster or Cluster()) as spark, ExitStack() as stack:
        (one,) = find_maps(spark, [os.fspath(source)])
        refuse_sample(one.header, one.name, "compacted")
        if len(one.header.keys) > 1 or one.header.style != "ukvs":
            raise UsageError(
                "a map with more columns than a key and a frequency", where=one.name, hint="--engine embedded"
            )
        identity = identity_of_maps(spark, "compact by weights", {**asdict(weights), "fit": fit}, [one])
        place = target_of(spark, output, as_parts=parts or output.endswith("/"), identity=identity)
        stack.callback(place.discard)
        plan, ranges = unfinished(place, progress)
        if plan is None or not plan.is_done(ranges):
            deep = TOP if weights.rollup_tlds else DOMAIN
            known = None if plan is None else plan.borders
            ranged = in_ranges(
                spark, [one], sizes or Sizes(), lambda _widest: deep, progress, borders=known, done=ranges
            )
            stack.callback(ranged.blocks.unpersist)
            header, reported = plain_header(one.header), notes(spark)
            if plan is None:
                if fit:
                    with progress_of(spark, "fitting", progress):
                        counting = _CompactTask(header, without_rollups(weights), None, one.name)
                        tally = ranged.texts.mapPartitionsWithIndex(counting.tally).reduce(np.add)
                    weights = fitted_to(tally, weights)
                plan = MapPlan(ranged.borders, ranged.size, asdict(weights))
                place.begin(plan.as_json())
            weights = Weights(**plan.found)
            task = _CompactTask(header, weights, reported, one.name, frozenset(ranges))
            with progress_of(spark, "compacting", progress):
                place.receive(ranged.texts.mapPartitionsWithIndex(task), reported)
            ranges |= reported.value
        weights = Weights(**plan.found)
        size = assemble(place, compaction_header(one.header, weights).encode(), ranges, {})
        keys_in, keys_out, rollups = (sum(found.counts[at] for found in ranges.values()) for at in range(3))
        return Compaction(keys_in, keys_out, rollups, plan.size, size, weights)


@dataclass(frozen=True, slots=True)
class _CompactTask:
    """Compacts a range."""

    header: Header
    weights: Weights
    reported: Any
    name: str
    done: frozenset[int] = frozenset()  # ranges that are finished

    def __call__(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        return iter(()) if number in self.done else self._lines(number, pieces)

    def _lines(self, number: int, pieces: Iterable[Any]) -> Iterator[bytes]:
        note, counts = Range(), np.zeros(3, np.int64)
        for text in in_chunks(self._texts(pieces, counts)):
            note.saw(text)
            yield text
        note.keys, note.counts = int(counts[1]), [int(count) for count in counts]
        self.reported.add({number: note})

    def _texts(self, pieces: Iterable[Any], counts: Any) -> Iterator[bytes]:
        for result in self._results(pieces):
            counts += (result.lines, result.written, result.rollups)
            result.text.seek(0)
            with closing(result.text) as text:
                while piece := text.read(1 << 20):
                    # Chunks must end with a line.
                    yield piece if piece.endswith(b"\n") else piece + text.readline()

    def tally(self, _number: int, pieces: Iterable[Any]) -> Iterator[Any]:
        """How many nodes there are at each depth, and how many children they have."""
        for result in self._results(pieces, without_wildcards):
            result.text.close()
            yield np.asarray(result.tally)

    def _results(self, pieces: Iterable[Any], of: Callable[[PlainMap], PlainMap] = lambda one: one) -> Iterator[Any]:
        with spooled(pieces, [self.header]) as files, open_plain(files[0]) as plain:
            try:
                yield from run_all(of(plain), self.weights, 1, None)
            except NeedsTidying:
                raise FormatError(
                    "a map that is not plain, sorted and unique",
                    where=self.name,
                    why=f"put it in order first: recollect merge {self.name} -o tidy.ukvs",
                ) from None
