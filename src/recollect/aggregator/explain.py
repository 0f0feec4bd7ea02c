"""Decisions and outcomes as text and as JSON, in one format for the server, the command line and the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.quantities import format_duration
from recollect.routing.choice import Decision, Reason, Source

# Sources that decide by a key; without one the key is null.
_BY_KEY = frozenset({Source.MAP, Source.VOIDS, Source.FILTER})
_WORDS = {
    Reason.NONE: "",
    Reason.HOLDS_NONE: "holds none",
    Reason.RULE: "not to be asked",
    Reason.UNLIKELY: "too unlikely",
    Reason.NOT_CHOSEN: "the request leaves it out",
    Reason.NOT_CACHED: "not in the cache",
    Reason.BEYOND_TARGET: "the wanted recall is reached without it",
    Reason.SWITCHED_OFF: "switched off by the operator",
    Reason.NONE_IN_PERIOD: "holds none of this time",
    Reason.PAGE_NOT_HELD: "does not hold the page that embeds it",
}


def reason_words(decision: Decision) -> str:
    """Why an archive is skipped, or asked although its map does not have the URI, as text; empty for any other."""
    words = _reason(decision)
    if decision.reason not in (Reason.NONE, Reason.HOLDS_NONE, Reason.NONE_IN_PERIOD, Reason.PAGE_NOT_HELD):
        return words
    return ", ".join(filter(None, (words, decision.note, _since(decision))))


def _since(decision: Decision) -> str:
    """`no on 2026-03-01; 4% chance since`: the day of a "no", and the chance that it is no longer true."""
    if not decision.as_of:
        return ""
    chance = decision.chance or 0.0
    return f"no on {decision.as_of}; {_percent(chance)} chance since" if chance else f"no on {decision.as_of}"


def _percent(chance: float) -> str:
    return "under 0.1%" if chance < 0.001 else f"{chance:.1%}" if chance < 0.01 else f"{chance:.0%}"


def _reason(decision: Decision) -> str:
    rest = decision.rest
    if decision.reason is Reason.NOT_BEST:
        return f"only the best {decision.limit} are asked"
    if decision.reason is Reason.FAR_IN_TIME:
        return f"its captures are {format_duration(decision.gap)} or more away"
    if decision.reason is Reason.PAUSED and rest is not None:
        return f"Retry-After: {rest.seconds:.0f} s left"
    if decision.reason is Reason.FAILING and rest is not None:
        return f"{rest.failures} failures ({rest.last_failure}), next try in {rest.seconds:.0f} s"
    return _WORDS[decision.reason]


def why(decision: Decision) -> str:
    """`map com,example,* 0: holds none`: the source of the decision, its key and frequency, and the reason."""
    said: str = decision.source.value
    if decision.key:
        said = f"{said} {decision.key}"
    if decision.frequency:
        said = f"{said} {decision.frequency}"
    if decision.source is Source.LEARNED and decision.chance is not None:
        said = f"{said} chance={decision.chance:.3g}"
    reason = reason_words(decision)
    return ": ".join(part for part in (said, reason) if part)


def words(decision: Decision) -> str:
    """`skip (map: holds none)`, for headers and people."""
    verb = "ask" if decision.ask else "skip"
    said = why(decision)
    return f"{verb} ({said})" if said else verb


def decision_json(decision: Decision) -> dict[str, Any]:
    """The shape of a decision; empty fields are left out. `source` (also as `by`) is what decided, such as `map`, `set`
    or `voids`; `code` is the reason as an enumeration, `reason` as text; `chance` the probability that the archive has
    the URI, `sources` where that comes from; `promised_recall` the least share of what the archive holds that these
    options ask for; `answer` is yes, no or unknown."""
    entry: dict[str, Any] = {"id": decision.archive, "decision": "ask" if decision.ask else "skip"}
    if decision.answer is not None:
        entry["answer"] = decision.answer.value
    fields = {
        "source": decision.source.value,
        "by": decision.source.value,
        "key": decision.key,
        "frequency": decision.frequency,
        "code": decision.reason.value,
        "reason": reason_words(decision),
    }
    entry |= {name: value for name, value in fields.items() if value}
    if decision.source in _BY_KEY and not decision.key:
        entry["key"] = None
    if decision.ask:
        entry["expected"] = round(decision.expected, 4)
    if decision.chance is not None:
        entry["chance"] = round(decision.chance, 4)
    if decision.sources:
        entry["sources"] = [source.value for source in decision.sources]
    if decision.promised is not None:
        entry["promised_recall"] = round(decision.promised, 4)
    if decision.as_of:
        entry["as_of"] = decision.as_of
    if decision.gap:
        entry["gap_seconds"] = round(decision.gap)
    return entry


def outcome_json(decision: Decision, outcome: Outcome | None) -> dict[str, Any]:
    """The shape of a decision with what came of it."""
    entry = decision_json(decision)
    if outcome is not None:
        entry |= outcome_fields(outcome)
    elif not decision.ask:
        entry["outcome"] = "skipped"
    return entry


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """What asking an archive came to; empty fields are left out."""
    entry = {"outcome": outcome.kind.value, "mementos": outcome.count, "ms": round(outcome.elapsed * 1000, 1)}
    fields = {
        "error": outcome.error,
        "why": outcome.why,
        "partial": outcome.partial,
        "problems": list(outcome.timemap.problems[:10]),
    }
    return entry | {name: value for name, value in fields.items() if value}


def outcome_words(outcome: Outcome) -> str:
    """What failed, as text; empty if nothing did."""
    if outcome.kind is OutcomeKind.ERROR:
        return f"{outcome.error}: {outcome.why}" if outcome.why else outcome.error
    return f"incomplete: {outcome.partial}" if outcome.partial else ""


def outcomes_json(decisions: Iterable[Decision], outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Every decision with its outcome, in the order of the decisions."""
    by_archive = {outcome.archive: outcome for outcome in outcomes}
    return [outcome_json(decision, by_archive.get(decision.archive)) for decision in decisions]
