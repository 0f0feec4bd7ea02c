"""Several at once, and texts and disks that a database does not like, over both databases."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from recollect.desk import people, queue
from recollect.desk.database import Database, DatabaseUnavailable, SqliteDatabase, open_database
from recollect.desk.jobs import parse_submission
from recollect.desk.queue import Lease, LeaseLost
from recollect.desk.settings import DeskSettings
from recollect.desk.states import BadTransition, State

SETTINGS = DeskSettings(per_site=10**6, per_address=10**6)


def asked(number: int = 0) -> Any:
    return parse_submission({"uri": "http://lost.example/", "email": f"p{number}@mail.example"}, [])


def at_once(count: int, work: Any) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_simultaneous_equal_submissions_are_one_job(run: Any) -> None:
    made = at_once(8, lambda number: run(people.submit, asked(number), 0.0, SETTINGS))
    assert len({one.job for one in made}) == 1 and len({one.recipient for one in made}) == 8


def test_one_idempotency_key_sent_many_times_at_once_is_one_submission(run: Any) -> None:
    made = at_once(8, lambda _: run(people.submit, asked(), 0.0, SETTINGS, key="abc"))
    assert len({one.job for one in made}) == 1
    assert len({one.token for one in made}) == 8, "each request gets a token of its own recipient only"
    assert len(run(lambda c: c.rows("SELECT number FROM outbox"))) == 1


def test_a_limit_holds_for_many_at_once(run: Any) -> None:
    assert sum(at_once(12, lambda _: run(people.allow, "bucket", 0.0, 5, 60.0))) == 5


def test_confirming_many_times_at_once_queues_once(run: Any) -> None:
    one = run(people.submit, asked(), 0.0, SETTINGS)
    states = at_once(8, lambda _: run(people.confirm, one.recipient, 1.0, SETTINGS).state)
    assert set(states) == {State.QUEUED}
    events = run(queue.history, one.job)
    assert [event["action"] for event in events] == ["submit", "confirm"]


def test_a_report_a_cancellation_and_a_claim_at_once_leave_one_history(database: Database, run: Any) -> None:
    for number in range(5):
        job = run(people.submit, asked(number), float(number), SETTINGS, confirmed_by="test").job
        claimed = database.transact(lambda c: queue.claim(c, "w", 10.0, SETTINGS, database.skip_locked))
        assert claimed is not None and claimed.id == job
        lease = Lease(job, claimed.fence, "w")

        def one_of(number: int, job: str = job, lease: Lease = lease) -> None:
            with suppress(LeaseLost, BadTransition):
                if number % 3 == 0:
                    run(queue.beat, lease, 11.0, SETTINGS, {}, 0.5)
                elif number % 3 == 1:
                    run(queue.cancel, job, 11.0, "person")
                else:
                    run(queue.deliver, lease, 11.0, SETTINGS, {"files": {}})

        at_once(6, one_of)
        found = run(queue.get, job)
        steps = run(queue.history, job)
        assert found.state == State.CANCELLED and steps[-1]["after"] == "cancelled"
        assert all(before["after"] == after["before"] for before, after in itertools.pairwise(steps))


def test_a_worker_can_only_report_for_itself(database: Database, run: Any) -> None:
    run(people.submit, asked(), 0.0, SETTINGS, confirmed_by="test")
    job = database.transact(lambda c: queue.claim(c, "mine", 0.0, SETTINGS, database.skip_locked))
    assert job is not None
    with pytest.raises(LeaseLost):
        run(queue.beat, Lease(job.id, job.fence, "other"), 1.0, SETTINGS)


def test_texts_that_no_database_holds_are_kept_without_what_it_cannot_hold(database: Database, run: Any) -> None:
    run(people.submit, asked(), 0.0, SETTINGS, confirmed_by="test")
    job = database.transact(lambda c: queue.claim(c, "w", 0.0, SETTINGS, database.skip_locked))
    assert job is not None
    run(queue.beat, Lease(job.id, job.fence, "w"), 1.0, SETTINGS, {"stage": "\0"}, None, "NUL \0 and half \ud800 pairs")
    assert run(queue.get, job.id).log == "NUL \ufffd and half ? pairs"
    with pytest.raises(queue.UnknownJob):
        run(queue.get, "\0\udfff")


def test_a_full_disk_fails_one_transaction_and_not_the_next(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "desk.sqlite")
    database.transact(lambda c: people.submit(c, asked(), 0.0, SETTINGS))
    pages = database.transact(lambda c: c.rows("PRAGMA page_count"))[0]["page_count"]
    database._db.execute(f"PRAGMA max_page_count = {pages}")

    def much(c: Any) -> None:
        for number in range(200):
            c.change("INSERT INTO attempt VALUES (?, ?)", f"{'x' * 500}{number}", 0.0)

    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            database.transact(much)
    assert database.transact(lambda c: c.rows("SELECT count(*) AS n FROM attempt WHERE at = 0"))[0]["n"] == 2
    database._db.execute("PRAGMA max_page_count = 1000000")
    database.transact(much)
    database.close()


def test_a_database_has_one_desk(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.desk.database._CLAIM_SECONDS", 0.0)
    first, second = open_database(postgres_url), open_database(postgres_url)
    assert first.claim_for_desk() and first.claim_for_desk() and not second.claim_for_desk()
    first.close()
    assert second.claim_for_desk()
    second.close()
