"""What changed between two maps, as a stream: constant memory, sorted or not.

Hides: walking two maps side by side. Two records of a key are the same when their frequencies, other values and JSON
(as values, not as text) are; headers are compared apart.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, NamedTuple

from recollect.errors import FormatError, UsageError
from recollect.formats.containers import OnProblem
from recollect.formats.ukvs import Header, Record, lenient
from recollect.maps.mapinputs import REPORT_EVERY, MapInput, Meter
from recollect.model import ProgressCallback


class Change(NamedTuple):
    """One key that is not the same in both maps; the side that lacks it is None."""

    kind: Literal["added", "removed", "changed"]
    keys: tuple[bytes, ...]
    old: Record | None
    new: Record | None


class Diff(NamedTuple):
    """Two maps side by side: their headers, and the changes from the first to the second as a stream."""

    old: Header
    new: Header
    changes: Iterator[Change]


@contextmanager
def diff_maps(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    temp_dir: str | None = None,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> Iterator[Diff]:
    """Compare two maps; the changes can be read inside the block. Bad lines go to `on_problem`, or raise."""
    with ExitStack() as stack:
        inputs = [stack.enter_context(MapInput([os.fspath(path)], i, temp_dir)) for i, path in enumerate((old, new))]
        meter = Meter(inputs, progress)
        for item in inputs:
            item.survey(meter)
        first, second = inputs
        if first.header.keys != second.header.keys:
            raise UsageError(
                "maps of different columns",
                where=f"{first.label} and {second.label}",
                why=f"{', '.join(first.header.keys)} and {', '.join(second.header.keys)}",
            )
        yield Diff(first.header, second.header, _walk(inputs, meter, on_problem))


def _walk(inputs: list[MapInput], meter: Meter, on_problem: OnProblem | None) -> Iterator[Change]:
    waiting: dict[int, list[Record]] = {}
    current: bytes | None = None
    for count, (key, index, records) in enumerate(heapq.merge(*(item.found(on_problem) for item in inputs))):
        if not count % REPORT_EVERY:
            meter.show("comparing")
        if key != current:
            yield from _changes(waiting)
            waiting, current = {}, key
        waiting[index] = records
    yield from _changes(waiting)


def _changes(found: dict[int, list[Record]]) -> Iterator[Change]:
    """The changes of one first key, which may have many records where a map has more key columns."""
    old, new = ({record.keys: record for record in found.get(side, ())} for side in (0, 1))
    for keys in sorted({*old, *new}):
        before, after = old.get(keys), new.get(keys)
        if before is None:
            yield Change("added", keys, None, after)
        elif after is None:
            yield Change("removed", keys, before, None)
        elif not _same(before, after):
            yield Change("changed", keys, before, after)


def _same(before: Record, after: Record) -> bool:
    if before.frequency != after.frequency or before.values != after.values:
        return False
    return before.json == after.json or _block(before.json) == _block(after.json)


def _block(text: str) -> object:
    try:
        value = lenient.loads(text) if text else {}
    except FormatError:
        return text
    if isinstance(value, dict):
        value.pop("frequency", None)  # which older profiles keep there, and has been compared
    return value
