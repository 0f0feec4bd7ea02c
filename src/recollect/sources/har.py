"""HAR files: the log of a browser's network panel (HAR 1.2, w3c.github.io/web-performance/specs/HAR/Overview.html).

A JSON object with `log.entries`, each with `startedDateTime`, `request` (method, url) and `response` (status, headers,
`content` with `text`, which is base64 if `encoding` says so). Texts are decoded: without content encoding and in
Unicode, so that pages in other charsets are not the bytes that were served; these count as altered.

The file is not parsed whole: a scan over its brackets and strings finds where each entry begins and ends, and only one
entry is parsed at a time. Cookies and credentials stay in it.
"""

from __future__ import annotations

import base64
import binascii
import json
import mmap
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.browsers import WEB
from recollect.sources.http import bare_type
from recollect.sources.model import (
    Depth,
    Headers,
    Kind,
    Mark,
    SourceCapture,
    SourcePayload,
    Tally,
    TimeOrigin,
    Wanted,
    public_headers,
)

_MARK = re.compile(rb'[{}\[\]]|"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ENTRIES = re.compile(rb'"entries"\s*+:\s*+\[')
_LONGEST = 512 << 20  # bytes of one entry
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
# The text is Unicode, and so are the bytes that are given for it.
_DROPPED = frozenset(("content-encoding", "content-length", "transfer-encoding"))


class HarSource:
    """One HAR file."""

    kind = Kind.HAR
    depth = Depth.DEEP
    private = False  # exported by a person, for others to read

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.tally = Tally()
        self._path = path

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for start, end in entries(self._path):
            self.tally.entries += 1
            try:
                capture = self._capture(self._entry(start, end), f"{start}-{end}", wanted)
            except FormatError as error:
                self.tally.damaged += 1
                on_problem(Problem(self.name, None, str(error)))
                continue
            if capture is not None:
                self.tally.taken += 1
                yield capture

    def _entry(self, start: int, end: int) -> dict[str, Any]:
        if not 0 <= end - start <= _LONGEST:
            raise FormatError("an entry is too large", where=self.name)
        with self._path.open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
        try:
            entry = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FormatError("an entry is damaged", where=self.name, why=str(error)[:100]) from error
        if not isinstance(entry, dict):
            raise FormatError("an entry is damaged", where=self.name)
        return entry

    def _capture(self, entry: dict[str, Any], place: str, wanted: Wanted) -> SourceCapture | None:
        request, response = _table(entry, "request"), _table(entry, "response")
        url = str(request.get("url", ""))
        status = response.get("status")
        if not WEB.match(url) or not wanted(url):
            return None
        content = _table(response, "content")
        is_redirect = status in (301, 302, 303, 307, 308)
        if request.get("method", "GET") != "GET" or not isinstance(status, int) or not 100 <= status <= 599:
            self.tally.note_other("not a page")
            return None
        if not is_redirect and not isinstance(content.get("text"), str):
            self.tally.note_other("without a body")
            return None
        size = content.get("size")
        partial = status == 206
        return SourceCapture(
            url.partition("#")[0],
            _moment(entry.get("startedDateTime")),
            TimeOrigin.HEADER,
            place,
            status,
            bare_type(str(content.get("mimeType", ""))),
            length=size if isinstance(size, int) and size >= 0 else None,
            altered=partial or (content.get("encoding") != "base64" and _is_recoded(content)),
            marks=(Mark.PARTIAL,) if partial else (),
        )

    def read(self, place: str) -> SourcePayload:
        start, mark, end = place.partition("-")
        if not mark or not start.isdigit() or not end.isdigit():
            raise FormatError("no such entry", where=self.name)
        response = _table(self._entry(int(start), int(end)), "response")
        content = _table(response, "content")
        headers = _headers(response, content)
        return SourcePayload(int(response.get("status", 0)), headers, iter((_body(content, self.name),)))

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass


def entries(path: Path) -> Iterator[tuple[int, int]]:
    """Where the entries of a HAR lie. One pass, whatever is in it."""
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = _ENTRIES.search(data)
        if begin is None:
            return
        depth, start = 0, 0
        for match in _MARK.finditer(data, begin.end()):
            mark = data[match.start()]
            if mark in b"{[":
                if depth == 0:
                    start = match.start()
                depth += 1
            elif mark in b"}]":
                depth -= 1
                if depth < 0:
                    return
                if depth == 0:
                    yield start, match.end()


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _moment(text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise FormatError("an entry without a time", why=str(text)[:40]) from error
    return moment.astimezone(UTC).replace(microsecond=0)


def _is_recoded(content: dict[str, Any]) -> bool:
    """Was the text in another charset when it was served?"""
    charset = _CHARSET.search(str(content.get("mimeType", "")))
    text = str(content.get("text", ""))
    return not text.isascii() and charset is not None and charset[1].lower() not in ("utf-8", "utf8")


def _headers(response: dict[str, Any], content: dict[str, Any]) -> Headers:
    fields = response.get("headers")
    listed = fields if isinstance(fields, list) else []
    pairs = [
        (str(one["name"]), str(one["value"]))
        for one in listed
        if isinstance(one, dict) and "name" in one and "value" in one and not str(one["name"]).startswith(":")
    ]
    found = [(name, value) for name, value in pairs if name.lower() not in _DROPPED]
    if content.get("encoding") != "base64" and _is_recoded(content):
        kind = bare_type(str(content.get("mimeType", "")))
        found = [pair for pair in found if pair[0].lower() != "content-type"]
        found.append(("Content-Type", f"{kind}; charset=utf-8"))
    elif not any(name.lower() == "content-type" for name, _ in found) and content.get("mimeType"):
        found.append(("Content-Type", str(content["mimeType"])))
    if response.get("redirectURL") and not any(name.lower() == "location" for name, _ in found):
        found.append(("Location", str(response["redirectURL"])))
    return public_headers(tuple(found))


def _body(content: dict[str, Any], name: str) -> bytes:
    text = content.get("text")
    if not isinstance(text, str):
        return b""
    if content.get("encoding") != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError) as error:
        raise FormatError("a body is damaged", where=name, why=str(error)) from error
