"""The maps of archives: for each what it holds, what it does not hold, or a filter.

Hides: file names and what several maps of one archive say together. A file belongs to an archive by its name:
`<id>.ukvs`, `<id>.voids.ukvs`, `<id>.filter`, with or without `.gz`, `.bgz`, `.bz2` or `.zst`, or a folder `<id>.ukvs`
of parts. Each of them never says "no" of something that is held, so a single "no" is enough to skip an archive.

A map that is damaged or unsorted would make us skip what an archive holds, so it is checked before it is believed:
whole up to 64 MB, else its first lines (`recollect validate` reads all). A map that fails is an error for that archive
alone: the archive is asked as if it had none, and the problem is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.aggregator.routing import Evidence
from recollect.archives.registry import Archive
from recollect.errors import BadURI, FormatError, RecollectError
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import MapFile, validate

if TYPE_CHECKING:
    from recollect.profiles.maps.lookup import Holdings, Lookup
    from recollect.profiles.maps.maptext import MapText

_NAME = re.compile(
    r"(?P<id>.+?)(?:\.voids)?\.(?P<kind>ukvs|mementomap|filter)(?:\.(?:gz|bgz|bz2|zst|zstd))?", re.IGNORECASE
)
_CHECKED_WHOLE = 64 * 10**6
_FIRST_RECORDS = 20_000
# Faults that may hide a held URI from a lookup; others, such as an empty line, harm nobody.
_FATAL = frozenset(
    {
        *("bad-frequency", "bad-key", "bad-quotes", "damaged", "empty-file", "literal-star", "unsorted"),
        "wrong-field-count",
    }
)
_ANYTHING = 0.5  # what a wildcard without counts makes us expect


@dataclass(frozen=True, slots=True)
class ArchiveMap:
    """One open map of one archive."""

    archive: str
    source: str
    """`map`, `voids` or `filter`."""
    holdings: Holdings
    path: str
    nothing: Evidence
    """What it says of a URI it has no key for."""
    text: MapText | None
    """The text of a map that is searched by normal keys; None of filters, and of maps by a policy's keys."""


@dataclass(frozen=True)
class Maps:
    """All maps, as they were when they were opened."""

    maps: tuple[ArchiveMap, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def open(cls, directory: str | Path | None, archives: Sequence[Archive]) -> Maps:
        """Open every map of the directory whose name is that of an archive, and the files that archives name as their
        `map` themselves."""
        opened: list[ArchiveMap] = []
        problems: list[str] = []
        for archive, path, kind in _found(directory, archives, problems):
            try:
                opened.append(_opened(archive, path, kind))
            except (RecollectError, OSError) as error:
                problems.append(f"{path}: {error}")
        return cls(tuple(opened), tuple(problems))

    def evidence(self, uri_r: str) -> dict[str, Evidence]:
        """What the maps say of a URI, by archive. A URI that has no key is unknown to all."""
        from recollect.profiles.maps.lookup import keys_of  # here, because a server without maps needs no Numba

        try:
            keys = keys_of(uri_r)
        except BadURI:
            return {}
        found: dict[str, Evidence] = {}
        for one in self.maps:
            known = found.get(one.archive)
            if known is not None and known.answer == "no":
                continue
            # Most maps hold most URIs not at all: the keys, found once for all maps, are searched before all else.
            if one.text is not None and not any(map(one.text.find, keys)):
                said = one.nothing
            else:
                lookup = one.holdings.lookup(uri_r)
                said = one.nothing if lookup.key is None else _evidence(one, lookup)
            if known is None or said.answer == "no" or known.answer == "unknown":
                found[one.archive] = said
        return found

    def describe(self) -> Mapping[str, str]:
        """By archive, which kinds of maps it has."""
        kinds: dict[str, list[str]] = {}
        for one in self.maps:
            kinds.setdefault(one.archive, []).append(one.source)
        return {archive: ", ".join(words) for archive, words in kinds.items()}


def _opened(archive: str, path: Path, kind: str) -> ArchiveMap:
    if kind != "filter":
        for part in sorted(path.rglob("*.ukvs*")) if path.is_dir() else [path]:
            _check(part)
    from recollect.profiles.maps.lookup import MementoMap, open_map

    holdings = open_map(path)
    voids = holdings.header.lists_voids
    source = "filter" if kind == "filter" else "voids" if voids else "map"
    nothing = Evidence("unknown", source) if voids else Evidence("no", source, "no key")
    plain = holdings.header.policy in ("", "HxPx")
    text = holdings.text if isinstance(holdings, MementoMap) and plain else None
    return ArchiveMap(archive, source, holdings, str(path), nothing, text)


def _check(path: Path) -> None:
    """Raise FormatError for a map that must not be believed."""
    if path.stat().st_size <= _CHECKED_WHOLE:
        for fault in validate(path):
            if fault.code in _FATAL:
                place = f"{path}:{fault.line}" if fault.line else str(path)
                raise FormatError("not a sound map", where=place, why=fault.reason, hint=f"recollect validate {path}")
    with MapFile(path) as file:
        records = sum(1 for _ in islice(file.records(ordered=True), _FIRST_RECORDS))
        if not records and not (file.header.context or file.header.meta or file.header.id):
            raise FormatError("an empty file is no map", where=str(path))


def _evidence(one: ArchiveMap, lookup: Lookup) -> Evidence:
    assert lookup.key is not None
    key = lookup.key.decode("utf-8", "replace")
    if lookup.frequency is None:  # a filter counts nothing
        return Evidence(lookup.answer, one.source, key)
    expected = _expected(lookup.frequency, wild=key.endswith("*")) if lookup.answer == "yes" else 1.0
    return Evidence(lookup.answer, one.source, key, str(lookup.frequency), expected)


def _expected(frequency: Frequency, *, wild: bool) -> float:
    """Mementos to expect: of an exact key its count; of a wildcard the mean of a URI-R below it, if it is there."""
    mementos, originals = frequency.uri_m.value, frequency.uri_r.value
    if not wild:
        return float(mementos) if mementos is not None else 1.0
    if mementos is None or not originals:
        return _ANYTHING
    return max(_ANYTHING, mementos / originals * _ANYTHING)


def _found(
    directory: str | Path | None, archives: Sequence[Archive], problems: list[str]
) -> Iterator[tuple[str, Path, str]]:
    """(archive, file, kind) of every map; names that belong to nobody are told."""
    # Some file systems do not keep upper and lower case; where they do, the very name goes first.
    known = {archive.id.lower(): archive.id for archive in archives} | {archive.id: archive.id for archive in archives}
    for path in _files(directory) if directory is not None else []:
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        owner = known.get(match["id"]) or known.get(match["id"].lower())
        if owner is not None:
            yield owner, path, match["kind"].lower()
        else:
            problems.append(f"{path}: no archive is called {match['id']!r}")
    for archive in archives:
        if archive.map and "://" not in archive.map:
            match = _NAME.fullmatch(Path(archive.map).name)
            yield archive.id, Path(archive.map), match["kind"].lower() if match else "ukvs"


def _files(directory: str | Path) -> list[Path]:
    place = Path(directory)
    if not place.is_dir():
        raise RecollectError("no directory of maps", where=str(directory), hint="make it, or leave --maps out")
    return sorted(path for path in place.iterdir() if not path.name.startswith("."))


def stamp_of(directory: str | Path | None, archives: Sequence[Archive]) -> tuple[tuple[str, int, int, int], ...]:
    """What changes when a map is added, removed or replaced."""
    stamps = []
    for _, path, _ in _found(directory, archives, []):
        if path.exists():
            status = path.stat()
            stamps.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(stamps)
