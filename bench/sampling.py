"""Routing by samples, judged on URIs that are not in the sample: recall and requests saved, pooled and per archive.

Real TimeMaps of 19 archives (../shared/data/timemaps) are the truth. One threshold for all archives together is the
trial this is measured against; a threshold for each archive is what a map of a sample promises.

    make bench-sampling ARGS="--probes 284 --runs 5"
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

from recollect.errors import BadURI
from recollect.formats.containers import open_input
from recollect.profiles.maps.samples import Probe, sample_of, threshold
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, nargs="+", default=[284, 569])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.90, 0.95, 0.99])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA.name} is not here: this benchmark needs the project's data for development")
    held = truth()
    archives = sorted({archive for one in held.values() for archive in one})
    print(f"{len(held):,} URIs, {len(archives)} archives, {UNSEEN:,} unseen URIs, mean of {options.runs} runs\n")
    print("probes  target   pooled: recall  saved   per archive: lowest recall  mean  saved  archives one may skip")
    for probes in options.probes:
        for target in options.targets:
            runs = [one_run(held, archives, probes, target, seed) for seed in range(options.runs)]
            pooled = [sum(run[i] for run in runs) / len(runs) for i in (0, 1)]
            found, there = Counter[str](), Counter[str]()
            for run in runs:
                found.update(run[2])
                there.update(run[3])
            recalls = [found[archive] / there[archive] for archive in archives if there[archive]]
            saved = sum(run[4] for run in runs) / len(runs)
            skipped = sum(run[5] for run in runs) / len(runs)
            mean = sum(recalls) / len(recalls)
            print(
                f"{probes:6}  {target:6.0%}   {pooled[0]:14.3f}  {pooled[1]:5.1%}   "
                f"{min(recalls):26.3f} {mean:5.3f}  {saved:5.1%}  {skipped:21.1f}"
            )


Run = tuple[float, float, Counter[str], Counter[str], float, int]


def one_run(held: dict[bytes, set[str]], archives: list[str], probes: int, target: float, seed: int) -> Run:
    keys = sorted(held)
    random.Random(seed).shuffle(keys)
    unseen, drawn = keys[:UNSEEN], keys[UNSEEN : UNSEEN + probes]
    chances: dict[str, list[float]] = {}
    levels: dict[str, float | None] = {}
    finds: list[float] = []
    for archive in archives:
        asked = [Probe(key, archive in held[key]) for key in drawn]
        sample = sample_of(asked)
        levels[archive] = threshold(sample, asked, target)
        finds += [sample.chance_without(probe) for probe in asked if probe.held]
        chances[archive] = [sample.chance(key) for key in unseen]
    together = sorted(finds)[int((1 - target) * len(finds))]
    there = Counter({archive: sum(archive in held[key] for key in unseen) for archive in archives})
    pairs = UNSEEN * len(archives)

    def found(level: dict[str, float]) -> tuple[Counter[str], int]:
        hits, requests = Counter[str](), 0
        for archive in archives:
            asked = [key for key, chance in zip(unseen, chances[archive], strict=True) if chance >= level[archive]]
            requests += len(asked)
            hits[archive] = sum(archive in held[key] for key in asked)
        return hits, requests

    pooled, pooled_requests = found(dict.fromkeys(archives, together))
    own = {archive: level if (level := levels[archive]) is not None else 0.0 for archive in archives}
    each, requests = found(own)
    skippable = sum(level is not None for level in levels.values())
    recall = pooled.total() / there.total()
    return recall, 1 - pooled_requests / pairs, each, there, 1 - requests / pairs, skippable


if __name__ == "__main__":
    main()
