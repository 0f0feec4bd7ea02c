"""One HTTP/1.1 connection to an archive, as small as speed and safety allow.

Hides: framing of answers (length, chunks, until close), interim answers, head and trailer bounds, and when a
connection may be used again. It exists because a broadcast asks a dozen archives for every client: measured
on 12 upstream requests, the general client of aiohttp took 2.2 CPU ms and this one 0.4 (see docs/design.md).

Invariants: exactly one of `Sink.end` and `Sink.fail` is called per request; after it the connection does not touch
the sink again. A connection goes back to its pool only after a complete response with nothing after it. Bytes are
never interpreted twice: two lengths are an error, and after a length beside chunks the connection is not used again.
Everything but the body is bounded: headers, interim responses, chunk lines, trailers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Protocol

from recollect.errors import AnswerCutShort, ArchiveError, ArchiveUnreachable, BadAnswer

MAX_HEAD = 256 * 1024  # TimeGates send all their mementos in Link headers; 10 kB is common, 100 kB was seen
_MAX_CHUNK_LINE = 4096
_MAX_TRAILERS = 64 * 1024
_MAX_TRAILER_LINE = 16 * 1024
_MOST_INTERIM = 20
# Chunks cost CPU time whatever their size. An answer may have this many, and beyond them one for each 64 bytes of body.
_FREE_CHUNKS = 65_536
_CHUNK_BYTES = 64

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?:[ \r\n]|$)")
_FRAMING = re.compile(rb"\n(content-length|transfer-encoding|connection)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_FIELD = re.compile(rb"\n([^\s:]+)[ \t]*:[ \t]*((?:[^\n]|\n[ \t])*)")
_CHUNK = re.compile(rb"\s*+([0-9a-fA-F]{1,15})[ \t]*+(?:;.*)?")


class Headers:
    """Header fields of an answer, parsed when first asked; names compare without case, order and repeats are kept."""

    __slots__ = ("_fields", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._fields: list[tuple[str, str]] | None = None

    def items(self) -> list[tuple[str, str]]:
        """(name, value) as sent, in order."""
        if self._fields is None:
            self._fields = [
                (match[1].decode("latin-1"), _unfold(match[2]).decode("latin-1"))
                for match in _FIELD.finditer(self._raw)
            ]
        return self._fields

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower()
        return [value for key, value in self.items() if key.lower() == wanted]

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field."""
        wanted = name.lower()
        return next((value for key, value in self.items() if key.lower() == wanted), default)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.items())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.get_all(name))

    def __repr__(self) -> str:
        return f"Headers({self.items()!r})"


def _unfold(value: bytes) -> bytes:
    if b"\n" in value:
        value = re.sub(rb"\r?\n[ \t]+", b" ", value)
    return value.strip(b" \t\r")


class Sink(Protocol):
    """Who takes an answer as it arrives."""

    def head(self, status: int, raw: bytes) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def fail(self, error: ArchiveError, *, unanswered: bool) -> None: ...


# What the next bytes are.
_HEAD, _LENGTH, _UNTIL_CLOSE, _CHUNK_SIZE, _CHUNK_DATA, _CHUNK_END, _TRAILERS = range(7)
_MORE = -1  # not an offset: all bytes were taken, and more are needed


class Connection(asyncio.Protocol):
    """A connection that answers one request at a time. `idle` is called when it can take the next."""

    __slots__ = (
        "_body",
        "_buffer",
        "_chunks",
        "_expects_body",
        "_idle",
        "_interim",
        "_keep",
        "_left",
        "_sink",
        "_state",
        "_transport",
        "idle_since",
        "uses",
        "where",
    )

    def __init__(self, where: str, idle: Callable[[Connection], None]) -> None:
        self.where = where
        self.uses = 0
        self.idle_since = 0.0
        self._idle = idle
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self._buffer = bytearray()
        self._state = _HEAD
        self._left = 0
        self._chunks = 0
        self._body = 0
        self._interim = 0
        self._keep = False
        self._expects_body = True

    # --- the door

    @property
    def usable(self) -> bool:
        """Open, and not busy."""
        return self._transport is not None and self._sink is None and not self._transport.is_closing()

    def send(self, request: bytes, sink: Sink, *, expects_body: bool = True) -> None:
        """Write a request; the answer goes to `sink`."""
        assert self._transport is not None and self._sink is None
        self._sink = sink
        self._state = _HEAD
        self._interim = self._chunks = self._body = 0
        self._expects_body = expects_body
        self.uses += 1
        self._transport.write(request)

    def close(self) -> None:
        """Drop the connection at once; a request under way is forgotten without a word."""
        self._sink = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]  # uvloop's transports are registered by duck type

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._sink is None:
            return
        if self._state == _UNTIL_CLOSE and exc is None:
            self._keep = False
            self._finish()
        elif self._state == _HEAD:
            why = str(exc) if exc else "the connection was closed without an answer"
            self._give_up(ArchiveUnreachable("no answer", where=self.where, why=why), unanswered=not self._buffer)
        else:
            why = str(exc or "connection closed early")
            self._give_up(AnswerCutShort("answer cut short", where=self.where, why=why))

    def data_received(self, data: bytes) -> None:
        if self._sink is None:
            # Unrequested bytes: they could be taken for the next response.
            self.close()
            return
        if self._buffer:
            seen = len(self._buffer)
            self._buffer += data
            if self._state == _HEAD and not self._may_read_head(seen):
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        try:
            self._read(data)
        except BadAnswer as error:
            self._give_up(error)

    # --- reading: each step takes the bytes and an offset, and returns the offset behind what it read, or _MORE

    def _may_read_head(self, seen: int) -> bool:
        """Whether the buffer has a whole head, or one that is wrong; only bytes not `seen` before are searched."""
        buffer = self._buffer
        start = max(0, seen - 3)
        return (
            len(buffer) > MAX_HEAD
            or (seen < 5 and not buffer.startswith(b"HTTP/"))
            or buffer.find(b"\n\r\n", start) >= 0
            or buffer.find(b"\n\n", start) >= 0
        )

    def _read(self, data: bytes) -> None:
        at = 0
        while self._sink is not None:
            state = self._state
            if state == _HEAD:
                at = self._read_head(data, at)
            elif state == _LENGTH:
                at = self._read_counted(data, at)
            elif state == _UNTIL_CLOSE:
                if at < len(data):
                    self._sink.data(data[at:] if at else data)
                return
            elif state == _TRAILERS:
                at = self._read_trailers(data, at)
            else:
                at = self._read_chunks(data, at)
            if at == _MORE:
                return
        if at < len(data):
            # An answer ended and more follows: nothing was asked, so the connection cannot be trusted.
            self._drop()

    def _keep_rest(self, data: bytes, at: int) -> int:
        """Wait for more bytes; those from `at` on are read again then."""
        self._buffer += data[at:] if at else data
        return _MORE

    def _read_head(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n\r\n", at)
        skip = 4
        bare = data.find(b"\n\n", at, end if end >= 0 else len(data))
        if bare >= 0:
            end, skip = bare, 2
        if end < 0:
            if len(data) - at > MAX_HEAD:
                raise BadAnswer("no end of headers", where=self.where, why=f"{len(data) - at} bytes read")
            if len(data) - at >= 5 and not data.startswith(b"HTTP/", at):
                raise BadAnswer("not HTTP", where=self.where, why=repr(data[at : at + 40]))
            return self._keep_rest(data, at)
        raw = data[at:end]
        match = _STATUS.match(raw)
        if match is None:
            raise BadAnswer("not HTTP/1", where=self.where, why=repr(raw[:40]))
        status = int(match[2])
        if status < 200:
            self._interim += 1
            if status == 101 or self._interim > _MOST_INTERIM:
                raise BadAnswer("no answer, only interim ones", where=self.where, why=f"status {status}")
            return end + skip
        self._frame(status, raw, keep=match[1] == b"1")
        assert self._sink is not None
        self._sink.head(status, raw)
        if self._sink is not None and self._state == _LENGTH and self._left == 0:
            self._finish()
        return end + skip

    def _frame(self, status: int, raw: bytes, *, keep: bool) -> None:
        """Where the body ends, by RFC 9112 section 6.3."""
        lengths: set[bytes] = set()
        coding = b""
        for match in _FRAMING.finditer(raw):
            name = match[1].lower()
            value = match[2].strip().lower()
            if name == b"content-length":
                lengths.update(part.strip() for part in value.split(b","))
            elif name == b"transfer-encoding":
                coding = coding + b"," + value if coding else value
            elif b"close" in value:
                keep = False
            elif b"keep-alive" in value:
                keep = True
        self._keep = keep
        if not self._expects_body or status in (204, 304):
            self._state, self._left = _LENGTH, 0
        elif coding:
            if coding.rpartition(b",")[2].strip() != b"chunked":
                raise BadAnswer("unknown transfer coding", where=self.where, why=repr(coding[:40]))
            self._keep = keep and not lengths
            self._state = _CHUNK_SIZE
        elif lengths:
            value = lengths.pop()
            if lengths or not value.isdigit() or len(value) > 15:
                raise BadAnswer("unclear length", where=self.where, why=repr(value[:40]))
            self._state, self._left = _LENGTH, int(value)
        else:
            self._state, self._keep = _UNTIL_CLOSE, False

    def _read_counted(self, data: bytes, at: int) -> int:
        assert self._sink is not None
        there = len(data) - at
        if there <= 0:
            return _MORE
        if there < self._left:
            self._left -= there
            self._sink.data(data[at:] if at else data)
            return _MORE
        end = at + self._left
        self._left = 0
        self._sink.data(data if at == 0 and end == len(data) else data[at:end])
        if self._sink is not None:
            self._finish()
        return end

    def _read_chunks(self, data: bytes, at: int) -> int:
        """All chunks that are in `data`, handed on together: an archive that sends them byte by byte must not cost a
        call of the sink, and a copy of the rest, for each."""
        parts: list[bytes] = []
        try:
            at = self._collect_chunks(data, at, parts)
        finally:
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self._body += len(body)
            if body and self._sink is not None:
                self._sink.data(body)
        if self._chunks > _FREE_CHUNKS + self._body // _CHUNK_BYTES:
            raise BadAnswer("too many small chunks", where=self.where, why=f"{self._chunks} for {self._body} bytes")
        return at

    def _collect_chunks(self, data: bytes, at: int, parts: list[bytes]) -> int:
        while True:
            if self._state == _CHUNK_DATA:
                end = min(at + self._left, len(data))
                if end > at:
                    parts.append(data[at:end])
                self._left -= end - at
                at = end
                if self._left:
                    return _MORE
                self._state = _CHUNK_END
            if self._state == _CHUNK_END:
                if data.startswith(b"\r\n", at):
                    at += 2
                elif data.startswith(b"\n", at):
                    at += 1
                elif data[at:] in (b"", b"\r"):
                    return self._keep_rest(data, at)
                else:
                    raise BadAnswer("chunk longer than it says", where=self.where)
                self._state = _CHUNK_SIZE
            end = data.find(b"\n", at, at + _MAX_CHUNK_LINE + 2)
            if end < 0:
                if len(data) - at > _MAX_CHUNK_LINE:
                    raise BadAnswer("endless chunk line", where=self.where)
                return self._keep_rest(data, at)
            size = self._chunk_size(data[at:end])
            at = end + 1
            if not size:
                # Of trailers, what may still come is counted down.
                self._state, self._left = _TRAILERS, _MAX_TRAILERS
                return at
            self._chunks += 1
            self._state, self._left = _CHUNK_DATA, size

    def _chunk_size(self, line: bytes) -> int:
        match = _CHUNK.fullmatch(line.rstrip(b"\r"))
        if match is None:
            raise BadAnswer("bad chunk size", where=self.where, why=repr(line[:40]))
        return int(match[1], 16)

    def _read_trailers(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        size = (len(data) if end < 0 else end) - at
        if size > self._left or size > _MAX_TRAILER_LINE:
            raise BadAnswer("endless trailers", where=self.where)
        if end < 0:
            return self._keep_rest(data, at)
        if data[at:end].strip():
            self._left -= size
            return end + 1
        self._finish()
        return end + 1

    # --- ending

    def _finish(self) -> None:
        sink, self._sink = self._sink, None
        if self._keep and self._transport is not None and not self._transport.is_closing():
            self._idle(self)
        else:
            self._drop()
        if sink is not None:
            sink.end()

    def _drop(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _give_up(self, error: ArchiveError, *, unanswered: bool = False) -> None:
        sink, self._sink = self._sink, None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        if sink is not None:
            sink.fail(error, unanswered=unanswered)
