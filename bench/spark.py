"""`make bench-spark`: Spark with two local cores against the embedded engine, on one index, in one run.

    make bench-spark                          5 million lines
    make bench-spark ARGS='--lines 500000'    a quick look
    make bench-spark ARGS='--unsorted'        the lines shuffled, so that both engines must sort

Profiles, describes (`stats`) and compacts within 1% of keys, and compares the results. Prints how many captures a core
reads in a second (without the fixed cost of a job, measured with a tenth of the index), the bytes exchanged for each
capture, the size of the map and its branches: the figures of docs/scale.md.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Benchmarks stand beside this one that are called like modules of Python, which Spark imports.
sys.path = [path for path in sys.path if path and Path(path).resolve() != Path(__file__).resolve().parent]
HERE = Path(__file__).resolve().parent
GENERATOR = HERE.parents[1] / "shared" / "tools" / "gen_index.py"
UPDATED = "2024-01-01T00:00:00Z"


@dataclass(frozen=True)
class Run:
    """What a run gave, its seconds on the clock and those of all processors."""

    result: Any
    seconds: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--unsorted", action="store_true", help="shuffle the index first, so that both engines sort")
    parser.add_argument("--index", help="a CDXJ index instead of a made one")
    parser.add_argument("--dir", type=Path, default=HERE.parent / ".bench", help="where the index is made and kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        index = Path(options.index) if options.index else made_index(options.dir, options.lines)
        same = run(Path(folder), shuffled(index, Path(folder)) if options.unsorted else index, options.master)
    raise SystemExit(0 if same else 1)


def run(folder: Path, index: Path, master: str) -> bool:
    from recollect.datetimes import parse_any
    from recollect.engines.spark.budget import compact_by_budget as budget_on_spark
    from recollect.engines.spark.profile import profile as profile_on_spark
    from recollect.engines.spark.session import Cluster, session
    from recollect.engines.spark.stats import stats as stats_on_spark
    from recollect.profiles.compaction.budget import Budget, compact_by_budget, opened
    from recollect.profiles.indexes.profile import profile
    from recollect.profiles.statistics.stats import stats

    options = {"updated_at": parse_any(UPDATED)}
    tenth = head_of(index, folder / "tenth.cdxj", index.stat().st_size // 10)
    few = head_of(index, folder / "few.cdxj", 300_000)
    maps = {name: folder / f"{name}.ukvs" for name in ("here", "there", "small-here", "small-there", "tenth")}
    profile([few], maps["tenth"])  # a first run, not measured
    size = index.stat().st_size
    print(f"{index.name}: {size / 1e6:,.0f} MB; {master} against the embedded engine, {os.cpu_count()} cores")
    here = timed(lambda: profile([index], maps["here"], **options))
    described = timed(lambda: stats([index]))
    compacted = timed(lambda: compact_by_budget(maps["here"], maps["small-here"], Budget(max_cost=0.01)))
    started = time.perf_counter()
    with session(Cluster(master)):
        print(f"Spark starts in {time.perf_counter() - started:.1f} s")
        # Workers import and load compiled code once; a cluster does so once per worker and day.
        for _ in range(2):
            profile_on_spark([tenth], maps["tenth"])
        small = timed(lambda: profile_on_spark([tenth], maps["tenth"], **options))
        there = timed(lambda: profile_on_spark([index], maps["there"], **options))
        described_there = timed(lambda: stats_on_spark([index]))
        compacted_there = timed(lambda: budget_on_spark(maps["there"], maps["small-there"], Budget(max_cost=0.01)))
    captures = here.result.totals.captures
    print(
        f"\n{'':10}{'embedded s':>12}{'captures/s':>13}{'Spark s':>10}{'captures/s':>13}{'times':>8}{'Spark CPU s':>13}"
    )
    for name, one, other in (
        ("profile", here, there), ("stats", described, described_there), ("compact", compacted, compacted_there),
    ):  # fmt: skip
        print(
            f"{name:10}{one.seconds:12.1f}{captures / one.seconds:13,.0f}{other.seconds:10.1f}"
            f"{captures / other.seconds:13,.0f}{other.seconds / one.seconds:8.1f}{other.cpu:13.1f}"
        )
    more, longer = captures - small.result.totals.captures, there.cpu - small.cpu
    print(f"\na core profiles  {captures / there.cpu:,.0f} captures/s, Java and Python together")
    print(
        f"in the long run  {more / longer:,.0f} captures/s (a tenth of the index takes {small.cpu:.1f} s of CPU time)"
    )
    spilled = there.result.spilled
    print(f"exchanged        {spilled / 1e6:,.0f} MB, {spilled / captures:.1f} bytes a capture")
    size, totals = maps["there"].stat().st_size, here.result.totals
    print(
        f"map              {size / 1e6:,.1f} MB, {totals.keys:,} keys of {totals.uri_rs:,} URI-Rs: "
        f"{size / captures:.1f} bytes and {totals.keys / captures:.3f} keys a capture"
    )
    with opened(maps["there"]) as (_, branches):
        print(f"branches         {len(branches):,}, {len(branches) / captures:.3f} a capture")
    small_size = maps["small-there"].stat().st_size
    done = compacted_there.result
    each = small_size / done.keys_out
    print(f"compacted to 1%  {done.keys_out:,} keys, {small_size / 1e6:.1f} MB: {each:.1f} bytes a key")
    same = [filecmp.cmp(maps[a], maps[b], shallow=False) for a, b in (("here", "there"), ("small-here", "small-there"))]
    same.append(json.dumps(described.result.as_dict()) == json.dumps(described_there.result.as_dict()))
    print("the same         " + ", ".join(f"{name} {'yes' if one else 'NO'}" for name, one in zip(
        ("map", "compacted map", "statistics"), same, strict=True)))  # fmt: skip
    return all(same)


def timed(work: Callable[[], Any]) -> Run:
    started, used = time.perf_counter(), cpu_seconds()
    result = work()
    return Run(result, time.perf_counter() - started, cpu_seconds() - used)


def cpu_seconds() -> float:
    """CPU time of this process and all its descendants that are alive: Java and the Python workers."""
    spent: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = int(entry.parent.name), entry.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        children.setdefault(int(rest[1]), []).append(number)
        spent[number] = sum(map(int, rest[11:15])) / os.sysconf("SC_CLK_TCK")
    waiting, total = [os.getpid()], 0.0
    while waiting:
        number = waiting.pop()
        total += spent.get(number, 0.0)
        waiting += children.get(number, [])
    return total


def made_index(folder: Path, lines: int) -> Path:
    """A synthetic index, sorted; the one that `make bench-profile` makes and keeps."""
    index = folder / f"index-{lines}.cdxj"
    if index.is_file():
        return index
    if not GENERATOR.is_file():
        raise SystemExit(f"no {GENERATOR}: give an index of your own with ARGS='--index FILE.cdxj'")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        subprocess.run([sys.executable, str(GENERATOR), place, str(lines)], check=True, stdout=subprocess.DEVNULL)
        (Path(place) / "index.cdxj").rename(index)
    return index


def shuffled(index: Path, folder: Path) -> Path:
    lines = index.read_bytes().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    target = folder / f"shuffled-{index.name}"
    target.write_bytes(b"".join(lines))
    return target


def head_of(index: Path, target: Path, size: int) -> Path:
    """The first lines, about `size` bytes."""
    with index.open("rb") as lines:
        target.write_bytes(lines.read(size) + lines.readline())
    return target


if __name__ == "__main__":
    main()
