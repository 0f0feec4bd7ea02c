"""Routing of what pages embed by maps of pages only: the page's answer decides for its parts (Alam et al. 2019,
section 6).

Each WARC or ARC file is the collection of one archive. Every HTML page in it is visited: it, and every part that it
embeds (pictures, style sheets, scripts), are looked up in all archives, the parts with the page as their Referer. The
truth is what the files hold. Recall is the share of pairs of resource and archive that holds it which were asked, where
archives that get a second chance are asked if no other archive had the resource; `found` the share of held parts that
at least one archive which holds them was asked for.

    make bench-parts                                 generated archives of shared and own pages
    make bench-parts ARGS="--warcs DIR"              real pages, from WARC and ARC files
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from recollect.aggregator.referer import page_holders, with_page
from recollect.archives.registry import Archive
from recollect.errors import BadURI, RecollectError
from recollect.formats.ukvs import MapFile
from recollect.profiles.indexes.profile import profile
from recollect.routing.choice import SECOND_CHANCE, Candidate, route
from recollect.routing.maps import Maps
from recollect.uris import key_of_uri

Visit = tuple[str, list[str]]


def generated(folder: Path, archives: int) -> tuple[list[Path], list[Visit]]:
    """Indexes of archives that captured the same sites in part, with the pages and what they embed."""
    draw = random.Random(1)
    visits: list[Visit] = []
    held: list[list[str]] = [[] for _ in range(archives)]
    for site in range(300):
        shared = [f"http://s{site}.org/{name}" for name in ("style.css", "logo.png", "menu.js")]
        for page in range(draw.randrange(1, 12)):
            uri = f"http://s{site}.org/p{page}"
            parts = [*shared, *(f"http://s{site}.org/p{page}-{n}.jpg" for n in range(draw.randrange(4)))]
            visits.append((uri, parts))
            for lines in held:
                if draw.random() < 0.3:
                    lines.append(f"{uri} text/html")
                    lines += [f"{part} image/png" for part in parts if draw.random() < 0.9]
    files = []
    for number, lines in enumerate(held):
        path = folder / f"a{number}.cdxj"
        path.write_text(
            "".join(
                sorted(
                    f'{key_of_uri(uri).decode()} 20200101000000 {{"url": "{uri}", "mime": "{kind}", "status": "200"}}\n'
                    for uri, kind in {tuple(line.split(" ")) for line in lines}
                )
            )
        )
        files.append(path)
    return files, visits


def of_warcs(folder: Path) -> tuple[list[Path], list[Visit]]:
    """Real files, and the pages in them."""
    from recollect.recovery.links import read_document
    from recollect.recovery.snapshots import _of_warc

    files, visits = [], []
    for path in sorted(folder.iterdir()):
        try:
            resources = list(_of_warc(path))
        except (RecollectError, OSError, ValueError):
            continue
        files.append(path)
        for uri, media_type, content in resources:
            if not media_type.startswith("text/html") or not uri.startswith("http"):
                continue
            document = read_document(content(), uri, "text/html")
            parts = [link.uri for link in document.links if link.embedded] if document is not None else []
            if parts:
                visits.append((uri, list(dict.fromkeys(parts))))
    return files, visits


def _keys(path: Path) -> set[bytes]:
    with MapFile(path) as file:
        return {record.key for record in file.records()}


def measured(folder: Path, files: list[Path], visits: list[Visit]) -> Iterator[tuple[str, int, float, float]]:
    """(way, requests, share of pairs that were asked, share of held parts that one archive at least was asked for)."""
    archives = [Archive(id=f"a{number}", name="", timemap=f"http://a{number}.example/") for number in range(len(files))]
    truth: list[set[bytes]] = []
    for name, chosen in (("full", ()), ("pages", ("text/html",))):
        (folder / name).mkdir()
        for archive, path in zip(archives, files, strict=True):
            target = folder / name / f"{archive.id}.ukvs"
            now = datetime.now(UTC)  # the files are all that these archives hold
            profile([str(path)], target, media_types=chosen, statuses=("2xx",), allow_empty=True, updated_at=now)
            if name == "full":
                truth.append(_keys(target))
    candidates = [Candidate(archive.id) for archive in archives]
    ways = (("all archives", "", False), ("full maps", "full", False), ("pages", "pages", False))
    for way, name, by_page in (*ways, ("pages, Referer", "pages", True)):
        maps = Maps.open(folder / name if name else None, archives)
        requests = found = total = reached = some = 0
        for page, parts in visits:
            holders = page_holders(maps.evidence(page)) if by_page else {}
            for uri in parts:
                try:
                    key = key_of_uri(uri)
                except BadURI:
                    continue
                held = {archive.id for archive, keys in zip(archives, truth, strict=True) if key in keys}
                decisions = route(candidates, with_page(maps.evidence(uri), holders))
                asked = {decision.archive for decision in decisions if decision.ask}
                if not held & asked:
                    asked |= {decision.archive for decision in decisions if decision.reason in SECOND_CHANCE}
                requests += len(asked)
                found += len(held & asked)
                total += len(held)
                reached += bool(held & asked)
                some += bool(held)
        maps.close()
        yield way, requests, found / max(total, 1), reached / max(some, 1)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--warcs", help="folder of WARC and ARC files; default: generated archives")
    parser.add_argument("--archives", type=int, default=6, help="generated archives")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, visits = of_warcs(Path(options.warcs)) if options.warcs else generated(folder, options.archives)
        parts = sum(len(one) for _, one in visits)
        print(f"{len(files)} archives, {len(visits):,} pages with {parts:,} parts")
        print(f"{'maps':>16} {'requests':>10} {'recall':>8} {'found':>8}")
        for way, requests, recall, found in measured(folder, files, visits):
            print(f"{way:>16} {requests:>10,} {recall:>8.2%} {found:>8.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
