"""The truth of an evaluation on Spark: indexes are profiled there, and lookups are answered where their keys are.

A map of all that is held may be larger than any disk here, so it is never put together: every range of it answers all
lookups, and a lookup is held if any range holds it. The maps under evaluation are compacted ones, and are opened here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.engines.spark import exchange
from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.inputs import find_inputs
from recollect.engines.spark.notes import notes
from recollect.engines.spark.profile import RangeTask, Sinks, added_up, refuse_maps
from recollect.engines.spark.reading import reading
from recollect.engines.spark.session import Cluster, progress_of, session
from recollect.maps.lookup import MementoMap
from recollect.model import Problem, ProgressCallback
from recollect.profiles.indexes.options import ProfileOptions
from recollect.profiles.indexes.profile import header_of, usable
from recollect.profiles.indexes.sinks import Totals
from recollect.profiles.statistics.evaluate import DistinctLookups, Known, asked_by


def held_on_spark(
    names: Sequence[str],
    policy: str,
    lookups: DistinctLookups,
    progress: ProgressCallback,
    *,
    cluster: Cluster | None = None,
    sizes: Sizes | None = None,
) -> Known:
    """Which lookups indexes hold, by the keys of a policy; a `Holder` of `profiles.statistics.evaluate`."""
    options, sizes = ProfileOptions(policy=policy), sizes or Sizes()
    found: list[Problem] = []
    with session(cluster or Cluster()) as spark:
        ignored: list[Problem] = []
        inputs = find_inputs(spark, names, found.append, on_ignored=ignored.append)
        sources = usable([source for source, _ in inputs], None, [*found, *ignored])
        refuse_maps(sources)
        reported, asked = notes(spark), spark.sparkContext.broadcast(lookups)
        with reading(spark, inputs, Sinks(options), options.all_schemes, sizes, progress) as read:
            tally = read.tally(found)
            borders = exchange.borders_of(read.places(), read.ranges)
            header = header_of(options, sources, Totals(), tally).encode()
            task = _HeldTask(RangeTask(options, reported, borders, sizes.block), header, asked)
            with progress_of(spark, "looking up the truth", progress):
                packed = read.cut(borders).mapPartitionsWithIndex(task).treeReduce(np.bitwise_or)
        totals, seams = added_up(reported.value, options)
        lines = (text for _, (text, _) in sorted(seams.items()))
        held = np.unpackbits(packed, count=len(lookups.uris)).astype(np.bool_) | _answers(header, lines, lookups)
    return Known(held, totals.keys, totals.uri_rs, tally)


@dataclass(frozen=True, slots=True)
class _HeldTask:
    """Answers all lookups from a range, in bits."""

    lines: RangeTask
    header: bytes
    lookups: Any

    def __call__(self, number: int, pieces: Iterable[tuple[int, bytes]]) -> Iterator[NDArray[np.uint8]]:
        yield np.packbits(_answers(self.header, self.lines(number, pieces), self.lookups.value))


def _answers(header: bytes, texts: Iterable[bytes], lookups: DistinctLookups) -> NDArray[np.bool_]:
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
    with TemporaryDirectory(prefix="recollect-", dir=folder) as place:
        target = Path(place) / "range.ukvs"
        with target.open("wb") as out:
            out.write(header)
            out.writelines(texts)
        with MementoMap.open(str(target)) as known:
            return asked_by(known, lookups)
