"""Filters: a profile of hashed keys, for archives that may not publish URLs in the clear. No false negatives.

A binary fuse filter (Graf and Lemire, 2022) of the keys of a map: about 9 or 18 bits per key, and a key that was
never put in is found with probability 1/256 or 1/65536. The filter itself is made by
`kernels.fuse`.

What is hashed: BLAKE2b, 8 bytes, little-endian, keyed with the salt of the header, of each key's bytes. Exact keys
are hashed in normal form, wildcards as they are written (`com,x)/a/*`). Voids are left out, which is safe. A lookup
hashes the URI's keys and, of its wider wildcards, only those of depths at which the map had wildcards (`wildcards` in
the header): each one tried is one more chance of a false positive, so a filter of an uncompacted map answers best.

Byte layout (integers little-endian):

    0    8   magic `RCFILT01`
    8    4   length n of the JSON header, a multiple of 8 minus 12, so that what follows is aligned
    12   n   JSON header, UTF-8, padded with spaces
    12+n 32  seed (8), keys (4), segment length (4), segment count (4), segment count × length (4), slots (4), zero
    (4) then     slots fingerprints of 1 or 2 bytes

A key with hash x is found if, with h = murmur64(x + seed), the fingerprints of its three slots and h ^ (h >> 32), all
cut to the width, XOR to zero; slots are those of `binary_fuse8_contain` in FastFilter's xor_singleheader. The same
keys, policy, bits and salt give the same bytes. A filter may be compressed whole (`.gz`, `.zst`); it is then unpacked
into memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadURI, FormatError, RecollectError, UsageError
from recollect.formats.containers import OnProblem, atomic_output, open_input
from recollect.formats.detect import Kind, inspect
from recollect.formats.filters import MAGIC
from recollect.formats.outputs import refuse_inputs
from recollect.formats.ukvs import Header, open_map
from recollect.formats.ukvs.periods import Period
from recollect.kernels.fuse import FuseFilter, build_filter
from recollect.maps.lookup import Lookup, in_scope, keys_of, with_time
from recollect.maps.samplescope import refuse_sample
from recollect.maps.scope import ANY, Query, Scope
from recollect.model import Answer, Progress, ProgressCallback
from recollect.uris import lookup_keys, parse_policy, policy_key, segments, uri_key

_BODY = struct.Struct("<QIIIIII")
_LARGEST_HEADER = 1 << 20
_CHUNK = 1 << 16
_LONGEST_SEGMENT = 1 << 18  # as places in it are taken from 18 bits of a hash


@dataclass(frozen=True, slots=True)
class FilterResult:
    """What a filter holds."""

    keys: int
    voids: int
    bits: int
    bytes: int
    policy: str
    wildcards: dict[str, list[int]]

    @property
    def bits_per_key(self) -> float:
        """Of the whole file."""
        return 8 * self.bytes / self.keys if self.keys else 0.0


def make_filter(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    policy: str = "",
    bits: int = 8,
    salt: bytes = b"",
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> FilterResult:
    """Make a filter of a map, or of indexes, which are profiled first. Without a policy it is the map's."""
    if bits not in (8, 16):
        raise UsageError("a filter has 8 or 16 bits per key", where=str(bits))
    if len(salt) > 64:
        raise UsageError("a salt of more than 64 bytes")
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    refuse_inputs(target, given)
    with ExitStack() as stack:
        if len(given) == 1 and given[0] != "-" and Path(given[0]).is_file() and inspect(given[0]).kind is Kind.MAP:
            source = given[0]
        else:
            from recollect.profiles.indexes.profile import profile

            source = str(Path(stack.enter_context(TemporaryDirectory(prefix="recollect-"))) / "map.ukvs")
            result = profile(given, source, policy=policy or "HxPx", progress=progress)
            for problem in (*result.tally.damaged, *result.tally.problems):
                if on_problem is None:
                    raise FormatError(problem.reason, where=f"{problem.file}:{problem.line}")
                on_problem(problem)
        keys = _Keys(source, policy, salt)
        hashes = keys.hashes(on_problem, progress)
        return _write(target, keys, hashes, bits)


class _Keys:
    """The keys of a map on their way into a filter."""

    def __init__(self, path: str, policy: str, salt: bytes) -> None:
        self.path = path
        self.salt = salt
        self.voids = 0
        self.levels: set[tuple[str, int]] = set()
        with open_map(path) as opened:
            self.header = opened.header
        refuse_sample(self.header, path, "put into a filter")
        if self.header.lists_voids:
            raise UsageError("a map of voids has nothing to put into a filter", where=path)
        self.policy = parse_policy(policy).name if policy else self.header.policy
        self._convert = self.policy != self.header.policy
        if self._convert and self.header.policy != "HxPx":
            raise UsageError(
                f"a map of policy {self.header.policy} cannot become a filter of {self.policy}",
                where=path,
                hint="make the filter from the index, or from a map of HxPx",
            )
        if self._convert and self.policy in ("URIR", "DQry", "DIni"):
            raise UsageError(
                f"{self.policy} needs queries, which a map does not have", where=path, hint="make it from the index"
            )

    def hashes(self, on_problem: OnProblem | None, progress: ProgressCallback | None) -> NDArray[np.uint64]:
        """The hashes of all keys, sorted, each once."""
        digest = _hasher(self.salt)
        found: list[NDArray[np.uint64]] = []
        chunk: list[bytes] = []
        total = Path(self.path).stat().st_size
        with open_map(self.path, on_problem) as opened:
            for record in opened:
                if record.frequency.is_void:
                    self.voids += 1
                    continue
                chunk.append(digest(self._key(record.key)))
                if len(chunk) == _CHUNK:
                    found.append(np.frombuffer(b"".join(chunk), "<u8"))
                    chunk.clear()
                    if progress is not None:
                        progress(Progress("hashing", opened.consumed, total, "bytes"))
        found.append(np.frombuffer(b"".join(chunk), "<u8"))
        return np.unique(np.concatenate(found))

    def _key(self, key: bytes) -> bytes:
        if key.endswith((b"/*", b",*")) or key == b"*":
            if self._convert:
                raise UsageError(
                    "a compacted map cannot change its policy",
                    where=self.path,
                    why=f"it has the wildcard {key.decode('utf-8', 'replace')}",
                    hint="make the filter from the index, or from the map before compaction",
                )
            self.levels.add(_level(key))
            return key
        if self._convert:
            return policy_key(key, self.policy)
        try:
            return uri_key(key) if self.policy == "HxPx" else key
        except BadURI:  # a key that no URI has, so its hash is never looked up
            return key


def _hasher(salt: bytes) -> Any:
    seed = hashlib.blake2b(digest_size=8, key=salt)

    def digest(key: bytes) -> bytes:
        one = seed.copy()
        one.update(key)
        return one.digest()

    return digest


def _level(wildcard: bytes) -> tuple[str, int]:
    """Whether a wildcard is of hosts or paths, and how many segments it names."""
    if wildcard == b"*":
        return "host", 0
    hosts, path = segments(wildcard)
    return ("path", len(path) - 1) if path else ("host", len(hosts) - 1)


def _write(target: str | os.PathLike[str], keys: _Keys, hashes: NDArray[np.uint64], bits: int) -> FilterResult:
    body = _populate(hashes, bits)
    levels = {kind: sorted(depth for one, depth in keys.levels if one == kind) for kind in ("host", "path")}
    meta = {
        "type": "filter",
        "version": 1,
        "filter": "binary fuse",
        "bits": bits,
        "hash": "blake2b-64",
        "salt": keys.salt.hex(),
        "policy": keys.policy,
        "keys": len(hashes),
        "wildcards": levels,
        "id": dict(keys.header.id),
        "name": keys.header.meta.get("name", ""),
        "updated_at": keys.header.meta.get("updated_at", ""),
        **Scope.of(keys.header).as_meta(),
    }
    text = json.dumps(meta, ensure_ascii=False, sort_keys=True).encode()
    text += b" " * (-(len(text) + 12) % 8)
    whole = MAGIC + struct.pack("<I", len(text)) + text + body
    with atomic_output(target) as out:
        out.write(whole)
    size = len(whole) if os.fspath(target) == "-" else Path(target).stat().st_size
    return FilterResult(len(hashes), keys.voids, bits, size, keys.policy, levels)


def _populate(hashes: NDArray[np.uint64], bits: int) -> bytes:
    """The body of the file."""
    if len(hashes) == 0:
        return _BODY.pack(0, 0, 0, 0, 0, 0, 0)
    if len(hashes) >= 1 << 32:
        raise RecollectError("more keys than a filter takes", why=f"{len(hashes):,}", hint="compact the map first")
    length, segments = _sizes(len(hashes))
    fingerprints = np.zeros((segments + 2) * length * bits // 8, np.uint8)
    seed = build_filter(hashes, bits, length, segments, np.empty(segments + 1, np.int64), fingerprints)
    if seed is None:
        raise RecollectError("the filter could not be built", why=f"{len(hashes):,} keys")
    head = _BODY.pack(seed, len(hashes), length, segments, segments * length, (segments + 2) * length, 0)
    return head + fingerprints.tobytes()


def _sizes(keys: int) -> tuple[int, int]:
    """The length of a segment and the number of those with first slots, as Graf and Lemire (2022) chose them."""
    if keys == 1:
        return 4, 1
    length = min(1 << math.floor(math.log(keys) / math.log(3.33) + 2.25), _LONGEST_SEGMENT)
    slots = round(keys * max(1.125, 0.875 + 0.25 * math.log(1e6) / math.log(keys)))
    while length > 256 and -(-slots // length) < 34:
        length //= 2
    return length, max(-(-slots // length) - 2, 1)


class FilterMap:
    """An open filter; it answers like a map, but knows no frequencies. Threads may share it."""

    def __init__(self, area: Any, path: str) -> None:
        self.path = path
        self._area = area
        self.meta = _read_meta(area, path)
        start = 12 + struct.unpack_from("<I", area, 8)[0]
        seed, _, length, count, count_length, slots, _ = _BODY.unpack_from(area, start)
        width = self.meta["bits"] // 8
        if start + _BODY.size + slots * width != len(area) or self.meta["bits"] not in (8, 16):
            raise FormatError("a filter that is cut off", where=path, hint="fetch it again")
        self.header = Header(meta=self.meta, id=self.meta.get("id", {}))
        self.scope = Scope.of(self.header)
        self._policy = "" if self.header.policy == "HxPx" else self.header.policy
        self._levels = {(kind, depth) for kind, depths in self.meta["wildcards"].items() for depth in depths}
        self._digest = _hasher(bytes.fromhex(self.meta["salt"]))
        self._contains = _container(
            self.meta["bits"], seed, length, count, count_length, slots, memoryview(area)[start + _BODY.size :]
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> FilterMap:
        """Open a filter; a plain file is mapped, a compressed one read."""
        name = os.fspath(path)
        with open_input(name) as stream:
            if stream.kind != "plain":
                return cls(stream.read(), name)
        with Path(name).open("rb") as file:
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), name)

    def lookup(self, uri: str, query: Query = ANY, *, at: Period | None = None) -> Lookup:
        """Look up a URI or SURT; a filter knows no times, but its scope may. Raises BadURI."""
        return in_scope(self.decide(uri), self.scope, with_time(query, at))

    def decide(self, uri: str, at: Period | None = None) -> Lookup:
        """The answer whatever the scope of the filter is; raises BadURI."""
        for key in keys_of(uri, self._policy):
            found = self._find(key)
            if found is not None:
                return Lookup(uri, found, None, Answer.YES)
        return Lookup(uri, None, None, Answer.NO)

    def lookup_many(self, uris: Iterable[str], query: Query = ANY, *, at: Period | None = None) -> Iterator[Lookup]:
        """Look up a stream of URIs or SURTs; what is none is answered `unknown`."""
        for uri in uris:
            try:
                yield self.lookup(uri, query, at=at)
            except BadURI:
                yield Lookup(uri, None, None, Answer.UNKNOWN)

    def _find(self, key: bytes) -> bytes | None:
        """The key, or the first of its wildcards, that is in the filter."""
        if self._has(key):
            return key
        if self._levels:
            for wildcard in lookup_keys(key)[1:]:
                if _level(wildcard) in self._levels and self._has(wildcard):
                    return wildcard
        return None

    def _has(self, key: bytes) -> bool:
        return bool(self._contains(int.from_bytes(self._digest(key), "little")))

    def close(self) -> None:
        """Nothing is held beyond memory, which goes with the last reference."""

    def __enter__(self) -> FilterMap:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _read_meta(area: Any, path: str) -> dict[str, Any]:
    try:
        (length,) = struct.unpack_from("<I", area, 8)
        if bytes(area[:8]) != MAGIC or length > _LARGEST_HEADER or len(area) < 12 + length + _BODY.size:
            raise ValueError("not a filter, or cut off")
        meta = json.loads(bytes(area[12 : 12 + length]))
        if meta["version"] != 1 or meta["hash"] != "blake2b-64":
            raise ValueError("made by another version")
        if not all(isinstance(depth, int) for depths in meta["wildcards"].values() for depth in depths):
            raise ValueError("bad depths of wildcards")
        bytes.fromhex(meta["salt"])
        parse_policy(meta["policy"])
        return {**meta, "bits": int(meta["bits"])}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, UsageError) as error:
        raise FormatError("a filter that cannot be read", where=path, why=str(error)) from error


def _container(
    bits: int, seed: int, length: int, count: int, count_length: int, slots: int, fingerprints: memoryview
) -> Callable[[int], bool]:
    """The function that says whether a hash is in the filter."""
    if slots == 0:
        return lambda _hash: False
    try:
        if count_length != count * length or (count + 2) * length != slots:
            raise ValueError
        return FuseFilter(fingerprints, bits, seed, length, count).contains
    except ValueError:
        raise FormatError("a filter with impossible sizes") from None
