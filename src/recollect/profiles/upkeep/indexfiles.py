"""Index files and whether they changed: identity, size, times of change, and a digest of samples of their content.

Hides: how a file is recognised without reading all of it. The digest covers the first and the last 64 KiB and sixteen
blocks between them, so that it takes the same time for a file of any size. A file that only grew at its end is
distinguished from one that was replaced: then only its new end has to be read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from recollect.errors import FormatError, UsageError
from recollect.formats.containers import kind_of
from recollect.formats.detect import Kind, Source, files_of, find_sources
from recollect.model import Problem

EDGE = 1 << 16
BLOCK = 1 << 12
BLOCKS = 16
_NOT_INDEXES = (Kind.MAP, Kind.PROFILE, Kind.EMPTY)
_BY_LINES = (Kind.CDX, Kind.CDXJ)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a file was when it was read: device, inode, size, times of change (ns), digest of samples.

    Programs can set `modified` (mtime); `changed` (ctime) is set by the file system alone.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int
    samples: str


class Change(StrEnum):
    """What happened to a file since it was read."""

    NONE = "none"
    GROWN = "grown"  # it has more bytes at its end, and those before are as they were
    REPLACED = "replaced"


def fingerprint_of(path: str) -> Fingerprint:
    """What a file is now."""
    found = Path(path).stat()
    samples = samples_digest(path, found.st_size)
    return Fingerprint(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, samples)


def samples_digest(path: str, size: int) -> str:
    """The digest of both ends of a file's first `size` bytes, and of blocks between them."""
    digest = hashlib.sha256(b"%d" % size)
    step = max(size // (BLOCKS + 1), 1)
    places = [(0, EDGE), *((step * number, BLOCK) for number in range(1, BLOCKS + 1)), (max(size - EDGE, 0), EDGE)]
    with Path(path).open("rb") as file:
        for at, length in places:
            file.seek(at)
            digest.update(file.read(max(min(length, size - at), 0)))
    return digest.hexdigest()


def compare(path: str, old: Fingerprint, kind: Kind) -> tuple[Fingerprint, Change]:
    """What a file is now, and what happened to it since."""
    new = fingerprint_of(path)
    if new == old:
        return new, Change.NONE
    same_file = (new.device, new.inode) == (old.device, old.inode)
    if same_file and new.size > old.size and kind in _BY_LINES and samples_digest(path, old.size) == old.samples:
        return new, Change.GROWN if _can_be_cut(path, old.size) else Change.REPLACED
    return new, Change.REPLACED


def is_unchanged(path: str, old: Fingerprint) -> bool:
    """Whether a file is still there and as it was."""
    try:
        return fingerprint_of(path) == old
    except OSError:
        return False


def _can_be_cut(path: str, at: int) -> bool:
    """Whether the bytes from `at` on can be read on their own: after a line of text, or as members of gzip."""
    with Path(path).open("rb") as file:
        head = file.read(16)
        file.seek(max(at - 1, 0))
        before, after = file.read(1), file.read(16)
    container = kind_of(head)
    if container == "plain":
        return before == b"\n"
    return container == "gzip" and kind_of(after) == "gzip"


def copy_end(path: str, start: int, stop: int, target: Path) -> Path:
    """Copy the bytes from `start` to `stop` into a file of their own, after the header of the index if it has one."""
    with Path(path).open("rb") as source, target.open("wb") as out:
        first = source.readline(EDGE)
        if first.lstrip().upper().startswith(b"CDX "):
            out.write(first)
        source.seek(start)
        while start < stop and (piece := source.read(min(1 << 20, stop - start))):
            out.write(piece)
            start += len(piece)
    return target


Report = Callable[[Problem], None]


def find_indexes(
    patterns: Sequence[str], known: Mapping[str, tuple[Kind, Fingerprint]], on_problem: Report, on_ignored: Report
) -> list[Source]:
    """The index files that exist now. A pattern without files is a problem; no file at all is an error. A file that is
    not an index (a README, checksums) is ignored.

    An archive whose indexes are all gone has more likely lost a mount than all its captures. The kind of a `known` file
    that did not change is not determined again, which takes about a millisecond a file.
    """
    found: dict[str, Source] = {}
    for pattern in patterns:
        try:
            sources = list(_sources(pattern, known, on_problem, on_ignored))
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


def _sources(
    pattern: str, known: Mapping[str, tuple[Kind, Fingerprint]], on_problem: Report, on_ignored: Report
) -> Iterator[Source]:
    for name in files_of([pattern]):
        kind, old = known.get(os.path.realpath(name), (None, None))
        if kind is not None and old is not None and _has_same_times(name, old):
            yield Source(name, kind, size=old.size)
            continue
        try:
            yield from find_sources([name], on_problem, on_ignored=on_ignored)
        except (UsageError, OSError) as error:  # it vanished since the folder was listed, or may not be read
            on_problem(Problem(name, None, str(error)))


def _has_same_times(path: str, old: Fingerprint) -> bool:
    try:
        found = Path(path).stat()
    except OSError:
        return False
    now = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return now == (old.device, old.inode, old.size, old.modified, old.changed)
