"""Compaction by budget at scale: time against compaction by weights and memory, each run in a process of its own.

    make bench-budget                       10,000,000 generated keys
    make bench-budget ARGS='MAP...'         other maps (plain files)

Wanted: at most 3 times the time of compaction by weights, and less than 2 GB of memory. Both are started once before,
so that the map is in the page cache; the best of three rounds counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import mapdata

KEYS, COPIES, ROUNDS = 10_000_000, 10, 3
CACHE = Path(__file__).resolve().parent.parent / ".bench"
RUN = """
import json, resource, sys, time
source, target, way = sys.argv[1:]
from recollect.profiles.compaction.budget import Budget, compact_by_budget
from recollect.profiles.compaction.weights import Weights, compact_by_weights
started = time.monotonic()
if way == "weights":
    done = compact_by_weights(source, target, Weights(2.0, 2.0))
else:
    done = compact_by_budget(source, target, Budget(max_cost=float(way)))
seconds = time.monotonic() - started
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"keys_in": done.keys_in, "keys_out": done.keys_out, "seconds": seconds, "memory": memory}))
"""


def main() -> int:
    maps = [Path(name) for name in sys.argv[1:]] or [generated()]
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        target = Path(folder) / "small.ukvs"
        tiny = Path(folder) / "tiny.ukvs"
        mapdata.write_map(tiny, mapdata.map_keys(1000))
        for way in ("weights", "0.01"):
            measure(tiny, target, way)
        return max(compare(path, target) for path in maps)


def compare(path: Path, target: Path) -> int:
    """One map; 1 if it misses what is wanted."""
    print(f"\n{path.name}: {path.stat().st_size / 1e6:,.0f} MB")
    print(f"{'way':<14}{'keys':>12}{'became':>12}{'seconds':>10}{'ratio':>8}{'memory':>10}", flush=True)
    worst = 0
    weights = 0.0
    for way in ("weights", "0.001", "0.01", "0.1"):
        runs = [measure(path, target, way) for _ in range(ROUNDS)]
        best = min(run["seconds"] for run in runs)
        memory = max(run["memory"] for run in runs)
        weights = weights or best
        name = "weights 2/2" if way == "weights" else f"budget {float(way):.1%}"
        print(
            f"{name:<14}{runs[0]['keys_in']:>12,}{runs[0]['keys_out']:>12,}{best:>10.2f}{best / weights:>8.2f}"
            f"{memory / 1e6:>7,.0f} MB",
            flush=True,
        )
        worst |= best > 3 * weights or memory > 2e9
    return worst


def measure(path: Path, target: Path, way: str) -> dict[str, float]:
    command = [sys.executable, "-c", RUN, str(path), str(target), way]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def generated() -> Path:
    """Ten archives of a million keys under domains of their own, side by side."""
    path = CACHE / f"map-{KEYS}.ukvs"
    if not path.exists():
        print(f"generating {KEYS:,} keys ...", flush=True)
        keys = mapdata.map_keys(KEYS // COPIES)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            for copy in range(COPIES):
                prefix = b"t%d," % copy
                out.write(b"".join(prefix + key + b" 1/1\n" for key in keys))
    return path


if __name__ == "__main__":
    sys.exit(main())
