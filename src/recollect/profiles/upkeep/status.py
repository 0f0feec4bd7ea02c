"""What an update is reported as, for programs: JSON, and the text format of Prometheus.

Hides: names. Both are published, so nothing in them counts or names what is excluded: where keys are excluded, how many
index files there are and which changed is left out, as a new file that adds nothing to the map has only excluded
captures. An error is published without the files and lines that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.datetimes import format_iso
from recollect.profiles.upkeep.update import Update

_PREFIX = "recollect_keep_"
_COUNTS_OF_FILES = ("files", "new_files", "changed_files", "removed_files", "problems", "ignored")


@dataclass(frozen=True, slots=True)
class Status:
    """The last update and, if the last attempt failed, why; `next_at` is when the next one begins."""

    checked_at: datetime
    max_bytes: int
    update: Update | None
    seconds: float = 0.0
    error: str = ""
    next_at: datetime | None = None
    name: str = ""
    has_exclusions: bool = False

    @property
    def ok(self) -> bool:
        return not self.error

    def as_dict(self, *, published: bool = False) -> dict[str, Any]:
        """For programs; `published` for status.json."""
        done = self.update.as_dict() if self.update else {}
        done["problems"] = len(self.update.problems) if self.update else 0
        done["ignored"] = len(self.update.ignored) if self.update else 0
        if published and self.has_exclusions:
            done = {name: value for name, value in done.items() if name not in _COUNTS_OF_FILES}
        return {
            "ok": self.ok,
            "name": self.name,
            "checked_at": format_iso(self.checked_at),
            "next_at": format_iso(self.next_at) if self.next_at else None,
            "seconds": round(self.seconds, 3),
            "error": self.error or None,
            "max_bytes": self.max_bytes,
            **done,
        }

    def as_metrics(self) -> str:
        """For Prometheus."""
        done = self.update or Update()
        updated = datetime.fromisoformat(done.updated_at).timestamp() if done.updated_at else 0.0
        rows: list[tuple[str, str, float]] = [
            ("up", "1 if the last update did not fail", int(self.ok)),
            ("checked_timestamp_seconds", "when the index files were last looked at", self.checked_at.timestamp()),
            ("duration_seconds", "how long the last update took", round(self.seconds, 3)),
        ]
        if self.update is not None:
            rows += [
                ("updated_timestamp_seconds", "when the published map last changed", updated),
                ("index_files", "index files that the map is made of", done.files),
                ("partial_files", "index files that could not be read completely", done.partial_files),
                ("captures", "captures that the map covers", done.captures),
                ("verified_captures", "captures that the last verification looked up, all found", done.verified),
                ("map_keys", "keys of the published map", done.keys),
                ("map_bytes", "bytes of the published map as text", done.bytes),
                ("map_max_bytes", "the budget of the map in bytes", self.max_bytes),
                ("problems", "problems of the last update", len(done.problems)),
            ]
        if self.has_exclusions:
            rows = [row for row in rows if row[0] not in ("index_files", "problems")]
        return "".join(
            f"# HELP {_PREFIX}{name} {words}.\n# TYPE {_PREFIX}{name} gauge\n{_PREFIX}{name} {value}\n"
            for name, words, value in rows
        )
