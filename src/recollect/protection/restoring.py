"""The files of a class from the blocks that were collected: the newest version that is complete, and its changes.

Hides: which changes belong to which version. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from recollect.datetimes import parse_timestamp
from recollect.protection.age import Opener, unseal
from recollect.protection.block import Version
from recollect.protection.changes import base_of, changes_class, is_changes_class, merge
from recollect.protection.chunks import is_chunks_class
from recollect.protection.collect import Collector, Standing
from recollect.protection.pack import Limits, expanded


@dataclass(frozen=True, slots=True)
class RestoredClass:
    """The files of a class as one tar archive."""

    version: Version
    changes: Version | None
    archive: bytes
    incomplete: Standing | None
    """The newest version of the class or of its changes, if its blocks do not suffice: newer files existed."""
    is_previous: bool
    """Whether the restored version is the one just before the newest."""

    @property
    def at(self) -> str:
        """When these files were as they are, as 14 digits."""
        return self.changes.at if self.changes is not None else self.version.at


def class_names(collector: Collector) -> list[str]:
    """The classes that a person knows, without those that carry changes and lists of chunks."""
    return [name for name in collector.classes() if not is_changes_class(name) and not is_chunks_class(name)]


def restore_class(
    collector: Collector, name: str, opener: Opener, limits: Limits, until: str | None = None
) -> RestoredClass | None:
    """The newest files of a class that its blocks give; None if no version is complete. Raises Locked."""
    base = collector.restore(name, until)
    if base is None:
        return None
    archive = expanded(unseal(base.sealed, opener), limits)
    changes = None
    for one in _versions(collector, changes_class(name), until):
        sealed = collector.object_of(one.version) if one.version.key == base.version.key else None
        if sealed is None:
            continue
        found = expanded(unseal(sealed, opener), limits)
        if base_of(found) == base.version.object:
            archive, changes = merge(archive, found, limits.total_bytes), one.version
            break
    at = changes.at if changes is not None else base.version.at
    newer = [
        one
        for one in (*_versions(collector, name, until), *_versions(collector, changes_class(name), until))
        if one.version.at > at
    ]
    newest = max(newer, key=lambda one: one.version.at, default=None)
    return RestoredClass(base.version, changes, archive, newest, len(newer) == 1)


def _versions(collector: Collector, name: str, until: str | None) -> list[Standing]:
    """Versions of a class, newest first."""
    return [
        one for one in collector.standings() if one.version.name == name and (until is None or one.version.at <= until)
    ]


def shortfall(restored: RestoredClass) -> str:
    """The sentence about newer files that did not come back; empty if the newest did."""
    newest = restored.incomplete
    if newest is None:
        return ""
    which = "the one before it" if restored.is_previous else f"the one of {_moment(restored.at)}"
    need = max(newest.version.need, newest.found + 1)  # now and then, one or two more than the least are needed
    return (
        f"The newest version ({_moment(newest.version.at)}) is incomplete: {newest.found:,} of "
        f"{need:,} blocks. Restored: {which}."
    )


def _moment(at: str) -> str:
    return f"{parse_timestamp(at):%Y-%m-%d %H:%M}"
