"""One capture as it was archived: raw bytes, the original status and headers, free of the archive's own additions.

Hides: where raw bytes come from (`id_` templates, WARC ranges, or a rewritten page that has to be unwrapped), how
archives mark the original's headers (`X-Archive-Orig-...`, or bare beside their own), and redirects: one that leads to
another date of the same URL is the archive's and is followed; one that leads elsewhere was archived, and is the answer.

Invariants: at most MAX_HOPS requests; only the archive's own hosts are called (the client's law); a body goes to the
caller's sink as it comes, still encoded; what the archive itself says (not found, blocked, too busy) is never taken for
what it archived.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import TYPE_CHECKING, Literal

from recollect.archives.transport import Request, RequestKind, StreamedResponse, Streamer
from recollect.datetimes import format_timestamp, parse_http_date, parse_timestamp
from recollect.errors import ArchiveError, ArchiveThrottled, BadAnswer, FormatError
from recollect.formats.timemap import resolve, safe_uri

if TYPE_CHECKING:
    from recollect.archives.registry import Archive

MAX_HOPS = 6
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_ORIGINAL = "x-archive-orig-"
# What archives and their servers add when they pass the original's headers on bare (pywb does).
_ADDED = frozenset(
    {"memento-datetime", "link", "content-location", "preference-applied", "x-archive-src", "x-archive-guessed-charset"}
    | {"x-archive-guessed-content-type", "x-ts", "x-tr", "x-location", "x-cache-key", "x-rl", "x-na", "x-page-cache"}
    | {"x-app-server", "server-timing", "x-nid", "x-nginx-request-id", "transfer-encoding", "connection", "keep-alive"}
)
_MEMENTO = re.compile(r"/(\d{4,14})(?:[a-z]{2}_)?/((?:https?:/{1,2}|[^/][^/.]*+\.[^/]).*)", re.IGNORECASE | re.DOTALL)

_STAMP = re.compile(r"/(\d{14})(?:[a-z]{2}_)?/")

Standing = Literal["archived", "absent", "blocked"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A capture to be had: its original URI, its moment, and where it is if the archive's template does not say."""

    uri: str
    captured_at: datetime
    locator: str = ""


@dataclass(frozen=True, slots=True)
class ReplayResponse:
    """What came. With standing `archived`, status and headers are the original server's; else `detail` says why not."""

    standing: Standing
    status: int
    uri_m: str
    captured_at: datetime
    headers: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    rewritten: bool = False  # the body is the archive's rewritten page and has to be unwrapped
    detail: str = ""
    attested: bool = True  # the archive says that it was archived (Memento-Datetime, original headers)

    def header(self, name: str) -> str:
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")


async def fetch(
    client: Streamer, archive: Archive, wanted: Wanted, sink: Callable[[bytes], None], *, max_bytes: int
) -> ReplayResponse:
    """Fetch one capture; its body goes to `sink`. Raises ArchiveError when the archive fails."""
    if "{filename}" in archive.raw:
        return await _fetch_record(client, archive, wanted, sink, max_bytes)
    async with open_capture(client, archive, wanted, max_bytes=max_bytes) as (replay, response):
        if replay.standing == "archived":
            async for chunk in response:
                sink(chunk)
        return replay


@asynccontextmanager
async def open_capture(
    client: Streamer,
    archive: Archive,
    wanted: Wanted,
    *,
    max_bytes: int,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[ReplayResponse, StreamedResponse]]:
    """One capture, whose body is still to be read; redirects inside the archive are followed. Raises ArchiveError when
    the archive fails."""
    url, rewritten = address_of(archive, wanted)
    for _ in range(MAX_HOPS):
        request = Request(archive, url, headers, RequestKind.REPLAY, method, max_bytes=max_bytes, hops=0)
        async with client.stream(request) as response:
            onward = _archive_redirect(archive, response, url, wanted)
            if onward is None:
                yield _replay(response, url, wanted, rewritten), response
                return
        url = onward
    raise BadAnswer("too many redirects inside the archive", where=url, why=f"more than {MAX_HOPS}")


def address_of(archive: Archive, wanted: Wanted) -> tuple[str, bool]:
    """Where the archive serves a capture unchanged, and whether what it serves there is rewritten all the same."""
    is_uri_m = wanted.locator.startswith(("http://", "https://"))
    held = _STAMP.search(wanted.locator) if is_uri_m else None
    stamp = held[1] if held else format_timestamp(wanted.captured_at)
    if archive.raw or not is_uri_m:
        if not archive.raw:
            raise ArchiveError("its captures cannot be fetched", where=archive.id, why="the archive has no raw address")
        return archive.raw_uri(wanted.locator if is_uri_m else "", stamp, wanted.uri), False
    raw = archive.raw_uri(wanted.locator, stamp, wanted.uri)
    # Without a 14 digit date in its URI-Ms (archive.today, Perma.cc) an archive has no raw form to guess.
    return raw, raw == wanted.locator


def _archive_redirect(archive: Archive, response: StreamedResponse, url: str, wanted: Wanted) -> str | None:
    """Where the archive itself sends us on: another date, or another spelling, of the same capture."""
    if response.status not in _REDIRECTS:
        return None
    target = resolve(url, response.headers.get("location"))
    if not target:
        return None
    inside = split_memento(archive, target)
    if inside is None:
        # Not an address of a memento: the archive moving house (http to https), unless this was archived.
        return None if "memento-datetime" in response.headers or _has_originals(response) else safe_uri(target)
    _, original = inside
    if _same_resource(original, wanted.uri) and (
        "memento-datetime" not in response.headers or format_timestamp(wanted.captured_at) not in target
    ):
        return safe_uri(target) if target != url else None
    return None


def split_memento(archive: Archive, uri: str) -> tuple[str, str] | None:
    """(timestamp, original URI) of a URI-M on one of the archive's own hosts; None for any other URI."""
    match = re.match(r"(https?:)?//([^/]+)(/.*)", uri, re.IGNORECASE)
    if match is None or match[2].lower() not in _hosts(archive):
        return None
    inner = _MEMENTO.search(match[3])
    if inner is None:
        return None
    original = re.sub(r"^(https?):/(?!/)", r"\1://", inner[2], flags=re.IGNORECASE)
    return inner[1], original if re.match(r"https?://", original, re.IGNORECASE) else f"http://{original}"


def _hosts(archive: Archive) -> set[str]:
    places = [archive.raw, archive.timemap, archive.timegate, archive.cdx]
    return {m[1].lower() for place in places if (m := re.match(r"https?://([^/]+)", place))} | set(archive.allow_hosts)


def _same_resource(one: str, other: str) -> bool:
    def loosely(uri: str) -> str:
        bare = re.sub(r"^https?://(?:www\d*\.)?", "", uri.partition("#")[0], flags=re.IGNORECASE)
        host, slash, path = bare.partition("/")
        return host.lower().removesuffix(":80").removesuffix(":443") + slash + path.rstrip("/")

    return loosely(one).rstrip("/") == loosely(other).rstrip("/")


def _has_originals(response: StreamedResponse) -> bool:
    return any(name.lower().startswith(_ORIGINAL) for name, _ in response.headers)


def _replay(response: StreamedResponse, url: str, wanted: Wanted, rewritten: bool) -> ReplayResponse:
    status = response.status
    headers = response.headers
    archived = "memento-datetime" in headers or _has_originals(response)
    if not archived and status >= 400:
        return _refusal(status, url, wanted, headers.get("retry-after"))
    location = headers.get(_ORIGINAL + "location") or headers.get("location")
    return ReplayResponse(
        "archived",
        status,
        url,
        _moment(headers.get("memento-datetime"), url, wanted),
        original_headers(list(headers)),
        original_location(location, wanted.uri) if status in _REDIRECTS else None,
        rewritten,
        attested=archived,
    )


def _refusal(status: int, url: str, wanted: Wanted, retry_after: str) -> ReplayResponse:
    if status == 429 or (status == 503 and retry_after):
        raise ArchiveThrottled("the archive asked us to wait", where=url, why=f"status {status}")
    if status in (404, 410):
        return ReplayResponse("absent", status, url, wanted.captured_at, detail=f"status {status}")
    if status in (401, 403, 451):
        return ReplayResponse("blocked", status, url, wanted.captured_at, detail=f"status {status}")
    raise BadAnswer("the archive failed", where=url, why=f"status {status}")


def _moment(header: str, url: str, wanted: Wanted) -> datetime:
    try:
        return parse_http_date(header)
    except FormatError:
        pass
    match = _STAMP.search(url)
    return parse_timestamp(match[1]) if match else wanted.captured_at


def original_location(location: str, uri: str) -> str | None:
    """The target of an archived redirect, freed of the archive's own prefix where it was rewritten."""
    if not location:
        return None
    match = re.search(r"/\d{4,14}(?:[a-z]{2}_)?/(https?:/{1,2}.+)", location, re.IGNORECASE | re.DOTALL)
    if match:
        location = re.sub(r"^(https?):/(?!/)", r"\1://", match[1], flags=re.IGNORECASE)
    return resolve(uri, location)


def original_headers(fields: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The original server's headers out of an archive's answer.

    Some archives prefix all of the original's (Internet Archive); then only those, and the type, are the original's.
    pywb passes most of them bare, and prefixes the few that would confuse a browser (Date, Server, ...).
    """
    prefixed = [(name[len(_ORIGINAL) :], value) for name, value in fields if name.lower().startswith(_ORIGINAL)]
    names = {name.lower() for name, _ in prefixed}
    if {"content-type", "content-length", "last-modified", "etag"} & names:
        keep = ("content-type", "content-encoding")
        bare = [(n, v) for n, v in fields if n.lower() in keep and n.lower() not in names]
        return tuple(bare + prefixed)
    added = _ADDED | names
    bare = [(n, v) for n, v in fields if n.lower() not in added and not n.lower().startswith(_ORIGINAL)]
    return tuple(bare + prefixed)


# WARC records by range -----------------------------------------------------------------------------------------------


async def _fetch_record(
    client: Streamer, archive: Archive, wanted: Wanted, sink: Callable[[bytes], None], max_bytes: int
) -> ReplayResponse:
    """A record out of a WARC by its place (Common Crawl)."""
    match = re.fullmatch(r"(\d+) (\d+) (\S+)", wanted.locator)
    if match is None:
        raise ArchiveError("no place in a WARC", where=archive.id, why="its listing gave none")
    offset, length, filename = int(match[1]), int(match[2]), match[3]
    if length > max_bytes:
        raise BadAnswer("larger than the limit", where=filename, why=f"{length:,} bytes")
    url = safe_uri(archive.raw.replace("{filename}", filename.lstrip("/")))
    headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
    data = bytearray()
    request = Request(archive, url, headers, RequestKind.REPLAY, max_bytes=max_bytes, hops=0)
    async with client.stream(request) as response:
        if response.status != 206:
            return _refusal(
                response.status if response.status >= 400 else 502, url, wanted, response.headers.get("retry-after")
            )
        async for chunk in response:
            data += chunk
    return _record(bytes(data), wanted, f"{url}#bytes={offset}-{offset + length - 1}", sink, max_bytes)


def _record(data: bytes, wanted: Wanted, uri_m: str, sink: Callable[[bytes], None], max_bytes: int) -> ReplayResponse:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    try:
        record = next(iter(ArchiveIterator(BytesIO(data))), None)
        if record is None or record.http_headers is None or record.rec_type not in ("response", "revisit"):
            raise BadAnswer("no response in the WARC record", where=uri_m)
        stream = record.raw_stream
        size = 0
        while chunk := stream.read(1 << 16):
            size += len(chunk)
            if size > max_bytes:
                raise BadAnswer("larger than the limit", where=uri_m)
            sink(chunk)
    except (ArchiveLoadFailed, EOFError, OSError, ValueError) as error:
        raise BadAnswer("the WARC record cannot be read", where=uri_m, why=str(error)) from error
    status = int(record.http_headers.get_statuscode() or 0)
    fields = tuple((str(name), str(value)) for name, value in record.http_headers.headers)
    location = next((value for name, value in fields if name.lower() == "location"), "")
    redirect = original_location(location, wanted.uri) if status in _REDIRECTS else None
    return ReplayResponse("archived", status, uri_m, wanted.captured_at, fields, redirect)


# Rewritten pages -----------------------------------------------------------------------------------------------------

# Comments that begin what an archive inserts, and what ends each: its own end, or another comment.
_INSERTED = {
    b"<!-- begin wayback toolbar insert -->": b"<!-- end wayback toolbar insert -->",
    b"<!-- wb insert -->": b"<!-- end wb insert -->",
    b"<!-- end wayback rewrite js include -->": b"",
}
_NOTE = re.compile(rb"<!--\s*+(?:file archived on |playback timings)")
_INSERT_BEGINS = re.compile(rb"<!--|<script|<link")
_OF_ARCHIVE = re.compile(rb"archive\.org|/_static/")
_OF_STYLES = re.compile(rb"/_static/css/(?:banner-styles|iconochive)\.css")
_PROGRAM = re.compile(rb"\s*+(?:__wm\.|window\.ruffleplayer|var __wm)")
_EMPTY_SCRIPT = re.compile(rb"\s*+</script>")
_SPACE = re.compile(rb"\s*+")
_LONGEST_TAG = 4096


def _without_inserts(content: bytes) -> bytes:
    """The page without an archive's banner and scripts. Linear: each kind of end is looked for once from any place."""
    text = content.lower()
    known: dict[bytes, int] = {}

    def end_of(mark: bytes, start: int) -> int:
        """Where the next `mark` ends, -1 if there is none; asked with rising starts."""
        if 0 <= known.get(mark, 0) < start + len(mark):
            place = text.find(mark, start)
            known[mark] = place + len(mark) if place >= 0 else -1
        return known[mark]

    pieces, at = [], 0
    for begin in _INSERT_BEGINS.finditer(text):
        start = begin.start()
        if start < at:
            continue
        end = _insert_end(text, begin[0], start, end_of)
        if end >= 0:
            pieces.append(content[at:start])
            space = _SPACE.match(text, end)
            at = space.end() if space else end
    return b"".join([*pieces, content[at:]])


def _insert_end(text: bytes, begin: bytes, start: int, end_of: Callable[[bytes, int], int]) -> int:
    """Where the insert that may begin here ends; -1 where none does."""
    if begin == b"<!--":
        for mark, end in _INSERTED.items():
            if text.startswith(mark, start):
                return end_of(end, start) if end else start + len(mark)
        return end_of(b"-->", start) if _NOTE.match(text, start) else -1
    close = end_of(b">", start)
    if close < 0 or close - start > _LONGEST_TAG:
        return -1
    if begin == b"<link":
        return close if _OF_STYLES.search(text, start, close) else -1
    empty = _EMPTY_SCRIPT.match(text, close)
    if empty is not None and _OF_ARCHIVE.search(text, start, close):
        return empty.end()
    return end_of(b"</script>", close) if _PROGRAM.match(text, close) else -1


def unwrap(archive: Archive, content: bytes) -> bytes:
    """A rewritten page with the archive's banner, scripts and link prefixes removed, if they are known."""
    content = _without_inserts(content)
    hosts = b"|".join(re.escape(host.encode()) for host in sorted(_hosts(archive)))
    prefix = rb"(?:(?:https?:)?//(?:" + hosts + rb"))?/[\w./-]{0,60}?\b\d{14}(?:[a-z]{2}_)?/(?=https?:/)"
    return re.sub(prefix, b"", content)
