"""What a webmaster can do so that more of a site comes back, from the gaps of this very site.

Hides: which gap has which remedy. Pure over what a watch observed. McCown (2007, section VII.5.4) names what helps
most: pages that crawlers reach in few links, stable addresses without many parameters, and links from elsewhere. Each
advice rests on pages of the site that no archive holds and that have the property in question; an advice without such
pages is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from recollect.quantities import counted
from recollect.watch.check import group_of
from recollect.watch.measures import Keeping
from recollect.watch.records import Resource, Site
from recollect.watch.states import ResourceState

FAR = 3
"""Links from the front page from which on a page counts as far."""
DEEP = 4
MANY_PARAMETERS = 2
_MOST_EXAMPLES = 10


class Gap(StrEnum):
    """Why pages may be missing in archives."""

    NOARCHIVE = "noarchive"
    ROBOTS = "robots"
    CACHE = "cache-control"
    UNLINKED = "unlinked"
    FAR = "far"
    DEEP = "deep"
    PARAMETERS = "parameters"
    SUBMIT = "submit"
    SLOW = "slow"


_WORDS = {
    Gap.NOARCHIVE: "{count} {say} “noarchive”: archives that honour it keep no copy. Remove it from {these}.",
    Gap.ROBOTS: "robots.txt disallows {count}: archives that honour it do not capture {these}. Allow what is public.",
    Gap.CACHE: "{count} {be} sent with Cache-Control “no-store” or “private”: some crawlers do not keep {these}. "
    "Send it only with pages of one visitor.",
    Gap.UNLINKED: "{count} {be} in the sitemap, but no page that the watch saw links to {them}. Link to {them}: "
    "crawlers of archives follow links.",
    Gap.FAR: "{count} {be} {far} or more links away from the front page. Link to {them} from an overview: each link on "
    "the way lowers the chance of a capture.",
    Gap.DEEP: "{count} {have} {deep} or more folders. Keep addresses short when you make new ones, and do not change "
    "old ones.",
    Gap.PARAMETERS: "{count} {have} {parameters} or more parameters. Give public pages addresses without.",
    Gap.SUBMIT: "{count} {be} held by no archive. Submit {them} (https://web.archive.org/save, https://archive.ph/), "
    "or let the watch do it: recollect watch run --save https://web.archive.org/save --save-key-file FILE.",
    Gap.SLOW: "New pages come into an archive late: {count} appeared while the watch ran and {be} in none yet. Put "
    "{them} into the sitemap with lastmod, and link to {them} from the front page.",
}
_ONE = {"be": "is", "have": "has", "say": "says", "them": "it", "these": "it"}
_MANY = {"be": "are", "have": "have", "say": "say", "them": "them", "these": "these"}


@dataclass(frozen=True, slots=True)
class MissingPage:
    """A resource that no archive holds, with all that matters for its capture."""

    uri: str
    linked_from: str
    """The page, or the sitemap, that led the watch to it; empty if that is not known."""
    hops: int | None
    """Links from the front page; None if no link leads there, or that is not known."""
    folders: int
    parameters: int
    noarchive: bool
    cache_control: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def missing_pages(resources: Sequence[Resource]) -> tuple[MissingPage, ...]:
    """Live resources that no archive holds, the most important first."""
    gaps = sorted((one for one in resources if one.state is ResourceState.VULNERABLE), key=_importance)
    return tuple(
        MissingPage(
            *(one.uri, one.facts.source, one.facts.hops, _folders(one.uri), _parameters(one.uri)),
            *(one.facts.noarchive, one.facts.cache),
        )
        for one in gaps
    )


MISSING_HEADERS = (
    "address",
    "linked from",
    "links from the front page",
    "folders",
    "parameters",
    "keeps archives away",
)


def missing_row(one: MissingPage) -> tuple[str, ...]:
    """A missing resource as cells of a table with `MISSING_HEADERS`."""
    away = " ".join(filter(None, ("noarchive" if one.noarchive else "", one.cache_control)))
    hops = "none" if one.hops is None else f"{one.hops:,}"
    return one.uri, one.linked_from or "unknown", hops, f"{one.folders:,}", f"{one.parameters:,}", away


def _folders(uri: str) -> int:
    return urlsplit(uri).path.strip("/").count("/")


def _parameters(uri: str) -> int:
    query = urlsplit(uri).query
    return len(query.split("&")) if query else 0


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do, and the pages that it is for."""

    gap: Gap
    text: str
    pages: tuple[str, ...]
    count: int

    def to_json(self) -> dict[str, Any]:
        return {"gap": self.gap.value, "advice": self.text, "count": self.count, "pages": list(self.pages)}


def advise(site: Site, resources: Sequence[Resource], keeping: Sequence[Keeping] = ()) -> tuple[Advice, ...]:
    """What to do for a site, the most pages first; empty if archives hold all that is known."""
    gaps = [one for one in resources if one.state is ResourceState.VULNERABLE]
    tests: dict[Gap, Callable[[Resource], bool]] = {
        Gap.NOARCHIVE: lambda one: one.facts.noarchive,
        Gap.CACHE: lambda one: bool(one.facts.cache),
        Gap.UNLINKED: lambda one: one.facts.hops is None and bool(one.facts.source),
        Gap.FAR: lambda one: one.facts.hops is not None and one.facts.hops >= FAR,
        Gap.DEEP: lambda one: _folders(one.uri) >= DEEP,
        Gap.PARAMETERS: lambda one: _parameters(one.uri) >= MANY_PARAMETERS,
    }
    found = [_advice(gap, [one.uri for one in gaps if test(one)]) for gap, test in tests.items()]
    found.append(_advice(Gap.ROBOTS, list(site.notes.disallowed)))
    late = max((one.never for one in keeping), default=0)
    if late and keeping and all(one.never for one in keeping):
        found.append(_advice(Gap.SLOW, [], min(one.never for one in keeping)))
    found.sort(key=lambda one: -one.count if one is not None else 0)
    found.append(_advice(Gap.SUBMIT, [one.uri for one in missing_pages(resources)]))
    return tuple(one for one in found if one is not None)


def _importance(resource: Resource) -> tuple[bool, int, str]:
    """Pages before what they embed, near ones first."""
    return group_of(resource.media_type) != "pages", resource.facts.hops or 0, resource.uri


def _advice(gap: Gap, pages: Sequence[str], count: int = 0) -> Advice | None:
    number = count or len(pages)
    if not number:
        return None
    forms = _ONE if number == 1 else _MANY
    words = counted(number, "address", "addresses")
    text = _WORDS[gap].format(count=words, far=FAR, deep=DEEP, parameters=MANY_PARAMETERS, **forms)
    return Advice(gap, text, tuple(pages[:_MOST_EXAMPLES]), number)
