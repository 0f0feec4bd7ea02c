"""How the desk was used, from its own history: McCown's Tables 12 to 14 and Figures 32 and 33 (2007, section VI.6).

Hides: reading events. Pure over rows of the history, so it does not depend on jobs that are long removed.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recollect.desk.database import Row
from recollect.desk.states import Action, State

BINS = 10


@dataclass(frozen=True, slots=True)
class Spread:
    """Average, least, most and standard deviation of some numbers."""

    average: float
    least: float
    most: float
    deviation: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread | None:
        if not values:
            return None
        average = sum(values) / len(values)
        deviation = math.sqrt(sum((value - average) ** 2 for value in values) / len(values))
        return Spread(average, min(values), max(values), deviation)


@dataclass(frozen=True, slots=True)
class ArchiveUse:
    """One archive: in which share of recoveries it was asked, what it gave, and what it was asked."""

    used: float
    contribution: float
    requests: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Everything the statistics page shows."""

    months: Mapping[str, tuple[int, int]]  # Table 12: completed jobs, resources recovered
    discovered: Spread | None  # Table 13
    recovered: Spread | None
    days: Spread | None
    archives: Mapping[str, ArchiveUse]  # Table 14
    shares: tuple[int, ...]  # Figure 32: jobs by tenths of resources recovered
    tlds: Mapping[str, tuple[int, float]]  # Figure 33: jobs, share of resources recovered
    completed: int
    nothing_found: int
    single_pages: int
    not_picked_up: int


@dataclass(slots=True)
class _Life:
    ending: str = "*.?"
    confirmed: float | None = None
    finished: float | None = None
    facts: Mapping[str, Any] | None = None
    found_nothing: bool = False
    picked_up: bool = False
    expired: bool = False
    continues: bool = False


def statistics(events: Iterable[Row]) -> Statistics:
    """Sum up a history, oldest event first."""
    lives: dict[str, _Life] = defaultdict(_Life)
    for event in events:
        life = lives[event["job"]]
        if event["action"] == "continue":
            life.continues = True
        elif event["action"] == "submit":
            # Before there was `ending_of`, the whole address was kept.
            life.ending = event["detail"] if event["detail"].startswith("*.") else ending_of(event["detail"])
        elif event["action"] == Action.CONFIRM:
            life.confirmed = event["at"]
        elif event["action"] in (Action.DELIVER, Action.FIND_NOTHING):
            life.finished = event["at"]
            life.facts = _facts(event["detail"])
            life.found_nothing = event["action"] == Action.FIND_NOTHING
        elif event["action"] == Action.PICK_UP:
            life.picked_up = True
        elif event["after"] == State.EXPIRED and event["before"] != State.PENDING:
            life.expired = True
    # A job that only completes the result of another has no submission.
    lives = {name: life for name, life in lives.items() if not life.continues}
    done = [life for life in lives.values() if life.finished is not None and life.facts is not None]
    return Statistics(
        months=_months(done),
        discovered=Spread.of([_count(life, "discovered") for life in done]),
        recovered=Spread.of([_count(life, "recovered") for life in done]),
        days=Spread.of([((life.finished or 0) - (life.confirmed or life.finished or 0)) / 86_400 for life in done]),
        archives=_archives(done),
        shares=_shares(done),
        tlds=_tlds(done),
        completed=len(done),
        nothing_found=sum(life.found_nothing for life in done),
        single_pages=sum((life.facts or {}).get("scope") == "page" for life in done),
        not_picked_up=sum(life.expired and not life.picked_up for life in done),
    )


def facts_of(options: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """What the history keeps of a finished recovery: numbers only."""
    kept = {name: summary.get(name, 0) for name in ("discovered", "recovered")}
    kept |= {name: dict(summary.get(name) or {}) for name in ("by_archive", "requests")}
    return json.dumps({**kept, "scope": options.get("scope", "site")}, separators=(",", ":"))


def ending_of(uri: str) -> str:
    """What the history keeps of the address of a site: its ending, as `*.org`."""
    from recollect.desk.jobs import host_of

    return f"*.{host_of(uri).rpartition('.')[2] or '?'}"


def _facts(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _count(life: _Life, name: str) -> int:
    return int((life.facts or {}).get(name, 0))


def _share(life: _Life) -> float:
    discovered = _count(life, "discovered")
    return _count(life, "recovered") / discovered if discovered else 0.0


def _months(done: Sequence[_Life]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for life in sorted(done, key=lambda life: life.finished or 0):
        month = f"{datetime.fromtimestamp(life.finished or 0, UTC):%Y-%m}"
        jobs, resources = found.get(month, (0, 0))
        found[month] = (jobs + 1, resources + _count(life, "recovered"))
    return found


def _archives(done: Sequence[_Life]) -> dict[str, ArchiveUse]:
    names = sorted(
        {name for life in done for key in ("requests", "by_archive") for name in (life.facts or {}).get(key, {})}
    )
    total = sum(_count(life, "recovered") for life in done) or 1
    uses = {}
    for name in names:
        requests = [int((life.facts or {}).get("requests", {}).get(name, 0)) for life in done]
        given = sum(int((life.facts or {}).get("by_archive", {}).get(name, 0)) for life in done)
        used = sum(count > 0 for count in requests)
        uses[name] = ArchiveUse(used / len(done), given / total, sum(requests) / used if used else 0.0)
    return dict(sorted(uses.items(), key=lambda item: (-item[1].contribution, item[0])))


def _shares(done: Sequence[_Life]) -> tuple[int, ...]:
    counts = [0] * BINS
    for life in done:
        counts[min(int(_share(life) * BINS), BINS - 1)] += 1
    return tuple(counts)


def _tlds(done: Sequence[_Life]) -> dict[str, tuple[int, float]]:
    groups: dict[str, list[_Life]] = defaultdict(list)
    for life in done:
        groups[life.ending.removeprefix("*.")].append(life)
    found = {name: (len(group), sum(map(_share, group)) / len(group)) for name, group in groups.items()}
    return dict(sorted(found.items(), key=lambda item: (-item[1][0], item[0])))
