"""A copy of a desk from which another can start: its database, its secrets, its results.

Hides: how each database is copied while it is used. The SQLite file is copied by SQLite itself; of PostgreSQL all
tables are read in one snapshot and written as JSON lines (its own tools make better backups, where they are set up).
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path

from recollect.errors import UsageError
from recollect.formats.containers import atomic_output
from recollect.service.database import Connection, SqliteDatabase, open_database
from recollect.service.settings import DeskSettings

TABLES = (
    "migration", "job", "recipient", "token", "event", "outbox", "budget", "rest", "worker", "credential", "block",
    "takedown",
)  # fmt: skip
_SECRETS = ("worker.token", "operator.token", "admin.password")


def write_backup(settings: DeskSettings, output: Path, *, results: bool = True) -> int:
    """Write the backup; how many files are in it."""
    folder = Path(settings.data)
    if not folder.is_dir():
        raise UsageError("no desk here", where=str(folder), hint="--data DIR")
    count = 0
    with (
        tempfile.TemporaryDirectory(prefix="recollect-backup-") as scratch,
        atomic_output(output) as file,
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
            if path.is_file() and not path.name.startswith("."):
                archive.add(path, path.relative_to(folder).as_posix())
                count += 1
    return count


def _database(settings: DeskSettings, folder: Path, scratch: Path) -> list[tuple[Path, str]]:
    if not settings.database:
        if not (folder / "desk.sqlite").is_file():
            raise UsageError("no desk here", where=str(folder), hint="--data DIR")
        database = SqliteDatabase(folder / "desk.sqlite")
        try:
            database.backup(scratch / "desk.sqlite")
        finally:
            database.close()
        return [(scratch / "desk.sqlite", "desk.sqlite")]
    opened = open_database(settings.database)
    try:
        opened.transact(lambda c: _dump(c, scratch))
    finally:
        opened.close()
    return [(scratch / f"{name}.jsonl", f"tables/{name}.jsonl") for name in TABLES]


def _dump(c: Connection, scratch: Path) -> None:
    for name in TABLES:
        with (scratch / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for row in c.rows(f"SELECT * FROM {name}"):
                file.write(json.dumps(row) + "\n")
