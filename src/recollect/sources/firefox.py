"""Firefox's HTTP cache (`cache2/entries`), read as files.

Layout, after Firefox's netwerk/cache2/CacheFileMetadata.h and CacheFile.cpp: one file for each entry, named by the
SHA-1 of its key. Numbers are big-endian.

    body       as it came, with its content encoding
    uint32     hash of the metadata
    uint16 ..  a hash for each piece of 256 KB of the body
    header     uint32 version (1 to 3), fetch count, last fetch, last change, frecency, expiry, key length, and from
               version 2 on flags
    key        and a zero byte
    elements   name, zero, value, zero ...: `response-head` is status line and headers, `original-response-headers` as
               they came, `request-method`, `alt-data` (`1;<offset>,<type>`: other data begins there, behind the body)
    uint32     where the metadata begins, which is the length of the body

A key is a list of tags that ends with `:` and the URL (`O^partitionKey=%28http%2Ca.example%29,:http://a.example/`).
Listing reads the last bytes of each file: the rest of the entries that are wanted is read when they are taken.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.browsers import WEB, moment_of, response_capture, slice_of
from recollect.sources.http import parse_lines
from recollect.sources.model import Depth, Kind, SourceCapture, SourcePayload, Tally, Wanted, public_headers

_ENTRY = re.compile(r"[0-9A-F]{40}", re.IGNORECASE)
_PIECE = 256 * 1024
_MOST_METADATA = 1 << 20
_HEADER = struct.Struct(">IIIIIII")
_TAG = re.compile(r"(?:^|,):(?=https?://)", re.IGNORECASE)


class _Entry(NamedTuple):
    url: str
    length: int  # of the body
    fetched_at: int
    elements: dict[str, str]


class FirefoxSource:
    """The cache of a Firefox profile."""

    kind = Kind.FIREFOX
    depth = Depth.FLAT
    private = True

    def __init__(self, folders: list[Path], name: str) -> None:
        self.name = name
        self.tally = Tally()
        self._folders = folders  # `entries` of each cache

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for number, folder in enumerate(self._folders):
            for path in sorted(folder.iterdir()):
                if not _ENTRY.fullmatch(path.name) or path.is_symlink():
                    continue
                try:
                    with path.open("rb") as file:
                        entry = _read_entry(file, wanted)
                except (FormatError, OSError) as error:
                    self.tally.entries += 1
                    self.tally.damaged += 1
                    on_problem(Problem(path.name, None, str(error)))
                    continue
                self.tally.entries += 1
                capture = self._capture(entry, f"{number}/{path.name}") if entry is not None else None
                if capture is not None:
                    self.tally.taken += 1
                    yield capture

    def _capture(self, entry: _Entry, place: str) -> SourceCapture | None:
        if entry.elements.get("request-method", "GET") != "GET" or "response-head" not in entry.elements:
            self.tally.note_other("not a page")
            return None
        status, headers = parse_lines(entry.elements["response-head"])
        return response_capture(entry.url, place, status, headers, entry.length, moment_of(entry.fetched_at))

    def read(self, place: str) -> SourcePayload:
        number, _, name = place.partition("/")
        if not number.isdigit() or int(number) >= len(self._folders) or not _ENTRY.fullmatch(name):
            raise FormatError("no such entry", where=place[:60])
        path = self._folders[int(number)] / name
        with path.open("rb") as file:
            entry = _read_entry(file, lambda _url: True)
        if entry is None:
            raise FormatError("no such entry", where=name)
        status, headers = parse_lines(entry.elements.get("response-head", ""))
        return SourcePayload(status or 0, public_headers(headers), slice_of(path, 0, entry.length))

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass


def _read_entry(file: IO[bytes], wanted: Wanted) -> _Entry | None:
    """The metadata of an entry; None when its URL is not wanted, or is not of the web."""
    size = file.seek(0, 2)
    if size < 4 + 4 + _HEADER.size + 1:
        raise FormatError("a cache entry is cut off")
    file.seek(size - 4)
    length = int.from_bytes(file.read(4), "big")
    start = length + 4 + 2 * -(-length // _PIECE)
    if start + _HEADER.size > size - 4 or size - 4 - start > _MOST_METADATA:
        raise FormatError("a cache entry without metadata")
    file.seek(start)
    data = file.read(size - 4 - start)
    version, _, _, modified, _, _, key_length = _HEADER.unpack_from(data)
    if not 1 <= version <= 10:
        raise FormatError("a cache entry of an unknown version", why=str(version))
    at = _HEADER.size + (4 if version >= 2 else 0)
    key = data[at : at + key_length].decode("utf-8", "surrogateescape")
    tag = _TAG.search(key)
    url = key[tag.end() :] if tag is not None else ""
    if not WEB.match(url) or not wanted(url):
        return None
    elements = _elements(data[at + key_length + 1 :])
    alternative = re.match(r"\d+;(\d{1,15}),", elements.get("alt-data", ""))
    if alternative is not None:
        length = min(length, int(alternative[1]))
    return _Entry(url, length, modified, elements)


def _elements(data: bytes) -> dict[str, str]:
    parts = data.split(b"\0")
    return {
        name.decode("latin-1"): value.decode("latin-1") for name, value in zip(parts[::2], parts[1::2], strict=False)
    }
