"""`recollect compact`: a smaller map without false negatives, by weights as published or by budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.budget import BUDGET_NAMES, BUDGET_OPTIONS, SETS_OPTION, budget_of, summarise_budget
from recollect.cli.console import emit_json, json_option, progress_bar, talk
from recollect.cli.engines import engine_options, taken_engine
from recollect.cli.forms import asked_of, form_options, lookups_of
from recollect.engines.operations import CompactByBudget, CompactByWeights, Engine
from recollect.errors import FormatError, UsageError
from recollect.model import Problem, ProgressCallback
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.profiles.compaction.weights import Weights

COMPACT_EPILOG = """\b
Examples:
  recollect compact map.ukvs -o small.ukvs                              weights 4 and 2, as published
  recollect compact map.ukvs -o small.ukvs --host-weight 1 --path-weight 1
  recollect compact map.ukvs -o small.ukvs --fit                        a and k fitted to this map's own tree
  recollect compact map.ukvs.gz -o map.ukvs.gz --path-weight 0.5        input and output may be the same
  zcat map.ukvs.gz | recollect compact - -o small.ukvs.zst
  recollect compact map.ukvs -o small.ukvs --max-cost 1%                the best map of one key per 100 URI-Rs
  recollect compact map.ukvs -o small.ukvs.gz --max-bytes 10MB --lookups access.log.gz
  recollect compact map.ukvs -o small.ukvs --min-accuracy 90% --lookups urls.txt
  recollect compact map.ukvs -o small.ukvs.zst --max-bytes 326kB --sets  hashed sets: more right answers per byte

\b
By weights: a node rolls up into one wildcard when it has more than weight * a * depth^-k children. Smaller weights,
smaller maps. By budget: the map with the fewest wrong answers for its size, found exactly. The expected lookups
come from --lookups, or from a built-in prior.
"""

# How each option of compaction by weights is called in `Weights`.
_WEIGHTS = (
    click.option(
        "--host-weight", type=float, metavar="W", help="Weight for hosts; inf rolls nothing up.  [default: 4]"
    ),
    click.option("--path-weight", type=float, metavar="W", help="Weight for paths.  [default: 2]"),
    click.option(
        "--host-a", type=float, metavar="A", help="Factor a of the rollup limit for hosts.  [default: 16.329]"
    ),
    click.option(
        "--host-k", type=float, metavar="K", help="Exponent k of the rollup limit for hosts.  [default: 0.714]"
    ),
    click.option(
        "--path-a", type=float, metavar="A", help="Factor a of the rollup limit for paths.  [default: 24.546]"
    ),
    click.option(
        "--path-k", type=float, metavar="K", help="Exponent k of the rollup limit for paths.  [default: 1.429]"
    ),
    click.option(
        "--fit", is_flag=True, help="Fit a and k to the tree of this map instead of using the published values."
    ),
    click.option("--max-host-depth", type=click.IntRange(1), metavar="N", help="Deepest host segment.  [default: 8]"),
    click.option("--max-path-depth", type=click.IntRange(1), metavar="N", help="Deepest path segment.  [default: 9]"),
)


_WEIGHT_NAMES = (
    "fit",
    "host_weight",
    "path_weight",
    "host_a",
    "host_k",
    "path_a",
    "path_k",
    "max_host_depth",
    "max_path_depth",
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed((*_WEIGHTS, *BUDGET_OPTIONS)):
        command = option(command)
    return command


@click.command(epilog=COMPACT_EPILOG)
@click.argument("source", metavar="MAP")
@click.option("-o", "--output", required=True, metavar="FILE", help="The smaller map; .gz and .zst are compressed.")
@_options
@SETS_OPTION
@form_options("lookups")
@click.option("--rollup-tlds", is_flag=True, help="Let top-level domains roll up too (com,*).")
@click.option("--threads", type=click.IntRange(1, 256), help="Threads to use.  [default: all cores]")
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@engine_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def compact(source: str, output: str, **options: Any) -> int:
    """Make a map smaller: replace keys with many siblings by wildcards. No held URI is ever missed.

    MAP is a map, plain or compressed, compacted before or not; - is stdin. Totals are kept. Voids are kept where they
    still change an answer. JSON blocks are merged.
    """
    if options["as_json"] and output == "-":
        raise UsageError("the map and the JSON report cannot both go to stdout", hint="give -o FILE")
    from recollect.formats.mapfiles import expect_map
    from recollect.formats.outputs import refuse_inputs

    expect_map(source)
    refuse_inputs(output, options["lookups"])  # the map itself may be replaced
    problems: list[Problem] = []
    engine = taken_engine(options, output)
    with progress_bar(quiet=options["quiet"] or options["as_json"]) as progress:
        on_problem = _stop_at_once if options["strict"] else problems.append
        where = {"source": source, "output": output, "threads": options["threads"] or 0, "on_problem": on_problem}
        started = time.monotonic()
        if options["sets"] and not any(options[name] for name in BUDGET_NAMES):
            raise UsageError("hashed sets need a budget", hint="add --max-bytes 10MB, for example")
        way = _by_budget if any(options[name] for name in BUDGET_NAMES) else _by_weights
        report = way(engine, progress, where, options)
        report["seconds"] = round(time.monotonic() - started, 3)
    report["skipped"] = len(problems)
    report["problems"] = [str(problem) for problem in problems[:100]]
    if options["as_json"]:
        emit_json(report)
    elif not options["quiet"]:
        _summarise(report, output, options["max_cost"])
    return 3 if problems else 0


def _stop_at_once(problem: Problem) -> None:
    raise FormatError(problem.reason, where=f"{problem.file}:{problem.line}", why=problem.excerpt)


def _by_weights(
    engine: Engine, progress: ProgressCallback, where: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Compaction as published."""
    weights = _weights(options, options["rollup_tlds"])
    result = engine.run(CompactByWeights(weights=weights, fit=options["fit"], **where), progress)
    report = asdict(result)
    # JSON has no infinity.
    report["weights"] = {name: "inf" if value == float("inf") else value for name, value in report["weights"].items()}
    return {"by": "weights", **report}


def _weights(options: dict[str, Any], rollup_tlds: bool) -> Weights:
    from recollect.profiles.compaction.weights import Weights

    if options["fit"] and any(options[name] is not None for name in ("host_a", "host_k", "path_a", "path_k")):
        raise UsageError("--fit finds a and k itself", hint="leave out --host-a, --host-k, --path-a and --path-k")
    given = {name: options[name] for name in _WEIGHT_NAMES[1:] if options[name] is not None}
    return replace(Weights(rollup_tlds=rollup_tlds), **given)


def _by_budget(
    engine: Engine, progress: ProgressCallback, where: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Compaction within a budget."""
    mixed = [name for name in _WEIGHT_NAMES if options[name] is not None and options[name] is not False]
    if mixed:
        raise UsageError(
            "a budget and weights cannot be combined", why=f"--{mixed[0].replace('_', '-')}", hint="use one of them"
        )
    budget = budget_of(options)
    lookups = lookups_of(options["lookups"], asked_of(options), where["on_problem"])
    result = engine.run(CompactByBudget(budget=budget, lookups=lookups, **where), progress)
    return {"by": "budget", **asdict(result), "cost": result.cost, "notes": lookups.notes() if lookups else []}


_HOW_COST = " (--max-cost 1 is one key per URI-R; one key per 100 URI-Rs is 1%)"


def _summarise(report: dict[str, Any], output: str, max_cost: float | None) -> None:
    kept = report["keys_out"] / report["keys_in"] if report["keys_in"] else 1.0
    talk(
        f"{counted(report['keys_in'], 'key')} became {report['keys_out']:,} ({kept:.2%}), "
        f"{format_size(report['bytes_in'])} became {format_size(report['bytes_out'])} of text"
        + (f", in {output}" if output != "-" else "")
    )
    if report["by"] == "weights":
        weights = report["weights"]
        talk(
            f"{counted(report['rollups'], 'wildcard')} made; weights {weights['host_weight']} for hosts "
            f"(a {weights['host_a']:.3f}, k {weights['host_k']:.3f}) and {weights['path_weight']} for paths "
            f"(a {weights['path_a']:.3f}, k {weights['path_k']:.3f})"
        )
    else:
        summarise_budget(report)
        if report["keys_out"] == report["keys_in"]:
            talk(f"nothing to do: the map already fits the budget{_HOW_COST if max_cost == 1 else ''}")
    for problem in report["problems"][:5]:
        talk(f"skipped: {problem}")
    if report["skipped"]:
        talk(f"{counted(report['skipped'], 'line')} could not be read and left out; see `recollect validate`")
