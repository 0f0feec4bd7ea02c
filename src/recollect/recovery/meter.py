"""Requests: counted, kept within quotas, and repeated after failures.

Hides: at most L requests to an archive in a period P (McCown 2007, section V.1), over all runs into the same folder;
waiting when an archive asks for it; trying again after a broken connection, a timeout or an incomplete body; and giving
up an archive that only fails. Rates and concurrency are the client's. Invariants: a request is counted in the journal
just before it is sent; without requests left none is sent; a resource is given up within `patience` seconds of silence,
tries included, and so is an archive that has answered nothing for that long; an archive that was given up gets no more
requests for captures, also none that waited for their turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, TypeVar

from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive, Rate
from recollect.archives.transport import Request, Response, StreamedResponse
from recollect.errors import AnswerCutShort, ArchiveError, ArchiveThrottled, ArchiveTimeout, ArchiveUnreachable
from recollect.quantities import counted
from recollect.recovery.journal import Journal, budget_left

_Result = TypeVar("_Result")
_TRIES = 3
_FIRST_PAUSE = 0.5
_FAILURES_TO_GIVE_UP = 6
PATIENCE = 900.0  # seconds to wait in one go for an archive that asks for a pause, or is silent
TIMEOUT = 120.0  # seconds for one request
_LONGEST_SILENCE = 120.0  # seconds without a byte after which one request is given up, whatever the patience
_PROGRESS = 1000  # bytes in that time that are not silence
_BROKEN = (ArchiveTimeout, ArchiveUnreachable, AnswerCutShort)


class OutOfQuota(ArchiveError):
    """No requests are left for this archive in this period."""

    kind = "out of quota"


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `limit` requests in `period` seconds."""

    limit: int
    period: float = 86_400.0


def quotas_of(archives: Iterable[Archive], given: Mapping[str, Quota]) -> dict[str, Quota]:
    """The quota of each archive that has one: as given for it, or for all (`*`), or as the list of archives says."""
    found: dict[str, Quota] = {}
    for archive in archives:
        own = Quota(int(archive.quota.count), archive.quota.seconds) if archive.quota else None
        quota = given.get(archive.id) or given.get("*") or own
        if quota is not None:
            found[archive.id] = quota
    return found


def evenly(archive: Archive) -> Archive:
    """The archive with its rates spaced evenly: in no period more than the configured number, also at the start."""

    def spaced(rate: Rate | None) -> Rate | None:
        return Rate(1, rate.seconds / rate.count) if rate else None

    return replace(archive, index_rate=spaced(archive.index_rate), replay_rate=spaced(archive.replay_rate))


class Meter:
    """An archive client that counts."""

    def __init__(
        self,
        client: ArchiveClient,
        journal: Journal,
        quotas: Mapping[str, Quota],
        *,
        patience: float = PATIENCE,
        longest_pause: float = inf,
    ) -> None:
        self._client = client
        self._journal = journal
        self._quotas = dict(quotas)
        self._patience = patience
        self._longest_pause = min(patience, longest_pause)
        # All tries of one request, and the pauses between them, fit into the patience.
        self._silence = min(_LONGEST_SILENCE, patience / (_TRIES + 1))
        self._pauses = [min(_FIRST_PAUSE * 4**n, patience / 20) for n in range(_TRIES)]
        self._failures: dict[str, int] = {}
        self._heard: dict[str, float] = {}  # archive -> when it last answered, or was first asked
        self._refused: set[str] = set()
        self.down: dict[str, str] = {}  # archive -> why it is not asked any more

    def quota(self, archive: str) -> Quota | None:
        return self._quotas.get(archive)

    def budget(self, archive: str) -> int | None:
        """Requests left now; None without a quota."""
        quota = self.quota(archive)
        if archive in self._refused:
            return 0
        if quota is None:
            return None
        return budget_left(self._journal.usage(archive), quota.limit, quota.period, time.time())

    def renewed_in(self, archive: str) -> float:
        """Seconds until the quota of an archive is full again."""
        quota = self.quota(archive)
        if quota is None:
            return 0.0
        return max(0.0, self._journal.usage(archive).period_began + quota.period - time.time())

    # The client's doors, counted --------------------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """A listing or a TimeMap; waits and repeats when the archive says it is too busy."""
        archive = request.archive

        async def ask() -> Response:
            deadline = asyncio.get_running_loop().time() + self._silence
            counted = request._replace(before=lambda: self._count(archive, "listed"), deadline=deadline)
            response = await self._client.send(counted)
            if response.status == 429 or (response.status == 503 and "retry-after" in response.headers):
                why = f"status {response.status}"
                raise ArchiveThrottled("the archive asked us to wait", where=request.url, why=why)
            if response.truncated and not response.body:
                raise AnswerCutShort("an answer without its body", where=request.url, why=response.truncated)
            return response

        response = await self.patiently(archive, ask)
        if response.truncated and len(response.body) < request.max_bytes:
            again = await self.patiently(archive, ask)
            if not again.truncated or len(again.body) > len(response.body):
                return again
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamedResponse]:
        """A capture; repeat with `patiently`. With less than a kilobyte in a while it is given up, wherever it stands:
        an archive that sends a byte now and then would never end."""
        loop = asyncio.get_running_loop()
        came = 0  # bytes since the last moment from which silence counts
        try:
            async with asyncio.timeout(None) as timer:

                def heard() -> None:
                    nonlocal came
                    came = 0
                    timer.reschedule(loop.time() + self._silence)

                def before() -> None:
                    self._count(request.archive, "fetched")
                    heard()

                async def chunks(response: StreamedResponse) -> AsyncIterator[bytes]:
                    nonlocal came
                    async for chunk in response:
                        came += len(chunk)
                        if came >= _PROGRESS:
                            heard()
                        yield chunk

                async with self._client.stream(request._replace(before=before)) as response:
                    yield replace(response, chunks=chunks(response))
        except TimeoutError as error:
            some = counted(came, "byte") if came else "nothing"
            why = f"{some} came in {self._silence:.3g} s"
            raise ArchiveTimeout("the archive is silent", where=request.url, why=why) from error

    def _count(self, archive: Archive, kind: Literal["listed", "fetched"]) -> None:
        """Just before a request is sent. It may have waited for its turn since before the archive was given up."""
        if kind == "fetched" and archive.id in self.down:
            raise ArchiveUnreachable("the archive was given up", where=archive.id, why=self.down[archive.id])
        if self.budget(archive.id) == 0:
            raise OutOfQuota("no requests left", where=archive.id)
        quota = self.quota(archive.id)
        self._journal.count_request(archive.id, kind, quota.period if quota else 86_400.0)

    async def patiently(self, archive: Archive, ask: Callable[[], Awaitable[_Result]]) -> _Result:
        """Ask until there is an answer: wait when asked to, try again after a failure, give up in the end."""
        waited = 0.0
        tries = 0
        self._heard.setdefault(archive.id, time.monotonic())
        while True:
            try:
                result = await ask()
            except OutOfQuota:
                if self.budget(archive.id) != 0:  # a permit was refused: another process keeps that budget
                    self._refused.add(archive.id)
                raise
            except ArchiveThrottled:
                pause = self._client.pause_left(archive)
                if waited + pause > self._longest_pause:
                    self.down[archive.id] = f"it asks us to wait {pause / 60:.0f} minutes"
                    raise
                # Without a pause the configured rate leaves no time: this does not count as a stall.
                waited += pause
                await asyncio.sleep(max(pause, _FIRST_PAUSE))
            except _BROKEN as error:
                tries += 1
                silent = time.monotonic() - self._heard[archive.id]
                if tries >= _TRIES or archive.id in self.down or silent >= self._patience:
                    self._failed(archive.id, error, silent)
                    raise
                await asyncio.sleep(self._pauses[tries - 1])
            else:
                self._failures.pop(archive.id, None)
                self._heard[archive.id] = time.monotonic()
                return result

    def _failed(self, archive: str, error: ArchiveError, silent: float) -> None:
        """An archive that fails again and again is left alone for the rest of the run."""
        self._failures[archive] = self._failures.get(archive, 0) + 1
        if archive in self.down:
            return
        if silent >= self._patience:
            self.down[archive] = f"it has not answered for {silent:.0f} s: {error}"
        elif self._failures[archive] >= _FAILURES_TO_GIVE_UP:
            self.down[archive] = f"it failed {_FAILURES_TO_GIVE_UP} times in a row: {error}"
