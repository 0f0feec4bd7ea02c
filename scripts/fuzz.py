"""`make fuzz`: mutated inputs for every parser of foreign bytes, for a given time; ends with a count.

Seeds and what was found are kept outside of the repository (RECOLLECT_FUZZ, or the user's cache folder). An input is
new when the parser runs lines of the package with it that no input ran before: those are mutated further.

    python scripts/fuzz.py --seconds 60 [--parser NAME]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from attack.parsers import PARSERS, UNITS, Parser  # noqa: E402

_LONGEST = 1 << 16
_SLOW = 5.0  # seconds of CPU for at most 64 kB


class _Slow(Exception):
    pass


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--seed", type=int, help="the same mutations in every run, for a gate; else new ones")
    options.add_argument("--parser", choices=sorted(PARSERS), action="append")
    chosen = options.parse_args()
    names = chosen.parser or sorted(PARSERS)
    folder = Path(os.environ.get("RECOLLECT_FUZZ") or Path.home() / ".cache/recollect-fuzz")
    inputs, faults = 0, 0
    end = time.monotonic() + chosen.seconds
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        until = time.monotonic() + max(0.05, (end - time.monotonic()) / left)
        done, bad = _fuzz(PARSERS[name], folder / name.replace(" ", "-"), until, name, chosen.seed)
        inputs, faults = inputs + done, faults + bad
    print(f"fuzz: {inputs:,} inputs to {len(names)} parsers, {faults} faults; corpus in {folder}")
    return 1 if faults else 0


def _fuzz(parser: Parser, folder: Path, until: float, name: str, seed: int | None) -> tuple[int, int]:
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    corpus = [*parser.seeds, *(path.read_bytes() for path in sorted(folder.glob("*.in"))[:2000])]
    lines: set[tuple[str, int]] = set()
    done = faults = 0
    while time.monotonic() < until:
        data = corpus[done] if done < len(corpus) and done < len(parser.seeds) else _mutated(chance, corpus)
        done += 1
        seen: set[tuple[str, int]] = set()
        try:
            _traced(parser, data, seen)
        except Exception as error:  # what a parser may not raise
            faults += 1
            path = folder / f"fault-{hashlib.sha256(data).hexdigest()[:16]}"
            path.write_bytes(data)
            print(f"{name}: {type(error).__name__}: {error!s:.100} ({path})", file=sys.stderr)
            continue
        if seen - lines:
            lines |= seen
            corpus.append(data)
            (folder / f"{hashlib.sha256(data).hexdigest()[:16]}.in").write_bytes(data)
    return done, faults


def _traced(parser: Parser, data: bytes, seen: set[tuple[str, int]]) -> None:
    def of_line(frame: FrameType, event: str, _argument: object) -> object:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return of_line

    def of_call(frame: FrameType, _event: str, _argument: object) -> object:
        return of_line if "/recollect/" in frame.f_code.co_filename else None

    def stop(*_: object) -> None:
        raise _Slow(f"more than {_SLOW:g} s of CPU")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SLOW)
    sys.settrace(of_call)  # type: ignore[arg-type]
    try:
        parser.run(data)
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _mutated(chance: random.Random, corpus: list[bytes]) -> bytes:
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(data))
        way = chance.randrange(6)
        if way == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif way == 1:
            data[at:at] = chance.choice(UNITS)[1] * chance.choice((1, 2, 3, 50))
        elif way == 2:
            del data[at : at + chance.randint(1, 30)]
        elif way == 3:
            other = chance.choice(corpus)
            start = chance.randint(0, len(other))
            data[at:at] = other[start : start + chance.randint(1, 200)]
        elif way == 4:
            data[at:at] = data[max(0, at - chance.randint(1, 60)) : at] * chance.choice((1, 2, 100))
        else:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
    return bytes(data[:_LONGEST])


if __name__ == "__main__":
    sys.exit(main())
