"""Stored HTTP messages: the head of a response, and bodies without their chunks. Linear over any bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from recollect.errors import FormatError
from recollect.sources.model import PIECE, Headers

LONGEST_HEAD = 1 << 18
_END = re.compile(rb"\r?\n\r?\n")
_CHUNK = re.compile(rb"[ \t]{0,16}([0-9a-fA-F]{1,15})[ \t]{0,16}(?:;[^\r\n]{0,4096})?\r?\n")
Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Head:
    """Status and fields of a response; `size` is the number of bytes up to the body."""

    status: int | None
    headers: Headers
    size: int

    def get(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


def parse_head(block: bytes) -> Head | None:
    """The head at the beginning of a stored response; None where there is none, or its end is missing."""
    if not block.startswith(b"HTTP/"):
        return None
    end = _END.search(block)
    if end is None:
        return None
    return Head(*parse_lines(block[: end.start()].decode("latin-1")), end.end())


def parse_lines(text: str) -> tuple[int | None, Headers]:
    """Status and fields of a head as text, its lines separated by line ends."""
    first, *lines = re.split(r"\r?\n", text)
    words = first.split(None, 2)
    status = int(words[1]) if len(words) > 1 and re.fullmatch(r"[1-9][0-9]{2}", words[1], re.ASCII) else None
    headers: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and headers:
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {line.strip()}")
            continue
        name, mark, value = line.partition(":")
        if mark and name.strip():
            headers.append((name.strip(), value.strip()))
    return status, tuple(headers)


def bare_type(value: str) -> str:
    """`text/html` of a Content-Type field."""
    return value.partition(";")[0].strip().lower()


def unchunked(read: Read) -> Iterator[bytes]:
    """A body without chunk sizes; bytes that have none, though a header says so, come as they are."""
    head = read(4096)
    match = _CHUNK.match(head)
    if match is None:
        while head:
            yield head
            head = read(PIECE)
        return
    rest = head
    while True:
        while (match := _CHUNK.match(rest)) is None:
            more = read(4096)
            rest = (rest + more).lstrip(b"\r\n") if len(rest) < 8 else rest + more
            if not more or len(rest) > (1 << 16):
                raise FormatError("a body of chunks is damaged", why="a chunk has no size")
        size, rest = int(match[1], 16), rest[match.end() :]
        if size == 0:
            return
        while size:
            if not rest and not (rest := read(min(PIECE, size))):
                raise FormatError("a body of chunks is cut off")
            yield rest[:size]
            taken = min(size, len(rest))
            rest, size = rest[taken:], size - taken
        while len(rest) < 2 and (more := read(4096)):
            rest += more
        rest = rest[2:] if rest.startswith(b"\r\n") else rest[1:] if rest.startswith(b"\n") else rest
