"""A lost website back from files and folders, alone and together with a real archive, by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pywb_archive import Capture, pywb_archive, write_warc
from sources_world import page, recollect, report

HOME = Capture("http://lost.example/", "20150101000000", page("Frogs", "/toads.html", "/newts.html"))
TOADS = Capture("http://lost.example/toads.html", "20150102000000", page("Toads", "/"))
NEWER = Capture("http://lost.example/toads.html", "20170102000000", page("Toads of today", "/"))
NEWTS = Capture("http://lost.example/newts.html", "20150103000000", page("Newts", "/"))


def test_a_warc_alone_becomes_a_site_and_the_address_is_said(tmp_path: Path) -> None:
    write_warc(tmp_path / "crawl.warc.gz", [HOME, TOADS, NEWTS, Capture("http://cdn.example/x", "20150101000000")])
    done = recollect("recover", "--only", tmp_path / "crawl.warc.gz", "-o", tmp_path / "site")
    assert "address: http://lost.example/ (3 of 4 pages are of lost.example)" in done.stderr
    assert b"<title>Toads" in (tmp_path / "site/lost.example/toads.html").read_bytes()
    found = report(tmp_path / "site")
    assert set(found) == {HOME.uri, TOADS.uri, NEWTS.uri}
    assert {one["archive"] for one in found.values()} == {"crawl.warc.gz"}
    assert str(tmp_path) not in (tmp_path / "site/report.json").read_text()


def test_a_file_and_an_archive_are_one_choice_and_the_newer_capture_wins(tmp_path: Path) -> None:
    write_warc(tmp_path / "old.warc.gz", [HOME, TOADS, NEWTS])
    with pywb_archive(tmp_path / "pywb", [HOME, NEWER]) as archive:
        entry = {"id": "pywb", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}
        (tmp_path / "archives.json").write_text(json.dumps([entry]))
        given = ("http://lost.example/", "--archives", tmp_path / "archives.json", "--also", tmp_path / "old.warc.gz")
        table = recollect("survey", *given).stdout
        assert "old.warc.gz" in table and "pywb" in table
        recollect("recover", *given, "-o", tmp_path / "site")
    found = report(tmp_path / "site")
    assert found[TOADS.uri]["archive"] == "pywb"
    assert found[TOADS.uri]["other_archives"] == {"old.warc.gz": "2015-01-02T00:00:00Z"}
    assert found[NEWTS.uri]["archive"] == "old.warc.gz"


def test_a_resumed_recovery_reads_the_same_files(tmp_path: Path) -> None:
    write_warc(tmp_path / "crawl.warc.gz", [HOME, TOADS, NEWTS])
    given = ("http://lost.example/", "--only", tmp_path / "crawl.warc.gz", "-o", tmp_path / "site")
    recollect("recover", *given, "--limit", "1", code=3)
    recollect("recover", "--resume", tmp_path / "site")
    assert set(report(tmp_path / "site")) == {HOME.uri, TOADS.uri, NEWTS.uri}


def test_pages_of_one_copy_are_of_one_owner_also_without_the_front_page(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    for name, title in (("index.html", "Frogs"), ("toads.html", "Toads in another trade"), ("a/newts.html", "Newts")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(page(title))
    base = "http://lost.example/x/"
    recollect("recover", "http://lost.example/", "--only", folder, "--base", base, "-o", tmp_path / "site")
    assert set(report(tmp_path / "site")) == {base, f"{base}toads.html", f"{base}a/newts.html"}
    done = recollect("recover", "--only", folder, "--base", base, "-o", tmp_path / "again")
    assert f"address: {base} (the address that --base gives)" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("http://lost.example/",)])
def test_a_missing_address_or_folder_is_wrong_usage(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert "recollect recover" in recollect("recover", *arguments, code=2).stderr
