"""Lives of jobs that do not end with a download: nothing found, silent archives, cancelled, expired; and more found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk_world import Job, RunningDesk, running_desk, until
from pywb_archive import pywb_archive
from websites import website, write_warc

pytestmark = pytest.mark.xdist_group("desk-lives")

QUICK = {"RECOLLECT_DESK_HEARTBEAT": "0.3", "RECOLLECT_DESK_PICTURES": "0"}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lives")
    site = website(seed=4, pages=6, troubles=False)
    write_warc(folder / "site.warc.gz", site.crawl([site.end]))
    with pywb_archive(folder / "archive", warcs=[folder / "site.warc.gz"]) as archive:
        entry = {"id": "one", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}
        silent = {"id": "silent", "timemap": "http://127.0.0.1:9/tm/", "cdx": "http://127.0.0.1:9/cdx", "ignore": True}
        slow = {**entry, "id": "slow", "rate": "2/s", "ignore": True}
        path = folder / "archives.json"
        path.write_text(json.dumps([entry, silent, slow]))
        yield path


@pytest.fixture(scope="module")
def desk(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    settings = {"RECOLLECT_DESK_RELIST_AFTER": "3", "RECOLLECT_DESK_MAX_RESOURCES": "6"}
    folder = tmp_path_factory.mktemp("lives-desk") / "desk"
    all_archives = folder.parent / "archives.json"
    entries = [{**one, "ignore": False} for one in json.loads(archives.read_text())]
    all_archives.write_text(json.dumps(entries))
    with running_desk(folder, all_archives, **QUICK, **settings) as running:
        yield running


def page_of(desk: RunningDesk, job: Job) -> str:
    return desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text


def test_nothing_found_says_who_was_asked_and_what_to_try(desk: RunningDesk) -> None:
    job = desk.submit("http://never.example/", "never@mail.example", archives=["one"])
    desk.confirm(job)
    told = desk.wait(job, "nothing-found")
    assert told["summary"]["requests"]["one"] >= 1
    assert "/jobs/" in desk.mail("never@mail.example", "Nothing found").get_content()
    page = page_of(desk, job)
    assert "one" in page and "What you can still try" in page and "www.never.example" in page


def test_silent_archives_are_not_an_empty_answer(desk: RunningDesk) -> None:
    job = desk.queue("http://lost.example/", archives=["silent"])
    told = desk.wait(job, "waiting", "failed", "nothing-found")
    assert told["state"] == "waiting" and told["resume_at"] > time.time() + 300
    assert told["reason"] == "no archive answered"


def test_a_cancelled_job_ends_its_subprocess(desk: RunningDesk) -> None:
    job = desk.queue("http://lost.example/", archives=["slow"])
    until(lambda: sum(desk.show(job)["counts"]["recovered"].values()) >= 1, 60)
    assert desk.ask("POST", f"/api/jobs/{job.id}/cancel?token={job.token}", {}).json["state"] == "cancelled"
    following = desk.queue("http://lost.example/", "next@mail.example", archives=["one"])
    desk.wait(following, "ready", seconds=30)
    assert desk.show(job)["state"] == "cancelled" and desk.history(job)[-1] == "cancel"


def test_more_is_told_only_to_who_asked_and_only_of_a_gain(desk: RunningDesk) -> None:
    """Six resources are the most here, and the archive lists far more."""
    job = desk.submit("http://lost.example/", "more@mail.example", archives=["one"], scope="site", to="2020")
    desk.confirm(job)
    told = desk.wait(job, "ready")
    assert told["summary"]["recovered"] <= 7
    other = desk.submit("http://lost.example/", "quiet@mail.example", archives=["one"], to="2020")
    assert other.id == job.id, "one recovery, two recipients"
    desk.confirm(other)
    assert desk.ask("POST", f"/api/jobs/{job.id}/tell?token={job.token}", {"more": True}).json["tell_more"] is True
    mail = desk.mail("more@mail.example", "More has turned up", seconds=40)
    assert "more files than you got" in mail.get_content()
    time.sleep(4)
    subjects = [(m["To"], m["Subject"]) for m in desk.mails() if "More has" in m["Subject"]]
    assert subjects == [("more@mail.example", "More has turned up of lost.example")], "once, and not to the other"


def test_an_expired_result_says_so_and_offers_to_make_it_again(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, **QUICK, RECOLLECT_DESK_KEEP_FOR="4") as desk:
        job = desk.submit("http://lost.example/", "late@mail.example")
        desk.confirm(job)
        url = desk.wait(job, "ready", "picked-up")["result"]["zip"]
        desk.wait(job, "expired", seconds=30)
        gone = desk.ask("GET", url)
        assert gone.status == 404 and "removed" in gone.json["error"]["message"]
        page = page_of(desk, job)
        assert "Make it again" in page and "uri=http%3A%2F%2Flost.example%2F" in page
        until(lambda: not (desk.folder / "results" / job.id).exists(), 10)
        assert desk.operator("POST", f"/api/jobs/{job.id}/retry").json["state"] == "queued"
        desk.wait(job, "ready")


def test_one_page_comes_with_its_pictures_and_nothing_else(archives: Path, tmp_path: Path) -> None:
    import io
    import zipfile

    with running_desk(tmp_path / "desk", archives, **QUICK) as desk:
        job = desk.queue("http://lost.example/articles/2.html", scope="page")
        told = desk.wait(job, "ready")
        names = zipfile.ZipFile(io.BytesIO(desk.ask("GET", told["result"]["zip"]).body)).namelist()
        pages = [name for name in names if name.startswith("lost.example/") and name.endswith(".html")]
        assert pages == ["lost.example/articles/2.html"]
        assert "lost.example/img/2.png" in names and "lost.example/css/main.css" in names
