"""The page that embeds a resource, as evidence of which archives hold the resource.

Hides: how much the page says. An archive that captured a page mostly captured what the page embeds, so holding the page
multiplies the odds of holding the resource by `HELD`, and not holding it by `NOT_HELD`. It is a prior and not a
filter: it orders archives, and skips one only by way of a wanted recall or `top_k`. Where a map lists pages only and so
does not answer for their parts, its answer for the page decides for them (Alam et al. 2019, section 6): an archive
without the page is asked only if the others hold nothing. docs/routing.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping

from recollect.model import Answer
from recollect.routing.choice import MAX_STALE_LOSS, USUAL_PROBABILITY, Evidence, Reason, Source, chance_since

HELD = 8.0
NOT_HELD = 0.25


def is_stale(said: Evidence) -> bool:
    """Whether a "no" is so old that it is not certain."""
    return chance_since(said.new_share, USUAL_PROBABILITY) > MAX_STALE_LOSS


def page_holders(evidence: Mapping[str, Evidence]) -> dict[str, bool]:
    """By archive whether it holds a page, where its map is certain."""
    return {
        archive: said.exact
        for archive, said in evidence.items()
        if said.exact or (said.answer == Answer.NO and said.reason is Reason.HOLDS_NONE and not is_stale(said))
    }


def with_page(evidence: Mapping[str, Evidence], holders: Mapping[str, bool]) -> dict[str, Evidence]:
    """The evidence about a resource, with what holding its page adds; a `no` and an exact key stay as they are."""
    changed = dict(evidence)
    for archive, held in holders.items():
        said = changed.get(archive) or Evidence(Answer.UNKNOWN, Source.NOTHING)
        if said.of_pages and not held and said.answer == Answer.UNKNOWN:
            absent = Evidence(Answer.NO, Source.REFERER, reason=Reason.PAGE_NOT_HELD, note=said.note)
            changed[archive] = absent
            continue
        factor = said.factor * (HELD if held else NOT_HELD)
        changed[archive] = said._replace(factor=factor, sources=(*said.sources, Source.REFERER))
    return changed
