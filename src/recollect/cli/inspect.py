"""`recollect inspect`: the detected format of files, without writing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, json_option
from recollect.cli.forms import asked_of, form_options
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.profiles.indexes.inspection import Inspection

_EXAMPLES = """\b
Examples:
  recollect inspect index.cdx.gz
  recollect inspect indexes/                             every file of a folder
  recollect inspect clicks.tsv                           the detected columns
  recollect inspect clicks.tsv --columns time,url        how it is read with these columns
  recollect inspect indexes/ --json | jq -r '.[] | [.file, .kind] | @tsv'

\b
Order and fields are detected from the first 10,000 lines. Exit code: 0, 1 if no file can be used.
"""


@click.command("inspect", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@form_options("inputs")
@click.option(
    "--records", default=3, show_default=True, type=click.IntRange(0, 1000), help="Records to show, as they are read."
)
@json_option
def inspect(files: tuple[str, ...], records: int, as_json: bool, **options: Any) -> int:
    """Show the detected format of each FILE: kind, dialect, columns, order, compression, first records.

    FILE is what `recollect profile` reads: files, folders, globs, or - for stdin. Nothing is written.
    """
    from recollect.profiles.indexes.inspection import inspect_files

    found = []
    for number, one in enumerate(inspect_files(files, asked_of(options), records=records)):
        found.append(one)
        if not as_json:
            _show(one, first=number == 0)
    if as_json:
        emit_json([one.as_dict() for one in found])
    return 0 if any(one.usable for one in found) else 1


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
