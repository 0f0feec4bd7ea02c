"""The figures of a recovery: what archives list, what came back of it, and each known loss with its cause.

Hides: counting over the store and its journal. Invariants: an address is counted once, under one spelling; everything
listed in scope is back, lost for one cause, or another site's (`listed == listed_back + sum(losses)`, `foreign` apart);
a listing that failed makes the figures a lower bound, and its archive is an `Outage`. `recovery.sentences` words them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import urlsplit

from recollect.recovery.canonical import visit_key
from recollect.recovery.choose import is_content
from recollect.recovery.journal import Journal
from recollect.recovery.lister import is_front
from recollect.recovery.options import Options
from recollect.recovery.records import Recovered
from recollect.recovery.store import Store
from recollect.recovery.verdicts import FOREIGN, Reason


class Loss(StrEnum):
    """Why an address that an archive lists is not back."""

    FAILED = "failed"  # the archives that list it did not deliver it
    OUT_OF_QUOTA = "out-of-quota"
    BLOCKED = "blocked"  # an archive holds it and does not give it out
    REJECTED = "rejected"  # every capture is an error page, a redirect away, or was rejected in a review
    NOT_REACHED = "not-reached"  # the run ended before
    NOT_WANTED = "not-wanted"  # no link leads there, and the policy asks for linked resources only


class OutageKind(StrEnum):
    """What kept an archive from giving all that it holds."""

    SLOW = "slow"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    FAILED = "failed"
    CUT = "cut"  # its listing is not whole
    NOT_HELD = "not-held"  # it lists captures that it does not have


_OUTAGE_OF = {
    "timeout": OutageKind.SLOW,
    "unreachable": OutageKind.UNREACHABLE,
    "throttled": OutageKind.REFUSED,
    "blocked": OutageKind.REFUSED,
    "absent": OutageKind.NOT_HELD,
}


def outage_kind(error_kind: str) -> OutageKind:
    """The kind of an outage, by the kind of the archive's error (`ArchiveError.kind`) or the outcome of a replay."""
    return _OUTAGE_OF.get(error_kind, OutageKind.FAILED)


@dataclass(frozen=True, slots=True)
class Outage:
    """An archive that failed, was slow, refused, or cut its listing off."""

    archive: str
    kind: OutageKind
    detail: str = ""
    listed: int | None = None  # addresses of the site in its listing; None when it gave none
    waiting: int = 0  # addresses that it lists and that are not back

    def to_json(self) -> dict[str, Any]:
        return {
            "archive": self.archive,
            "kind": self.kind,
            "detail": self.detail,
            "listed": self.listed,
            "waiting": self.waiting,
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of one recovery. `listed`: addresses in scope that any archive lists with content."""

    recovered: int = 0
    pages: int = 0
    listed: int = 0
    listed_back: int = 0
    losses: Mapping[Loss, int] = field(default_factory=dict)  # of what is listed
    foreign: int = 0  # listed with content of another site only; not in `listed`
    never_saved_pages: int = 0  # linked, and no archive holds them
    never_saved_files: int = 0
    beside_lost: int = 0  # linked, held outside of the scope's listing, and not back
    elsewhere: int = 0  # embedded from hosts that were not asked for
    elsewhere_hosts: int = 0
    unlinked_pages: int = 0  # back, and no link leads there from the front page
    unlinked_files: int = 0
    suspects: int = 0  # kept, and doubtful
    other_address: int = 0  # linked, not held, and back under another address of the page
    outages: tuple[Outage, ...] = ()
    complete: bool = True  # nothing is left to fetch
    front: bool = True  # the front page came back

    @property
    def never_saved(self) -> int:
        return self.never_saved_pages + self.never_saved_files

    @property
    def lost(self) -> int:
        """Everything that is known to have existed and is not back."""
        return sum(self.losses.values()) + self.never_saved + self.beside_lost + self.elsewhere

    @property
    def unlinked(self) -> int:
        return self.unlinked_pages + self.unlinked_files

    def to_json(self) -> dict[str, Any]:
        return {
            "recovered": self.recovered,
            "pages": self.pages,
            "listed": self.listed,
            "listed_back": self.listed_back,
            "losses": {str(loss): count for loss, count in self.losses.items()},
            "foreign": self.foreign,
            "never_saved_pages": self.never_saved_pages,
            "never_saved_files": self.never_saved_files,
            "beside_lost": self.beside_lost,
            "elsewhere": self.elsewhere,
            "elsewhere_hosts": self.elsewhere_hosts,
            "unlinked_pages": self.unlinked_pages,
            "unlinked_files": self.unlinked_files,
            "suspects": self.suspects,
            "other_address": self.other_address,
            "outages": [outage.to_json() for outage in self.outages],
            "complete": self.complete,
            "front": self.front,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Figures:
        """The inverse of `to_json`; figures of another version lack fields, which keep their defaults."""
        plain = {name: value[name] for name in _PLAIN if name in value}
        return Figures(
            **plain,
            losses={Loss(name): count for name, count in value.get("losses", {}).items()},
            outages=tuple(
                Outage(o["archive"], OutageKind(o["kind"]), o["detail"], o["listed"], o["waiting"])
                for o in value.get("outages", ())
            ),
        )


_PLAIN = (
    *("recovered", "pages", "listed", "listed_back", "foreign", "never_saved_pages", "never_saved_files"),
    *(
        "beside_lost",
        "elsewhere",
        "elsewhere_hosts",
        "unlinked_pages",
        "unlinked_files",
        "suspects",
        "other_address",
        "complete",
        "front",
    ),
)
_LOSS_OF = {
    Reason.FAILED: Loss.FAILED,
    Reason.NEVER_ARCHIVED: Loss.FAILED,  # listed, and yet not held
    Reason.OUT_OF_QUOTA: Loss.OUT_OF_QUOTA,
    Reason.BLOCKED: Loss.BLOCKED,
    Reason.REJECTED: Loss.REJECTED,
}


def figures_of(store: Store) -> Figures:
    """Count a store."""
    journal = Journal(store)
    content = {r.key: r for r in store.recovered(redirects=False)}
    missing = {m.key: m for m in store.missing()}
    listed = listed_addresses(store, journal)
    standings = _Standings(store)
    state = {key: standings.of(key) for key in listed}
    losses = Counter(one for one in state.values() if isinstance(one, Loss))
    unlinked = unlinked_resources(store, content.values())
    never = [m for key, m in missing.items() if m.reason == Reason.NEVER_ARCHIVED and key not in listed]
    beside = [m for key, m in missing.items() if key not in listed and m.found_on and m.reason not in _NOT_BESIDE]
    outside = [uri for uri, _ in store.outside() if store.find(uri) is None]
    return Figures(
        recovered=len(content),
        pages=sum(r.kind == "page" for r in content.values()),
        listed=sum(one != "foreign" for one in state.values()),
        listed_back=sum(one == "back" for one in state.values()),
        losses=dict(sorted(losses.items())),
        foreign=sum(one == "foreign" for one in state.values()),
        never_saved_pages=sum(m.kind == "page" for m in never),
        never_saved_files=sum(m.kind != "page" for m in never),
        beside_lost=len(beside),
        elsewhere=len(outside),
        elsewhere_hosts=len({urlsplit(uri).netloc for uri in outside}),
        unlinked_pages=sum(r.kind == "page" for r in unlinked),
        unlinked_files=sum(r.kind != "page" for r in unlinked),
        suspects=sum(r.suspect is not None for r in content.values()),
        other_address=sum(1 for _ in store.substitutes()),
        outages=_outages(journal, listed, state),
        complete=bool(store.meta("complete", True)) and not any(True for _ in store.queued()),
        front=front_is_back(store),
    )


_Standing = Loss | Literal["back", "foreign"]
_NOT_BESIDE = frozenset({Reason.NEVER_ARCHIVED, Reason.OUT_OF_RANGE})


def front_is_back(store: Store) -> bool:
    """Did a start page come back?"""
    return any(store.resolve(uri) is not None for uri in store.start)


def listed_addresses(store: Store, journal: Journal) -> dict[str, frozenset[str]]:
    """Key of each address in scope that is listed with content in the wanted range of dates -> archives that do.

    What archives without a list say about single addresses shows nothing of how many there are.
    """
    options = store.meta("options")
    if options is None:
        return {}
    chosen = Options.from_json(options)
    alias = {key: target for key, target, _ in store.aliases()}
    holders: dict[str, set[str]] = {}
    listings = {one.archive for one in journal.listings().values() if one.state != "failed" and not is_front(one.query)}
    for key, capture in journal.all_captures():
        if (
            capture.archive in listings
            and is_content(capture.status)
            and chosen.dates.in_range(capture.captured_at)
            and chosen.scope.holds(capture.uri)
        ):
            holders.setdefault(alias.get(key, key), set()).add(capture.archive)
    return {key: frozenset(names) for key, names in holders.items()}


class _Standings:
    """What became of each listed address."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._content = {resource.key for resource in store.recovered(redirects=False)}
        self._missing = {missing.key: missing for missing in store.missing()}
        self._queued = {key for key, _, _ in store.queued()}
        options = store.meta("options")
        wanted = options is None or (options["policy"] == "exhaustive" and options["recursive"])
        self._all_wanted = wanted or not store.meta("complete", True)

    def of(self, key: str) -> _Standing:
        if key in self._content or self._store.resolve(key) is not None:
            return "back"
        missing = self._missing.get(key)
        if missing is None:
            return Loss.NOT_REACHED if key in self._queued or self._all_wanted else Loss.NOT_WANTED
        return "foreign" if missing.verdict in FOREIGN else _LOSS_OF.get(missing.reason, Loss.REJECTED)


def unlinked_resources(store: Store, resources: Iterable[Recovered]) -> list[Recovered]:
    """What came back although no link leads there from the start pages: archives list it."""
    discovery = store.discovery()
    alias = {key: target for key, target, _ in store.aliases()}
    start = {visit_key(uri, store.rules) for uri in store.start}
    start |= {alias[key] for key in start if key in alias}
    linked: dict[str, bool] = dict.fromkeys(start, True)

    def is_linked(key: str) -> bool:
        chain = []
        while key not in linked:
            chain.append(key)
            linked[key] = False  # ends a circle
            parent, guess = discovery.get(key, (None, False))
            if parent is None:
                linked[key] = guess  # an icon or a sitemap, which browsers and crawlers fetch without a link
                break
            key = parent
        for one in chain:
            linked[one] = linked[key]
        return linked[key]

    return [resource for resource in resources if not is_linked(resource.key)]


def _outages(
    journal: Journal, listed: Mapping[str, frozenset[str]], state: Mapping[str, _Standing]
) -> tuple[Outage, ...]:
    failures = journal.failures()
    listings: dict[str, tuple[OutageKind, str]] = {}
    for one in journal.listings().values():
        if one.state in ("failed", "part"):
            kind, detail = failures.get(one.archive, ("error", one.detail))
            listings[one.archive] = (outage_kind(kind), detail or one.detail)
        elif one.state == "truncated" and not is_front(one.query):
            listings.setdefault(one.archive, (OutageKind.CUT, one.detail))
    waiting = Counter(
        name
        for key, names in listed.items()
        if state[key] in (Loss.FAILED, Loss.BLOCKED, Loss.OUT_OF_QUOTA)
        for name in names
    )
    whole = {one.archive for one in journal.listings().values() if one.state in ("done", "part", "truncated")}
    counts = Counter(name for names in listed.values() for name in names)
    found = []
    for archive in sorted({*listings, *(name for name in failures if waiting[name])}):
        kind, detail = listings.get(archive) or (outage_kind(failures[archive][0]), failures[archive][1])
        known = counts[archive] if archive in whole or counts[archive] else None
        found.append(Outage(archive, kind, detail, known, waiting[archive]))
    return tuple(found)
