"""Files that a person adds to a job at the desk: read like archives, checked, bounded, and deleted with the job."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, build_opener

import pytest

from desk_world import Job, RunningDesk, running_desk
from pywb_archive import Capture, pywb_archive, write_warc
from sources_world import page

HOME = Capture("http://lost.example/", "20150101000000", page("Frogs", "/toads.html"))
TOADS = Capture("http://lost.example/toads.html", "20150102000000", page("Toads", "/"))


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("archives")
    with pywb_archive(folder / "pywb", [HOME]) as running:
        path = folder / "archives.json"
        path.write_text(
            json.dumps([{"id": "pywb", "timemap": running.timemap, "cdx": running.cdx, "raw": running.raw}])
        )
        yield path


@pytest.fixture
def desk(archives: Path, tmp_path: Path) -> Iterator[RunningDesk]:
    settings = {
        "RECOLLECT_DESK_HEARTBEAT": "0.3",
        "RECOLLECT_DESK_PICTURES": "0",
        "RECOLLECT_DESK_UPLOAD_BYTES": "100kB",
    }
    with running_desk(tmp_path / "desk", archives, **settings) as running:
        yield running


def put(desk: RunningDesk, job: Job, name: str, data: bytes, token: str = "") -> tuple[int, str]:
    url = f"{desk.base}/api/jobs/{job.id}/sources/{name}?token={token or job.token}"
    try:
        with build_opener().open(Request(url, data, method="PUT"), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except OSError as error:
        status = getattr(error, "code", 0)
        return status, error.read().decode() if status else str(error)  # type: ignore[attr-defined]


def warc(tmp_path: Path) -> bytes:
    write_warc(tmp_path / "old.warc.gz", [TOADS])
    return (tmp_path / "old.warc.gz").read_bytes()


def test_a_file_of_a_person_is_read_beside_the_archives_and_goes_with_the_job(
    desk: RunningDesk, tmp_path: Path
) -> None:
    job = desk.submit("http://lost.example/", own_files=True)
    assert "/sources?token=" in desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text
    status, reply = put(desk, job, "..%2Fold%20crawl.warc.gz", warc(tmp_path))
    assert status == 200, reply
    assert [one["name"] for one in json.loads(reply)["sources"]] == ["old-crawl.warc.gz"]
    other = desk.submit("http://lost.example/", "ben@mail.example")
    assert other.id != job.id, "a job with files is its owner's alone"
    desk.confirm(job)
    reply_of = desk.wait(job, "ready", "failed", "nothing-found")
    assert reply_of["state"] == "ready", desk.said[-20:]
    body = desk.ask("GET", f"/api/jobs/{job.id}/result.zip?token={job.token}").body
    with zipfile.ZipFile(io.BytesIO(body)) as package:
        names = package.namelist()
        [toads] = [name for name in names if name.endswith("lost.example/toads.html")]
        assert b"<title>Toads" in package.read(toads)
        [report] = [name for name in names if name.endswith("report.json")]
        found = {one["uri"]: one["archive"] for one in json.loads(package.read(report))["resources"]}
    assert found == {HOME.uri: "pywb", TOADS.uri: "old-crawl.warc.gz"}
    assert put(desk, job, "late.warc.gz", warc(tmp_path))[0] == 400
    assert desk.operator("DELETE", f"/api/jobs/{job.id}").status in (200, 204)
    assert not list(desk.folder.rglob("old-crawl.warc.gz"))


def test_files_that_hold_no_pages_are_too_large_or_are_of_others_are_refused(desk: RunningDesk, tmp_path: Path) -> None:
    job = desk.submit("http://lost.example/", own_files=True)
    assert put(desk, job, "notes.txt", b"just notes")[0] == 400
    assert put(desk, job, "x.zip", b"PK\x03\x04" + b"x" * 100)[0] == 400
    write_warc(tmp_path / "large.warc.gz", [Capture(TOADS.uri, TOADS.timestamp, bytes(range(256)) * 3000)])
    large = b"WARC/1.0\r\n" + b"x" * 200_000
    status, reply = put(desk, job, "large.warc", large)
    assert status in (0, 400) and (status == 0 or "too large" in reply)
    assert put(desk, job, "old.warc.gz", warc(tmp_path), token="wrong")[0] in (401, 403)
    assert desk.show(job)["sources"] == []
    assert not list(desk.folder.rglob("*.part"))


def test_the_form_of_the_page_adds_files(desk: RunningDesk, tmp_path: Path) -> None:
    job = desk.submit("http://lost.example/", own_files=True)
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="my crawl.warc.gz"\r\n\r\n'
    body = head + warc(tmp_path) + b"\r\n--b--\r\n"
    url = f"{desk.base}/jobs/{job.id}/sources?token={job.token}"
    request = Request(url, body, {"Content-Type": "multipart/form-data; boundary=b", "Origin": desk.base})
    with build_opener().open(request, timeout=60) as answer:
        assert "my-crawl.warc.gz" in answer.read().decode()
    assert [one["name"] for one in desk.show(job)["sources"]] == ["my-crawl.warc.gz"]
    assert desk.ask("DELETE", f"/api/jobs/{job.id}/sources/my-crawl.warc.gz?token={job.token}").json["sources"] == []


def test_the_answers_do_not_tell_whether_others_asked_for_the_site(desk: RunningDesk, tmp_path: Path) -> None:
    first = desk.submit("http://lost.example/")
    joined = desk.submit("http://lost.example/", "ben@mail.example")
    alone = desk.submit("http://other.example/", "ben@mail.example")
    answers = {put(desk, job, "old.warc.gz", warc(tmp_path)) for job in (first, joined, alone)}
    [(status, reply)] = answers
    assert status == 403 and "announce" in reply
    for uri in ("http://lost.example/", "http://other.example/"):
        own = desk.submit(uri, "eve@mail.example", own_files=True)
        assert put(desk, own, "old.warc.gz", warc(tmp_path))[0] == 200
        assert own.id not in (first.id, alone.id)
