"""Parts on their way to a map: written by tasks to the folder of their run, and finished ones found again.

Hides what runs of the same work share. Each run writes to a folder (or under names) of its own, so that a part is
always of one run; the journal says which ranges of which run are finished (see `resume`).
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recollect.engines.plan import Range
from recollect.engines.spark.resume import Earlier, Journal, journalled
from recollect.errors import RecollectError

_PART = re.compile(r"part-(\d+)")
_COMMITTER = "mapreduce.fileoutputcommitter.algorithm.version"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a map: the lines that the task of a range wrote, or text of the driver before range `number`."""

    number: int
    label: str  # "header", "seam", or "" for the lines of a range
    size: int
    keys: int
    first: bytes = b""
    last: bytes = b""
    text: bytes = b""


class Target(Protocol):
    """Where a map is to be."""

    def earlier(self) -> Earlier | None:
        """What an unfinished run of the same work left, if there is anything to go on from."""

    def begin(self, state: Mapping[str, Any]) -> None:
        """Note what a later run of the same work needs, before anything is received."""

    def receive(self, texts: Any, reported: Any) -> None:
        """Run the job that makes an RDD of texts (whole lines; a partition for each range), and keep them. `reported`:
        the notes of its tasks."""

    def commit(self, pieces: Sequence[Piece]) -> None:
        """Make the pieces, in their order, the map."""

    def discard(self) -> None:
        """Remove all that is only of use while working. After a failure finished parts stay, if work can go on."""


class Staging:
    """What all targets share: the journal, and which parts of earlier runs are used."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._run = uuid.uuid4().hex[:12]
        self._kept: dict[int, str] = {}  # files of finished ranges of earlier runs
        self._committed = False

    def _sizes(self, run: str) -> dict[str, int]:
        """The files of a run and their sizes."""
        raise NotImplementedError

    def _written(self, texts: Any) -> None:
        """Write the texts to the folder of this run."""
        raise NotImplementedError

    def _run_of(self, _ranges: Mapping[int, Range]) -> str:
        return self._run

    def earlier(self) -> Earlier | None:
        found = None if self._journal is None else self._journal.earlier()
        if found is None:
            return None
        state, notes = found
        files = {run: _by_number(self._sizes(run)) for run in {run for run, _, _ in notes}}
        ranges: dict[int, Range] = {}
        for run, number, note in notes:
            name, size = files[run].get(number, ("", 0))
            if size == note.size:
                ranges[number], self._kept[number] = note, name
        return Earlier(state, ranges) if ranges else None

    def begin(self, state: Mapping[str, Any]) -> None:
        if self._journal is not None:
            self._journal.begin(state)

    def receive(self, texts: Any, reported: Any) -> None:
        with journalled(self._journal, reported, self._run_of):
            self._written(texts)

    @property
    def _stays(self) -> bool:
        """Whether a later run can go on from what is here."""
        return not self._committed and self._journal is not None and self._journal.kept > 0

    def _staged(self, pieces: Iterable[Piece], where: str) -> dict[int, str]:
        """The files of ranges; raises if one is missing or is not as long as its task says."""
        files = _by_number(self._sizes(self._run))
        for piece in pieces:
            if piece.label or piece.number in self._kept:
                continue
            if files.get(piece.number, ("", -1))[1] != piece.size:
                raise RecollectError(
                    "a part that a worker wrote is missing or incomplete",
                    where=where,
                    why=f"part {piece.number} should have {piece.size:,} bytes",
                    hint="the driver and all workers must reach the same store under this URL",
                )
        return {number: name for number, (name, _) in files.items()} | self._kept


def _by_number(files: Mapping[str, int]) -> dict[int, tuple[str, int]]:
    return {int(part[1]): (name, size) for name, size in files.items() if (part := _PART.match(Path(name).name))}


def staging_stem(output: str) -> str:
    """How the folders of unfinished runs to an output begin."""
    return f".recollect-{hashlib.sha256(output.rstrip('/').encode()).hexdigest()[:8]}-"


def random_name() -> str:
    """A folder for this run alone."""
    return f".recollect-{uuid.uuid4().hex[:12]}"


def manifest_of(named: Sequence[tuple[str, Piece]]) -> bytes:
    """The manifest of a map in parts."""
    parts = [
        {
            "name": name,
            "bytes": piece.size,
            "keys": piece.keys,
            "first": piece.first.decode("utf-8", "surrogateescape"),
            "last": piece.last.decode("utf-8", "surrogateescape"),
        }
        for name, piece in named
    ]
    manifest = {"type": "MementoMap", "keys": sum(piece.keys for _, piece in named), "parts": parts}
    return json.dumps(manifest, indent=1).encode() + b"\n"


def write_by_spark(spark: Any, texts: Any, folder: str, *, mode: str) -> None:
    """Let the tasks of an RDD of texts write to a folder: part-NNNNN-... for partition N."""
    rows = texts.map(lambda text: (text[:-1],))
    frame = spark.createDataFrame(rows, "value binary", verifySchema=False)
    # A cast changes no byte, and the text writer writes them as they are; tests/engines has unusual ones.
    writer = frame.selectExpr("cast(value as string) as value").write.mode(mode).option("lineSep", "\n")
    writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    if not spark.conf.get(f"spark.hadoop.{_COMMITTER}", ""):
        # Each task puts its file in place, instead of the driver one after the other; the manifest is the commit.
        writer = writer.option(_COMMITTER, "2")
    writer.text(folder)
