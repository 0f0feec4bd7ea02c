"""How the recall of a map falls with its age, for policies and budgets, and what routing by age costs and finds.

    make bench-freshness                                      a generated archive of ten years
    make bench-freshness ARGS="--index index.cdxj"            an index with dates

The generated archive captures pages of its hosts again with the chance that half of them are gone after a year, finds
new pages on its hosts, and adds new hosts every year. The second table routes by the map of each earlier year: 5.44% of
the lookups are keys that were captured in the last year, the others are of nothing that is held.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from recollect.archives.registry import Archive
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.freshness import freshness
from recollect.routing.choice import Candidate, route
from recollect.routing.maps import Maps

YEARS = range(2010, 2020)
SEED = 1
LOOKUPS = 2000


def generated(folder: Path, hosts: int) -> Path:
    """An archive's index."""
    draw = random.Random(SEED)
    pages: dict[tuple[int, str], None] = {}
    lines: list[str] = []
    known = 0
    for year in YEARS:
        new = hosts if not known else hosts // 10
        for host in range(known, known + new):
            pages |= {(host, f"s{n % 5}/p{n}"): None for n in range(1, int(draw.paretovariate(1.1)) + 1) if n < 500}
            pages[host, ""] = None
        known += new
        for host in range(known):
            for number in range(draw.choice((0, 1, 1, 2))):
                pages[host, f"s{draw.randrange(6)}/{year}-{number}"] = None
        for host, path in pages:
            if not path or draw.random() < 0.5:
                key = f"org,h{host:05d})/{path}"
                lines.append(f'{key} {year}0601000000 {{"url": "http://h{host:05d}.org/{path}"}}\n')
        pages = {page: None for page in pages if not page[1] or draw.random() < 0.75}
    target = folder / "generated.cdxj"
    target.write_text("".join(sorted(lines)))
    return target


def routed(index: Path, folder: Path, years: tuple[int, ...]) -> None:
    """Recall and requests of routing by an older map, with and without its age."""
    last = years[-1]
    draw = random.Random(SEED)
    text = index.read_text(encoding="utf-8", errors="replace").splitlines()
    held = sorted({line.split(" ", 1)[0] for line in text if line.split(" ", 2)[1][:4] == str(last)})
    asked = [(key, True) for key in draw.sample(held, min(LOOKUPS // 10, len(held)))]
    # Of the lookups of an aggregator, 5.44% find something (Alam et al. 2019, section 1).
    absent = int(len(asked) / 0.0544) - len(asked)
    asked += [(f"org,absent{n:06d})/" if n % 2 else f"{draw.choice(held)}/absent{n}", False) for n in range(absent)]
    archive = Archive(id="a", name="a", timemap="http://a.example/")
    print(f"\nrouting in {last}, {len(asked):,} lookups, {sum(one for _, one in asked)} of them held")
    print(f"{'map of':>8} {'loss':>6} {'recall':>8} {'asked':>8}")
    for year in years[-6:-1]:
        maps = folder / f"maps-{year}"
        maps.mkdir()
        moment = datetime(year, 12, 31, tzinfo=UTC)
        profile([str(index)], maps / "a.ukvs", until=str(year), updated_at=moment)
        # The map lists all captures up to its date: the filter by date is what the archive held then.
        body = (maps / "a.ukvs").read_bytes().splitlines(keepends=True)
        (maps / "a.ukvs").write_bytes(b"".join(line for line in body if not line.startswith(b'!meta {"filters"')))
        opened = Maps.open(maps, [archive], clock=lambda: datetime(last, 12, 31, tzinfo=UTC))
        for loss in (None, 0.05, 0.01, 0.001):
            found = requests = 0
            for key, is_held in asked:
                (decision,) = route([Candidate("a")], opened.evidence(key), max_stale_loss=loss)
                requests += decision.ask
                found += decision.ask and is_held
            total = sum(one for _, one in asked)
            print(
                f"{year:>8} {'none' if loss is None else loss:>6} {found / total:>8.1%} {requests / len(asked):>8.1%}"
            )
        opened.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", help="an index with dates; default: a generated one")
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--max-bytes", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index = Path(options.index) if options.index else generated(folder, options.hosts)
        result = freshness([index], budgets=(options.max_bytes,))
        print(f"{index.name}: {result.keys:,} keys, {result.years[0]} to {result.years[-1]}")
        print("new after a year (median):", ", ".join(f"{depth} {share:.1%}" for depth, share in result.growth.items()))
        table = result.by_age()
        ages = [age for age in (1, 2, 3, 5, 8) if any(age in row for row in table.values())]
        print(f"{'map':>10} " + " ".join(f"{f'{age} y':>8}" for age in ages))
        for one, row in table.items():
            print(f"{one:>10} " + " ".join(f"{row[age]:>8.2%}" if age in row else " " * 8 for age in ages))
        routed(index, folder, result.years)
    return 0


if __name__ == "__main__":
    sys.exit(main())
