"""One suite over both databases of the desk: SQLite, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.desk.database import Database, open_database


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "desk.sqlite")
    address: str = request.getfixturevalue("postgres_url")
    return address


@pytest.fixture
def database(where: str) -> Iterator[Database]:
    opened = open_database(where)
    yield opened
    opened.close()


@pytest.fixture
def run(database: Database) -> Any:
    """run(function, *arguments): the function in a transaction of its own."""
    return lambda work, *given, **named: database.transact(lambda c: work(c, *given, **named))
