"""A circuit breaker per archive: an archive that keeps failing gets no requests, then single probes, then all again.

Hides: when there are enough failures. Pure: the clock is an argument (monotonic seconds).

Failures alone never open it: what some URIs make an archive answer says little about the archive, and one client could
switch it off for all others. So URIs are counted, each once, not requests, and those that failed must be of at least
`HOSTS` hosts; only if the archive cannot be reached every request counts, as that does not depend on the URI.
Closed, the breaker is suspicious after `CONSECUTIVE` failures in a row and no good answer for a second (in hundreds of
answers a second, a few in a row fail by chance), or when at least half of the last `WINDOW` URIs failed. Then `failure`
returns True, and the caller asks the archive for something that is known to be good. Only if that fails too
(`proved(good=False)`), it opens.

Open, it lets nothing through for a while (15 s, doubled at each relapse, at most 15 minutes). Then it is half open: one
probe at a time, and only `PROBES` good ones in a row close it; a failed probe is proved in the same way. Timeouts,
broken connections, 5xx and 429 are failures; a 404 is a good answer, as is any other 4xx (the archive works, it just
refuses), and as is an archived error of whatever status.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from urllib.parse import urlsplit

CONSECUTIVE = 5
HOSTS = 3
SILENCE = 1.0
WINDOW = 50
PROBES = 2
FIRST_REST = 15.0
LONGEST_REST = 900.0


class State(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half open"


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What an operator sees of a breaker."""

    name: State
    failures: int
    """Failed requests since the last good answer."""
    rest_left: float
    """Seconds until the next probe, 0 when not open."""
    last_failure: str


class Breaker:
    """Decides whether one archive may be asked; is informed of how each request went."""

    __slots__ = (
        "_failures",
        "_good_at",
        "_good_probes",
        "_last",
        "_open_until",
        "_probing",
        "_proving",
        "_recent",
        "_rest",
        "_row",
        "_state",
        "_unreachable",
    )

    def __init__(self) -> None:
        self._state = State.CLOSED
        self._failures = 0
        self._recent: OrderedDict[str, bool] = OrderedDict()  # the last WINDOW URIs, and whether they were good
        self._row: set[str] = set()  # URIs that failed since the last good answer, as many as matter
        self._unreachable = 0
        self._rest = FIRST_REST
        self._open_until = 0.0
        self._probing = False
        self._proving = False
        self._good_at = -inf
        self._good_probes = 0
        self._last = ""

    @property
    def closed(self) -> bool:
        return self._state is State.CLOSED

    def would_allow(self, now: float) -> bool:
        """What `allows` would answer, without taking the probe."""
        return self._state is State.CLOSED or (
            not self._probing and (self._state is State.HALF_OPEN or now >= self._open_until)
        )

    def allows(self, now: float) -> bool:
        """Whether to ask now. When it answers yes while half open, the caller holds the probe until it reports."""
        if self._state is State.CLOSED:
            return True
        if self._state is State.OPEN:
            if now < self._open_until:
                return False
            self._state = State.HALF_OPEN
            self._good_probes = 0
        if self._probing:
            return False
        self._probing = True
        return True

    def success(self, now: float, uri: str = "") -> None:
        self._probing = False
        self._good_at = now
        self._failures = self._unreachable = 0
        self._row.clear()
        if self._state is State.CLOSED:
            self._note(uri, good=True)
            return
        self._good_probes += 1
        if self._good_probes >= PROBES:
            self._state = State.CLOSED
            self._recent.clear()
            self._rest = FIRST_REST

    def failure(self, now: float, why: str, uri: str, *, unreachable: bool = False) -> bool:
        """Report a failure, `unreachable` if there was no connection at all; True: ask for something known to be good
        now, and report with `proved`."""
        self._last = why
        self._failures += 1
        self._unreachable = self._unreachable + 1 if unreachable else 0
        if self._state is State.CLOSED:
            self._note(uri, good=False)
            if len(self._row) < WINDOW:
                self._row.add(uri)
            bad = [one for one, good in self._recent.items() if not good]
            half = len(self._recent) == WINDOW and len(bad) * 2 >= WINDOW and _hosts(bad) >= HOSTS
            many = len(self._row) >= CONSECUTIVE and _hosts(self._row) >= HOSTS
            row = (many or self._unreachable >= CONSECUTIVE) and now - self._good_at >= SILENCE
            if not half and not row:
                return False
        elif not self._probing:
            return False
        if self._proving:
            return False
        self._proving = True
        return True

    def proved(self, now: float, *, good: bool) -> None:
        """What asking for something known to be good came to."""
        self._proving = False
        if good:
            self._recent.clear()
            self.success(now)
            return
        if self._state is not State.CLOSED:
            self._rest = min(self._rest * 2, LONGEST_REST)
        self._probing = False
        self._state = State.OPEN
        self._open_until = now + self._rest

    def abandoned(self) -> None:
        """A request ended without saying anything about the archive (the client left): a probe becomes free."""
        if not self._proving:
            self._probing = False

    def state(self, now: float) -> BreakerState:
        left = max(0.0, self._open_until - now) if self._state is State.OPEN else 0.0
        return BreakerState(self._state, self._failures, left, self._last)

    def _note(self, uri: str, *, good: bool) -> None:
        self._recent[uri] = good
        self._recent.move_to_end(uri)
        if len(self._recent) > WINDOW:
            self._recent.popitem(last=False)


def _hosts(uris: Iterable[str]) -> int:
    return len({urlsplit(uri).netloc.lower() for uri in uris})
