"""What a webmaster can do so that more of a site comes back, from the gaps of this very site.

Hides: which gap has which remedy. Pure over what a watch observed. McCown (2007, section VII.5.4) names what helps
most: pages that crawlers reach in few links, stable addresses without many parameters, and links from elsewhere. Each
advice rests on pages of the site that no archive holds and that have the property in question; an advice without such
pages is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

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
    Gap.NOARCHIVE: "{count} say “noarchive”: archives that honour it keep no copy. Remove it from these pages.",
    Gap.ROBOTS: "robots.txt disallows {count}: archives that honour it do not capture these. Allow what is public.",
    Gap.CACHE: "{count} are sent with Cache-Control “no-store” or “private”: some crawlers do not keep these. "
    "Send it only with pages of one visitor.",
    Gap.UNLINKED: "{count} are in the sitemap, but no page that the watch saw links to them. Link to them: crawlers of "
    "archives follow links.",
    Gap.FAR: "{count} are {far} or more links away from the front page. Link to them from an overview: each link on "
    "the way lowers the chance of a capture.",
    Gap.DEEP: "{count} have addresses with {deep} or more folders. Keep addresses short when you make new ones, and do "
    "not change old ones.",
    Gap.PARAMETERS: "{count} have addresses with {parameters} or more parameters. Give public pages addresses without.",
    Gap.SUBMIT: "{count} are held by no archive. Submit them (https://web.archive.org/save, https://archive.ph/), or "
    "let the watch do it: recollect watch run --save https://web.archive.org/save --save-key-file FILE.",
    Gap.SLOW: "New pages come into an archive late: {count} appeared while the watch ran and are in none yet. Put them "
    "into the sitemap with lastmod, and link to them from the front page.",
}


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
        Gap.DEEP: lambda one: urlsplit(one.uri).path.strip("/").count("/") >= DEEP,
        Gap.PARAMETERS: lambda one: len(urlsplit(one.uri).query.split("&")) >= MANY_PARAMETERS,
    }
    found = [_advice(gap, [one.uri for one in gaps if test(one)]) for gap, test in tests.items()]
    found.append(_advice(Gap.ROBOTS, list(site.notes.disallowed)))
    late = max((one.never for one in keeping), default=0)
    if late and keeping and all(one.never for one in keeping):
        found.append(_advice(Gap.SLOW, [], min(one.never for one in keeping)))
    found.sort(key=lambda one: -one.count if one is not None else 0)
    found.append(_advice(Gap.SUBMIT, [one.uri for one in sorted(gaps, key=_importance)]))
    return tuple(one for one in found if one is not None)


def _importance(resource: Resource) -> tuple[bool, int, str]:
    """Pages before what they embed, near ones first."""
    return group_of(resource.media_type) != "pages", resource.facts.hops or 0, resource.uri


def _advice(gap: Gap, pages: Sequence[str], count: int = 0) -> Advice | None:
    number = count or len(pages)
    if not number:
        return None
    words = f"{number:,} address" if number == 1 else f"{number:,} addresses"
    text = _WORDS[gap].format(count=words, far=FAR, deep=DEEP, parameters=MANY_PARAMETERS)
    if number == 1:
        text = text.replace("1 address are", "1 address is").replace("1 address say", "1 address says")
        text = text.replace("1 address have", "1 address has").replace("to them", "to it")
    return Advice(gap, text, tuple(pages[:_MOST_EXAMPLES]), number)
