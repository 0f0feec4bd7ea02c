"""WARC and ARC files as a source: responses, resources and revisits are captures (layout: `records`).

Hides: what record types mean, and where HTTP heads end. The time is the record's (WARC-Date). A record with
WARC-Truncated or of several segments, and one that the file's end cuts off, is marked as truncated. Responses to
requests other than GET are not pages; where their request record comes first they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from recollect.datetimes import parse_any
from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.http import LONGEST_HEAD, Head, bare_type, parse_head, unchunked
from recollect.sources.model import Depth, Kind, Mark, SourceCapture, SourcePayload, Tally, TimeOrigin, Wanted
from recollect.sources.records import PIECE, Opener, Record, RecordFile

_CAPTURES = frozenset(("response", "resource", "revisit"))
_WEB = re.compile(r"https?://", re.IGNORECASE)


def capture_of(record: Record, tally: Tally, label: str, on_problem: Callable[[Problem], None]) -> SourceCapture | None:
    """The capture that a record is; None for every other record, which is counted."""
    fields = record.headers
    is_arc = "arc-url" in fields
    kind = "response" if is_arc else fields.get("warc-type", "").lower()
    url = (fields["arc-url"] if is_arc else fields.get("warc-target-uri", "")).strip().strip("<>")
    if kind not in _CAPTURES or not _WEB.match(url):
        tally.note_other(kind if kind not in _CAPTURES else url.partition(":")[0][:20] or "record without URL")
        return None
    try:
        moment = parse_any(fields["arc-time"] if is_arc else fields.get("warc-date", ""))
    except FormatError as error:
        tally.damaged += 1
        on_problem(Problem(label, None, str(error), url[:120]))
        return None
    head = parse_head(record.head)
    media_type = head.get("content-type") if head else fields.get("arc-type" if is_arc else "content-type", "")
    cut = not record.whole or "warc-truncated" in fields or "warc-segment-number" in fields
    digest = fields.get("warc-payload-digest", "")
    name, mark, value = digest.partition(":")
    return SourceCapture(
        url,
        moment,
        TimeOrigin.HEADER,
        record.place,
        _status(kind, head, record),
        "" if kind == "revisit" and head is None else bare_type(media_type),
        value.upper() if mark and name.lower() == "sha1" else digest,
        record.length - (head.size if head else 0),
        kind == "revisit",
        cut,
        (Mark.TRUNCATED,) if cut else (),
    )


def _status(kind: str, head: Head | None, record: Record) -> int | None:
    if head is not None:
        return head.status
    # Resource records, and ARC blocks without a head, are the content itself.
    return None if kind == "revisit" or record.head.startswith(b"HTTP/") else 200


def payload_of(file: RecordFile, place: str) -> SourcePayload:
    """The response of the record at a place."""
    fields, read = file.block(place)
    is_http = "arc-url" in fields or fields.get("warc-type", "").lower() != "resource"
    begin = b""
    head: Head | None = None
    if is_http:
        while len(begin) < LONGEST_HEAD and (head := parse_head(begin)) is None:
            if (begin and not begin.startswith(b"HTTP/"[: len(begin)])) or not (more := read(1 << 14)):
                break
            begin += more
    if head is None and begin.startswith(b"HTTP/"):
        raise FormatError("a response without the end of its head", where=file.label)
    rest = begin[head.size :] if head else begin

    def body(count: int) -> bytes:
        nonlocal rest
        if rest:
            data, rest = rest[:count], rest[count:]
            return data
        return read(count)

    refers_to = None
    if fields.get("warc-type", "").lower() == "revisit":
        refers_to = (fields.get("warc-refers-to-target-uri", "").strip("<>"), fields.get("warc-payload-digest", ""))
    if head is None:
        media_type = fields.get("arc-type") or fields.get("content-type", "")
        headers = (("Content-Type", media_type),) if media_type else ()
        return SourcePayload(200, headers, _pieces(body), refers_to=refers_to)
    chunked = "chunked" in head.get("transfer-encoding").lower()
    chunks = unchunked(body) if chunked else _pieces(body)
    return SourcePayload(head.status or 0, head.headers, chunks, refers_to=refers_to)


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while data := read(PIECE):
        yield data


class WarcSource:
    """One WARC or ARC file."""

    depth = Depth.DEEP
    private = False

    def __init__(self, path: Path, kind: Kind = Kind.WARC, opener: Opener | None = None) -> None:
        self.kind = kind
        self.name = path.name
        self.tally = Tally()
        self._file = RecordFile(opener or (lambda: path.open("rb")), path.name)

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        posted: set[str] = set()
        for record in self._file.records(on_problem):
            if record.headers.get("warc-type", "").lower() == "request":
                if not record.head.startswith((b"GET ", b"HEAD ")) and len(posted) < 100_000:
                    posted.add(record.headers.get("warc-concurrent-to", ""))
                self.tally.note_other("request")
                continue
            if record.headers.get("warc-record-id", "-") in posted:
                self.tally.note_other("response to a form")
                continue
            capture = capture_of(record, self.tally, self._file.label, on_problem)
            if capture is None:
                continue
            self.tally.entries += 1
            if wanted(capture.url):
                self.tally.taken += 1
                yield capture

    def read(self, place: str) -> SourcePayload:
        return payload_of(self._file, place)

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        self._file.close()
