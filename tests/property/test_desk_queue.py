"""The queue against a model of a few lines: any sequence of what people, workers, operators and time can do."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.desk import people, queue
from recollect.desk.database import SqliteDatabase
from recollect.desk.jobs import parse_submission
from recollect.desk.queue import Lease, LeaseLost
from recollect.desk.settings import DeskSettings
from recollect.desk.states import BadTransition

SETTINGS = DeskSettings(lease=10, max_crashes=3, per_site=10**6, per_address=10**6)
STEPS = ("submit", "confirm", "claim", "beat", "pack", "deliver", "defer", "fail", "release", "cancel", "retry",
         "pause", "resume", "move", "wait", "sleep")  # fmt: skip


@dataclass
class Model:
    state: dict[int, str] = field(default_factory=dict)
    fence: dict[int, int] = field(default_factory=dict)
    until: dict[int, float] = field(default_factory=dict)
    crashes: dict[int, int] = field(default_factory=dict)
    wakes: dict[int, float | None] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # of all that were ever confirmed
    leases: list[tuple[int, int]] = field(default_factory=list)

    def queue(self) -> list[int]:
        return [job for job in self.order if self.state[job] == "queued"]

    def holds(self, job: int, fence: int, now: float) -> bool:
        return self.state[job] in ("running", "packing") and self.fence[job] == fence and self.until[job] >= now

    def crash(self, job: int) -> None:
        self.crashes[job] += 1
        self.state[job] = "failed" if self.crashes[job] >= 3 else "queued"


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=40))
def test_whatever_happens_the_queue_is_as_the_model_says(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _follow(SqliteDatabase(Path(folder, "desk.sqlite")), steps)


def _follow(database: SqliteDatabase, steps: list[tuple[str, int]]) -> None:
    """Take each step in the desk's database and in the model, and compare them."""
    model, ids, persons, now = Model(), [], [], 0.0

    def run(work: Any, *given: Any, **named: Any) -> Any:
        return database.transact(lambda c: work(c, *given, **named))

    for step, pick in steps:
        now += 1.0
        if step == "submit":
            asked = parse_submission({"uri": f"http://s{len(ids)}.example/", "email": "a@mail.example"}, [])
            made = run(people.submit, asked, now, SETTINGS)
            job = len(ids)
            ids.append(made.job)
            persons.append(made.recipient)
            model.state[job], model.fence[job], model.crashes[job] = "pending", 0, 0
        elif step in ("wait", "sleep"):
            now += 5.0 if step == "wait" else 20.0
            run(queue.reap, now, SETTINGS)
            for job in model.state:
                if model.state[job] in ("running", "packing") and model.until[job] < now:
                    model.crash(job)
            run(queue.resume_due, now)
            for job in model.state:
                wakes = model.wakes.get(job)
                if model.state[job] == "waiting" and wakes is not None and wakes <= now:
                    model.state[job] = "queued"
        elif step == "claim":
            claimed = run(queue.claim, "w", now, SETTINGS)
            expected = model.queue()[:1]
            assert [ids.index(claimed.id)] == expected if claimed else not expected
            for job in expected:
                model.state[job], model.until[job] = "running", now + 10
                model.fence[job] += 1
                model.leases.append((job, model.fence[job]))
                assert claimed.fence == model.fence[job]
        elif step in ("beat", "pack", "deliver", "defer", "fail", "release"):
            if model.leases:
                _worker(step, *model.leases[pick % len(model.leases)], model, ids, now, run)
        elif ids:
            _person(step, pick % len(ids), pick, model, ids, persons, now, run)
        shown = {ids.index(job.id): job.state.value for job in run(queue.jobs)}
        assert shown == model.state
        assert [ids.index(job.id) for job in run(queue.jobs, state="queued")] == model.queue()
    history = run(queue.history)
    for number, name in enumerate(ids):
        last = [event for event in history if event["job"] == name][-1]
        assert last["after"] == model.state[number], "the history says the same"
    database.close()


def _worker(step: str, job: int, fence: int, model: Model, ids: list[str], now: float, run: Any) -> None:
    lease = Lease(ids[job], fence, "w")
    work = {
        "beat": lambda: run(queue.beat, lease, now, SETTINGS),
        "pack": lambda: run(queue.pack, lease, now, SETTINGS),
        "deliver": lambda: run(queue.deliver, lease, now, SETTINGS, {}),
        "defer": lambda: run(queue.defer, lease, now, now + 8, "quota"),
        "fail": lambda: run(queue.fail, lease, now, SETTINGS, "error"),
        "release": lambda: run(queue.release, lease, now),
    }[step]
    try:
        work()
    except LeaseLost:
        assert not model.holds(job, fence, now)
        return
    except BadTransition:
        assert model.holds(job, fence, now)
        assert (step, model.state[job]) in (("pack", "packing"), ("deliver", "running"))
        return
    assert model.holds(job, fence, now), "only who holds the lease changes a job"
    if step in ("beat", "pack"):
        model.until[job] = now + 10
    if step == "fail":
        model.crash(job)
    else:
        after = {"pack": "packing", "deliver": "ready", "defer": "waiting", "release": "queued"}
        model.state[job] = after.get(step, model.state[job])
        model.wakes[job] = now + 8 if step == "defer" else None


def _person(
    step: str, job: int, pick: int, model: Model, ids: list[str], persons: list[str], now: float, run: Any
) -> None:
    state = model.state[job]
    try:
        if step == "confirm":
            run(people.confirm, persons[job], now, SETTINGS)
            if state == "pending":
                model.state[job] = "queued"
                model.order.append(job)
            return
        if step == "move":
            if any(model.state[one] in ("running", "packing", "waiting") for one in model.order):
                return  # those come back to a place that the model does not know
            run(queue.move, ids[job], pick + 1, now, "op")
        else:
            run(getattr(queue, step), ids[job], now, "op")
    except BadTransition:
        allowed = {
            "cancel": {"pending", "queued", "running", "waiting", "packing"},
            "retry": {"expired", "failed", "cancelled", "nothing-found"},
            "pause": {"queued", "running", "waiting"},
            "resume": {"waiting"},
            "move": {"queued"},
        }
        assert state not in allowed[step]
        return
    if step == "move":
        others = [one for one in model.queue() if one != job]
        others.insert(min(pick, len(others)), job)
        model.order = [*others, *(one for one in model.order if one not in others)]
        return
    if step == "retry":
        model.crashes[job] = 0
        if job in model.order:
            model.order.remove(job)
        model.order.append(job)
    model.state[job] = {"cancel": "cancelled", "retry": "queued", "pause": "waiting", "resume": "queued"}[step]
    model.wakes[job] = None
