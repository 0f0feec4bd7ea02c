"""Recollect: know which web archive holds what, ask only those that can answer, get lost websites back.

The names below are the public library; each is imported when first used, so `import recollect` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that owns it.
_PUBLIC: dict[str, str] = {
    "Aggregator": "recollect.aggregator.service",
    "Archive": "recollect.archives.registry",
    "ArchiveClient": "recollect.archives.client",
    "BadURI": "recollect.errors",
    "Budget": "recollect.profiles.compaction.budget",
    "compact_by_budget": "recollect.profiles.compaction.budget",
    "compact_by_weights": "recollect.profiles.compaction.weights",
    "diff_maps": "recollect.maps.diff",
    "evaluate": "recollect.profiles.statistics.evaluate",
    "Frequency": "recollect.formats.frequency",
    "gather_timegates": "recollect.aggregator.gather",
    "gather_timemaps": "recollect.aggregator.gather",
    "key_of_uri": "recollect.uris",
    "load_archives": "recollect.archives.registry",
    "Lookup": "recollect.maps.lookup",
    "lookup_keys": "recollect.uris",
    "make_filter": "recollect.maps.filters",
    "make_voids": "recollect.profiles.compaction.voids",
    "Map": "recollect.maps.map",
    "MapSet": "recollect.maps.lookup",
    "measure": "recollect.recovery.measure",
    "Memento": "recollect.formats.timemap",
    "MementoMap": "recollect.maps.lookup",
    "merge_maps": "recollect.maps.merge",
    "MergeOptions": "recollect.maps.merge",
    "open_map": "recollect.maps.lookup",
    "open_snapshot": "recollect.recovery.snapshots",
    "overlap": "recollect.profiles.statistics.overlap",
    "parse_timemap": "recollect.formats.timemap",
    "policy_key": "recollect.uris",
    "profile": "recollect.profiles.indexes.profile",
    "ProfileOptions": "recollect.profiles.indexes.options",
    "ProfileResult": "recollect.profiles.indexes.profile",
    "read_lookups": "recollect.formats.logs",
    "Query": "recollect.maps.scope",
    "RecollectError": "recollect.errors",
    "recover": "recollect.recovery.recover",
    "ReportOptions": "recollect.profiles.statistics.report",
    "Scope": "recollect.maps.scope",
    "spellings": "recollect.uris",
    "stats": "recollect.profiles.statistics.stats",
    "surt": "recollect.uris",
    "survey_site": "recollect.recovery.recover",
    "TimeMap": "recollect.formats.timemap",
    "tradeoff": "recollect.profiles.compaction.tradeoff",
    "uri_key": "recollect.uris",
    "validate": "recollect.formats.ukvs.faults",
    "verify": "recollect.profiles.statistics.verify",
    "Weights": "recollect.profiles.compaction.weights",
    "write_report": "recollect.profiles.statistics.report",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
