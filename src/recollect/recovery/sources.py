"""Where a recovery's archives, files and maps come from: one frozen value, kept with the recovery so that it can be
resumed.

Hides: the list of archives, the choice among them, slowing them down, and opening their maps. Files and folders that
hold captures (`also`) are opened by `recovery.local`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recollect.archives.registry import Archive, Rate, choose, load_archives
from recollect.errors import UsageError
from recollect.recovery.maps import may_hold_site
from recollect.recovery.options import Options
from recollect.routing.maps import Maps


@dataclass(frozen=True, slots=True)
class Sources:
    """A list of archives, which of them to ask, and their maps."""

    registry: str = ""  # file; the public archives when empty
    use: str = ""  # only these (`ia,arquivo`), or all but some (`!ia`)
    maps: str = ""  # folder of published maps
    pause: float = 0.0  # seconds at least between two requests to one archive
    also: tuple[str, ...] = ()  # files and folders that hold captures
    base: str = ""  # the address of files that do not say it
    offline: bool = False  # only the files of `also`, no archives

    def archives(self) -> list[Archive]:
        """The archives to ask; raises UsageError when there are none."""
        if self.offline:
            return []
        found = list(choose(load_archives(self.registry or None), self.use))
        if not found:
            raise UsageError("no archives to ask", where=self.registry, hint="recollect archives list")
        return [_slowed(archive, self.pause) for archive in found] if self.pause else found

    def to_json(self) -> dict[str, Any]:
        return {
            "registry": str(Path(self.registry).resolve()) if self.registry else None,
            "use": self.use or None,
            "maps": str(Path(self.maps).resolve()) if self.maps else None,
            "also": [str(Path(path).resolve()) for path in self.also],
            "base": self.base or None,
            "offline": self.offline,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Sources:
        return Sources(
            value.get("registry") or "",
            value.get("use") or "",
            value.get("maps") or "",
            also=tuple(value.get("also") or ()),
            base=value.get("base") or "",
            offline=bool(value.get("offline")),
        )

    def over(self, older: Sources) -> Sources:
        """These where they say something, else the older ones."""
        return Sources(
            self.registry or older.registry,
            self.use or older.use,
            self.maps or older.maps,
            self.pause or older.pause,
            tuple(dict.fromkeys((*older.also, *(str(Path(path).resolve()) for path in self.also)))),
            self.base or older.base,
            self.offline or (older.offline and not (self.registry or self.use)),
        )


def _slowed(archive: Archive, pause: float) -> Archive:
    slow = Rate(1, pause)

    def slower(rate: Rate | None) -> Rate:
        return slow if rate is None or slow.per_second < rate.per_second else rate

    return replace(
        archive, index_rate=slower(archive.index_rate), replay_rate=slower(archive.replay_rate), concurrency=1
    )


def worth_asking(archives: Sequence[Archive], options: Options, maps: Maps) -> tuple[list[Archive], dict[str, str]]:
    """The archives worth asking, and why the others are not: a rule of theirs, or their map."""
    asked, skipped = [], {}
    for archive in archives:
        rules = [archive.rule(uri) for uri in options.scope.start]
        if all(rule is not None for rule in rules):
            skipped[archive.id] = f"by rule: {rules[0]}"
        elif not may_hold_site(maps, archive.id, options.scope):
            skipped[archive.id] = "its map has nothing of the site"
        else:
            asked.append(archive)
    return asked, skipped
