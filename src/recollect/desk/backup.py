"""A copy of a desk from which another can start: its database, its secrets, its results; and starting from one.

Hides: how each database is copied while it is used, and both formats. The SQLite file is copied by SQLite itself; of
PostgreSQL all tables are read in one snapshot and written as JSON lines. Either can be restored into either database.

    desk.sqlite | tables/NAME.jsonl   worker.token  operator.token  admin.password   results/JOB/FILE
"""

from __future__ import annotations

import json
import re
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from recollect.desk.database import Connection, DatabaseUnavailable, Row, hold_folder, open_database
from recollect.desk.migrations import MIGRATIONS
from recollect.desk.processes import private_folder
from recollect.desk.settings import DeskSettings
from recollect.errors import FormatError, UsageError
from recollect.formats.containers import atomic_output
from recollect.formats.outputs import refuse_inputs

TABLES = (
    "migration", "job", "recipient", "token", "event", "outbox", "budget", "rest", "worker", "credential", "block",
    "takedown", "removed",
)  # fmt: skip
"""In the order in which rows can be inserted. Sessions, limits and surveys of the moment are not kept."""
_NUMBERED = ("event", "outbox", "block", "takedown")
_SECRETS = ("worker.token", "operator.token", "admin.password")
_RESULT = re.compile(r"results/[0-9a-f]{16}/\.?[A-Za-z0-9][A-Za-z0-9.-]*")
_BATCH = 1000


# Writing -------------------------------------------------------------------------------------------------------------


def write_backup(settings: DeskSettings, output: Path, *, results: bool = True) -> int:
    """Write the backup; how many files are in it."""
    folder = Path(settings.data)
    if not folder.is_dir():
        raise UsageError("no desk here", where=str(folder), hint="--data DIR")
    refuse_inputs(output, [folder / name for name in ("desk.sqlite", *_SECRETS, "results") if (folder / name).exists()])
    count = 0
    with (
        tempfile.TemporaryDirectory(prefix="recollect-backup-") as scratch,
        atomic_output(output, private=True) as file,
        tarfile.open(fileobj=file, mode="w|") as archive,
    ):
        for path, name in _database(settings, folder, Path(scratch)):
            archive.add(path, name)
            count += 1
        for name in _SECRETS:
            if (folder / name).is_file():
                archive.add(folder / name, name)
                count += 1
        for path in sorted((folder / "results").rglob("*")) if results else ():
            # A file that expires meanwhile is not needed any more.
            if not path.name.endswith(".part") and _add(archive, path, path.relative_to(folder).as_posix()):
                count += 1
    return count


def _add(archive: tarfile.TarFile, path: Path, name: str) -> bool:
    try:
        with path.open("rb") as file:
            archive.addfile(archive.gettarinfo(arcname=name, fileobj=file), file)
    except (FileNotFoundError, IsADirectoryError):
        return False
    return True


def _database(settings: DeskSettings, folder: Path, scratch: Path) -> list[tuple[Path, str]]:
    if settings.database:
        _dump_postgres(settings.database, scratch)
        return [(scratch / f"{name}.jsonl", f"tables/{name}.jsonl") for name in TABLES]
    source = folder / "desk.sqlite"
    if not source.is_file():
        raise UsageError("no desk here", where=str(folder), hint="--data DIR")
    with closing(sqlite3.connect(source)) as db, closing(sqlite3.connect(scratch / "desk.sqlite")) as copy:
        db.backup(copy)
    return [(scratch / "desk.sqlite", "desk.sqlite")]


def _dump_postgres(address: str, scratch: Path) -> None:
    opened = open_database(address)

    def dump(c: Connection) -> None:
        c.change("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name in TABLES:
            with (scratch / f"{name}.jsonl").open("w", encoding="utf-8") as file:
                for row in _pages(c, name):
                    file.write(json.dumps(row) + "\n")

    try:
        opened.transact(dump)
    finally:
        opened.close()


def _pages(c: Connection, table: str) -> Iterator[Row]:
    """All rows of a table; a history is read in pages."""
    if table not in _NUMBERED:
        yield from c.rows(f"SELECT * FROM {table}")
        return
    last = 0
    while rows := c.rows(f"SELECT * FROM {table} WHERE number > ? ORDER BY number LIMIT ?", last, _BATCH):
        yield from rows
        last = rows[-1]["number"]


# Restoring -----------------------------------------------------------------------------------------------------------


def restore_backup(settings: DeskSettings, source: Path) -> int:
    """Fill an empty folder, and an empty database, from a backup; how many files were in it."""
    folder = Path(settings.data)
    private_folder(folder)
    with hold_folder(folder), tempfile.TemporaryDirectory(prefix=".restore-", dir=folder) as unpacked:
        if any((folder / name).exists() for name in ("desk.sqlite", "results", *_SECRETS)):
            raise UsageError("there is a desk here already", where=str(folder), hint="restore into an empty folder")
        scratch = Path(unpacked)
        count = _unpack(source, scratch)
        with _tables(scratch, source) as tables:
            _check_version(tables, source)
            if settings.database or not (scratch / "desk.sqlite").exists():
                _insert(settings.database or str(folder / "desk.sqlite"), tables)
        for name in ("desk.sqlite", *_SECRETS, "results"):
            if (scratch / name).exists() and not (name == "desk.sqlite" and settings.database):
                (scratch / name).replace(folder / name)
    return count


def _unpack(source: Path, scratch: Path) -> int:
    """Only files that a backup has, under names that lead nowhere else."""
    known = {"desk.sqlite", *_SECRETS, *(f"tables/{name}.jsonl" for name in TABLES)}
    count = 0
    try:
        with tarfile.open(source) as archive:
            for entry in archive:
                if not entry.isreg() or not (entry.name in known or _RESULT.fullmatch(entry.name)):
                    raise FormatError("not a backup of a desk", where=str(source), why=entry.name[:200])
                archive.extract(entry, scratch, filter="data")
                (scratch / entry.name).chmod(0o600)
                count += 1
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FormatError("cannot read the backup", where=str(source), why=str(error)) from error
    return count


@contextmanager
def _tables(scratch: Path, source: Path) -> Iterator[dict[str, Iterable[Row]]]:
    """The rows of a backup by table, whatever database it is of."""
    if (scratch / "desk.sqlite").exists():
        with closing(sqlite3.connect(scratch / "desk.sqlite")) as db:
            db.row_factory = sqlite3.Row
            yield {name: (dict(row) for row in db.execute(f"SELECT * FROM {name}")) for name in TABLES}
        return
    files: list[IO[str]] = []
    try:
        for name in TABLES:
            path = scratch / "tables" / f"{name}.jsonl"
            if not path.is_file():
                raise FormatError("not a backup of a desk", where=str(source), why=f"tables/{name}.jsonl is missing")
            files.append(path.open(encoding="utf-8"))
        yield {name: (json.loads(line) for line in file) for name, file in zip(TABLES, files, strict=True)}
    finally:
        for file in files:
            file.close()


def _check_version(tables: dict[str, Iterable[Row]], source: Path) -> None:
    version = max((int(row["number"]) for row in tables["migration"]), default=0)
    if version > len(MIGRATIONS):
        raise UsageError(
            "the backup is of a newer version of Recollect", where=str(source), why=f"{version} > {len(MIGRATIONS)}"
        )


def _insert(where: str, tables: dict[str, Iterable[Row]]) -> None:
    opened = open_database(where)
    begun = False

    def insert(c: Connection) -> None:
        nonlocal begun
        if begun:  # the rows were read already
            raise DatabaseUnavailable("the database went away", hint="restore again, into an empty folder")
        begun = True
        if c.rows("SELECT 1 AS n FROM job LIMIT 1") or c.rows("SELECT 1 AS n FROM event LIMIT 1"):
            raise UsageError("the database is not empty", hint="restore into a new database")
        for name in TABLES[1:]:
            for row in tables[name]:
                columns, marks = ", ".join(row), ", ".join("?" for _ in row)
                c.change(f"INSERT INTO {name} ({columns}) VALUES ({marks})", *row.values())
        for name in _NUMBERED if c.lock_row else ():  # PostgreSQL counts on from where a sequence is
            c.rows(f"SELECT setval(pg_get_serial_sequence('{name}', 'number'), coalesce(max(number), 1)) FROM {name}")

    try:
        opened.transact(insert)
    finally:
        opened.close()
