"""What a person downloads: one zip and one tar.gz of a recovered folder, written once, with checksums.

Hides: archive formats. Invariants: only regular files below the folder are packed, under their relative names (which
are safe by construction, and checked again); order and bytes depend on the content alone; a file appears under its
final name when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from recollect.errors import RecollectError
from recollect.formats.containers import atomic_output
from recollect.recovery.portable import JOURNAL, PORTABLE
from recollect.recovery.store import FOLDER

ZIP, TAR = "result.zip", "result.tar.gz"
WACZ, REPORT, STATE = "result.wacz", "report.html", "state.tar"
DOWNLOADS = (ZIP, TAR, WACZ, REPORT)
MEDIA_TYPES = {
    ZIP: "application/zip",
    TAR: "application/gzip",
    WACZ: "application/wacz",
    REPORT: "text/html; charset=utf-8",
}
_PIECE = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first day a zip can name: the bytes do not depend on when they were packed
_STORED = frozenset((".gz", ".wacz", ".zip", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp4", ".mp3", ".woff2"))
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Packed:
    """A file for download."""

    name: str
    size: int
    sha256: str


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """(relative name, path) of what is packed, in order; links and the recovery's own store are left out, but for a
    copy of the journal that was written for the download: with it the unzipped folder can be reviewed."""
    if (copy := folder / FOLDER / PORTABLE).is_file():
        yield f"{FOLDER}/{JOURNAL}", copy
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (name == FOLDER and Path(where) == folder))
        for name in sorted(names):
            path = Path(where) / name
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            relative = path.relative_to(folder).as_posix()
            parts = PurePosixPath(relative).parts
            if relative.startswith("/") or ".." in parts or "\\" in relative or ":" in parts[0]:
                raise RecollectError("unsafe name in a recovered folder", where=relative[:200])
            yield relative, path


def write_zip(folder: Path, target: Path, progress: Progress = lambda _bytes: None) -> Packed:
    """The folder as a zip; ZIP64 where it is needed."""
    with atomic_output(target) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, path in files_of(folder):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            compressed = path.suffix.lower() in _STORED
            entry.compress_type = zipfile.ZIP_STORED if compressed else zipfile.ZIP_DEFLATED
            size = path.stat().st_size
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=size >= 1 << 31) as sink:
                while piece := source.read(_PIECE):
                    sink.write(piece)
                    progress(len(piece))
    return packed(target)


def write_tar(folder: Path, target: Path, progress: Progress = lambda _bytes: None) -> Packed:
    """The folder as a gzipped tar."""
    with (
        atomic_output(target) as file,  # which compresses what ends in .gz
        tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in files_of(folder):
            entry = tarfile.TarInfo(name)
            entry.size = path.stat().st_size
            entry.mode = 0o644
            with path.open("rb") as source:
                archive.addfile(entry, source)
            progress(entry.size)
    return packed(target)


def write_state(folder: Path, target: Path) -> Packed:
    """The recovery's own store, so that another worker can go on with it, or a later job use it."""
    with atomic_output(target) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for where, folders, names in os.walk(folder / FOLDER):
            folders[:] = sorted(name for name in folders if name != "tmp")
            for name in sorted(names):
                path = Path(where) / name
                if name != "lock" and path.is_file():
                    archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
    return packed(target)


def read_state(source: Path, folder: Path) -> None:
    """Unpack a store; names that lead anywhere else are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(source) as archive:
        for entry in archive:
            parts = PurePosixPath(entry.name).parts
            if not entry.isreg() or not parts or parts[0] != FOLDER or ".." in parts:
                raise RecollectError("not the store of a recovery", where=str(source), why=entry.name[:200])
            archive.extract(entry, folder, filter="data")


def packed(path: Path) -> Packed:
    """Size and checksum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return Packed(path.name, path.stat().st_size, digest.hexdigest())
