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
_MOST_INTERIM = 20

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?:[ \r\n]|$)")
_FRAMING = re.compile(rb"\n(content-length|transfer-encoding|connection)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_FIELD = re.compile(rb"\n([^\s:]+)[ \t]*:[ \t]*((?:[^\n]|\n[ \t])*)")
_CHUNK = re.compile(rb"\s*([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?")


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


class Connection(asyncio.Protocol):
    """A connection that answers one request at a time. `idle` is called when it can take the next."""

    __slots__ = (
        "_buffer",
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
        self._buffer = b""
        self._state = _HEAD
        self._left = 0
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
        self._interim = 0
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
            data = self._buffer + data
            self._buffer = b""
        try:
            self._read(data)
        except BadAnswer as error:
            self._give_up(error)

    # --- reading

    def _read(self, data: bytes) -> None:
        while self._sink is not None:
            state = self._state
            if state == _HEAD:
                rest = self._read_head(data)
            elif state in (_LENGTH, _CHUNK_DATA):
                rest = self._read_counted(data)
            elif state == _UNTIL_CLOSE:
                if data:
                    self._sink.data(data)
                return
            elif state == _CHUNK_SIZE:
                rest = self._read_chunk_size(data)
            elif state == _CHUNK_END:
                rest = self._read_chunk_end(data)
            else:
                rest = self._read_trailers(data)
            if rest is None:
                return
            data = rest
        if data:
            # An answer ended and more follows: nothing was asked, so the connection cannot be trusted.
            self._drop()

    def _read_head(self, data: bytes) -> bytes | None:
        end = data.find(b"\r\n\r\n")
        skip = 4
        bare = data.find(b"\n\n", 0, end if end >= 0 else len(data))
        if bare >= 0:
            end, skip = bare, 2
        if end < 0:
            if len(data) > MAX_HEAD:
                raise BadAnswer("no end of headers", where=self.where, why=f"{len(data)} bytes read")
            if len(data) >= 5 and not data.startswith(b"HTTP/"):
                raise BadAnswer("not HTTP", where=self.where, why=repr(data[:40]))
            self._buffer = data
            return None
        raw = data[:end]
        match = _STATUS.match(raw)
        if match is None:
            raise BadAnswer("not HTTP/1", where=self.where, why=repr(raw[:40]))
        status = int(match[2])
        if status < 200:
            self._interim += 1
            if status == 101 or self._interim > _MOST_INTERIM:
                raise BadAnswer("no answer, only interim ones", where=self.where, why=f"status {status}")
            return data[end + skip :]
        self._frame(status, raw, keep=match[1] == b"1")
        assert self._sink is not None
        self._sink.head(status, raw)
        if self._sink is not None and self._state == _LENGTH and self._left == 0:
            self._finish()
        return data[end + skip :]

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

    def _read_counted(self, data: bytes) -> bytes | None:
        if not data:
            return None
        assert self._sink is not None
        left = self._left
        if len(data) < left:
            self._left = left - len(data)
            self._sink.data(data)
            return None
        body = data if len(data) == left else data[:left]
        self._left = 0
        if body:
            self._sink.data(body)
        if self._state == _CHUNK_DATA:
            self._state = _CHUNK_END
        elif self._sink is not None:
            self._finish()
        return data[left:]

    def _read_chunk_size(self, data: bytes) -> bytes | None:
        end = data.find(b"\n")
        if end < 0:
            if len(data) > _MAX_CHUNK_LINE:
                raise BadAnswer("endless chunk line", where=self.where)
            self._buffer = data
            return None
        match = _CHUNK.fullmatch(data[:end].rstrip(b"\r"))
        if match is None:
            raise BadAnswer("bad chunk size", where=self.where, why=repr(data[: min(end, 40)]))
        size = int(match[1], 16)
        # Of trailers, what may still come is counted down.
        self._state, self._left = (_CHUNK_DATA, size) if size else (_TRAILERS, _MAX_TRAILERS)
        return data[end + 1 :]

    def _read_chunk_end(self, data: bytes) -> bytes | None:
        if data[:1] == b"\n":
            skip = 1
        elif data[:2] == b"\r\n":
            skip = 2
        elif len(data) < 2 and data in (b"", b"\r"):
            self._buffer = data
            return None
        else:
            raise BadAnswer("chunk longer than it says", where=self.where)
        self._state = _CHUNK_SIZE
        return data[skip:]

    def _read_trailers(self, data: bytes) -> bytes | None:
        end = data.find(b"\n")
        if (len(data) if end < 0 else end) > self._left:
            raise BadAnswer("endless trailers", where=self.where)
        if end < 0:
            self._buffer = data
            return None
        if data[:end].strip():
            self._left -= end
            return data[end + 1 :]
        self._finish()
        return data[end + 1 :]

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
