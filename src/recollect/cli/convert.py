"""`recollect convert`: a map under another policy of keys."""

from __future__ import annotations

from dataclasses import asdict

import click

from recollect.cli.console import emit_json, json_option, talk, temp_dir_option
from recollect.cli.maps import Problems
from recollect.errors import UsageError
from recollect.quantities import counted

EPILOG = """\b
Examples:
  recollect convert map.ukvs --policy H3P0 -o hosts.ukvs      down: fewer keys, a smaller map
  recollect convert hosts.ukvs --policy HxPx -o map.ukvs      up: uk,co,bbc)/ becomes uk,co,bbc,*
  recollect convert urir.ukvs --policy DQry -o domains.ukvs   only a map of URIR has queries

\b
What the map says yes to, the converted map says yes or unknown to. See docs/ukvs.md for the loss of each policy.
Exit code: 0 done, 1 failed, 2 wrong usage, 3 done but some lines could not be read.
"""


@click.command("convert", epilog=EPILOG)
@click.argument("source", metavar="MAP")
@click.option("--policy", required=True, metavar="NAME", help="HmPn, TLD, DDom, DSub, DPth, DQry, DIni or URIR.")
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="The map; .gz and .zst are compressed.  [default: stdout]"
)
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@temp_dir_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def convert(
    source: str, policy: str, output: str, strict: bool, temp_dir: str | None, as_json: bool, quiet: bool
) -> int:
    """Convert MAP to keys of another policy: HxPx for keys and wildcards of one tree, or a shorter one."""
    from recollect.formats.mapfiles import expect_map
    from recollect.formats.outputs import refuse_inputs
    from recollect.maps.conversion import convert_map

    if as_json and output == "-":
        raise UsageError("--json and the map would both go to stdout", hint="add -o map.ukvs")
    expect_map(source)
    if output != "-":
        refuse_inputs(output, [source])
    problems = Problems(strict)
    result = convert_map(source, output, policy, temp_dir=temp_dir, on_problem=problems.on_problem)
    if as_json:
        emit_json({**asdict(result), "skipped": problems.count})
    elif not quiet:
        target = "" if output == "-" else f"{output}: "
        talk(
            f"{target}{counted(result.records, 'record')} of {result.source_policy} -> {counted(result.keys, 'key')} "
            f"of {result.policy}, {counted(result.wildcards, 'wildcard')} among them"
        )
        if result.unknown:
            talk(f"{counted(result.unknown, 'line')} with unknown: what a key of {result.source_policy} may also mean")
        if result.voids_dropped:
            talk(f"dropped {counted(result.voids_dropped, 'void')} that would cover more under {result.policy}")
    problems.summarise()
    return 3 if problems.count else 0
