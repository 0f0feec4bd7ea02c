"""Frozen values shared by the rooms above; no behaviour beyond their own invariants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a long job. `total` is None while it is unknown; `lines` where a job over bytes counts them."""

    stage: str
    done: int
    total: int | None = None
    unit: str = "items"
    lines: int | None = None


ProgressCallback = Callable[[Progress], None]


class Answer(StrEnum):
    """What a map, a filter or the learned model says of a URI: the archive holds it, holds none of it, or unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return repr(self.value)  # as the texts that version 0.1 returned


@dataclass(frozen=True, slots=True)
class Problem:
    """One input line (or record) that could not be read: law 3, bad input is counted and named.

    `kept`: only a field of it could not be read, and its capture is counted.
    """

    file: str
    line: int | None
    reason: str
    excerpt: str = ""
    kept: bool = False

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        # Debris of a damaged file must not reach a terminal as it is.
        excerpt = self.excerpt if self.excerpt.isprintable() else ascii(self.excerpt)[1:-1][:160]
        return f"{place}: {self.reason}" + (f": {excerpt}" if excerpt else "")
