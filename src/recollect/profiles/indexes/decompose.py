"""Frequencies decomposed: by year, month, status, media type, language.

Hides how parts are counted. A part's R is the number of different SURTs with a capture in it, so the parts' Rs may add
up to more than the whole; their Ms never do. Two forms, both of UKVS: in the JSON block, each dimension separately,

    com,example)/a 30/2 {"datetime": {"2014": "20/2", "2015": "10/1"}, "status": {"200": "30/2"}}

or as further key columns, where rows are combinations and the whole stands in a row of `:` (datetime) and `-` (others):

    com,example)/a 2014 20/2

A missing value is `-` in the JSON and `?` in a column, where `-` is taken. Year and month are prefixes of the 14 digits
and share the name `datetime`. Of several languages of a capture the first counts.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.formats.ukvs import quote
from recollect.kernels.records import HEADER
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.options import DIMENSIONS
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.select import Filter
from recollect.profiles.indexes.sinks import Totals
from recollect.profiles.indexes.sorting import Items, SortingSink

_SEPARATOR = b"\x1f"
_HEAD = struct.Struct("<iiiiq")
Values = Callable[[Batch, NDArray[np.int64]], list[str]]


def _times(digits: int) -> Values:
    def values(batch: Batch, lines: NDArray[np.int64]) -> list[str]:
        parts = batch.times[lines] // 10 ** (14 - digits)
        return [f"{part:0{digits}d}" if part else "" for part in parts.tolist()]

    return values


def _statuses(batch: Batch, lines: NDArray[np.int64]) -> list[str]:
    return [str(status) if status else "" for status in batch.statuses[lines].tolist()]


def _media_types(batch: Batch, lines: NDArray[np.int64]) -> list[str]:
    return [batch.media_types[number] or "" for number in batch.media[lines].tolist()]


def _languages(batch: Batch, lines: NDArray[np.int64]) -> list[str]:
    return [(batch.capture_at(line).language or "").partition(",")[0] for line in lines.tolist()]


# How the values of each dimension are read.
_VALUES: dict[str, Values] = {
    "year": _times(4),
    "month": _times(6),
    "status": _statuses,
    "media-type": _media_types,
    "language": _languages,
}


def items_by(dimensions: tuple[str, ...]) -> Callable[[Batch, NDArray[np.bool_]], Items]:
    """What makes items of a batch whose labels are the values of these dimensions."""

    def items(batch: Batch, keep: NDArray[np.bool_]) -> Items:
        lines = np.flatnonzero(keep)
        columns = [_VALUES[dimension](batch, lines) for dimension in dimensions]
        numbers: dict[tuple[str, ...], int] = {}
        codes = [numbers.setdefault(values, len(numbers)) for values in zip(*columns, strict=True)]
        labels = tuple(_SEPARATOR.join(value.encode("utf-8", "replace") for value in values) for values in numbers)
        pairs = batch.run_of[lines].astype(np.int64) * max(len(numbers), 1) + np.array(codes, np.int64)
        unique, which = np.unique(pairs, return_inverse=True)
        weights = None if batch.weights is None else batch.weights[lines]
        captures = np.bincount(which, weights, minlength=len(unique)).astype(np.int64)
        runs, label = np.divmod(unique, max(len(numbers), 1))
        return Items(runs.astype(np.int32), label.astype(np.int32), captures, labels or (b"",))

    return items


@dataclass(slots=True)
class _Key:
    """What is known of one key so far: per part captures and URI-Rs."""

    key: bytes
    captures: int = 0
    uri_rs: int = 0
    parts: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    rows: dict[tuple[str, ...], list[int]] = field(default_factory=dict)


class DecomposingSink(SortingSink):
    """Lines with decomposed frequencies."""

    def __init__(
        self,
        chosen: Filter,
        store: RunStore,
        dimensions: tuple[str, ...],
        *,
        columns: bool,
        temp_dir: str | os.PathLike[str] | None = None,
        rekey: Callable[[Batch, NDArray[np.int32]], None] | None = None,
    ) -> None:
        super().__init__(chosen, store, temp_dir, items=items_by(dimensions), rekey=rekey)
        self._dimensions = dimensions
        self._columns = columns
        self._totals = Totals()

    def _made(self) -> Iterator[bytes]:
        keys = captures = uri_rs = 0
        form = self._rows if self._columns else self._line
        for found in self._keys():
            keys, captures, uri_rs = keys + 1, captures + found.captures, uri_rs + found.uri_rs
            yield form(found)
        self._totals = Totals(keys, captures, uri_rs)

    def totals(self) -> Totals:
        return self._totals

    def _keys(self) -> Iterator[_Key]:
        """Each key with its parts; records come sorted by key, SURT, label."""
        current: _Key | None = None
        rest = b""
        seen: set[tuple[int, str]] = set()
        for key, this_rest, label, m in self._records():
            if current is None or key != current.key:
                if current is not None:
                    yield current
                current, rest = _Key(key), b"\0"
            if this_rest != rest:
                rest, seen = this_rest, set()
                current.uri_rs += 1
            current.captures += m
            values = tuple(label.decode("utf-8", "replace").split("\x1f"))
            row = current.rows.setdefault(values, [0, 0])
            row[0], row[1] = row[0] + m, row[1] + 1
            for part in enumerate(values):
                counts = current.parts.setdefault(part, [0, 0])
                counts[0] += m
                counts[1] += part not in seen
                seen.add(part)
        if current is not None:
            yield current

    def _records(self) -> Iterator[tuple[bytes, bytes, bytes, int]]:
        for piece in self._store.merged():
            data = piece.tobytes()
            at = 0
            while at < len(data):
                key, rest, label, _, m = _HEAD.unpack_from(data, at)
                at += HEADER
                yield (
                    data[at : at + key],
                    data[at + key : at + key + rest],
                    data[at + key + rest : at + key + rest + label],
                    m,
                )
                at += key + rest + label

    def _line(self, found: _Key) -> bytes:
        block: dict[str, dict[str, str]] = {}
        for (index, value), (m, r) in sorted(found.parts.items()):
            block.setdefault(DIMENSIONS[self._dimensions[index]], {})[value or "-"] = f"{m}/{r}"
        text = json.dumps(block, ensure_ascii=False).encode("utf-8", "replace")
        return b"%b %d/%d %b\n" % (found.key, found.captures, found.uri_rs, text)

    def _rows(self, found: _Key) -> bytes:
        names = [DIMENSIONS[dimension] for dimension in self._dimensions]
        rows = {tuple(quote(value or "?") for value in values): counts for values, counts in found.rows.items()}
        rows[tuple(b":" if name == "datetime" else b"-" for name in names)] = [found.captures, found.uri_rs]
        return b"".join(
            b"%b %b %d/%d\n" % (found.key, b" ".join(values), m, r) for values, (m, r) in sorted(rows.items())
        )
