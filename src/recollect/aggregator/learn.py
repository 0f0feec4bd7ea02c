"""What archives without a map hold, learned from their own answers.

Hides: the model. For every archive it counts how often a lookup found mementos and how often not, for the whole archive
and for the prefixes of the looked-up key: top-level domain, domain, host, first path segment, the page itself. The
chance that an archive holds a URI is that of the widest prefix, corrected by each narrower one in proportion to what
was seen there (p = (found + M·p_wider) / (seen + M)). How much M sightings weigh differs: an archive of one country is
soon known by its hosts, one that takes pages at random never. So each archive uses the M of `WEIGHTS` that predicted
its answers best so far (least loss, -log p of what came). An archive whose chance is below `FLOOR` is skipped, except
in a share `explore` of lookups, so that new holdings are noticed and recall does not decay. Counts are halved every
`HALF_LIFE`, so old news fades.

Nothing is claimed for certain: the evidence is `no` or `unknown`, and a map, where there is one, decides instead.

Layout of the file (native byte order, of one machine; it is a memory of use and may be deleted at any time):

    4096 bytes     JSON, padded with spaces: {"format", "archives": [...], "slots": N, "aged_at": seconds since 1970}
    A × 2 × 4      uint32: for each archive, lookups that found mementos, and that did not
    A × W × 4      float32: for each archive and weight, the loss so far
    N × 2          uint16: for each slot a tag of the prefix that owns it (0: free)
    N × A × 2 × 2  uint16: for each slot and archive, the same two counts

A prefix may live in slot h or h^1. The file is mapped into memory and shared by all workers; a lost update does no
harm.
"""

from __future__ import annotations

import json
import mmap
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recollect.aggregator.ask import Outcome
from recollect.aggregator.routing import Evidence
from recollect.errors import BadURI
from recollect.uris import key_of_uri

SLOTS = 1 << 18
FLOOR = 0.005
HALF_LIFE = 30 * 86400.0
_FORMAT = "recollect learned 2"
_HEADER = 4096
_WARM = 100  # lookups of an archive before anything is concluded about it
WEIGHTS = np.array([3.0, 10.0, 40.0, 160.0])[:, None]
_FIRST_CHOICE = 1  # until the losses tell
_FULL = 60000


class Learned:
    """Counts per prefix and archive; `evidence` reads them, `learn` adds to them."""

    def __init__(
        self,
        archives: Sequence[str],
        *,
        path: str | Path | None = None,
        slots: int = SLOTS,
        explore: float = 0.05,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time,
    ) -> None:
        self.archives = tuple(archives)
        self._numbers = {archive: number for number, archive in enumerate(self.archives)}
        self._explore = explore
        self._chance = chance
        self._clock = clock
        self._slots = slots
        self._path = Path(path) if path is not None else None
        old = _read_old(self._path) if self._path is not None else None
        if old is not None and (old.archives != self.archives or old._slots != slots):
            self._map = self._new_memory(None)
            self._adopt(old)
            if self._path is not None:
                self._replace_file()
        else:
            self._map = self._new_memory(self._path)
        self.age()

    # --- using it

    def evidence(self, uri_r: str) -> dict[str, Evidence]:
        """By archive: `no` for those that hardly hold it, `unknown` for the others, with the chance as expectation."""
        chances = self._chances(self._rows(uri_r))[self._best(), self._columns]
        said: dict[str, Evidence] = {}
        seen = self._totals.sum(axis=1).tolist()
        for archive, chance, lookups in zip(self.archives, chances.tolist(), seen, strict=True):
            if lookups < _WARM:
                continue
            skip = chance < FLOOR and self._chance() >= self._explore
            key = f"chance {chance:.3g}"
            said[archive] = Evidence("no" if skip else "unknown", "learned", key, "", chance, "too unlikely")
        return said

    def _chances(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """For each weight and archive the chance that it holds what has these prefixes."""
        chances = (self._totals[:, 0] + 1.0) / (self._totals.sum(axis=1) + 2.0)
        for row in rows:
            counts = self._counts[row]
            chances = (counts[:, 0] + WEIGHTS * chances) / (counts.sum(axis=1) + WEIGHTS)
        return np.broadcast_to(chances, (len(WEIGHTS), len(self.archives)))

    def _best(self) -> NDArray[np.int64]:
        """For each archive the weight that predicted best."""
        losses = self._losses
        best: NDArray[np.int64] = losses.argmin(axis=0)
        return np.where(losses.any(axis=0), best, _FIRST_CHOICE)

    def learn(self, uri_r: str, outcomes: Sequence[Outcome]) -> None:
        """Count what archives answered; errors tell nothing."""
        self.count(uri_r, {o.archive: o.kind == "mementos" for o in outcomes if o.kind != "error"})

    def count(self, uri_r: str, answers: Mapping[str, bool]) -> None:
        """Count which archives held a URI and which did not."""
        known = [archive for archive in answers if archive in self._numbers]
        if not known:
            return
        numbers = np.array([self._numbers[archive] for archive in known])
        columns = np.array([0 if answers[archive] else 1 for archive in known])
        chances = self._chances(self._rows(uri_r))[:, numbers]
        self._losses[:, numbers] -= np.log(np.where(columns == 0, chances, 1.0 - chances))
        self._totals[numbers, columns] += 1
        for row in self._rows(uri_r, claim=True):
            counts = self._counts[row]
            counts[numbers, columns] += 1
            if counts.max() > _FULL:
                counts >>= 1

    def age(self) -> None:
        """Halve everything as often as its time has come."""
        due = int((self._clock() - self._aged_at) // HALF_LIFE)
        if due <= 0:
            return
        self._totals >>= min(due, 31)
        self._losses *= 0.5**due
        self._counts >>= min(due, 15)
        self._tags[self._counts.sum(axis=(1, 2)) == 0] = 0
        self._write_header(self._aged_at + due * HALF_LIFE)

    def flush(self) -> None:
        """Write to the disk what the system has not written yet."""
        self._map.flush()

    def close(self) -> None:
        self.flush()
        self._let_go()

    # --- prefixes

    def _rows(self, uri_r: str, *, claim: bool = False) -> list[int]:
        """The slots of a URI's prefixes, widest first; those without one are left out, or taken with `claim`."""
        rows = []
        for prefix in _prefixes(uri_r):
            digest = crc32(prefix)
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
        # Both are taken: the one with less to say makes room.
        weights = [int(self._counts[place].sum(dtype=np.uint32)) for place in (slot, other)]
        place = slot if weights[0] <= weights[1] else other
        self._tags[place] = tag
        self._counts[place] = 0
        return place

    # --- memory

    def _size(self) -> int:
        archives = len(self.archives)
        return _HEADER + archives * 8 + archives * len(WEIGHTS) * 4 + self._slots * 2 + self._slots * archives * 4

    def _let_go(self) -> None:
        # The arrays are views of the map, which cannot be closed while they are there.
        del self._totals, self._losses, self._tags, self._counts
        self._map.close()

    def _new_memory(self, path: Path | None) -> mmap.mmap:
        if path is None:
            memory = mmap.mmap(-1, self._size())
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                if os.fstat(fd).st_size < self._size():
                    os.ftruncate(fd, self._size())
                memory = mmap.mmap(fd, self._size())
            finally:
                os.close(fd)
        archives = len(self.archives)
        at = _HEADER
        self._totals = np.frombuffer(memory, np.uint32, archives * 2, at).reshape(archives, 2)
        at += archives * 8
        losses = np.frombuffer(memory, np.float32, archives * len(WEIGHTS), at)
        self._losses = losses.reshape(len(WEIGHTS), archives)
        self._columns = np.arange(archives)
        at += archives * len(WEIGHTS) * 4
        self._tags = np.frombuffer(memory, np.uint16, self._slots, at)
        at += self._slots * 2
        self._counts = np.frombuffer(memory, np.uint16, self._slots * archives * 2, at).reshape(
            self._slots, archives, 2
        )
        self._map = memory
        header = _header(memory[:_HEADER])
        if header is None:
            self._write_header(self._clock())
        else:
            self._aged_at = header.aged_at
        return memory

    def _write_header(self, aged_at: float) -> None:
        self._aged_at = aged_at
        text = {"format": _FORMAT, "archives": self.archives, "slots": self._slots, "aged_at": aged_at}
        data = json.dumps(text).encode()
        self._map[:_HEADER] = data.ljust(_HEADER)[:_HEADER]

    def _adopt(self, old: Learned) -> None:
        """Take over what was learned about the archives that are still there."""
        shared = [
            (self._numbers[archive], number) for archive, number in old._numbers.items() if archive in self._numbers
        ]
        for new, before in shared:
            self._totals[new] = old._totals[before]
            self._losses[:, new] = old._losses[:, before]
        if self._slots == old._slots:
            self._tags[:] = old._tags
            for new, before in shared:
                self._counts[:, new] = old._counts[:, before]
        self._write_header(old._aged_at)
        old.close()

    def _replace_file(self) -> None:
        assert self._path is not None
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_bytes(self._map[:])
        beside.rename(self._path)
        self._let_go()
        self._map = self._new_memory(self._path)


def _prefixes(uri_r: str) -> list[bytes]:
    """Prefixes of a URI's key, widest first: `com,`, `com,example`, host, host and first segment, the whole key."""
    try:
        key = key_of_uri(uri_r)
    except BadURI:
        return []
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


@dataclass(frozen=True, slots=True)
class _Header:
    archives: tuple[str, ...]
    slots: int
    aged_at: float


def _header(data: bytes) -> _Header | None:
    """The header of a file, or None if it has none that we can read."""
    try:
        header = json.loads(data.rstrip(b" \0") or b"null")
        if header["format"] != _FORMAT:
            return None
        return _Header(tuple(map(str, header["archives"])), int(header["slots"]), float(header["aged_at"]))
    except (ValueError, TypeError, KeyError):
        return None


def _read_old(path: Path) -> Learned | None:
    """What a file holds, whatever archives it was made for; None if there is none, or it is damaged."""
    try:
        with path.open("rb") as handle:
            header = _header(handle.read(_HEADER))
    except OSError:
        return None
    if header is not None:
        learned = Learned.__new__(Learned)
        learned.archives = header.archives
        learned._numbers = {archive: number for number, archive in enumerate(header.archives)}
        learned._slots = header.slots
        learned._clock = time
        if path.stat().st_size >= learned._size():
            learned._map = learned._new_memory(path)
            return learned
    path.unlink()
    return None
