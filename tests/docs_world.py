"""The world in which documented commands are run: indexes, a log, two archives that hold parts of a lost website.

write_files(folder)                      indexes/, access.log, lost.warc.gz: for what needs no server
with docs_world(folder): ...             and two real archives (pywb) with archives.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pywb_archive import pywb_archives
from recollect import surt
from websites import Shot, Website, website, write_warc

NAMES = ("first", "second")


def write_files(folder: Path) -> list[list[Shot]]:
    """Everything but the archives; returns what each of them holds."""
    site = website(seed=2, pages=12)
    held = site.scattered(len(NAMES), seed=2, moments=["20100115120000", site.end])
    (folder / "indexes").mkdir(parents=True, exist_ok=True)
    for name, shots in zip(NAMES, held, strict=True):
        (folder / "indexes" / f"{name}.cdxj").write_text(index_of(shots))
    (folder / "access.log").write_text(_log(site))
    final = [shot for shot in site.crawl([site.end]) if shot.version.status.startswith("200")]
    write_warc(folder / "lost.warc.gz", final)
    return held


def index_of(shots: Sequence[Shot]) -> str:
    """CDXJ lines of captures, sorted as bytes."""
    lines = [
        f"{surt(shot.uri)} {shot.timestamp} "
        + json.dumps(
            {"url": shot.uri, "mime": shot.version.media_type.split(";")[0], "status": shot.version.status[:3]}
        )
        for shot in shots
    ]
    return "".join(f"{line}\n" for line in sorted(lines, key=str.encode))


def _log(site: Website) -> str:
    held = [uri for uri in sorted(site.versions) if "/articles/" in uri]
    absent = [f"http://absent-{number}.example/page" for number in range(8)]
    return "".join(f"{uri}\n" for uri in (*held * 2, *absent * 3))


@contextmanager
def docs_world(folder: Path) -> Iterator[None]:
    """The files, and two archives that are running."""
    held = write_files(folder)
    holdings = []
    for name, shots in zip(NAMES, held, strict=True):
        warc = folder / ".archives" / f"{name}.warc.gz"
        write_warc(warc, shots)
        holdings.append((folder / ".archives" / name, (), [warc]))
    with pywb_archives(holdings) as running:
        entries = [
            {"id": name, "timemap": one.timemap, "timegate": one.timegate, "cdx": one.cdx, "raw": one.raw}
            for name, one in zip(NAMES, running, strict=True)
        ]
        (folder / "archives.json").write_text(json.dumps(entries))
        yield
