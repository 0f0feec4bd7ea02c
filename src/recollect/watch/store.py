"""The database of a watch: sites, every visit, every observation of a resource, and notices that are still to be sent.

Hides: SQL. One SQLite file (`DIR/watch.sqlite3`, write-ahead log). Invariants: a visit and all that follows from it
(state, observations, notice) is one transaction, so that a process killed at any moment loses no visit that it
finished; a notice is unique by site, kind and the moment its cause began.

    site         uri, options, status, fingerprint, next visit
    visit        site, at, what was seen and why; append-only
    resource     site, uri: last confirmed live state, what archives hold
    address      a number for each resource, for `observation`
    observation  address, at: what a visit found of a resource; append-only
    tally        site, at: number of resources in each state, for the chart over time
    notice       site, kind, since: one row for each change; `sent_at` when it was sent
    hook         notice: attempts to post it to a webhook
    recovery     folder: the recovery of one loss, here or at a desk
    save         uri: resources that an archive was asked to save, and what became of it

Times are stored as ISO 8601 in UTC. Visits, observations and tallies older than a year are thinned (`compact`).
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recollect.errors import RecollectError, ResourceError, UsageError
from recollect.watch.records import (
    Attempts,
    Facts,
    Notes,
    NoticeRecord,
    Observation,
    OnLoss,
    RecoveryRecord,
    RecoveryState,
    Resource,
    Save,
    SaveState,
    Site,
    VisitRecord,
)
from recollect.watch.states import Held, Live, Notice, ResourceState, SiteState, SiteStatus, VisitResult

NAME = "watch.sqlite3"
LOCK = "watch.lock"
KEPT_WHOLE = timedelta(days=365)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS site (
  uri TEXT PRIMARY KEY, added_at TEXT NOT NULL, sample INTEGER NOT NULL, on_loss TEXT NOT NULL, archives TEXT NOT NULL,
  allow_private INTEGER NOT NULL, email TEXT NOT NULL, webhook TEXT NOT NULL,
  state TEXT NOT NULL, since TEXT, last_own TEXT, failing_since TEXT, failures INTEGER NOT NULL,
  nameless INTEGER NOT NULL, foreign_since TEXT, confirmed INTEGER NOT NULL,
  fingerprint TEXT NOT NULL, registration TEXT NOT NULL, last_visit TEXT, next_visit TEXT NOT NULL,
  moved_to TEXT NOT NULL, recovery TEXT NOT NULL, last_failed TEXT, every REAL NOT NULL DEFAULT 86400,
  canary TEXT NOT NULL DEFAULT '', kind TEXT, kind_since TEXT, notes TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS visit (
  number INTEGER PRIMARY KEY, site TEXT NOT NULL, at TEXT NOT NULL, seen TEXT NOT NULL, state TEXT NOT NULL,
  why TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS visit_site ON visit (site, at);
CREATE TABLE IF NOT EXISTS resource (
  site TEXT NOT NULL, uri TEXT NOT NULL, media_type TEXT NOT NULL, live TEXT NOT NULL, live_at TEXT, held TEXT NOT NULL,
  held_at TEXT, fresh REAL, digest TEXT NOT NULL, etag TEXT NOT NULL, archives TEXT NOT NULL,
  gone_since TEXT, told_at TEXT, copy TEXT NOT NULL DEFAULT '', copied_at TEXT, facts TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (site, uri)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS address (
  number INTEGER PRIMARY KEY, site TEXT NOT NULL, uri TEXT NOT NULL, UNIQUE (site, uri));
CREATE TABLE IF NOT EXISTS observation (
  address INTEGER NOT NULL, at TEXT NOT NULL, status INTEGER NOT NULL, live TEXT NOT NULL, held TEXT NOT NULL,
  fresh REAL, answers TEXT NOT NULL DEFAULT '', PRIMARY KEY (address, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tally (
  site TEXT NOT NULL, at TEXT NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (site, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notice (
  number INTEGER PRIMARY KEY, site TEXT NOT NULL, kind TEXT NOT NULL, since TEXT NOT NULL, at TEXT NOT NULL,
  why TEXT NOT NULL, sent_at TEXT, UNIQUE (site, kind, since));
CREATE TABLE IF NOT EXISTS hook (
  notice INTEGER PRIMARY KEY, attempts INTEGER NOT NULL, next_at TEXT NOT NULL, done INTEGER NOT NULL,
  error TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recovery (
  folder TEXT PRIMARY KEY, site TEXT NOT NULL, state TEXT NOT NULL, at TEXT NOT NULL, next_at TEXT NOT NULL,
  job TEXT NOT NULL, token TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS save (
  uri TEXT PRIMARY KEY, site TEXT NOT NULL, at TEXT NOT NULL, state TEXT NOT NULL, next_at TEXT NOT NULL,
  job TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
"""
_LATER_COLUMNS = {
    "site": (
        *("last_failed TEXT", "every REAL NOT NULL DEFAULT 86400", "canary TEXT NOT NULL DEFAULT ''", "kind TEXT"),
        *("kind_since TEXT", "notes TEXT NOT NULL DEFAULT ''"),
    ),
    "resource": (
        *("gone_since TEXT", "told_at TEXT", "copy TEXT NOT NULL DEFAULT ''", "copied_at TEXT"),
        "facts TEXT NOT NULL DEFAULT ''",
    ),
    "observation": ("answers TEXT NOT NULL DEFAULT ''",),
}
"""Columns that databases of earlier versions do not have."""
_SITE_COLUMNS = (
    *("uri", "added_at", "sample", "on_loss", "archives", "allow_private", "email", "webhook", "fingerprint"),
    *("registration", "last_visit", "next_visit", "moved_to", "recovery", "canary"),
)
_STATUS_COLUMNS = (
    *("state", "since", "last_own", "failing_since", "failures", "nameless", "foreign_since", "confirmed"),
    *("last_failed", "kind", "kind_since"),
)
_RESOURCE_COLUMNS = (
    *("site", "uri", "media_type", "live", "live_at", "held", "held_at", "fresh", "digest", "gone_since", "told_at"),
    *("copy", "copied_at"),
)
_DAY = timedelta(days=1)
_MOST_DETAIL = 4000


class Busy(RecollectError):
    """Another process runs this watch."""


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
        self._put(
            "site",
            {
                **{name: getattr(site, name) for name in _SITE_COLUMNS},
                **{name: getattr(status, name) for name in _STATUS_COLUMNS},
                "every": site.every.total_seconds(),
                "notes": site.notes.to_json(),
            },
        )

    def _put(self, table: str, row: Mapping[str, Any]) -> None:
        """Add or replace a row; times become text."""
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        values = [_text(value) if isinstance(value, datetime) else value for value in row.values()]
        self._db.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", values)

    def sites(self) -> list[Site]:
        return [_site(row) for row in self._db.execute("SELECT * FROM site ORDER BY uri")]

    def site(self, uri: str) -> Site | None:
        row = self._db.execute("SELECT * FROM site WHERE uri = ?", (uri,)).fetchone()
        return _site(row) if row is not None else None

    def due(self, now: datetime) -> list[Site]:
        """Sites that were never visited, or whose next visit has come, or is planned further ahead than any visit is:
        then the clock was wrong."""
        found = [
            site
            for site in self.sites()
            if site.last_visit is None or site.next_visit <= now or site.next_visit > now + 2 * max(_DAY, site.every)
        ]
        return sorted(found, key=lambda site: (site.next_visit, site.uri))

    def remove(self, uri: str) -> bool:
        """Forget a site and all its observations; recoveries stay."""
        with self.transaction():
            self._db.execute("DELETE FROM hook WHERE notice IN (SELECT number FROM notice WHERE site = ?)", (uri,))
            self._db.execute(
                "DELETE FROM observation WHERE address IN (SELECT number FROM address WHERE site = ?)", (uri,)
            )
            for table in ("visit", "resource", "address", "tally", "notice", "recovery", "save"):
                self._db.execute(f"DELETE FROM {table} WHERE site = ?", (uri,))
            return self._db.execute("DELETE FROM site WHERE uri = ?", (uri,)).rowcount > 0

    # --- observations

    def add_visit(self, past: VisitRecord) -> None:
        self._db.execute(
            "INSERT INTO visit (site, at, seen, state, why) VALUES (?, ?, ?, ?, ?)",
            (past.site, _text(past.at), past.seen, past.state, past.why),
        )

    def visits(self, site: str = "") -> list[VisitRecord]:
        rows = self._db.execute("SELECT * FROM visit WHERE ? IN ('', site) ORDER BY at, number", (site,))
        return [
            VisitRecord(
                row["site"], _read_time(row["at"]), VisitResult(row["seen"]), SiteState(row["state"]), row["why"]
            )
            for row in rows
        ]

    def offline_since(self) -> dict[str, datetime]:
        """By site, when the visits began that said nothing because the local network failed; only where the last visit
        is one of these."""
        rows = self._db.execute(
            """SELECT site, min(at) AS since FROM visit AS one WHERE seen = 'offline' AND number > coalesce(
                 (SELECT max(number) FROM visit WHERE site = one.site AND seen != 'offline'), 0) GROUP BY site"""
        )
        return {row["site"]: _read_time(row["since"]) for row in rows}

    def put_resource(self, resource: Resource) -> None:
        self._put(
            "resource",
            {
                **{name: getattr(resource, name) for name in _RESOURCE_COLUMNS},
                "etag": resource.validator,
                "archives": json.dumps(resource.archives),
                "facts": resource.facts.to_json(),
            },
        )

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
                _read_time_or_none(row["gone_since"]),
                _read_time_or_none(row["told_at"]),
                row["copy"],
                _read_time_or_none(row["copied_at"]),
                Facts.from_json(row["facts"]),
            )
            for row in rows
        ]

    def forget_resource(self, site: str, uri: str) -> None:
        """Forget a resource that is not wanted any more; its observations stay."""
        self._db.execute("DELETE FROM resource WHERE site = ? AND uri = ?", (site, uri))

    def forget_holding(self, site: str, uri: str) -> None:
        """Let the archives be asked again for a resource on the next visit."""
        self._db.execute("UPDATE resource SET held_at = NULL WHERE site = ? AND uri = ?", (site, uri))

    def add_observation(self, seen: Observation) -> None:
        """Add what a visit found; one row for each resource and moment."""
        self._db.execute("INSERT OR IGNORE INTO address (site, uri) VALUES (?, ?)", (seen.site, seen.uri))
        self._db.execute(
            """INSERT OR REPLACE INTO observation
               SELECT number, ?, ?, ?, ?, ?, ? FROM address WHERE site = ? AND uri = ?""",
            (
                *(_text(seen.at), seen.status, seen.live, seen.held, seen.fresh),
                *(json.dumps(dict(seen.answers)) if seen.answers else "", seen.site, seen.uri),
            ),
        )

    def observations(self, site: str) -> list[Observation]:
        """All that was found of the resources of a site, oldest first."""
        rows = self._db.execute(
            """SELECT site, uri, at, status, live, held, fresh, answers
               FROM observation JOIN address ON address = number WHERE site = ? ORDER BY at, uri""",
            (site,),
        )
        return [
            Observation(
                *(row["site"], row["uri"], _read_time(row["at"]), row["status"], Live(row["live"])),
                *(Held(row["held"]), row["fresh"], json.loads(row["answers"]) if row["answers"] else {}),
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
        """Thin what is older than a year to the last of each month; changes of state stay."""
        before = _text(now - KEPT_WHOLE)
        with self.transaction():
            gone = self._db.execute(
                """DELETE FROM visit WHERE at < ? AND number NOT IN (
                     SELECT max(number) FROM visit GROUP BY site, substr(at, 1, 7)
                     UNION SELECT min(number) FROM visit GROUP BY site, state, substr(at, 1, 7))""",
                (before,),
            ).rowcount
            gone += self._db.execute(
                """DELETE FROM observation WHERE at < ? AND (address, at) NOT IN (
                     SELECT address, max(at) FROM observation WHERE at < ? GROUP BY address, substr(at, 1, 7)
                     UNION SELECT address, min(at) FROM observation WHERE at < ?
                       GROUP BY address, live, held, substr(at, 1, 7))""",
                (before, before, before),
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

    def pending(self) -> list[NoticeRecord]:
        rows = self._db.execute("SELECT * FROM notice WHERE sent_at IS NULL ORDER BY number")
        return [_notice(row) for row in rows]

    def notices(self) -> list[NoticeRecord]:
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

    # --- what follows a change

    def put_recovery(self, one: RecoveryRecord) -> None:
        values = (
            *(one.folder, one.site, one.state, _text(one.at), _text(one.next_at), one.job, one.token),
            one.detail[:_MOST_DETAIL],
        )
        self._db.execute("INSERT OR REPLACE INTO recovery VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def recovery(self, folder: str) -> RecoveryRecord | None:
        row = self._db.execute("SELECT * FROM recovery WHERE folder = ?", (folder,)).fetchone()
        return _recovering(row) if row is not None else None

    def recoveries(self, site: str = "") -> list[RecoveryRecord]:
        """All recoveries of a site, or of all sites, the last one first."""
        rows = self._db.execute("SELECT * FROM recovery WHERE ? IN ('', site) ORDER BY at DESC, folder", (site,))
        return [_recovering(row) for row in rows]

    def put_save(self, one: Save) -> None:
        values = (one.uri, one.site, _text(one.at), one.state, _text(one.next_at), one.job[:200], one.detail[:500])
        self._db.execute("INSERT OR REPLACE INTO save VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def saves(self, site: str) -> dict[str, Save]:
        """Resources of a site that an archive was asked to save, by address."""
        rows = self._db.execute("SELECT * FROM save WHERE site = ? ORDER BY uri", (site,))
        return {
            row["uri"]: Save(
                *(row["site"], row["uri"], _read_time(row["at"]), SaveState(row["state"]), _read_time(row["next_at"])),
                *(row["job"], row["detail"]),
            )
            for row in rows
        }


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
        _add_columns(db)
    except sqlite3.Error as error:
        raise ResourceError("cannot open the data of the watch", where=str(path), why=str(error)) from error
    return db


def _add_columns(db: sqlite3.Connection) -> None:
    """Add the columns that databases of earlier versions do not have, and give one its present name."""
    if any(row["name"] == "portrait" for row in db.execute("PRAGMA table_info(site)")):
        db.execute("ALTER TABLE site RENAME COLUMN portrait TO fingerprint")
    for table, columns in _LATER_COLUMNS.items():
        known = {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}
        for column in columns:
            if column.partition(" ")[0] not in known:
                db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")


def _recovering(row: sqlite3.Row) -> RecoveryRecord:
    return RecoveryRecord(
        *(row["folder"], row["site"], RecoveryState(row["state"]), _read_time(row["at"]), _read_time(row["next_at"])),
        *(row["job"], row["token"], row["detail"]),
    )


def _notice(row: sqlite3.Row) -> NoticeRecord:
    return NoticeRecord(
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
        _read_time_or_none(row["last_failed"]),
        SiteState(row["kind"]) if row["kind"] else None,
        _read_time_or_none(row["kind_since"]),
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
        fingerprint=row["fingerprint"],
        registration=row["registration"],
        last_visit=_read_time_or_none(row["last_visit"]),
        moved_to=row["moved_to"],
        recovery=row["recovery"],
        every=timedelta(seconds=row["every"]),
        canary=row["canary"],
        notes=Notes.from_json(row["notes"]),
    )


def _text(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment is not None else None


def _read_time(stored: str) -> datetime:
    return datetime.strptime(stored, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _read_time_or_none(stored: str | None) -> datetime | None:
    return _read_time(stored) if stored is not None else None
