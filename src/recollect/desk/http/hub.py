"""Clients that follow jobs: notified of changes, never waited for.

Hides: events by job, and one computed message for all watchers of a job and state.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

MAX_WATCHERS = 5000
MAX_OF_ONE = MAX_WATCHERS // 10
"""Pages that one recipient can watch at a time: one secret must not take the places of all."""
OPERATOR = "operator"
_MOST_MESSAGES = 4096
_FRESH = 5.0


class Hub:
    """Who watches which job."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}
        self._versions: dict[str, int] = {}
        self._messages: dict[tuple[str, str], tuple[int, float, asyncio.Future[bytes]]] = {}
        self._by_one: Counter[str] = Counter()

    @property
    def watchers(self) -> int:
        return self._by_one.total()

    def enter(self, who: str) -> bool:
        """Take a place; False when all are taken, or all of this one. The operator has no bound of their own."""
        if self.watchers >= MAX_WATCHERS or (who != OPERATOR and self._by_one[who] >= MAX_OF_ONE):
            return False
        self._by_one[who] += 1
        return True

    def leave(self, who: str) -> None:
        self._by_one[who] -= 1
        if self._by_one[who] <= 0:
            del self._by_one[who]

    def changed(self, job: str) -> None:
        self._versions[job] = self._versions.get(job, 0) + 1
        event = self._events.pop(job, None)
        if event is not None:
            event.set()

    def wake(self) -> None:
        """Wake all who watch: the desk ends."""
        for event in self._events.values():
            event.set()
        self._events.clear()

    def version(self, job: str) -> int:
        return self._versions.get(job, 0)

    async def wait(self, job: str, seen: int, seconds: float) -> bool:
        """True as soon as the job is of another version than `seen`; False after `seconds`."""
        if self.version(job) != seen:
            return True
        event = self._events.setdefault(job, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True

    async def message(self, job: str, kind: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """What `make` gives, made once for a version of the job, however many ask; and again after some seconds, as
        rank and estimate change with other jobs."""
        version, now = self.version(job), asyncio.get_running_loop().time()
        known = self._messages.get((job, kind))
        if known is None or known[0] != version or known[1] < now - _FRESH or _failed(known[2]):
            known = (version, now, asyncio.ensure_future(make()))
            self._messages[job, kind] = known
            if len(self._messages) > _MOST_MESSAGES:
                self._messages = {(job, kind): known}
        return await asyncio.shield(known[2])


def _failed(made: asyncio.Future[bytes]) -> bool:
    return made.done() and (made.cancelled() or made.exception() is not None)
