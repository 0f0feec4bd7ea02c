"""Statistics of an archive: the tables of Alam et al. (2019 and 2015).

Hides how they are counted: one pass over the indexes through the external sort of `sorting`, with the month of each
capture as label; then one pass over the sorted records, in which SURTs, keys and the nodes of the tree each come once
(`kernels.statistics`). Memory does not grow with the input. A map has lost times, statuses and single URI-Rs, so it
gives fewer tables; what is missing is None or empty, never guessed.

Names of tables: Alam et al. (2019) Tables 1, 4, 5, 6, 7, 8; Alam et al. (2015) Table 1 and equations 2 to 4.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from recollect.errors import FormatError, UsageError
from recollect.formats.detect import Kind, Source, find_sources, on_disk
from recollect.formats.forms import Asked
from recollect.formats.frequency import Count
from recollect.formats.ukvs import Header, open_map
from recollect.kernels import statistics as kernels
from recollect.maps.scope import Selection
from recollect.model import ProgressCallback
from recollect.profiles.compaction.fit import FEWEST_POINTS, fit_heaps, fit_hosts, fit_paths
from recollect.profiles.indexes.options import quarter_of_memory
from recollect.profiles.indexes.profile import InputCounts
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.scan import ScanOptions
from recollect.profiles.indexes.select import Filter
from recollect.profiles.statistics.distribution import Distribution, distribution_of
from recollect.profiles.statistics.maptotals import MapCounts, count_map, notes_of
from recollect.profiles.statistics.statscan import (
    CaptureCounts,
    CountingSink,
    Sample,
    SortedSurts,
    SurtCounts,
    read_all,
    tld_of,
)
from recollect.profiles.statistics.treestats import DepthRow, LevelRow
from recollect.uris import POLICIES

_MAPS = (Kind.MAP, Kind.PROFILE)
_TOP = 1000


@dataclass(frozen=True, slots=True)
class Overview:
    """How much there is; None where it is unknown. Times are 14 digits.

    Of a map, captures and URI-Rs are the totals of its outermost lines: a wildcard counts for all below it. A bound
    says how sure they are (`+` at least, `-` at most, `~` about). Keys and hosts are those in lines of their own.
    """

    captures: int | None
    uri_rs: int | None
    keys: int
    hosts: int
    ip_addresses: int
    gamma: float | None
    first_capture: str | None
    last_capture: str | None
    lines: int
    files: int
    bytes: int
    wildcards: int = 0
    captures_bound: str = ""
    uri_rs_bound: str = ""


@dataclass(frozen=True, slots=True)
class YearRow:
    """One year of Table 6; `_total` columns are cumulative, shares are fractions of the year's captures."""

    year: int
    uri_rs: int
    uri_rs_total: int
    uri_ms: int
    uri_ms_total: int
    duplicate_uri_rs: float
    gamma: float
    gamma_total: float
    status_shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class Fit:
    """Parameters of a fitted law; see `fit`."""

    a: float
    k: float


@dataclass(frozen=True, slots=True)
class Stats:
    """Everything `recollect stats` shows."""

    overview: Overview
    top_tlds: list[tuple[str, int]]
    top_uri_rs: list[tuple[str, int]]
    distribution: Distribution | None
    years: list[YearRow]
    depths: list[DepthRow]
    host_levels: list[LevelRow]
    path_levels: list[LevelRow]
    host_fit: Fit | None
    path_fit: Fit | None
    heaps: dict[str, float] | None
    policy_costs: dict[str, float]
    media_by_status: dict[str, dict[str, int]]
    top_hosts: list[tuple[str, int]] = field(default_factory=list)
    media_by_year: dict[int, dict[str, int]] = field(default_factory=dict)
    sample: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the tables of a map leave open, and where its totals differ from those in its header."""
    flawed: dict[str, int] = field(default_factory=dict)
    """Lines that are counted although a field of them cannot be read, by the reason."""

    def as_dict(self) -> dict[str, Any]:
        """For programs; the sample only if one was asked for, flawed lines only if there are any."""
        return {name: value for name, value in asdict(self).items() if name not in ("sample", "flawed") or value}


def stats(
    paths: Iterable[str | os.PathLike[str]],
    *,
    chosen: Selection | None = None,
    all_schemes: bool = False,
    asked: Asked | None = None,
    top: int = 10,
    sample: int = 0,
    seed: int = 0,
    threads: int | None = None,
    memory_limit: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Stats:
    """The tables of the papers for indexes, or as many as possible for one map; with a sample of SURTs by chance."""
    check_top(top)
    tally = InputCounts()
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    sources = find_sources(names, tally.note, asked=asked, on_ignored=tally.ignored.append)
    if not sources and tally.ignored:
        first = tally.ignored[0]
        raise FormatError("nothing to read", where=first.file, why=first.reason, hint=f"recollect inspect {first.file}")
    folder = None if temp_dir is None else os.fspath(temp_dir)
    seen = SortedSurts(top, Sample(sample, seed))
    with on_disk(sources, folder, tally.note) as settled:
        if any(source.kind in _MAPS for source in settled):
            one_map(settled, chosen)
            return _of_map(settled, tally, seen)
        store = RunStore(min((memory_limit or quarter_of_memory()) // 2, 512 << 20), folder)
        with closing(CountingSink(Filter(chosen or Selection()), store, folder)) as sink:
            read_all(settled, sink, ScanOptions(threads or 2, all_schemes=all_schemes), tally, progress)
            seen.read(store)
            return tables(sink.counts, seen.counts, settled, tally, seen.sample)


def check_top(top: int) -> None:
    """Raise if this number of top rows is not possible."""
    if not 1 <= top <= _TOP:
        raise UsageError("too many top rows", why=f"1 to {_TOP} can be asked for")


def tables(
    captured: CaptureCounts, seen: SurtCounts, sources: list[Source], tally: InputCounts, sample: Sample | None = None
) -> Stats:
    """All tables, from what was counted in indexes."""
    tree = seen.tree
    spread = distribution_of(seen.histogram)
    captures = spread.captures if spread else 0
    years = _years(seen.months, captured.shares)
    hosts, paths = tree.levels(kernels.OF_HOSTS), tree.levels(kernels.OF_PATHS)
    costs = {**tree.policy_keys(), **seen.domains, "URIR": seen.uri_rs}
    grid: dict[str, dict[str, int]] = {}
    for (media_type, status), count in sorted(captured.grid.items()):
        grid.setdefault(media_type, {})[str(status or "-")] = count
    by_year: dict[int, dict[str, int]] = {}
    for (year, media_type), count in sorted(captured.media_years.items()):
        if year:
            by_year.setdefault(year, {})[media_type] = count
    # What an index does not say of any capture is unknown, and no row of a table.
    if not any(status != "-" for row in grid.values() for status in row) and set(grid) <= {"-"}:
        grid = {}
    if all(set(row) <= {"-"} for row in by_year.values()):
        by_year = {}
    return Stats(
        _overview(Count(captures), Count(seen.uri_rs), seen, sources, tally),
        seen.top_tlds(),
        seen.top_uri_rs(),
        spread,
        years,
        tree.depths(),
        hosts,
        paths,
        *_fits(hosts, paths),
        _heaps(seen.months, years),
        {name: costs[name] / seen.uri_rs for name in POLICIES} if seen.uri_rs else {},
        grid,
        seen.hosts.rows(),
        by_year,
        _texts(sample),
        dict(tally.left_out),
        dict(tally.skipped),
        [str(problem) for problem in (*tally.problems, *tally.damaged)],
        flawed=dict(tally.flawed),
    )


def _texts(sample: Sample | None) -> list[str]:
    return sorted(surt.decode("utf-8", "replace") for surt in sample.surts) if sample else []


def _overview(captures: Count, uri_rs: Count, seen: SurtCounts, sources: list[Source], tally: InputCounts) -> Overview:
    exact = captures.value is not None and uri_rs.value and not captures.bound and not uri_rs.bound
    return Overview(
        captures.value,
        uri_rs.value,
        seen.tree.keys,
        seen.tree.hosts,
        seen.tree.addresses,
        (captures.value or 0) / (uri_rs.value or 1) if exact else None,
        f"{tally.first_time:014d}" if tally.first_time else None,
        f"{tally.last_time:014d}" if tally.last_time else None,
        tally.lines,
        len(sources),
        sum(source.size or 0 for source in sources),
        captures_bound=captures.bound,
        uri_rs_bound=uri_rs.bound,
    )


def _years(months: Any, shares: Counter[tuple[int, int]]) -> list[YearRow]:
    """Table 6. `months`: captures, URI-Rs seen first, and (in January) URI-Rs seen in the year."""
    by_year = months.reshape(3, -1, 12).sum(axis=2)
    counted = [
        (kernels.FIRST_YEAR + index, *(int(by_year[row, index]) for row in (2, 1, 0)))
        for index in np.flatnonzero(by_year[0]).tolist()
    ]
    return year_rows(counted, shares)


def year_rows(counted: Iterable[tuple[int, ...]], shares: Mapping[tuple[int, int], int]) -> list[YearRow]:
    """Table 6 of (year, URI-Rs, URI-Rs never seen before, URI-Ms); `shares`: (year, class of status) -> URI-Ms."""
    rows: list[YearRow] = []
    uri_rs_total = uri_ms_total = 0
    for year, uri_rs, fresh, uri_ms in counted:
        uri_rs_total += fresh
        uri_ms_total += uri_ms
        of_year = sum(count for (other, _), count in shares.items() if other == year)
        known = any(count for (other, kind), count in shares.items() if other == year and kind)
        rows.append(
            YearRow(
                year,
                uri_rs,
                uri_rs_total,
                uri_ms,
                uri_ms_total,
                (uri_rs - fresh) / uri_rs,
                uri_ms / uri_rs,
                uri_ms_total / uri_rs_total,
                {f"{kind}xx": shares.get((year, kind), 0) / of_year for kind in (2, 3, 4, 5)} if known else {},
            )
        )
    return rows


def _fits(hosts: list[LevelRow], paths: list[LevelRow]) -> tuple[Fit | None, Fit | None]:
    """The power laws of mean children over depth (Alam et al. 2019, section 5.3)."""
    found = []
    for law, levels in ((fit_hosts, hosts), (fit_paths, paths)):
        constants = law({int(row.level[1:]): row.mean_children for row in levels if row.parents})
        found.append(None if constants is None else Fit(*constants))
    return found[0], found[1]


def _heaps(months: Any, years: list[YearRow]) -> dict[str, float] | None:
    """Heaps' law over cumulative growth, by year as Alam et al. (2019), by month in a young archive."""
    points = [(row.uri_ms_total, row.uri_rs_total) for row in years]
    if len(points) < 3:
        grown = months[:, np.flatnonzero(months[0])].cumsum(axis=1)
        points = list(zip(grown[0].tolist(), grown[1].tolist(), strict=True))
    if len({m for m, _ in points}) < FEWEST_POINTS:
        return None
    factor, beta = fit_heaps([m for m, _ in points], [r for _, r in points])
    return {"K": factor, "beta": beta, "points": len(points)}


def one_map(sources: Sequence[Source], chosen: Selection | None) -> None:
    """Raise if there are more maps than one, or filters."""
    if chosen:
        raise UsageError("a map cannot be filtered", hint="give the indexes with these options")
    if len(sources) != 1:
        raise UsageError("one map at a time", hint="put maps together first: recollect merge MAP... -o OUT")


def _of_map(sources: list[Source], tally: InputCounts, seen: SortedSurts) -> Stats:
    counted = count_map(sources[0].path, tally.note, seen)
    with open_map(sources[0].path, lambda _problem: None) as opened:
        header = opened.header
    return tables_of_map(counted, header, seen.counts, sources, tally, seen.sample)


def tables_of_map(
    counted: MapCounts,
    header: Header,
    seen: SurtCounts,
    sources: list[Source],
    tally: InputCounts,
    sample: Sample | None = None,
) -> Stats:
    """The statistics of one map."""
    tree = seen.tree
    tally.lines = counted.lines
    total = counted.total
    for name, held in counted.of_tops().items():
        if name + b",*" in counted.wide:
            seen.tlds[tld_of(name)] = held.uri_m.value or 0
    known = total.uri_r.value if not total.uri_r.bound else None
    hosts, paths = tree.levels(kernels.OF_HOSTS), tree.levels(kernels.OF_PATHS)
    # With wildcards, the keys of the archive are not all here, and a share of them would be wrong.
    costs = {} if counted.wildcards else tree.policy_keys()
    overview = _overview(total.uri_m, total.uri_r, seen, sources, tally)
    return Stats(
        replace(overview, wildcards=counted.wildcards),
        seen.top_tlds(),
        seen.top_uri_rs(),
        None,
        [],
        tree.depths(),
        hosts,
        paths,
        *_fits(hosts, paths),
        None,
        {name: count / known for name, count in costs.items()} if known else {},
        {},
        seen.hosts.rows(),
        {},
        _texts(sample),
        {},
        dict(tally.skipped),
        [str(problem) for problem in (*tally.problems, *tally.damaged)],
        notes=notes_of(counted, header),
    )
