"""How often and how many at a time one archive is asked: law 6, polite by default.

Hides: queues of waiting requests, rates (leaky buckets, GCRA), and Retry-After pauses. Invariants: an archive never has
more than `concurrency` passes; passes are given in the order of requests; no request waits past its deadline. Times are
those of the running loop's clock (monotonic seconds).

An archive has one gate, and a pace for each kind of request it limits apart (its index and its replay). All gates of a
client share one `InFlightLimit`, which bounds the requests in flight over all archives: sockets are limited (a
process has 1,024 files by default). The bound is soft: every archive may always have its equal share, so archives that
stall cannot use up the limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from math import inf

from recollect.datetimes import parse_http_date
from recollect.errors import ArchiveThrottled, FormatError

MAX_PAUSE = 3600.0  # an archive that says "come back tomorrow" is asked again after an hour
_FIRST_BACKOFF = 1.0
_MAX_BACKOFF = 60.0


class Pace:
    """At most `rate` requests a second, `burst` of them at once."""

    __slots__ = ("free_at", "interval", "slack", "waiting")

    def __init__(self, rate: float, burst: int | None = None) -> None:
        self.interval = 1.0 / rate
        self.slack = ((burst or max(1, int(rate))) - 1) * self.interval
        self.free_at = 0.0
        self.waiting = 0


class InFlightLimit:
    """The limit of requests in flight over all gates."""

    __slots__ = ("_gates", "inside", "most", "waiting")

    def __init__(self, most: int) -> None:
        self.most = most
        self.inside = 0
        self.waiting = 0
        self._gates: list[Gate] = []

    def join(self, gate: Gate) -> None:
        self._gates.append(gate)

    def quit(self, gate: Gate) -> None:
        """A gate that is not used any more; what is inside still counts until it leaves."""
        self._gates.remove(gate)

    @property
    def share(self) -> int:
        """What every archive may always have."""
        return max(1, self.most // max(1, len(self._gates)))

    def let_in(self) -> None:
        """Give free places to those who wait: to the archive with the fewest requests out first."""
        share = self.share
        while self.waiting:
            # One plain loop: under load it runs for every request to an archive.
            most = share if self.inside >= self.most else self.most
            best = None
            for gate in self._gates:
                inside = gate.inside
                if inside < most and inside < gate.concurrency and gate.waiting:
                    best, most = gate, inside
            if best is None:
                return
            best.admit()


class Gate:
    """The door to one archive: `await enter(deadline, pace)`, then `leave()`."""

    __slots__ = (
        "_backoff",
        "_backs_off",
        "_in_flight",
        "_loop",
        "concurrency",
        "inside",
        "name",
        "paused_until",
        "waiting",
    )

    def __init__(
        self, name: str, *, concurrency: int, backs_off: bool = True, in_flight: InFlightLimit | None = None
    ) -> None:
        """With `backs_off`, 429 without Retry-After makes us pause too: a second, and twice as long each time."""
        self.name = name
        self._backs_off = backs_off
        self._in_flight = in_flight or InFlightLimit(concurrency)
        self._in_flight.join(self)
        self.concurrency = concurrency
        self.inside = 0
        self.paused_until = 0.0
        self._backoff = 0.0
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()

    async def enter(self, deadline: float = inf, pace: Pace | None = None) -> None:
        """Wait for a pass; raises ArchiveThrottled when none can be had before the deadline."""
        if not self.waiting and self.has_slot:
            self.inside += 1
            self._in_flight.inside += 1
        else:
            await self._queue(deadline)
        if pace is not None or self.paused_until:
            try:
                await self._wait_turn(deadline, pace)
            except BaseException:
                self.leave()
                raise

    def leave(self) -> None:
        """Return the pass; the next waiting request gets it."""
        self.inside -= 1
        self._in_flight.inside -= 1
        if self._in_flight.waiting:
            self._in_flight.let_in()

    @property
    def has_slot(self) -> bool:
        in_flight = self._in_flight
        return self.inside < self.concurrency and (in_flight.inside < in_flight.most or self.inside < in_flight.share)

    def admit(self) -> None:
        """Give a pass to the first who waits; those who gave up just now are taken out."""
        while self.waiting:
            waiter = self.waiting.popleft()
            self._in_flight.waiting -= 1
            if not waiter.done():
                self.inside += 1
                self._in_flight.inside += 1
                waiter.set_result(None)
                return

    def noticed(self, status: int, retry_after: str) -> None:
        """Take note of an answer: 429, or 503 with Retry-After, makes us pause; success ends the backing off."""
        if status == 429 or (status == 503 and retry_after):
            seconds = _seconds(retry_after)
            if seconds is None:
                if not self._backs_off:
                    return
                self._backoff = min(self._backoff * 2 or _FIRST_BACKOFF, _MAX_BACKOFF)
                seconds = self._backoff
            self.paused_until = max(self.paused_until, self._loop.time() + min(seconds, MAX_PAUSE))
        elif status < 500:
            self._backoff = 0.0

    @property
    def pause_left(self) -> float:
        """Seconds until the archive may be asked again."""
        return max(0.0, self.paused_until - self._loop.time())

    async def _queue(self, deadline: float) -> None:
        waiter = self._loop.create_future()
        self.waiting.append(waiter)
        self._in_flight.waiting += 1
        timer = None if deadline == inf else self._loop.call_at(deadline, _wake, waiter)
        try:
            await waiter
        except TimeoutError:
            self._give_up(waiter)
            raise ArchiveThrottled(
                "no free place before the deadline", where=self.name, why=f"{self.inside} requests are out"
            ) from None
        except BaseException:
            if waiter.cancelled() or not waiter.done():
                self._give_up(waiter)
            else:
                # Cancelled after the pass was handed over: hand it on.
                self.leave()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _give_up(self, waiter: asyncio.Future[None]) -> None:
        if waiter in self.waiting:
            self.waiting.remove(waiter)
            self._in_flight.waiting -= 1

    async def _wait_turn(self, deadline: float, pace: Pace | None) -> None:
        ahead = 0
        if pace is not None:
            ahead, pace.waiting = pace.waiting, pace.waiting + 1
        try:
            while True:
                now = self._loop.time()
                pause = self.paused_until - now
                if pause <= 0:
                    self.paused_until = 0.0
                wait = max(pause, pace.free_at - pace.slack - now if pace else 0.0)
                if wait <= 0:
                    # The place is taken when it is used: a late waking does not make up for lost time with a burst.
                    if pace is not None:
                        pace.free_at = max(now, pace.free_at) + pace.interval
                    return
                if now + wait + (ahead * pace.interval if pace else 0.0) >= deadline:
                    what = "the archive asked us to wait" if pause > 0 else "the rate limit leaves no time"
                    raise ArchiveThrottled(what, where=self.name, why=f"{wait:.1f} s more")
                await asyncio.sleep(wait)
                ahead = max(0, ahead - 1)
        finally:
            if pace is not None:
                pace.waiting -= 1


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


def _seconds(retry_after: str) -> float | None:
    text = retry_after.strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_PAUSE)
    try:
        return max(0.0, (parse_http_date(text) - datetime.now(UTC)).total_seconds())
    except FormatError:
        return None
