"""Lookup against `mementomap batchlookup` and the time of a single lookup.

    make bench-lookup                   100,000 SURTs in a map of 1,000,000 keys; single lookups in one of 10,000,000
    make bench-lookup ARGS=--quick      without the large map

Both programs look up the same SURTs in the same map in one process; the reference only a part of them, as it is slow,
and starting after the first line, which it cannot see. Then both commands, started from the shell. Wanted: batches
100 times as fast, and under 20 microseconds for a single lookup.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from mementomap.cli import lookup as reference

import mapdata
from recollect.maps.bulk import PIECE, bulk_lookup
from recollect.maps.lookup import MementoMap
from shell import environment

KEYS, LOOKUPS, LARGE, ROUNDS = 1_000_000, 100_000, 10_000_000, 5
REFERENCE_LOOKUPS = 10_000
WANTED, WANTED_MICROSECONDS = 100.0, 20.0
CACHE = Path(__file__).resolve().parent.parent / ".bench"


def main() -> int:
    path = CACHE / f"map-{KEYS}.ukvs"
    if not path.exists():
        print(f"generating {KEYS:,} keys ...", flush=True)
        mapdata.write_map(path, mapdata.map_keys(KEYS))
    keys = [line.split()[0] for line in path.read_bytes().splitlines()]
    surts = mapdata.lookups(keys, LOOKUPS)
    ratio = batches(path, surts)
    commands(path, surts)
    micro = None if "--quick" in sys.argv else single(path, keys)
    return 0 if ratio >= WANTED and (micro is None or micro < WANTED_MICROSECONDS) else 1


def batches(path: Path, surts: list[bytes]) -> float:
    opened = MementoMap.open(path)
    text = b"\n".join(surts) + b"\n"
    pieces = [text]
    quick, found = float("inf"), 0
    list(bulk_lookup(opened, [text[:10_000].rpartition(b"\n")[0]]))  # compiles, or loads what was compiled before
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = sum(answers.yes for answers in bulk_lookup(opened, split(pieces)))
        quick = min(quick, time.perf_counter() - started)
    strings = [surt.decode() for surt in surts]
    started = time.perf_counter()
    objects = sum(one.answer == "yes" for one in opened.lookup_many(strings))
    slower = time.perf_counter() - started
    assert objects == found
    with path.open("rb") as stream:
        started = time.perf_counter()
        theirs = sum(bool(reference(stream, surt)) for surt in strings[:REFERENCE_LOOKUPS])
        slow = (time.perf_counter() - started) * LOOKUPS / REFERENCE_LOOKUPS
    print(f"{LOOKUPS:,} SURTs in random order, {KEYS:,} keys; {found:,} held (the reference finds {theirs:,} of 10%)")
    print(f"  mementomap batchlookup    {slow:8.2f} s  {LOOKUPS / slow:12,.0f}/s (measured on {REFERENCE_LOOKUPS:,})")
    print(f"  recollect, text to text   {quick:8.3f} s  {LOOKUPS / quick:12,.0f}/s  {slow / quick:6.0f}x")
    print(f"  recollect, lookup_many    {slower:8.3f} s  {LOOKUPS / slower:12,.0f}/s  {slow / slower:6.0f}x")
    return slow / quick


def split(pieces: list[bytes]) -> list[bytes]:
    """As the command reads it: pieces of whole lines."""
    out = []
    for text in pieces:
        start = 0
        while start < len(text):
            end = text.find(b"\n", min(start + PIECE, len(text)) - 1) + 1 or len(text)
            out.append(text[start:end])
            start = end
    return out


def commands(path: Path, surts: list[bytes]) -> None:
    programs = Path(sys.executable).parent
    queries = CACHE / "lookups.txt"
    queries.write_bytes(b"\n".join(surts) + b"\n")
    part = CACHE / "lookups-part.txt"
    part.write_bytes(b"\n".join(surts[:REFERENCE_LOOKUPS]) + b"\n")
    ours = [str(programs / "recollect"), "lookup", str(path), "--from", str(queries), "-q"]
    theirs = [str(programs / "mementomap"), "batchlookup", str(path), str(part)]
    seconds = []
    for command in (ours, theirs):
        started = time.perf_counter()
        subprocess.run(command, check=True, env=environment(), stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - started)
    slow = seconds[1] * LOOKUPS / REFERENCE_LOOKUPS
    ratio = slow / seconds[0]
    print(f"  commands, start of the interpreter included: {slow:.2f} s and {seconds[0]:.2f} s, {ratio:.0f}x")


def single(path: Path, keys: list[bytes]) -> float:
    """Median of single lookups of URIs in a map of ten times as many keys: ten top-level domains of the same hosts."""
    large = CACHE / f"map-{LARGE}.ukvs"
    if not large.exists():
        print(f"generating {LARGE:,} keys ...", flush=True)
        lines = path.read_bytes().splitlines(keepends=True)
        with large.open("wb") as out:
            for letter in b"abcdefghij":
                prefix = bytes([letter])
                out.writelines(prefix + line for line in lines)
    opened = MementoMap.open(large)
    surts = mapdata.lookups([b"abcdefghij"[i % 10 : i % 10 + 1] + key for i, key in enumerate(keys)], 20_000, seed=3)
    uris = []
    for surt in surts:
        host, _, rest = surt.decode().partition(")")
        uris.append(f"http://{'.'.join(reversed(host.split(',')))}{rest}")
    times, held = [], 0
    for uri in uris:
        started = time.perf_counter_ns()
        answer = opened.lookup(uri).answer
        times.append(time.perf_counter_ns() - started)
        held += answer == "yes"
    micro = median(times[1000:]) / 1000
    slowest = sorted(times[1000:])[int(0.99 * len(times[1000:]))] / 1000
    size = large.stat().st_size / 1e6
    print(f"single lookups of URIs, {LARGE:,} keys ({size:.0f} MB), {held:,} of {len(uris):,} held")
    print(
        f"  median {micro:.1f} microseconds, 99% under {slowest:.0f} (wanted: median under {WANTED_MICROSECONDS:.0f})"
    )
    return micro


if __name__ == "__main__":
    sys.exit(main())
