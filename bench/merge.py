"""Merging two maps: `recollect merge` against the limit, `LC_ALL=C sort -m`, which merges lines and adds nothing up.

    make bench-merge                        two maps of 60% each of 1,000,000 keys
    make bench-merge ARGS='MAP MAP...'      other maps (plain files without wildcards)

Both run from the shell, in turns; the best of three rounds counts.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mapdata

KEYS, ROUNDS = 1_000_000, 3
BIN = Path(sys.executable).parent


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        folder = Path(name)
        maps = [Path(name) for name in sys.argv[1:]] or generated(folder)
        output = str(folder / "merged.ukvs")
        ours = [str(BIN / "recollect"), "merge", *map(str, maps), "-o", output, "--quiet"]
        limit = ["sort", "-m", *map(str, maps), "-o", str(folder / "sorted.txt")]
        run(ours)  # a first run, not measured
        seconds = {"recollect merge": [], "sort -m": []}
        for _ in range(ROUNDS):
            seconds["recollect merge"].append(run(ours))
            seconds["sort -m"].append(run(limit))
        lines = sum(path.read_bytes().count(b"\n") for path in maps)
        print(f"{len(maps)} maps, {lines:,} lines, {sum(path.stat().st_size for path in maps) / 1e6:.0f} MB")
        for name, taken in seconds.items():
            print(f"{name:<18}{min(taken):8.2f} s{lines / min(taken):14,.0f} lines/s")
        ratio = min(seconds["recollect merge"]) / min(seconds["sort -m"])
        print(f"{ratio:.1f} times the time of sort, the start included")


def generated(folder: Path) -> list[Path]:
    """Two archives that share a third of their keys."""
    keys = mapdata.map_keys(KEYS)
    chance = random.Random(1)
    paths = [folder / "one.ukvs", folder / "two.ukvs"]
    for path in paths:
        mapdata.write_map(path, [key for key in keys if chance.random() < 0.6])
    return paths


def run(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
