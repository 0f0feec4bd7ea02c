"""The two databases of the desk with one interface: SQLite for one machine, PostgreSQL for many.

Hides: placeholders, row types, transactions, locking and reconnecting. `transact(work)` runs a function in one
transaction and runs it again when the database went away in between, so `work` may only use its connection.
SQL above this door is written once, with `?` for values.

Invariants: a transaction that reads and then writes holds its lock from the start (SQLite: BEGIN IMMEDIATE), so
nothing changes between the two; rows are dictionaries; moments are seconds since 1970 as double precision numbers,
always given by the caller.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from recollect.desk.migrations import MIGRATIONS, Dialect
from recollect.errors import RecollectError, ResourceError, UsageError
from recollect.installation import install_command

if TYPE_CHECKING:
    import psycopg

Row = dict[str, Any]
Value = str | int | float | None
_Result = TypeVar("_Result")
_RECONNECT_SECONDS = 30.0
_CLAIM_SECONDS = 5.0  # a desk that was just stopped may still be ending
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000", "secure_delete=ON")
_SCRUBBED = 1  # user_version of a file in which nothing deleted is left
_DESK_LOCK = 0x7265636F6C6C  # "recoll"


class DatabaseUnavailable(RecollectError):
    """The database did not come back in time."""


class Connection(Protocol):
    """What a transaction can ask."""

    def rows(self, sql: str, *values: Value) -> list[Row]: ...

    def change(self, sql: str, *values: Value) -> int:
        """Run a statement that returns nothing; how many rows it changed."""

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds this name, then hold it until the end of this transaction."""

    lock_row: str
    """What a SELECT of a row ends with that is changed later in the same transaction."""


class Database(Protocol):
    """A store of the desk; safe to use from several threads."""

    skip_locked: str
    """What a SELECT of rows to claim ends with, so that claims do not wait for each other."""

    def transact(self, work: Callable[[Connection], _Result]) -> _Result: ...

    def scrub(self) -> None:
        """Overwrite what was deleted, where the database keeps a copy of it for a while."""

    def claim_for_desk(self) -> bool:
        """Make this process the only desk of the database, or see that it still is; False when there is another."""

    def close(self) -> None: ...


def one(rows: Sequence[Row]) -> Row | None:
    """The first row, if there is one."""
    return rows[0] if rows else None


def open_database(where: str | Path) -> Database:
    """The database at a PostgreSQL address or in a file, with its tables as this version needs them."""
    text = str(where)
    if text.startswith(("postgresql://", "postgres://")):
        return PostgresDatabase(text)
    if "://" in text:
        raise UsageError("unknown kind of database", where=text.partition("://")[0], hint="postgresql://… or a file")
    return SqliteDatabase(Path(text))


@contextmanager
def hold_folder(folder: Path, seconds: float = _CLAIM_SECONDS) -> Iterator[None]:
    """Be the only desk of a folder: two would send twice what archives allow. Raises ResourceError."""
    handle = os.open(folder / "desk.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise ResourceError("another desk uses this folder", where=str(folder), hint="--data DIR") from None
                time.sleep(0.1)
        yield
    finally:
        os.close(handle)


class SqliteDatabase:
    """One connection, one transaction at a time: several writers of one file starve each other, so only the desk
    writes, and it takes turns."""

    skip_locked = ""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Addresses of people are in it; SQLite gives its other files the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._db.row_factory = sqlite3.Row
        # A job that was confirmed and a mail that was queued survive a power failure, too.
        # What was deleted is overwritten: addresses of people and names of their sites are in it.
        for pragma in _PRAGMAS:
            self._db.execute(f"PRAGMA {pragma}")
        migrate(self, "sqlite", str(path))
        if self._db.execute("PRAGMA user_version").fetchone()[0] < _SCRUBBED:
            self._db.execute("VACUUM")  # what was deleted before that
            self._db.execute(f"PRAGMA user_version = {_SCRUBBED}")

    def transact(self, work: Callable[[Connection], _Result]) -> _Result:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                result = work(_SqliteConnection(self._db))
                self._db.execute("COMMIT")
            except sqlite3.OperationalError as error:
                # A full disk, or a file that another program keeps locked: the next transaction may succeed.
                self._undo()
                raise DatabaseUnavailable("the database cannot be written", why=str(error)) from error
            except BaseException:
                self._undo()
                raise
            return result

    def _undo(self) -> None:
        if self._db.in_transaction:  # SQLite itself undoes some failed transactions
            self._db.execute("ROLLBACK")

    def scrub(self) -> None:
        """Empty the write-ahead log, which has pages as they were."""
        with self._lock, suppress(sqlite3.OperationalError):  # a reader of the file delays it to the next time
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def claim_for_desk(self) -> bool:
        """The folder of the file is locked by its desk."""
        return True

    def close(self) -> None:
        with self._lock:
            self._db.close()


class _SqliteConnection:
    lock_row = ""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return [dict(row) for row in self._db.execute(sql, _storable(values))]

    def change(self, sql: str, *values: Value) -> int:
        return self._db.execute(sql, _storable(values)).rowcount

    def lock(self, name: str) -> None:
        """Transactions take turns anyway."""


class PostgresDatabase:
    """A few connections, each used by one thread at a time; a server that restarts is waited for."""

    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise UsageError(
                "PostgreSQL needs the package psycopg", why=str(error), hint=install_command("desk")
            ) from error
        self._psycopg = psycopg
        self._address = address
        self._idle: list[psycopg.Connection[Row]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._held: psycopg.Connection[Any] | None = None
        migrate(self, "postgresql", "the database")

    def transact(self, work: Callable[[Connection], _Result]) -> _Result:
        lost = self._psycopg.OperationalError
        until = time.monotonic() + _RECONNECT_SECONDS
        pause = 0.05
        while True:
            connection: psycopg.Connection[Row] | None = None
            try:
                connection = self._take()
                with connection.transaction():
                    result = work(_PostgresConnection(connection))
                self._give_back(connection)
                return result
            except (lost, self._psycopg.InterfaceError) as error:
                # The server restarts, or two transactions were in each other's way: once more, from the beginning.
                _abandon(connection)
                if self._closed or time.monotonic() > until:
                    raise DatabaseUnavailable("the database does not answer", why=str(error).strip()) from error
                time.sleep(pause)
                pause = min(pause * 2, 1.0)
            except BaseException:
                _abandon(connection)
                raise

    def scrub(self) -> None:
        """PostgreSQL overwrites deleted rows by itself (autovacuum)."""

    def claim_for_desk(self) -> bool:
        """By a lock of a session of its own, which PostgreSQL gives up when this process ends."""
        if self._held is not None:
            with suppress(self._psycopg.Error):
                self._held.execute("SELECT 1")
                return True
            self._held = None  # the server was started again
        until = time.monotonic() + _CLAIM_SECONDS
        while True:
            held = self._psycopg.connect(self._address, autocommit=True, connect_timeout=10)
            row = held.execute("SELECT pg_try_advisory_lock(%s)", (_DESK_LOCK,)).fetchone()
            if row is not None and row[0]:
                self._held = held
                return True
            held.close()
            if time.monotonic() > until:
                return False
            time.sleep(0.2)

    def _take(self) -> psycopg.Connection[Row]:
        from psycopg.rows import dict_row

        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._psycopg.connect(self._address, row_factory=dict_row, autocommit=True, connect_timeout=10)

    def _give_back(self, connection: psycopg.Connection[Row]) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        if self._held is not None:
            self._held.close()


def _abandon(connection: psycopg.Connection[Row] | None) -> None:
    if connection is not None:
        with suppress(Exception):
            connection.close()


class _PostgresConnection:
    lock_row = " FOR UPDATE"

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._connection.execute(_numbered(sql), _storable(values)).fetchall()

    def change(self, sql: str, *values: Value) -> int:
        return self._connection.execute(_numbered(sql), _storable(values)).rowcount

    def lock(self, name: str) -> None:
        self.rows("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name)


def _storable(values: Sequence[Value]) -> tuple[Value, ...]:
    """Texts without what PostgreSQL or UTF-8 cannot hold: NUL and lone surrogates, which JSON can carry."""
    return tuple(_text(value) if isinstance(value, str) else value for value in values)


def _text(value: str) -> str:
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _numbered(sql: str) -> bytes:
    """Our SQL has `?` for values and no other question or percent marks."""
    return sql.replace("?", "%s").encode()


# Migrations ----------------------------------------------------------------------------------------------------------


def migrate(database: Database, dialect: Dialect, where: str) -> int:
    """Bring the tables to the newest version, one numbered step per transaction; the version it was at before."""

    def version(connection: Connection) -> int:
        connection.change("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY)")
        return int(connection.rows("SELECT coalesce(max(number), 0) AS number FROM migration")[0]["number"])

    before = database.transact(version)
    newest = len(MIGRATIONS)
    if before > newest:
        raise RecollectError(
            "the database is of a newer version of Recollect", where=where, why=f"{before}, this one knows {newest}"
        )
    for number in range(before + 1, newest + 1):

        def step(connection: Connection, number: int = number) -> None:
            if dialect == "postgresql":  # two desks that start at once take turns
                connection.change("LOCK TABLE migration IN EXCLUSIVE MODE")
            if connection.rows("SELECT number FROM migration WHERE number = ?", number):
                return
            for statement in MIGRATIONS[number - 1](dialect):
                connection.change(statement)
            connection.change("INSERT INTO migration VALUES (?)", number)

        database.transact(step)
    return before
