"""What to do next for one resource: a pure decision, so that a recovery can be tested without sockets and replayed from
its journal.

Warrick's algorithm (McCown 2007, figure 26) over today's archives. Given what the listings say, what was tried and
the state of each archive, `decide` returns one of:

- `Fetch(candidate)`: the best capture not yet tried;
- `Ask(archive)`: this archive's listing does not cover the resource (there is none, or it was cut off), so it has to be
  asked what it holds of it: last, when what is listed elsewhere does not do, or first, when nothing was listed at all;
- `GiveUp(reason, detail)`: nothing is left to try.

Invariants: the same arguments give the same decision; a capture is tried once; captures with bytes that were already
rejected are not fetched again; an archive whose listing is complete is never asked for what it does not list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from recollect.recovery.choose import Candidate, DatePreference, in_order, is_content
from recollect.recovery.verdicts import Reason, Verdict

RecoveryPolicy = Literal["naive", "knowledgeable", "exhaustive"]
POLICIES: tuple[RecoveryPolicy, ...] = ("naive", "knowledgeable", "exhaustive")
Outcome = Literal["rejected", "failed", "absent", "blocked"]


@dataclass(frozen=True, slots=True)
class Holder:
    """How an archive stands towards one resource."""

    name: str
    covered: bool  # its listing is complete for this resource: what is not listed is not held
    may_hold: bool = True  # False when its published map says no
    budget: int | None = None  # requests left in this period; None without a limit
    down: str = ""  # why it is not asked any more in this run


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one try. `captured_at` is None for having asked what an archive holds."""

    archive: str
    uri: str
    captured_at: datetime | None
    outcome: Outcome | Literal["answered"]
    detail: str = ""
    digest: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    archive: str


@dataclass(frozen=True, slots=True)
class Fetch:
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: Reason
    detail: str
    verdict: Verdict | None = None


def decide(
    candidates: Iterable[Candidate],
    attempts: Sequence[Attempt],
    holders: Sequence[Holder],
    dates: DatePreference,
    *,
    near: datetime | None = None,
    ask_first: bool = False,
) -> Ask | Fetch | GiveUp:
    """The next step for one resource. `ask_first` is the naive policy: know every capture before choosing one."""
    known = list(candidates)
    asked = {attempt.archive for attempt in attempts if attempt.captured_at is None}
    unsure = [h for h in holders if not h.covered and h.may_hold and h.name not in asked]
    ready = {holder.name for holder in holders if _ready(holder)}
    question = next((Ask(holder.name) for holder in unsure if holder.name in ready), None)
    if ask_first and question is not None:
        return question
    tried = {(a.archive, a.uri, a.captured_at) for a in attempts}
    bad = {a.digest for a in attempts if a.outcome == "rejected" and a.digest}
    order = in_order(known, dates, near=near, archives=[h.name for h in holders])
    left = [
        c for c in order if (c.archive, c.uri, c.captured_at) not in tried and (not c.digest or c.digest not in bad)
    ]
    for candidate in left:
        if candidate.archive in ready:
            return Fetch(candidate)
    if question is not None:
        return question
    return _give_up(known, left, attempts, unsure, holders, dates)


def _ready(holder: Holder) -> bool:
    return not holder.down and (holder.budget is None or holder.budget > 0)


def _give_up(
    known: list[Candidate],
    left: list[Candidate],
    attempts: Sequence[Attempt],
    unsure: list[Holder],
    holders: Sequence[Holder],
    dates: DatePreference,
) -> GiveUp:
    """The reason that is easiest to resolve comes first: wait, try again, and only then what cannot change."""
    by_name = {holder.name: holder for holder in holders}
    names = dict.fromkeys([h.name for h in unsure] + [c.archive for c in left])
    waiting = [by_name[name] for name in names if name in by_name]
    spent = [h.name for h in waiting if not h.down]
    if spent:
        return GiveUp(Reason.OUT_OF_QUOTA, f"no requests left for {', '.join(spent)}")
    failures = [a for a in attempts if a.outcome == "failed"]
    if failures or waiting:
        said = [f"{a.archive}: {a.detail}" for a in failures[-2:]] or [f"{h.name}: {h.down}" for h in waiting]
        return GiveUp(Reason.FAILED, "; ".join(dict.fromkeys(said)))
    blocked = [a for a in attempts if a.outcome == "blocked"]
    if blocked:
        return GiveUp(Reason.BLOCKED, f"{blocked[0].archive}: {blocked[0].detail}")
    rejected = [a for a in attempts if a.outcome == "rejected"]
    if rejected:
        return GiveUp(Reason.REJECTED, rejected[0].detail, rejected[0].verdict)
    return _without_content(known, attempts, dates)


def _without_content(known: list[Candidate], attempts: Sequence[Attempt], dates: DatePreference) -> GiveUp:
    absent = [a for a in attempts if a.outcome == "absent" and a.captured_at is not None]
    if absent:
        return GiveUp(Reason.FAILED, f"{absent[0].archive} lists it and does not have it")
    outside = [c for c in known if not dates.in_range(c.captured_at)]
    if any(is_content(c.status) or c.is_redirect for c in outside):
        times = sorted(c.captured_at for c in outside)
        return GiveUp(Reason.OUT_OF_RANGE, f"captured only from {times[0]:%Y-%m-%d} to {times[-1]:%Y-%m-%d}")
    if known:
        counts = Counter(c.status for c in known)
        said = ", ".join(
            f"{status} ×{count}" if count > 1 else str(status) for status, count in sorted(counts.items(), key=str)
        )
        return GiveUp(Reason.REJECTED, f"archived only as an error: {said}", Verdict.ERROR_STATUS)
    return GiveUp(Reason.NEVER_ARCHIVED, "")
