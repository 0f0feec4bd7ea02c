"""The list of what a site carries: classes, versions, files. In the root page and the pages near it.

Hides: its form, JSON in xz. File names of encrypted classes are not listed: they are as private as their contents.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.protection.block import MANIFEST, Block, Version
from recollect.protection.code import Code
from recollect.protection.keys import SigningKey

MAX_BYTES = 32_768
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One class: its version, on how many pages, and its files as (name, size), unless they are private."""

    version: Version
    pages: int
    files: tuple[tuple[str, int], ...]
    total_bytes: int
    encrypted: bool


def make(entries: Sequence[Entry], key: SigningKey, most: int = MAX_BYTES) -> Block | None:
    """The manifest as a block of its own class, without files if it had more bytes than `most`; None if even then."""
    payload = _payload(entries, with_files=True)
    if len(payload) > most:
        payload = _payload(entries, with_files=False)
    if len(payload) > max(most, 0):
        return None
    at = max(entry.version.at for entry in entries)
    content = key.digest(payload).hex()[:16]
    digest = hashlib.sha256(payload).hexdigest()
    version = Version(MANIFEST, at, content, digest, len(payload), Code.GF256, 1, key.public)
    return Block(version, 0, max(entry.pages for entry in entries), payload)


def _payload(entries: Sequence[Entry], *, with_files: bool) -> bytes:
    value = {
        "format": FORMAT,
        "classes": [
            {
                "class": entry.version.name,
                "version": entry.version.at,
                "object": entry.version.object,
                "size": entry.version.size,
                "code": entry.version.code,
                "need": entry.version.need,
                "pages": entry.pages,
                "encrypted": entry.encrypted,
                "bytes": entry.total_bytes,
                "file_count": len(entry.files),
                **({"files": [list(file) for file in entry.files]} if with_files and not entry.encrypted else {}),
            }
            for entry in entries
        ],
    }
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=6)
