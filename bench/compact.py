"""Compaction by weights against `mementomap compact`, side by side in one process, on the same map.

    make bench-compact                      1,500,000 generated keys; real ones of ../shared/data/eot too, when there
    make bench-compact ARGS='MAP...'        other maps (plain files)

Prints for each weight pair the number of keys of both programs, seconds and the ratio; then both commands, started
from the shell, so that the start of the interpreter is seen too. Wanted: 40 times as fast at least, 100
as a goal.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import zstandard
from mementomap.cli import compact as reference

import mapdata
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from shell import environment

KEYS, ROUNDS, WANTED = 1_500_000, 3, 40.0
PAIRS = ((4.0, 2.0), (1.0, 1.0), (0.25, 0.25))
HERE = Path(__file__).resolve().parent
REAL = HERE.parents[1] / "shared/data/eot/holdings.surt.zst"
CACHE = HERE.parent / ".bench"


def main() -> int:
    maps = [Path(name) for name in sys.argv[1:]]
    if not maps:
        maps = [generated(KEYS)]
        if REAL.exists():
            maps.append(real(KEYS))
        else:
            print("no ../shared/data/eot: only generated keys")
    worst = min(compare(path) for path in maps)
    print(f"\nslowest ratio {worst:.0f}x (wanted {WANTED:.0f}x)")
    return 0 if worst >= WANTED else 1


def generated(count: int) -> Path:
    path = CACHE / f"map-{count}.ukvs"
    if not path.exists():
        print(f"generating {count:,} keys ...", flush=True)
        mapdata.write_map(path, mapdata.map_keys(count))
    return path


def real(count: int) -> Path:
    """The first keys of the End of Term crawl, as a map in the reference's spelling."""
    path = CACHE / f"eot-{count}.ukvs"
    if not path.exists():
        text = zstandard.ZstdDecompressor().stream_reader(REAL.open("rb")).read()
        keys = sorted({line.split(b"?")[0].strip(b"/,") for line in text.splitlines()})[:count]
        mapdata.write_map(path, keys)
    return path


def compare(path: Path) -> float:
    size = path.stat().st_size
    keys = path.read_bytes().count(b"\n")
    print(f"\n{path.name}: {keys:,} keys, {size / 1e6:.0f} MB, {os.cpu_count()} cores")
    print("weights    reference keys      ours   reference s    ours s  1 thread s    ratio")
    worst = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        out, other = Path(folder) / "ours", Path(folder) / "reference"
        for host, path_weight in PAIRS:
            weights = Weights(host, path_weight)
            seconds, result = best(lambda weights=weights: compact_by_weights(path, out, weights))
            alone, _ = best(lambda weights=weights: compact_by_weights(path, out, weights, threads=1))
            with path.open("rb") as stream:
                started = time.perf_counter()
                counts = reference(stream, str(other), hcf=host, pcf=path_weight)
                slow = time.perf_counter() - started
            ratio = slow / seconds
            worst = min(worst, ratio)
            print(
                f"{host:4g} {path_weight:4g} {counts['outlines']:16,} {result.keys_out:10,} {slow:13.2f} "
                f"{seconds:9.3f} {alone:11.3f} {ratio:7.0f}x"
            )
        commands(path, out, other)
    return worst


def best(run: Callable[[], object]) -> tuple[float, object]:
    """The quickest of a few rounds; a busy machine makes the others slower, never quicker."""
    result, quickest = None, float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        result = run()
        quickest = min(quickest, time.perf_counter() - started)
    return quickest, result


def commands(path: Path, out: Path, other: Path) -> None:
    programs = Path(sys.executable).parent
    ours = [str(programs / "recollect"), "compact", str(path), "-o", str(out), "-q"]
    theirs = [str(programs / "mementomap"), "compact", "--hcf", "4", "--pcf", "2", str(path), str(other)]
    quick, _ = best(lambda: subprocess.run(ours, check=True, env=environment()))
    started = time.perf_counter()
    subprocess.run(theirs, check=True, env=environment(), stdout=subprocess.DEVNULL)
    slow = time.perf_counter() - started
    print(f"commands, start of the interpreter included: {slow:.2f} s and {quick:.2f} s, {slow / quick:.0f}x")


if __name__ == "__main__":
    sys.exit(main())
