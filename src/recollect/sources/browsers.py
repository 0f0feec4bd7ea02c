"""What the caches of browsers have in common: their URLs are private, their responses lose cookies, a listing reads
heads and tails only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recollect.datetimes import parse_http_date
from recollect.errors import FormatError
from recollect.sources.http import bare_type
from recollect.sources.model import PIECE, Headers, Mark, SourceCapture, TimeOrigin

_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
WEB = re.compile(r"https?://", re.IGNORECASE)


def field(headers: Headers, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


def response_capture(
    url: str,
    place: str,
    status: int | None,
    headers: Headers,
    length: int,
    received_at: datetime | None,
    marks: tuple[Mark, ...] = (),
    origin: TimeOrigin = TimeOrigin.HEADER,
) -> SourceCapture | None:
    """The capture of a cached response; None when nothing says when it came."""
    moment = received_at or _date(headers)
    if moment is None:
        return None
    stated = field(headers, "content-length")
    encoded = bool(field(headers, "content-encoding"))
    if stated.isdigit() and len(stated) < 16 and not encoded and length < int(stated) and Mark.PARTIAL not in marks:
        marks = (*marks, Mark.PARTIAL)
    if status == 206 and Mark.PARTIAL not in marks:
        marks = (*marks, Mark.PARTIAL)
    if _is_expired(headers, moment):
        marks = (*marks, Mark.EXPIRED)
    whole = Mark.PARTIAL not in marks and Mark.TRUNCATED not in marks
    return SourceCapture(
        url,
        moment.replace(microsecond=0),
        origin,
        place,
        status,
        bare_type(field(headers, "content-type")),
        "",
        length,
        altered=not whole,
        marks=marks,
    )


def _date(headers: Headers) -> datetime | None:
    for name in ("date", "last-modified"):
        try:
            return parse_http_date(field(headers, name))
        except FormatError:
            continue
    return None


def _is_expired(headers: Headers, received_at: datetime) -> bool:
    """Would the browser have to ask again today? The bytes are good all the same."""
    age = _MAX_AGE.search(field(headers, "cache-control"))
    now = datetime.now(UTC)
    if age is not None:
        return received_at + timedelta(seconds=min(int(age[1]), 10**9)) < now
    try:
        return parse_http_date(field(headers, "expires")) < now
    except FormatError:
        return False


def moment_of(seconds: float) -> datetime | None:
    """The time of a number of seconds since 1970; None for one that cannot be."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment if datetime(1990, 1, 1, tzinfo=UTC) < moment < _LATEST else None


def slice_of(path: Path, start: int, length: int) -> Iterator[bytes]:
    """Bytes of a file; raises FormatError when it is shorter."""
    with path.open("rb") as file:
        file.seek(start)
        while length:
            data = file.read(min(PIECE, length))
            if not data:
                raise FormatError("a cache entry is cut off", where=path.name, why=f"{length:,} bytes are missing")
            length -= len(data)
            yield data
