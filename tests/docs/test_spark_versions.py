"""Versions that the pages name for Spark are those of the PySpark that is pinned."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_library_for_s3_is_of_the_version_of_hadoop_in_spark() -> None:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        pytest.skip("pyspark is not installed")
    (jar,) = (Path(spark.origin).parent / "jars").glob("hadoop-client-api-*.jar")
    page = (ROOT / "docs" / "scale.md").read_text()
    named = set(re.findall(r"hadoop-aws:([\d.]+)", page))
    assert named == {jar.stem.removeprefix("hadoop-client-api-")}
    pinned = re.search(r"^pyspark==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None and f"PySpark {pinned[1]}" in page
