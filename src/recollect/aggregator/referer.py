"""The page that embeds a resource, as evidence of which archives hold the resource.

Hides: how much the page says. An archive that captured a page mostly captured what the page embeds, so holding the page
multiplies the odds of holding the resource by `HELD`, and not holding it by `NOT_HELD`. It is a prior and never a
filter: it orders archives, and skips one only by way of a wanted recall or `top_k`. docs/routing.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping

from recollect.model import Answer
from recollect.routing.choice import Evidence, Reason, Source

HELD = 8.0
NOT_HELD = 0.25


def page_holders(evidence: Mapping[str, Evidence]) -> dict[str, bool]:
    """By archive whether it holds a page, where its map is certain."""
    return {
        archive: said.exact
        for archive, said in evidence.items()
        if said.exact or (said.answer == Answer.NO and said.reason is Reason.HOLDS_NONE)
    }


def with_page(evidence: Mapping[str, Evidence], holders: Mapping[str, bool]) -> dict[str, Evidence]:
    """The evidence about a resource, with what holding its page adds; a `no` and an exact key stay as they are."""
    changed = dict(evidence)
    for archive, held in holders.items():
        said = changed.get(archive) or Evidence(Answer.UNKNOWN, Source.NOTHING)
        factor = said.factor * (HELD if held else NOT_HELD)
        changed[archive] = said._replace(factor=factor, sources=(*said.sources, Source.REFERER))
    return changed
