"""Captures in WARC, ARC and WACZ files.

Hides the loop over records. The bytes come through `containers`, so that damage is found and reported. Records of type
response, resource and revisit are captures; request, metadata, warcinfo, conversion, continuation and `dns:` go to
`on_other`. The language of a capture is that of its Content-Language field; with `detect`, that of its text
where the field is missing. Otherwise payloads are skipped.

A WARC record is a version line (`WARC/1.0`), header lines, an empty line, Content-Length bytes and two line ends. After
a wrong length or unexpected bytes, reading reports them and continues at the next line that begins a record. An ARC
record is one line (URL, address, time, media type, perhaps more, length) and its block; it is read in the same way.

A WACZ is a zip file: its own index (`indexes/*.cdx[j][.gz]`) is read if it has one, else the WARCs under `archive/`.
"""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple, cast

from recollect.datetimes import format_timestamp, parse_any
from recollect.errors import BadURI, FormatError
from recollect.formats.cdx import (
    HEADER,
    REVISIT,
    Capture,
    Layout,
    NotACapture,
    clean_media_type,
    parse_cdx,
    parse_cdxj,
    parse_layout,
    what_it_is,
)
from recollect.formats.containers import InputStream, input_over
from recollect.formats.languages import Detector, detected_language, header_language
from recollect.model import Problem
from recollect.uris import surt

OnProblem = Callable[[Problem], None]
OnOther = Callable[[str], None]
_CAPTURES = ("response", "resource", "revisit")
_LONGEST_LINE = 1 << 16
# Version 1 has five fields, version 2 ten; URLs and media types with spaces in them are found in real files.
_ARC_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*+:", re.IGNORECASE)
_ARC_HOST = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*+:[0-9a-f:.]*+|-|unknown|0", re.IGNORECASE | re.ASCII)
_ARC_TIME = re.compile(r"\d{8,14}", re.ASCII)
_ARC_LENGTH = re.compile(r"\d{1,15}", re.ASCII)
_HTTP_HEAD = 1 << 16


def read_warc(
    stream: IO[bytes],
    label: str,
    on_problem: OnProblem,
    on_other: OnOther,
    *,
    all_schemes: bool = False,
    detect: Detector | None = None,
) -> Iterator[Capture]:
    """The captures of a WARC file; `label` is what problems call it."""
    number = 0
    for headers, head in _walk(stream, label, on_problem):
        number += 1
        kind = headers.get("warc-type", "").lower()
        if kind not in _CAPTURES:
            on_other(kind or "record without type")
            continue
        http = _http_head(head) if head.startswith(b"HTTP/") else _Head(media_type=headers.get("content-type"))
        yield from _checked(
            label, number, on_problem, on_other, all_schemes,
            url=headers.get("warc-target-uri", ""),
            moment=headers.get("warc-date", ""),
            status=http.status,
            media_type=REVISIT if kind == "revisit" else http.media_type,
            language=_language(http, head, detect),
            digest=headers.get("warc-payload-digest"),
            length=int(headers["content-length"]),
        )  # fmt: skip


def _walk(stream: IO[bytes], label: str, on_problem: OnProblem) -> Iterator[tuple[dict[str, str], bytes]]:
    """Headers (names in lower case) and the first bytes of the block of each record. Damage of the container is one
    problem, reported by the stream; records of later gzip members follow."""
    yield from _records(stream, label, on_problem)
    while isinstance(stream, InputStream) and stream.resume():
        yield from _records(stream, label, on_problem)


def _records(stream: IO[bytes], label: str, on_problem: OnProblem) -> Iterator[tuple[dict[str, str], bytes]]:
    offset = 0
    lost = False
    while line := stream.readline(_LONGEST_LINE):
        start = offset
        offset += len(line)
        if not line.startswith(b"WARC/"):
            if line.strip() and not lost:
                lost = True
                on_problem(Problem(label, None, f"no record where one should begin, at byte {start}", _shown(line)))
            continue
        lost = False
        headers, size = _header_lines(stream)
        offset += size
        length = headers.get("content-length", "")
        if not length.isascii() or not length.isdigit():
            lost = True
            if not _is_damaged(stream):
                on_problem(Problem(label, None, f"a record without Content-Length, at byte {start}", _shown(line)))
            continue
        head = stream.read(min(int(length), _HTTP_HEAD))
        skipped = _skip(stream, int(length) - len(head))
        offset += len(head) + skipped
        yield headers, head
        if len(head) + skipped < int(length) and not _is_damaged(stream):
            on_problem(Problem(label, None, f"the last record, at byte {start}, is cut off"))


def _is_damaged(stream: IO[bytes]) -> bool:
    """Whether the stream ends early here, which it reports itself."""
    return isinstance(stream, InputStream) and stream.is_broken


def _header_lines(stream: IO[bytes]) -> tuple[dict[str, str], int]:
    headers: dict[str, str] = {}
    size = 0
    last = ""
    while line := stream.readline(_LONGEST_LINE):
        size += len(line)
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not text:
            break
        if text[0] in " \t" and last:
            headers[last] += " " + text.strip()
            continue
        name, _, value = text.partition(":")
        last = name.strip().lower()
        headers[last] = value.strip()
    return headers, size


class _Head(NamedTuple):
    """What the head of an HTTP response says."""

    status: int | None = None
    media_type: str | None = None
    language: str = ""


def _http_head(block: bytes) -> _Head:
    """The head of an HTTP response that begins so."""
    first, *lines = re.split(rb"\r?\n", re.split(rb"\r?\n\r?\n", block, maxsplit=1)[0])
    words = first.split(None, 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else None
    media_type, language = None, ""
    for line in lines:
        name, _, value = line.partition(b":")
        field = name.strip().lower()
        if field == b"content-type" and media_type is None:
            media_type = value.strip().decode("latin-1")
        elif field == b"content-language" and not language:
            language = header_language(value.decode("latin-1"))
    return _Head(status, media_type, language)


def _language(http: _Head, head: bytes, detect: Detector | None) -> str | None:
    if detect is not None and not http.language:
        return detected_language(head, http.media_type or "", detect) or None
    return http.language or None


def _skip(stream: IO[bytes], count: int) -> int:
    left = count
    while left > 0 and (piece := stream.read(min(left, 1 << 20))):
        left -= len(piece)
    return count - left


def _shown(line: bytes) -> str:
    return line[:80].decode("utf-8", "replace").strip()


def read_arc(
    stream: IO[bytes],
    label: str,
    on_problem: OnProblem,
    on_other: OnOther,
    *,
    all_schemes: bool = False,
    detect: Detector | None = None,
) -> Iterator[Capture]:
    """The captures of an ARC file."""
    number = 0
    for header, head in _walk_arc(stream, label, on_problem):
        number += 1
        if header["url"].startswith("filedesc:"):
            on_other("filedesc")
            continue
        http = _http_head(head) if head.startswith(b"HTTP/") else _Head()
        yield from _checked(
            label, number, on_problem, on_other, all_schemes,
            url=header["url"],
            moment=header["time"],
            status=http.status,
            media_type=http.media_type or header["type"],
            language=_language(http, head, detect),
            digest=None,
            length=int(header["length"]),
        )  # fmt: skip


def _walk_arc(stream: IO[bytes], label: str, on_problem: OnProblem) -> Iterator[tuple[dict[str, str], bytes]]:
    """The header and the first bytes of the block of each record; see `_walk`."""
    yield from _arc_records(stream, label, on_problem)
    while isinstance(stream, InputStream) and stream.resume():
        yield from _arc_records(stream, label, on_problem)


def arc_header(line: str) -> dict[str, str] | None:
    """The fields of a record's first line: the URL ends before the first address that a time follows."""
    words = line.split(" ")
    if not _ARC_SCHEME.match(line) or not _ARC_LENGTH.fullmatch(words[-1]):
        return None
    for at in range(1, len(words) - 2):
        if _ARC_TIME.fullmatch(words[at + 1]) and _ARC_HOST.fullmatch(words[at]):
            kind = words[at + 2].split(maxsplit=1)[:1] if at + 3 < len(words) else []
            url = " ".join(words[:at])
            return {"url": url, "time": words[at + 1], "type": "".join(kind), "length": words[-1]}
    return None


def _arc_records(stream: IO[bytes], label: str, on_problem: OnProblem) -> Iterator[tuple[dict[str, str], bytes]]:
    offset = 0
    lost = False
    while line := stream.readline(_LONGEST_LINE):
        start = offset
        offset += len(line)
        header = arc_header(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
        if header is None:
            if line.strip() and not lost:
                lost = True
                on_problem(Problem(label, None, f"no record where one should begin, at byte {start}", _shown(line)))
            continue
        lost = False
        length = int(header["length"])
        head = stream.read(min(length, _HTTP_HEAD))
        skipped = _skip(stream, length - len(head))
        offset += len(head) + skipped
        yield header, head
        if len(head) + skipped < length and not _is_damaged(stream):
            on_problem(Problem(label, None, f"the last record, at byte {start}, is cut off"))


def _checked(
    label: str, number: int, on_problem: OnProblem, on_other: OnOther, all_schemes: bool, **fields: Any
) -> Iterator[Capture]:
    """The capture of one record, if it is one."""
    url = (fields["url"] or "").strip().strip("<>")
    media_type = clean_media_type(fields["media_type"])
    status = fields["status"] if fields["status"] and 100 <= fields["status"] <= 999 else None
    other = None if all_schemes else what_it_is(url, url, media_type, status)
    if other is not None:
        on_other(other)
        return
    try:
        key = surt(url).encode("utf-8", "surrogateescape")
        timestamp = format_timestamp(parse_any(fields["moment"]))
    except (BadURI, FormatError) as error:
        on_problem(Problem(label, number, str(error), url[:120]))
        return
    digest, length, language = fields["digest"], fields["length"], fields["language"]
    yield Capture(key, timestamp, url, status, media_type, digest, length, label, language)


def read_wacz(
    path: str,
    on_problem: OnProblem,
    on_other: OnOther,
    *,
    all_schemes: bool = False,
    detect: Detector | None = None,
) -> Iterator[Capture]:
    """The captures of a WACZ file: by its index, or by its WARCs when it has none."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(archive.namelist())
            indexes = [name for name in names if name.startswith("indexes/") and _is_index(name)]
            warcs = [name for name in names if name.startswith("archive/") and ".warc" in name]
            if not indexes and not warcs:
                on_problem(Problem(path, None, "a zip file with neither an index nor WARCs in it"))
            for name in indexes:
                yield from _index_member(archive, name, f"{path}!{name}", on_problem, on_other, all_schemes)
            for name in warcs if not indexes else []:
                label = f"{path}!{name}"
                with archive.open(name) as member, input_over(member, label, on_problem) as stream:
                    yield from read_warc(stream, label, on_problem, on_other, all_schemes=all_schemes, detect=detect)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        on_problem(Problem(path, None, f"damaged zip file: {error}"))


def is_other_zip(path: str) -> bool:
    """Whether a zip file is in order but has nothing in it that a WACZ has."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not any(name.startswith(("indexes/", "archive/")) for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, EOFError):
        return False


def _is_index(name: str) -> bool:
    return name.removesuffix(".gz").endswith((".cdx", ".cdxj"))


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    with archive.open(name) as probe:
        packed = probe.read(2) == b"\x1f\x8b"
    member = archive.open(name)
    return cast(IO[bytes], gzip.GzipFile(fileobj=member)) if packed else member


def _index_member(
    archive: zipfile.ZipFile, name: str, label: str, on_problem: OnProblem, on_other: OnOther, all_schemes: bool
) -> Iterator[Capture]:
    layout = Layout()
    with _member(archive, name) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            layout = parse_layout(line) or layout
            try:
                if "{" in line:
                    yield parse_cdxj(line, all_schemes=all_schemes)
                else:
                    yield parse_cdx(line, layout, all_schemes=all_schemes)
            except NotACapture as other:
                if other.kind != HEADER:
                    on_other(other.kind)
            except FormatError as error:
                on_problem(Problem(label, number, str(error), line[:160]))
