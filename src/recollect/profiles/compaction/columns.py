"""Compaction of maps with more key columns than one (`surt`, `datetime`, ...).

Hides: that rolling up is decided for SURTs, and carried out for every combination of the other columns. The map is
first reduced to SURTs and their wholes and compacted (`weights`); then its rows are taken over where their SURT stayed,
and added up under the wildcard that took its place, combination by combination, sorted out of core.

A row below a wildcard of the input is not added again: the wildcard's own rows include it. Memory: the wildcards of
the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from recollect.errors import FormatError, NotSorted
from recollect.formats.containers import OnProblem
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, Record, Writer, open_map, read
from recollect.formats.ukvs.records import format_line, parse_line
from recollect.maps.jsonmerge import merged_block
from recollect.maps.linesort import LineSorter
from recollect.maps.lookup import whole_of
from recollect.maps.maptext import MapText, open_text
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.maps.sets import without_sets
from recollect.uris import ancestors, lookup_keys

Result = TypeVar("Result")


def compact_columns(
    path: str,
    header: Header,
    target: str,
    compact: Callable[[Path, Path], tuple[Result, Header]],
    on_problem: OnProblem | None,
) -> tuple[Result, int, int]:
    """Compact by way of `compact`, which compacts a map of SURTs and says what the header of the result shall be.

    Returns what it returned, and the number of rows read and written.
    """
    if "frequency" not in header.values:
        raise FormatError("a map without frequencies cannot be compacted", where=path)
    with TemporaryDirectory(prefix="recollect-") as folder:
        wholes, compacted = Path(folder) / "wholes.ukvs", Path(folder) / "compacted.ukvs"
        try:
            wildcards = _write_wholes(read(path, on_problem, ordered=True)[1], wholes)
        except NotSorted:
            tidy = str(Path(folder) / "sorted.ukvs")
            merge_maps([path], tidy, MergeOptions(disjoint=True), on_problem=on_problem)
            path = tidy
            wildcards = _write_wholes(read(path)[1], wholes)
        result, header = compact(wholes, compacted)
        rows = read(path, lambda _problem: None)[1]  # unreadable lines have been reported above
        return result, *_write_rows(rows, header, compacted, wildcards, target)


@contextmanager
def folded(path: str, on_problem: OnProblem | None) -> Iterator[Path]:
    """The map with its SURTs alone, for compaction within a budget, which counts keys and not their rows."""
    with open_map(path, lambda _problem: None) as file:
        header = file.header
    if "frequency" not in header.values:
        raise FormatError("a map without frequencies cannot be compacted", where=path)
    with TemporaryDirectory(prefix="recollect-") as folder:
        wholes, tidy = Path(folder) / "wholes.ukvs", str(Path(folder) / "sorted.ukvs")
        meta = {**header.meta, "folded_columns": list(header.keys[1:])}
        plain = replace(header, keys=header.keys[:1], values=("frequency",), style="ukvs", meta=meta)
        try:
            _write_wholes(read(path, on_problem, ordered=True)[1], wholes, plain)
        except NotSorted:
            merge_maps([path], tidy, MergeOptions(disjoint=True), on_problem=on_problem)
            _write_wholes(read(tidy)[1], wholes, plain)
        yield wholes


def is_wildcard(key: bytes) -> bool:
    return key.endswith((b"/*", b",*")) or key == b"*"


def _write_wholes(records: Iterable[Record], path: Path, header: Header | None = None) -> set[bytes]:
    """Write the map of SURTs alone; returns its held wildcards."""
    wildcards: set[bytes] = set()
    with Writer(path, header or Header()) as writer:
        for key, rows in groupby(records, key=lambda record: record.key):
            frequency = whole_of(list(rows))
            writer.write(Record(key, frequency=frequency))
            if is_wildcard(key) and not frequency.is_void:
                wildcards.add(key)
    return wildcards


def _write_rows(
    records: Iterable[Record], header: Header, compacted: Path, wildcards: set[bytes], target: str
) -> tuple[int, int]:
    """Write the rows that the compacted map calls for; returns the number of rows read and written."""
    others = tuple(name for name in header.values if name != "frequency")
    plain = replace(header, style="ukvs", values=("frequency", *others))
    count = 0
    with LineSorter(None) as sorter:
        text = open_text(str(compacted))
        for key, rows in groupby(records, key=lambda record: record.key):
            owner = _owner(text, key, wildcards)
            for record in rows:
                count += 1
                if owner is not None and (owner == key or not record.frequency.is_void):
                    # A set leaves out what stood in lines of its own, which may be gone now.
                    sorter.add(format_line(record._replace(key=owner, json=without_sets(record.json)), plain))
        with Writer(target, header) as writer:
            for record in _added_up(parse_line(line, plain) for line in sorter):
                writer.write(record)
            return count, writer.count


def _owner(text: MapText, key: bytes, wildcards: set[bytes]) -> bytes | None:
    """Under which key of the compacted map a key's rows stand; None if a wildcard of the input covers them."""
    if _has(text, key):
        return key
    above = ancestors(key) if is_wildcard(key) else lookup_keys(key)[1:]
    for wildcard in above:
        if wildcard in wildcards:
            return None
        if _has(text, wildcard):
            return wildcard
    return None  # a void that gave way


def _has(text: MapText, key: bytes) -> bool:
    hit = text.find(key)
    return hit is not None and hit[0] == key


def _added_up(records: Iterator[Record]) -> Iterator[Record]:
    """Rows of the same key and columns as one."""
    for _, rows in groupby(records, key=lambda record: record.keys):
        first, *others = rows
        if not others:
            yield first
            continue
        frequency = reduce(Frequency.__add__, (row.frequency for row in others), first.frequency)
        block, _ = merged_block([row.json for row in (first, *others)], Frequency.__add__)
        yield first._replace(frequency=frequency, json=block)
