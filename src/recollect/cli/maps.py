"""Commands about maps as files: validate, merge, diff."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import (
    emit_json,
    emit_json_line,
    emit_line,
    emit_table,
    json_option,
    progress_bar,
    talk,
    temp_dir_option,
)
from recollect.cli.engines import engine_options, taken_engine
from recollect.cli.types import DATE
from recollect.engines.operations import Merge
from recollect.errors import UsageError
from recollect.formats.ukvs import Header, Record
from recollect.formats.ukvs.faults import Fault
from recollect.formats.ukvs.faults import validate as faults_of
from recollect.formats.ukvs.records import format_line, shown
from recollect.model import Problem, ProgressCallback
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.maps.diff import Change
    from recollect.maps.merge import MergeResult

VALIDATE_EPILOG = """\b
Examples:
  recollect validate map.ukvs
  recollect validate maps/*.ukvs.gz --limit 0      every error of every map
  zcat map.ukvs.gz | recollect validate -
  recollect validate map.ukvs --json | jq .files[].counts

\b
Errors break the format, or hide records from readers and searches. Notes have no effect on readers.
Exit code: 0 no errors, 1 errors (or a file that cannot be read), 2 wrong usage or a file that does not exist.
"""


@click.command(epilog=VALIDATE_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--limit", default=100, show_default=True, help="Print at most N errors and notes per file; 0 prints all."
)
@click.option("--strict", is_flag=True, help="Stop at the first error.")
@json_option
def validate(files: tuple[str, ...], limit: int, strict: bool, as_json: bool) -> int:
    """Report every error in maps (UKVS files, plain or compressed; - is stdin) with line and reason."""
    reports = []
    for file in files:
        report = _report(file, limit, strict, quiet=as_json)
        reports.append(report)
        if strict and report["errors"]:
            break
    if as_json:
        emit_json({"clean": not any(report["errors"] for report in reports), "files": reports})
    if any("missing" in report["counts"] for report in reports):
        return 2
    return 1 if any(report["errors"] for report in reports) else 0


def _report(file: str, limit: int, strict: bool, *, quiet: bool) -> dict[str, Any]:
    """Go through one file, printing faults as they are found unless `quiet`."""
    counts: Counter[tuple[str, str]] = Counter()
    kept: list[dict[str, Any]] = []
    seen = 0
    with progress_bar(quiet=quiet) as progress:
        for fault in _faults(file, progress):
            seen += 1
            counts[fault.level, fault.code] += 1
            if not limit or seen <= limit:
                if quiet:
                    kept.append(fault._asdict())
                else:
                    emit_line(_sentence(file, fault))
            if strict and fault.level == "error":
                break
    errors = sum(count for (level, _), count in counts.items() if level == "error")
    report = {
        "file": file,
        "errors": errors,
        "notes": counts.total() - errors,
        "counts": {code: count for (_, code), count in sorted(counts.items())},
        "faults": kept,
    }
    if not quiet:
        _summarise(report, counts.total() - limit if limit else 0)
    return report


def _faults(file: str, progress: ProgressCallback) -> Iterator[Fault]:
    from recollect.formats.detect import not_a_map

    try:
        if file != "-" and (other := not_a_map(file)):
            yield Fault(None, "error", "not-a-map", f"not a map: {other}")
            return
        yield from faults_of(file, progress)
    except FileNotFoundError:
        yield Fault(None, "error", "missing", "no such file")
    except OSError as error:
        yield Fault(None, "error", "unreadable", f"cannot be read: {error.strerror or error}")


def _sentence(file: str, fault: Fault) -> str:
    place = file if fault.line is None else f"{file}:{fault.line}"
    return f"{place}: {fault.level}: {fault.reason}" + (f": {fault.excerpt}" if fault.excerpt else "")


def _summarise(report: dict[str, Any], unprinted: int) -> None:
    if unprinted > 0:
        talk(f"{report['file']}: {unprinted:,} more are not printed; show them with --limit 0")
    if not report["counts"]:
        talk(f"{report['file']}: clean")
        return
    if "not-a-map" in report["counts"]:  # its one line says it all
        return
    kinds = ", ".join(f"{count:,} {code}" for code, count in report["counts"].items())
    verdict = "not clean" if report["errors"] else "clean, with notes"
    talk(
        f"{report['file']}: {verdict}: "
        f"{counted(report['errors'], 'error')}, {counted(report['notes'], 'note')} ({kinds})"
    )


MERGE_EPILOG = """\b
Examples:
  recollect merge map.ukvs new.ukvs -o map.ukvs       bring a map up to date
  recollect merge maps/*.ukvs.gz -o all.ukvs.zst
  recollect merge 2023.ukvs 2024.ukvs --spread -o both.ukvs
  recollect merge holdings.ukvs voids.ukvs -o map.ukvs
  recollect merge index.ukvs sample.ukvs -o map.ukvs  the index wins; of the sample, what was seen
  recollect merge map.ukvs.gz -o map.ukvs.zst         write it in another container

\b
URI-Ms add up. A URI-R may be in several maps, so URI-R counts become lower bounds (12/3+);
with --disjoint they add up too. A count is a lower bound (5+) where another map's wildcard
may hold more of the same. See docs/ukvs.md for all rules.
Exit code: 0 done, 1 failed, 2 wrong usage, 3 done but some lines could not be read.
"""
_SHOWN_PROBLEMS = 10


@click.command(epilog=MERGE_EPILOG)
@click.argument("maps", nargs=-1, required=True, metavar="MAP...")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="The map; .gz and .zst are compressed.  [default: stdout]",
)
@click.option("--disjoint", is_flag=True, help="The maps have no URI-R in common: add their URI-R counts.")
@click.option(
    "--spread", is_flag=True, help="Add the number of profiles that have each key (kept anyway where maps have it)."
)
@click.option("--id", "archive", default="", metavar="URI", help="The archive's URI, if the maps name different ones.")
@click.option(
    "--updated-at",
    type=DATE,
    metavar="TIME",
    help="The moment up to which the merged map is complete.  [default: that of the oldest map]",
)
@click.option(
    "--output-format",
    type=click.Choice(["ukvs", "cdxj"]),
    help="UKVS, or the older CDXJ profile.  [default: as the maps are]",
)
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@temp_dir_option
@engine_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def merge(maps: tuple[str, ...], output: str, strict: bool, as_json: bool, quiet: bool, **options: Any) -> int:
    """Merge maps into one. The output may replace one of the inputs.

    Maps must have the same columns. Maps of different policies become keys and wildcards of one map (H3P0:
    uk,co,bbc,*), see `recollect convert`. Unsorted maps are sorted first; - is stdin. Where the maps have different
    filters, the merged map says no only where each of them covers the request.
    """
    from recollect.datetimes import format_iso
    from recollect.formats.mapfiles import expect_map
    from recollect.maps.merge import MergeOptions

    if as_json and output == "-":
        raise UsageError("--json and the map would both go to stdout", hint="add -o map.ukvs")
    problems = Problems(strict)
    engine = taken_engine(options, output)
    how = MergeOptions(
        disjoint=options["disjoint"],
        spread=options["spread"],
        archive=options["archive"],
        updated_at=format_iso(updated) if (updated := options["updated_at"] or _time_of(maps)) else "",
        style=options["output_format"] or "",
        temp_dir=options["temp_dir"],
    )
    started = time.monotonic()
    with progress_bar(quiet=quiet or as_json) as progress:
        for name in maps:
            expect_map(name)
        result = engine.run(Merge(maps, output, how, problems.on_problem), progress)
    seconds = time.monotonic() - started
    if as_json:
        emit_json({**result.as_dict(), "skipped": problems.count, "seconds": round(seconds, 3)})
    elif not quiet:
        _say_merged(result, seconds, output)
    problems.summarise()
    return 3 if problems.count else 0


def _time_of(maps: tuple[str, ...]) -> datetime | None:
    """The earliest moment up to which one of the maps is complete."""
    from recollect.profiles.indexes.profile import time_of_inputs

    try:
        return time_of_inputs(maps)
    except UsageError:  # not files of this machine
        return None


class Problems:
    """Unreadable lines: the first ones are shown, all are counted; with --strict the first one is an error."""

    def __init__(self, strict: bool) -> None:
        self.count = 0
        self.on_problem = None if strict else self._note

    def _note(self, problem: Problem) -> None:
        self.count += 1
        if self.count <= _SHOWN_PROBLEMS:
            talk(f"skipped: {problem}")

    def summarise(self) -> None:
        if self.count > _SHOWN_PROBLEMS:
            talk(f"skipped: {self.count - _SHOWN_PROBLEMS:,} more; see them with `recollect validate --limit 0`")


def _say_merged(result: MergeResult, seconds: float, output: str) -> None:
    rate = f"{result.records / max(seconds, 0.001):,.0f} records/s"
    target = "" if output == "-" else f"{output}: "
    talk(
        f"{target}{counted(result.maps, 'map')}, {counted(result.records, 'record')} -> "
        f"{counted(result.keys, 'key')} in {seconds:.1f} s, {rate}"
    )
    for name, policy in result.converted.items():
        talk(f"{name}: keys of {policy} became keys and wildcards of HxPx")
    for name in result.sorted_first:
        talk(f"{name} was not sorted; it was sorted first")
    if result.duplicates:
        talk(f"added up {counted(result.duplicates, 'record')} of keys that a map had more than once")
    if result.voids_dropped:
        talk(f"dropped {counted(result.voids_dropped, 'void')} because another map may hold what they exclude")
    if result.conflicts:
        talk(f"{result.conflicts:,} other values differed between maps; the first map's were kept")


DIFF_EPILOG = """\b
Examples:
  recollect diff old.ukvs new.ukvs
  recollect diff old.ukvs new.ukvs.zst --limit 0 > changes.txt
  recollect diff old.ukvs new.ukvs --json | jq -r 'select(.kind == "added").key'

\b
Lines: + added, - removed, ! changed (old -> new).
Exit code, as in diff(1): 0 equal, 1 different (or failed), 2 wrong usage, 3 equal, but some lines could not be
read. Headers are compared, but do not change the exit code.
"""


@click.command(epilog=DIFF_EPILOG)
@click.argument("old")
@click.argument("new")
@click.option("--limit", default=100, show_default=True, help="Print at most N changes; 0 prints all.")
@click.option("--strict", is_flag=True, help="Stop at the first unreadable line.")
@temp_dir_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; see the exit code.")
def diff(old: str, new: str, limit: int, strict: bool, temp_dir: str | None, as_json: bool, quiet: bool) -> int:
    """Show which keys were added, removed or changed between two maps.

    With --json each change is one line of JSON, all of them, and the last line is the summary.
    """
    from recollect.formats.mapfiles import expect_map
    from recollect.maps.diff import diff_maps

    for name in (old, new):
        expect_map(name)
    problems = Problems(strict)
    counts: Counter[str] = Counter()
    captures: Counter[str] = Counter()
    with (
        progress_bar(quiet=quiet or as_json) as progress,
        diff_maps(old, new, temp_dir=temp_dir, on_problem=problems.on_problem, progress=progress) as found,
    ):
        for change in found.changes:
            counts[change.kind] += 1
            for sign, record in ((-1, change.old), (1, change.new)):
                captures[change.kind] += sign * (record.frequency.uri_m.value or 0) if record else 0
            if as_json and not quiet:
                emit_json_line(_as_json(change))
            elif not quiet and (not limit or counts.total() <= limit):
                emit_line(_as_line(change, found.old, found.new))
        headers = _changed_headers(found.old, found.new)
    if not quiet:
        _say_differences(counts, captures, headers, as_json=as_json, unprinted=counts.total() - limit if limit else 0)
    problems.summarise()
    return 1 if counts else 3 if problems.count else 0


def _as_line(change: Change, old: Header, new: Header) -> str:
    before = shown(format_line(change.old, old), 500) if change.old else ""
    after = shown(format_line(change.new, new), 500) if change.new else ""
    if change.kind == "changed":
        keys = shown(b" ".join(change.keys), 500)
        return f"! {keys} {before[len(keys) + 1 :]} -> {after[len(keys) + 1 :]}"
    return f"+ {after}" if change.kind == "added" else f"- {before}"


def _as_json(change: Change) -> dict[str, Any]:
    keys = [key.decode("utf-8", "replace") for key in change.keys]
    found: dict[str, Any] = {"kind": change.kind, "key": keys[0]}
    if keys[1:]:
        found["more_keys"] = keys[1:]
    for name, record in (("old", change.old), ("new", change.new)):
        if record is not None:
            found[name] = _record_as_json(record)
    return found


def _record_as_json(record: Record) -> dict[str, Any]:
    said: dict[str, Any] = {"frequency": str(record.frequency)}
    if record.json:
        said["json"] = record.json
    if record.values:
        said["values"] = [value.decode("utf-8", "replace") for value in record.values]
    return said


def _changed_headers(old: Header, new: Header) -> list[str]:
    pairs: list[tuple[str, Any, Any]] = [("id", old.id, new.id), ("values", old.values, new.values)]
    pairs.append(("context", old.context, new.context))
    names = sorted({*old.meta, *new.meta})
    pairs += [(f"meta {name}", old.meta.get(name), new.meta.get(name)) for name in names]
    return [name for name, before, after in pairs if before != after]


def _say_differences(
    counts: Counter[str], captures: Counter[str], headers: list[str], *, as_json: bool, unprinted: int
) -> None:
    kinds = ("added", "removed", "changed")
    if as_json:
        emit_json_line({"summary": {kind: counts[kind] for kind in kinds}, "headers": headers})
        return
    if unprinted > 0:
        talk(f"{unprinted:,} more changes are not printed; show them with --limit 0")
    if headers:
        talk(f"headers differ in {', '.join(headers)}")
    if not counts:
        talk("no key differs")
        return
    rows = [(kind, f"{counts[kind]:,}", f"{captures[kind]:+,}") for kind in kinds]
    emit_table(("", "keys", "URI-Ms"), rows, right=(1, 2))
