"""The log of a job on its way from a worker to the desk.

Hides: what was sent already. Invariants: lines arrive in their order; a line that comes while others are being sent is
sent next; a line counts as sent when the desk has it. The last lines stay known: they are the reason when a recovery
ends without a result.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

PIECE = 16_000
"""Characters that are sent at a time; the desk takes no more."""
_MAX_LINE = 2000
_MAX_UNSENT = 4000  # lines; the desk keeps the last 64 kB of a log
_LAST = 20


class JobLog:
    """Lines of one job that the desk has not got yet."""

    def __init__(self) -> None:
        self._unsent: deque[str] = deque(maxlen=_MAX_UNSENT)
        self._last: deque[str] = deque(maxlen=_LAST)
        self._sending = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._unsent)

    def add(self, line: str) -> None:
        line = line.rstrip("\r\n")[: _MAX_LINE - 1] + "\n"
        self._unsent.append(line)
        self._last.append(line)

    @contextlib.asynccontextmanager
    async def sending(self) -> AsyncIterator[str]:
        """The next lines, at most `PIECE` characters of them; sent when the block ends without an error. One block at
        a time."""
        async with self._sending:
            lines: list[str] = []
            size = 0
            while self._unsent and size + len(self._unsent[0]) <= PIECE:
                lines.append(self._unsent.popleft())
                size += len(lines[-1])
            try:
                yield "".join(lines)
            except BaseException:
                self._unsent.extendleft(reversed(lines))
                raise

    @property
    def last_words(self) -> str:
        """The last lines, whether or not they are sent."""
        return "".join(self._last).strip()[-800:]
