"""A backup of either database starts a desk on either."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from recollect.desk import people, queue
from recollect.desk.backup import TABLES, restore_backup, write_backup
from recollect.desk.database import hold_folder, open_database
from recollect.desk.jobs import parse_submission
from recollect.desk.settings import DeskSettings
from recollect.desk.states import State
from recollect.errors import FormatError, ResourceError, UsageError


def settings_of(folder: Path, where: str) -> DeskSettings:
    return DeskSettings(data=str(folder), database=where if where.startswith("postgres") else "")


@pytest.fixture
def desk(where: str, tmp_path: Path) -> DeskSettings:
    """A desk with a job that is ready, in the folder of the database."""
    folder = tmp_path / "one"
    folder.mkdir()
    settings = settings_of(folder, where)
    database = open_database(settings.database or folder / "desk.sqlite")
    asked = parse_submission({"uri": "http://lost.example/", "email": "anna@mail.example", "name": "Zoë"}, [])
    one = database.transact(lambda c: people.submit(c, asked, 1.5, settings, confirmed_by="test"))
    job = database.transact(lambda c: queue.claim(c, "w", 2.0, settings, database.skip_locked))
    assert job is not None and job.id == one.job
    database.transact(lambda c: queue.pack(c, queue.Lease(job.id, job.fence, "w"), 2.0, settings))
    result = {"files": {}, "summary": {"recovered": 3}}
    database.transact(lambda c: queue.deliver(c, queue.Lease(job.id, job.fence, "w"), 3.0, settings, result))
    database.transact(lambda c: people.block(c, "site", "bad.example", "no", 4.0))
    database.close()
    place = folder / "results" / job.id
    place.mkdir(parents=True)
    (place / "result.zip").write_bytes(b"PK")
    (place / ".result.zip.sha256").write_text("0")
    (place / ".abc.part").write_text("half")
    (folder / "operator.token").write_text("secret\n")
    return settings


def rows(settings: DeskSettings) -> dict[str, list[Any]]:
    database = open_database(settings.database or Path(settings.data) / "desk.sqlite")
    found = {
        name: database.transact(lambda c, name=name: c.rows(f"SELECT * FROM {name} ORDER BY 1"))  # type: ignore[misc]
        for name in TABLES
    }
    database.close()
    return found


@pytest.mark.parametrize("into", ["sqlite", "postgresql"])
def test_a_backup_of_either_database_starts_a_desk_on_either(
    desk: DeskSettings, into: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backup = tmp_path / "backup.tar.gz"
    assert write_backup(desk, backup) >= 3
    expected = rows(desk)
    if into == "postgresql" and desk.database:
        # There is one empty database for a test: as after a disaster, the old one is gone.
        import psycopg

        with psycopg.connect(desk.database, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
    where = request.getfixturevalue("postgres_url") if into == "postgresql" else ""
    new = settings_of(tmp_path / "two", where)
    restore_backup(new, backup)
    assert rows(new) == expected and len(expected["event"]) == 5
    [job] = expected["job"]
    files = sorted(path.name for path in (tmp_path / "two" / "results" / job["id"]).iterdir())
    assert files == [".result.zip.sha256", "result.zip"]
    secret = tmp_path / "two" / "operator.token"
    assert secret.read_text() == "secret\n" and secret.stat().st_mode & 0o777 == 0o600
    # And it goes on from there: numbers of new events follow the old ones.
    database = open_database(new.database or tmp_path / "two" / "desk.sqlite")
    database.transact(lambda c: queue.record(c, job["id"], "x", None, State.READY, 9.0, "test"))
    assert [e["number"] for e in database.transact(queue.history)] == [1, 2, 3, 4, 5, 6]
    database.close()


def test_nothing_that_is_there_is_overwritten(desk: DeskSettings, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar.gz"
    write_backup(desk, backup)
    before = rows(desk)
    with pytest.raises(UsageError, match="there is a desk here already"):
        restore_backup(desk, backup)
    if desk.database:
        with pytest.raises(UsageError, match="the database is not empty"):
            restore_backup(DeskSettings(data=str(tmp_path / "two"), database=desk.database), backup)
        assert not (tmp_path / "two" / "operator.token").exists()
    assert rows(desk) == before


def test_not_beside_a_running_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    with hold_folder(folder), pytest.raises(ResourceError, match="another desk"), hold_folder(folder, 0.0):
        pass


@pytest.mark.parametrize("name", ["../outside", "results/../../outside", "/etc/x", "tables/../x", "bin/sh"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE])
def test_a_backup_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, kind: bytes) -> None:
    source = tmp_path / "bad.tar"
    with tarfile.open(source, "w") as archive:
        entry = tarfile.TarInfo(name if kind == tarfile.REGTYPE else "operator.token")
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry, io.BytesIO(b""))
    with pytest.raises(FormatError):
        restore_backup(DeskSettings(data=str(tmp_path / "new")), source)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["desk.lock"]


def test_a_file_that_is_not_a_backup_is_named(tmp_path: Path) -> None:
    source = tmp_path / "no.tar"
    source.write_bytes(b"not a tar")
    with pytest.raises(FormatError, match="cannot read the backup"):
        restore_backup(DeskSettings(data=str(tmp_path / "new")), source)
