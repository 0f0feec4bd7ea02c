"""From files to signed blocks for a number of pages: what `apply` does before it touches a page.

Hides: the order of packing, keeping versions, choosing need, and coding. Invariant: given the same files, pages and
blocks that are already there, nothing changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil

from recollect.errors import UsageError
from recollect.model import Progress, ProgressCallback
from recollect.protection import manifest, odds
from recollect.protection.age import Lock, seal
from recollect.protection.block import Block, Version, write
from recollect.protection.code import MARGIN, Code, encode
from recollect.protection.collect import Collector
from recollect.protection.keys import SigningKey
from recollect.protection.markup import Style
from recollect.protection.pack import Compression, Packing, archive, compress
from recollect.protection.place import content_id, give_numbers, kept_version, new_moment, period_of


@dataclass(frozen=True, slots=True)
class Options:
    """How files are protected."""

    key: SigningKey
    now: datetime
    lock: Lock = Lock()  # noqa: RUF009 - frozen
    need: int | float | None = None  # a number of blocks, or a share of the pages
    growth: int | None = None  # bytes by which no page may grow
    code: Code = Code.RAPTORQ
    compression: Compression = Compression.XZ
    level: int | None = None
    style: Style = Style.SCRIPT
    rotate: float | None = None  # seconds
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sealed:
    """One class, ready to be coded; `kept` when the version is one that pages carry already."""

    packing: Packing
    version: Version
    sealed: bytes
    kept: bool
    encrypted: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """How many pages carry blocks: the site's own and vault pages; `need` of them hold an object."""

    need: int
    own: int
    vault: int

    @property
    def pages(self) -> int:
        return self.own + self.vault


def spread(sizes: Sequence[int], own: int, need: int | float | None, growth: int | None) -> Spread:
    """How many blocks are needed, and how many vault pages.

    Without `need`, as few as the growth allows, because fewer are safer; without `growth` either, 40% of the pages.
    """
    limit = growth if growth is not None else odds.DEFAULT_GROWTH
    least = odds.need_for_growth(sizes, limit)
    if least is None:
        raise UsageError(
            "no page can grow by so little",
            where=f"{limit:,} bytes",
            why="the blocks' headers alone are more",
            hint=f"allow at least {odds.growth(sizes, max(1, sum(sizes))):,} bytes",
        )
    if isinstance(need, int):
        if growth is not None and need < least:
            raise UsageError(
                "pages would grow by more than allowed",
                where=f"{odds.growth(sizes, need):,} bytes",
                hint=f"need {least:,} pages or more, or allow more growth",
            )
        return Spread(need, own, max(0, need + MARGIN - own) if need > 1 or own == 0 else 0)
    share = need if need is not None else odds.DEFAULT_SHARE
    wanted = odds.need_for_share(own, share) if own else 1
    if wanted < least or not own:  # too few pages
        if growth is None:  # a small share of pages without a limit must not make a vault of thousands
            share = max(share, odds.DEFAULT_SHARE)
        return Spread(least, own, max(0, max(ceil(least / share), least + MARGIN) - own))
    return Spread(least if need is None and growth is not None else wanted, own, 0)


def seal_class(packing: Packing, known: Collector, options: Options) -> Sealed:
    """Pack a class, or find it again in the blocks that are there. The version's need is not chosen yet."""
    data = archive(packing)
    how = f"{options.compression} {options.level} {sorted(options.lock.recipients)} {options.lock.passphrase!r}"
    content = content_id(options.key, data, how)
    versions = [standing.version for standing in known.standings()]
    public = options.key.public
    encrypted = not options.lock.is_open
    for version in versions:
        if (version.name, version.content, version.key) == (packing.name, content, public):
            found = known.object_of(version)
            if found is not None:
                return Sealed(packing, version, found, True, encrypted)
    sealed = seal(compress(data, options.compression, options.level), options.lock)
    digest = hashlib.sha256(sealed).hexdigest()
    for version in versions:  # too few blocks are left, but the same object comes out
        if (version.name, version.content, version.key, version.object) == (packing.name, content, public, digest):
            return Sealed(packing, version, sealed, True, encrypted)
    at = new_moment([v for v in versions if v.name == packing.name], options.now)
    version = Version(packing.name, at, content, digest, len(sealed), options.code, 1, public)
    return Sealed(packing, version, sealed, False, encrypted)


def with_need(sealed: Sealed, need: int, known: Collector, options: Options) -> Sealed:
    """The class with its need decided: the version pages carry already, or a new one."""
    versions = [standing.version for standing in known.standings()]
    own = sealed.version
    if sealed.kept:
        kept = kept_version(versions, own.name, own.content, need, options.code, own.key)
        if kept is not None and kept.object == own.object:
            return replace(sealed, version=kept)
    at = new_moment([v for v in versions if v.name == own.name], options.now)
    return replace(sealed, version=replace(own, at=at, need=need, code=options.code), kept=False)


def blocks_for(
    classes: Sequence[Sealed],
    pages: Sequence[str],
    had: Mapping[str, Mapping[Version, int]],
    options: Options,
    progress: ProgressCallback = lambda _progress: None,
) -> dict[str, str]:
    """The text of the blocks of each page. `had` is what each page carries now, as version and number."""
    texts: dict[str, list[str]] = {name: [] for name in pages}
    for done, sealed in enumerate(classes):
        version = sealed.version
        progress(Progress("coding", done, len(classes), "classes"))
        period = period_of(version.at, options.now, options.rotate)
        old = {name: had[name][version] for name in pages if version in had.get(name, {})}
        numbers = give_numbers(pages, old, period)
        coded = encode(version.code, sealed.sealed, version.need, list(numbers.values()))
        for name in pages:
            block = Block(version, numbers[name], len(pages), coded[numbers[name]])
            texts[name].append(write(block, options.key))
    return {name: "\n".join(blocks) for name, blocks in texts.items()}


def manifest_text(classes: Sequence[Sealed], pages: int, key: SigningKey) -> str:
    """The manifest of these classes as the text of a block."""
    entries = [
        manifest.Entry(
            sealed.version,
            pages,
            tuple((member.name, member.size) for member in sealed.packing.files),
            sealed.packing.size,
            sealed.encrypted,
        )
        for sealed in classes
    ]
    return write(manifest.make(entries, key), key)
