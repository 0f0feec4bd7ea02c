"""Surveys before anything is queued: what the archives list of a site, asked once and shared for a week.

Hides: the subprocess and the cache. A listing is kept as the store of a recovery that fetched nothing yet, so every job
for the same site begins with it; its survey is a row, so it is shown at once to the next who asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from recollect.archives.registry import Archive
from recollect.desk.budget import Permits, Refusal
from recollect.desk.child import archive_to_json
from recollect.desk.database import Connection, one
from recollect.desk.delivery import STATE, write_state
from recollect.errors import RecollectError
from recollect.recovery.canonical import visit_key

_AT_A_TIME = 2
_MOST = 100
_AGAIN = 1.0
_SECONDS = 900.0
RETRY = 300.0
"""Seconds after which archives that did not answer a survey are asked again."""
_MAX_LINE = 4 * 1024 * 1024
EGRESS = "desk"
_Result = TypeVar("_Result")
Transact = Callable[[Callable[[Connection], _Result]], Awaitable[_Result]]


class Busy(RecollectError):
    """More surveys are asked for than can be made."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A survey as it is known: running, done (with what was found), partial (not every archive answered), unanswered
    (none of those that answered lists anything, and not all did) or failed (why)."""

    state: str
    found: Mapping[str, Any]
    error: str = ""
    created: float = 0.0

    @property
    def is_answer(self) -> bool:
        return self.state in ("done", "partial")

    @property
    def silent(self) -> list[str]:
        """Names of the archives that did not answer."""
        return [one["name"] for one in self.found.get("archives", ()) if one["state"] == "failed"]

    @property
    def retry_at(self) -> float | None:
        """When the archives are asked again, if they are before its time is over."""
        return self.created + RETRY if self.state in ("partial", "unanswered") else None


def listing_key(options: Mapping[str, Any]) -> str:
    """The same for all submissions that need the same listings: dates and file names do not matter."""
    asked = [visit_key(options["uri"]), options["uri"], options["scope"], sorted(options["archives"])]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def listing_keys(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of every listing that was made for these options."""
    return listing_key(options), _fresh_key(options)


def _fresh_key(options: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(["fresh", dict(options)], sort_keys=True).encode()).hexdigest()[:32]


def known(c: Connection, key: str, now: float, lifetime: float) -> Listed | None:
    row = one(c.rows("SELECT * FROM listing WHERE key = ? AND created > ?", key, now - lifetime))
    return Listed(row["state"], json.loads(row["survey"]), row["error"], row["created"]) if row else None


def _holds(listed: Listed, now: float) -> bool:
    """A survey is kept for its lifetime, an outage for some minutes (it is not an answer), a failure for one."""
    return listed.state == "done" or listed.created > now - (60 if listed.state == "failed" else RETRY)


def _save(c: Connection, key: str, listed: Listed, now: float) -> None:
    c.change(
        """INSERT INTO listing VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state,
           survey = excluded.survey, error = excluded.error, created = excluded.created""",
        key, listed.state, json.dumps(dict(listed.found)), listed.error, now,
    )  # fmt: skip


class Surveyor:
    """Runs surveys, few at a time; one for each site, however many ask."""

    def __init__(
        self,
        folder: Path,
        archives: Sequence[Archive],
        permits: Permits,
        transact: Callable[[Callable[[Connection], Any]], Awaitable[Any]],
        clock: Callable[[], float],
        lifetime: float,
    ) -> None:
        self._folder = folder
        self._archives = archives
        self._permits = permits
        self._transact = transact
        self._clock = clock
        self._lifetime = lifetime
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._running: dict[str, asyncio.Task[Listed]] = {}

    def state_file(self, key: str) -> Path:
        return self._folder / key / STATE

    async def look(self, options: Mapping[str, Any], wait: float = 0.0) -> Listed:
        """What is known by now; a survey that is not there begins. Waits up to `wait` seconds for its end."""
        key = listing_key(options)
        now = self._clock()
        task = self._running.get(key)
        if task is None:
            listed: Listed | None = await self._transact(lambda c: known(c, key, now, self._lifetime))
            if listed is not None and _holds(listed, now):
                return listed
            if len(self._running) >= _MOST:
                raise Busy("too many surveys are under way", hint="try again in some minutes")
            plain = {**options, "at": None, "from": None, "to": None}  # shared by all dates
            task = self._running[key] = asyncio.ensure_future(self._survey(key, plain))
            task.add_done_callback(lambda _task: self._running.pop(key, None))
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(task), wait)
        return Listed("running", {}, created=now)

    async def known(self, options: Mapping[str, Any]) -> bool:
        """Whether `look` would ask no archive: there is a survey, or one is under way."""
        key, now = listing_key(options), self._clock()
        if key in self._running:
            return True
        listed: Listed | None = await self._transact(lambda c: known(c, key, now, self._lifetime))
        return listed is not None and _holds(listed, now)

    async def fresh(self, options: Mapping[str, Any]) -> Listed:
        """Ask the archives again, whatever is known, for exactly these options: as a job for them would be listed."""
        return await self._survey(_fresh_key(options), dict(options))

    async def close(self) -> None:
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _survey(self, key: str, options: dict[str, Any]) -> Listed:
        async with self._turns:
            try:
                async with asyncio.timeout(_SECONDS):
                    listed = await self._run(key, options)
            except TimeoutError:
                listed = Listed("failed", {}, "the archives took too long")
            now = self._clock()
            await self._transact(lambda c: _save(c, key, listed, now))
            return Listed(listed.state, listed.found, listed.error, now)

    async def _run(self, key: str, options: dict[str, Any]) -> Listed:
        place = self._folder / key
        shutil.rmtree(place / "site", ignore_errors=True)
        (place / "site").mkdir(parents=True, exist_ok=True)
        wanted = options["archives"]
        archives = [archive_to_json(a) for a in self._archives if not wanted or a.id in wanted]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recollect.desk.child",
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True, limit=_MAX_LINE,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        found: dict[str, Any] = {}
        error = "the survey ended without a result"
        name = f"survey {key}"
        answers: set[asyncio.Task[None]] = set()

        def say(message: Mapping[str, Any]) -> None:
            assert process.stdin is not None
            with contextlib.suppress(ConnectionError, RuntimeError):
                process.stdin.write(json.dumps(message).encode() + b"\n")

        async def permit(asked: Mapping[str, Any]) -> None:
            try:
                number = str(asked["permit"])
                refusal = await self._permits.acquire(name, asked["archive"], asked["kind"], EGRESS, permit=number)
            except RecollectError as error:  # the database does not answer: asked again in a moment
                refusal = Refusal(self._clock() + _AGAIN, error.what)
            seconds = 0.0 if refusal is None else refusal.until - self._clock()
            answer = {"granted": True} if refusal is None else {"seconds": seconds, "reason": refusal.reason}
            say({**answer, "permit": asked["permit"]})

        try:
            folder = str((place / "site").resolve())
            say({"folder": folder, "archives": archives, "options": options, "survey_only": True})
            async for text in process.stdout:
                message = json.loads(text)
                kind = message.pop("type")
                if kind == "permit":
                    task = asyncio.ensure_future(permit(message))
                    answers.add(task)
                    task.add_done_callback(answers.discard)
                elif kind == "finished":
                    self._permits.finished(name, message["archive"], 0, [str(message["permit"])])
                elif kind == "paused":
                    self._permits.pause(message["archive"], message["kind"], EGRESS, message["seconds"])
                elif kind == "survey":
                    found = message
                elif kind == "done":
                    error = message.get("reason", "") if message["outcome"] == "failed" else ""
                    break
        finally:
            for task in answers:
                task.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            self._permits.ended(name)
        if error or not found:
            shutil.rmtree(place / "site", ignore_errors=True)
            return Listed("failed", found, error)
        state = "partial" if found.get("captures") else "unanswered"
        if not Listed("done", found).silent:
            state = "done"
        if state != "unanswered":  # a recovery that begins with this asks the silent archives again
            await asyncio.to_thread(write_state, place / "site", place / STATE)
        shutil.rmtree(place / "site", ignore_errors=True)
        return Listed(state, found)
