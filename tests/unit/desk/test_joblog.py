"""The log of a job: whatever happens between a worker and the desk, no line is lost and none changes its place."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from recollect.desk.joblog import PIECE, JobLog

_STEPS = st.lists(st.sampled_from(["line", "long", "send", "answer", "fail", "cancel"]), max_size=60)


@given(_STEPS)
def test_no_line_is_lost_by_any_order_of_lines_reports_and_failures(steps: list[str]) -> None:
    received: list[str] = []
    written: list[str] = []

    async def run() -> None:
        log = JobLog()
        senders: list[asyncio.Task[None]] = []
        answers: list[asyncio.Future[bool]] = []

        async def send() -> None:
            async with log.sending() as text:
                answer = asyncio.get_running_loop().create_future()
                answers.append(answer)
                if not await answer:
                    raise ConnectionError
                assert len(text) <= PIECE
                received.append(text)

        for step in steps:
            if step in ("line", "long"):
                written.append(f"{len(written)} {'x' * (1900 if step == 'long' else 5)}\n")
                log.add(written[-1])
            elif step == "send":
                senders.append(asyncio.ensure_future(send()))
            elif step == "cancel" and senders:
                senders[-1].cancel()
            elif answers and step in ("answer", "fail") and not answers[-1].done():
                answers[-1].set_result(step == "answer")
            for _ in range(3):
                await asyncio.sleep(0)
        while any(not sender.done() for sender in senders):
            for answer in answers:
                if not answer.done():
                    answer.set_result(True)
            await asyncio.sleep(0)
        while log:
            sender = asyncio.ensure_future(send())
            await asyncio.sleep(0)
            answers[-1].set_result(True)
            await sender
        await asyncio.gather(*senders, return_exceptions=True)
        assert log.last_words == "".join(written[-20:]).strip()[-800:], "also of what was sent"

    asyncio.run(run())
    assert "".join(received) == "".join(written)


def test_a_line_of_any_length_is_one_line() -> None:
    async def run() -> list[str]:
        log = JobLog()
        for text in ("a" * 5000, "b\r\n", "", "c\nd"):
            log.add(text)
        async with log.sending() as sent:
            return sent.splitlines()

    lines = asyncio.run(run())
    assert [len(line) for line in lines[:3]] == [1999, 1, 0] and lines[3:] == ["c", "d"]
