"""`recollect freshness`: how the recall of a map falls with its age."""

from __future__ import annotations

import json
from pathlib import Path

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk, temp_dir_option
from recollect.cli.types import SIZE
from recollect.errors import UsageError

EPILOG = """\b
Examples:
  recollect freshness index.cdxj -o freshness.html            table and figure
  recollect freshness indexes/ --policy HxPx --policy H3P0 --max-bytes 1MB -o freshness.json
  recollect freshness index.cdxj --maps map-2019.ukvs --json | jq .recall_by_age

\b
The map of each year is asked for the keys that the index captured in each later year, once a year each. `growth` is the
median share of keys that are new after a year, which routing discounts the no of an old map by.
"""


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INDEX...")
@click.option("-o", "--output", metavar="FILE", help="Output file: .html or .json.  [default: a table]")
@click.option("--policy", "policies", multiple=True, help="URI-Key policy. Repeatable.  [default: five of them]")
@click.option(
    "--max-bytes", "budgets", multiple=True, type=SIZE, metavar="SIZE", help="Size of compacted maps. Repeatable."
)
@click.option(
    "--maps",
    multiple=True,
    type=click.Path(exists=True),
    metavar="MAP",
    help="Maps that exist, with a date. Repeatable.",
)
@temp_dir_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def freshness(
    inputs: tuple[str, ...],
    output: str | None,
    policies: tuple[str, ...],
    budgets: tuple[int, ...],
    maps: tuple[str, ...],
    temp_dir: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure the recall of an archive's maps by their age, from the dates of its indexes."""
    from recollect.formats.containers import atomic_output
    from recollect.formats.outputs import refuse_inputs
    from recollect.profiles.statistics.freshness import POLICIES, page_of
    from recollect.profiles.statistics.freshness import freshness as measure
    from recollect.uris import parse_policy

    kind = Path(output).suffix.lower() if output else ""
    if output and kind not in (".html", ".htm", ".json"):
        raise UsageError("unknown format of the output", where=output, hint="end the name in .html or .json")
    refuse_inputs(output, (*inputs, *maps))
    names = tuple(parse_policy(policy).name for policy in policies) or POLICIES
    with progress_bar(quiet=quiet or as_json) as progress:
        result = measure(inputs, policies=names, budgets=budgets, maps=maps, temp_dir=temp_dir, progress=progress)
    if output:
        title = ", ".join(Path(path).name or path for path in inputs[:3])
        text = json.dumps(result.as_dict(), indent=2) + "\n" if kind == ".json" else page_of(result, title)
        with atomic_output(output) as out:
            out.write(text.encode("utf-8", "replace"))
    if as_json:
        emit_json(result.as_dict())
    elif not output:
        table = result.by_age()
        ages = sorted({age for row in table.values() for age in row})
        rows = [[name, *(f"{row[age]:.1%}" if age in row else "" for age in ages)] for name, row in table.items()]
        emit_table(["map", *(f"{age} y" for age in ages)], rows, right=list(range(1, len(ages) + 1)))
    if not quiet:
        growth = ", ".join(f"{depth} {share:.1%}" for depth, share in result.growth.items())
        talk(f"{result.keys:,} keys, {result.years[0]} to {result.years[-1]}; new after a year (median): {growth}")
    return 0
