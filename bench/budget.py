"""Compaction by budget at scale: time against compaction by weights and memory, each run in a process of its own.

    make bench-budget                       10,000,000 generated keys
    make bench-budget ARGS='MAP...'         other maps (plain files)
    make bench-budget ARGS=--sets           with hashed sets and without, into 1 MB and 3 MB, with a log and without

Wanted: at most 3 times the time of compaction by weights, and less than 2 GB of memory; with sets at most 3 times the
CPU time of the budget without. Both are started once before, so that the map is in the page cache; the best of three
rounds counts (of sets, of one).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import mapdata

KEYS, COPIES, ROUNDS = 10_000_000, 10, 3
LOOKUPS = 300_000
CACHE = Path(__file__).resolve().parent.parent / ".bench"
RUN = """
import json, resource, sys, time
source, target, way, log = sys.argv[1:]
from recollect.formats.logs import read_lookups
from recollect.profiles.compaction.budget import Budget, compact_by_budget
from recollect.profiles.compaction.weights import Weights, compact_by_weights
started = time.monotonic()
if way == "weights":
    done = compact_by_weights(source, target, Weights(2.0, 2.0))
elif way.startswith(("clear ", "sets ")):
    budget = Budget(max_bytes=int(way.split()[1]), sets=way.startswith("sets "))
    done = compact_by_budget(source, target, budget, lookups=read_lookups(log) if log else None)
else:
    done = compact_by_budget(source, target, Budget(max_cost=float(way)))
seconds, cpu = time.monotonic() - started, time.process_time()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
keys = {"keys_in": done.keys_in, "keys_out": done.keys_out}
print(json.dumps({**keys, "seconds": seconds, "cpu": cpu, "memory": memory}))
"""


def main() -> int:
    names = [name for name in sys.argv[1:] if name != "--sets"]
    maps = [Path(name) for name in names] or [generated()]
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        target = Path(folder) / "small.ukvs"
        tiny = Path(folder) / "tiny.ukvs"
        mapdata.write_map(tiny, mapdata.map_keys(1000))
        for way in ("weights", "0.01"):
            measure(tiny, target, way)
        if "--sets" in sys.argv:
            return max(compare_sets(path, Path(folder)) for path in maps)
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


def compare_sets(path: Path, folder: Path) -> int:
    """One map into two sizes, in clear and with sets; 1 if sets miss what is wanted."""
    log, target, worst = folder / "log.txt", folder / "small.ukvs.zst", 0
    write_log(path, log)
    print(f"\n{path.name}: {path.stat().st_size / 1e6:,.0f} MB; a log of {LOOKUPS:,} lookups")
    print(f"{'way':<26}{'keys':>12}{'became':>12}{'CPU s':>8}{'ratio':>8}{'memory':>10}", flush=True)
    for size in (1_000_000, 3_000_000):
        for lookups in ("", str(log)):
            clear = 0.0
            for way in ("clear", "sets"):
                run = measure(path, target, f"{way} {size}", lookups)
                clear = clear or run["cpu"]
                name = f"{way}, {size // 1_000_000} MB, {'log' if lookups else 'prior'}"
                print(
                    f"{name:<26}{run['keys_in']:>12,}{run['keys_out']:>12,}{run['cpu']:>8.1f}"
                    f"{run['cpu'] / clear:>8.2f}{run['memory'] / 1e6:>7,.0f} MB",
                    flush=True,
                )
                worst |= run["cpu"] > 3 * clear or run["memory"] > 2e9
    return worst


def write_log(path: Path, log: Path) -> None:
    """Lookups spread over a map: every second one held, the others beside or below what is held."""
    with path.open("rb") as lines:
        keys = [line.split(b" ", 1)[0] for line in lines if not line.startswith(b"!")]
    step = max(1, len(keys) // LOOKUPS)
    asked = (
        key if number % 2 else key.rsplit(b"/", 1)[0] + b"/absent%d" % (number % 997)
        for number, key in enumerate(keys[::step])
    )
    log.write_bytes(b"\n".join(asked) + b"\n")


def measure(path: Path, target: Path, way: str, log: str = "") -> dict[str, float]:
    command = [sys.executable, "-c", RUN, str(path), str(target), way, log]
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
