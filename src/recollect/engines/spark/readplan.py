"""What reading found, as a later run of the same profile needs it to write only the ranges that are missing."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container
from dataclasses import asdict, dataclass
from typing import Any

from recollect.engines.spark import exchange
from recollect.engines.spark.exchange import Border
from recollect.engines.spark.inputs import Place
from recollect.engines.spark.reading import Reading
from recollect.engines.spark.resume import identity_of, stamps_of
from recollect.formats.detect import Kind, Source
from recollect.model import Problem
from recollect.profiles.indexes.options import ProfileOptions
from recollect.profiles.indexes.profile import InputCounts

# An input, and whether Spark has to read it.
Input = tuple[Source, bool]
_COUNTERS = ("filtered", "left_out", "skipped", "flawed")
# Options that do not change the lines of a profile.
_ASIDE = ("updated_at", "temp_dir", "threads", "memory_limit", "piece", "allow_empty")


def identity_of_profile(spark: Any, options: ProfileOptions, inputs: list[Input]) -> str:
    """The identity of a profile of these inputs; empty if one of them is made of files that it does not name."""
    if any(source.kind is Kind.ZIPNUM or source.stream is not None for source, _ in inputs):
        return ""
    chosen = {name: value for name, value in asdict(options).items() if name not in _ASIDE}
    stamps = stamps_of(spark, [source.path for source, _ in inputs])
    forms = [repr((source.kind, source.layout, source.form, source.container)) for source, _ in inputs]
    return identity_of("profile", {**chosen, "forms": forms}, stamps)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The borders between ranges, what happened to the lines of the input, how many bytes of records there are, and
    for each split (that has any) the first and last of the ranges to which its records belong."""

    borders: list[Border]
    tally: InputCounts
    size: int
    spans: dict[Place, tuple[int, int]]

    @classmethod
    def of(cls, read: Reading, tally: InputCounts) -> ReadPlan:
        """The plan that a reading gives."""
        borders = exchange.borders_of(read.places(), read.ranges)
        spans = {
            place: (bisect_right(borders, note.first), bisect_right(borders, note.last)) if note.size else (0, -1)
            for place, note in read.notes.items()
        }
        return cls(borders, tally, read.size, spans)

    def needed(self, done: Container[int]) -> dict[Place, bool]:
        """For each split whether it has records of a range that is not done."""
        return {
            place: any(number not in done for number in range(first, last + 1))
            for place, (first, last) in self.spans.items()
        }

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON has it."""
        tally = {name: value for name, value in asdict(self.tally).items() if not name.startswith("_")}
        tally |= {name: list(getattr(self.tally, name).items()) for name in _COUNTERS}
        return {
            "borders": [[part.decode("latin-1") for part in border] for border in self.borders],
            "tally": tally,
            "size": self.size,
            "spans": [[*place, *span] for place, span in self.spans.items()],
        }

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> ReadPlan | None:
        """The plan that JSON has; None if it has none."""
        try:
            borders = [(key.encode("latin-1"), rest.encode("latin-1")) for key, rest in values["borders"]]
            tally = InputCounts(**values["tally"])
            for name in _COUNTERS:
                counts = ((tuple(key) if isinstance(key, list) else key, count) for key, count in values["tally"][name])
                setattr(tally, name, Counter(dict(counts)))
            for name in ("problems", "damaged", "ignored"):
                setattr(tally, name, [Problem(**problem) for problem in getattr(tally, name)])
            spans = {(source, start): (first, last) for source, start, first, last in values["spans"]}
            return cls(borders, tally, int(values["size"]), spans)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
