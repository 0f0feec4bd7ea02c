"""The clock of a desk: the time of day, without the jumps of the machine's clock.

Hides: how it follows. Leases, rates and quotas are moments of this clock; an operator who corrects the machine's clock
by an hour must not end all leases or stop all requests for an hour. It runs as time passes, and approaches the
machine's clock by at most one second in twenty.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_SLEW = 0.05


def _elapsed() -> float:
    """Seconds of a clock that cannot be set, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SteadyClock:
    """Call it for the seconds since 1970. It never goes backwards."""

    def __init__(self, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = _elapsed) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._now = wall()
        self._at = elapsed()

    def __call__(self) -> float:
        at = self._elapsed()
        passed, self._at = max(0.0, at - self._at), at
        wrong = self._wall() - (self._now + passed)
        self._now += passed + max(-_SLEW * passed, min(_SLEW * passed, wrong))
        return self._now
