"""The page of published maps: a field that tells whether an archive holds an address, on any static web server.

    mementomap/index.html, _/              the page, its style, and the reader in JavaScript (ui/reader)
    mementomap/maps.json                   the maps that it looks up: address, name, moment, marks, replay

`marks` are positions of blocks in the compressed file and their first keys, so that a browser finds the block of a key
in one request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recollect.formats.blocks import BlockFile
from recollect.formats.containers import atomic_output
from recollect.ui.pages import Linked, asset, render

MOST_MARKS = 1024
_LEAST_STEP = 1 << 15  # bytes, half of what a browser asks for
_FILES = ("look.css", "icon.svg", "mementomap.js", "lookup.js")


@dataclass(frozen=True, slots=True)
class PublishedMap:
    """A map that a page looks up; `href` is relative to the page, `replay` comes before an address."""

    href: str
    name: str
    id: str
    updated_at: str
    keys: int
    replay: str
    marks: list[tuple[int, str]]


def write_lookup_page(folder: Path, maps: Sequence[PublishedMap], title: str) -> None:
    """Write the page and all that it needs into a folder of a web server."""
    (folder / "_").mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        _write(folder / "_" / name, asset(name))
    _write(folder / "maps.json", json.dumps([asdict(one) for one in maps], ensure_ascii=False).encode() + b"\n")
    rows = [(one.name or one.id or "this archive", one.updated_at[:10], f"{one.keys:,}", one.href) for one in maps]
    page = render("maps/lookup.html", Linked("."), title=title or "MementoMap", maps=maps, rows=rows)
    _write(folder / "index.html", page.encode())


def marks_of(path: Path) -> list[tuple[int, str]]:
    """Positions and first keys of blocks of a compressed map; keys as text of one character for each byte."""
    file = BlockFile.open(str(path))
    try:
        step = max(file.length // MOST_MARKS, _LEAST_STEP)
        marks: list[tuple[int, str]] = []
        block = file.block_at(step)
        while block is not None:
            line = block.text.partition(b"\n")[0]
            if line and line[:1] not in (b"!", b"#"):
                marks.append((block.start, line.split(None, 1)[0].decode("latin-1")))
            block = file.block_at(max(block.end, block.start + step))
        return marks
    finally:
        file.close()


def entry_of(index: dict[str, Any], href: str, path: Path, replay: str = "") -> PublishedMap:
    """The entry of a map that an index.json describes."""
    identity = str(index["id"].get("uri") or "")
    moment = str(index["updated_at"])
    return PublishedMap(href, str(index["name"]), identity, moment, int(index["keys"]), replay, marks_of(path))


def _write(path: Path, body: bytes) -> None:
    with atomic_output(path) as out:
        out.write(body)
