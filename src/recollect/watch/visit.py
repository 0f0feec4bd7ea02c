"""One visit of a site: from what the live web answered to one `VisitResult`.

Hides: which answers mean what. Pure: answers come in as values. The order matters: the local network first, then pages
of the host, then a move (however the new host answers), then what says nothing (401, 403, 429, anti-bot pages of any
status), then failures, then whose content it is, then its certificate. A permanent redirect to a page of a domain
seller is a takeover, not a move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from recollect.archives.certificates import Certificate
from recollect.archives.live import PERMANENT, Failure, LiveAnswer
from recollect.recovery.fingerprint import (
    EMPTY,
    FEWEST_LINKS,
    TEXT_ALIKE,
    TRUSTED_WORDS,
    Page,
    Signals,
    SiteFingerprint,
    page_of,
    same_site,
)
from recollect.recovery.judge import Rejection, judge
from recollect.recovery.links import Document, read_document
from recollect.recovery.verdicts import Verdict
from recollect.watch.states import VisitResult

# Refusals of the client, not of the page; 405, 406, 418 and 999 are sent by anti-bot systems.
_BLOCKED = frozenset((401, 403, 405, 406, 407, 418, 429, 451, 999))
_UNPAID = 402
"""Sent by hosts for accounts that are not paid for."""
_GONE = frozenset((404, 410))
_WALLS = frozenset({Verdict.ANTI_BOT, Verdict.LOGIN, Verdict.COOKIE_WALL})
_FOREIGN = frozenset({Verdict.PARKED, Verdict.HIJACKED})
_HOST_PAGES = {
    Verdict.SUSPENDED: VisitResult.SUSPENDED,
    Verdict.DOMAIN_EXPIRED: VisitResult.DOMAIN_EXPIRED,
    Verdict.DEFAULT_PAGE: VisitResult.DEFAULT_PAGE,
    Verdict.MAINTENANCE: VisitResult.MAINTENANCE,
}
_FAILURES = {
    Failure.UNREACHABLE: "no connection to the server",
    Failure.TIMEOUT: "the server does not answer in time",
    Failure.TLS: "no encrypted connection to the server",
    Failure.CERTIFICATE: "the certificate is not accepted",
    Failure.BAD_ANSWER: "the server closes the connection or does not answer as a web server",
    Failure.REDIRECTS: "redirects without end",
}
_LONG_WAIT = 300
"""Seconds of Retry-After from which on a 503 is maintenance; proxies whose server is gone send a few seconds."""


class Confirmation(StrEnum):
    """What makes a suspicion of a takeover certain."""

    REGISTRATION = "registration"
    NAME_SERVERS = "name-servers"
    JUDGE = "judge"
    OLD_ADDRESSES_GONE = "old-addresses-gone"


@dataclass(frozen=True, slots=True)
class Visit:
    """What one visit showed, and why."""

    seen: VisitResult
    why: str = ""
    page: Page | None = None
    signals: Signals | None = None
    confirmations: tuple[Confirmation, ...] = ()
    moved_to: str = ""


def judge_visit(
    front: LiveAnswer,
    fingerprint: SiteFingerprint,
    *,
    impossible: LiveAnswer | None = None,
    old: Sequence[LiveAnswer] = (),
    changes: Sequence[Confirmation] = (),
    offline: bool = False,
) -> Visit:
    """What a visit showed. `impossible` is the answer for an address that cannot exist, `old` those for addresses the
    site is known to have had, `changes` what registries and name servers say."""
    if offline:
        return Visit(VisitResult.OFFLINE, "canaries or other sites fail as well")
    moved = _moved(front)
    document = read_document(front.body, front.url, front.media_type) if front.failure is None else None
    rejected = judge(document, front.url, front.media_type, content=front.body) if document is not None else None
    hosted = _host_page(front, document, rejected, fingerprint)
    if hosted is not None:
        return hosted
    if moved and (rejected is None or rejected.verdict not in _FOREIGN):
        return Visit(VisitResult.MOVED, f"redirected to {moved}", moved_to=moved)
    if front.failure is not None:
        return _failure(front)
    if front.status in _BLOCKED:
        return Visit(VisitResult.BLOCKED, f"status {front.status}")
    if rejected is not None and _is_wall(front.status, rejected.verdict):
        return Visit(VisitResult.BLOCKED, rejected.detail)
    if front.status >= 400:
        return Visit(VisitResult.FAILED, f"status {front.status}")
    return _content(front, document, rejected, fingerprint, impossible, old, changes)


def _host_page(
    front: LiveAnswer, document: Document | None, rejected: Rejection | None, fingerprint: SiteFingerprint
) -> Visit | None:
    """The visit if the host shows a page of its own in place of the site; a banner on a page of the site is none."""
    verdict = rejected.verdict if rejected is not None else None
    if rejected is not None and verdict in _HOST_PAGES:
        own = document is not None and _is_own(fingerprint.compare(page_of(document, front.url)))
        return None if own else Visit(_HOST_PAGES[rejected.verdict], rejected.detail)
    if front.failure is None and front.status == _UNPAID:
        return Visit(VisitResult.SUSPENDED, "status 402 (payment required)")
    if front.failure is None and front.status == 503 and verdict is not Verdict.ANTI_BOT and _waits_long(front):
        return Visit(VisitResult.MAINTENANCE, f"status 503, Retry-After: {front.headers['retry-after'][:40]}")
    return None


def _waits_long(front: LiveAnswer) -> bool:
    """Whether a server says that it is away for minutes or more, or until a date."""
    wait = front.headers.get("retry-after", "").strip()
    return int(wait) >= _LONG_WAIT if wait.isascii() and wait.isdigit() else bool(wait)


def _is_own(signals: Signals) -> bool:
    """Whether a page is the site's own for certain: nothing speaks against it, and its links or its text for it."""
    text = signals.text is not None and signals.text >= 2 * TEXT_ALIKE
    return signals.alarms == 0 and (signals.links is not None or text)


def certified(visit: Visit, certificate: Certificate | None, problem: str, at: datetime) -> Visit:
    """The visit with what its certificate says: own content behind one that browsers refuse is a result of its own.
    `problem` is why the certificate was not accepted."""
    if visit.seen is not VisitResult.OWN:
        return visit
    if certificate is not None and certificate.until <= at:
        why = f"the certificate expired on {certificate.until:%Y-%m-%d}"
        return replace(visit, seen=VisitResult.CERTIFICATE_EXPIRED, why=why)
    if problem:
        # One of the chain may have expired, and not the site's own.
        seen = VisitResult.CERTIFICATE_EXPIRED if "expired" in problem else VisitResult.BAD_CERTIFICATE
        return replace(visit, seen=seen, why=f"the certificate is not accepted: {problem}")
    return visit


def _is_wall(status: int, verdict: Verdict) -> bool:
    """Whether a page keeps robots out. A wall may come with 503 and 4xx; 502 and 52x are a proxy's words for a server
    that is gone, in the same dress."""
    if status < 400:
        return verdict in _WALLS
    return verdict is Verdict.ANTI_BOT and (status == 503 or (status < 500 and status not in _GONE))


def _failure(front: LiveAnswer) -> Visit:
    if front.failure is Failure.NO_NAME:
        return Visit(VisitResult.NO_NAME, front.why)
    if front.failure is Failure.REFUSED:
        return Visit(VisitResult.BLOCKED, front.why)
    words = _FAILURES.get(front.failure, "no answer") if front.failure is not None else ""
    return Visit(VisitResult.FAILED, f"{words} ({front.why})")


def _moved(front: LiveAnswer) -> str:
    """Where a permanent redirect leads to, if to another host; redirects on the way there must all be permanent. One to
    an address that is not asked, a private one for instance, says nothing."""
    if not front.hops or same_site(front.asked, front.url) or front.failure is Failure.REFUSED:
        return ""
    return front.url if all(hop.status in PERMANENT for hop in front.hops) else ""


def _content(
    front: LiveAnswer,
    document: Document | None,
    rejected: Rejection | None,
    fingerprint: SiteFingerprint,
    impossible: LiveAnswer | None,
    old: Sequence[LiveAnswer],
    changes: Sequence[Confirmation],
) -> Visit:
    verdict = rejected.verdict if rejected is not None else None
    page = page_of(document, front.url) if document is not None else EMPTY
    signals = fingerprint.compare(page)
    own = _is_own(signals)
    if verdict in (Verdict.SOFT_404, Verdict.ERROR_PAGE) and not own:
        return Visit(VisitResult.FAILED, rejected.detail if rejected else "", page, signals)
    confirmations = list(changes)
    if verdict in _FOREIGN and not own:
        confirmations.append(Confirmation.JUDGE)
    if old and all(_is_gone(answer, impossible, front) for answer in old):
        confirmations.append(Confirmation.OLD_ADDRESSES_GONE)
    foreign = signals.foreign or (verdict in _FOREIGN and not own)
    if not foreign:
        return Visit(VisitResult.OWN, "", page, signals)
    if not changes and verdict not in _FOREIGN and not _has_content(page):
        little = "a page with little text and few links" if document is not None else "no page"
        return Visit(VisitResult.PLACEHOLDER, f"{little} is in place of the site", page, signals)
    seen = VisitResult.FOREIGN_CONFIRMED if confirmations else VisitResult.FOREIGN
    why = rejected.detail if rejected is not None else "its links, title and text are not the site's"
    return Visit(seen, why, page, signals, tuple(confirmations))


def _has_content(page: Page) -> bool:
    """Whether a page has enough to be a site of someone else; placeholders of hosts say little, in many words."""
    return len(page.links | page.outlinks) >= FEWEST_LINKS or page.words.total() >= TRUSTED_WORDS


def _is_gone(answer: LiveAnswer, impossible: LiveAnswer | None, front: LiveAnswer) -> bool:
    """Whether an address the site had is gone: an error, or the same page as for an address that cannot exist."""
    if answer.failure is not None:
        return answer.failure is not Failure.REFUSED
    if answer.status in _GONE:
        return True
    if answer.status >= 400:
        return False
    same_as_none = impossible is not None and impossible.status < 400 and answer.body == impossible.body
    return same_as_none or (bool(answer.body) and answer.body == front.body)
