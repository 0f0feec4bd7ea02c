"""The memory of a watch: sites, every visit, every observation of a resource, and notices that are still to be sent.

Hides: SQL. One SQLite file (`DIR/watch.sqlite3`, write-ahead log). Invariants: a visit and all that follows from it
(state, observations, notice) is one transaction, so that a process killed at any moment loses no visit that it
finished and sends nothing twice; a notice is unique by site, kind and the moment its cause began.

    site      uri, options, status, portrait, next visit
    visit     site, at, what was seen and why; append-only
    resource  site, uri: last confirmed live state, what archives hold
    tally     site, at: how many resources are in each state, for the chart over time
    notice    site, kind, since: one row per thing to be written about; `sent_at` when it was
    hook      notice: attempts to post it to a webhook
    asked     uri: resources that an archive was asked to save, and the answer

Times are stored as ISO 8601 in UTC. Observations older than a year are thinned to one a month (`compact`).
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from recollect.errors import RecollectError, ResourceError, UsageError
from recollect.watch.identity import Portrait
from recollect.watch.states import Held, Live, Notice, ResourceState, Seen, SiteState, SiteStatus, resource_state

NAME = "watch.sqlite3"
LOCK = "watch.lock"
KEPT_WHOLE = timedelta(days=365)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS site (
  uri TEXT PRIMARY KEY, added_at TEXT NOT NULL, sample INTEGER NOT NULL, on_loss TEXT NOT NULL, archives TEXT NOT NULL,
  allow_private INTEGER NOT NULL, email TEXT NOT NULL, webhook TEXT NOT NULL,
  state TEXT NOT NULL, since TEXT, last_own TEXT, failing_since TEXT, failures INTEGER NOT NULL,
  nameless INTEGER NOT NULL, foreign_since TEXT, confirmed INTEGER NOT NULL,
  portrait TEXT NOT NULL, registration TEXT NOT NULL, last_visit TEXT, next_visit TEXT NOT NULL,
  moved_to TEXT NOT NULL, recovery TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS visit (
  number INTEGER PRIMARY KEY, site TEXT NOT NULL, at TEXT NOT NULL, seen TEXT NOT NULL, state TEXT NOT NULL,
  why TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS visit_site ON visit (site, at);
CREATE TABLE IF NOT EXISTS resource (
  site TEXT NOT NULL, uri TEXT NOT NULL, media_type TEXT NOT NULL, live TEXT NOT NULL, live_at TEXT, held TEXT NOT NULL,
  held_at TEXT, fresh REAL, digest TEXT NOT NULL, etag TEXT NOT NULL, archives TEXT NOT NULL,
  PRIMARY KEY (site, uri)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tally (
  site TEXT NOT NULL, at TEXT NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (site, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notice (
  number INTEGER PRIMARY KEY, site TEXT NOT NULL, kind TEXT NOT NULL, since TEXT NOT NULL, at TEXT NOT NULL,
  why TEXT NOT NULL, sent_at TEXT, UNIQUE (site, kind, since));
CREATE TABLE IF NOT EXISTS hook (
  notice INTEGER PRIMARY KEY, attempts INTEGER NOT NULL, next_at TEXT NOT NULL, done INTEGER NOT NULL,
  error TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS asked (
  uri TEXT PRIMARY KEY, site TEXT NOT NULL, at TEXT NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID;
"""


class Busy(RecollectError):
    """Another process runs this watch."""


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

    def known(self) -> Portrait:
        return Portrait.from_json(self.portrait)


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
    etag: str = ""
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
    seen: Seen
    state: SiteState
    why: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A notice that was not sent yet."""

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


class Store:
    """An open data folder."""

    def __init__(self, folder: str | Path, *, create: bool = True, read_only: bool = False) -> None:
        self.folder = Path(folder)
        if create:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                why = error.strerror or str(error)
                raise ResourceError("cannot make the folder of the watch", where=str(folder), why=why) from error
        elif not (self.folder / NAME).exists():
            raise UsageError("nothing is watched here", where=str(folder), hint="recollect watch add --data DIR URI")
        self._db = _connect(self.folder / NAME, read_only)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of a run: two at once would visit, recover and notify twice. Freed by the system at death."""
        with (self.folder / LOCK).open("ab") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                hint = "wait for it to end, or stop it"
                raise Busy("another `watch run` works here", where=str(self.folder), hint=hint) from error
            yield

    # --- sites

    def put_site(self, site: Site) -> None:
        """Add or replace a site."""
        status = site.status
        values = (
            *(site.uri, _text(site.added_at), site.sample, site.on_loss, site.archives, site.allow_private),
            *(site.email, site.webhook, status.state, _text(status.since), _text(status.last_own)),
            *(_text(status.failing_since), status.failures, status.nameless, _text(status.foreign_since)),
            *(status.confirmed, site.portrait, site.registration, _text(site.last_visit), _text(site.next_visit)),
            *(site.moved_to, site.recovery),
        )
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT OR REPLACE INTO site VALUES ({marks})", values)

    def sites(self) -> list[Site]:
        return [_site(row) for row in self._db.execute("SELECT * FROM site ORDER BY uri")]

    def site(self, uri: str) -> Site | None:
        row = self._db.execute("SELECT * FROM site WHERE uri = ?", (uri,)).fetchone()
        return _site(row) if row is not None else None

    def due(self, now: datetime) -> list[Site]:
        """Sites whose next visit has come; a visit planned far beyond the next day, because the clock jumped, too."""
        late = _text(now + timedelta(days=2))
        rows = self._db.execute(
            "SELECT * FROM site WHERE next_visit <= ? OR next_visit > ? ORDER BY next_visit", (_text(now), late)
        )
        return [_site(row) for row in rows]

    def remove(self, uri: str) -> bool:
        """Forget a site and all its observations; recoveries stay."""
        with self.transaction():
            self._db.execute("DELETE FROM hook WHERE notice IN (SELECT number FROM notice WHERE site = ?)", (uri,))
            for table in ("visit", "resource", "tally", "notice", "asked"):
                self._db.execute(f"DELETE FROM {table} WHERE site = ?", (uri,))
            return self._db.execute("DELETE FROM site WHERE uri = ?", (uri,)).rowcount > 0

    # --- observations

    def add_visit(self, past: Past) -> None:
        self._db.execute(
            "INSERT INTO visit (site, at, seen, state, why) VALUES (?, ?, ?, ?, ?)",
            (past.site, _text(past.at), past.seen, past.state, past.why),
        )

    def visits(self, site: str = "") -> list[Past]:
        rows = self._db.execute("SELECT * FROM visit WHERE ? IN ('', site) ORDER BY at, number", (site,))
        return [
            Past(row["site"], _read_time(row["at"]), Seen(row["seen"]), SiteState(row["state"]), row["why"])
            for row in rows
        ]

    def put_resource(self, resource: Resource) -> None:
        values = (
            *(resource.site, resource.uri, resource.media_type, resource.live, _text(resource.live_at), resource.held),
            *(_text(resource.held_at), resource.fresh, resource.digest, resource.etag, json.dumps(resource.archives)),
        )
        self._db.execute(f"INSERT OR REPLACE INTO resource VALUES ({', '.join('?' * len(values))})", values)

    def resources(self, site: str) -> list[Resource]:
        rows = self._db.execute("SELECT * FROM resource WHERE site = ? ORDER BY uri", (site,))
        return [
            Resource(
                row["site"],
                row["uri"],
                row["media_type"],
                Live(row["live"]),
                _read_time_or_none(row["live_at"]),
                Held(row["held"]),
                _read_time_or_none(row["held_at"]),
                row["fresh"],
                row["digest"],
                row["etag"],
                tuple(json.loads(row["archives"])),
            )
            for row in rows
        ]

    def add_tally(self, site: str, at: datetime, counts: Mapping[ResourceState, int]) -> None:
        self._db.execute("INSERT OR REPLACE INTO tally VALUES (?, ?, ?)", (site, _text(at), json.dumps({**counts})))

    def tallies(self, site: str = "") -> list[tuple[str, datetime, dict[ResourceState, int]]]:
        rows = self._db.execute("SELECT * FROM tally WHERE ? IN ('', site) ORDER BY at", (site,))
        return [
            (
                row["site"],
                _read_time(row["at"]),
                {ResourceState(k): int(v) for k, v in json.loads(row["counts"]).items()},
            )
            for row in rows
        ]

    def tally_times(self) -> list[datetime]:
        return [_read_time(row["at"]) for row in self._db.execute("SELECT DISTINCT at FROM tally ORDER BY at")]

    def compact(self, now: datetime) -> int:
        """Thin visits and tallies older than a year to the last of each month; changes of state stay."""
        before = _text(now - KEPT_WHOLE)
        with self.transaction():
            gone = self._db.execute(
                """DELETE FROM visit WHERE at < ? AND number NOT IN (
                     SELECT max(number) FROM visit GROUP BY site, substr(at, 1, 7)
                     UNION SELECT min(number) FROM visit GROUP BY site, state, substr(at, 1, 7))""",
                (before,),
            ).rowcount
            gone += self._db.execute(
                """DELETE FROM tally WHERE at < ? AND (site, at) NOT IN (
                     SELECT site, max(at) FROM tally GROUP BY site, substr(at, 1, 7))""",
                (before,),
            ).rowcount
        return gone

    # --- notices

    def add_notice(self, site: str, kind: Notice, since: datetime, at: datetime, why: str) -> bool:
        """Queue a notice; False if it was queued before."""
        done = self._db.execute(
            "INSERT OR IGNORE INTO notice (site, kind, since, at, why) VALUES (?, ?, ?, ?, ?)",
            (site, kind, _text(since), _text(at), why),
        )
        return done.rowcount > 0

    def pending(self) -> list[Pending]:
        rows = self._db.execute("SELECT * FROM notice WHERE sent_at IS NULL ORDER BY number")
        return [_notice(row) for row in rows]

    def notices(self) -> list[Pending]:
        """All notices, sent or not, newest first."""
        return [_notice(row) for row in self._db.execute("SELECT * FROM notice ORDER BY at DESC, number DESC")]

    def sent(self, number: int, at: datetime) -> None:
        self._db.execute("UPDATE notice SET sent_at = ? WHERE number = ?", (_text(at), number))

    def attempts(self, number: int) -> Attempts | None:
        row = self._db.execute("SELECT * FROM hook WHERE notice = ?", (number,)).fetchone()
        return Attempts(row["attempts"], _read_time(row["next_at"]), bool(row["done"]), row["error"]) if row else None

    def put_attempts(self, number: int, tried: Attempts) -> None:
        values = (number, tried.count, _text(tried.next_at), tried.done, tried.error[:500])
        self._db.execute("INSERT OR REPLACE INTO hook VALUES (?, ?, ?, ?, ?)", values)

    # --- requests to save

    def put_asked(self, site: str, uri: str, at: datetime, answer: str) -> None:
        values = (uri, site, _text(at), answer[:500])
        self._db.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?)", values)

    def asked(self, site: str) -> dict[str, tuple[datetime, str]]:
        """Resources of a site that an archive was asked to save: when, and its answer."""
        rows = self._db.execute("SELECT * FROM asked WHERE site = ? ORDER BY uri", (site,))
        return {row["uri"]: (_read_time(row["at"]), row["answer"]) for row in rows}


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Open without writing: with the log of a process that writes, or, where there is none, the file alone."""
    for option in ("mode=ro", "immutable=1"):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?{option}", uri=True, isolation_level=None, timeout=30)
        db.row_factory = sqlite3.Row
        try:
            db.execute("SELECT count(*) FROM site")
        except sqlite3.Error as error:
            db.close()
            why = str(error)
        else:
            return db
    raise ResourceError("cannot read the data of the watch", where=str(path), why=why)


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Open the file; to read only, also where the folder cannot be written."""
    if read_only and not os.access(path.parent, os.W_OK):
        return _connect_to_read(path)
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=30)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(_SCHEMA)
    except sqlite3.Error as error:
        raise ResourceError("cannot open the data of the watch", where=str(path), why=str(error)) from error
    return db


def _notice(row: sqlite3.Row) -> Pending:
    return Pending(
        row["number"], row["site"], Notice(row["kind"]), _read_time(row["since"]), _read_time(row["at"]), row["why"]
    )


def _site(row: sqlite3.Row) -> Site:
    status = SiteStatus(
        SiteState(row["state"]),
        _read_time_or_none(row["since"]),
        _read_time_or_none(row["last_own"]),
        _read_time_or_none(row["failing_since"]),
        row["failures"],
        row["nameless"],
        _read_time_or_none(row["foreign_since"]),
        bool(row["confirmed"]),
    )
    site = Site(row["uri"], _read_time(row["added_at"]), _read_time(row["next_visit"]), status=status)
    return replace(
        site,
        sample=row["sample"],
        on_loss=OnLoss(row["on_loss"]),
        archives=row["archives"],
        allow_private=bool(row["allow_private"]),
        email=row["email"],
        webhook=row["webhook"],
        portrait=row["portrait"],
        registration=row["registration"],
        last_visit=_read_time_or_none(row["last_visit"]),
        moved_to=row["moved_to"],
        recovery=row["recovery"],
    )


def _text(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment is not None else None


def _read_time(stored: str) -> datetime:
    return datetime.strptime(stored, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _read_time_or_none(stored: str | None) -> datetime | None:
    return _read_time(stored) if stored is not None else None
