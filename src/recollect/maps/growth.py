"""How an archive grows, and so how long a "no" of its map stays true.

Hides: the estimate. A URI that a map lacked at T may be held at T + d. Of the keys that an archive holds at T + d, some
share is new since T; the share depends on the depth at which the map has nothing:

    host    the map has no key of the host: only a new host can hold the URI
    path    it has keys of the host, but none below the first path segment
    key     it has keys beside this one

Shares come from two maps of one archive (`growth_between`), which `keep` records in `!meta` at every update, as
{"growth": {"days": 31, "host": 0.002, "path": 0.01, "key": 0.06}}: the share of the keys that are new after these
days. Without it, `USUAL` is used. A share s in d days is 1 − (1 − s)^(e/d) in e days, as if keys came at a steady rate.

`routing.choice.chance_since` makes a chance of a share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.formats.ukvs import MapFile
from recollect.maps.lookup import MementoMap
from recollect.maps.maptext import MapText
from recollect.maps.plainmap import PlainMap, open_plain
from recollect.maps.scope import Scope

YEAR = 365.25
# Fewer days say too little of a year: most archives crawl in weeks.
LEAST_DAYS = 7.0
SAMPLE = 20_000
_REMEMBERED = 2 * YEAR


class Depth(StrEnum):
    """Where a map has nothing of a URI."""

    HOST = "host"
    PATH = "path"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Growth:
    """The share of an archive's keys that are new after some days, by depth."""

    days: float
    host: float
    path: float
    key: float

    def share(self, depth: Depth, days: float) -> float:
        """The share that is new after other days."""
        observed = {Depth.HOST: self.host, Depth.PATH: self.path, Depth.KEY: self.key}[depth]
        if days <= 0 or self.days <= 0:
            return 0.0
        return 1.0 - math.exp(math.log1p(-min(observed, 1.0 - 1e-9)) * days / self.days)

    def then(self, later: Growth) -> Growth:
        """Two observations, one after the other, as one."""
        kept = [(1.0 - a) * (1.0 - b) for a, b in zip(self._shares(), later._shares(), strict=True)]
        return Growth(self.days + later.days, *(1.0 - one for one in kept))

    def _shares(self) -> tuple[float, float, float]:
        return self.host, self.path, self.key

    def as_meta(self) -> dict[str, float]:
        """As it stands in `!meta`."""
        return {"days": round(self.days, 2)} | {
            name: round(value, 5) for name, value in zip(("host", "path", "key"), self._shares(), strict=True)
        }

    @staticmethod
    def from_meta(stated: Any) -> Growth | None:
        """What a map states of its archive's growth; None if it states nothing that can be used."""
        if not isinstance(stated, Mapping):
            return None
        values = [stated.get(name) for name in ("days", "host", "path", "key")]
        numbers = [float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) < 4 or not all(map(math.isfinite, numbers)) or numbers[0] <= 0:
            return None
        return Growth(*numbers) if all(0.0 <= one <= 1.0 for one in numbers[1:]) else None


# Without two maps of an archive, a cautious choice: real archives bring between 9% (recrawled sites) and nearly 100%
# (crawls by theme) new keys a year; docs/benchmarks.md, freshness.
USUAL = Growth(YEAR, 0.10, 0.30, 0.50)


def growth_of(stated: Any) -> Growth:
    """The growth that a map states if it was observed for long enough, else the usual one."""
    growth = Growth.from_meta(stated)
    return growth if growth is not None and growth.days >= LEAST_DAYS else USUAL


def depth_of(text: MapText, key: bytes) -> Depth:
    """How near to a key a map has anything."""
    host, _, path = key.partition(b")/")
    if next(iter(text.lines_under(host + b")")), None) is None:
        return Depth.HOST
    start = host + b")/" + path.partition(b"/")[0]
    for line in text.lines_under(start):
        if line[len(start) : len(start) + 1] in (b" ", b"/", b"\t"):
            return Depth.KEY
    return Depth.PATH


def depth_of_wildcard(key: bytes) -> Depth:
    """The depth of a void: what is below it was absent as a whole."""
    _, parenthesis, path = key.partition(b")")
    if not parenthesis or path == b"/*":
        return Depth.HOST
    return Depth.PATH if path.count(b"/") <= 2 and path.endswith(b"/*") else Depth.KEY


def growth_between(old: str, new: str, since: datetime, until: datetime, *, adds: bool = False) -> Growth | None:
    """The growth between two maps of one archive, by lookups of keys of the newer one in the older; with `adds` the
    newer one has only the captures that came since. None if the maps are of the same time, or empty."""
    days = (until - since).total_seconds() / 86400.0
    if days <= 0:
        return None
    counts = dict.fromkeys(Depth, 0)
    with MementoMap.open(old) as before, open_plain(new) as after:
        keys = sample_keys(after)
        for key in keys:
            if before.text.find(key) is None:
                counts[depth_of(before.text, key)] += 1
        total = float(len(keys))
        if adds and keys:
            with open_plain(old) as earlier:
                lines = bytes(earlier.data[earlier.start :]).count(b"\n")
            every = bytes(after.data[after.start :]).count(b"\n")
            total = sum(counts.values()) + lines * len(keys) / max(every, 1)
    if not total:
        return None
    host, path, key_share = (counts[depth] / total for depth in Depth)
    return Growth(days, host, host + path, host + path + key_share)


def growth_since(old: str, new: str, until: datetime, *, adds: bool = False) -> Growth | None:
    """The growth that a map records: that of the map before, and what came since; None if neither is known."""
    with MapFile(old) as file:
        header = file.header
    earlier, since = Growth.from_meta(header.meta.get("growth")), Scope.of(header).complete_until
    latest = None if since is None else growth_between(old, new, since, until, adds=adds)
    if latest is None or earlier is None:
        return latest or earlier
    both = earlier.then(latest)
    if both.days <= _REMEMBERED:
        return both
    return Growth(_REMEMBERED, *(both.share(depth, _REMEMBERED) for depth in Depth))


def sample_keys(plain: PlainMap, most: int = SAMPLE) -> list[bytes]:
    """Exact keys of a map, spread evenly over its bytes; all of them if it is small."""
    data, size = plain.data, len(plain.data)
    step = max(1, (size - plain.start) // most)
    found: list[bytes] = []
    at = plain.start
    while at < size:
        line = data[at : at + 8192].tobytes()
        end = line.find(b"\n")
        key = line.split(None, 1)[0] if line.strip() else b""
        if key and key != b"*" and not key.endswith((b"/*", b",*")):
            found.append(key)
        following = at + (end + 1 if end >= 0 else len(line))
        at = max(following, _line_after(data, at + step, size)) if step > 1 else following
    return found


def _line_after(data: memoryview, at: int, size: int) -> int:
    while at < size:
        end = data[at : at + 4096].tobytes().find(b"\n")
        if end >= 0:
            return at + end + 1
        at += 4096
    return size
