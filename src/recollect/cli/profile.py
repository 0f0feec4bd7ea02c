"""`recollect profile` and `recollect verify`: make a map from indexes, and check that it holds them all."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, json_option, progress_bar, talk, temp_dir_option
from recollect.cli.engines import engine_options, taken_engine
from recollect.cli.forms import form_options
from recollect.cli.types import DATE, SIZE, Joined
from recollect.datetimes import format_day
from recollect.engines.operations import Profile
from recollect.errors import UsageError
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.model import Problem
    from recollect.profiles.indexes.profile import ProfileResult
    from recollect.profiles.statistics.verify import VerifyResult

_EXAMPLES = """\b
Examples:
  recollect profile index.cdxj.gz -o map.ukvs
  recollect profile indexes/ 'more/*.cdx' -o map.ukvs --name "My Archive" --id https://archive.example/
  recollect profile *.cdxj --status 200 --media-type text/html --exclude robots.txt,sitemap.xml -o html.ukvs
  recollect profile *.cdxj --where "year >= 2010 and url matches '[.]pdf$'" -o pdf.ukvs
  recollect profile *.warc.gz --by year -o by-year.ukvs
  recollect profile *.warc.gz --by language --detect-language py3langid -o by-language.ukvs
  recollect profile clicks.tsv --columns time,url -o clicked.ukvs
  zcat *.cdx.gz | recollect profile - --policy H3P1 --output-format cdxj -o profile.cdxj
  recollect profile hdfs:///cdx/ -o hdfs:///maps/all/ --engine spark --master yarn
"""
_SHOWN = 20
_FILTERS = (
    click.option(
        "--status",
        "statuses",
        multiple=True,
        metavar="CODE",
        help="Keep this status: 200, 2xx, - (none); and revisits without one. Repeatable.",
    ),
    click.option(
        "--media-type",
        "media_types",
        multiple=True,
        metavar="TYPE",
        help="Keep this type, or 'image/*'; and all revisits. Repeatable.",
    ),
    click.option("--since", default="", metavar="DATE", help="Keep captures from this date on: 2014, 2014-06-30."),
    click.option("--until", default="", metavar="DATE", help="Keep captures up to this date, inclusive."),
    click.option(
        "--exclude",
        multiple=True,
        metavar="NAME,...",
        help="Leave out URIs whose last path segment is robots.txt,sitemap.xml (for example).",
    ),
    click.option(
        "--where",
        cls=Joined,
        pattern="({})",
        between=" and ",
        metavar="EXPR",
        help='Keep captures for which this holds: "status == 200 and year > 2010", "not revisit". Tests of the type or '
        "missing status of a revisit are unknown and drop no capture.",
    ),
    click.option(
        "--all-schemes",
        is_flag=True,
        help="Keep dns:, warcinfo:, urn:, metadata and other records that are not web captures.",
    ),
)
_RESOURCES = (
    click.option("--threads", type=click.IntRange(1, 256), help="Threads to parse with.  [default: cores, up to 8]"),
    click.option(
        "--memory-limit",
        type=SIZE,
        metavar="SIZE",
        help="Memory for sorting: 500MB, 2GB.  [default: a quarter of RAM]",
    ),
    temp_dir_option,
)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose captures; shared by every command that reads indexes."""
    return _with(command, _FILTERS)


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that bound what a command uses."""
    return _with(command, _RESOURCES)


def _with(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@click.command("profile", epilog=_EXAMPLES)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="The map; .gz and .zst are compressed.  [default: stdout]"
)
@click.option(
    "--policy",
    default="HxPx",
    show_default=True,
    help="URI-Key policy: HxPx, any HmPn, DDom, DSub, DPth, DQry, DIni, URIR.",
)
@click.option(
    "--output-format",
    type=click.Choice(["ukvs", "cdxj"]),
    default="ukvs",
    show_default=True,
    help="UKVS, or the older CDXJ profile.",
)
@form_options("inputs")
@filter_options
@click.option(
    "--by",
    "by",
    multiple=True,
    type=click.Choice(["year", "month", "status", "media-type", "language"]),
    help="Decompose the frequencies. Repeatable.",
)
@click.option(
    "--detect-language",
    type=click.Choice(["py3langid", "lingua"]),
    help="With --by language: detect it in WARC texts without Content-Language.",
)
@click.option("--by-columns", is_flag=True, help="Put the decomposition into key columns instead of the JSON block.")
@click.option("--name", default="", help="The archive's name, for the header.")
@click.option("--id", "archive_id", default="", metavar="URI", help="The archive's URI, for the header.")
@click.option(
    "--updated-at",
    type=DATE,
    metavar="TIME",
    help="The moment up to which the inputs are complete, for the header.  [default: the newest input's time]",
)
@click.option(
    "--allow-empty", is_flag=True, help="Write a map even if no capture is left; it answers no to every lookup."
)
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@resource_options
@engine_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def profile(inputs: tuple[str, ...], **options: Any) -> int:
    """Make a map of what an archive holds from its indexes.

    INPUT is any number of files, folders, globs, or - for stdin: CDX, CDXJ, ZipNum, SURT and URL lists, WARC, ARC,
    WACZ, Parquet, access logs, tables of URLs, TimeMaps, maps; plain, gzip, bzip2 or zstd; sorted or not. Summaries
    by cdx-summary, cdx-summarize or archive_profiler give a map by host. The format is detected from the content;
    `recollect inspect FILE` shows it, --input-format and --columns override it. Other files are ignored and reported.

    Exit code 3 means that some input was damaged or could not be read; each is reported. Exit code 1 means that
    nothing was written, for example because the inputs have no captures.
    """
    from recollect.formats.summaries import summary_of
    from recollect.profiles.indexes.options import ProfileOptions

    as_json, quiet, output = options.pop("as_json"), options.pop("quiet"), options.pop("output")
    engine = taken_engine(options, output)
    if as_json and output == "-":
        raise UsageError("--json and the map would both go to stdout", hint="add -o map.ukvs")
    options["updated_at"] = options["updated_at"] or _time_of(inputs)
    if Path(inputs[0]).is_file() and summary_of(inputs[0]) is not None:
        return _from_summaries(inputs, output, options["updated_at"] or datetime.now(UTC), quiet=quiet, as_json=as_json)
    options["detect_language"] = options["detect_language"] or ""
    chosen = ProfileOptions(**options)
    started = time.monotonic()
    with progress_bar(quiet=quiet or as_json) as progress:
        result = engine.run(Profile(inputs, output, chosen), progress)
    seconds = time.monotonic() - started
    if as_json:
        emit_json({**result.as_dict(), "seconds": round(seconds, 3)})
    elif not quiet:
        _summarize(result, seconds)
    return 3 if result.partial else 0


def _time_of(inputs: Sequence[str]) -> datetime | None:
    """The time of the newest input; a clock that is ahead must not make a map newer than it is."""
    from recollect.profiles.indexes.profile import time_of_inputs

    try:
        found = time_of_inputs(inputs)
    except UsageError:  # not files of this machine, or none at all, which the engine reports
        return None
    return None if found is None else min(found, datetime.now(UTC))


def _from_summaries(inputs: Sequence[str], output: str, updated_at: datetime, *, quiet: bool, as_json: bool) -> int:
    """A map by host from summaries of other tools, which have no captures to profile."""
    from recollect.maps.foreign import map_of_summaries

    done = map_of_summaries(inputs, output, updated_at)
    if as_json:
        emit_json({"output": output, "summary_of": str(done.kind), "keys": done.keys, "captures": done.captures})
    elif not quiet:
        target = "" if output == "-" else f"{output}: "
        talk(f"{target}{counted(done.keys, 'key')} by host, about {counted(done.captures, 'capture')}, by {done.kind}")
    return 0


def _summarize(result: ProfileResult, seconds: float) -> None:
    totals, tally = result.totals, result.tally
    size = sum(source.size or 0 for source in result.sources)
    files = counted(len(result.sources), "file")
    gamma = "" if totals.gamma is None else f" (γ {totals.gamma:.2f})"
    span = f", {format_day(tally.first_time)} to {format_day(tally.last_time)}" if tally.first_time else ""
    target = "" if result.output in (None, "-") else f"{result.output}: "
    held = counted(totals.captures, "capture")
    held += "" if totals.known_uri_rs is None else f" of {counted(totals.known_uri_rs, 'URI-R')}"
    talk(f"{target}{counted(totals.keys, 'key')}, {held}{gamma}{span}")
    rate = f"{tally.lines / max(seconds, 0.001):,.0f} lines/s"
    how = "already sorted" if result.was_sorted else "sorted here"
    spilled = f", {format_size(result.spilled)} on disk" if result.spilled else ""
    rows = [
        (
            "read",
            f"{tally.lines:,}",
            f"lines of {files}{_in_bytes(size)} in {seconds:.1f} s, {rate}, {how}{spilled}",
        )
    ]
    rows += [
        (word, f"{sum(counter.values()):,}", ", ".join(f"{name} ×{count:,}" for name, count in counter.most_common(8)))
        for word, counter in (
            *(("filtered", tally.filtered), ("left out", tally.left_out)),
            *(("skipped", tally.skipped), ("flawed", tally.flawed)),
        )
        if counter
    ]
    width = max(len(count) for _, count, _ in rows)
    for word, count, detail in rows:
        talk(f"  {word:<9}{count:>{width}}  {detail}")
    for problem in tally.problems[:5]:
        talk(f"    {problem}")
    for damage in _by_kind(tally.damaged)[:_SHOWN]:
        talk(f"  damaged  {damage}")
    for problem in tally.ignored[:_SHOWN]:
        talk(f"  ignored  {problem}")
    if len(tally.ignored) > _SHOWN:
        talk(f"  ignored  {len(tally.ignored) - _SHOWN:,} more; --json lists all")
    for source in [source for source in result.sources if source.form is not None][:_SHOWN]:
        talk(f"  read as  {source.label}: {source.form}")
    for note in tally.notes[:_SHOWN]:
        talk(f"  {note}")


def _by_kind(problems: Sequence[Problem]) -> list[str]:
    """The first problem of each kind in each file, and how many there are of it: one damage has much debris."""
    first: dict[tuple[str, str], Problem] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = (problem.file, re.sub(r"[0-9]+", "", problem.reason.partition(": ")[0]))
        first.setdefault(kind, problem)
        counts[kind] += 1
    return [f"{one}" + (f" (and {counts[kind] - 1:,} more)" if counts[kind] > 1 else "") for kind, one in first.items()]


def _in_bytes(size: int) -> str:
    return f" ({format_size(size)})" if size else ""


_VERIFY_EXAMPLES = """\b
Examples:
  recollect verify map.ukvs indexes/
  recollect verify small.ukvs *.cdxj.gz              also for a compacted map
  recollect verify map.ukvs new.cdxj --partial       the map covers more than this index
"""


@click.command("verify", epilog=_VERIFY_EXAMPLES)
@click.argument("map_path", metavar="MAP")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--partial", is_flag=True, help="The map may hold more than these inputs; its counts may be larger.")
@click.option("--no-counts", is_flag=True, help="Do not compare counts.")
@resource_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress; print only what is missing.")
def verify(map_path: str, inputs: tuple[str, ...], **options: Any) -> int:
    """Check that a map holds everything in the indexes, and that its counts are correct.

    Every URI of INPUT that passes the filters of the map is looked up in MAP, by its key in the index and by its
    original URL. Exit code 1 if one is not found or a count is wrong; each is named with file and
    line.
    """
    from recollect.profiles.statistics.verify import verify as check

    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    with progress_bar(quiet=quiet or as_json) as progress:
        result = check(
            map_path,
            inputs,
            counts=not options.pop("no_counts"),
            progress=progress,
            **options,
        )
    if as_json:
        emit_json(result.as_dict())
    else:
        _report(map_path, result, quiet)
    if not result.ok:
        return 1
    return 3 if result.problems else 0


def _report(map_path: str, result: VerifyResult, quiet: bool) -> None:
    for miss in result.misses:
        click.echo(f"missed: {miss}")
    for wrong in result.wrong_counts:
        click.echo(f"wrong count: {wrong}")
    for problem in result.problems[:5]:
        talk(f"skipped: {problem}")
    for problem in result.ignored[:_SHOWN] if not quiet else ():
        talk(f"ignored: {problem}")
    if quiet:
        return
    looked = f"{counted(result.captures, 'capture')}: {counted(result.uris, 'lookup')} by key, {result.urls:,} by URL"
    found = "all found" if not result.missed else f"{result.missed:,} NOT found"
    counts = f"{counted(result.keys_compared, 'count')} compared, "
    counts += "all right" if not result.wrong else f"{result.wrong:,} WRONG"
    counts += (
        " (none is too small; the map covers more than this input)" if result.at_least and not result.wrong else ""
    )
    if result.counts_skipped:
        counts = f"counts not compared: {result.counts_skipped}"
    talk(f"{map_path}: {looked}, {found}; {counts}")
    if result.other_keys:
        talk(
            f"the keys of {counted(result.other_keys, 'URL')} differ from those of their index lines, "
            "and the map does not have them; see `recollect inspect`"
        )
