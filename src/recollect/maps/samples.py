"""Maps of samples: what was asked of an archive from outside, and the chance that it holds anything else.

Hides: the levels of the estimate, their place in a map, and the threshold for a guaranteed recall.

A map of a sample has `"scope": "sample"` in its `!meta`. A key that it lacks is unknown. Its lines:

    com,example)/a 1+/1+ {"asked": 1, "held": 1}      asked for and held
    com,example)/b / {"asked": 1, "held": 0}          asked for and not held then: unknown, because captures are added
    com,example,* 3+/3+ {"asked": 4, "held": 3}       a registered domain: what was asked for below it, and held
    com,example,www)/* / {"asked": 2, "held": 0}      a host, where it is not the domain itself
    com,* / {"asked": 90, "held": 31, "root": [9, 5]} a top-level domain; `root`: the same of addresses without a path
    * / {"asked": 500, "held": 120, "depth": [[60, 30], ...]}   all; `depth`: by path segments, 0 to 3 and more
    org,gone,* 0 {"listed": 0}                        a complete listing was empty: the only lines that say no
    org,full,* 812/233 {"listed": 812}                a complete listing
    com,example)/c 3+/1+ {"found": 2, "datetime": {"2010": "3+"}, "media_type": {"text/html": "3+"}}
                                                      two searches found it; captures as far as the archive stated them

The estimate. The chance that an archive holds a URI is that of all URIs, corrected by each narrower level in
proportion to what was asked there: p = (held + M·p_wider) / (asked + M), in the order archive, depth, top-level
domain, top-level domain with root or deep, registered domain, host. M is the one of `WEIGHTS` that predicts the sample
best, each URI judged without itself (leave one out). The chance of all URIs counts half a find more than were made; it
counts in the choice of M, too, as if it were spread over the sample. Without it, an archive with hardly any finds gets
the smallest M, and each level repeats the same absences until the chance is a millionth.

The guarantee. For a wanted recall the held URIs of the sample are judged without themselves and sorted. A URI that is
not in the sample takes any place among n of them with the same probability, so a threshold at the j-th of them misses
(j + 1) / (n + 1) of what is held. Where even the lowest misses too much there are too few probes, and the archive is
asked. A threshold is never above the chance of all URIs: what is more probable than usual is not skipped, however
likely the finds of the sample are.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from recollect.errors import FormatError
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Record
from recollect.maps.searches import Searches, searches_of
from recollect.uris import ancestors, segments
from recollect.uris.suffixes import registered_name

WEIGHTS = tuple(2.0**power for power in range(11))
TARGET_RECALL = 0.95
_DEPTHS = 4
_ALL = b"*"
_HALF_A_FIND = 0.5
_LEAST = 2.0**-53  # keeps the logarithm finite where a chance rounds to 1

Columns = dict[str, dict[str, int]]
"""By column (`datetime`, `media_type`, `language`): captures by value."""
COLUMNS = ("datetime", "media_type", "language")
Counts = tuple[int, int]
"""How many URIs were asked for, and how many of them were held."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One URI that was asked for, by its key."""

    key: bytes
    held: bool


@dataclass(frozen=True)
class Sample:
    """The probes of one archive, counted by level; `weight` is M."""

    counts: Mapping[bytes, Counts]
    weight: float = WEIGHTS[2]

    @property
    def total(self) -> Counts:
        return self.counts.get(_ALL, (0, 0))

    @property
    def usual(self) -> float:
        """The chance that the archive holds a URI without any evidence."""
        asked, held = self.total
        return (held + _HALF_A_FIND) / (asked + 1.0)

    def chance(self, key: bytes) -> float:
        """The chance that the archive holds a key."""
        return self._chance(levels(key), self.weight, 0, 0)

    def chance_without(self, probe: Probe, weight: float | None = None) -> float:
        """The chance of a probe of this sample, had it not been made."""
        return self._chance(levels(probe.key), self.weight if weight is None else weight, 1, int(probe.held))

    def chance_as_find(self, key: bytes) -> float:
        """The chance that a find of the same levels has when it is judged without itself."""
        asked, held = self.total
        less = min(held, 1)
        chance = (held - less + _HALF_A_FIND) / (asked - less + 1.0)
        for name in levels(key):
            known = self.counts.get(name)
            if known is not None:
                less = min(known[1], 1)
                chance = (known[1] - less + self.weight * chance) / (known[0] - less + self.weight)
        return chance

    def _chance(self, names: Sequence[bytes], weight: float, less_asked: int, less_held: int) -> float:
        asked, held = self.total
        chance = (held - less_held + _HALF_A_FIND) / (asked - less_asked + 1.0)
        for name in names:
            known = self.counts.get(name)
            if known is not None:
                asked, held = known[0] - less_asked, known[1] - less_held
                chance = (held + weight * chance) / (asked + weight)
        return chance


def sample_of(probes: Sequence[Probe]) -> Sample:
    """Count probes by level and choose the weight that predicts them best."""
    return _weighted(counted(probes), probes)


def counted(probes: Iterable[Probe]) -> dict[bytes, Counts]:
    """How many probes were asked for and held, by level."""
    counts: dict[bytes, list[int]] = {_ALL: [0, 0]}
    for probe in probes:
        for name in (_ALL, *levels(probe.key)):
            mine = counts.setdefault(name, [0, 0])
            mine[0] += 1
            mine[1] += probe.held
    return {name: (asked, held) for name, (asked, held) in counts.items()}


def _weighted(counts: Mapping[bytes, Counts], probes: Sequence[Probe]) -> Sample:
    sample = Sample(counts)

    def loss(weight: float) -> float:
        total = 0.0
        for probe in probes:
            chance = sample.chance_without(probe, weight)
            total -= math.log(chance if probe.held else max(1.0 - chance, _LEAST))
            total -= _HALF_A_FIND / len(probes) * math.log(chance)
        return total

    return Sample(counts, min(WEIGHTS, key=loss)) if probes else sample


def finds_of(sample: Sample, probes: Iterable[Probe]) -> list[float]:
    """The chances of the held URIs, each judged without itself, in ascending order."""
    return sorted(sample.chance_without(probe) for probe in probes if probe.held)


_ROUNDING = 1 + 1e-9  # chances that differ by less are the same


def rank_of(finds: Sequence[float], chance: float, as_find: float) -> tuple[float, float]:
    """Where a URI that was not probed stands among what is held: the share that is likelier, and the share that is
    likelier or as likely.

    The URI takes any place among the n finds and itself with the same probability (conformal prediction). Had it been
    probed and held, a find of the same levels would have its chance; judged in the sample as it is, without itself,
    that find has `as_find` instead. So finds between both are as likely as the URI."""
    number = len(finds)
    likelier = number - bisect_right(finds, chance * _ROUNDING)
    same = number - likelier - bisect_left(finds, min(chance, as_find) / _ROUNDING)
    return likelier / (number + 1), (likelier + same + 1) / (number + 1)


def threshold(sample: Sample, probes: Iterable[Probe], target_recall: float) -> float | None:
    """The chance from which on a URI is asked for so that the wanted share of what is held is found; None if the probes
    are too few to promise it."""
    finds = finds_of(sample, probes)
    place = math.floor((1.0 - target_recall) * (len(finds) + 1) + 1e-9) - 1
    return min(finds[place], sample.usual) if place >= 0 else None


# Levels --------------------------------------------------------------------------------------------------------------


def levels(key: bytes) -> tuple[bytes, ...]:
    """The names of a key's levels below the archive, widest first. Names with `#` are parts of a wildcard's block."""
    hosts, path = segments(key)
    depth = min(sum(1 for segment in path if segment), _DEPTHS - 1)
    host = key.partition(b")")[0]
    names = [b"*#%d" % depth]
    if len(hosts) > 1 and not hosts[1].startswith(b":"):
        names += [hosts[0] + b",*", hosts[0] + b",*#%d" % min(depth, 1)]
    domain = _domain(hosts)
    if domain:
        names.append(domain + b",*")
    if domain != host:
        names.append(host + b")/*")
    return tuple(names)


@lru_cache(maxsize=1 << 16)
def _domain(hosts: tuple[bytes, ...]) -> bytes:
    """The registered domain among the segments of a host; empty for an address or a name without one."""
    labels = [label for label in hosts if not label.startswith(b":")]
    if len(labels) < 2:
        return b""
    name = ".".join(label.decode("ascii", "replace") for label in reversed(labels))
    registered = registered_name(name)
    return b",".join(labels[: registered.count(".") + 1]) if registered else b""


# As a map ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Listed:
    """A listing of all below a wildcard: how many captures and URI-Rs it showed, and whether it was complete."""

    captures: int = 0
    uri_rs: int = 0
    complete: bool = True


@dataclass(slots=True)
class Observed:
    """All that is known of an archive from outside."""

    probes: dict[bytes, bool] = field(default_factory=dict)
    """By key: asked for, and held or not."""
    seen: set[bytes] = field(default_factory=set)
    """Keys that a listing or a search showed."""
    listings: dict[bytes, Listed] = field(default_factory=dict)
    """By wildcard."""
    estimates: dict[bytes, int] = field(default_factory=dict)
    """By wildcard: estimated URI-Rs below it."""
    columns: dict[bytes, Columns] = field(default_factory=dict)
    """By key: captures by year, media type and language, as far as the archive stated them."""
    found: Counter[bytes] = field(default_factory=Counter)
    """By key: how many searches found it."""

    def describe(self, key: bytes, columns: Columns) -> None:
        """Keep captures of a key by columns; of two statements the one with more captures stays."""
        known = self.columns.setdefault(key, {})
        for name, counts in columns.items():
            if sum(counts.values()) > sum(known.get(name, {}).values()):
                known[name] = counts

    def as_probes(self) -> list[Probe]:
        return [Probe(key, held) for key, held in self.probes.items()]


def records_of(observed: Observed) -> list[Record]:
    """The lines of the map, sorted."""
    sample = sample_of(observed.as_probes())
    blocks: dict[bytes, dict[str, Any]] = {}
    for name, (asked, held) in sample.counts.items():
        key, _, part = name.partition(b"#")
        if not part:
            blocks.setdefault(key, {}).update(asked=asked, held=held)
    _add_parts(blocks, sample)
    frequencies = {key: _counted(key, block["held"]) for key, block in blocks.items()}
    for key in observed.seen:
        frequencies[key] = _AT_LEAST_ONE
    for key, held in observed.probes.items():
        blocks.setdefault(key, {}).update(asked=1, held=int(held))
        if held or key not in frequencies:
            frequencies[key] = _AT_LEAST_ONE if held else _UNKNOWN
    _add_captures(frequencies, blocks, observed)
    for key, estimate in observed.estimates.items():
        frequencies[key] = Frequency.parse(f"{estimate}~/{estimate}~")
        blocks.setdefault(key, {})["estimate"] = estimate
    for key, listing in observed.listings.items():
        mark = "" if listing.complete else "+"
        if listing.complete or listing.captures:
            spelled = f"{listing.captures}{mark}/{listing.uri_rs}{mark}" if listing.captures else "0"
            frequencies[key] = Frequency.parse(spelled)
        blocks.setdefault(key, {})["listed"] = listing.captures
    frequencies.setdefault(_ALL, _UNKNOWN)
    _drop_contradicted(frequencies, observed)
    return [
        Record(key, (), frequency, json.dumps(blocks[key]) if key in blocks else "")
        for key, frequency in sorted(frequencies.items())
    ]


_AT_LEAST_ONE = Frequency.parse("1+/1+")
_UNKNOWN = Frequency.parse("/")


def _counted(key: bytes, held: int) -> Frequency:
    """A domain or host of which something is held says so; a top-level domain says nothing about a URI."""
    if not held or key == _ALL or (key.endswith(b",*") and b"," not in key[:-2]):
        return _UNKNOWN
    return Frequency.parse(f"{held}+/{held}+")


def _add_captures(frequencies: dict[bytes, Frequency], blocks: dict[bytes, dict[str, Any]], observed: Observed) -> None:
    """Captures by year, media type and language. They are those of one URI, and the key may have others, with queries;
    and a TimeMap may have more pages. So every count is a lower bound."""
    for key, columns in observed.columns.items():
        if not frequencies.get(key, _UNKNOWN).held:
            continue
        captures = max((sum(counts.values()) for name, counts in columns.items() if name != "language"), default=1)
        frequencies[key] = Frequency.parse(f"{max(captures, 1)}+/1+")
        for name, counts in columns.items():
            if name in COLUMNS and counts:
                shown = {value: f"{count}+" for value, count in sorted(counts.items())}
                blocks.setdefault(key, {})[name] = shown
    for key, number in observed.found.items():
        blocks.setdefault(key, {})["found"] = number


def _add_parts(blocks: dict[bytes, dict[str, Any]], sample: Sample) -> None:
    depths = [list(sample.counts.get(b"*#%d" % depth, (0, 0))) for depth in range(_DEPTHS)]
    blocks.setdefault(_ALL, {"asked": 0, "held": 0})["depth"] = depths
    for name, counts in sample.counts.items():
        if name.endswith(b",*#0"):
            blocks[name[:-2]]["root"] = list(counts)


def _drop_contradicted(frequencies: dict[bytes, Frequency], observed: Observed) -> None:
    """An empty listing does not outweigh something that was seen below it: such a line becomes unknown."""
    if not any(frequency.is_void for frequency in frequencies.values()):
        return
    for key in (*observed.seen, *(key for key, held in observed.probes.items() if held)):
        for wildcard in ancestors(key):
            if wildcard in frequencies and frequencies[wildcard].is_void:
                frequencies[wildcard] = _UNKNOWN


@dataclass(frozen=True)
class SampleMap:
    """A map of a sample, read back: its estimate and its probes."""

    sample: Sample
    probes: tuple[Probe, ...]
    searches: Searches | None = None

    @cached_property
    def finds(self) -> list[float]:
        """The chances of the held probes, each judged without itself, in ascending order."""
        return finds_of(self.sample, self.probes)

    def threshold(self, target_recall: float) -> float | None:
        return threshold(self.sample, self.probes, target_recall)


def read_sample(records: Iterable[Record], where: str = "") -> SampleMap:
    """The sample that the lines of a map were written from; raises FormatError where a block is broken."""
    counts: dict[bytes, Counts] = {}
    probes: list[Probe] = []
    found: dict[bytes, int] = {}
    for record in records:
        if not record.json:
            continue
        try:
            block = json.loads(record.json)
            if "found" in block and not record.key.endswith(b"*"):
                found[record.key] = int(block["found"])
            if "asked" not in block:
                continue
            asked, held = _pair((block["asked"], block["held"]))
            if not record.key.endswith(b"*"):
                probes.append(Probe(record.key, held > 0))
                continue
            counts[record.key] = (asked, held)
            _read_parts(record.key, block, counts)
        except UNREADABLE as error:
            key = record.key.decode("utf-8", "replace")
            raise FormatError("a sample's counts cannot be read", where=f"{where}: {key}", why=str(error)) from error
    for name, (asked, held) in counted(probes).items():
        known = counts.get(name)  # absent where suffixes changed since the map was made
        if known is not None and (known[1] < held or known[0] - known[1] < asked - held):
            key = name.decode("utf-8", "replace")
            why = f"{known[0]} asked and {known[1]} held, but its lines show {asked} and {held}"
            raise FormatError("a sample's counts do not fit its lines", where=f"{where}: {key}", why=why)
    return SampleMap(_weighted(counts, probes), tuple(probes), searches_of(found))


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What a block of another shape raises."""


def _pair(value: Sequence[Any]) -> Counts:
    asked, held = int(value[0]), int(value[1])
    if not 0 <= held <= asked:
        raise ValueError(f"{held} held of {asked} asked")
    return asked, held


def _read_parts(key: bytes, block: Mapping[str, Any], counts: dict[bytes, Counts]) -> None:
    for depth, pair in enumerate(block.get("depth", ())):
        counts[b"*#%d" % depth] = _pair(pair)
    if key == _ALL or not key.endswith(b",*") or b"," in key[:-2]:
        return
    root = _pair(block.get("root", (0, 0)))
    asked, held = counts[key]
    counts[key + b"#0"] = root
    counts[key + b"#1"] = _pair((asked - root[0], held - root[1]))
