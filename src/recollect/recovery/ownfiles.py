"""Files below an output folder: those that Recollect wrote are replaced, those of users never.

Hides: how they are distinguished. What a recovery wrote is recorded with its SHA-256; a file with other bytes, a link
or a folder in its place, or one without a record, belongs to the user. It stays, and the new version is written next to
it (`index.recollect-new.html`). Invariants: files appear whole or not at all; no symbolic link is followed out of the
folder; what an earlier run wrote and this one did not is deleted, unless it was changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from recollect.errors import RecollectError
from recollect.formats.temporaries import create_beside
from recollect.recovery.store import Store

_MARK = ".recollect-new"


class OwnFiles:
    """What one run writes. Names are relative to the folder, with `/`; an absolute name is a place of the user's."""

    def __init__(self, store: Store, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else store.out_dir
        self._store = store
        self._before = store.written()
        self._now: dict[str, str] = {}
        self.kept: dict[str, str] = {}  # a person's file -> the new version beside it

    @property
    def written(self) -> frozenset[str]:
        """What this run has written so far."""
        return frozenset(self._now) | frozenset(self.kept)

    def write(self, name: str, body: bytes) -> str:
        """Write a file; returns the name it got."""
        with self.open(name) as out:
            out.write(body)
        return self.kept.get(name, name)

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write, in its place when the block ends without an error."""
        path = self.folder / name
        self._make_folders(path.parent)
        handle, temporary = create_beside(path)
        try:
            with os.fdopen(handle, "w+b") as out:
                yield out
                out.flush()
                out.seek(0)
                digest = hashlib.file_digest(out, "sha256").hexdigest()
                self._place(name, temporary, digest)
        finally:
            temporary.unlink(missing_ok=True)

    def _place(self, name: str, temporary: Path, digest: str) -> None:
        target = name
        if not self._is_ours(name):
            if _digest(self.folder / name) == digest:
                return  # a person has the very same file
            target = next(other for other in _beside(name) if self._is_ours(other))
            self.kept[name] = target
        temporary.replace(self.folder / target)
        self._now[target] = digest

    def _is_ours(self, name: str) -> bool:
        """May we write here? There is nothing, or what we wrote the last time."""
        path = self.folder / name
        if not os.path.lexists(path):
            return True
        known = self._now.get(name, self._before.get(name))
        if known is None or path.is_symlink() or not path.is_file():
            return False
        return known in ("", _digest(path))  # "": an older version wrote it, and recorded no digest

    def _make_folders(self, folder: Path) -> None:
        if not folder.is_relative_to(self.folder):
            return  # named by the user
        # Names are safe by construction; a symbolic link in the tree must not lead out of it either.
        root = self.folder.resolve()
        for place in [*reversed(folder.parents), folder]:
            if place.is_relative_to(self.folder) and place.is_symlink() and not place.resolve().is_relative_to(root):
                raise RecollectError(
                    "a folder of the site leads out of it",
                    where=str(place),
                    why="it is a symbolic link",
                    hint="remove the link, or recover into another folder with -o",
                )
            if place.is_relative_to(self.folder) and place != self.folder and place.is_file():
                raise RecollectError(
                    "a file is in the place of a folder",
                    where=str(place),
                    hint="move it away, or recover into another folder with -o",
                )
        folder.mkdir(parents=True, exist_ok=True)

    def finish(self) -> None:
        """Take away what an earlier run wrote and this one did not; record what is ours now."""
        for name in sorted(self._before.keys() - self._now.keys(), reverse=True):
            if Path(name).is_absolute() or not self._is_ours(name) or not self._inside(name):
                continue
            (self.folder / name).unlink(missing_ok=True)
            for folder in (self.folder / name).parents:
                if folder == self.folder:
                    break
                with contextlib.suppress(OSError):  # not empty: it still holds something
                    folder.rmdir()
        if self._store.writable:
            self._store.set_written(self._now)

    def _inside(self, name: str) -> bool:
        return (self.folder / name).parent.resolve().is_relative_to(self.folder.resolve())


def _beside(name: str) -> Iterator[str]:
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.partition(".")
    for number in range(1, 1_000):
        mark = _MARK if number == 1 else f"{_MARK}-{number}"
        yield f"{folder}{slash}{stem}{mark}{dot}{ending}"
    raise RecollectError("no free name beside a file", where=name)


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
