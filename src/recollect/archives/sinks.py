"""Two ways to take an answer from a connection: whole, or as it comes.

Hides: the bounds on size, what an expired deadline does to a half-read body, and back pressure. A sink belongs to one
request; its waiter is done when the answer is (Whole) or when its head is there (Streamed).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from io import BytesIO

from recollect.archives.http1 import Connection
from recollect.errors import AnswerTooBig, ArchiveError, ArchiveTimeout

_HIGH_WATER = 512 * 1024  # unread bytes at which the archive is made to wait
_GROWN = 1 << 20  # bytes from which a body grows in place: joining many parts would hold up the loop


class Whole:
    """Collects a body up to `limit` bytes. With `partial`, what came before a failure is kept and `cut` says why."""

    __slots__ = (
        "_connection",
        "_grown",
        "_limit",
        "_loop",
        "_partial",
        "_parts",
        "_size",
        "_waiter",
        "cut",
        "raw",
        "status",
        "unanswered",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int, partial: bool) -> None:
        self._loop = loop
        self._limit = limit
        self._partial = partial
        self._parts: list[bytes] = []
        self._grown: BytesIO | None = None
        self._size = 0
        self._connection: Connection | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.status = 0
        self.raw = b""
        self.cut = ""
        self.unanswered = False

    def start(self, connection: Connection) -> asyncio.Future[None]:
        self._connection = connection
        self._waiter = waiter = self._loop.create_future()
        self.unanswered = False
        return waiter

    def body(self) -> bytes:
        if self._grown is not None:
            return self._grown.getvalue()  # not a copy
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def discard(self) -> None:
        """Nothing is held: the answer was read to its end."""

    def head(self, status: int, raw: bytes) -> None:
        self.status = status
        self.raw = raw

    def data(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= self._limit:
            self._add(chunk)
            return
        self._add(chunk[: len(chunk) - (self._size - self._limit)])
        assert self._connection is not None
        where = self._connection.where
        self._connection.close()
        self._stop(AnswerTooBig("answer too big", where=where, why=f"more than {self._limit} bytes"))

    def _add(self, chunk: bytes) -> None:
        if self._grown is None and self._size < _GROWN:
            self._parts.append(chunk)
            return
        if self._grown is None:
            self._grown = BytesIO()
            self._grown.writelines(self._parts)
            self._parts.clear()
        self._grown.write(chunk)

    def end(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def fail(self, error: ArchiveError, *, unanswered: bool) -> None:
        self.unanswered = unanswered
        self._stop(error)

    def expire(self) -> None:
        """The deadline passed."""
        if self._waiter is None or self._waiter.done():
            return
        assert self._connection is not None
        where = self._connection.where
        self._connection.close()
        stage = "the answer was not finished" if self.status else "no answer came"
        self._stop(ArchiveTimeout("deadline passed", where=where, why=stage))

    def _stop(self, error: ArchiveError) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if self._partial and self.status:
            self.cut = error.why or error.what
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)


class Streamed:
    """Hands a body on in chunks; a slow reader slows the archive down, not our memory up."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_error",
        "_limit",
        "_loop",
        "_paused",
        "_seen",
        "_waiter",
        "_waiting",
        "done",
        "raw",
        "status",
        "unanswered",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._loop = loop
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._waiting = 0  # bytes in the queue
        self._seen = 0
        self._paused = False
        self._connection: Connection | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: ArchiveError | None = None
        self.done = False
        self.status = 0
        self.raw = b""
        self.unanswered = False

    def start(self, connection: Connection) -> asyncio.Future[None]:
        self._connection = connection
        self._waiter = waiter = self._loop.create_future()
        self._error = None
        self.done = False
        self.unanswered = False
        return waiter

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._waiting -= len(chunk)
                if self._paused and self._waiting < _HIGH_WATER // 2:
                    self._paused = False
                    assert self._connection is not None
                    self._connection.resume()
                yield chunk
            elif self._error is not None:
                raise self._error
            elif self.done:
                return
            else:
                self._waiter = self._loop.create_future()
                await self._waiter

    def discard(self) -> None:
        """The reader is through: a connection still in the middle of a body is closed."""
        if not self.done and self._connection is not None:
            self._connection.close()
            self.done = True

    def head(self, status: int, raw: bytes) -> None:
        self.status = status
        self.raw = raw
        self._wake()

    def data(self, chunk: bytes) -> None:
        assert self._connection is not None
        self._seen += len(chunk)
        if self._seen > self._limit:
            where = self._connection.where
            self._connection.close()
            self._stop(AnswerTooBig("answer too big", where=where, why=f"more than {self._limit} bytes"))
            return
        self._chunks.append(chunk)
        self._waiting += len(chunk)
        if self._waiting > _HIGH_WATER and not self._paused:
            self._paused = True
            self._connection.pause()
        self._wake()

    def end(self) -> None:
        self.done = True
        if self._paused:
            # The connection goes back to its pool, where it must hear when the archive hangs up.
            self._paused = False
            assert self._connection is not None
            self._connection.resume()
        self._wake()

    def fail(self, error: ArchiveError, *, unanswered: bool) -> None:
        self.unanswered = unanswered
        self._stop(error)

    def expire(self) -> None:
        if self.done:
            return
        assert self._connection is not None
        where = self._connection.where
        self._connection.close()
        stage = "the answer was not finished" if self.status else "no answer came"
        self._stop(ArchiveTimeout("deadline passed", where=where, why=stage))

    def _stop(self, error: ArchiveError) -> None:
        self.done = True
        self._error = error
        if self._waiter is not None and not self._waiter.done():
            if self.status:
                self._waiter.set_result(None)
            else:
                self._waiter.set_exception(error)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
