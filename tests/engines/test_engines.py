"""One suite over both engines: the same inputs and options give the same bytes here and on Spark, run for real."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner

from recollect.cli.main import cli
from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.logs import LogEntry
from recollect.formats.parts import part_names
from recollect.formats.ukvs import validate
from recollect.profiles.compaction.budget import Budget, TooSmall, compact_by_budget
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.indexes.profile import profile
from recollect.profiles.indexes.select import selection
from recollect.profiles.maps.lookup import open_map
from recollect.profiles.maps.merge import MergeOptions, merge_maps
from recollect.profiles.maps.publish import publish
from recollect.profiles.statistics.evaluate import evaluate
from recollect.profiles.statistics.stats import stats

pyspark = pytest.importorskip("pyspark", reason="NO SPARK: pip install 'recollect[spark]' to test the Spark engine")
if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
    pytest.skip("NO JAVA: install Java 17 to test the Spark engine", allow_module_level=True)

import recollect.spark.profile as spark_profile  # noqa: E402 - only where Spark is
from recollect.spark import reading  # noqa: E402
from recollect.spark.budget import compact_by_budget as spark_budget  # noqa: E402
from recollect.spark.compact import compact_by_weights as spark_compact  # noqa: E402
from recollect.spark.evaluate import held_on_spark  # noqa: E402
from recollect.spark.exchange import Sizes  # noqa: E402
from recollect.spark.merge import merge as spark_merge  # noqa: E402
from recollect.spark.session import Cluster, session  # noqa: E402
from recollect.spark.stats import stats as spark_stats  # noqa: E402

# Starting Spark takes longer than all that is tested with it, so one process does it all.
pytestmark = pytest.mark.xdist_group("spark")

# So small that a few hundred kilobytes are cut into several splits, blocks and ranges.
SMALL = Sizes(split=1 << 16, smallest_split=1 << 16, block=1 << 12, range=50_000, smallest_range=50_000)
HOSTS = [
    "com,a",
    "com,a-b",
    "com,a:8080",
    "com,a,www",
    "com,a1",
    "com,ab",
    "org,x",
    "net,y,z",
    "4,3,2,1",
    "de,xn--bcher-kva",
]
NASTY = (
    b"not a line at all\n"
    b'com,a)/\xff\xfe/\xe9 20100101000000 {"mime": "text/html", "status": "200"}\r\n'
    b"\n"
    b'dns:example.com 20100101000000 {"mime": "text/dns", "status": "-"}\n'
    b'com,a)/tab\there 20100101000000 {"mime": "text/html"\n'
    b'com,a)/cr\rhere 20100101000000 {"mime": "text/html", "status": "200"}\n'
    b'com,a)/nul\x00 20100101000000 {"mime": "image/png", "status": "404"}\n'
    b'com,a)/?%E2%82%AC=\xe2\x82\xac 20111231235959 {"mime": "warc/revisit", "status": "-"}'
)


def _lines(seed: int, count: int) -> list[str]:
    """Captures, more than a third of them of one host, in no order."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        host = "com,skewed" if dice.random() < 0.4 else dice.choice(HOSTS)
        path = "/".join(
            dice.choice(["a", "a-b", "b", "img", "robots.txt", "0", "%20"]) for _ in range(dice.randint(0, 4))
        )
        query = f"?q={dice.randint(0, 30)}" if dice.random() < 0.5 else ""
        time = f"{dice.randint(1996, 2024)}0{dice.randint(1, 9)}10120000"
        fields = {"mime": dice.choice(["text/html", "image/png", "-"]), "status": dice.choice(["200", "404", "-"])}
        made.append(f"{host})/{path}{query} {time} {json.dumps(fields)}")
    return made


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with session(Cluster("local[2]", {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))})) as started:
        yield started


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """An unsorted index, a nasty one, and a compressed CDX."""
    folder = tmp_path_factory.mktemp("indexes")
    (folder / "one.cdxj").write_text("\n".join(_lines(1, 1800)) + "\n")
    (folder / "nasty.cdxj").write_bytes("\n".join(sorted(_lines(2, 60))).encode() + b"\n" + NASTY)
    rows = [line.split(" ", 2) for line in sorted(_lines(3, 300))]
    cdx = [
        f"{surt} {time} http://x/ {json.loads(block)['mime']} {json.loads(block)['status']} D - - 1 2 w"
        for surt, time, block in rows
    ]
    (folder / "two.cdx.gz").write_bytes(
        gzip.compress(("\n".join([" CDX N b a m s k r M S V g", *cdx]) + "\n").encode())
    )
    return [str(folder / name) for name in ("one.cdxj", "nasty.cdxj", "two.cdx.gz")]


@pytest.fixture(scope="module")
def maps(indexes: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Maps with children enough to roll up, voids, and wildcards."""
    folder = tmp_path_factory.mktemp("maps")
    dice = random.Random(7)
    keys = {
        f"{host})/{dice.randint(0, 60)}/{dice.choice('abc')}{dice.randint(0, 9)}"
        for host in HOSTS[:8]
        for _ in range(400)
    }
    keys |= {f"com,big,s{number})/" for number in range(120)} | {f"com,z{number})/x" for number in range(90)}
    text = "".join(f"{key} {1 + len(key) % 7}/{1 + len(key) % 3}\n" for key in sorted(keys))
    text += "zz,voided)/* 0\n"
    header = profile([indexes[0]]).header.encode()
    (folder / "one.ukvs").write_bytes(header + text.encode())
    profile(indexes, folder / "two.ukvs")
    return [str(folder / "one.ukvs"), str(folder / "two.ukvs")]


CASES: list[dict[str, Any]] = [
    {},
    {"policy": "H1P0"},
    {"policy": "H3P1", "statuses": ["2xx", "-"], "exclude": ["robots.txt"]},
    {"policy": "URIR", "media_types": ["text/*"]},
    {"policy": "DDom", "since": "2005", "until": "2012"},
    {"policy": "DQry", "where": "status == 200 and year > 2000"},
    {"by": ["year", "status"]},
    {"by": ["media-type", "month"], "by_columns": True, "policy": "H1P0"},
    {"by": ["status", "language"], "policy": "H1P0", "output_format": "cdxj"},
    {"all_schemes": True, "output_format": "cdxj", "name": "An archive", "archive_id": "https://archive.example/"},
]


@pytest.mark.parametrize("options", CASES, ids=lambda options: " ".join(map(str, options.values())) or "plain")
def test_a_profile_made_by_spark_is_the_same_bytes_and_says_the_same(
    spark: Any, indexes: list[str], options: dict[str, Any]
) -> None:
    here = profile(indexes, **options)
    there = spark_profile.profile(indexes, sizes=SMALL, **options)
    assert there.text == here.text
    differ = ("sorted_input", "spilled_bytes")
    assert {k: v for k, v in there.as_dict().items() if k not in differ} == {
        k: v for k, v in here.as_dict().items() if k not in differ
    }
    assert here.partial, "the nasty lines are told of"


def test_what_spark_reads_and_writes_by_url_is_the_same(spark: Any, indexes: list[str], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [line.split(" ")[0] for line in _lines(5, 200)]
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


def test_parts_are_one_map_for_lookup_merge_validate_and_publish(
    spark: Any, indexes: list[str], tmp_path: Path
) -> None:
    whole = profile(indexes, tmp_path / "whole.ukvs")
    spark_profile.profile(indexes, f"{tmp_path}/parts/", sizes=SMALL)
    parts = part_names(tmp_path / "parts")
    assert len(parts) > 2, "a header, and more ranges than one"
    assert sorted(parts) == parts
    text = (tmp_path / "whole.ukvs").read_bytes()
    assert b"".join(part.read_bytes() for part in parts) == text
    manifest = json.loads((tmp_path / "parts" / "manifest.json").read_bytes())
    assert manifest["keys"] == whole.totals.keys == sum(part["keys"] for part in manifest["parts"])
    assert [fault for fault in validate(str(tmp_path / "parts")) if fault.severity == "error"] == []
    one, many = open_map(tmp_path / "whole.ukvs"), open_map(tmp_path / "parts")
    uris = [line.split(" ")[0] for line in _lines(1, 300)] + ["http://nowhere.example/", "http://a.com:8080/a"]
    assert [many.lookup(uri) for uri in uris] == [one.lookup(uri) for uri in uris]
    for source, target in (("whole.ukvs", "a.ukvs"), ("parts", "b.ukvs")):
        merge_maps([tmp_path / source], tmp_path / target)
        publish(str(tmp_path / source), tmp_path / f"{target}-web", updated_at="2024-01-01T00:00:00Z")
    assert (tmp_path / "a.ukvs").read_bytes() == (tmp_path / "b.ukvs").read_bytes()
    for name in (".well-known/mementomap", "mementomap/map.ukvs.gz"):
        assert (tmp_path / "a.ukvs-web" / name).read_bytes() == (tmp_path / "b.ukvs-web" / name).read_bytes()


@pytest.mark.parametrize(
    ("weights", "fit"),
    [(Weights(), False), (Weights(host_weight=0.2, path_weight=0.1, rollup_tlds=True), False), (Weights(), True)],
    ids=["published", "top-level domains", "fitted"],
)
def test_compaction_by_weights_is_the_same(
    spark: Any, maps: list[str], tmp_path: Path, weights: Weights, fit: bool
) -> None:
    here = compact_by_weights(maps[0], tmp_path / "here.ukvs", weights, fit=fit)
    there = spark_compact(maps[0], f"{tmp_path}/there/", weights, fit=fit, sizes=SMALL)
    parts = part_names(tmp_path / "there")
    assert b"".join(part.read_bytes() for part in parts) == (tmp_path / "here.ukvs").read_bytes()
    assert there == here
    assert here.rollups > 3


@pytest.mark.parametrize(
    ("limit", "suffix", "log"),
    [
        ({"max_cost": 0.02}, "ukvs", False),
        ({"max_keys": 60, "rollup_tlds": True}, "ukvs", False),
        ({"max_keys": 3}, "ukvs", False),
        ({"max_keys": 250}, "ukvs", True),
        ({"max_bytes": 900}, "ukvs.gz", False),
        ({"min_accuracy": 0.8}, "ukvs", True),
    ],
    ids=str,
)
def test_compaction_by_budget_is_the_same(
    spark: Any, maps: list[str], tmp_path: Path, limit: dict[str, Any], suffix: str, log: bool
) -> None:
    uris = [f"http://{host}.com/{path}" for host in ("a", "www.a", "a-b", "big", "none") for path in ("1/a1", "7", "")]
    lookups = [LogEntry(uri, 1 + number % 3) for number, uri in enumerate(uris * 3)] if log else None
    here = compact_by_budget(maps[0], tmp_path / f"here.{suffix}", Budget(**limit), lookups=lookups)
    there = spark_budget(maps[0], tmp_path / f"there.{suffix}", Budget(**limit), lookups=lookups, sizes=SMALL)
    assert (tmp_path / f"there.{suffix}").read_bytes() == (tmp_path / f"here.{suffix}").read_bytes()
    assert there == here
    assert here.rolled_up == ("tlds" if limit == {"max_keys": 3} else "")


def test_compaction_by_budget_of_a_decomposed_map_with_a_log_and_in_parts(
    spark: Any, indexes: list[str], tmp_path: Path
) -> None:
    profile(indexes, tmp_path / "map.ukvs", by=["year"])
    (tmp_path / "log.txt").write_text("http://a.com/b\nnot a uri\nhttp://skewed.com/img/zz\n" * 4)
    command = ("compact", str(tmp_path / "map.ukvs"), "--lookups", str(tmp_path / "log.txt"), "--max-cost", "5%")
    here = _json(*command, "-o", str(tmp_path / "here.ukvs"), "--json")
    there = _json(*command, "-o", f"{tmp_path}/there/", "--json", "--engine", "spark")
    assert (here[1].pop("seconds"), there[1].pop("seconds")) > (0, 0)
    assert there == here
    text = b"".join(part.read_bytes() for part in part_names(tmp_path / "there"))
    assert text == (tmp_path / "here.ukvs").read_bytes()


def test_budgets_that_cannot_be_met_on_spark_are_refused_in_plain_words(
    spark: Any, maps: list[str], tmp_path: Path
) -> None:
    with pytest.raises(TooSmall) as here:
        compact_by_budget(maps[0], tmp_path / "no.ukvs", Budget(max_bytes=20))
    with pytest.raises(TooSmall) as there:
        spark_budget(maps[0], tmp_path / "no.ukvs", Budget(max_bytes=20), sizes=SMALL)
    assert str(there.value) == str(here.value)
    with pytest.raises(UsageError, match="uncompressed"):
        spark_budget(maps[0], f"{tmp_path.as_uri()}/no.ukvs.gz", Budget(max_keys=90), sizes=SMALL)
    (tmp_path / "unsorted.ukvs").write_text("com,b)/ 1/1\ncom,a)/ 1/1\ncom,a)/ 2/1\n")
    with pytest.raises(RecollectError, match="recollect merge"):
        spark_budget(tmp_path / "unsorted.ukvs", tmp_path / "no.ukvs", Budget(max_keys=90), sizes=SMALL)


@pytest.mark.parametrize("wide", ["", "com,* 9/3\n", "* 99/9\n"], ids=["domains", "a top-level domain", "everything"])
def test_a_merge_is_the_same(spark: Any, maps: list[str], tmp_path: Path, wide: str) -> None:
    (tmp_path / "wild.ukvs").write_text(wide + "com,a)/* 5/2\ncom,a,* 7/3\ncom,a-b)/* 0\ncom,ab)/a/* 3/1\n")
    if wide == "com,* 9/3\n":
        (tmp_path / "wild.ukvs").write_text("com,* 9/3\ncom,a)/* 5/2\ncom,a,* 7/3\n")
    sources = [*maps, str(tmp_path / "wild.ukvs")]
    options = MergeOptions(spread=wide == "", updated_at="2024-01-01T00:00:00Z")
    here = merge_maps(sources, tmp_path / "here.ukvs", options)
    there = spark_merge(sources, tmp_path / "there.ukvs", options, sizes=SMALL)
    assert (tmp_path / "there.ukvs").read_bytes() == (tmp_path / "here.ukvs").read_bytes()
    assert (there.records, there.keys, there.voids_dropped) == (here.records, here.keys, here.voids_dropped)


@pytest.mark.parametrize("truth", ["key", "uri"])
def test_an_evaluation_is_the_same(
    spark: Any, indexes: list[str], maps: list[str], tmp_path: Path, truth: Literal["key", "uri"]
) -> None:
    (tmp_path / "lookups.txt").write_text("\n".join(line.split(" ")[0] for line in _lines(9, 200)) + "\n")
    (tmp_path / "small.ukvs").write_text("com,* 9/3\n*,no 0\n")
    tested, log = [maps[1], str(tmp_path / "small.ukvs")], str(tmp_path / "lookups.txt")
    told: list[Any] = []
    here = evaluate(tested, indexes, [log], truth=truth, on_problem=told.append)
    on_spark = partial(held_on_spark, sizes=SMALL)
    assert evaluate(tested, indexes, [log], truth=truth, holder=on_spark, on_problem=told.append) == here
    assert 10 < here.held < here.lookups
    assert len(told) % 2 == 0
    assert told[: len(told) // 2] == told[len(told) // 2 :]
    command = ("evaluate", *tested, *(f"--holdings={index}" for index in indexes), "--lookups", log, "--truth", truth)
    assert _json(*command, "--json", "--engine", "spark") == _json(*command, "--json")
    with pytest.raises(UsageError, match="this machine"):
        _json("evaluate", "hdfs:///map.ukvs", "--holdings", indexes[0], "--lookups", log, "--engine", "spark")


def _json(*arguments: str) -> tuple[int, dict[str, Any]]:
    """What a command says for programs, and its exit code."""
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value or 0, json.loads(done.stdout)


@pytest.mark.parametrize(
    "options", [(), ("--status", "2xx", "--top", "3", "--where", "year > 2000")], ids=["all", "some"]
)
def test_stats_are_the_same(spark: Any, indexes: list[str], options: tuple[str, ...]) -> None:
    here = _json("stats", *indexes, *options, "--json")
    there = spark_stats(indexes, top=int(options[3]) if options else 10, sizes=SMALL, chosen=_chosen(options))
    assert json.loads(json.dumps(there.as_dict())) == here[1]
    assert _json("stats", *indexes, *options, "--json", "--engine", "spark") == here
    assert here[0] == 3, "the nasty lines are told of"
    assert here[1]["overview"]["ip_addresses"] == 1


def _chosen(options: tuple[str, ...]) -> Any:
    return selection(statuses=["2xx"], where="year > 2000") if options else None


def test_stats_of_a_map_are_the_same(spark: Any, maps: list[str], tmp_path: Path) -> None:
    (tmp_path / "odd.ukvs").write_bytes(Path(maps[0]).read_bytes() + b"zz,x)/a 3\nzz,x)/b 4/\nzz,x)/c no\n")
    for path in (*maps, str(tmp_path / "odd.ukvs")):
        here, there = stats([path]).as_dict(), spark_stats([path], sizes=SMALL).as_dict()
        # A task knows its range of lines, not their numbers in the file.
        assert len(there.pop("problems")) == len(here.pop("problems"))
        assert there == here


class _Dying(reading.ScanTask):
    """Reads a split, but the first time kills the process it runs in."""

    __slots__ = ()
    marker = Path()

    def __call__(self, place: Any, read: Any) -> Iterator[bytes]:
        for block in super().__call__(place, read):
            if not self.marker.exists():
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield block


def test_a_worker_that_is_killed_costs_time_and_nothing_else(
    spark: Any, indexes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    _Dying.marker = tmp_path / "killed"
    monkeypatch.setattr(reading, "ScanTask", _Dying)
    there = spark_profile.profile(indexes, tmp_path / "map.ukvs", sizes=SMALL)
    here = profile(indexes)
    assert _Dying.marker.exists()
    assert (tmp_path / "map.ukvs").read_bytes() == here.text
    assert there.as_dict()["skipped"] == here.as_dict()["skipped"], "nothing is counted twice"
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".recollect-")]


def test_strict_stops_with_the_same_words(spark: Any, indexes: list[str]) -> None:
    with pytest.raises(FormatError) as here:
        profile(indexes, strict=True)
    with pytest.raises(FormatError) as there:
        spark_profile.profile(indexes, strict=True, sizes=SMALL)
    assert str(there.value) == str(here.value)
