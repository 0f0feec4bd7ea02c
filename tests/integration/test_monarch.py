"""The story of the Monarch library with real archives, and the odds of recovery against theory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import monarch
from protected_sites import CODES, contents
from pywb_archive import Capture, pywb_archive
from recollect.cli.main import run
from recollect.protection.code import Code
from recollect.protection.odds import chance_at_share

DOCS = Path(__file__).parents[2] / "docs" / "protect.md"


def test_the_table_in_the_documentation_is_what_comes_out() -> None:
    rows = list(monarch.markdown())
    text = DOCS.read_text(encoding="utf-8")
    assert "\n".join(rows) in text, "python tests/monarch.py"


def test_week_by_week_the_server_files_come_back(tmp_path: Path) -> None:
    weeks = {week: (archived, found) for week, archived, found in monarch.table(tmp_path)}
    assert weeks[1][0] == pytest.approx(0.236, abs=0.001), "as many pages as in the dissertation"
    assert weeks[1][1].current == 100, "where ten segments gave 59.4%"
    assert all(found.any_version == 100 for _, found in weeks.values()), "an older version is always there"
    assert 50 < weeks[13][1].current < 100, "a change of the data leaves the code's blocks alone"
    assert weeks[16][1].current < 70, "archives have not come again yet"
    assert all(weeks[week][1].current == 100 for week in (10, 12, 15, 17, 18, 19, 20, 21, 22, 23, 24))


@pytest.mark.parametrize("until", [2, 13, 24])
def test_the_library_is_reclaimed_from_a_real_archive_and_runs_again(
    tmp_path: Path, until: int, capsys: pytest.CaptureFixture[str]
) -> None:
    captures: list[Capture] = []
    for week in monarch.story(tmp_path / "live"):
        captures += week.captures
        if week.number == until:
            break
    live = monarch.load(tmp_path / "live" / "server")
    with pywb_archive(tmp_path / "pywb", captures) as archive:
        entry = {"id": "monarch", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}
        (tmp_path / "archives.json").write_text(json.dumps([entry]))
        out = tmp_path / "reclaimed"
        options = ["--archives", str(tmp_path / "archives.json"), "--json"]
        assert run(["reclaim", monarch.BASE + "/", "-o", str(out), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["class"] for one in found["restored"]} == {"code", "data"}
    if until == 13:  # the new database is in no capture yet: the old one is what can be had
        assert contents(out) != week.files and set(contents(out)) == set(week.files)
        return
    assert contents(out) == week.files
    again = monarch.load(out)
    for path in live["links"]():
        assert again["render"](path) == live["render"](path), "the library makes its pages again"


@pytest.mark.parametrize("code", CODES)
def test_the_odds_are_those_of_theory_within_two_points(code: Code) -> None:
    """P(everything comes back) over the share of pages archived: 123 pages, need 25, real decoding."""
    text = DOCS.read_text(encoding="utf-8")
    for share, came in monarch.measured(code):
        expected = chance_at_share(monarch.PAGES, monarch.NEED, share)
        assert came == pytest.approx(expected, abs=0.02), share
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {share:.0%} | {expected:.1%} |")]
        assert f" {came:.1%} |" in row, "python tests/monarch.py"
