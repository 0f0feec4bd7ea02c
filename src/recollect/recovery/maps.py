"""What published maps say about a whole lost site, so that archives that hold nothing of it are not asked at all.

Hides: how a site, not one URI, is looked up in a map. Which map belongs to which archive, and whether it can be used,
is decided by the aggregator (`aggregator.maps`). Law: only a certain "no" keeps an archive from being asked; a filter,
a map of voids, a map by other keys or one that cannot be read in full says nothing about a site.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recollect.errors import RecollectError
from recollect.formats.containers import open_input
from recollect.recovery.scope import Scope
from recollect.routing.maps import ArchiveMap, Maps
from recollect.uris import key_of_uri

_CHUNK = 1 << 20


def may_hold_site(maps: Maps, archive: str, scope: Scope) -> bool:
    """Could the archive hold anything of this site? False only when one of its maps certainly has no key of it."""
    return all(_may_hold_site(maps, one, scope) for one in maps.of(archive))


def _may_hold_site(maps: Maps, one: ArchiveMap, scope: Scope) -> bool:
    if one.source != "map" or one.text is None or not Path(one.path).is_file():
        return True
    if any(maps.may_hold(one.archive, uri) for uri in scope.start):
        return True
    return _has_key_below(Path(one.path), [_site_key(uri, scope) for uri in scope.start])


def _site_key(uri: str, scope: Scope) -> bytes:
    """The beginning of every key of the site's host (with `subdomains`, of its subdomains too)."""
    host = key_of_uri(uri).partition(b")")[0]
    return host if scope.extent == "subdomains" else host + b")"


def _has_key_below(path: Path, prefixes: Iterable[bytes]) -> bool:
    # A hashed set lists nothing: what it may hold of a site is unknown.
    wanted = [*(b"\n" + prefix for prefix in prefixes), b'"set"']
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
