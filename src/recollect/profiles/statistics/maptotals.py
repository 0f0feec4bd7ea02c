"""Captures and URI-Rs of a map as a whole: its outermost lines together, as the totals of a wildcard include what it
covers.

Hides: which lines are outermost. A wildcard may stand behind lines that it covers, so the wildcards are found first
(and only they are kept in memory), then every line adds to the nearest held wildcard above it, or to the total.
Where the lines below a wildcard prove its total too small, they are a lower bound. A void covers nothing. `*` and
`com,*` are totals: hosts are counted below them. Rows of one key in other columns are one line (`whole_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from recollect.formats.cdx import MAX_KEY
from recollect.formats.containers import OnProblem
from recollect.formats.frequency import VOID, Count, Frequency
from recollect.formats.ukvs import Header, Record, open_map
from recollect.maps.lookup import whole_of
from recollect.maps.mapinputs import WILDCARD
from recollect.maps.samplescope import refuse_sample
from recollect.profiles.statistics.statscan import SortedSurts
from recollect.quantities import counted as number
from recollect.uris import lookup_keys, segments
from recollect.uris.keys import ancestors

_ALL = b"*"


@dataclass(slots=True)
class MapCounts:
    """What the lines of a map, or of a range of it, say together."""

    lines: int = 0
    keys: int = 0
    """Exact keys that hold something."""
    wildcards: int = 0
    """Wildcards that hold something."""
    covered_keys: int = 0
    """Exact keys below wildcards: their captures are among those of the wildcards."""
    outermost: Frequency = VOID
    """The sum of the outermost lines, without wide wildcards and without `tops`."""
    tops: dict[bytes, Frequency] = field(default_factory=dict)
    """The sums below top-level domains that may have a wildcard, here or in another range."""
    wide: dict[bytes, Frequency] = field(default_factory=dict)
    """The wildcards of top-level domains, and `*`."""

    def add(self, other: MapCounts) -> None:
        """Add another range."""
        self.lines += other.lines
        self.keys += other.keys
        self.wildcards += other.wildcards
        self.covered_keys += other.covered_keys
        self.outermost = self.outermost + other.outermost
        for name, frequency in other.tops.items():
            self.tops[name] = self.tops.get(name, VOID) + frequency
        self.wide.update(other.wide)

    @property
    def total(self) -> Frequency:
        """All of it. A count that no line states is unknown; one that some lines lack is a lower bound."""
        found = self.outermost
        for held in self.of_tops().values():
            found = found + held
        return inclusive(self.wide.get(_ALL), found)

    def of_tops(self) -> dict[bytes, Frequency]:
        """What top-level domains hold that may have a wildcard."""
        names = dict.fromkeys((*self.tops, *(key[:-2] for key in self.wide if key != _ALL)))
        return {name: inclusive(self.wide.get(name + b",*"), self.tops.get(name, VOID)) for name in names}


def inclusive(own: Frequency | None, below: Frequency) -> Frequency:
    """The total of a wildcard: its own, unless what is listed below it proves that too small."""
    if own is None:
        return below
    if below.is_void:
        return own
    return Frequency(_at_least(own.uri_m, below.uri_m), _at_least(own.uri_r, below.uri_r))


def _at_least(own: Count, below: Count) -> Count:
    least, _ = below.interval
    _, most = own.interval
    if own.value is None:
        return Count(least, "+") if least else own
    if (most is not None and least > most) or (own.bound in ("+", "~") and least > own.value):
        return Count(least, "+")
    return own


def count_map(
    path: str, on_problem: OnProblem, seen: SortedSurts | None = None, crossing: Iterable[bytes] = ()
) -> MapCounts:
    """Go through a map, or a range of one; its keys, TLDs and hosts are counted in `seen`, if given.

    `crossing` are top-level domains of a range that may go on in another one: what they hold is in `tops`.
    """
    with open_map(path, lambda _problem: None) as opened:
        refuse_sample(opened.header, path, "described by its counts")
        some = any(WILDCARD.search(piece) for piece in opened.pieces())
    wildcards: dict[bytes, Frequency] = {}
    if some:
        with open_map(path, lambda _problem: None) as opened:
            wildcards = {key: held for key, _, held in _lines(opened.records()) if key.endswith(b"*")}
    with open_map(path, on_problem) as opened:
        total = _Counting(wildcards, frozenset(crossing), seen)
        for key, lines, frequency in _lines(opened.records(ordered=True), total.note_void):
            total.take(key, lines, frequency)
        return total.finish()


def _lines(
    records: Iterable[Record], on_void: Callable[[int], None] | None = None
) -> Iterator[tuple[bytes, int, Frequency]]:
    """Each key that holds something, its number of rows, and what it holds."""
    for key, rows in groupby(records, key=lambda record: record.key):
        same = list(rows)
        frequency = whole_of(same)
        if not frequency.is_void:
            yield key, len(same), frequency
        elif on_void is not None:
            on_void(len(same))


class _Counting:
    """One pass over the lines, with the wildcards known."""

    def __init__(
        self, wildcards: Mapping[bytes, Frequency], crossing: frozenset[bytes], seen: SortedSurts | None
    ) -> None:
        wide = {key: held for key, held in wildcards.items() if is_wide(key)}
        self.counts = MapCounts(wide=wide)
        self._crossing = crossing | {key[:-2] for key in wide if key != _ALL}
        self._wildcards = {key: held for key, held in wildcards.items() if key not in wide}
        self._below: dict[bytes, Frequency] = {}
        self._seen = seen
        self._keys: list[bytes] = []
        self._captures: list[int] = []

    def note_void(self, lines: int) -> None:
        self.counts.lines += lines

    def take(self, key: bytes, lines: int, frequency: Frequency) -> None:
        """The next line that holds something."""
        self.counts.lines += lines
        if key.endswith(b"*"):
            self.counts.wildcards += 1
            return
        self.counts.keys += 1
        above = next((one for one in lookup_keys(key)[1:] if one in self._wildcards), None) if self._wildcards else None
        if above is not None:
            self.counts.covered_keys += 1
            self._below[above] = self._below.get(above, VOID) + frequency
        else:
            self._add(key, frequency)
        if self._seen is not None and len(key) <= MAX_KEY:
            self._keys.append(key)
            self._captures.append((frequency.uri_m.value or 0) if above is None else 0)
            if len(self._keys) >= 1 << 16:
                self._flush()

    def finish(self) -> MapCounts:
        """All lines have come: wildcards hand up what they hold, the innermost first."""
        self._flush()
        if self._seen is not None:
            self._seen.finish()
        above = {key: ancestors(key) for key in self._wildcards}
        for key in sorted(self._wildcards, key=lambda one: -len(above[one])):
            held = inclusive(self._wildcards[key], self._below.pop(key, VOID))
            nearest = next((one for one in above[key] if one in self._wildcards), None)
            if nearest is not None:
                self._below[nearest] = self._below.get(nearest, VOID) + held
            else:
                self._add(key, held)
                if self._seen is not None:
                    self._seen.counts.add_wildcard(key, held.uri_m.value or 0)
        return self.counts

    def _add(self, key: bytes, frequency: Frequency) -> None:
        top = _top_of(key)
        if top in self._crossing:
            self.counts.tops[top] = self.counts.tops.get(top, VOID) + frequency
        else:
            self.counts.outermost = self.counts.outermost + frequency

    def _flush(self) -> None:
        if self._seen is not None:
            self._seen.add_listed(self._keys, self._captures)
        self._keys, self._captures = [], []


def is_wide(wildcard: bytes) -> bool:
    """Whether a wildcard covers all, or a whole top-level domain: hosts are counted below it."""
    return wildcard == _ALL or (wildcard.endswith(b",*") and len(segments(wildcard)[0]) == 2)


def _top_of(key: bytes) -> bytes:
    return segments(key)[0][0]


def notes_of(counted: MapCounts, header: Header) -> list[str]:
    """What the tables of a map leave open, and where its lines and its header differ."""
    notes = []
    if counted.wildcards:
        notes.append(
            f"totals, TLDs and top hosts include {number(counted.wildcards, 'wildcard')}; keys, hosts, depths and "
            f"levels are those of {number(counted.keys, 'key')} in lines of their own, and unknown below wildcards"
        )
    if counted.covered_keys:
        notes.append(
            f"{number(counted.covered_keys, 'key')} below wildcards: the captures are among those of the wildcards"
        )
    return [*notes, *differences(counted, header)]


def differences(counted: MapCounts, header: Header) -> list[str]:
    """Where the totals of the lines differ from those in the header."""
    notes = []
    stated = header.meta.get("counts")
    stated = stated if isinstance(stated, dict) else {}
    for name, what, count in (
        ("captures", "captures", counted.total.uri_m),
        ("uri_rs", "URI-Rs", counted.total.uri_r),
    ):
        value = stated.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and (count.value != value or count.bound):
            notes.append(f"the header states {value:,} {what}, the lines {_explained(count, value)}")
    return notes


def _explained(count: Count, stated: int) -> str:
    """The sum of the lines beside a stated one, and what the difference can come from."""
    low, high = count.interval
    if count.value is None:
        return "do not state them"
    said = f"add up to {count.value:,}{count.bound}"
    if count.bound and low <= stated and (high is None or stated <= high):
        return f"{said}: some lines state bounds only, as after a merge, and both can be true"
    return f"{said}: lines were dropped or added since the header was written, or one of them is wrong"
