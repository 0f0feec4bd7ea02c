"""A received capture against everything known of its site: is it the resource?

Hides: which judgement needs what. Pure over its arguments; `judge` knows pages, this module knows the site they belong
to: links into it, its front page, its scope, what a person decided.
"""

from __future__ import annotations

from recollect.errors import BadURI
from recollect.recovery.canonical import visit_key
from recollect.recovery.fingerprint import foreign_probability, page_of
from recollect.recovery.judge import DOUBTFUL_FROM, REJECTED_FROM, Rejection, judge, judge_redirect
from recollect.recovery.knowledge import SiteKnowledge
from recollect.recovery.links import Document
from recollect.recovery.options import Options
from recollect.recovery.ownership import Standing
from recollect.recovery.records import Recovered
from recollect.recovery.similar import precedent_for, sketch_of
from recollect.recovery.verdicts import Verdict

_SMALL_SITE = 5  # listed resources; a smaller site may well have a front page without links


def examine_content(
    resource: Recovered,
    document: Document | None,
    content: bytes,
    site: SiteKnowledge,
    options: Options,
    *,
    index_digest: str = "",
    judge_front: bool = True,
) -> Rejection | None:
    """None for a good capture. `judge_front` is False when no capture of the front page leads anywhere."""
    decision = site.reviewed.get(resource.digest)
    if decision == "rejected":
        return Rejection(Verdict.DROPPED, "dropped in a review")
    if decision == "accepted" or options.keep_suspects:
        return None
    repeats = site.repeats.get(index_digest, 1) - 1
    rejection = judge(document, resource.uri, resource.media_type, repeats=repeats, content=content)
    if rejection is None and document is not None:
        rejection = _of_the_site(resource, document, site, options, judge_front)
    if rejection is None or document is None:
        return rejection
    precedent = precedent_for(sketch_of(document, resource.uri), rejection.verdict, site.precedents)
    if precedent is None:
        return rejection
    return None if precedent.accepted else Rejection(Verdict.DROPPED, "like a page that was dropped in a review")


def _of_the_site(
    resource: Recovered, document: Document, site: SiteKnowledge, options: Options, judge_front: bool
) -> Rejection | None:
    """What the site says of a page in which the judge of pages sees no fault."""
    if document.refresh and len(document.text) <= 200 and not options.scope.holds(document.refresh):
        # A page that only refreshes to another address is a redirect.
        return Rejection(Verdict.REDIRECTED_AWAY, f"it sends on to {document.refresh[:200]}")
    if judge_front and resource.key in site.front and not _leads_into(document, resource.key, site, options):
        return Rejection(Verdict.LEADS_NOWHERE, "it leads to no page of the site")
    return _foreign(resource, document, site)


def _foreign(resource: Recovered, document: Document, site: SiteKnowledge) -> Rejection | None:
    """A page of a time in which the owner is not known, against the fingerprint of the owner's site."""
    ownership = site.ownership
    if document.form != "html" or ownership.standing(resource.captured_at) is not Standing.OPEN:
        return None
    signals = ownership.fingerprint.compare(page_of(document, resource.uri), site.addresses)
    prior = ownership.prior_evidence(resource.captured_at)
    probability = foreign_probability(signals.own_evidence + prior)
    if signals.own_evidence >= 0 or probability < DOUBTFUL_FROM:
        return None
    reason = "its links, title, text and structure are not those of the site"
    certain = ownership.foreign and probability >= REJECTED_FROM
    return Rejection(Verdict.FOREIGN, reason, certain, min(probability, 0.999))


def _leads_into(document: Document, own: str, site: SiteKnowledge, options: Options) -> bool:
    """Does a front page link to any page of the site? One that does not is hardly the site's, in any language."""
    if len(site.listed) < _SMALL_SITE:
        return True
    for link in document.links:
        try:
            key = visit_key(link.uri, options.rules)
        except BadURI:
            continue
        if key != own and key in site.listed:
            return True
    return False


def examine_redirect(resource: Recovered, options: Options, *, has_content: bool) -> Rejection | None:
    """A captured redirect: to where it may lead. `has_content`: the resource has captures with content of its own."""
    assert resource.redirect_to is not None
    try:
        key = visit_key(resource.redirect_to, options.rules)
    except BadURI:
        return Rejection(Verdict.REDIRECTED_AWAY, f"to {resource.redirect_to[:100]!r}")
    if key == resource.key:
        return Rejection(Verdict.OTHER_SPELLING, "it only leads to another spelling of itself")
    if options.keep_suspects:
        return None
    scope = options.scope
    return judge_redirect(
        resource.uri,
        resource.redirect_to,
        target_in_scope=scope.holds(resource.redirect_to, embedded=resource.kind == "asset"),
        target_is_home=scope.is_home(resource.redirect_to) and not scope.is_home(resource.uri),
        has_content=has_content,
    )
