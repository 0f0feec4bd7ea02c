"""Tasks on threads, and their results in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

R = TypeVar("R")


def in_order(tasks: Iterable[Callable[[], R]], threads: int, *, ahead: int, name: str) -> Iterator[R]:
    """Results of tasks in their order; at most `ahead` tasks are under way beside the one that is waited for."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads, f"recollect-{name}")
    waiting: deque[Future[R]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(task))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
