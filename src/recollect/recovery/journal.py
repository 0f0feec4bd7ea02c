"""The crawl's memory beside what it recovered: captures that were listed, how far each listing came, what was tried,
which requests went to which archive. In the same SQLite file as the store, so that one commit holds a whole step.

Hides: tables, and the arithmetic of quotas. Invariants: every step is committed when it is done, so a killed recovery
goes on from its last step; a request is counted before it is sent, so a quota is never exceeded by a crash.

    capture  (key, archive, uri, at)  one line of a listing, under its visit key
    listing  (archive, query)         state done | part | failed, cursor for the next page
    attempt  key, archive, uri, at    what came of a fetch or a question
    held     (archive, uri, at)       a payload that was fetched for its blocks, whatever was recovered
    note     (archive, uri, at)       of a file on this disk: origin of the time, marks
    failure  archive                  kind and words of its last failure in the last run that asked it
    version  (key, at, archive)       one more capture of what was recovered, with its record (--all-captures)
    usage    archive                  requests of the current period, and in all, by kind
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from recollect.datetimes import format_timestamp, parse_timestamp
from recollect.recovery.choose import Candidate
from recollect.recovery.plan import Attempt
from recollect.recovery.records import Kind, Missing, Recovered, Version
from recollect.recovery.store import Store
from recollect.recovery.verdicts import RETRIED, Reason, Verdict

ListingState = Literal["done", "truncated", "part", "failed"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS capture (
  key TEXT NOT NULL, archive TEXT NOT NULL, uri TEXT NOT NULL, at TEXT NOT NULL, status INTEGER,
  media_type TEXT NOT NULL, digest TEXT NOT NULL, length INTEGER, revisit INTEGER NOT NULL, altered INTEGER NOT NULL,
  locator TEXT NOT NULL,
  PRIMARY KEY (key, archive, at, uri)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS listing (
  archive TEXT NOT NULL, query TEXT NOT NULL, state TEXT NOT NULL, cursor TEXT NOT NULL, captures INTEGER NOT NULL,
  detail TEXT NOT NULL, PRIMARY KEY (archive, query)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempt (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL, archive TEXT NOT NULL, uri TEXT NOT NULL, at TEXT,
  outcome TEXT NOT NULL, detail TEXT NOT NULL, digest TEXT NOT NULL, verdict TEXT);
CREATE INDEX IF NOT EXISTS attempt_key ON attempt (key);
CREATE TABLE IF NOT EXISTS held (
  archive TEXT NOT NULL, uri TEXT NOT NULL, at TEXT NOT NULL, encoding TEXT NOT NULL, sha256 TEXT NOT NULL,
  PRIMARY KEY (archive, uri, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note (
  archive TEXT NOT NULL, uri TEXT NOT NULL, at TEXT NOT NULL, origin TEXT NOT NULL, marks TEXT NOT NULL,
  PRIMARY KEY (archive, uri, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failure (
  archive TEXT PRIMARY KEY, kind TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS version (
  key TEXT NOT NULL, at TEXT NOT NULL, archive TEXT NOT NULL, repeats TEXT, sha256 TEXT NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (key, at, archive)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (
  archive TEXT PRIMARY KEY, period_began REAL NOT NULL, in_period INTEGER NOT NULL, listed INTEGER NOT NULL,
  fetched INTEGER NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Queued:
    """A resource to be fetched; `near` is the date of the page that embeds it, a `guess` may turn out to be nothing."""

    key: str
    uri: str
    kind: Kind
    found_on: str | None = None
    near: datetime | None = None
    guess: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """How far the listing of one archive for one query came."""

    archive: str
    query: str
    state: ListingState
    cursor: str = ""
    captures: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A payload in the store that was fetched for its blocks; `encoding` is its content encoding."""

    uri: str
    captured_at: datetime
    encoding: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader has to know about a capture of a file on this disk."""

    archive: str
    uri: str
    captured_at: datetime
    origin: str  # of its time
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests to one archive."""

    period_began: float = 0.0
    in_period: int = 0
    listed: int = 0
    fetched: int = 0

    @property
    def requests(self) -> int:
        return self.listed + self.fetched


class Journal:
    """The crawl's tables of an open store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.db: sqlite3.Connection = store.db
        if store.writable:
            self.db.executescript(_SCHEMA)

    # The frontier --------------------------------------------------------------------------------------------------

    def enqueue(self, item: Queued) -> bool:
        """Put a resource on the frontier unless it was ever there; True when it is new. The caller commits."""
        cursor = self.db.execute(
            "INSERT OR IGNORE INTO resource (key, uri, kind, state, number, found_on, near, guess) "
            "VALUES (?, ?, ?, 'queued', ?, ?, ?, ?)",
            (item.key, item.uri, item.kind, self.store.next_number(), item.found_on, _stamp(item.near), item.guess),
        )
        return cursor.rowcount > 0

    def queue(self) -> list[Queued]:
        """What is on the frontier, first come first."""
        query = "SELECT key, uri, kind, found_on, near, guess FROM resource WHERE state = 'queued' ORDER BY number"
        return [
            Queued(key, uri, kind, on, _moment(near), bool(guess))
            for key, uri, kind, on, near, guess in self.db.execute(query)
        ]

    def transaction(self) -> AbstractContextManager[object]:
        """A block whose writes are committed together, or not at all when it raises."""
        return self.store.transaction()

    def unsettled(self) -> bool:
        """Is anything left to fetch, or missing for a reason that another run may mend?"""
        marks = ", ".join("?" * len(RETRIED))
        query = (
            f"""SELECT 1 FROM resource WHERE state = 'queued' OR (state = 'missing' AND reason IN ({marks})) LIMIT 1"""
        )
        return self.db.execute(query, tuple(RETRIED)).fetchone() is not None

    def requeue(self, reasons: Iterable[Reason]) -> int:
        """Put what is missing for one of these reasons back on the frontier, and forget its failures."""
        total = 0
        with self.db:
            for reason in reasons:
                self.db.execute(
                    """DELETE FROM attempt WHERE (outcome IN ('failed', 'absent', 'blocked') OR at IS NULL) AND key IN
                       (SELECT key FROM resource WHERE state = 'missing' AND reason = ?)""",
                    (reason,),
                )
                total += self.db.execute(
                    """UPDATE resource SET state = 'queued', reason = NULL, detail = NULL, verdict = NULL
                       WHERE state = 'missing' AND reason = ?""",
                    (reason,),
                ).rowcount
        return total

    def requeue_key(self, key: str) -> None:
        """Put one resource back on the frontier. The caller commits."""
        self.db.execute("UPDATE resource SET state = 'queued' WHERE key = ?", (key,))

    def add_missing(self, missing: Missing) -> None:
        with self.db:
            self.store.add_missing(missing)

    # Listings ------------------------------------------------------------------------------------------------------

    def add_captures(self, captures: Iterable[tuple[str, Candidate]]) -> None:
        """Captures under their visit keys. The caller commits."""
        self.db.executemany(
            "INSERT OR IGNORE INTO capture VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    key,
                    c.archive,
                    c.uri,
                    format_timestamp(c.captured_at),
                    c.status,
                    c.media_type,
                    c.digest,
                    c.length,
                    c.revisit,
                    c.altered,
                    c.locator,
                )
                for key, c in captures
            ),
        )

    def add_notes(self, notes: Iterable[Note]) -> None:
        """The caller commits."""
        self.db.executemany(
            "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?)",
            ((n.archive, n.uri, format_timestamp(n.captured_at), n.origin, " ".join(n.marks)) for n in notes),
        )

    def notes(self) -> Iterator[Note]:
        """None in a journal from before there were any."""
        if self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'note'").fetchone():
            for archive, uri, at, origin, marks in self.db.execute("SELECT archive, uri, at, origin, marks FROM note"):
                yield Note(archive, uri, parse_timestamp(at), origin, tuple(marks.split()))

    def place_of(self, archive: str, digest: str, uri: str) -> str | None:
        """Where an archive has bytes with a digest, best under this URI; for revisits of files."""
        self.db.execute("CREATE INDEX IF NOT EXISTS capture_digest ON capture (digest)")
        query = "SELECT locator FROM capture WHERE digest = ? AND archive = ? AND NOT revisit ORDER BY uri != ? LIMIT 1"
        row = self.db.execute(query, (digest, archive, uri)).fetchone()
        return str(row[0]) if row else None

    def candidates(self, key: str) -> list[Candidate]:
        """Every listed capture of a visit key."""
        return [_candidate(row) for row in self.db.execute(f"{_CAPTURES} WHERE key = ?", (key,))]

    def all_captures(self) -> Iterator[tuple[str, Candidate]]:
        """(key, capture) of every listed capture, by key."""
        for key, *row in self.db.execute(f"SELECT key, {_CAPTURE_COLUMNS} FROM capture ORDER BY key, at, archive, uri"):
            yield key, _candidate(tuple(row))

    def listed_keys(self) -> tuple[set[str], set[str]]:
        """The visit keys with at least one capture that could be content, and those listed only as redirects."""
        content = {key for (key,) in self.db.execute(f"SELECT DISTINCT key FROM capture WHERE {_CONTENT}")}
        leading = {key for (key,) in self.db.execute(f"SELECT DISTINCT key FROM capture WHERE {_REDIRECT}")}
        return content, leading - content

    def listed_resources(self) -> list[tuple[str, str, bool]]:
        """(key, a URI, is it a page) of everything that is listed, by key."""
        query = "SELECT key, uri, max(media_type LIKE '%html%') FROM capture GROUP BY key ORDER BY key"
        return [(key, uri, bool(is_page)) for key, uri, is_page in self.db.execute(query)]

    def spelling(self, key: str) -> str | None:
        """A URI under which a visit key is listed."""
        row = self.db.execute("SELECT uri FROM capture WHERE key = ? LIMIT 1", (key,)).fetchone()
        return row[0] if row else None

    def unreached(self) -> list[str]:
        """A URI of each resource that is listed with content and was never on the frontier, by key."""
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'capture'").fetchone():
            return []
        query = """SELECT min(uri) FROM capture WHERE (status IS NULL OR status = 200)
                   AND key NOT IN (SELECT key FROM resource) AND key NOT IN (SELECT key FROM alias)
                   GROUP BY key ORDER BY key"""
        return [uri for (uri,) in self.db.execute(query)]

    def repeated_digests(self, least: int = 2) -> dict[str, int]:
        """How many different resources share the bytes of an HTML capture: error pages do, real pages rarely."""
        query = """SELECT digest, count(DISTINCT key) FROM capture WHERE digest != '' AND status = 200
                   AND media_type LIKE '%html%' GROUP BY digest HAVING count(DISTINCT key) >= ?"""
        return dict(self.db.execute(query, (least,)))

    def listings(self) -> dict[tuple[str, str], Listing]:
        rows = self.db.execute(
            "SELECT archive, query, state, cursor, captures, detail FROM listing ORDER BY archive, query"
        )
        return {(row[0], row[1]): Listing(*row) for row in rows}

    def set_listing(self, listing: Listing) -> None:
        """Record how far a listing came. The caller commits, together with the captures it brought."""
        self.db.execute(
            "INSERT OR REPLACE INTO listing VALUES (?, ?, ?, ?, ?, ?)",
            (listing.archive, listing.query, listing.state, listing.cursor, listing.captures, listing.detail),
        )

    def forget_listings(self) -> None:
        """List everything afresh next time; captures already known stay known."""
        with self.db:
            self.db.execute("DELETE FROM listing")

    # Attempts ------------------------------------------------------------------------------------------------------

    def add_attempt(self, key: str, attempt: Attempt) -> None:
        """The caller commits."""
        self.db.execute(
            """INSERT INTO attempt (key, archive, uri, at, outcome, detail, digest, verdict)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                key,
                attempt.archive,
                attempt.uri,
                _stamp(attempt.captured_at),
                attempt.outcome,
                attempt.detail,
                attempt.digest,
                attempt.verdict,
            ),
        )

    def attempts(self, key: str) -> list[Attempt]:
        query = "SELECT archive, uri, at, outcome, detail, digest, verdict FROM attempt WHERE key = ? ORDER BY number"
        return [
            Attempt(archive, uri, _moment(at), outcome, detail, digest, Verdict(verdict) if verdict else None)
            for archive, uri, at, outcome, detail, digest, verdict in self.db.execute(query, (key,))
        ]

    # Captures that were fetched for their blocks ----------------------------------------------------------------------

    def hold_capture(self, candidate: Candidate, encoding: str, sha256: str) -> None:
        """Remember the payload of a capture, which is in the store."""
        at = format_timestamp(candidate.captured_at)
        with self.db:
            row = (candidate.archive, candidate.uri, at, encoding, sha256)
            self.db.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?)", row)

    def held_capture(self, candidate: Candidate) -> Held | None:
        at = format_timestamp(candidate.captured_at)
        query = "SELECT uri, at, encoding, sha256 FROM held WHERE archive = ? AND uri = ? AND at = ?"
        row = self.db.execute(query, (candidate.archive, candidate.uri, at)).fetchone()
        return _held(row) if row else None

    def held_captures(self) -> Iterator[Held]:
        """Every such payload, newest first; none in a journal from before there were any."""
        if self.db.execute("SELECT name FROM sqlite_master WHERE name = 'held'").fetchone():
            query = "SELECT uri, at, encoding, sha256 FROM held ORDER BY at DESC, uri, archive"
            yield from map(_held, self.db.execute(query))

    # All captures of what came back --------------------------------------------------------------------------------

    def add_version(self, version: Version, sha256: str) -> None:
        """Record one more capture, whose payload is in the store. The caller commits."""
        one = version.resource
        record = {name: getattr(one, name) for name in _VERSION_FIELDS}
        record |= {"headers": list(one.headers), "fetched_at": format_timestamp(one.fetched_at)}
        row = (one.key, format_timestamp(one.captured_at), one.archive, _stamp(version.repeats), sha256)
        self.db.execute("INSERT OR REPLACE INTO version VALUES (?, ?, ?, ?, ?, ?)", (*row, json.dumps(record)))

    def versions(self, key: str | None = None) -> Iterator[Version]:
        """Further captures, of one resource or of all, by key and time; a journal of an earlier version has none."""
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'version'").fetchone():
            return
        query = "SELECT key, at, archive, repeats, sha256, record FROM version"
        rows = self.db.execute(f"{query} WHERE ?1 IS NULL OR key = ?1 ORDER BY key, at, archive", (key,))
        for own, at, archive, repeats, sha256, text in rows.fetchall():
            record = json.loads(text)
            record["headers"] = tuple((name, value) for name, value in record["headers"])
            record["fetched_at"] = parse_timestamp(record["fetched_at"])
            path = self.store.payload_path(sha256)
            resource = Recovered(key=own, captured_at=parse_timestamp(at), archive=archive, payload_path=path, **record)
            yield Version(resource, _moment(repeats))

    # Failures of archives --------------------------------------------------------------------------------------------

    def note_failure(self, archive: str, kind: str, detail: str) -> None:
        """Remember that an archive failed; `kind` is that of the error. The caller commits."""
        self.db.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?)", (archive, kind, detail))

    def forget_failures(self, archives: Iterable[str]) -> None:
        """Before archives are asked again."""
        with self.db:
            self.db.executemany("DELETE FROM failure WHERE archive = ?", ((name,) for name in archives))

    def failures(self) -> dict[str, tuple[str, str]]:
        """Archive -> (kind, words) of its last failure; none in a journal from before they were kept."""
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'failure'").fetchone():
            return {}
        rows = self.db.execute("SELECT archive, kind, detail FROM failure ORDER BY archive")
        return {archive: (kind, detail) for archive, kind, detail in rows}

    # Usage ---------------------------------------------------------------------------------------------------------

    def usage(self, archive: str) -> Usage:
        row = self.db.execute(
            "SELECT period_began, in_period, listed, fetched FROM usage WHERE archive = ?", (archive,)
        ).fetchone()
        return Usage(*row) if row else Usage()

    def usages(self) -> dict[str, Usage]:
        rows = self.db.execute("SELECT archive, period_began, in_period, listed, fetched FROM usage ORDER BY archive")
        return {archive: Usage(*rest) for archive, *rest in rows}

    def count_request(
        self, archive: str, kind: Literal["listed", "fetched"], period: float, now: float | None = None
    ) -> None:
        """Count a request that is about to be sent; a new period begins when the last one is over."""
        now = time.time() if now is None else now
        with self.db:
            self.db.execute(
                f"""INSERT INTO usage VALUES (?1, ?2, 1, {int(kind == "listed")}, {int(kind == "fetched")})
                    ON CONFLICT (archive) DO UPDATE SET {kind} = {kind} + 1,
                      in_period = CASE WHEN ?2 >= period_began + ?3 THEN 1 ELSE in_period + 1 END,
                      period_began = CASE WHEN ?2 >= period_began + ?3 THEN ?2 ELSE period_began END""",
                (archive, now, period),
            )

    def charge(self, archive: str, requests: int, now: float | None = None) -> None:
        """Count requests made elsewhere in this period (Warrick's --initial-used-queries)."""
        now = time.time() if now is None else now
        with self.db:
            self.db.execute(
                """INSERT INTO usage VALUES (?1, ?2, ?3, 0, 0)
                   ON CONFLICT (archive) DO UPDATE SET in_period = in_period + ?3""",
                (archive, now, requests),
            )


def budget_left(usage: Usage, limit: int | None, period: float, now: float) -> int | None:
    """Requests left in the current period; None without a limit."""
    if limit is None:
        return None
    used = usage.in_period if now < usage.period_began + period else 0
    return max(0, limit - used)


_VERSION_FIELDS = (
    *("uri", "uri_m", "status", "media_type", "charset", "content_encoding", "digest", "length", "kind", "redirect_to"),
    *("altered", "found_on"),
)
_CAPTURE_COLUMNS = "archive, uri, at, status, media_type, digest, length, revisit, altered, locator"
_CAPTURES = f"SELECT {_CAPTURE_COLUMNS} FROM capture"
_CONTENT = "(status IS NULL OR status IN (200, 203, 226))"
_REDIRECT = "status IN (301, 302, 303, 307, 308)"


def _candidate(row: tuple[Any, ...]) -> Candidate:
    archive, uri, at, status, media_type, digest, length, revisit, altered, locator = row
    return Candidate(
        archive, uri, parse_timestamp(at), status, media_type, digest, length, bool(revisit), bool(altered), locator
    )


def _held(row: tuple[str, str, str, str]) -> Held:
    return Held(row[0], parse_timestamp(row[1]), row[2], row[3])


def _stamp(moment: datetime | None) -> str | None:
    return format_timestamp(moment) if moment is not None else None


def _moment(stamp: str | None) -> datetime | None:
    return parse_timestamp(stamp) if stamp else None


def now_utc() -> datetime:
    """The present moment, without microseconds."""
    return datetime.now(UTC).replace(microsecond=0)
