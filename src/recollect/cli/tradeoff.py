"""`recollect tradeoff`: cost against accuracy, as a picture, a page or numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import emit_json, json_option, progress_bar, talk
from recollect.cli.forms import asked_of, form_options, lookups_of, say_notes
from recollect.errors import FormatError, UsageError
from recollect.model import Problem

TRADEOFF_EPILOG = """\b
Examples:
  recollect tradeoff map.ukvs -o tradeoff.svg
  recollect tradeoff map.ukvs --lookups access.log.gz -o tradeoff.html       picture and table
  recollect tradeoff map.ukvs --lookups urls.txt -o tradeoff.json
  recollect tradeoff map.ukvs --lookups urls.txt --json | jq .knee
  recollect tradeoff map.ukvs --json | jq '.sets[] | [.bytes, .accuracy]'    maps with hashed sets, by bytes

\b
The first panel shows accuracy by keys per URI-R: the line is compaction by budget at many sizes, the diamonds are the
36 pairs of weights of Alam et al. (2019). The second panel shows accuracy by bytes of the compressed file and adds maps
with hashed sets (compact --sets). With a log, maps are made from one half of it and evaluated on the other. MAP must
not be a compacted map.
"""


@click.command(epilog=TRADEOFF_EPILOG)
@click.argument("source", metavar="MAP")
@click.option("-o", "--output", metavar="FILE", help="Output file: .svg, .html or .json.")
@click.option(
    "--lookups", multiple=True, metavar="LOG", help="Log of lookups. Repeatable.  [default: a built-in prior]"
)
@form_options("lookups")
@click.option("--sizes", type=click.IntRange(3, 1000), default=40, show_default=True, help="Number of budgets to try.")
@click.option("--threads", type=click.IntRange(1, 256), help="Threads to use.  [default: all cores]")
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def tradeoff(source: str, output: str | None, **options: Any) -> int:
    """Plot the accuracy of a map against its size, and find the knee of the curve."""
    kind = Path(output).suffix.lower() if output else ""
    if kind not in ("", ".svg", ".html", ".htm", ".json") or (output and not kind):
        raise UsageError("unknown format of the output", where=str(output), hint="end the name in .svg, .html or .json")
    if not output and not options["as_json"]:
        raise UsageError("missing -o FILE", hint="give -o tradeoff.svg, or --json")
    from recollect.formats.containers import atomic_output
    from recollect.formats.mapfiles import expect_map
    from recollect.formats.outputs import refuse_inputs
    from recollect.profiles.compaction import tradeoff as measure
    from recollect.profiles.compaction import tradeoffplot

    refuse_inputs(output, (source, *options["lookups"]))
    expect_map(source)
    problems: list[Problem] = []
    on_problem = _stop_at_once if options["strict"] else problems.append
    lookups = lookups_of(options["lookups"], asked_of(options), on_problem)
    with progress_bar(quiet=options["quiet"] or options["as_json"]) as progress:
        result = measure.tradeoff(
            source,
            lookups=lookups,
            sizes=options["sizes"],
            threads=options["threads"] or 0,
            on_problem=on_problem,
            progress=progress,
        )
    numbers = tradeoffplot.as_json(result)
    if output:
        if kind == ".svg":
            text = tradeoffplot.as_svg(result)
        elif kind == ".json":
            text = json.dumps(numbers, indent=2) + "\n"
        else:
            text = tradeoffplot.as_html(result)
        with atomic_output(output) as out:
            out.write(text.encode())
    if options["as_json"]:
        emit_json(numbers)
    elif not options["quiet"]:
        talk(tradeoffplot.sentence(result))
        say_notes(lookups.notes() if lookups is not None else ())
        for problem in problems[:5]:
            talk(f"skipped: {problem}")
    return 3 if problems else 0


def _stop_at_once(problem: Problem) -> None:
    raise FormatError(problem.reason, where=f"{problem.file}:{problem.line}", why=problem.excerpt)
