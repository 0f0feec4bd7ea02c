"""A map in ordered parts: a folder whose files, one after the other, are one map.

    manifest.json        {"parts": [{"name": "part-00000.ukvs", ...}, ...]} names the parts in their order
    part-00000.ukvs      begins with the header; the others need none

Hides: where one part ends and the next begins. Without a manifest the files `part-*.ukvs` (or `.gz`, `.zst`) in the
order of their names are the parts.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from recollect.errors import FormatError, RecollectError

MANIFEST = "manifest.json"
_SUFFIXES = (".ukvs", ".gz", ".zst", ".bgz")


def is_parted(folder: Path) -> bool:
    """Whether a folder is a map in parts."""
    return folder.is_dir() and ((folder / MANIFEST).is_file() or next(folder.glob("part-*.ukvs*"), None) is not None)


def part_names(folder: Path) -> list[Path]:
    """The parts of a map in their order; empty if the folder has none."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return sorted(one for one in folder.glob("part-*") if one.suffix in _SUFFIXES)
    try:
        listed = json.loads(manifest.read_bytes())["parts"]
        names = [one if isinstance(one, str) else one.get("path") or one.get("file") or one["name"] for one in listed]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError("a manifest that names no parts", where=str(manifest), why=repr(error)) from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise RecollectError("a part of a map is missing", where=str(folder / missing[0]), why=f"named in {manifest}")
    return [folder / name for name in names]


def parted_size(folder: Path) -> int:
    """Bytes of all parts as they are on disk."""
    return sum(part.stat().st_size for part in part_names(folder))


class JoinedParts(io.RawIOBase):
    """The text of all parts as one file: the headers of the first part only, and every part ended by a newline."""

    def __init__(self, folder: Path) -> None:
        self._waiting = part_names(folder)
        if not self._waiting:
            raise RecollectError("no map in this folder", where=str(folder), hint="expected part-*.ukvs and a manifest")
        self._part: Any = None
        self._ahead = b""
        self._last = b""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; nothing at the end of the last part."""
        while True:
            if self._part is None:
                if not self._waiting:
                    return b""
                self._open()
            piece: bytes = self._ahead[:size] if size >= 0 else self._ahead
            self._ahead = self._ahead[len(piece) :]
            piece = piece or self._part.read(size)
            if piece:
                self._last = piece[-1:]
                return piece
            self._part.close()
            self._part = None
            if self._waiting and self._last not in (b"", b"\n"):
                self._last = b"\n"
                return b"\n"

    def _open(self) -> None:
        """Open the next part, after its headers if it is not the first that has any text."""
        from recollect.formats.containers import open_input

        self._part = open_input(self._waiting.pop(0))
        if self._last:
            while (line := self._part.readline())[:1] == b"!":
                pass
            self._ahead = line

    def close(self) -> None:
        if self._part is not None:
            self._part.close()
        super().close()
