"""A circuit breaker per archive: an archive that keeps failing is left alone, tried now and then, and taken back.

Hides: when enough failures are enough. Pure: the clock is an argument (monotonic seconds).

Closed, it lets everything through and opens after `CONSECUTIVE` failures in a row and no good answer for a second (in
hundreds of answers a second, a few in a row fail by chance), or when at least half of the last `WINDOW` answers failed.
Open, it lets nothing through for a while (15 s, doubled at each relapse, at most 15 minutes).
Then it is half open: one probe at a time, and only `PROBES` good ones in a row close it. Timeouts, broken connections,
5xx and 429 are failures; a 404 is a good answer, as is any other 4xx (the archive works, it just refuses).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf

CONSECUTIVE = 5
SILENCE = 1.0
WINDOW = 50
PROBES = 2
FIRST_REST = 15.0
LONGEST_REST = 900.0


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What an operator sees of a breaker."""

    name: str
    failures: int
    """Failures since the last good answer."""
    rest_left: float
    """Seconds until the next probe, 0 when not open."""
    last_failure: str


class Breaker:
    """Decides whether one archive may be asked; told how each request went."""

    __slots__ = (
        "_failures",
        "_good_at",
        "_good_probes",
        "_last",
        "_open_until",
        "_probing",
        "_recent",
        "_rest",
        "_state",
    )

    def __init__(self) -> None:
        self._state = "closed"
        self._failures = 0
        self._recent: deque[bool] = deque(maxlen=WINDOW)
        self._rest = FIRST_REST
        self._open_until = 0.0
        self._probing = False
        self._good_at = -inf
        self._good_probes = 0
        self._last = ""

    @property
    def closed(self) -> bool:
        return self._state == "closed"

    def would_allow(self, now: float) -> bool:
        """What `allows` would answer, without taking the probe."""
        return self._state == "closed" or (
            not self._probing and (self._state == "half open" or now >= self._open_until)
        )

    def allows(self, now: float) -> bool:
        """Whether to ask now. When it answers yes while half open, the caller holds the probe until it tells."""
        if self._state == "closed":
            return True
        if self._state == "open":
            if now < self._open_until:
                return False
            self._state = "half open"
            self._good_probes = 0
        if self._probing:
            return False
        self._probing = True
        return True

    def success(self, now: float) -> None:
        self._probing = False
        self._good_at = now
        self._failures = 0
        if self._state == "closed":
            self._recent.append(True)
            return
        self._good_probes += 1
        if self._good_probes >= PROBES:
            self._state = "closed"
            self._recent.clear()
            self._rest = FIRST_REST

    def failure(self, now: float, why: str) -> None:
        self._last = why
        self._failures += 1
        if self._state == "closed":
            self._recent.append(False)
            half = len(self._recent) == WINDOW and self._recent.count(False) * 2 >= WINDOW
            row = self._failures >= CONSECUTIVE and now - self._good_at >= SILENCE
            if not row and not half:
                return
        elif self._probing:
            self._rest = min(self._rest * 2, LONGEST_REST)
        self._probing = False
        self._state = "open"
        self._open_until = now + self._rest

    def abandoned(self) -> None:
        """A request ended without telling anything about the archive (the client left): a probe becomes free."""
        self._probing = False

    def state(self, now: float) -> BreakerState:
        left = max(0.0, self._open_until - now) if self._state == "open" else 0.0
        return BreakerState(self._state, self._failures, left, self._last)
