"""What archives answered, kept for a while: per resource one entry, in it one outcome per archive.

Hides: lifetimes (mementos are fresh, then stale and asked for again after the answer; `none` lives shorter; errors are
never kept), the bound on memory, and the store below it (nothing, a SQLite file, Redis). Reading and writing the store
never fails a request: a broken store is a missing cache, and says so in `problems`.

Layout of a stored entry: JSON, compressed with zlib when larger than 1 kB, `{"v": 2, "outcomes": {ARCHIVE: {"at":
seconds since 1970, "kind": ..., "moments": ..., "uris": ..., "requests": ..., "elapsed": ...}}}`. Moments and URIs are
lines of one string each, which is read much faster than a list. ARCHIVE is the id and a checksum of its address, so
that an archive that moved is asked again.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Protocol

from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.errors import ResourceError
from recollect.formats.timemap import Mementos, TimeMap

_VERSION = 2
_LARGE = 50_000  # bytes of a stored entry from which it is read in a thread
_COMPRESS_FROM = 1000
# Bytes of Python objects, measured roughly: per entry, per outcome with mementos, per `none`, per memento, per answer.
_ENTRY, _HELD, _NONE, _PER_MEMENTO, _ANSWER = 700, 700, 170, 400, 2500
_PER_MERGED = 220  # a row and its stem
_FLUSH_SECONDS = 0.5
_STORE_REST = 5.0
_MOST_RENDERED = 4
MOST_STORED = 50_000
"""Mementos of an entry up to which it is written to a store; larger ones are kept in memory only."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Seconds for which outcomes are kept."""

    fresh: float = 86400.0
    stale: float = 7 * 86400.0
    negative: float = 600.0

    def of(self, outcome: Outcome) -> tuple[float, float]:
        """(fresh, usable) seconds of an outcome."""
        if outcome.kind is OutcomeKind.NONE:
            return self.negative, self.negative
        return self.fresh, self.fresh + self.stale


@dataclass(frozen=True, slots=True)
class Kept:
    """An outcome and when it was received (seconds since 1970)."""

    outcome: Outcome
    at: float


@dataclass(slots=True)
class Entry:
    """What is known of one resource; `answer` remembers the answer made of it, `rendered` its bodies, `merged` the
    mementos of many outcomes."""

    kept: dict[str, Kept] = field(default_factory=dict)
    rendered: dict[Any, Any] = field(default_factory=dict)
    rendered_size: int = 0
    answer: Any = None
    merged: tuple[tuple[Outcome, ...], Mementos] | None = None
    size: int = 0


class Store(Protocol):
    """Where entries outlive the process; what cannot be read or written is a ResourceError."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, entries: Sequence[tuple[str, bytes, float]]) -> None: ...
    async def close(self) -> None: ...


class Cache:
    """Entries by URI-R: the most recently used in memory, all in a store. One per process."""

    def __init__(
        self,
        *,
        lifetimes: Lifetimes,
        max_bytes: int,
        store: Store | None = None,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self.lifetimes = lifetimes
        self.bytes = 0
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._store = store
        self._dirty: dict[str, Entry] = {}
        self._flusher: asyncio.Task[None] | None = None
        self._on_problem = on_problem or (lambda _: None)
        self._store_rests_until = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def peek(self, uri_r: str) -> Entry | None:
        """The entry if it is in memory."""
        entry = self._entries.get(uri_r)
        if entry is not None:
            self._entries.move_to_end(uri_r)
        return entry

    async def get(self, uri_r: str) -> Entry | None:
        """The entry, from memory or from the store."""
        entry = self.peek(uri_r)
        if entry is not None or self._store is None or now() < self._store_rests_until:
            return entry
        try:
            data = await self._store.get(uri_r)
        except ResourceError as error:  # the archives can still be asked
            self._on_problem(f"the cache cannot be read: {error}")
            # A server that does not answer would otherwise make every lookup wait for it.
            self._store_rests_until = now() + _STORE_REST
            return None
        if data:
            entry = _decode(data) if len(data) < _LARGE else await asyncio.to_thread(_decode, data)
        if entry is not None:
            self._keep(uri_r, entry)
        return entry

    def update(self, uri_r: str, kept: Mapping[str, Kept]) -> Entry:
        """Add outcomes to an entry."""
        entry = self._entries.get(uri_r) or Entry()
        entry.kept.update(kept)
        entry.rendered.clear()
        entry.rendered_size = 0
        entry.answer = entry.merged = None
        self._keep(uri_r, entry)
        if self._store is not None:
            self._dirty[uri_r] = entry
            if self._flusher is None or self._flusher.done():
                self._flusher = asyncio.get_running_loop().create_task(self._flush_soon())
        return entry

    def remember(self, uri_r: str, entry: Entry, key: Any, body: Any, size: int) -> None:
        """Keep a body made of the entry's answer; only the last few, as clients may name us in many ways."""
        if key in entry.rendered:
            return
        grown = size
        if len(entry.rendered) >= _MOST_RENDERED:
            grown -= entry.rendered_size
            entry.rendered.clear()
            entry.rendered_size = 0
        entry.rendered[key] = body
        entry.rendered_size += size
        self._grow(uri_r, entry, grown)

    def remember_answer(self, uri_r: str, entry: Entry, answer: Any) -> None:
        """Keep the answer made of an entry until it changes; bodies of the one before are of no use any more."""
        grown = (_ANSWER if entry.answer is None else 0) - entry.rendered_size
        entry.answer = answer
        entry.rendered.clear()
        entry.rendered_size = 0
        self._grow(uri_r, entry, grown)

    def remember_merged(self, uri_r: str, entry: Entry, outcomes: tuple[Outcome, ...], mementos: Mementos) -> None:
        """Keep the mementos merged of these outcomes until the entry changes."""
        before = len(entry.merged[1]) if entry.merged is not None else 0
        entry.merged = outcomes, mementos
        self._grow(uri_r, entry, (len(mementos) - before) * _PER_MERGED)

    def _grow(self, uri_r: str, entry: Entry, size: int) -> None:
        if self._entries.get(uri_r) is entry:
            entry.size += size
            self.bytes += size
            self._trim()

    def clear(self) -> None:
        """Forget what is in memory."""
        self._entries.clear()
        self.bytes = 0

    async def close(self) -> None:
        """Write what is not written yet."""
        if self._flusher is not None:
            self._flusher.cancel()
        if self._store is not None:
            await self._flush()
            await self._store.close()

    def _keep(self, uri_r: str, entry: Entry) -> None:
        old = self._entries.pop(uri_r, None)
        if old is not None:
            self.bytes -= old.size
        entry.size = _ENTRY + sum(
            _HELD + count * _PER_MEMENTO if (count := len(kept.outcome.timemap.uris)) else _NONE
            for kept in entry.kept.values()
        )
        self._entries[uri_r] = entry
        self.bytes += entry.size
        self._trim()

    def _trim(self) -> None:
        while self.bytes > self._max_bytes and self._entries:
            _, entry = self._entries.popitem(last=False)
            self.bytes -= entry.size

    async def _flush_soon(self) -> None:
        while self._dirty:
            await asyncio.sleep(_FLUSH_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        if not dirty or self._store is None:
            return
        usable = max(self.lifetimes.fresh + self.lifetimes.stale, self.lifetimes.negative)
        stored = [(uri_r, dict(entry.kept)) for uri_r, entry in dirty.items()]
        try:
            # In a thread: an entry may be megabytes.
            await self._store.put(
                await asyncio.to_thread(
                    lambda: [(uri_r, _encode(kept), usable) for uri_r, kept in stored if _fits(kept)]
                )
            )
        except ResourceError as error:  # the answer was given already
            self._on_problem(f"the cache cannot be written: {error}")


def _fits(kept: Mapping[str, Kept]) -> bool:
    """Whether an entry is small enough for a store: one that takes long to read holds up all other lookups."""
    return sum(one.outcome.count for one in kept.values()) <= MOST_STORED


def _encode(kept: Mapping[str, Kept]) -> bytes:
    outcomes = {
        archive: {
            "at": one.at,
            "kind": one.outcome.kind,
            "moments": "\n".join(one.outcome.timemap.moments),
            "uris": "\n".join(one.outcome.timemap.uris),
            "requests": one.outcome.requests,
            "elapsed": one.outcome.elapsed,
        }
        for archive, one in kept.items()
    }
    data = json.dumps({"v": _VERSION, "outcomes": outcomes}, separators=(",", ":")).encode()
    return zlib.compress(data, 1) if len(data) > _COMPRESS_FROM else data


def _decode(data: bytes) -> Entry | None:
    """The entry, or None for anything that is none: a cache is never trusted to be whole."""
    try:
        document = json.loads(data if data[:1] == b"{" else zlib.decompress(data))
        if document["v"] != _VERSION:
            return None
        kept = {}
        for archive, one in document["outcomes"].items():
            moments, uris = _lines(one["moments"]), _lines(one["uris"])
            kind = OutcomeKind(one["kind"])
            if len(moments) != len(uris) or kind is OutcomeKind.ERROR:
                return None
            timemap = TimeMap(moments=moments, uris=uris)
            outcome = Outcome(archive.rpartition("#")[0], kind, timemap, float(one["elapsed"]), int(one["requests"]))
            kept[archive] = Kept(outcome, float(one["at"]))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return None
    return Entry(kept)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def now() -> float:
    """The clock that entries are dated by."""
    return time()
