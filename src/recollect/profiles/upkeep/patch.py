"""Adding a small profile to a compacted map, at the cost of the small one and one copy of the large one.

Hides: which lines have to change. Merging (`maps.merge`) reads every record of both; here the new keys are looked up in
the text of the large map, and only the lines that decide about them, and the wildcards above those, are looked at. The
result answers as the merged map would:

- A new key that the map has as it is: the frequencies are merged. A void gives way.
- A new key to which the map answers yes, by a wildcard or its hashed set, is held already; no line is added.
- Any other new key is added: below nothing, below a void or below a wildcard of unknown content by its own line; below
  a wildcard whose set denies it by its own line or, with its neighbours, by a second set in the line of the wildcard,
  whichever is shorter.
- Every wildcard above a new key gets what is new below it, as its total includes all it covers. Void wildcards stay.

Why nothing held is missed (law 1): no line is removed or narrowed, no void and no wildcard is added, and a second set
only adds to what the first one holds; so what the map answered with yes it still does. A new key is answered by its own
line, by a set that it is a member of, or by what answered yes before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError
from recollect.formats.containers import atomic_output
from recollect.kernels.lines import AT_LEAST, count_lines, lines_at
from recollect.kernels.patching import write_patched
from recollect.kernels.search import MapSearch
from recollect.kernels.sets import BITS, VALUE_BITS, encode_set, members_below
from recollect.maps.maptext import MappedText
from recollect.maps.plainmap import PlainMap, open_plain
from recollect.maps.sets import anchor_of, bits_below, with_another_set
from recollect.profiles.compaction.keytable import KeyTable, table_of

LONGEST_LINE = 80_000  # bytes of a line with sets, see docs/ukvs.md
_ITEM = 56  # bytes of a set in a line besides its members, about
_TOKEN = 5  # bytes of a line besides its key, about
_SPARE = 20  # equations of a set to a spare bit: 6% more bytes, found in two thirds of the time
_NUMBERS = 48  # bytes of a frequency, a blank and a newline at most
_BOTH_AT_LEAST = AT_LEAST | AT_LEAST << 2

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch did to a map."""

    keys: int
    added: int
    changed: int


@dataclass(frozen=True, slots=True)
class _New:
    """The records of the small profile as columns: where their keys are in `text`, and their counts."""

    text: NDArray[np.uint8]
    offsets: Ints
    lengths: Ints
    uri_m: Ints
    uri_r: Ints
    bounds: NDArray[np.uint8]

    @classmethod
    def of(cls, table: KeyTable) -> _New:
        lengths = table.key_lengths.astype(np.int64)
        return cls(table.data, table.offsets, lengths, table.uri_m, table.uri_r, table.bounds)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Some lines of the large map as columns, in the order of the text. A row of -1 stands for no line."""

    at: Ints
    key_lengths: Ints
    lengths: Ints
    blocks: Ints
    is_wild: Flags
    is_void: Flags
    is_held: Flags


@dataclass(frozen=True, slots=True)
class _Counts:
    """What is new at some lines of the large map, which are in the order of the text."""

    at: Ints
    uri_m: Ints
    uri_r: Ints
    bounds: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Added:
    """New keys that get lines, by their rows; they may hold more than they say where that is so of `at_least`."""

    rows: Ints
    at_least: Flags


def patch(
    base: str | os.PathLike[str], new: str | os.PathLike[str], target: str | os.PathLike[str], meta: Mapping[str, Any]
) -> Patched:
    """Add the exact keys of the profile `new` to the map `base`; `meta` goes into the header of the result."""
    with open_plain(base) as plain, open_plain(new) as addition:
        if set(plain.header.values) != {"frequency"} or len(plain.header.keys) != 1:
            raise FormatError("a map with more columns than a key and a frequency", where=plain.label)
        text = _Text(plain)
        keys_of_new = _New.of(table_of(addition.array[addition.start :], name=addition.label))
        changed, blocks, added = _edits(text, keys_of_new)
        records = text.patched(changed, blocks, keys_of_new, added)
        keys = count_lines(plain.data, plain.start, len(plain.data)) + len(added.rows)
        counts = plain.header.meta.get("counts")
        captures = counts.get("captures") if isinstance(counts, dict) else None
        said = {**plain.header.meta, **meta}
        said.pop("gamma", None)
        if isinstance(captures, int):
            said["counts"] = {"captures": captures + _captures(addition.header.meta), "keys": keys}
        with atomic_output(target) as out:
            out.write(replace(plain.header, meta=said).encode())
            out.write(records.data)
    return Patched(keys, len(added.rows), len(changed.at))


def _captures(meta: Mapping[str, Any]) -> int:
    counts = meta.get("counts")
    found = counts.get("captures") if isinstance(counts, dict) else None
    return found if isinstance(found, int) else 0


class _Text:
    """The text of the large map, in which lines are known by the place where they begin."""

    def __init__(self, plain: PlainMap) -> None:
        self._label = plain.label
        self._data = plain.array
        self._start = plain.start
        self._mapped = MappedText(plain.data, plain.label)
        self._search = MapSearch(plain.data, plain.start)

    def deciding(self, new: _New) -> tuple[Ints, Flags]:
        """The line that decides about each new key (-1: none), and which keys are denied by its set."""
        places = self._mapped.search_many(new.text, new.offsets, new.lengths)
        return places, self._mapped.denied(new.text, new.offsets, new.lengths, places)

    def lines(self, at: Ints) -> _Lines:
        """The lines at some places; -1, which may be the first, stands for none: void, of no length."""
        some = at[at >= 0]
        first = len(at) - len(some)
        key_lengths, lengths, blocks, uri_m, uri_r = (np.zeros(len(at), np.int64) for _ in range(5))
        bounds = np.zeros(len(at), np.uint8)
        odd = lines_at(
            self._data, some, key_lengths[first:], lengths[first:], blocks[first:], uri_m[first:], uri_r[first:],
            bounds[first:],
        )  # fmt: skip
        if odd >= 0:
            raise FormatError("a line that is not a plain record", where=self._label, why=f"byte {some[odd]}")
        is_wild = np.zeros(len(at), np.bool_)
        is_wild[first:] = self._data[some + key_lengths[first:] - 1] == ord("*")
        is_void = (uri_m == 0) & ((bounds & AT_LEAST) == 0)
        is_held = ~is_void & ((uri_m >= 0) | (uri_r >= 0))
        return _Lines(at, key_lengths, lengths, blocks, is_wild, is_void, is_held)

    def above_keys(self, new: _New, rows: Ints) -> Ints:
        """The line of the nearest wildcard above each of some new keys, or -1."""
        found = np.empty(len(rows), np.int64)
        self._search.find_above(new.text, new.offsets[rows], new.lengths[rows], found)
        return found

    def above_lines(self, lines: _Lines) -> Ints:
        """The line of the nearest wildcard above each of some wildcards, or -1."""
        found = np.empty(len(lines.at), np.int64)
        self._search.find_above(self._data, lines.at, lines.key_lengths, found)
        return found

    def key(self, lines: _Lines, row: int) -> bytes:
        return self._data[lines.at[row] : lines.at[row] + lines.key_lengths[row]].tobytes()

    def block(self, lines: _Lines, row: int) -> str:
        """The JSON block of a line; empty if it has none."""
        at = int(lines.at[row])
        start = int(lines.blocks[row])
        return (
            self._data[at + start : at + int(lines.lengths[row])].tobytes().decode("utf-8", "surrogateescape")
            if start
            else ""
        )

    def patched(self, changed: _Counts, blocks: Mapping[int, bytes], new: _New, added: _Added) -> NDArray[np.uint8]:
        """The records with all that changes."""
        rows = added.rows
        offsets, lengths = new.offsets[rows], new.lengths[rows]
        places = np.empty(len(rows), np.int64)
        self._search.place_many(new.text, offsets, lengths, places)
        new_blocks = [blocks.get(at, b"") for at in changed.at.tolist()]
        block_ends = np.cumsum(np.fromiter(map(len, new_blocks), np.int64, len(new_blocks)))
        all_blocks = b"".join(new_blocks)
        changes = len(rows) + len(changed.at) + 1
        out = np.empty(len(self._data) + int(lengths.sum()) + len(all_blocks) + _NUMBERS * changes, np.uint8)
        bounds = np.where(added.at_least, _BOTH_AT_LEAST, new.bounds[rows]).astype(np.uint8)
        length = write_patched(
            self._data, self._start, changed.at, changed.uri_m, changed.uri_r, changed.bounds, all_blocks, block_ends,
            places, new.text, offsets, lengths, new.uri_m[rows], new.uri_r[rows], bounds, out,
        )  # fmt: skip
        return out[:length]


def _edits(text: _Text, new: _New) -> tuple[_Counts, dict[int, bytes], _Added]:
    """What changes in the map: counts of lines, blocks of lines by their places, and lines for new keys."""
    places, denied = text.deciding(new)
    at, line_of = np.unique(places, return_inverse=True)
    lines = text.lines(at)
    covered = (lines.is_wild & lines.is_held)[line_of]
    # An exact line decides about its own key, or about one that other makers spell with or without a slash at its end.
    same = ~lines.is_wild[line_of] & (lines.key_lengths[line_of] == new.lengths)
    plain = np.flatnonzero(~covered & ~same)
    refused = np.flatnonzero(covered & denied)
    blocks, by_lines = _refused(text, new, lines, refused[np.argsort(places[refused], kind="stable")], line_of)
    rows = np.concatenate((plain, by_lines))
    at_least = np.concatenate((~lines.is_void[line_of[plain]], np.zeros(len(by_lines), np.bool_)))
    order = np.argsort(rows)
    own = np.flatnonzero(same)
    exact = _Counts(places[own], new.uri_m[own], new.uri_r[own], new.bounds[own])
    nearest = places.copy()
    apart = np.flatnonzero(~lines.is_wild[line_of])
    nearest[apart] = text.above_keys(new, apart)
    changed = _in_order(exact, _totals(text, nearest, new))
    return changed, blocks, _Added(rows[order], at_least[order])


def _totals(text: _Text, nearest: Ints, new: _New) -> _Counts:
    """What is new below each wildcard that is not void, given the nearest one of each new key."""
    found: list[_Counts] = []
    uri_m, uri_r = np.maximum(new.uri_m, 0), np.maximum(new.uri_r, 0)
    while True:
        at, uri_m, uri_r = _summed(nearest, uri_m, uri_r)
        if not len(at):
            break
        lines = text.lines(at)
        changes = ~lines.is_void
        found.append(_Counts(at[changes], uri_m[changes], uri_r[changes], np.zeros(int(changes.sum()), np.uint8)))
        nearest = text.above_lines(lines)
    whole = _in_order(*found)
    at, uri_m, uri_r = _summed(whole.at, whole.uri_m, whole.uri_r)
    return _Counts(at, uri_m, uri_r, np.zeros(len(at), np.uint8))


def _summed(places: Ints, uri_m: Ints, uri_r: Ints) -> tuple[Ints, Ints, Ints]:
    """Places in order, each once, and the sums of what is there; -1 is left out."""
    kept = places >= 0
    at, which = np.unique(places[kept], return_inverse=True)
    sums = np.zeros((2, len(at)), np.int64)
    np.add.at(sums[0], which, uri_m[kept])
    np.add.at(sums[1], which, uri_r[kept])
    return at, sums[0], sums[1]


def _in_order(*parts: _Counts) -> _Counts:
    if not parts:
        none = np.empty(0, np.int64)
        return _Counts(none, none, none, np.empty(0, np.uint8))
    at = np.concatenate([part.at for part in parts])
    order = np.argsort(at, kind="stable")
    return _Counts(
        at[order],
        np.concatenate([part.uri_m for part in parts])[order],
        np.concatenate([part.uri_r for part in parts])[order],
        np.concatenate([part.bounds for part in parts])[order],
    )


def _refused(text: _Text, new: _New, lines: _Lines, rows: Ints, line_of: Ints) -> tuple[dict[int, bytes], Ints]:
    """Add keys that the set of a wildcard denies: to its line as a set of their own, or by lines, if those are shorter.

    `rows` are in the order of their lines. Returns the blocks of changed lines and the rows that get lines of their
    own. What the set denies is certainly not in the map, so such a line has exact counts.
    """
    blocks: dict[int, bytes] = {}
    if not len(rows):
        return blocks, rows
    starts = np.concatenate(([0], np.flatnonzero(np.diff(line_of[rows])) + 1))
    sizes = np.add.reduceat(new.lengths[rows] + _TOKEN, starts)
    in_sets = np.zeros(len(rows), np.bool_)
    ends = np.append(starts[1:], len(rows))
    for group in np.flatnonzero(sizes > _ITEM).tolist():
        start, end = int(starts[group]), int(ends[group])
        line = int(line_of[rows[start]])
        block = _with_members(text, new, lines, line, rows[start:end], int(sizes[group]))
        if block is not None:
            blocks[int(lines.at[line])] = block
            in_sets[start:end] = True
    return blocks, rows[~in_sets]


def _with_members(text: _Text, new: _New, lines: _Lines, line: int, rows: Ints, size: int) -> bytes | None:
    """The block of a line with a set of new keys; None if that takes more than `size` bytes, or too much for a line."""
    block = text.block(lines, line)
    below = bits_below(block)
    if not below:
        return None
    bits = max(width for width in BITS if width <= below)
    anchor = anchor_of(text.key(lines, line))
    at, lengths, suffixes, count = _members(new, rows, anchor)
    gates = count - len(rows)
    equations = bits * count + VALUE_BITS * gates
    if _ITEM + equations / 6 >= size or lines.lengths[line] + equations / 5 >= LONGEST_LINE:
        return None
    values = np.where(suffixes >= 2, BITS.index(bits) + 1, -1).astype(np.int8)
    parts, data = encode_set(new.text, at, lengths, suffixes, np.full(count, bits, np.uint8), values, _SPARE)
    return with_another_set(block, parts, data, bits).encode("utf-8", "surrogateescape")


def _members(new: _New, rows: Ints, anchor: int) -> tuple[Ints, Ints, NDArray[np.uint8], int]:
    """The names of a set of new keys below an anchor, gates included, and their number."""
    capacity = 4 * len(rows) + 16
    while True:
        at, lengths, suffixes = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.uint8)
        count = members_below(new.text, new.offsets, new.lengths, rows, anchor, at, lengths, suffixes)
        if count >= 0:
            return at[:count], lengths[:count], suffixes[:count], count
        capacity *= 4
