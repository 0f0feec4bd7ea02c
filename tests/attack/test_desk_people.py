"""Strangers against the people of a desk: other people's tokens, limits, forged pages, files on the disk."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from desk_world import Answer, Job, RunningDesk, running_desk

pytestmark = pytest.mark.xdist_group("attack-desk")
LIMIT = 30


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    """A desk without workers, started with a umask that hides nothing."""
    folder = tmp_path_factory.mktemp("attack")
    archives = folder / "archives.json"
    archives.write_text(json.dumps([{"id": "one", "timemap": "http://127.0.0.1:9/", "concurrency": 2}]))
    limits = {"RECOLLECT_DESK_PER_ADDRESS": str(LIMIT), "RECOLLECT_DESK_PER_SITE": "100000"}
    mask = os.umask(0)
    try:
        with running_desk(folder / "desk", archives, "--workers", "0", **limits) as running:
            yield running
    finally:
        os.umask(mask)


def as_worker(desk: RunningDesk, method: str, path: str, body: Any = None, token: str = "", **headers: str) -> Answer:
    token = token or (desk.folder / "worker.token").read_text().strip()
    return desk.ask(method, f"/api/worker{path}", body, Authorization=f"Bearer {token}", **headers)


def finish(desk: RunningDesk, job: Job) -> None:
    """Deliver a result for a job, as its worker."""
    desk.operator("POST", f"/api/jobs/{job.id}/move", {"rank": 1})
    claimed = as_worker(desk, "POST", "/claim", {"worker": "w"}).json
    assert claimed["id"] == job.id
    lease = {"worker": "w", "fence": claimed["fence"]}
    assert as_worker(desk, "POST", f"/jobs/{job.id}/pack", lease).status == 200
    body = json.dumps("x").encode()
    digest = hashlib.sha256(body).hexdigest()
    where = f"/jobs/{job.id}/files/result.zip?fence={claimed['fence']}&worker=w"
    assert as_worker(desk, "PUT", where, "x", X_Checksum_Sha256=digest).status == 200
    files = [{"name": "result.zip", "size": len(body), "sha256": digest}]
    done = {**lease, "summary": {"recovered": 1}, "files": files}
    assert as_worker(desk, "POST", f"/jobs/{job.id}/deliver", done).status == 200


def token_of(answer: Answer) -> str:
    return str(answer.json["token"])


# Tokens --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "queued", "ready"])
@pytest.mark.parametrize("key", ["", "1"])
def test_who_knows_an_address_and_a_site_learns_nothing_of_its_job(desk: RunningDesk, state: str, key: str) -> None:
    uri, address = f"http://{state}{key}.example/", f"anna-{state}{key}@mail.example"
    headers = {"Idempotency_Key": f"{state}{key}"} if key else {}
    first = desk.ask("POST", "/api/jobs", {"uri": uri, "email": address}, **headers)
    owner = Job(first.json["id"], token_of(first), address, "pending")
    if state != "pending":
        desk.confirm(owner)
    if state == "ready":
        finish(desk, owner)
    new = desk.ask("POST", "/api/jobs", {"uri": f"http://new-{state}{key}.example/", "email": address})
    again = desk.ask("POST", "/api/jobs", {"uri": uri, "email": address}, **headers)
    assert (again.status, again.json.keys(), again.json["state"]) == (201, new.json.keys(), "pending")
    stranger = token_of(again)
    shown = desk.ask("GET", f"/api/jobs/{owner.id}?token={stranger}").json
    other = desk.ask("GET", f"/api/jobs/{new.json['id']}?token={token_of(new)}").json
    differ = {name for name in other if shown[name] != other[name]}
    assert differ <= {"id", "uri", "created", "updated", "options", "status_url"}, "looks like a job that is new"
    assert abs(shown["created"] - other["created"]) < 5
    assert desk.ask("GET", f"/api/jobs/{owner.id}/result.zip?token={stranger}").status == 404
    desk.ask("POST", f"/api/jobs/{owner.id}/cancel?token={stranger}", {})
    assert desk.show(owner)["state"] == state, "a stranger leaves only what was theirs"


def test_a_request_that_was_not_confirmed_starts_nothing(desk: RunningDesk) -> None:
    job = desk.submit("http://unconfirmed.example/", "victim@mail.example")
    answer = desk.ask("POST", f"/jobs/{job.id}/again?token={job.token}", form={"at": "2009"})
    assert answer.status == 404
    assert desk.history(job) == ["submit"]


def test_a_second_confirmation_of_an_address_ends_the_token_of_who_asked_the_second_time(desk: RunningDesk) -> None:
    uri, address = "http://twice.example/", "twice@mail.example"
    owner = desk.submit(uri, address)
    desk.confirm(owner)
    database = desk.folder / "desk.sqlite"
    stranger = desk.submit(uri, address)
    # The second mail comes an hour later; its link is made here as the desk makes it then.
    import sqlite3

    from recollect.desk.people import hash_of

    with sqlite3.connect(database, timeout=30) as db:
        newest = "SELECT id FROM recipient WHERE email = ? ORDER BY created DESC LIMIT 1"
        [recipient] = db.execute(newest, (address,)).fetchone()
        db.execute("INSERT INTO token VALUES (?, ?, 'confirm', 0)", (hash_of("second"), recipient))
    for _ in range(2):
        answer = desk.ask("POST", "/confirm/second", form={})
        assert answer.status == 303
    assert desk.ask("GET", f"/api/jobs/{owner.id}?token={stranger.token}").status == 403
    assert desk.show(owner)["state"] == "queued"
    page = desk.ask("GET", answer.headers["Location"])
    assert page.status == 200, "the person comes to the page of the first request"


def test_the_api_takes_the_documented_fields_and_no_others(desk: RunningDesk) -> None:
    for name in ("source", "estimate", "confirmed_by", "network", "state", "place", "id"):
        for value in ("../../../metrics#", "0" * 16, 5, None, {}):
            body = {"uri": "http://fields.example/", "email": "a@mail.example", name: value}
            answer = desk.ask("POST", "/api/jobs", body)
            assert answer.status == 400 and answer.json["error"]["field"] == name


def test_pages_of_other_origins_cannot_submit_or_cancel(desk: RunningDesk) -> None:
    job = desk.submit("http://origin.example/")
    body = {"uri": "http://origin2.example/", "email": "o@mail.example"}
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert desk.ask("POST", "/api/jobs", body, Origin=origin).status == 403
        assert desk.ask("POST", f"/api/jobs/{job.id}/cancel?token={job.token}", {}, Origin=origin).status == 403
    assert desk.ask("POST", "/api/jobs", body, Origin=desk.base).status == 201
    assert desk.show(job)["state"] == "pending"


# Limits --------------------------------------------------------------------------------------------------------------


def test_a_repeated_idempotency_key_counts_like_any_submission(desk: RunningDesk) -> None:
    body = {"uri": "http://repeated.example/", "email": "repeats@mail.example"}
    seen = [desk.ask("POST", "/api/jobs", body, Idempotency_Key="same").status for _ in range(LIMIT + 3)]
    assert seen == [201] * LIMIT + [429] * 3
    assert len([m for m in desk.mails() if m["To"] == "repeats@mail.example"]) <= 2, "no bomb of mails"


def test_a_link_of_a_mail_can_be_answered_only_so_often(desk: RunningDesk) -> None:
    from recollect.desk.people import CONFIRMATIONS

    job = desk.submit("http://often.example/", "often@mail.example")
    [link] = re.findall(r"https?://\S+", desk.mail("often@mail.example", "confirm").get_content())
    path = link.removeprefix(desk.base)
    seen = [desk.ask("POST", path, form={}).status for _ in range(CONFIRMATIONS + 2)]
    assert seen == [303] * CONFIRMATIONS + [429] * 2
    assert desk.show(job)["state"] == "queued"


def test_one_token_does_not_take_the_places_of_all_who_watch(desk: RunningDesk) -> None:
    from recollect.desk.http.hub import MAX_OF_ONE, MAX_WATCHERS

    greedy, other = desk.submit("http://greedy.example/"), desk.submit("http://modest.example/")
    assert MAX_OF_ONE < MAX_WATCHERS
    open_ones = []
    try:
        for number in range(MAX_OF_ONE + 3):
            connection = http.client.HTTPConnection(urlsplit(desk.base).netloc, timeout=20)
            connection.request("GET", f"/api/jobs/{greedy.id}/events?token={greedy.token}")
            assert connection.getresponse().status == (200 if number < MAX_OF_ONE else 429)
            open_ones.append(connection)
        connection = http.client.HTTPConnection(urlsplit(desk.base).netloc, timeout=20)
        connection.request("GET", f"/api/jobs/{other.id}/events?token={other.token}")
        assert connection.getresponse().status == 200
        open_ones.append(connection)
    finally:
        for connection in open_ones:
            connection.close()


# Pages, metrics, files -----------------------------------------------------------------------------------------------


def test_a_forged_form_with_letters_outside_of_ascii_is_refused(desk: RunningDesk) -> None:
    password = (desk.folder / "admin.password").read_text().strip()
    cookie = str(desk.ask("POST", "/admin/login", form={"password": password}).headers["Set-Cookie"]).partition(";")[0]
    for csrf in ("é", "\ufffd", "日本" * 50, ""):
        assert desk.ask("POST", "/admin/logout", form={"csrf": csrf}, Cookie=cookie).status == 403


def test_metrics_name_workers_only_to_the_operator_and_no_name_breaks_a_line(desk: RunningDesk) -> None:
    job = desk.queue("http://metrics.example/")
    desk.operator("POST", f"/api/jobs/{job.id}/move", {"rank": 1})
    egress = '10.0.0.7",x="\n# TYPE evil counter\\'
    claimed = as_worker(desk, "POST", "/claim", {"worker": "odd", "egress": egress}).json
    lease = {"worker": "odd", "fence": claimed["fence"], "egress": egress}
    asked = {**lease, "archive": "one", "kind": "index"}
    assert as_worker(desk, "POST", f"/jobs/{job.id}/permit", asked).json["granted"]
    public, whole = desk.ask("GET", "/metrics").text, desk.operator("GET", "/metrics").text
    assert "10.0.0.7" not in public and "permits_total" in public
    assert 'egress="10.0.0.7\\",x=\\"\\n# TYPE evil counter\\\\"' in whole
    sample = re.compile(r'[a-z_]+(\{([a-z]+="(\\.|[^"\\\n])*",?)*\})? [0-9.]+|# .*')
    assert all(sample.fullmatch(line) for line in whole.splitlines())
    as_worker(desk, "POST", f"/jobs/{job.id}/release", lease)


def test_files_of_the_desk_are_its_users_only(desk: RunningDesk, tmp_path: Path) -> None:
    import subprocess
    import sys

    desk.submit("http://files.example/", "files@mail.example")
    desk.mail("files@mail.example", "confirm")
    backup = tmp_path / "backup.tar.gz"
    mask = os.umask(0)
    try:
        command = ["desk", "backup", "--data", str(desk.folder), "-o", str(backup)]
        subprocess.run([sys.executable, "-m", "recollect", *command], check=True, timeout=60)
    finally:
        os.umask(mask)
    for path in (backup, desk.folder, *desk.folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path.name} is {mode:o}"
