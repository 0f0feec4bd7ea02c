"""Files on Spark: many of them, unusual names, folders of parts that are replaced, and messages when a task fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect.engines.spark.profile as spark_profile
from engine_world import SMALL, lines
from recollect.engines.mapplans import WeightsPlan
from recollect.engines.spark.engine import run_plan
from recollect.errors import RecollectError
from recollect.formats.parts import is_parted, part_names
from recollect.profiles.compaction.weights import Weights
from recollect.profiles.indexes.profile import profile

pytestmark = pytest.mark.xdist_group("spark")


def jobs(spark: Any) -> int:
    """How many jobs Spark has run."""
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup())


def write_many(folder: Path, count: int) -> list[str]:
    """Indexes, tables of two schemas, and archives: `count` of each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    record = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhere\r\n"
    for number in range(count):
        (folder / f"{number}.cdxj").write_text("\n".join(lines(number, 3)) + "\n")
        columns: dict[str, Any] = {"url_surtkey": [f"com,table{number})/"]}
        pq.write_table(
            pa.table(columns | ({"fetch_status": [200]} if number % 2 else {})), folder / f"{number}.parquet"
        )
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://warc{number}.example/\r\n"
        head += f"WARC-Date: 2014-01-01T00:00:00Z\r\nContent-Length: {len(record)}\r\n\r\n"
        (folder / f"{number}.warc").write_bytes(head.encode() + record + b"\r\n\r\n")
    return [str(folder)]


def test_any_number_of_files_takes_the_same_number_of_jobs(spark: Any, tmp_path: Path) -> None:
    taken = []
    for count in (2, 10):
        paths = write_many(tmp_path / str(count), count)
        before = jobs(spark)
        there = spark_profile.profile([Path(path).as_uri() for path in paths])
        taken.append(jobs(spark) - before)
        assert there.text == profile(paths).text
    assert taken[0] == taken[1]


def test_the_parts_of_a_map_are_read_in_one_job(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "index.cdxj").write_text("\n".join(lines(1, 900)) + "\n")
    taken = []
    for name, sizes in (("few", None), ("many", SMALL)):
        spark_profile.profile([tmp_path / "index.cdxj"], f"{(tmp_path / name).as_uri()}/", sizes=sizes)
        before = jobs(spark)
        run_plan(WeightsPlan((tmp_path / name).as_uri(), Weights()), tmp_path / f"{name}.ukvs")
        taken.append(jobs(spark) - before)
    assert len(part_names(tmp_path / "few")) < len(part_names(tmp_path / "many"))
    assert taken[0] == taken[1]
    assert (tmp_path / "few.ukvs").read_bytes() == (tmp_path / "many.ukvs").read_bytes()


def test_names_that_look_like_patterns_are_names(spark: Any, tmp_path: Path) -> None:
    unusual = [tmp_path / "odd [1], {a}.cdxj", tmp_path / "100%41.cdxj"]
    for number, path in enumerate(unusual):
        path.write_text("\n".join(lines(number, 9)) + "\n")
    there = spark_profile.profile([tmp_path.as_uri()], sizes=SMALL)
    assert there.text == profile([tmp_path]).text


def test_jobs_are_called_by_what_they_do(spark: Any, indexes: list[str]) -> None:
    tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
    before = set(tracker.getJobIdsForGroup())
    spark_profile.profile(indexes[:1], sizes=SMALL)
    described = [store.job(job).description() for job in set(tracker.getJobIdsForGroup()) - before]
    assert all(one.isDefined() for one in described), "no job without a description"
    assert {one.get() for one in described} == {"recollect: reading", "recollect: writing"}


class _Failing(spark_profile.RangeTask):
    """Writes a range, and then finds the disk full."""

    __slots__ = ()

    def __call__(self, number: int, pieces: Any) -> Iterator[bytes]:
        yield from super().__call__(number, pieces)
        if number:
            raise OSError(28, "No space left on device", "/disk/spill")


def test_an_earlier_map_in_parts_by_url_is_whole_until_the_next_is(
    spark: Any, indexes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    import pyspark

    output = f"{(tmp_path / 'map').as_uri()}/"
    spark_profile.profile(indexes[:1], output, sizes=SMALL)
    first = profile(indexes[:1]).text
    names = sorted(one.name for one in (tmp_path / "map").iterdir())
    assert b"".join(part.read_bytes() for part in part_names(tmp_path / "map")) == first
    with monkeypatch.context() as failing:
        pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        failing.setattr(spark_profile, "RangeTask", _Failing)
        with pytest.raises(RecollectError, match="No space left on device") as raised:
            spark_profile.profile(indexes, output, sizes=SMALL)
    assert "/disk/spill" in str(raised.value) and "spark.local.dir" in raised.value.hint
    assert set(names) < {one.name for one in (tmp_path / "map").iterdir()}, "finished parts are kept beside the map"
    assert b"".join(part.read_bytes() for part in part_names(tmp_path / "map")) == first
    spark_profile.profile(indexes, output, sizes=SMALL)
    parts = part_names(tmp_path / "map")
    assert b"".join(part.read_bytes() for part in parts) == profile(indexes).text
    assert sorted(parts) == parts, "cat part-* is the map"
    left = {one.name for one in (tmp_path / "map").iterdir() if not one.name.startswith((".", "_"))}
    assert left == {part.name for part in parts} | {"manifest.json"}, "parts of the earlier map are gone"


def test_parts_without_a_manifest_are_not_a_map(spark: Any, indexes: list[str], tmp_path: Path) -> None:
    spark_profile.profile(indexes, f"{(tmp_path / 'map').as_uri()}/", sizes=SMALL)
    listed = json.loads((tmp_path / "map" / "manifest.json").read_text())["parts"]
    assert sum(part["bytes"] for part in listed) == sum(part.stat().st_size for part in part_names(tmp_path / "map"))
    (tmp_path / "map" / "manifest.json").unlink()
    assert not is_parted(tmp_path / "map")


def test_a_form_that_is_asked_for_and_what_is_ignored_are_the_same(spark: Any, tmp_path: Path) -> None:
    rows = [f"{1_300_000_000 + number}\thttp://a.com/{number % 7}\n" for number in range(50)]
    (tmp_path / "clicks.tsv").write_text("".join(rows))
    (tmp_path / "README.md").write_bytes(b"\x89PNG\r\n\x1a\n" * 9)
    for columns in ("", "time,url"):  # the second takes the picture for a list, too
        here = profile([tmp_path], columns=columns)
        for name in (str(tmp_path), tmp_path.as_uri()):
            there = spark_profile.profile([name], columns=columns, sizes=SMALL)
            assert there.text == here.text
            assert (there.partial, len(there.tally.ignored)) == (here.partial, len(here.tally.ignored))
        assert (here.partial, len(here.tally.ignored)) == (bool(columns), not columns)
