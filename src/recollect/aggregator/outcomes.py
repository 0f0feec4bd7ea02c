"""The result of asking one archive: the value that gathering, caching, learning, metrics and explanations share.

Law 2: an outcome is `mementos`, `none` or `error`, and none of them is reported as another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from recollect.errors import ArchiveError
from recollect.formats.timemap import TimeMap

NO_TIMEMAP = TimeMap()


class OutcomeKind(StrEnum):
    MEMENTOS = "mementos"
    NONE = "none"
    ERROR = "error"


class Failure(StrEnum):
    """Why an outcome is an error. The first are the kinds of `ArchiveError`."""

    NOTHING = ""
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    THROTTLED = "throttled"
    TOO_BIG = "too big"
    BAD_ANSWER = "bad answer"
    REFUSED = "refused"
    OTHER = "error"
    STATUS = "status"
    """The archive answered with an unexpected status; `Outcome.status` has it."""
    REDIRECT = "redirect"
    """A TimeGate's redirects lead to no memento."""
    NOT_A_TIMEMAP = "not a TimeMap"
    PAGES = "pages failed"
    INTERNAL = "internal error"


# Failures that count against the archive. A refusal or a full queue is local, an HTML page is usual for some archives.
_HARMFUL = frozenset(
    {Failure.TIMEOUT, Failure.UNREACHABLE, Failure.BAD_ANSWER, Failure.TOO_BIG, Failure.PAGES},
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One archive's answer."""

    archive: str
    kind: OutcomeKind
    timemap: TimeMap = field(default=NO_TIMEMAP, repr=False)
    elapsed: float = 0.0
    requests: int = 1
    failure: Failure = Failure.NOTHING
    status: int = 0
    """The HTTP status of a failure of kind STATUS."""
    why: str = ""
    partial: str = ""
    """Why mementos may be missing although some came."""
    knows: frozenset[str] | None = None
    """For a TimeGate: which neighbours it named (`first`, `prev`, `next`, `last`); None: all mementos are known."""

    @property
    def count(self) -> int:
        return len(self.timemap.uris)

    @property
    def error(self) -> str:
        """The failure in a word or two: `timeout`, `status 503`; empty if there is none."""
        return f"status {self.status}" if self.failure is Failure.STATUS else self.failure.value

    @property
    def harm(self) -> bool:
        """Whether the failure speaks against the archive (timeout, broken answer, 5xx, 429)."""
        if self.failure is Failure.STATUS:
            return self.status >= 500 or self.status == 429
        return self.failure in _HARMFUL


def failed(archive: str, error: ArchiveError, elapsed: float, requests: int) -> Outcome:
    """The outcome of a request that brought no answer."""
    return Outcome(archive, OutcomeKind.ERROR, NO_TIMEMAP, elapsed, requests, Failure(error.kind), why=str(error))
