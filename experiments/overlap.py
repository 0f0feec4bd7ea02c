"""How much of what one archive holds do the others hold, too? The question of the dissertation's Table 10, from maps.

    make experiment-overlap ARGS='first.ukvs second.ukvs third.ukvs'
    make experiment-overlap                                 three archives of a generated website

Of each map a sample of its whole keys is drawn (reservoir, seeded) and looked up in every other map. A wildcard may
speak for keys that the archive does not hold: such a yes is counted as `rolled up`, apart from an exact one, and an
answer that is unknown is not a no.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from recollect import open_map, profile
from recollect.cli.console import emit_table
from recollect.formats.ukvs import open_map as open_records

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def sample_keys(path: str, most: int, seed: int) -> list[str]:
    """Keys of a map without wildcards, each with the same chance."""
    rng, kept = random.Random(seed), []
    with open_records(path) as records:
        whole = (record.key for record in records if b"*" not in record.key and b")" in record.key)
        for number, key in enumerate(whole):
            if number < most:
                kept.append(key.decode("utf-8", "surrogateescape"))
            elif (place := rng.randrange(number + 1)) < most:
                kept[place] = key.decode("utf-8", "surrogateescape")
    return kept


def overlap_of(keys: Sequence[str], path: str) -> Counter[str]:
    """How many keys a map holds exactly, by a wildcard, not, and unknown."""
    counts: Counter[str] = Counter()
    opened = open_map(path)
    try:
        for found in opened.lookup_many(keys):
            rolled = found.key is not None and b"*" in found.key
            counts["rolled up" if found.answer == "yes" and rolled else found.answer] += 1
    finally:
        opened.close()
    return counts


def made_up(folder: Path) -> list[str]:
    """Maps of three archives that hold parts of one website."""
    from docs_world import index_of
    from websites import website

    site = website(seed=5, pages=60)
    paths = []
    for number, shots in enumerate(site.scattered(3, seed=5, moments=["20100115120000", site.end]), 1):
        index = folder / f"archive{number}.cdxj"
        index.write_text(index_of(shots))
        paths.append(str(index.with_suffix(".ukvs")))
        profile(index, paths[-1])
    return paths


def _cell(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:.1%}" if isinstance(value, float) else str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("maps", nargs="*")
    parser.add_argument("--sample", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if len(given.maps) == 1:
        parser.error("two maps or more")
    with tempfile.TemporaryDirectory() as folder:
        maps = given.maps or made_up(Path(folder))
        rows = []
        for path in maps:
            keys = sample_keys(path, given.sample, given.seed)
            for other in maps:
                if other != path:
                    counts = overlap_of(keys, other)
                    known = len(keys) - counts["unknown"]
                    held = counts["yes"] + counts["rolled up"]
                    rows.append(
                        {"of": Path(path).stem, "in": Path(other).stem, "keys": len(keys), "exact": counts["yes"]}
                        | {"rolled up": counts["rolled up"], "not held": counts["no"], "unknown": counts["unknown"]}
                        | {"overlap": held / known if known else None}
                    )
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    shown = [[_cell(value) for value in row.values()] for row in rows]
    emit_table(list(rows[0]), shown, title="Overlap of archives (Table 10's question)", right=range(2, 8))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
