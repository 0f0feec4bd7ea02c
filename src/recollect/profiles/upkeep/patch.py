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
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError
from recollect.formats.containers import atomic_output
from recollect.formats.frequency import VOID, Count, Frequency, merge, parse_token
from recollect.kernels.search import MapSearch
from recollect.kernels.sets import BITS, VALUE_BITS, encode_set
from recollect.profiles.maps.maptext import MappedText
from recollect.profiles.maps.plainmap import PlainMap, open_plain
from recollect.profiles.maps.sets import bits_below, with_another_set
from recollect.uris import lookup_keys, parent

LONGEST_LINE = 80_000  # bytes of a line with sets, see docs/ukvs.md
_ITEM = 56  # bytes of a set in a line besides its members, about
_START = re.compile(rb"(\S+)\s+(\S+)")
_TOKEN = 5  # bytes of a line besides its key, about

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch did to a map."""

    keys: int
    added: int
    changed: int


@dataclass(frozen=True, slots=True)
class _New:
    """The records of the small profile: their keys, also as one buffer, and their counts."""

    keys: list[bytes]
    frequencies: list[Frequency]
    buffer: NDArray[np.uint8]
    starts: Ints
    lengths: Ints


@dataclass(slots=True)
class _Edits:
    """Lines to add, with their keys, and lines that change, by the place where they begin."""

    added: list[tuple[bytes, bytes]]
    changed: dict[int, bytes]


def patch(
    base: str | os.PathLike[str], new: str | os.PathLike[str], target: str | os.PathLike[str], meta: Mapping[str, Any]
) -> Patched:
    """Add the exact keys of the profile `new` to the map `base`; `meta` goes into the header of the result."""
    with open_plain(base) as plain, open_plain(new) as addition:
        if set(plain.header.values) != {"frequency"} or len(plain.header.keys) != 1:
            raise FormatError("a map with more columns than a key and a frequency", where=plain.label)
        text = _Text(plain)
        edits = _edits(text, _records(addition))
        keys = text.bytes.count(b"\n", plain.start) + len(edits.added)
        counts = plain.header.meta.get("counts")
        captures = counts.get("captures") if isinstance(counts, dict) else None
        said = {**plain.header.meta, **meta}
        said.pop("gamma", None)
        if isinstance(captures, int):
            said["counts"] = {"captures": captures + _captures(addition.header.meta), "keys": keys}
        with atomic_output(target) as out:
            out.write(replace(plain.header, meta=said).encode())
            out.writelines(text.pieces(edits))
    return Patched(keys, len(edits.added), len(edits.changed))


def _captures(meta: Mapping[str, Any]) -> int:
    counts = meta.get("counts")
    found = counts.get("captures") if isinstance(counts, dict) else None
    return found if isinstance(found, int) else 0


def _records(addition: PlainMap) -> _New:
    keys: list[bytes] = []
    frequencies: list[Frequency] = []
    for record in addition.data[addition.start :].tobytes().splitlines():
        words = record.split(None, 2)
        keys.append(words[0])
        frequencies.append(parse_token(words[1]))
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    return _New(keys, frequencies, np.frombuffer(b"".join(keys), np.uint8), np.cumsum(lengths) - lengths, lengths)


class _Text:
    """The text of the large map, in which lines are known by the place where they begin."""

    def __init__(self, plain: PlainMap) -> None:
        self.bytes = plain.data.tobytes()
        if len(self.bytes) > plain.start and not self.bytes.endswith(b"\n"):
            self.bytes += b"\n"
        self._mapped = MappedText(memoryview(self.bytes), plain.label)
        self._search = MapSearch(self.bytes, plain.start)
        self._start = plain.start
        self._above: dict[bytes, tuple[int, ...]] = {}

    def deciding(self, new: _New) -> tuple[Ints, NDArray[np.bool_]]:
        """The line that decides about each new key (-1: none), and which keys are denied by its set."""
        places = self._mapped.search_many(new.buffer, new.starts, new.lengths)
        denied = self._mapped.denied(new.buffer, new.starts, new.lengths, places)
        return places, denied

    def find(self, key: bytes) -> int:
        """Where the line of a key begins; -1 if there is none."""
        at = self._search.place(key)
        return at if self.bytes.startswith(key + b" ", at) else -1

    def line(self, at: int) -> bytes:
        return self.bytes[at : self.bytes.index(b"\n", at)]

    def start_of(self, at: int) -> tuple[bytes, Frequency]:
        """Key and frequency of a line, whose block is not looked at."""
        words = _START.match(self.bytes, at)
        if words is None:
            raise FormatError("a line without a frequency", why=self.line(at)[:80].decode("utf-8", "replace"))
        return words[1], parse_token(words[2])

    def above(self, key: bytes) -> tuple[int, ...]:
        """The lines of the wildcards above a key or a wildcard, the nearest first."""
        wider = parent(key)
        if wider is None:
            return ()
        found = self._above.get(wider)
        if found is None:
            at = self.find(wider)
            found = self.above(wider) if at < 0 else (at, *self.above(wider))
            self._above[wider] = found
        return found

    def pieces(self, edits: _Edits) -> Iterator[bytes]:
        """The records with new lines in their places; keys have no byte as low as the blank that follows them."""
        ordered = [(self._search.place(key), False, line) for key, line in edits.added]
        ordered += [(at, True, line) for at, line in edits.changed.items()]
        at = self._start
        for place, replaces, line in sorted(ordered):
            yield self.bytes[at:place]
            yield line
            at = self.bytes.index(b"\n", place) + 1 if replaces else place
        yield self.bytes[at:]


def _edits(text: _Text, new: _New) -> _Edits:
    """What changes in the map."""
    edits = _Edits([], {})
    places, denied = text.deciding(new)
    lines, line_of = np.unique(places, return_inverse=True)
    deciding = [text.start_of(at) if at >= 0 else (b"", VOID) for at in lines.tolist()]
    is_wild = np.array([key.endswith(b"*") for key, _ in deciding], np.bool_)
    is_held = np.array([frequency.held is True for _, frequency in deciding], np.bool_)
    below = _below(lines, line_of, is_wild, new)  # what is new below a wildcard and below no nearer one
    covered = (is_wild & is_held)[line_of]
    for row in np.flatnonzero(~covered).tolist():
        key, own, (said, frequency) = new.keys[row], new.frequencies[row], deciding[line_of[row]]
        if not said.endswith(b"*") and (above := text.above(key)):
            _add(below, above[0], own.uri_m.value or 0, own.uri_r.value or 0)
        if said == key:
            at = int(places[row])
            edits.changed[at] = _with(text.line(at), own)
        else:
            edits.added.append((key, _line(key, own if frequency.is_void else _at_least(own))))
    for at, (captures, uri_rs) in _totals(text, below).items():
        if not text.start_of(at)[1].is_void:
            edits.changed[at] = _with(text.line(at), Frequency.exact(captures, uri_rs))
    rows = np.flatnonzero(covered & denied)
    rows = rows[np.argsort(places[rows], kind="stable")]
    for group in np.split(rows, np.flatnonzero(np.diff(places[rows])) + 1) if len(rows) else ():
        more = [(new.keys[row], new.frequencies[row]) for row in group.tolist()]
        _add_refused(edits, int(places[group[0]]), deciding[line_of[group[0]]][0], more)
    return edits


def _below(lines: Ints, line_of: Ints, is_wild: NDArray[np.bool_], new: _New) -> dict[int, list[int]]:
    """Captures and URI-Rs of the new keys that each wildcard decides about."""
    totals = np.zeros((2, len(lines)), np.int64)
    count = len(new.keys)
    np.add.at(totals[0], line_of, np.fromiter((own.uri_m.value or 0 for own in new.frequencies), np.int64, count))
    np.add.at(totals[1], line_of, np.fromiter((own.uri_r.value or 0 for own in new.frequencies), np.int64, count))
    wild = np.flatnonzero(is_wild)
    return dict(zip(lines[wild].tolist(), totals[:, wild].T.tolist(), strict=True))


def _add(totals: dict[int, list[int]], place: int, captures: int, uri_rs: int) -> None:
    total = totals.setdefault(place, [0, 0])
    total[0] += captures
    total[1] += uri_rs


def _totals(text: _Text, below: dict[int, list[int]]) -> dict[int, list[int]]:
    """What is new below each wildcard."""
    totals = {at: list(new) for at, new in below.items()}
    for at, (captures, uri_rs) in below.items():
        for place in text.above(text.start_of(at)[0]):
            _add(totals, place, captures, uri_rs)
    return totals


def _add_refused(edits: _Edits, at: int, wildcard: bytes, new: Sequence[tuple[bytes, Frequency]]) -> None:
    """Add keys that the set of a wildcard denies: to its line as a set of their own, or by lines, if those are shorter.

    What the set denies is certainly not in the map, so a line has exact counts.
    """
    words = edits.changed[at].rstrip(b"\n").split(b" ", 2)
    block = words[2].decode("utf-8", "surrogateescape")
    by_lines = sum(len(key) + _TOKEN for key, _ in new)
    if by_lines > _ITEM and (below := bits_below(block)):
        bits = max(width for width in BITS if width <= below)
        members = _members(wildcard, [key for key, _ in new], bits)
        equations = sum(width + (VALUE_BITS if value >= 0 else 0) for _, width, value in members)
        if _ITEM + equations / 6 < by_lines and len(edits.changed[at]) + equations / 5 < LONGEST_LINE:
            changed = with_another_set(block, *_encoded(members), bits).encode("utf-8", "surrogateescape")
            edits.changed[at] = b"%b %b %b\n" % (words[0], words[1], changed)
            return
    edits.added += [(key, _line(key, own)) for key, own in new]


def _members(wildcard: bytes, keys: Sequence[bytes], bits: int) -> list[tuple[bytes, int, int]]:
    """The members of a set below a wildcard: keys, and the gates on the way to them, with the value of a gate or -1."""
    value = BITS.index(bits) + 1
    gates: dict[bytes, None] = {}
    for key in keys:
        for gate in _gates(wildcard, key):
            if gate in gates:
                break  # and so are all above it
            gates[gate] = None
    return [*((gate, bits, value) for gate in gates), *((key, bits, -1) for key in keys)]


def _gates(wildcard: bytes, key: bytes) -> Iterator[bytes]:
    """The wildcards between a key's own node and a wildcard above it, the nearest first."""
    if b")" not in wildcard:
        yield from takewhile(lambda above: above != wildcard, lookup_keys(key)[2:])
        return
    name = key.rpartition(b"/")[0]
    while len(name) > len(wildcard) - 2:
        yield name + b"/*"
        name = name.rpartition(b"/")[0]


def _encoded(members: Sequence[tuple[bytes, int, int]]) -> tuple[int, bytes]:
    names, bits, values = zip(*members, strict=True)
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    return encode_set(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum(lengths) - lengths,
        lengths,
        np.zeros(len(names), np.uint8),
        np.array(bits, np.uint8),
        np.array(values, np.int8),
    )


def _line(key: bytes, own: Frequency) -> bytes:
    return b"%b %b\n" % (key, str(own).encode())


def _at_least(own: Frequency) -> Frequency:
    """What may be said of a key of which the map may hold more, below a wildcard."""
    return Frequency(Count(own.uri_m.value, "+"), Count(own.uri_r.value, "+"))


def _with(line: bytes, more: Frequency) -> bytes:
    words = line.rstrip(b"\r\n").split(b" ", 2)
    rest = b" " + words[2] if len(words) > 2 else b""
    return b"%b %b%b\n" % (words[0], _sum(words[1], more), rest)


@lru_cache(maxsize=1 << 14)
def _sum(token: bytes, more: Frequency) -> bytes:
    return str(merge(parse_token(token), more)).encode()
