"""What other rooms and older versions rely on: where SQL lives, values instead of prose, folders of version 1."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest

import recollect.recovery
from recollect.errors import RecollectError
from recollect.recovery.journal import Journal
from recollect.recovery.outputs import Outputs
from recollect.recovery.progress import Finished, Status
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Reason, Stage, Stop, Verdict

SOURCES = Path(recollect.recovery.__file__).parent


def test_sql_lives_in_store_and_journal_alone() -> None:
    spoken = re.compile(r"\bSELECT\b|\bINSERT\b|\bUPDATE \w+ SET\b|\bDELETE FROM\b|\.db\b(?!\")|sqlite3")
    found = {p.name for p in SOURCES.glob("*.py") if spoken.search(p.read_text().replace("journal.db", ""))}
    assert found == {"store.py", "journal.py", "disk.py"}  # the last knows SQLite's error of a full disk


def test_no_behaviour_hangs_on_prose() -> None:
    for path in SOURCES.glob("*.py"):
        assert not re.search(r"detail\.(startswith|endswith)|in \w+\.detail\b", path.read_text()), path.name


VERSION_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE resource (
  key TEXT PRIMARY KEY, uri TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, number INTEGER NOT NULL,
  found_on TEXT, near TEXT, guess INTEGER NOT NULL DEFAULT 0, reason TEXT, detail TEXT,
  archive TEXT, captured_at TEXT, uri_m TEXT, status INTEGER, headers TEXT, media_type TEXT, charset TEXT,
  content_encoding TEXT, sha1 TEXT, sha256 TEXT, length INTEGER, fetched_at TEXT, redirect_to TEXT,
  altered INTEGER, live INTEGER, others TEXT
) WITHOUT ROWID;
CREATE TABLE alias (key TEXT PRIMARY KEY, target TEXT NOT NULL, why TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE attempt (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL, archive TEXT NOT NULL, uri TEXT NOT NULL, at TEXT,
  outcome TEXT NOT NULL, detail TEXT NOT NULL, digest TEXT NOT NULL);
INSERT INTO meta VALUES ('schema', '1'), ('start', '["http://a.example/"]'), ('files', '["a.example/index.html"]'),
  ('finished_at', '"20180101000000"');
INSERT INTO resource (key, uri, kind, state, number, reason, detail) VALUES
  ('http://a.example/m', 'http://a.example/m', 'page', 'missing', 1, 'rejected', 'soft-404: its title says so');
"""
OLD_ATTEMPTS = {
    "parked: it says “for sale”": Verdict.PARKED,
    "hijacked: somebody else's trade: casino": Verdict.HIJACKED,
    "redirected-away: it leads to no page of the site": Verdict.LEADS_NOWHERE,
    "redirected-away: it sends on to http://x.example/": Verdict.REDIRECTED_AWAY,
    "the bytes are not those of the index (digest differs)": Verdict.DIGEST_DIFFERS,
    "archived as status 404": Verdict.ERROR_STATUS,
    "it only leads to another spelling of itself": Verdict.OTHER_SPELLING,
    "status 500: the archive failed": None,
}


def old_folder(out: Path) -> None:
    (out / ".recollect" / "payloads").mkdir(parents=True)
    with sqlite3.connect(out / ".recollect" / "journal.db") as db:
        db.executescript(VERSION_1)
        for detail in OLD_ATTEMPTS:
            db.execute(
                """INSERT INTO attempt (key, archive, uri, at, outcome, detail, digest)
                   VALUES ('http://a.example/', 'x', 'u', '20100101000000', 'rejected', ?, '')""",
                (detail,),
            )
    db.close()


@pytest.mark.parametrize("how", [Store.create, Store.open])
def test_a_folder_of_version_1_is_read_and_resumed(tmp_path: Path, how: object) -> None:
    old_folder(tmp_path)
    (tmp_path / "a.example").mkdir()
    (tmp_path / "a.example" / "index.html").write_text("ours")
    (tmp_path / "report.html").write_text("changed by a person since")
    os.utime(tmp_path / "a.example" / "index.html", (1500000000, 1500000000))
    with how(tmp_path) as store:  # type: ignore[operator]
        assert [(m.reason, m.verdict) for m in store.missing()] == [(Reason.REJECTED, Verdict.SOFT_404)]
        attempts = Journal(store).attempts("http://a.example/")
        assert {a.detail: a.verdict for a in attempts} == OLD_ATTEMPTS
        assert store.written() == {"a.example/index.html": ""}
    with Store.open(tmp_path) as again:
        assert again.meta("schema") == 2


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store:
        store.set_meta("schema", 99)
    with pytest.raises(RecollectError, match="newer version"):
        Store.open(tmp_path)


def test_progress_is_the_share_of_what_is_known_and_one_line_of_json() -> None:
    nothing = Status(Stage.LISTING, listed=7)
    some = Status(Stage.RECOVERING, {"page": 2, "asset": 1}, {"asset": 4}, {"page": 1})
    assert nothing.progress is None and some.progress == 0.5
    assert some.to_json()["stage"] == "recovering" and some.to_json()["progress"] == 0.5
    assert Finished(False, Stop.LIMIT, 1.0).to_json()["stopped"] == "limit"


def test_outputs_are_kept_for_later_runs(tmp_path: Path) -> None:
    chosen = Outputs(wacz=False, missing="keep", summary=tmp_path / "s.tsv")
    assert Outputs.from_json(chosen.to_json()) == chosen
    assert Outputs.from_json({}) == Outputs()
