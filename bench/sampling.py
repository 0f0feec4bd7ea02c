"""Routing by samples, judged on URIs that are not in the sample: recall and requests saved, pooled and per archive.

Real TimeMaps of 19 archives (../shared/data/timemaps) are the truth. One threshold for all archives together is the
trial this is measured against; `route --target-recall` asks the most probable archives of each URI; a threshold for
each archive is what a map of a sample promises. With the floor, every archive keeps its share.

    make bench-sampling ARGS="--probes 284 --runs 5"
    make bench-sampling ARGS="--probes 500 --targets 0.95 --largest 6"
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from recollect.errors import BadURI
from recollect.formats.containers import open_input
from recollect.maps.samples import Probe, finds_of, rank_of, sample_of, threshold
from recollect.model import Answer
from recollect.routing.choice import FLOOR, Candidate, Evidence, Rank, Source, route
from recollect.uris import key_of_uri

DATA = Path(__file__).parents[2] / "shared" / "data" / "timemaps" / "mementos.cdxj.zst"
UNSEEN = 1400


def truth() -> dict[bytes, set[str]]:
    held: dict[bytes, set[str]] = defaultdict(set)
    with open_input(DATA) as lines:
        for line in lines:
            entry = json.loads(line[line.index(b"{") :])
            try:
                held[key_of_uri(entry["url"])].add(entry["archive"])
            except BadURI:
                continue
    return held


@dataclass
class Way:
    """One way of routing, summed over runs."""

    requests: int = 0
    found: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)


@dataclass
class Result:
    """All ways for one number of probes and one target recall."""

    runs: int = 0
    there: Counter[str] = field(default_factory=Counter)
    finds: Counter[str] = field(default_factory=Counter)
    """By archive, how many probes it held."""
    promised: Counter[str] = field(default_factory=Counter)
    """By archive, in how many runs its probes were enough for a threshold."""
    ways: dict[str, Way] = field(default_factory=lambda: {name: Way() for name in WAYS})


WAYS = ("one threshold", "by URI", "with floor", "each archive")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, nargs="+", default=[284, 569])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.90, 0.95, 0.99])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--largest", type=int, help="only the archives that hold most")
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA.name} is not here: this benchmark needs the project's data for development")
    held = truth()
    sizes = Counter(archive for one in held.values() for archive in one)
    archives = sorted(archive for archive, _ in sizes.most_common(options.largest))
    print(f"{len(held):,} URIs, {len(archives)} archives, {UNSEEN:,} unseen URIs, {options.runs} runs")
    for probes in options.probes:
        results = {target: Result() for target in options.targets}
        for seed in range(options.runs):
            one_run(held, archives, probes, results, seed)
        show(probes, archives, results)


def show(probes: int, archives: list[str], results: dict[float, Result]) -> None:
    print(
        f"\n{probes} probes\n{'target':>6}  {'way':14}{'recall':>8}{'saved':>8}{'lowest':>8}   archive with the lowest"
    )
    for target, result in results.items():
        pairs = result.runs * UNSEEN * len(archives)
        for name, way in result.ways.items():
            recalls = {one: way.found[one] / result.there[one] for one in archives if result.there[one]}
            lowest = min(recalls, key=lambda one: recalls[one])
            recall = way.found.total() / result.there.total()
            saved = 1 - way.requests / pairs
            print(f"{target:6.0%}  {name:14}{recall:8.3f}{saved:8.1%}{recalls[lowest]:8.3f}   {lowest}")
    print(f"\n{'archive':36}{'finds':>6}" + "".join(f"{f'{target:.0%}: recall, asked':>42}" for target in results))
    first = next(iter(results.values()))
    for archive in sorted(archives, key=lambda one: -first.finds[one]):
        cells = []
        for result in results.values():
            for name in ("by URI", "with floor", "each archive"):
                way, there = result.ways[name], result.there[archive]
                recall = f"{way.found[archive] / there:.2f}" if there else "-"
                cells.append(f"{recall} {way.asked[archive] / (result.runs * UNSEEN):.0%}")
        pairs_of = [f"{one:>14}" for one in cells]
        print(f"{archive:36}{first.finds[archive] / first.runs:6.1f}" + "".join(pairs_of))
    print("For each target: by URI, the same with the floor, then each archive by its own threshold.")


def one_run(
    held: dict[bytes, set[str]], archives: list[str], probes: int, results: dict[float, Result], seed: int
) -> None:
    keys = sorted(held)
    random.Random(seed).shuffle(keys)
    unseen, drawn = keys[:UNSEEN], keys[UNSEEN : UNSEEN + probes]
    samples = {}
    for archive in archives:
        asked = [Probe(key, archive in held[key]) for key in drawn]
        samples[archive] = (sample_of(asked), asked)
    chances = {archive: [sample.chance(key) for key in unseen] for archive, (sample, _) in samples.items()}
    without = {archive: finds_of(sample, asked) for archive, (sample, asked) in samples.items()}
    ranks = {
        archive: [
            Rank(*rank_of(without[archive], chance, sample.chance_as_find(key)))
            for key, chance in zip(unseen, chances[archive], strict=True)
        ]
        for archive, (sample, _) in samples.items()
    }
    for target, result in results.items():
        result.runs += 1
        result.there.update({archive: sum(archive in held[key] for key in unseen) for archive in archives})
        result.finds.update({archive: len(finds) for archive, finds in without.items()})
        every = sorted(chance for finds in without.values() for chance in finds)
        together = every[max(0, math.floor((1 - target) * (len(every) + 1) + 1e-9) - 1)]
        own = {archive: threshold(sample, asked, target) for archive, (sample, asked) in samples.items()}
        result.promised.update(archive for archive, level in own.items() if level is not None)
        count(result.ways["one threshold"], held, unseen, chances, dict.fromkeys(archives, together))
        count(result.ways["each archive"], held, unseen, chances, {one: level or 0.0 for one, level in own.items()})
        by_uri(result.ways["by URI"], held, unseen, chances, target, {})
        by_uri(result.ways["with floor"], held, unseen, chances, target, ranks)


def count(
    way: Way,
    held: dict[bytes, set[str]],
    unseen: list[bytes],
    chances: dict[str, list[float]],
    levels: dict[str, float],
) -> None:
    for archive, level in levels.items():
        asked = [key for key, chance in zip(unseen, chances[archive], strict=True) if chance >= level]
        way.requests += len(asked)
        way.asked[archive] += len(asked)
        way.found[archive] += sum(archive in held[key] for key in asked)


def by_uri(
    way: Way,
    held: dict[bytes, set[str]],
    unseen: list[bytes],
    chances: dict[str, list[float]],
    target: float,
    ranks: dict[str, list[Rank]],
) -> None:
    """As `recollect route --target-recall`: of each URI the most probable archives until the share is expected. With
    `ranks` every archive keeps the floor."""
    candidates = [Candidate(archive) for archive in chances]
    for number, key in enumerate(unseen):
        said = {
            archive: Evidence(
                Answer.UNKNOWN,
                Source.SAMPLE,
                chance=mine[number],
                rank=ranks[archive][number] if ranks else None,
            )
            for archive, mine in chances.items()
        }
        floor, draws = (FLOOR, key.decode()) if ranks else (0.0, "")
        for decision in route(candidates, said, target_recall=target, floor=floor, uri_r=draws):
            if decision.ask:
                way.requests += 1
                way.asked[decision.archive] += 1
                way.found[decision.archive] += decision.archive in held[key]


if __name__ == "__main__":
    main()
