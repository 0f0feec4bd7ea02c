"""WACZ packages: a zip with WARCs (`archive/`), indexes of them (`indexes/`) and pages (`pages/pages.jsonl`).

Layout: WACZ 1.1.1 (specs.webrecorder.net/wacz/1.1.1). The WARCs are stored, not packed again, so that a record is read
by its offset inside of the zip; one that is packed is unpacked once. Captures are those of the index (CDX or CDXJ, also
as a ZipNum index of gzip blocks); WARCs that it does not name are listed by a pass over their records.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from recollect.archives.listing import Row, parse_listing
from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.model import Depth, Kind, SourceCapture, SourcePayload, Tally, TimeOrigin, Wanted
from recollect.sources.records import RecordFile, Slice
from recollect.sources.warcs import capture_of, payload_of

_LINES = 1 << 20  # bytes of an index that are parsed at once
_MOST_INDEX = 8 << 30  # bytes of an unpacked index
_MOST_PAGES = 16 << 20
_POSTED = re.compile(r'"(?:method|requestMethod)"\s*:\s*"(?!GET|HEAD)', re.IGNORECASE)


class WaczSource:
    """One WACZ file."""

    kind = Kind.WACZ
    depth = Depth.DEEP
    private = False

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.tally = Tally()
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError) as error:
            raise FormatError("damaged zip file", where=str(path), why=str(error)) from error
        self._members = {info.filename: info for info in self._zip.infolist()}
        self._warcs = sorted(n for n in self._members if n.startswith("archive/") and re.search(r"\.w?arc\b", n, re.I))
        self._indexes = sorted(n for n in self._members if n.startswith("indexes/") and _is_index(n))
        self._open: dict[str, RecordFile] = {}

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        named: set[str] = set()
        for index in self._indexes:
            with self._zip.open(index) as member:
                for row in read_index(member, f"{self.name}!{index}", on_problem):
                    capture = self._of_row(row, named)
                    if capture is None:
                        continue
                    self.tally.entries += 1
                    if wanted(capture.url):
                        self.tally.taken += 1
                        yield capture
        for name in self._warcs:
            if name not in named:
                yield from self._of_warc(name, wanted, on_problem)

    def _of_row(self, row: Row, named: set[str]) -> SourceCapture | None:
        offset, _, rest = row.locator.partition(" ")
        name = self._member_name(rest.partition(" ")[2])
        if name is None:
            self.tally.note_other("line of another file")
            return None
        named.add(name)
        return index_capture(row, f"{offset}@{name}")

    def _member_name(self, name: str) -> str | None:
        for candidate in (f"archive/{name}", name):
            if candidate in self._members:
                return candidate
        return None

    def _of_warc(self, name: str, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for record in self._record_file(name).records(on_problem):
            capture = capture_of(record, self.tally, f"{self.name}!{name}", on_problem)
            if capture is None:
                continue
            self.tally.entries += 1
            if wanted(capture.url):
                self.tally.taken += 1
                yield capture._replace(place=f"{record.place}@{name}")

    def read(self, place: str) -> SourcePayload:
        offset, _, name = place.partition("@")
        return payload_of(self._record_file(name), offset)

    def _record_file(self, name: str) -> RecordFile:
        if name not in self._open:
            self._open[name] = RecordFile(lambda: self._member(name), f"{self.name}!{name}")
        return self._open[name]

    def _member(self, name: str) -> IO[bytes]:
        info = self._members[name]
        if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1:
            return io.BufferedReader(Slice(self._path, _data_offset(self._path, info), info.file_size), 1 << 18)
        spool = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            with self._zip.open(name) as packed:
                room = min(shutil.disk_usage(tempfile.gettempdir()).free // 2, info.compress_size * 100 + (1 << 30))
                while piece := packed.read(1 << 20):
                    room -= len(piece)
                    if room < 0:
                        raise FormatError("it unpacks to too much", where=f"{self.name}!{name}")
                    spool.write(piece)
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error, RuntimeError, NotImplementedError) as error:
            raise FormatError("a damaged part of a WACZ", where=f"{self.name}!{name}", why=str(error)) from error
        spool.seek(0)
        return spool

    def seeds(self) -> tuple[str, ...]:
        """The main page, then seeds, then the other pages of the package."""
        package = self._json("datapackage.json")
        main = [str(package[key]) for key in ("mainPageUrl", "mainPageURL") if package.get(key)]
        seeds: list[str] = []
        pages: list[str] = []
        for line in self._lines("pages/pages.jsonl"):
            url = line.get("url")
            if isinstance(url, str) and re.match(r"https?://", url, re.IGNORECASE):
                (seeds if line.get("seed") else pages).append(url)
        return tuple(dict.fromkeys(main + seeds + pages))

    def _json(self, name: str) -> dict[str, object]:
        try:
            value = json.loads(self._text(name) or b"{}")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def _lines(self, name: str) -> Iterator[dict[str, object]]:
        for line in self._text(name).splitlines():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value

    def _text(self, name: str) -> bytes:
        if name not in self._members:
            return b""
        try:
            with self._zip.open(name) as member:
                return member.read(_MOST_PAGES)
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error, RuntimeError, NotImplementedError):
            return b""

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._zip.close()


def index_capture(row: Row, place: str) -> SourceCapture:
    """The capture of a line of an index."""
    return SourceCapture(
        row.uri,
        row.captured_at,
        TimeOrigin.INDEX,
        place,
        row.status,
        row.media_type,
        row.digest,
        row.length,
        row.revisit,
    )


def read_index(member: IO[bytes], label: str, on_problem: Callable[[Problem], None]) -> Iterator[Row]:
    """The lines of a CDX or CDXJ, packed or not; those that name no place in a file are of no use here."""
    head = member.read(2)
    stream = cast(IO[bytes], _Rejoined(head, member))
    if head == b"\x1f\x8b":
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    rest, unread, size = b"", 0, 0
    try:
        while True:
            piece = stream.read(_LINES)
            size += len(piece)
            if size > _MOST_INDEX:
                on_problem(Problem(label, None, "the index is larger than 8 GB"))
                return
            whole, _, rest = (rest + piece).rpartition(b"\n") if piece else (rest, b"", b"")
            lines = [line for line in whole.split(b"\n") if not _POSTED.search(line.decode("latin-1"))]
            rows, _, bad = parse_listing(b"\n".join(line for line in lines if line.strip()))
            unread += bad
            yield from (row for row in rows if row.locator)
            if not piece:
                break
            if len(rest) > 16 * _LINES:
                on_problem(Problem(label, None, "a line of more than 16 MB"))
                return
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        on_problem(Problem(label, None, f"the index is damaged: {error}"))
    if unread:
        on_problem(Problem(label, None, f"{unread:,} lines of the index cannot be read"))


class _Rejoined(io.RawIOBase):
    """A stream with its first bytes put back."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._head[: len(view)] or self._rest.read(len(view))
        self._head = self._head[len(view) :]
        view[: len(data)] = data
        return len(data)


def _is_index(name: str) -> bool:
    return name.removesuffix(".gz").lower().endswith((".cdx", ".cdxj"))


def _data_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin: behind its local header (APPNOTE 6.3, section 4.3.7)."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(30)
    if len(header) < 30 or not header.startswith(b"PK\x03\x04"):
        raise FormatError("damaged zip file", where=str(path), why=f"no member at {info.header_offset}")
    return info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
