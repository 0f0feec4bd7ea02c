"""One Spark for all tests of both engines: starting it takes longer than most of what is tested with it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from recollect.engines.spark.session import Cluster, session

    settings = {
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        # What compiles slowly and well is for jobs that take longer.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }
    with session(Cluster("local[2]", settings)) as started:
        yield started


@pytest.fixture(scope="session")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    from engine_world import write_indexes

    return write_indexes(tmp_path_factory.mktemp("indexes"))


@pytest.fixture(scope="session")
def maps(indexes: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Maps with children enough to roll up, voids, and wildcards."""
    from engine_world import HOSTS
    from recollect.profiles.indexes.profile import profile

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
    header = profile([indexes[0]]).header.encode() + b"!note  as other programs write it\n"
    (folder / "one.ukvs").write_bytes(header + text.encode())
    profile(indexes, folder / "two.ukvs")
    return [str(folder / "one.ukvs"), str(folder / "two.ukvs")]
