"""Sites that changed hands, on a real archive (pywb): nothing of another owner is taken, and the report says when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from experiments.site_stories import Story, make_story

from pywb_archive import Capture, pywb_archive
from recollect.archives.registry import Archive
from recollect.recovery.options import Options
from recollect.recovery.recover import recover
from recollect.recovery.scope import Scope


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
