"""Every command on a real standalone cluster whose workers do not see the driver's files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine_world import lines, write_indexes
from recollect.formats.parts import part_names
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.profiles.compaction.budget import Budget, compact_by_budget
from recollect.profiles.compaction.weights import compact_by_weights
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.evaluate import evaluate
from recollect.profiles.statistics.stats import stats
from spark_cluster import SparkCluster, spark_cluster

pytestmark = pytest.mark.xdist_group("spark-cluster")
UPDATED = datetime(2024, 1, 1, tzinfo=UTC)
# Commands one after the other in one session, as a notebook would: starting Spark takes longest.
PROGRAM = """
import contextlib, io, json, sys
from recollect.cli.main import run
from recollect.engines.spark.session import Cluster, session
master, conf, commands, answers = sys.argv[1:]
output = {}
with session(Cluster(master, json.loads(conf))):
    for name, command in json.loads(commands).items():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([*command, "--engine", "spark"])
        output[name] = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
open(answers, "w").write(json.dumps(output))
"""


@dataclass(frozen=True)
class World:
    """A cluster; `driver` is seen by the driver alone, `shared` by all. The driver works in `shared`."""

    cluster: SparkCluster
    driver: Path
    shared: Path
    indexes: list[str]

    def run(self, commands: dict[str, list[str]], **conf: str) -> dict[str, Any]:
        """Commands as people type them, on the cluster; what each says, and its exit code."""
        answers = self.driver / "answers.json"
        given = [self.cluster.master, json.dumps({**self.cluster.conf, **conf}), json.dumps(commands), str(answers)]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *given],
            cwd=self.shared,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return dict(json.loads(answers.read_text()))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="recollect-cluster-", ignore_cleanup_errors=True) as place:
        shared = Path(place) / "shared"
        shared.mkdir()
        with spark_cluster(Path(place) / "spark", hidden=Path(place) / "driver") as cluster:
            yield World(cluster, Path(place) / "driver", shared, write_indexes(shared))


@pytest.fixture(scope="module")
def output(world: World) -> dict[str, Any]:
    """All commands, run once."""
    shared, driver = world.shared, world.driver
    profile(world.indexes[:1], shared / "one.ukvs", updated_at=UPDATED)
    profile(world.indexes[1:], shared / "two.ukvs", updated_at=UPDATED)
    (driver / "lookups.txt").write_text("\n".join(line.split(" ")[0] for line in lines(9, 60)) + "\n")
    (driver / "mine.cdxj").write_text("\n".join(lines(3, 20)) + "\n")
    (driver / "no").mkdir()
    relative = [Path(index).name for index in world.indexes]
    log = str(driver / "lookups.txt")
    commands = {
        "profile": ["profile", *relative, "-o", f"{driver}/map.ukvs.gz", "--updated-at", "20240101000000", "--json"],
        "merge": ["merge", "one.ukvs", "two.ukvs", "-o", f"{driver}/merged.ukvs"],
        "weights": ["compact", "one.ukvs", "-o", f"{driver}/weights/"],
        "weights by URL": ["compact", "one.ukvs", "-o", f"{shared.as_uri()}/weights/"],
        "keys": ["compact", "one.ukvs", "-o", f"{driver}/keys.ukvs", "--max-keys", "90"],
        "keys by URL": ["compact", "one.ukvs", "-o", f"{shared.as_uri()}/keys.ukvs.gz", "--max-keys", "90"],
        "bytes": ["compact", "one.ukvs", "-o", f"{driver}/bytes.ukvs", "--max-bytes", "3000"],
        "bytes zst": ["compact", "one.ukvs", "-o", f"{driver}/bytes.ukvs.zst", "--max-bytes", "900"],
        "stats": ["stats", *relative, "--json"],
        "evaluate": ["evaluate", "one.ukvs", "--holdings", relative[0], "--lookups", log, "--json"],
        "unseen input": ["profile", f"{driver}/mine.cdxj", "-o", f"{driver}/no/map.ukvs"],
        "unseen output": ["profile", relative[0], "-o", f"{driver.as_uri()}/no/map/"],
    }
    return world.run(commands)


def test_the_map_of_a_profile_of_relative_inputs_comes_to_the_driver(world: World, output: dict[str, Any]) -> None:
    assert output["profile"]["code"] == 3, "the invalid lines are reported"
    here = profile(world.indexes, updated_at=UPDATED)
    assert gzip.decompress((world.driver / "map.ukvs.gz").read_bytes()) == here.text
    assert not list(world.driver.glob(".recollect-*"))


def test_maps_are_merged_and_compacted_as_here(world: World, output: dict[str, Any]) -> None:
    shared, driver, expected = world.shared, world.driver, world.driver / "expected.ukvs"
    merge_maps([shared / "one.ukvs", shared / "two.ukvs"], expected, MergeOptions(updated_at="2024-01-01T00:00:00Z"))
    assert _lines(driver / "merged.ukvs") == _lines(expected)
    compact_by_weights(shared / "one.ukvs", expected)
    for folder in (driver / "weights", shared / "weights"):
        assert b"".join(part.read_bytes() for part in part_names(folder)) == expected.read_bytes()
    compact_by_budget(shared / "one.ukvs", expected, Budget(max_keys=90))
    assert (driver / "keys.ukvs").read_bytes() == expected.read_bytes()
    assert gzip.decompress((shared / "keys.ukvs.gz").read_bytes()) == expected.read_bytes()
    compact_by_budget(shared / "one.ukvs", expected, Budget(max_bytes=3000))
    assert (driver / "bytes.ukvs").read_bytes() == expected.read_bytes()
    assert (driver / "bytes.ukvs.zst").stat().st_size <= 900
    assert not list(driver.glob(".recollect-*")) + list(shared.glob(".recollect-*"))


def _lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines() if not line.startswith(b"!")]


def test_statistics_and_evaluations_say_what_they_say_here(world: World, output: dict[str, Any]) -> None:
    there = json.loads(output["stats"]["out"])
    here = json.loads(json.dumps(stats(world.indexes).as_dict()))
    assert there["overview"] == here["overview"] and there["top_uri_rs"] == here["top_uri_rs"]
    log = str(world.driver / "lookups.txt")
    report = evaluate([str(world.shared / "one.ukvs")], world.indexes[:1], [log])
    found = json.loads(output["evaluate"]["out"])
    assert (found["held"], found["holdings_keys"]) == (report.held, report.holdings_keys)


def test_what_workers_do_not_see_is_refused_before_the_work(world: World, output: dict[str, Any]) -> None:
    if not world.cluster.separate:
        pytest.skip("this system does not let a process have its own view of files (unshare)")
    assert output["unseen input"]["code"] == output["unseen output"]["code"] == 2
    assert "workers do not have this file" in output["unseen input"]["err"]
    assert "mine.cdxj" in output["unseen input"]["err"]
    assert "workers do not share this folder" in output["unseen output"]["err"]
    assert not list((world.driver / "no").iterdir())


def test_a_packed_environment_reaches_the_workers(world: World) -> None:
    # As `venv-pack` makes them, but for its size: a folder with bin/python, in an archive.
    python, mark = world.driver / "python", world.shared / "the packed Python ran"
    python.write_text(f'#!/bin/sh\ntouch "{mark}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with tarfile.open(world.driver / "env.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    conf = {"spark.archives": f"{world.driver}/env.tar.gz#env", "spark.pyspark.python": "./env/bin/python"}
    output = world.run({"stats": ["stats", Path(world.indexes[0]).name, "--json"]}, **conf)
    assert output["stats"]["code"] == 0, output["stats"]["err"]
    assert mark.exists()
