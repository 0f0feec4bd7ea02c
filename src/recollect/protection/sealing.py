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

from recollect.datetimes import parse_timestamp
from recollect.errors import UsageError
from recollect.model import Progress, ProgressCallback
from recollect.protection import manifest, odds
from recollect.protection.age import Lock, Locked, Opener, lock_kinds, seal, unseal
from recollect.protection.block import Block, Version, payload_bytes, write
from recollect.protection.changes import (
    SUFFIX,
    changed_names,
    changes_class,
    is_changes_class,
    make_spliced,
)
from recollect.protection.changes import make as make_changes
from recollect.protection.chunks import SUFFIX as CHUNKS
from recollect.protection.chunks import Chunks, chunks_class, list_chunks
from recollect.protection.code import MARGIN, Code, encode
from recollect.protection.collect import Collector
from recollect.protection.keys import SigningKey
from recollect.protection.markup import Style
from recollect.protection.pack import Compression, Limits, Packing, archive, compress, expanded
from recollect.protection.place import content_id, give_numbers, kept_version, new_moment, period_of

_CHANGES_BLOCK = 8192  # bytes of changes that one page carries: most changes come back from any single page
_CHANGES_ROOM = 8  # the part of the allowed growth that versions leave to their changes
_LEAST_ROOM = 1024
_MANIFEST_ROOM = 1280  # bytes of a manifest without names of files
_RENEWED_FROM = 10  # a version older than `every` is renewed when its changes have more than this part of its size


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
    every: float | None = None  # seconds that a version lives at least; meanwhile changes are carried apart
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sealed:
    """One class, ready to be coded; `kept` when the version is one that pages carry already. It is `held` while it
    lives, although files may have changed: changes are a class of their own."""

    packing: Packing
    version: Version
    sealed: bytes
    kept: bool
    encrypted: bool
    held: bool = False

    @property
    def is_changes(self) -> bool:
        return is_changes_class(self.version.name)


@dataclass(frozen=True, slots=True)
class Spread:
    """How many pages carry blocks: the site's own and vault pages; `need` of them hold an object."""

    need: int
    own: int
    vault: int

    @property
    def pages(self) -> int:
        return self.own + self.vault


def spread(sizes: Sequence[int], own: int, need: int | float | None, growth: int | None, room: int = 0) -> Spread:
    """How many blocks are needed, and how many vault pages; `room` is the part of the growth that is left to others.

    Without `need`, as few as the growth allows, because fewer are safer; without `growth` either, as many as bring
    everything back with a certainty of 95% when half of the pages are captured.
    """
    limit = growth if growth is not None else odds.DEFAULT_GROWTH
    least = odds.need_for_growth(sizes, limit - room) or odds.need_for_growth(sizes, limit)
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
    share = need or odds.DEFAULT_SHARE
    wanted = 1 if not own else odds.need_for_share(own, share) if need is not None else odds.need_for_risk(own)
    if wanted < least or not own:  # too few pages
        if growth is None:  # a small share of pages without a limit must not make a vault of thousands
            share = max(share, odds.DEFAULT_SHARE)
        pages = max(ceil(least / share), least + MARGIN) if need is not None else odds.pages_for_risk(least)
        return Spread(least, own, max(0, pages - own))
    return Spread(least if need is None and growth is not None else wanted, own, 0)


def room_beside(options: Options) -> int:
    """The bytes of growth that versions leave to their changes and to the manifest."""
    if not options.every:
        return _MANIFEST_ROOM
    return _MANIFEST_ROOM + max(_LEAST_ROOM, (options.growth or odds.DEFAULT_GROWTH) // _CHANGES_ROOM)


def base_sizes(sealed: Sequence[Sealed]) -> list[int]:
    """The sizes that decide how many blocks are needed: those of the classes, without their changes."""
    return [one.version.size for one in sealed if not one.is_changes]


def seal_all(
    packings: Sequence[Packing],
    pages: int,
    known: Collector,
    options: Options,
    progress: ProgressCallback = lambda _progress: None,
) -> tuple[Spread, list[Sealed]]:
    """Every class for a site with this number of pages, with its need decided. Changes that no longer fit into the
    allowed growth make new versions of their classes."""
    sealed: list[Sealed] = []
    for done, packing in enumerate(packings):
        progress(Progress("packing", done, len(packings), "classes"))
        sealed += seal_class(packing, known, options)
    room = room_beside(options)
    plan = spread(base_sizes(sealed), pages, options.need, options.growth, room)
    chosen = _with_needs(sealed, plan, known, options)
    if chosen is None:
        changed = {one.version.name.removesuffix(SUFFIX) for one in sealed if one.is_changes}
        kept = [one for one in sealed if one.packing.name.removesuffix(SUFFIX) not in changed]
        fresh = [
            one
            for packing in packings
            if packing.name in changed
            for one in _fresh(packing, archive(packing), known, options)
        ]
        sealed = sorted([*kept, *fresh], key=lambda one: one.version.name)
        plan = spread(base_sizes(sealed), pages, options.need, options.growth, room)
        chosen = _with_needs(sealed, plan, known, options)
        assert chosen is not None
    return plan, chosen


def seal_class(packing: Packing, known: Collector, options: Options) -> list[Sealed]:
    """Pack a class, or find it again in the blocks that are there; or its version as it is, and its changes.
    The needs are not chosen yet."""
    data = archive(packing)
    base = _living_version(packing.name, known, options)
    sealed = known.object_of(base) if base is not None else None
    if base is None or sealed is None or lock_kinds(sealed) != options.lock.kinds:
        return _fresh(packing, data, known, options)
    if content_id(options.key, data, _how(options)) == base.content and not _has_changes(packing.name, known):
        return _fresh(packing, data, known, options)
    held = Sealed(packing, base, sealed, True, not options.lock.is_open, held=True)
    living = _beside(held, data, known, options)
    if living is None:
        return _fresh(packing, data, known, options)
    is_old = (options.now - parse_timestamp(base.at)).total_seconds() >= (options.every or 0)
    if is_old and _RENEWED_FROM * living[-1].version.size > base.size:
        return _fresh(packing, data, known, options)
    return living


def _fresh(packing: Packing, data: bytes, known: Collector, options: Options) -> list[Sealed]:
    """A class as a version of these files; with the list of its chunks, if it cannot be opened here later."""
    sealed = _sealed(packing, data, known, options)
    if not options.lock.recipients or not options.every:
        return [sealed]
    listing = options.key.lock(list_chunks(data, options.key.digest).to_bytes(), _about(sealed.version, options))
    content = content_id(options.key, listing, "chunks")
    return [sealed, _as_version(_chunks_packing(packing), content, listing, known, options)]


def _about(base: Version, options: Options) -> bytes:
    """What a list of chunks belongs to: an object, and how it was sealed. For other recipients it is of no use."""
    return f"{base.object} {_how(options)}".encode()


def _chunks_packing(packing: Packing) -> Packing:
    return Packing(chunks_class(packing.name), ())


def _beside(held: Sealed, data: bytes, known: Collector, options: Options) -> list[Sealed] | None:
    """A version as it is, and last what changed since; None if it was sealed in another way.

    It is compared by its files, or, where it is encrypted for others, by the list of its chunks that pages carry.
    """
    packing, base, key = held.packing, held.version, options.key
    name = changes_class(packing.name)
    if not options.lock.recipients:
        old = _opened(held.sealed, options)
        if old is None or content_id(key, old, _how(options)) != base.content:  # other passphrase or compression
            return None
        changes = make_changes(old, base.object, data)
        changed = changed_names(changes)
        members = tuple(member for member in packing.members if member.name in changed)
        return [held, _sealed(Packing(name, members), changes, known, options)]
    for version in _versions(known):
        found = known.object_of(version) if version.name == chunks_class(packing.name) else None
        listing = key.unlock(found, _about(base, options)) if found is not None else None
        if found is not None and listing is not None:
            changes = make_spliced(Chunks.from_bytes(listing), base.object, data, key.digest)
            listed = Sealed(_chunks_packing(packing), version, found, True, True, held=True)
            return [held, listed, _sealed(Packing(name, packing.members), changes, known, options)]
    return None


def _living_version(name: str, known: Collector, options: Options) -> Version | None:
    """The newest version of a class, if versions live on while files change."""
    if not options.every:
        return None
    mine = (name, options.key.public)
    own = [one.version for one in known.standings() if (one.version.name, one.version.key) == mine]
    return own[0] if own else None


def _has_changes(name: str, known: Collector) -> bool:
    """Whether pages carry changes of a class: when they are taken back, an empty object has to say so."""
    return any(one.version.name == changes_class(name) for one in known.standings())


def _opened(sealed: bytes, options: Options) -> bytes | None:
    """The archive in a sealed object; None if it is encrypted for others."""
    try:
        packed = unseal(sealed, Opener(passphrase=options.lock.passphrase))
    except Locked:
        return None
    return expanded(packed, Limits())


def _how(options: Options) -> str:
    return f"{options.compression} {options.level} {sorted(options.lock.recipients)} {options.lock.passphrase!r}"


def _sealed(packing: Packing, data: bytes, known: Collector, options: Options) -> Sealed:
    """An archive as a version that pages carry already, or a new one."""
    content = content_id(options.key, data, _how(options))
    for version in _versions(known):
        if (version.name, version.content, version.key) == (packing.name, content, options.key.public):
            found = known.object_of(version)
            if found is not None:
                return Sealed(packing, version, found, True, not options.lock.is_open)
    sealed = seal(compress(data, options.compression, options.level), options.lock)
    return _as_version(packing, content, sealed, known, options)


def _as_version(packing: Packing, content: str, sealed: bytes, known: Collector, options: Options) -> Sealed:
    """A sealed object as a new version; or as one that has too few blocks left, if the same object came out."""
    digest, public = hashlib.sha256(sealed).hexdigest(), options.key.public
    encrypted = not options.lock.is_open
    versions = _versions(known)
    for version in versions:
        if (version.name, version.content, version.key, version.object) == (packing.name, content, public, digest):
            return Sealed(packing, version, sealed, True, encrypted)
    at = new_moment(_related(versions, packing.name), options.now)
    version = Version(packing.name, at, content, digest, len(sealed), options.code, 1, public)
    return Sealed(packing, version, sealed, False, encrypted)


def _versions(known: Collector) -> list[Version]:
    return [standing.version for standing in known.standings()]


def _with_needs(sealed: Sequence[Sealed], plan: Spread, known: Collector, options: Options) -> list[Sealed] | None:
    """All classes with their needs decided; None if the changes do not fit into the growth that is allowed."""
    bases = [one if one.held else _with_need(one, plan.need, known, options) for one in sealed if not one.is_changes]
    changes = [one for one in sealed if one.is_changes]
    least: int | None = 1
    if changes and (options.growth is not None or options.need is None):
        used = sum(odds.growth([one.version.size], one.version.need) for one in bases)
        allowed = options.growth if options.growth is not None else odds.DEFAULT_GROWTH
        sizes = [one.version.size for one in changes]
        least = odds.need_for_growth(sizes, allowed - used - _MANIFEST_ROOM)
        if least is None or least > max(one.version.need for one in bases):
            return None
    # Changes are small, so few of their blocks suffice.
    few = [
        _with_need(one, max(least or 1, min(plan.need, -(-one.version.size // _CHANGES_BLOCK))), known, options)
        for one in changes
    ]
    return sorted([*bases, *few], key=lambda one: one.version.name)


def _related(versions: Sequence[Version], name: str) -> list[Version]:
    """The versions of a class and of its changes, which follow each other in time. A list of chunks has the time of
    its class."""
    base = _base_name(name)
    return [version for version in versions if version.name in (base, changes_class(base))]


def _base_name(name: str) -> str:
    """The class that changes or a list of chunks belong to."""
    return name.removesuffix(CHUNKS).removesuffix(SUFFIX)


def _with_need(sealed: Sealed, need: int, known: Collector, options: Options) -> Sealed:
    """The class with its need decided: the version pages carry already, or a new one."""
    versions = _versions(known)
    own = sealed.version
    if sealed.kept:
        kept = kept_version(versions, own.name, own.content, need, options.code, own.key)
        if kept is not None and kept.object == own.object:
            return replace(sealed, version=kept)
    at = new_moment(_related(versions, own.name), options.now)
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


def manifest_text(classes: Sequence[Sealed], pages: int, options: Options, growth: int) -> str:
    """The manifest of these classes as the text of a block, for pages that grow by `growth` without it; empty if it
    would exceed the allowed growth."""
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
    left = manifest.MAX_BYTES
    if options.growth is not None:
        left = min(left, payload_bytes(options.growth - growth - 1))
    block = manifest.make(entries, options.key, left)
    return write(block, options.key) if block is not None else ""
