"""What ends soon: the certificate of a site, and the registration of its domain.

Hides: how early it is reported. Pure. Each threshold is reported once for each end: a notice is unique by its kind and
the moment of the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.archives.certificates import Certificate
from recollect.watch.states import Notice

LAST_DAYS = timedelta(days=3)
DOMAIN_BEFORE = (timedelta(days=30), timedelta(days=7), timedelta(0))


@dataclass(frozen=True, slots=True)
class DueNotice:
    """A notice that is due."""

    kind: Notice
    since: datetime
    why: str


def certificate_warning(certificate: Certificate | None, at: datetime) -> DueNotice | None:
    """The warning of a certificate that ends soon; one that ended is a state of the site."""
    if certificate is None or certificate.until <= at:
        return None
    passed = [before for before in (certificate.warn_before, LAST_DAYS) if at >= certificate.until - before]
    if not passed:
        return None
    why = f"The certificate expires on {certificate.until:%Y-%m-%d %H:%M} UTC ({_left(certificate.until - at)})"
    return DueNotice(Notice.CERTIFICATE_EXPIRES, certificate.until - min(passed), why)


def domain_warning(domain: str, ends: datetime | None, at: datetime, *, answered: bool = True) -> DueNotice | None:
    """The warning of a registration that ends soon, or has ended. While the registry does not answer (`answered`), what
    it said last counts, but not before the last week: most domains are renewed earlier."""
    thresholds = DOMAIN_BEFORE if answered else DOMAIN_BEFORE[1:]
    passed = [before for before in thresholds if ends is not None and at >= ends - before]
    if ends is None or not passed:
        return None
    verb = "ended" if ends <= at else "ends"
    left = "" if ends <= at else f" ({_left(ends - at)})"
    why = f"The registration of {domain} {verb} on {ends:%Y-%m-%d}{left}"
    if not answered:
        why += ", by the registry's last answer; whether it was renewed since then is not known"
    return DueNotice(Notice.DOMAIN_EXPIRES, ends - min(passed), why)


def needs_fresh_registration(ends: datetime | None, at: datetime) -> bool:
    """Whether to ask the registry again: the domain may have been renewed since it was asked last."""
    return ends is not None and at >= ends - DOMAIN_BEFORE[0]


def _left(time: timedelta) -> str:
    days = time // timedelta(days=1)
    return "in 1 day" if days == 1 else f"in {days} days" if days else f"in {time // timedelta(hours=1)} hours"
