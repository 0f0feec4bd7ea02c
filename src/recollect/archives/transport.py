"""What is sent to an archive and what comes back: one request value, one door (`Transport`), one hook for permits.

Hides nothing; these are the values that `ArchiveClient`, and whoever wraps it (a meter, a bound on a listing, a desk's
worker), agree on. A wrapper changes a request with `request._replace(...)` and hands it on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from recollect.archives.http1 import Headers
    from recollect.archives.registry import Archive

MAX_BODY = 64 * 1024 * 1024
MAX_HOPS = 5


class RequestKind(StrEnum):
    """What archives limit apart."""

    INDEX = "index"
    """TimeMaps, TimeGates, listings, maps."""
    REPLAY = "replay"
    """Mementos."""


# A tuple, because a dozen are made for every lookup, and a frozen dataclass takes four times as long.
class Request(NamedTuple):
    """One request to an archive."""

    archive: Archive
    url: str
    headers: Mapping[str, str] | None = None
    kind: RequestKind = RequestKind.INDEX
    method: str = "GET"
    deadline: float | None = None
    """A moment of the loop's clock; the archive's own timeout holds as well."""
    max_bytes: int = MAX_BODY
    hops: int = MAX_HOPS
    """Redirects to follow; 0 returns the redirect itself."""
    partial: bool = False
    """Of `send`: a body cut short by the archive, the deadline or `max_bytes` is returned with what arrived, and with
    `truncated` set; otherwise that is an error."""
    decode: bool = True
    """Of `send`: undo the content coding. A stream is never decoded."""
    before: Callable[[], None] | None = None
    """Called when it is our turn, just before the request is sent; what it raises ends the request there."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. `url` is where it came from after redirects; `truncated` says why it is not all, or is empty."""

    status: int
    headers: Headers
    body: bytes
    url: str
    elapsed: float
    truncated: str = ""


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """The head of an answer whose body is read by iterating (`async for chunk in response`)."""

    status: int
    headers: Headers
    url: str
    chunks: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


class Sender(Protocol):
    """Who sends requests and returns whole answers."""

    async def send(self, request: Request) -> Response: ...


class Streamer(Protocol):
    """Who sends requests and returns answers as they come."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamedResponse]: ...


class Transport(Sender, Streamer, Protocol):
    """The one door to archives: an `ArchiveClient`, or a wrapper that counts, bounds or records."""


class Permits(Protocol):
    """Permission for single requests from a service that several processes share (one budget per archive).

    Every request that is sent takes one permit, each redirect that is followed too.
    """

    async def acquire(self, archive: Archive, kind: RequestKind, deadline: float) -> None:
        """Return when one request may be sent now. Raises ArchiveThrottled if that is not before `deadline` (a moment
        of the loop's clock), or if permission cannot be had at all."""

    def finished(self, archive: Archive) -> None:
        """A request that a permit was acquired for is over, however it ended. Must not block."""

    def paused(self, archive: Archive, kind: RequestKind, seconds: float) -> None:
        """The archive asked for a pause (429, or 503 with Retry-After). Must not block."""
