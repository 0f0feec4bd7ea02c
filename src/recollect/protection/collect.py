"""Blocks from pages of any origin, sorted into versions, and the newest version that is complete.

Hides: which blocks belong together. Pure: pages are given, nothing is fetched. Invariants: only blocks whose signature
holds are kept, of trusted keys if any are named; blocks of two versions are never mixed; an object that comes out has
the SHA-256 that its signed blocks name.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from recollect.errors import FormatError, UsageError
from recollect.protection.block import MANIFEST, Block, Refusal, Refused, Version, is_class_name, mentions, read
from recollect.protection.code import available, decode
from recollect.protection.keys import fingerprint

_MAX_NAMED = 1000  # refused blocks that are named; all are counted


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one version is: `found` different blocks of the `pages` that carried one, `need` of which suffice."""

    version: Version
    found: int
    pages: int

    @property
    def missing(self) -> int:
        """How many more blocks are needed at least."""
        return max(0, self.version.need - self.found)


@dataclass(frozen=True, slots=True)
class Restored:
    """One class that came back: its version, and the sealed object."""

    version: Version
    sealed: bytes


class Collector:
    """Takes pages in, knows what can be restored."""

    def __init__(self, trust: Iterable[bytes] = ()) -> None:
        self._trust = frozenset(trust)
        self._blocks: dict[Version, dict[int, bytes]] = {}
        self._pages: dict[Version, int] = {}
        self._manifests: dict[Version, bytes] = {}
        self._complete: dict[Version, bytes] = {}
        self._tried: dict[Version, int] = {}
        self.carrying = 0  # pages in which a block was accepted
        self.looked_at = 0
        self.refusals: Counter[Refusal] = Counter()
        self.named: list[tuple[str, Refused]] = []  # the first refused blocks, with the page they were in

    def add(self, where: str, page: bytes) -> list[Block]:
        """Take the blocks of a page; returns those that are accepted, in order, known ones too."""
        self.looked_at += 1
        if not mentions(page):
            return []
        accepted = []
        for found in read(page):
            kept = self._checked(found)
            if isinstance(kept, Refused):
                self.refusals[kept.refusal] += 1
                if len(self.named) < _MAX_NAMED:
                    self.named.append((where, kept))
            else:
                accepted.append(kept)
        self.carrying += bool(accepted)
        return accepted

    def _checked(self, found: Block | Refused) -> Block | Refused:
        if isinstance(found, Refused):
            return found
        version = found.version
        if self._trust and version.key not in self._trust:
            return Refused(Refusal.FOREIGN, f"class {version.name}, signed by {fingerprint(version.key)}")
        if version.name == MANIFEST:
            self._manifests[version] = found.payload
            return found
        known = self._blocks.setdefault(version, {})
        if known.setdefault(found.number, found.payload) != found.payload:
            what = f"class {version.name}, version {version.at}, block {found.number}"
            return Refused(Refusal.CONFLICT, f"{what} was met with other bytes")
        self._pages[version] = max(self._pages.get(version, 0), found.pages)
        return found

    @property
    def keys(self) -> list[bytes]:
        """Who signed, most blocks first."""
        counts: Counter[bytes] = Counter()
        for version, blocks in self._blocks.items():
            counts[version.key] += len(blocks)
        for version in self._manifests:
            counts[version.key] += 0
        return [key for key, _ in counts.most_common()]

    def check_keys(self) -> None:
        """Raise UsageError when several keys signed and none is trusted: whose files come back is not ours to guess."""
        keys = self.keys
        if len(keys) > 1 and not self._trust:
            names = ", ".join(fingerprint(key) for key in keys)
            raise UsageError("blocks are signed by several keys", where=names, hint="name yours with --trust site.pub")

    def standings(self) -> list[Standing]:
        """Every version of every class, by class, newest first."""
        versions = sorted(self._blocks, key=lambda v: v.object)
        versions.sort(key=lambda v: v.at, reverse=True)
        versions.sort(key=lambda v: v.name)
        return [Standing(v, len(self._blocks[v]), max(self._pages[v], len(self._blocks[v]))) for v in versions]

    def classes(self) -> list[str]:
        """The names of all classes that are known of, from blocks or from the newest manifest, in order."""
        named = {v.name for v in self._blocks}
        named.update(entry["class"] for entry in self.manifest().get("classes", ()))
        return sorted(named)

    def manifest(self) -> dict[str, list[dict[str, str]]]:
        """The newest manifest, decoded; empty when none was found."""
        for version in sorted(self._manifests, key=lambda v: (v.at, v.object), reverse=True):
            try:
                text = lzma.LZMADecompressor(memlimit=1 << 28).decompress(self._manifests[version], 16 << 20)
                value = json.loads(text)
            except (lzma.LZMAError, EOFError, ValueError, RecursionError):
                continue
            if _is_manifest(value):
                return cast(dict[str, list[dict[str, str]]], value)
        return {}

    def block_payloads(self, version: Version) -> dict[int, bytes]:
        return self._blocks.get(version, {})

    def object_of(self, version: Version) -> bytes | None:
        """The sealed object of a version if its blocks suffice. Not tried again until there are more."""
        if version in self._complete:
            return self._complete[version]
        blocks = self._blocks.get(version, {})
        if len(blocks) < version.need or self._tried.get(version) == len(blocks) or not available(version.code):
            return None
        self._tried[version] = len(blocks)
        sealed = decode(version.code, version.size, version.need, blocks)
        if sealed is None:
            return None
        if hashlib.sha256(sealed).hexdigest() != version.object:
            raise FormatError(
                "a restored object is not the one that was signed", where=f"class {version.name}, version {version.at}"
            )
        self._complete[version] = sealed
        return sealed

    def restore(self, name: str, until: str | None = None) -> Restored | None:
        """The newest complete version of a class, made at `until` (14 digits) or before; an older one if need be."""
        for standing in self.standings():
            version = standing.version
            if version.name != name or (until is not None and version.at > until):
                continue
            sealed = self.object_of(version)
            if sealed is not None:
                return Restored(version, sealed)
        return None

    def is_satisfied(self, until: str | None = None) -> bool:
        """Is the newest known version of every known class complete? Then no more pages are needed."""
        newest: dict[str, Version] = {}
        for standing in self.standings():
            if until is None or standing.version.at <= until:
                newest.setdefault(standing.version.name, standing.version)
        names = self.classes()
        return bool(names) and all(name in newest and self.object_of(newest[name]) is not None for name in names)


def _is_manifest(value: object) -> bool:
    """Has a decoded manifest the form that `classes` reads? Whoever has a key can sign anything."""
    entries = value.get("classes") if isinstance(value, dict) else None
    return isinstance(entries, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("class"), str) and is_class_name(entry["class"])
        for entry in entries
    )


def newest_first(versions: Sequence[Version]) -> list[Version]:
    return sorted(versions, key=lambda v: (v.at, v.object), reverse=True)
