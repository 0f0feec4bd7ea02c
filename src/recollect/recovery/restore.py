"""From the store of a recovery to a website on disk that works from any folder, offline.

Hides: which resource a link means (aliases, redirects), what has to be rewritten, and atomic replacement. Layout below
the output folder: one folder per host (`lost.example/index.html`), as Warrick and wget have it.

Invariants: nothing is written outside the output folder; files of an earlier run that are no longer part of the site
are taken away, files that are not ours are left; the bytes of what is neither HTML, CSS nor SVG are as archived (with
the content encoding taken off).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recollect.errors import RecollectError
from recollect.model import Progress, ProgressCallback
from recollect.recovery.filenames import file_names, relative_link
from recollect.recovery.rewrite import Rewriter, rewrite_css, rewrite_html, rewrite_svg
from recollect.recovery.store import Recovered, Store

MissingLinks = Literal["neutral", "keep"]
_REWRITERS: dict[str, Callable[[bytes, str, str, Rewriter], bytes]] = {
    "text/html": rewrite_html,
    "application/xhtml+xml": rewrite_html,
    "text/css": rewrite_css,
    "image/svg+xml": rewrite_svg,
}


@dataclass(frozen=True, slots=True)
class Restored:
    """What was written: URI -> file name, and how many links could not be made local."""

    names: dict[str, str]
    links_local: int
    links_original: int


def restore(store: Store, out_dir: Path, *, progress: ProgressCallback = lambda _p: None) -> Restored:
    """Write the browsable tree."""
    resources = list(store.recovered(redirects=False))
    names = file_names((resource.uri, resource.media_type) for resource in resources)
    links = _Links(store, names)
    for done, resource in enumerate(resources):
        progress(Progress("restoring files", done, len(resources), "files"))
        _write(out_dir, names[resource.uri], _content(store, resource, links.rewriter(names[resource.uri])))
    _sweep(store, out_dir, set(names.values()))
    progress(Progress("restoring files", len(resources), len(resources), "files"))
    return Restored(names, links.local, links.original)


class _Links:
    """Answers where a link leads; remembers, because a site repeats its links on every page."""

    def __init__(self, store: Store, names: dict[str, str]) -> None:
        self.store = store
        self.names = names
        self.local = 0
        self.original = 0
        self._known: dict[str, str | None] = {}

    def rewriter(self, source: str) -> Rewriter:
        def rewrite(uri: str) -> str | None:
            target = self._target(uri)
            if target is None:
                self.original += 1
                return None
            self.local += 1
            return relative_link(source, target)

        return rewrite

    def _target(self, uri: str) -> str | None:
        if uri not in self._known:
            found = self.store.resolve(uri)
            self._known[uri] = self.names.get(found.uri) if found is not None else None
        return self._known[uri]


def _content(store: Store, resource: Recovered, rewriter: Rewriter) -> bytes:
    body = store.content(resource)
    rewrite = _REWRITERS.get(resource.media_type.partition(";")[0].strip().lower())
    if rewrite is None:
        return body
    content_type = resource.media_type.partition(";")[0]
    if resource.charset:
        content_type += f"; charset={resource.charset}"
    return rewrite(body, resource.uri, content_type, rewriter)


def _write(out_dir: Path, name: str, body: bytes) -> None:
    path = out_dir / name
    # Names are safe by construction; a link somebody put into the tree must not lead us out of it either.
    _make_folders(out_dir, path.parent)
    temporary = path.with_name(f".{os.getpid()}.tmp")
    try:
        temporary.write_bytes(body)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_folders(out_dir: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.resolve().is_relative_to(out_dir.resolve()):
        raise RecollectError("a folder of the site leads out of it", where=str(folder), why="it is a symbolic link")


def _sweep(store: Store, out_dir: Path, current: set[str]) -> None:
    """Take away what an earlier run wrote and this one did not."""
    for name in sorted(set(store.meta("files", [])) - current, reverse=True):
        (out_dir / name).unlink(missing_ok=True)
        for folder in (out_dir / name).parents:
            if folder == out_dir:
                break
            with contextlib.suppress(OSError):  # not empty: it still holds something
                folder.rmdir()
    if store.writable:
        store.set_meta("files", sorted(current))
