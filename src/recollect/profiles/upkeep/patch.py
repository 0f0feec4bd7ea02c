"""Adding a small profile to a compacted map, at the cost of the small one and one copy of the large one.

Hides: which lines have to change. Merging (`maps.merge`) reads every record of both; here the records of the large map
are only split into lines, and looked at where a new key meets them. The result answers as the merged map would:

- A new key that the map has as it is: the frequencies are merged. A void gives way.
- A new key whose most specific wider key holds something is held already; no line is added.
- Any other new key, below nothing, below a void, or below a wildcard of unknown or hashed content, gets its line.
- Every wildcard above a new key gets what is new below it, as its total includes all it covers. Void wildcards stay.

Why nothing held is missed (law 1): no line is removed or narrowed, and no void is added, so what the map answered with
yes it still does; a new key is answered by its own line, or by the wildcard that was most specific for it and holds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from recollect.errors import FormatError
from recollect.formats.containers import atomic_output
from recollect.formats.frequency import Count, Frequency, merge
from recollect.profiles.maps.plainmap import open_plain
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
        lines = plain.data[plain.start :].tobytes().splitlines(keepends=True)
        added, changed = _changes(lines, addition.data[addition.start :].tobytes().splitlines())
        for number, line in changed.items():
            lines[number] = line
        # Keys have no byte as low as the blank after them, so lines are in the order of their keys.
        lines = sorted(lines + added) if added else lines
        counts = plain.header.meta.get("counts")
        captures = counts.get("captures") if isinstance(counts, dict) else None
        said = {**plain.header.meta, **meta}
        said.pop("gamma", None)
        if isinstance(captures, int):
            said["counts"] = {"captures": captures + _captures(addition.header.meta), "keys": len(lines)}
        with atomic_output(target) as out:
            out.write(replace(plain.header, meta=said).encode())
            out.writelines(lines)
    return Patched(len(lines), len(added), len(changed))


def _captures(meta: Mapping[str, Any]) -> int:
    counts = meta.get("counts")
    found = counts.get("captures") if isinstance(counts, dict) else None
    return found if isinstance(found, int) else 0


def _changes(lines: list[bytes], new: list[bytes]) -> tuple[list[bytes], dict[int, bytes]]:
    """Lines to add, and lines that change by their number."""
    at = {line.partition(b" ")[0]: number for number, line in enumerate(lines)}
    wild: dict[bytes, tuple[int, ...]] = {}  # for each folder the wildcards above its keys, the nearest first
    totals: dict[int, list[int]] = {}
    added: list[bytes] = []
    changed: dict[int, bytes] = {}
    for line in new:
        key, _, token = line.partition(b" ")
        own = Frequency.parse(token.split()[0])
        folder = key.rpartition(b"/")[0]
        above = wild.get(folder)
        if above is None:
            above = wild[folder] = _above(key, at)
        covering = above
        if not key.endswith(b"/") and (below := at.get(key + b"/*")) is not None:
            covering = (below, *covering)
        for number in covering:
            total = totals.setdefault(number, [0, 0])
            total[0] += own.uri_m.value or 0
            total[1] += own.uri_r.value or 0
        if (number_of := at.get(key)) is not None:
            changed[number_of] = _with(lines[number_of], own)
        elif not covering or not _holds(lines[covering[0]]):
            added.append(b"%b %b\n" % (key, str(_claim(own, covering, lines)).encode()))
    for number, (captures, uri_rs) in totals.items():
        if not _frequency(lines[number]).is_void:
            changed[number] = _with(lines[number], Frequency.exact(captures, uri_rs))
    return added, changed


def _above(key: bytes, at: Mapping[bytes, int]) -> tuple[int, ...]:
    """The wildcards of the map above a key's siblings, the nearest first, by the number of their lines."""
    own = key + b"/*"
    return tuple(at[wide] for wide in lookup_keys(key)[1:] if wide != own and wide in at)


def _frequency(line: bytes) -> Frequency:
    return Frequency.parse(line.split(None, 2)[1])


def _holds(line: bytes) -> bool:
    """Whether a wildcard says yes to all that it covers: it holds something and has no block that says more."""
    words = line.split(None, 2)
    return len(words) == 2 and Frequency.parse(words[1]).held is True


def _claim(own: Frequency, covering: tuple[int, ...], lines: list[bytes]) -> Frequency:
    """What may be said of a key that gets its own line: what the map has of it is nothing, or unknown."""
    if not covering or _frequency(lines[covering[0]]).is_void:
        return own
    return Frequency(Count(own.uri_m.value, "+"), Count(own.uri_r.value, "+"))


def _with(line: bytes, more: Frequency) -> bytes:
    words = line.rstrip(b"\r\n").split(b" ", 2)
    rest = b" " + words[2] if len(words) > 2 else b""
    return b"%b %b%b\n" % (words[0], str(merge(Frequency.parse(words[1]), more)).encode(), rest)
