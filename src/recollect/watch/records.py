"""What a watch keeps: sites, resources, visits, observations, notices, recoveries, requests to save.

Hides nothing: frozen values, as `watch.store` writes and reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from recollect.quantities import format_percent
from recollect.recovery.fingerprint import SiteFingerprint
from recollect.watch.states import Held, Live, Notice, ResourceState, SiteState, SiteStatus, VisitResult, resource_state


class OnLoss(StrEnum):
    """What follows when a site is lost."""

    RECOVER = "recover"
    NOTIFY = "notify"


@dataclass(frozen=True, slots=True)
class Notes:
    """What a watch remembers of a site beside its state; kept as one JSON text."""

    outside: tuple[str, ...] = ()
    """Domains that its pages linked to."""
    injected: tuple[str, ...] = ()
    """Domains that were new on most pages at once, and still are there."""
    certificate_until: str = ""
    """When the certificate of the last visit ends, as ISO 8601."""
    accept: bool = False
    """The owner says that the present content is the site's: the next visit learns it without judging."""
    disallowed: tuple[str, ...] = ()
    """Some addresses that robots.txt kept the watch from."""
    pages_since: str = ""
    """When the first of the pages was reported that are lost now, as ISO 8601."""
    placeholder: bool = False
    """Whether the last visit showed a page with little on it in place of the site."""
    refuted: tuple[str, ...] = ()
    """Kinds of host pages that the owner says this site's page is not."""
    learned: bool = False
    """Whether `outside` is known; not before the first visit."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Notes:
        value = json.loads(text) if text else {}
        lists = {name: tuple(value.get(name, ())) for name in ("outside", "injected", "disallowed", "refuted")}
        return cls(
            **lists,
            certificate_until=value.get("certificate_until", ""),
            pages_since=value.get("pages_since", ""),
            accept=bool(value.get("accept", False)),
            placeholder=bool(value.get("placeholder", False)),
            learned=bool(value.get("learned", False)),
        )


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
    fingerprint: str = '{"links": [], "title": [], "pages": []}'
    registration: str = ""
    """What registries and name servers said, as JSON."""
    last_visit: datetime | None = None
    moved_to: str = ""
    recovery: str = ""
    """Folder of the last recovery, relative to the data folder."""
    every: timedelta = timedelta(days=1)
    """Between visits while nothing is wrong."""
    canary: str = ""
    """Asked when this site fails, beside the canaries of the run."""
    notes: Notes = field(default_factory=Notes)

    def known(self) -> SiteFingerprint:
        return SiteFingerprint.from_json(self.fingerprint)


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a live resource that matter for its capture."""

    hops: int | None = None
    """Links to follow from the front page; None for an address that only a sitemap names."""
    source: str = ""
    """The page, or the sitemap, that led to it."""
    noarchive: bool = False
    """A robots directive of the page or of its header asks archives to keep no copy."""
    cache: str = ""
    """Directives of Cache-Control that keep caches from storing it."""
    seen: int = 0
    """Visits on which it was live."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Facts:
        return cls(**json.loads(text)) if text else cls()


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
    gone_since: datetime | None = None
    """When a visit first found a page gone that was live before; None while it is live, and for a lost site."""
    told_at: datetime | None = None
    """When a notice named it as lost."""
    copy: str = ""
    """Address of the newest copy in an archive."""
    copied_at: datetime | None = None
    """When that copy was captured."""
    facts: Facts = field(default_factory=lambda: Facts())

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
class VisitRecord:
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
    answers: Mapping[str, bool | None] = field(default_factory=dict)
    """By archive that was asked on this visit, whether it holds the resource; None if it did not answer."""


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
class RecoveryRecord:
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
class NoticeRecord:
    """A notice; pending until it was sent."""

    number: int
    site: str
    kind: Notice
    since: datetime
    at: datetime
    why: str


def held_of(counts: Mapping[ResourceState, int]) -> tuple[int, int]:
    """How many resources archives hold, and of how many that is known."""
    known = sum(counts.values()) - counts[ResourceState.UNKNOWN]
    return counts[ResourceState.REPLICATED] + counts[ResourceState.ENDANGERED], known


def percent_of(counts: Mapping[ResourceState, int]) -> str:
    """The share that archives hold of what is known, in words."""
    held, known = held_of(counts)
    return format_percent(held, known) if known else "unknown"


def counts_of(resources: Iterable[Resource]) -> dict[ResourceState, int]:
    """How many resources are in each state."""
    counts = dict.fromkeys(ResourceState, 0)
    for resource in resources:
        counts[resource.state] += 1
    return counts
