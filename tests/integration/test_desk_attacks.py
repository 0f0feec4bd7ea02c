"""Hostile users, hostile workers and careless operators against a running desk."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from desk_world import Answer, Job, RunningDesk, running_desk, start, until

pytestmark = pytest.mark.xdist_group("desk-attacks")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    """A desk without workers, and an archive that does not exist."""
    folder = tmp_path_factory.mktemp("attacks")
    archives = folder / "archives.json"
    archives.write_text(
        json.dumps([{"id": "one", "name": '<b>"One"</b>', "timemap": "http://127.0.0.1:9/", "concurrency": 2}])
    )
    limits = {"RECOLLECT_DESK_PER_ADDRESS": "100000", "RECOLLECT_DESK_LEASE": "600"}
    with running_desk(folder / "desk", archives, "--workers", "0", **limits) as running:
        yield running


def as_worker(desk: RunningDesk, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    token = (desk.folder / "worker.token").read_text().strip()
    return desk.ask(method, f"/api/worker{path}", body, Authorization=f"Bearer {token}", **headers)


class Claimed:
    """A job that this test holds as its worker."""

    def __init__(self, desk: RunningDesk, uri: str, name: str = "mine") -> None:
        self.desk, self.name = desk, name
        self.job: Job = desk.queue(uri)
        desk.operator("POST", f"/api/jobs/{self.job.id}/move", {"rank": 1})
        reply = as_worker(desk, "POST", "/claim", {"worker": name}).json
        assert reply["id"] == self.job.id
        self.fence: int = reply["fence"]

    def post(self, step: str, **fields: Any) -> Answer:
        body = {"worker": self.name, "fence": self.fence, **fields}
        return as_worker(self.desk, "POST", f"/jobs/{self.job.id}/{step}", body)

    def put(self, name: str, body: Any = "x", **changes: str) -> Answer:
        digest = changes.pop("digest", hashlib.sha256(json.dumps(body).encode()).hexdigest())
        query = "&".join(f"{k}={v}" for k, v in {"fence": str(self.fence), "worker": self.name, **changes}.items())
        where = f"/jobs/{self.job.id}/files/{name}?{query}"
        return as_worker(self.desk, "PUT", where, body, X_Checksum_Sha256=digest)

    def deliver(self, **summary: Any) -> None:
        assert self.post("pack").status == 200
        files = []
        for name in ("result.zip", "result.tar.gz"):
            assert self.put(name).status == 200
            files.append({"name": name, "size": 3, "sha256": hashlib.sha256(b'"x"').hexdigest()})
        assert self.post("deliver", summary=summary, files=files).status == 200


# People --------------------------------------------------------------------------------------------------------------

PRIVATE = [
    "http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://localhost:8080/",
    "http://metadata.internal/", "http://169.254.169.254/latest/", "http://user:pass@lost.example/", "file:///etc/passwd",
    "gopher://lost.example/", "http://lost.example@127.0.0.1/", "//127.0.0.1/", "http://127.0.0.1.:80/", "http://0177.0.0.1/",
    "http://lost.example\r\nHost: x/", "http://１２７.０.０.１/", "http://127。0。0。1/", "javascript:alert(1)",
]  # fmt: skip


@pytest.mark.parametrize("uri", PRIVATE)
def test_nothing_but_public_web_addresses_is_taken(desk: RunningDesk, uri: str) -> None:
    answer = desk.ask("POST", "/api/jobs", {"uri": uri, "email": "a@mail.example"})
    assert answer.status == 400 and answer.json["error"]["field"] == "uri"


@pytest.mark.parametrize(
    "body",
    [
        {"uri": "http://lost.example/", "email": "a@mail.example", "archives": ["http://evil.example/"]},
        {"uri": "http://lost.example/", "email": "a@mail.example", "archives": "one,two"},
        {"uri": "http://lost.example/", "email": "a@mail.example", "archives": {"id": "x"}},
        {"uri": "http://lost.example/", "email": "a@mail.example,b@mail.example"},
        {"uri": "http://lost.example/", "email": "a@mail.example\nBcc: b@mail.example"},
        {"uri": "http://lost.example/", "email": '"a" <a@mail.example>'},
        {"uri": "http://lost.example/", "email": "ä@mail.example"},
        {"uri": ["http://lost.example/"], "email": "a@mail.example"},
        {"uri": "http://lost.example/\ud800", "email": "a@mail.example", "scope": "all"},
        {"uri": "http://lost.example/", "email": "a@mail.example", "source": 5},
    ],
)
def test_what_is_not_as_documented_is_refused_and_never_a_fault(desk: RunningDesk, body: dict[str, Any]) -> None:
    assert desk.ask("POST", "/api/jobs", body).status == 400


def test_bodies_that_are_too_large_too_deep_or_not_text(desk: RunningDesk) -> None:
    target = urlsplit(desk.base).netloc
    for body, status in (
        (b"[" * 200_000, 400),
        (b'{"uri": ' + b"9" * 20_000 + b"}", 400),
        (b"\xff\xfe", 400),
        (b'{"uri": "' + b"x" * 2_000_000 + b'"}', 413),
    ):
        connection = http.client.HTTPConnection(target, timeout=30)
        connection.request("POST", "/api/jobs", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == status, body[:20]
        connection.close()


def test_a_surrogate_or_a_nul_in_any_field_is_not_a_fault(desk: RunningDesk) -> None:
    taken = desk.ask("POST", "/api/jobs", {"uri": "http://odd.example/", "email": "a@mail.example", "name": "\ud800\0"})
    assert taken.status == 201
    for path in ("/api/jobs/%00?token=x", "/jobs/%ff?token=%00", "/confirm/%00", "/api/history?job=%00"):
        assert desk.operator("GET", path).status in (200, 403, 404)
    form = {"uri": "http://odd.example/", "email": "a@mail.example", "reason": "\0 \u2028"}
    assert desk.ask("POST", "/takedown", form=form).status == 200


def test_slow_clients_hold_up_no_one(desk: RunningDesk) -> None:
    host, port = urlsplit(desk.base).netloc.split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(200)]
    try:
        for number, one in enumerate(idle):
            head = b"POST /api/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
            one.sendall(head + b"\r\n{" if number % 2 else head)
        began = time.monotonic()
        assert desk.ask("GET", "/").status == 200
        assert time.monotonic() - began < 3
    finally:
        for one in idle:
            one.close()


def test_what_users_type_is_shown_as_text(desk: RunningDesk) -> None:
    evil = "http://x.example/'\"><script>alert(1)</script>"
    page = desk.ask("GET", "/survey?uri=" + "http://x.example/%22%3E%3Cscript%3E" + "&when=%22%3E%3Cb%3E").text
    assert "<script>" not in page.replace("<script src=", "") and "<b>" not in page
    assert "<b>&quot;One" not in desk.ask("GET", "/").text and "&lt;b&gt;" in desk.ask("GET", "/").text
    assert "<script>" not in desk.ask("GET", "/sent?uri=%3Cscript%3E").text
    assert desk.ask("POST", "/api/jobs", {"uri": evil, "email": "a@mail.example"}).status == 400
    held = Claimed(desk, "http://shown.example/%3Cb%3E'")
    bad = "<img src=x onerror=alert(1)>"
    assert held.post("beat", status={"stage": bad, "recovered": {bad: 1}, "waiting_for": [
        {"archive": bad, "until": time.time() + 50}]}, log=bad).status == 200  # fmt: skip
    where = f"/jobs/{held.job.id}?token={held.job.token}"
    assert "<img" not in desk.ask("GET", where).text
    held.deliver(recovered=2, missing=1, missing_by_reason={bad: 1}, front=bad, first=bad, stopped=bad,
                 missing_examples=[{"uri": bad, "reason": bad}])  # fmt: skip
    page = desk.ask("GET", where).text
    assert "<img src=x" not in page and "&lt;img src=x" in page
    cookie = log_in(desk)
    for path in ("/admin", f"/admin/jobs/{held.job.id}", "/admin/archives", "/admin/statistics", "/admin/workers"):
        page = desk.ask("GET", path, Cookie=cookie).text
        assert "<img src=x" not in page and "<b>" not in page.replace("<b>", "", page.count("<li><b>"))


def test_links_with_secrets_leave_no_trace_elsewhere(desk: RunningDesk) -> None:
    job = desk.submit("http://traces.example/")
    for path in (f"/jobs/{job.id}?token={job.token}", "/confirm/x"):
        headers = desk.ask("GET", path).headers
        assert headers["Referrer-Policy"] in ("no-referrer", "same-origin")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"] and headers["Cache-Control"] == "no-store"
    assert not any(job.token in line or "anna@" in line for line in desk.said)


def test_a_confirmation_by_get_or_head_changes_nothing_and_many_at_once_confirm_once(desk: RunningDesk) -> None:
    job = desk.submit("http://scanner.example/", "scanner@mail.example")
    [link] = re.findall(r"https?://\S+", desk.mail("scanner@mail.example", "confirm").get_content())
    path = link.removeprefix(desk.base)
    for method in ("GET", "HEAD", "GET"):
        assert desk.ask(method, path).status == 200
    assert desk.ask("POST", path, form={}, Origin="http://evil.example").status == 403
    assert desk.ask("POST", path, form={}, Origin="null").status == 403
    assert desk.show(job)["state"] == "pending"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: desk.ask("POST", path, form={}).status, range(8)))
    assert answers == [303] * 8 and desk.history(job) == ["submit", "confirm"]


def test_a_token_opens_only_its_own_job(desk: RunningDesk) -> None:
    one, two = desk.submit("http://one.example/"), desk.submit("http://two.example/")
    for path in ("", "/events", "/result.zip", "/report.html", "/thumb-0.png"):
        assert desk.ask("GET", f"/api/jobs/{two.id}{path}?token={one.token}").status == 403
        assert desk.ask("GET", f"/api/jobs/{two.id}{path}").status == 403
    assert desk.ask("POST", f"/api/jobs/{two.id}/cancel?token={one.token}", {}).status == 403
    for name in ("..%2f..%2foperator.token", "result.zip%2f..%2fstate.tar", "state.tar", ".result.zip.sha256"):
        assert desk.ask("GET", f"/api/jobs/{one.id}/{name}?token={one.token}").status == 404
        assert desk.ask("GET", f"/api/jobs/{one.id}/result.{name}?token={one.token}").status == 404


def test_who_left_does_not_change_what_the_others_see(desk: RunningDesk) -> None:
    one = desk.submit("http://shared.example/", "stays@mail.example")
    two = desk.submit("http://shared.example/", "leaves@mail.example")
    desk.confirm(one)
    desk.confirm(two)
    desk.ask("POST", f"/api/jobs/{two.id}/cancel?token={two.token}", {})
    seen = {}
    for job in (two, one):
        connection = http.client.HTTPConnection(urlsplit(desk.base).netloc, timeout=20)
        connection.request("GET", f"/api/jobs/{job.id}/events?token={job.token}")
        stream = connection.getresponse()
        line = next(line for line in iter(stream.readline, b"") if line.startswith(b"data: "))
        seen[job.email] = json.loads(line[6:])["state"]
        connection.close()
    assert seen == {"leaves@mail.example": "cancelled", "stays@mail.example": "queued"}


def test_ranks_move_for_those_who_watch(desk: RunningDesk) -> None:
    first, second = desk.queue("http://ahead.example/"), desk.queue("http://behind.example/")
    ranks: list[int] = []

    def watch() -> None:
        connection = http.client.HTTPConnection(urlsplit(desk.base).netloc, timeout=40)
        connection.request("GET", f"/api/jobs/{second.id}/events?token={second.token}")
        stream = connection.getresponse()
        for line in iter(stream.readline, b""):
            if line.startswith(b"data: "):
                ranks.append(json.loads(line[6:])["rank"])
                if len(set(ranks)) > 1:
                    break
        connection.close()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    until(lambda: bool(ranks), 10)
    desk.operator("POST", f"/api/jobs/{first.id}/cancel", {})
    thread.join(30)
    assert ranks[-1] == ranks[0] - 1


# The operator --------------------------------------------------------------------------------------------------------


def log_in(desk: RunningDesk) -> str:
    password = (desk.folder / "admin.password").read_text().strip()
    answer = desk.ask("POST", "/admin/login", form={"password": password})
    assert answer.status == 303
    return str(answer.headers["Set-Cookie"]).partition(";")[0]


def csrf_of(desk: RunningDesk, cookie: str) -> str:
    return re.findall(r'name="csrf" value="([^"]+)"', desk.ask("GET", "/admin", Cookie=cookie).text)[0]


def test_admin_forms_need_session_token_and_origin(desk: RunningDesk) -> None:
    job = desk.submit("http://forged.example/")
    cookie = log_in(desk)
    csrf = csrf_of(desk, cookie)
    path = f"/admin/jobs/{job.id}/cancel"
    assert desk.ask("POST", path, form={"csrf": csrf}).status == 303, "no session: the login"
    assert desk.ask("POST", path, form={"csrf": "x"}, Cookie=cookie).status == 403
    assert desk.ask("POST", path, form={"csrf": csrf}, Cookie=cookie, Origin="null").status == 403
    assert desk.ask("POST", path, form={"csrf": csrf}, Cookie=cookie, Origin="https://evil.example").status == 403
    assert desk.ask("POST", path, form={"csrf": csrf}, Cookie=cookie, Sec_Fetch_Site="cross-site").status == 403
    assert desk.ask("GET", path, Cookie=cookie).status == 405
    assert desk.show(job)["state"] == "pending"
    assert desk.ask("POST", path, form={"csrf": csrf}, Cookie=cookie, Origin=desk.base).status == 303
    assert desk.show(job)["state"] == "cancelled"
    assert desk.ask("POST", "/admin/logout", form={"csrf": csrf}, Cookie=cookie).status == 303
    assert desk.ask("GET", "/admin", Cookie=cookie).headers["Location"] == "/admin/login"


def test_numbers_that_are_none_are_not_faults(desk: RunningDesk) -> None:
    for path in ("/api/jobs?limit=x", "/api/jobs?limit=-1", "/api/jobs?offset=1e9", "/api/jobs?limit=%EF%BC%91"):
        assert desk.operator("GET", path).status == 400, path
    assert desk.operator("POST", "/api/mails/99999999999999999999999999/send").status in (400, 404)
    job = desk.queue("http://numbers.example/")
    for rank in ("x", None, 10**400, float("inf"), [1]):
        assert desk.operator("POST", f"/api/jobs/{job.id}/move", {"rank": rank}).status in (200, 400)


def test_ten_thousand_jobs_are_listed_quickly_and_in_pages(tmp_path: Path) -> None:
    from recollect.desk import people
    from recollect.desk.database import open_database
    from recollect.desk.jobs import parse_submission
    from recollect.desk.settings import DeskSettings

    folder = tmp_path / "desk"
    folder.mkdir()
    database = open_database(folder / "desk.sqlite")
    settings = DeskSettings(max_queue=10**6, per_site=10**6, per_address=10**6)

    def fill(c: Any) -> None:
        asked = parse_submission({"uri": "http://j.example/", "email": "many@mail.example"}, [])
        first = people.submit(c, asked, 0.0, settings, confirmed_by="test").job
        columns = "state, uri, site, wish, fingerprint, created, updated"
        for number in range(9_999):
            c.change(
                f"INSERT INTO job (id, place, {columns}) SELECT ?, ?, {columns} FROM job WHERE id = ?",
                f"{number:016x}", float(number + 1), first,
            )  # fmt: skip

    database.transact(fill)
    database.close()
    with running_desk(folder, None, "--workers", "0") as many:
        cookie = log_in(many)
        for path in ("/admin", "/admin?state=queued&offset=9900", "/admin?state=nonsense"):
            began = time.monotonic()
            page = many.ask("GET", path, Cookie=cookie)
            assert page.status == 200 and time.monotonic() - began < 3
        page = many.ask("GET", "/admin?state=queued&offset=100", Cookie=cookie).text
        assert "Next queued jobs" in page and "Previous queued jobs" in page and page.count("<tr>") == 101
        began = time.monotonic()
        reply = many.operator("GET", "/api/jobs?limit=10000").json
        assert len(reply["jobs"]) == 10_000 and {job["rank"] for job in reply["jobs"]} == set(range(1, 10_001))
        assert time.monotonic() - began < 15


# Workers -------------------------------------------------------------------------------------------------------------


def test_a_worker_writes_only_its_own_files_and_only_whole(desk: RunningDesk) -> None:
    held = Claimed(desk, "http://files.example/")
    for name in (
        "..%2f..%2fdesk.sqlite",
        "x.zip",
        ".result.zip.sha256",
        "thumb-12.png",
        "result.zip%00",
        "thumb-٣.png",
    ):
        assert held.put(name.replace("٣", "%D9%A3")).status in (400, 404), name
    assert held.put("result.zip", digest="0" * 64).status == 400
    assert held.put("result.zip", fence="x").status == 400
    assert held.put("result.zip", fence=str(held.fence - 1)).status == 409
    assert held.put("result.zip", worker="other").status == 409
    assert held.put("result.zip").status == 200
    whole = hashlib.sha256(b'"x"').hexdigest()
    for files in (
        None,
        [{"size": 3}],
        [{"name": "../../desk.sqlite", "size": 3, "sha256": whole}],
        [{"name": "result.zip", "size": 4, "sha256": whole}],
        [{"name": "result.zip", "size": 3, "sha256": "0" * 64}],
        [{"name": "result.zip", "size": 3, "sha256": "\r\nX: y"}],
    ):
        assert held.post("pack").status == 200
        assert held.post("deliver", files=files, summary={}).status == 400, files
    assert desk.show(held.job)["state"] == "packing"


def test_a_worker_that_reports_nonsense_breaks_no_page(desk: RunningDesk) -> None:
    held = Claimed(desk, "http://nonsense.example/")
    for fields in (
        {"progress": "x"}, {"progress": float("nan")}, {"survey": {"estimate": {"seconds": "x"}}},
    ):  # fmt: skip
        assert held.post("beat", **fields).status == 400, fields
    assert held.post("beat", status={"recovered": "x", "waiting_for": 5, "missing": [1]}, progress=7).status == 200
    for step, fields in (
        ("wait", {"seconds": "x"}), ("wait", {}), ("paused", {"seconds": None}),
        ("permit", {"archive": 5, "kind": "x"}),
        ("finished", {"archives": [1]}), ("finished", {"archives": {"one": "x"}}),
    ):  # fmt: skip
        assert held.post(step, **fields).status == 400, step
    reply = desk.show(held.job)
    assert reply["progress"] == 1.0 and reply["counts"]["recovered"] == {}
    held.deliver(recovered="many", missing_by_reason=7, first=3)
    assert desk.ask("GET", f"/jobs/{held.job.id}?token={held.job.token}").status == 200
    assert desk.operator("GET", "/api/statistics").status == 200


def test_requests_of_a_worker_that_are_replayed_are_refused(desk: RunningDesk) -> None:
    held = Claimed(desk, "http://replayed.example/")
    held.deliver(recovered=1)
    for step, fields in (
        ("beat", {}), ("pack", {}), ("deliver", {"files": [], "summary": {}}), ("nothing", {"summary": {}}),
        ("fail", {"reason": "x"}), ("release", {}), ("wait", {"seconds": 5}),
        ("permit", {"archive": "one", "kind": "index"}),
        ("finished", {"archives": {}}), ("paused", {"archive": "one", "kind": "index", "seconds": 60}),
    ):  # fmt: skip
        assert held.post(step, **fields).status == 409, step
    assert held.put("result.zip").status == 409
    assert desk.show(held.job)["state"] == "ready"


def test_without_a_token_no_one_is_a_worker(desk: RunningDesk) -> None:
    operator = (desk.folder / "operator.token").read_text().strip()
    for token in ("", "x", operator):
        assert desk.ask("POST", "/api/worker/claim", {"worker": "w"}, Authorization=f"Bearer {token}").status == 403
    for name in ("", "../x", "a b", "x" * 101, "é"):
        assert as_worker(desk, "POST", "/claim", {"worker": name}).status == 400


def test_cancelling_while_packing_and_deleting_while_running(desk: RunningDesk) -> None:
    held = Claimed(desk, "http://packing.example/")
    assert held.post("pack").status == 200 and held.put("result.zip").status == 200
    assert desk.operator("DELETE", f"/api/jobs/{held.job.id}").status == 409
    cancelled = desk.ask("POST", f"/api/jobs/{held.job.id}/cancel?token={held.job.token}", {})
    assert cancelled.json["state"] == "cancelled"
    assert held.put("result.tar.gz").status == 409 and held.post("beat").status == 409
    assert desk.ask("GET", f"/api/jobs/{held.job.id}/result.zip?token={held.job.token}").status == 404
    assert desk.operator("DELETE", f"/api/jobs/{held.job.id}").status == 204
    assert not (desk.folder / "results" / held.job.id).exists()
    assert held.post("beat").status == 409


def test_requests_at_a_time_are_counted_over_workers_and_given_back(desk: RunningDesk) -> None:
    one, two = Claimed(desk, "http://c1.example/", "w1"), Claimed(desk, "http://c2.example/", "w2")
    asking = {"archive": "one", "kind": "replay"}
    assert one.post("permit", **asking).json == {"granted": True}
    assert two.post("permit", **asking).json == {"granted": True}
    with ThreadPoolExecutor(1) as pool:
        third = pool.submit(one.post, "permit", **asking)
        time.sleep(0.5)
        assert not third.done(), "two at a time, whoever asks"
        assert two.post("finished", archives={"one": 1}).status == 200
        assert third.result(10).json == {"granted": True}
        fourth = pool.submit(two.post, "permit", **asking)
        time.sleep(0.3)
        assert not fourth.done()
        assert one.post("release").status == 200, "its requests are over"
        assert fourth.result(10).json == {"granted": True}
    [row] = desk.operator("GET", "/api/archives").json["archives"]
    assert row["concurrency"] == 2 and row["in_use"] == 1
    two.post("release")


# Starting ------------------------------------------------------------------------------------------------------------


def test_one_folder_has_one_desk(desk: RunningDesk) -> None:
    process, said, _ = start(["desk", "--data", str(desk.folder), "--port", "0", "--workers", "0"])
    assert process.wait(30) != 0
    until(lambda: any("another desk uses this folder" in line for line in said), 5, lambda: "".join(said))
    assert desk.ask("GET", "/health").status == 200


@pytest.mark.parametrize(
    "flags",
    [
        ["--base-url", "https://desk.example/path"],
        ["--base-url", "desk.example"],
        ["--base-url", "https://desk.example", "--preview-url", "https://DESK.example:443/", "--preview-port", "0"],
        ["--preview-url", "https://preview.example"],
        ["--smtp", "mail.example:25"],
    ],
)
def test_settings_that_cannot_work_are_named(flags: list[str], tmp_path: Path) -> None:
    process, said, _ = start(["desk", "--data", str(tmp_path / "desk"), "--port", "0", *flags])
    assert process.wait(30) == 2, said
