"""Adding a small profile to a compacted map, at the cost of the small one and one copy of the large one.

Hides: which lines have to change. Merging (`maps.merge`) reads every record of both; here the text of the large map
is searched, and only the lines that a new key meets are looked at. The result answers as the merged map would:

- A new key that the map has as it is: the frequencies are merged. A void gives way.
- A new key whose most specific wider key holds something is held already; no line is added.
- Any other new key, below nothing, below a void, or below a wildcard of unknown or hashed content, gets its line.
- Every wildcard above a new key gets what is new below it, as its total includes all it covers. Void wildcards stay.

Why nothing held is missed (law 1): no line is removed or narrowed, and no void is added, so what the map answered with
yes it still does; a new key is answered by its own line, or by the wildcard that was most specific for it and holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from recollect.errors import FormatError
from recollect.formats.containers import atomic_output
from recollect.formats.frequency import Count, Frequency, merge, parse_token
from recollect.kernels.search import MapSearch
from recollect.profiles.maps.plainmap import PlainMap, open_plain
from recollect.uris import lookup_keys


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch did to a map."""

    keys: int
    added: int
    changed: int


def patch(
    base: str | os.PathLike[str], new: str | os.PathLike[str], target: str | os.PathLike[str], meta: Mapping[str, Any]
) -> Patched:
    """Add the exact keys of the profile `new` to the map `base`; `meta` goes into the header of the result."""
    with open_plain(base) as plain, open_plain(new) as addition:
        if set(plain.header.values) != {"frequency"} or len(plain.header.keys) != 1:
            raise FormatError("a map with more columns than a key and a frequency", where=plain.label)
        text = _Text(plain)
        added, changed = _changes(text, addition.data[addition.start :].tobytes().splitlines())
        keys = text.bytes.count(b"\n", plain.start) + len(added)
        counts = plain.header.meta.get("counts")
        captures = counts.get("captures") if isinstance(counts, dict) else None
        said = {**plain.header.meta, **meta}
        said.pop("gamma", None)
        if isinstance(captures, int):
            said["counts"] = {"captures": captures + _captures(addition.header.meta), "keys": keys}
        with atomic_output(target) as out:
            out.write(replace(plain.header, meta=said).encode())
            out.writelines(text.pieces(added, changed))
    return Patched(keys, len(added), len(changed))


def _captures(meta: Mapping[str, Any]) -> int:
    counts = meta.get("counts")
    found = counts.get("captures") if isinstance(counts, dict) else None
    return found if isinstance(found, int) else 0


class _Text:
    """The text of the large map: only the lines that a new key meets are looked at, by the place where they begin."""

    def __init__(self, plain: PlainMap) -> None:
        self.bytes = plain.data.tobytes()
        if len(self.bytes) > plain.start and not self.bytes.endswith(b"\n"):
            self.bytes += b"\n"
        self._search = MapSearch(self.bytes, plain.start)
        self._start = plain.start
        self._above: dict[bytes, tuple[int, ...]] = {}

    def find(self, key: bytes) -> int:
        """Where the line of a key begins; -1 if there is none."""
        at = self._search.place(key)
        return at if self.bytes.startswith(key + b" ", at) else -1

    def line(self, at: int) -> bytes:
        return self.bytes[at : self.bytes.index(b"\n", at)]

    def wildcards(self, key: bytes) -> tuple[int, ...]:
        """The lines of the wildcards above a key, the nearest first."""
        folder = key.rpartition(b"/")[0]
        above = self._above.get(folder)
        if above is None:
            above = self._above[folder] = self._of_folder(folder)
        own = -1 if key.endswith(b"/") else self.find(key + b"/*")
        return above if own < 0 else (own, *above)

    def _of_folder(self, folder: bytes) -> tuple[int, ...]:
        if b"/" not in folder:  # a host and its closing bracket
            return tuple(at for wide in lookup_keys(folder + b"/")[1:] if (at := self.find(wide)) >= 0)
        upper = folder.rpartition(b"/")[0]
        above = self._above.get(upper)
        if above is None:
            above = self._above[upper] = self._of_folder(upper)
        at = self.find(folder + b"/*")
        return above if at < 0 else (at, *above)

    def pieces(self, added: list[tuple[bytes, bytes]], changed: Mapping[int, bytes]) -> Iterator[bytes]:
        """The records with new lines in their places; keys have no byte as low as the blank that follows them."""
        edits = [(self._search.place(key), False, line) for key, line in added]
        edits += [(at, True, line) for at, line in changed.items()]
        at = self._start
        for place, replaces, line in sorted(edits):
            yield self.bytes[at:place]
            yield line
            at = self.bytes.index(b"\n", place) + 1 if replaces else place
        yield self.bytes[at:]


def _changes(text: _Text, new: list[bytes]) -> tuple[list[tuple[bytes, bytes]], dict[int, bytes]]:
    """Lines to add with their keys, and lines that change by the place where they begin."""
    totals: dict[int, list[int]] = {}
    added: list[tuple[bytes, bytes]] = []
    changed: dict[int, bytes] = {}
    for record in new:
        words = record.split(None, 2)
        key, own = words[0], parse_token(words[1])
        covering = text.wildcards(key)
        for place in covering:
            total = totals.setdefault(place, [0, 0])
            total[0] += own.uri_m.value or 0
            total[1] += own.uri_r.value or 0
        if (at := text.find(key)) >= 0:
            changed[at] = _with(text.line(at), own)
        elif not covering or not _holds(text.line(covering[0])):
            added.append((key, b"%b %b\n" % (key, str(_claim(own, covering, text)).encode())))
    for place, (captures, uri_rs) in totals.items():
        line = text.line(place)
        if not _frequency(line).is_void:
            changed[place] = _with(line, Frequency.exact(captures, uri_rs))
    return added, changed


def _frequency(line: bytes) -> Frequency:
    return parse_token(line.split(None, 2)[1])


def _holds(line: bytes) -> bool:
    """Whether a wildcard says yes to all that it covers: it holds something and has no block that says more."""
    words = line.split(None, 2)
    return len(words) == 2 and parse_token(words[1]).held is True


def _claim(own: Frequency, covering: tuple[int, ...], text: _Text) -> Frequency:
    """What may be said of a key that gets its own line: what the map has of it is nothing, or unknown."""
    if not covering or _frequency(text.line(covering[0])).is_void:
        return own
    return Frequency(Count(own.uri_m.value, "+"), Count(own.uri_r.value, "+"))


def _with(line: bytes, more: Frequency) -> bytes:
    words = line.rstrip(b"\r\n").split(b" ", 2)
    rest = b" " + words[2] if len(words) > 2 else b""
    return b"%b %b%b\n" % (words[0], _sum(words[1], more), rest)


@lru_cache(maxsize=1 << 14)
def _sum(token: bytes, more: Frequency) -> bytes:
    return str(merge(parse_token(token), more)).encode()
