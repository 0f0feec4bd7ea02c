"""`recollect inspect`: the detected format of files, without writing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, json_option
from recollect.cli.forms import asked_of, form_options
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.profiles.indexes.inspection import Inspection
    from recollect.sources.overview import Overview

_EXAMPLES = """\b
Examples:
  recollect inspect index.cdx.gz
  recollect inspect indexes/                             every file of a folder
  recollect inspect clicks.tsv                           the detected columns
  recollect inspect clicks.tsv --columns time,url        how it is read with these columns
  recollect inspect indexes/ --json | jq -r '.[] | [.file, .kind] | @tsv'
  recollect inspect collection.wacz saved/ ~/.mozilla/firefox/x.default/    what `recover --also` finds in them
  recollect inspect backup/ --base http://lost.example/

\b
Order and fields are detected from the first 10,000 lines. Exit code: 0, 1 if no file can be used.
"""


@click.command("inspect", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@form_options("inputs")
@click.option(
    "--records", default=3, show_default=True, type=click.IntRange(0, 1000), help="Records to show, as they are read."
)
@click.option("--base", default="", metavar="URL", help="The address of files that do not say it (a backup).")
@json_option
def inspect(files: tuple[str, ...], records: int, base: str, as_json: bool, **options: Any) -> int:
    """Show the detected format of each FILE: kind, dialect, columns, order, compression, first records.

    FILE is what `recollect profile` reads (files, folders, globs, or - for stdin), or what `recollect recover --also`
    reads: crawls, saved pages, mirrors, backups, browser caches. Of a browser's cache only hosts and counts are shown.
    Nothing is written.
    """
    from recollect.profiles.indexes.inspection import inspect_files
    from recollect.sources.overview import overview

    overviews = {name: seen for name in files if (seen := overview(name, base)) is not None}
    others = tuple(name for name in files if name not in overviews or overviews[name].is_index)
    found: list[Inspection] = []
    for one in inspect_files(others, asked_of(options), records=records) if others else ():
        if not as_json:
            _show(one, first=not found)
        found.append(one)
    for seen in overviews.values():
        if not as_json:
            _show_source(seen, first=seen is next(iter(overviews.values())) and not found)
    if as_json:
        emit_json(_joined(found, overviews))
    return 0 if overviews or any(one.usable for one in found) else 1


def _joined(found: list[Inspection], overviews: dict[str, Overview]) -> list[dict[str, Any]]:
    """One object per file; the pages of a file that is an index, too, are in its object."""
    pages = {name: seen.as_dict() for name, seen in overviews.items()}
    rows = [one.as_dict() | ({"pages": pages.pop(one.file)} if one.file in pages else {}) for one in found]
    return rows + list(pages.values())


def _show_source(one: Overview, *, first: bool) -> None:
    if not first:
        click.echo()
    click.echo(f"{one.file}: {one.kind}" + (f", the first {counted(one.captures, 'capture')}" if one.cut else ""))
    hosts = ", ".join(f"{host} {count:,}" for host, count in one.hosts.items())
    rows = [
        ("captures", f"{one.captures:,}" + (f" of {counted(one.entries, 'entry', 'entries')}" if one.entries else "")),
        ("hosts", hosts + (f", and {one.more_hosts:,} more" if one.more_hosts else "")),
        ("dates", f"{one.first:%Y-%m-%d} to {one.last:%Y-%m-%d}" if one.first and one.last else ""),
        ("times", ", ".join(f"{name} {count:,}" for name, count in one.origins.items())),
        ("types", ", ".join(f"{name} {count:,}" for name, count in one.types.items())),
        ("keeps", f"{one.depth}: " + ("several captures of a URL" if one.depth == "deep" else "one capture of a URL")),
        ("altered", f"{one.altered:,} by the tool that saved them" if one.altered else ""),
        ("marks", ", ".join(f"{name} {count:,}" for name, count in one.marks.items())),
        ("others", ", ".join(f"{name} {count:,}" for name, count in one.others.items())),
    ]
    rows += [("problem", problem) for problem in one.problems]
    for name, value in rows:
        if value:
            click.echo(f"  {name:<8} {value}")


def _show(one: Inspection, *, first: bool) -> None:
    if not first and one.usable:
        click.echo()
    packed = "" if one.container == "plain" else f", {one.container}"
    size = "" if one.bytes is None else f", {format_size(one.bytes)}"
    click.echo(f"{one.file}: {one.kind if one.kind != 'unknown' else f'unknown: {one.what}'}{packed}{size}")
    rows = [
        ("dialect", one.dialect),
        ("columns", " ".join(column or "-" for column in one.columns)),
        ("fields", ", ".join(one.fields)),
        ("order", _order(one)),
    ]
    if one.keys_disagree:
        rows.append(("warning", f"{counted(one.keys_disagree, 'key')} are not those of the URLs beside them"))
    rows += [("problem", problem) for problem in one.problems]
    rows += [("record", _record(record)) for record in one.records]
    for name, value in rows:
        if value:
            click.echo(f"  {name:<8} {value}")


def _order(one: Inspection) -> str:
    if one.sorted is None:
        return ""
    span = f"all {counted(one.lines, 'line')}" if one.whole else f"the first {counted(one.lines, 'line')}"
    return f"{'sorted' if one.sorted else 'not sorted'} ({span})"


def _record(record: dict[str, Any]) -> str:
    return ", ".join(f"{name} {str(value)[:100]}" for name, value in record.items())
