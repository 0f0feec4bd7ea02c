"""Find, fetch and install the map an archive publishes.

Hides: where a map may be announced (Link header, HTML link, well-known URI), conditional and resumed downloads, paged
maps, and all that a hostile map could try. In the folder of maps, besides `<id>.ukvs.zst`:

    .discover/<id>.json    address, ETag and Last-Modified of what is installed
    .discover/<id>.part    a download on its way, resumed by Range and If-Range

Invariants: only the archive's own hosts are asked; never more than `max_bytes` are fetched nor `max_expanded` read,
whatever an answer claims; a map is installed only when it is sorted, valid to the last line and about this archive, and
then at once (the file is replaced, readers of the old one go on); anything else leaves what was installed untouched.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive
from recollect.archives.transport import Request, StreamedResponse
from recollect.errors import AnswerTooBig, ArchiveError, BadAnswer, FormatError, RecollectError
from recollect.formats.containers import open_input
from recollect.formats.timemap.links import parse_link_header, resolve
from recollect.formats.ukvs.header import Header
from recollect.formats.ukvs.reader import MapFile
from recollect.formats.ukvs.writer import Writer

WELL_KNOWN = "/.well-known/mementomap"
MAX_BYTES = 10 * 1000**3
MAX_EXPANDED = 200 * 1000**3
MAX_PAGES = 10_000
_MAX_LINE = 1 << 20
_MAX_HOME = 1 << 20
_LINK_TAG = re.compile(r"<link\b([^>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a downloaded map."""

    max_bytes: int = MAX_BYTES
    max_expanded: int = MAX_EXPANDED
    max_pages: int = MAX_PAGES


@dataclass(frozen=True, slots=True)
class Discovery:
    """What became of one archive: installed, unchanged, none (it announces no map) or failed (`reason` says why)."""

    archive: str
    outcome: str
    url: str = ""
    path: str = ""
    keys: int = 0
    reason: str = ""


async def discover(
    client: ArchiveClient, archive: Archive, folder: Path, *, limits: Limits | None = None, any_id: bool = False
) -> Discovery:
    """Find the archive's map and install it in `folder`; with `any_id` also one that names another archive."""
    keeper = _Keeper(folder, archive.id)
    bounds = limits or Limits()
    try:
        for url in await candidates(client, archive):
            pages = await _fetch(client, archive, url, keeper, bounds)
            if pages is None:
                continue
            if not pages:
                return Discovery(archive.id, "unchanged", url, str(keeper.target))
            keys = _install(pages, archive, keeper, any_id)
            return Discovery(archive.id, "installed", url, str(keeper.target), keys)
    except (FormatError, AnswerTooBig) as error:
        keeper.part(0).unlink(missing_ok=True)  # there is no use in going on with it
        return Discovery(archive.id, "failed", reason=str(error))
    except RecollectError as error:
        return Discovery(archive.id, "failed", reason=str(error))
    finally:
        keeper.sweep()
    return Discovery(archive.id, "none", reason="no Link header, no HTML link, nothing at the well-known address")


async def candidates(client: ArchiveClient, archive: Archive) -> list[str]:
    """Where the map may be: the configured place alone, or what the archive's own pages announce, then well-known."""
    if archive.map:
        return [archive.map]
    found: list[str] = []
    roots = dict.fromkeys(_root(url) for url in (archive.timegate, archive.timemap, archive.cdx, archive.raw) if url)
    for root in roots:
        with contextlib.suppress(ArchiveError):  # a home page that fails may still have a well-known map
            answer = await client.send(Request(archive, root, max_bytes=_MAX_HOME, partial=True))
            links = parse_link_header(answer.headers.get_all("link"))
            announced = (resolve(answer.url, link.target) for link in links if "mementomap" in link.rels)
            found += [url for url in announced if url]
            found += _html_links(answer.body.decode("utf-8", "replace"), answer.url)
        found.append(root.rstrip("/") + WELL_KNOWN)
    return list(dict.fromkeys(found))


def _root(url: str) -> str:
    split = urlsplit(url)
    return f"{split.scheme}://{split.netloc}/"


def _html_links(text: str, base: str) -> Iterator[str]:
    for match in _LINK_TAG.finditer(text):
        values = {m[1].lower(): unescape(m[2] or m[3] or m[4] or "") for m in _ATTRIBUTE.finditer(match[1])}
        if "mementomap" in values.get("rel", "").lower().split() and (url := resolve(base, values.get("href", ""))):
            yield url


class _Keeper:
    """The files of one archive: what is installed, what is on its way, and what is known of both."""

    def __init__(self, folder: Path, archive_id: str) -> None:
        self.target = folder / f"{archive_id}.ukvs.zst"
        self._state = folder / ".discover" / f"{archive_id}.json"
        self._state.parent.mkdir(parents=True, exist_ok=True)

    def part(self, page: int) -> Path:
        return self._state.with_suffix(f".{page}.part" if page else ".part")

    def state(self) -> dict[str, Any]:
        try:
            value = json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def save(self, **entries: Any) -> None:
        text = json.dumps(self.state() | entries, indent=2)
        temporary = self._state.with_suffix(".tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self._state)

    def sweep(self) -> None:
        """Further pages are fetched again next time; only the first download is worth resuming."""
        for old in self._state.parent.glob(f"{self._state.stem}.*.part"):
            old.unlink(missing_ok=True)


async def _fetch(
    client: ArchiveClient, archive: Archive, url: str, keeper: _Keeper, limits: Limits
) -> list[Path] | None:
    """The downloaded pages; [] if nothing changed; None if there is no map at `url`."""
    known = keeper.state()
    headers = {}
    if known.get("url") == url and keeper.target.exists():
        if known.get("etag"):
            headers["If-None-Match"] = str(known["etag"])
        elif known.get("last_modified"):
            headers["If-Modified-Since"] = str(known["last_modified"])
    status = await _download(client, archive, url, keeper, limits, headers)
    if status == 304:
        return []
    if status != 200:
        return None
    pages, seen = [keeper.part(0)], {url}
    total = pages[0].stat().st_size
    remaining = limits.max_expanded - _expanded(pages[0], limits.max_expanded)
    following = _next_page(pages[0], url)
    while following is not None:
        if len(pages) >= limits.max_pages:
            raise AnswerTooBig("the map has too many pages", where=url, why=f"more than {limits.max_pages}")
        if following in seen:
            raise FormatError("the pages of the map link to each other in a loop", where=following)
        seen.add(following)
        path = keeper.part(len(pages))
        total += await _plain_download(client, archive, following, path, limits.max_bytes - total)
        remaining -= _expanded(path, remaining)
        pages.append(path)
        following = _next_page(path, following)
    return pages


def _next_page(path: Path, url: str) -> str | None:
    links = _header(path).meta.get("links")
    following = links.get("next") if isinstance(links, dict) else None
    return resolve(url, following) if isinstance(following, str) else None


async def _download(
    client: ArchiveClient, archive: Archive, url: str, keeper: _Keeper, limits: Limits, headers: dict[str, str]
) -> int:
    """Fetch `url` into the part file, going on where an interrupted download of the same version stopped."""
    part, known = keeper.part(0), keeper.state()
    begun = part.stat().st_size if part.exists() and known.get("part_url") == url and known.get("part_etag") else 0
    if begun:
        headers = {"Range": f"bytes={begun}-", "If-Range": str(known["part_etag"])}
    async with client.stream(Request(archive, url, headers, max_bytes=limits.max_bytes)) as answer:
        if answer.status not in (200, 206):
            if answer.status == 416 and begun:
                part.unlink(missing_ok=True)
                raise BadAnswer("the interrupted download cannot go on", where=url, hint="run it again")
            return answer.status
        etag, modified = answer.headers.get("etag"), answer.headers.get("last-modified")
        _check_length(answer, url)
        if answer.status == 206 and not _goes_on(answer, begun, etag == known.get("part_etag")):
            part.unlink(missing_ok=True)
            raise BadAnswer("the interrupted download cannot go on", where=url, hint="run it again")
        keeper.save(part_url=url, part_etag=etag, part_modified=modified)
        remaining = limits.max_bytes - (begun if answer.status == 206 else 0)
        with part.open("ab" if answer.status == 206 else "wb") as out:
            async for chunk in answer:
                remaining -= len(chunk)
                if remaining < 0:
                    raise AnswerTooBig("the map is too big", where=url, why=f"more than {limits.max_bytes:,} bytes")
                out.write(chunk)
    return 200


async def _plain_download(client: ArchiveClient, archive: Archive, url: str, path: Path, remaining: int) -> int:
    size = 0
    async with client.stream(Request(archive, url, max_bytes=max(remaining, 0) + 1)) as answer:
        if answer.status != 200:
            raise BadAnswer("a page of the map is missing", where=url, why=f"status {answer.status}")
        _check_length(answer, url)
        with path.open("wb") as out:
            async for chunk in answer:
                size += len(chunk)
                if size > remaining:
                    raise AnswerTooBig("the map is too big", where=url)
                out.write(chunk)
    return size


def _check_length(answer: StreamedResponse, url: str) -> None:
    """A map cut off at the end of a line looks whole, and would hide all that the archive holds after it."""
    if "content-length" not in answer.headers and "transfer-encoding" not in answer.headers:
        raise BadAnswer("the map comes without its length", where=url, why="it is not certain that it is complete")


def _goes_on(answer: StreamedResponse, begun: int, same: bool) -> bool:
    """Whether a part is the one that was asked for."""
    said = answer.headers.get("content-range")
    return begun > 0 and same and (not said or said.replace(" ", "").startswith(f"bytes{begun}-"))


def _install(pages: list[Path], archive: Archive, keeper: _Keeper, any_id: bool) -> int:
    """Check every line and write the map as a seekable .zst file; raises and installs nothing if anything is wrong."""
    header = _header(pages[0])
    if not any_id:
        _check_owner(header, archive)
    with Writer(keeper.target, _without_paging(header)) as out:
        for page in pages:
            with MapFile(page) as source:
                for record in source.records(ordered=True):
                    out.write(record)
        if out.count == 0 and not header.meta and not header.id:
            raise FormatError("not a map", where=archive.id, why="neither header nor records")
    known = keeper.state()
    keeper.save(url=known["part_url"], etag=known["part_etag"], last_modified=known["part_modified"], part_url="")
    pages[0].unlink(missing_ok=True)
    return out.count


def _expanded(path: Path, remaining: int) -> int:
    """How large a page is when decompressed; stops at bombs and at lines without end before anything parses them."""
    size, run = 0, 0
    with open_input(path, foreign=True) as stream:
        while piece := stream.read1(1 << 20):
            size += len(piece)
            newline = piece.rfind(b"\n")
            run = run + len(piece) if newline < 0 else len(piece) - newline - 1
            if size > remaining:
                raise FormatError(
                    "the map is too big when decompressed", where=str(path), why=f"over {remaining:,} bytes"
                )
            if run > _MAX_LINE or (newline >= 0 and _longest(piece) > _MAX_LINE):
                raise FormatError("not a map", where=str(path), why="a line of more than a megabyte")
    return size


def _longest(piece: bytes) -> int:
    return max(map(len, piece.split(b"\n"))) if len(piece) > _MAX_LINE else 0


def _header(path: Path) -> Header:
    with MapFile(path) as source:
        return source.header


def _check_owner(header: Header, archive: Archive) -> None:
    """A map says in `!id` whose holdings it lists; a map of another archive would route questions away wrongly."""
    uri = header.id.get("uri")
    if not isinstance(uri, str) or not uri:
        return
    said = (urlsplit(uri).hostname or "").removeprefix("www.")
    own = {
        (urlsplit(url).hostname or "").removeprefix("www.")
        for url in (archive.timemap, archive.timegate, archive.cdx, archive.raw)
        if url
    }
    if said not in own and not any(said.endswith("." + host) or host.endswith("." + said) for host in own if host):
        raise FormatError(
            "the map is of another archive", where=archive.id, why=f"it says {uri}", hint="--any-id to take it anyway"
        )


def _without_paging(header: Header) -> Header:
    return replace(header, meta={k: v for k, v in header.meta.items() if k not in ("links", "page", "pages")})
