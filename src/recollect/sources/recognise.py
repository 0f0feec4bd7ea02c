"""Which source a path is, by its content, and opening it.

Hides: the order of the questions. A name alone decides nothing; only folders of caches and mirrors are known by the
names of the files that their program writes.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.warc import arc_header
from recollect.model import Problem
from recollect.sources.collections import FolderSource, IndexSource, files_below
from recollect.sources.model import Kind, Source
from recollect.sources.wacz import WaczSource
from recollect.sources.warcs import WarcSource

_PROBE = 1 << 16
_CDXJ = re.compile(rb"\S+ \d{4,17} \{[^\n]*\"filename\"")
_CDX = re.compile(rb"\S+ \d{4,14} \S+ \S+ \S+ \S+ \S+")


def recognise(path: Path) -> Kind | None:
    """The kind of source that a path is; None for what holds no captures."""
    if path.is_dir():
        return Kind.FOLDER
    return _kind_of_file(path)


def _kind_of_file(path: Path) -> Kind | None:
    try:
        with path.open("rb") as file:
            raw = file.read(_PROBE)
    except OSError:
        return None
    if raw.startswith(b"PK\x03\x04"):
        return Kind.WACZ if _is_wacz(path) else None
    head = unpacked_head(raw)
    if head.startswith(b"WARC/"):
        return Kind.WARC
    line = head.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
    if head.startswith(b"filedesc:") or arc_header(line) is not None:
        return Kind.ARC
    return Kind.CDXJ if _is_index(head) else None


def unpacked_head(raw: bytes) -> bytes:
    """The first bytes of a file, without gzip or zstd."""
    if raw.startswith(b"\x1f\x8b"):
        try:
            return zlib.decompressobj(31).decompress(raw, _PROBE)
        except zlib.error:
            return b""
    if raw.startswith(b"\x28\xb5\x2f\xfd") or raw[1:4] == b"\x2a\x4d\x18":
        import zstandard

        try:
            return zstandard.ZstdDecompressor().decompressobj().decompress(raw)[:_PROBE]
        except zstandard.ZstdError:
            return b""
    return raw


def _is_index(head: bytes) -> bool:
    if head.startswith((b" CDX ", b"CDX ")):
        return True
    lines = [line for line in head.split(b"\n")[:5] if line.strip() and not line.startswith((b"!", b"@"))]
    return bool(lines) and (_CDXJ.match(lines[0]) or (_CDX.match(lines[0]) and b")" in lines[0])) is not None


def _is_wacz(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as package:
            return any(name.startswith(("archive/", "indexes/")) for name in package.namelist())
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        return False


def open_source(path: Path, base: str = "", on_problem: Callable[[Problem], None] = lambda _problem: None) -> Source:
    """The source at a path; raises UsageError for what is none. `base` is the address of files that do not say it."""
    if not path.exists():
        raise UsageError("no such file or folder", where=str(path))
    del base  # of formats that need it
    kind = recognise(path)
    if kind is Kind.FOLDER:
        return _folder(path, on_problem)
    if kind is None:
        raise _unknown(path)
    return _open_file(path, kind)


def _open_file(path: Path, kind: Kind) -> Source:
    if kind in (Kind.WARC, Kind.ARC):
        return WarcSource(path, kind)
    if kind is Kind.WACZ:
        return WaczSource(path)
    return IndexSource(path)


def _folder(path: Path, on_problem: Callable[[Problem], None]) -> Source:
    parts: list[tuple[Path, Source]] = []
    for file in files_below(path):
        kind = _kind_of_file(file)
        if kind is None:
            continue
        try:
            parts.append((file, _open_file(file, kind)))
        except (RecollectError, OSError) as error:
            on_problem(Problem(str(file), None, str(error)))
    if not parts:
        raise _unknown(path)
    return FolderSource(path.name or str(path), parts)


def _unknown(path: Path) -> RecollectError:
    return FormatError(
        "no captures of pages in it",
        where=str(path),
        hint="docs/sources.md lists the formats; a folder of plain files needs --base http://its.address/",
    )
