"""How far a recovery is, as frozen values: for a terminal's line, a log, a program that reads lines of JSON.

Hides nothing. `to_json` gives one flat object per value; its `type` is `status`, `resource`, `survey` or `finished`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.datetimes import format_iso
from recollect.model import ProgressCallback
from recollect.recovery.verdicts import Reason, Stage, Stop, Verdict

if TYPE_CHECKING:
    from recollect.recovery.plan import RecoveryPolicy
    from recollect.recovery.survey import Survey


@dataclass(frozen=True, slots=True)
class Status:
    """How far a recovery is. Counts are by kind (`page`, `asset`), over all runs into the folder."""

    stage: Stage
    recovered: Mapping[str, int] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)  # by archive
    budgets: Mapping[str, int] = field(default_factory=dict)  # requests left, for archives with a quota
    paused: Mapping[str, float] = field(default_factory=dict)  # seconds archives asked us to wait
    seconds_left: float | None = None
    listed: int = 0

    @property
    def progress(self) -> float | None:
        """Processed URLs of all known so far (dissertation, equation 19); None before anything is known."""
        left = sum(self.queued.values())
        done = sum(self.recovered.values()) + sum(self.missing.values())
        return done / (done + left) if done + left else None

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "status",
            "stage": self.stage,
            "progress": self.progress,
            "recovered": dict(self.recovered),
            "queued": dict(self.queued),
            "missing": dict(self.missing),
            "requests": dict(self.requests),
            "budgets": dict(self.budgets),
            "paused": dict(self.paused),
            "seconds_left": self.seconds_left,
            "listed": self.listed,
        }


@dataclass(frozen=True, slots=True)
class Event:
    """One resource that is settled: recovered (from an archive, of a moment) or missing (why)."""

    uri: str
    state: str  # recovered or missing
    archive: str = ""
    captured_at: datetime | None = None
    detail: str = ""
    reason: Reason | None = None  # of a missing resource
    verdict: Verdict | None = None  # of a missing or a suspect resource

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "resource",
            "uri": self.uri,
            "state": self.state,
            "archive": self.archive,
            "captured_at": format_iso(self.captured_at) if self.captured_at else "",
            "detail": self.detail,
            "reason": self.reason,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended."""

    complete: bool  # nothing is left to fetch, and nothing failed or ran out of requests
    stopped: Stop | None = None  # why it stopped early
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {"type": "finished", "complete": self.complete, "stopped": self.stopped, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is called while a recovery runs, in the thread that called `recover`."""

    status: Callable[[Status], None] = lambda _status: None
    event: Callable[[Event], None] = lambda _event: None
    listed: Callable[[Survey], bool | RecoveryPolicy] = lambda _survey: True  # False: end; a policy: go on with it
    progress: ProgressCallback = lambda _progress: None
    problem: Callable[[str], None] = lambda _problem: None  # what does not stop a run: a damaged map
    stop: Callable[[], bool] = lambda: False
    reading: Callable[[str], None] = lambda _capture: None  # before the bytes of a capture are read, with its address
