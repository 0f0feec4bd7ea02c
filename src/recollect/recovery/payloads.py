"""Payloads of a store: files named by their SHA-256, and bytes on their way into them.

Hides: hashing as they come. Invariant: a file under `payloads/` is complete, because it is renamed into its place.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload in the store."""

    sha1: str  # "sha1:" and 32 letters of base32, as indexes write it
    sha256: str
    length: int
    path: Path


class PayloadWriter:
    """Bytes on their way into the store: hashed as they come, renamed into place by `keep`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "tmp" / f"{os.getpid()}-{id(self):x}"
        self._file = self._path.open("w+b")
        self._sha1 = hashlib.sha1(usedforsecurity=False)
        self._sha256 = hashlib.sha256()
        self.length = 0

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._sha1.update(chunk)
        self._sha256.update(chunk)
        self.length += len(chunk)

    def restart(self) -> None:
        """Forget what was written: another try."""
        self._file.seek(0)
        self._file.truncate()
        self._sha1 = hashlib.sha1(usedforsecurity=False)
        self._sha256 = hashlib.sha256()
        self.length = 0

    def replace(self, content: bytes) -> None:
        """Other bytes instead of those that came."""
        self.restart()
        self.write(content)

    @property
    def sha1(self) -> str:
        """As indexes write it: `sha1:` and base32."""
        return "sha1:" + base64.b32encode(self.sha1_bytes).decode("ascii")

    @property
    def sha1_bytes(self) -> bytes:
        return self._sha1.digest()

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def peek(self, limit: int | None = None) -> bytes:
        """The bytes written so far, or the first `limit` of them."""
        self._file.seek(0)
        data = self._file.read() if limit is None else self._file.read(limit)
        self._file.seek(0, os.SEEK_END)
        return data

    def keep(self) -> Payload:
        """Move the bytes into the store, under their name."""
        self._file.close()
        name = self.sha256
        target = self._folder / "payloads" / name[:2] / name[2:]
        target.parent.mkdir(exist_ok=True)
        self._path.replace(target)
        return Payload(self.sha1, name, self.length, target)

    def discard(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)
