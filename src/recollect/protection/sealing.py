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
from recollect.protection.block import Block, Version, write
from recollect.protection.changes import SUFFIX, changed_names, changes_class, is_changes_class, make_whole
from recollect.protection.changes import make as make_changes
from recollect.protection.code import MARGIN, Code, encode
from recollect.protection.collect import Collector
from recollect.protection.keys import SigningKey
from recollect.protection.markup import Style
from recollect.protection.pack import Compression, Limits, Packing, archive, compress, expanded
from recollect.protection.place import content_id, give_numbers, kept_version, new_moment, period_of

_CHANGES_BLOCK = 8192  # bytes of changes that one page carries: most changes come back from any single page


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


def spread(sizes: Sequence[int], own: int, need: int | float | None, growth: int | None) -> Spread:
    """How many blocks are needed, and how many vault pages.

    Without `need`, as few as the growth allows, because fewer are safer; without `growth` either, as many as bring
    everything back with a certainty of 95% when half of the pages are captured.
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
    wanted = 1 if not own else odds.need_for_share(own, share) if need is not None else odds.need_for_risk(own)
    if wanted < least or not own:  # too few pages
        if growth is None:  # a small share of pages without a limit must not make a vault of thousands
            share = max(share, odds.DEFAULT_SHARE)
        return Spread(least, own, max(0, max(ceil(least / share), least + MARGIN) - own))
    return Spread(least if need is None and growth is not None else wanted, own, 0)


def base_sizes(sealed: Sequence[Sealed]) -> list[int]:
    """The sizes that decide how many blocks are needed: those of the classes, without their changes."""
    return [one.version.size for one in sealed if not one.is_changes]


def seal_class(packing: Packing, known: Collector, options: Options) -> list[Sealed]:
    """Pack a class, or find it again in the blocks that are there; or its version as it is, and its changes.
    The needs are not chosen yet."""
    data = archive(packing)
    base = _living_version(packing.name, known, options)
    if base is None:
        return [_sealed(packing, data, known, options)]
    sealed = known.object_of(base)
    assert sealed is not None
    if lock_kinds(sealed) != options.lock.kinds:  # encryption was turned on or off, or is for others
        return [_sealed(packing, data, known, options)]
    held = Sealed(packing, base, sealed, True, not options.lock.is_open, held=True)
    old = _opened(sealed, options)
    if old is None and options.lock.recipients:
        return _beside_closed(held, data, known, options)
    if old is None:
        return [_sealed(packing, data, known, options)]
    if content_id(options.key, old, _how(options)) != base.content:  # other compression or passphrase
        return [_sealed(packing, data, known, options)]
    if old == data and not _has_changes(packing.name, known):
        return [replace(held, held=False)]
    changes = make_changes(old, base.object, data)
    names = changed_names(changes)
    changed = tuple(member for member in packing.members if member.name in names)
    return [held, _sealed(Packing(changes_class(packing.name), changed), changes, known, options)]


def _beside_closed(held: Sealed, data: bytes, known: Collector, options: Options) -> list[Sealed]:
    """A version that is encrypted for others, and beside it all files if they changed: nothing can be compared here."""
    packing, base = held.packing, held.version
    if content_id(options.key, data, _how(options)) == base.content and not _has_changes(packing.name, known):
        return [replace(held, held=False)]
    changes = Packing(changes_class(packing.name), packing.members)
    return [held, _sealed(changes, make_whole(base.object, data), known, options)]


def _living_version(name: str, known: Collector, options: Options) -> Version | None:
    """The newest version of a class, if it is younger than `every` and can be restored from the pages."""
    if not options.every:
        return None
    mine = (name, options.key.public)
    own = [one.version for one in known.standings() if (one.version.name, one.version.key) == mine]
    if not own or (options.now - parse_timestamp(own[0].at)).total_seconds() >= options.every:
        return None
    return own[0] if known.object_of(own[0]) is not None else None


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
    content = content_id(options.key, data, _how(options))
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
    at = new_moment(_related(versions, packing.name), options.now)
    version = Version(packing.name, at, content, digest, len(sealed), options.code, 1, public)
    return Sealed(packing, version, sealed, False, encrypted)


def with_needs(sealed: Sequence[Sealed], plan: Spread, known: Collector, options: Options) -> list[Sealed]:
    """All classes with their needs decided. Changes are small, so few of their blocks suffice."""
    chosen = []
    for one in sealed:
        if one.held:
            chosen.append(one)
            continue
        need = min(plan.need, -(-one.version.size // _CHANGES_BLOCK)) if one.is_changes else plan.need
        chosen.append(_with_need(one, max(1, need), known, options))
    return chosen


def _related(versions: Sequence[Version], name: str) -> list[Version]:
    """The versions of a class and of its changes, which follow each other in time."""
    base = name.removesuffix(SUFFIX)
    return [version for version in versions if version.name in (base, changes_class(base))]


def _with_need(sealed: Sealed, need: int, known: Collector, options: Options) -> Sealed:
    """The class with its need decided: the version pages carry already, or a new one."""
    versions = [standing.version for standing in known.standings()]
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
