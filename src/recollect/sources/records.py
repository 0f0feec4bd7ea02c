"""WARC and ARC records by their places: one pass lists them, one seek reads one.

Layouts: ISO 28500 (WARC 1.0 and 1.1: a version line, header lines, an empty line, Content-Length bytes, two line ends)
and the Internet Archive's ARC (one line with URL, address, time, type and length before each block). Files are plain,
or packed with gzip, usually a member for each record (ISO 28500, annex D).

A place is `member` or `member+inner`: where a gzip member (or, in a plain file, the record) begins, and the bytes
before the record inside of that member. A plain file is not read whole: blocks are skipped by seeking. After damage
reading goes on at the next gzip member or line that begins a record. A file that is one large gzip member is unpacked
once into a temporary file, because each read would unpack it from its beginning. Bytes of one record, and bytes without
any record, are bounded, so that a small file cannot keep a reader for hours.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from isal import isal_zlib

from recollect.errors import FormatError
from recollect.formats.blockwriter import IsalError
from recollect.formats.warc import arc_header
from recollect.model import Problem

PIECE = 1 << 18
HEAD = 1 << 16
_LONGEST_LINE = 1 << 16
_MOST_HEADER_LINES = 1000
_MOST_LOST = 64 << 20  # bytes without a record before the rest of a member is left
_LONGEST_RECORD = 16 << 30
_LARGE = 4 << 20  # packed bytes from which a file of one gzip member is unpacked first
_MOST_RATIO = 100  # bytes that a packed byte may become; markup becomes ten
_MOST_TRIALS = 100_000  # places that look like a gzip member, over all damage of a file
_MAGIC = b"\x1f\x8b\x08"
OnProblem = Callable[[Problem], None]
Opener = Callable[[], IO[bytes]]


class Record(NamedTuple):
    """One record of a pass: where it is, its header fields (names in lower case), and the first bytes of its block."""

    place: str
    headers: dict[str, str]
    head: bytes
    length: int
    whole: bool


class Slice(io.RawIOBase):
    """A part of a file as a file of its own (a WARC stored in a zip)."""

    def __init__(self, path: Path, start: int, length: int) -> None:
        self._file = path.open("rb")
        self._start, self._length, self._at = start, length, 0
        self._file.seek(start)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._file.read(max(0, min(len(view), self._length - self._at)))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        self._at = max(0, base + offset)
        self._file.seek(self._start + min(self._at, self._length))
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._file.close()
        super().close()


class _Lost(Exception):
    """The compressed bytes here cannot be decoded."""


class _Plain:
    """Bytes of a plain file; skipping is a seek."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)

    def place(self) -> str:
        return str(self._file.tell())

    def go(self, member: int, inner: int) -> None:
        self._file.seek(member + inner)

    def read(self, count: int) -> bytes:
        return self._file.read(count)

    def readline(self) -> bytes:
        return self._file.readline(_LONGEST_LINE)

    def skip(self, count: int) -> int:
        at = self._file.tell()
        to = min(at + count, self._size)
        self._file.seek(to)
        return to - at

    def resume(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()

    @property
    def inner(self) -> int:
        return 0


class _Gzip:
    """Bytes of a gzip file that know the member they come from. The buffer never holds bytes of two members."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._packed, self._packed_at = b"", 0  # bytes read from the file, and where they begin
        self._decoder: Any = None
        self._buffer, self._at = b"", 0
        self._before = 0  # bytes of this member before the buffer
        self.member = 0
        self._trials = 0

    def place(self) -> str:
        self._fill()
        return f"{self.member}+{self.inner}" if self.inner else str(self.member)

    @property
    def inner(self) -> int:
        return self._before + self._at

    def go(self, member: int, inner: int) -> None:
        self._file.seek(member)
        self._packed, self._packed_at = b"", member
        self._decoder, self._buffer, self._at, self._before = None, b"", 0, 0
        self.member = member
        if inner and self.skip(inner) < inner:
            raise FormatError("a record is not where the index has it")

    def read(self, count: int) -> bytes:
        if not self._fill():
            return b""
        data = self._buffer[self._at : self._at + count]
        self._at += len(data)
        return data

    def readline(self) -> bytes:
        line = b""
        while len(line) < _LONGEST_LINE and self._fill():
            end = self._buffer.find(b"\n", self._at, self._at + _LONGEST_LINE - len(line))
            stop = end + 1 if end >= 0 else min(len(self._buffer), self._at + _LONGEST_LINE - len(line))
            line += self._buffer[self._at : stop]
            self._at = stop
            if end >= 0:
                break
        return line

    def skip(self, count: int) -> int:
        left = count
        while left and self._fill():
            step = min(left, len(self._buffer) - self._at)
            self._at += step
            left -= step
        return count - left

    def _fill(self) -> bool:
        """Whether there is a byte to read; decodes more when the buffer is empty."""
        while self._at >= len(self._buffer):
            if self._decoder is None and not self._begin():
                return False
            decoder = self._decoder
            self._before += len(self._buffer)
            self._buffer, self._at = b"", 0
            packed = decoder.unconsumed_tail or self._more()
            if not packed:
                raise _Lost("gzip data is cut off")
            try:
                self._buffer = decoder.decompress(packed, PIECE)
            except (IsalError, zlib.error, EOFError) as error:
                raise _Lost(f"gzip data is damaged ({error})") from error
            if decoder.eof:
                rest: bytes = decoder.unused_data
                self._packed, self._packed_at = rest, self._packed_at - len(rest)
                self._decoder = None
        return True

    def _more(self) -> bytes:
        packed, self._packed = self._packed, b""
        if not packed:
            packed = self._file.read(PIECE)
            self._packed_at += len(packed)
        else:
            self._packed_at += len(packed)
        return packed

    def _begin(self) -> bool:
        """Start the next member; zeros of tape blocks between members are not damage."""
        while True:
            if not self._packed:
                self._packed = self._file.read(PIECE)
                if not self._packed:
                    return False
            bare = self._packed.lstrip(b"\0")
            self._packed_at += len(self._packed) - len(bare)
            self._packed = bare
            if bare:
                break
        if len(bare) < 3:
            self._packed = bare = bare + self._file.read(PIECE)
        self.member = self._packed_at
        self._before, self._buffer, self._at = 0, b"", 0
        if not bare.startswith(_MAGIC):
            raise _Lost("bytes between gzip members that are not gzip data")
        self._decoder = isal_zlib.decompressobj(wbits=31)
        return True

    def resume(self) -> bool:
        """Go to the next member that can be decoded after one that cannot; False at the end."""
        at = self.member + 1
        self._file.seek(at)
        data = b""
        while more := self._file.read(PIECE):
            data = data[-(len(_MAGIC) - 1) :] + more
            base = self._file.tell() - len(data)
            found = data.find(_MAGIC)
            while found >= 0:
                if base + found >= at and self._is_member(base + found):
                    self.go(base + found, 0)
                    return True
                found = data.find(_MAGIC, found + 1)
            self._file.seek(base + len(data))
        return False

    def close(self) -> None:
        self._file.close()

    def _is_member(self, at: int) -> bool:
        self._trials += 1
        if self._trials > _MOST_TRIALS:
            return False
        self._file.seek(at)
        try:
            return bool(isal_zlib.decompressobj(wbits=31).decompress(self._file.read(1 << 14), 1 << 12))
        except (IsalError, zlib.error, EOFError):
            return False


class RecordFile:
    """A WARC or ARC file, plain or packed. No file stays open between two calls: a folder may hold thousands."""

    def __init__(self, opener: Opener, label: str) -> None:
        self._opener = opener
        self.label = label
        self._unpacked: Path | None = None

    def close(self) -> None:
        if self._unpacked is not None:
            self._unpacked.unlink(missing_ok=True)
            self._unpacked = None

    def _reader(self) -> _Plain | _Gzip:
        if self._unpacked is not None:
            return _Plain(self._unpacked.open("rb"))
        file = self._opener()
        head = file.read(4)
        file.seek(0)
        if head == b"\x28\xb5\x2f\xfd" or head[1:4] == b"\x2a\x4d\x18":
            file.close()
            return _Plain(self._unpack().open("rb"))
        return _Gzip(file) if head.startswith(_MAGIC) else _Plain(file)

    def records(self, on_problem: OnProblem) -> Iterator[Record]:
        """All records; damage is reported once for each place of it."""
        if self._is_one_member():
            self._unpack()
        reader = self._reader()
        with contextlib.closing(reader):
            while True:
                try:
                    yield from self._run(reader, on_problem)
                    return
                except _Lost as damage:
                    on_problem(Problem(self.label, None, str(damage)))
                    if not reader.resume():
                        return

    def _is_one_member(self) -> bool:
        """Is this a large file that is packed as a whole, so that the second record is inside of the first member?"""
        with self._opener() as file:
            if file.seek(0, os.SEEK_END) < _LARGE:
                return False
        reader = self._reader()
        with contextlib.closing(reader), contextlib.suppress(_Lost):
            for number, record in enumerate(self._run(reader, lambda _problem: None)):
                if number:
                    return record.place.startswith("0+")
        return False

    def _run(self, reader: _Plain | _Gzip, on_problem: OnProblem) -> Iterator[Record]:
        lost = 0
        while True:
            place = reader.place()
            line = reader.readline()
            if not line:
                return
            parsed = _record_head(reader, line)
            if parsed is None:
                if line.strip():
                    if not lost:
                        on_problem(Problem(self.label, None, f"no record where one should begin, at {place}"))
                    lost += len(line)
                    if lost > _MOST_LOST:
                        raise _Lost("no record in much data")
                continue
            lost = 0
            headers, length = parsed
            if length > _LONGEST_RECORD:
                raise _Lost(f"a record of {length:,} bytes")
            head = _exactly(reader, min(length, HEAD))
            came = len(head) + reader.skip(length - len(head))
            if came < length:
                on_problem(Problem(self.label, None, f"the last record, at {place}, is cut off"))
            yield Record(place, headers, head, length, came == length)

    def block(self, place: str) -> tuple[dict[str, str], Callable[[int], bytes]]:
        """The header of the record at a place, and a reader of its block."""
        member, _, inner = place.partition("+")
        reader = self._reader()
        try:
            reader.go(int(member), int(inner or 0))
            line = reader.readline()
            while line and not line.strip():
                line = reader.readline()
            parsed = _record_head(reader, line)
        except (_Lost, ValueError) as damage:
            raise FormatError("the record is damaged", where=self.label, why=str(damage)) from damage
        if parsed is None:
            raise FormatError("no record where the index has one", where=self.label, why=f"at {place}")
        headers, left = parsed

        def read(count: int) -> bytes:
            nonlocal left
            if not left:
                reader.close()
                return b""
            try:
                data = reader.read(min(count, left))
            except _Lost as damage:
                raise FormatError("the record is damaged", where=self.label, why=str(damage)) from damage
            if not data:
                raise FormatError("the record is cut off", where=self.label, why=f"{left:,} bytes are missing")
            left -= len(data)
            return data

        return headers, read

    def _unpack(self) -> Path:
        """Unpack the whole file next to other temporary files, as far as the disk allows."""
        from recollect.formats.containers import input_over

        handle, name = tempfile.mkstemp(prefix="recollect-unpacked-", suffix=".warc")
        self._unpacked = Path(name)
        with self._opener() as packed:
            most = packed.seek(0, os.SEEK_END) * _MOST_RATIO + (1 << 30)
        room = min(shutil.disk_usage(name).free // 2, most)
        with (
            os.fdopen(handle, "wb") as out,
            self._opener() as packed,
            input_over(packed, self.label, lambda _problem: None) as stream,
        ):
            while piece := stream.read(1 << 20):
                room -= len(piece)
                if room < 0:
                    raise FormatError(
                        "the file unpacks to too much", where=self.label, hint="unpack it first, where there is room"
                    )
                out.write(piece)
        return self._unpacked


def _record_head(reader: _Plain | _Gzip, line: bytes) -> tuple[dict[str, str], int] | None:
    """Fields and length of the record that a line begins; None if it begins none."""
    if line.startswith(b"WARC/"):
        headers = _fields(reader)
        length = headers.get("content-length", "")
        return (headers, int(length)) if length.isascii() and length.isdigit() and len(length) < 16 else None
    header = arc_header(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
    if header is None:
        return None
    fields = {"arc-url": header["url"], "arc-time": header["time"], "arc-type": header["type"]}
    return fields, int(header["length"])


def _fields(reader: _Plain | _Gzip) -> dict[str, str]:
    headers: dict[str, str] = {}
    last = ""
    for _ in range(_MOST_HEADER_LINES):
        text = reader.readline().decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not text:
            break
        if text[0] in " \t" and last:
            headers[last] = (headers[last] + " " + text.strip())[:_LONGEST_LINE]
            continue
        name, _, value = text.partition(":")
        last = name.strip().lower()
        headers[last] = value.strip()
    return headers


def _exactly(reader: _Plain | _Gzip, count: int) -> bytes:
    parts = []
    while count and (data := reader.read(count)):
        parts.append(data)
        count -= len(data)
    return b"".join(parts)
