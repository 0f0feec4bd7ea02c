"""What an archive holds of a site: CDX listings in the dialects archives speak, and TimeMaps where there is no listing.

Hides: how servers differ in paging, field names and shapes. Rows come as JSON objects by line (pywb, Arquivo.pt, Common
Crawl), as one JSON array of arrays with a header row (Internet Archive) or without (OutbackCDX), or as plain CDX lines;
the bytes show which one it is, not the configuration. Only paging needs to know the server:

- `wayback` (Internet Archive, and others whose address ends as its does): `limit` with `showResumeKey`;
- `commoncrawl`: one index per crawl (`collinfo.json`), each in pages (`showNumPages`);
- `plain` (pywb, OutbackCDX, Arquivo.pt): everything in one answer. Without ZipNum pywb ignores pages and resume keys
  and cuts silently at `limit`, so none is ever sent; an answer of a suspiciously round length counts as cut off.

Invariants: a listing counts as whole only if nothing suggests that more follows; a page that brings nothing new ends it
(no endless loop); rows that cannot be read are counted, never dropped silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote_plus, urljoin, urlsplit

from recollect.archives.replay import split_memento
from recollect.archives.transport import Request, Response, Sender
from recollect.datetimes import format_http_date, format_timestamp, parse_or_none, parse_timestamp
from recollect.errors import ArchiveError, BadAnswer, FormatError
from recollect.formats.cdx import REVISIT, clean_media_type, clean_status, clean_timestamp
from recollect.formats.timemap import parse_link_header, parse_timemap
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.archives.registry import Archive

Match = Literal["exact", "prefix", "host", "domain"]
Dialect = Literal["wayback", "commoncrawl", "plain"]

PAGE_ROWS = 50_000
MAX_LISTING = 128 * 1024 * 1024  # some 400,000 captures; a longer listing comes in pieces
# Servers cut listings at round numbers (Arquivo.pt at 100,000); a whole listing has one by chance once in a thousand.
_SUSPICIOUS = 1_000
_MAX_TIMEMAP_PAGES = 200
_TIMEGATE_HOPS = 4
_TIMEGATE_BODY = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_STAMP = re.compile(r"/(\d{14})(?:[a-z]{2}_)?/")


@dataclass(frozen=True, slots=True)
class Row:
    """One capture as an archive lists it. `locator` is a URI-M, or file, offset and length of a WARC record."""

    uri: str
    captured_at: datetime
    status: int | None = None
    media_type: str = ""
    digest: str = ""
    length: int | None = None
    revisit: bool = False
    locator: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What to list, optionally only captures of a range of time."""

    uri: str
    match: Match
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One answer. `cursor` asks for the next; without one the listing is over, and `cut` says why it is not all."""

    rows: tuple[Row, ...]
    cursor: str = ""
    cut: str = ""
    unread: int = 0


def dialect_of(address: str) -> Dialect:
    """How a CDX server pages, by its address."""
    path = address.partition("?")[0].rstrip("/")
    if path.endswith("collinfo.json") or re.search(r"/CC-MAIN-[\w-]+-index$", path):
        return "commoncrawl"
    if path.endswith(("/cdx/search/cdx", "/cdx/search", "/timemap/cdx")):
        return "wayback"
    return "plain"


async def list_captures(
    client: Sender, archive: Archive, query: Query, cursor: str = "", *, max_bytes: int = MAX_LISTING
) -> Page:
    """One page of an archive's listing; start with no cursor and go on with the one of the last page. `max_bytes` does
    not hold for Common Crawl, whose pages are small."""
    dialect = dialect_of(archive.cdx)
    if dialect == "commoncrawl":
        return await _common_crawl_page(client, archive, query, cursor)
    url = listing_url(archive.cdx, query, cursor, limit=PAGE_ROWS if dialect == "wayback" else None)
    response = await _ask(client, archive, url, max_bytes)
    rows, resume, unread = parse_listing(response.body)
    if response.truncated:
        return Page(rows, cut=f"the answer was cut short: {response.truncated}", unread=unread)
    if dialect == "wayback":
        return _wayback_page(rows, resume, cursor, unread)
    if len(rows) >= _SUSPICIOUS and len(rows) % _SUSPICIOUS == 0:
        return Page(rows, cut=f"it ends after exactly {counted(len(rows), 'capture')}", unread=unread)
    return Page(rows, unread=unread)


def _wayback_page(rows: tuple[Row, ...], resume: str, cursor: str, unread: int) -> Page:
    if resume and (resume == cursor or not rows):
        return Page(rows, cut="the archive repeats itself", unread=unread)
    if not resume and len(rows) + unread >= PAGE_ROWS:
        return Page(rows, cut=f"it ends after {counted(len(rows), 'capture')} without a key to go on", unread=unread)
    return Page(rows, cursor=resume, unread=unread)


async def _ask(client: Sender, archive: Archive, url: str, max_bytes: int = MAX_LISTING) -> Response:
    response = await client.send(Request(archive, url, max_bytes=max_bytes, partial=True))
    if response.status == 404 and nothing_matches(response.body):
        return replace(response, body=b"")
    if response.status >= 300:
        raise BadAnswer("the listing was refused", where=archive.id, why=f"status {response.status}")
    return response


def nothing_matches(body: bytes) -> bool:
    """Whether a 404 says that nothing matches, as Common Crawl's does (`No Captures found for: ...`), and not that the
    address is wrong (a page in HTML, `Not Found`, or nothing at all)."""
    return b"no captures" in body.lower()


def listing_url(address: str, query: Query, cursor: str = "", *, limit: int | None = None) -> str:
    """The address of one page of a listing. A final `*` is never used: with matchType pywb answers it with nothing."""
    parts = [f"url={_encoded(query.uri)}", f"matchType={query.match}", "output=json"]
    if query.start is not None:
        parts.append(f"from={format_timestamp(query.start)}")
    if query.end is not None:
        parts.append(f"to={format_timestamp(query.end)}")
    if limit is not None:
        parts += [f"limit={limit}", "showResumeKey=true"]
        # The fields that are read here, so that millions of rows are sent without the others.
        parts.append("fl=timestamp,original,mimetype,statuscode,digest,length")
    if cursor:
        parts.append(f"resumeKey={_encoded(cursor)}")
    return address + ("&" if "?" in address else "?") + "&".join(parts)


def _encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"), safe=":/~,")


# Reading -------------------------------------------------------------------------------------------------------------

_FIELDS = {
    "url": ("original", "url", "uri"),
    "timestamp": ("timestamp", "datetime"),
    "media_type": ("mimetype", "mime", "mime_type"),
    "status": ("statuscode", "status", "status_code"),
    "digest": ("digest",),
    "length": ("length",),
    "filename": ("filename",),
    "offset": ("offset",),
}
_NAMES = {name: field for field, names in _FIELDS.items() for name in names}
# The order of OutbackCDX's arrays, and of CDX lines with eleven fields.
_USUAL = ["", "timestamp", "url", "media_type", "status", "digest", "", "", "length", "offset", "filename"]


def parse_listing(body: bytes) -> tuple[tuple[Row, ...], str, int]:
    """(rows, resume key, number of lines that could not be read) of a listing in any of its shapes."""
    text = body.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not text:
        return (), "", 0
    values, resume = _array(text) if text.startswith("[") else _lines(text)
    rows, unread = [], 0
    for value in values:
        if value is None or (row := _row(value)) is None:
            unread += 1
        elif _is_of_the_web(value.get("url")):  # else dns: or ftp:, which is not a page
            rows.append(row)
    return tuple(rows), resume, unread


Values = list[dict[str, Any] | None]


def _is_of_the_web(uri: Any) -> bool:
    """Is this the address of a web page, or something unreadable, but not of another scheme?"""
    scheme = re.match(r"([a-z][a-z0-9+-]*):(?!\d)", uri, re.IGNORECASE) if isinstance(uri, str) else None
    return scheme is None or scheme[1].lower() in ("http", "https")


def _array(text: str) -> tuple[Values, str]:
    """Arrays of arrays (with or without a header row) or of objects; an empty array announces the resume key."""
    items: list[Any] = list(_whole_items(text))
    names: list[str] = _USUAL
    values: Values = []
    resume = ""
    for number, item in enumerate(items):
        if isinstance(item, dict):
            values.append({_NAMES[name]: value for name, value in item.items() if name in _NAMES})
        elif not isinstance(item, list):
            values.append(None)
        elif number == 0 and {"timestamp", "original", "url", "urlkey"} & {str(cell) for cell in item}:
            names = [_NAMES.get(str(cell), "") for cell in item]
        elif not item:
            rest = items[number + 1 :]
            resume = unquote_plus(str(rest[0][0])) if rest and isinstance(rest[0], list) and rest[0] else ""
            break
        else:
            values.append(dict(zip(names, item, strict=False)))
    return values, resume


def _whole_items(text: str) -> Iterator[Any]:
    """The items of a JSON array; of one that was cut off, those that are whole."""
    try:
        yield from json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    decoder = json.JSONDecoder()
    position = 1
    while True:
        position = re.compile(r"[\s,]*").match(text, position).end()  # type: ignore[union-attr]
        try:
            item, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            if text[position : position + 1] != "]":
                yield None  # broken, or cut off: more may have followed
            return
        yield item


def _lines(text: str) -> tuple[Values, str]:
    """JSON objects by line, CDXJ or CDX lines; a blank line announces the resume key."""
    values: Values = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped:
            if values and number + 1 < len(lines) and lines[number + 1].strip():
                return values, unquote_plus(lines[number + 1].strip())
            continue
        if not stripped.startswith(("CDX ", "!", "@")):  # headers
            values.append(_line(stripped))
    return values, ""


def _line(line: str) -> dict[str, Any] | None:
    if line.startswith("<"):
        return None  # an error page
    brace = line.find("{")
    if brace >= 0 and line.endswith("}"):
        try:
            record = json.loads(line[brace:])
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        values = {_NAMES[name]: value for name, value in record.items() if name in _NAMES}
        if "timestamp" not in values and brace:
            values["timestamp"] = [*line[:brace].split(), "", ""][1]
        return values
    fields = line.split(" ")
    return dict(zip(_USUAL, fields, strict=False)) if len(fields) >= 7 else None


def _row(values: dict[str, Any]) -> Row | None:
    try:
        stamp = clean_timestamp(values.get("timestamp"))
        captured_at = parse_timestamp(stamp)
    except FormatError:
        return None
    uri = values.get("url")
    if not isinstance(uri, str) or len(uri) < 4:
        return None
    if not re.match(r"https?://", uri, re.IGNORECASE):
        uri = f"http://{uri}"
    media_type = clean_media_type(values.get("media_type")) or ""
    return Row(
        uri,
        captured_at,
        clean_status(values.get("status")),
        "" if media_type in (REVISIT, "unk", "warc/revisit") else media_type,
        clean_digest(values.get("digest")),
        _number(values.get("length")),
        media_type == REVISIT,
        _locator(values),
    )


def _locator(values: dict[str, Any]) -> str:
    filename, offset, length = values.get("filename"), _number(values.get("offset")), _number(values.get("length"))
    if not isinstance(filename, str) or offset is None or length is None or filename in ("", "-"):
        return ""
    return f"{offset} {length} {filename}"


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def clean_digest(value: Any) -> str:
    """A SHA-1 in base32 without its name, another digest as it is with its name; empty for none."""
    if not isinstance(value, str) or value in ("", "-"):
        return ""
    name, mark, digest = value.partition(":")
    if not mark:
        name, digest = "sha1", value
    return digest.upper() if name.lower() == "sha1" else f"{name.lower()}:{digest}"


# Common Crawl --------------------------------------------------------------------------------------------------------


async def _common_crawl_page(client: Sender, archive: Archive, query: Query, cursor: str) -> Page:
    """The cursor is a JSON list: the index under way, its next page and its number of pages, the indexes to come."""
    if cursor:
        index, page, pages, later = json.loads(cursor)
    else:
        indexes = await _common_crawl_indexes(client, archive)
        if not indexes:
            raise BadAnswer("the list of indexes is empty", where=archive.cdx)
        index, page, pages, later = indexes[0], 0, -1, indexes[1:]
    if pages < 0:
        pages = await _page_count(client, archive, index, query)
    rows: tuple[Row, ...] = ()
    unread = 0
    if page < pages:
        response = await _ask(client, archive, listing_url(index, query) + f"&page={page}")
        if response.truncated:
            return Page((), cut=f"the answer was cut short: {response.truncated}")
        rows, _, unread = parse_listing(response.body)
        page += 1
    if page < pages:
        return Page(rows, json.dumps([index, page, pages, later]), unread=unread)
    return Page(rows, json.dumps([later[0], 0, -1, later[1:]]) if later else "", unread=unread)


async def _common_crawl_indexes(client: Sender, archive: Archive) -> list[str]:
    """The addresses of all indexes, newest first."""
    if not archive.cdx.rstrip("/").endswith("collinfo.json"):
        return [archive.cdx]
    response = await _ask(client, archive, archive.cdx)
    try:
        return [str(entry["cdx-api"]) for entry in json.loads(response.body)]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadAnswer("the list of indexes cannot be read", where=archive.cdx, why=str(error)) from error


async def _page_count(client: Sender, archive: Archive, index: str, query: Query) -> int:
    response = await _ask(client, archive, listing_url(index, query) + "&showNumPages=true")
    if response.status == 404 or not response.body.strip():
        return 0
    try:
        answer = json.loads(response.body)
        return min(int(answer["pages"] if isinstance(answer, dict) else answer), 100_000)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 1


# TimeMaps ------------------------------------------------------------------------------------------------------------


async def list_timemap(client: Sender, archive: Archive, uri: str, cursor: str = "") -> Page:
    """One page of the TimeMap of one URI: all that such an archive offers. The cursor lists pages to come."""
    seen: list[str] = json.loads(cursor) if cursor else []
    address = seen[0] if seen else archive.timemap_uri(uri)
    accept = {"Accept": "application/link-format"}
    response = await client.send(Request(archive, address, accept, partial=True))
    if response.status == 404:
        return Page(())
    if response.status >= 300:
        raise BadAnswer("the TimeMap was refused", where=archive.id, why=f"status {response.status}")
    timemap = parse_timemap(response.body, response.headers.get("content-type"), response.url)
    if timemap.kind == "other":
        raise BadAnswer("not a TimeMap", where=address)
    rows = tuple(
        Row(_own_address(archive, memento.uri, uri), memento.captured_at, locator=memento.uri) for memento in timemap
    )
    later = seen[1:] + [page.uri for page in timemap.pages if page.uri != address]
    cut = f"the answer was cut short: {response.truncated}" if response.truncated else ""
    if len(later) > _MAX_TIMEMAP_PAGES:
        return Page(rows, cut="it has too many pages")
    return Page(rows, json.dumps(list(dict.fromkeys(later))) if later and rows else "", cut=cut)


# TimeGates -----------------------------------------------------------------------------------------------------------


async def list_timegate(client: Sender, archive: Archive, uri: str, at: datetime | None = None) -> Page:
    """The mementos that a TimeGate names for one URI: the one nearest to `at` (else the newest), and its neighbours.

    An archive with nothing but a TimeGate has no list: what else it holds stays unknown, so the page counts as cut.
    """
    url = archive.timegate_uri(uri)
    headers = {"Accept-Datetime": format_http_date(at)} if at is not None else {}
    rows: dict[str, Row] = {}
    for _ in range(_TIMEGATE_HOPS):
        response = await client.send(Request(archive, url, headers, max_bytes=_TIMEGATE_BODY, hops=0, partial=True))
        for link in parse_link_header(response.headers.get_all("link")):
            if "memento" in link.rels and (moment := parse_or_none(link.params.get("datetime", ""))) is not None:
                _add_memento(rows, archive, uri, urljoin(url, link.target), moment)
        location = response.headers.get("location")
        if response.status < 300 and (moment := parse_or_none(response.headers.get("memento-datetime") or "")):
            _add_memento(rows, archive, uri, urljoin(url, response.headers.get("content-location") or url), moment)
            break
        if response.status in (204, 404, 410) or (response.status not in _REDIRECTS and rows):
            break
        if response.status not in _REDIRECTS or not location:
            raise BadAnswer("the TimeGate was refused", where=archive.id, why=f"status {response.status}")
        url = urljoin(url, location)
        if (held := _STAMP.search(url)) and split_memento(archive, url) is not None:
            _add_memento(rows, archive, uri, url, parse_timestamp(held[1]))
            break
    return Page(tuple(rows.values()), cut="it lists nothing; its TimeGate names single mementos" if rows else "")


def _add_memento(rows: dict[str, Row], archive: Archive, uri: str, locator: str, moment: datetime) -> None:
    rows.setdefault(locator, Row(_own_address(archive, locator, uri), moment, locator=locator))


def _own_address(archive: Archive, uri_m: str, asked: str) -> str:
    """The original address in a URI-M: an archive may answer with the capture of another spelling of what was asked.

    Only of the same host, with or without www: anything else is not the resource.
    """
    inside = split_memento(archive, uri_m)
    if inside is None:
        return asked
    hosts = [(urlsplit(one).hostname or "").removeprefix("www.") for one in (inside[1], asked)]
    return inside[1] if hosts[0] == hosts[1] else asked


async def list_exact(client: Sender, archive: Archive, uri: str, at: datetime | None = None) -> Page:
    """Everything an archive holds of one URI, by its listing or its TimeMap, pages followed; else by its TimeGate."""
    rows: list[Row] = []
    cursor = ""
    for _ in range(_MAX_TIMEMAP_PAGES):
        if archive.cdx:
            page = await list_captures(client, archive, Query(uri, "exact"), cursor)
        elif archive.timemap:
            page = await list_timemap(client, archive, uri, cursor)
        elif archive.timegate:
            return await list_timegate(client, archive, uri, at)
        else:
            raise ArchiveError("the archive lists nothing", where=archive.id)
        rows += page.rows
        cursor = page.cursor
        if not cursor:
            return Page(tuple(rows), cut=page.cut, unread=page.unread)
    return Page(tuple(rows), cut="it has too many pages")
