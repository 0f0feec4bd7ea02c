"""`recollect report`: an archive's holdings on one page."""

from __future__ import annotations

from typing import Any

import click

from recollect.cli.console import emit_json, json_option, progress_bar, talk, temp_dir_option
from recollect.cli.forms import asked_of, form_options, say_notes
from recollect.quantities import counted, format_size

_EXAMPLES = """\b
Examples:
  recollect report index.cdxj.gz -o report.html
  recollect report indexes/ -o report.html --name "My Archive" --replay https://archive.example/web/
  recollect report indexes/ -o report.html --lookups access.log.gz       compare holdings with requests
  recollect report map.ukvs -o report.html                                fewer charts: a map has no times

\b
The page needs neither scripts nor network: open it from disk, print it, or send it by mail. Charts and tables are
those of Alam et al. (2019), for your archive.
"""


@click.command("report", epilog=_EXAMPLES)
@click.argument("inputs", nargs=-1, required=True, metavar="INDEX|MAP...")
@click.option("-o", "--output", required=True, metavar="FILE", help="The page (HTML).")
@click.option("--name", default="", help="The archive's name, for the title.  [default: the input's]")
@click.option("--lookups", "accesses", multiple=True, metavar="LOG", help="Log or list of requested URIs. Repeatable.")
@form_options("accesses")
@click.option(
    "--replay", default="", metavar="URL", help="Address of the archive's replay, for the links of the sample."
)
@click.option(
    "--sample", default=20, show_default=True, type=click.IntRange(0, 1000), help="Number of URIs in the random sample."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the random sample.")
@click.option("--top", default=15, show_default=True, type=click.IntRange(1, 1000), help="Rows of the top lists.")
@temp_dir_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def report(inputs: tuple[str, ...], output: str, accesses: tuple[str, ...], **given: Any) -> int:
    """Write a page about an archive's holdings: growth, statuses, types, hosts, shape, cost, and requests.

    INDEX is what `recollect profile` reads: indexes, lists, WARCs; or give one MAP.
    """
    from recollect.profiles.statistics.report import ReportOptions, write_report

    options = ReportOptions(given["name"], given["replay"], given["sample"], given["seed"], given["top"])
    with progress_bar(quiet=given["quiet"] or given["as_json"]) as progress:
        data = write_report(
            inputs,
            output,
            accesses=accesses,
            asked=asked_of(given),
            options=options,
            temp_dir=given["temp_dir"],
            progress=progress,
        )
    found, unread = data.stats, sum(data.stats.skipped.values()) + (data.overlap.unreadable if data.overlap else 0)
    if given["as_json"]:
        emit_json({"report": output, "stats": found.as_dict(), "overlap": data.overlap and data.overlap.as_dict()})
    elif not given["quiet"]:
        overview = found.overview
        uris = f" of {_total(overview.uri_rs, overview.uri_rs_bound, 'URI-R')}" if overview.uri_rs is not None else ""
        talk(
            f"{output}: {_total(overview.captures, overview.captures_bound, 'capture')}{uris} on "
            f"{_total(overview.hosts, '+' if overview.wildcards else '', 'host')}, {_size(output)}"
        )
        for note in found.notes:
            talk(f"note: {note}")
        say_notes(data.overlap.notes if data.overlap else ())
        for problem in found.problems[:5]:
            talk(f"skipped: {problem}")
    return 3 if unread else 0


def _total(value: int | None, bound: str, noun: str) -> str:
    if value is None:
        return f"an unknown number of {noun}s"
    return f"{value:,}{bound} {noun}s" if bound else counted(value, noun)


def _size(path: str) -> str:
    from pathlib import Path

    return format_size(Path(path).stat().st_size) if Path(path).is_file() else "written"
