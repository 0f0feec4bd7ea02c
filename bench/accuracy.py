"""Accuracy for a size: compaction by budget against compaction by weights, on lookups the program has not seen.

    make bench-accuracy                     real archives where ../shared/data is there, else generated ones
    make bench-accuracy ARGS=--generated    generated ones in any case
    make bench-accuracy ARGS=--sets         only hashed sets against lines in clear, and the time of lookups in both
    make bench-accuracy ARGS=--forecast     only what maps made with logs of several sizes promise, against the truth

For each archive the different lookups are split in halves by a fixed seed; logs are trained on one half, and every
map is tested on the other. The truth is the uncompacted map. A held URI that any map misses ends the run with an error.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mapdata
from recollect.errors import BadURI
from recollect.formats.containers import open_input
from recollect.formats.logs import LogEntry, read_lookups
from recollect.maps.bulk import bulk_lookup
from recollect.maps.lookup import MementoMap, keys_of, open_for_many
from recollect.profiles.compaction.budget import Budget, compact_by_budget
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.indexes.profile import profile

DATA = Path(__file__).parents[2] / "shared" / "data"
SEED = 2019
HELD_SAMPLE = 100_000
TIMED, TIMED_ALONE = 100_000, 8_000
FORECAST_SHARES, SMALLEST_MAP = (0.01, 0.1), 1_500  # of the compressed map


@dataclass(frozen=True, slots=True)
class Archive:
    """Holdings as a map, and lookups in two halves."""

    name: str
    full: Path
    train: Path
    test: list[str]
    costs: tuple[float, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", action="store_true", help="only generated archives")
    parser.add_argument("--sets", action="store_true", help="only hashed sets against lines in clear, by bytes")
    parser.add_argument("--forecast", action="store_true", help="only forecasts of maps with a log, against the truth")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        folder = Path(name)
        if options.generated or not DATA.is_dir():
            print("generated archives" + ("" if options.generated else f" ({DATA} is not here)"))
            report(generated(folder), folder)
            return
        if options.sets:
            report_sets(end_of_term(folder), folder)
            return
        wrong = report(end_of_term(folder), folder)
        judge(wrong)
        report_sets(end_of_term(folder), folder)
        for archive in timemaps(folder):
            report(archive, folder)


def split(name: str, lookups: list[str], folder: Path) -> tuple[Path, list[str]]:
    """Half of the lookups as a log to learn from, half to be tested on."""
    unique = sorted(set(lookups))
    random.Random(SEED).shuffle(unique)
    train = folder / f"{name}.train.txt"
    train.write_text("\n".join(unique[::2]) + "\n", encoding="utf-8", errors="surrogateescape")
    return train, unique[1::2]


def end_of_term(folder: Path) -> Archive:
    """Seeds of the End of Term 2024 crawl, and URLs that others nominated for it."""
    full = folder / "eot.ukvs"
    profile([DATA / "eot" / "holdings.surt.zst"], full)
    with open_input(DATA / "eot" / "lookups.txt.zst") as lines:
        lookups = [line.decode("utf-8", "surrogateescape").strip() for line in lines]
    train, test = split("eot", lookups, folder)
    return Archive("End of Term 2024", full, train, test, (0.001, 0.003, 0.01, 0.03))


def timemaps(folder: Path) -> Iterator[Archive]:
    """Real TimeMaps: what one archive has is its holdings, what all have together are the lookups."""
    held: dict[str, set[str]] = defaultdict(set)
    with open_input(DATA / "timemaps" / "mementos.cdxj.zst") as lines:
        for line in lines:
            surt, _, block = line.decode("utf-8", "surrogateescape").split(" ", 2)
            held[json.loads(block)["archive"]].add(surt)
    everything = sorted(set().union(*held.values()))
    for name, surts in sorted(held.items(), key=lambda item: -len(item[1])):
        if not 100 <= len(surts) < len(everything) / 2:
            continue
        index = folder / "index.txt"
        index.write_text("\n".join(sorted(surts)) + "\n", encoding="utf-8", errors="surrogateescape")
        full = folder / f"{name}.ukvs"
        profile([index], full)
        train, test = split(name, everything, folder)
        yield Archive(name, full, train, test, (0.1, 0.3, 0.6))


def generated(folder: Path) -> Archive:
    """An archive that grew by preferential attachment, and lookups near to and far from what it holds."""
    keys = mapdata.map_keys(300_000)
    full = folder / "generated.ukvs"
    mapdata.write_map(full, keys)
    lookups = [key.decode() for key in mapdata.lookups(keys, 100_000)]
    train, test = split("generated", lookups, folder)
    return Archive("generated", full, train, test, (0.003, 0.01, 0.03, 0.1))


def report(archive: Archive, folder: Path) -> dict[str, float]:
    """A line per map; returns the wrong answers by method and cost."""
    with MementoMap.open(archive.full) as full:
        truth = [found.answer == "yes" for found in full.lookup_many(archive.test)]
    held = sum(truth)
    print(f"\n{archive.name}: {len(archive.test):,} lookups to test on, {held / len(truth):.1%} held")
    print(f"{'method':<24}{'relative cost':>14}{'keys':>10}{'right':>10}{'wrong':>10}{'seconds':>9}")
    results: dict[str, float] = {}
    small = folder / "small.ukvs"

    def line(method: str, cost: float, keys: int, seconds: float) -> None:
        wrong = check(archive, small, truth)
        results[f"{method} {cost:.2%}"] = results[method] = wrong
        print(
            f"{method:<24}{cost:>14.3%}{keys:>10,}{1 - wrong / len(truth):>10.2%}{wrong:>10,}{seconds:>9.1f}",
            flush=True,
        )

    uri_rs = 0
    for cost in archive.costs:
        for method, log in ((f"budget, prior {cost:.1%}", None), (f"budget, log {cost:.1%}", archive.train)):
            started = time.monotonic()
            lookups = read_lookups(log) if log else None
            done = compact_by_budget(archive.full, small, Budget(max_cost=cost), lookups=lookups)
            uri_rs = done.uri_rs
            line(method, done.cost, done.keys_out, time.monotonic() - started)
    for weight in (4.0, 2.0, 1.0, 0.5):
        started = time.monotonic()
        rolled = compact_by_weights(archive.full, small, Weights(weight, weight))
        line(f"weights {weight:g}/{weight:g}", rolled.keys_out / uri_rs, rolled.keys_out, time.monotonic() - started)
    return results


def report_sets(archive: Archive, folder: Path) -> None:
    """Hashed sets against lines in clear, by compressed bytes: all lookups without a log, halves with one."""
    everything = [*archive.test, *archive.train.read_text(errors="surrogateescape").splitlines()]
    with MementoMap.open(archive.full) as full:
        of_all = [found.answer == "yes" for found in full.lookup_many(everything)]
        of_test = [found.answer == "yes" for found in full.lookup_many(archive.test)]
    print(
        f"\n{archive.name}: by bytes, compressed\n"
        f"{'method':<24}{'bytes':>10}{'right':>10}{'wrong':>10}{'seconds':>9}{'forecast':>10}"
    )
    both = folder / "clear.ukvs.zst", folder / "sets.ukvs.zst"
    compact_by_budget(archive.full, both[0], Budget(max_cost=0.01), lookups=read_lookups(archive.train))
    today = both[0].stat().st_size
    for size, log in ((326_000, None), (600_000, None), (today, archive.train)):
        for sets, small in enumerate(both):
            started = time.monotonic()
            lookups = read_lookups(log) if log else None
            done = compact_by_budget(archive.full, small, Budget(max_bytes=size, sets=bool(sets)), lookups=lookups)
            seconds = time.monotonic() - started
            truth, asked = (of_test, archive.test) if log else (of_all, everything)
            wrong = check(archive, small, truth, asked)
            name = f"{'sets' if sets else 'clear'}, {'log' if log else 'prior'}"
            right = 1 - wrong / len(truth)
            print(f"{name:<24}{small.stat().st_size:>10,}{right:>10.2%}{wrong:>10,}{seconds:>9.1f}", end="")
            print(f"{1 - done.expected_wrong:>10.2%}" if log else f"{'':>10}", flush=True)
        compare_lookups(both, archive.test)


def report_forecasts(archive: Archive, folder: Path) -> None:
    """What maps made with a log promise of lookups like its own, and what is true of lookups that it has not seen."""
    log = archive.train.read_text(errors="surrogateescape").splitlines()
    with MementoMap.open(archive.full) as full:
        truth = [found.answer == "yes" for found in full.lookup_many(archive.test)]
    whole = folder / "whole.ukvs.zst"
    compact_by_budget(archive.full, whole, Budget(max_cost=1.0))
    sizes = [max(SMALLEST_MAP, int(whole.stat().st_size * share)) for share in FORECAST_SHARES]
    print(
        f"\n{archive.name}: forecasts of right answers to {len(truth):,} lookups not in the log\n"
        f"{'method':<8}{'bytes':>10}{'log':>10}{'truth':>10}{'forecast':>10}{'95% interval':>20}{'off by':>10}"
    )
    small = folder / "small.ukvs.zst"
    for size in dict.fromkeys(sizes):
        for length in sorted({min(len(log), 1_000), min(len(log), 10_000), len(log)}):
            for sets in (False, True):
                entries = [LogEntry(uri, 1) for uri in log[:length]]
                done = compact_by_budget(archive.full, small, Budget(max_bytes=size, sets=sets), lookups=entries)
                right = 1 - check(archive, small, truth) / len(truth)
                assert done.expected_wrong_interval is not None
                low, high = (1 - wrong for wrong in reversed(done.expected_wrong_interval))
                print(
                    f"{'sets' if sets else 'clear':<8}{small.stat().st_size:>10,}{length:>10,}{right:>10.2%}"
                    f"{1 - done.expected_wrong:>10.2%}{f'{low:.2%} - {high:.2%}':>20}"
                    f"{(1 - done.expected_wrong - right) * 100:>+10.2f}{'' if low <= right <= high else ' outside'}",
                    flush=True,
                )


def compare_lookups(maps: tuple[Path, Path], uris: list[str]) -> None:
    """CPU time of lookups in a map in clear and in one with sets, in turns; the best of five rounds counts."""
    surts = [keys[0].decode() for uri in uris[:TIMED] if (keys := keys_of_any(uri))]
    text = "\n".join(surts).encode() + b"\n"
    best: dict[tuple[str, int], float] = {}
    opened = [open_for_many(path) for path in maps]
    for _ in range(5):
        for number, one in enumerate(opened):
            assert isinstance(one, MementoMap)
            started = time.process_time()
            for surt in surts[:TIMED_ALONE]:
                one.lookup(surt)
            alone = (time.process_time() - started) / len(surts[:TIMED_ALONE])
            started = time.process_time()
            list(bulk_lookup(one, [text], threads=1))
            listed = (time.process_time() - started) / len(surts)
            for way, seconds in (("one by one", alone), ("as a list", listed)):
                best[way, number] = min(best.get((way, number), seconds), seconds)
    for way in ("one by one", "as a list"):
        clear, sets = best[way, 0] * 1e6, best[way, 1] * 1e6
        print(f"  lookups {way}: clear {clear:.2f} µs, sets {sets:.2f} µs, {sets / clear:.2f} times (goal 2 or less)")


def keys_of_any(uri: str) -> list[bytes]:
    try:
        return keys_of(uri)
    except BadURI:
        return []


def check(archive: Archive, small: Path, truth: list[bool], asked: list[str] | None = None) -> int:
    """Wrong answers of a map; ends the program if it misses anything held."""
    wrong = 0
    with open_for_many(small) as compacted:
        for held, found in zip(truth, compacted.lookup_many(asked or archive.test), strict=True):
            if held and found.answer != "yes":
                sys.exit(f"false negative: {found.uri}")
            wrong += not held and found.answer == "yes"
        for found in compacted.lookup_many(held_keys(archive.full)):
            if found.answer != "yes":
                sys.exit(f"false negative: {found.uri}")
    return wrong


def held_keys(full: Path) -> list[str]:
    """Keys of the uncompacted map, spread evenly over it."""
    with full.open("rb") as lines:
        keys = [line.split(b" ", 1)[0].decode() for line in lines if not line.startswith(b"!")]
    return keys[:: max(1, len(keys) // HELD_SAMPLE)]


def judge(wrong: dict[str, float]) -> None:
    """The limits this project has set itself, on the End of Term archive."""
    weights = wrong["weights 2/2"]
    total = {"log": wrong["budget, log 1.0%"], "prior": wrong["budget, prior 1.0%"]}
    print(
        f"\nwrong answers at 1% cost, with weights 2/2 as 1: log {total['log'] / weights:.3f} (goal 0.1 or less),",
        end=" ",
    )
    print(f"prior {total['prior'] / weights:.3f} (goal 0.6 or less)")


if __name__ == "__main__":
    main()
