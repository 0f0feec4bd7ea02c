"""A map that comes to a file or folder of the driver."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from recollect.engines.spark.resume import Journal, LocalStore
from recollect.engines.spark.staging import Piece, Staging, manifest_of, random_name, staging_stem, write_by_spark
from recollect.errors import RecollectError
from recollect.formats.containers import atomic_output
from recollect.formats.parts import MANIFEST


class LocalTarget(Staging):
    """A file or folder of the driver. What is there stays until all is done.

    Parts are written to `.recollect-OUTPUT-IDENTITY/RUN` beside it. A lock says whether the process that uses such a
    folder still runs: if so, this run uses a folder of its own; if not, it goes on from there.
    """

    def __init__(
        self, spark: Any, output: str, *, as_parts: bool, shared: bool, temp_dir: str | None, identity: str
    ) -> None:
        self._spark, self._output, self._as_parts, self._shared = spark, output, as_parts, shared
        self._target = Path(output.rstrip("/")).absolute()
        where = Path(temp_dir or tempfile.gettempdir()) if output == "-" else self._target.parent
        if output != "-" and not where.is_dir():
            raise RecollectError("no such folder", where=str(where), hint=f"mkdir -p {where}")
        self._lock: int | None = None
        self._folder = where / random_name()
        if identity and output != "-":
            self._take(where, f"{staging_stem(str(self._target))}{identity}")
        super().__init__(None if self._lock is None else Journal(LocalStore(self._folder / "journal")))
        self._folder.mkdir(exist_ok=True)

    def _take(self, where: Path, name: str) -> None:
        """Use the folder of this work, and remove those of other work for this output, unless they are in use."""
        (where / name).mkdir(exist_ok=True)
        for folder in where.glob(f"{staging_stem(str(self._target))}*"):
            lock = _locked(folder)
            if lock is None:
                continue
            self._restore(folder / "old")
            if folder.name == name:
                self._lock, self._folder = lock, folder
            else:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)

    def _restore(self, old: Path) -> None:
        """Put back a map that a killed run had moved away, if its new one did not take the place."""
        if old.is_dir() and not self._target.exists():
            old.rename(self._target)
        shutil.rmtree(old, ignore_errors=True)

    def _written(self, texts: Any) -> None:
        staging = self._folder / self._run
        if self._shared:
            write_by_spark(self._spark, texts, staging.as_uri(), mode="errorifexists")
            return
        staging.mkdir()
        for number, text in _brought(texts):
            with (staging / f"part-{number:05d}").open("ab") as file:
                file.write(text)

    def _sizes(self, run: str) -> dict[str, int]:
        return {str(one): one.stat().st_size for one in (self._folder / run).glob("part-*")}

    def text(self, pieces: Sequence[Piece]) -> bytes:
        """The map in memory."""
        return b"".join(chunk for piece in self._files(pieces) for chunk in piece)

    def commit(self, pieces: Sequence[Piece]) -> None:
        if self._as_parts:
            self._commit_parts(pieces)
        else:
            with atomic_output(self._output) as out:
                for piece in self._files(pieces):
                    for chunk in piece:
                        out.write(chunk)
        self._committed = True

    def _files(self, pieces: Sequence[Piece]) -> Iterator[Iterator[bytes]]:
        staged = self._staged(pieces, str(self._folder))
        for piece in pieces:
            yield iter((piece.text,)) if piece.label else _chunks(Path(staged[piece.number]))

    def _commit_parts(self, pieces: Sequence[Piece]) -> None:
        staged, made = self._staged(pieces, str(self._folder)), self._folder / "parts"
        shutil.rmtree(made, ignore_errors=True)  # of a run that was killed here
        made.mkdir()
        named = list(_named(pieces))
        for name, piece in named:
            if piece.label:
                (made / name).write_bytes(piece.text)
            else:
                _put(Path(staged[piece.number]), made / name)
        (made / MANIFEST).write_bytes(manifest_of(named))
        target, old = self._target, self._folder / "old"
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
        if not self._stays:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path) -> int | None:
    """A lock on a folder, which ends with this process; None if another process has it."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
        else:
            return file
    return None


def _put(part: Path, place: Path) -> None:
    """A second name for a part, so that it is still where the journal says if this run is killed now."""
    try:
        place.hardlink_to(part)
    except OSError:  # a file system without links
        part.rename(place)


def _named(pieces: Iterable[Piece]) -> Iterator[tuple[str, Piece]]:
    """Names in the order of bytes, for a folder that is new: the header is part 0, and the first range part 1."""
    for piece in pieces:
        number = 0 if piece.label == "header" else piece.number + 1
        yield f"part-{number:05d}{'-seam' if piece.label == 'seam' else ''}.ukvs", piece


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
