"""Protected files back from real archives (pywb): all captures, older versions, a resumed search, coverage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from protected_sites import NOW, contents, protect, write_app, write_site
from pywb_archive import Capture, pywb_archives
from recollect.cli.main import run
from recollect.protection.reclaim import stored_pages

pytestmark = pytest.mark.xdist_group("reclaim")  # two archives for all
BASE = "http://lost.example/"
PAGES = 16


def captures(site: Path, names: list[str], stamp: str) -> list[Capture]:
    found = contents(site)
    return [Capture(BASE + name.removesuffix("index.html"), stamp, found[name]) for name in names]


@dataclass
class World:
    """A site of two versions in two archives: of the newest version the first holds five pages, the second one more
    (need is 6), so that only both together have enough; the version before is complete in the second."""

    folder: Path
    archives: str = ""
    only_timemaps: str = ""
    names: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("reclaim")
    site = write_site(folder / "site", PAGES)
    app = write_app(folder / "app", 3_000)
    names = sorted((name for name in contents(site) if name.endswith(".html")), key=lambda name: (len(name), name))
    names = ["index.html", *(name for name in names if name != "index.html")]
    (app / "main.py").write_text("first\n")
    protect(site, [f"{app}/"], need=6)
    old = captures(site, names[:10], "20260301130000")
    (app / "main.py").write_text("second\n")
    protect(site, [f"{app}/"], need=6, now=NOW + timedelta(days=30))
    new = captures(site, names, "20260401130000")
    later = [Capture(BASE, "20260601000000", b"<html><body>This domain is for sale.</body></html>")]
    holdings = [
        (folder / "pywb-1", [*new[:5], *later], ()),
        (folder / "pywb-2", [*old, *new[10:14]], ()),
    ]
    with pywb_archives(holdings) as running:
        entries = [
            {"id": f"archive{n}", "timemap": one.timemap, "timegate": one.timegate, "cdx": one.cdx, "raw": one.raw}
            for n, one in enumerate(running)
        ]
        (folder / "archives.json").write_text(json.dumps(entries))
        for entry in entries:
            del entry["cdx"]
        (folder / "timemaps.json").write_text(json.dumps(entries))
        yield World(folder, str(folder / "archives.json"), str(folder / "timemaps.json"), names)


def said(capsys: pytest.CaptureFixture[str]) -> dict:  # type: ignore[type-arg]
    return json.loads(capsys.readouterr().out)


def test_all_archives_together_have_the_newest_version(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    out = world.folder / "both"
    assert run(["reclaim", BASE, "-o", str(out), "--archives", world.archives, "--json"]) == 0
    found = said(capsys)
    (restored,) = found["restored"]
    assert (restored["version"], restored["files"], restored["newest"]) == ("20260331120000", 4, True)
    assert contents(out) == contents(world.folder / "app")
    newest = found["versions"][0]
    assert newest["found"] >= 6 and newest["pages"] == PAGES and newest["missing"] == 0
    assert found["unknown"] == []


def test_an_older_version_comes_back_where_the_newest_is_incomplete(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    out = world.folder / "second-only"
    options = ["--archives", world.archives, "--use", "archive1", "--json"]
    assert run(["reclaim", BASE, "-o", str(out), *options]) == 3
    found = said(capsys)
    assert found["restored"][0]["shortfall"] == (
        "The newest version (2026-03-31 12:00) is incomplete: 4 of 6 blocks. Restored: the one before it."
    )
    assert [(v["version"], v["found"], v["missing"]) for v in found["versions"]] == [
        ("20260331120000", 4, 2),
        ("20260301120000", 10, 0),
    ]
    assert (out / "main.py").read_text() == "first\n"
    assert found["other_versions"] == [
        {"class": "files", "version": "20260331120000", "blocks": 4, "restored": "20260301120000"}
    ]


def test_too_little_says_what_is_needed_and_a_later_search_asks_only_for_the_rest(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    out = world.folder / "in-two-steps"
    assert run(["reclaim", BASE, "-o", str(out), "--archives", world.archives, "--use", "archive0"]) == 1
    printed = capsys.readouterr()
    assert "5 of 16" in printed.out and "1 more needed" in printed.out
    before = len(list(stored_pages(out)))
    assert before == 6
    assert run(["reclaim", BASE, "-o", str(out), "--archives", world.archives, "--json"]) == 0
    assert len(list(stored_pages(out))) > before
    assert contents(out) == contents(world.folder / "app")
    again = world.folder / "from-the-store"
    assert run(["reclaim", str(out), "-o", str(again)]) == 0, "the store of a search is a source itself"
    assert contents(again) == contents(world.folder / "app")


def test_archives_that_list_nothing_are_asked_page_by_page(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    out = world.folder / "by-timemaps"
    assert run(["reclaim", BASE, "-o", str(out), "--archives", world.only_timemaps, "--json"]) == 0
    assert said(capsys)["restored"][0]["version"] == "20260331120000"
    assert contents(out) == contents(world.folder / "app")


def test_an_older_version_by_date(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    out = world.folder / "dated"
    assert run(["reclaim", BASE, "-o", str(out), "--archives", world.archives, "--version", "2026-03-15"]) == 0
    assert (out / "main.py").read_text() == "first\n"


def test_an_archive_that_does_not_answer_is_unknown_not_empty(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    entries = json.loads(Path(world.archives).read_text())
    closed = "http://127.0.0.1:9"
    dead = {"id": "dead", "timemap": f"{closed}/t/", "cdx": f"{closed}/cdx", "raw": f"{closed}/{{timestamp}}/{{uri}}"}
    registry = world.folder / "with-dead.json"
    registry.write_text(json.dumps([entries[0], dead]))
    code = run(["reclaim", BASE, "-o", str(world.folder / "dead"), "--archives", str(registry), "--json"])
    found = said(capsys)
    assert code == 1 and any(line.startswith("dead: its listing is not whole") for line in found["unknown"])


def test_recover_notices_protected_pages_and_its_folder_is_a_source(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    out = world.folder / "recovered"
    code = run(["recover", BASE, "-o", str(out), "--archives", world.archives, "--yes"])
    assert code in (0, 3)
    assert "recollect protect reclaim" in capsys.readouterr().err
    assert run(["reclaim", str(out), "-o", str(world.folder / "from-recovery"), "--json"]) in (0, 1)
    assert said(capsys)["carrying"] > 0


def test_coverage_is_counted_over_all_archives(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    site = world.folder / "site-now"
    shutil.copytree(world.folder / "site", site, dirs_exist_ok=True)
    options = ["--files", str(world.folder / "app"), "--archives", world.archives, "--json"]
    assert run(["protect", "plan", str(site), "--coverage", BASE, *options]) == 0
    found = said(capsys)
    assert found["coverage"]["pages"] == PAGES and found["coverage"]["captured"] == 14
    assert found["coverage"]["median_age_days"] > 0
    chosen = next(row for row in found["table"] if row["need"] == found["need"])
    assert chosen["probability"] >= 0.999
    assert run(["protect", "plan", str(site), "--coverage", BASE, *options[:-1]]) == 0
    assert "14 of 16 pages are captured" in capsys.readouterr().out
