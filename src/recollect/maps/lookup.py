"""Lookup: does a map hold a URI? Searched in the file, without loading it and without an index.

Hides: how a URI becomes the keys to try, the containers of a map (plain, BGZF, seekable zstd, a folder of parts, a
filter) and the choice among hits. `open_map` opens any of them; `MementoMap.lookup` answers for one URI,
`lookup_many` for streams.

Meaning (docs/design.md): the most specific key decides. No key: `no`, or `unknown` in a map of voids or of a sample. A
void: `no`; in a map of a sample a void `com,example,*` does not cover ports. `/`: `unknown`. Anything else: `yes`.
A `no` outside of the map's scope (`scope`) is `unknown`, with the limit that the request lies beyond.
A URI has one normal key, but indexes may spell it otherwise (`uris.spellings`); a spelling that holds something wins
over one that does not, as nothing held may be missed.

Threads and tasks may share a map: it is never written, and each search has its own state. A file that is replaced by
renaming stays readable through a map opened before; `MapSet.refresh` swaps such maps while readers of the old ones
finish with them. A map is closed when the last reference to it is gone, or by `close`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, reduce
from itertools import islice
from pathlib import Path
from typing import Protocol

from recollect.datetimes import asked_digits
from recollect.errors import BadURI, FormatError, RecollectError
from recollect.formats.filters import is_filter
from recollect.formats.frequency import Frequency, merge
from recollect.formats.ukvs import Header
from recollect.formats.ukvs.periods import Period
from recollect.formats.ukvs.records import Record, parse_line
from recollect.kernels.sets import HashedSet
from recollect.maps.columnquery import held_of
from recollect.maps.maptext import BlockText, ClosedText, MappedText, MapText, open_text
from recollect.maps.partialkeys import find_below, partial_key
from recollect.maps.plainmap import open_plain
from recollect.maps.scope import ANY, Limit, LimitKind, Query, Scope, ScopeKind
from recollect.maps.sets import anchor_of, has_set, sets_of
from recollect.model import Answer
from recollect.uris import is_surt, key_of_uri, policy_key, spellings, surt
from recollect.uris.conversion import shorter_key
from recollect.uris.keys import encode_query

BATCH = 1 << 14
ALL = b"*"
KNOWN_SETS = 1 << 10
_FREQUENCY = 64  # bytes, which hold any frequency and the space around it

# URIs and SURTs of the usual form; their other spellings are known without calling `spellings`.
_PLAIN_URI = re.compile(
    r"https?://(?P<www>www\.)?(?!www\d*\.)(?!xn--)[a-z0-9_-]+(?:\.(?!xn--)[a-z0-9_-]+)*\.[a-z]+(?P<path>(?:/[a-z0-9._~-]+)*)/?"
)
_BARE_WORD = re.compile(r"[^\s.:/?#()\[\]*]*")
_PLAIN_SURT = re.compile(rb"[a-z][a-z0-9_,-]*[a-z0-9_-]\)/(?:[a-z0-9._~-]+(?:/[a-z0-9._~-]+)*)?")


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a map says of a URI: the deciding key and its frequency, None where no key covers it."""

    uri: str
    key: bytes | None
    frequency: Frequency | None
    answer: Answer
    by_set: bool = False  # the hashed set of a wildcard decided
    set_bits: int = 0  # of that set, right below its wildcard
    limit: Limit | None = None  # why a map that has no key for it does not say no

    def reason(self, scope: Scope) -> str:
        """Why the answer of a map with this scope is unknown, or how far a "no" goes, as text; empty for "yes"."""
        if self.limit is not None:
            return str(self.limit)
        if self.answer == Answer.UNKNOWN:
            return "the key has no frequency" if self.key is not None else ""
        return scope.extent() if self.answer == Answer.NO else ""


class Holdings(Protocol):
    """What `open_map` opens: a map, a folder of parts, or a filter."""

    path: str
    header: Header
    scope: Scope

    def lookup(self, uri: str, query: Query = ANY, *, at: Period | None = None) -> Lookup: ...

    def lookup_many(self, uris: Iterable[str], query: Query = ANY, *, at: Period | None = None) -> Iterator[Lookup]: ...

    def decide(self, uri: str, at: Period | None = None) -> Lookup: ...

    def close(self) -> None: ...


class MementoMap:
    """An open map: one file, or a folder of parts that together are one."""

    def __init__(self, text: MapText, path: str) -> None:
        self.path = path
        self.header = text.header
        self.text: MapText = text
        self.scope = Scope.of(self.header)
        self._policy = "" if self.header.policy == "HxPx" else self.header.policy
        self._sampled = self.scope.kind is ScopeKind.SAMPLE
        self._known_sets: dict[bytes, list[HashedSet]] = {}
        self._covers_all = self.header.covers_all
        self._columns = self.header.keys == ("surt",) and self.header.values == ("frequency",)
        if self.header.keys[0] != "surt":
            first = self.header.keys[0]
            raise FormatError("a map that is not of SURTs", where=path, why=f"its first key is {first!r}")

    @property
    def is_simple(self) -> bool:
        """Whether it has a key and a frequency per line, keys of the usual policy, lines that cover all that their
        keys cover, and an answer for every URI, as most maps do."""
        return self._has_plain_lines and not self.scope.has_limits

    @property
    def _has_plain_lines(self) -> bool:
        return self._columns and not self._policy and not self._sampled and not self.has_total

    @cached_property
    def has_total(self) -> bool:
        """Whether it has a line `*` that is a total only."""
        return not self._covers_all and any(line.split(None, 1)[0] == ALL for line in self.text.lines_under(ALL))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> MementoMap:
        """Open a map: a file in any container that can be searched, or a folder of parts."""
        name = os.fspath(path)
        return cls(open_text(name), name)

    def close(self) -> None:
        """Close the file at once, even if there are references to the map."""
        text, self.text = self.text, ClosedText(self.header)
        text.close()

    def __enter__(self) -> MementoMap:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def lookup(self, uri: str, query: Query = ANY, *, at: Period | None = None) -> Lookup:
        """Look up a URI or a SURT, in the time `at` if given and if the map knows times; raises BadURI.

        `query` is what else is known of the request: it decides whether the scope of the map covers it.
        """
        query = with_time(query, at)
        return in_scope(self._decide(uri, query), self.scope, query)

    def decide(self, uri: str, at: Period | None = None) -> Lookup:
        """The answer of the deciding key, and "no" without one, whatever the scope of the map is; raises BadURI."""
        return self._decide(uri, Query(at=at))

    def _decide(self, uri: str, query: Query) -> Lookup:
        if uri.endswith("*") and (partial := partial_key(uri)) is not None:
            return self._decide_below(uri, partial, query)
        best: Lookup | None = None
        for key in keys_of(uri, self._policy):
            found = self.text.find(key)
            if found is None:
                continue
            hit = self._judge(uri, key, found[0], found[1], query)
            if hit.answer != Answer.NO and found[0][-1:] != b"*":
                return hit
            if best is None or _better(hit, best):
                best = hit
        return best or Lookup(uri, None, None, Answer.NO)

    def _decide_below(self, uri: str, wildcard: bytes, query: Query) -> Lookup:
        """Whether anything lies below a partial key (`pt,roda,*`)."""
        if self._policy:
            wildcard = shorter_key(wildcard, self._policy).key
            if not wildcard.endswith(b"*"):
                hit = self.text.find(wildcard)
                return self._judge(uri, wildcard, *hit, query) if hit else Lookup(uri, None, None, Answer.NO)
        found = find_below(self.text, self.header, wildcard, query.at, query.conditions)
        if found is None:
            return Lookup(uri, None, None, Answer.NO)
        held = None if self._is_total(*found) and wildcard != ALL else found[1].held
        return Lookup(uri, *found, Answer.UNKNOWN if held is None else Answer.YES if held else Answer.NO)

    def _is_total(self, key: bytes, frequency: Frequency) -> bool:
        """Whether a line is the total of the archive (Alam et al. 2019, Figure 2): that something is held somewhere
        is neither a yes nor a no. A total of zero is a no."""
        return key == ALL and not self._covers_all and frequency.held is not False

    def lookup_many(self, uris: Iterable[str], query: Query = ANY, *, at: Period | None = None) -> Iterator[Lookup]:
        """Look up a stream of URIs or SURTs, in their order; a batch is sorted and searched in one sweep.

        What is not a URI is answered `unknown` without a key; `keys_of` says why.
        """
        query = with_time(query, at)
        waiting = iter(uris)
        while batch := list(islice(waiting, BATCH)):
            yield from self._lookup_batch(batch, query)

    def _lookup_batch(self, batch: Sequence[str], query: Query) -> Iterator[Lookup]:
        keys: list[bytes] = []
        ends: list[int] = []
        for uri in batch:
            if not (uri.endswith("*") and partial_key(uri) is not None):
                keys += _keys_or_none(uri, self._policy)
            ends.append(len(keys))
        found = self.text.find_many(keys)
        start = 0
        for uri, end in zip(batch, ends, strict=True):
            best: Lookup | None = None
            if end == start and uri.endswith("*") and (partial := partial_key(uri)) is not None:
                best = self._decide_below(uri, partial, query)
            for key, hit in zip(keys[start:end], found[start:end], strict=True):
                if hit is not None:
                    verdict = self._judge(uri, key, hit[0], hit[1], query)
                    if best is None or _better(verdict, best):
                        best = verdict
            if best is None:
                best = Lookup(uri, None, None, Answer.NO if end > start else Answer.UNKNOWN)
            yield in_scope(best, self.scope, query)
            start = end

    def prefers(self, asked: bytes, place: int, other: bytes, other_place: int) -> bool:
        """Whether, of two deciding lines for different spellings of a URI, the one at `place` is the better."""
        assert isinstance(self.text, MappedText)
        both = ((asked, place), (other, other_place))
        first, second = (self._judge("", key, *self.text.hit_at(one), ANY) for key, one in both)
        return _better(first, second)

    def _judge(self, uri: str, asked: bytes, key: bytes, lines: Sequence[bytes], query: Query) -> Lookup:
        parts = query.at is not None or bool(query.conditions)
        if self._columns and not parts:
            frequency = Frequency.parse(_second_token(lines[0], len(key)))
        else:
            records = [parse_line(line, self.header) for line in lines]
            frequency = held_of(records, self.header, query.at, query.conditions) if parts else whole_of(records)
        held = None if self._is_total(key, frequency) else frequency.held
        if held is False and self._sampled and key.endswith(b",*") and _port_of(asked) != _port_of(key):
            held = None  # the domain listings of archives, which such a void comes from, do not show other ports
        by_set, set_bits = False, 0
        if held is not False and key.endswith(b"*") and self._has_plain_lines and len(lines) == 1 and has_set(lines[0]):
            sets = self._sets(key, lines[0])
            by_set, set_bits = bool(sets), min((one.below for one in sets), default=0)
            if by_set and not any(one.holds(asked, anchor_of(key)) for one in sets):
                held = False
        return Lookup(
            uri, key, frequency, Answer.UNKNOWN if held is None else Answer.YES if held else Answer.NO, by_set, set_bits
        )

    def _sets(self, key: bytes, line: bytes) -> list[HashedSet]:
        """The sets of a wildcard's line, which is read once."""
        known = self._known_sets.get(key)
        if known is None:
            known = sets_of(line.split(None, 2)[2].decode("utf-8", "surrogateescape"))
            if len(self._known_sets) >= KNOWN_SETS:
                self._known_sets.clear()
            self._known_sets[key] = known
        return known


def with_time(query: Query, at: Period | None) -> Query:
    """The query with the time it is about."""
    return query if at is None else replace(query, at=at)


def in_scope(found: Lookup, scope: Scope, query: Query) -> Lookup:
    """The answer as far as the scope of the map goes: a "no" outside of it is unknown, and so is one without a key in a
    map that does not list all holdings."""
    if found.answer != Answer.NO:
        return found
    if found.key is None and not scope.is_complete:
        limit: Limit | None = Limit(LimitKind(scope.kind.value))
    else:
        limit = scope.limit(found.uri, query)
    return found if limit is None else replace(found, answer=Answer.UNKNOWN, limit=limit)


def _port_of(key: bytes) -> bytes:
    """The port of a key or wildcard; empty if it has none."""
    host = key.partition(b")")[0].removesuffix(b",*")
    return host[host.rfind(b"]") + 1 :].partition(b":")[2]


def _second_token(line: bytes, first: int) -> bytes:
    """The token after the first one, which has at least `first` bytes; a line with a set is not copied as a whole."""
    head = line[: first + _FREQUENCY].split(None, 2)
    return head[1] if len(head) == 3 or len(line) <= first + _FREQUENCY else line.split(None, 2)[1]


def keys_of(uri: str, policy: str = "") -> list[bytes]:
    """The keys to search for a URI or SURT, the normal one first; raises BadURI."""
    if _BARE_WORD.fullmatch(uri) and uri.lower() != "localhost":
        raise BadURI("not a URI", where=repr(uri[:80]), why="it has neither a scheme nor a host with a dot")
    if policy:
        return _policy_keys(uri, policy)
    plain = _PLAIN_URI.fullmatch(uri)
    if plain is not None:
        key = key_of_uri(uri)
        host, _, path = key.partition(b")")
        if path == (plain["path"].encode() or b"/"):
            return [key, host + b",www)" + path] if plain["www"] else [key]
    else:
        raw = uri.encode("utf-8", "surrogateescape").partition(b"?")[0]
        if _PLAIN_SURT.fullmatch(raw):
            return [raw]
    return [key for key in spellings(uri) if not _only_slashed(key)]


def _only_slashed(key: bytes) -> bool:
    """Whether it is another spelling's key with a slash at its end, which a search tries anyway."""
    return key.endswith(b"/") and not key.endswith(b")/")


def _policy_keys(uri: str, policy: str) -> list[bytes]:
    full = uri.encode("utf-8", "surrogateescape") if is_surt(uri) else surt(uri).encode()
    query = encode_query(full)
    others = [key + query for key in spellings(uri) if not _only_slashed(key)]
    return list(dict.fromkeys(policy_key(key, policy) for key in (full, *others)))


def _keys_or_none(uri: str, policy: str) -> list[bytes]:
    try:
        return keys_of(uri, policy)
    except BadURI:
        return []


def _better(new: Lookup, old: Lookup) -> bool:
    """Of two spellings' verdicts: what holds wins over what does not, then an exact key over a wildcard."""
    return _rank(new) > _rank(old)


def _rank(verdict: Lookup) -> tuple[bool, bool]:
    return verdict.answer != Answer.NO, not (verdict.key or b"*").endswith(b"*")


def whole_of(records: Sequence[Record]) -> Frequency:
    """The records of one key as one: the row of the whole (`:` and `-` in all further columns), else their sum."""
    for record in records:
        if all(token in (b":", b"-") for token in record.more_keys):
            return record.frequency
    return _sum(records)


def _sum(records: Sequence[Record]) -> Frequency:
    """Records of one key in different times: captures add, URI-Rs may be the same."""
    return reduce(merge, (record.frequency for record in records))


def period_of(moment: str | datetime) -> Period:
    """The period a person means: a datetime (its second), `2014`, `201406`, `2014-06-01`, `2014:2016`."""
    if isinstance(moment, datetime):
        return Period.parse(moment.strftime("%Y%m%d%H%M%S"))
    return Period.parse(":".join(asked_digits(side) if side else "" for side in _sides(moment)))


def _sides(text: str) -> list[str]:
    """`2014:2016` has two sides; the colons of `2014-06-01T12:30:00Z` do not separate sides."""
    return text.split(":") if re.fullmatch(r"[\d-]*:[\d-]*", text) else [text]


class MapSet:
    """Several named maps that are looked up together and can be swapped while in use."""

    def __init__(
        self, paths: Mapping[str, str | os.PathLike[str]], opener: Callable[[str], Holdings] | None = None
    ) -> None:
        self._open = opener or open_map
        self._paths = {name: os.fspath(path) for name, path in paths.items()}
        self._stamps = {name: _stamp(path) for name, path in self._paths.items()}
        self._maps: dict[str, Holdings] = {name: self._open(path) for name, path in self._paths.items()}

    @property
    def maps(self) -> Mapping[str, Holdings]:
        """The maps as they are now. A reader that keeps this mapping keeps these versions."""
        return self._maps

    def lookup(self, uri: str, query: Query = ANY, *, at: Period | None = None) -> dict[str, Lookup]:
        """What each map says."""
        return {name: one.lookup(uri, query, at=at) for name, one in self._maps.items()}

    def refresh(self) -> list[str]:
        """Open again what has changed on disk; returns the names. A new version that cannot be read leaves the old
        one in place and raises, after the others have been swapped."""
        changed: dict[str, Holdings] = {}
        failure: RecollectError | None = None
        for name, path in self._paths.items():
            stamp = _stamp(path)
            if stamp == self._stamps[name]:
                continue
            try:
                changed[name] = self._open(path)
            except RecollectError as error:
                failure = error
            self._stamps[name] = stamp
        # One assignment, so that a reader sees either all old or all new maps; the old ones go with their last
        # reader.
        self._maps = {**self._maps, **changed}
        if failure is not None:
            raise failure
        return list(changed)


def _stamp(path: str) -> tuple[int, int, int]:
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def open_for_many(path: str | os.PathLike[str]) -> Holdings:
    """Open a map for very many lookups: one in compressed blocks is unpacked first, and then searched much faster."""
    holdings = open_map(path)
    if isinstance(holdings, MementoMap) and isinstance(holdings.text, BlockText) and holdings.is_simple:
        holdings.close()
        with open_plain(path) as plain:
            return MementoMap(MappedText(plain.data, os.fspath(path)), os.fspath(path))
    return holdings


def open_map(path: str | os.PathLike[str]) -> Holdings:
    """Open a map, a folder of parts or a filter, whichever it is; see `MementoMap.open`."""
    name = os.fspath(path)
    if Path(name).is_file() and is_filter(name):
        from recollect.maps.filters import FilterMap

        return FilterMap.open(name)
    return MementoMap.open(name)
