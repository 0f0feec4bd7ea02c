# ruff: noqa: A005 - named as its make target, bench-profile
"""`recollect profile` against `mementomap generate`, both started from the shell, on the same index in one run.

    make bench-profile                        5,000,000 lines of CDXJ, plain and gzip
    make bench-profile ARGS='--lines 500000'  fewer
    make bench-profile ARGS='--grow 10'       also an index ten times as long: memory and time

Recollect filters by status and media type, which the reference cannot; so it does more. The programs take turns; the
best of three rounds counts. Wanted: 15 times as fast at least on plain files, 12 times on gzip; less than 1 GB of
memory, and no more than 1.3 times as much for ten times the lines. The index comes from ../shared/tools/gen_index.py
when that is there, else from a simpler generator here.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".bench"
GENERATOR = HERE.parents[1] / "shared/tools/gen_index.py"
BIN = Path(sys.executable).parent
FILTERS = ["--status", "200", "--media-type", "text/html"]
ROUNDS = 3
WANTED = {"plain": 15.0, "gzip": 12.0}
MOST_MEMORY, MOST_GROWTH = 1000, 1.3


@dataclass
class Run:
    """One run of a program: wall-clock seconds, processor seconds, peak memory in MB."""

    seconds: float
    cpu: float
    memory: float


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--grow", type=int, default=0, metavar="N", help="also an index N times as long")
    parser.add_argument("--dir", type=Path, default=CACHE, help="where the index is made and kept")
    chosen = parser.parse_args()
    plain = index(chosen.dir, chosen.lines)
    packed = compressed(plain)
    sizes = [path.stat().st_size / 1e9 for path in (plain, packed)]
    print(f"\n{chosen.lines:,} lines, {sizes[0]:.2f} GB plain, {sizes[1]:.2f} GB gzip")
    print(f"$ recollect profile INDEX {' '.join(FILTERS)} -o map.ukvs\n$ mementomap generate INDEX map.ukvs\n")
    print(f"{'input':8}{'program':14}{'seconds':>9}{'cpu s':>8}{'lines/s':>13}{'MB':>7}")
    good = compare("plain", plain, chosen)
    good &= compare("gzip", packed, chosen)
    if chosen.grow:
        good &= grow(plain, chosen)
    return 0 if good else 1


def compare(name: str, path: Path, chosen: argparse.Namespace) -> bool:
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(run_once(ours(path, chosen.dir / "ours.ukvs")))
        theirs.append(run_once([str(BIN / "mementomap"), "generate", str(path), str(chosen.dir / "reference.ukvs")]))
    best, reference = min(mine, key=lambda run: run.seconds), min(theirs, key=lambda run: run.seconds)
    show(name, "recollect", best, chosen.lines)
    show(name, "mementomap", reference, chosen.lines)
    ratio = reference.seconds / best.seconds
    print(
        f"{name:8}{ratio:.1f} times as fast (wanted {WANTED[name]:.0f}), {best.memory:.0f} MB (at most {MOST_MEMORY})\n"
    )
    return ratio >= WANTED[name] and best.memory < MOST_MEMORY


def grow(plain: Path, chosen: argparse.Namespace) -> bool:
    """The same index under N other top-level domains, one after the other, which is sorted, too."""
    large = chosen.dir / f"index-{chosen.lines}x{chosen.grow}.cdxj"
    needed = plain.stat().st_size * chosen.grow * 1.1
    if shutil.disk_usage(chosen.dir).free < needed + 5e9:
        print(f"not enough disk space for the larger index: more than {needed / 1e9:.0f} GB are needed in {chosen.dir}")
        return False
    with large.open("wb") as out:
        for number in range(chosen.grow):
            mark = b"z%02d," % number
            with plain.open("rb") as text:
                out.write(mark)
                while piece := text.read(1 << 24):
                    out.write(piece.replace(b"\n", b"\n" + mark))
            out.seek(-len(mark), os.SEEK_CUR)
            out.truncate()
    small = run_once(ours(plain, chosen.dir / "ours.ukvs"))
    big = run_once(ours(large, chosen.dir / "ours.ukvs"))
    large.unlink()
    show("1x", "recollect", small, chosen.lines)
    show(f"{chosen.grow}x", "recollect", big, chosen.lines * chosen.grow)
    growth = big.memory / small.memory
    print(f"memory grows {growth:.2f} times (at most {MOST_GROWTH}), time {big.seconds / small.seconds:.1f} times")
    return growth <= MOST_GROWTH


def ours(path: Path, output: Path) -> list[str]:
    return [str(BIN / "recollect"), "profile", str(path), *FILTERS, "-o", str(output), "--quiet"]


def run_once(command: list[str]) -> Run:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def show(name: str, program: str, run: Run, lines: int) -> None:
    print(
        f"{name:8}{program:14}{run.seconds:9.2f}{run.cpu:8.2f}{lines / run.seconds:13,.0f}{run.memory:7.0f}", flush=True
    )


def index(folder: Path, lines: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"index-{lines}.cdxj"
    if made.exists():
        return made
    print(f"making an index of {lines:,} lines ...", flush=True)
    if GENERATOR.exists():
        work = folder / "generated"
        subprocess.run([sys.executable, str(GENERATOR), str(work), str(lines)], check=True, stdout=subprocess.DEVNULL)
        (work / "index.cdxj").rename(made)
        shutil.rmtree(work)
    else:
        print("no ../shared/tools/gen_index.py: a simpler index")
        made.write_bytes(b"".join(simple_lines(lines)))
    return made


def simple_lines(count: int) -> list[bytes]:
    maker = random.Random(1)
    words = [f"{a}{b}{c}" for a in "bdfk" for b in "aeio" for c in "lmnrst"]
    lines = []
    while len(lines) < count:
        host = f"{maker.choice(['com', 'org', 'pt', 'net'])},{maker.choice(words)}{maker.choice(words)}"
        for _ in range(min(int(maker.paretovariate(0.6)), 20_000)):
            path = "/".join(maker.choice(words) for _ in range(maker.randrange(1, 6)))
            query = f"?id={maker.randrange(10**6)}" if maker.random() < 0.3 else ""
            for _ in range(min(int(maker.paretovariate(1.2)), 500)):
                when = f"{maker.randrange(1996, 2019)}{maker.randrange(1, 13):02d}{maker.randrange(1, 29):02d}120000"
                media = maker.choice(["text/html"] * 3 + ["image/png", "image/jpeg", "warc/revisit"])
                block = (
                    f'{{"url": "http://example.com/{path}{query}", "mime": "{media}", "status": "200", "digest": "A"}}'
                )
                lines.append(f"{host})/{path}{query} {when} {block}\n".encode())
    return sorted(lines[:count])


def compressed(plain: Path) -> Path:
    packed = plain.with_suffix(".cdxj.gz")
    if not packed.exists():
        print("compressing it ...", flush=True)
        with plain.open("rb") as text, gzip.open(packed, "wb", 6) as out:
            shutil.copyfileobj(text, out, 1 << 24)
    return packed


if __name__ == "__main__":
    sys.exit(main())
