"""Chromium's HTTP cache (also Chrome, Edge, Brave, Opera ...), both of its forms, read as files.

**Simple Cache** (Linux, Android, ChromeOS, macOS), after Chromium's net/disk_cache/simple/simple_entry_format.h. One
file `<16 hex digits>_0` for each entry, numbers little-endian:

    header   uint64 0xfcfb6d1ba7725c30, uint32 version (5 to 9), uint32 key length, uint32 hash of the key, 4 bytes
    key
    stream 1 the body
    EOF      uint64 0xf4fa6f45970d41d8, uint32 flags (1: CRC-32, 2: SHA-256 of the key), uint32 CRC-32, uint32 size, 4
    stream 0 the response's head (below)
    SHA-256  of the key, 32 bytes, if the flag of the next record says so
    EOF      of stream 0: its size is in it

`_s` files hold parts of responses to range requests; they are counted as partial entries.

**Block files** (Windows, and profiles copied from there), after net/disk_cache/blockfile/disk_format.h and addr.h. The
file `index` (uint32 0xc103cac3, uint32 version, ... a table of addresses at byte 368), `data_0` to `data_N` (a header
of 8192 bytes that begins with 0xc104cac3, then blocks) and `f_xxxxxx`. An address has 32 bits: bit 31 set; bits 28 to
30 the kind of file (0: f_xxxxxx, whose number is in bits 0 to 27; 2, 3, 4: blocks of 256, 1024, 4096 bytes); else bits
24 and 25 the number of blocks less one, 16 to 23 the number of the file, 0 to 15 the first block. An entry: uint32
hash, next address in its bucket, address of its rank, int32 reuse, refetch, state (0: normal), uint64 created, int32
key length, address of a long key, int32 sizes of four streams, addresses of four streams, uint32 flags, 16 bytes,
uint32 hash, and the key at byte 96. Stream 0 is the head, stream 1 the body.

**The head** in both (net/http/http_response_info.cc): a pickle: uint32 size, int32 flags, times as int64 of
microseconds since 1601 (request, then response), a length and the header lines, separated by zero bytes. The flag
0x1000 marks a body that was cut off. Bodies keep their content encoding.

**The key** ends with the URL; before it stand a number and a partition (`1/0/_dk_http://a.example http://a.example
http://a.example/x`).

Listing reads the key of each entry, and the heads of those whose URL is wanted.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.browsers import WEB, moment_of, response_capture, slice_of
from recollect.sources.http import parse_lines
from recollect.sources.model import (
    Depth,
    Headers,
    Kind,
    Mark,
    SourceCapture,
    SourcePayload,
    Tally,
    Wanted,
    public_headers,
)

_ENTRY = re.compile(r"[0-9a-f]{16}_[0s]")
_FIRST, _FINAL = 0xFCFB6D1BA7725C30, 0xF4FA6F45970D41D8
_HEADER = struct.Struct("<QIIII")
_EOF = struct.Struct("<QIIII")
_LONGEST_KEY = 1 << 16
_LONGEST_HEAD = 1 << 20
_EPOCH = 11_644_473_600  # seconds from 1601 to 1970
_INDEX_MAGIC, _BLOCK_MAGIC = 0xC103CAC3, 0xC104CAC3
_TABLE = 368
_BLOCKS = {2: 256, 3: 1024, 4: 4096}
_BLOCK_HEADER = 8192
_STORE = struct.Struct("<IIIiiiQiI4i4II16xI")
_MOST_ENTRIES = 5_000_000
_PARTITION = re.compile(r"(?:\d{1,4}/\d{1,20}/)?(?:_dk_)?", re.ASCII)


def url_of_key(key: str) -> str:
    """The URL of a cache key; empty for keys of other things."""
    before = _PARTITION.match(key)
    url = key.rpartition(" ")[2] if " " in key else key[before.end() :] if before is not None else key
    return url if WEB.match(url) else ""


def parse_info(data: bytes) -> tuple[int | None, Headers, float | None, bool]:
    """Status, headers, time of the response and whether the body was cut off, of a pickled head."""
    if len(data) < 24:
        raise FormatError("the head of a response is too short")
    (flags,) = struct.unpack_from("<I", data, 4)
    start = data.find(b"HTTP/", 12)
    if start < 4 or start > 4096:
        raise FormatError("no head of a response")
    (length,) = struct.unpack_from("<I", data, start - 4)
    text = data[start : start + min(length, len(data))].decode("latin-1")
    status, headers = parse_lines(text.rstrip("\0").replace("\0", "\n"))
    return status, headers, _response_time(data, start), bool(flags & 0x1000)


def _response_time(data: bytes, start: int) -> float | None:
    """The second of the first two times in a row that can be times; fields before them came with later versions."""
    for at in range(8, min(start, 40) - 15, 4):
        asked, came = struct.unpack_from("<qq", data, at)
        seconds: list[float] = [value / 1e6 - _EPOCH for value in (asked, came)]
        if all(moment_of(second) is not None for second in seconds):
            return seconds[1]
    return None


class ChromiumSource:
    """The cache of a Chromium profile."""

    kind = Kind.CHROMIUM
    depth = Depth.FLAT
    private = True

    def __init__(self, folders: list[Path], name: str) -> None:
        self.name = name
        self.tally = Tally()
        self._folders = folders

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for number, folder in enumerate(self._folders):
            form = _BlockFiles(folder) if is_block_cache(folder) else _SimpleCache(folder)
            for capture in form.captures(wanted, self.tally, on_problem):
                yield capture._replace(place=f"{number}/{capture.place}")

    def read(self, place: str) -> SourcePayload:
        number, _, inner = place.partition("/")
        if not number.isdigit() or int(number) >= len(self._folders):
            raise FormatError("no such place", where=self.name)
        folder = self._folders[int(number)]
        return (_BlockFiles(folder) if is_block_cache(folder) else _SimpleCache(folder)).read(inner)

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass


def is_block_cache(folder: Path) -> bool:
    """Is this a folder of block files?"""
    return _begins(folder / "index", _INDEX_MAGIC) and _begins(folder / "data_0", _BLOCK_MAGIC)


def is_simple_cache(folder: Path) -> bool:
    """Is this a folder of the Simple Cache?"""
    if not (folder / "index").is_file() and not (folder / "index-dir").is_dir():
        return False
    if (folder / "index-dir").is_dir():
        return True
    return any(_ENTRY.fullmatch(path.name) for path in folder.iterdir())


def _begins(path: Path, magic: int) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == magic.to_bytes(4, "little")
    except OSError:
        return False


class _SimpleCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def captures(self, wanted: Wanted, tally: Tally, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for path in sorted(self._folder.iterdir()):
            if not _ENTRY.fullmatch(path.name) or path.is_symlink():
                continue
            try:
                with path.open("rb") as file:
                    url = url_of_key(_simple_key(file))
                    tally.entries += 1
                    if not url or not wanted(url):
                        continue
                    if path.name.endswith("_s"):
                        tally.note_other("partial")
                        continue
                    capture = self._capture(file, path.name, url)
            except (FormatError, OSError) as error:
                tally.damaged += 1
                on_problem(Problem(path.name, None, str(error)))
                continue
            if capture is not None:
                tally.taken += 1
                yield capture

    def _capture(self, file: IO[bytes], place: str, url: str) -> SourceCapture | None:
        _start, length, head = _simple_layout(file)
        status, headers, seconds, cut = parse_info(head)
        moment = moment_of(seconds) if seconds is not None else None
        return response_capture(url, place, status, headers, length, moment, (Mark.TRUNCATED,) if cut else ())

    def read(self, place: str) -> SourcePayload:
        if not _ENTRY.fullmatch(place):
            raise FormatError("no such entry", where=place[:40])
        path = self._folder / place
        with path.open("rb") as file:
            start, length, head = _simple_layout(file)
        status, headers, _, _ = parse_info(head)
        return SourcePayload(status or 0, public_headers(headers), slice_of(path, start, length))


def _simple_key(file: IO[bytes]) -> str:
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise FormatError("a cache entry is cut off")
    magic, _, length, _, _ = _HEADER.unpack(header)
    if magic != _FIRST or length > _LONGEST_KEY:
        raise FormatError("not a cache entry")
    return file.read(length).decode("utf-8", "surrogateescape")


def _simple_layout(file: IO[bytes]) -> tuple[int, int, bytes]:
    """Where the body begins, its length, and the head of an entry, read from its end."""
    file.seek(0)
    start = _HEADER.size + len(_simple_key(file).encode("utf-8", "surrogateescape"))
    size = file.seek(0, 2)
    flags, head_size = _eof(file, size - _EOF.size)
    end = size - _EOF.size - (32 if flags & 2 else 0)
    if head_size > _LONGEST_HEAD or end - head_size - _EOF.size < start:
        raise FormatError("a cache entry without a head")
    file.seek(end - head_size)
    head = file.read(head_size)
    body_end = end - head_size - _EOF.size
    _eof(file, body_end)  # its size is not filled in
    return start, body_end - start, head


def _eof(file: IO[bytes], at: int) -> tuple[int, int]:
    if at < 0:
        raise FormatError("a cache entry is cut off")
    file.seek(at)
    data = file.read(_EOF.size)
    if len(data) < _EOF.size:
        raise FormatError("a cache entry is cut off")
    magic, flags, _, size, _ = _EOF.unpack(data)
    if magic != _FINAL:
        raise FormatError("a cache entry without its end")
    return flags, size


class _BlockFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def captures(self, wanted: Wanted, tally: Tally, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for address in self._addresses(tally, on_problem):
            try:
                url, sizes, data = self._entry(address)
                tally.entries += 1
                if not url or not wanted(url):
                    continue
                if not data[0] or not sizes[0]:
                    tally.note_other("without a head")
                    continue
                status, headers, seconds, cut = parse_info(self._bytes(data[0], min(sizes[0], _LONGEST_HEAD)))
            except (FormatError, OSError) as error:
                tally.damaged += 1
                on_problem(Problem("index", None, str(error)))
                continue
            moment = moment_of(seconds) if seconds is not None else None
            marks = (Mark.TRUNCATED,) if cut else ()
            capture = response_capture(url, f"{address:x}", status, headers, sizes[1], moment, marks)
            if capture is not None:
                tally.taken += 1
                yield capture

    def read(self, place: str) -> SourcePayload:
        try:
            _, sizes, data = self._entry(int(place, 16))
        except ValueError as error:
            raise FormatError("no such entry", where=place[:40]) from error
        status, headers, _, _ = parse_info(self._bytes(data[0], min(sizes[0], _LONGEST_HEAD)))
        chunks = self._chunks(data[1], sizes[1]) if sizes[1] else iter(())
        return SourcePayload(status or 0, public_headers(headers), chunks)

    def _addresses(self, tally: Tally, on_problem: Callable[[Problem], None]) -> Iterator[int]:
        """The addresses of all entries: those of the table, each followed by the others of its bucket."""
        seen: set[int] = set()
        with (self._folder / "index").open("rb") as index:
            index.seek(_TABLE)
            while piece := index.read(1 << 16):
                for (address,) in struct.iter_unpack("<I", piece[: len(piece) // 4 * 4]):
                    while address & 0x80000000 and address not in seen and len(seen) < _MOST_ENTRIES:
                        seen.add(address)
                        yield address
                        try:
                            address = struct.unpack_from("<I", self._bytes(address, 8), 4)[0]
                        except (FormatError, OSError) as error:
                            tally.damaged += 1
                            on_problem(Problem("index", None, str(error)))
                            break

    def _entry(self, address: int) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """URL, sizes and addresses of the streams of an entry."""
        kind = address >> 28 & 7
        if kind != 2:
            raise FormatError("an entry in a file of another kind", why=f"{address:x}")
        blocks = (address >> 24 & 3) + 1
        store = self._bytes(address, 256 * blocks)
        if len(store) < 256:
            raise FormatError("a cache entry is cut off")
        fields = _STORE.unpack_from(store)
        state, key_length, long_key = fields[5], fields[7], fields[8]
        sizes, data = fields[9:13], fields[13:17]
        if state != 0 or not 0 < key_length <= _LONGEST_KEY or any(size < 0 for size in sizes):
            return "", sizes, data
        raw = self._bytes(long_key, key_length) if long_key else store[96 : 96 + key_length]
        return url_of_key(raw.decode("utf-8", "surrogateescape").rstrip("\0")), sizes, data

    def _place(self, address: int, count: int) -> tuple[Path, int, int]:
        if not address & 0x80000000:
            raise FormatError("a cache entry without its data")
        kind = address >> 28 & 7
        if kind == 0:
            return self._folder / f"f_{address & 0xFFFFFFF:06x}", 0, count
        if kind not in _BLOCKS:
            raise FormatError("an address of another kind", why=f"{address:x}")
        size = _BLOCKS[kind]
        most = size * ((address >> 24 & 3) + 1)
        if count > most:
            raise FormatError("a cache entry is longer than its blocks")
        return self._folder / f"data_{address >> 16 & 0xFF}", _BLOCK_HEADER + size * (address & 0xFFFF), count

    def _bytes(self, address: int, count: int) -> bytes:
        path, start, length = self._place(address, count)
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(length)
        if len(data) < length:
            raise FormatError("a cache entry is cut off", where=path.name)
        return data

    def _chunks(self, address: int, count: int) -> Iterator[bytes]:
        return slice_of(*self._place(address, count))
