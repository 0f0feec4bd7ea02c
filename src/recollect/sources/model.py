"""What all sources have in common: captures, payloads, and the protocol that recovery reads them by.

Hides nothing. A source is opened by `recognise.open_source`, listed once (`captures`), and read by the places that the
listing gave (`read`). Invariants: listing reads no more of a file than its index, heads and tails need; a `place` is
valid for the source that gave it only; a payload that is damaged raises FormatError, it never comes short in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from recollect.model import Problem

Wanted = Callable[[str], bool]
Headers = tuple[tuple[str, str], ...]
PIECE = 1 << 18
# Fields of a browser's traffic that identify a person; they are not read out of its cache.
_SECRET = frozenset(
    {"set-cookie", "set-cookie2", "cookie", "authorization", "proxy-authorization", "authentication-info"}
    | {"proxy-authenticate", "www-authenticate", "proxy-authentication-info", "clear-site-data"}
)


class Kind(StrEnum):
    """Formats, as people call them."""

    WARC = "WARC"
    ARC = "ARC"
    WACZ = "WACZ"
    CDXJ = "index of WARC files"
    FOLDER = "folder"
    HAR = "HAR"
    MHTML = "MHTML"
    SAVED = "saved page"
    WGET = "mirror"
    HTTRACK = "HTTrack mirror"
    WAYBACKPACK = "waybackpack download"
    DOWNLOADER = "wayback-machine-downloader download"
    BACKUP = "backup"
    CHROMIUM = "Chromium cache"
    FIREFOX = "Firefox cache"


class TimeOrigin(StrEnum):
    """Where the time of a capture comes from."""

    HEADER = "header"  # of the record or the response
    INDEX = "index"
    FILE = "file"  # the time of a file: when it was written, which may be much later


class Mark(StrEnum):
    """What is known about an entry that is not simply a whole response."""

    PARTIAL = "partial"
    EXPIRED = "expired"
    TRUNCATED = "truncated"


class Depth(StrEnum):
    """Whether a source keeps several captures of one URL (McCown 2007, section III.3.1)."""

    FLAT = "flat"
    DEEP = "deep"


class SourceCapture(NamedTuple):
    """One capture in a source; a tuple, because a large source has millions."""

    url: str
    captured_at: datetime
    origin: TimeOrigin
    place: str
    status: int | None = 200
    media_type: str = ""
    digest: str = ""
    length: int | None = None
    revisit: bool = False
    altered: bool = False
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcePayload:
    """A stored response. `chunks` is read once; the content encoding is still on it, the transfer encoding is not."""

    status: int
    headers: Headers
    chunks: Iterator[bytes]
    wrapped: bool = False  # a Wayback Machine rewrote its links
    refers_to: tuple[str, str] | None = None  # a revisit: URL and digest of the record with the bytes

    def header(self, name: str) -> str:
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")


@dataclass(slots=True)
class Tally:
    """What listing a source saw."""

    entries: int = 0  # looked at
    taken: int = 0  # listed, because they are in scope
    damaged: int = 0
    others: dict[str, int] = field(default_factory=dict)  # not captures, by kind

    def note_other(self, kind: str) -> None:
        self.others[kind] = self.others.get(kind, 0) + 1


class Source(Protocol):
    """A file or folder that holds captures."""

    kind: Kind
    name: str  # for people
    depth: Depth
    private: bool  # a person's browser: only URLs in scope are read out of it

    @property
    def tally(self) -> Tally: ...

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        """Every capture whose URL is wanted; damage is reported, and the rest follows."""

    def read(self, place: str) -> SourcePayload:
        """The response at a place of the listing; raises FormatError when it is damaged."""

    def seeds(self) -> tuple[str, ...]:
        """Pages the collection was begun with, where the source says so."""

    def close(self) -> None:
        """Close files and remove temporary ones."""


def public_headers(headers: Headers) -> Headers:
    """Headers without cookies and credentials."""
    return tuple((name, value) for name, value in headers if name.lower() not in _SECRET)
