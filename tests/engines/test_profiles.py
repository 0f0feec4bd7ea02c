"""Indexes on both engines: every policy, filter, decomposition and kind of input gives the same bytes, run for real."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyspark
import pytest

import recollect.engines.spark.profile as spark_profile
from engine_world import NASTY, SMALL, as_cdx, lines, said_by
from recollect.engines.spark import reading
from recollect.engines.spark.evaluate import held_on_spark
from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.stats import stats as spark_stats
from recollect.errors import FormatError, UsageError
from recollect.formats.parts import part_names
from recollect.profiles.indexes.profile import ProfileResult, profile
from recollect.profiles.indexes.select import selection
from recollect.profiles.statistics.evaluate import evaluate
from recollect.profiles.statistics.stats import stats
from recollect.uris import POLICIES

# One process has the Spark that all share.
pytestmark = pytest.mark.xdist_group("spark")

# Every filter, decomposition and format of output; the 23 policies take turns with them.
OPTIONS: list[dict[str, Any]] = [
    {},
    {"statuses": ["2xx", "-"]},
    {"by": ["year"]},
    {"media_types": ["text/*"], "by": ["status"], "by_columns": True},
    {"since": "2005", "until": "2012"},
    {"by": ["month", "media-type"]},
    {"exclude": ["robots.txt"], "output_format": "cdxj"},
    {"where": "status == 200 and year > 2000", "by": ["language"]},
    {"all_schemes": True, "name": "An archive", "archive_id": "https://archive.example/"},
    {"by": ["media-type", "month", "status"], "by_columns": True},
    {"by": ["year", "language"], "output_format": "cdxj", "statuses": ["404"]},
    {"statuses": ["200"], "media_types": ["image/png"], "since": "1999", "exclude": ["0"], "where": "year < 2020"},
]
CASES = [(policy, OPTIONS[number % len(OPTIONS)]) for number, policy in enumerate(POLICIES)]
# Where many SURTs have one key, a border lies inside it.
CASES += [("H1P0", {"by": ["media-type", "month"], "by_columns": True}), ("H1P0", {"by": ["status", "language"]})]
CASES += [("HxPx", options) for options in OPTIONS[1:3]]


def _said(result: ProfileResult) -> dict[str, Any]:
    """What a result says, but for how it came about and where it is."""
    differ = ("sorted_input", "spilled_bytes", "output")
    return {name: value for name, value in result.as_dict().items() if name not in differ}


@pytest.mark.parametrize(("policy", "options"), CASES, ids=[" ".join((p, *map(str, o.values()))) for p, o in CASES])
def test_a_profile_is_the_same_bytes_and_says_the_same(
    spark: Any, indexes: list[str], policy: str, options: dict[str, Any]
) -> None:
    here = profile(indexes, policy=policy, **options)
    there = spark_profile.profile(indexes, policy=policy, sizes=SMALL, **options)
    assert there.text == here.text
    assert _said(there) == _said(here)
    assert here.partial, "the invalid lines are reported"


def test_every_kind_of_input_gives_the_same(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = lines(11, 300)
    (tmp_path / "index.cdx").write_text(as_cdx(made[:100]))
    (tmp_path / "index.cdxj.gz").write_bytes(gzip.compress("\n".join(made[50:150]).encode()))
    (tmp_path / "urls.txt").write_text("http://a.com/x\nhttps://www.org.example/?q=1\nno url\nhttp://4.3.2.1/\n")
    pq.write_table(pa.table({"url_surtkey": [line.split()[0] for line in made[:60]]}), tmp_path / "table.parquet")
    record = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\ngone\r\n"
    head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.com/warc\r\n"
    head += f"WARC-Date: 2014-01-01T00:00:00Z\r\nContent-Length: {len(record)}\r\n\r\n"
    (tmp_path / "pages.warc.gz").write_bytes(gzip.compress(head.encode() + record + b"\r\n\r\n"))
    (tmp_path / "zipnum").mkdir()
    blocks = ["\n".join(sorted(made)[at : at + 25]).encode() + b"\n" for at in range(0, 300, 25)]
    (tmp_path / "zipnum" / "part-0.gz").write_bytes(b"".join(map(gzip.compress, blocks)))
    (tmp_path / "zipnum" / "cluster.idx").write_text("com,a)/ 20140103030321\tpart-0\t0\t9\t1\n")
    (tmp_path / "cut.cdxj.gz").write_bytes(gzip.compress("\n".join(made).encode())[:-400])
    (tmp_path / "empty.cdxj").write_bytes(b"")
    inputs = ["index.cdx", "index.cdxj.gz", "urls.txt", "table.parquet", "pages.warc.gz", "zipnum", "cut.cdxj.gz"]
    paths = [str(tmp_path / name) for name in (*inputs, "empty.cdxj")]
    here = profile(paths, by=["year", "media-type"])
    there = spark_profile.profile(paths, by=["year", "media-type"], sizes=SMALL)
    assert there.text == here.text
    assert _said(there) == _said(here)
    assert len(here.tally.damaged) == 1, "the truncated file is reported"
    command = ("profile", *paths, "--json", "-o")
    code, _ = said_by(*command, str(tmp_path / "here.ukvs"))
    assert said_by(*command, str(tmp_path / "there.ukvs"), "--engine", "spark")[0] == code == 3


LONG = '"' + "a b " * 60_000 + '"'


@pytest.mark.parametrize("size", [97, 1000])
def test_lines_across_the_borders_of_splits_are_read_once(spark: Any, tmp_path: Path, size: int) -> None:
    made = lines(4, 12 if size < 100 else 60)
    text = "\r\n".join(made).encode() + b"\n"
    if size == 1000:
        # A line that is longer than many splits and all that a task reads beyond its end.
        text += f'com,long)/ 20100101000000 {{"status": "200", "note": {LONG}}}\n'.encode()
        size = 20_000
    (tmp_path / "index.cdxj").write_bytes(text + NASTY)
    here = profile([tmp_path / "index.cdxj"])
    tiny = Sizes(split=size, smallest_split=size, block=512, range=1500, smallest_range=1500)
    there = spark_profile.profile([tmp_path / "index.cdxj"], sizes=tiny)
    assert there.text == here.text
    assert _said(there) == _said(here)
    assert here.tally.lines == len(made) + NASTY.count(b"\n") + 1 + (size == 20_000)


def test_what_spark_reads_and_writes_by_url_is_the_same(spark: Any, indexes: list[str], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [line.split(" ")[0] for line in lines(5, 200)]
    table = pa.table(
        {
            "url_surtkey": rows,
            "fetch_time": pa.array([1_300_000_000] * len(rows), pa.timestamp("s")),
            "fetch_status": [200] * len(rows),
        }
    )
    pq.write_table(table, tmp_path / "index odd.parquet")
    paths = [*indexes, str(tmp_path / "index odd.parquet")]
    here = profile(paths, by=["year"])
    urls = [Path(path).as_uri() for path in paths[:-1]] + [f"file://{paths[-1]}"]
    target = tmp_path / "out"
    target.mkdir()
    there = spark_profile.profile(urls, (target / "map.ukvs").as_uri(), by=["year"], sizes=SMALL)
    assert (target / "map.ukvs").read_bytes() == here.text
    assert there.as_dict()["skipped"] == here.as_dict()["skipped"]
    assert [problem.line for problem in there.tally.problems] == [problem.line for problem in here.tally.problems]
    spark_profile.profile(urls, (target / "parts").as_uri() + "/", by=["year"], sizes=SMALL)
    assert b"".join(part.read_bytes() for part in part_names(target / "parts")) == here.text


@pytest.mark.parametrize("truth", ["key", "uri"])
def test_an_evaluation_is_the_same(
    spark: Any, indexes: list[str], maps: list[str], tmp_path: Path, truth: Literal["key", "uri"]
) -> None:
    (tmp_path / "lookups.txt").write_text("\n".join(line.split(" ")[0] for line in lines(9, 200)) + "\n")
    (tmp_path / "small.ukvs").write_text("com,* 9/3\n*,no 0\n")
    tested, log = [maps[1], str(tmp_path / "small.ukvs")], str(tmp_path / "lookups.txt")
    problems: list[Any] = []
    here = evaluate(tested, indexes, [log], truth=truth, on_problem=problems.append)
    on_spark = partial(held_on_spark, sizes=SMALL)
    assert evaluate(tested, indexes, [log], truth=truth, holder=on_spark, on_problem=problems.append) == here
    assert 10 < here.held < here.lookups
    assert len(problems) % 2 == 0
    assert problems[: len(problems) // 2] == problems[len(problems) // 2 :]
    command = ("evaluate", *tested, *(f"--holdings={index}" for index in indexes), "--lookups", log, "--truth", truth)
    assert said_by(*command, "--json", "--engine", "spark") == said_by(*command, "--json")
    with pytest.raises(UsageError, match="this machine"):
        said_by("evaluate", "hdfs:///map.ukvs", "--holdings", indexes[0], "--lookups", log, "--engine", "spark")


@pytest.mark.parametrize("options", [(), ("--status", "2xx", "--top", "3", "--all-schemes")], ids=["all", "some"])
def test_stats_are_the_same(spark: Any, indexes: list[str], options: tuple[str, ...]) -> None:
    here = said_by("stats", *indexes, *options, "--json")
    chosen = selection(statuses=["2xx"]) if options else None
    there = spark_stats(
        indexes, top=3 if options else 10, sizes=SMALL, chosen=chosen, all_schemes="--all-schemes" in options
    )
    assert json.loads(json.dumps(there.as_dict())) == here[1]
    assert said_by("stats", *indexes, *options, "--json", "--engine", "spark") == here
    assert here[0] == 3, "the invalid lines are reported"
    assert here[1]["overview"]["ip_addresses"] == 1


class _Dying(reading.ScanTask):
    """Reads a split, but the first time kills the process it runs in."""

    __slots__ = ()
    marker = Path()

    def __call__(self, place: Any, read: Any) -> Iterator[bytes]:
        for block in super().__call__(place, read):
            _die_once(self.marker)
            yield block


class _DyingLater(spark_profile.RangeTask):
    """Writes a range, but the first time kills the process it runs in."""

    __slots__ = ()
    marker = Path()

    def __call__(self, number: int, pieces: Any) -> Iterator[bytes]:
        for text in super().__call__(number, pieces):
            _die_once(self.marker)
            yield text


def _die_once(marker: Path) -> None:
    if not marker.exists():
        marker.write_text(f"{os.getpid()}")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(("room", "name", "task"), [
    (reading, "ScanTask", _Dying), (spark_profile, "RangeTask", _DyingLater)
], ids=["reading", "writing"])  # fmt: skip
def test_a_worker_that_is_killed_costs_time_and_nothing_else(
    spark: Any, indexes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: Any, name: str, task: Any
) -> None:
    pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    task.marker = tmp_path / "killed"
    monkeypatch.setattr(room, name, task)
    there = spark_profile.profile(indexes, tmp_path / "map.ukvs", sizes=SMALL)
    here = profile(indexes)
    killed = int((tmp_path / "killed").read_text())
    assert killed != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(killed, 0)
    assert (tmp_path / "map.ukvs").read_bytes() == here.text
    assert _said(there) == _said(here), "nothing is counted twice"
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".recollect-")]


def test_what_is_refused_here_is_refused_there(spark: Any, indexes: list[str], maps: list[str], tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" * 9)
    for engine in (profile, spark_profile.profile):
        with pytest.raises(FormatError, match="nothing to profile"):
            engine([tmp_path / "picture.png"], tmp_path / "map.ukvs")
    for describe in (stats, spark_stats):
        with pytest.raises(UsageError, match="a map cannot be filtered"):
            describe(maps[:1], chosen=selection(statuses=["200"]))
    # The map of an earlier run is not an input of the next one.
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(indexes[0], folder)
    for _ in range(2):
        made = spark_profile.profile([folder], folder / "map.ukvs", sizes=SMALL)
    assert (folder / "map.ukvs").read_bytes() == profile(indexes[:1]).text
    assert len(made.sources) == 1


def test_strict_stops_with_the_same_words(spark: Any, indexes: list[str]) -> None:
    with pytest.raises(FormatError) as here:
        profile(indexes, strict=True)
    with pytest.raises(FormatError) as there:
        spark_profile.profile(indexes, strict=True, sizes=SMALL)
    assert str(there.value) == str(here.value)
