"""MHTML files: one page with all that it embeds, as a mail of parts (RFC 2557; Chromium's "Webpage, Single File").

A head (`Snapshot-Content-Location`: the page; `Date`; `Content-Type: multipart/related` with the boundary), then parts
with `Content-Location` and a body in quoted-printable or base64. Browsers write the page as it stood after its scripts
ran, and style sheets rewritten: both count as altered; images and other files are the bytes that were served.

A scan of lines finds where the parts lie; only one part is decoded at a time.
"""

from __future__ import annotations

import base64
import binascii
import quopri
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.parser import BytesHeaderParser
from email.policy import default
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.browsers import WEB, moment_of
from recollect.sources.model import Depth, Kind, SourceCapture, SourcePayload, Tally, TimeOrigin, Wanted

_LONGEST_HEAD = 1 << 16
_LONGEST_PART = 512 << 20
_ALTERED = ("text/html", "application/xhtml+xml", "text/css", "image/svg+xml")


class _Part(NamedTuple):
    start: int
    end: int
    fields: dict[str, str]


class MhtmlSource:
    """One MHTML file."""

    kind = Kind.MHTML
    depth = Depth.FLAT
    private = False

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.tally = Tally()
        self._path = path

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        head, parts = _parts(self._path)
        moment, origin = _date(head, self._path)
        seen: set[str] = set()
        for part in parts:
            self.tally.entries += 1
            url = part.fields.get("content-location", "") or (
                head.get("snapshot-content-location", "") if not seen else ""
            )
            if not WEB.match(url) or url in seen:
                self.tally.note_other("part without an address")
                continue
            seen.add(url)
            media_type = part.fields.get("content-type", "").partition(";")[0].strip().lower()
            if wanted(url):
                self.tally.taken += 1
                altered = media_type in _ALTERED
                place = f"{part.start}-{part.end}"
                yield SourceCapture(url, moment, origin, place, 200, media_type, altered=altered)
        if not seen:
            on_problem(Problem(self.name, None, "no part of it has an address"))

    def read(self, place: str) -> SourcePayload:
        start, mark, end = place.partition("-")
        if not mark or not start.isdigit() or not end.isdigit() or int(end) - int(start) > _LONGEST_PART:
            raise FormatError("no such part", where=self.name)
        with self._path.open("rb") as file:
            file.seek(int(start))
            data = file.read(int(end) - int(start))
        fields, size = _head(data)
        body = _decoded(data[size:], fields.get("content-transfer-encoding", ""), self.name)
        kind = fields.get("content-type", "application/octet-stream")
        return SourcePayload(200, (("Content-Type", kind),), iter((body,)))

    def seeds(self) -> tuple[str, ...]:
        with self._path.open("rb") as file:
            fields, _ = _head(file.read(_LONGEST_HEAD))
        url = fields.get("snapshot-content-location", "")
        return (url,) if WEB.match(url) else ()

    def close(self) -> None:
        pass


def is_mhtml(head: bytes) -> bool:
    """Does a file that begins so look like MHTML?"""
    lower = head[:_LONGEST_HEAD].lower()
    begins = lower.lstrip().startswith((b"from:", b"mime-version:", b"date:", b"content-type:", b"subject:"))
    return begins and b"multipart/related" in lower and b"boundary=" in lower


def _head(data: bytes) -> tuple[dict[str, str], int]:
    """The fields of a head, names in lower case, and where its body begins."""
    ends = [(data.find(mark), len(mark)) for mark in (b"\r\n\r\n", b"\n\n")]
    found = [(at, size) for at, size in ends if 0 <= at <= _LONGEST_HEAD]
    if not found:
        return {}, 0
    at, size = min(found)
    try:
        message = BytesHeaderParser(policy=default).parsebytes(data[:at] + b"\r\n\r\n")
        fields = {name.lower(): str(value).replace("\r", "").replace("\n", "") for name, value in message.items()}
    except (ValueError, TypeError, IndexError, AttributeError, KeyError):  # of headers that the library cannot parse
        fields = {}
    return fields, at + size


def _boundary(head: dict[str, str]) -> bytes:
    from email.message import Message

    message = Message()
    message["Content-Type"] = head.get("content-type", "")
    try:
        boundary = message.get_boundary()
    except (ValueError, TypeError, IndexError):
        boundary = None
    if not boundary:
        raise FormatError("no MHTML file", why="its head has no boundary")
    return boundary.encode("utf-8", "replace")


def _parts(path: Path) -> tuple[dict[str, str], list[_Part]]:
    """The head of the file, and its parts."""
    with path.open("rb") as file:
        head, _ = _head(file.read(_LONGEST_HEAD))
        mark = b"--" + _boundary(head)
        file.seek(0)
        places: list[tuple[int, int]] = []  # where each boundary line begins and ends
        at = 0
        while line := file.readline(1 << 16):
            if line.startswith(mark) and line.rstrip()[len(mark) :] in (b"", b"--"):
                places.append((at, at + len(line)))
            at += len(line)
        places.append((at, at))
        parts = []
        for (_, start), (end, _) in pairwise(places):
            file.seek(start)
            fields, size = _head(file.read(min(end - start, _LONGEST_HEAD)))
            if fields and size:
                parts.append(_Part(start, end, fields))
    return head, parts


def _date(head: dict[str, str], path: Path) -> tuple[datetime, TimeOrigin]:
    try:
        moment = parsedate_to_datetime(head.get("date", ""))
        utc = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        return utc.replace(microsecond=0), TimeOrigin.HEADER
    except (ValueError, TypeError, IndexError, OverflowError):
        fallback = moment_of(path.stat().st_mtime) or datetime(1990, 1, 2, tzinfo=UTC)
        return fallback.replace(microsecond=0), TimeOrigin.FILE


def _decoded(data: bytes, encoding: str, name: str) -> bytes:
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    kind = encoding.strip().lower()
    if kind == "quoted-printable":
        return quopri.decodestring(data)
    if kind != "base64":
        return data
    try:
        return base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError) as error:
        raise FormatError("a part is damaged", where=name, why=str(error)) from error
