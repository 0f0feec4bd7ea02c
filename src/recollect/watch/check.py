"""If it were lost today: what share of a live site would come back from the archives, and what would not.

Hides: the counting. Pure over what was looked at; the look itself is `watch.look`.

A resource comes back if an archive holds it. It comes back fresh if the newest copy has the same bytes or at least 75%
of its ten-word shingles (the measure of similar text of McCown 2007). Unknown is not lost: a resource whose archives
failed is counted apart, and the share is given of what is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.datetimes import format_iso
from recollect.quantities import format_percent
from recollect.recovery.measure import SIMILAR_SHARE
from recollect.watch.holdings import ResourceReport
from recollect.watch.records import counts_of
from recollect.watch.states import Held, Live, ResourceState

GROUPS = ("pages", "images", "styles", "scripts", "documents", "other")


@dataclass(frozen=True, slots=True)
class Group:
    """Resources of one type: how many there are, come back, come back fresh, and are unknown."""

    name: str
    total: int = 0
    held: int = 0
    fresh: int = 0
    unknown: int = 0

    @property
    def share(self) -> float | None:
        """The share that would come back, of what is known."""
        return self.held / self.known if self.known else None

    @property
    def known(self) -> int:
        """Resources of which archives said whether they hold them."""
        return self.total - self.unknown

    @property
    def percent(self) -> str:
        """The share in words."""
        return format_percent(self.held, self.known) if self.known else "unknown"


@dataclass(frozen=True)
class Check:
    """The report of one look at a live site."""

    site: str
    at: datetime
    groups: tuple[Group, ...]
    states: dict[ResourceState, int]
    looked: tuple[ResourceReport, ...]
    by_archive: dict[str, int]
    failed_archives: dict[str, int]
    """Archives that failed, and for how many resources."""
    disallowed: int = 0
    """Addresses that were not asked because robots.txt disallows it."""

    @property
    def whole(self) -> Group:
        return Group(
            "all",
            sum(group.total for group in self.groups),
            sum(group.held for group in self.groups),
            sum(group.fresh for group in self.groups),
            sum(group.unknown for group in self.groups),
        )

    @property
    def vulnerable(self) -> tuple[ResourceReport, ...]:
        """What is live and held by no archive."""
        return tuple(one for one in self.looked if one.resource.state is ResourceState.VULNERABLE)

    def to_json(self) -> dict[str, Any]:
        return {
            "site": self.site,
            "at": format_iso(self.at),
            "recoverable": self.whole.share,
            "resources": {"total": self.whole.total, "held": self.whole.held, "fresh": self.whole.fresh}
            | {"unknown": self.whole.unknown},
            "states": {state.value: count for state, count in self.states.items()},
            "by_type": {
                group.name: {"total": group.total, "held": group.held, "fresh": group.fresh, "unknown": group.unknown}
                | {"recoverable": group.share}
                for group in self.groups
            },
            "by_archive": self.by_archive,
            "failed_archives": self.failed_archives,
            "disallowed": self.disallowed,
            "vulnerable": [one.resource.uri for one in self.vulnerable],
            "list": [_row(one) for one in self.looked],
        }


def _row(one: ResourceReport) -> dict[str, Any]:
    newest = one.copies[0] if one.copies else None
    return {
        "uri": one.resource.uri,
        "type": group_of(one.resource.media_type),
        "state": one.resource.state.value,
        "archives": list(one.resource.archives),
        "newest": format_iso(newest.captured_at) if newest is not None else None,
        "alike": newest.alike if newest is not None else None,
        "failed": list(one.failed),
    }


def group_of(media_type: str) -> str:
    """The group a media type is counted in."""
    if "html" in media_type:
        return "pages"
    if media_type.startswith("image/"):
        return "images"
    if media_type == "text/css":
        return "styles"
    if "javascript" in media_type:
        return "scripts"
    documents = ("application/pdf", "application/msword", "text/plain", "application/rtf")
    return "documents" if media_type.startswith(documents) or "officedocument" in media_type else "other"


def check_of(site: str, at: datetime, looked: Sequence[ResourceReport], *, disallowed: int = 0) -> Check:
    """Count what was looked at; only resources that are live are part of the site."""
    live = [one for one in looked if one.resource.live is Live.LIVE]
    groups = []
    for name in GROUPS:
        mine = [one for one in live if group_of(one.resource.media_type) == name]
        if mine:
            groups.append(
                Group(
                    name,
                    len(mine),
                    sum(one.resource.held is Held.HELD for one in mine),
                    sum(is_fresh(one) for one in mine),
                    sum(one.resource.held is Held.UNKNOWN for one in mine),
                )
            )
    holders = Counter(archive for one in live for archive in one.resource.archives)
    failed = Counter(archive for one in live for archive in one.failed)
    states = counts_of(one.resource for one in looked)
    everything = tuple(looked)
    return Check(site, at, tuple(groups), states, everything, dict(holders.most_common()), dict(failed), disallowed)


def is_fresh(one: ResourceReport) -> bool:
    """Whether the newest copy is the live resource, or nearly."""
    return one.resource.held is Held.HELD and one.resource.fresh is not None and one.resource.fresh >= SIMILAR_SHARE
