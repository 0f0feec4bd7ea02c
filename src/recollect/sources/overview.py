"""What is in a source, in figures: for `recollect inspect`.

Of a browser's cache only hosts and counts are given, never addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recollect.datetimes import format_iso
from recollect.errors import RecollectError
from recollect.model import Problem
from recollect.sources.collections import files_below
from recollect.sources.model import Kind, Source
from recollect.sources.recognise import open_source, recognise

_MOST = 10
_MOST_CAPTURES = 500_000
# What `recollect inspect` also describes as an index, record by record.
_ALSO_INDEXES = (Kind.WARC, Kind.ARC, Kind.WACZ, Kind.FOLDER)


@dataclass(frozen=True, slots=True)
class Overview:
    """A source in figures."""

    file: str
    kind: str
    depth: str
    entries: int
    captures: int
    hosts: Mapping[str, int] = field(default_factory=dict)
    more_hosts: int = 0
    first: datetime | None = None
    last: datetime | None = None
    types: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    altered: int = 0
    problems: tuple[str, ...] = ()
    cut: bool = False  # more captures follow that were not counted
    is_index: bool = False  # `recollect profile` reads it, too

    def as_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "kind": self.kind,
            "depth": self.depth,
            "entries": self.entries,
            "captures": self.captures,
            "cut": self.cut,
            "hosts": dict(self.hosts),
            "more_hosts": self.more_hosts,
            "first": format_iso(self.first) if self.first else None,
            "last": format_iso(self.last) if self.last else None,
            "types": dict(self.types),
            "times": dict(self.origins),
            "marks": dict(self.marks),
            "others": dict(self.others),
            "altered": self.altered,
            "problems": list(self.problems),
        }


def overview(name: str, base: str = "") -> Overview | None:
    """The figures of a path; None for what holds no captures of pages."""
    path = Path(name)
    try:
        kind = recognise(path, base) if path.exists() else None
        if kind is None or kind is Kind.CDXJ or (kind is Kind.FOLDER and _is_of_indexes(path)):
            return None
        source = open_source(path, base)
    except (RecollectError, OSError):
        return None
    try:
        return _counted(name, source)
    finally:
        source.close()


def _is_of_indexes(path: Path) -> bool:
    """A folder of indexes alone is described file by file."""
    return all(recognise(file) in (Kind.CDXJ, None) for file in files_below(path))


def _counted(name: str, source: Source) -> Overview:
    hosts: Counter[str] = Counter()
    types: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    problems: list[Problem] = []
    first: datetime | None = None
    last: datetime | None = None
    altered = 0
    captures = source.captures(lambda _url: True, problems.append)
    for capture in islice(captures, _MOST_CAPTURES):
        hosts[urlsplit(capture.url).netloc.lower().rpartition("@")[2]] += 1
        types[capture.media_type or "unknown"] += 1
        origins[capture.origin] += 1
        marks.update(capture.marks)
        altered += capture.altered
        first = min(first or capture.captured_at, capture.captured_at)
        last = max(last or capture.captured_at, capture.captured_at)
    shown = tuple(str(problem) for problem in problems[:_MOST])
    return Overview(
        name,
        source.kind,
        source.depth,
        source.tally.entries,
        sum(hosts.values()),
        dict(hosts.most_common(_MOST)),
        max(0, len(hosts) - _MOST),
        first,
        last,
        dict(types.most_common(_MOST)),
        dict(origins),
        dict(marks),
        dict(source.tally.others),
        altered,
        (*shown, f"and {len(problems) - _MOST:,} more") if len(problems) > _MOST else shown,
        next(captures, None) is not None,
        source.kind in _ALSO_INDEXES,
    )
