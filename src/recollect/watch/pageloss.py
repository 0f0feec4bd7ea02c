"""Pages that a live site has lost: which they are, and where else their content is.

Hides: when a page counts as lost, and how its new address is found. Pure. A page is lost when it was live and is gone
on two visits at least a day apart (404, 410, the page for addresses that cannot exist, a redirect to the front page).
Of the pages that vanish, two thirds vanish from sites that live on (Pew Research Center 2024).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from recollect.watch.check import group_of
from recollect.watch.records import Resource
from recollect.watch.states import RULES, Live, Rules

_SHORTEST_NAME = 5
_SEEN_WITH_QUERY = 2
"""Visits on which an address with a query was live before its end is a loss."""
_COMMON = frozenset(("index", "default", "home", "about", "contact", "search", "login", "archive"))


def lost_pages(resources: Iterable[Resource], rules: Rules = RULES) -> tuple[Resource, ...]:
    """Pages and documents that are lost for certain, by address."""
    found = (one for one in resources if group_of(one.media_type) in ("pages", "documents"))
    return tuple(sorted((one for one in found if _is_lost(one, rules)), key=lambda one: one.uri))


def _is_lost(resource: Resource, rules: Rules) -> bool:
    since, at = resource.gone_since, resource.live_at
    if resource.live is not Live.GONE or since is None or at is None:
        return False
    if "?" in resource.uri and resource.facts.seen < _SEEN_WITH_QUERY:
        return False  # a session, a day of a calendar: such addresses come and go
    return resource.told_at is not None or at - since >= rules.page_apart


class Target(StrEnum):
    """Where the link to a lost page can lead."""

    MOVED = "moved"
    """Another address of the live site, with the same content or the same unusual name."""
    COPY = "copy"
    """The copy of an archive."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A rule that would mend links to a lost page."""

    uri: str
    target: str
    kind: Target


def redirects_of(lost: Sequence[Resource], resources: Iterable[Resource]) -> tuple[Redirect, ...]:
    """Where links to lost pages can lead; pages without another address and without a copy are left out."""
    live = [one for one in resources if one.live is Live.LIVE]
    by_digest: dict[str, list[Resource]] = {}
    by_name: dict[str, list[Resource]] = {}
    for one in live:
        by_digest.setdefault(one.digest, []).append(one)
        by_name.setdefault(_name(one.uri), []).append(one)
    found = []
    for page in lost:
        same = by_digest.get(page.digest, []) if page.digest else []
        named = by_name.get(_name(page.uri), []) if _name(page.uri) else []
        named = [one for one in named if group_of(one.media_type) == group_of(page.media_type)]
        if len(same) == 1 or (not same and len(named) == 1):
            found.append(Redirect(page.uri, (same or named)[0].uri, Target.MOVED))
        elif page.copy:
            found.append(Redirect(page.uri, page.copy, Target.COPY))
    return tuple(found)


def _name(uri: str) -> str:
    """The last part of an address without its ending, if it is long enough to be a page's own."""
    split = urlsplit(uri)
    name = split.path.rstrip("/").rpartition("/")[2].rpartition(".")
    word = (name[0] or name[2]).lower()
    return word if len(word) >= _SHORTEST_NAME and word not in _COMMON and not split.query else ""
