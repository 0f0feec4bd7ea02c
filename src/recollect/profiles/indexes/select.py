"""Which captures count: filters by status, media type, time, file name and expression.

Hides how a filter works on columns. A capture must pass every filter; the first one it fails is the one it is counted
under.

Revisits: a revisit record is a capture of its URI, but indexes put `warc/revisit` where its media type would be, and
often no status (Alam et al. 2019, section 2). So a revisit passes every media-type filter, every status filter when it
has no status, and every expression that only these two could fail (see `where`). A capture whose time is unknown (a
list of URLs has none) passes no time filter.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.datetimes import format_timestamp, parse_asked
from recollect.errors import UsageError
from recollect.formats.cdx import REVISIT, Capture
from recollect.maps.scope import Selection
from recollect.profiles.indexes.batch import Batch

_STATUS_PATTERN = re.compile(r"[1-9](?:\d\d|\d[xX?*]|[xX?*]{1,2})|-", re.ASCII)


def selection(
    *,
    statuses: Iterable[str | int] = (),
    media_types: Iterable[str] = (),
    since: str = "",
    until: str = "",
    exclude: Iterable[str] = (),
    where: str = "",
) -> Selection:
    """A checked selection; raises UsageError for a pattern that cannot be meant."""
    status_patterns = tuple(part for text in _listed(statuses) for part in str(text).split(",") if part)
    for pattern in status_patterns:
        if not _STATUS_PATTERN.fullmatch(pattern):
            raise UsageError("not a status", where=repr(pattern), hint="like 200, 2xx or - for none")
    patterns = tuple(pattern.strip().lower() for pattern in _listed(media_types))
    if not all(patterns):
        raise UsageError("an empty media type", hint="like text/html, 'image/*', or - for none")
    if where:
        _compiled(where)
    chosen = Selection(
        status_patterns,
        patterns,
        format_timestamp(parse_asked(since)) if since else "",
        format_timestamp(parse_asked(until, end=True)) if until else "",
        tuple(part.strip().lower() for text in _listed(exclude) for part in text.split(",") if part.strip()),
        where,
    )
    if chosen.since and chosen.until and chosen.since > chosen.until:
        raise UsageError("nothing can be kept", why=f"the start {since} is after the end {until}")
    return chosen


def _compiled(where: str) -> Callable[[Capture], bool]:
    # Few ask for it, and the parser of the language takes its time to load.
    from recollect.profiles.indexes.where import compile_where

    return compile_where(where)


def _listed(value: Iterable[Any]) -> list[Any]:
    return [value] if isinstance(value, str | int) else list(value)


class Filter:
    """A selection made ready for batches; threads may share it."""

    def __init__(self, chosen: Selection) -> None:
        self._chosen = chosen
        self._statuses = _status_table(chosen.statuses)
        self._media = [re.compile(fnmatch.translate(pattern)) for pattern in chosen.media_types]
        self._since = int(chosen.since or 0)
        self._until = int(chosen.until or 0)
        self._where = _compiled(chosen.where) if chosen.where else None
        self._names = [name.encode() for name in chosen.exclude]

    def apply(self, batch: Batch) -> tuple[NDArray[np.bool_], Counter[str]]:
        """Which lines are kept, and how many each filter dropped."""
        keep = batch.alive.copy()
        dropped: Counter[str] = Counter()
        if not self._chosen:
            return keep, dropped
        revisits = np.array([name == REVISIT for name in batch.media_types])[batch.media]
        if self._chosen.statuses:
            passes = self._statuses[batch.statuses] | (revisits & (batch.statuses == 0))
            _narrow(keep, passes, "status", dropped, batch)
        if self._media:
            kinds = np.array([self._wanted(name) for name in batch.media_types])
            _narrow(keep, kinds[batch.media] | revisits, "media type", dropped, batch)
        if self._since or self._until:
            passes = (batch.times > 0) & (batch.times >= self._since)
            if self._until:
                passes &= batch.times <= self._until
            _narrow(keep, passes, "time", dropped, batch)
        if self._chosen.exclude:
            excluded = np.zeros(len(batch.key_at), np.uint8)
            batch.runs().mark_ending_in(self._names, excluded)
            _narrow(keep, excluded[batch.run_of] == 0, "excluded name", dropped, batch)
        if self._where is not None:
            _narrow(keep, _tested(batch, keep, self._where), "where", dropped, batch)
        return keep, dropped

    def _wanted(self, media_type: str | None) -> bool:
        return any(pattern.match(media_type or "-") for pattern in self._media)


def _narrow(keep: NDArray[np.bool_], passes: NDArray[np.bool_], name: str, dropped: Counter[str], batch: Batch) -> None:
    lost = keep & ~passes
    count = int(lost.sum() if batch.weights is None else batch.weights[lost].sum())
    if count:
        dropped[name] += count
        keep &= passes


def _tested(batch: Batch, keep: NDArray[np.bool_], test: Callable[[Capture], bool]) -> NDArray[np.bool_]:
    passes = keep.copy()
    for line in np.flatnonzero(keep).tolist():
        passes[line] = test(batch.capture_at(line))
    return passes


def _status_table(patterns: tuple[str, ...]) -> NDArray[np.bool_]:
    """For each status from 0 (none) to 999 whether a pattern accepts it."""
    table = np.zeros(1000, np.bool_)
    for pattern in patterns:
        if pattern == "-":
            table[0] = True
            continue
        expression = re.compile(re.sub(r"[xX?*]", r"\\d", pattern.ljust(3, "x")))
        for status in range(100, 1000):
            table[status] |= expression.fullmatch(str(status)) is not None
    return table
