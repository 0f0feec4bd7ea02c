"""What `apply -o` wrote into its folder, so that it never overwrites what others wrote or changed.

Hides: the file with the digests, and how a file is put in place.
"""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

from recollect.errors import UsageError
from recollect.formats.temporaries import replacing
from recollect.protection.selection import RECORD, RECORD_PART

EARLIER = ".recollect/protect.json"  # the record of earlier versions, inside of the folder, where servers show it


class Record:
    """What `apply -o` wrote into its folder, now and earlier: SHA-256 by name, in a file beside the folder, because
    everything inside of it is served.

    Each file is noted in a second file before it is written, so that after an interruption the next run knows its own.
    """

    def __init__(self, folder: Path) -> None:
        place = folder.resolve()
        self._path = place.with_name(f".{place.name}{RECORD}")
        self._part = place.with_name(f".{place.name}{RECORD_PART}")
        self.folder = folder
        self._old: dict[str, set[str]] = {}
        self._new: dict[str, str] = {}
        known = next((path for path in (self._path, folder / EARLIER) if path.exists()), None)
        if known is not None:
            self._old = {name: {digest} for name, digest in json.loads(known.read_text()).items()}
        elif not self._part.exists() and folder.is_dir() and any(folder.iterdir()):
            raise UsageError("the folder is not empty", where=str(folder), hint="choose a new folder with -o")
        if self._part.exists():
            for line in self._part.read_text(errors="replace").splitlines():
                digest, _, name = line.partition(" ")
                self._old.setdefault(_unquoted(name), set()).add(digest)

    def note(self, name: str, content: bytes) -> None:
        """Note a file that is about to be written; raises UsageError if one is there that is not as we wrote it."""
        path = self.folder / name
        digest = hashlib.sha256(content).hexdigest()
        self._new[name] = digest
        if path.is_file():
            there = hashlib.sha256(path.read_bytes()).hexdigest()
            if there == digest:
                return
            if there not in self._old.get(name, ()):
                raise UsageError(
                    "the file was changed since it was written",
                    where=str(path),
                    hint="move it away, or choose a new folder",
                )
        self._part.parent.mkdir(parents=True, exist_ok=True)
        with self._part.open("a") as out:
            out.write(f"{digest} {_quoted(name)}\n")

    def write(self) -> int:
        """Take away what is not part of the site any more, and remember what is."""
        gone = 0
        for name in sorted(set(self._old) - set(self._new)):
            path = self.folder / name
            if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() in self._old[name]:
                path.unlink()
                gone += 1
        replace_file(self._path, json.dumps(self._new, indent=0, sort_keys=True).encode(), self._path)
        self._part.unlink(missing_ok=True)
        earlier = self.folder / EARLIER
        if earlier.is_file():
            earlier.unlink()
            if not any(earlier.parent.iterdir()):
                earlier.parent.rmdir()
        return gone


def _quoted(name: str) -> str:
    return json.dumps(name)  # one line, whatever is in the name


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # the line was cut
        return ""


def replace_file(path: Path, content: bytes, like: Path) -> None:
    """Write a file beside and rename it into place, with the mode of another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, mode=stat.S_IMODE(like.stat().st_mode) if like.exists() else None) as file:
        file.write(content)
