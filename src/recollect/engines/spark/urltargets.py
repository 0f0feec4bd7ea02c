"""Maps at URLs: tasks write, and the driver joins a single file or writes the manifest of many."""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.engines.plan import Range
from recollect.engines.spark.files import HadoopFiles, at_once
from recollect.engines.spark.resume import Journal, UrlStore
from recollect.engines.spark.staging import Piece, Staging, manifest_of, random_name, staging_stem, write_by_spark
from recollect.formats.containers import atomic_output
from recollect.formats.parts import MANIFEST

# What an earlier run, or Spark's own writers, left in a folder of parts.
OF_PARTS = re.compile(
    r"part-\d.*|manifest\.json|_SUCCESS|_temporary|_unfinished-[0-9a-f]+|\..+\.crc|\.manifest\.json-.*"
)
_RUN = re.compile(r"part-(\d+)-([0-9a-f-]{36})-c\d.*")


class FileByUrl(Staging):
    """A plain file at a URL, joined from what tasks wrote beside it."""

    def __init__(self, files: HadoopFiles, output: str, identity: str) -> None:
        self._files, self._output = files, output
        self._parent = output.rpartition("/")[0]
        self._stem = staging_stem(output)
        self._staging = f"{self._parent}/{self._stem + identity if identity else random_name()}"
        super().__init__(Journal(UrlStore(files, f"{self._staging}/journal")) if identity else None)

    def _written(self, texts: Any) -> None:
        write_by_spark(self._files.spark, texts, f"{self._staging}/{self._run}", mode="errorifexists")

    def _sizes(self, run: str) -> dict[str, int]:
        folder = f"{self._staging}/{run}"
        return {f"{folder}/{name}": size for name, size in (self._files.in_folder(folder) or {}).items()}

    def commit(self, pieces: Sequence[Piece]) -> None:
        staged = self._staged(pieces, self._output)
        names = []
        for number, piece in enumerate(pieces):
            name = f"{self._staging}/{piece.label}-{number}" if piece.label else staged[piece.number]
            if piece.label:
                self._files.write(name, piece.text)
            names.append(name)
        self._join(names)
        self._committed = True

    def _join(self, names: Sequence[str]) -> None:
        self._files.join(names, self._output)

    def discard(self) -> None:
        if self._stays:
            return
        self._files.delete(self._staging)
        if self._journal is not None:
            # What runs of other work left on their way to this output.
            for name in self._files.in_folder(self._parent) or ():
                if name.startswith(self._stem):
                    self._files.delete(f"{self._parent}/{name}")


class CompressedByUrl(FileByUrl):
    """A compressed file at a URL: made on the driver, whose writer makes blocks that can be searched."""

    def _join(self, names: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
            made, part = Path(folder) / f"map{Path(self._output).suffix}", Path(folder) / "part"
            with atomic_output(str(made)) as out:
                for name in names:
                    self._files.download(name, str(part))
                    with part.open("rb") as file:
                        while chunk := file.read(1 << 20):
                            out.write(chunk)
            self._files.upload(str(made), self._output)


class PartsByUrl(Staging):
    """A folder of parts at a URL, written once, in place. Names keep the order of the map: what the driver writes
    before range N is part-N--..., and Spark calls the lines of the range part-N-RUN-..."""

    def __init__(self, files: HadoopFiles, output: str, before: Iterable[str], identity: str) -> None:
        self._files, self._folder = files, output.rstrip("/")
        self._before = frozenset(before)
        self._store = f"{self._folder}/_unfinished-{identity}"
        super().__init__(Journal(UrlStore(files, self._store)) if identity else None)
        self._run = ""

    def _written(self, texts: Any) -> None:
        write_by_spark(self._files.spark, texts, self._folder, mode="append")

    def _sizes(self, run: str) -> dict[str, int]:
        """The parts of a run, by the name that Spark gave it; of this run all that are new."""
        found = self._files.in_folder(self._folder) or {}
        if run:
            return {name: size for name, size in found.items() if (part := _RUN.fullmatch(name)) and part[2] == run}
        return {name: size for name, size in found.items() if name not in self._before}

    def _run_of(self, ranges: Mapping[int, Range]) -> str:
        """The name of the run whose parts these are. Another run that writes here at the same time may have a part of
        the same range and size: then this run has no name, and no other will go on from it."""
        if not self._run and any(one.size for one in ranges.values()):
            wanted = {(number, one.size) for number, one in ranges.items() if one.size}
            runs: dict[str, set[tuple[int, int]]] = {}
            for name, size in self._sizes("").items():
                if part := _RUN.fullmatch(name):
                    runs.setdefault(part[2], set()).add((int(part[1]), size))
            names = [name for name, there in runs.items() if wanted <= there]
            self._run = names[0] if len(names) == 1 else ""
        return self._run

    def commit(self, pieces: Sequence[Piece]) -> None:
        staged = self._staged(pieces, self._folder)
        mark = uuid.uuid4().hex[:12]
        named = [
            (f"part-{piece.number:05d}--{mark}-{piece.label}.txt" if piece.label else staged[piece.number], piece)
            for piece in pieces
        ]
        for name, piece in named:
            if piece.label:
                self._files.write(f"{self._folder}/{name}", piece.text)
        self._files.write(f"{self._folder}/{MANIFEST}", manifest_of(named))
        self._committed = True
        found = self._files.in_folder(self._folder) or {}
        self._remove({*self._before, *found} - {name for name, _ in named} - {MANIFEST})

    def discard(self) -> None:
        if not self._committed and not self._stays:
            self._remove(self._sizes(""))

    def _remove(self, names: Iterable[str]) -> None:
        # The checksums of Hadoop's local files go with them.
        some = [name for name in names if OF_PARTS.fullmatch(name) and not name.endswith(".crc")]
        for _ in at_once(lambda name: self._files.delete(f"{self._folder}/{name}"), some):
            pass
