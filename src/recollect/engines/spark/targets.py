"""Where a map is to be: how the text of ranges gets there, and how it is put together.

Hides which file systems the driver and the tasks share. A path belongs to the driver: on one machine tasks write beside
it, from a cluster their text is brought to the driver, as workers may see other folders. A URL belongs to Spark: tasks
write, and the driver joins a single file. Parts by URL are written once, into the final folder, under names that no
earlier map has; the manifest, written last, makes them the map. Until then the earlier map is whole.

Invariant: whatever fails, what was there before is still there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from recollect.engines.spark.files import HadoopFiles, is_url
from recollect.engines.spark.localtarget import LocalTarget
from recollect.engines.spark.staging import Target
from recollect.engines.spark.urltargets import OF_PARTS, CompressedByUrl, FileByUrl, PartsByUrl
from recollect.errors import UsageError
from recollect.formats.containers import COMPRESSIONS, check_output


def check_target(spark: Any, output: str, *, as_parts: bool) -> None:
    """Raise if an output cannot be written."""
    target_of(spark, output, as_parts=as_parts).discard()


def target_of(spark: Any, output: str, *, as_parts: bool, temp_dir: str | None = None, identity: str = "") -> Target:
    """The target of an output as people name it; `-` is stdout. Raises if it cannot be written, before all work. With
    the identity of the work, finished parts outlive a failure, and the next run of the same work goes on from them."""
    if is_url(output):
        files = HadoopFiles(spark)
        names = files.in_folder(output)
        _check_folder(output, names, as_parts=as_parts)
        if output.startswith("file:"):
            _check_shared(spark, output)
        if as_parts:
            return PartsByUrl(files, output, names or (), identity)
        make = CompressedByUrl if output.endswith(tuple(COMPRESSIONS)) else FileByUrl
        return make(files, output, identity)
    if as_parts:
        folder = Path(output.rstrip("/") or "/")
        if folder.is_file():
            raise UsageError("a file where a folder of parts is expected", where=output)
        _check_folder(output, [one.name for one in folder.iterdir()] if folder.is_dir() else None, as_parts=True)
    else:
        check_output(output)
    return LocalTarget(
        spark, output, as_parts=as_parts, shared=one_machine(spark), temp_dir=temp_dir, identity=identity
    )


def _check_folder(output: str, names: Iterable[str] | None, *, as_parts: bool) -> None:
    """Refuse to put a map in the place of a folder that is more than an earlier map in parts."""
    if names is None:
        return
    if not as_parts:
        raise UsageError("a folder where a file is expected", where=output, hint="add --parts, or name a file in it")
    others = sorted(name for name in names if not OF_PARTS.fullmatch(name))
    if others:
        raise UsageError(
            "a folder with more than a map in it would be replaced",
            where=output,
            why=f"{others[0]} is not a part of a map",
            hint="name a new folder, or an earlier map in parts",
        )


def one_machine(spark: Any) -> bool:
    """Whether tasks run where the driver runs, so that they share its files."""
    return bool(spark.sparkContext._jsc.sc().isLocal())


def seen_by_workers(spark: Any, names: Sequence[str]) -> list[str]:
    """Of paths that the driver sees those that some worker does not see."""
    if one_machine(spark) or not names:
        return []
    context = spark.sparkContext
    tasks = max(2 * context.defaultParallelism, 2)
    # Each task is asked about all, as it does not matter which of them runs on which worker.
    lists = context.parallelize([list(names)] * tasks, tasks).map(_unseen).collect()
    return sorted({name for found in lists for name in found})


def _unseen(names: Sequence[str]) -> list[str]:
    return [name for name in names if not os.access(name, os.R_OK)]


def _check_shared(spark: Any, output: str) -> None:
    """Refuse a file: URL in a folder that workers do not share with the driver."""
    if one_machine(spark):
        return
    folder = Path(unquote(urlsplit(output).path))
    while not folder.is_dir():
        folder = folder.parent
    with tempfile.NamedTemporaryFile(prefix=".recollect-", dir=folder) as mark:
        if seen_by_workers(spark, [mark.name]):
            raise UsageError(
                "workers do not share this folder with the driver",
                where=output,
                hint="give a path, and the map comes to this machine; or a URL of a store that all of them reach",
            )
