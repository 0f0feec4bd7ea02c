"""Where a map is to be: how the text of ranges gets there, and how it is put together.

Hides which file systems the driver and the tasks share. A path belongs to the driver: on one machine tasks write beside
it, from a cluster their text is brought to the driver, as workers may see other folders. A URL belongs to Spark: tasks
write, and the driver joins a single file. Parts by URL are written once, into the final folder, under names that no
earlier map has; the manifest, written last, makes them the map. Until then the earlier map is whole.

Invariant: whatever fails, what was there before is still there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from recollect.errors import RecollectError, UsageError
from recollect.formats.containers import atomic_output, check_output
from recollect.formats.parts import MANIFEST
from recollect.spark.files import HadoopFiles, at_once, is_url

_PART = re.compile(r"part-(\d+)")
# What an earlier run, or Spark's own writers, left in a folder of parts.
_OF_PARTS = re.compile(r"part-\d+.*|manifest\.json|_SUCCESS|_temporary|\..+\.crc|\.manifest\.json-.*")
_COMPRESSED = (".gz", ".bgz", ".zst", ".zstd")
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

    def receive(self, texts: Any) -> None:
        """Run the job that makes an RDD of texts (whole lines; a partition for each range), and keep them."""

    def commit(self, pieces: Sequence[Piece]) -> None:
        """Make the pieces, in their order, the map."""

    def discard(self) -> None:
        """Remove all that is only of use while working."""


def target_of(spark: Any, output: str, *, as_parts: bool, temp_dir: str | None = None) -> Target:
    """The target of an output as people name it; `-` is stdout. Raises if it cannot be written, before all work."""
    if is_url(output):
        files = HadoopFiles(spark)
        names = files.in_folder(output)
        _check_folder(output, names, as_parts=as_parts)
        if output.startswith("file:"):
            _check_shared(spark, output)
        if as_parts:
            return PartsByUrl(files, output, names or ())
        return CompressedByUrl(spark, files, output) if output.endswith(_COMPRESSED) else FileByUrl(files, output)
    if as_parts:
        folder = Path(output.rstrip("/") or "/")
        if folder.is_file():
            raise UsageError("a file where a folder of parts is to be", where=output)
        _check_folder(output, [one.name for one in folder.iterdir()] if folder.is_dir() else None, as_parts=True)
    else:
        check_output(output)
    return LocalTarget(spark, output, as_parts, temp_dir)


def _check_folder(output: str, names: Iterable[str] | None, *, as_parts: bool) -> None:
    """Refuse to put a map in the place of a folder that is more than an earlier map in parts."""
    if names is None:
        return
    if not as_parts:
        raise UsageError("a folder where a file is expected", where=output, hint="add --parts, or name a file in it")
    others = sorted(name for name in names if not _OF_PARTS.fullmatch(name))
    if others:
        raise UsageError(
            "a folder with more than a map in it would be replaced",
            where=output,
            why=f"{others[0]} is not a part of a map",
            hint="name a folder that is not there yet, or an earlier map in parts",
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


def _named(pieces: Iterable[Piece]) -> Iterator[tuple[str, Piece]]:
    """Names in the order of bytes, for a folder that is new: the header is part 0, and the first range part 1."""
    for piece in pieces:
        number = 0 if piece.label == "header" else piece.number + 1
        yield f"part-{number:05d}{'-seam' if piece.label == 'seam' else ''}.ukvs", piece


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


def _write_by_spark(spark: Any, texts: Any, folder: str, *, mode: str) -> None:
    """Let the tasks of an RDD of texts write to a folder: part-NNNNN-... for partition N."""
    rows = texts.map(lambda text: (text[:-1],))
    frame = spark.createDataFrame(rows, "value binary", verifySchema=False)
    # A cast changes no byte, and the text writer writes them as they are; tests/engines has nasty ones.
    writer = frame.selectExpr("cast(value as string) as value").write.mode(mode).option("lineSep", "\n")
    writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    if not spark.conf.get(f"spark.hadoop.{_COMMITTER}", ""):
        # Each task puts its file in place, instead of the driver one after the other; the manifest is the commit.
        writer = writer.option(_COMMITTER, "2")
    writer.text(folder)


def _staged(found: Iterable[tuple[str, int]], pieces: Iterable[Piece], where: str) -> dict[int, str]:
    """The files that tasks wrote, by range; raises if one is missing or is not as long as its task says."""
    files = {int(part[1]): (name, size) for name, size in found if (part := _PART.match(Path(name).name))}
    for piece in pieces:
        if not piece.label and files.get(piece.number, ("", -1))[1] != piece.size:
            raise RecollectError(
                "a part that a worker wrote is missing or not whole",
                where=where,
                why=f"part {piece.number} should have {piece.size:,} bytes",
                hint="the driver and all workers must reach the same store under this URL",
            )
    return {number: name for number, (name, _) in files.items()}


class LocalTarget:
    """A file or folder of the driver. What is there stays until all is done."""

    def __init__(self, spark: Any, output: str, as_parts: bool, temp_dir: str | None = None) -> None:
        self._spark, self._output, self._as_parts = spark, output, as_parts
        self._shared = one_machine(spark)
        name = f".recollect-{uuid.uuid4().hex[:12]}"
        where = Path(temp_dir or tempfile.gettempdir()) if output == "-" else Path(output.rstrip("/")).absolute().parent
        if output != "-" and not where.is_dir():
            raise RecollectError("no such folder", where=str(where), hint=f"mkdir -p {where}")
        self._folder = where / name
        self._staging = self._folder / "staging"
        (self._folder / "parts").mkdir(parents=True)

    def receive(self, texts: Any) -> None:
        if self._shared:
            _write_by_spark(self._spark, texts, self._staging.as_uri(), mode="errorifexists")
            return
        self._staging.mkdir()
        for number, text in _brought(texts):
            with (self._staging / f"part-{number:05d}").open("ab") as file:
                file.write(text)

    def text(self, pieces: Sequence[Piece]) -> bytes:
        """The map in memory."""
        return b"".join(chunk for piece in self._files(pieces) for chunk in piece)

    def commit(self, pieces: Sequence[Piece]) -> None:
        if self._as_parts:
            self._commit_parts(pieces)
            return
        with atomic_output(self._output) as out:
            for piece in self._files(pieces):
                for chunk in piece:
                    out.write(chunk)

    def _files(self, pieces: Sequence[Piece]) -> Iterator[Iterator[bytes]]:
        staged = self._found(pieces)
        for piece in pieces:
            yield iter((piece.text,)) if piece.label else _chunks(Path(staged[piece.number]))

    def _found(self, pieces: Sequence[Piece]) -> dict[int, str]:
        found = ((str(one), one.stat().st_size) for one in self._staging.glob("part-*"))
        return _staged(found, pieces, str(self._folder))

    def _commit_parts(self, pieces: Sequence[Piece]) -> None:
        staged, made = self._found(pieces), self._folder / "parts"
        named = list(_named(pieces))
        for name, piece in named:
            if piece.label:
                (made / name).write_bytes(piece.text)
            else:
                Path(staged[piece.number]).rename(made / name)
        (made / MANIFEST).write_bytes(manifest_of(named))
        target, old = Path(self._output.rstrip("/")), self._folder / "old"
        try:
            if target.is_dir():
                # Renaming cannot replace a folder that has something in it.
                target.rename(old)
            made.rename(target)
        except BaseException:
            if old.is_dir():
                old.rename(target)
            raise

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _brought(texts: Any) -> Iterator[tuple[int, bytes]]:
    """The texts of all ranges, brought to the driver: computed by all workers at once, then fetched range by range."""
    from pyspark import StorageLevel

    numbered = texts.mapPartitionsWithIndex(_numbered).persist(StorageLevel.DISK_ONLY)
    try:
        numbered._jrdd.count()
        yield from numbered.toLocalIterator(prefetchPartitions=True)
    finally:
        numbered.unpersist()


def _numbered(number: int, texts: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, text) for text in texts)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk


class CompressedByUrl:
    """A compressed file behind a URL: made on the driver, whose writer makes blocks that can be searched."""

    def __init__(self, spark: Any, files: HadoopFiles, output: str) -> None:
        self._files, self._output = files, output
        self._folder = tempfile.mkdtemp(prefix="recollect-")
        self._made = str(Path(self._folder) / f"map{Path(output).suffix}")
        self._local = LocalTarget(spark, self._made, as_parts=False)

    def receive(self, texts: Any) -> None:
        self._local.receive(texts)

    def commit(self, pieces: Sequence[Piece]) -> None:
        self._local.commit(pieces)
        self._files.upload(self._made, self._output)

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class FileByUrl:
    """A plain file behind a URL, joined from what tasks wrote beside it."""

    def __init__(self, files: HadoopFiles, output: str) -> None:
        self._files, self._output = files, output
        self._staging = f"{output.rpartition('/')[0]}/.recollect-{uuid.uuid4().hex[:12]}"

    def receive(self, texts: Any) -> None:
        _write_by_spark(self._files.spark, texts, self._staging, mode="errorifexists")

    def commit(self, pieces: Sequence[Piece]) -> None:
        found = self._files.in_folder(self._staging) or {}
        staged = _staged(found.items(), pieces, self._output)
        names = []
        for number, piece in enumerate(pieces):
            if piece.label:
                name = f"{piece.label}-{number}"
                self._files.write(f"{self._staging}/{name}", piece.text)
            else:
                name = staged[piece.number]
            names.append(f"{self._staging}/{name}")
        self._files.join(names, self._output)

    def discard(self) -> None:
        self._files.delete(self._staging)


class PartsByUrl:
    """A folder of parts behind a URL, written once, in place. Names keep the order of the map: what the driver writes
    before range N is part-N--..., and Spark calls the lines of the range part-N-..."""

    def __init__(self, files: HadoopFiles, output: str, before: Iterable[str]) -> None:
        self._files, self._folder = files, output.rstrip("/")
        self._before = frozenset(before)
        self._written: tuple[str, ...] = ()
        self._done = False

    def receive(self, texts: Any) -> None:
        _write_by_spark(self._files.spark, texts, self._folder, mode="append")

    def commit(self, pieces: Sequence[Piece]) -> None:
        found = self._new()
        staged = _staged(found.items(), pieces, self._folder)
        mark = uuid.uuid4().hex[:12]
        named = [
            (f"part-{piece.number:05d}--{mark}-{piece.label}.txt" if piece.label else staged[piece.number], piece)
            for piece in pieces
        ]
        for name, piece in named:
            if piece.label:
                self._files.write(f"{self._folder}/{name}", piece.text)
        self._files.write(f"{self._folder}/{MANIFEST}", manifest_of(named))
        self._done = True
        self._remove(({*self._before, *found} - {name for name, _ in named}) - {MANIFEST})

    def _new(self) -> dict[str, int]:
        found = self._files.in_folder(self._folder) or {}
        return {name: size for name, size in found.items() if name not in self._before}

    def discard(self) -> None:
        if not self._done:
            self._remove(self._new())

    def _remove(self, names: Iterable[str]) -> None:
        # The checksums of Hadoop's local files go with them.
        some = [name for name in names if _OF_PARTS.fullmatch(name) and not name.endswith(".crc")]
        for _ in at_once(lambda name: self._files.delete(f"{self._folder}/{name}"), some):
            pass
