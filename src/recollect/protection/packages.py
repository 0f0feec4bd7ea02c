"""What zip, tar and compressed files hold, for the search for secrets.

Hides: formats, and limits against packages that expand without end. A member that is beyond a limit is given as None:
it was not searched, which is not the same as having nothing. So is what cannot be read of a damaged package, or of one
in an unknown compression. Of an encrypted member only the name is given.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import IO, cast

import zstandard

from recollect.protection.credentials import COLUMN_NAME

_SMALLEST = 18  # bytes of the smallest package with content, an empty gzip file
_MOST_BYTES = 2 << 30  # of all members of one package
_MOST_MEMBERS = 50_000
_IN_MEMORY = 16 << 20  # larger members go to a file without a name
_MOST_DATABASE = 256 << 20

# Of what is damaged, cut off, or in a compression that is not known here.
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)

Member = tuple[str, IO[bytes] | None]


def members(stream: IO[bytes]) -> Iterator[Member]:
    """(name, content) of what a package holds; nothing for other files. The name is empty if the package has none."""
    head = stream.read(512)
    stream.seek(0)
    if len(head) < _SMALLEST:
        return
    try:
        if head.startswith(b"PK\x03\x04"):
            yield from _zipped(stream)
        elif head[257:262] == b"ustar":
            yield from _tarred(stream)
        else:
            yield from _compressed(stream, head)
    except _DAMAGE:
        yield "", None


def _compressed(stream: IO[bytes], head: bytes) -> Iterator[Member]:
    opened: IO[bytes] | None = None
    if head.startswith(b"\x1f\x8b"):
        opened = cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    elif head.startswith(b"BZh"):
        opened = cast(IO[bytes], bz2.BZ2File(stream))
    elif head.startswith(b"\xfd7zXZ\x00"):
        opened = cast(IO[bytes], lzma.LZMAFile(stream))  # noqa: SIM115 - `stream` is the caller's
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
        opened = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(stream, read_across_frames=True)
    if opened is None:
        return
    content, is_whole = _spooled(opened, _MOST_BYTES)
    with content:
        start = content.read(512)
        content.seek(0)
        if start[257:262] == b"ustar":
            yield from _tarred(content)
        else:
            yield "", content
    if not is_whole:
        yield "", None


def _spooled(source: IO[bytes], most: int) -> tuple[IO[bytes], bool]:
    """The content of a stream that can be read once, and whether it is all of it; what is damaged ends there."""
    out = cast(IO[bytes], tempfile.SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115 - the caller closes it
    left = most
    is_whole = False
    with suppress(*_DAMAGE):
        while left > 0 and (piece := source.read(min(left, 1 << 20))):
            out.write(piece)
            left -= len(piece)
        is_whole = left > 0
    out.seek(0)
    return out, is_whole


def _zipped(stream: IO[bytes]) -> Iterator[Member]:
    left = _MOST_BYTES
    with zipfile.ZipFile(stream) as package:
        for number, info in enumerate(package.infolist()):
            if info.is_dir():
                continue
            if left <= 0 or number >= _MOST_MEMBERS:
                yield info.filename, None
                return
            if info.flag_bits & 1:
                yield info.filename, io.BytesIO()  # encrypted: only the name says something
                continue
            try:
                with package.open(info) as opened:
                    content, is_whole = _spooled(opened, left)
            except _DAMAGE:
                yield info.filename, None
                continue
            with content:
                left -= content.seek(0, io.SEEK_END)
                content.seek(0)
                yield info.filename, content
            if not is_whole:
                yield info.filename, None


class _Header(tarfile.TarInfo):
    """A header whose extension has a bounded size: the library reads extensions into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        info = super().frombuf(buf, encoding, errors)
        if info.type not in (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE) and info.size > 1 << 20:
            raise tarfile.ReadError("an extension that is too long")
        return info


def _tarred(stream: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r:", tarinfo=_Header) as package:
        for number, info in enumerate(package):
            if number >= _MOST_MEMBERS:
                yield info.name, None
                return
            member = package.extractfile(info) if info.isreg() else None
            if member is not None:
                yield info.name, member


# Databases


def has_password_column(stream: IO[bytes]) -> bool:
    """Whether a database of SQLite has a table with a column of passwords, and values in it."""
    data = stream.read(_MOST_DATABASE)
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            db.deserialize(data)
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return any(_has_values(db, table) for table in tables)
    except (sqlite3.Error, OverflowError):
        return False  # damaged, or encrypted


def _has_values(db: sqlite3.Connection, table: str) -> bool:
    quoted = table.replace('"', '""')
    columns = [str(row[1]) for row in db.execute(f'PRAGMA table_info("{quoted}")')]
    for column in columns:
        if COLUMN_NAME.fullmatch(column.encode()):
            name = column.replace('"', '""')
            query = f'SELECT 1 FROM "{quoted}" WHERE length("{name}") > 3 LIMIT 1'
            if db.execute(query).fetchone() is not None:
                return True
    return False
