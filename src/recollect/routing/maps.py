"""The maps of archives: for each what it holds, what it does not hold, or a filter.

Hides: file names and what several maps of one archive say together. A file belongs to an archive by its name:
`<id>.ukvs`, `<id>.voids.ukvs`, `<id>.filter`, with or without `.gz`, `.bgz`, `.bz2` or `.zst`, or a folder `<id>.ukvs`
of parts. Each of them never says "no" of something that is held, so a single "no" is enough to skip an archive.

A map that is damaged or unsorted would hide what an archive holds, so it is checked before it is used:
whole up to 64 MB, else its first lines (`recollect validate` reads all). A map that fails is an error for that archive
alone: the archive is asked as if it had none, and the problem is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.archives.registry import Archive
from recollect.errors import BadURI, FormatError, RecollectError
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import MapFile
from recollect.maps.growth import USUAL, Depth, Growth, depth_of, depth_of_wildcard, growth_of
from recollect.model import Answer
from recollect.quantities import counted
from recollect.routing.choice import (
    MAX_STALE_LOSS,
    USUAL_PROBABILITY,
    WILDCARD_CHANCE,
    Evidence,
    Rank,
    Reason,
    Source,
    chance_since,
    combined,
)

if TYPE_CHECKING:
    from recollect.formats.ukvs.faults import Fault
    from recollect.maps.calibration import Model
    from recollect.maps.lookup import Holdings, Lookup
    from recollect.maps.maptext import MapText
    from recollect.maps.samples import SampleMap
    from recollect.maps.scope import Query, Scope
    from recollect.maps.searches import Searches

_NAME = re.compile(
    r"(?P<id>.+?)(?:\.voids)?\.(?P<kind>ukvs|mementomap|filter)(?:\.(?:gz|bgz|bz2|zst|zstd))?", re.IGNORECASE
)
_CHECKED_WHOLE = 64 * 10**6
_FIRST_RECORDS = 20_000
# Errors that may hide a held URI from a lookup; others, such as an empty line, have no effect.
_FATAL = frozenset(
    {
        *("bad-frequency", "bad-key", "bad-quotes", "damaged", "empty-file", "literal-star", "unsorted"),
        "wrong-field-count",
    }
)
# Faults of a line's block: its hashed set is ignored, so the line covers all below its wildcard.
_WITHOUT_SET = frozenset({"bad-json", "bad-set", "other-set"})
# A smaller share of new keys is not worth a search for the depth of an absence.
_NO_SHARE = 1e-4


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FoundMap:
    """A file (or folder of parts) that is the map or filter of an archive."""

    archive: str
    path: Path
    is_filter: bool


def find_maps(
    directory: str | Path | None, archives: Sequence[Archive]
) -> tuple[tuple[FoundMap, ...], tuple[str, ...]]:
    """The one definition of which map belongs to which archive: the files of a directory by their names, then those
    that archives name as their `map`. Also returned: the problems, such as a map of an archive that is not listed."""
    # Some file systems do not keep upper and lower case; where they do, the very name goes first.
    known = {archive.id.lower(): archive.id for archive in archives} | {archive.id: archive.id for archive in archives}
    found: list[FoundMap] = []
    problems: list[str] = []
    for path in _files(directory) if directory is not None else []:
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        owner = owner_of(path.name, known)
        if owner is not None:
            found.append(FoundMap(owner, path, match["kind"].lower() == "filter"))
        else:
            problems.append(f"{path}: no archive is called {match['id']!r}")
    for archive in archives:
        if archive.map and "://" not in archive.map:
            match = _NAME.fullmatch(Path(archive.map).name)
            is_filter = match is not None and match["kind"].lower() == "filter"
            found.append(FoundMap(archive.id, Path(archive.map), is_filter))
    return tuple(found), tuple(problems)


def owner_of(name: str, known: Mapping[str, str]) -> str | None:
    """The id of the archive whose map a file is by its name, as `known` spells it (by id, and by id in lower case). An
    id may have dots: `web.archive.ukvs.zst` is the map of `web.archive`."""
    match = _NAME.fullmatch(name)
    return None if match is None else known.get(match["id"]) or known.get(match["id"].lower())


@dataclass(frozen=True, slots=True)
class ArchiveMap:
    """One open map of one archive."""

    archive: str
    source: Source
    """MAP, VOIDS or FILTER."""
    holdings: Holdings
    path: str
    nothing: Evidence
    """What it says of a URI it has no key for, within its scope."""
    text: MapText | None
    """The text of a map that is searched by normal keys; None of filters, and of maps by a policy's keys."""
    sample: SampleMap | None = None
    """Of a map of a sample: its estimate."""
    has_times: bool = False
    """Whether its lines may say when something was captured."""
    growth: Growth = USUAL
    """How the archive grows, by which a "no" ages."""
    chances: Model | None = None
    """How likely its wildcards' yes is true, if learned here; else the shipped prior says so."""
    threshold: float | None = None
    """The chance from which on a sampled archive is asked; None if the probes are too few to skip it anywhere."""
    target: float = 1.0
    """The recall that the threshold is for."""


@dataclass(frozen=True)
class Maps:
    """All maps, as they were when they were opened."""

    maps: tuple[ArchiveMap, ...] = ()
    problems: tuple[str, ...] = ()
    """Maps that are not used, and why."""
    warnings: tuple[str, ...] = ()
    """Maps that are used, but say no to everything, or have hashed sets that cannot be read."""
    clock: Callable[[], datetime] = _now

    @classmethod
    def open(
        cls, directory: str | Path | None, archives: Sequence[Archive], *, clock: Callable[[], datetime] = _now
    ) -> Maps:
        """Open every map of the directory whose name is that of an archive, and the files that archives name as their
        `map` themselves."""
        found, problems = find_maps(directory, archives)
        opened: list[ArchiveMap] = []
        failed: list[str] = []
        warnings: list[str] = []
        for one in found:
            try:
                opened.append(_opened(one, warnings))
                if is_empty(opened[-1].holdings):
                    what = "filter" if one.is_filter else "map"
                    warnings.append(
                        f"{one.path}: the {what} is empty: it says no to everything, so {one.archive} is never asked"
                    )
            except (RecollectError, OSError) as error:
                failed.append(f"{one.path}: {error}")
        # An index knows more than a sample: what it says goes first, and a sample is asked only where it says nothing.
        opened.sort(key=lambda one: one.source is Source.SAMPLE)
        return cls(tuple(opened), (*problems, *failed), tuple(warnings), clock)

    def ages(self) -> dict[str, float]:
        """By archive, seconds since the moment up to which its newest map is complete; without maps that state it."""
        now = self.clock()
        found: dict[str, float] = {}
        for one in self.maps:
            until = one.holdings.scope.complete_until
            if until is not None:
                age = max(0.0, (now - until).total_seconds())
                found[one.archive] = min(age, found.get(one.archive, age))
        return found

    def of(self, archive: str) -> tuple[ArchiveMap, ...]:
        """The maps of one archive."""
        return tuple(one for one in self.maps if one.archive == archive)

    def may_hold(self, archive: str, uri_r: str) -> bool:
        """Whether an archive may hold a URI: False only when one of its maps says no and is not too old for it."""
        mine = self.of(archive)
        found = Maps(mine, clock=self.clock).evidence(uri_r).get(archive) if mine else None
        if found is None or found.answer != Answer.NO:
            return True
        return chance_since(found.new_share, USUAL_PROBABILITY) > MAX_STALE_LOSS

    def probes(self) -> Iterator[tuple[str, list[tuple[bytes, bool]]]]:
        """What maps of samples were made from: (archive, the keys that were asked for and whether each was held)."""
        for one in self.maps:
            if one.sample is not None:
                yield one.archive, [(probe.key, probe.held) for probe in one.sample.probes]

    def close(self) -> None:
        for one in self.maps:
            one.holdings.close()

    def evidence(self, uri_r: str, at: datetime | None = None, *, any_status: bool = False) -> dict[str, Evidence]:
        """What the maps say of a URI, by archive; with `at` also how far from it the nearest captures lie. A URI that
        has no key is unknown to all. With `any_status` a map of captures with some statuses does not say no."""
        from recollect.maps.lookup import keys_of, period_of  # here, because a server without maps does not need it
        from recollect.maps.scope import ANY, Query

        try:
            keys = keys_of(uri_r)
        except BadURI:
            return {}
        query = ANY if at is None and not any_status else Query(period_of(at) if at else None, any_status=any_status)
        found: dict[str, Evidence] = {}
        for one in self.maps:
            known = found.get(one.archive)
            if known is not None and _decided(one, known, uri_r):
                continue
            # Most maps hold most URIs not at all: the keys, found once for all maps, are searched before all else.
            if one.text is not None and not any(map(one.text.find, keys)):
                said = one.nothing
            else:
                lookup = one.holdings.decide(uri_r)
                said = one.nothing if lookup.key is None else _evidence(one, lookup)
                if at is not None and one.has_times and said.answer == Answer.YES:
                    said = said._replace(gap=_gap(one, keys, at))
            if said.answer == Answer.NO:
                said = _aged(_in_scope(said, one.holdings.scope, uri_r, query), one, keys, self.clock)
            if one.sample is not None and said.answer != Answer.NO:
                said = _estimated(one, one.sample, keys, said)
            if known is None or (one.source is Source.SAMPLE and said.exact):
                found[one.archive] = said
            elif known.answer == Answer.UNKNOWN:
                found[one.archive] = combined(said, known)
            else:
                found[one.archive] = combined(known, said)
        return found

    def describe(self) -> Mapping[str, str]:
        """By archive, which kinds of maps it has."""
        kinds: dict[str, list[str]] = {}
        for one in self.maps:
            kinds.setdefault(one.archive, []).append(one.source)
        return {archive: ", ".join(words) for archive, words in kinds.items()}


def _decided(one: ArchiveMap, known: Evidence, uri_r: str) -> bool:
    """Whether what earlier maps of an archive say needs no further map: they have the exact key, or say no and the map
    is not of a sample that saw the very URI, which an index may lack because it is older."""
    if known.answer == Answer.NO and known.reason is not Reason.UNLIKELY and not known.new_share:
        if one.source is not Source.SAMPLE:
            return True
        lookup = one.holdings.lookup(uri_r)
        return lookup.answer != Answer.YES or lookup.key is None or lookup.key.endswith(b"*")
    return one.source is Source.SAMPLE and known.exact


def _opened(found: FoundMap, warnings: list[str]) -> ArchiveMap:
    path = found.path
    if not found.is_filter:
        for part in sorted(path.rglob("*.ukvs*")) if path.is_dir() else [path]:
            warnings += _check(part)
    from recollect.maps.lookup import MementoMap, open_map
    from recollect.maps.samplescope import is_sample

    holdings = open_map(path)
    header = holdings.header
    voids = header.lists_voids
    source = Source.FILTER if found.is_filter else Source.VOIDS if voids else Source.MAP
    plain = header.policy in ("", "HxPx")
    text = holdings.text if isinstance(holdings, MementoMap) and plain else None
    if is_sample(header):
        return _opened_sample(found, holdings)
    nothing = Evidence(Answer.UNKNOWN, source) if voids else Evidence(Answer.NO, source)
    times = text is not None and source is Source.MAP
    growth = growth_of(header.meta.get("growth"))
    chances = model_beside(path)
    return ArchiveMap(
        found.archive, source, holdings, str(path), nothing, text, has_times=times, growth=growth, chances=chances
    )


def model_beside(path: Path) -> Model | None:
    """The model that `recollect evaluate --learn` wrote beside a map, as `chances.json`."""
    from recollect.maps.calibration import LEARNED, Model

    place = path.parent / LEARNED
    return Model.load(place) if place.is_file() else None


def _opened_sample(found: FoundMap, holdings: Holdings) -> ArchiveMap:
    from recollect.maps.samples import TARGET_RECALL, read_sample

    with MapFile(found.path) as file:
        sample = read_sample(file.records(), str(found.path))
    wanted = holdings.header.meta.get("target_recall", TARGET_RECALL)
    target = float(wanted) if isinstance(wanted, int | float) and 0 < wanted < 1 else TARGET_RECALL
    nothing = Evidence(Answer.UNKNOWN, Source.SAMPLE)
    place = str(found.path)
    return ArchiveMap(
        found.archive,
        Source.SAMPLE,
        holdings,
        place,
        nothing,
        None,
        sample,
        threshold=sample.threshold(target),
        target=target,
    )


def _check(path: Path) -> list[str]:
    """Raise FormatError for a map that must not be used; returns what else its user should know."""
    unread: list[Fault] = []
    if path.stat().st_size <= _CHECKED_WHOLE:
        from recollect.formats.ukvs.faults import validate

        for fault in validate(path):
            if fault.code in _FATAL:
                place = f"{path}:{fault.line}" if fault.line else str(path)
                raise FormatError("not a valid map", where=place, why=fault.reason, hint=f"recollect validate {path}")
            if fault.code in _WITHOUT_SET:
                unread.append(fault)
    with MapFile(path) as file:
        records = sum(1 for _ in islice(file.records(ordered=True), _FIRST_RECORDS))
        if not records and not (file.header.context or file.header.meta or file.header.id):
            raise FormatError("an empty file is not a map", where=str(path))
    if not unread:
        return []
    more = f" (and {counted(len(unread) - 1, 'more line')})" if len(unread) > 1 else ""
    reason = f"{unread[0].reason}{more}: the block is ignored, and everything below the wildcard counts as held"
    return [f"{path}:{unread[0].line}: {reason}"]


def is_empty(holdings: Holdings) -> bool:
    """Whether an open map or filter says no to everything: it has no record. A folder of parts is taken to have some;
    a map of voids or of a sample says nothing of what it does not have."""
    from recollect.maps.samplescope import is_sample

    path, header = Path(holdings.path), holdings.header
    if path.is_dir() or header.lists_voids or is_sample(header):
        return False
    if "filter" in header.meta:
        return header.meta.get("keys") == 0
    with MapFile(path) as file:
        return next(iter(file.records()), None) is None


def _evidence(one: ArchiveMap, lookup: Lookup) -> Evidence:
    assert lookup.key is not None
    key = lookup.key.decode("utf-8", "replace")
    wild = key.endswith("*")
    chance = _wildcard_chance(lookup, one.chances) if wild and lookup.answer == Answer.YES else None
    source = Source.SET if lookup.by_set else one.source
    sources = (source,) if lookup.answer == Answer.YES else ()
    if lookup.frequency is None:  # a filter counts nothing, and one key in 2^bits that it lacks seems to be there
        factor = 1.0 if wild else 2.0 ** _bits(one.holdings)
        return Evidence(lookup.answer, one.source, key, chance=chance, sources=sources, factor=factor)
    expected = _expected(lookup.frequency, chance) if lookup.answer == Answer.YES else 1.0
    exact = lookup.answer == Answer.YES and not wild
    said = Evidence(lookup.answer, source, key, str(lookup.frequency), expected, chance=chance, sources=sources)
    return said._replace(exact=True) if exact else said


def _in_scope(said: Evidence, scope: Scope, uri_r: str, query: Query) -> Evidence:
    """A "no" as far as the scope of its map goes: outside of it nothing is known."""
    from recollect.maps.scope import LimitKind

    limit = scope.limit(uri_r, query)
    if limit is not None:
        of_pages = limit.kind is LimitKind.MEDIA_TYPE
        return said._replace(answer=Answer.UNKNOWN, note=str(limit), of_pages=of_pages)
    if scope.filters.since or scope.filters.until:
        return said._replace(reason=Reason.NONE_IN_PERIOD, note=scope.definition())
    return said._replace(note=scope.definition())


def _aged(said: Evidence, one: ArchiveMap, keys: Sequence[bytes], clock: Callable[[], datetime]) -> Evidence:
    """A "no" with its day, and the share of keys that are expected to be new since."""
    until = one.holdings.scope.complete_until
    if said.answer != Answer.NO or until is None:
        return said
    said = said._replace(as_of=f"{until:%Y-%m-%d}")
    days = (clock() - until).total_seconds() / 86400.0
    if days <= 0 or one.growth.share(Depth.KEY, days) < _NO_SHARE:
        return said
    if said.key.endswith("*") and said.source is not Source.SET:
        depth = depth_of_wildcard(said.key.encode())
    elif one.text is not None:
        depths = {depth_of(one.text, key) for key in keys}
        depth = next(depth for depth in (Depth.KEY, Depth.PATH, Depth.HOST) if depth in depths)
    else:
        depth = Depth.KEY
    return said._replace(new_share=one.growth.share(depth, days))


def _bits(holdings: Holdings) -> int:
    bits = holdings.header.meta.get("bits")
    return bits if isinstance(bits, int) else 8


def _gap(one: ArchiveMap, keys: Sequence[bytes], at: datetime) -> float:
    """Seconds from a datetime to the nearest period in which the map has captures; 0 if the map has no times."""
    from recollect.maps.times import seconds_away

    assert one.text is not None
    return seconds_away(one.text, keys, at) or 0.0


def _estimated(one: ArchiveMap, sample: SampleMap, keys: Sequence[bytes], said: Evidence) -> Evidence:
    """What a sample says of a URI that it did not see: held with a chance, and too unlikely below the threshold."""
    from recollect.maps.samples import rank_of

    if said.answer == Answer.YES and not said.key.endswith("*"):
        return said
    if not sample.sample.total[0]:
        if sample.searches is not None:
            return _searched(one, sample.searches, keys, said)
        return said._replace(answer=Answer.UNKNOWN) if said.answer == Answer.YES else said  # listings alone
    chance = max(sample.sample.chance(key) for key in keys)
    if sample.searches is not None and any(sample.searches.covers(key, 0) for key in keys):
        chance = max(chance, *(sample.searches.chance(key, sample.sample.usual) for key in keys))
    unlikely = one.threshold is not None and chance < one.threshold
    answer = Answer.NO if unlikely else Answer.UNKNOWN
    estimate = Evidence(answer, one.source, said.key, said.frequency, chance, Reason.UNLIKELY, chance, (one.source,))
    promise = 1.0 if one.threshold is None else one.target
    as_find = max(sample.sample.chance_as_find(key) for key in keys)
    return estimate._replace(rank=Rank(*rank_of(sample.finds, chance, as_find)), promise=promise)


def _searched(one: ArchiveMap, searches: Searches, keys: Sequence[bytes], said: Evidence) -> Evidence:
    """What searches say of a URI that they did not find: unlikely where nothing was found on its domain, if that misses
    no more than the map's target allows."""
    level = searches.level(one.target)
    unlikely = level is not None and not any(searches.covers(key, level) for key in keys)
    answer = Answer.NO if unlikely else Answer.UNKNOWN
    chance = max(searches.chance(key, USUAL_PROBABILITY) for key in keys)
    estimate = Evidence(answer, one.source, said.key, said.frequency, chance, Reason.UNLIKELY, chance, (one.source,))
    missed = searches.missed(0)
    covered = any(searches.covers(key, 0) for key in keys)
    rank = Rank(0.0, 1.0 - missed) if covered else Rank(1.0 - missed, 1.0)
    return estimate._replace(rank=rank, promise=1.0 if level is None else one.target)


def _wildcard_chance(lookup: Lookup, learned: Model | None) -> float:
    """How likely a wildcard's yes is true, by its counts (`maps.calibration`); without counts the usual one."""
    from recollect.maps.calibration import PRIOR, case_of

    counts = lookup.frequency
    if counts is None or (counts.uri_m.value is None and counts.uri_r.value is None):
        return WILDCARD_CHANCE
    assert lookup.key is not None
    return (learned or PRIOR).chance(case_of(lookup.key, counts, _normal_key(lookup.uri), bits=lookup.set_bits))


@lru_cache(maxsize=64)
def _normal_key(uri: str) -> bytes:
    from recollect.maps.lookup import keys_of

    return keys_of(uri)[0]


def _expected(frequency: Frequency, chance: float | None) -> float:
    """Mementos to expect: of an exact key its count; of a wildcard the mean of a URI-R below it, by its chance."""
    mementos, originals = frequency.uri_m.value, frequency.uri_r.value
    if chance is None:
        return float(mementos) if mementos is not None else 1.0
    return chance * max(1.0, mementos / originals if mementos is not None and originals else 1.0)


def _files(directory: str | Path) -> list[Path]:
    place = Path(directory)
    if not place.is_dir():
        raise RecollectError("no directory of maps", where=str(directory), hint="make it, or leave --maps out")
    return sorted(path for path in place.iterdir() if not path.name.startswith("."))


def stamp_of(directory: str | Path | None, archives: Sequence[Archive]) -> tuple[tuple[str, int, int, int], ...]:
    """What changes when a map is added, removed or replaced."""
    stamps = []
    for one in find_maps(directory, archives)[0]:
        if one.path.exists():
            status = one.path.stat()
            stamps.append((str(one.path), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(stamps)
