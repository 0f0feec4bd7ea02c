"""A worker: takes jobs from a desk over HTTP, one at a time, and recovers each in a subprocess.

Hides: the protocol with the desk, the subprocess, and everything that can go wrong between the two. Invariants:
- a subprocess runs only while the lease holds: refused, or without contact for the length of the lease, the whole
  process group is killed;
- every permit is asked of the desk; without contact none is given;
- what was fetched is kept in the work folder until the desk has the result, so a job that comes back goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tarfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from recollect.desk.delivery import STATE, packed, read_state, write_state
from recollect.desk.joblog import JobLog
from recollect.desk.processes import locked, remove_unused
from recollect.errors import RecollectError
from recollect.recovery.store import FOLDER

log = logging.getLogger("recollect.worker")

_CLAIM_SECONDS = 25.0
_PAUSE = 1.0
_NEWS = 1.0
_NOTICE = 2.0  # how soon a worker learns that a job was taken from it; see budget.NOTICED
_MAX_SKIPPED = 20
_SWEEP = 3600.0
_ASKED = 1000
_JOB_FOLDER = re.compile(r"[0-9a-f]{16}(\.\d+)?")
_FORGOTTEN = 30 * 86_400.0
_MAX_PAUSE = 15.0
_MAX_LINE = 4 * 1024 * 1024


class Lost(RecollectError):
    """The job is not ours any more."""


class Over(Lost):
    """The job has ended, or is deleted: what was fetched for it is of no use."""


class NotAllowed(RecollectError):
    """The desk does not know this worker."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The desk, the folder to work in, and the name of the worker."""

    desk: str
    token: str
    work: Path
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    egress: str = ""
    once: bool = False


class DeskClient:
    """The desk over HTTP, as a worker sees it."""

    def __init__(self, session: aiohttp.ClientSession, options: WorkerOptions) -> None:
        self._session = session
        self._base = options.desk.rstrip("/")
        self._headers = {"Authorization": f"Bearer {options.token}"}
        self._me = {"worker": options.name, "egress": options.egress, "host": socket.gethostname()}

    async def post(self, path: str, timeout: float = 30.0, **fields: Any) -> dict[str, Any] | None:
        """The answer; None for 204. Raises Lost for 409 and 410, NotAllowed for 401 and 403."""
        async with self._session.post(
            f"{self._base}/api/worker{path}",
            json={**self._me, **fields},
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=timeout),
        ) as response:
            await _check(response)
            return None if response.status == 204 else await response.json()

    async def over(self, jobs: list[str]) -> list[str]:
        """Those of some jobs that have ended or are deleted."""
        answer = await self.post("/over", jobs=jobs)
        return [str(one) for one in (answer or {}).get("over", ())]

    async def own_name(self) -> str:
        """The name that the token was made for; empty for the desk's own token."""
        async with self._session.get(f"{self._base}/api/worker/me", headers=self._headers) as response:
            await _check(response)
            return str((await response.json()).get("name") or "")

    async def upload(self, job: str, fence: int, path: Path, sha256: str) -> None:
        with path.open("rb") as file:
            async with self._session.put(
                f"{self._base}/api/worker/jobs/{job}/files/{path.name}",
                params={"fence": str(fence), "worker": self._me["worker"]},
                data=file,
                headers={**self._headers, "X-Checksum-Sha256": sha256},
                timeout=aiohttp.ClientTimeout(total=None, sock_read=300),
            ) as response:
                await _check(response)

    async def download(self, path: str, target: Path) -> bool:
        async with self._session.get(
            f"{self._base}/api/worker{path}", headers=self._headers, timeout=aiohttp.ClientTimeout(total=None)
        ) as response:
            if response.status == 404:
                return False
            await _check(response)
            with target.open("wb") as file:
                async for piece in response.content.iter_chunked(1 << 20):
                    file.write(piece)
            return True


async def owner_of(address: str, token: str) -> str:
    """The name that a token was made for; empty when the desk does not answer, or the token is its own."""
    with contextlib.suppress(*_TROUBLE):
        timeout = aiohttp.ClientTimeout(total=15)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            return await DeskClient(session, WorkerOptions(address, token, Path())).own_name()
    return ""


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status in (409, 410):
        over = await _field(response, "kind") == "job-over"
        raise (Over if over else Lost)("the desk refuses", why=await _why(response))
    if response.status in (401, 403):
        raise NotAllowed("the desk does not accept the token", where=str(response.url.origin()))
    if response.status >= 300:
        raise aiohttp.ClientError(f"status {response.status}: {await _why(response)}")


async def _why(response: aiohttp.ClientResponse) -> str:
    return await _field(response, "message") or f"status {response.status}"


async def _field(response: aiohttp.ClientResponse, name: str) -> str:
    """A field of the desk's error; empty when an intermediary answers."""
    try:
        answer = await response.json()
        return str(answer["error"][name])[:300]
    except Exception:  # whatever else an intermediary may say
        return ""


_TROUBLE = (aiohttp.ClientError, TimeoutError, ConnectionError, OSError)


class Worker:
    """Runs until stopped."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        self.stopping = asyncio.Event()
        self._work: Work | None = None

    def stop(self) -> None:
        """End soon: the job goes back to the desk."""
        self.stopping.set()
        if self._work is not None:
            self._work.ask_to_stop()

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        self.options.work.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_sweep, self.options.work)
        connector = aiohttp.TCPConnector(limit=200)
        async with aiohttp.ClientSession(connector=connector) as session:
            desk = DeskClient(session, self.options)
            pause = _PAUSE
            connected, swept = False, -_SWEEP
            while not self.stopping.is_set():
                try:
                    job = await self._claim(desk, _CLAIM_SECONDS if connected else 0.0)
                    if not connected:
                        on_ready()
                        connected = True
                    if job is None and time.monotonic() > swept + _SWEEP:
                        swept = time.monotonic()
                        await _remove_over(desk, self.options.work)
                    pause = _PAUSE
                except (Lost, *_TROUBLE) as error:
                    log.warning("no job from the desk: %s", error or type(error).__name__)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self.stopping.wait(), pause)
                    pause = min(pause * 2, _MAX_PAUSE)
                    continue
                if job is not None:
                    try:
                        self._work = Work(desk, self.options, job)
                        if self.stopping.is_set():
                            self._work.ask_to_stop()
                        await self._work.run()
                    except (RecollectError, *_TROUBLE) as error:
                        log.warning("job %s: %s", job["id"], error or type(error).__name__)
                    except Exception as error:  # an edge: whatever one job does, the worker goes on with the next
                        log.exception("job %s", job.get("id"))
                        await _report_failure(desk, job, error)
                    self._work = None
                if self.options.once and job is not None:
                    return

    async def _claim(self, desk: DeskClient, patience: float) -> dict[str, Any] | None:
        """The next job; the desk keeps the request for as long as we are patient."""
        claim = asyncio.ensure_future(desk.post("/claim", timeout=patience + 15, patience=patience))
        stop = asyncio.ensure_future(self.stopping.wait())
        await asyncio.wait({claim, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not claim.done():
            claim.cancel()
            with contextlib.suppress(asyncio.CancelledError, *_TROUBLE):
                return await claim
            return None
        return await claim


async def _report_failure(desk: DeskClient, job: Mapping[str, Any], error: Exception) -> None:
    """Give back a job that failed in an unforeseen way; without an answer, its lease runs out."""
    with contextlib.suppress(RecollectError, LookupError, *_TROUBLE):
        reason = f"{type(error).__name__}: {error}"[:500]
        await desk.post(f"/jobs/{job['id']}/fail", fence=job["fence"], reason=reason)


class Work:
    """One claimed job."""

    def __init__(self, desk: DeskClient, options: WorkerOptions, job: Mapping[str, Any]) -> None:
        self._desk = desk
        self._options = options
        self._job = job
        self._also: list[str] = []  # files that a person added
        self.id: str = job["id"]
        self.fence: int = job["fence"]
        self._status: dict[str, Any] = {}
        self._share: float | None = None
        self._survey: dict[str, Any] | None = None
        self._log = JobLog()
        self._finished: list[tuple[str, str]] = []
        self._open: dict[str, str] = {}  # permit -> archive, of requests that may be under way
        self._counted = {one["id"] for one in job["archives"] if one.get("concurrency")}
        self._asking = 0  # permits that the subprocess waits for
        self._runs = 0
        self._progress = self._heard_at = time.monotonic()
        self._reading = ""  # the capture that the subprocess has begun to read
        self._skip: list[str] = []
        self._stuck = False
        self._contact = time.monotonic()
        self._process: Process | None = None
        self._stopping = False
        self._done: dict[str, Any] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: RecollectError | None = None
        self._over = False
        self._news = asyncio.Event()
        self._reconsider = False  # what was fetched was fetched for another date

    def ask_to_stop(self) -> None:
        self._stopping = True
        self._say({"stop": True})

    async def _post(self, step: str, **fields: Any) -> dict[str, Any] | None:
        """A step of this job; repeated through trouble for as long as the lease holds."""
        pause = 0.2
        while True:
            try:
                answer = await self._desk.post(f"/jobs/{self.id}/{step}", fence=self.fence, **fields)
            except _TROUBLE:
                if time.monotonic() - self._contact > self._job["lease"]:
                    raise Lost("no contact to the desk", where=self.id) from None
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)
            else:
                self._contact = time.monotonic()
                return answer

    async def run(self) -> None:
        async with self._folder() as folder:
            beat = asyncio.ensure_future(self._beat())
            try:
                if not (folder / FOLDER).exists():
                    await self._fetch_state(folder)
                self._also = await self._fetch_sources(folder)
                while await self._recover(folder):
                    log.warning("job %s made no progress: begun again without %s", self.id, self._skip[-1])
                await self._finish(folder, self._done or {"outcome": "failed", "reason": self._last_words()})
            except (Lost, NotAllowed) as error:
                log.info("job %s: %s", self.id, error)
                self._over = isinstance(error, Over)
            finally:
                beat.cancel()
                for task in self._tasks:
                    task.cancel()
                self._kill()
                if self._process is not None:
                    await self._process.wait()
                await self._give_back()
                if self._over:
                    await asyncio.to_thread(shutil.rmtree, folder.parent, ignore_errors=True)

    async def _give_back(self) -> None:
        """Report that no request is under way, also of a job that was taken from us: others wait for their permits."""
        for permit, archive in self._open.items():
            self._finished.append((archive, permit))
        self._open.clear()
        with contextlib.suppress(Lost, NotAllowed, *_TROUBLE):
            await self._desk.post(f"/jobs/{self.id}/finished", fence=self.fence, permits=self._by_archive())
        self._finished.clear()

    def _by_archive(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for archive, permit in self._finished:
            if archive in self._counted:
                found.setdefault(archive, []).append(permit)
        return found

    @contextlib.asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        """The job's own folder, or a new one while a worker that lost the job still uses it."""
        folder = self._options.work / self.id
        lock = locked(folder)
        if lock is None:
            folder = self._options.work / f"{self.id}.{self.fence}"
            shutil.rmtree(folder, ignore_errors=True)
            lock = locked(folder)
        try:
            yield folder / "site"
        finally:
            if lock is not None:
                os.close(lock)

    async def _fetch_sources(self, folder: Path) -> list[str]:
        """Files that a person added to the job; they go with the work folder."""
        target = folder.with_name("sources")
        target.mkdir(parents=True, exist_ok=True)
        found = []
        for name in self._job.get("sources", ()):
            if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", name) is None:
                continue
            if (target / name).exists() or await self._desk.download(f"/jobs/{self.id}/sources/{name}", target / name):
                found.append(str((target / name).resolve()))
        return found

    async def _fetch_state(self, folder: Path) -> None:
        for path in self._job.get("states", ()):
            target = folder.with_name(STATE)
            if await self._desk.download(path, target):
                try:
                    await asyncio.to_thread(read_state, target, folder)
                except (RecollectError, tarfile.TarError, EOFError, ValueError, OSError) as error:
                    # What another job left is a help, not a condition: without it the recovery starts afresh.
                    log.warning("job %s: cannot use %s: %s", self.id, path, error)
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                    continue
                finally:
                    target.unlink(missing_ok=True)
                self._reconsider = path == self._job.get("source")
                return

    async def _beat(self) -> None:
        while True:
            # Changes are reported at once, but at most once a second; without changes, every heartbeat.
            await asyncio.sleep(min(_NEWS, self._job["heartbeat"]))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(0.0, min(_NOTICE, self._job["heartbeat"]) - _NEWS))
            self._news.clear()
            try:
                await self._report()
            except (Lost, NotAllowed) as error:
                # Cancelled, paused, or taken over: the subprocess must not go on.
                self._lost = error
                self._kill()
                return

    async def _report(self) -> None:
        """Tell the desk how far the job is, with what its log has since the last time."""
        async with self._log.sending() as lines:
            await self._post("beat", status=self._status, progress=self._share, survey=self._survey, log=lines)

    # The subprocess ------------------------------------------------------------------------------------------

    async def _recover(self, folder: Path) -> bool:
        """Run the subprocess to its end; True when it got stuck on a capture, and is to begin again without it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._runs += 1
        self._done, self._stuck, self._reading = None, False, ""
        self._progress = self._heard_at = time.monotonic()
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recollect.desk.child",
            stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, limit=_MAX_LINE,
        )  # fmt: skip
        assignment = {name: self._job[name] for name in ("archives", "options", "limits")}
        assignment |= {
            "skip": self._skip,
            **{name: self._job.get(name) for name in ("contact", "decisions", "language", "uri")},
            "also": self._also,
        }
        self._say({**assignment, "folder": str(folder.resolve()), "reconsider": self._reconsider})
        if self._stopping:
            self._say({"stop": True})
        assert process.stdout is not None and process.stderr is not None
        words = asyncio.ensure_future(self._listen_to_errors(process))
        watchdog = asyncio.ensure_future(self._watch_progress())
        try:
            async for text in process.stdout:
                self._heard(json.loads(text))
        finally:
            watchdog.cancel()
        await process.wait()
        await words
        if self._lost is not None:
            raise self._lost
        if not self._stuck:
            return False
        await self._give_back()
        self._asking = 0
        if not self._reading or len(self._skip) >= _MAX_SKIPPED:
            self._done = {"outcome": "failed", "reason": "the recovery made no progress"}
            return False
        self._skip.append(self._reading)
        return True

    async def _watch_progress(self) -> None:
        """Kill a subprocess that is stuck: silent, or without progress although nothing of an archive is awaited."""
        patience = float(self._job.get("stuck_after") or 300.0)
        while True:
            await asyncio.sleep(min(1.0, patience / 4))
            now = time.monotonic()
            idle = now - self._progress > patience and not self._asking and not self._open
            if idle or now - self._heard_at > patience:
                self._stuck = True
                self._kill()
                return

    async def _listen_to_errors(self, process: Process) -> None:
        assert process.stderr is not None
        while True:
            try:
                text = await process.stderr.readline()
            except ValueError:  # longer than _MAX_LINE: no line of ours
                continue
            if not text:
                return
            self._log.add(text.decode("utf-8", "replace"))

    def _last_words(self) -> str:
        return self._log.last_words or "the recovery ended without a result"

    def _heard(self, message: dict[str, Any]) -> None:
        kind = message.pop("type")
        self._heard_at = time.monotonic()
        if kind == "picture":
            self._spawn(self._send_picture(Path(message["file"])))
            return
        self._reading = message["capture"] if kind == "reading" else ""
        if kind == "alive":
            return
        self._progress = self._heard_at
        if kind == "permit":
            self._asking += 1
            self._spawn(self._permit(message))
        elif kind == "finished":
            permit = self._permit_name(message["permit"])
            archive = self._open.pop(permit, None)
            if archive is not None and archive in self._counted:
                self._finished.append((archive, permit))
                if len(self._finished) == 1:
                    self._spawn(self._report_finished())
        elif kind == "paused":
            self._spawn(self._report_pause(message))
        elif kind == "status":
            self._share = message.pop("progress", None)
            self._status = {**message, "waiting_for": self._status.get("waiting_for", [])}
            self._news.set()
        elif kind == "survey":
            self._survey = message
        elif kind == "packing":
            self._status = {**self._status, "stage": "packing"}
            self._spawn(self._report_packing())
        elif kind == "done":
            self._done = message

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _permit(self, asked: dict[str, Any]) -> None:
        """Bring a permit, as soon as the desk gives one; without contact there is none."""
        number, archive = asked["permit"], asked["archive"]
        name = self._permit_name(number)
        while True:
            try:
                answer = await self._desk.post(
                    f"/jobs/{self.id}/permit",
                    timeout=90,
                    fence=self.fence,
                    archive=archive,
                    kind=asked["kind"],
                    permit=name,
                )
                self._contact = time.monotonic()
                break
            except _TROUBLE:
                await asyncio.sleep(1.0)
            except (Lost, NotAllowed) as error:
                self._lost = error
                self._kill()
                return
        answer = answer or {}
        self._asking = max(0, self._asking - 1)
        if answer.get("granted"):
            self._open[name] = archive
        self._progress = time.monotonic()
        waiting = [one for one in self._status.get("waiting_for", []) if one["archive"] != archive]
        if not answer.get("granted") and answer.get("seconds", 0.0) > 0:
            waiting.append({"archive": archive, "until": answer["until"], "reason": answer.get("reason", "")})
        self._status = {**self._status, "waiting_for": waiting}
        self._say({**answer, "permit": number})

    async def _report_finished(self) -> None:
        """Report requests that are over: at once, and together with those that end meanwhile."""
        while self._finished:
            number = len(self._finished)
            with contextlib.suppress(Lost, NotAllowed):
                await self._post("finished", permits=self._by_archive())
            del self._finished[:number]

    async def _report_pause(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(Lost, NotAllowed):
            await self._post("paused", **message)

    async def _send_picture(self, path: Path) -> None:
        """A picture of a page that came, for whoever waits; not worth a second try."""
        with contextlib.suppress(Lost, NotAllowed, *_TROUBLE):
            packed_file = await asyncio.to_thread(packed, path)
            await self._desk.upload(self.id, self.fence, path, packed_file.sha256)
            self._news.set()

    async def _report_packing(self) -> None:
        with contextlib.suppress(Lost, NotAllowed):
            await self._post("pack")

    def _permit_name(self, number: int) -> str:
        """The name of a permit for the desk: every run of the subprocess counts from one."""
        return f"{self._runs}.{number}"

    def _say(self, message: Mapping[str, Any]) -> None:
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                process.stdin.write(json.dumps(message).encode() + b"\n")

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    # The end ------------------------------------------------------------------------------------------

    async def _finish(self, folder: Path, done: dict[str, Any]) -> None:
        outcome = done["outcome"]
        if self._status or self._log:
            await self._report()
        while self._log:
            await self._report()
        if outcome == "recovered":
            await self._post("pack")
            for one in done["files"]:
                await self._upload(folder.with_name("site.out") / one["name"], one["sha256"])
            await self._post("deliver", summary=done["summary"], files=done["files"])
        elif outcome == "nothing":
            await self._post("nothing", summary=done["summary"])
        elif outcome == "waiting":
            await self._keep_state(folder)
            await self._post("wait", seconds=done["seconds"], reason=done["reason"])
        elif outcome == "stopped":
            await self._keep_state(folder)
            await self._post("release")
        else:
            reason = str(done.get("reason") or "no archive answered")
            await self._post("fail", reason=reason, silent=done.get("silent"), summary=done.get("summary"))
            return
        shutil.rmtree(folder.parent, ignore_errors=True)

    async def _keep_state(self, folder: Path) -> None:
        if (folder / FOLDER).exists():
            packed = await asyncio.to_thread(write_state, folder, folder.with_name(STATE))
            await self._upload(folder.with_name(STATE), packed.sha256)
            folder.with_name(STATE).unlink()

    async def _upload(self, path: Path, sha256: str) -> None:
        pause = 0.2
        while True:
            try:
                await self._desk.upload(self.id, self.fence, path, sha256)
                self._contact = time.monotonic()
                return
            except _TROUBLE as error:
                if time.monotonic() - self._contact > self._job["lease"]:
                    raise Lost("no contact to the desk", where=self.id, why=str(error)) from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)


async def _remove_over(desk: DeskClient, work: Path) -> None:
    """Remove what was fetched for jobs that have ended elsewhere or are deleted."""
    folders = await asyncio.to_thread(_folders, work)
    jobs = sorted({folder.name.partition(".")[0] for folder in folders})
    for start in range(0, len(jobs), _ASKED):
        over = set(await desk.over(jobs[start : start + _ASKED]))
        for folder in folders:
            if folder.name.partition(".")[0] in over:
                await asyncio.to_thread(remove_unused, folder)


def _folders(work: Path) -> list[Path]:
    """The folders of jobs in the work folder; whatever else a person has there is theirs."""
    return [one for one in sorted(work.iterdir()) if _JOB_FOLDER.fullmatch(one.name) and (one / "lock").is_file()]


def _sweep(work: Path) -> None:
    """Remove folders of jobs that never came back here."""
    for folder in _folders(work):
        if folder.stat().st_mtime < time.time() - _FORGOTTEN:
            remove_unused(folder)
