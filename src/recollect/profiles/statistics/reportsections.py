"""The sections of the report: numbers to HTML, each figure with its data as a table beneath.

Hides: words and layout. Pure. A section whose data are missing is an empty text; the page leaves it out. Names of
figures and tables are those of Alam et al. (2019), costs of policies those of Alam et al. (2015).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from recollect.datetimes import format_day
from recollect.profiles.compaction.tradeoff import Point, Tradeoff
from recollect.profiles.statistics.charts import Axis, Series, curves, number, percent, ranked, stacked
from recollect.profiles.statistics.overlap import Overlap
from recollect.profiles.statistics.stats import Overview, Stats
from recollect.quantities import counted

_KINDS = 7
_LEAST_WRONG = 1e-4  # share of lookups at which a logarithmic axis of wrong answers ends
_STATUSES = ("2xx", "3xx", "4xx", "5xx", "none")


def page(name: str, style: str, found: Stats, parts: Sequence[tuple[str, str]], is_map: bool, version: str) -> str:
    """The whole page; `parts` are (title, HTML)."""
    names = [(f"part{place}", title) for place, (title, _) in enumerate(parts)]
    menu = "".join(f'<a href="#{anchor}">{escape(title)}</a>' for anchor, title in names)
    body = "".join(
        f'<section id="{anchor}"><h2>{escape(title)}</h2>{html}</section>'
        for (anchor, title), (_, html) in zip(names, parts, strict=True)
    )
    less = " A map has lost times and statuses: a report about the indexes says more." if is_map else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(name)}: holdings</title><style>{style}</style>'
        f"</head><body><main><h1>{escape(name)}</h1>"
        f'<p class="lead">{_lead(found.overview)}{less}</p>{_tiles(found.overview)}{_notes(found)}'
        f"<nav>{menu}</nav>{body}"
        f"<footer>Made by Recollect {escape(version)}. The figures are those of the papers (MementoMap, JCDL 2019; CDX "
        "summarization, TPDL 2015), from this archive's own index.</footer></main></body></html>\n"
    )


def _lead(overview: Overview) -> str:
    text = f"What this archive holds, from {counted(overview.lines, 'line')} of {counted(overview.files, 'file')}"
    if overview.first_capture and overview.last_capture:
        text += f", captured between {format_day(overview.first_capture)} and {format_day(overview.last_capture)}"
    return text + "."


def _notes(found: Stats) -> str:
    return "".join(f'<p class="say">Note: {escape(note)}.</p>' for note in found.notes)


def _tiles(overview: Overview) -> str:
    tiles = [
        (_total(overview.captures, overview.captures_bound), "captures (URI-M)"),
        (_total(overview.uri_rs, overview.uri_rs_bound), "different URIs (URI-R)"),
        (f"{overview.gamma:.2f}" if overview.gamma is not None else "unknown", "captures of a URI (γ)"),
        (_total(overview.keys, "+" if overview.wildcards else ""), "keys without query"),
        (_total(overview.hosts, "+" if overview.wildcards else ""), "hosts"),
    ]
    if overview.wildcards:
        tiles.append((f"{overview.wildcards:,}", "wildcards, which count for all below them"))
    return (
        '<div class="tiles">'
        + "".join(f"<div><b>{value}</b><span>{text}</span></div>" for value, text in tiles)
        + "</div>"
    )


def _total(value: int | None, bound: str) -> str:
    return "unknown" if value is None else f"{value:,}{bound}"


def growth(found: Stats) -> tuple[str, str] | None:
    """Figure 6 and Table 6."""
    if not found.years:
        return None
    uri_ms = Series("URI-Ms", [(row.year, row.uri_ms_total) for row in found.years])
    uri_rs = Series("URI-Rs", [(row.year, row.uri_rs_total) for row in found.years])
    x = Axis(
        "year", found.years[0].year, max(found.years[-1].year, found.years[0].year + 1), words=lambda v: f"{v:.0f}"
    )
    y = Axis("in all, at the end of the year", 0, _nice_limit(found.years[-1].uri_ms_total))
    law = ""
    if found.heaps is not None:
        law = (
            f'<p class="say">Growth follows URI-R = K · URI-M<sup>β</sup> with K = {found.heaps["K"]:.3f} and '
            f"β = {found.heaps['beta']:.3f} (Heaps' law): β near 1 means mostly new URIs, a small β mostly visits "
            "again.</p>"
        )
    head = ("year", "URI-R", "URI-R, total", "URI-M", "URI-M, total", "seen before", "γ", "γ, total")
    rows = [
        (
            row.year,
            row.uri_rs,
            row.uri_rs_total,
            row.uri_ms,
            row.uri_ms_total,
            percent(row.duplicate_uri_rs),
            f"{row.gamma:.2f}",
            f"{row.gamma_total:.2f}",
        )
        for row in found.years
    ]
    chart = curves([uri_ms, uri_rs], x, y, title="Growth of captures and URIs", area=True)
    return "Growth", chart + law + _table(head, rows, "The years as a table")


def statuses(found: Stats) -> tuple[str, str] | None:
    """The status columns of Table 6."""
    if not any(row.status_shares for row in found.years):
        return None
    columns, rows = [], []
    for row in (year for year in found.years if year.status_shares):
        shares = [row.status_shares.get(kind, 0.0) for kind in _STATUSES[:-1]]
        shares.append(max(0.0, 1 - sum(shares)))
        columns.append((str(row.year), shares))
        rows.append((row.year, *(percent(round(share, 4)) for share in shares)))
    y = Axis("share of the year's captures", 0, 1, words=percent)
    chart = stacked(columns, _STATUSES, y, title="Status codes by year")
    return "Status codes over time", chart + _table(("year", *_STATUSES), rows, "The shares as a table")


def media(found: Stats) -> tuple[str, str] | None:
    """Media types by year, and the grid of types and statuses."""
    if not found.media_by_year:
        return None
    totals: Counter[str] = Counter()
    for counts in found.media_by_year.values():
        totals.update(counts)
    kinds = [kind for kind, _ in totals.most_common(_KINDS)]
    others = len(totals) > len(kinds)
    names = [*kinds, "others"] if others else kinds
    columns, rows = [], []
    for year, counts in sorted(found.media_by_year.items()):
        all_of_year = sum(counts.values())
        values = [counts.get(kind, 0) for kind in kinds]
        values += [all_of_year - sum(values)] if others else []
        columns.append((str(year), [value / all_of_year for value in values]))
        rows.append((year, *values))
    y = Axis("share of the year's captures", 0, 1, words=percent)
    chart = stacked(columns, names, y, title="Media types by year")
    return "Media types over time", chart + _table(("year", *names), rows, "Captures by year and type") + _grid(found)


def _grid(found: Stats) -> str:
    classes = sorted({status[0] for row in found.media_by_status.values() for status in row})
    rows: list[tuple[str, list[int]]] = []
    for kind, row in found.media_by_status.items():
        by_class = [sum(count for status, count in row.items() if status[0] == first) for first in classes]
        rows.append((kind, [sum(by_class), *by_class]))
    rows.sort(key=lambda row: -row[1][0])
    head = ("media type", "captures", *("none" if first == "-" else f"{first}xx" for first in classes))
    return _table(head, [(kind, *counts) for kind, counts in rows[:60]], "Media types and statuses")


def places(found: Stats) -> tuple[str, str] | None:
    """TLDs, hosts and URIs with most captures (Tables 1 and 5)."""
    if not found.top_tlds:
        return None
    most = Axis("captures", 0, max(count for _, count in found.top_tlds), words=lambda v: f"{v:,.0f}")
    tlds = ranked(found.top_tlds, most, title="Top-level domains by captures", left=90, width=400)
    hosts = [(host_name(host), count) for host, count in found.top_hosts]
    html = f'<div class="two"><div><h3>Top-level domains</h3>{tlds}</div>'
    if hosts:
        host_axis = Axis("captures", 0, max(count for _, count in hosts) or 1, words=lambda v: f"{v:,.0f}")
        html += f"<div><h3>Hosts</h3>{ranked(hosts, host_axis, title='Hosts by captures', left=190, width=460)}</div>"
    html += "</div>" + _table(("top-level domain", "captures"), found.top_tlds, "Top-level domains as a table")
    html += _table(("host", "captures"), hosts, "Hosts as a table")
    return "Where: domains and hosts", html + _table(
        ("URI-R (SURT)", "captures"), found.top_uri_rs, "URIs captured most often"
    )


def distribution(found: Stats) -> tuple[str, str] | None:
    """Figure 5 and Table 4."""
    spread = found.distribution
    if spread is None:
        return None
    x = Axis("share of URIs, least captured first", 0, 1, words=percent)
    y = Axis("share of captures", 0, 1, words=percent)
    lorenz = Series("captures", spread.lorenz)
    equal = Series("if all URIs had equally many", [(0.0, 0.0), (1.0, 1.0)])
    chart = curves([lorenz, equal], x, y, title="Lorenz curve of captures over URIs", height=340, area=True)
    rows = [
        ("URI-Rs", f"{spread.uri_rs:,}"),
        ("captures", f"{spread.captures:,}"),
        ("most captures of one URI", f"{spread.maximum:,}"),
        ("median", f"{spread.median:g}"),
        ("fewest", f"{spread.minimum:,}"),
        ("mean (γ)", f"{spread.mean:.3f}"),
        ("standard deviation", f"{spread.standard_deviation:.3f}"),
        ("Gini coefficient", f"{spread.gini:.3f}"),
        ("Pareto break point", spread.pareto_text),
    ]
    captures, uris = spread.pareto
    say = (
        f'<p class="say">The most captured {uris:.0f}% of the URIs have {captures:.0f}% of the captures; the Gini '
        f"coefficient is {spread.gini:.2f} (0: all alike, 1: one has everything).</p>"
    )
    points = [(percent(a), percent(b)) for a, b in spread.lorenz[:: max(1, len(spread.lorenz) // 20)]]
    tables = _table(("", ""), rows, "The distribution in numbers") + _table(
        ("URIs", "captures"), points, "The curve as a table"
    )
    return "How captures are spread", chart + say + tables


def shape(found: Stats) -> tuple[str, str] | None:
    """Tables 7 and 8 and Figure 7."""
    if not found.host_levels and not found.path_levels:
        return None
    html = '<p class="say">How much smaller a map gets if everything deeper than a level is rolled up there.</p>'
    deepest = max(len(found.host_levels), len(found.path_levels), 2)
    series = [
        Series(
            name,
            [(int(row.level[1:]), row.reduction) for row in levels],
            titles=[f"{row.level}: {percent(row.reduction)}" for row in levels],
        )
        for name, levels in (("hosts", found.host_levels), ("paths", found.path_levels))
        if levels
    ]
    x = Axis(
        "depth",
        0 if found.path_levels and found.path_levels[0].level.endswith("0") else 1,
        min(deepest, 12),
        words=lambda v: f"{v:.0f}",
    )
    y = Axis("keys saved", 0, 1, words=percent)
    html += curves(series, x, y, title="Reduction by depth of host and path")
    laws = [
        f"{name}: a = {fit.a:.3f}, k = {fit.k:.3f}"
        for name, fit in (("hosts", found.host_fit), ("paths", found.path_fit))
        if fit is not None
    ]
    if laws:
        html += (
            '<p class="say">Mean number of children at depth d, fitted as a · (d − 1)<sup>−k</sup> for hosts and '
            f"a · d<sup>−k</sup> for paths; {'; '.join(laws)}.</p>"
        )
    head = (
        "level",
        "nodes",
        "keys",
        "max",
        "mean",
        "median",
        "deviation",
        "RedQ",
        "parents",
        "children",
        "mean children",
    )
    rows = [
        (
            row.level,
            row.count,
            row.keys,
            row.maximum,
            f"{row.mean:.2f}",
            f"{row.median:g}",
            f"{row.standard_deviation:.2f}",
            f"{row.reduction:.4f}",
            row.parents,
            row.children,
            f"{row.mean_children:.2f}",
        )
        for row in (*found.host_levels, *found.path_levels)
    ]
    depths = [(row.depth, row.domains, row.host_keys, row.path_keys) for row in found.depths]
    html += _table(head, rows, "Levels and reductions (Table 8)")
    return "The shape of the tree", html + _table(
        ("depth", "domains", "keys, by host", "keys, by path"), depths, "Depths (Table 7)"
    )


def policies(found: Stats) -> tuple[str, str] | None:
    """Relative cost of each URI-key policy."""
    if not found.policy_costs:
        return None
    costs = sorted(found.policy_costs.items(), key=lambda item: item[1])
    low = min((cost for _, cost in costs if cost > 0), default=1e-6)
    x = Axis("keys per URI-R", 10 ** math.floor(math.log10(low) - 0.3), 1.0, log=True, words=percent)
    say = '<p class="say">Keys a profile would have for every hundred URI-Rs, by policy (bars are logarithmic).</p>'
    chart = ranked(costs, x, title="Relative cost of policies", left=70)
    rows = [(name, f"{cost:.6f}") for name, cost in costs]
    return "What a profile costs, by policy", say + chart + _table(("policy", "φ"), rows, "Costs as a table")


def prices(found: Tradeoff | None) -> tuple[str, str] | None:
    """Figure 9: relative cost against accuracy, by budget and by the published weights."""
    if found is None or not found.budget:
        return None
    points = [*found.budget, *found.weights]
    lowest = min(point.cost for point in points)
    x = Axis(
        "keys per URI-R, logarithmic",
        10 ** math.floor(math.log10(lowest)),
        max(1.0, found.budget[-1].cost),
        log=True,
        words=percent,
    )
    low = min(point.accuracy for point in points)
    y = Axis("lookups answered right", max(0.0, math.floor(low * 20) / 20), 1.0, words=percent)
    series = [
        Series("by budget", [(point.cost, point.accuracy) for point in found.budget]),
        Series(
            "by weights, as published",
            [(point.cost, point.accuracy) for point in found.weights],
            marks=True,
            titles=[
                f"weights {_weights(point)}: {percent(point.cost)}, {percent(point.accuracy)}"
                for point in found.weights
            ],
        ),
    ]
    judged = (
        f"{counted(found.lookups, 'lookup')} of the log"
        if found.lookups
        else "the lookups that are expected without a log (give --lookups)"
    )
    say = f"Size and accuracy of smaller maps, judged by {judged}. Nothing held is missed by any of them."
    if found.knee is not None:
        cost, right = _shares(found.knee)
        say += f" A good compromise: {counted(found.knee.keys, 'key')} ({cost}), {right} right."
        series.append(Series("knee", [(found.knee.cost, found.knee.accuracy)], marks=True))
    named = [("budget", point) for point in found.budget] + [("sets", point) for point in found.sets]
    named += [(f"weights {_weights(point)}", point) for point in found.weights]
    rows = [(name, point.keys, *_shares(point), _size(point)) for name, point in named]
    chart = curves(series, x, y, title="Relative cost against accuracy", height=340) + _by_bytes(found)
    return "Accuracy of smaller maps", f'<p class="say">{say}</p>{chart}' + _table(
        ("map", "keys", "cost", "right", "compressed"), rows, "The points as a table"
    )


def _by_bytes(found: Tradeoff) -> str:
    """The same maps by the bytes of their compressed files, and beside them maps with hashed sets."""
    if not found.sets:
        return ""
    kinds = (("by budget", found.budget), ("by weights, as published", found.weights), ("with hashed sets", found.sets))
    most_wrong = max(_LEAST_WRONG * 10, *(1 - point.accuracy for _, points in kinds for point in points))
    sizes = [point.bytes for _, points in kinds for point in points if point.bytes]
    x = Axis(
        "bytes of the compressed map, logarithmic",
        10 ** math.floor(math.log10(min(sizes))),
        10 ** math.ceil(math.log10(max(sizes))),
        log=True,
        words=lambda value: f"{number(value)}B",
    )
    highest = 10.0 ** math.ceil(math.log10(most_wrong))
    y = Axis("lookups answered wrong, logarithmic", _LEAST_WRONG, highest, log=True, words=percent)
    series = [
        Series(
            name,
            [(point.bytes or 0, max(1 - point.accuracy, _LEAST_WRONG)) for point in points],
            marks=points is found.weights,
            titles=[f"{name}: {_size(point)} bytes, {point.accuracy:.3%} right" for point in points],
        )
        for name, points in kinds
    ]
    say = (
        '<p class="say">By bytes instead of keys: a wildcard may carry a hashed set of what lies below it '
        "(<code>recollect compact --sets</code>), which answers more lookups right for the same bytes.</p>"
    )
    return say + curves(series, x, y, title="Bytes against accuracy", height=340)


def _size(point: Point) -> str:
    return "" if point.bytes is None else f"{point.bytes:,}"


def _weights(point: Point) -> str:
    return f"{point.host_weight:g} / {point.path_weight:g}"


def _shares(point: Point) -> tuple[str, str]:
    return f"{point.cost:.3%}", f"{point.accuracy:.2%}"


def accessed(found: Overlap | None) -> tuple[str, str] | None:
    """Figure 4: mementos held against accesses."""
    if found is None:
        return None
    what = "URI-Rs" if found.policy == "URIR" else "URI keys"
    most = max((count for row in found.cells.values() for count in row.values()), default=1)
    rows = []
    for row in found.rows:
        cells = "".join(_cell(found.cells.get(row, {}).get(column, 0), most) for column in found.columns)
        rows.append(f"<tr><td>{escape(row)}</td>{cells}</tr>")
    head = "".join(f"<th>{escape(column)}</th>" for column in found.columns)
    share = found.accessed_and_held / max(found.accessed_keys, 1)
    below = ""
    if found.accessed_below_wildcards:
        below = f", {found.accessed_below_wildcards:,} of these perhaps: only wildcards cover them"
    return "Holdings and requests", (
        f'<p class="say">{counted(found.accesses, "request")} for {found.accessed_keys:,} {what}; '
        f"{found.accessed_and_held:,} of them ({percent(round(share, 4))}) are held{below}. "
        "Rows: captures of a URI; columns: requests. The column “Zero” is held and never requested, the row “Zero” is "
        "requested and not held.</p>"
        f'<div class="scroll"><table class="matrix"><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'
    )


def _cell(count: int, most: int) -> str:
    if not count:
        return "<td></td>"
    heat = 8 + 62 * math.log(count + 1) / math.log(most + 1)
    return f'<td class="h" style="--h:{heat:.0f}">{count:,}</td>'


def sample(found: Stats, replay: str) -> tuple[str, str] | None:
    """Links to some URIs by chance."""
    if not found.sample:
        return None
    items = []
    for text in found.sample:
        uri = uri_of(text)
        if uri is None:
            items.append(f"<li><code>{escape(text)}</code></li>")
        else:
            items.append(f'<li><a href="{escape(replay + uri)}" rel="noreferrer">{escape(uri)}</a></li>')
    where = "in the archive" if replay else "on the live web (--replay leads into an archive)"
    return (
        "A random sample of URIs",
        f'<p class="say">Links lead to the page {where}.</p><ul class="sample">{"".join(items)}</ul>',
    )


def faults(found: Stats) -> tuple[str, str] | None:
    """What could not be read or was left out; nothing is dropped silently."""
    rows = [*found.skipped.items(), *((f"left out: {name}", count) for name, count in found.left_out.items())]
    rows += [(f"counted with {name}", count) for name, count in found.flawed.items()]
    if not rows and not found.problems:
        return None
    examples = "".join(f"<li><code>{escape(problem)}</code></li>" for problem in found.problems[:20])
    return "What was not counted", _open_table(("reason", "lines"), rows) + (f"<ul>{examples}</ul>" if examples else "")


def host_name(surt_host: str) -> str:
    """`org,example,www:8080` as people write it: `www.example.org:8080`."""
    name, colon, port = surt_host.partition(":") if not surt_host.startswith("[") else (surt_host, "", "")
    return ".".join(reversed(name.split(","))) + colon + port


def uri_of(surt: str) -> str | None:
    """A URI whose SURT this is; None for what is not a web page."""
    host, closing, path = surt.partition(")")
    if not closing or not host or " " in surt:
        return None
    return f"http://{host_name(host)}{path or '/'}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], summary: str) -> str:
    """A table that opens on a click, and is open in print."""
    listed = list(rows)
    if not listed:
        return ""
    return f"<details><summary>{escape(summary)}</summary>{_open_table(head, listed)}</details>"


def _open_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    top = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if any(head) else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(_word(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table>{top}{body}</table></div>'


def _word(cell: object) -> str:
    # Years are not amounts.
    return f"{cell:,}" if isinstance(cell, int) and not 1900 <= cell <= 2100 else str(cell)


def _nice_limit(most: float) -> float:
    return most * 1.05 or 1.0
