"""A map as a folder of static files that any web server can serve.

Hides: paging, compression, checksums. The tree, below the root of the archive's own site:

    .well-known/mementomap[.gz|.zst]     the map; of a paged map its first page
    mementomap/map.ukvs.gz, .zst         the whole map, compressed so that it can be searched as it is
    mementomap/page-00001.ukvs[.gz|.zst] the pages, when the map is longer than one
    mementomap/index.json                what there is: sizes, SHA-256, ETag, date, first and last key of each page
    mementomap/link.txt                  the Link header to send with every answer of the site

A page is a map of its own: the same header, with `links` (first, last, prev, next), `page` and `pages` in its `!meta`.

Invariants: unsorted maps are refused; the pages one after another are the map; the index is written last, so that what
it names is there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from recollect.errors import NotSorted, RecollectError, UsageError
from recollect.formats.containers import atomic_output
from recollect.formats.outputs import refuse_inputs
from recollect.formats.parts import is_parted, parted_size
from recollect.formats.ukvs.header import MEDIA_TYPE, Header
from recollect.formats.ukvs.reader import MapFile
from recollect.model import Progress, ProgressCallback

WELL_KNOWN = ".well-known/mementomap"
FOLDER = "mementomap"
PAGE_KEYS = 1_000_000
_ENCODINGS = {".gz": "gzip", ".zst": "zstd"}
# Bytes that stand at the start of a line which is not a record, and what only such lines or untidy ones have.
_ODD_STARTS = (b"", b"#", b"!", b"@", b"\n", b"\r", b" ", b"\t")
_ODD = (b"\n#", b"\n!", b"\n@", b"\n\n", b"\n ", b"\n\t", b" \n", b"\t\n", b"\r", b"\v", b"\f")


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
    try:
        refuse_inputs(path, [place for place in (target, (folder / WELL_KNOWN).parent) if place.is_dir()])
    except UsageError as error:
        hint = "copy it to another folder, and publish the copy"
        raise UsageError("the map is one of the files that are published", where=path, hint=hint) from error
    target.mkdir(parents=True, exist_ok=True)
    (folder / WELL_KNOWN).parent.mkdir(parents=True, exist_ok=True)
    header, pages, digest = _survey(path, page_keys, progress)
    names = [f"{FOLDER}/page-{number:05d}.ukvs" for number in range(1, len(pages) + 1)] if len(pages) > 1 else []
    written = _write_whole(path, folder, header)
    written += _write_pages(path, folder, header, pages, names, progress)
    link = _link(base_uri)
    index = {
        "type": "MementoMap",
        "id": dict(header.id),
        "name": header.meta.get("name", ""),
        "updated_at": header.meta.get("updated_at", updated_at),
        "etag": digest,
        "keys": sum(page.keys for page in pages),
        "policy": header.policy,
        "link": link,
        "well_known": f"/{WELL_KNOWN}",
        "pages": [_page_entry(name, page) for name, page in zip(names, pages, strict=False)],
        "files": [_file_entry(folder, name) for name in written],
    }
    _write(folder / FOLDER / "link.txt", f"Link: {link}\n".encode())
    _write(folder / FOLDER / "index.json", json.dumps(index, indent=2, ensure_ascii=False).encode() + b"\n")
    _sweep(folder, set(written))
    return Published(index, link)


def _survey(path: str, page_keys: int, progress: ProgressCallback) -> tuple[Header, list[_Page], str]:
    """Header, pages and digest of a map; refuses one that is not sorted."""
    pages: list[_Page] = []
    digest = hashlib.sha256()
    total = parted_size(Path(path)) if is_parted(Path(path)) else Path(path).stat().st_size
    with MapFile(path) as source:
        digest.update(source.header.encode())
        last = b""
        for batch in _batches(source, page_keys):
            ordered = sorted(batch)
            if batch != ordered or last > batch[0]:
                raise NotSorted("the map is not sorted", where=path, hint=f"recollect merge {path} -o {path}")
            last = batch[-1]
            digest.update(b"".join(batch))
            pages.append(_Page(_key(batch[0]), _key(batch[-1]), len(batch)))
            progress(Progress("reading the map", source.consumed, total, "bytes"))
        return source.header, pages, digest.hexdigest()


def _batches(source: MapFile, size: int) -> Iterator[list[bytes]]:
    """The data lines, `size` at a time, each with its newline; comments and empty lines left out."""
    batch: list[bytes] = []
    for piece in source.pieces():
        if piece[:1] in _ODD_STARTS or any(odd in piece for odd in _ODD):
            lines = piece.splitlines()
            batch += [line.rstrip() + b"\n" for line in lines if line.strip() and line[:1] not in (b"#", b"!", b"@")]
        else:
            batch += piece.splitlines(keepends=True)
            if not batch[-1].endswith(b"\n"):
                batch[-1] += b"\n"
        while len(batch) >= size:
            yield batch[:size]
            batch = batch[size:]
    if batch:
        yield batch


def _key(line: bytes) -> bytes:
    return line.split(None, 1)[0]


def _write_whole(path: str, folder: Path, header: Header) -> list[str]:
    names = [f"{FOLDER}/map.ukvs{suffix}" for suffix in _ENCODINGS]
    for name in names:
        with MapFile(path) as source, atomic_output(folder / name) as out:
            out.write(header.encode())
            for batch in _batches(source, 100_000):
                out.write(b"".join(batch))
    return names


def _write_pages(
    path: str, folder: Path, header: Header, pages: list[_Page], names: list[str], progress: ProgressCallback
) -> list[str]:
    """The well-known file and, for a map of several pages, each page; all three encodings of each."""
    written: list[str] = []
    with MapFile(path) as source:
        size = pages[0].keys if pages else 1
        for number, batch in enumerate(_batches(source, size) if pages else iter([[]])):
            page_header = _page_header(header, number, names)
            targets = ([names[number]] if names else []) + ([WELL_KNOWN] if number == 0 else [])
            for target in targets:
                for suffix in ("", *_ENCODINGS):
                    if suffix and not names:  # one page is the whole map, which has been compressed already
                        _copy(folder / f"{FOLDER}/map.ukvs{suffix}", folder / f"{target}{suffix}")
                    else:
                        with atomic_output(folder / f"{target}{suffix}") as out:
                            _put(out, page_header, batch)
                    written.append(f"{target}{suffix}")
            progress(Progress("writing pages", number + 1, max(len(pages), 1), "pages"))
    return written


def _copy(source: Path, target: Path) -> None:
    """The same bytes in another place; `atomic_output` would compress them by the name."""
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, beside)
    beside.replace(target)


def _put(out: BinaryIO, header: Header, batch: list[bytes]) -> None:
    out.write(header.encode())
    out.write(b"".join(batch))


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
        raise RecollectError("the base is no web address", where=base_uri, hint="--base-uri https://archive.example/")
    base = base_uri.rstrip("/")
    return f'<{base}/{WELL_KNOWN}>; rel="mementomap"; type="{MEDIA_TYPE}"'


def _page_entry(name: str, page: _Page) -> dict[str, Any]:
    return {
        "path": f"/{name}",
        "first": page.first.decode("utf-8", "replace"),
        "last": page.last.decode("utf-8", "replace"),
        "keys": page.keys,
    }


def _file_entry(folder: Path, name: str) -> dict[str, Any]:
    with (folder / name).open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    entry: dict[str, Any] = {"path": f"/{name}", "bytes": (folder / name).stat().st_size, "sha256": digest}
    encoding = _ENCODINGS.get(Path(name).suffix)
    return entry | {"media_type": MEDIA_TYPE} | ({"content_encoding": encoding} if encoding else {})


def _write(path: Path, body: bytes) -> None:
    with atomic_output(path) as out:
        out.write(body)


def _sweep(folder: Path, current: set[str]) -> None:
    """Take away pages of an earlier, longer map."""
    for old in (folder / FOLDER).glob("page-*.ukvs*"):
        if f"{FOLDER}/{old.name}" not in current:
            old.unlink()
