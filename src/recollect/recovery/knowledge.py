"""What the crawl knows of a whole site, handed to whoever gets a single resource: one frozen value.

Hides nothing. A new value is made when something new is learned (a listing, the end of the site); a resource under way
keeps the one it was begun with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.recovery.lister import SiteQuery
from recollect.recovery.ownership import Ownership
from recollect.recovery.similar import Precedent


@dataclass(frozen=True, slots=True)
class SiteKnowledge:
    """What listings, start pages and reviews say about the site."""

    complete: tuple[tuple[str, SiteQuery], ...] = ()  # (archive, listing that is complete)
    empty: frozenset[str] = frozenset()  # archives that give no list and hold no front page
    repeats: Mapping[str, int] = field(default_factory=dict)  # digest -> resources that share these bytes
    front: frozenset[str] = frozenset()  # keys of the start pages
    listed: frozenset[str] = frozenset()  # keys with content in some listing
    addresses: frozenset[str] = frozenset()  # paths that the owner's site had, by the listings
    ownership: Ownership = field(default_factory=Ownership)  # whose site it was, and when
    reviewed: Mapping[str, str] = field(default_factory=dict)  # digest -> accepted or rejected by a person
    precedents: tuple[Precedent, ...] = ()  # pages that a person decided about: the decision holds for pages like them

    def covers(self, archive: str, key: str) -> bool:
        """Is the archive's listing complete for this key, so that what is not listed is not held?"""
        return any(name == archive and query.covers(key) for name, query in self.complete)
