"""The whole way from the form to the zip: the desk as a command, real archives (pywb), both databases."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desk_world import RunningDesk, running_desk
from pywb_archive import pywb_archives
from websites import website, write_warc

pytestmark = pytest.mark.xdist_group("desk")


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("world")
    site = website(seed=3, pages=12)
    holdings = []
    for number, shots in enumerate(site.scattered(2, seed=5)):
        warc = folder / f"{number}.warc.gz"
        write_warc(warc, shots)
        holdings.append((folder / f"archive-{number}", (), [warc]))
    with pywb_archives(holdings) as running:
        entries = [{"id": f"p{n}", "timemap": a.timemap, "cdx": a.cdx, "raw": a.raw} for n, a in enumerate(running)]
        path = folder / "archives.json"
        path.write_text(json.dumps(entries))
        yield path


@pytest.fixture(scope="module")
def expected(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tree that `recollect recover` makes of the same archives."""
    folder = tmp_path_factory.mktemp("expected") / "site"
    command = [
        "recover",
        "http://lost.example/",
        "-o",
        str(folder),
        "--archives",
        str(archives),
        "--quiet",
        "--yes",
        "--no-scripts",
    ]
    subprocess.run([sys.executable, "-m", "recollect", *command], check=True, timeout=120)
    return site_of({p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()})


def site_of(tree: dict[str, bytes]) -> dict[str, bytes]:
    """What does not depend on the moment of the recovery: not the reports and WARCs, which hold its date."""
    return {name: body for name, body in tree.items() if name.startswith(("lost.example/", "rehost/"))}


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, archives: Path, tmp_path: Path) -> Iterator[RunningDesk]:
    flags = ["--database", request.getfixturevalue("postgres_url")] if request.param == "postgresql" else []
    with running_desk(
        tmp_path / "desk", archives, *flags, RECOLLECT_DESK_HEARTBEAT="0.3", RECOLLECT_DESK_PICTURES="0"
    ) as running:
        yield running


def test_from_the_form_to_the_zip(desk: RunningDesk, expected: dict[str, bytes]) -> None:
    home = desk.ask("GET", "/")
    assert home.status == 200 and 'name="uri"' in home.text
    path = "/survey?uri=lost.example&scope=site"
    page = desk.ask("GET", path)
    while "Asking the archives" in page.text:
        page = desk.ask("GET", path)
    assert "Copies per year" in page.text and 'name="email"' in page.text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    sent = desk.ask("POST", "/jobs", form={**fields, "email": "anna@mail.example"})
    assert sent.status == 303 and sent.headers["Location"].startswith("/sent")
    mail = desk.mail("anna@mail.example", "confirm")
    [link] = re.findall(r"https?://\S+", mail.get_content())
    assert re.fullmatch(re.escape(desk.base) + r"/confirm/[\w-]+", link)
    assert desk.operator("GET", "/api/jobs").json["counts"]["pending"] == 1, "opening the link does nothing"
    for _ in range(2):
        assert desk.ask("POST", link, form={}).status == 303
    [job] = desk.operator("GET", "/api/jobs").json["jobs"]
    place = desk.ask("POST", link, form={}).headers["Location"]
    token = place.rpartition("token=")[2]

    def show() -> Any:
        return desk.ask("GET", f"/api/jobs/{job['id']}?token={token}").json

    from desk_world import until

    until(lambda: show()["state"] == "ready", 90, lambda: f"{show()} {''.join(desk.said)}")
    reply = show()
    assert reply["progress"] == 1 and reply["summary"]["recovered"] > 20
    zipped = desk.ask("GET", reply["result"]["zip"])
    assert zipped.headers["X-Checksum-Sha256"] == hashlib.sha256(zipped.body).hexdigest()
    with zipfile.ZipFile(io.BytesIO(zipped.body)) as archive:
        tree = {name: archive.read(name) for name in archive.namelist()}
    assert site_of(tree) == expected
    assert {"report.html", "report.json", "summary.tsv", "recovered.warc.gz", "recovered.wacz"} <= set(tree)
    tar = desk.ask("GET", reply["result"]["tar.gz"])
    with tarfile.open(fileobj=io.BytesIO(tar.body)) as opened:
        assert {e.name: opened.extractfile(e).read() for e in opened} == tree  # type: ignore[union-attr]
    assert zipfile.ZipFile(io.BytesIO(desk.ask("GET", reply["result"]["wacz"]).body)).namelist()
    report = desk.ask("GET", reply["result"]["report"])
    assert "sandbox" in report.headers["Content-Security-Policy"]
    part = desk.ask("GET", reply["result"]["zip"], Range="bytes=100-199")
    assert part.status == 206 and part.body == zipped.body[100:200]
    assert show()["state"] == "picked-up"
    assert "is back" in desk.mail("anna@mail.example", "is back")["Subject"]
    page = desk.ask("GET", place)
    assert ">Download<" in page.text and "expires" not in page.text
    actions = [e["action"] for e in desk.operator("GET", f"/api/history?job={job['id']}").json["events"]]
    assert actions == ["submit", "confirm", "claim", "pack", "deliver", "pick-up"]


@pytest.fixture(scope="module")
def idle(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    """A desk without workers: jobs stay where they are."""
    with running_desk(tmp_path_factory.mktemp("idle") / "desk", archives, "--workers", "0") as running:
        yield running


def test_the_api_keeps_its_contract(idle: RunningDesk) -> None:
    body = {"uri": "http://one.example/", "email": "a@mail.example", "scope": "site", "archives": ["p0"], "at": "2009"}
    answer = idle.ask("POST", "/api/jobs", {**body, "windows_names": True}, Idempotency_Key="first")
    assert answer.status == 201
    reply = answer.json
    assert reply["state"] == "pending" and reply["status_url"].startswith(f"{idle.base}/jobs/{reply['id']}?token=")
    again = idle.ask("POST", "/api/jobs", {**body, "windows_names": True}, Idempotency_Key="first")
    assert (again.status, again.json["id"]) == (201, reply["id"])
    other = idle.ask("POST", "/api/jobs", {**body, "uri": "http://two.example/"}, Idempotency_Key="first")
    assert other.status == 422
    token = reply["token"]
    shown = idle.ask("GET", f"/api/jobs/{reply['id']}?token={token}").json
    assert shown["state"] == "pending" and shown["options"]["archives"] == ["p0"]
    for wrong in ("", "?token=", "?token=x", f"?token={token}x"):
        assert idle.ask("GET", f"/api/jobs/{reply['id']}{wrong}").status == 403
    assert idle.ask("GET", f"/api/jobs/0123456789abcdef?token={token}").status == 403
    assert idle.ask("GET", f"/api/jobs/{reply['id']}/result.zip?token={token}").status == 404
    assert idle.ask("POST", f"/api/jobs/{reply['id']}/cancel?token={token}", {}).json["state"] == "cancelled"
    assert idle.ask("GET", f"/api/jobs/{reply['id']}?token={token}").json["state"] == "cancelled"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"uri": "http://127.0.0.1/", "email": "a@b.example"}, "uri"),
        ({"uri": "http://u:p@one.example/", "email": "a@b.example"}, "uri"),
        ({"uri": "http://one.example/", "email": "a@b.example, c@d.example"}, "email"),
        ({"uri": "http://one.example/", "email": "a@b.example", "archives": ["nowhere"]}, "archives"),
        ({"uri": "http://one.example/", "email": "a@b.example", "scope": "all"}, "scope"),
    ],
)
def test_bad_submissions_are_refused_with_the_field(idle: RunningDesk, body: dict[str, Any], field: str) -> None:
    answer = idle.ask("POST", "/api/jobs", body)
    assert answer.status == 400 and answer.json["error"]["field"] == field


def test_a_body_that_is_not_json_is_an_error_and_not_a_fault(idle: RunningDesk) -> None:
    assert idle.ask("POST", "/api/jobs", form={"uri": "x"}).status == 400
    assert idle.ask("POST", "/api/jobs", ["list"]).status == 400
    assert idle.ask("GET", "/nowhere").status == 404 and "no such page" in idle.ask("GET", "/nowhere").text


def test_the_link_of_the_mail_confirms_by_post_only_and_again_changes_nothing(idle: RunningDesk) -> None:
    job = idle.submit("http://confirm.example/", "c@mail.example")
    body = idle.mail("c@mail.example", "confirm").get_content()
    [link] = re.findall(r"https?://\S+", body)
    for method in ("GET", "HEAD", "GET"):
        assert idle.ask(method, link).status == 200
    assert idle.show(job)["state"] == "pending"
    for origin in ("https://evil.example", "null"):
        assert idle.ask("POST", link, form={}, Origin=origin).status == 403
    assert idle.show(job)["state"] == "pending"
    assert idle.ask("POST", link, form={}, Origin=idle.base).status == 303
    reply = idle.show(job)
    assert reply["state"] == "queued" and reply["rank"] >= 1 and reply["estimate"]["working"] > 0
    assert idle.ask("POST", link, form={}).status == 303
    assert idle.history(job) == ["submit", "confirm"]
    assert idle.ask("GET", "/confirm/wrong").status == 404


def test_events_tell_of_every_change(idle: RunningDesk) -> None:
    from urllib.request import urlopen

    job = idle.queue("http://events.example/")
    with urlopen(f"{idle.base}/api/jobs/{job.id}/events?token={job.token}", timeout=20) as stream:
        reply = [json.loads(line[6:]) for line in _lines(stream, 1)]
        assert reply[0]["state"] == "queued"
        idle.operator("POST", f"/api/jobs/{job.id}/pause")
        assert [json.loads(line[6:])["state"] for line in _lines(stream, 1)] == ["waiting"]
        idle.ask("POST", f"/api/jobs/{job.id}/cancel?token={job.token}", {})
        assert [json.loads(line[6:])["state"] for line in _lines(stream, 1)] == ["cancelled"]
        assert stream.read().strip() == b"", "a job that ended ends its stream"


def _lines(stream: Any, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        line = stream.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            found.append(line)
    return found


def test_the_operator_moves_retries_and_deletes_and_no_one_else_does(idle: RunningDesk) -> None:
    jobs = [idle.queue(f"http://move{n}.example/") for n in range(3)]
    for path, body in (("move", {"rank": 1}), ("retry", {}), ("pause", {})):
        assert idle.ask("POST", f"/api/jobs/{jobs[2].id}/{path}?token={jobs[2].token}", body).status == 403
    for path in ("/api/jobs", "/api/workers", "/api/history", "/api/mails", "/api/statistics", "/api/archives"):
        assert idle.ask("GET", path).status == 403
        assert idle.operator("GET", path).status == 200
    assert idle.ask("POST", "/api/worker/claim", {"worker": "x"}).status == 403
    assert idle.operator("POST", f"/api/jobs/{jobs[2].id}/move", {"rank": 1}).json["rank"] == 1
    assert idle.show(jobs[2])["rank"] == 1
    assert idle.operator("POST", f"/api/jobs/{jobs[2].id}/retry").status == 409, "only what ended can be retried"
    idle.ask("POST", f"/api/jobs/{jobs[1].id}/cancel?token={jobs[1].token}", {})
    assert idle.operator("POST", f"/api/jobs/{jobs[1].id}/retry").json["state"] == "queued"
    assert idle.operator("DELETE", f"/api/jobs/{jobs[0].id}").status == 204
    assert idle.ask("GET", f"/api/jobs/{jobs[0].id}?token={jobs[0].token}").status == 410
    xml = idle.operator("GET", "/api/history.xml").text
    assert xml.startswith("<?xml") and 'action="delete"' in xml
    assert idle.operator("GET", "/api/history.csv").text.startswith("number,at,job,action,before,after,actor,detail")


def test_machines_see_health_readiness_and_counters(idle: RunningDesk) -> None:
    assert idle.ask("GET", "/health").json["status"] == "ok"
    assert idle.ask("GET", "/ready").json["ready"] is True
    assert 'recollect_desk_jobs{state="queued"}' in idle.ask("GET", "/metrics").text


def test_the_commands_of_jobs(idle: RunningDesk, tmp_path: Path) -> None:
    def jobs(*args: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "recollect", "jobs", *args],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    reply = json.loads(
        jobs("submit", "http://cli.example/", "--email", "cli@mail.example", "--desk", idle.base, "--json")
    )
    assert reply["state"] == "pending"
    shown = json.loads(jobs("show", reply["id"], "--desk", idle.base, "--json"))
    assert shown["uri"] == "http://cli.example/", "the token is remembered"
    assert json.loads(jobs("show", reply["status_url"], "--json"))["id"] == reply["id"]
    own = json.loads(
        jobs("submit", "http://own.example/", "--email", "o@mail.example", "--data", str(idle.folder), "--json")
    )
    assert own["state"] == "queued", "the operator needs no mail"
    jobs("move", own["id"], "1", "--data", str(idle.folder))
    listed = json.loads(jobs("list", "--state", "queued", "--data", str(idle.folder), "--json"))
    assert listed["jobs"][0]["id"] == own["id"]
    assert own["id"] in jobs("list", "--data", str(idle.folder))
    jobs("cancel", own["id"], "--desk", idle.base)
    jobs("retry", own["id"], "--data", str(idle.folder))
    assert "workers" in json.loads(jobs("workers", "--data", str(idle.folder), "--json"))
    assert "<event" in jobs("history", "--format", "xml", "--data", str(idle.folder))
    jobs("list", "--desk", idle.base, code=1)  # another home: this user did not start the desk
    jobs("fetch", own["id"], "-o", str(tmp_path / "x.zip"), "--desk", idle.base, code=1)
    jobs("fetch", own["id"], "-o", str(tmp_path / "x.rar"), "--desk", idle.base, code=2)
    jobs("cancel", reply["id"], "--desk", idle.base)
    jobs("watch", reply["id"], "--desk", idle.base, code=1)


def test_no_secret_and_no_address_in_what_the_desk_says(idle: RunningDesk) -> None:
    job = idle.submit("http://quiet.example/", "quiet-person@mail.example")
    idle.ask("GET", f"/jobs/{job.id}?token={job.token}")
    idle.ask("GET", f"/api/jobs/{job.id}/result.zip?token={job.token}")
    said = "".join(idle.said)
    assert job.token not in said and "quiet-person" not in said


def test_the_aggregators_page_links_a_configured_desk(tmp_path: Path) -> None:
    from urllib.request import urlopen

    from small_archives import serving, small_archives

    with small_archives() as held:
        held.add("one", {"http://a.example/": ["20150101000000"]})
        registry = held.write(tmp_path)
        for flags, linked in ((["--desk", "https://desk.example/"], True), ([], False)):
            with serving(registry, "--no-learn", *flags) as base, urlopen(f"{base}/?uri=http://a.example/") as answer:
                page = answer.read().decode()
            there = 'href="https://desk.example/survey?uri=http%3A%2F%2Fa.example%2F"' in page
            assert there is linked and ("Get this site back" in page) is linked


def test_who_started_a_desk_operates_it_by_its_address_alone(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, XDG_STATE_HOME=str(tmp_path), RECOLLECT_DESK_PICTURES="0") as desk:

        def jobs(*args: str) -> str:
            done = subprocess.run(
                [sys.executable, "-m", "recollect", "jobs", *args, "--desk", desk.base],
                capture_output=True,
                text=True,
                timeout=90,
                cwd=tmp_path,
                env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        job = jobs("submit", "http://lost.example/", "--email", "a@mail.example").strip()
        [listed] = json.loads(jobs("list", "--json"))["jobs"]
        assert (listed["id"], listed["state"]) == (job, "pending"), "also the operator's mail is confirmed"
        reply = json.loads(jobs("show", job, "--json"))
        desk.confirm(type("J", (), {"email": "a@mail.example"})())  # type: ignore[arg-type]
        jobs("watch", job)
        jobs("fetch", job)
        assert zipfile.is_zipfile(tmp_path / "lost.example.zip") and reply["id"] == job
        assert "deliver" in jobs("history", "--format", "csv")
