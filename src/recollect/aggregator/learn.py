"""What archives without a map hold, learned from their own answers, with a guaranteed recall for every archive.

Hides: the model and how it is kept. For every archive it counts how often a lookup found mementos and how often not,
for the whole archive and for the prefixes of the looked-up key: top-level domain, domain, host, first path segment, the
page itself. The chance that an archive holds a URI is that of the widest prefix, corrected by each narrower one in
proportion to what was seen there (p = (found + M·p_wider) / (seen + M)). How much M sightings weigh differs: an archive
of one country is soon known by its hosts, one that takes pages at random never. So each archive uses the M of
`WEIGHTS` that predicted its answers best so far (least loss, -log p of what came).

The guarantee (`target_recall`, 95% by default) holds per archive: of what it holds, at least this share is asked for.
The last `FINDS` lookups that found something are kept for each archive, and each is judged by what the model would say
had it not seen this one. An archive is skipped only where its chance lies below that of all but 1 - `target_recall` of
its finds, less the deviation that is to be expected of such a count, and only where it is `UNUSUAL` times less likely
than usual for this archive: without that, hosts that were empty by chance would be skipped forever. So an archive whose
finds are few (under 54 for 95%), or that holds pages the model cannot foresee, is always asked. Nothing is concluded
before `WARM` lookups of an archive, nor where fewer than `EVIDENCE` lookups of the URI's top-level domain were answered
by it.

A share `explore` of the lookups that would skip an archive ask it anyway; a find there counts 1/`explore` times
among the finds, so that the estimate has no bias and new holdings are noticed. Counts are halved every `HALF_LIFE`.

Nothing is claimed for certain: the evidence is `no` or `unknown`, and a map, where there is one, decides instead.

The model lives in memory that forked workers share. `save` writes it to a file, whole and under a checksum; `open`
sets a file aside that is damaged. Layout of the file:

    line 1         JSON: {"format", "archives": [...], "slots": N, "aged_at": seconds since 1970, "used": U, "crc": ...}
    rest           zlib; crc is that of the uncompressed bytes, all little-endian:
      A × 2 × u32    for each archive, lookups that found mementos, and that did not
      W × A × f32    for each weight and archive, the loss so far
      A × u32        for each archive, how many finds were kept so far (the last `FINDS` of them are there)
      A × F × f32    for each archive, the weights of its finds
      A × F × 6 × u32  for each archive and find, the slots of its prefixes plus one (0: none)
      U × u32        the slots in use
      U × u16        for each of them a tag of the prefix that owns it
      U × A × 2 × u16  for each of them and each archive, the same two counts as above

A prefix may live in slot h or h^1. A lost update between workers has no effect on correctness.
"""

from __future__ import annotations

import json
import math
import mmap
import random
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time

import numpy as np
from numpy.typing import NDArray

from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.errors import BadURI, FormatError
from recollect.formats.containers import atomic_output
from recollect.model import Answer
from recollect.routing.choice import Evidence, Rank, Reason, Source
from recollect.uris import key_of_uri

SLOTS = 1 << 18
HALF_LIFE = 30 * 86400.0
WARM = 1000
EVIDENCE = 10
TARGET_RECALL = 0.95
FINDS = 2048
UNUSUAL = 10.0
WEIGHTS = np.array([3.0, 10.0, 40.0, 160.0])[:, None]
_FORMAT = "recollect learned 3"
_FIRST_CHOICE = 1  # the weight used until the losses differ
_FULL = 60000
_PREFIXES = 6
_DEVIATIONS = 1.65  # one-sided, 95%
_SPARE = 16  # columns for archives that a reload adds
_LEVELS_EVERY = 256  # lookups between two computations of the levels


class Learned:
    """Counts per prefix and archive; `evidence` reads them, `learn` adds to them."""

    def __init__(
        self,
        archives: Sequence[str],
        *,
        slots: int = SLOTS,
        explore: float = 0.05,
        target_recall: float = TARGET_RECALL,
        ranks: bool = False,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time,
    ) -> None:
        self._explore = explore
        self._target = target_recall
        self._ranks = ranks
        self._finds: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        self._chance = chance
        self._clock = clock
        self._slots = slots
        self._columns: dict[str, int] = {archive: number for number, archive in enumerate(archives)}
        self._width = len(archives) + _SPARE
        self._aged_at = clock()
        self._allocate()
        self._levels = np.zeros(self._width)
        self._levels_due = 0
        self.use(archives)

    @property
    def archives(self) -> tuple[str, ...]:
        """The archives that are learned about now."""
        return tuple(self._used)

    def use(self, archives: Sequence[str]) -> bool:
        """Learn about these archives from now on; False if the table is full. Workers that
        share the memory come to the same columns, as each makes the same change."""
        new = [archive for archive in archives if archive not in self._columns]
        if len(self._columns) + len(new) > self._width:
            return False
        for archive in new:
            self._columns[archive] = len(self._columns)
        self._used = {archive: self._columns[archive] for archive in archives}
        self._numbers = np.array(list(self._used.values()), np.int64)
        return True

    # --- using it

    def evidence(self, uri_r: str) -> dict[str, Evidence]:
        """By archive: `no` for those that hardly hold it, `unknown` for the others, with the chance as expectation."""
        if not self._used:
            return {}
        rows = self._rows(_prefixes(uri_r))
        numbers = self._numbers
        chances = self._chances(rows)[self._best(), np.arange(self._width)][numbers]
        seen = self._totals[numbers].sum(axis=1)
        known = self._counts[rows[0]][numbers].sum(axis=1, dtype=np.int64) if rows else np.zeros(len(numbers))
        unlikely = (chances < self._level()[numbers]) & (known >= EVIDENCE)
        said: dict[str, Evidence] = {}
        for archive, chance, lookups, no in zip(
            self._used, chances.tolist(), seen.tolist(), unlikely.tolist(), strict=True
        ):
            if lookups < WARM:
                continue
            skip = no and self._chance() >= self._explore

            answer = Answer.NO if skip else Answer.UNKNOWN
            said[archive] = Evidence(
                *(answer, Source.LEARNED, "", "", chance, Reason.UNLIKELY, chance, (Source.LEARNED,)),
                explored=no and not skip,
                rank=self._rank(self._used[archive], chance) if self._ranks else None,
            )
        return said

    def _rank(self, number: int, chance: float) -> Rank | None:
        """Where a chance stands among those of the finds that are kept, each judged without itself."""
        known = self._finds.get(number)
        if known is None:
            return None
        chances, below = known  # of each find, the weight of those that are less likely; last the weight of all
        every = below[-1] + 1.0
        place = int(chances.searchsorted(chance, "right"))
        above = (below[-1] - below[place]) / every
        if not place:
            return Rank(float(above), 1.0)
        first = int(chances.searchsorted(chances[place - 1], "left"))
        return Rank(float(above), float((below[-1] - below[first]) / every))

    def learn(self, uri_r: str, outcomes: Sequence[Outcome], *, extra: Collection[str] = ()) -> None:
        """Count what archives answered; errors teach nothing. `extra` are those asked although the model said no, not
        by exploration: their finds would count twice in the histogram."""
        answers = {o.archive: o.kind is OutcomeKind.MEMENTOS for o in outcomes if o.kind is not OutcomeKind.ERROR}
        self.count(uri_r, answers, extra=extra)

    def start_from(self, archive: str, probes: Iterable[tuple[bytes, bool]]) -> bool:
        """Begin with the answers of a sample: keys that were asked for, and whether each was held. False if the archive
        is not learned about, or if lookups of it were counted already: a sample is counted once."""
        if archive not in self._used or self._totals[self._used[archive]].any():
            return False
        for key, held in probes:
            self._count(_prefixes_of(key), {archive: held})
        self._levels_due = 0
        return True

    def count(self, uri_r: str, answers: Mapping[str, bool], *, extra: Collection[str] = ()) -> None:
        """Count which archives held a URI and which did not."""
        self._count(_prefixes(uri_r), answers, extra=extra)

    def _count(self, prefixes: Sequence[bytes], answers: Mapping[str, bool], *, extra: Collection[str] = ()) -> None:
        known = [archive for archive in answers if archive in self._used]
        if not known:
            return
        numbers = np.array([self._used[archive] for archive in known])
        columns = np.array([0 if answers[archive] else 1 for archive in known])
        chances = self._chances(self._rows(prefixes))[:, numbers]
        self._losses[:, numbers] -= np.log(np.where(columns == 0, chances, 1.0 - chances))
        weights = self._find_weights(numbers, columns, chances)
        self._totals[numbers, columns] += 1
        rows = self._rows(prefixes, claim=True)
        for row in rows:
            counts = self._counts[row]
            counts[numbers, columns] += 1
            if counts.max() > _FULL:
                counts >>= 1
        for archive, number, weight in zip(known, numbers.tolist(), weights, strict=True):
            if weight and archive not in extra:
                place = int(self._kept[number]) % FINDS
                self._kept[number] += 1
                self._find_weight[number, place] = weight
                self._find_rows[number, place] = [*(row + 1 for row in rows), *(0,) * (_PREFIXES - len(rows))]
        self._levels_due -= 1

    def _find_weights(
        self, numbers: NDArray[np.int64], columns: NDArray[np.int64], chances: NDArray[np.float64]
    ) -> list[float]:
        """How much each answer counts as a find: 0 if it is none, more than 1 if only exploration asked for it."""
        if columns.all():
            return [0.0] * len(numbers)
        mine = chances[self._best()[numbers], np.arange(len(numbers))]
        explored = (mine < self._level()[numbers]) & (self._totals[numbers].sum(axis=1) >= WARM)
        weights = np.where(explored, 1.0 / max(self._explore, 0.001), 1.0)
        found: list[float] = np.where(columns == 0, weights, 0.0).tolist()
        return found

    def age(self) -> None:
        """Halve everything as often as its time has come."""
        due = int((self._clock() - self._aged_at) // HALF_LIFE)
        if due <= 0:
            return
        self._aged_at += due * HALF_LIFE
        self._totals >>= min(due, 31)
        self._losses *= 0.5**due
        self._find_weight *= 0.5**due
        self._counts >>= min(due, 15)
        self._tags[self._counts.sum(axis=(1, 2)) == 0] = 0

    # --- the model

    def _chances(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """For each weight and archive the chance that it holds what has these prefixes."""
        chances = (self._totals[:, 0] + 1.0) / (self._totals.sum(axis=1) + 2.0)
        for row in rows:
            counts = self._counts[row]
            chances = (counts[:, 0] + WEIGHTS * chances) / (counts.sum(axis=1) + WEIGHTS)
        return np.broadcast_to(chances, (len(WEIGHTS), self._width))

    def _best(self) -> NDArray[np.int64]:
        """For each archive the weight that predicted best."""
        losses = self._losses
        best: NDArray[np.int64] = losses.argmin(axis=0)
        return np.where(losses.any(axis=0), best, _FIRST_CHOICE)

    def _level(self) -> NDArray[np.float64]:
        """For each archive the chance from which on it is asked."""
        if self._levels_due <= 0:
            self._levels_due = _LEVELS_EVERY
            best = self._best()
            for number in self._numbers.tolist():
                self._levels[number] = self._level_of(number, float(WEIGHTS[best[number], 0]))
        return self._levels

    def _level_of(self, number: int, weight: float) -> float:
        kept = min(int(self._kept[number]), FINDS)
        if not kept:
            return 0.0
        weights = self._find_weight[number, :kept].astype(np.float64)
        chances = self._without(number, self._find_rows[number, :kept], weight)
        order = chances.argsort()
        missed = weights[order].cumsum()
        if self._ranks:
            self._finds[number] = chances[order], np.concatenate(([0.0], missed))
        allowed = (1.0 - self._target) * (missed[-1] + 1.0)
        margin = _DEVIATIONS * np.sqrt(np.maximum(allowed, (weights[order] ** 2).cumsum()))
        missable = int((missed + margin <= allowed).sum())
        if not missable and allowed < _DEVIATIONS * math.sqrt(allowed):
            return 0.0
        usual = float((self._totals[number, 0] + 1.0) / (self._totals[number].sum() + 2.0))
        return min(float(chances[order[min(missable, kept - 1)]]), usual / UNUSUAL)

    def _without(self, number: int, finds: NDArray[np.uint32], weight: float) -> NDArray[np.float64]:
        """The chances of finds of an archive, had each of them not been seen."""
        found, missed = self._totals[number].astype(np.float64)
        others = max(float(found) - 1.0, 0.0)
        chances: NDArray[np.float64] = np.full(len(finds), (others + 1.0) / (others + float(missed) + 2.0))
        for column in range(_PREFIXES):
            rows = finds[:, column].astype(np.int64) - 1
            counts = self._counts[rows, number].astype(np.float64)
            held = np.maximum(counts[:, 0] - 1.0, 0.0)
            corrected = (held + weight * chances) / (held + counts[:, 1] + weight)
            chances = np.where(rows >= 0, corrected, chances)
        return chances

    # --- prefixes

    def _rows(self, prefixes: Sequence[bytes], *, claim: bool = False) -> list[int]:
        """The slots of prefixes, widest first; those without one are left out, or taken with `claim`."""
        rows = []
        for prefix in prefixes:
            digest = zlib.crc32(prefix)
            tag = (digest >> 16) ^ (len(prefix) & 0xFF) or 1
            slot = digest % self._slots
            row = self._slot(slot, tag, claim)
            if row is not None:
                rows.append(row)
        return rows

    def _slot(self, slot: int, tag: int, claim: bool) -> int | None:
        other = slot ^ 1
        for place in (slot, other):
            if self._tags[place] == tag:
                return place
        if not claim:
            return None
        for place in (slot, other):
            if self._tags[place] == 0:
                self._tags[place] = tag
                return place
        # Both are taken: the one with fewer counts is replaced.
        weights = [int(self._counts[place].sum(dtype=np.uint32)) for place in (slot, other)]
        place = slot if weights[0] <= weights[1] else other
        self._tags[place] = tag
        self._counts[place] = 0
        return place

    # --- memory and file

    def _allocate(self) -> None:
        width, slots = self._width, self._slots
        finds = width * FINDS
        sizes = (
            *(width * 8, len(WEIGHTS) * width * 4, width * 4, finds * 4, finds * _PREFIXES * 4),
            *(slots * 2, slots * width * 4),
        )
        memory = mmap.mmap(-1, sum(sizes))  # shared with what is forked after this
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        self._totals = np.frombuffer(memory, "<u4", width * 2, starts[0]).reshape(width, 2)
        self._losses = np.frombuffer(memory, "<f4", len(WEIGHTS) * width, starts[1]).reshape(len(WEIGHTS), width)
        self._kept = np.frombuffer(memory, "<u4", width, starts[2])
        self._find_weight = np.frombuffer(memory, "<f4", finds, starts[3]).reshape(width, FINDS)
        rows = np.frombuffer(memory, "<u4", finds * _PREFIXES, starts[4])
        self._find_rows = rows.reshape(width, FINDS, _PREFIXES)
        self._tags = np.frombuffer(memory, "<u2", slots, starts[5])
        self._counts = np.frombuffer(memory, "<u2", slots * width * 2, starts[6]).reshape(slots, width, 2)

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        used = np.flatnonzero(self._tags).astype("<u4")
        numbers = self._numbers
        parts = (
            self._totals[numbers],
            self._losses[:, numbers],
            self._kept[numbers],
            self._find_weight[numbers],
            self._find_rows[numbers],
            used,
            self._tags[used],
            self._counts[used][:, numbers],
        )
        data = b"".join(part.tobytes() for part in parts)
        head = {"format": _FORMAT, "archives": list(self._used), "slots": self._slots, "aged_at": self._aged_at}
        head |= {"used": len(used), "crc": zlib.crc32(data)}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_output(path) as out:
            out.write(json.dumps(head).encode() + b"\n" + zlib.compress(data, 1))

    def load(self, path: str | Path) -> None:
        """Take over what a file holds about the archives that are used; raises FormatError if it is damaged."""
        stored = _read(Path(path))
        shared = [(self._used[a], number) for number, a in enumerate(stored.archives) if a in self._used]
        for new, before in shared:
            self._totals[new] = stored.totals[before]
            self._losses[:, new] = stored.losses[:, before]
        if stored.slots == self._slots:
            self._tags[stored.used] = stored.tags
            for new, before in shared:
                self._counts[stored.used, new] = stored.counts[:, before]
                self._kept[new] = stored.kept[before]
                self._find_weight[new] = stored.find_weight[before]
                self._find_rows[new] = stored.find_rows[before]
        self._aged_at = stored.aged_at
        self._levels_due = 0
        self.age()


def open_learned(model: Learned, path: Path, on_problem: Callable[[str], None]) -> None:
    """Load a model from its file, if there is one; a damaged file is set aside, and the model starts empty."""
    if not path.exists():
        return
    try:
        model.load(path)
    except (FormatError, OSError) as error:
        aside = path.with_name(path.name + ".damaged")
        path.replace(aside)
        on_problem(f"what was learned cannot be read and was moved to {aside}: {error}")


def _prefixes(uri_r: str) -> list[bytes]:
    try:
        return _prefixes_of(key_of_uri(uri_r))
    except BadURI:
        return []


def _prefixes_of(key: bytes) -> list[bytes]:
    """Prefixes of a URI's key, widest first: `com,`, `com,example`, host, host and first segment, the whole key."""
    host, _, path = key.partition(b")")
    labels = host.split(b",")
    prefixes = [labels[0] + b","]
    for depth in (2, 3):
        if len(labels) > depth:
            prefixes.append(b",".join(labels[:depth]) + b",")
    prefixes.append(host + b")")
    segments = path.split(b"/")
    if len(segments) > 2:
        prefixes.append(host + b")/" + segments[1] + b"/")
    if path not in (b"", b"/"):
        prefixes.append(key)
    return prefixes


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """The content of a file."""

    archives: tuple[str, ...]
    slots: int
    aged_at: float
    totals: NDArray[np.uint32]
    losses: NDArray[np.float32]
    kept: NDArray[np.uint32]
    find_weight: NDArray[np.float32]
    find_rows: NDArray[np.uint32]
    used: NDArray[np.uint32]
    tags: NDArray[np.uint16]
    counts: NDArray[np.uint16]


def _read(path: Path) -> _Stored:
    head, _, packed = path.read_bytes().partition(b"\n")
    try:
        header = json.loads(head)
        if header["format"] != _FORMAT:
            raise FormatError("an older kind of model", where=str(path), why=str(header["format"])[:40])
        archives = tuple(map(str, header["archives"]))
        slots, aged_at, used, crc = (header[name] for name in ("slots", "aged_at", "used", "crc"))
        data = zlib.decompress(packed)
        if zlib.crc32(data) != crc:
            raise FormatError("the checksum is wrong", where=str(path))
        width, at = len(archives), 0

        def take(kind: str, *shape: int) -> NDArray[np.generic]:
            nonlocal at
            count = math.prod(shape)
            part = np.frombuffer(data, kind, count, at).reshape(shape)
            at += part.nbytes
            return part

        return _Stored(
            archives,
            int(slots),
            float(aged_at),
            take("<u4", width, 2),  # type: ignore[arg-type]  # the kinds are those of the layout
            take("<f4", len(WEIGHTS), width),  # type: ignore[arg-type]
            take("<u4", width),  # type: ignore[arg-type]
            take("<f4", width, FINDS),  # type: ignore[arg-type]
            take("<u4", width, FINDS, _PREFIXES),  # type: ignore[arg-type]
            take("<u4", used),  # type: ignore[arg-type]
            take("<u2", used),  # type: ignore[arg-type]
            take("<u2", used, width, 2),  # type: ignore[arg-type]
        )
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        raise FormatError("not a learned model", where=str(path), why=str(error)) from error
