"""Permits: the rate in any window, turns between jobs, quotas and pauses that survive a restart."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.archives.registry import Archive, Rate
from recollect.desk.budget import ArchiveBudgets, Lane, Permits, Quota, Refusal, spacing
from recollect.desk.database import DatabaseUnavailable, SqliteDatabase


@given(
    st.floats(1, 500), st.sampled_from([1.0, 60.0, 3600.0]), st.lists(st.floats(0, 30), max_size=60),
    st.lists(st.floats(0, 0.35), min_size=60, max_size=60),
)  # fmt: skip
def test_no_window_holds_more_than_the_rate(
    count: float, seconds: float, waits: list[float], jitter: list[float]
) -> None:
    """Whatever the moments of asking and however the network delays: any window of `seconds` has at most `count`."""
    rate = Rate(float(int(count)), seconds)
    lane = Lane("ia", "index", "here", spacing(rate))
    now, sent = 0.0, []
    for number, wait in enumerate(waits):
        now += wait
        lane.ask(f"job{number % 3}", number)
        while (ticket := lane.next(max(now, lane.due(now)))) is not None:
            now = max(now, lane.free_at - lane.interval)
            # Requests may be late by up to 0.35 s.
            sent.append(now + jitter[number])
            assert ticket is not None
    sent.sort()
    most = int(rate.count)
    assert all(later - sooner >= seconds for sooner, later in zip(sent, sent[most:], strict=False))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=80))
def test_jobs_take_turns_and_nothing_is_lost(moves: list[tuple[str, bool]]) -> None:
    lane = Lane("ia", "index", "here", 0.0)
    asked: dict[str, list[int]] = {name: [] for name in "abc"}
    got: dict[str, list[int]] = {name: [] for name in "abc"}
    owner: dict[int, str] = {}
    since: dict[str, int] = {}
    for number, (job, ask) in enumerate(moves):
        if ask:
            lane.ask(job, number)
            asked[job].append(number)
            owner[number] = job
            since.setdefault(job, 0)
            continue
        ticket = lane.next(0.0)
        if ticket is None:
            assert all(len(asked[name]) == len(got[name]) for name in "abc")
            continue
        assert isinstance(ticket, int)
        served = owner[ticket]
        got[served].append(ticket)
        for name in since:
            since[name] += 1
        since.pop(served)
        if len(got[served]) < len(asked[served]):
            since[served] = 0
        assert all(turns <= 2 for turns in since.values()), "no job waits for more than one permit of each other job"
    assert all(got[name] == asked[name][: len(got[name])] for name in "abc"), "first come first served within a job"


def test_a_large_job_delays_a_small_one_by_one_permit() -> None:
    lane = Lane("ia", "index", "here", 1.0)
    for number in range(1000):
        lane.ask("large", ("large", number))
    assert lane.next(0.0) == ("large", 0)
    lane.ask("small", ("small", 0))
    assert [lane.next(t) for t in (1.0, 2.0)] == [("large", 1), ("small", 0)]


def test_a_forgotten_request_takes_no_permit() -> None:
    lane = Lane("ia", "index", "here", 1.0)
    for name in "ab":
        lane.ask(name, name)
    lane.forget("a", "a")
    lane.forget("a", "a")
    assert lane.next(0.0) == "b" and lane.next(9.0) is None


def test_a_quota_is_counted_ahead_and_begins_again() -> None:
    quota = Quota(3, 100.0)
    lane = Lane("ia", "index", "here", 0.0, quota)
    for number in range(5):
        lane.ask("a", number)
    assert [lane.next(10.0) for _ in range(4)] == [0, 1, 2, None]
    assert quota.reserved == 3
    assert lane.refusal(20.0) == Refusal(110.0, "the quota of requests is used up")
    assert lane.refusal(100.0) is None, "soon enough to wait for"
    assert lane.next(110.0) == 3 and quota.used == 1


def test_one_limit_for_both_kinds_is_one_lane_and_egress_addresses_have_their_own() -> None:
    one, two = Rate(10, 60), Rate(20, 60)
    budgets = ArchiveBudgets(
        [Archive("same", index_rate=one, replay_rate=one), Archive("two", index_rate=one, replay_rate=two)]
    )
    assert budgets.lane("same", "index", "here") is budgets.lane("same", "replay", "here")
    assert budgets.lane("two", "index", "here") is not budgets.lane("two", "replay", "here")
    assert budgets.lane("same", "index", "here") is not budgets.lane("same", "index", "there")


def test_quotas_pauses_and_rests_survive_a_restart_and_never_exceed(tmp_path: Path) -> None:
    archive = Archive("ia", quota=Rate(1000, 86400))
    database = SqliteDatabase(tmp_path / "desk.sqlite")
    before = ArchiveBudgets([archive])
    lane = before.lane("ia", "index", "here")
    for number in range(25):
        lane.ask("job", number)
        lane.next(100.0)
    before.pause("ia", "replay", "here", 5000.0)
    database.transact(before.save)
    database.transact(lambda c: c.change("INSERT INTO rest VALUES ('other', 0, 'x')"))
    after = ArchiveBudgets([archive])
    database.transact(lambda c: after.load(c, 200.0))
    quota = after.lane("ia", "index", "here").quota
    assert quota is not None and 25 <= quota.used <= 35, "a block may be wasted, none is used twice"
    assert after.lane("ia", "replay", "here").refusal(300.0) == Refusal(5000.0, "the archive asked us to wait")
    assert after.resting == {"other": "x"}
    database.close()


def test_waiting_on_a_loop_gives_permits_at_the_rate_and_in_turns() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        saves = 0

        def save() -> asyncio.Future[None]:
            nonlocal saves
            saves += 1
            done: asyncio.Future[None] = loop.create_future()
            done.set_result(None)
            return done

        archive = Archive("ia", index_rate=Rate(50, 1), replay_rate=Rate(50, 1), quota=Rate(12, 3600))
        permits = Permits(ArchiveBudgets([archive]), loop.time, save)
        order: list[str] = []

        async def ask(job: str) -> None:
            assert await permits.acquire(job, "ia", "index", "here") is None
            order.append(job)

        began = loop.time()
        await asyncio.gather(*(ask("large") for _ in range(9)), *(ask("small") for _ in range(3)))
        assert loop.time() - began >= 11 * 0.02
        assert "small" in order[:3] and order.count("small") == 3 and order.index("small") < 3
        assert saves >= 1, "the quota is kept before it is used"
        refusal = await permits.acquire("large", "ia", "replay", "here")
        assert refusal is not None and "quota" in refusal.reason
        task = asyncio.create_task(permits.acquire("x", "ia", "index", "elsewhere"))
        assert await task is None, "another egress address has its own"

    asyncio.run(main())


def test_an_archive_that_rests_is_not_asked() -> None:
    async def main() -> None:
        budgets = ArchiveBudgets([Archive("ia")])
        budgets.resting["ia"] = "maintenance"
        refusal = await Permits(budgets, lambda: 10.0).acquire("job", "ia", "index", "here")
        assert refusal is not None and "maintenance" in refusal.reason and refusal.until > 10.0

    asyncio.run(main())


@given(
    limit=st.integers(1, 4),
    moves=st.lists(st.tuples(st.sampled_from(["ask", "finish", "end", "later"]), st.integers(0, 3)), max_size=60),
)
def test_no_more_requests_are_under_way_than_the_archive_takes(limit: int, moves: list[tuple[str, int]]) -> None:
    """Against a model that counts what is open, over four jobs and two egress addresses."""
    budgets = ArchiveBudgets([Archive("ia", concurrency=limit)])
    open_now = {f"job{number}": 0 for number in range(4)}
    now = 0.0
    for move, number in moves:
        job = f"job{number}"
        lane = budgets.lane("ia", "replay", f"egress{number % 2}")
        if move == "ask":
            lane.ask(job, job)
        elif move == "finish" and open_now[job]:
            budgets.finished(job, "ia", 1)
            open_now[job] -= 1
        elif move == "end":
            budgets.ended(job)
            open_now[job] = 0
        else:
            now += 1.0
        for each in budgets.lanes:
            while (ticket := each.next(now)) is not None:
                open_now[str(ticket)] += 1
        assert sum(open_now.values()) == budgets.in_use("ia") <= limit
        waiting = sum(len(line) for each in budgets.lanes for line in each.waiting.values())
        assert not waiting or budgets.in_use("ia") == limit, "no job waits while a permit is free"


def test_a_request_whose_end_is_never_reported_counts_for_five_minutes() -> None:
    budgets = ArchiveBudgets([Archive("ia", concurrency=1)])
    lane = budgets.lane("ia", "index", "here")
    lane.ask("a", 1)
    assert lane.next(0.0) == 1
    lane.ask("b", 2)
    assert lane.next(299.0) is None and lane.due(299.0) == 300.0
    assert lane.next(300.0) == 2


def test_a_place_goes_to_the_next_as_soon_as_it_is_free() -> None:
    async def main() -> list[str]:
        permits = Permits(ArchiveBudgets([Archive("ia", concurrency=1)]), time.monotonic)
        got: list[str] = []

        async def one(job: str) -> None:
            assert await permits.acquire(job, "ia", "index", "here") is None
            got.append(job)

        tasks = [asyncio.create_task(one(job)) for job in ("a", "b", "c")]
        await asyncio.sleep(0.02)
        assert got == ["a"]
        permits.finished("a", "ia")
        await asyncio.sleep(0.02)
        assert got == ["a", "b"]
        permits.ended("b")
        await asyncio.gather(*tasks)
        return got

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_whoever_waits_is_let_go_when_the_desk_ends() -> None:
    async def main() -> Refusal | None:
        permits = Permits(ArchiveBudgets([Archive("ia", concurrency=1)]), time.monotonic)
        assert await permits.acquire("a", "ia", "index", "here") is None
        waiting = asyncio.create_task(permits.acquire("b", "ia", "index", "here"))
        await asyncio.sleep(0.01)
        permits.stop()
        return await waiting

    refusal = asyncio.run(main())
    assert refusal is not None and "ending" in refusal.reason


def test_no_permit_is_used_before_its_block_of_the_quota_is_saved() -> None:
    async def main() -> None:
        saved = asyncio.Event()

        async def save() -> None:
            await saved.wait()

        budgets = ArchiveBudgets([Archive("ia", quota=Rate(1000, 86400))])
        permits = Permits(budgets, time.monotonic, lambda: asyncio.ensure_future(save()))
        tasks = [asyncio.create_task(permits.acquire("a", "ia", "index", "here")) for _ in range(3)]
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in tasks)
        saved.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_permit_waits_for_a_database_that_comes_back() -> None:
    async def main() -> None:
        broken = [True]

        async def save() -> None:
            if broken:
                raise DatabaseUnavailable("the database does not answer")

        budgets = ArchiveBudgets([Archive("ia", quota=Rate(1000, 86400))])
        permits = Permits(budgets, time.monotonic, lambda: asyncio.ensure_future(save()))
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await permits.acquire("a", "ia", "index", "here")
        broken.clear()
        assert await permits.acquire("a", "ia", "index", "here") is None

    asyncio.run(main())
