"""A run on Spark that failed or was killed: the same command goes on from its finished parts, and from nothing else."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest

import recollect.engines.spark.engine as spark_engine
import recollect.engines.spark.profile as spark_profile
from engine_world import SMALL, lines
from recollect.engines.mapplans import MergePlan, WeightsPlan
from recollect.engines.spark import reading
from recollect.engines.spark.readplan import ReadPlan
from recollect.engines.spark.resume import identity_of
from recollect.errors import RecollectError
from recollect.formats.parts import part_names
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.model import Problem
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.indexes.profile import InputCounts, profile

# One process has the Spark that all share.
pytestmark = pytest.mark.xdist_group("spark")


@dataclass
class Count:
    """Where tasks write down which ranges they made, and whether the disk is full from some range on."""

    folder: Path

    def full_from(self, number: int) -> None:
        (self.folder / "full").write_text(str(number))

    def emptied(self) -> None:
        (self.folder / "full").unlink()

    def taken(self) -> list[int]:
        """The ranges (or splits) that were finished since the last call."""
        file = self.folder / "made"
        found = sorted(int(line) for line in file.read_text().split()) if file.exists() else []
        file.unlink(missing_ok=True)
        return found


def counted(task: type, count: Count) -> type:
    """A task that fails where the disk is full, and writes down what it finished."""

    class Counted(task):  # type: ignore[misc]
        __slots__ = ()
        folder = count.folder

        def _lines(self, number: int, pieces: Any) -> Iterator[bytes]:
            full = self.folder / "full"
            texts = list(super()._lines(number, pieces)) if not full.exists() or number < int(full.read_text()) else []
            if not texts and full.exists() and number >= int(full.read_text()):
                raise OSError(28, "No space left on device", "/disk/spill")
            with (self.folder / "made").open("a") as made:
                made.write(f"{number}\n")
            yield from texts

    return Counted


@pytest.fixture
def count(tmp_path: Path) -> Count:
    pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    (tmp_path / "count").mkdir()
    return Count(tmp_path / "count")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sorted index of some ten splits and ranges."""
    path = tmp_path_factory.mktemp("sorted") / "index.cdxj"
    path.write_text("\n".join(sorted(lines(3, 6000))) + "\n")
    return str(path)


def text_of(output: str) -> bytes:
    path = Path(output.removeprefix("file://"))
    if path.is_dir():
        return b"".join(part.read_bytes() for part in part_names(path))
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def left_in(folder: Path) -> list[str]:
    """What a later run would go on from."""
    return [str(one) for one in folder.rglob("begin.json")]


@pytest.mark.parametrize("output", ["map/", "url:map/", "url:map.ukvs.gz"])
def test_a_profile_goes_on_from_finished_parts(
    spark: Any, index: str, tmp_path: Path, count: Count, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    where = tmp_path / "out"
    where.mkdir()
    named = f"{where.as_uri()}/{output[4:]}" if output.startswith("url:") else f"{where}/{output}"
    monkeypatch.setattr(spark_profile, "RangeTask", counted(spark_profile.RangeTask, count))
    count.full_from(5)
    with pytest.raises(RecollectError, match="No space left on device"):
        spark_profile.profile([index], named, sizes=SMALL)
    first = count.taken()
    assert first == [0, 1, 2, 3, 4]
    count.emptied()
    again = spark_profile.profile([index], named, sizes=SMALL)
    second = count.taken()
    here = profile([index])
    assert text_of(named) == here.text
    assert again.totals == here.totals and again.tally.lines == here.tally.lines
    assert second and second[0] == 5 and not set(first) & set(second), "no part is made twice"
    assert not left_in(where)


def test_of_sorted_input_only_what_is_missing_is_read_again(
    spark: Any, index: str, tmp_path: Path, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reading(reading.ScanTask):
        __slots__ = ()
        file = tmp_path / "read"

        def __call__(self, place: Any, read: Any) -> Iterator[bytes]:
            with self.file.open("a") as file:
                file.write(f"{place[1]}\n")
            return super().__call__(place, read)

    monkeypatch.setattr(reading, "ScanTask", Reading)
    monkeypatch.setattr(spark_profile, "RangeTask", counted(spark_profile.RangeTask, count))
    count.full_from(6)
    with pytest.raises(RecollectError):
        spark_profile.profile([index], tmp_path / "map", parts=True, sizes=SMALL)
    first = set(Reading.file.read_text().split())
    Reading.file.unlink()
    count.emptied()
    spark_profile.profile([index], tmp_path / "map", parts=True, sizes=SMALL)
    second = set(Reading.file.read_text().split())
    assert second < first and len(second) < len(first) / 2
    assert text_of(str(tmp_path / "map")) == profile([index]).text


def test_changed_inputs_are_other_work(
    spark: Any, index: str, tmp_path: Path, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.cdxj"
    mine.write_bytes(Path(index).read_bytes())
    monkeypatch.setattr(spark_profile, "RangeTask", counted(spark_profile.RangeTask, count))
    count.full_from(5)
    with pytest.raises(RecollectError):
        spark_profile.profile([mine], tmp_path / "map", parts=True, sizes=SMALL)
    assert count.taken() == [0, 1, 2, 3, 4] and left_in(tmp_path)
    count.emptied()
    text = mine.read_bytes()
    mine.write_bytes(text.replace(b"com,a)/", b"com,c)/", 1))
    assert len(text) == mine.stat().st_size
    spark_profile.profile([mine], tmp_path / "map", parts=True, sizes=SMALL)
    assert count.taken()[:2] == [0, 1], "all parts are made again"
    assert text_of(str(tmp_path / "map")) == profile([mine]).text
    assert not left_in(tmp_path), "what other work left for this output is removed"


def test_an_identity_is_of_version_options_and_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = [("/a.cdxj", 10, 1), ("/b.cdxj", 20, 2)]
    first = identity_of("profile", {"policy": "HxPx"}, stamps)
    assert identity_of("profile", {"policy": "HxPx"}, stamps) == first
    others = {
        identity_of("merge", {"policy": "HxPx"}, stamps),
        identity_of("profile", {"policy": "HxP1"}, stamps),
        identity_of("profile", {"policy": "HxPx"}, stamps[::-1]),
        identity_of("profile", {"policy": "HxPx"}, [("/a.cdxj", 10, 1), ("/b.cdxj", 20, 3)]),
    }
    assert len(others) == 4 and first not in others
    assert not identity_of("profile", {}, [("/a", -1, -1)]), "a file of which nothing is known is never the same"
    monkeypatch.setattr("recollect.__version__", "999")
    assert identity_of("profile", {"policy": "HxPx"}, stamps) != first


def test_a_plan_survives_as_json() -> None:
    tally = InputCounts(
        lines=7, filtered=Counter({("status", "404"): 2, "scheme": 1}), problems=[Problem("a", 3, "bad", "x")]
    )
    plan = ReadPlan([(b"com,a)/\xff", b""), (b"com,b)/", b"?q")], tally, 99, {(0, 0): (0, 1), (0, 10): (0, -1)})
    again = ReadPlan.of_json(json.loads(json.dumps(plan.as_json())))
    assert again == plan
    assert plan.needed({0}) == {(0, 0): True, (0, 10): False}
    assert ReadPlan.of_json({"borders": 3}) is None


def _merging(maps: list[str], output: Path, engine: str) -> None:
    if engine == "spark":
        spark_engine.run_plan(MergePlan(maps, MergeOptions()), output, parts=True, sizes=SMALL)
    else:
        merge_maps(maps, output)


def _by_weights(maps: list[str], output: Path, engine: str) -> None:
    if engine == "spark":
        spark_engine.run_plan(WeightsPlan(maps[0], Weights(), fit=True), output, parts=True, sizes=SMALL)
    else:
        compact_by_weights(maps[0], output, Weights(), fit=True)


@pytest.mark.parametrize(
    "work",
    [
        _merging,
        _by_weights,
    ],
)
def test_merging_and_compacting_go_on_from_finished_parts(
    spark: Any,
    maps: list[str],
    tmp_path: Path,
    count: Count,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[list[str], Path, str], None],
) -> None:
    monkeypatch.setattr(spark_engine, "RangeTask", counted(spark_engine.RangeTask, count))
    count.full_from(2)
    with pytest.raises(RecollectError, match="No space left on device"):
        work(maps, tmp_path / "map", "spark")
    first = count.taken()
    assert first == [0, 1]
    count.emptied()
    work(maps, tmp_path / "map", "spark")
    second = count.taken()
    assert second and not set(first) & set(second), "no part is made twice"
    work(maps, tmp_path / "here.ukvs", "embedded")
    assert text_of(str(tmp_path / "map")) == (tmp_path / "here.ukvs").read_bytes()
    assert not left_in(tmp_path)


KILLED = """
import sys, time
from pathlib import Path
import recollect.engines.spark.profile as spark_profile
from engine_world import SMALL
from recollect.engines.spark.session import Cluster

class Slow(spark_profile.RangeTask):
    __slots__ = ()
    def _lines(self, number, pieces):
        if number > 3:
            time.sleep(600)
        return super()._lines(number, pieces)

import pyspark
pyspark.cloudpickle.register_pickle_by_value(sys.modules["__main__"])
spark_profile.RangeTask = Slow
cluster = Cluster("local[2]", {"spark.local.dir": sys.argv[3]})
spark_profile.profile([sys.argv[1]], sys.argv[2], sizes=SMALL, cluster=cluster)
"""


def test_a_killed_driver_costs_only_the_parts_that_were_not_finished(
    spark: Any, index: str, tmp_path: Path, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "out"
    where.mkdir()
    output = f"{where.as_uri()}/map/"
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, *sys.path])
    (tmp_path / "disk").mkdir()
    driver = subprocess.Popen(
        [sys.executable, str(script), index, output, str(tmp_path / "disk")],
        env=os.environ | {"PYTHONPATH": paths},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 120
        while not list(where.rglob("done-*.json")) and time.monotonic() < end and driver.poll() is None:
            time.sleep(0.1)
        time.sleep(1.5)  # one more round of the journal
    finally:
        # The driver, its Java and its workers: nothing of it can tidy up.
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert left_in(where)
    monkeypatch.setattr(spark_profile, "RangeTask", counted(spark_profile.RangeTask, count))
    spark_profile.profile([index], output, sizes=SMALL)
    made = count.taken()
    assert made and min(made) >= 2 and max(made) > 4, "finished parts are not made again"
    assert text_of(output) == profile([index]).text
    assert not left_in(where)
