"""A third engine is one class: plans run by it give the bytes of the operation itself."""

from __future__ import annotations

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from recollect.engines.operations import CompactByWeights, LocalEngine, Merge, Operation
from recollect.engines.plan import Range, without_header
from recollect.engines.spark.maps import borders_between
from recollect.formats.ukvs import Header, open_map
from recollect.maps.merge import MergeOptions
from recollect.profiles.compaction.weights import Weights


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    header: Header
    size: int


class PoolEngine:
    """Threads over ranges of hosts."""

    def run(self, operation: Operation[Any], progress: Any) -> Any:
        if not isinstance(operation, Merge | CompactByWeights):
            return operation.here(progress)
        plan = operation.plan()
        maps = [Source(name, _header(name), Path(name).stat().st_size) for name in plan.sources]
        plan.check(maps)
        lines = [without_header(Path(one.name).read_bytes()).splitlines(keepends=True) for one in maps]
        keys = [(line.split(b" ", 1)[0], 1) for some in lines for line in some]
        borders = borders_between(keys, 5, plan.depth(2))
        with TemporaryDirectory() as folder, ThreadPoolExecutor(3) as pool:
            ranges = [_files(Path(folder), number, maps, lines, borders) for number in range(len(borders) + 1)]
            survey = plan.survey(maps)
            total = None if survey is None else reduce(np.add, pool.map(survey, ranges))
            found = plan.surveyed(total)
            work, notes = plan.work(maps, found), [Range() for _ in ranges]

            def lines_of(number: int) -> bytes:
                text = b"".join(work(ranges[number], notes[number]))
                if text:
                    notes[number].saw(text)
                return text

            texts = list(pool.map(lines_of, range(len(ranges))))
        head, result = plan.combine(maps, found, dict(enumerate(notes)), sum(len(b"".join(some)) for some in lines))
        Path(operation.output).write_bytes(head + b"".join(texts))
        assert len(ranges) > 2
        return result


def _header(name: str) -> Header:
    with open_map(name) as opened:
        return opened.header


def _files(folder: Path, number: int, maps: list[Source], lines: list[list[bytes]], borders: list[bytes]) -> list[str]:
    paths = []
    for at, one in enumerate(maps):
        path = folder / f"{number}-{at}.ukvs"
        mine = [line for line in lines[at] if bisect_right(borders, line.split(b" ", 1)[0]) == number]
        path.write_bytes(one.header.encode() + b"".join(mine))
        paths.append(str(path))
    return paths


@pytest.fixture
def maps(tmp_path: Path) -> list[str]:
    for number, step in ((1, 1), (2, 3)):
        keys = {f"com,site{n % 23})/{n % 5}/p{n * step}" for n in range(600)} | {"com,void)/* ", "org,x)/"}
        text = "".join(f"{key.strip()} {'0' if key.endswith(' ') else '3/2'}\n" for key in sorted(keys))
        (tmp_path / f"{number}.ukvs").write_bytes(Header().encode() + text.encode())
    return [str(tmp_path / "1.ukvs"), str(tmp_path / "2.ukvs")]


def _refuse(problem: object) -> None:
    raise AssertionError(problem)


@pytest.mark.parametrize("name", ["merge", "weights", "fitted weights"])
def test_an_engine_of_one_class_gives_the_same_map(name: str, maps: list[str], tmp_path: Path) -> None:
    def operation(output: str) -> Operation[Any]:
        if name == "merge":
            return Merge(maps, output, MergeOptions(updated_at="2024-01-01T00:00:00Z"), _refuse)
        return CompactByWeights(maps[0], output, Weights(1.0, 0.5), name.startswith("fitted"), 1, _refuse)

    here, there = tmp_path / "here.ukvs", tmp_path / "there.ukvs"
    local = LocalEngine().run(operation(str(here)), lambda _progress: None)
    other = PoolEngine().run(operation(str(there)), lambda _progress: None)
    assert there.read_bytes() == here.read_bytes()
    if name == "merge":
        assert other == local
    else:
        assert (other.keys_in, other.keys_out, other.rollups) == (local.keys_in, local.keys_out, local.rollups)
