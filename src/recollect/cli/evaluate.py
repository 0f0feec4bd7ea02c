"""`recollect evaluate`: how correctly maps answer lookups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.derived import Problems
from recollect.cli.engines import refuse_urls, taken_engine, where_options
from recollect.cli.forms import asked_of, form_options, say_notes
from recollect.engines.operations import FindHeld
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.profiles.statistics.evaluate import Confusion, Evaluation, Report, Share

EVALUATE_EPILOG = """\b
Examples:
  recollect evaluate small.ukvs --holdings index.cdxj.gz --lookups memgator.log
  recollect evaluate maps/*.ukvs archive.filter --holdings map.ukvs --lookups urls.txt
  recollect evaluate small.ukvs --holdings index.cdxj.gz --lookups access.log --json | jq .maps[0].weighted.accuracy
  recollect evaluate small.ukvs --holdings hdfs:///cdx/ --lookups access.log --engine spark --master yarn

\b
Shares of lookups: right (answered correctly), precision (share of the lookups answered yes that are held), recall
(share of the held ones answered yes), specificity (share of the absent ones answered no), saved (requests
not made). Cost is keys of the map per URI-R of the holdings. Intervals are 95%.
Exit code: 0, 1 if a map misses anything that is held, 3 if lines could not be read.
"""


@click.command(epilog=EVALUATE_EPILOG)
@click.argument("maps", nargs=-1, required=True, metavar="MAP...")
@click.option(
    "--holdings",
    multiple=True,
    required=True,
    metavar="INDEX",
    help="What is held: indexes, or the map before compaction.",
)
@click.option("--lookups", multiple=True, required=True, metavar="LOG", help="Log or list of lookups.")
@form_options("lookups")
@click.option(
    "--truth",
    type=click.Choice(["key", "uri"]),
    default="key",
    show_default=True,
    help="When a lookup counts as held: its key is in the holdings, or the exact URI with its query.",
)
@click.option(
    "--learn",
    default="",
    metavar="FILE",
    help="Fit the chances of wildcards to these lookups; chances.json beside maps is used by route and serve.",
)
@click.option(
    "--chances", default="", metavar="FILE", help="Chances of wildcards that --learn fitted.  [default: shipped]"
)
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@where_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def evaluate(
    maps: tuple[str, ...],
    holdings: tuple[str, ...],
    lookups: tuple[str, ...],
    truth: Literal["key", "uri"],
    **options: Any,
) -> int:
    """Compare the answers of maps and filters to a log of lookups with what is held.

    Give --holdings and --lookups more than once for several files; a folder or a glob works too.
    """
    from recollect.formats.mapfiles import expect_map
    from recollect.maps.calibration import Model, fit
    from recollect.profiles.statistics.evaluate import evaluate as measure

    for name in maps:
        expect_map(name)
    engine = taken_engine(options)
    refuse_urls(engine, (*maps, *lookups))
    problems, asked = Problems(options["strict"]), asked_of(options)
    with progress_bar(quiet=options["quiet"] or options["as_json"]) as progress:
        report = measure(
            maps,
            holdings,
            lookups,
            truth=truth,
            holder=lambda *found: engine.run(FindHeld(*found[:3]), found[3]),
            model=Model.load(options["chances"]) if options["chances"] else None,
            asked=asked,
            on_problem=problems.note,
            progress=progress,
        )
    if options["learn"]:
        source = f"{', '.join(Path(name).name for name in lookups)} in {', '.join(Path(name).name for name in maps)}"
        fit(report.learned.cases, report.learned.held, source).save(options["learn"])
        talk(f"{options['learn']}: chances of wildcards, fitted to {counted(len(report.learned.cases), 'lookup')}")
    if options["as_json"]:
        emit_json({**report.as_dict(), **problems.as_dict()})
    else:
        _show(report)
        say_notes(report.notes)
        problems.report()
    if report.missed:
        talk(f"{counted(report.missed, 'false negative')}: a held URI must never be missed")
        for one in report.maps:
            for uri in one.missed[:5]:
                talk(f"  {one.path} misses {uri}")
        return 1
    return 3 if problems.count else 0


def _show(report: Report) -> None:
    what = "key" if report.truth == "key" else "URI"
    talk(
        f"{report.lookups:,} different URIs in {counted(report.requests, 'lookup')}; {report.held:,} of them held "
        f"(by {what}); holdings of {counted(report.holdings_keys, 'key')}, {counted(report.uri_rs, 'URI-R')}"
    )
    emit_table(
        ["map", "keys", "cost", "bytes", "compressed"],
        [_size_row(one) for one in report.maps],
        title="Size",
        right=(1, 2, 3, 4),
    )
    headers = ["map", "right", "95%", "precision", "recall", "specificity", "saved", "TP", "FP", "FN", "TN"]
    for title, name in (("Every URI once", "unique"), ("By requests", "requests")):
        rows = [[Path(one.path).name, *_row(getattr(one, name))] for one in report.maps]
        emit_table(headers, rows, title=f"\n{title}", right=range(1, len(headers)))
    for one in report.maps:
        _show_chances(one)


def _show_chances(one: Evaluation) -> None:
    """Reliability and precision against recall of one map."""
    found = one.calibration
    if found is None or not found.by_wildcards:
        return
    name = Path(one.path).name
    talk(
        f"\n{name}: wildcards decide about {counted(found.by_wildcards, 'lookup')}; Brier score {found.brier:.4f} "
        f"({found.brier_base:.4f} for one chance for all). Chances fitted to {found.model}"
    )
    rows = [
        [
            f"{group.low:.0%} to {group.high:.0%}",
            f"{group.lookups:,}",
            f"{group.predicted:.1%}",
            f"{group.observed:.1%}",
        ]
        for group in found.bins
    ]
    emit_table(["chance", "lookups", "mean chance", "held"], rows, title=f"\nReliability of {name}", right=range(1, 4))
    points = [
        [f"{point.threshold:.3f}", f"{point.precision:.1%}", f"{point.recall:.1%}", f"{point.asked:.1%}"]
        for point in found.curve[:: max(len(found.curve) // 12, 1)]
    ]
    emit_table(
        ["ask from chance", "precision", "recall", "asked"], points, title="\nPrecision against recall", right=range(4)
    )


def _size_row(one: Evaluation) -> list[str]:
    cost = "-" if one.relative_cost is None else f"{one.relative_cost:.3%}"
    return [Path(one.path).name, f"{one.keys:,}", cost, format_size(one.bytes), format_size(one.bytes_compressed)]


def _row(found: Confusion) -> list[str]:
    shares = (found.precision, found.recall, found.specificity, found.saved)
    counts = (found.tp, found.fp, found.fn, found.tn)
    return [
        _percent(found.accuracy),
        _interval(found.accuracy),
        *map(_percent, shares),
        *(f"{count:,}" for count in counts),
    ]


def _percent(share: Share) -> str:
    return "-" if share.value is None else f"{share.value:.2%}"


def _interval(share: Share) -> str:
    return "-" if share.low is None or share.high is None else f"{share.low:.2%}–{share.high:.2%}"
