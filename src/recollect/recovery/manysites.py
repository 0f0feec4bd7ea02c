"""Recoveries of many sites together: the tables and tests of McCown (2007, chapter VII).

A site is a folder with the lost site in it (`lost`, `lost.warc.gz`, `lost.wacz` ...) and recoveries of it beside, each
in a folder named by its policy or archive. A folder that is a recovery itself counts, too: against all that is known of
its site, which is what came back and what is linked or listed and did not.

Hides: reading, and the formulas of the tables. Tests need SciPy (the extra `stats`); without it the tables have none.

    table 16   each site: resources by type, difference vector, almost identical text
    table 17   each site and recovery: recovered, added, requests, efficiency (and 18)
    table 19   the same over all sites, by recovery, with Wilcoxon's matched-pairs signed-ranks tests
    table 20   success levels s1 to s5 over all recoveries
    factors    which resources came back: chi-square tests of dynamic and deep addresses, and the regression of VII.5.3
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from urllib.parse import urlsplit

from recollect.errors import UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.links import read_document
from recollect.recovery.measure import Measurement, Resource, extract_text, measure
from recollect.recovery.snapshots import Snapshot, open_snapshot
from recollect.recovery.store import FOLDER, Store

ESTIMATED = "recovery"
"""The name of a recovery that is measured against what is known of its site."""
_BASE = "http://site.invalid"
DEEP = 3  # folders; more is deep (section VII.3)
FACTORS = ("internal backlinks", "hops", "path depth", "query parameters", "log website size")


@dataclass(frozen=True, slots=True)
class Observation:
    """One resource of a lost site: did it come back, and what is known of its address and its place in the site."""

    uri: str
    recovered: bool
    backlinks: int = 0
    hops: int = 0
    site_size: int = 1

    @property
    def depth(self) -> int:
        return max(0, urlsplit(self.uri).path.count("/") - 1)

    @property
    def parameters(self) -> int:
        query = urlsplit(self.uri).query
        return query.count("&") + 1 if query else 0

    @property
    def factors(self) -> tuple[float, ...]:
        size = math.log(self.site_size)
        return float(self.backlinks), float(self.hops), float(self.depth), float(self.parameters), size


@dataclass(frozen=True, slots=True)
class Measured:
    """One recovery of one site."""

    site: str
    name: str
    result: Measurement
    textual: int = 0  # resources with text that came back
    observations: tuple[Observation, ...] = ()

    @property
    def recovered_share(self) -> float:
        return 100 * (1 - self.result.difference.missing)

    @property
    def added_share(self) -> float:
        return 100 * self.result.difference.added

    @property
    def almost_identical(self) -> float | None:
        """The share of changed textual resources whose text is similar."""
        return 100 * len(self.result.similar) / self.textual if self.textual else None


def measure_site(folder: str) -> list[Measured]:
    """Every recovery in a folder; raises UsageError where there is none."""
    path = Path(folder)
    if (path / FOLDER / "journal.db").is_file():
        return [_estimated(path)]
    lost = next((one for one in sorted(path.glob("lost*")) if one.exists()), None)
    if lost is None:
        hint = "a site is a folder with `lost` and its recoveries in it, or the folder of a recovery"
        raise UsageError("no lost site here", where=folder, hint=hint)
    others = [one for one in sorted(path.iterdir()) if one != lost and (one.is_dir() or _is_package(one))]
    before = open_snapshot(str(lost))
    links = _links(before)
    found = [_measured(path.name, one, before, links) for one in others]
    if not found:
        raise UsageError("no recovery here", where=folder, hint=f"recollect recover URL -o {folder}/exhaustive")
    return found


def _is_package(path: Path) -> bool:
    return path.name.endswith((".warc", ".warc.gz", ".wacz"))


def _measured(site: str, path: Path, before: Snapshot, links: dict[str, tuple[int, int]]) -> Measured:
    after = open_snapshot(str(path))
    result = measure(before.resources, after.resources, recoverable=after.recoverable, requests=after.requests)
    back = {resource.uri for resource in after.resources}
    size = len(before.resources)
    seen = tuple(
        Observation(one.uri, one.uri in back, *links.get(one.uri, (0, 0)), site_size=max(size, 1))
        for one in before.resources
    )
    changed = set(result.changed)
    by_uri = {one.uri: one for one in before.resources}
    textual = sum(extract_text(by_uri[uri].read(), by_uri[uri].media_type) is not None for uri in changed)
    return Measured(site, path.name.partition(".")[0], result, textual, seen)


def _links(site: Snapshot) -> dict[str, tuple[int, int]]:
    """Address -> internal backlinks and hops from the front page, by the links of the lost site itself."""
    targets: dict[str, set[str]] = {}
    known = {one.uri for one in site.resources}
    for one in site.resources:
        document = read_document(one.read(), _BASE + one.uri, one.media_type) if "html" in one.media_type else None
        links = document.links if document is not None else ()
        paths = {visit_key(link.uri).removeprefix(_BASE) for link in links if link.uri.startswith(_BASE)}
        targets[one.uri] = {path for path in paths if path in known and path != one.uri}
    backlinks = {uri: sum(uri in some for some in targets.values()) for uri in known}
    hops = {"/": 0} if "/" in known else dict.fromkeys(sorted(known)[:1], 0)
    front = list(hops)
    while front:
        nearest = [t for uri in front for t in sorted(targets.get(uri, ())) if t not in hops]
        far = max(hops.values()) + 1
        hops.update(dict.fromkeys(nearest, far))
        front = list(dict.fromkeys(nearest))
    furthest = max(hops.values(), default=0) + 1
    return {uri: (backlinks[uri], hops.get(uri, furthest)) for uri in known}


def _estimated(path: Path) -> Measured:
    """A recovery against what is known of its site."""
    snapshot = open_snapshot(str(path))
    with Store.open(path) as store:
        missing = [m.uri for m in store.missing()]
        found_on = {key: parent for key, (parent, _) in store.discovery().items()}
        hops = {r.uri: _hops(r.key, found_on) for r in store.recovered(redirects=False)}
        hops |= {m.uri: _hops(m.key, found_on) for m in store.missing()}
    gone = [Resource(uri, "", "", lambda: b"") for uri in missing]
    back = {one.uri: one for one in snapshot.resources}
    result = measure([*back.values(), *gone], back.values(), requests=snapshot.requests)
    size = len(back) + len(gone)
    seen = [Observation(uri, uri not in missing, 0, far, max(size, 1)) for uri, far in sorted(hops.items())]
    return Measured(path.name, ESTIMATED, result, 0, tuple(seen))


def _hops(key: str, found_on: dict[str, str | None]) -> int:
    count, seen = 0, {key}
    parent = found_on.get(key)
    while parent is not None and parent not in seen:
        seen.add(parent)
        count += 1
        parent = found_on.get(parent)
    return count


# Tables --------------------------------------------------------------------------------------------------------------

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a name for its file, a title, the columns, and the rows as text."""

    name: str
    title: str
    columns: Row
    rows: tuple[Row, ...]

    def to_tsv(self) -> str:
        return "".join("\t".join(row) + "\n" for row in (self.columns, *self.rows))


def tables(measured: Sequence[Measured]) -> list[Table]:
    """All tables, in order; those that need two recoveries of a site, or SciPy, are left out without."""
    found = [_table_16(measured), _table_17(measured), _table_19(measured), _table_20(measured)]
    return [table for table in (*found, *_tests(measured)) if table.rows]


def _table_16(measured: Sequence[Measured]) -> Table:
    columns = (
        "site",
        "recovery",
        "total",
        "html",
        "images",
        "other",
        "changed",
        "missing",
        "added",
        "almost identical",
    )

    def row(one: Measured) -> Row:
        types = [one.result.by_type.get(kind, (0, 0)) for kind in ("html", "images", "other")]
        total = (sum(lost for lost, _ in types), sum(back for _, back in types))
        vector = one.result.difference
        parts = (f"{value:.3f}" for value in (vector.changed, vector.missing, vector.added))
        alike = one.almost_identical
        return (one.site, one.name, *map(_pair, (total, *types)), *parts, "" if alike is None else f"{alike:.0f}%")

    rows = sorted(measured, key=lambda one: (one.recovered_share, one.site, one.name))
    return Table(
        "table-16", "Resources of each site, lost/recovered, and its difference vector", columns, tuple(map(row, rows))
    )


def _pair(counts: tuple[int, int]) -> str:
    lost, back = counts
    return f"{lost}/{back} {100 * back / lost:.0f}%" if lost else "0/0"


_MEASURES: tuple[tuple[str, Callable[[Measured], float | None]], ...] = (
    ("recovered (%)", lambda one: one.recovered_share),
    ("added (%)", lambda one: one.added_share),
    ("requests", lambda one: None if one.result.requests is None else float(one.result.requests)),
    ("efficiency", lambda one: one.result.efficiency),
    ("efficiency without added", lambda one: one.result.efficiency_without_added),
)


def _table_17(measured: Sequence[Measured]) -> Table:
    columns = ("site", "recovery", *(name for name, _ in _MEASURES))
    rows = ((one.site, one.name, *(_number(value(one)) for _, value in _MEASURES)) for one in measured)
    return Table("table-17-18", "Each recovery of each site", columns, tuple(sorted(rows)))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def describe(values: Sequence[float]) -> Row:
    """Mean, median, standard deviation of a sample, least and greatest."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return tuple(
        _number(v) for v in (statistics.mean(values), statistics.median(values), spread, min(values), max(values))
    )


def _table_19(measured: Sequence[Measured]) -> Table:
    columns = ("measure", "recovery", "sites", "mean", "median", "std", "min", "max")
    rows = []
    for name, value in _MEASURES:
        for recovery in sorted({one.name for one in measured}):
            values = [v for one in measured if one.name == recovery and (v := value(one)) is not None]
            if values:
                rows.append((name, recovery, str(len(values)), *describe(values)))
    return Table("table-19", "Statistics of recoveries over all sites", columns, tuple(rows))


def _table_20(measured: Sequence[Measured]) -> Table:
    columns = ("level", "mean", "median", "std", "min", "max", "sites with 0")
    rows = []
    sites = {one.site for one in measured}
    for level in ("s1", "s2", "s3", "s4", "s5") if measured else ():
        values = [one.result.success[level] for one in measured]
        perfect = {one.site for one in measured if one.result.success[level] == 0}
        rows.append((level, *describe(values), f"{100 * len(perfect) / len(sites):.0f}%"))
    return Table("table-20", "Success levels over all recoveries (0 is best)", columns, tuple(rows))


def _tests(measured: Sequence[Measured]) -> Iterator[Table]:
    from recollect.recovery import significance

    if not significance.AVAILABLE:
        return
    rows = []
    for name, value in _MEASURES[3:]:
        for first, second in combinations(sorted({one.name for one in measured}), 2):
            pairs = _paired(measured, first, second, value)
            test = significance.wilcoxon(pairs)
            if test is not None:
                rows.append((name, first, second, str(len(pairs)), _number(test.statistic), _p(test.p)))
    columns = ("measure", "recovery", "and", "sites", "W", "p")
    yield Table("wilcoxon", "Wilcoxon matched-pairs signed-ranks tests", columns, tuple(rows))
    seen = [one for recovery in measured for one in recovery.observations]
    rows = []
    for name, is_so in (("query string", _is_dynamic), (f"deeper than {DEEP} folders", _is_deep)):
        counts = [
            sum(is_so(o) == so and o.recovered == back for o in seen) for so in (True, False) for back in (True, False)
        ]
        chi = significance.chi_square((counts[0], counts[1]), (counts[2], counts[3]))
        if chi is not None:
            shares = (_share(counts[0], counts[1]), _share(counts[2], counts[3]))
            rows.append((name, str(len(seen)), *shares, _number(chi.statistic), _p(chi.p)))
    columns = ("address", "resources", "recovered with", "recovered without", "chi-square", "p")
    yield Table("chi-square", "Addresses that are recovered less", columns, tuple(rows))
    model = significance.regression([o.factors for o in seen], [float(o.recovered) for o in seen], FACTORS)
    if model is not None:
        fit = [("R-squared", _number(model.r_squared), "")]
        fitted = [(name, _number(estimate), _p(p)) for name, estimate, p in model.parameters]
        title = f"Regression of recovery on factors ({len(seen)} resources)"
        yield Table("regression", title, ("variable", "estimate", "p"), (*fitted, *fit))


def _is_dynamic(one: Observation) -> bool:
    return bool(one.parameters)


def _is_deep(one: Observation) -> bool:
    return one.depth > DEEP


def _share(yes: int, no: int) -> str:
    return f"{100 * yes / (yes + no):.0f}%" if yes + no else ""


def _paired(
    measured: Sequence[Measured], first: str, second: str, value: Callable[[Measured], float | None]
) -> list[tuple[float, float]]:
    by_name = {(one.site, one.name): value(one) for one in measured}
    found = []
    for site in sorted({one.site for one in measured}):
        left, right = by_name.get((site, first)), by_name.get((site, second))
        if left is not None and right is not None:
            found.append((left, right))
    return found


def _p(value: float) -> str:
    return "< .0001" if value < 0.0001 else f"{value:.4f}"
