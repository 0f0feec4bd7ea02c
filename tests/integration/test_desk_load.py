"""Many jobs at once; archives stall, refuse and return, workers are killed, the mail server is down.

RECOLLECT_LOAD_JOBS=200 python -m pytest -n0 tests/integration/test_desk_load.py     the whole proof
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import sqlite3
import time
from bisect import bisect_right
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from desk_world import Job, RunningDesk, running_desk, until
from fake_archive import Fake, served
from loopback import Request, answer
from recollect.archives.registry import Archive
from smtp_server import answering
from web_servers import free_port

pytestmark = pytest.mark.xdist_group("desk-load")
JOBS = int(os.environ.get("RECOLLECT_LOAD_JOBS", "10"))
WORKERS = 6
SETTINGS = {
    "RECOLLECT_DESK_PICTURES": "0", "RECOLLECT_DESK_LEASE": "6", "RECOLLECT_DESK_HEARTBEAT": "1",
    "RECOLLECT_DESK_MAX_CRASHES": "100",
}  # fmt: skip
LIMITS: dict[str, dict[str, Any]] = {
    "one": {"concurrency": 2, "rate": "10/s"},
    "two": {"concurrency": 3},
    "three": {"concurrency": 2},
}
WORDS = {
    "queued": ("in the queue.",),
    "running": ("pieces collected",),
    "packing": ("Packing your site",),
    "waiting": ("We go on at", "We try again at"),
}


class Counting(Fake):
    """An archive that counts its requests at a time and in a second, and that stalls, refuses and is down."""

    def __init__(self, *, moody: bool = False, down: bool = False) -> None:
        super().__init__()
        self.moody, self.down, self.inside, self.most, self.number = moody, down, 0, 0, 0
        self.moods = {"stalled": 0, "refused": 0, "down": 0}
        self.begun: dict[str, list[float]] = {"index": [], "replay": []}

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.begun["index" if request.path.startswith("/cdx") else "replay"].append(time.monotonic())
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
        if self.down:
            self.moods["down"] += 1
            return answer(b"-", "503 Service Unavailable")
        if turn == 7:
            self.moods["stalled"] += 1
            await asyncio.sleep(2.0)
        elif turn == 13:
            self.moods["refused"] += 1
            return answer(b"-", "429 Too Many Requests", Retry_After="1")
        return self.reply(request)

    def most_in(self, seconds: float) -> int:
        """The most requests of one kind that began within any such time."""
        return max(
            bisect_right(times, at + seconds) - place for times in self.begun.values() for place, at in enumerate(times)
        )


def worker_pids(desk: RunningDesk) -> list[int]:
    place = Path(f"/proc/{desk.process.pid}/task/{desk.process.pid}/children")
    pids = [int(one) for one in place.read_text().split()]
    return [pid for pid in pids if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]


def archives(path: Path, **running: Archive) -> Path:
    entries = [
        {"id": name, "name": f"Archive {name}", "cdx": archive.cdx, "raw": archive.raw, **LIMITS[name]}
        for name, archive in running.items()
    ]
    path.write_text(json.dumps(entries))
    return path


def reasons(desk: RunningDesk, shown: list[tuple[Job, dict[str, Any]]]) -> None:
    """Whoever waits sees why, on the page: one job of each state is looked at."""
    for job in {view["state"]: job for job, view in shown}.values():
        page = desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text
        for state in re.findall(r'data-state="([^"]+)"', page):  # of the page: a state changes meanwhile
            assert any(one in page for one in WORDS[state]), (state, page)


def finish(desk: RunningDesk, jobs: list[Job]) -> int:
    """Wait until every job is ready, and kill workers meanwhile; how many were killed."""
    began, kills = time.monotonic(), itertools.count()
    left, next_kill, killed = list(jobs), began + 4, 0
    while left and time.monotonic() - began < 60 + 10 * JOBS:
        shown = [(job, desk.show(job)) for job in left]
        for _, view in shown:
            assert view["state"] not in ("failed", "nothing-found", "cancelled"), view
            assert view["state"] != "queued" or view["rank"], "who waits knows their place"
            assert view["state"] != "waiting" or (view["reason"] and view["resume_at"]), view
        reasons(desk, shown)
        left = [job for job, view in shown if view["state"] != "ready"]
        if time.monotonic() > next_kill and killed < 2 + JOBS // 20 and (pids := worker_pids(desk)):
            os.kill(pids[next(kills) % len(pids)], signal.SIGKILL)
            killed, next_kill = killed + 1, time.monotonic() + 4
        time.sleep(0.5)
    assert not left, [desk.show(job) for job in left[:3]]
    return killed


def deliver_mails(desk: RunningDesk, port: int) -> list[str]:
    """The mail server is back: who got a mail that the site is back."""
    assert desk.ask("GET", "/ready").json["mail"] is False
    with answering("250 OK", port=port) as (_, got):
        for mail in desk.operator("GET", "/api/mails?limit=1000").json["mails"]:
            if mail["state"] == "waiting":
                desk.operator("POST", f"/api/mails/{mail['number']}/send")
        wanted = {f"p{number}@mail.example" for number in range(JOBS)}
        until(lambda: {mail.rcpt_tos[0] for mail in got} >= wanted, 180)
        return [mail.rcpt_tos[0] for mail in got if b"is back" in mail.content.partition(b"\n\n")[0]]


def test_nothing_is_lost_and_no_archive_gets_more_than_it_takes(tmp_path: Path) -> None:
    steady, moody, away = Counting(), Counting(moody=True), Counting(down=True)
    for number in range(JOBS):
        host = f"http://s{number}.example"
        links = "".join(f"<a href=/{name}>{name}</a>" for name in "abc")
        steady.add(f"{host}/", f"<title>Home</title><p>Hello.</p>{links}")
        for name, archive in (("a", steady), ("b", moody), ("c", away)):
            archive.add(f"{host}/{name}", f"<title>{name}</title><p>Page {name} of site {number}.</p>")
    port = free_port()
    with served(steady) as one, served(moody) as two, served(away) as three:
        path = archives(tmp_path / "archives.json", one=one, two=two, three=three)
        flags = ("--workers", str(WORKERS), "--smtp", f"127.0.0.1:{port}", "--from-address", "desk@lib.example")
        with running_desk(tmp_path / "desk", path, *flags, **SETTINGS) as desk:
            began = time.monotonic()
            jobs = [desk.queue(f"http://s{n}.example/", f"p{n}@mail.example") for n in range(JOBS)]
            killed = finish(desk, jobs)
            seconds = time.monotonic() - began
            views = [desk.show(job) for job in jobs]
            before = [view["summary"]["pages"] for view in views]
            assert all(view["retry_at"] and {"Archive three"} <= _names(view) for view in views), "named, and retried"
            ready = deliver_mails(desk, port)
            assert len(set(ready)) == len(ready), "one mail each"
            away.down = False
            back = time.monotonic()
            sooner(desk)
            until(lambda: not any(_names(desk.show(job)) for job in jobs), 60 + 10 * JOBS, step=1.0)
            completed = time.monotonic() - back
            pages = [desk.show(job)["summary"]["pages"] for job in jobs]
    print(
        f"\n{JOBS} jobs, {WORKERS} workers: {seconds:.0f} s, {killed} workers killed, {moody.moods}, {away.moods}; "
        f"most requests at a time {steady.most} of 2, {moody.most} of 3, {away.most} of 2; in a second "
        f"{steady.most_in(1.0)} of 10, in all {steady.number + moody.number + away.number}; "
        f"pages {min(before)} to {max(before)}, {completed:.0f} s after the third archive is back {set(pages)}"
    )
    assert killed and moody.moods["refused"] and away.moods["down"]
    assert steady.most <= 2 and moody.most <= 3 and away.most <= 2 and steady.most_in(1.0) <= 10
    assert min(before) >= 2 and set(pages) == {4}, "nothing is lost"


def _names(view: dict[str, Any]) -> set[str]:
    return {one["name"] for one in view["outages"]}


def sooner(desk: RunningDesk) -> None:
    """Let the retries that are planned for later be due."""
    with closing(sqlite3.connect(desk.folder / "desk.sqlite", timeout=30)) as db, db:
        db.execute("UPDATE job SET retry_at = retry_at - 3600 WHERE retry_at IS NOT NULL")
