"""Tables 12 to 14 and Figures 32 and 33 from a history, against numbers made by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.desk.statistics import Spread, facts_of, statistics

DAY = 86_400.0
JULY = datetime(2007, 7, 1, tzinfo=UTC).timestamp()


def life(
    job: str, uri: str, start: float, days: float, discovered: int, recovered: dict[str, int], requests: dict[str, int],
    *, scope: str = "site", picked_up: bool = True, expired: bool = False,
) -> list[dict[str, object]]:  # fmt: skip
    total = sum(recovered.values())
    summary = {"discovered": discovered, "recovered": total, "by_archive": recovered, "requests": requests}
    facts = facts_of({"scope": scope}, summary)
    done = "deliver" if total else "find-nothing"
    events: list[dict[str, object]] = [
        {"job": job, "at": start, "action": "submit", "before": None, "after": "pending", "detail": uri},
        {"job": job, "at": start, "action": "confirm", "before": "pending", "after": "queued", "detail": ""},
        {"job": job, "at": start + days * DAY, "action": done, "before": "packing", "after": "ready", "detail": facts},
    ]
    if picked_up and total:
        events.append(
            {"job": job, "at": start, "action": "pick-up", "before": "ready", "after": "picked-up", "detail": ""}
        )
    if expired:
        events.append(
            {"job": job, "at": start, "action": "expire", "before": "ready", "after": "expired", "detail": ""}
        )
    return events


HISTORY = [
    *life("a", "http://one.com/", JULY, 1, 100, {"ia": 60, "google": 20}, {"ia": 120, "google": 40}),
    *life(
        "b",
        "http://two.com/",
        JULY + 5 * DAY,
        3,
        10,
        {"ia": 1},
        {"ia": 30},
        scope="page",
        picked_up=False,
        expired=True,
    ),
    *life("c", "http://three.org/", JULY + 40 * DAY, 2, 0, {}, {"ia": 6, "google": 2}),
    {"job": "d", "at": JULY, "action": "submit", "before": None, "after": "pending", "detail": "http://four.net/"},
]


def test_the_tables() -> None:
    found = statistics(HISTORY)
    assert found.months == {"2007-07": (2, 81), "2007-08": (1, 0)}
    assert found.discovered == Spread(110 / 3, 0, 100, pytest.approx(44.969, abs=0.001))
    assert found.recovered is not None and (found.recovered.least, found.recovered.most) == (0, 80)
    assert found.days is not None and (found.days.average, found.days.most) == (2.0, 3.0)
    assert list(found.archives) == ["ia", "google"]
    ia, google = found.archives["ia"], found.archives["google"]
    assert (ia.used, ia.contribution, ia.requests) == (1.0, 61 / 81, 52.0)
    assert (google.used, google.contribution, google.requests) == (2 / 3, 20 / 81, 21.0)
    assert found.shares == (1, 1, 0, 0, 0, 0, 0, 0, 1, 0)
    assert found.tlds == {"com": (2, pytest.approx(0.45)), "org": (1, 0.0)}
    assert (found.completed, found.nothing_found, found.single_pages, found.not_picked_up) == (3, 1, 1, 1)


def test_an_empty_history_has_statistics_too() -> None:
    found = statistics([])
    assert found.completed == 0 and found.discovered is None and found.archives == {}
