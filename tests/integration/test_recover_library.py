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


def test_maps_decide_whom_to_ask_by_the_aggregators_rule(tmp_path: Path) -> None:
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
        more = Options(Scope((START,)), quotas={"*": Quota(50, 3600.0)})
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
    assert (last["recovered"], last["missing"], last["complete"], last["exit_code"]) == (2, 1, True, 0)
    assert json.loads(Path(last["report"]).read_text())["totals"]["recovered"] == 2


def test_public_names() -> None:
    assert recollect.recover is recover and recollect.survey_site is survey_site
    with pytest.raises(recollect.RecollectError, match="no recovery here"):
        recover(None, "/nonexistent-folder")
