"""What `plan` forecasts, against what real archives (pywb) give back: measured captures, and many sites of one kind."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from math import comb
from pathlib import Path

import pytest

from protected_sites import CODES, KEY, contents, write_app, write_site
from pywb_archive import Capture, pywb_archive
from recollect.cli.main import run
from recollect.datetimes import format_timestamp
from recollect.protection import odds
from recollect.protection import site as sites
from recollect.protection.pack import gather
from recollect.protection.sealing import Options

pytestmark = pytest.mark.xdist_group("reclaim")
BASE = "http://blog.example/"
PAGES, NEED, SITES = 20, 6, 24
SHARE = 0.3  # of the pages, captured in 30 days


def registry(folder: Path, archive: object) -> list[str]:
    entry = {"id": "a", **{name: getattr(archive, name) for name in ("timemap", "cdx", "raw")}}
    (folder / "archives.json").write_text(json.dumps([entry]))
    return ["--archives", str(folder / "archives.json")]


def test_captures_of_folders_and_of_dynamic_paths_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, site = datetime.now(UTC), tmp_path / "site"
    captures = [Capture(f"{BASE}show?id=19&lang=en", format_timestamp(now), b"gone", status="404 Not Found")]
    for number in range(20):
        page = site / f"posts/entry {number}"
        page.mkdir(parents=True)
        (page / "index.html").write_text("<html><body>x</body></html>")
        if number < 12:
            at = format_timestamp(now - timedelta(days=8 * number))
            captures.append(Capture(f"{BASE}posts/entry%20{number}/", at, b"x"))
            captures.append(Capture(f"{BASE}show?id={number}&lang=en", at, b"x"))
    paths = tmp_path / "paths.txt"
    paths.write_text("".join(f"/show?id={number}&lang=en\n" for number in range(20)))
    app = write_app(tmp_path / "app", 500)
    with pywb_archive(tmp_path / "pywb", captures) as archive:
        options = ["--files", f"{app}/", "--coverage", BASE, *registry(tmp_path, archive)]
        for source in (site, paths):
            assert run(["protect", "plan", str(source), *options, "--json"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert (found["coverage"]["captured"], found["coverage"]["fresh"]) == (12, 12)
            assert found["forecast"][0]["with_every"] >= 0.95 > found["forecast"][0]["new_version_each"]
            assert found["every"] > 30 * 86400, "as long as archives need"
        assert run(["protect", "plan", str(site), *options]) == 0
        out = capsys.readouterr().out
        assert f"--every {found['every'] / 86400:g}d" in out and "with daily changes 18%, monthly over 99%" in out
        assert run(["protect", "plan", str(site), *options, "--every", "30d", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["every"] == 30 * 86400


def interval(trials: int, chance: float) -> tuple[int, int]:
    """The numbers of successes that are met 99.9% of the time."""
    masses = [comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
    low = next(k for k in range(trials + 1) if sum(masses[: k + 1]) > 0.0005)
    high = next(k for k in range(trials, -1, -1) if sum(masses[k:]) > 0.0005)
    return low, high


def test_as_many_sites_come_back_as_the_forecast_says(tmp_path: Path) -> None:
    """Sites whose pages are captured at random for 30 days: a version that lives 30 days, and one that lives a week."""
    now, chance = datetime(2026, 3, 1, tzinfo=UTC), random.Random(7)
    site, app = write_site(tmp_path / "site", PAGES), write_app(tmp_path / "app", 2_000)
    for page in site.rglob("*.html"):  # pages that carry no manifest, so that all are alike
        page.write_text("<html><body>x</body></html>")
    options = Options(key=KEY, now=now, code=CODES[0], need=NEED)
    sites.apply(site, gather([f"{app}/"]), options)
    pages = {name: page for name, page in contents(site).items() if name.endswith(".html")}
    forecast = {one.changes: one.alone for one in odds.forecasts(PAGES, NEED, SHARE, 30.0, 30.0)}
    captures: list[Capture] = []
    for number in range(2 * SITES):
        days = 30 if number < SITES else 7
        share = 1 - (1 - SHARE) ** (1 / 30)
        for name, page in pages.items():
            day = next((day for day in range(days) if chance.random() < share), None)
            if day is not None:
                at = format_timestamp(now + timedelta(days=day, hours=1))
                captures.append(Capture(f"http://site{number}.example/{name}", at, page))
    with pywb_archive(tmp_path / "pywb", captures) as archive:
        where = registry(tmp_path, archive)
        came = [
            run(["protect", "reclaim", f"http://site{n}.example/", "-o", str(tmp_path / f"back{n}"), "-q", *where]) == 0
            for n in range(2 * SITES)
        ]
    for back, expected in ((came[:SITES], forecast["monthly"]), (came[SITES:], forecast["weekly"])):
        low, high = interval(SITES, expected)
        assert low <= sum(back) <= high, (sum(back), expected)
    assert 0.05 < forecast["monthly"] < 0.95, "a chance that could be missed"
