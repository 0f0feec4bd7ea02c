"""A map from summaries of other tools: by host or second-level domain and, where they count them, by year."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.datetimes import format_iso
from recollect.errors import UsageError
from recollect.formats.frequency import Frequency, merge
from recollect.formats.summaries import Holding, SummaryKind, holdings_of, summary_of
from recollect.formats.ukvs import Header, Record, Writer
from recollect.uris import ancestors


@dataclass(frozen=True, slots=True)
class SummaryMap:
    """What a map of summaries was made of."""

    kind: SummaryKind
    keys: int
    captures: int


def map_of_summaries(paths: Sequence[str], target: str | os.PathLike[str], updated_at: datetime) -> SummaryMap:
    """Make the map of summaries of one tool.

    A summary by cdx-summarize counts captures with status 2xx alone, which the header says as a filter, so that
    whoever looks up other captures takes a missing key for unknown.
    """
    kinds = {path: summary_of(path) for path in paths}
    kind, *others = {found for found in kinds.values() if found is not None}
    if others or None in kinds.values():
        other = next(path for path, found in kinds.items() if found != kind)
        hint = "make a map of each kind and put them together: recollect merge a.ukvs b.ukvs -o map.ukvs"
        raise UsageError("summaries and other inputs in one map", where=other, hint=hint)
    found: dict[bytes, Holding] = {}
    for path in paths:
        for one in holdings_of(path, kind):
            found[one.key] = _joined(found[one.key], one) if one.key in found else one
    # Totals of a wildcard include those of the wildcards below it.
    outermost = [one for one in found.values() if not any(above in found for above in ancestors(one.key))]
    captures = sum(one.frequency.uri_m.value or 0 for one in outermost)
    meta = {"type": "MementoMap", "policy": "HxPx", "updated_at": format_iso(updated_at), "summary_of": str(kind)}
    filters = {"status": ["2xx"]} if kind is SummaryKind.CDX_SUMMARIZE else {}
    with Writer(target, Header(meta=meta | ({"filters": filters} if filters else {}))) as writer:
        for key in sorted(found):
            one = found[key]
            block = json.dumps({"datetime": {year: f"{n}~" for year, n in one.years.items()}}) if one.years else ""
            writer.write(Record(key, (), one.frequency, block))
    return SummaryMap(kind, len(found), captures)


def _joined(first: Holding, second: Holding) -> Holding:
    years = {year: first.years.get(year, 0) + second.years.get(year, 0) for year in {**first.years, **second.years}}
    frequency: Frequency = merge(first.frequency, second.frequency)
    return Holding(first.key, frequency, dict(sorted(years.items())))
