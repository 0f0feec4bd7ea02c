"""The store of one recovery: what came back, from where, and what is missing and why. The door between the crawl, which
fills it, and everything made from it (browsable tree, WARC, WACZ, report), which only reads it.

Hides: the SQLite journal and the payload files. Layout, all inside the output folder:

    OUT/.recollect/journal.db      SQLite in WAL mode; every commit survives kill -9
    OUT/.recollect/payloads/ab/cdef...   payloads as archived (content encoding kept), named by SHA-256
    OUT/.recollect/tmp/            payloads on their way; swept when the store is opened for writing

Invariants: a resource is queued, recovered or missing, once per visit key; a recovered resource's payload file is
complete and has the recorded digest (it is renamed into place before the row is committed); iteration is in byte order
of the key, so two runs over the same store give the same output. Content coded with gzip, deflate, br or zstd was
decoded once, within bounds, before it was accepted: `content()` of an accepted payload does not fail and is
bounded in size.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from recollect.datetimes import format_timestamp, parse_timestamp
from recollect.errors import BadURI, RecollectError, ResourceError, UsageError
from recollect.recovery.canonical import Rules, visit_key
from recollect.recovery.decoding import decoded
from recollect.recovery.payloads import PayloadWriter
from recollect.recovery.portable import PORTABLE, lacks_payloads, restore_payloads
from recollect.recovery.records import Kind, Missing, Recovered, Substitute
from recollect.recovery.similar import Precedent, Sketch
from recollect.recovery.verdicts import Reason, Verdict

FOLDER = ".recollect"
SCHEMA_VERSION = 2

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS resource (
  key TEXT PRIMARY KEY, uri TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, number INTEGER NOT NULL,
  found_on TEXT, near TEXT, guess INTEGER NOT NULL DEFAULT 0, reason TEXT, detail TEXT,
  archive TEXT, captured_at TEXT, uri_m TEXT, status INTEGER, headers TEXT, media_type TEXT, charset TEXT,
  content_encoding TEXT, sha1 TEXT, sha256 TEXT, length INTEGER, fetched_at TEXT, redirect_to TEXT,
  altered INTEGER, live INTEGER, others TEXT, verdict TEXT, confidence REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS resource_state ON resource (state, kind, number);
CREATE TABLE IF NOT EXISTS alias (key TEXT PRIMARY KEY, target TEXT NOT NULL, why TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outside (uri TEXT PRIMARY KEY, page TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS review (sha1 TEXT PRIMARY KEY, decision TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS precedent (
  sha1 TEXT PRIMARY KEY, verdict TEXT NOT NULL, sketch TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS substitute (
  key TEXT PRIMARY KEY, uri TEXT NOT NULL, kind TEXT NOT NULL, found_on TEXT, target TEXT NOT NULL, rule TEXT NOT NULL,
  evidence TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS written (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID;
"""


class Store:
    """An open store. Use as a context manager; one writer at a time, from one thread."""

    def __init__(self, out_dir: Path, connection: sqlite3.Connection, writable: bool) -> None:
        self.out_dir = out_dir
        self.folder = out_dir / FOLDER
        self.db = connection
        self.writable = writable
        self._rules: Rules | None = None

    @classmethod
    def create(cls, out_dir: Path) -> Store:
        """Open the store of an output folder for writing, making it if need be."""
        folder = out_dir / FOLDER
        if (folder / "journal.db").exists() and lacks_payloads(out_dir):
            restore_payloads(out_dir)
        if folder.is_symlink() and not folder.resolve().is_relative_to(out_dir.resolve()):
            raise RecollectError("the journal leads out of the folder", where=str(folder), why="it is a symbolic link")
        for part in (folder / "payloads", folder / "tmp"):
            part.mkdir(parents=True, exist_ok=True)
        store = cls(out_dir, _connect(folder / "journal.db"), writable=True)
        try:
            store._lock()
            store._upgrade()
            for leftover in (folder / "tmp").iterdir():
                leftover.unlink(missing_ok=True)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def in_memory(cls) -> Store:
        """A temporary store: for surveys, which fetch no payload."""
        store = cls(Path(), sqlite3.connect(":memory:"), writable=True)
        store._upgrade()
        return store

    @classmethod
    def open(cls, out_dir: Path) -> Store:
        """Open an existing store for reading (a crawl may be writing it)."""
        path = out_dir / FOLDER / "journal.db"
        if path.exists() and lacks_payloads(out_dir):
            restore_payloads(out_dir)
        if not path.exists():
            raise UsageError(
                "no recovery here", where=str(out_dir), hint=f"recollect recover http://lost.example/ -o {out_dir}"
            )
        store = cls(out_dir, _connect(path), writable=False)
        try:
            store._upgrade()
        except BaseException:
            store.close()
            raise
        return store

    def _upgrade(self) -> None:
        """Bring the tables to this version; a journal of version 1 keeps its words as verdicts."""
        with self.db:
            new = not self._columns("meta")
            version = SCHEMA_VERSION if new else self.meta("schema", 1)
            if version > SCHEMA_VERSION:
                why = f"schema {version}, this version reads up to {SCHEMA_VERSION}"
                raise RecollectError("the journal is of a newer version", where=str(self.folder), why=why)
            for table in ("resource", "attempt"):
                columns = self._columns(table)
                if columns and "verdict" not in columns:
                    self.db.execute(f"ALTER TABLE {table} ADD COLUMN verdict TEXT")
                    for verdict, pattern in _OLD_WORDS:
                        self.db.execute(f"UPDATE {table} SET verdict = ? WHERE detail LIKE ?", (verdict, pattern))
            if not new and "confidence" not in self._columns("resource"):
                self.db.execute("ALTER TABLE resource ADD COLUMN confidence REAL")
        if new or version < SCHEMA_VERSION or self.writable:
            self.db.executescript(_SCHEMA)
            if version < SCHEMA_VERSION:
                self.set_written(dict.fromkeys(self._files_of_version_1(), ""))
            self.set_meta("schema", SCHEMA_VERSION)

    def _files_of_version_1(self) -> Iterator[str]:
        """What version 1 wrote, without digests: its files are ours unless they are younger than its last run."""
        finished = self.meta("finished_at")
        end = parse_timestamp(finished).timestamp() + 600 if finished else 0.0
        for name in [*self.meta("files", []), *_OUTPUTS_OF_VERSION_1]:
            path = self.out_dir / name
            if path.is_file() and not path.is_symlink() and path.stat().st_mtime <= end:
                yield name

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self.db.execute(f"PRAGMA table_info({table})")}

    def transaction(self) -> contextlib.AbstractContextManager[object]:
        """A block whose writes are committed together, or not at all when it raises."""
        return self.db

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()
        if (lock := getattr(self, "_lock_file", None)) is not None:
            lock.close()

    def _lock(self) -> None:
        """Keep a second recovery out of the same folder; the lock goes with the process, even with kill -9."""
        self._lock_file = (self.folder / "lock").open("a+")
        try:
            import fcntl
        except ImportError:  # pragma: no cover - not on POSIX: SQLite's own locks still keep the journal whole
            return
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RecollectError(
                "another recovery is writing here",
                where=str(self.out_dir),
                hint="wait for it, or choose another folder",
            ) from error

    # What is in it -------------------------------------------------------------------------------------------------

    def recovered(self, *, redirects: bool = True) -> Iterator[Recovered]:
        """Everything that came back, in order of key; without redirects on request."""
        condition = "" if redirects else " AND redirect_to IS NULL"
        for row in self.db.execute(f"{_SELECT} WHERE state = 'recovered'{condition} ORDER BY key"):
            yield self._recovered(row)

    def missing(self) -> Iterator[Missing]:
        """Everything that was looked for and did not come back, in order of key."""
        query = """SELECT key, uri, reason, detail, kind, found_on, verdict FROM resource WHERE state = 'missing'
                   ORDER BY key"""
        for key, uri, reason, detail, kind, found_on, verdict in self.db.execute(query):
            yield Missing(key, uri, Reason(reason), detail, kind, found_on, _verdict(verdict))

    def queued(self) -> Iterator[tuple[str, str, Kind]]:
        """(key, uri, kind) of what is still to be fetched, in order of key."""
        yield from self.db.execute("SELECT key, uri, kind FROM resource WHERE state = 'queued' ORDER BY key")

    def get(self, key: str) -> Recovered | None:
        """The recovered resource of a visit key."""
        row = self.db.execute(f"{_SELECT} WHERE key = ? AND state = 'recovered'", (key,)).fetchone()
        return self._recovered(row) if row else None

    def find(self, uri: str) -> Recovered | None:
        """The resource a URI names: by its visit key, or by what was learned to be the same. Redirects not followed."""
        try:
            key = visit_key(uri, self.rules)
        except BadURI:
            return None
        if (found := self.get(key)) is not None:
            return found
        row = self.db.execute("SELECT target FROM alias WHERE key = ?", (key,)).fetchone()
        return self.get(row[0]) if row else None

    def resolve(self, uri: str, hops: int = 10) -> Recovered | None:
        """The resource with content a link to `uri` ends at, redirects followed; None when that is not in the store."""
        found = self.find(uri)
        while found is not None and found.redirect_to is not None and hops > 0:
            found, hops = self.find(found.redirect_to), hops - 1
        return found if found is not None and found.redirect_to is None else None

    def content(self, resource: Recovered) -> bytes:
        """The payload with its content encoding taken off: what a browser would have seen."""
        return decoded(resource.payload_path.read_bytes(), resource.content_encoding)

    def aliases(self) -> Iterator[tuple[str, str, str]]:
        """(key, key it stands for, why), in order of key."""
        yield from self.db.execute("SELECT key, target, why FROM alias ORDER BY key")

    def substitutes(self) -> Iterator[Substitute]:
        """Resources found under another address, in order of key."""
        if self._columns("substitute"):  # not in a journal of an earlier version, opened for reading
            rows = self.db.execute(
                "SELECT key, uri, kind, found_on, target, rule, evidence FROM substitute ORDER BY key"
            )
            yield from (Substitute(*row) for row in rows)

    def keys(self) -> set[str]:
        """The visit keys of every resource, whatever its state."""
        return {key for (key,) in self.db.execute("SELECT key FROM resource")}

    def discovery(self) -> dict[str, tuple[str | None, bool]]:
        """Key of each resource -> key of the page that first led there, and whether it was only guessed."""
        rows = self.db.execute("SELECT key, found_on, guess FROM resource")
        return {key: (found_on, bool(guess)) for key, found_on, guess in rows}

    def embedded_keys(self) -> set[str]:
        """The visit keys of what pages embed: those with a page whose date they should be near."""
        return {key for (key,) in self.db.execute("SELECT key FROM resource WHERE near IS NOT NULL")}

    def outside(self) -> Iterator[tuple[str, str]]:
        """(URI, key of a page) of everything that pages embed from outside the scope, in order of URI."""
        yield from self.db.execute("SELECT uri, page FROM outside ORDER BY uri")

    def reviewed(self) -> dict[str, str]:
        """Digest of a payload -> what a person decided about it: `accepted` or `rejected`."""
        return dict(self.db.execute("SELECT sha1, decision FROM review"))

    def precedents(self) -> tuple[Precedent, ...]:
        """Pages that a person decided about, as far as their sketches are known, in order of digest."""
        if not self._columns("precedent"):
            return ()  # a journal of an earlier version, opened for reading
        query = "SELECT decision, verdict, sketch FROM precedent JOIN review USING (sha1) ORDER BY sha1"
        rows = self.db.execute(query)
        return tuple(Precedent(word == "accepted", Verdict(v), Sketch.from_json(text)) for word, v, text in rows)

    def add_precedent(self, resource: Recovered, sketch: Sketch) -> None:
        """Remember how a page looked that a person decides about, for pages like it."""
        if resource.suspect is not None:
            with self.db:
                row = (resource.digest, resource.suspect, sketch.to_json())
                self.db.execute("INSERT OR REPLACE INTO precedent VALUES (?, ?, ?)", row)

    def written(self) -> dict[str, str]:
        """File below the output folder -> SHA-256 of what we wrote into it ("" when an older version wrote it)."""
        return dict(self.db.execute("SELECT name, sha256 FROM written"))

    def counts(self) -> dict[tuple[str, str], int]:
        """How many resources are in each (state, kind)."""
        rows = self.db.execute("SELECT state, kind, count(*) FROM resource GROUP BY state, kind")
        return {(state, kind): count for state, kind, count in rows}

    # Settings ------------------------------------------------------------------------------------------------------

    def meta(self, name: str, default: Any = None) -> Any:
        """One setting of the recovery: "start" (list of URIs), "options", "rules", "began", ..."""
        row = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else default

    def set_meta(self, name: str, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, text))

    @property
    def rules(self) -> Rules:
        """The canonicalization this recovery was made with."""
        if self._rules is None:
            self._rules = Rules.from_json(self.meta("rules", {}))
        return self._rules

    @property
    def start(self) -> list[str]:
        """The URIs the recovery began with."""
        return list(self.meta("start", []))

    def write_portable(self) -> Path:
        """Write a copy of the journal for a download, beside the journal: one file, without what belongs to this
        machine (`recovery.portable`)."""
        target = self.folder / PORTABLE
        target.unlink(missing_ok=True)
        self.db.execute("VACUUM INTO ?", (str(target),))
        with contextlib.closing(sqlite3.connect(target)) as copy, copy:
            copy.execute("DELETE FROM meta WHERE name = 'asked'")
            copy.execute("UPDATE meta SET value = json_set(value, '$.summary', NULL) WHERE name = 'outputs'")
        return target

    # Payloads ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def incoming(self) -> Iterator[PayloadWriter]:
        """A place for a payload on its way; what is not kept is gone at the end."""
        writer = PayloadWriter(self.folder)
        try:
            yield writer
        finally:
            writer.discard()

    def payload_path(self, sha256: str) -> Path:
        return self.folder / "payloads" / sha256[:2] / sha256[2:]

    def payload_name(self, resource: Recovered) -> str:
        """The SHA-256 of a resource's payload: the inverse of `payload_path`."""
        return resource.payload_path.parent.name + resource.payload_path.name

    def _recovered(self, row: tuple[Any, ...]) -> Recovered:
        (
            key,
            uri,
            captured_at,
            archive,
            uri_m,
            status,
            headers,
            media_type,
            charset,
            encoding,
            sha1,
            length,
            sha256,
        ) = row[:13]
        fetched_at, kind, redirect_to, altered, live, found_on, others, verdict, detail, confidence = row[13:]
        return Recovered(
            key=key,
            uri=uri,
            captured_at=parse_timestamp(captured_at),
            archive=archive,
            uri_m=uri_m,
            status=status,
            headers=tuple((name, value) for name, value in json.loads(headers)),
            media_type=media_type,
            charset=charset,
            content_encoding=encoding,
            digest=sha1,
            length=length,
            payload_path=self.payload_path(sha256),
            fetched_at=parse_timestamp(fetched_at),
            kind=kind,
            redirect_to=redirect_to,
            altered=bool(altered),
            live=bool(live),
            found_on=found_on,
            other_archives=tuple((name, parse_timestamp(at)) for name, at in json.loads(others)),
            suspect=_verdict(verdict),
            doubt=detail or "",
            confidence=confidence,
        )

    # Writing (the crawl, and tests that need a store) --------------------------------------------------------------

    def add_recovered(self, resource: Recovered, sha256: str) -> None:
        """Record a resource whose payload is already in place; the transaction is the caller's to commit."""
        self.db.execute(
            _INSERT_RECOVERED,
            (
                resource.key,
                resource.uri,
                format_timestamp(resource.captured_at),
                resource.archive,
                resource.uri_m,
                resource.status,
                json.dumps(resource.headers, ensure_ascii=False),
                resource.media_type,
                resource.charset,
                resource.content_encoding,
                resource.digest,
                resource.length,
                sha256,
                format_timestamp(resource.fetched_at),
                resource.kind,
                resource.redirect_to,
                int(resource.altered),
                int(resource.live),
                resource.found_on,
                json.dumps([(name, format_timestamp(at)) for name, at in resource.other_archives]),
                resource.suspect,
                resource.doubt,
                resource.confidence,
                self.next_number(),
            ),
        )

    def add_missing(self, missing: Missing) -> None:
        """Record that a resource did not come back; the transaction is the caller's to commit."""
        self.db.execute(
            """INSERT INTO resource (key, uri, kind, state, number, found_on, reason, detail, verdict)
               VALUES (?, ?, ?, 'missing', ?, ?, ?, ?, ?)
               ON CONFLICT (key) DO UPDATE SET state = 'missing', reason = excluded.reason, detail = excluded.detail,
                 verdict = excluded.verdict""",
            (
                missing.key,
                missing.uri,
                missing.kind,
                self.next_number(),
                missing.found_on,
                missing.reason,
                missing.detail,
                missing.verdict,
            ),
        )

    def add_outside(self, uri: str, page: str) -> None:
        """Record that a page embeds something from outside the scope. The caller commits."""
        self.db.execute("INSERT OR IGNORE INTO outside VALUES (?, ?)", (uri, page))

    def remove_outside(self, uri: str) -> None:
        """Forget that something is outside: the scope holds it now. The caller commits."""
        self.db.execute("DELETE FROM outside WHERE uri = ?", (uri,))

    def accept(self, resource: Recovered) -> None:
        """A person says that a suspect is the page."""
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO review VALUES (?, 'accepted')", (resource.digest,))
            self.db.execute(
                "UPDATE resource SET verdict = NULL, detail = NULL, confidence = NULL WHERE key = ?", (resource.key,)
            )

    def reject(self, resource: Recovered) -> None:
        """A person says that a suspect is not the page: it is missing, and these bytes are not taken again."""
        detail = f"dropped in a review ({resource.doubt})" if resource.doubt else "dropped in a review"
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO review VALUES (?, 'rejected')", (resource.digest,))
            self.add_missing(
                Missing(
                    resource.key,
                    resource.uri,
                    Reason.REJECTED,
                    detail,
                    resource.kind,
                    resource.found_on,
                    Verdict.DROPPED,
                )
            )
            for one in [one for one in self.substitutes() if one.target == resource.key]:
                self.db.execute("DELETE FROM alias WHERE key = ?", (one.key,))
                self.db.execute("DELETE FROM substitute WHERE key = ?", (one.key,))
                self.add_missing(Missing(one.key, one.uri, Reason.NEVER_ARCHIVED, "", one.kind, one.found_on))

    def set_written(self, files: dict[str, str]) -> None:
        """Replace the record of what we wrote."""
        with self.db:
            self.db.execute("DELETE FROM written")
            self.db.executemany("INSERT INTO written VALUES (?, ?)", sorted(files.items()))

    def forget(self, key: str) -> None:
        """Remove a resource that no page links to and that was only guessed. The caller commits."""
        self.db.execute("DELETE FROM resource WHERE key = ?", (key,))

    def add_alias(self, key: str, target: str, why: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO alias VALUES (?, ?, ?)", (key, target, why))

    def add_substitute(self, substitute: Substitute) -> None:
        """Let another address take the place of a resource that is missing. The caller commits."""
        one = substitute
        row = (one.key, one.uri, one.kind, one.found_on, one.target, one.rule, one.evidence)
        self.db.execute("INSERT OR REPLACE INTO substitute VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.forget(one.key)
        self.add_alias(one.key, one.target, f"found under another address, by the rule {one.rule}")

    def drop_substitutes(self) -> list[Substitute]:
        """Take all substitutes back, because their own addresses are looked for again. The caller commits."""
        dropped = list(self.substitutes())
        for one in dropped:
            self.db.execute("DELETE FROM alias WHERE key = ?", (one.key,))
            self.db.execute("DELETE FROM substitute WHERE key = ?", (one.key,))
        return dropped

    def next_number(self) -> int:
        """The next number of arrival: the frontier is first come, first served."""
        self._number = (
            getattr(self, "_number", None)
            or self.db.execute("SELECT coalesce(max(number), 0) FROM resource").fetchone()[0]
        )
        self._number += 1
        return int(self._number)


_COLUMNS = [
    "key",
    "uri",
    "captured_at",
    "archive",
    "uri_m",
    "status",
    "headers",
    "media_type",
    "charset",
    "content_encoding",
    "sha1",
    "length",
    "sha256",
    "fetched_at",
    "kind",
    "redirect_to",
    "altered",
    "live",
    "found_on",
    "others",
    "verdict",
    "detail",
    "confidence",
]
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM resource"
# What led to a resource first is kept; everything else is of its last recovery.
_INSERT_RECOVERED = (
    f"INSERT INTO resource ({', '.join(_COLUMNS)}, number, state) VALUES ({'?, ' * len(_COLUMNS)}?, 'recovered') "
    "ON CONFLICT (key) DO UPDATE SET state = 'recovered', reason = NULL, "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in ("key", "found_on"))
)


_OUTPUTS_OF_VERSION_1 = (
    *("report.html", "report.json", "summary.tsv", "recovered.warc.gz", "recovered.wacz"),
    *(f"rehost/{name}" for name in ("redirects.tsv", "nginx.conf", "htaccess", "robots.txt", "README.txt")),
)
# How journals of version 1 spelled verdicts at the beginning of their sentences; later patterns are more exact.
_OLD_WORDS: tuple[tuple[Verdict, str], ...] = (
    *((verdict, f"{verdict}:%") for verdict in Verdict),
    (Verdict.LEADS_NOWHERE, "redirected-away: it leads to no page of the site%"),
    (Verdict.AFTER_THE_END, "hijacked: captured only after the site's end%"),
    (Verdict.ERROR_STATUS, "archived as status %"),
    (Verdict.ERROR_STATUS, "archived only as an error%"),
    (Verdict.OTHER_SPELLING, "it only leads to another spelling of itself%"),
    (Verdict.DIGEST_DIFFERS, "the bytes are not those of the index (digest differs)%"),
)


def _verdict(word: str | None) -> Verdict | None:
    return Verdict(word) if word else None


def _connect(path: Path) -> sqlite3.Connection:
    try:
        # Journal and crawl share one thread; iterating readers must not hold locks against the writer, hence WAL.
        connection = sqlite3.connect(path, timeout=30)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error as error:
        raise ResourceError("the journal cannot be opened", where=str(path), why=str(error)) from error
    return connection
