"""What tasks report to the driver in addition to their data: totals, problems, samples.

Hides that Spark may run a task twice. A note has a name (which split, which range), and the same task writes the same
note again, so nothing is counted double; plain accumulators would. Notes of ranges can be kept in a file: see `resume`.
"""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass, field
from typing import Any

import zstandard

from recollect.model import Problem


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


@dataclass(slots=True)
class Range:
    """What a task wrote: keys, bytes, first and last key, and lines of keys that other tasks also have a share of.
    `counts` are further sums and `problems` what could not be read, for the commands that have them."""

    keys: int = 0
    size: int = 0
    first: bytes = b""
    last: bytes = b""
    captures: int = 0
    uri_rs: int = 0
    seams: list[bytes] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def saw(self, text: bytes) -> None:
        """Take note of lines that are written."""
        self.first = self.first or text.split(None, 1)[0]
        self.last = text[text.rfind(b"\n", 0, -1) + 1 :].split(None, 1)[0]
        self.size += len(text)

    def as_json(self) -> dict[str, Any]:
        """The note as JSON has it; bytes become text of the same length (Latin-1)."""
        values = asdict(self)
        values["first"], values["last"] = self.first.decode("latin-1"), self.last.decode("latin-1")
        values["seams"] = [line.decode("latin-1") for line in self.seams]
        return values

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Range:
        """The note that JSON has; raises TypeError, KeyError or ValueError if it is none."""
        note = cls(**values)
        note.first, note.last = values["first"].encode("latin-1"), values["last"].encode("latin-1")
        note.seams = [line.encode("latin-1") for line in values["seams"]]
        note.problems = [Problem(**problem) for problem in values["problems"]]
        return note
