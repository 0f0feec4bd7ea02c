"""States of watched resources and sites: pure functions from what was seen to what is believed.

Hides only the rules. No clock, no network, no storage: time and observations come in, states go out, so that
years of a site's life are replayed in a test.

Resources (McCown 2007, section IV.1, Table 5) are judged by the last *confirmed* live state and by what archives hold:

                      held          not held         holdings unknown
    live              replicated    vulnerable       unknown
    gone              endangered    unrecoverable    unknown
    not confirmed     unknown       unknown          unknown

Sites. One visit ends in one `VisitResult`. Failures count from the first one after the last answer:

    fine --3 days of failures--> suspect --7 days, 4 failures--> lost    (3 days if the name does not resolve)
    fine --foreign content on two visits 3 days apart, confirmed--> taken over
    fine --permanent redirect to another host--> moved
    fine --a page of the host in place of the site--> suspended, domain-expired (at once),
         default-page (1 hour), maintenance (1 day)
    fine --own content with a certificate that browsers refuse--> bad-certificate (at once if it expired, else 1 day)
    fine --own content, pages of it gone on two visits a day apart--> pages-lost --all there again--> fine
    lost, taken over, moved, suspended... --own content again--> back --7 days--> fine

Only the site's own content ends a suspicion of foreign content; a failure in between does not. Failures more than 45
days apart belong to different outages: the watch did not run in between, or the clock jumped.

A visit that says nothing about the site (refused, blocked by an anti-bot page, or the local network is down)
changes nothing: unknown is not loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Live(StrEnum):
    """The last confirmed state of a resource on the live web."""

    LIVE = "live"
    GONE = "gone"
    UNKNOWN = "unknown"


class Held(StrEnum):
    """What the archives answered about a resource."""

    HELD = "held"
    NOT_HELD = "not-held"
    UNKNOWN = "unknown"
    """Some archive failed, and no other holds it."""


class ResourceState(StrEnum):
    REPLICATED = "replicated"
    VULNERABLE = "vulnerable"
    ENDANGERED = "endangered"
    UNRECOVERABLE = "unrecoverable"
    UNKNOWN = "unknown"


_RESOURCE = {
    (Live.LIVE, Held.HELD): ResourceState.REPLICATED,
    (Live.LIVE, Held.NOT_HELD): ResourceState.VULNERABLE,
    (Live.GONE, Held.HELD): ResourceState.ENDANGERED,
    (Live.GONE, Held.NOT_HELD): ResourceState.UNRECOVERABLE,
}


def resource_state(live: Live, held: Held) -> ResourceState:
    """The state of a resource; unknown where either side is."""
    return _RESOURCE.get((live, held), ResourceState.UNKNOWN)


def held_by(answers: dict[str, bool | None]) -> Held:
    """What the archives say together: one that holds it is enough, and a failure is not a no."""
    if any(answers.values()):
        return Held.HELD
    return Held.NOT_HELD if answers and all(one is False for one in answers.values()) else Held.UNKNOWN


class VisitResult(StrEnum):
    """What one visit of a site showed."""

    OWN = "own"
    """The site's own content."""
    FAILED = "failed"
    """No connection, a time-out, 5xx, 404 or 410 for the front page, or a page that says "not found"."""
    NO_NAME = "no-name"
    """The name does not resolve (NXDOMAIN)."""
    BLOCKED = "blocked"
    """401, 403, 429, a login or an anti-bot page: nothing can be said."""
    OFFLINE = "offline"
    """The local network fails: canaries, or several watched sites at once, fail too."""
    FOREIGN = "foreign"
    """Content that is not the site's (two of three signals), not confirmed."""
    FOREIGN_CONFIRMED = "foreign-confirmed"
    """The same, with a change of registration, the judge's verdict, or the old addresses gone."""
    PLACEHOLDER = "placeholder"
    """A page with little on it, neither the site's nor content of someone else; counts as a failure."""
    MOVED = "moved"
    """A permanent redirect to another host."""
    PAGES_LOST = "pages-lost"
    """The site's own content; pages that it had are gone."""
    BAD_CERTIFICATE = "bad-certificate"
    """The site's own content, behind a certificate that browsers do not accept."""
    CERTIFICATE_EXPIRED = "certificate-expired"
    """The same, because the certificate expired: nothing has to be confirmed."""
    SUSPENDED = "suspended"
    """The host has suspended the account."""
    DEFAULT_PAGE = "default-page"
    """The page of a web server without a site."""
    DOMAIN_EXPIRED = "domain-expired"
    """A page of the registrar: the registration of the domain has ended and can be renewed."""
    MAINTENANCE = "maintenance"
    """A page that says the site is being worked on."""


class SiteState(StrEnum):
    NEW = "new"
    """Not seen yet."""
    FINE = "fine"
    PAGES_LOST = "pages-lost"
    """Its own content is seen, but pages that it had are gone."""
    BAD_CERTIFICATE = "bad-certificate"
    """Its own content is there; visitors see a warning of their browser."""
    MAINTENANCE = "maintenance"
    DEFAULT_PAGE = "default-page"
    SUSPENDED = "suspended"
    DOMAIN_EXPIRED = "domain-expired"
    SUSPECT = "suspect"
    LOST = "lost"
    TAKEN_OVER = "taken-over"
    MOVED = "moved"
    BACK = "back"


_JUMP = timedelta(days=1)
SILENT = frozenset({VisitResult.BLOCKED, VisitResult.OFFLINE})
"""Visits that say nothing about the site."""
GONE = frozenset({SiteState.LOST, SiteState.TAKEN_OVER, SiteState.MOVED})
"""States from which a site comes back."""
HIDDEN = frozenset({SiteState.MAINTENANCE, SiteState.DEFAULT_PAGE, SiteState.SUSPENDED, SiteState.DOMAIN_EXPIRED})
"""States in which the host shows a page of its own in place of the site; the files may still be there."""
_KINDS = {
    VisitResult.SUSPENDED: SiteState.SUSPENDED,
    VisitResult.DOMAIN_EXPIRED: SiteState.DOMAIN_EXPIRED,
    VisitResult.DEFAULT_PAGE: SiteState.DEFAULT_PAGE,
    VisitResult.MAINTENANCE: SiteState.MAINTENANCE,
    VisitResult.BAD_CERTIFICATE: SiteState.BAD_CERTIFICATE,
    VisitResult.CERTIFICATE_EXPIRED: SiteState.BAD_CERTIFICATE,
}
OWN_CONTENT = frozenset(
    {VisitResult.OWN, VisitResult.PAGES_LOST, VisitResult.BAD_CERTIFICATE, VisitResult.CERTIFICATE_EXPIRED}
)
"""Visits that showed the site's own content."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When a site counts as suspect, lost or taken over."""

    suspect_after: timedelta = timedelta(days=3)
    lost_after: timedelta = timedelta(days=7)
    lost_without_name_after: timedelta = timedelta(days=3)
    failures: int = 4
    takeover_apart: timedelta = timedelta(days=3)
    fine_again_after: timedelta = timedelta(days=7)
    same_outage: timedelta = timedelta(days=45)
    default_page_after: timedelta = timedelta(hours=1)
    maintenance_after: timedelta = timedelta(days=1)
    certificate_after: timedelta = timedelta(days=1)
    """For a certificate that is not trusted; one that expired is reported at once."""
    page_apart: timedelta = timedelta(hours=20)
    """Between two visits on which a page is gone, for a visit a day a little earlier than the day before."""
    retries: tuple[timedelta, ...] = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1))
    every: timedelta = timedelta(days=1)


RULES = Rules()


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """What is believed of a site, and what it rests on."""

    state: SiteState = SiteState.NEW
    since: datetime | None = None
    """When the state began; of a loss, the first failure."""
    last_own: datetime | None = None
    """When its own content was last seen."""
    failing_since: datetime | None = None
    failures: int = 0
    nameless: int = 0
    """How many of the failures were names that do not resolve."""
    foreign_since: datetime | None = None
    confirmed: bool = False
    """Whether a takeover was confirmed on any visit since `foreign_since`."""
    last_failed: datetime | None = None
    """The last failure since `failing_since`."""
    kind: SiteState | None = None
    """The state that visits since `kind_since` lead to: a page of the host, or a bad certificate."""
    kind_since: datetime | None = None

    @property
    def is_gone(self) -> bool:
        return self.state in GONE

    @property
    def is_hidden(self) -> bool:
        return self.state in HIDDEN


def after(status: SiteStatus, seen: VisitResult, at: datetime, rules: Rules = RULES) -> SiteStatus:
    """The status after one visit.

    Clocks may jump: a visit a little older than what is known changes nothing. Where what is known lies more than a
    day ahead, the clock was wrong then, and those moments become this one; the visit itself counts for nothing more.
    """
    if seen in SILENT:
        return status
    if _is_older(status, at):
        return _rebased(status, at) if _is_older(status, at + _JUMP) else status
    if seen in _KINDS:
        return _of_kind(status, seen, at, rules)
    if seen in OWN_CONTENT:
        return _own(status, seen, at, rules)
    if seen is VisitResult.MOVED:
        return _enter(_quiet(status), SiteState.MOVED, at)
    if seen in (VisitResult.FOREIGN, VisitResult.FOREIGN_CONFIRMED):
        return _foreign(status, seen, at, rules)
    return _failed(status, seen, at, rules)


def _is_older(status: SiteStatus, at: datetime) -> bool:
    moments = (*(status.last_own, status.failing_since, status.last_failed, status.foreign_since, status.kind_since),)
    return any(moment is not None and at < moment for moment in moments)


def _rebased(status: SiteStatus, at: datetime) -> SiteStatus:
    """The status without moments in the future."""

    def known(moment: datetime | None) -> datetime | None:
        return min(moment, at) if moment is not None else None

    quiet = _quiet(status) if not status.is_gone else status
    return replace(
        quiet,
        since=status.since if status.is_gone else known(status.since),
        last_own=known(status.last_own),
        failing_since=known(quiet.failing_since),
        foreign_since=known(quiet.foreign_since),
        last_failed=known(quiet.last_failed),
        kind_since=known(quiet.kind_since),
    )


def _of_kind(status: SiteStatus, seen: VisitResult, at: datetime, rules: Rules) -> SiteStatus:
    """A page of the host, or a certificate that browsers refuse. A site that is gone already stays so, unless its own
    content is seen; failures end, since the server answers."""
    kind = _KINDS[seen]
    own = seen in OWN_CONTENT
    since = status.kind_since if status.kind is kind and status.kind_since is not None else at
    noted = replace(_quiet(status) if own else _answered(status), kind=kind, kind_since=since)
    if own:
        noted = replace(noted, last_own=at)
    needed = {
        VisitResult.DEFAULT_PAGE: rules.default_page_after,
        VisitResult.MAINTENANCE: rules.maintenance_after,
        VisitResult.BAD_CERTIFICATE: rules.certificate_after,
    }.get(seen, timedelta(0))
    if (status.is_gone and not own) or at - since < needed:
        return noted
    return _enter(noted, kind, since)


def _own(status: SiteStatus, seen: VisitResult, at: datetime, rules: Rules) -> SiteStatus:
    quiet = replace(_quiet(status), last_own=at)
    if status.is_gone or status.is_hidden or status.state is SiteState.BAD_CERTIFICATE:
        return _enter(quiet, SiteState.BACK, at)
    if seen is VisitResult.PAGES_LOST:
        return _enter(quiet, SiteState.PAGES_LOST, at)
    if status.state is SiteState.BACK:
        assert status.since is not None
        return _enter(quiet, SiteState.FINE, at) if at - status.since >= rules.fine_again_after else quiet
    return _enter(quiet, SiteState.FINE, at)


def _foreign(status: SiteStatus, seen: VisitResult, at: datetime, rules: Rules) -> SiteStatus:
    since = status.foreign_since or at
    confirmed = status.confirmed or seen is VisitResult.FOREIGN_CONFIRMED
    noted = replace(_answered(status), foreign_since=since, confirmed=confirmed)
    if confirmed and at - since >= rules.takeover_apart:
        return _enter(noted, SiteState.TAKEN_OVER, since)
    return noted if status.is_gone or status.is_hidden else _enter(noted, SiteState.SUSPECT, since)


def _failed(status: SiteStatus, seen: VisitResult, at: datetime, rules: Rules) -> SiteStatus:
    if status.last_failed is not None and at - status.last_failed > rules.same_outage:
        status = _answered(status)
    since = status.failing_since or at
    failing = replace(
        status,
        failing_since=since,
        failures=status.failures + 1,
        nameless=status.nameless + (seen is VisitResult.NO_NAME),
        last_failed=at,
    )
    if status.is_gone:
        return failing
    lasted = at - since
    nameless = failing.nameless == failing.failures
    needed = rules.lost_without_name_after if nameless else rules.lost_after
    if lasted >= needed and failing.failures >= (min(2, rules.failures) if nameless else rules.failures):
        return _enter(failing, SiteState.LOST, since)
    if lasted >= rules.suspect_after and not status.is_hidden:
        return _enter(failing, SiteState.SUSPECT, since)
    return failing


def _answered(status: SiteStatus) -> SiteStatus:
    """The status without failures."""
    return replace(status, failing_since=None, failures=0, nameless=0, last_failed=None)


def _quiet(status: SiteStatus) -> SiteStatus:
    """The status without failures, without a suspicion of foreign content and without a page of the host."""
    return replace(_answered(status), foreign_since=None, confirmed=False, kind=None, kind_since=None)


def _enter(status: SiteStatus, state: SiteState, since: datetime) -> SiteStatus:
    return status if status.state is state else replace(status, state=state, since=since)


def next_visit(status: SiteStatus, last: datetime, rules: Rules = RULES) -> datetime:
    """When to look again: soon after the first failures, then daily."""
    if status.failures and not status.is_gone:
        place = status.failures - 1
        return last + (rules.retries[place] if place < len(rules.retries) else rules.every)
    if status.kind is not None and status.state is not status.kind and not status.is_gone:
        return last + min(rules.retries[0], rules.every)  # not yet confirmed
    return last + rules.every


class Notice(StrEnum):
    """What a notice is about."""

    LOST = "lost"
    TAKEN_OVER = "taken-over"
    MOVED = "moved"
    BACK = "back"
    REMINDER = "reminder"
    """A month later, the site is still gone."""
    RECOVERED = "recovered"
    """The job of a desk that recovers the site has ended with a result."""
    NOT_RECOVERED = "not-recovered"
    """The job of a desk that recovers the site has ended without a result."""
    PAGES_LOST = "pages-lost"
    PAGES_BACK = "pages-back"
    """All pages that were lost are there again."""
    BAD_CERTIFICATE = "bad-certificate"
    SUSPENDED = "suspended"
    DOMAIN_EXPIRED = "domain-expired"
    DEFAULT_PAGE = "default-page"
    MAINTENANCE = "maintenance"
    CERTIFICATE_EXPIRES = "certificate-expires"
    """The certificate expires soon, and was not renewed."""
    DOMAIN_EXPIRES = "domain-expires"
    """The registration of the domain ends soon, or has ended."""
    NEW_LINKS = "new-links"
    """Most pages link to domains that the site did not link to before, all at once."""
    OFFLINE = "offline"
    """Neither the site nor any witness of the local network has answered for a day."""


_NOTICES = {
    SiteState.LOST: Notice.LOST,
    SiteState.TAKEN_OVER: Notice.TAKEN_OVER,
    SiteState.MOVED: Notice.MOVED,
    SiteState.BACK: Notice.BACK,
    SiteState.PAGES_LOST: Notice.PAGES_LOST,
    SiteState.BAD_CERTIFICATE: Notice.BAD_CERTIFICATE,
    SiteState.SUSPENDED: Notice.SUSPENDED,
    SiteState.DOMAIN_EXPIRED: Notice.DOMAIN_EXPIRED,
    SiteState.DEFAULT_PAGE: Notice.DEFAULT_PAGE,
    SiteState.MAINTENANCE: Notice.MAINTENANCE,
}


def notice_of(before: SiteStatus, now: SiteStatus) -> Notice | None:
    """The notice that a change of state causes: once per change; a suspicion alone is not reported."""
    if before.state is now.state:
        return None
    if before.state is SiteState.PAGES_LOST and now.state is SiteState.FINE:
        return Notice.PAGES_BACK
    return _NOTICES.get(now.state)
