"""Maps on both engines: parts, compaction, merging and statistics give the same here and on Spark, run for real."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import recollect.engines.spark.profile as spark_profile
from engine_world import SMALL, lines, said_by
from recollect.engines.mapplans import MergePlan, WeightsPlan
from recollect.engines.spark.budget import compact_by_budget as spark_budget
from recollect.engines.spark.engine import run_plan
from recollect.engines.spark.stats import stats as spark_stats
from recollect.errors import RecollectError, UsageError
from recollect.formats.logs import LogEntry
from recollect.formats.parts import part_names
from recollect.formats.ukvs import Header, Writer
from recollect.formats.ukvs.faults import validate
from recollect.maps.lookup import open_map
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.maps.publish import publish
from recollect.maps.samples import Observed, records_of
from recollect.profiles.compaction.budget import Budget, TooSmall, compact_by_budget
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.stats import stats

# One process has the Spark that all share.
pytestmark = pytest.mark.xdist_group("spark")


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
    assert [fault for fault in validate(str(tmp_path / "parts")) if fault.level == "error"] == []
    one, many = open_map(tmp_path / "whole.ukvs"), open_map(tmp_path / "parts")
    uris = [line.split(" ")[0] for line in lines(1, 300)] + ["http://nowhere.example/", "http://a.com:8080/a"]
    assert [many.lookup(uri) for uri in uris] == [one.lookup(uri) for uri in uris]
    for source, target in (("whole.ukvs", "a.ukvs"), ("parts", "b.ukvs")):
        merge_maps([tmp_path / source], tmp_path / target)
        publish(str(tmp_path / source), tmp_path / f"{target}-web", updated_at="2024-01-01T00:00:00Z")
    assert (tmp_path / "a.ukvs").read_bytes() == (tmp_path / "b.ukvs").read_bytes()
    by_url = spark_stats([(tmp_path / "parts").as_uri()], sizes=SMALL).as_dict()
    assert by_url["top_uri_rs"] == stats([tmp_path / "parts"]).as_dict()["top_uri_rs"]
    for name in (".well-known/mementomap", "mementomap/map.ukvs.gz"):
        assert (tmp_path / "a.ukvs-web" / name).read_bytes() == (tmp_path / "b.ukvs-web" / name).read_bytes()


def test_a_folder_with_more_than_a_map_in_it_is_not_replaced(spark: Any, indexes: list[str], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    for output in (f"{mine}/", f"{mine.as_uri()}/", mine.as_uri()):
        with pytest.raises(UsageError, match="folder"):
            spark_profile.profile(indexes, output, sizes=SMALL)
        assert (mine / "thesis.txt").read_text() == "years of work"
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]
    (mine / "thesis.txt").unlink()
    for output in (f"{mine}/", f"{mine.as_uri()}/", f"{mine}/"):  # empty, then an earlier map, with Spark's checksums
        spark_profile.profile(indexes, output, sizes=SMALL)
        assert (mine / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("weights", "fit"),
    [(Weights(), False), (Weights(host_weight=0.2, path_weight=0.1, rollup_tlds=True), False), (Weights(), True)],
    ids=["published", "top-level domains", "fitted"],
)
def test_compaction_by_weights_is_the_same(
    spark: Any, maps: list[str], tmp_path: Path, weights: Weights, fit: bool
) -> None:
    here = compact_by_weights(maps[0], tmp_path / "here.ukvs", weights, fit=fit)
    there = run_plan(WeightsPlan(maps[0], weights, fit), f"{tmp_path}/there/", sizes=SMALL)
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
    there = spark_budget(maps[0], tmp_path / f"there.{suffix}", Budget(**limit), lookups=lookups)
    assert (tmp_path / f"there.{suffix}").read_bytes() == (tmp_path / f"here.{suffix}").read_bytes()
    assert there == here
    assert here.rolled_up == ("tlds" if limit == {"max_keys": 3} else "")


@pytest.mark.parametrize(
    ("limit", "suffix", "log"),
    [
        ({"max_bytes": 4000}, "ukvs", False),
        ({"max_bytes": 2500}, "ukvs.zst", True),
        ({"max_bytes": 2500}, "ukvs.gz", False),
        ({"max_cost": 0.01}, "ukvs", False),
        ({"min_accuracy": 0.9}, "ukvs.zst", True),
    ],
    ids=str,
)
def test_compaction_with_sets_is_the_same(
    spark: Any, maps: list[str], tmp_path: Path, limit: dict[str, Any], suffix: str, log: bool
) -> None:
    uris = [f"http://{host}.com/{path}" for host in ("a", "www.a", "a-b", "big", "none") for path in ("1/a1", "7", "")]
    lookups = [LogEntry(uri, 1 + number % 3) for number, uri in enumerate(uris * 3)] if log else None
    budget = Budget(**limit, sets=True)
    here = compact_by_budget(maps[0], tmp_path / f"here.{suffix}", budget, lookups=lookups)
    there = spark_budget(maps[0], tmp_path / f"there.{suffix}", budget, lookups=lookups)
    assert (tmp_path / f"there.{suffix}").read_bytes() == (tmp_path / f"here.{suffix}").read_bytes()
    assert there == here
    assert here.sets


def test_compaction_with_sets_into_parts_and_what_it_refuses(spark: Any, maps: list[str], tmp_path: Path) -> None:
    budget = Budget(max_bytes=4000, sets=True)
    compact_by_budget(maps[0], tmp_path / "here.ukvs", budget)
    spark_budget(maps[0], tmp_path / "parts", budget, parts=True)
    parts = json.loads((tmp_path / "parts" / "manifest.json").read_text())["parts"]
    joined = b"".join((tmp_path / "parts" / part["name"]).read_bytes() for part in parts)
    assert joined == (tmp_path / "here.ukvs").read_bytes()
    with pytest.raises(TooSmall, match="no map"):
        spark_budget(maps[0], tmp_path / "no.ukvs", Budget(max_bytes=20, sets=True))
    assert not (tmp_path / "no.ukvs").exists()


def test_compaction_by_budget_of_a_decomposed_map_with_a_log_and_in_parts(
    spark: Any, indexes: list[str], tmp_path: Path
) -> None:
    profile(indexes, tmp_path / "map.ukvs", by=["year"])
    (tmp_path / "log.txt").write_text("http://a.com/b\nnot a uri\nhttp://skewed.com/img/zz\n" * 4)
    command = ("compact", str(tmp_path / "map.ukvs"), "--lookups", str(tmp_path / "log.txt"), "--max-cost", "5%")
    here = said_by(*command, "-o", str(tmp_path / "here.ukvs"), "--json")
    there = said_by(*command, "-o", f"{tmp_path}/there/", "--json", "--engine", "spark")
    assert (here[1].pop("seconds"), there[1].pop("seconds")) > (0, 0)
    assert there == here
    text = b"".join(part.read_bytes() for part in part_names(tmp_path / "there"))
    assert text == (tmp_path / "here.ukvs").read_bytes()


def test_spark_refuses_maps_of_samples(spark: Any, maps: list[str], tmp_path: Path) -> None:
    sample = tmp_path / "sample.ukvs"
    with Writer(sample, Header(meta={"scope": "sample"})) as writer:
        for record in records_of(Observed({b"com,a)/": True, b"com,b)/": False})):
            writer.write(record)
    output = tmp_path / "no.ukvs"
    for refused in (
        lambda: run_plan(MergePlan([maps[0], str(sample)], MergeOptions()), output, sizes=SMALL),
        lambda: run_plan(WeightsPlan(str(sample), Weights()), output, sizes=SMALL),
        lambda: spark_budget(sample, output, Budget(max_keys=90)),
    ):
        with pytest.raises(UsageError, match="map of a sample cannot be"):
            refused()
    assert not output.exists()


def test_budgets_that_cannot_be_met_on_spark_are_refused_in_plain_words(
    spark: Any, maps: list[str], tmp_path: Path
) -> None:
    with pytest.raises(TooSmall) as here:
        compact_by_budget(maps[0], tmp_path / "no.ukvs", Budget(max_bytes=20))
    with pytest.raises(TooSmall) as there:
        spark_budget(maps[0], tmp_path / "no.ukvs", Budget(max_bytes=20))
    assert str(there.value) == str(here.value)
    (tmp_path / "folder").mkdir()
    with pytest.raises(RecollectError, match="it is a folder"):
        spark_budget(maps[0], tmp_path / "folder", Budget(max_keys=90))
    with pytest.raises(UsageError, match="folder of parts"):
        run_plan(WeightsPlan(maps[0], Weights()), f"{maps[0]}/", sizes=SMALL)
    assert not list(tmp_path.glob(".recollect-*"))


@pytest.mark.parametrize("wide", ["", "com,* 9/3\n", "* 99/9\n"], ids=["domains", "a top-level domain", "everything"])
def test_a_merge_is_the_same(spark: Any, maps: list[str], tmp_path: Path, wide: str) -> None:
    (tmp_path / "wild.ukvs").write_text(wide + "com,a)/* 5/2\ncom,a,* 7/3\ncom,a-b)/* 0\ncom,ab)/a/* 3/1\n")
    if wide == "com,* 9/3\n":
        (tmp_path / "wild.ukvs").write_text("com,* 9/3\ncom,a)/* 5/2\ncom,a,* 7/3\n")
    sources = [*maps, str(tmp_path / "wild.ukvs")]
    options = MergeOptions(spread=wide == "", updated_at="2024-01-01T00:00:00Z")
    here = merge_maps(sources, tmp_path / "here.ukvs", options)
    there = run_plan(MergePlan(sources, options), tmp_path / "there.ukvs", sizes=SMALL)
    assert (tmp_path / "there.ukvs").read_bytes() == (tmp_path / "here.ukvs").read_bytes()
    assert (there.records, there.keys, there.voids_dropped) == (here.records, here.keys, here.voids_dropped)


def test_stats_of_a_map_are_the_same(spark: Any, maps: list[str], tmp_path: Path) -> None:
    (tmp_path / "odd.ukvs").write_bytes(Path(maps[0]).read_bytes() + b"zz,x)/a 3\nzz,x)/b 4/\nzz,x)/c no\n")
    for path in (*maps, str(tmp_path / "odd.ukvs")):
        here, there = stats([path]).as_dict(), spark_stats([path], sizes=SMALL).as_dict()
        # A task knows its range of lines, not their numbers in the file, and names none.
        numbered = [re.sub(r"ukvs:\d+:", "ukvs:", problem) for problem in here.pop("problems")]
        assert there.pop("problems") == numbered
        assert there == here
