"""The values of a recovery's store: a resource that came back, one that did not, one found under another address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from recollect.recovery.verdicts import Reason, Verdict
from recollect.ui.messages import message

Kind = Literal["page", "asset"]
REASONS: dict[Reason, str] = {
    Reason.NEVER_ARCHIVED: message("was never saved"),
    Reason.BLOCKED: message("an archive holds it and does not give it out"),
    Reason.FAILED: message("every archive that holds it failed to deliver it"),
    Reason.OUT_OF_QUOTA: message("an archive holds it, and no request was left for it"),
    Reason.REJECTED: message("every capture is an error, redirects away, or was rejected in a review"),
    Reason.OUT_OF_RANGE: message("no capture in the wanted range of dates"),
}


@dataclass(frozen=True, slots=True)
class Recovered:
    """One resource that came back. `status` is the original server's; a 3xx has `redirect_to`, mostly no payload."""

    key: str
    uri: str
    captured_at: datetime
    archive: str
    uri_m: str
    status: int
    headers: tuple[tuple[str, str], ...]
    media_type: str
    charset: str | None
    content_encoding: str
    digest: str
    length: int
    payload_path: Path
    fetched_at: datetime
    kind: Kind = "page"
    redirect_to: str | None = None
    altered: bool = (
        False  # an archive's rewriting had to be taken out; the bytes are close to, not exactly, the original
    )
    live: bool = False  # from the live web (--live-fallback), not from an archive
    found_on: str | None = None  # key of the page that first led here
    other_archives: tuple[tuple[str, datetime], ...] = ()
    suspect: Verdict | None = None  # kept for review: no capture of the page is free of doubt
    doubt: str = ""  # the reason for `suspect`, as text
    confidence: float | None = None  # in `suspect`: the probability that it is right

    @property
    def is_redirect(self) -> bool:
        return self.redirect_to is not None


@dataclass(frozen=True, slots=True)
class Missing:
    """One resource that did not come back, with its reason (`REASONS`) and a text that says what happened."""

    key: str
    uri: str
    reason: Reason
    detail: str
    kind: Kind = "page"
    found_on: str | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One more capture of a resource that came back; `repeats` is the moment of the capture whose bytes it has."""

    resource: Recovered
    repeats: datetime | None = None


@dataclass(frozen=True, slots=True)
class Substitute:
    """A resource that no archive gives under its own address, and its page under another address of it: a rule that
    the site's own redirects, canonical links, bytes and titles support says so."""

    key: str
    uri: str
    kind: Kind
    found_on: str | None
    target: str  # key of the resource that takes its place
    rule: str
    evidence: str
