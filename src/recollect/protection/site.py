"""A website as a folder of files: apply, verify, remove.

Hides: which files are pages, and writing them. Invariants: pages are byte-identical outside the inserted run; a file is
replaced atomically and keeps its mode; in a folder of its own (`-o`), nothing that we did not write, or that was
changed since, is overwritten.
"""

from __future__ import annotations

import base64
import fnmatch
import gzip
import os
import posixpath
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import unquote

from recollect.errors import UsageError
from recollect.model import Progress, ProgressCallback
from recollect.protection import vault
from recollect.protection.age import check_lock
from recollect.protection.block import MANIFEST, Refusal, Version, mentions
from recollect.protection.collect import Collector, Standing
from recollect.protection.markup import (
    SCRIPT_CLOSE,
    SCRIPT_OPEN,
    Unfit,
    carry,
    is_page,
    is_xml_page,
    place,
    strip,
    vault_link,
)
from recollect.protection.pack import Packing
from recollect.protection.record import EARLIER, Record, replace_file
from recollect.protection.sealing import (
    Options,
    Sealed,
    Spread,
    base_sizes,
    blocks_for,
    manifest_text,
    seal_all,
    seal_class,
)
from recollect.recovery.rewrite import tags

_HEAD = 4096
_NEAR = 20  # pages that carry the manifest beside the root
_ROOTS = ("index.html", "index.htm", "index.xhtml", "index.shtml", "default.html", "default.htm", "home.html")


def page_names(site: Path, exclude: Sequence[str] = ()) -> list[str]:
    """The site's own pages, in order of name; no links, nothing hidden, no vault pages."""
    return [name for name in _files(site) if _is_own_page(site, name, exclude)]


_ERROR_PAGE = re.compile(
    r"(?:[45]\d\d|[45]xx|50x|error|offline|maintenance|not[-_]?found)(?:\.x?html?|/index\.x?html?)", re.I
)
_NO_ARCHIVE = re.compile(
    rb"<meta\s[^>]{0,300}name\s{0,9}=\s{0,9}[\"']?robots\b[^>]{0,300}content\s{0,9}=\s{0,9}[\"']?"
    rb"[^\"'>]{0,200}\b(?:noarchive|noindex|none)\b",
    re.IGNORECASE,
)


def is_never_captured(name: str, head: bytes) -> bool:
    """Whether archives do not capture a page: a server's error page, or one that asks not to be kept."""
    return _ERROR_PAGE.fullmatch(name) is not None or _NO_ARCHIVE.search(head) is not None


def never_captured(site: Path, exclude: Sequence[str] = ()) -> list[str]:
    """The pages that carry nothing because archives do not capture them."""
    return [
        name
        for name in _files(site)
        if not (site / name).is_symlink()
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)
        and is_page(name, head := _head(site / name))
        and is_never_captured(name, head)
    ]


def _is_own_page(site: Path, name: str, exclude: Sequence[str]) -> bool:
    path = site / name
    if path.is_symlink() or any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude):
        return False
    with path.open("rb") as handle:
        head = handle.read(_HEAD)
    return is_page(name, head) and not vault.is_vault(name, head) and not is_never_captured(name, head)


def _files(folder: Path) -> Iterator[str]:
    """Names of all files below a folder, sorted, without hidden ones."""
    names = []
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and not (Path(base) / name).is_symlink()]
        paths = [Path(base) / name for name in files if not name.startswith(".")]
        names += [path.relative_to(folder).as_posix() for path in paths if path.is_file()]  # no pipes, no dead links
    return iter(sorted(names))


@dataclass(frozen=True, slots=True)
class Applied:
    """What `apply` did."""

    classes: tuple[Sealed, ...]
    spread: Spread
    growth: int  # the largest, in bytes, of a page that carries no manifest
    changed: int
    unfit: tuple[tuple[str, Unfit], ...]
    not_copied: tuple[tuple[str, str], ...] = ()  # (name, why) of what a copy of the site lacks
    never_captured: tuple[str, ...] = ()  # pages that carry nothing because archives do not capture them


def apply(
    site: Path,
    packings: Sequence[Packing],
    options: Options,
    *,
    out: Path | None = None,
    progress: ProgressCallback = lambda _progress: None,
) -> Applied:
    """Put blocks into the pages of a site, in place or in a copy."""
    check_lock(options.lock)
    target = out if out is not None else site
    if out is not None:
        _check_apart(site, out)
    record = Record(target) if out is not None else None
    names, unfit = fit_pages(site, options.exclude)
    known = Collector([options.key.public])
    had = _carried(target, known, progress)
    plan, sealed = seal_all(packings, len(names), known, options, progress)
    vault_names = vault.names(plan.vault)
    carriers = [*names, *vault_names]
    texts = blocks_for(sealed, carriers, had, options, progress)
    growth = max(len(text) for text in texts.values()) + len(SCRIPT_OPEN) + len(SCRIPT_CLOSE)
    root = root_page(names)
    listing = manifest_text(sealed, len(carriers), options, growth)
    for name in _with_manifest(site, names, root, vault_names) if listing else ():
        texts[name] = f"{texts[name]}\n{listing}"
    writer = _Writer(site, target, options, record)
    if record is not None:
        writer.copy_others({*names, *vault_names})
    for done, name in enumerate(names):
        progress(Progress("writing", done, len(names), "pages"))
        extra = vault_link(posixpath.relpath(vault.INDEX, posixpath.dirname(name) or ".")) if vault_names else ""
        writer.page(name, (site / name).read_bytes(), texts[name], extra if name == root else "")
    for number, name in enumerate(vault_names):
        writer.page(name, vault.page(number, len(vault_names)), texts[name], "")
    writer.finish(set(names), set(vault_names))
    return Applied(
        tuple(sealed),
        plan,
        growth,
        writer.changed,
        tuple(unfit),
        tuple(writer.not_copied),
        tuple(never_captured(site, options.exclude)),
    )


def _check_apart(site: Path, out: Path) -> None:
    """Raise UsageError when one folder is in the other: the next run would take copies for pages."""
    here, there = site.resolve(), out.resolve()
    if here == there:
        raise UsageError(
            "the copy is the site itself", where=str(out), hint="leave -o out to change the pages in place"
        )
    if here in there.parents or there in here.parents:
        raise UsageError("one folder is inside the other", where=f"{site} and {out}", hint="give -o a folder beside it")


def fit_pages(site: Path, exclude: Sequence[str]) -> tuple[list[str], list[tuple[str, Unfit]]]:
    """The pages that can carry blocks, and those that cannot; raises UsageError when there are no pages."""
    names, unfit = [], []
    for name in page_names(site, exclude):
        page = strip((site / name).read_bytes())
        where = place(page, is_xml=is_xml_page(name, page))
        if isinstance(where, Unfit):
            unfit.append((name, where))
        else:
            names.append(name)
    if not names and not unfit:
        raise UsageError("no pages", where=str(site), hint="give the folder with the site's HTML files")
    return names, unfit


def _carried(folder: Path, known: Collector, progress: ProgressCallback) -> dict[str, dict[Version, int]]:
    """What each page of a folder carries now."""
    had: dict[str, dict[Version, int]] = {}
    for done, name in enumerate(_files(folder) if folder.is_dir() else ()):
        progress(Progress("reading", done, None, "files"))
        path = folder / name
        if path.is_symlink() or not is_page(name, _head(path)):
            continue
        had[name] = {block.version: block.number for block in known.add(name, path.read_bytes())}
    return had


def carries_blocks(folder: Path) -> bool:
    """Whether a page of a folder carries blocks already."""
    pages = (folder / name for name in _files(folder))
    return any(
        mentions(page.read_bytes()) for page in pages if not page.is_symlink() and is_page(page.name, _head(page))
    )


def _head(path: Path) -> bytes:
    with path.open("rb") as handle:
        return handle.read(_HEAD)


def root_page(names: Sequence[str]) -> str | None:
    """The page a visitor sees first."""
    by_name = {name.lower(): name for name in reversed(names)}
    for root in _ROOTS:
        if root in by_name:
            return by_name[root]
    return min(names, key=lambda name: (name.count("/"), len(name), name), default=None)


def _hrefs(text: str) -> Iterator[str]:
    for tag in tags(text):
        if tag.name == "a":
            yield from (
                text[item.start : item.end] for item in tag.attributes if item.name == "href" and item.start >= 0
            )


def _with_manifest(site: Path, names: Sequence[str], root: str | None, vault_names: Sequence[str]) -> list[str]:
    """The pages that carry the manifest: the root, pages it links to, and the vault's index."""
    chosen = list(vault_names[:1])
    if root is None:
        return chosen
    known = set(names)
    near: list[str] = []
    for href in _hrefs((site / root).read_bytes().decode("utf-8", "replace")):
        target = unquote(href.partition("#")[0].partition("?")[0].strip())
        path = posixpath.normpath(posixpath.join("/", posixpath.dirname(root), target)).lstrip("/")
        for name in (path, posixpath.join(path, "index.html"), f"{path}.html"):
            if name in known and name != root and name not in near:
                near.append(name)
    return [*chosen, root, *near[:_NEAR]]


class _Writer:
    """Writes pages, in place or into a copy of the site."""

    def __init__(self, site: Path, target: Path, options: Options, record: Record | None) -> None:
        self._site, self._target, self._options, self._record = site, target, options, record
        self.changed = 0
        self.not_copied: list[tuple[str, str]] = []

    def page(self, name: str, page: bytes, text: str, extra: str) -> None:
        content = carry(page, text, self._options.style, extra=extra, is_xml=is_xml_page(name, page))
        assert not isinstance(content, Unfit), name
        self._put(name, content, self._site / name)

    def copy_others(self, pages: set[str]) -> None:
        """Copy what carries nothing. A link to a file is copied as that file."""
        for name, path in _all_files(self._site):
            if name in pages or name == EARLIER or vault.is_vault(name, b"" if path.is_dir() else _head_of(path)):
                continue
            if path.is_dir():
                self.not_copied.append((name, "a link to a folder"))
            elif not path.is_file():
                self.not_copied.append((name, "a link to nothing" if path.is_symlink() else "not a regular file"))
            else:
                content = path.read_bytes()
                self._put(name, strip(content) if is_page(name, content[:_HEAD]) else content, path)

    def _put(self, name: str, content: bytes, like: Path) -> None:
        path = self._target / name
        if self._record is not None:
            self._record.note(name, content)
        if path.is_file() and path.read_bytes() == content:
            return
        replace_file(path, content, like)
        self.changed += 1

    def finish(self, pages: set[str], vault_names: set[str]) -> None:
        """Remove what earlier runs left: vault pages, and blocks of pages that carry nothing any more."""
        if self._record is not None:
            self.changed += self._record.write()
            return
        self.changed += _strip_pages(self._target, pages) + _drop_vault(self._target, vault_names)


def _all_files(folder: Path) -> list[tuple[str, Path]]:
    """Everything below a folder that is not a folder itself: files, links, pipes."""
    found = []
    for base, folders, files in os.walk(folder):
        paths = [Path(base) / name for name in files]
        paths += [path for name in folders if (path := Path(base) / name).is_symlink()]
        found += [(path.relative_to(folder).as_posix(), path) for path in paths]
    return sorted(found)


def _head_of(path: Path) -> bytes:
    return _head(path) if path.is_file() else b""


def _drop_vault(site: Path, keep: set[str]) -> int:
    folder = site / vault.FOLDER
    gone = 0
    for path in sorted(folder.glob("*.html")) if folder.is_dir() else ():
        name = path.relative_to(site).as_posix()
        if name not in keep and vault.is_vault(name, _head(path)):
            path.unlink()
            gone += 1
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return gone


def remove(site: Path) -> tuple[int, int]:
    """Take all blocks out of a site; (pages changed, vault pages deleted)."""
    return _strip_pages(site, set()), _drop_vault(site, set())


def _strip_pages(site: Path, keep: set[str]) -> int:
    """Take the blocks out of all pages but some; how many had any."""
    changed = 0
    for name in _files(site):
        path = site / name
        head = _head(path)
        if name in keep or path.is_symlink() or not is_page(name, head) or vault.is_vault(name, head):
            continue
        page = path.read_bytes()
        bare = strip(page)
        if bare != page:
            replace_file(path, bare, path)
            changed += 1
    return changed


@dataclass(frozen=True, slots=True)
class Checked:
    """What `verify` found; `restored` are the classes whose newest version comes back, digest and all."""

    pages: int
    carrying: int
    bare: tuple[str, ...]
    outdated: tuple[tuple[str, str], ...]  # (page, class) with a block of an older version
    standings: tuple[Standing, ...]
    restored: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    refusals: dict[Refusal, int]
    keys: tuple[bytes, ...]

    @property
    def is_sound(self) -> bool:
        names = {standing.version.name for standing in self.standings}
        return (
            bool(names)
            and names == set(self.restored)
            and len(self.keys) == 1
            and not self.refusals
            and not self.outdated
        )


def verify(site: Path, trust: Sequence[bytes] = ()) -> Checked:
    """Read every page of a site as an archive would deliver it, and restore every class in memory."""
    return verify_pages(_pages_with_content(site), trust)


def _pages_with_content(site: Path) -> Iterator[tuple[str, bytes]]:
    for name in _files(site):
        path = site / name
        head = _head(path)
        if not path.is_symlink() and is_page(name, head) and not is_never_captured(name, head):
            yield name, path.read_bytes()


def verify_pages(pages: Iterable[tuple[str, bytes]], trust: Sequence[bytes] = ()) -> Checked:
    """Collect the blocks of (name, content) pairs and restore every class in memory."""
    collector = Collector(trust)
    carried: dict[str, list[Version]] = {}
    for name, page in pages:
        blocks = collector.add(name, page)
        carried[name] = [block.version for block in blocks if block.version.name != MANIFEST]
    newest: dict[str, Version] = {}
    for standing in collector.standings():
        newest.setdefault(standing.version.name, standing.version)
    outdated = [(page, v.name) for page, versions in carried.items() for v in versions if v != newest[v.name]]
    restored = [name for name, version in newest.items() if collector.object_of(version) is not None]
    return Checked(
        len(carried),
        collector.carrying,
        tuple(name for name, versions in carried.items() if not versions),
        tuple(outdated),
        tuple(collector.standings()),
        tuple(restored),
        tuple((where, str(refused)) for where, refused in collector.named),
        dict(collector.refusals),
        tuple(collector.keys),
    )


@dataclass(frozen=True, slots=True)
class PageWeights:
    """What a visitor downloads for a page, gzipped: the median of some pages, before and after."""

    before: int
    after: int


def page_weights(site: Path, names: Sequence[str], growth: int) -> PageWeights | None:
    """Weigh up to 25 pages, evenly chosen, with and without blocks that make them grow by `growth` bytes."""
    chosen = [names[len(names) * number // 25] for number in range(25)] if len(names) > 25 else list(names)
    if not chosen:
        return None
    # Blocks are random bytes in base64, which gzip makes smaller by a quarter.
    block = base64.b64encode(random.Random(1).randbytes(growth * 3 // 4))
    pages = [strip((site / name).read_bytes()) for name in chosen]
    before = [len(gzip.compress(page, 6)) for page in pages]
    after = [len(gzip.compress(page + block, 6)) for page in pages]
    return PageWeights(int(median(before)), int(median(after)))


def sizes_now(packings: Sequence[Packing], options: Options, progress: ProgressCallback) -> list[int]:
    """The sealed size of each class, for a plan."""
    sizes = []
    for done, packing in enumerate(packings):
        progress(Progress("packing", done, len(packings), "classes"))
        sizes += base_sizes(seal_class(packing, Collector(), options))
    return sizes
