"""What a watch keeps: sites, resources, visits, observations, notices, recoveries, requests to save.

Hides nothing: frozen values, as `watch.store` writes and reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from recollect.recovery.fingerprint import SiteFingerprint
from recollect.watch.states import Held, Live, Notice, ResourceState, SiteState, SiteStatus, VisitResult, resource_state


class OnLoss(StrEnum):
    """What follows when a site is lost."""

    RECOVER = "recover"
    NOTIFY = "notify"


@dataclass(frozen=True, slots=True)
class Site:
    """A watched site: what was asked for, and what is believed."""

    uri: str
    added_at: datetime
    next_visit: datetime
    sample: int = 50
    on_loss: OnLoss = OnLoss.RECOVER
    archives: str = ""
    """File with the list of archives; empty for the list that ships."""
    allow_private: bool = False
    email: str = ""
    webhook: str = ""
    status: SiteStatus = field(default_factory=SiteStatus)
    portrait: str = '{"links": [], "title": [], "pages": []}'
    registration: str = ""
    """What registries and name servers said, as JSON."""
    last_visit: datetime | None = None
    moved_to: str = ""
    recovery: str = ""
    """Folder of the last recovery, relative to the data folder."""

    def known(self) -> SiteFingerprint:
        return SiteFingerprint.from_json(self.portrait)


@dataclass(frozen=True, slots=True)
class Resource:
    """One address of a site: its last confirmed state on the live web, and what archives hold of it."""

    site: str
    uri: str
    media_type: str = ""
    live: Live = Live.UNKNOWN
    live_at: datetime | None = None
    held: Held = Held.UNKNOWN
    held_at: datetime | None = None
    fresh: float | None = None
    """How alike the newest copy in an archive is to the live one, 0 to 1; None if it was not compared."""
    digest: str = ""
    validator: str = ""
    """ETag or Last-Modified of the live copy, for conditional requests."""
    archives: tuple[str, ...] = ()
    """Which archives hold it."""

    @property
    def state(self) -> ResourceState:
        return resource_state(self.live, self.held)


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a notice was posted to its webhook, and when it is tried next."""

    count: int
    next_at: datetime
    done: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """A visit of the past."""

    site: str
    at: datetime
    seen: VisitResult
    state: SiteState
    why: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What one visit found of a resource."""

    site: str
    uri: str
    at: datetime
    status: int
    """HTTP status; 0 if the live web was not asked or did not answer."""
    live: Live
    held: Held
    fresh: float | None = None


class RecoveryState(StrEnum):
    """Where the recovery of a lost site is."""

    RUNNING = "running"
    QUEUED = "queued"
    """A job at a desk that has not ended."""
    DONE = "done"
    NOTHING_FOUND = "nothing-found"
    FAILED = "failed"
    """It is started again a day later; not a job at a desk, which has retries of its own."""


@dataclass(frozen=True, slots=True)
class Recovering:
    """The recovery of one loss."""

    folder: str
    """Relative to the data folder; one for each loss."""
    site: str
    state: RecoveryState
    at: datetime
    """When the state was last looked at."""
    next_at: datetime
    """When to start again what failed, or to ask the desk again."""
    job: str = ""
    """The id of a job at a desk."""
    token: str = ""
    """What the desk wants to hear when it is asked for the job."""
    detail: str = ""
    """Why it failed, or what the desk says of the job."""


class SaveState(StrEnum):
    """What became of a request to save a resource."""

    ASKED = "asked"
    PENDING = "pending"
    """Taken by the archive, which says the result later."""
    SAVED = "saved"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Save:
    """A resource that an archive was asked to save."""

    site: str
    uri: str
    at: datetime
    state: SaveState
    next_at: datetime
    job: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A notice; pending until it was sent."""

    number: int
    site: str
    kind: Notice
    since: datetime
    at: datetime
    why: str


def counts_of(resources: Iterable[Resource]) -> dict[ResourceState, int]:
    """How many resources are in each state."""
    counts = dict.fromkeys(ResourceState, 0)
    for resource in resources:
        counts[resource.state] += 1
    return counts
