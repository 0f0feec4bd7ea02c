"""Index files and whether they changed: identity, size, time, and a digest of their edges.

Hides: how a file is known again without reading it. The digest covers the first and the last 64 KiB and sixteen blocks
between them, so that a file of any size costs the same. A file that only grew at its end is distinguished from one that
was replaced: then only its new end has to be read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from recollect.errors import FormatError, UsageError
from recollect.formats.containers import kind_of
from recollect.formats.detect import Kind, Source, find_sources
from recollect.model import Problem

EDGE = 1 << 16
BLOCK = 1 << 12
BLOCKS = 16
_NOT_INDEXES = (Kind.MAP, Kind.PROFILE, Kind.EMPTY)
_BY_LINES = (Kind.CDX, Kind.CDXJ)


@dataclass(frozen=True, slots=True)
class Print:
    """What a file was when it was read: device, inode, size, times of change (ns), digest of its edges.

    `changed` is the time that programs may set; `altered` (ctime) is the file system's own, which they may not.
    """

    device: int
    inode: int
    size: int
    changed: int
    edges: str
    altered: int = 0


class Change(StrEnum):
    """What became of a file."""

    SAME = "same"
    GROWN = "grown"  # it has more bytes at its end, and those before are as they were
    REPLACED = "replaced"


def print_of(path: str) -> Print:
    """What a file is now."""
    found = Path(path).stat()
    edges = edges_of(path, found.st_size)
    return Print(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, edges, found.st_ctime_ns)


def edges_of(path: str, size: int) -> str:
    """The digest of the edges of a file's first `size` bytes, and of blocks between them."""
    digest = hashlib.sha256(b"%d" % size)
    step = max(size // (BLOCKS + 1), 1)
    places = [(0, EDGE), *((step * number, BLOCK) for number in range(1, BLOCKS + 1)), (max(size - EDGE, 0), EDGE)]
    with Path(path).open("rb") as file:
        for at, length in places:
            file.seek(at)
            digest.update(file.read(max(min(length, size - at), 0)))
    return digest.hexdigest()


def compare(path: str, old: Print, kind: Kind) -> tuple[Print, Change]:
    """What a file is now, and what became of it since."""
    new = print_of(path)
    if new == old:
        return new, Change.SAME
    same_file = (new.device, new.inode) == (old.device, old.inode)
    if same_file and new.size > old.size and kind in _BY_LINES and edges_of(path, old.size) == old.edges:
        return new, Change.GROWN if _can_be_cut(path, old.size) else Change.REPLACED
    return new, Change.REPLACED


def _can_be_cut(path: str, at: int) -> bool:
    """Whether what follows can be read without what is before it: after a line of text, or as members of gzip."""
    with Path(path).open("rb") as file:
        head = file.read(16)
        file.seek(max(at - 1, 0))
        before, after = file.read(1), file.read(16)
    container = kind_of(head)
    if container == "plain":
        return before == b"\n"
    return container == "gzip" and kind_of(after) == "gzip"


def tail_of(path: str, start: int, target: Path) -> Path:
    """Copy what follows `start` into a file of its own, below the header of the index if it has one."""
    with Path(path).open("rb") as source, target.open("wb") as out:
        first = source.readline(EDGE)
        if first.lstrip().upper().startswith(b"CDX "):
            out.write(first)
        source.seek(start)
        while piece := source.read(1 << 20):
            out.write(piece)
    return target


def find_indexes(
    patterns: Sequence[str], on_problem: Callable[[Problem], None], on_ignored: Callable[[Problem], None]
) -> list[Source]:
    """The index files that are there now. A pattern without files is a problem; no file at all is an error. A file that
    is not an index (a README, checksums) is ignored.

    An archive whose indexes are all gone has more likely lost a mount than all its captures.
    """
    found: dict[str, Source] = {}
    for pattern in patterns:
        try:
            sources = find_sources([pattern], on_problem, on_ignored=on_ignored)
        except UsageError as error:
            on_problem(Problem(pattern, None, error.what))
            continue
        for source in sources:
            if source.kind in (Kind.MAP, Kind.PROFILE):
                on_problem(Problem(source.label, None, "a map where an index is expected"))
            elif source.kind not in _NOT_INDEXES:
                found.setdefault(os.path.realpath(source.path), source)
    if not found:
        raise FormatError(
            "no index files",
            where=", ".join(patterns),
            why="an empty map would say that this archive holds nothing",
            hint="check --index and whether the disk is mounted; the published map stays as it is",
        )
    return list(found.values())
