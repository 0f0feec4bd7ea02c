"""What tasks report to the driver in addition to their data: totals, problems, samples.

Hides that Spark may run a task twice. A note has a name (which split, which range), and the same task writes the same
note again, so nothing is counted double; plain accumulators would. Notes of ranges
(`engines.plan.Range`) can be kept in a file: see `resume`.
"""

from __future__ import annotations

import pickle
from typing import Any

import zstandard


class _ByName:
    """How Spark adds up notes: it asks for these two, and for no class of its own, so that this can be imported where
    Spark is not, and `session` says so."""

    def zero(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {}

    def addInPlace(self, value1: dict[Any, Any], value2: dict[Any, Any]) -> dict[Any, Any]:  # noqa: N802 - Spark's name
        value1.update(value2)
        return value1


def notes(spark: Any) -> Any:
    """A place for notes: tasks `add({name: note})`, the driver reads `value` after the job."""
    return spark.sparkContext.accumulator({}, _ByName())


def packed(value: Any) -> bytes:
    """A value on its way between tasks and driver, small: columns and tables are mostly zeros."""
    return zstandard.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 3)


def unpacked(text: bytes) -> Any:
    """The value that was packed."""
    return pickle.loads(zstandard.decompress(text))
