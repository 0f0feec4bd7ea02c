"""Do counts tell which archives to ask? Chances of wildcards, learned on half of the domains, tried on the other half.

    make bench-calibration                                       generated archives
    make bench-calibration ARGS="--timemaps mementos.cdxj.zst"   real TimeMaps, as CDXJ with a field `archive`

Each archive's holdings become a map, compacted by weights; every URI is looked up in every map. Of those that a
wildcard decides about, the share of requests that finds 90, 95 or 99% of what is held is compared: asked in the order
of today (captures per URI-R times a constant), in the order of the shipped prior, and of a model learned on the other
domains.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import zlib
from collections import defaultdict
from pathlib import Path

from recollect.formats.containers import open_input, whole_lines
from recollect.maps.calibration import PRIOR, Case, Model, calibration_of, case_of, fit
from recollect.maps.lookup import MementoMap
from recollect.model import Answer
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.uris import policy_key, uri_key

Holdings = dict[str, dict[bytes, dict[bytes, int]]]
"""By archive and key: captures by SURT."""


def of_timemaps(path: str) -> Holdings:
    found: Holdings = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    with open_input(path) as stream:
        for piece in whole_lines(stream):
            for line in piece.splitlines():
                surt, _, block = line.split(b" ", 2)
                found[json.loads(block)["archive"]][uri_key(surt)][surt] += 1
    return found


def generated(seed: int = 7, archives: int = 8) -> Holdings:
    """Archives of different depth and breadth over the same sites: deep ones hold most pages of their sites."""
    chance = random.Random(seed)
    sites = [b"%b,s%d" % (chance.choice([b"com", b"org", b"pt", b"uk"]), number) for number in range(400)]
    pages = {
        site: [
            b"%b)/%b" % (site, b"d%d/p%d" % (chance.randrange(4), n) if n else b"")
            for n in range(1 + int(chance.paretovariate(0.7)) % 80)
        ]
        for site in sites
    }
    found: Holdings = {}
    for number in range(archives):
        breadth, depth = chance.uniform(0.05, 0.9), chance.uniform(0.1, 1.0)
        mine: dict[bytes, dict[bytes, int]] = {}
        for site in sites:
            if chance.random() < breadth:
                share = depth * chance.random()
                for page in pages[site]:
                    if page.endswith(b")/") or chance.random() < share:
                        mine[page] = {page: 1 + int(chance.paretovariate(1.1)) % 50}
        found[f"archive-{number}"] = mine
    return found


def cases_of(holdings: Holdings, folder: Path, weight: float) -> list[tuple[Case, bool, bytes, float]]:
    """Each lookup that a wildcard decides about: its case, the truth, its domain, and the score of today."""
    everything = sorted({key for keys in holdings.values() for key in keys})
    cases = []
    for archive, keys in holdings.items():
        path = folder / f"{archive}.ukvs"
        lines = [b"%b %d/%d\n" % (key, sum(surts.values()), len(surts)) for key, surts in sorted(keys.items())]
        path.write_bytes(b'!fields {keys: ["surt"], values: ["frequency"]}\n' + b"".join(lines))
        compact_by_weights(path, path, Weights(weight, weight, rollup_tlds=True))
        with MementoMap.open(path) as opened:
            for key, found in zip(
                everything, opened.lookup_many([key.decode("ascii") for key in everything]), strict=True
            ):
                if found.answer != Answer.YES or found.key is None or found.frequency is None:
                    continue
                if found.key.endswith(b"*"):
                    m, r = found.frequency.uri_m.value or 0, found.frequency.uri_r.value or 1
                    cases.append(
                        (case_of(found.key, found.frequency, key), key in keys, policy_key(key, "DDom"), m / r)
                    )
    return cases


def requests_for(scores: list[float], held: list[bool], recall: float) -> float:
    """The share of requests, by falling score, that finds this share of what is held."""
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    need, found = recall * sum(held), 0
    for number, index in enumerate(order, 1):
        found += held[index]
        if found >= need:
            return number / len(order)
    return 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timemaps", help="CDXJ of real TimeMaps with a field `archive`")
    parser.add_argument("--prior", action="store_true", help="print the weights of a model fitted to everything")
    options = parser.parse_args()
    holdings = of_timemaps(options.timemaps) if options.timemaps else generated()
    source = "real TimeMaps" if options.timemaps else "generated archives"
    everything: list[tuple[Case, bool, bytes, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for weight in (0.01, 0.1, 0.5):
            everything += cases_of(holdings, Path(folder), weight)
    learned = [row for row in everything if zlib.crc32(row[2]) % 2]
    tried = [row for row in everything if not zlib.crc32(row[2]) % 2]
    flat = Model((0.0,) * 7 + (1.0, 0.0), "nothing")
    model = fit([row[0] for row in learned], [row[1] for row in learned], source, base=flat)
    held = [row[1] for row in tried]
    print(f"{source}: {len(holdings)} archives, {len(everything):,} lookups decided by wildcards, {len(tried):,} tried")
    print(f"{'order':<24}{'Brier':>8}{'90%':>8}{'95%':>8}{'99%':>8}   of requests find that share of all held")
    today = [row[3] for row in tried]
    for name, scores, chances in (
        ("today (M/R)", today, [0.5] * len(tried)),
        ("shipped prior", [PRIOR.chance(row[0]) for row in tried], [PRIOR.chance(row[0]) for row in tried]),
        ("learned", [model.chance(row[0]) for row in tried], [model.chance(row[0]) for row in tried]),
    ):
        measured = calibration_of(chances, held, len(tried), name)
        shares = [requests_for(scores, held, recall) for recall in (0.9, 0.95, 0.99)]
        print(f"{name:<24}{measured.brier if measured else 0:>8.4f}" + "".join(f"{share:>8.1%}" for share in shares))
    found = calibration_of([model.chance(row[0]) for row in tried], held, len(tried), "learned")
    for one in found.bins if found else ():
        print(
            f"  chance {one.low:.1f} to {one.high:.1f}: {one.lookups:>9,} lookups, predicted {one.predicted:.3f}, "
            f"held {one.observed:.3f}"
        )
    if options.prior:
        final = fit([row[0] for row in everything], [row[1] for row in everything], source, base=flat)
        print("PRIOR weights:", tuple(round(weight, 3) for weight in final.weights), len(everything))


if __name__ == "__main__":
    main()
