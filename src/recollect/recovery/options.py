"""What a recovery was asked to do: one frozen value, kept in the journal so that it can be resumed.

Hides nothing; `to_json` and `from_json` are each other's inverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from recollect.datetimes import format_iso, parse_or_none
from recollect.recovery.canonical import DEFAULT_RULES, Rules
from recollect.recovery.choose import DatePreference
from recollect.recovery.meter import Quota
from recollect.recovery.plan import RecoveryPolicy
from recollect.recovery.scope import Scope

MAX_RESOURCE = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that changes what is recovered."""

    scope: Scope
    dates: DatePreference = DatePreference()  # noqa: RUF009 - frozen
    policy: RecoveryPolicy = "exhaustive"
    rules: Rules = DEFAULT_RULES
    recursive: bool = True
    keep_suspects: bool = False  # take captures that look like error pages, parked domains, logins ...
    live_fallback: bool = False
    all_captures: Literal["", "all", "unique"] = ""  # the history too: every capture, or one of each content
    limit: int | None = None  # stop after this number of resources
    max_bytes: int = MAX_RESOURCE
    quotas: Mapping[str, Quota] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "scope": self.scope.to_json(),
            "wish": {
                "at": _iso(self.dates.at),
                "start": _iso(self.dates.start),
                "end": _iso(self.dates.end),
                "most_recent": self.dates.most_recent,
            },
            "policy": self.policy,
            "rules": self.rules.to_json(),
            "recursive": self.recursive,
            "keep_suspects": self.keep_suspects,
            "live_fallback": self.live_fallback,
            "all_captures": self.all_captures,
            "limit": self.limit,
            "max_bytes": self.max_bytes,
            "quotas": {name: [quota.limit, quota.period] for name, quota in self.quotas.items()},
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Options:
        rules = Rules.from_json(value["rules"])
        dates = value["wish"]
        return Options(
            scope=Scope.from_json(value["scope"], rules),
            dates=DatePreference(
                parse_or_none(dates["at"]),
                parse_or_none(dates["start"]),
                parse_or_none(dates["end"]),
                dates["most_recent"],
            ),
            policy=value["policy"],
            rules=rules,
            recursive=value["recursive"],
            keep_suspects=value["keep_suspects"],
            live_fallback=value["live_fallback"],
            all_captures=value.get("all_captures", ""),
            limit=value["limit"],
            max_bytes=value["max_bytes"],
            quotas={name: Quota(limit, period) for name, (limit, period) in value["quotas"].items()},
        )


def _iso(moment: datetime | None) -> str | None:
    return format_iso(moment) if moment is not None else None
