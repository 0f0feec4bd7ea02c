"""The experiments run: McCown's collection, a fitted crawler, and a small decay from the server to the page."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import pytest
from experiments import collection as decaying
from experiments import factors

from pywb_archive import PYWB_PYTHON
from recollect import profile

ROOT = Path(__file__).parents[2]


def test_the_collection_follows_formulas_7_to_12() -> None:
    made = decaying.Collection()
    assert (made.count(0), len(made.pages), made.count(90)) == (954, 350, 32)
    assert all(made.count(day) == decaying.total(day) for day in range(91))
    assert decaying.lifetime(18, 2) == 72
    assert max(file.days or 0 for file in made.pages) == 90


def test_no_page_links_to_a_file_that_is_gone() -> None:
    made = decaying.Collection(6, 20)
    for day in range(0, 22, 3):
        for path, file in made.files.items():
            status, kind, body = made.answer(path, day)
            assert (status == 200) == file.live(day)
            if status == 200 and kind == "text/html":
                for link in re.findall(r'(?:href|src)="([^"]+)"', body.decode()):
                    assert made.answer(link, day)[0] == 200, (path, link, day)


def test_a_fitted_crawler_gives_the_column_of_google_and_not_that_of_msn() -> None:
    def near(policy: decaying.CrawlPolicy) -> bool:
        measured = astuple(decaying.simulate(decaying.Collection(), policy, 160))
        paper = astuple(decaying.TABLE_6[policy.name])
        return all(abs(a - b) <= 0.1 * b for a, b in zip(measured, paper, strict=True))

    assert near(decaying.GOOGLE)
    assert not near(decaying.MSN)


def test_a_small_decay_from_the_server_to_the_page(tmp_path: Path) -> None:
    if not PYWB_PYTHON.exists():
        pytest.skip("pywb is not installed; `make test` installs it")
    command = [sys.executable, str(ROOT / "experiments" / "decay.py"), "--bins", "3", "--last", "12", "--days", "24"]
    out = tmp_path / "decay.html"
    done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differ from the crawler's log" in done.stdout
    assert "MSN" in done.stdout and "not reproduced within 10%" in done.stdout
    page = out.read_text()
    assert "Table 6" in page and "Figure 15" in page and "Figure 60" in page
    assert page.count("<polygon") >= 3, "pages are vulnerable, replicated and endangered over time"


def test_the_overlap_of_archives_is_that_of_their_keys(tmp_path: Path) -> None:
    lines = {"a": ["com,x)/1", "com,x)/2", "com,x)/3", "com,x)/4"], "b": ["com,x)/2", "com,x)/3", "com,y)/"]}
    for name, keys in lines.items():
        index = tmp_path / f"{name}.cdxj"
        index.write_text("".join(f'{key} 20200101000000 {{"url": "http://x/", "status": "200"}}\n' for key in keys))
        profile(index, tmp_path / f"{name}.ukvs")
    command = [sys.executable, str(ROOT / "experiments" / "overlap.py"), "--json"]
    done = subprocess.run(
        [*command, str(tmp_path / "a.ukvs"), str(tmp_path / "b.ukvs")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert (first["of"], first["keys"], first["exact"], first["overlap"]) == ("a", 4, 2, 0.5)
    assert (second["of"], second["keys"], second["not held"]) == ("b", 3, 1)


def test_a_regression_finds_what_was_put_in() -> None:
    rng = random.Random(1)
    rows = [
        factors.Properties(*(rng.randrange(n) for n in (5, 4, 2, 2, 2)), rng.uniform(1, 4), rng.uniform(0, 8))
        for _ in range(4000)
    ]
    found = [rng.random() < 0.9 - 0.15 * row.hops for row in rows]
    estimates, fit = factors.regress(rows, found)
    by_name = {one.name: one for one in estimates}
    assert abs(by_name["hops"].value + 0.15) < 4 * by_name["hops"].error < 0.05
    assert by_name["hops"].p < 1e-4 < by_name["path depth"].p
    assert 0 < fit < 1


def test_standard_errors_cover_the_truth_as_often_as_they_say() -> None:
    """Over many draws of the archive's own model, 95% intervals of every variable cover the true value."""
    rng = random.Random(2)
    covered = total = 0
    for _ in range(60):
        rows = [
            factors.Properties(*(rng.randrange(n) for n in (4, 4, 3, 2, 2)), rng.uniform(1, 4), rng.uniform(0, 8))
            for _ in range(300)
        ]
        found = [rng.random() < factors.chance(row) for row in rows]
        estimates, _ = factors.regress(rows, found)
        covered += sum(one.covers(true) for one, true in zip(estimates, factors.TRUE, strict=True))
        total += len(estimates)
    assert 0.91 < covered / total < 0.985


def test_a_table_of_recoveries_is_regressed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(3)
    lines = ["recovered,hops,depth,queries,image,document,size,age"]
    for _ in range(400):
        hops = rng.randrange(5)
        numbers = (int(rng.random() < 0.9 - 0.2 * hops), hops, rng.randrange(3), 0, rng.randrange(2), 0)
        lines.append(",".join(map(str, (*numbers, rng.randrange(1, 9999), rng.random()))))
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert factors.main(["--table", str(tmp_path / "t.csv"), "--json"]) == 0
    [report] = json.loads(capsys.readouterr().out)
    hops_row = report["estimates"][1]
    assert abs(hops_row["estimate"] + 0.2) < 0.05 and hops_row["p"] < 1e-4 and "true" not in hops_row


def test_hops_predict_the_recovery_of_real_recoveries() -> None:
    if not PYWB_PYTHON.exists():
        pytest.skip("pywb is not installed; `make test` installs it")
    command = [
        sys.executable,
        str(ROOT / "experiments" / "factors.py"),
        "--sites",
        "2",
        "--policy",
        "knowledgeable",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    [report] = json.loads(done.stdout)
    assert 0 < report["recovered"] < 1
    hops = next(one for one in report["estimates"] if one["name"] == "hops")
    assert hops["estimate"] < 0 and hops["p"] < 0.01
