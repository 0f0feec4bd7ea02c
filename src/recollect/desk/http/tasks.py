"""What a desk does beside requests: upkeep, mails, workers of its own. Each runs until it is cancelled.

Hides: that one failure (a full disk, a database that restarts) must not end a task: it is logged and tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from recollect.desk import erasing, people, queue
from recollect.desk.database import Connection
from recollect.desk.http.context import Desk
from recollect.desk.jobs import Job, job_of
from recollect.desk.letters import renderer
from recollect.desk.outbox import Kind, enqueue, remove_copies, send_due
from recollect.desk.states import ACTIVE, DELIVERED, Action
from recollect.desk.upkeep import MAILS_FOR, tick
from recollect.errors import RecollectError

log = logging.getLogger("recollect.desk")

_TICK = 1.0
_SWEEP = 600.0
_CLAIM = 10.0
_RESTART = 2.0
_HALF_UPLOAD = 86_400.0


async def forever(name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Do something every some seconds, whatever goes wrong."""
    while True:
        try:
            await work()
        except (RecollectError, OSError) as error:
            log.warning("%s: %s", name, error)
        except Exception:  # an edge: the next round may succeed, and without this task the desk is of no use
            log.exception("%s failed", name)
        await asyncio.sleep(seconds)


def start(desk: Desk) -> list[asyncio.Task[None]]:
    """All tasks but the workers."""
    relisting: set[str] = set()
    listed: set[asyncio.Task[None]] = set()

    async def upkeep() -> None:
        now = desk.now()
        done = await desk.run(tick, now, desk.settings)
        for job in done.expired:
            await asyncio.to_thread(shutil.rmtree, desk.results(job), ignore_errors=True)
        for job in done.changed:
            desk.taken_away(job, now)  # what another worker was permitted since then is its own
        await desk.save_budgets()
        for job in set(done.relist) - relisting:
            # On its own: asking archives can take minutes, and leases are looked after every second.
            relisting.add(job)
            task = asyncio.ensure_future(relist(desk, job))
            listed.add(task)
            task.add_done_callback(listed.discard)
            task.add_done_callback(lambda _task, job=job: relisting.discard(job))  # type: ignore[misc]

    render = renderer(desk.settings, desk.base_url)

    def trouble(why: str) -> None:
        desk.mail_trouble = why

    async def mails() -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(
            desk.pool, send_due, desk.database, desk.transport, render, desk.now(), desk.settings, trouble
        )

    async def claim() -> None:
        if not await asyncio.get_running_loop().run_in_executor(desk.pool, desk.database.claim_for_desk):
            log.error("another desk uses this database: this one ends")
            desk.stopping.set()

    async def clean() -> None:
        kept = await desk.transact(_kept)
        await asyncio.to_thread(sweep, desk, kept)
        await asyncio.to_thread(remove_copies, desk.transport, await desk.run(erasing.mails_without_address))
        await asyncio.to_thread(desk.database.scrub)

    return [
        asyncio.ensure_future(forever("upkeep", _TICK, upkeep)),
        asyncio.ensure_future(forever("mails", _TICK, mails)),
        asyncio.ensure_future(forever("being the only desk", _CLAIM, claim)),
        asyncio.ensure_future(forever("removing old files", _SWEEP, clean)),
    ]


def _kept(c: Connection) -> set[str]:
    """Jobs whose files are of use: to download, or to go on with."""
    states = sorted(state.value for state in ACTIVE | DELIVERED)
    marks = ", ".join("?" for _ in states)
    return {row["id"] for row in c.rows(f"SELECT id FROM job WHERE state IN ({marks})", *states)}


def sweep(desk: Desk, kept: Iterable[str]) -> None:
    """Remove listings that are too old, halves of uploads, and what was fetched for jobs that ended without result."""
    now, ids = desk.now(), set(kept)
    for place in (desk.folder / "listings").glob("*"):
        _remove_older(place, now - desk.settings.listings_for)
    for mail in (desk.folder / "outbox").glob("*.eml"):
        _remove_older(mail, now - MAILS_FOR)
    for part in (desk.folder / "results").glob("*/.*.part"):
        _remove_older(part, now - _HALF_UPLOAD)
    for place in (desk.folder / "results").glob("*"):
        if place.name not in ids:
            _remove_older(place, now - desk.settings.forget_after)


def _remove_older(path: Path, moment: float) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_mtime >= moment:
            return
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


# More of a site ------------------------------------------------------------------------------------------------------


async def relist(desk: Desk, job_id: str) -> None:
    """Ask the archives again for who wants to know of more; write only of a real gain."""
    now = desk.now()
    try:
        job = await desk.run(_listed_next, job_id, now + desk.settings.relist_after)
        assert desk.surveyor is not None
        found = await desk.surveyor.fresh(job.options)
        if found.state == "done":
            await desk.run(_mail_gain, desk, job, int(found.found.get("resources", 0)), now)
    except RecollectError as error:
        log.warning("listing job %s again: %s", job_id, error)


def _listed_next(c: Connection, job_id: str, at: float) -> Job:
    c.change("UPDATE job SET relist_at = ? WHERE id = ?", at, job_id)
    return queue.get(c, job_id)


def _mail_gain(c: Connection, desk: Desk, job: Job, listed: int, now: float) -> None:
    """Queue the mails of a gain since the listing of which the person got the last mail."""
    summary = job.result.get("summary", {})
    before = summary.get("listed")
    gain = listed - int(before if before is not None else summary.get("discovered", 0))
    if gain < max(1, desk.settings.relist_gain * listed):
        return
    queue.note_listed(c, job.id, listed)
    for person in people.recipients(c, job.id):
        if person.tell_more and person.email:
            once = f"more {person.id} {listed}"
            facts = {"gain": gain}
            enqueue(
                c, Kind.MORE_FOUND, now, desk.settings, recipient=person.id, job=job.id, once=once, facts=facts
            )  # fmt: skip


# Workers of this desk ------------------------------------------------------------------------------------------------


def local_name(desk: Desk) -> str:
    """How workers of this desk's own process are called; another desk has other names."""
    return f"local-{hashlib.sha256(str(desk.folder.resolve()).encode()).hexdigest()[:6]}"


def take_back(c: Connection, desk: Desk) -> None:
    """Release the jobs of this desk's workers of an earlier run, which ended with that run. No lease of the
    others is longer than a lease is, even if the machine's clock was set back."""
    c.change(
        "UPDATE job SET lease_until = ? WHERE state IN ('running', 'packing') AND lease_until > ?",
        desk.now() + desk.settings.lease, desk.now() + desk.settings.lease,
    )  # fmt: skip
    rows = c.rows("SELECT * FROM job WHERE state IN ('running', 'packing')")
    for row in rows:
        if str(row["worker"]).startswith(local_name(desk) + "-"):
            queue.step(c, job_of(row), Action.RELEASE, desk.now(), "desk", "the desk was started again")


async def worker(desk: Desk, number: int, address: str) -> None:
    """One worker process of this desk, started again when it ends."""
    work = desk.folder / "work"
    command = [sys.executable, "-m", "recollect", "desk", "worker", "--desk", address]
    command += ["--token-file", str(desk.folder / "worker.token"), "--work", str(work)]
    command += ["--name", f"{local_name(desk)}-{number + 1}", "--with-parent"]
    while not desk.stopping.is_set():
        process = await asyncio.create_subprocess_exec(*command, start_new_session=True, stdin=PIPE)
        ended = asyncio.ensure_future(process.wait())
        stopping = asyncio.ensure_future(desk.stopping.wait())
        try:
            await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done() and not ended.done():
                process.terminate()
                await ended
                return
            log.warning("worker %d ended with %s, starting it again", number + 1, process.returncode)
            await asyncio.sleep(_RESTART)
        finally:
            stopping.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
