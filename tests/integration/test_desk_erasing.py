"""Delete my data now: afterwards no file and no row of the desk names the person or the site, free pages included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk_world import Job, RunningDesk, running_desk, running_worker, until
from fake_archive import Fake, served

pytestmark = pytest.mark.xdist_group("desk-erasing")
SITE, PERSON = "orchard-of-ines.example", "ines@post.example"


def traces(desk: RunningDesk, *words: str) -> list[str]:
    """Files below the desk's folder that have one of the words in their name or bytes, whatever the case."""
    found = []
    for path in sorted(desk.folder.rglob("*")):
        data = path.read_bytes().lower() if path.is_file() else b""
        data += path.name.encode().lower()
        found += [f"{path.relative_to(desk.folder)}: {word}" for word in words if word.lower().encode() in data]
    return found


@pytest.fixture
def archives(tmp_path: Path):  # type: ignore[no-untyped-def]
    fake = Fake()
    for host in (SITE, "kept.example"):
        fake.add(f"http://{host}/", "<title>Apples</title><p>Apples.</p><a href=/a>a</a>")
        fake.add(f"http://{host}/a", "<title>Pears</title><p>Pears.</p>")
    with served(fake) as archive:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw}]))
        yield path


def forget(desk: RunningDesk, job: Job) -> None:
    assert desk.ask("POST", f"/jobs/{job.id}/forget?token={job.token}", form={}).status == 303
    answer = desk.ask("GET", f"/jobs/{job.id}?token={job.token}")
    assert answer.status == 410 and "Your data was deleted, as you wished" in answer.text


def test_nothing_of_a_person_or_their_site_is_left(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, RECOLLECT_DESK_PICTURES="0") as desk:
        other = desk.submit("http://kept.example/", "kept@post.example")
        desk.ask("GET", f"/survey?uri={SITE}")
        desk.ask("GET", f"/survey?uri=http://{SITE}/a&scope=page")
        job = desk.submit(f"http://{SITE}/", "Ines@Post.example", name="Ines Macieira")
        desk.confirm(job)
        again = desk.submit(f"http://{SITE}/a", "Ines@Post.example", name="Ines Macieira", scope="page")
        desk.wait(job, "ready")
        desk.mail("Ines@Post.example", "is back")
        assert traces(desk, SITE, PERSON, "Macieira")
        forget(desk, job)
        assert traces(desk, SITE, PERSON, "Macieira") == []
        assert desk.ask("GET", f"/jobs/{again.id}?token={again.token}").status == 410, "all requests of the address"
        assert desk.show(other)["state"] == "pending" and traces(desk, "kept@post.example"), "of others everything is"
        assert desk.history(job)[-1] == "delete"
        assert desk.operator("GET", "/api/statistics").json["tlds"] == {"example": [1, 1.0]}, "counts stay"
    assert traces(desk, SITE, PERSON, "Macieira") == [], "after the end, too"


def test_a_running_job_leaves_nothing_at_its_worker(archives: Path, tmp_path: Path) -> None:
    settings = {"RECOLLECT_DESK_PICTURES": "0", "RECOLLECT_DESK_HEARTBEAT": "0.5"}
    listed = json.loads(archives.read_text())
    archives.write_text(json.dumps([{**listed[0], "rate": "12/min"}]))
    with running_desk(tmp_path / "desk", archives, "--workers", "0", **settings) as desk:
        work = tmp_path / "machine"
        (work / "my-own-folder").mkdir(parents=True)
        with running_worker(desk, work):
            job = desk.submit(f"http://{SITE}/", PERSON)
            desk.confirm(job)
            desk.wait(job, "running")
            until(lambda: (work / job.id / "site").exists(), 20)
            forget(desk, job)
            assert traces(desk, SITE, PERSON) == []
            until(lambda: not (work / job.id).exists(), 30)
        assert traces(desk, SITE, PERSON) == []
        # What a worker has of a job that was deleted while it was away goes when it comes back.
        (work / job.id).mkdir()
        (work / job.id / "lock").touch()
        with running_worker(desk, work):
            until(lambda: not (work / job.id).exists(), 30)
        assert (work / "my-own-folder").is_dir(), "a person's folder is theirs"


def test_others_keep_a_job_that_one_of_them_leaves(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, RECOLLECT_DESK_PICTURES="0") as desk:
        one = desk.submit(f"http://{SITE}/", PERSON)
        desk.confirm(one)
        two = desk.submit(f"http://{SITE}/", "neighbour@post.example")
        desk.confirm(two)
        desk.wait(two, "ready")
        desk.mail(PERSON, "is back")
        assert desk.ask("POST", f"/api/jobs/{one.id}/forget?token={one.token}", {}).status == 200
        assert traces(desk, PERSON) == [] and desk.show(two)["state"] == "ready"
        assert "Cancelled" in desk.ask("GET", f"/jobs/{one.id}?token={one.token}").text
