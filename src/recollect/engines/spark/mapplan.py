"""What a later run of the same merge or compaction needs to make only the ranges that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.engines.spark.maps import MapOnSpark
from recollect.engines.spark.notes import Range
from recollect.engines.spark.resume import identity_of, stamps_of
from recollect.engines.spark.staging import Target
from recollect.model import Progress, ProgressCallback


def identity_of_maps(spark: Any, work: str, options: Mapping[str, object], maps: Sequence[MapOnSpark]) -> str:
    """The identity of work on maps."""
    names = [one.name for one in maps]
    stamps = stamps_of(spark, [path for one in maps for path, _ in one.files])
    return identity_of(work, {**options, "maps": names}, stamps)


@dataclass(frozen=True, slots=True)
class MapPlan:
    """The borders between ranges, the bytes of all maps, and what else a command has found out."""

    borders: list[bytes]
    size: int
    found: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON has it."""
        borders = [border.decode("latin-1") for border in self.borders]
        return {"borders": borders, "size": self.size, "found": self.found}

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> MapPlan | None:
        """The plan that JSON has; None if it has none."""
        try:
            borders = [border.encode("latin-1") for border in values["borders"]]
            return cls(borders, int(values["size"]), dict(values["found"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def is_done(self, ranges: Mapping[int, Range]) -> bool:
        """Whether these are all ranges."""
        return len(ranges) > len(self.borders)


def unfinished(target: Target, progress: ProgressCallback | None) -> tuple[MapPlan | None, dict[int, Range]]:
    """What an earlier run of the same work planned and finished."""
    earlier = target.earlier()
    plan = None if earlier is None else MapPlan.of_json(earlier.state)
    if earlier is None or plan is None:
        return None, {}
    if progress is not None:
        progress(Progress("going on from finished parts", len(earlier.ranges), len(plan.borders) + 1, "parts"))
    return plan, earlier.ranges
