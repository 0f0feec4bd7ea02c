"""The recall of a map by its age, against counting by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.errors import FormatError
from recollect.profiles.statistics.freshness import freshness, page_of

# (host, path, years)
HELD = [
    ("a", "", (2010, 2011, 2012)),
    ("a", "x/1", (2010,)),
    ("a", "x/2", (2011,)),
    ("b", "", (2011, 2012)),
    ("c", "y", (2012,)),
]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    lines = [
        f'com,{host})/{path} {year}0101000000 {{"url": "http://{host}.com/{path}"}}\n'
        for host, path, years in HELD
        for year in years
    ]
    target = tmp_path / "a.cdxj"
    target.write_text("".join(sorted(lines)))
    return target


def test_pairs_of_years_are_those_of_sets(index: Path) -> None:
    result = freshness([index], policies=("HxPx", "HxP0"))
    assert result.keys == 5 and result.years == (2010, 2011, 2012)
    found = {(pair.map, pair.year, pair.later): (pair.found, pair.asked) for pair in result.pairs}
    assert found["HxPx", 2010, 2011] == (1, 3)
    assert found["HxPx", 2010, 2012] == (1, 3)
    assert found["HxPx", 2011, 2012] == (2, 3)
    assert found["HxP0", 2010, 2011] == (2, 3)
    assert result.by_age()["HxPx"] == {1: 3 / 6, 2: 1 / 3}
    assert result.growth["key"] == pytest.approx((2 / 4 + 1 / 5) / 2)
    assert result.growth["host"] == pytest.approx((1 / 4 + 1 / 5) / 2)


def test_budgets_and_existing_maps(index: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.ukvs"
    assert run(["profile", str(index), "-o", str(old), "--until", "2010", "--updated-at", "2010-12-31", "-q"]) == 0
    result = freshness([index], policies=("HxPx",), budgets=(10_000,), maps=(old,))
    of_map = {(pair.year, pair.later): pair.found for pair in result.pairs if pair.map == "old.ukvs"}
    assert of_map == {(2010, 2011): 1, (2010, 2012): 1}
    plain = [(pair.year, pair.later, pair.found) for pair in result.pairs if pair.map == "HxPx"]
    assert [(p.year, p.later, p.found) for p in result.pairs if "kB" in p.map] == plain


def test_the_command_writes_a_page_and_numbers(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["freshness", str(index), "-o", str(tmp_path / "f.html"), "-q"]) == 0
    page = (tmp_path / "f.html").read_text()
    assert "<svg" in page and "HxPx" in page and "1 year" in page
    assert run(["freshness", str(index), "-o", str(tmp_path / "f.json"), "--policy", "HxPx", "-q"]) == 0
    assert json.loads((tmp_path / "f.json").read_text())["recall_by_age"]["HxPx"]["1"] == 0.5
    capsys.readouterr()
    assert run(["freshness", str(index)]) == 0
    assert "HxPx" in capsys.readouterr().out
    assert run(["freshness", str(index), "-o", str(tmp_path / "f.png")]) == 2
    assert "<b>" not in page_of(freshness([index]), "<b>")


def test_one_year_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_text('com,a)/ 20100101000000 {"url": "http://a.com/"}\n')
    with pytest.raises(FormatError):
        freshness([tmp_path / "a.cdxj"])
