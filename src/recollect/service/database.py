"""The two databases of the desk behind one door: SQLite for one machine, PostgreSQL for many.

Hides: placeholders, row types, transactions, locking and reconnecting. `transact(work)` runs a function in one
transaction and runs it again when the database went away in between, so `work` must do nothing but ask its connection.
SQL above this door is written once, with `?` for values.

Invariants: a transaction that reads and then writes holds its lock from the start (SQLite: BEGIN IMMEDIATE), so
nothing changes between the two; rows are dictionaries; moments are seconds since 1970 as double precision numbers,
always given by the caller.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from recollect.errors import RecollectError, UsageError
from recollect.service.migrations import MIGRATIONS, Dialect

if TYPE_CHECKING:
    import psycopg

Row = dict[str, Any]
Value = str | int | float | None
_Result = TypeVar("_Result")
_RECONNECT_SECONDS = 30.0


class DatabaseUnavailable(RecollectError):
    """The database did not come back in time."""


class Connection(Protocol):
    """What a transaction can ask."""

    def rows(self, sql: str, *values: Value) -> list[Row]: ...

    def change(self, sql: str, *values: Value) -> int:
        """Run a statement that returns nothing; how many rows it changed."""


class Database(Protocol):
    """A store of the desk; safe to use from several threads."""

    skip_locked: str
    """What a SELECT of rows to claim ends with, so that claims do not wait for each other."""

    def transact(self, work: Callable[[Connection], _Result]) -> _Result: ...

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


class SqliteDatabase:
    """One connection, one transaction at a time: several writers of one file starve each other, so only the desk
    writes, and it takes turns."""

    skip_locked = ""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._db.row_factory = sqlite3.Row
        # A job that was confirmed and a mail that was queued survive a power failure, too.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            self._db.execute(f"PRAGMA {pragma}")
        migrate(self, "sqlite", str(path))

    def transact(self, work: Callable[[Connection], _Result]) -> _Result:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                result = work(_SqliteConnection(self._db))
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            return result

    def backup(self, target: Path) -> None:
        """A consistent copy, taken while the desk works."""
        with self._lock, sqlite3.connect(target) as copy:
            self._db.backup(copy)
        copy.close()

    def close(self) -> None:
        with self._lock:
            self._db.close()


class _SqliteConnection:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return [dict(row) for row in self._db.execute(sql, values)]

    def change(self, sql: str, *values: Value) -> int:
        return self._db.execute(sql, values).rowcount


class PostgresDatabase:
    """A few connections, each used by one thread at a time; a server that restarts is waited for."""

    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise UsageError(
                "PostgreSQL needs the package psycopg", why=str(error), hint="pip install 'recollect[desk]'"
            ) from error
        self._psycopg = psycopg
        self._address = address
        self._idle: list[psycopg.Connection[Row]] = []
        self._lock = threading.Lock()
        self._closed = False
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


def _abandon(connection: psycopg.Connection[Row] | None) -> None:
    if connection is not None:
        with suppress(Exception):
            connection.close()


class _PostgresConnection:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._connection.execute(_numbered(sql), values).fetchall()

    def change(self, sql: str, *values: Value) -> int:
        return self._connection.execute(_numbered(sql), values).rowcount


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
