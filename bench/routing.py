"""Routing by one estimate, by time, by referer and by kinds of URIs, replayed over real TimeMaps of 19 archives.

The TimeMaps (../shared/data/timemaps) are the truth; docs/routing.md has the figures.

    make bench-routing                       all of them, some minutes
    make bench-routing ARGS="--only kinds"   one of estimate, time, referer, kinds
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from recollect.aggregator.kinds import KindOf, language_of
from recollect.aggregator.simulation import Logged, RoutingTotals, simulate
from recollect.archives.registry import Archive
from recollect.errors import BadURI
from recollect.formats.containers import open_input
from recollect.profiles.indexes.options import ProfileOptions
from recollect.profiles.indexes.profile import profile
from recollect.routing.maps import Maps
from recollect.uris import key_of_uri

DATA = Path(__file__).parents[2] / "shared" / "data" / "timemaps" / "mementos.cdxj.zst"
LARGEST = "web.archive.org"
NEAR = 2 * 365.25 * 86400
SEED = 1
WAYS = ("estimate", "time", "referer", "kinds")


@dataclass
class Page:
    """A URI, and by archive the years of its captures."""

    uri: str
    years: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def pages(folder: Path) -> list[Page]:
    """The pages of the data; the captures of each archive are written to a file, for maps by year."""
    found: dict[str, Page] = {}
    lines: dict[str, list[str]] = defaultdict(list)
    with open_input(DATA) as stream:
        for raw in stream:
            line = raw.decode()
            row = json.loads(line[line.index("{") :])
            try:
                key_of_uri(row["url"])
            except BadURI:
                continue
            page = found.setdefault(row["url"], Page(row["url"]))
            page.years[row["archive"]].append(int(line.split(" ", 2)[1][:4]))
            lines[row["archive"]].append(line)
    for archive, mine in lines.items():
        (folder / f"{archive}.cdxj").write_text("".join(mine))
    return list(found.values())


def lookups(chosen: Sequence[Page], archives: Sequence[str]) -> list[Logged]:
    return [Logged(page.uri, {one: len(page.years.get(one, ())) for one in archives}) for page in chosen]


def show(title: str, tallies: Sequence[RoutingTotals]) -> None:
    print(f"\n{title}\n{'way':12}{'requests':>10}{'saved':>8}{'recall':>9}{'TimeMap':>9}{'closest':>9}")
    first = tallies[0].requests or 1
    for tally in tallies:
        closest = f"{tally.closest / tally.timegates:9.2%}" if tally.timegates else ""
        share = tally.timemap_recall / max(tally.timemaps, 1)
        saved = 1 - tally.requests / first
        print(f"{tally.way:12}{tally.requests:10,}{saved:8.1%}{tally.recall:9.2%}{share:9.2%}{closest}")


def by_estimate(log: Sequence[Logged], archives: Sequence[str]) -> None:
    for target in (0.95, 0.99):
        ways = ("broadcast", "learned", "estimate")
        show(f"One estimate, target recall {target:.0%}", simulate(log, archives, ways=ways, target_recall=target))


def by_kinds(log: Sequence[Logged], archives: Sequence[str]) -> None:
    named = sum(bool(language_of(lookup.uri_r)) for lookup in log)
    print(f"\n{named:,} of {len(log):,} addresses name a language")
    for ids, which in ((archives, "all"), ([one for one in archives if one != LARGEST], f"without {LARGEST}")):
        for by in ((KindOf.TLD,), (KindOf.TLD, KindOf.LANGUAGE)):
            done = simulate(log, ids, ways=("broadcast",), top_k=3, by=by)
            show(f"The three most probable archives by {', '.join(by)}; {which}", done)


def by_time(chosen: Sequence[Page], archives: Sequence[str], folder: Path) -> None:
    """Each page is asked for 15 June of a year up to three years from one of its captures; maps have all years."""
    chance = random.Random(SEED)
    log = []
    for page, logged in zip(chosen, lookups(chosen, archives), strict=True):
        years = [year for mine in page.years.values() for year in mine]
        year = min(max(chance.choice(years) + chance.randint(-3, 3), 1996), 2025)
        log.append(Logged(logged.uri_r, logged.held, at=datetime(year, 6, 15, tzinfo=UTC)))
    maps = folder / "maps"
    maps.mkdir()
    for archive in archives:
        profile([str(folder / f"{archive}.cdxj")], str(maps / f"{archive}.ukvs"), ProfileOptions(by=("year",)))
    opened = Maps.open(maps, [Archive(one) for one in archives])
    done = simulate(log, archives, maps=opened, truth=opened, ways=("broadcast", "maps"), near=NEAR)
    show("TimeGates by complete maps by year, near 2 years", done)
    opened.close()


def by_referer(chosen: Sequence[Page], archives: Sequence[str]) -> None:
    """A substitute for logs with referers: each page but the first of a host is "embedded" in another of the host."""
    hosts: dict[str, list[Page]] = defaultdict(list)
    for page in chosen:
        hosts[urlsplit(page.uri).netloc.lower().removeprefix("www.")].append(page)
    pairs = [(mine[0], other) for mine in hosts.values() for other in mine[1:]]
    log = []
    asked: set[str] = set()
    for page, other in pairs:
        for one, embedding in ((page, ""), (other, page.uri)):
            if one.uri not in asked:
                asked.add(one.uri)
                log += [Logged(each.uri_r, each.held, page=embedding) for each in lookups([one], archives)]
    counts: Counter[tuple[bool, bool]] = Counter()
    for page, other in pairs:
        counts.update((bool(page.years.get(one)), bool(other.years.get(one))) for one in archives)
    held, empty = counts[True, True] + counts[False, True], counts[True, False] + counts[False, False]
    positive = (counts[True, True] / held) / (counts[True, False] / empty)
    negative = (counts[False, True] / held) / (counts[False, False] / empty)
    print(f"\n{len(pairs):,} pages with a page of the same host, {len(log):,} lookups;", end=" ")
    print(f"the odds change by {positive:.0f} where the page is held, by {negative:.2f} where it is not")
    for target in (0.95, 0.99):
        ways = ("broadcast", "estimate", "referer")
        show(f"Referers, target recall {target:.0%}", simulate(log, archives, ways=ways, target_recall=target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=WAYS)
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA.name} is not here: this benchmark needs the project's data for development")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = pages(folder)
        archives = sorted({archive for page in chosen for archive in page.years})
        random.Random(SEED).shuffle(chosen)
        print(f"{len(chosen):,} pages, {len(archives)} archives")
        log = lookups(chosen, archives)
        if options.only in (None, "estimate"):
            by_estimate(log, archives)
        if options.only in (None, "kinds"):
            by_kinds(log, archives)
        if options.only in (None, "time"):
            by_time(chosen, archives, folder)
        if options.only in (None, "referer"):
            by_referer(chosen, archives)


if __name__ == "__main__":
    main()
