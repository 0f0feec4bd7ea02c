"""`recollect voids` (known-absent keys) and `recollect filter` (hashes of keys)."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from recollect.cli.console import emit_json, json_option, progress_bar, talk
from recollect.cli.forms import asked_of, form_options, say_notes
from recollect.cli.types import DATE
from recollect.datetimes import format_iso
from recollect.errors import FormatError, UsageError
from recollect.model import Problem
from recollect.quantities import counted, format_size

VOIDS_EPILOG = """\b
Examples:
  recollect voids access.log --map map.ukvs -o voids.ukvs
  recollect voids logs/*.gz --map map.ukvs -o voids.ukvs --min-requests 10
  recollect merge small.ukvs voids.ukvs -o better.ukvs          add the voids to a compacted map

\b
LOG is an access log of the archive (with its answers), a MemGator log, or a list of URIs. MAP should be the complete
map. Below the wildcards of a compacted map it is unknown what is held, so no voids are written there.
"""
FILTER_EPILOG = """\b
Examples:
  recollect filter map.ukvs -o archive.filter                   about 9 bits per key, 0.4% false positives
  recollect filter index.cdxj.gz -o archive.filter --bits 16    about 18 bits per key, 0.002%
  recollect filter index.cdxj.gz -o archive.filter --policy HxP1
  recollect lookup archive.filter http://example.com/
"""


class Problems:
    """Unreadable lines: counted and reported, or the first one raised as an error."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self.count = 0
        self.examples: list[str] = []

    def note(self, problem: Problem) -> None:
        """Take one."""
        if self._strict:
            place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
            raise FormatError(problem.reason, where=place, why=problem.excerpt)
        self.count += 1
        if len(self.examples) < 100:
            self.examples.append(str(problem))

    def report(self) -> None:
        """Say how many there were, and show some."""
        for example in self.examples[:5]:
            talk(f"skipped: {example}")
        if self.count > 5:
            talk(f"... {counted(self.count, 'line')} could not be read")

    def as_dict(self) -> dict[str, Any]:
        return {"skipped": self.count, "problems": self.examples}


def _moment(stated: datetime | None, logs: tuple[str, ...], maps: tuple[str, ...]) -> str:
    """The moment up to which voids hold: the stated one, else that of the maps, which voids keep, else of the logs."""
    from recollect.profiles.indexes.profile import time_of_inputs

    if stated is None and not maps:
        stated = time_of_inputs(logs) or datetime.now(UTC)
    return format_iso(stated) if stated else ""


@click.command(epilog=VOIDS_EPILOG)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--map", "maps", multiple=True, required=True, metavar="MAP", help="A map of the holdings. Repeatable.")
@click.option("-o", "--output", required=True, metavar="FILE", help="The map of voids.")
@form_options("logs")
@click.option(
    "-n",
    "--min-requests",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Requests without a capture that make a void.",
)
@click.option(
    "--min-branches",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Absent branches that make one wildcard for an empty subtree.",
)
@click.option(
    "--trust-log",
    is_flag=True,
    help="Trust a 404 even where MAP has a wildcard. This may hide another query of the same path.",
)
@click.option("--updated-at", type=DATE, metavar="TIME", help="The time for the header.  [default: that of the maps]")
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def voids(logs: tuple[str, ...], maps: tuple[str, ...], output: str, **options: Any) -> int:
    """Publish known-absent URLs from a request log, as keys with frequency 0.

    A key becomes a void when it was requested often enough and never found (404, or no status in the log and no map has
    it). An empty subtree becomes one wildcard. A void never covers a held URI.
    """
    from recollect.formats.mapfiles import expect_map
    from recollect.profiles.compaction.voids import make_voids

    for name in maps:
        expect_map(name)
    if options["as_json"] and output == "-":
        raise UsageError("the map and the JSON report cannot both go to stdout", hint="give -o FILE")
    problems = Problems(options["strict"])
    with progress_bar(quiet=options["quiet"] or options["as_json"]) as progress:
        result = make_voids(
            logs,
            maps,
            output,
            min_requests=options["min_requests"],
            min_branches=options["min_branches"],
            trust_log=options["trust_log"],
            updated_at=_moment(options["updated_at"], logs, maps),
            asked=asked_of(options),
            on_problem=problems.note,
            progress=progress,
        )
    if options["as_json"]:
        emit_json({**asdict(result), **problems.as_dict()})
    elif not options["quiet"]:
        talk(
            f"{counted(result.voids, 'void')} ({counted(result.wildcards, 'wildcard')}) for "
            f"{result.covered_requests:,} of {counted(result.requests, 'request')} without a capture "
            f"({counted(result.requested_keys, 'distinct key')})"
        )
        if result.unsure:
            talk(
                f"left out {counted(result.unsure, 'key')} that a wildcard of the map may hold "
                "(give the complete map, or --trust-log)"
            )
        say_notes(result.notes)
        problems.report()
    return 3 if problems.count else 0


@click.command("filter", epilog=FILTER_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="MAP|INDEX...")
@click.option("-o", "--output", required=True, metavar="FILE", help="The filter; .gz and .zst are compressed.")
@click.option("--policy", default="", help="URI-Key policy.  [default: the map's; HxPx for indexes]")
@click.option(
    "--bits", type=click.Choice(["8", "16"]), default="8", show_default=True, help="Bits of a key's fingerprint."
)
@click.option(
    "--salt", default="", metavar="TEXT", help="Salt that makes the hashes differ from those of other archives."
)
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def filter_command(inputs: tuple[str, ...], output: str, **options: Any) -> int:
    """Write hashes of keys (a binary fuse filter), for archives that may not publish their URLs.

    A filter answers lookups like a map, without frequencies. It has no false negatives and few false positives.
    A reader can test a known URL, but cannot list the URLs.
    """
    from recollect.maps.filters import make_filter

    if options["as_json"] and output == "-":
        raise UsageError("the filter and the JSON report cannot both go to stdout", hint="give -o FILE")
    problems = Problems(options["strict"])
    started = time.monotonic()
    with progress_bar(quiet=options["quiet"] or options["as_json"]) as progress:
        result = make_filter(
            inputs,
            output,
            policy=options["policy"],
            bits=int(options["bits"]),
            salt=options["salt"].encode(),
            on_problem=problems.note,
            progress=progress,
        )
    if options["as_json"]:
        seconds = round(time.monotonic() - started, 3)
        emit_json({**asdict(result), "bits_per_key": result.bits_per_key, "seconds": seconds, **problems.as_dict()})
    elif not options["quiet"]:
        talk(
            f"{counted(result.keys, 'key')} of policy {result.policy} in {format_size(result.bytes)}, "
            f"{result.bits_per_key:.1f} bits per key"
            + (f", {counted(result.voids, 'void')} left out" if result.voids else "")
        )
        if not result.keys:
            talk("warning: the filter is empty: aggregators will not ask this archive")
        if any(result.wildcards.values()):
            talk("the map has wildcards: a lookup tries several keys, and each of them may be a false positive")
        problems.report()
    return 3 if problems.count else 0
