"""A person's files are theirs: what we did not write, or what was changed since, is never replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.errors import RecollectError
from recollect.recovery.outputs import Outputs, write_outputs
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.store import Store
from stores import fill

SITE = [("http://x.com/", "text/html", b"<p>from the archive"), ("http://x.com/s.css", "text/css", b"a{}")]


def outputs(folder: Path) -> dict[str, str]:
    with Store.create(folder) as store:
        return dict(write_outputs(store, Outputs(), lambda _p: None).kept)


def test_every_file_of_a_person_stays_and_the_new_version_goes_beside_it(tmp_path: Path) -> None:
    mine = {
        "x.com/index.html": b"my own page",
        "report.html": b"my notes",
        "recovered.warc.gz": b"my archive",
        "rehost/public/index.html": b"my upload",
        "rehost/nginx.conf": b"my server",
    }
    for name, body in mine.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(body)
    fill(tmp_path, SITE).close()
    for _ in range(2):  # and again in a later run
        kept = outputs(tmp_path)
        assert kept.keys() == mine.keys()
        assert {name: (tmp_path / name).read_bytes() for name in mine} == mine
        assert b"from the archive" in (tmp_path / kept["x.com/index.html"]).read_bytes()
        listed = json.loads((tmp_path / "report.json").read_text())["kept_files"]
        assert {row["file"] for row in listed} == mine.keys() - {"report.html"}
        # Beside it, and once, not once for every run.
        assert sorted(p.name for p in (tmp_path / "x.com").iterdir()) == [
            "index.html", "index.recollect-new.html", "s.css"
        ]  # fmt: skip


def test_a_file_changed_since_is_kept_and_an_unchanged_one_is_replaced(tmp_path: Path) -> None:
    with fill(tmp_path, SITE) as store:
        write_outputs(store, Outputs(), lambda _p: None)
    page, style = tmp_path / "x.com" / "index.html", tmp_path / "x.com" / "s.css"
    page.write_bytes(page.read_bytes() + b"<p>edited by hand")
    with Store.create(tmp_path) as store:
        store.db.execute("UPDATE resource SET media_type = 'text/plain' WHERE uri LIKE '%css'")
        store.db.commit()
        report = write_outputs(store, Outputs(), lambda _p: None)
    assert dict(report.kept) == {"x.com/index.html": "x.com/index.recollect-new.html"}
    assert page.read_bytes().endswith(b"edited by hand") and style.exists()


def test_what_we_wrote_and_a_person_changed_is_not_taken_away(tmp_path: Path) -> None:
    with fill(tmp_path, SITE) as store:
        write_outputs(store, Outputs(), lambda _p: None)
        (tmp_path / "x.com" / "s.css").write_text("mine now")
        store.db.execute("DELETE FROM resource WHERE uri LIKE '%css'")
        store.db.commit()
        write_outputs(store, Outputs(), lambda _p: None)
    assert (tmp_path / "x.com" / "s.css").read_text() == "mine now"
    assert not (tmp_path / "rehost" / "public" / "s.css").exists(), "which no user changed"


def test_links_are_replaced_neither_as_files_nor_as_folders(tmp_path: Path) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    (outside / "precious.html").write_text("precious")
    (out / "x.com").mkdir(parents=True)
    (out / "x.com" / "index.html").symlink_to(outside / "precious.html")
    fill(out, SITE).close()
    kept = outputs(out)
    assert (outside / "precious.html").read_text() == "precious" and (out / "x.com" / "index.html").is_symlink()
    assert kept == {"x.com/index.html": "x.com/index.recollect-new.html"}
    (out / "rehost" / "public").rename(tmp_path / "moved")
    (out / "rehost" / "public").symlink_to(outside)
    with pytest.raises(RecollectError, match="leads out"):
        outputs(out)
    assert sorted(p.name for p in outside.iterdir()) == ["precious.html"]


def test_a_folder_in_the_place_of_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "x.com" / "s.css" / "inside").mkdir(parents=True)
    fill(tmp_path, SITE).close()
    assert outputs(tmp_path) == {"x.com/s.css": "x.com/s.recollect-new.css"}


def test_a_summary_elsewhere_is_a_person_s_file_too(tmp_path: Path) -> None:
    place = tmp_path / "mine.tsv"
    place.write_text("mine")
    with fill(tmp_path / "site", SITE) as store:
        write_outputs(store, Outputs(summary=place), lambda _p: None)
    assert place.read_text() == "mine" and (tmp_path / "mine.recollect-new.tsv").exists()


def test_half_a_file_is_not_a_file(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store:
        files = OwnFiles(store)
        with pytest.raises(RuntimeError), files.open("a/b.txt") as out:
            out.write(b"half")
            raise RuntimeError
    assert list((tmp_path / "a").iterdir()) == []


def test_a_journal_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / ".recollect").symlink_to(outside)
    with pytest.raises(RecollectError, match="leads out"):
        Store.create(tmp_path / "site")
    assert list(outside.iterdir()) == []
