"""One changed line a day, a tenth of the pages captured each day: the files come back, from a real archive (pywb)."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from protected_sites import NOW, contents, protect, write_app, write_site
from pywb_archive import Capture, pywb_archive
from recollect.cli.main import run
from recollect.datetimes import format_timestamp

pytestmark = pytest.mark.xdist_group("reclaim")
BASE = "http://lost.example/"
PAGES = 30
DAYS = 40
DAY = 86400.0


@dataclass
class Story:
    """What archives captured of a site whose files change every day."""

    captures: list[Capture]
    newest: dict[str, bytes]


def lived(folder: Path, every: float | None, seed: int = 3) -> Story:
    """A site of 30 pages for 40 days; each day a line is added and a tenth of the pages is captured."""
    site, app = write_site(folder / "site", PAGES), write_app(folder / "app", 3_000)
    names = sorted(name for name in contents(site) if name.endswith(".html"))
    chance = random.Random(seed)
    captures: list[Capture] = []
    for day in range(DAYS):
        now: datetime = NOW + timedelta(days=day)
        with (app / "log.txt").open("a") as log:
            log.write(f"day {day}: {chance.random()}\n")
        if day == 20:
            (app / "run.sh").unlink()
        protect(site, [f"{app}/"], need=12, every=every, now=now)
        stamp = format_timestamp(now + timedelta(hours=1))
        pages = contents(site)
        for name in chance.sample(names, PAGES // 10):
            captures.append(Capture(BASE + name.removesuffix("index.html"), stamp, pages[name]))
    return Story(captures, contents(app))


def reclaimed(story: Story, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    with pywb_archive(folder / "pywb", story.captures) as archive:
        entry = {"id": "a", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}
        (folder / "archives.json").write_text(json.dumps([entry]))
        capsys.readouterr()
        code = run(["reclaim", BASE, "-o", str(folder / "back"), "--archives", str(folder / "archives.json"), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_versions_that_live_a_month_come_back_with_the_newest_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = lived(tmp_path, every=30 * DAY)
    code, found = reclaimed(story, tmp_path, capsys)
    assert (code, found["classes"]) == (0, ["files"])
    assert contents(tmp_path / "back") == story.newest


def test_a_new_version_a_day_is_never_complete(tmp_path: Path) -> None:
    story = lived(tmp_path, every=None)
    (tmp_path / "captured").mkdir()
    for number, capture in enumerate(story.captures):
        (tmp_path / "captured" / f"{number}.html").write_bytes(capture.body)
    assert run(["reclaim", str(tmp_path / "captured"), "-o", str(tmp_path / "back")]) == 1


def test_changes_that_are_taken_back_do_not_come_back(tmp_path: Path) -> None:
    site, app = write_site(tmp_path / "site", PAGES), write_app(tmp_path / "app", 500)
    protect(site, [f"{app}/"], need=5, every=30 * DAY)
    first = contents(app)
    (app / "extra.txt").write_text("for a day")
    protect(site, [f"{app}/"], need=5, every=30 * DAY, now=NOW + timedelta(days=1))
    before = contents(site)
    (app / "extra.txt").unlink()
    protect(site, [f"{app}/"], need=5, every=30 * DAY, now=NOW + timedelta(days=2))
    captured = tmp_path / "captured"
    captured.mkdir()
    for number, (name, page) in enumerate((*before.items(), *contents(site).items())):
        if name.endswith(".html"):
            (captured / f"{number}.html").write_bytes(page)
    assert run(["reclaim", str(captured), "-o", str(tmp_path / "back")]) == 0
    assert contents(tmp_path / "back") == first
