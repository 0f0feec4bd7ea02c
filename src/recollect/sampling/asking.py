"""Asking an archive a list of questions politely: a few at once, each answer into the journal, errors bounded.

Hides: concurrency and when to give up. Rates, pauses and Retry-After are those of the archive client. A run ends early
when the archive asks for a pause longer than a question may wait, or fails `MOST_ERRORS` times in a row: then nothing
is lost, and the same command goes on later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from recollect.errors import ArchiveError, ArchiveThrottled
from recollect.model import Progress, ProgressCallback

MOST_ERRORS = 20
AT_ONCE = 4

_Q = TypeVar("_Q")


@dataclass(slots=True)
class ProbeCounts:
    """What came of a run so far."""

    asked: int = 0
    errors: int = 0
    in_a_row: int = 0
    stopped: str = ""
    """Why the run ended early; empty if it did not."""


async def ask_all(
    questions: Iterable[_Q],
    ask: Callable[[_Q], Awaitable[None]],
    on_error: Callable[[_Q, ArchiveError], None],
    *,
    total: int,
    stage: str,
    at_once: int = AT_ONCE,
    progress: ProgressCallback | None = None,
) -> ProbeCounts:
    """Ask each question once; `ask` writes its answer down, `on_error` what failed."""
    waiting = iter(questions)
    tally = ProbeCounts()

    async def worker() -> None:
        for question in waiting:
            if tally.stopped:
                return
            try:
                await ask(question)
                tally.in_a_row = 0
            except ArchiveError as error:
                on_error(question, error)
                tally.errors += 1
                tally.in_a_row += 1
                if isinstance(error, ArchiveThrottled):
                    tally.stopped = str(error)
                elif tally.in_a_row >= MOST_ERRORS:
                    tally.stopped = f"{MOST_ERRORS} failures in a row, the last: {error}"
            tally.asked += 1
            if progress is not None:
                progress(Progress(stage, tally.asked, total, "questions"))

    await asyncio.gather(*(worker() for _ in range(max(1, at_once))))
    return tally
