"""The figures that a watch must reach, on lives and pages that nothing was tuned on."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from recollect.cli import main
from recollect.recovery.fingerprint import Page, SiteFingerprint, page_of
from recollect.recovery.links import read_document
from recollect.watch.lives import Life, Story, make_life, replay


def test_few_false_alarms_and_quick_detection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["watch", "evaluate", "--lives", "100", "--sites", "80", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["false_alarms_per_site_year"] <= 0.05
    assert 7 <= report["loss_days_median"] <= 8
    assert report["takeover_detected"] >= 0.95
    assert report["takeover_false_alarms"] <= 0.04
    by_story = {one["story"]: one for one in report["lives"]}
    assert all(one["detected"] >= 0.99 for name, one in by_story.items() if name not in ("steady", "redesign"))
    assert by_story["server"]["days_median"] <= 8, (
        "a server that dies with all its sites is not a failure of the network"
    )
    soon = {"pages": 2.1, "expired": 1.1, "suspended": 1.1, "default": 1.2, "stuck": 2.3}
    assert all(by_story[name]["days_p95"] <= days for name, days in soon.items())
    assert by_story["steady"]["detected"] is None
    assert report["certificate_warned"] >= 0.99 and report["certificate_warned_days"] > 13, "a certificate, told early"
    assert by_story["expired"]["warned"] == report["certificate_warned"] and by_story["steady"]["warned"] is None
    assert 0 < report["certificate_false_warnings_per_site_year"] < 0.3, "5% of renewals are late"


def test_a_life_without_outages_raises_no_alarm_and_a_long_outage_one() -> None:
    quiet = Life(Story.STEADY, 365, 730, (), False, 0)
    assert replay(quiet, random.Random(1)).false_alarms == 0
    broken = Life(Story.STEADY, 365, 730, ((100.0, 120.0),), False, 0)
    assert replay(broken, random.Random(1)).false_alarms == 1


def test_the_same_seed_is_the_same_life() -> None:
    first, second = (make_life(Story.LOSS, random.Random(3)) for _ in range(2))
    assert first == second


def test_figures_that_are_too_bad_are_an_error() -> None:
    from dataclasses import replace

    from recollect.watch.evaluate import evaluate

    done = evaluate(20, 10, 1)
    assert not replace(done, lives=tuple(replace(one, false_alarms=0.06) for one in done.lives)).good
    assert not replace(done, lives=tuple(replace(one, days_median=8.1) for one in done.lives)).good


def page(title: str, words: str, *paths: str) -> str:
    return f"<title>{title}</title><p>{words * 9}</p>" + "".join(f'<a href="{path}">{path}</a>' for path in paths)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Real pages of two sites, labelled by hand."""
    club = [page(f"Race {n} of the Rowing Club", "boats and oars ", f"/r{n}", "/boats", "/oars") for n in range(4)]
    shop = [page(f"Chair {n} from Garden Shop", "tables and chairs ", f"/c{n}", "/sale", "/tables") for n in range(3)]
    rows = ["site,label,uri,file"]
    for name, pages in (("club.example", club), ("shop.example", shop)):
        for number, text in enumerate(pages):
            (tmp_path / f"{name}{number}.html").write_text(text)
    for number in range(3):
        rows.append(f"club.example,past,http://club.example/{number},club.example{number}.html")
    rows.append("club.example,own,http://club.example/3,club.example3.html")
    rows += [f"club.example,takeover,http://shop.example/{n},shop.example{n}.html" for n in range(3)]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_real_pages_are_judged_by_their_labels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["watch", "evaluate", "--lives", "20", "--sites", "40", "--pages", str(folder), "--json"]
    main.run(given)
    report = json.loads(capsys.readouterr().out)["real"]
    assert (report["sites"], report["past"], report["detected"], report["false_alarms"], report["wrong"]) == (
        1,
        3,
        1.0,
        0.0,
        [],
    )
    table = folder / "labels.csv"
    table.write_text(table.read_text().replace("takeover,http://shop.example/0", "own,http://shop.example/0"))
    assert main.run(given) == 1, "figures that are too bad are an error"
    report = json.loads(capsys.readouterr().out)["real"]
    assert report["wrong"] == ["club.example: own http://shop.example/0"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("site,label\n", "columns are missing"),
        ("site,label,uri,file\na,lost,http://a/,x\n", "line 2"),
        ("site,label,uri,file\na,own,http://a/,none.html\n", "no such page"),
    ],
)
def test_a_table_that_is_wrong_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    (tmp_path / "labels.csv").write_text(text)
    assert main.run(["watch", "evaluate", "--lives", "2", "--sites", "2", "--pages", str(tmp_path)]) == 1
    assert reason in capsys.readouterr().err


def test_the_name_of_a_site_in_a_long_title_is_known() -> None:
    fingerprint = SiteFingerprint()
    for number in range(4):
        uri = f"http://club.example/{number}"
        text = page(f"Race {number} | The Rowing Club", "boats and oars ", "/a", "/b", "/c")
        document = read_document(text.encode(), uri, "text/html")
        assert document is not None
        fingerprint.learn(page_of(document, uri))

    def title(text: str) -> float | None:
        return (
            SiteFingerprint.from_json(fingerprint.to_json())
            .compare(Page(frozenset(), frozenset(text.split()), Counter()))
            .title
        )

    assert title("chilling documentary about one case that nobody expected rowing club") == 1.0
    assert title("the best garden chairs for every terrace") == pytest.approx(1 / 7)
    assert SiteFingerprint.from_json('{"links": [], "title": ["rowing"], "pages": []}').title == {"rowing": 1}
