"""Whether recovered pages carry a server's own files: a hint to a person, who restores them with `recollect reclaim`.

Hides: the mark of a block. Signatures are not checked here: nothing is restored from what is found. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_BLOCK = re.compile(rb"recollect-block/1\s{1,9}class=([a-z][a-z0-9-]{0,31})\s")
_OWN = re.compile(r"manifest|.*-(?:changes|chunks)")  # classes that belong to others


@dataclass(frozen=True, slots=True)
class ProtectedFiles:
    """How many pages carry blocks, and of which classes of files."""

    pages: int
    classes: tuple[str, ...]


def protected_files(pages: Iterable[bytes]) -> ProtectedFiles | None:
    """What these pages carry; None if nothing."""
    carrying, classes = 0, set[str]()
    for page in pages:
        text = page.replace(b"\0", b"") if b"\0" in page[:4096] else page  # UTF-16
        names = {match[1].decode() for match in _BLOCK.finditer(text)}
        carrying += bool(names)
        classes |= {name for name in names if not _OWN.fullmatch(name)}
    return ProtectedFiles(carrying, tuple(sorted(classes))) if carrying else None
