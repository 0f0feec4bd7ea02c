"""Precomputed blocks of a dynamic site, written into one file that the middleware reads (`blocksfile`).

Hides: SQLite. One row per path with the text of its blocks, and spare rows for paths that are not in the list: those
get one by a hash of their path. The file is replaced atomically, so a running server can go on reading.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn
from xml.sax.saxutils import unescape

from recollect.errors import UsageError
from recollect.formats.temporaries import create_beside
from recollect.model import ProgressCallback
from recollect.protection.age import check_lock
from recollect.protection.block import Version
from recollect.protection.blocksfile import FORMAT, check_format, path_of, read_only
from recollect.protection.collect import Collector
from recollect.protection.markup import SCRIPT_CLOSE, SCRIPT_OPEN
from recollect.protection.pack import Packing
from recollect.protection.sealing import Options, blocks_for, manifest_text, seal_all
from recollect.protection.site import Applied

_SPARE = 4  # one spare block for this number of listed paths
_LEAST_SPARE = 16
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE page (path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE spare (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""
_PATH = re.compile(r"/|https?://", re.IGNORECASE)
_LOC = re.compile(r"<loc>\s*([^<\s]+)\s*</loc>")


def read_paths(source: Path) -> list[str]:
    """Paths of pages: one per line, as /path or as a URL, or those of a sitemap."""
    text = source.read_text(encoding="utf-8-sig", errors="replace")
    if "<urlset" in text:
        return sorted({path_of(unescape(address)) for address in _LOC.findall(text)}) or _no_paths(source)
    paths = set()
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and not line.startswith("#"):
            if not _PATH.match(line):
                raise UsageError(
                    "neither a path nor a URL",
                    where=f"{source}:{number}",
                    why=ascii(line[:60]),
                    hint="give a folder of pages, a sitemap, or a list of paths that begin with /",
                )
            paths.add(path_of(line))
    return sorted(paths) or _no_paths(source)


def _no_paths(source: Path) -> NoReturn:
    raise UsageError("no paths", where=str(source), hint="one path per line, or a sitemap")


def write(
    path: Path,
    pages: Sequence[str],
    packings: Sequence[Packing],
    options: Options,
    *,
    progress: ProgressCallback = lambda _progress: None,
) -> Applied:
    """Write the blocks of these pages into a file; again to bring it up to date."""
    check_lock(options.lock)
    if path.is_dir():
        raise UsageError("the output is a folder", where=str(path), hint="name a file, as in -o site.blocks")
    known, had = _known(path, options)
    spares = [f"spare {number}" for number in range(max(_LEAST_SPARE, len(pages) // _SPARE))]
    plan, sealed = seal_all(packings, len(pages), known, options, progress)
    if plan.vault:
        raise UsageError(
            "too few pages",
            where=f"{len(pages):,}",
            why=f"{plan.pages:,} are needed",
            hint="allow more growth, need fewer blocks, or list more paths",
        )
    texts = blocks_for(sealed, [*pages, *spares], had, options, progress)
    growth = max(len(text) for text in texts.values()) + len(SCRIPT_OPEN) + len(SCRIPT_CLOSE)
    root = min(pages, key=lambda name: (name != "/", name.count("/"), len(name), name))
    listing = manifest_text(sealed, len(pages), options, growth)
    texts[root] += f"\n{listing}" if listing else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _new_database(path) as db:
        db.executescript(_SCHEMA)
        db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
        db.execute("INSERT INTO meta VALUES ('style', ?)", (options.style.value,))
        digest = hashlib.sha256("".join(texts[name] for name in sorted(texts)).encode()).hexdigest()
        db.execute("INSERT INTO meta VALUES ('tag', ?)", (digest[:8],))
        db.executemany("INSERT INTO page VALUES (?, ?)", ((name, texts[name]) for name in pages))
        db.executemany("INSERT INTO spare VALUES (?, ?)", ((n, texts[name]) for n, name in enumerate(spares)))
    kept = all(one.kept for one in sealed) and len(pages) == len(
        [name for name in had if not name.startswith("spare ")]
    )
    return Applied(tuple(sealed), plan, growth, 0 if kept else len(pages), ())


@contextmanager
def _new_database(path: Path) -> Iterator[sqlite3.Connection]:
    """An empty database that takes its place when the block ends well."""
    handle, beside = create_beside(path)
    try:
        with closing(sqlite3.connect(beside)) as db, db:
            db.execute("PRAGMA journal_mode = OFF")  # a file that fails is deleted
            yield db
        beside.replace(path)
    finally:
        os.close(handle)
        beside.unlink(missing_ok=True)


def _known(path: Path, options: Options) -> tuple[Collector, dict[str, dict[Version, int]]]:
    """The blocks that the file holds now."""
    known = Collector([options.key.public])
    had: dict[str, dict[Version, int]] = {}
    if path.exists():
        with closing(sqlite3.connect(read_only(path), uri=True)) as db:
            check_format(db, path)
            rows = "SELECT path, text FROM page UNION ALL SELECT 'spare ' || number, text FROM spare"
            for name, text in db.execute(rows):
                had[name] = {block.version: block.number for block in known.add(name, text.encode())}
    return known, had


def is_bundle(path: Path) -> bool:
    """Whether a file holds blocks: it is a database of SQLite."""
    with path.open("rb") as handle:
        return handle.read(16) == b"SQLite format 3\0"


def texts(path: Path) -> list[tuple[str, bytes]]:
    """(path, blocks) of every page that the file lists."""
    with closing(sqlite3.connect(read_only(path), uri=True)) as db:
        check_format(db, path)
        return [(name, text.encode()) for name, text in db.execute("SELECT path, text FROM page")]
