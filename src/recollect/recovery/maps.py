"""What published maps say about a lost site, so that archives that hold nothing of it are not asked at all.

Hides: where maps are (beside the list of archives, or a folder with one per archive, named by its id) and how a whole
site, not one URI, is looked up in one. Law: only a certain "no" keeps an archive from being asked; a filter, a map of
voids or a map that cannot be read in full says nothing about a site.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.archives.registry import Archive
from recollect.errors import BadURI, RecollectError
from recollect.formats.containers import open_input
from recollect.recovery.scope import Scope
from recollect.uris import key_of_uri

if TYPE_CHECKING:
    # Searching maps loads Numba, which takes most of a second: only when there are maps.
    from recollect.profiles.maps.lookup import Holdings

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Maps:
    """The maps of some archives, open."""

    maps: dict[str, Holdings] = field(default_factory=dict)

    def may_hold(self, archive: Archive, uri: str) -> bool:
        """Could the archive hold this URI? False only when its map says no."""
        known = self.maps.get(archive.id)
        if known is None:
            return True
        try:
            return known.lookup(uri).answer != "no"
        except BadURI:
            return True

    def may_hold_site(self, archive: Archive, scope: Scope) -> bool:
        """Could the archive hold anything of this site? False only when its map certainly has no key of it."""
        known = self.maps.get(archive.id)
        if known is None or not _lists_keys(known) or known.header.lists_voids or not Path(known.path).is_file():
            return True
        if any(self.may_hold(archive, uri) for uri in scope.start):
            return True
        return _has_key_below(Path(known.path), [_site_key(uri, scope) for uri in scope.start])

    def close(self) -> None:
        for one in self.maps.values():
            one.close()


def _lists_keys(known: Holdings) -> bool:
    from recollect.profiles.maps.lookup import MementoMap

    return isinstance(known, MementoMap)


def open_maps(archives: Sequence[Archive], folder: Path | None) -> Maps:
    """The maps that are there: of the folder by id, else where the list of archives says."""
    found: dict[str, Holdings] = {}
    for archive in archives:
        path = _map_file(archive, folder)
        if path is not None:
            from recollect.profiles.maps.lookup import open_map

            found[archive.id] = open_map(path)
    return Maps(found)


def _map_file(archive: Archive, folder: Path | None) -> Path | None:
    if folder is not None:
        for path in sorted(folder.iterdir()):
            if path.name == archive.id or path.name.startswith(f"{archive.id}.ukvs") or path.stem == archive.id:
                return path
    if not archive.map or "://" in archive.map or not Path(archive.map).exists():
        return None
    return Path(archive.map)


def _site_key(uri: str, scope: Scope) -> bytes:
    """The beginning of every key of the site's host (with `subdomains`, of its subdomains too)."""
    host = key_of_uri(uri).partition(b")")[0]
    return host if scope.extent == "subdomains" else host + b")"


def _has_key_below(path: Path, prefixes: Iterable[bytes]) -> bool:
    wanted = [b"\n" + prefix for prefix in prefixes]
    longest = max(len(text) for text in wanted)
    tail = b"\n"
    try:
        with open_input(path) as stream:
            while chunk := stream.read(_CHUNK):
                text = tail + chunk
                if any(prefix in text for prefix in wanted):
                    return True
                tail = text[-longest:]
    except (RecollectError, OSError):
        return True
    return False
