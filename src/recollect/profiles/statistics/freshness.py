"""How fast a map ages: the recall of a map of an earlier year for what was captured later, from an index's own dates.

Hides: the replay of an archive's past. The map of year Y under a policy holds a key if one of its captures up to the
end of Y has the policy's key; asked for are the keys of each later year, each once a year. So one pass over the keys,
with the first year of each policy's key, gives the recall for all pairs of years (Alam et al. 2016, section 5.2, claim
that profiles of short policies are robust against age). Compacted maps are made for each year, and looked up.

`growth` is the share of the keys at the end of a year that came in this year, by the depths of `maps.growth`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from recollect.errors import BadURI, FormatError
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, MapFile, Record, Writer, lenient
from recollect.maps.lookup import open_for_many
from recollect.maps.map import Map
from recollect.model import Answer, Progress, ProgressCallback
from recollect.profiles.compaction.budget import Budget, compact_by_budget
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.charts import Axis, Series, curves, percent
from recollect.quantities import counted, format_size
from recollect.uris import policy_key

POLICIES = ("HxPx", "HxP1", "HxP0", "H3P0", "DDom")
_SAMPLE = 20_000  # lookups of a year in a compacted map


@dataclass(frozen=True, slots=True)
class Pair:
    """A map and a later year: how many keys were captured in that year, and how many of them the map finds."""

    map: str
    """A policy, a budget or the name of a map."""
    year: int
    later: int
    asked: int
    found: int

    @property
    def age(self) -> int:
        return self.later - self.year

    @property
    def recall(self) -> float:
        return self.found / self.asked if self.asked else 0.0


@dataclass
class Freshness:
    """The recall of maps by their age."""

    keys: int = 0
    years: tuple[int, ...] = ()
    pairs: list[Pair] = field(default_factory=list)
    growth: dict[str, float] = field(default_factory=dict)
    """Median share of keys that are new after a year, by depth."""

    def by_age(self) -> dict[str, dict[int, float]]:
        """For each map the recall by its age in years, over all pairs of years together."""
        asked: Counter[tuple[str, int]] = Counter()
        found: Counter[tuple[str, int]] = Counter()
        for pair in self.pairs:
            asked[pair.map, pair.age] += pair.asked
            found[pair.map, pair.age] += pair.found
        table: dict[str, dict[int, float]] = {}
        for name, age in sorted(asked, key=lambda one: one[1]):
            table.setdefault(name, {})[age] = found[name, age] / asked[name, age]
        return {name: table[name] for name in dict.fromkeys(pair.map for pair in self.pairs)}

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "keys": self.keys,
            "years": list(self.years),
            "growth": {name: round(share, 4) for name, share in self.growth.items()},
            "recall_by_age": {
                name: {str(age): round(recall, 4) for age, recall in ages.items()}
                for name, ages in self.by_age().items()
            },
            "pairs": [
                {
                    "map": pair.map,
                    "year": pair.year,
                    "later": pair.later,
                    "asked": pair.asked,
                    "found": pair.found,
                    "recall": round(pair.recall, 4),
                }
                for pair in self.pairs
            ],
        }


def freshness(
    paths: Iterable[str | os.PathLike[str]],
    *,
    policies: Sequence[str] = POLICIES,
    budgets: Sequence[int] = (),
    maps: Sequence[str | os.PathLike[str]] = (),
    temp_dir: str | None = None,
    progress: ProgressCallback | None = None,
) -> Freshness:
    """Measure how maps of an archive age, from its indexes; `budgets` are bytes of compacted maps, `maps` are existing
    ones, which are asked for what was captured in the years after theirs."""
    report = progress or (lambda _progress: None)
    with TemporaryDirectory(prefix="recollect-", dir=temp_dir) as folder:
        target = str(Path(folder, "years.ukvs"))
        profile([os.fspath(path) for path in paths], target, by=("year",), temp_dir=temp_dir, progress=progress)
        keys = list(_keys(target))
    if len({year for _, years in keys for year in years}) < 2:
        raise FormatError("no two years to compare", why="all captures are of one year, or have no date")
    result = Freshness(keys=len(keys), years=tuple(sorted({year for _, years in keys for year in years})))
    for number, policy in enumerate(policies):
        report(Progress("policies", number, len(policies), "policies"))
        result.pairs += _of_policy(keys, result.years, policy)
    result.growth = _growth(keys, result.years)
    with TemporaryDirectory(prefix="recollect-", dir=temp_dir) as folder:
        for budget in budgets:
            result.pairs += _of_budget(keys, result.years, budget, Path(folder), report)
    for name in maps:
        result.pairs += _of_map(keys, result.years, os.fspath(name))
    return result


def _keys(path: str) -> Iterator[tuple[bytes, tuple[int, ...]]]:
    with MapFile(path) as file:
        for record in file.records():
            block = lenient.loads(record.json.encode("utf-8", "surrogateescape")) if record.json else {}
            periods = block.get("datetime") if isinstance(block, dict) else None
            years = sorted({int(one[:4]) for one in periods if one[:4].isdigit()}) if isinstance(periods, dict) else []
            if years:
                yield record.key, tuple(years)


def _of_policy(keys: Sequence[tuple[bytes, tuple[int, ...]]], years: Sequence[int], policy: str) -> Iterator[Pair]:
    """All pairs of years under a policy."""
    short = [(_short(key, policy), found) for key, found in keys]
    first: dict[bytes, int] = {}
    for key, found in short:
        first[key] = min(found[0], first.get(key, found[0]))
    asked: Counter[int] = Counter()
    by_first: Counter[tuple[int, int]] = Counter()
    for key, found in short:
        for year in found:
            asked[year] += 1
            by_first[first[key], year] += 1
    for place, year in enumerate(years):
        for later in years[place + 1 :]:
            known = sum(by_first[begin, later] for begin in years if begin <= year)
            yield Pair(policy, year, later, asked[later], known)


def _short(key: bytes, policy: str) -> bytes:
    try:
        return key if policy == "HxPx" else policy_key(key, policy)
    except BadURI:
        return key


def _growth(keys: Sequence[tuple[bytes, tuple[int, ...]]], years: Sequence[int]) -> dict[str, float]:
    """The median share of keys that are new after a year, by depth; without the first year, of which all is new."""
    new: dict[str, Counter[int]] = {}
    for depth, policy in (("host", "HxP0"), ("path", "HxP1"), ("key", "HxPx")):
        first: dict[bytes, int] = {}
        for key, found in keys:
            short = _short(key, policy)
            first[short] = min(found[0], first.get(short, found[0]))
        new[depth] = Counter(found[0] for key, found in keys if first[_short(key, policy)] == found[0])
    total: Counter[int] = Counter(found[0] for _, found in keys)
    shares: dict[str, float] = {}
    for depth, counts in new.items():
        held = [sum(total[one] for one in years if one <= year) for year in years[1:]]
        shares[depth] = median(counts[year] / all_keys for year, all_keys in zip(years[1:], held, strict=True))
    return shares


def _of_budget(
    keys: Sequence[tuple[bytes, tuple[int, ...]]],
    years: Sequence[int],
    budget: int,
    folder: Path,
    report: ProgressCallback,
) -> Iterator[Pair]:
    for number, year in enumerate(years[:-1]):
        report(Progress(f"maps of {format_size(budget)}", number, len(years), "years"))
        whole, small = folder / "whole.ukvs", folder / "small.ukvs"
        with Writer(whole, Header(meta={"policy": "HxPx"})) as writer:
            for key, found in keys:
                count = sum(one <= year for one in found)
                if count:
                    writer.write(Record(key, (), Frequency.exact(count, 1), ""))
        compact_by_budget(whole, small, Budget(max_bytes=budget, sets=True))
        yield from _looked_up(str(small), format_size(budget), keys, year, [one for one in years if one > year])


def _of_map(keys: Sequence[tuple[bytes, tuple[int, ...]]], years: Sequence[int], path: str) -> Iterator[Pair]:
    with Map.open(path) as opened:
        until = opened.scope.complete_until
    if until is None:
        raise FormatError("the map has no date", where=path, hint="profile --updated-at")
    later = [one for one in years if one > until.year]
    yield from _looked_up(path, Path(path).name, keys, until.year, later)


def _looked_up(
    path: str, name: str, keys: Sequence[tuple[bytes, tuple[int, ...]]], year: int, later: Sequence[int]
) -> Iterator[Pair]:
    opened = open_for_many(path)
    try:
        for one in later:
            asked = [key for key, found in keys if one in found]
            step = max(1, len(asked) // _SAMPLE)
            drawn = [key.decode("utf-8", "surrogateescape") for key in asked[::step]]
            found = sum(answer.answer == Answer.YES for answer in opened.lookup_many(drawn))
            yield Pair(name, year, one, len(drawn), found)
    finally:
        opened.close()


def page_of(result: Freshness, title: str) -> str:
    """A page with the table and the figure."""
    table = result.by_age()
    ages = sorted({age for row in table.values() for age in row})
    series = [Series(name, [(float(age), row[age]) for age in sorted(row)]) for name, row in table.items()]
    x = Axis("age of the map in years", 0.0, float(max(ages, default=1)))
    y = Axis("recall", 0.0, 1.0, words=percent)
    figure = curves(series, x, y, title="Recall of a map by its age") if series else ""
    head = "".join(f"<th>{age} {'year' if age == 1 else 'years'}</th>" for age in ages)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>"
        + "".join(f"<td>{row[age]:.1%}</td>" if age in row else "<td></td>" for age in ages)
        + "</tr>"
        for name, row in table.items()
    )
    colours = "".join(
        f'<li><span class="key s{place % 8}"></span>{escape(name)}</li>' for place, name in enumerate(table)
    )
    growth = ", ".join(f"{depth} {share:.1%}" for depth, share in result.growth.items())
    style = Path(__file__).with_name("report.css").read_text("utf-8")
    span = f"{result.years[0]} to {result.years[-1]}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}: freshness</title><style>{style}</style>'
        f"</head><body><main><h1>How maps of {escape(title)} age</h1>"
        f'<p class="lead">{counted(result.keys, "key")} captured from {span}. A map as it was at the end of a year is '
        "asked for the keys that were captured in a later year; recall is the share of them that it finds.</p>"
        f'<section><h2>Recall by age</h2>{figure}<ul class="keys">{colours}</ul>'
        f'<div class="wide"><table><thead><tr><th>map</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"</section><section><h2>Growth</h2><p>Median share of the keys that are new after a year: {growth} (new host; "
        "new host or first path segment; any new key). Routing discounts the no of an older map by these shares.</p>"
        "</section>"
        "</main></body></html>\n"
    )
