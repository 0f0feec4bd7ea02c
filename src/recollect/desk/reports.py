"""What a worker reports of a job, in the shape that pages, mails and statistics rely on. Pure.

Hides: how much is tolerated. A worker is another machine, perhaps of another version: what has another type or size
than expected is left out, and never becomes an error on a person's page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recollect.recovery.figures import Figures, Loss, Outage, OutageKind

_MOST = 200
_LONG = 500
_COUNTS = ("recovered", "pages", "missing", "discovered", "bytes")
_MAPS = ("by_type", "missing_by_reason", "by_archive", "requests")
_FIGURES = (
    "recovered", "pages", "listed", "listed_back", "foreign", "never_saved_pages", "never_saved_files", "beside_lost",
    "elsewhere", "elsewhere_hosts", "unlinked_pages", "unlinked_files", "suspects",
)  # fmt: skip
_TEXTS = ("first", "last", "front", "stopped", "ended_at")


def clean_summary(received: object) -> dict[str, Any]:
    """The summary of a finished recovery."""
    given: Mapping[Any, Any] = received if isinstance(received, Mapping) else {}
    examples = given.get("missing_examples")
    return {
        **{name: _count(given.get(name)) for name in _COUNTS},
        **{name: _counts(given.get(name)) for name in _MAPS},
        **{name: _text(given.get(name)) for name in _TEXTS},
        "owners": _owners(given.get("owners")),
        "years": {str(k)[:_LONG]: _counts(v) for k, v in _items(given.get("years"))},
        "listings": {str(k)[:_LONG]: _text(v) for k, v in _items(given.get("listings"))},
        "missing_examples": [
            {"uri": _text(one.get("uri")) or "", "reason": _text(one.get("reason")) or ""}
            for one in (examples[:50] if isinstance(examples, list) else ())
            if isinstance(one, Mapping)
        ],
        "listed": _count(given.get("listed")) if given.get("listed") is not None else None,
        "complete": given.get("complete") is True,
        **({"doubtful": doubtful} if (doubtful := _doubtful(given.get("doubtful"))) else {}),
        **({"figures": figures} if (figures := clean_figures(given.get("figures"))) else {}),
    }


def _doubtful(received: object) -> list[dict[str, Any]]:
    """The pages that a person is asked about."""
    return [
        {
            "number": _count(one.get("number")),
            **{name: _text(one.get(name)) or "" for name in ("uri", "verdict", "title", "captured_at", "file")},
            "similar": [_count(number) for number in (similar[:_MOST] if isinstance(similar, list) else ())],
        }
        for one in (received[:_MOST] if isinstance(received, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("uri"), str)
        for similar in [one.get("similar")]
    ]


def clean_figures(received: object) -> dict[str, Any]:
    """The figures of a recovery, as `recovery.figures` has them; empty when they cannot be read."""
    if not isinstance(received, Mapping):
        return {}
    try:
        figures = Figures.from_json(received)
        checked = replace(
            figures,
            **{name: _count(getattr(figures, name)) for name in _FIGURES},
            losses={loss: _count(count) for loss, count in figures.losses.items()},
            outages=tuple(_clean_outage(one) for one in figures.outages[:_MOST]),
            complete=figures.complete is True,
            front=figures.front is True,
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        return {}
    return checked.to_json()


def _clean_outage(one: Outage) -> Outage:
    listed = None if one.listed is None else _count(one.listed)
    return Outage(str(one.archive)[:_LONG], one.kind, str(one.detail)[:_LONG], listed, _count(one.waiting))


_LOSS_OF = {"failed": Loss.FAILED, "out-of-quota": Loss.OUT_OF_QUOTA, "blocked": Loss.BLOCKED}


def figures_of(summary: Mapping[str, Any]) -> Figures:
    """The figures of a summary; of one from before there were any, as much as its counts tell."""
    if summary.get("figures"):
        return Figures.from_json(summary["figures"])
    reasons = dict(summary.get("missing_by_reason", {}))
    recovered, missing = summary.get("recovered", 0), summary.get("missing", 0) - reasons.pop("out-of-range", 0)
    never = min(reasons.pop("never-archived", 0), missing)
    losses: Counter[Loss] = Counter()
    for reason, count in reasons.items():
        losses[_LOSS_OF.get(reason, Loss.REJECTED)] += count
    losses[Loss.NOT_REACHED] += max(0, missing - never - losses.total())
    return Figures(
        recovered=recovered,
        pages=summary.get("pages", 0),
        listed=recovered + losses.total(),
        listed_back=recovered,
        losses={loss: count for loss, count in sorted(losses.items()) if count},
        never_saved_files=never,
        complete=bool(summary.get("complete", True)) and not summary.get("stopped"),
    )


_UNANSWERED = frozenset((OutageKind.SLOW, OutageKind.UNREACHABLE, OutageKind.REFUSED, OutageKind.FAILED))


def unanswered(summary: Mapping[str, Any]) -> list[Outage]:
    """Archives that may hold more than came: they did not answer, refused, or failed to give what they list."""
    return [
        one for one in figures_of(summary).outages if one.kind in _UNANSWERED and (one.listed is None or one.waiting)
    ]


def clean_status(received: Mapping[Any, Any]) -> dict[str, Any]:
    """The progress of a running recovery."""
    waiting = received.get("waiting_for")
    return {
        **{name: _counts(received.get(name)) for name in ("recovered", "queued", "missing", "requests")},
        "stage": _text(received.get("stage")) or "",
        "waiting_for": [
            {"archive": str(one.get("archive"))[:_LONG], "until": until, "reason": _text(one.get("reason")) or ""}
            for one in (waiting[:_MOST] if isinstance(waiting, list) else ())
            if isinstance(one, Mapping) and (until := _moment(one.get("until"))) is not None
        ],
    }


def _owners(value: object) -> list[dict[str, str]]:
    """Periods of ownership: owner, from, to."""
    periods = value[:_MOST] if isinstance(value, list) else []
    return [
        {name: _text(one.get(name)) or "" for name in ("owner", "from", "to")}
        for one in periods
        if isinstance(one, Mapping)
    ]


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(min(max(value, 0), 10**15))


def _counts(value: object) -> dict[str, int]:
    return {str(name)[:_LONG]: _count(number) for name, number in _items(value)}


def _items(value: object) -> list[tuple[Any, Any]]:
    return list(value.items())[:_MOST] if isinstance(value, Mapping) else []


def _text(value: object) -> str | None:
    return value[:_LONG] if isinstance(value, str) else None


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        return None
    return float(value)
