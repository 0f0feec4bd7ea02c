"""`make bench-spark`: profiling on Spark with two local cores against the embedded engine, on one index, in one run.

    make bench-spark                          5 million lines
    make bench-spark ARGS='--lines 500000'    a quick look

Says how many captures a core reads in a second, how many bytes go through the exchange for each capture, and how large
the map is: the figures of docs/scale.md. Both maps are compared byte for byte.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Benchmarks stand beside this one that are called like modules of Python, which Spark imports.
sys.path = [path for path in sys.path if path and Path(path).resolve() != Path(__file__).resolve().parent]
GENERATOR = Path(__file__).resolve().parents[2] / "shared" / "tools" / "gen_index.py"
UPDATED = "2024-01-01T00:00:00Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--unsorted", action="store_true", help="shuffle the index first, so that both engines sort")
    parser.add_argument("--index", help="a CDXJ index instead of a made one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        run(Path(folder), options)


def run(folder: Path, options: argparse.Namespace) -> None:
    index = Path(options.index) if options.index else made_index(folder, options.lines)
    if options.unsorted:
        lines = index.read_bytes().splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        index = folder / "shuffled.cdxj"
        index.write_bytes(b"".join(lines))
    print(f"{index.name}: {index.stat().st_size / 1e6:,.0f} MB")

    from recollect.datetimes import parse_any
    from recollect.profiles.indexes.profile import profile
    from recollect.spark.profile import profile as on_spark
    from recollect.spark.session import Cluster, session

    updated = parse_any(UPDATED)
    started = time.perf_counter()
    here = profile([index], folder / "embedded.ukvs", updated_at=updated)
    embedded = time.perf_counter() - started
    started = time.perf_counter()
    with session(Cluster(options.master)):
        start = time.perf_counter() - started
        # Workers import and load compiled code once; a cluster does so once per worker and day.
        on_spark([index_head(index, folder)], folder / "warm.ukvs")
        started, used = time.perf_counter(), cpu_seconds()
        there = on_spark([index], folder / "spark.ukvs", updated_at=updated)
        spark, used = time.perf_counter() - started, cpu_seconds() - used
    same = filecmp.cmp(folder / "embedded.ukvs", folder / "spark.ukvs", shallow=False)
    captures = here.totals.captures
    size = (folder / "spark.ukvs").stat().st_size
    print(f"embedded      {embedded:8.1f} s   {captures / embedded:12,.0f} captures/s")
    print(f"spark         {spark:8.1f} s   {captures / spark:12,.0f} captures/s, {options.master}")
    print(f"its start     {start:8.1f} s")
    print(f"spark takes   {spark / embedded:8.1f} times as long on the same cores")
    print(f"its CPU time  {used:8.1f} s   {captures / used:12,.0f} captures/s of a core, Java and Python together")
    print(f"exchanged     {there.spilled / 1e6:,.0f} MB, {there.spilled / captures:.1f} bytes per capture")
    print(f"map           {size / 1e6:,.1f} MB, {here.totals.keys:,} keys of {here.totals.uri_rs:,} URI-Rs")
    print(f"same bytes    {'yes' if same else 'NO'}")
    if not same:
        raise SystemExit(1)


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
        spent[number] = (int(rest[11]) + int(rest[12])) / os.sysconf("SC_CLK_TCK")
    waiting, total = [os.getpid()], 0.0
    while waiting:
        number = waiting.pop()
        total += spent.get(number, 0.0)
        waiting += children.get(number, [])
    return total


def made_index(folder: Path, lines: int) -> Path:
    """A synthetic index, sorted."""
    if not GENERATOR.is_file():
        raise SystemExit(f"no {GENERATOR}: give an index of your own with ARGS='--index FILE.cdxj'")
    subprocess.run([sys.executable, str(GENERATOR), str(folder), str(lines)], check=True, stdout=subprocess.DEVNULL)
    return folder / "index.cdxj"


def index_head(index: Path, folder: Path) -> Path:
    """The first lines, for warming up."""
    target = folder / "head.cdxj"
    with index.open("rb") as lines:
        target.write_bytes(b"".join(next(lines) for _ in range(1000)))
    return target


if __name__ == "__main__":
    main()
