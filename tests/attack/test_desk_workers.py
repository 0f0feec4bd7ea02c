"""What can go wrong between a worker, its subprocess and the desk: stuck, orphaned, damaged, forged, repeated."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from desk_world import Answer, RunningDesk, running_desk, running_worker, until
from fake_archive import Fake, served, site

pytestmark = pytest.mark.xdist_group("attack-desk-workers")

# In the recovery's own process: reading one page never ends, in a loop of C that holds the interpreter.
HANG = """
import sys
if "recollect.desk.child" in sys.orig_argv:
    from recollect.recovery import acquire
    read = acquire.read_document
    def hang(content, uri, *given):
        if b"never ends" in content:
            import os, re
            open(os.environ["PYTHONPATH"] + "/reading", "w").close()
            re.match(r"(a+)+$", "a" * 60 + "b")
        return read(content, uri, *given)
    acquire.read_links = hang
"""


@pytest.fixture(scope="module")
def fake() -> Fake:
    paths = [f"/{number}.html" for number in range(6)]
    made = site(*paths)
    for path in paths:
        made.add(path, f"<title>{path}</title><p>Page {path} of the site, with some words on it.</p>")
    made.add("/3.html", "<title>3</title><p>This one never ends.</p>")
    return made


@pytest.fixture(scope="module")
def archives(fake: Fake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("workers") / "archives.json"
    with served(fake) as archive:
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw, "concurrency": 2}]))
        yield path


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(HANG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


QUICK = {"RECOLLECT_DESK_PICTURES": "0", "RECOLLECT_DESK_HEARTBEAT": "1"}


@pytest.mark.usefixtures("hanging")
def test_a_page_whose_reading_never_ends_costs_that_page_only(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, **QUICK, RECOLLECT_DESK_STUCK_AFTER="6") as desk:
        job = desk.queue("http://lost.example/")
        reply = desk.wait(job, "ready", seconds=60)
        assert reply["summary"]["pages"] == 6
        assert [one["uri"] for one in reply["summary"]["missing_examples"]] == ["http://lost.example/3.html"]
        [row] = desk.operator("GET", "/api/archives").json["archives"]
        assert row["in_use"] == 0


@pytest.mark.usefixtures("hanging")
def test_a_stuck_subprocess_ends_with_its_worker(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, "--workers", "0", **QUICK) as desk:
        desk.queue("http://lost.example/")
        with running_worker(desk, tmp_path / "work") as worker:
            until(lambda: len(children(worker.pid)) == 1, 30)
            [child] = children(worker.pid)
            until((tmp_path / "reading").exists, 60)
            os.kill(worker.pid, signal.SIGKILL)
            until(lambda: not alive(child), 5)


@pytest.mark.parametrize("damage", ["not a tar", "not a journal", "nothing"])
def test_a_state_that_cannot_be_used_means_starting_afresh(archives: Path, tmp_path: Path, damage: str) -> None:
    import tarfile

    with running_desk(tmp_path / "desk", archives, "--workers", "0", **QUICK) as desk:
        job = desk.queue("http://lost.example/")
        folder = desk.folder / "results" / job.id
        folder.mkdir(parents=True)
        state = folder / "state.tar"
        if damage == "not a journal":
            (tmp_path / "journal.db").write_bytes(b"x" * 5000)
            with tarfile.open(state, "w") as packed:
                packed.add(tmp_path / "journal.db", ".recollect/journal.db")
        else:
            state.write_bytes(b"\x1f\x8b not a tar" if damage == "not a tar" else b"")
        with running_worker(desk, tmp_path / "work") as worker:
            assert desk.wait(job, "ready", seconds=60)["summary"]["pages"] == 7
            assert worker.poll() is None


class Held:
    """A job that this test holds as its worker."""

    def __init__(self, desk: RunningDesk, uri: str, name: str, token: str = "") -> None:
        self.desk, self.name = desk, name
        self.token = token or (desk.folder / "worker.token").read_text().strip()
        self.job = desk.queue(uri)
        desk.operator("POST", f"/api/jobs/{self.job.id}/move", {"rank": 1})
        reply = self.call("/claim", worker=name).json
        assert reply["id"] == self.job.id
        self.fence = reply["fence"]

    def call(self, path: str, **fields: Any) -> Answer:
        return self.desk.ask("POST", f"/api/worker{path}", fields, Authorization=f"Bearer {self.token}")

    def post(self, step: str, **fields: Any) -> Answer:
        return self.call(f"/jobs/{self.job.id}/{step}", **{"worker": self.name, "fence": self.fence, **fields})

    def permit(self, number: int | str) -> Answer:
        return self.post("permit", archive="one", kind="replay", permit=number)


@pytest.fixture(scope="module")
def desk(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    folder = tmp_path_factory.mktemp("held")
    with running_desk(folder / "desk", archives, "--workers", "0", RECOLLECT_DESK_LEASE="600") as running:
        yield running


def in_use(desk: RunningDesk) -> int:
    return int(desk.operator("GET", "/api/archives").json["archives"][0]["in_use"])


def test_permits_and_their_ends_can_be_repeated(desk: RunningDesk) -> None:
    one, two = Held(desk, "http://p1.example/", "w1"), Held(desk, "http://p2.example/", "w2")
    for _ in range(3):
        assert one.permit(1).json == {"granted": True}
    assert in_use(desk) == 1, "the answer was lost on the way: it is the same permit"
    assert one.permit(2).json == {"granted": True}
    for _ in range(3):
        assert one.post("finished", permits={"one": ["1"]}).status == 200
    assert in_use(desk) == 1, "a report that is repeated ends no other request"
    assert two.post("finished", permits={"one": ["2", 2]}).status == 200
    assert in_use(desk) == 1, "no worker ends the requests of others"
    one.post("release")
    two.post("release")


@pytest.mark.parametrize(
    "end", ["cancel by the person", "cancel by the operator", "pause", "release", "fail", "nothing"]
)
def test_every_end_of_a_job_returns_its_permits(desk: RunningDesk, end: str) -> None:
    name = re.sub(r"\W", "", end)
    held, other = Held(desk, f"http://e-{name}.example/", "w1"), Held(desk, f"http://o-{name}.example/", "w2")
    assert held.permit(1).json == held.permit(2).json == {"granted": True}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.permit, 1)
        if end == "cancel by the person":
            desk.ask("POST", f"/api/jobs/{held.job.id}/cancel?token={held.job.token}", {})
        elif end == "cancel by the operator":
            desk.operator("POST", f"/api/jobs/{held.job.id}/cancel", {})
        elif end == "pause":
            desk.operator("POST", f"/api/jobs/{held.job.id}/pause", {})
        else:
            assert held.post(end, summary={}, reason="x").status == 200
        assert waiting.result(15).json == {"granted": True}
    # A worker that lost its job says that its requests are over, and is heard.
    assert held.post("finished", permits={"one": [1, 2]}).status == 200
    other.post("release")
    desk.operator("POST", f"/api/jobs/{other.job.id}/cancel", {})
    assert in_use(desk) == 0


def test_a_token_of_a_worker_works_under_its_name_only(desk: RunningDesk) -> None:
    password = (desk.folder / "admin.password").read_text().strip()
    cookie = str(desk.ask("POST", "/admin/login", form={"password": password}).headers["Set-Cookie"]).partition(";")[0]
    csrf = re.findall(r'name="csrf" value="([^"]+)"', desk.ask("GET", "/admin", Cookie=cookie).text)[0]
    tokens = {}
    for name in ("north", "south"):
        page = desk.ask("POST", "/admin/tokens", form={"csrf": csrf, "name": name}, Cookie=cookie).text
        tokens[name] = re.findall(r"<pre[^>]*>([\w-]{43})</pre>", page)[0]
    held = Held(desk, "http://names.example/", "north", tokens["north"])
    for token in (tokens["south"], (desk.folder / "worker.token").read_text().strip()):
        thief = {"worker": "north", "fence": held.fence}
        for path in ("/claim", f"/jobs/{held.job.id}/beat", f"/jobs/{held.job.id}/release"):
            answer = desk.ask("POST", f"/api/worker{path}", thief, Authorization=f"Bearer {token}")
            assert answer.status == 403
        query = f"fence={held.fence}&worker=north"
        where = f"/api/worker/jobs/{held.job.id}/files/result.zip?{query}"
        assert desk.ask("PUT", where, "x", Authorization=f"Bearer {token}").status == 403
    assert held.post("beat").status == 200 and held.post("release").status == 200
