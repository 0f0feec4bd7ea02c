"""A map as a folder of static files that any web server can serve.

Hides: paging, compression, checksums. The tree, below the root of the archive's own site:

    .well-known/mementomap[.gz|.zst]     the map; of a paged map its first page
    mementomap/map.ukvs.gz, .zst         the whole map, compressed so that it can be searched as it is
    mementomap/page-00001.ukvs[.gz|.zst] the pages, when the map is longer than one
    mementomap/index.json                what there is: sizes, SHA-256, ETag, date, first and last key of each page
    mementomap/link.txt                  the Link header to send with every answer of the site
    mementomap/index.html                a page that looks addresses up in the map (`lookuppage`)

A page is a map of its own: the same header, with `links` (first, last, prev, next), `page` and `pages` in its `!meta`.

Invariants: unsorted maps are refused; the pages one after another are the map; the index is written last, so that what
it names is there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from recollect.errors import NotSorted, RecollectError, UsageError
from recollect.formats.containers import atomic_output
from recollect.formats.outputs import refuse_inputs
from recollect.formats.parts import is_parted, parted_size
from recollect.formats.temporaries import name_beside, replacing
from recollect.formats.ukvs.header import MEDIA_TYPE, Header
from recollect.formats.ukvs.reader import MapFile
from recollect.kernels.search import MapSearch
from recollect.maps.lookuppage import entry_of, write_lookup_page
from recollect.model import Progress, ProgressCallback

WELL_KNOWN = ".well-known/mementomap"
FOLDER = "mementomap"
PAGE_KEYS = 1_000_000
_KEPT_TEXT = 1 << 25  # bytes; the text of a larger map is read twice
_ENCODINGS = {".gz": "gzip", ".zst": "zstd"}
# Bytes at the start or the end of a line that is not a record, or not as a record is written.
_IRREGULAR = b"#!@\n \t"


@dataclass(frozen=True, slots=True)
class Published:
    """What was written, as in index.json."""

    index: dict[str, Any]
    link: str


@dataclass(frozen=True, slots=True)
class _Page:
    first: bytes
    last: bytes
    keys: int


@dataclass(frozen=True, slots=True)
class _Survey:
    """Header, pages and digest of a map; and its text with the numbers of pages, if it is small enough to be kept."""

    header: Header
    pages: list[_Page]
    digest: str
    texts: list[tuple[int, bytes]] | None


def publish(
    path: str,
    folder: Path,
    *,
    updated_at: str,
    base_uri: str = "",
    page_keys: int = PAGE_KEYS,
    progress: ProgressCallback = lambda _p: None,
) -> Published:
    """Write the tree for the map at `path` below `folder`; `updated_at` stands in for a date the map does not say."""
    target = folder / FOLDER
    refuse_other_kind(folder, collections=False)
    try:
        refuse_inputs(path, [place for place in (target, (folder / WELL_KNOWN).parent) if place.is_dir()])
    except UsageError as error:
        hint = "copy it to another folder, and publish the copy"
        raise UsageError("the map is one of the files that are published", where=path, hint=hint) from error
    target.mkdir(parents=True, exist_ok=True)
    (folder / WELL_KNOWN).parent.mkdir(parents=True, exist_ok=True)
    survey = _survey(path, page_keys, progress)
    header, pages = survey.header, survey.pages
    names = [f"{FOLDER}/page-{number:05d}.ukvs" for number in range(1, len(pages) + 1)] if len(pages) > 1 else []
    written = _write_all(path, folder, survey, names, progress)
    link = _link(base_uri)
    index = {
        "type": "MementoMap",
        "id": dict(header.id),
        "name": header.meta.get("name", ""),
        "updated_at": header.meta.get("updated_at", updated_at),
        "etag": survey.digest,
        "keys": sum(page.keys for page in pages),
        "policy": header.policy,
        "link": link,
        "well_known": f"/{WELL_KNOWN}",
        "pages": [_page_entry(name, page) for name, page in zip(names, pages, strict=False)],
        "files": file_entries(folder, written, {} if names else {WELL_KNOWN: survey.digest}),
    }
    write_file(folder / FOLDER / "link.txt", f"Link: {link}\n".encode())
    write_file(folder / FOLDER / "index.json", json.dumps(index, indent=2, ensure_ascii=False).encode() + b"\n")
    whole = f"{FOLDER}/map.ukvs.gz"
    write_lookup_page(target, [entry_of(index, "map.ukvs.gz", folder / whole)], str(index["name"]))
    _sweep(folder, set(written))
    return Published(index, link)


def refuse_other_kind(folder: Path, *, collections: bool) -> None:
    """Raise UsageError where one map is published for the whole host and a collection shall be, or the other way."""
    index = folder / FOLDER / "index.json"
    try:
        stated = json.loads(index.read_text(encoding="utf-8")) if index.is_file() else None
    except ValueError:
        stated = None
    if not isinstance(stated, dict) or ("maps" in stated) == collections:
        return
    if collections:
        hint = "publish it as a collection into another folder, or remove the published map first"
        raise UsageError("one map is published here for the whole host", where=str(folder), hint=hint)
    hint = "give --collection NAME, or publish into another folder"
    raise UsageError("maps of collections are published here", where=str(folder), hint=hint)


def survey_map(path: str) -> _Survey:
    """What a map is like, as one page; refuses one that is not sorted."""
    return _survey(path, 1 << 62, lambda _p: None)


def tidy_texts(source: MapFile) -> Iterator[bytes]:
    """The data lines of a map in pieces of whole lines; comments and empty lines left out."""
    return (text for _, text in _texts(source, 1 << 62))


def _survey(path: str, page_keys: int, progress: ProgressCallback) -> _Survey:
    """What a map is like; refuses one that is not sorted."""
    pages: list[_Page] = []
    kept: list[tuple[int, bytes]] = []
    digest = hashlib.sha256()
    total = parted_size(Path(path)) if is_parted(Path(path)) else Path(path).stat().st_size
    with MapFile(path) as source:
        digest.update(source.header.encode())
        last = b""
        size = 0
        for number, text in _texts(source, page_keys):
            first = _key(text)
            if last > first or not MapSearch(text, 0).looks_sorted(0, len(text)):
                raise NotSorted("the map is not sorted", where=path, hint=f"recollect merge {path} -o {path}")
            last = _key(text[text.rfind(b"\n", 0, -1) + 1 :])
            digest.update(text)
            before = pages.pop() if number < len(pages) else _Page(first, last, 0)
            pages.append(_Page(before.first, last, before.keys + text.count(b"\n")))
            size += len(text)
            if size <= _KEPT_TEXT:
                kept.append((number, text))
            progress(Progress("reading the map", source.consumed, total, "bytes"))
        return _Survey(source.header, pages, digest.hexdigest(), kept if size <= _KEPT_TEXT else None)


def _texts(source: MapFile, page_keys: int) -> Iterator[tuple[int, bytes]]:
    """The data lines in pieces of whole lines, each with the number of its page; comments and empty lines left out."""
    import numpy as np

    page, left = 0, page_keys
    for piece in source.pieces():
        text = _tidy(piece)
        while (lines := text.count(b"\n")) > left:
            ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
            cut = int(ends[left - 1]) + 1 if left else 0
            if cut:
                yield page, text[:cut]
            page, left, text = page + 1, page_keys, text[cut:]
        left -= lines
        if text:
            yield page, text


def _tidy(piece: bytes) -> bytes:
    """The data lines of a piece, each with its newline and nothing before it."""
    import numpy as np

    data = np.frombuffer(piece, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    beside = np.concatenate((data[:1], data[ends - 1], data[ends[ends < len(data) - 1] + 1]))
    if np.isin(beside, np.frombuffer(_IRREGULAR, np.uint8)).any() or any(
        other in piece for other in (b"\r", b"\v", b"\f")
    ):
        lines = piece.splitlines()
        return b"".join(line.rstrip() + b"\n" for line in lines if line.strip() and line[:1] not in (b"#", b"!", b"@"))
    return piece if piece.endswith(b"\n") else piece + b"\n"


def _key(line: bytes) -> bytes:
    return line[: line.index(b"\n")].split(None, 1)[0]


def _write_all(path: str, folder: Path, survey: _Survey, names: list[str], progress: ProgressCallback) -> list[str]:
    """The whole map compressed, and each page and the well-known file in three encodings, in one pass."""
    header, pages = survey.header, survey.pages
    wholes = [f"{FOLDER}/map.ukvs{suffix}" for suffix in _ENCODINGS]
    written = list(wholes)
    with ExitStack() as stack:
        whole = [begun(stack, folder / name, header) for name in wholes]
        if survey.texts is None:
            pieces = _texts(stack.enter_context(MapFile(path)), pages[0].keys)
        else:
            pieces = iter(survey.texts)
        for number, texts in _by_page(pieces):
            targets = _page_files(number, names)
            with ExitStack() as page_stack:
                page_header = _page_header(header, number, names)
                outs = [*whole, *(begun(page_stack, folder / target, page_header) for target in targets)]
                for text in texts:
                    for out in outs:
                        out.write(text)
            written += targets
            progress(Progress("writing pages", number + 1, max(len(pages), 1), "pages"))
    if not names:  # one page is the whole map, which is compressed already
        for suffix in _ENCODINGS:
            _same(folder / f"{FOLDER}/map.ukvs{suffix}", folder / f"{WELL_KNOWN}{suffix}")
            written.append(f"{WELL_KNOWN}{suffix}")
    return written


def _by_page(texts: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The pieces of each page; a map without data has one empty page."""
    number = -1
    for number, group in groupby(texts, key=itemgetter(0)):
        yield number, (text for _, text in group)
    if number < 0:
        yield 0, iter(())


def _page_files(number: int, names: list[str]) -> list[str]:
    """The files of a page; without names it is the only one, whose compressed files are those of the map."""
    if not names:
        return [WELL_KNOWN]
    bases = [names[number], *([WELL_KNOWN] if number == 0 else [])]
    return [f"{base}{suffix}" for base in bases for suffix in ("", *_ENCODINGS)]


def begun(stack: ExitStack, path: Path, header: Header) -> BinaryIO:
    out = stack.enter_context(atomic_output(path))
    out.write(header.encode())
    return out


def _same(source: Path, target: Path) -> None:
    """The same file in another place, or a copy of it where the file system has no hard links."""
    beside = name_beside(target)
    try:
        beside.hardlink_to(source)
        beside.replace(target)
    except OSError:
        beside.unlink(missing_ok=True)
        with source.open("rb") as content, replacing(target) as out:
            shutil.copyfileobj(content, out)
    else:
        beside.unlink(missing_ok=True)  # two names of one file: the rename did nothing


def _page_header(header: Header, number: int, names: list[str]) -> Header:
    if not names:
        return header
    links = {"first": f"/{names[0]}", "last": f"/{names[-1]}"}
    if number > 0:
        links["prev"] = f"/{names[number - 1]}"
    if number + 1 < len(names):
        links["next"] = f"/{names[number + 1]}"
    return replace(header, meta={**header.meta, "links": links, "page": number + 1, "pages": len(names)})


def _link(base_uri: str) -> str:
    if base_uri and not base_uri.startswith(("http://", "https://")):
        raise RecollectError(
            "the base is not a web address", where=base_uri, hint="--base-url https://archive.example/"
        )
    base = base_uri.rstrip("/")
    return f'<{base}/{WELL_KNOWN}>; rel="mementomap"; type="{MEDIA_TYPE}"'


def _page_entry(name: str, page: _Page) -> dict[str, Any]:
    return {
        "path": f"/{name}",
        "first": page.first.decode("utf-8", "replace"),
        "last": page.last.decode("utf-8", "replace"),
        "keys": page.keys,
    }


def file_entries(folder: Path, names: Sequence[str], known: Mapping[str, str]) -> list[dict[str, Any]]:
    """What index.json says of each file; the digests of some are `known`."""
    digests = {(folder / name).stat().st_ino: digest for name, digest in known.items()}  # as some are links to others
    entries = []
    for name in names:
        found = (folder / name).stat()
        if found.st_ino not in digests:
            with (folder / name).open("rb") as handle:
                digests[found.st_ino] = hashlib.file_digest(handle, "sha256").hexdigest()
        entry: dict[str, Any] = {"path": f"/{name}", "bytes": found.st_size, "sha256": digests[found.st_ino]}
        encoding = _ENCODINGS.get(Path(name).suffix)
        entries.append(entry | {"media_type": MEDIA_TYPE} | ({"content_encoding": encoding} if encoding else {}))
    return entries


def write_file(path: Path, body: bytes) -> None:
    with atomic_output(path) as out:
        out.write(body)


def _sweep(folder: Path, current: set[str]) -> None:
    """Take away pages of an earlier, longer map."""
    for old in (folder / FOLDER).glob("page-*.ukvs*"):
        if f"{FOLDER}/{old.name}" not in current:
            old.unlink()
