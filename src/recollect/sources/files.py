"""Files of a folder as captures: what mirrors, saved pages and backups share.

Hides: types of files, gzip that a tool kept, and links that a tool made local. A layout (`mirrors`, `saved`) says which
address each file has. Where a tool replaced links by names of its files, reading puts the addresses back, so that the
page links to what was served; such pages count as altered.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin

from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.browsers import moment_of, slice_of
from recollect.sources.model import Depth, Headers, Kind, SourceCapture, SourcePayload, Tally, TimeOrigin, Wanted

HEAD = 1 << 18
_LONGEST_PAGE = 64 << 20
_HTML = re.compile(
    rb"\s*+(?:<\?xml[^>]{0,200}>\s*+)?(?:<!--|<!doctype\s+html|<html|<head|<body|<title|<meta|<p\b)", re.I
)
# Attributes with an address; the name of a local file is at most a few hundred bytes.
_REFERENCE = re.compile(
    rb"""\b(href|src|action|background|poster|data)(\s{0,8}=\s{0,8})("[^"<>]{1,2000}"|'[^'<>]{1,2000}'|[^\s"'<>]{1,2000})""",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


class FileEntry(NamedTuple):
    """One file: its address, its time, and what its tool did to it."""

    path: Path
    url: str
    captured_at: datetime | None = None  # that of the file when None
    altered: bool = False
    restore_links: bool = False
    wrapped: bool = False


Layout = Callable[[Tally], Iterator[FileEntry]]


class FilesSource:
    """Files below a folder whose layout says their addresses."""

    private = False

    def __init__(self, kind: Kind, root: Path, layout: Layout, depth: Depth = Depth.FLAT, name: str = "") -> None:
        self.kind = kind
        self.name = name or root.name or str(root)
        self.depth = depth
        self.tally = Tally()
        self._root = root
        self._layout = layout
        self._entries: dict[str, FileEntry] | None = None

    def _all(self) -> dict[str, FileEntry]:
        if self._entries is None:
            found = self._layout(self.tally)
            self._entries = {entry.path.relative_to(self._root).as_posix(): entry for entry in found}
        return self._entries

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for place, entry in self._all().items():
            self.tally.entries += 1
            if not wanted(entry.url):
                continue
            try:
                moment, origin = _time_of(entry)
                media_type, _ = type_of(entry.path)
                length = entry.path.stat().st_size
            except OSError as error:
                self.tally.damaged += 1
                on_problem(Problem(place, None, error.strerror or str(error)))
                continue
            altered = entry.altered and media_type in ("text/html", "text/css", "application/xhtml+xml")
            self.tally.taken += 1
            yield SourceCapture(entry.url, moment, origin, place, 200, media_type, length=length, altered=altered)

    def read(self, place: str) -> SourcePayload:
        entry = self._all().get(place)
        if entry is None or entry.path.is_symlink():
            raise FormatError("no such file", where=place[:200])
        media_type, packed = type_of(entry.path)
        headers: Headers = (("Content-Type", media_type),) if media_type else ()
        if packed:
            headers = (*headers, ("Content-Encoding", "gzip"))
        size = entry.path.stat().st_size
        if entry.restore_links and media_type == "text/html" and not packed and size <= _LONGEST_PAGE:
            urls = {one.path: one.url for one in self._all().values()}
            page = restored(entry.path.read_bytes(), entry, urls)
            return SourcePayload(200, headers, iter((page,)), entry.wrapped)
        return SourcePayload(200, headers, slice_of(entry.path, 0, size), entry.wrapped)

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass


def _time_of(entry: FileEntry) -> tuple[datetime, TimeOrigin]:
    if entry.captured_at is not None:
        return entry.captured_at, TimeOrigin.HEADER
    moment = moment_of(entry.path.stat().st_mtime) or datetime(1990, 1, 2, tzinfo=UTC)
    return moment.replace(microsecond=0), TimeOrigin.FILE


def head_of(path: Path, size: int = HEAD) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def type_of(path: Path) -> tuple[str, bool]:
    """Media type of a file by its content and its name, and whether a tool kept it packed with gzip."""
    head = head_of(path, 1024)
    name = path.name.lower()
    kind, _ = mimetypes.guess_type("x" + Path(name.removesuffix(".gz").partition("?")[0]).suffix)
    packed = head.startswith(b"\x1f\x8b") and (not name.endswith((".gz", ".tgz")) or ".html" in name or ".css" in name)
    if not packed and _HTML.match(head) and kind in (None, "text/html", "application/x-httpd-php", "text/plain"):
        return "text/html", False
    if packed and kind is None:
        kind = "text/html"
    return kind or "", packed


def is_html(head: bytes) -> bool:
    """Does a file that begins so hold a page?"""
    return bool(_HTML.match(head))


def references(page: bytes) -> Iterator[str]:
    """The addresses in the attributes of a page."""
    for match in _REFERENCE.finditer(page):
        yield unescape(match[3].strip(b"\"'").decode("utf-8", "replace"))


def local_target(entry: Path, reference: str) -> Path | None:
    """The file beside a page that a relative reference names; None for an absolute one."""
    if _ABSOLUTE.match(reference) or reference.startswith(("/", "?")):
        return None
    name = unquote(reference.partition("#")[0].partition("?")[0])
    if not name or "\0" in name:
        return None
    parts: list[str] = list(entry.parent.parts)
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return Path(*parts) if parts else None


def restored(page: bytes, entry: FileEntry, urls: Mapping[Path, str]) -> bytes:
    """A page whose links to local files lead to their addresses again, where these differ."""

    def put_back(match: re.Match[bytes]) -> bytes:
        text = unescape(match[3].strip(b"\"'").decode("utf-8", "replace"))
        target = local_target(entry.path, text)
        url = urls.get(target) if target is not None else None
        if url is None or urljoin(entry.url, text.partition("#")[0]) == url:
            return match[0]
        mark = text.find("#")
        value = escape(url + (text[mark:] if mark >= 0 else ""), quote=True)
        return match[1] + match[2] + b'"' + value.encode() + b'"'

    return _REFERENCE.sub(put_back, page)
