"""The library's `recover` does all that the command does: maps, resuming, quotas, permits, progress."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import recollect
from fake_archive import START, Fake, served, site
from recollect.archives.registry import Archive
from recollect.recovery.meter import Quota
from recollect.recovery.options import Options
from recollect.recovery.progress import Event, Status, Watch
from recollect.recovery.recover import Run, recover, survey_site
from recollect.recovery.scope import Scope
from recollect.recovery.sources import Sources
from recollect.recovery.verdicts import Reason, Stage


def small_site() -> Fake:
    fake = site("/a", "/b")
    fake.add("/a", "<p>a")
    fake.add("/b", "<p>b")
    return fake


def registry(path: Path, *archives: Archive) -> str:
    entries = [{"id": a.id, "cdx": a.cdx, "raw": a.raw} for a in archives]
    path.write_text(json.dumps(entries))
    return str(path)


def map_of(path: Path, key: str) -> None:
    path.write_text(f'!context ["http://oduwsdl.github.io/contexts/ukvs"]\n!meta {{"type": "MementoMap"}}\n{key} 1/1\n')


def test_maps_decide_which_archives_to_ask_by_the_aggregators_rule(tmp_path: Path) -> None:
    """A backup beside a map is not a map, and a damaged map is reported, and its archive asked."""
    maps = tmp_path / "maps"
    maps.mkdir()
    map_of(maps / "full.ukvs", "example,lost)/*")
    map_of(maps / "full.ukvs.bak", "example,other)/")
    map_of(maps / "none.ukvs", "example,other)/")
    (maps / "broken.ukvs").write_text("z 1\na 1\n")
    fakes = {name: small_site() for name in ("full", "none", "broken")}
    problems: list[str] = []
    with (
        served(fakes["full"], id="full") as full,
        served(fakes["none"], id="none") as none,
        served(fakes["broken"], id="broken") as broken,
    ):
        options = Options(Scope((START,)))
        found = survey_site(START, archives=[full, none, broken], maps=maps, options=options)
        assert {a.id: a.state for a in found.archives} == {
            "full": "complete",
            "none": "not asked",
            "broken": "complete",
        }
        done = recover(
            START, tmp_path / "site", archives=[full, none, broken], maps=maps, watch=Watch(problem=problems.append)
        )
    assert done.report is not None and len(done.report.resources) == 3 and done.finished.complete
    assert not fakes["none"].times and fakes["full"].times and fakes["broken"].times
    assert len(problems) == 1 and "broken.ukvs" in problems[0]


def test_what_was_interrupted_is_resumed_with_everything_it_was_begun_with(tmp_path: Path) -> None:
    fake = small_site()
    with served(fake, id="one") as archive:
        sources = Sources(registry(tmp_path / "archives.json", archive))
        options = Options(Scope((START,)), quotas={"*": Quota(2, 3600.0)})
        first = recover(START, tmp_path / "site", archives=sources, options=options)
        assert first.report is not None and first.report.by_reason == {Reason.OUT_OF_QUOTA: 2}
        assert not first.finished.complete
        more = Options(Scope((START,)), policy="knowledgeable", quotas={"*": Quota(50, 3600.0)})
        second = recover(None, tmp_path / "site", options=more)
    assert second.finished.complete and second.report is not None and len(second.report.resources) == 3
    assert len(fake.times) == 4


def test_progress_comes_as_values_and_permits_are_asked_before_every_request(tmp_path: Path) -> None:
    class Counting:
        granted = 0

        async def acquire(self, archive: Archive, kind: object, deadline: float) -> None:
            self.granted += 1

        def paused(self, archive: Archive, kind: object, seconds: float) -> None: ...

    fake, permits = small_site(), Counting()
    statuses: list[Status] = []
    events: list[Event] = []
    with served(fake) as archive:
        recover(
            START,
            tmp_path / "site",
            archives=[archive],
            watch=Watch(status=statuses.append, event=events.append),
            run=Run(permits=permits),
        )
    assert permits.granted == len(fake.times) == 4
    assert statuses[0].stage == Stage.LISTING and statuses[-1].stage == Stage.DONE and statuses[-1].progress == 1.0
    assert {e.uri for e in events} == {START, START + "a", START + "b"}


def test_the_command_prints_progress_as_lines_of_json(tmp_path: Path) -> None:
    fake = small_site()
    fake.add("/gone", b"", media_type="text/html")
    fake.add("/", "<a href='/a'>a</a><a href='/never'>n</a>")
    with served(fake, id="one") as archive:
        listed = registry(tmp_path / "archives.json", archive)
        command = ["recover", START, "-o", str(tmp_path / "site"), "--archives", listed, "--progress-json", "--yes"]
        done = subprocess.run(
            [sys.executable, "-m", "recollect", *command], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["type"] == "status" and lines[-1]["type"] == "finished"
    assert {line["type"] for line in lines} == {"status", "survey", "resource", "finished"}
    missing = [line for line in lines if line["type"] == "resource" and line["state"] == "missing"]
    assert [(m["uri"], m["reason"]) for m in missing] == [(START + "never", "never-archived")]
    last = lines[-1]
    assert (last["recovered"], last["missing"], last["complete"], last["exit_code"]) == (4, 1, True, 0)
    assert json.loads(Path(last["report"]).read_text())["totals"]["recovered"] == 4


def test_public_names() -> None:
    assert recollect.recover is recover and recollect.survey_site is survey_site
    with pytest.raises(recollect.RecollectError, match="no recovery here"):
        recover(None, "/nonexistent-folder")


def test_the_report_counts_what_pages_need_from_other_domains(tmp_path: Path) -> None:
    fake = Fake()
    fake.add(
        "/", "<link rel=stylesheet href='http://cdn.net/s.css'><img src='/i.png'><a href='http://other.org/'>o</a>"
    )
    fake.add("/i.png", "picture", media_type="image/png")
    fake.add("http://cdn.net/s.css", "a{b:url(http://fonts.net/f.woff)}", media_type="text/css")
    with served(fake) as archive:
        near = recover(START, tmp_path / "near", archives=[archive]).report
        far = Options(Scope((START,), assets="anywhere"))
        everything = recover(START, tmp_path / "far", archives=[archive], options=far).report
    assert near is not None and everything is not None
    assert near.outside == (("http://cdn.net/s.css", START),) and near.outside_hosts == {"cdn.net": 1}
    assert near.needed == 3 and near.difference.missing == pytest.approx(1 / 3)
    page = (tmp_path / "near" / "report.html").read_text()
    assert "100" not in page.partition("</style>")[2]
    assert (
        "all 2 addresses that archives list came back" in page
        and "of 1 other host" in page
        and "--assets anywhere" in page
        and "cdn.net" in page
    )
    totals = json.loads((tmp_path / "near" / "report.json").read_text())["totals"]
    assert (totals["needed"], totals["needed_elsewhere"]) == (3, 1)
    assert everything.outside == () and len(everything.resources) == 3
    assert [m.uri for m in everything.missing] == ["http://fonts.net/f.woff"]


def test_after_a_stop_nothing_is_said_about_links_that_were_not_read(tmp_path: Path) -> None:
    fake = small_site()
    fake.add("/deep", "<p>linked from /b only")
    fake.add("/b", "<a href='/deep'>d</a>")
    fake.add("/lonely", "<p>no link leads here")
    with served(fake, id="one") as archive:
        few = Options(Scope((START,)), policy="knowledgeable", quotas={"*": Quota(3, 3600.0)})
        stopped = recover(START, tmp_path / "site", archives=[archive], options=few).report
        assert stopped is not None and not stopped.complete and len(stopped.known) == 2
        summary = (tmp_path / "site" / "summary.tsv").read_text()
        assert "no link led there" not in summary and "not reached before the run ended" in summary
        more = Options(Scope((START,)), policy="knowledgeable", quotas={"*": Quota(50, 3600.0)})
        whole = recover(START, tmp_path / "site", archives=[archive], options=more).report
    assert whole is not None and whole.complete and whole.known == ("http://lost.example/lonely",)
    assert "no link led there" in (tmp_path / "site" / "summary.tsv").read_text()


def test_the_terminal_says_what_is_outside_doubtful_and_not_reached(tmp_path: Path) -> None:
    fake = Fake()
    fake.add("/", "<script src='http://cdn.net/x.js'></script><a href='/wall'>w</a><a href='/b'>b</a>")
    fake.add("/wall", "<title>Log in</title><form><input type=password></form>")
    fake.add("/b", "<a href='/deep'>d</a>")
    fake.add("/deep", "<p>deep")
    with served(fake, id="one") as archive:
        listed = registry(tmp_path / "archives.json", archive)
        command = [sys.executable, "-m", "recollect", "recover", START, "-o", str(tmp_path / "site")]
        done = subprocess.run(
            [*command, "--archives", listed, "--limit", "2"], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 3, done.stderr
    said = done.stderr
    assert "the pages need 1 more resource of 1 other host; --assets anywhere" in said
    assert "1 page looks doubtful and was kept, marked" in said and f"recollect review {tmp_path / 'site'}" in said
    assert "no link leads there" not in said and "not reached before the end of this run" in said
    assert "stopped early: the limit of resources was reached" in said
