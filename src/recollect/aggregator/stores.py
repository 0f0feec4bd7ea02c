"""Stores of the cache: a SQLite file, or a Redis server shared between machines.

Hides: their drivers, transactions, and how they stay bounded. The file holds one table and evicts what was written
longest ago; Redis lets entries expire, and its own `maxmemory` bounds it. Several processes may use one file at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import time
from typing import Any

from recollect.errors import ResourceError, UsageError
from recollect.installation import install_command

_SCHEMA = """
create table if not exists entries (
    uri text primary key, written real not null, expires real not null, size integer not null, data blob not null
) without rowid;
create index if not exists by_age on entries (written);
"""
_PREFIX = "recollect:1:"


class FileStore:
    """A SQLite file of at most `max_bytes` of entries. A damaged one is set aside, and a new one begun."""

    def __init__(self, path: str | Path, max_bytes: int, on_problem: Callable[[str], None] | None = None) -> None:
        self._max_bytes = max_bytes
        self._lock = asyncio.Lock()
        try:
            self._db = _open(path)
        except sqlite3.OperationalError as error:  # not damaged: no such folder, no permission, locked
            raise _unusable(path, error) from error
        except sqlite3.DatabaseError as error:
            if not _was_a_cache(Path(path)):
                raise _unusable(path, error) from error
            aside = _set_aside(Path(path))
            if on_problem is not None:
                on_problem(f"the cache file is damaged and was moved to {aside}: {error}")
            try:
                self._db = _open(path)
            except sqlite3.DatabaseError as again:
                raise _unusable(path, again) from again
        # Another connection: a reader would wait for the thread that writes by the same one, and all clients with it.
        self._reading = _connect(path)
        self._total = self._count()

    async def get(self, key: str) -> bytes | None:
        query = "select data from entries where uri = ? and expires > ?"
        try:
            row = self._reading.execute(query, (key, time())).fetchone()
        except (sqlite3.Error, UnicodeError) as error:
            raise ResourceError("cannot read the cache file", why=str(error)) from error
        return bytes(row[0]) if row else None

    async def put(self, entries: Sequence[tuple[str, bytes, float]]) -> None:
        now = time()
        rows = [(uri, now, now + usable, len(data) + len(uri), data) for uri, data, usable in entries]
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, rows, now)
            except (sqlite3.Error, UnicodeError) as error:
                raise ResourceError("cannot write the cache file", why=str(error)) from error

    def _write(self, rows: list[tuple[Any, ...]], now: float) -> None:
        db = self._db
        db.execute("begin immediate")
        try:
            db.executemany("insert or replace into entries values (?, ?, ?, ?, ?)", rows)
            # Counted up, and only now and then counted again: replaced entries and other processes make it inexact.
            self._total += sum(row[3] for row in rows)
            if self._total > self._max_bytes and self._count() > self._max_bytes:
                db.execute("delete from entries where expires <= ?", (now,))
                # Down to nine tenths, so that this is not done for every write.
                db.execute(
                    "delete from entries where uri in (select uri from (select uri, sum(size) over"
                    " (order by written desc, uri) as kept from entries) where kept > ?)",
                    (self._max_bytes * 9 // 10,),
                )
        except BaseException:
            db.execute("rollback")
            raise
        db.execute("commit")
        if self._total > self._max_bytes:
            self._total = self._count()

    def _count(self) -> int:
        (total,) = self._db.execute("select coalesce(sum(size), 0) from entries").fetchone()
        return int(total)

    async def close(self) -> None:
        async with self._lock:
            self._reading.close()
            self._db.close()


def _connect(path: str | Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)


def _open(path: str | Path) -> sqlite3.Connection:
    db = _connect(path)
    try:
        # What a cache holds can be asked for again: no need to wait for the disk.
        db.executescript("pragma journal_mode=wal; pragma synchronous=off;" + _SCHEMA)
        (found,) = db.execute("pragma quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        db.execute("select count(*), sum(size) from entries").fetchone()
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db


def _was_a_cache(path: Path) -> bool:
    """Whether a file that is not a database may be a damaged cache, and not another file that was named by mistake."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0" or path.suffix in ("", ".cache", ".db", ".sqlite", ".sqlite3")


def _set_aside(path: Path) -> Path:
    """Rename a damaged file, and drop what belongs to it alone."""
    aside = path.with_name(path.name + ".damaged")
    path.replace(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside


def _unusable(path: str | Path, error: Exception) -> ResourceError:
    return ResourceError(
        "cannot use the cache file", where=str(path), why=str(error), hint="name another file, or turn the cache off"
    )


class RedisStore:
    """A Redis server, by URL (`redis://host:port/db`)."""

    def __init__(self, url: str) -> None:
        try:
            from redis.asyncio import Redis
            from redis.exceptions import RedisError
        except ImportError as error:
            raise UsageError(
                "the cache is on Redis, but its client is not installed", hint=install_command("redis")
            ) from error
        self._redis: Any = Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0)
        self._failures = (RedisError, OSError, UnicodeError)

    async def get(self, key: str) -> bytes | None:
        try:
            data: bytes | None = await self._redis.get(_PREFIX + key)
        except self._failures as error:
            raise ResourceError("cannot read from Redis", why=str(error)) from error
        return data

    async def put(self, entries: Sequence[tuple[str, bytes, float]]) -> None:
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for key, data, usable in entries:
                    pipeline.set(_PREFIX + key, data, px=max(1, int(usable * 1000)))
                await pipeline.execute()
        except self._failures as error:
            raise ResourceError("cannot write to Redis", why=str(error)) from error

    async def close(self) -> None:
        await self._redis.aclose()


def open_store(
    where: str, max_bytes: int, on_problem: Callable[[str], None] | None = None
) -> FileStore | RedisStore | None:
    """The store of a `--cache` setting: `memory` has none, `redis://` is a server, everything else a file."""
    if where == "memory":
        return None
    if where.startswith(("redis://", "rediss://", "unix://")):
        return RedisStore(where)
    return FileStore(where, max_bytes, on_problem)
