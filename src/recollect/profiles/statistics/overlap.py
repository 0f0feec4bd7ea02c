"""What an archive holds against what users request (Alam et al. 2019, Figure 4).

Hides the join of two sorted streams. Rows are powers of ten of mementos, columns powers of ten of accesses; each cell
counts URI keys (of the map's policy; with a URIR map these are URI-Rs). The column `Zero` is held and never asked for,
the row `Zero` asked for and not held. A key that only a wildcard covers may be held, and its count is unknown: row
`Rolled up`. Captures and URI-Rs in all are the totals of the map's outermost lines, wildcards included (`maptotals`).

The lookups of a log are sorted on disk when they are many, so memory does not grow with either side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from recollect.errors import BadURI, UsageError
from recollect.formats.detect import Kind, find_sources
from recollect.formats.forms import Asked
from recollect.formats.frequency import VOID, Frequency
from recollect.formats.logs import LogEntry, read_lookups
from recollect.formats.ukvs import Record
from recollect.formats.ukvs import open_map as open_records
from recollect.maps.linesort import LineSorter
from recollect.maps.lookup import Holdings, open_map
from recollect.maps.samplescope import refuse_sample
from recollect.model import Answer, Problem
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.maptotals import count_map, differences
from recollect.uris import is_surt, policy_key, surt

BUCKETS = (
    "Zero",
    "Ones",
    "Tens",
    "Hundreds",
    "Thousands",
    "10 thousands",
    "100 thousands",
    "Millions",
    "10 millions or more",
)
ROLLED_UP = "Rolled up"
_MAPS = (Kind.MAP, Kind.PROFILE)
_BATCH = 1 << 14


class _Asked(NamedTuple):
    key: bytes
    times: int
    uri: str


@dataclass(slots=True)
class Overlap:
    """The matrix: `cells[mementos bucket][accesses bucket]` is a number of keys."""

    policy: str = "HxPx"
    cells: dict[str, dict[str, int]] = field(default_factory=dict)
    accesses: int = 0
    accessed_keys: int = 0
    held_keys: int = 0
    accessed_and_held: int = 0
    """Of the keys that were asked for, those that the map says yes to."""
    accessed_below_wildcards: int = 0
    """Of these, those that only a wildcard covers: whether each of them is held is unknown."""
    wildcards: int = 0
    held: Frequency = VOID
    """Captures and URI-Rs of the holdings."""
    problems: list[Problem] = field(default_factory=list)
    unreadable: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, row: str, column: str, count: int = 1) -> None:
        """Count keys in a cell."""
        cells = self.cells.setdefault(row, {})
        cells[column] = cells.get(column, 0) + count

    @property
    def rows(self) -> list[str]:
        """Buckets of mementos in use, rising."""
        return [name for name in (*BUCKETS, ROLLED_UP) if any(self.cells.get(name, {}).values())]

    @property
    def columns(self) -> list[str]:
        """Buckets of accesses in use, rising."""
        return [name for name in BUCKETS if any(row.get(name) for row in self.cells.values())]

    def note(self, problem: Problem) -> None:
        """Count what could not be read."""
        self.unreadable += 1
        if len(self.problems) < 100:
            self.problems.append(problem)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "policy": self.policy,
            "rows": self.rows,
            "columns": self.columns,
            "matrix": [[self.cells.get(row, {}).get(column, 0) for column in self.columns] for row in self.rows],
            "accesses": self.accesses,
            "accessed_keys": self.accessed_keys,
            "held_keys": self.held_keys,
            "accessed_and_held": self.accessed_and_held,
            "accessed_below_wildcards": self.accessed_below_wildcards,
            "wildcards": self.wildcards,
            "captures": self.held.uri_m.value,
            "captures_bound": self.held.uri_m.bound,
            "uri_rs": self.held.uri_r.value,
            "uri_rs_bound": self.held.uri_r.bound,
            "unreadable_lines": self.unreadable,
            "problems": [str(problem) for problem in self.problems],
            "notes": self.notes,
        }


def bucket(count: int) -> str:
    """`Zero`, `Ones` (1 to 9), `Tens` (10 to 99) ..."""
    return BUCKETS[min(len(str(count)), len(BUCKETS) - 1)] if count > 0 else BUCKETS[0]


def overlap(
    holdings: str | os.PathLike[str],
    accesses: Iterable[str | os.PathLike[str]],
    *,
    asked: Asked | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
) -> Overlap:
    """Compare a map (or indexes, which are counted by URI-R) with the lookups of access logs."""
    result = Overlap()
    with TemporaryDirectory(dir=temp_dir) as folder:
        path = os.fspath(holdings)
        if path == "-" or Path(path).is_fifo():
            raise UsageError("holdings from a pipe", why="they are read twice", hint="save them to a file first")
        sources = find_sources([path], result.note, on_ignored=lambda _problem: None)
        if any(source.kind not in _MAPS for source in sources):
            made = profile(path, Path(folder, "holdings.ukvs"), policy="URIR", temp_dir=temp_dir, allow_empty=True)
            path = str(made.output)
            for problem in (*made.tally.damaged, *made.tally.problems):
                result.note(problem)
        opened = open_map(path)
        try:
            refuse_sample(opened.header, path, "compared with accesses")
            result.policy = opened.header.policy
            counts = count_map(path, lambda _problem: None)
            result.wildcards, result.held = counts.wildcards, counts.total
            result.notes += differences(counts, opened.header)
            with LineSorter(temp_dir) as sorter:
                log = read_lookups([os.fspath(path) for path in accesses], result.note, asked)
                _sort_lookups(log, result, sorter)
                result.notes += log.notes()
                _join(path, opened, _counted(sorter), result)
        finally:
            opened.close()
    return result


def _sort_lookups(log: Iterable[LogEntry], result: Overlap, sorter: LineSorter) -> None:
    for entry in log:
        result.accesses += entry.count
        try:
            spelled = entry.uri if is_surt(entry.uri) else surt(entry.uri)
            key = policy_key(spelled.encode("utf-8", "surrogateescape"), result.policy)
        except BadURI as error:
            result.note(Problem("accesses", None, str(error), entry.uri[:100]))
            continue
        # The URI itself is kept, for it may be in the map under another spelling.
        sorter.add(b"%b\0%d\0%b" % (key, entry.count, entry.uri.encode("utf-8", "surrogateescape")))


def _counted(sorter: LineSorter) -> Iterator[_Asked]:
    """Each key that was asked for, how often, and one URI of it, in order."""
    for key, lines in groupby(sorter, key=lambda line: line.partition(b"\0")[0]):
        count, uri = 0, b""
        for line in lines:
            _, times, uri = line.split(b"\0", 2)
            count += int(times)
        yield _Asked(key, count, uri.decode("utf-8", "surrogateescape"))


def _join(path: str, opened: Holdings, asked: Iterator[_Asked], result: Overlap) -> None:
    """Walk map and lookups side by side; what the map lacks in this spelling is looked up in all spellings."""
    unmatched: list[_Asked] = []
    found_otherwise: Counter[bytes] = Counter()

    def settle() -> None:
        answers = opened.lookup_many([one.uri for one in unmatched])
        for (_, count, _), answer in zip(unmatched, answers, strict=True):
            if answer.answer != Answer.YES or answer.key is None or answer.frequency is None:
                result.add(BUCKETS[0], bucket(count))
                continue
            result.accessed_and_held += 1
            if answer.key.endswith(b"*"):
                result.accessed_below_wildcards += 1
                result.add(ROLLED_UP, bucket(count))
            else:
                found_otherwise[answer.key] += 1
                result.add(bucket(answer.frequency.uri_m.value or 0), bucket(count))
        unmatched.clear()

    with open_records(path) as records:
        held = (record for record in records.records(ordered=True) if _is_whole(record))
        for record, request in _side_by_side(held, asked):
            if request is not None:
                result.accessed_keys += 1
            if record is not None:
                mementos = record.frequency.uri_m.value or 0
                result.held_keys += not record.frequency.is_void
                if request is None:
                    result.add(bucket(mementos), BUCKETS[0])
                else:
                    result.add(bucket(mementos), bucket(request.times))
                    result.accessed_and_held += not record.frequency.is_void
            elif request is not None:
                unmatched.append(request)
                if len(unmatched) >= _BATCH:
                    settle()
        settle()
        _uncount(path, found_otherwise, result)


def _is_whole(record: Record) -> bool:
    return not record.key.endswith(b"*") and all(part in (b":", b"-") for part in record.more_keys)


def _side_by_side(held: Iterator[Record], asked: Iterator[_Asked]) -> Iterator[tuple[Record | None, _Asked | None]]:
    record, request = next(held, None), next(asked, None)
    while record is not None or request is not None:
        if request is None or (record is not None and record.key < request.key):
            yield record, None
            record = next(held, None)
        elif record is None or request.key < record.key:
            yield None, request
            request = next(asked, None)
        else:
            yield record, request
            record, request = next(held, None), next(asked, None)


def _uncount(path: str, found_otherwise: Counter[bytes], result: Overlap) -> None:
    """Keys that were found under another spelling had been counted as never asked for."""
    if not found_otherwise:
        return
    with open_records(path) as records:
        for record in islice((one for one in records if one.key in found_otherwise), len(found_otherwise)):
            result.add(bucket(record.frequency.uri_m.value or 0), BUCKETS[0], -1)
