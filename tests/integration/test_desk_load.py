"""Many jobs at once; archives stall, refuse and return, workers are killed, the mail server is down.

RECOLLECT_LOAD_JOBS=200 python -m pytest -n0 tests/integration/test_desk_load.py     the whole proof
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from pathlib import Path

import pytest

from desk_world import RunningDesk, running_desk, until
from fake_archive import Fake, served
from loopback import Request, answer
from smtp_server import answering
from web_servers import free_port

pytestmark = pytest.mark.xdist_group("desk-load")
JOBS = int(os.environ.get("RECOLLECT_LOAD_JOBS", "10"))
WORKERS = 6
SETTINGS = {
    "RECOLLECT_DESK_PICTURES": "0", "RECOLLECT_DESK_LEASE": "6", "RECOLLECT_DESK_HEARTBEAT": "1",
    "RECOLLECT_DESK_MAX_CRASHES": "100",
}  # fmt: skip


class Counting(Fake):
    """An archive that counts its requests at a time, and stalls and refuses now and then."""

    def __init__(self, *, moody: bool) -> None:
        super().__init__()
        self.moody, self.inside, self.most, self.number = moody, 0, 0, 0
        self.moods = {"stalled": 0, "refused": 0}

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.inside += 1
        self.number += 1
        self.most = max(self.most, self.inside)
        try:
            reply = await self.answer(request)
            writer.write(reply[:-1])
            await writer.drain()
        finally:
            self.inside -= 1  # before the last byte: with it the client is done
        writer.write(reply[-1:])

    async def answer(self, request: Request) -> bytes:
        turn = self.number % 20 if self.moody else 0
        if turn == 7:
            self.moods["stalled"] += 1
            await asyncio.sleep(2.0)
        elif turn == 13:
            self.moods["refused"] += 1
            return answer(b"-", "429 Too Many Requests", Retry_After="1")
        return self.reply(request)


def worker_pids(desk: RunningDesk) -> list[int]:
    place = Path(f"/proc/{desk.process.pid}/task/{desk.process.pid}/children")
    pids = [int(one) for one in place.read_text().split()]
    return [pid for pid in pids if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]


def test_nothing_is_lost_and_no_archive_gets_more_than_it_takes(tmp_path: Path) -> None:
    steady, moody = Counting(moody=False), Counting(moody=True)
    for number in range(JOBS):
        host = f"http://s{number}.example"
        steady.add(f"{host}/", "<title>Home</title><p>Hello.</p><a href=/a>a</a><a href=/b>b</a>")
        steady.add(f"{host}/a", f"<title>A</title><p>Page A of site {number}.</p>")
        moody.add(f"{host}/b", f"<title>B</title><p>Page B of site {number}.</p>")
    port = free_port()
    with served(steady) as one, served(moody) as two:
        path = tmp_path / "archives.json"
        limits = {"one": 2, "two": 3}
        entries = [
            {"id": name, "cdx": archive.cdx, "raw": archive.raw, "concurrency": limits[name]}
            for name, archive in (("one", one), ("two", two))
        ]
        path.write_text(json.dumps(entries))
        flags = ("--workers", str(WORKERS), "--smtp", f"127.0.0.1:{port}", "--from-address", "desk@lib.example")
        with running_desk(tmp_path / "desk", path, *flags, **SETTINGS) as desk:
            began = time.monotonic()
            jobs = [desk.queue(f"http://s{n}.example/", f"p{n}@mail.example") for n in range(JOBS)]
            kills = itertools.count()
            left, next_kill, killed = list(jobs), time.monotonic() + 4, 0
            while left and time.monotonic() - began < 60 + 10 * JOBS:
                shown = [(job, desk.show(job)) for job in left]
                for _, view in shown:
                    assert view["state"] not in ("failed", "nothing-found", "cancelled"), view
                    assert view["state"] != "queued" or view["rank"], "who waits knows their place"
                    assert view["state"] != "waiting" or (view["reason"] and view["resume_at"]), view
                left = [job for job, view in shown if view["state"] != "ready"]
                if time.monotonic() > next_kill and killed < 2 + JOBS // 20 and (pids := worker_pids(desk)):
                    os.kill(pids[next(kills) % len(pids)], signal.SIGKILL)
                    killed, next_kill = killed + 1, time.monotonic() + 4
                time.sleep(0.5)
            assert not left, [desk.show(job) for job in left[:3]]
            seconds = time.monotonic() - began
            pages = [desk.show(job)["summary"]["pages"] for job in jobs]
            assert desk.ask("GET", "/ready").json["mail"] is False
            with answering("250 OK", port=port) as (_, got):
                for mail in desk.operator("GET", "/api/mails").json["mails"]:
                    if mail["state"] == "waiting":
                        desk.operator("POST", f"/api/mails/{mail['number']}/send")
                wanted = {f"p{number}@mail.example" for number in range(JOBS)}
                until(lambda: {mail.rcpt_tos[0] for mail in got} >= wanted, 120)
                ready = [mail.rcpt_tos[0] for mail in got if b"is back" in mail.content.partition(b"\n\n")[0]]
                assert len(set(ready)) == len(ready), "one mail each"
    print(
        f"\n{JOBS} jobs, {WORKERS} workers: {seconds:.0f} s, {killed} workers killed, {moody.moods}, "
        f"most requests at a time {steady.most} of 2 and {moody.most} of 3, pages {min(pages)} to {max(pages)}"
    )
    assert killed and moody.moods["refused"]
    assert steady.most <= 2 and moody.most <= 3
    assert min(pages) >= 2 and sum(pages) >= 3 * JOBS - killed, "what an archive refuses for a second comes later"
