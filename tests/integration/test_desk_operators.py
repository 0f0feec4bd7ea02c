"""What operators of a desk do and see: find, confirm, read, and know that something is down."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk_world import RunningDesk, running_desk, start, until
from fake_archive import Fake, served, site

pytestmark = pytest.mark.xdist_group("desk-operators")


@pytest.fixture(scope="module")
def fake() -> Fake:
    made = site("/a.html")
    made.add("/a.html", "<title>A</title><p>Page A.</p>")
    return made


@pytest.fixture(scope="module")
def agents() -> list[str]:
    return []


@pytest.fixture(scope="module")
def archives(fake: Fake, agents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    class Listening:
        async def __call__(self, request, writer) -> None:  # type: ignore[no-untyped-def]
            agents.append(request.headers.get("user-agent", ""))
            await fake(request, writer)

    path = tmp_path_factory.mktemp("operators") / "archives.json"
    with served(Listening()) as archive:
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw}]))
        yield path


@pytest.fixture(scope="module")
def desk(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    branding = {
        "RECOLLECT_DESK_OPERATOR_NAME": "The Library",
        "RECOLLECT_DESK_OPERATOR_COLOUR": "#204060",
        "RECOLLECT_DESK_IMPRINT": "The Library, 1 Main Street",
        "RECOLLECT_DESK_PRIVACY": "Ask our officer.",
        "RECOLLECT_DESK_FOOTER": "Open from nine to five",
        "RECOLLECT_DESK_KEEP_FOR": "5d",
        "RECOLLECT_DESK_PICTURES": "0",
    }
    folder = tmp_path_factory.mktemp("operators") / "desk"
    with running_desk(folder, archives, "--contact", "mailto:library@lib.example", **branding) as running:
        yield running


def log_in(desk: RunningDesk) -> tuple[str, str]:
    password = (desk.folder / "admin.password").read_text().strip()
    answer = desk.ask("POST", "/admin/login", form={"password": password})
    cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
    return cookie, re.findall(r'name="csrf" value="([^"]+)"', desk.ask("GET", "/admin", Cookie=cookie).text)[0]


def test_the_contact_reaches_every_archive_and_the_log_and_result_are_shown(
    desk: RunningDesk, agents: list[str]
) -> None:
    job = desk.queue("http://lost.example/", "reader@mail.example")
    desk.wait(job, "ready")
    assert agents and all("mailto:library@lib.example" in agent for agent in agents)
    cookie, _ = log_in(desk)
    page = desk.ask("GET", f"/admin/jobs/{job.id}", Cookie=cookie).text
    assert "one: listing complete" in page and "2 recovered" in page
    for name in ("result.zip", "report.html"):
        assert f"/admin/jobs/{job.id}/files/{name}" in page
        assert desk.ask("GET", f"/admin/jobs/{job.id}/files/{name}", Cookie=cookie).status == 200
    assert desk.ask("GET", f"/admin/jobs/{job.id}/files/state.tar", Cookie=cookie).status == 404
    assert desk.ask("GET", f"/admin/jobs/{job.id}/files/result.zip").status == 303, "without a session: the login"


def test_jobs_and_mails_are_found_by_address_and_site(desk: RunningDesk) -> None:
    one = desk.submit("http://sought.example/", "Sought%Me@mail.example")
    two = desk.submit("http://other.example/", "other@mail.example")
    desk.mail("other@mail.example", "confirm")
    cookie, _ = log_in(desk)
    for text in ("sought.ex", "sought%25me@", one.id):
        found = desk.operator("GET", f"/api/jobs?q={text}").json["jobs"]
        assert [job["id"] for job in found] == [one.id], text
        page = desk.ask("GET", f"/admin?q={text}", Cookie=cookie).text
        assert one.id in page and two.id not in page
    assert desk.operator("GET", "/api/jobs?q=%25").json["jobs"] != [], "a percent sign is a letter like others"
    assert {mail["job"] for mail in desk.operator("GET", "/api/mails?q=other@mail").json["mails"]} == {two.id}
    assert two.id in desk.ask("GET", f"/admin/mails?q={two.id}", Cookie=cookie).text


def test_a_job_is_deleted_after_a_question_and_its_owner_is_told(desk: RunningDesk) -> None:
    job = desk.submit("http://deleted.example/", "owner@mail.example")
    link = re.findall(r"https?://\S+", desk.mail("owner@mail.example", "confirm").get_content())[0]
    cookie, csrf = log_in(desk)
    assert "Delete it" in desk.ask("GET", f"/admin/jobs/{job.id}/delete", Cookie=cookie).text
    assert desk.show(job)["state"] == "pending", "a question changes nothing"
    assert desk.ask("POST", f"/admin/jobs/{job.id}/delete", form={"csrf": csrf}, Cookie=cookie).status == 303
    for path in (
        f"/jobs/{job.id}?token={job.token}",
        link.removeprefix(desk.base),
        f"/api/jobs/{job.id}?token={job.token}",
    ):
        answer = desk.ask("GET", path)
        assert answer.status == 410 and "removed this request" in answer.text
    assert desk.ask("GET", f"/api/jobs/{job.id}?token=x").status == 403, "strangers learn nothing"


def test_a_person_deletes_their_data_at_once(desk: RunningDesk) -> None:
    import sqlite3

    job = desk.submit("http://lost.example/", "leaves@mail.example", name="Anna Leaves", scope="page")
    desk.confirm(job)
    desk.wait(job, "ready")
    page = desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text
    assert "Delete my data now" in page
    assert desk.ask("POST", f"/jobs/{job.id}/forget?token={job.token}", form={}).status == 303
    with sqlite3.connect(desk.folder / "desk.sqlite", timeout=30) as db:
        dump = "\n".join(db.iterdump())
    assert "leaves@mail.example" not in dump and "Anna Leaves" not in dump
    until(lambda: not (desk.folder / "results" / job.id).exists(), 10)
    assert desk.ask("GET", f"/api/jobs/{job.id}/result.zip?token={job.token}").status in (404, 410)


def test_pages_name_the_operator_and_keep_to_the_settings(desk: RunningDesk) -> None:
    page = desk.ask("GET", "/").text
    assert "The Library" in page and "Open from nine to five" in page and "/_/operator.css" in page
    assert "#204060" in desk.ask("GET", "/_/operator.css").text
    assert "1 Main Street" in desk.ask("GET", "/imprint").text
    privacy = desk.ask("GET", "/privacy").text
    assert "Ask our officer." in privacy and "5 days" in privacy
    desk.submit("http://branded.example/", "branded@mail.example")
    assert desk.mail("branded@mail.example", "confirm")["From"].startswith("The Library <")


def test_ready_and_pages_know_that_mail_is_down(archives: Path, tmp_path: Path) -> None:
    flags = ("--smtp", "127.0.0.1:9", "--from-address", "desk@lib.example", "--workers", "0")
    with running_desk(tmp_path / "desk", archives, *flags) as desk:
        assert desk.ask("GET", "/ready").json["mail"] is True
        job = desk.submit("http://lost.example/")
        until(lambda: desk.ask("GET", "/ready").json["mail"] is False, 20)
        assert desk.ask("GET", "/ready").status == 200, "pages are served, and mails wait"
        for path in ("/sent?uri=http://lost.example/", f"/jobs/{job.id}?token={job.token}"):
            assert "mail server does not answer" in desk.ask("GET", path).text


def test_doctor_examines_a_desk(archives: Path, tmp_path: Path) -> None:
    config = tmp_path / "desk.toml"
    config.write_text(
        f'data = "{tmp_path}/desk"\narchives = "{archives}"\nport = 0\nsmtp = "127.0.0.1:9"\n'
        'from_address = "a@b.example"\n'
    )
    command = [sys.executable, "-m", "recollect", "doctor", "--config", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = {one["subject"].split()[0]: one for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1 and found["mail"]["level"] == "failure" and found["contact"]["level"] == "warning"
    assert found["archives"]["level"] == found["data"]["level"] == "ok"


def test_a_second_machine_starts_a_worker_with_one_command(desk: RunningDesk, tmp_path: Path) -> None:
    cookie, csrf = log_in(desk)
    page = desk.ask("POST", "/admin/tokens", form={"csrf": csrf, "name": "north"}, Cookie=cookie).text
    token, address = re.findall(r"RECOLLECT_WORKER_TOKEN=(\S+) recollect desk worker --desk (\S+)</pre>", page)[0]
    command = ["worker", "--desk", address, "--work", str(tmp_path / "work")]
    process, said, line = start(command, "waits for jobs", RECOLLECT_WORKER_TOKEN=token)
    try:
        assert f"Worker north-{process.pid} waits" in line, said
        names = [one["name"] for one in desk.operator("GET", "/api/workers").json["workers"]]
        assert f"north-{process.pid}" in names
    finally:
        process.terminate()
        process.wait(20)
    assert (tmp_path / "work").is_dir()
