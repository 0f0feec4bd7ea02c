"""`recollect stats` and `recollect overlap`: the statistics of an archive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk, temp_dir_option
from recollect.cli.engines import taken_engine, where_options
from recollect.cli.forms import asked_of, form_options, say_notes
from recollect.cli.profile import filter_options, resource_options
from recollect.datetimes import format_day
from recollect.engines.operations import Describe
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.formats.forms import Asked
    from recollect.maps.scope import Selection
    from recollect.model import Problem
    from recollect.profiles.statistics.stats import Stats

_EXAMPLES = """\b
Examples:
  recollect stats index.cdxj.gz
  recollect stats indexes/ --status 200 --media-type text/html
  recollect stats map.ukvs                     fewer tables: a map has no times or statuses
  recollect stats indexes/ --json > stats.json
  recollect stats indexes/ --summary cdx-summary > summary.json       in the format of another tool
  recollect stats indexes/ --summary cdx-summarize > all.summary
  recollect stats hdfs:///cdx/ --engine spark --master yarn
"""
_MEDIA_ROWS = 15


@click.command("stats", epilog=_EXAMPLES)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@form_options("inputs")
@filter_options
@click.option("--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="Rows of the top lists.")
@click.option(
    "--summary",
    type=click.Choice(["cdx-summary", "cdx-summarize", "archive-profiler"]),
    help="Write the summary of another tool instead of tables.",
)
@resource_options
@where_options
@json_option
def stats(inputs: tuple[str, ...], **options: Any) -> int:
    """Show statistics of an archive: sizes, growth, statuses, the shape of its URI tree, the cost of each policy.

    INPUT is what `recollect profile` reads: indexes, lists, WARCs, or one map. The tables are those of Alam et al.
    (2019 and 2015), see docs/stats.md.
    """
    from recollect.profiles.indexes.select import selection

    engine = taken_engine(options)
    names = ("statuses", "media_types", "since", "until", "exclude", "where")
    chosen = selection(**{name: options.pop(name) for name in names})
    as_json, asked, summary = options.pop("as_json"), asked_of(options), options.pop("summary")
    if summary:
        return _summarize(inputs, summary, chosen, asked, options)
    with progress_bar(quiet=as_json) as progress:
        found = engine.run(Describe(inputs, chosen=chosen, asked=asked, **options), progress)
    if as_json:
        emit_json(found.as_dict())
    else:
        _show(found)
        for note in found.notes:
            talk(f"note: {note}")
    for problem in found.problems[:5]:
        talk(f"problem: {problem}")
    return 3 if found.problems else 0


def _summarize(inputs: tuple[str, ...], summary: str, chosen: Selection, asked: Asked, options: dict[str, Any]) -> int:
    from recollect.formats.detect import find_sources
    from recollect.profiles.indexes.select import Filter
    from recollect.profiles.statistics.summaries import Summary, summarize

    problems: list[Problem] = []
    sources = find_sources(inputs, problems.append, asked=asked)
    top, threads = options["top"], options["threads"] or 2
    with progress_bar() as progress:
        for piece in summarize(
            sources,
            Summary(summary),
            Filter(chosen),
            top=top,
            threads=threads,
            on_problem=problems.append,
            progress=progress,
        ):
            click.echo(piece, nl=False)
    for problem in problems[:5]:
        talk(f"problem: {problem}")
    return 3 if problems else 0


def _show(found: Stats) -> None:
    tables = (_overview, _tops, _distribution, _years, _depths, _levels, _laws, _costs, _media)
    for table in tables:
        table(found)


def _table(title: str, headers: list[str], rows: Iterable[list[Any]], left: int = 1) -> None:
    listed = [[_cell(cell) for cell in row] for row in rows]
    if listed:
        click.echo(title)
        emit_table(headers, listed, right=range(left, len(headers)))
        click.echo()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if isinstance(value, float) else str(value)


def _percent(share: float | None, digits: int = 2) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def _overview(found: Stats) -> None:
    o = found.overview
    rows: list[list[Any]] = [
        ["Files", f"{o.files:,} ({format_size(o.bytes)})"],
        ["Lines read", o.lines],
        ["Captures (URI-Ms)", _total(o.captures, o.captures_bound)],
        ["Unique URI-Rs", _total(o.uri_rs, o.uri_rs_bound)],
        ["Unique HxPx keys", _total(o.keys, "+" if o.wildcards else "")],
        ["Unique hosts", _total(o.hosts, "+" if o.wildcards else "")],
        ["IP addresses among them", o.ip_addresses],
        ["Captures per URI-R (γ)", o.gamma],
    ]
    if o.wildcards:
        rows.insert(4, ["Wildcards", o.wildcards])
    if o.first_capture:
        rows.append(["Span", f"{format_day(o.first_capture)} to {format_day(o.last_capture or '')}"])
    rows += [[f"Left out: {kind}", count] for kind, count in sorted(found.left_out.items())]
    rows += [[f"Flawed: {kind}", count] for kind, count in sorted(found.flawed.items())]
    _table("Overview", ["", "value"], rows)


def _total(value: int | None, bound: str) -> str:
    return "unknown" if value is None else f"{value:,}{bound}"


def _tops(found: Stats) -> None:
    total = found.overview.captures or 1
    _table("Top TLDs", ["TLD", "captures", "%"], [[name, n, _percent(n / total)] for name, n in found.top_tlds])
    what = "URI-Rs" if found.distribution else "keys"
    _table(f"Most captured {what}", ["URI", "captures"], [[name, count] for name, count in found.top_uri_rs])


def _distribution(found: Stats) -> None:
    d = found.distribution
    if d is None:
        return
    rows: list[list[Any]] = [
        ["Maximum for any URI-R", d.maximum],
        ["Median", d.median],
        ["Minimum", d.minimum],
        ["Mean (γ)", d.mean],
        ["Standard deviation", d.standard_deviation],
        ["Gini coefficient", d.gini],
        ["Pareto break point", d.pareto_text],
    ]
    _table("Captures per URI-R", ["", "value"], rows)


def _years(found: Stats) -> None:
    headers = ["year", "URI-R", "URI-R+", "URI-M", "URI-M+", "dup. URI-R%", "γ", "γ+"]
    classes = (2, 3, 4, 5) if any(y.status_shares for y in found.years) else ()
    headers += [f"{kind}xx%" for kind in classes]
    rows = [
        [
            str(y.year), y.uri_rs, y.uri_rs_total, y.uri_ms, y.uri_ms_total, _percent(y.duplicate_uri_rs), y.gamma,
            y.gamma_total, *(_percent(y.status_shares.get(f"{kind}xx")) for kind in classes),
        ]
        for y in found.years
    ]  # fmt: skip
    o = found.overview
    if len(rows) > 1:
        shares = _all_shares(found) if classes else []
        rows.append(["All", o.uri_rs, o.uri_rs, o.captures, o.captures, "", o.gamma, o.gamma, *shares])
    _table("Years (+ is cumulative)", headers, rows)


def _all_shares(found: Stats) -> list[str]:
    known = [year for year in found.years if year.status_shares]
    total = sum(year.uri_ms for year in known)
    return [_percent(sum(y.status_shares[f"{kind}xx"] * y.uri_ms for y in known) / total) for kind in (2, 3, 4, 5)]


def _depths(found: Stats) -> None:
    rows = [[str(d.depth), d.domains, d.host_keys, d.path_keys] for d in found.depths[:20]]
    deeper = found.depths[20:]
    if deeper:
        sums = [sum(getattr(d, name) for d in deeper) for name in ("domains", "host_keys", "path_keys")]
        rows.append(["20+", *sums])
    _table("Depths (exactly)", ["depth", "hosts", "keys by host depth", "keys by path depth"], rows)


def _levels(found: Stats) -> None:
    headers = [
        "level",
        "count",
        "keys",
        "max",
        "mean",
        "median",
        "std. dev.",
        "RedQ",
        "parents",
        "children",
        "mean child",
    ]
    rows = [
        [
            r.level, r.count, r.keys, r.maximum, r.mean, r.median, r.standard_deviation, f"{r.reduction:.5f}",
            r.parents, r.children, r.mean_children,
        ]
        for r in (*found.host_levels[:12], *found.path_levels[:13])
    ]  # fmt: skip
    _table("Host and path levels of the key tree", headers, rows)


def _laws(found: Stats) -> None:
    rows: list[list[Any]] = []
    for name, fit in (
        ("hosts: mean child = a · (d - 1)^-k", found.host_fit),
        ("paths: mean child = a · d^−k", found.path_fit),
    ):
        if fit is not None:
            rows.append([name, f"a = {fit.a:.3f}, k = {fit.k:.3f}"])
    if found.heaps is not None:
        rows.append(["growth: URI-R = K · URI-M^β", f"K = {found.heaps['K']:.3f}, β = {found.heaps['beta']:.3f}"])
    _table("Fitted laws", ["law", "parameters"], rows, left=2)


def _costs(found: Stats) -> None:
    ranked = sorted(found.policy_costs.items(), key=lambda item: item[1])
    _table(
        "Relative cost of policies (keys per URI-R)", ["policy", "φ"], [[name, f"{cost:.5f}"] for name, cost in ranked]
    )


def _media(found: Stats) -> None:
    statuses = sorted({status[0] for row in found.media_by_status.values() for status in row})
    rows: list[list[Any]] = []
    for media_type, row in found.media_by_status.items():
        by_class = [sum(count for status, count in row.items() if status[0] == kind) for kind in statuses]
        rows.append([media_type, sum(by_class), *by_class])
    rows.sort(key=lambda row: -row[1])
    headers = ["media type", "captures", *("none" if kind == "-" else f"{kind}xx" for kind in statuses)]
    if len(rows) > _MEDIA_ROWS:
        others = [
            f"{len(rows) - _MEDIA_ROWS} more",
            *(sum(column) for column in list(zip(*rows[_MEDIA_ROWS:], strict=True))[1:]),
        ]
        rows = [*rows[:_MEDIA_ROWS], others]
    _table("Media types and statuses", headers, rows)


_OVERLAP_EXAMPLES = """\b
Examples:
  recollect overlap --holdings map.ukvs --lookups memgator.log
  recollect overlap --holdings index.cdxj.gz --lookups access.log.gz --lookups urls.txt --json
"""


@click.command("overlap", epilog=_OVERLAP_EXAMPLES)
@click.option("--holdings", required=True, metavar="MAP", help="A map, or an index (counts URI-Rs instead of keys).")
@click.option(
    "--lookups",
    "accesses",
    required=True,
    multiple=True,
    metavar="LOG",
    help="Access log or list of URIs. Repeatable.",
)
@form_options("accesses")
@temp_dir_option
@json_option
def overlap(holdings: str, accesses: tuple[str, ...], temp_dir: str | None, as_json: bool, **options: Any) -> int:
    """Compare what is archived with what is requested: URIs by number of mementos and number of requests."""
    from recollect.profiles.statistics.overlap import overlap as compare

    found = compare(holdings, accesses, asked=asked_of(options), temp_dir=temp_dir)
    if as_json:
        emit_json(found.as_dict())
    else:
        what = "URI-Rs" if found.policy == "URIR" else f"{found.policy} keys"
        rows = [[row, *(found.cells.get(row, {}).get(column, 0) for column in found.columns)] for row in found.rows]
        _table(f"Mementos (rows) against accesses (columns), in {what}", ["", *found.columns], rows)
        share = 100 * found.accessed_and_held / max(found.accessed_keys, 1)
        click.echo(
            f"{counted(found.accesses, 'request')} for {found.accessed_keys:,} {what}, of which "
            f"{found.accessed_and_held:,} ({share:.2f}%) are held; {found.held_keys:,} held in all"
        )
        if found.wildcards:
            m, r = found.held.uri_m, found.held.uri_r
            click.echo(
                f"{counted(found.wildcards, 'wildcard')} besides: {_total(m.value, m.bound)} captures of "
                f"{_total(r.value, r.bound)} URI-Rs in all; of the requested "
                f"{what}, {found.accessed_below_wildcards:,} lie below wildcards, where single ones are unknown"
            )
        say_notes(found.notes)
    for problem in found.problems[:5]:
        talk(f"skipped: {problem}")
    return 3 if found.unreadable else 0
