"""Lookup of long lists in bulk: text in, text out, a few nanoseconds per byte.

Hides: the way around Python objects. Lines that are SURTs in plain spelling (nearly all, in lists made from indexes)
are taken apart, sorted, searched in one sweep and answered by kernels; the others go through `lookup.keys_of`. Pieces
of the list are worked on by threads and answered in their order. The answers are those of `MementoMap.lookup`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadURI
from recollect.formats.ordered import in_order
from recollect.kernels import search as kernels
from recollect.maps.lookup import Lookup, MementoMap, keys_of
from recollect.maps.maptext import MappedText
from recollect.maps.partialkeys import partial_key
from recollect.model import Answer

# A piece is sorted and searched in one sweep, so longer ones are quicker by the line.
PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class BulkAnswers:
    """The answers for a piece of a list: lines of `URI TAB answer TAB key TAB frequency` (`-` where there is none)."""

    text: bytes
    yes: int
    no: int
    unknown: int
    bad: tuple[tuple[str, str], ...]  # lines that are not URIs, and why


def can_answer(opened: object) -> bool:
    """Whether a map can be searched in bulk: plain text in one file, one key and one frequency per line."""
    return isinstance(opened, MementoMap) and opened.is_simple and isinstance(opened.text, MappedText)


def bulk_lookup(opened: MementoMap, pieces: Iterable[bytes], *, threads: int = 0) -> Iterator[BulkAnswers]:
    """Answer a list that comes in pieces of whole lines, such as `containers.whole_lines` gives."""
    threads = threads or os.cpu_count() or 1
    tasks = (partial(_answer, opened, piece) for piece in pieces)
    return in_order(tasks, threads, ahead=threads, name="lookup")


def _answer(opened: MementoMap, piece: bytes) -> BulkAnswers:
    text = opened.text
    assert isinstance(text, MappedText)
    if opened.has_total:
        return _one_by_one(opened, piece)
    lines = np.frombuffer(piece, np.uint8)
    capacity = piece.count(b"\n") + 1
    offsets, sizes = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    count = kernels.split_lines(lines, offsets, sizes)
    offsets, sizes = offsets[:count], sizes[:count]
    lengths = np.empty(count, np.int64)
    kernels.plain_surts(lines, offsets, sizes, lengths)
    positions, denied = np.empty(count, np.int64), np.zeros(count, np.bool_)
    plain = np.flatnonzero(lengths >= 0)
    if len(plain):
        positions[plain] = text.search_many(lines, offsets[plain], lengths[plain])
        denied[plain] = text.denied(lines, offsets[plain], lengths[plain], positions[plain])
    bad = _answer_others(opened, text, piece, offsets, sizes, np.flatnonzero(lengths < 0), positions, denied)
    # A key is as long as its line or three bytes longer, a frequency has at most 42 bytes.
    out = np.empty(2 * len(piece) + 64 * count + 64, np.uint8)
    tally = np.zeros(3, np.int64)
    absent = kernels.NO if opened.header.is_complete else kernels.UNSURE
    size = kernels.write_answers(text.data, positions, denied.view(np.uint8), absent, lines, offsets, sizes, out, tally)
    yes, no, unknown = (int(number) for number in tally)
    return BulkAnswers(out[:size].tobytes(), yes, no, unknown, tuple(bad))


def _one_by_one(opened: MementoMap, piece: bytes) -> BulkAnswers:
    """The answers of a map with a line that only `lookup` understands: the total of its archive."""
    rows, counts, bad = list[bytes](), Counter[str](), list[tuple[str, str]]()
    for line in piece.splitlines():
        if not line.strip():
            continue
        uri = line.decode("utf-8", "surrogateescape")
        try:
            found = opened.lookup(uri)
        except BadURI as error:
            bad.append((uri, error.why or str(error)))
            found = Lookup(uri, None, None, Answer.UNKNOWN)
        counts[found.answer] += 1
        rows.append(
            b"%b\t%b\t%b\t%b\n" % (line, found.answer.encode(), found.key or b"-", str(found.frequency or "-").encode())
        )
    return BulkAnswers(b"".join(rows), counts["yes"], counts["no"], counts["unknown"], tuple(bad))


def _keys_of(opened: MementoMap, line: str) -> list[bytes]:
    """The keys of a URI; of a partial key, the key that decides about it."""
    if line.endswith("*") and partial_key(line) is not None:
        decided = opened.lookup(line)
        return [] if decided.key is None else [decided.key]
    return keys_of(line)


def _answer_others(
    opened: MementoMap,
    text: MappedText,
    piece: bytes,
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    rows: NDArray[np.int64],
    positions: NDArray[np.int64],
    denied: NDArray[np.bool_],
) -> list[tuple[str, str]]:
    """Find the deciding lines of lines that are not plain; returns those that are not URIs."""
    bad: list[tuple[str, str]] = []
    owners: list[int] = []
    keys: list[bytes] = []
    for row in rows.tolist():
        line = piece[offsets[row] : offsets[row] + sizes[row]].decode("utf-8", "surrogateescape")
        try:
            found = _keys_of(opened, line)
        except BadURI as error:
            bad.append((line, error.why or str(error)))
            positions[row] = -2
            continue
        positions[row] = -1
        if opened.scope.limit(line) is not None and opened.lookup(line).answer == Answer.UNKNOWN:
            positions[row] = -2
            continue
        keys += found
        owners += [row] * len(found)
    if keys:
        lengths = np.fromiter((len(key) for key in keys), np.int64, len(keys))
        buffer = np.frombuffer(b"".join(keys), np.uint8)
        starts = np.cumsum(lengths) - lengths
        places = text.search_many(buffer, starts, lengths)
        refused = text.denied(buffer, starts, lengths, places)
        chosen: dict[int, bytes] = {}
        for row, key, place, refuse in zip(owners, keys, places.tolist(), refused.tolist(), strict=True):
            if place >= 0 and (row not in chosen or opened.prefers(key, place, chosen[row], int(positions[row]))):
                positions[row], denied[row], chosen[row] = place, refuse, key
    return bad
