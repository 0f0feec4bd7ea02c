"""Recollect: know which web archive holds what, ask only those that can answer, get lost websites back.

The names below are the public library; each is imported when first used, so `import recollect` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Type checkers read the imports; a test compares them with the table that programs use.
if TYPE_CHECKING:
    from recollect.aggregator.gather import gather_timegates as gather_timegates
    from recollect.aggregator.gather import gather_timemaps as gather_timemaps
    from recollect.aggregator.service import Aggregator as Aggregator
    from recollect.archives.client import ArchiveClient as ArchiveClient
    from recollect.archives.registry import Archive as Archive
    from recollect.archives.registry import load_archives as load_archives
    from recollect.errors import BadURI as BadURI
    from recollect.errors import RecollectError as RecollectError
    from recollect.formats.frequency import Frequency as Frequency
    from recollect.formats.logs import read_lookups as read_lookups
    from recollect.formats.timemap import Memento as Memento
    from recollect.formats.timemap import TimeMap as TimeMap
    from recollect.formats.timemap import parse_timemap as parse_timemap
    from recollect.formats.ukvs.faults import validate as validate
    from recollect.maps.diff import diff_maps as diff_maps
    from recollect.maps.filters import make_filter as make_filter
    from recollect.maps.lookup import Lookup as Lookup
    from recollect.maps.lookup import MapSet as MapSet
    from recollect.maps.lookup import MementoMap as MementoMap
    from recollect.maps.lookup import open_map as open_map
    from recollect.maps.map import Map as Map
    from recollect.maps.merge import MergeOptions as MergeOptions
    from recollect.maps.merge import merge_maps as merge_maps
    from recollect.maps.scope import Query as Query
    from recollect.maps.scope import Scope as Scope
    from recollect.profiles.compaction.budget import Budget as Budget
    from recollect.profiles.compaction.budget import compact_by_budget as compact_by_budget
    from recollect.profiles.compaction.tradeoff import tradeoff as tradeoff
    from recollect.profiles.compaction.voids import make_voids as make_voids
    from recollect.profiles.compaction.weights import Weights as Weights
    from recollect.profiles.compaction.weights import compact_by_weights as compact_by_weights
    from recollect.profiles.indexes.options import ProfileOptions as ProfileOptions
    from recollect.profiles.indexes.profile import ProfileResult as ProfileResult
    from recollect.profiles.indexes.profile import profile as profile
    from recollect.profiles.statistics.evaluate import evaluate as evaluate
    from recollect.profiles.statistics.overlap import overlap as overlap
    from recollect.profiles.statistics.report import ReportOptions as ReportOptions
    from recollect.profiles.statistics.report import write_report as write_report
    from recollect.profiles.statistics.stats import stats as stats
    from recollect.profiles.statistics.verify import verify as verify
    from recollect.recovery.measure import measure as measure
    from recollect.recovery.recover import recover as recover
    from recollect.recovery.recover import survey_site as survey_site
    from recollect.recovery.snapshots import open_snapshot as open_snapshot
    from recollect.uris import key_of_uri as key_of_uri
    from recollect.uris import lookup_keys as lookup_keys
    from recollect.uris import policy_key as policy_key
    from recollect.uris import spellings as spellings
    from recollect.uris import surt as surt
    from recollect.uris import uri_key as uri_key

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


if not TYPE_CHECKING:  # a type checker must see a misspelt name

    def __getattr__(name):
        if name not in _PUBLIC:
            raise AttributeError(f"module 'recollect' has no attribute {name!r}")
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
