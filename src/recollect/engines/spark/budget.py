"""Compaction by budget with Spark's files: the map is brought to the driver and compacted there; the same bytes out.

One optimum decides about all branches of a map together, so ranges of it cannot be decided apart. Spark adds the stores
that only it can reach, and folders of parts; time and memory are those of the embedded engine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recollect.engines.plan import without_header
from recollect.engines.spark.files import HadoopFiles
from recollect.engines.spark.maps import MapOnSpark, find_maps
from recollect.engines.spark.parts import assemble
from recollect.engines.spark.session import Cluster, session
from recollect.engines.spark.targets import target_of
from recollect.formats.containers import OnProblem, open_input
from recollect.formats.logs import LogEntry
from recollect.model import ProgressCallback
from recollect.profiles.compaction import budget as embedded
from recollect.profiles.compaction.budget import Budget, BudgetCompaction


def compact_by_budget(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    budget: Budget,
    *,
    lookups: Iterable[LogEntry] | None = None,
    cluster: Cluster | None = None,
    parts: bool = False,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> BudgetCompaction:
    """Compact a map into another, or into itself, within a budget; `lookups` says what people ask for."""
    output = os.fspath(target)
    with session(cluster or Cluster()) as spark, tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        place = target_of(spark, output, as_parts=parts or output.endswith("/"))
        try:
            (found,) = find_maps(spark, [os.fspath(source)])
            small = Path(folder) / f"small{Path(output.rstrip('/')).suffix}"
            done = embedded.compact_by_budget(
                _on_driver(spark, found, Path(folder)),
                small,
                budget,
                lookups=lookups,
                on_problem=on_problem,
                progress=progress,
            )
            with open_input(small) as stream:
                text = b"".join(stream)
            records = without_header(text)
            head = text[: len(text) - len(records)]
            assemble(place, head, {}, {0: (records, done.keys_out)} if records else {})
        finally:
            place.discard()
        return done


def _on_driver(spark: Any, found: MapOnSpark, folder: Path) -> str:
    """The path of a map on the driver; one at a URL is copied, its parts one after the other."""
    if not found.remote:
        return found.name
    whole, part = folder / f"map{Path(found.name.rstrip('/')).suffix}", folder / "part"
    files = HadoopFiles(spark)
    with whole.open("wb") as out:
        for url, _ in found.files:
            files.download(url, str(part))
            with part.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    out.write(chunk)
    return str(whole)
