"""Sites that changed hands, on a real archive (pywb): nothing of another owner is taken, and the report says when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from experiments.site_stories import Story, make_story

from fake_archive import START, Fake, served, site
from pywb_archive import Capture, pywb_archive
from recollect.archives.registry import Archive
from recollect.recovery.options import Options
from recollect.recovery.recover import recover
from recollect.recovery.report import Report
from recollect.recovery.scope import Scope
from recollect.recovery.verdicts import Reason


def recovered(folder: Path, story: Story, **fields: object) -> tuple[dict[str, str], dict[str, object]]:
    """URI -> owner of the capture that was taken; the report."""
    captures = [Capture(c.uri, c.stamp, c.body) for c in story.captures]
    with pywb_archive(folder / "pywb", captures) as archive:
        known = Archive(id="pywb", timemap=archive.timemap, timegate=archive.timegate, cdx=archive.cdx, raw=archive.raw)
        options = Options(Scope((story.start,)), **fields)  # type: ignore[arg-type]
        done = recover(story.start, folder / "site", archives=[known], options=options)
    assert done.report is not None
    owner = {(c.uri, c.stamp): c.owner for c in story.captures}
    taken = {r.uri: owner[r.uri, f"{r.captured_at:%Y%m%d%H%M%S}"] for r in done.report.resources if not r.suspect}
    return taken, json.loads((folder / "site/report.json").read_text())


@pytest.mark.parametrize(("kind", "seed"), [("figure34", 9100), ("newcomer", 9100), ("returned", 9100)])
def test_what_comes_back_is_the_owners(tmp_path: Path, kind: str, seed: int) -> None:
    story = make_story(kind, seed)
    taken, report = recovered(tmp_path, story)
    own = {c.uri for c in story.captures if c.owner == "owner"}
    assert set(taken.values()) == {"owner"} and set(taken) == own
    periods = report["ownership"]
    assert periods[0]["owner"] == "own" and any(period["owner"] != "own" for period in periods)  # type: ignore[index]
    assert (report["ended_at"] is None) == (kind == "returned")


def test_without_listings_too(tmp_path: Path) -> None:
    taken, report = recovered(tmp_path, make_story("taken", 9101), policy="naive")
    assert set(taken.values()) == {"owner"} and report["ended_at"] is not None


def fake_recovery(folder: Path, fake: Fake, **fields: object) -> Report:
    with served(fake, **fields) as archive:
        report = recover(START, folder, archives=[archive], options=Options(Scope((START,)))).report
    assert report is not None
    return report


@pytest.mark.parametrize("later", ["parked", "403"])
def test_a_genuine_page_that_looks_doubtful_is_offered_whatever_came_later(tmp_path: Path, later: str) -> None:
    """A note that is called "Not found"; then a seller of domains, or nothing."""
    fake = site("/note", "/a", "/b", "/c")
    for name in ("/a", "/b", "/c"):
        fake.add(name, f"<title>Boats {name}</title><p>About boats, ropes and sails in the harbour.")
    fake.add("/note", "<title>Not found</title><p>A poem about a boat.", "20090601000000")
    for stamp in ("20120101000000", "20140101000000"):
        if later == "parked":
            fake.add("/", "<title>lost.example</title><p>This domain is for sale. Buy this domain.", stamp)
            fake.add("/note", "<title>lost.example</title><p>This domain is for sale. Buy this domain.", stamp)
        else:
            fake.add("/note", "no", stamp)
            fake.status[f"{START}note", stamp] = 403
    report = fake_recovery(tmp_path, fake)
    assert [(r.uri, r.captured_at.year) for r in report.suspects] == [(f"{START}note", 2009)]
    assert (report.ended_at is not None) == (later == "parked")
    if later == "parked":
        assert report.ended_at is not None and report.ended_at.year == 2012, "the first of equal pages, not the last"


def test_an_archives_own_wall_is_no_capture(tmp_path: Path) -> None:
    """A CAPTCHA without Memento-Datetime is the archive's (archive.today): not taken, not offered, and not a verdict
    about the page."""
    fake = site("/p")
    fake.add("/p", "<p>words of the page")
    wall = b"<title>One moment</title><p>Please complete the security check to prove that you are human"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(wall)
    fake.overrides["id_/http://lost.example/p"] = lambda request: head + wall
    fake.digests[f"{START}p"] = ""
    report = fake_recovery(tmp_path, fake)
    assert [(m.uri, m.reason) for m in report.missing if m.uri.endswith("/p")] == [(f"{START}p", Reason.BLOCKED)]
    assert not report.suspects
