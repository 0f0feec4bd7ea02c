"""Rate limits of archives: permits for single requests, over all jobs and workers of one desk.

Hides: rates, quotas, pauses and rests, per archive, kind of request and egress address, and taking turns between
jobs. `Lane` and `ArchiveBudgets` are pure (the clock is an argument); `Permits` waits on a running loop. Invariants:
- permits of a lane are spaced evenly, a little wider than its rate, so that no window of the archive's own clock sees
  more requests than configured; a permit is taken when it is given, never booked ahead;
- jobs take turns: a job with a thousand requests waiting delays another by one permit;
- no more requests of an archive are under way than its `concurrency`, over all workers; each has an id, so that asking
  for it and reporting its end can be repeated; a request whose end is not reported counts for five minutes, and of a
  job that was taken from its worker for the few seconds in which the worker notices;
- requests of a quota are counted in the database before they are given out, in small blocks, so that a crash of the
  desk can waste some of a quota and never exceed it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from recollect.archives.registry import Archive, Rate
from recollect.desk.database import Connection

RequestKind = Literal["index", "replay"]
PATIENCE = 45.0
"""Longer waits are answered with the moment to come back, so that a worker can do something else."""
_UNTIL_WOKEN = 3600.0
_ENDING = 5.0
NOTICED = 5.0
"""Seconds in which a worker notices that a job was taken from it, and has ended its requests."""
_UNNAMED = "#"
_LONGEST_REQUEST = 300.0  # recoveries give up a request after 120 s, and its end is reported at once


@dataclass(frozen=True, slots=True)
class Refusal:
    """No permit for now: until when, and why."""

    until: float
    reason: str


@dataclass(slots=True)
class Quota:
    """Requests of an archive from one egress address in a period; `reserved` are counted in the database."""

    limit: int
    period: float
    began: float = 0.0
    used: int = 0
    reserved: int = 0

    def left(self, now: float) -> int:
        return self.limit if now >= self.began + self.period else self.limit - self.used

    def take(self, now: float) -> None:
        if not self.used or now >= self.began + self.period:
            self.began, self.used, self.reserved = now, 0, 0
        self.used += 1
        if self.used > self.reserved:
            self.reserved = min(self.limit, self.used + max(1, self.limit // 100))


@dataclass(slots=True)
class Slots:
    """Requests to one archive that are under way, over all workers: never more than its `concurrency`."""

    limit: int
    taken: dict[str, dict[str, float]] = field(default_factory=dict)
    """Job -> permit -> when its slot is free at the latest."""
    numbered: int = 0

    def free_at(self, now: float) -> float:
        """The earliest known time when a slot is free: now, or at the latest when the oldest request has ended."""
        for job, ends in list(self.taken.items()):
            for permit in [permit for permit, end in ends.items() if end <= now]:  # its end was never reported
                del ends[permit]
            if not ends:
                del self.taken[job]
        if sum(len(ends) for ends in self.taken.values()) < self.limit:
            return 0.0
        return min(min(ends.values()) for ends in self.taken.values())

    def take(self, job: str, now: float, permit: str = "") -> None:
        self.numbered += 1
        self.taken.setdefault(job, {})[permit or f"{_UNNAMED}{self.numbered}"] = now + _LONGEST_REQUEST

    def holds(self, job: str, permit: str) -> bool:
        return permit in self.taken.get(job, {})

    def give_back(self, job: str, permits: Iterable[str]) -> None:
        """The requests of these permits are over; those that are not open change nothing."""
        ends = self.taken.get(job, {})
        for permit in permits:
            ends.pop(permit, None)

    def give_back_some(self, job: str, count: int) -> None:
        """As many requests without an id are over, the oldest first."""
        unnamed = [permit for permit in self.taken.get(job, {}) if permit.startswith(_UNNAMED)]
        self.give_back(job, unnamed[:count])

    def end_by(self, job: str, moment: float, given_before: float) -> None:
        """The requests of a job whose permits were given before are over at a moment, whatever is reported."""
        ends = self.taken.get(job, {})
        for permit, end in ends.items():
            if end - _LONGEST_REQUEST <= given_before:
                ends[permit] = min(end, moment)


def spacing(rate: Rate | None) -> float:
    """Seconds between two permits: those of the rate, and more for requests that are late by 0.4 s.

    A permit is given here and used on another machine: the archive sees requests closer together than permits are.
    """
    if rate is None:
        return 0.0
    delay = min(max(0.02 * rate.seconds, 0.4), 0.4 * rate.seconds)
    return (rate.seconds + delay) / rate.count


@dataclass(slots=True)
class Lane:
    """One archive, one kind of request, one egress address: who waits, and when the next permit is due."""

    archive: str
    kind: str
    egress: str
    interval: float
    quota: Quota | None = None
    slots: Slots | None = None
    free_at: float = 0.0
    paused_until: float = 0.0
    given: int = 0
    turns: deque[str] = field(default_factory=deque)
    waiting: dict[str, deque[object]] = field(default_factory=dict)
    permits: dict[object, str] = field(default_factory=dict)
    """Ticket -> id of the permit, of requests that have one."""

    def ask(self, job: str, ticket: object, permit: str = "") -> None:
        """Put a request at the end of its job's line."""
        if permit:
            self.permits[ticket] = permit
        line = self.waiting.setdefault(job, deque())
        if not line:
            self.turns.append(job)
        line.append(ticket)

    def forget(self, job: str, ticket: object) -> None:
        """Take a request out that is not wanted any more."""
        line = self.waiting.get(job)
        if line is not None and ticket in line:
            line.remove(ticket)
            self.permits.pop(ticket, None)
            if not line:
                del self.waiting[job]
                self.turns.remove(job)

    def due(self, now: float) -> float:
        """The moment of the next permit, whoever gets it."""
        due = max(self.free_at, self.paused_until)
        if self.quota is not None and self.quota.left(now) <= 0:
            due = max(due, self.quota.began + self.quota.period)
        return max(due, self.slots.free_at(now)) if self.slots is not None else due

    def next(self, now: float) -> object | None:
        """Give the next permit, if one is due and a request waits."""
        if not self.turns or self.due(now) > now:
            return None
        job = self.turns.popleft()
        line = self.waiting[job]
        ticket = line.popleft()
        if line:
            self.turns.append(job)
        else:
            del self.waiting[job]
        self.free_at = max(now, self.free_at) + self.interval
        self.given += 1
        if self.quota is not None:
            self.quota.take(now)
        if self.slots is not None:
            self.slots.take(job, now, self.permits.get(ticket, ""))
        self.permits.pop(ticket, None)
        return ticket

    def drop(self, job: str) -> list[object]:
        """Take out all requests of a job."""
        line = self.waiting.pop(job, deque())
        if line:
            self.turns.remove(job)
        for ticket in line:
            self.permits.pop(ticket, None)
        return list(line)

    def refusal(self, now: float, patience: float = PATIENCE) -> Refusal | None:
        """Why asking is of no use for a while, if so."""
        if self.paused_until > now + patience:
            return Refusal(self.paused_until, "the archive asked us to wait")
        if self.quota is not None and self.quota.left(now) <= 0:
            until = self.quota.began + self.quota.period
            if until > now + patience:
                return Refusal(until, "the quota of requests is used up")
        return None


class ArchiveBudgets:
    """All lanes of a desk."""

    def __init__(self, archives: Sequence[Archive]) -> None:
        self._archives = {archive.id: archive for archive in archives}
        self._lanes: dict[tuple[str, str, str], Lane] = {}
        self._quotas: dict[tuple[str, str], Quota] = {}
        self._slots = {archive.id: Slots(archive.concurrency) for archive in archives if archive.concurrency}
        self.resting: dict[str, str] = {}
        self.loaded_at = 0.0

    def lane(self, archive: str, kind: RequestKind, egress: str) -> Lane:
        """The lane of a request; one limit for both kinds of requests is one limit. Raises KeyError."""
        known = self._archives[archive]
        shared = known.index_rate == known.replay_rate and known.index_rate is not None
        name = "any" if shared else kind
        key = (archive, name, egress)
        if key not in self._lanes:
            rate = known.replay_rate if kind == "replay" else known.index_rate
            interval = spacing(rate)
            # What was asked for just before the desk started is not known: one interval is left out.
            quota, slots = self._quota(known, egress), self._slots.get(archive)
            self._lanes[key] = Lane(*key, interval, quota, slots, self.loaded_at + interval)
        return self._lanes[key]

    def _quota(self, archive: Archive, egress: str) -> Quota | None:
        if archive.quota is None:
            return None
        key = (archive.id, egress)
        if key not in self._quotas:
            self._quotas[key] = Quota(int(archive.quota.count), archive.quota.seconds)
        return self._quotas[key]

    def refusal(self, lane: Lane, now: float) -> Refusal | None:
        if lane.archive in self.resting:
            return Refusal(now + _UNTIL_WOKEN, f"the operator lets the archive rest: {self.resting[lane.archive]}")
        return lane.refusal(now)

    def pause(self, archive: str, kind: RequestKind, egress: str, until: float) -> None:
        """The archive asked for a pause."""
        lane = self.lane(archive, kind, egress)
        lane.paused_until = max(lane.paused_until, until)

    def wake(self, archive: str) -> None:
        """End the pauses of an archive."""
        for lane in self._lanes.values():
            if lane.archive == archive:
                lane.paused_until = 0.0

    def finished(self, job: str, archive: str, count: int = 0, permits: Iterable[str] = ()) -> None:
        """Requests of a job to an archive that are over: those of some permits, and as many without an id."""
        if (slots := self._slots.get(archive)) is not None:
            slots.give_back(job, permits)
            slots.give_back_some(job, count)

    def has(self, job: str, archive: str, permit: str) -> bool:
        """Whether a permit was given, and its request is not over."""
        slots = self._slots.get(archive)
        return slots is not None and slots.holds(job, permit)

    def ended(self, job: str) -> None:
        """The job runs no more: none of its requests is under way."""
        for slots in self._slots.values():
            slots.taken.pop(job, None)

    def taken_away(self, job: str, now: float, given_before: float) -> None:
        """The job was taken from its worker, which ends what is under way as soon as it notices."""
        for slots in self._slots.values():
            slots.end_by(job, now + NOTICED, given_before)

    def in_use(self, archive: str) -> int:
        """Requests to an archive that are under way, of those that are counted."""
        slots = self._slots.get(archive)
        return sum(map(len, slots.taken.values())) if slots is not None else 0

    @property
    def lanes(self) -> list[Lane]:
        return list(self._lanes.values())

    # What survives a restart -----------------------------------------------------------------------------------------

    def load(self, c: Connection, now: float) -> None:
        self.loaded_at = now
        self.resting = {row["archive"]: row["reason"] for row in c.rows("SELECT archive, reason FROM rest")}
        for row in c.rows("SELECT * FROM budget"):
            archive = self._archives.get(row["archive"])
            if archive is None:
                continue
            if row["kind"] == "quota":
                quota = self._quota(archive, row["egress"])
                if quota is not None:
                    quota.began, quota.used = row["period_began"], min(row["used"], quota.limit)
                    quota.reserved = quota.used
                continue
            for kind in ("index", "replay"):
                lane = self.lane(row["archive"], kind, row["egress"])
                if lane.kind == row["kind"]:
                    lane.paused_until, lane.given = row["paused_until"], row["total"]

    def save(self, c: Connection) -> None:
        write(c, self.snapshot())

    def snapshot(self) -> list[Saved]:
        """What `write` keeps; to be taken where permits are given, as lanes are added there."""
        lanes = [
            Saved(lane.archive, lane.kind, lane.egress, total=lane.given, paused_until=lane.paused_until)
            for lane in self._lanes.values()
        ]
        quotas = [
            Saved(archive, "quota", egress, quota.began, quota.reserved)
            for (archive, egress), quota in self._quotas.items()
        ]
        return lanes + quotas

    def state(self) -> tuple[object, ...]:
        """Changes when something that must be saved changes: a reserved block, a pause."""
        return (
            tuple((key, quota.began, quota.reserved) for key, quota in self._quotas.items()),
            tuple((key, lane.paused_until) for key, lane in self._lanes.items()),
        )


class Saved(NamedTuple):
    """A row of the table `budget`."""

    archive: str
    kind: str
    egress: str
    period_began: float = 0.0
    used: int = 0
    total: int = 0
    paused_until: float = 0.0


def write(c: Connection, rows: Sequence[Saved]) -> None:
    """Keep a snapshot."""
    for row in rows:
        c.change(
            """INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (archive, kind, egress) DO UPDATE SET
               period_began = excluded.period_began, used = excluded.used, total = excluded.total,
               paused_until = excluded.paused_until""",
            *row,
        )


class Ended(Exception):
    """The desk ends while a request waits for its permit."""


class TakenAway(Exception):
    """The job of a request that waits for its permit is not its worker's any more."""


class Permits:
    """Waiting for permits on a running loop. `save` is awaited when a quota or a pause must be kept."""

    def __init__(
        self,
        budgets: ArchiveBudgets,
        clock: Callable[[], float],
        save: Callable[[], asyncio.Future[None]] | None = None,
    ) -> None:
        self.budgets = budgets
        self._clock = clock
        self._save = save
        self._saved: tuple[object, ...] = budgets.state()
        self._saving: asyncio.Future[None] | None = None
        self._timers: dict[int, asyncio.TimerHandle] = {}

    async def acquire(
        self,
        job: str,
        archive: str,
        kind: RequestKind,
        egress: str,
        patience: float = PATIENCE,
        permit: str = "",
    ) -> Refusal | None:
        """Return None when one request may be sent now, or until when there is no use in asking.

        A permit that was given before, and whose answer was lost on the way, is given again.
        """
        lane = self.budgets.lane(archive, kind, egress)
        if permit and self.budgets.has(job, archive, permit):
            return None
        refusal = self.budgets.refusal(lane, self._clock())
        if refusal is not None:
            return refusal
        loop = asyncio.get_running_loop()
        ticket: asyncio.Future[None] = loop.create_future()
        lane.ask(job, ticket, permit)
        self._serve(lane)
        try:
            async with asyncio.timeout(patience):
                await ticket
        except TakenAway:
            return Refusal(self._clock(), "the job was taken from its worker")
        except Ended:
            return Refusal(self._clock() + _ENDING, "the desk is ending")
        except TimeoutError:
            lane.forget(job, ticket)
            now = self._clock()
            return self.budgets.refusal(lane, now) or Refusal(now, "others are before you")
        except BaseException:
            lane.forget(job, ticket)
            raise
        await self._keep()
        return None

    async def _keep(self) -> None:
        """Save what must not be lost before a permit is used; whoever comes while it is saved waits, too."""
        if self._save is None:
            return
        if self.budgets.state() != self._saved:
            self._saved = self.budgets.state()
            self._saving = self._save()
        if self._saving is not None:
            try:
                await asyncio.shield(self._saving)
            except Exception:
                self._saved = ()  # it is saved with the next permit
                raise

    def finished(self, job: str, archive: str, count: int = 1, permits: Iterable[str] = ()) -> None:
        """Requests are over: the next ones may begin."""
        self.budgets.finished(job, archive, count, permits)
        self._serve_archive(archive)

    def ended(self, job: str) -> None:
        """A job runs no more."""
        self.budgets.ended(job)
        for lane in self.budgets.lanes:
            self._serve(lane)

    def taken_away(self, job: str, given_before: float) -> None:
        """A job was taken from its worker: what waits is let go, and what is under way ends soon."""
        self.budgets.taken_away(job, self._clock(), given_before)
        for lane in self.budgets.lanes:
            for ticket in lane.drop(job):
                assert isinstance(ticket, asyncio.Future)
                if not ticket.done():
                    ticket.set_exception(TakenAway())
            self._serve(lane)

    def stop(self) -> None:
        """Let all who wait go without a permit."""
        for lane in self.budgets.lanes:
            for line in lane.waiting.values():
                for ticket in line:
                    assert isinstance(ticket, asyncio.Future)
                    if not ticket.done():
                        ticket.set_exception(Ended())
            lane.waiting.clear()
            lane.turns.clear()

    def _serve_archive(self, archive: str) -> None:
        for lane in self.budgets.lanes:
            if lane.archive == archive:
                self._serve(lane)

    def _serve(self, lane: Lane) -> None:
        timer = self._timers.pop(id(lane), None)
        if timer is not None:
            timer.cancel()
        now = self._clock()
        while (ticket := lane.next(now)) is not None:
            assert isinstance(ticket, asyncio.Future)
            if not ticket.done():
                ticket.set_result(None)
        if lane.turns:
            wait = max(0.0, lane.due(now) - now)
            loop = asyncio.get_running_loop()
            self._timers[id(lane)] = loop.call_later(wait + 0.001, self._serve, lane)

    def pause(self, archive: str, kind: RequestKind, egress: str, seconds: float) -> None:
        self.budgets.pause(archive, kind, egress, self._clock() + seconds)
