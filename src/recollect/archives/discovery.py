"""Find, fetch and install the map an archive publishes.

Hides: where a map may be announced (Link header, HTML link, well-known URI), conditional and resumed downloads, paged
maps, and all that a hostile map could try. In the folder of maps, besides `<id>.ukvs.zst`:

    .discover/<id>.json    address, ETag and Last-Modified of what is installed
    .discover/<id>.part    a download on its way, resumed by Range and If-Range

A map belongs to the archive that its `!id` names: the same host, and a path that covers the archive's addresses.
Without an `!id` it is the map of the place that announces it. A map that covers the addresses of several known archives
is installed for none of them, as it may be of one collection only. A host with several collections publishes a list of
maps at the well-known address (`maps` in `!meta`), or a link with an `anchor` for each.

Invariants: only the archive's own hosts are asked; never more than `max_bytes` are fetched nor `max_expanded` read,
whatever an answer claims; a map is installed only when it is sorted, valid to the last line and about this archive, and
then at once (the file is replaced, readers of the old one go on); anything else leaves what was installed untouched.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
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
_MAX_LISTED = 10_000
_LINK_TAG = re.compile(r"<link\b([^>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?<![a-z-])([a-z-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Announced:
    """An address where a map may be, and the address whose holdings it is said to list; empty if that is not said."""

    url: str
    covers: str = ""


async def discover(
    client: ArchiveClient,
    archive: Archive,
    folder: Path,
    *,
    limits: Limits | None = None,
    any_id: bool = False,
    known: Sequence[Archive] = (),
) -> Discovery:
    """Find the archive's map and install it in `folder`; with `any_id` also one that names another archive. `known` are
    all archives of the operator, of which others may be on the same host."""
    keeper = _Keeper(folder, archive.id)
    bounds = limits or Limits()
    refused = ""
    try:
        waiting = await candidates(client, archive)
        while waiting:
            place = waiting.pop(0)
            pages = await _fetch(client, archive, place.url, keeper, bounds)
            if pages is None:
                continue
            if not pages:
                return Discovery(archive.id, "unchanged", place.url, str(keeper.target))
            header = _header(pages[0])
            listed = _listed(header, place.url)
            if listed is not None:
                keeper.forget()
                mine = [one for one in listed if _covers(one.covers, archive)]
                waiting = mine + waiting
                names = ", ".join(one.covers or one.url for one in listed)
                refused = refused if mine else f"{place.url} lists maps of {names}, none of this archive"
                continue
            why = "" if any_id or place.url == archive.map else _not_of(header, archive, place, known)
            if why:
                keeper.forget()
                refused = refused or why
                continue
            keys = _install(pages, archive, keeper)
            return Discovery(archive.id, "installed", place.url, str(keeper.target), keys)
    except (FormatError, AnswerTooBig) as error:
        keeper.part(0).unlink(missing_ok=True)  # there is no use in going on with it
        return Discovery(archive.id, "failed", reason=str(error))
    except RecollectError as error:
        return Discovery(archive.id, "failed", reason=str(error))
    finally:
        keeper.sweep()
    if refused:
        return Discovery(archive.id, "failed", reason=refused)
    return Discovery(archive.id, "none", reason="no Link header, no HTML link, nothing at the well-known address")


async def candidates(client: ArchiveClient, archive: Archive) -> list[Announced]:
    """Where the map may be: the configured place alone, or what the archive's own pages announce, then well-known."""
    if archive.map:
        return [Announced(archive.map)]
    found: list[Announced] = []
    roots = dict.fromkeys(_root(url) for url in (archive.timegate, archive.timemap, archive.cdx, archive.raw) if url)
    for root in roots:
        with contextlib.suppress(ArchiveError):  # a home page that fails may still have a well-known map
            answer = await client.send(Request(archive, root, max_bytes=_MAX_HOME, partial=True))
            for link in parse_link_header(answer.headers.get_all("link")):
                url = resolve(answer.url, link.target) if "mementomap" in link.rels else None
                anchor = link.params.get("anchor", "")
                covers = resolve(answer.url, anchor) if anchor else root
                if url and covers and (not anchor or _covers(covers, archive)):
                    found.append(Announced(url, covers))
            found += [Announced(url, root) for url in _html_links(answer.body.decode("utf-8", "replace"), answer.url)]
        found.append(Announced(root.rstrip("/") + WELL_KNOWN, root))
    return list({one.url: one for one in reversed(found)}.values())[::-1]


def _listed(header: Header, url: str) -> list[Announced] | None:
    """The maps that a list of maps names; None if the file is a map itself."""
    maps = header.meta.get("maps")
    if not isinstance(maps, list):
        return None
    found: list[Announced] = []
    for one in maps[:_MAX_LISTED]:
        if isinstance(one, dict) and isinstance(one.get("href"), str) and isinstance(one.get("id"), str):
            place, covers = resolve(url, one["href"]), resolve(url, one["id"])
            if place and covers:
                found.append(Announced(place, covers))
    return sorted(found, key=lambda one: -len(one.covers))


def _addresses(archive: Archive) -> list[str]:
    return [url for url in (archive.timemap, archive.timegate, archive.cdx, archive.raw) if url]


def _covers(uri: str, archive: Archive) -> bool:
    """Whether a URI names an archive: one of the archive's addresses is on its host and below its path."""
    named = urlsplit(uri)
    host, path = _host(named.hostname), named.path.rstrip("/") + "/"
    for address in _addresses(archive):
        own = urlsplit(address)
        mine = _host(own.hostname)
        same = host == mine and (named.port is None or named.port == own.port)
        # A map of a host may be named by its subdomain or the other way round (archive.org, web.archive.org).
        related = named.port is None and (host.endswith("." + mine) or mine.endswith("." + host)) if host else False
        if (same or related) and (own.path.rstrip("/") + "/").startswith(path):
            return True
    return False


def _host(name: str | None) -> str:
    return (name or "").lower().removeprefix("www.")


def _not_of(header: Header, archive: Archive, place: Announced, known: Sequence[Archive]) -> str:
    """Why a map is not that of an archive; empty if it is."""
    stated = header.id.get("uri")
    uri = stated if isinstance(stated, str) and stated else place.covers
    hint = "--any-id to take it anyway"
    if not _covers(uri, archive):
        said = f"it says {uri}" if uri == stated else f"it is announced for {uri}"
        return str(FormatError("the map is of another archive", where=archive.id, why=said, hint=hint))
    others = [one for one in known if one.id != archive.id and _covers(uri, one) and _is_apart(one, archive)]
    if others:
        names = ", ".join(sorted({archive.id, *(one.id for one in others)}))
        why = f"{uri} covers several archives ({names}), and a map of one would hide what the others hold"
        return str(FormatError("it is not certain whose map it is", where=archive.id, why=why, hint=hint))
    return ""


def _is_apart(one: Archive, other: Archive) -> bool:
    """Whether two archives have no address in common: entries of a list may be the same archive twice."""
    return not {*_addresses(one)} & {*_addresses(other)}


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
        numbered = re.compile(re.escape(self._state.stem) + r"\.\d+\.part")  # `web.archive.part` is not one of `web`
        for old in self._state.parent.iterdir():
            if numbered.fullmatch(old.name):
                old.unlink(missing_ok=True)

    def forget(self) -> None:
        """Drop a download that is not the archive's map."""
        self.part(0).unlink(missing_ok=True)
        self.save(part_url="", part_etag=None, part_modified=None)


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


def _install(pages: list[Path], archive: Archive, keeper: _Keeper) -> int:
    """Check every line and write the map as a seekable .zst file; raises and installs nothing if anything is wrong."""
    header = _header(pages[0])
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


def _without_paging(header: Header) -> Header:
    return replace(header, meta={k: v for k, v in header.meta.items() if k not in ("links", "page", "pages")})
