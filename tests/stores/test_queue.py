"""The queue over both databases: each job once, leases and fences, places, the history."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recollect.desk import people, queue
from recollect.desk.database import Database, migrate, open_database
from recollect.desk.jobs import Job, parse_submission
from recollect.desk.queue import Lease, LeaseLost
from recollect.desk.settings import DeskSettings
from recollect.desk.states import BadTransition, State

SETTINGS = DeskSettings(lease=60, max_crashes=3, per_site=10**6, per_address=10**6)


def queued(run: Any, number: int, now: float = 0.0) -> str:
    asked = parse_submission({"uri": f"http://lost{number}.example/", "email": f"p{number}@mail.example"}, [])
    job: str = run(people.submit, asked, now, SETTINGS, confirmed_by="test").job
    return job


def claim(database: Database, worker: str = "w", now: float = 0.0) -> Job | None:
    return database.transact(lambda c: queue.claim(c, worker, now, SETTINGS, database.skip_locked))


def lease_of(job: Job | None, worker: str = "w") -> Lease:
    assert job is not None
    return Lease(job.id, job.fence, worker)


def test_first_confirmed_first_claimed_and_never_twice(database: Database, run: Any) -> None:
    jobs = [queued(run, n, float(n)) for n in range(3)]
    assert [claim(database).id for _ in jobs] == jobs  # type: ignore[union-attr]
    assert claim(database) is None


def test_many_claimers_take_each_job_once(database: Database, run: Any) -> None:
    jobs = {queued(run, n, float(n)) for n in range(60)}
    taken: list[str] = []
    lock = threading.Lock()

    def work(name: int) -> None:
        while True:
            job = claim(database, f"w{name}")
            if job is None:
                return
            with lock:
                taken.append(job.id)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sorted(taken) == sorted(jobs)


def test_a_silent_worker_loses_its_job_which_keeps_its_place(database: Database, run: Any) -> None:
    first, second = queued(run, 1, 1.0), queued(run, 2, 2.0)
    old = lease_of(claim(database, now=10))
    assert old.job == first
    run(queue.beat, old, 60.0, SETTINGS, {"stage": "recovering"}, 0.5)
    assert run(queue.reap, 119.0, SETTINGS) == []
    [job] = run(queue.reap, 121.0, SETTINGS)
    assert (job.id, job.state, job.crashes) == (first, State.QUEUED, 1)
    again = claim(database, "other", now=122)
    assert again is not None and again.id == first and again.fence == old.fence + 1 and again.progress == 0.5
    for refused in (queue.beat, queue.pack):
        with pytest.raises(LeaseLost):
            run(refused, old, 123.0, SETTINGS)
    with pytest.raises(LeaseLost):
        run(queue.deliver, old, 123.0, SETTINGS, {})
    run(queue.beat, lease_of(again, "other"), 123.0, SETTINGS)
    assert claim(database, now=124).id == second  # type: ignore[union-attr]


def test_a_worker_that_wakes_after_its_lease_is_refused_even_before_anyone_noticed(
    database: Database, run: Any
) -> None:
    queued(run, 1)
    lease = lease_of(claim(database, now=0))
    with pytest.raises(LeaseLost, match="ran out"):
        run(queue.beat, lease, 60.1, SETTINGS)


def test_the_third_crash_fails_the_job(database: Database, run: Any) -> None:
    job = queued(run, 1)
    for round_ in range(3):
        claim(database, now=round_ * 100.0)
        [back] = run(queue.reap, round_ * 100.0 + 61, SETTINGS)
    assert back.state == State.FAILED and back.crashes == 3
    run(people.announce, back, 300.0, DeskSettings(operator_address="op@desk.example"))
    run(people.announce, back, 301.0, DeskSettings(operator_address="op@desk.example"))
    kinds = [row["kind"] for row in run(lambda c: c.rows("SELECT kind FROM outbox ORDER BY kind"))]
    assert kinds == ["failed", "operator-failed"]
    run(queue.retry, job, 400.0, "admin")
    assert run(queue.get, job).state == State.QUEUED


def test_waiting_frees_the_worker_and_ends_by_itself(database: Database, run: Any) -> None:
    job = queued(run, 1)
    run(queue.defer, lease_of(claim(database, now=0)), 1.0, 500.0, "quota of ia")
    found = run(queue.get, job)
    assert (found.state, found.resume_at, found.worker, found.lease_until) == (State.WAITING, 500.0, None, None)
    assert claim(database, now=2) is None
    assert run(queue.resume_due, 499.0) == []
    assert run(queue.resume_due, 500.0) == [job]
    assert claim(database, now=501).id == job  # type: ignore[union-attr]


def test_the_operator_pauses_resumes_cancels_and_deletes(database: Database, run: Any) -> None:
    job = queued(run, 1)
    run(queue.pause, job, 1.0, "admin")
    assert run(queue.resume_due, 10.0**9) == [], "held until the operator says so"
    run(queue.resume, job, 2.0, "admin")
    lease = lease_of(claim(database, now=3))
    with pytest.raises(BadTransition):
        run(queue.delete, job, 4.0, "admin")
    run(queue.cancel, job, 4.0, "admin")
    with pytest.raises(LeaseLost):
        run(queue.beat, lease, 5.0, SETTINGS)
    run(queue.delete, job, 6.0, "admin")
    with pytest.raises(queue.UnknownJob):
        run(queue.get, job)
    assert [row["action"] for row in run(queue.history, job)][-2:] == ["cancel", "delete"]


def test_moving_gives_the_rank_asked_for_however_often(database: Database, run: Any) -> None:
    order = [queued(run, n, float(n)) for n in range(5)]
    for step in range(150):
        job = order[-1]
        run(queue.move, job, 2, 10.0, "admin")
        order = [order[0], job, *order[1:-1]]
        if step % 30 == 0:
            assert [run(queue.rank_of, run(queue.get, one)) for one in order] == [1, 2, 3, 4, 5]
    assert [one.id for one in run(queue.jobs, state="queued")] == order
    run(queue.move, order[4], 1, 10.0, "admin")
    run(queue.move, order[0], 99, 10.0, "admin")
    assert [one.id for one in run(queue.jobs, state="queued")] == [order[4], *order[1:4], order[0]]


def test_a_job_pinned_to_a_machine_starts_there_only(database: Database, run: Any) -> None:
    _, second = queued(run, 1, 1.0), queued(run, 2, 2.0)
    run(queue.pin, second, "strong", 3.0, "admin")
    assert claim(database, "weak").id != second  # type: ignore[union-attr]
    assert claim(database, "weak") is None
    assert claim(database, "strong").id == second  # type: ignore[union-attr]


def test_progress_never_goes_backwards(database: Database, run: Any) -> None:
    job = queued(run, 1)
    lease = lease_of(claim(database))
    for share in (0.2, 0.6, 0.3, None):
        run(queue.beat, lease, 1.0, SETTINGS, {}, share)
    assert run(queue.get, job).progress == 0.6


def test_the_history_has_every_step_and_cannot_be_changed(database: Database, run: Any) -> None:
    job = queued(run, 1)
    lease = lease_of(claim(database))
    run(queue.pack, lease, 1.0, SETTINGS)
    run(queue.deliver, lease, 2.0, SETTINGS, {"files": {}})
    events = run(queue.history, job)
    assert [(row["action"], row["after"]) for row in events] == [
        ("submit", "pending"), ("confirm", "queued"), ("claim", "running"), ("pack", "packing"), ("deliver", "ready"),
    ]  # fmt: skip
    for sql in ("UPDATE event SET actor = 'me'", "DELETE FROM event"):
        with pytest.raises(Exception, match="append-only"):
            run(lambda c, sql=sql: c.change(sql))
    assert run(queue.history, job) == events


def test_estimates_count_those_ahead_and_those_who_work(database: Database, run: Any) -> None:
    jobs = [queued(run, n, float(n)) for n in range(3)]
    run(lambda c: c.change("UPDATE job SET estimate = 100"))
    assert run(lambda c: queue.estimate_of(c, queue.get(c, jobs[2]), 10.0)) == {"waiting": 200.0, "working": 100.0}
    run(
        lambda c: c.change("INSERT INTO worker VALUES ('a', 'h', 'e', 'active', 0, 9), ('b', 'h', 'e', 'active', 0, 9)")
    )
    assert run(lambda c: queue.estimate_of(c, queue.get(c, jobs[2]), 10.0))["waiting"] == 100.0


def test_a_failed_transaction_leaves_nothing(database: Database, run: Any) -> None:
    def work(c: Any) -> None:
        c.change("INSERT INTO rest VALUES ('ia', 0, 'x')")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        run(work)
    assert run(lambda c: c.rows("SELECT * FROM rest")) == []


def test_migrations_run_once_and_a_newer_database_is_refused(database: Database, where: str, run: Any) -> None:
    queued(run, 1)
    dialect: Any = "sqlite" if not where.startswith("postgresql") else "postgresql"
    assert migrate(database, dialect, "x") >= 1
    again = open_database(where)
    assert again.transact(queue.counts)["queued"] == 1
    again.close()
    run(lambda c: c.change("INSERT INTO migration VALUES (999)"))
    with pytest.raises(Exception, match="newer version"):
        open_database(where)
