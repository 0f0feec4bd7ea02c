"""`recollect keep`: an archive's map that keeps itself current, from its index files to its published folder."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, json_option, progress_bar, talk
from recollect.cli.logs import log_option
from recollect.cli.types import DURATION, SIZE
from recollect.errors import RecollectError, UsageError
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.profiles.upkeep.status import Status
    from recollect.profiles.upkeep.update import KeepOptions, Update

_EPILOG = """\b
Examples:
  recollect keep --index 'collections/*/indexes/' --to public/ --max-bytes 10MB --data keep/
  recollect keep --index indexes/ --to public/ --max-bytes 10MB --data keep/ --once        from cron
  recollect keep --index '/cdx/*.cdx.gz' --index table/ --to public/ --max-bytes 1MB --lookups access.log --data keep/
  recollect keep --index indexes/ --to public/ --max-bytes 10MB --exclude-keys takedowns.aclj --every 1h --data keep/
  recollect keep --collection nat --id https://a.example/nat/ --index nat/ --to public/ --max-bytes 1MB --data keep/nat/

\b
Exit code: 0 done, 1 failed (the published map stays as it was), 2 wrong usage, 3 done but some index lines could not
be read.
"""
_SHOWN = 10


@click.command(epilog=_EPILOG)
@click.option(
    "--index", "index", multiple=True, required=True, metavar="GLOB", help="Index files, folders, globs. Repeatable."
)
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="The web root to publish into.")
@click.option(
    "--max-bytes", required=True, type=SIZE, metavar="10MB", help="Size limit of the map and of every published file."
)
@click.option("--data", required=True, type=click.Path(file_okay=False), help="Folder for profiles and state, private.")
@click.option("--lookups", multiple=True, metavar="LOG", help="What people ask for: the archive's access log.")
@click.option(
    "--every", type=DURATION, default=86400.0, metavar="24h", help="Interval between updates.  [default: 24h]"
)
@click.option("--once", is_flag=True, help="Update once and end, for cron.")
@click.option("--no-sets", is_flag=True, help="Plain wildcards only, without hashed sets below them.")
@click.option(
    "--exclude-keys",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Keys, wildcards or pywb access rules (.aclj) to exclude from the map. Repeatable.",
)
@click.option("--name", default="", help="The archive's name, for the map and the status page.")
@click.option("--id", "archive_id", default="", metavar="URI", help="The archive's URI, for the header of the map.")
@click.option("--collection", default="", metavar="NAME", help="One of several maps of the host: that of a collection.")
@click.option("--base-url", "base_uri", default="", help="Public address of the web root, for an absolute Link header.")
@click.option("--threads", type=click.IntRange(1, 256), help="Threads to use.  [default: cores, up to 8]")
@log_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary; problems only.")
def keep(**options: Any) -> int:
    """Keep an archive's published map current: profile what changed, merge, compact, verify, publish.

    Index files may appear, grow, be replaced or be deleted; only new or changed files are read. Nothing is published
    that misses a capture, and an update that fails leaves the last good map published. status.html, status.json
    and status.prom in the published folder show its state.
    """
    from recollect.profiles.upkeep.update import KeepOptions

    as_json, quiet, once, every = options["as_json"], options["quiet"], options["once"], options["every"]
    chosen = KeepOptions(
        index=options["index"],
        to=Path(options["folder"]),
        data=Path(options["data"]),
        max_bytes=options["max_bytes"],
        lookups=options["lookups"],
        exclude_keys=options["exclude_keys"],
        sets=not options["no_sets"],
        name=options["name"],
        archive_id=options["archive_id"],
        base_uri=options["base_uri"],
        collection=options["collection"],
        threads=options["threads"],
    )
    _check(chosen)
    while True:
        started = time.monotonic()  # not the clock of the day, which may be set back by a year
        code, status = _once(chosen, None if once else every, quiet=quiet or as_json)
        if as_json:
            emit_json(status.as_dict())
        if once:
            return code
        time.sleep(max(0.0, started + every - time.monotonic()))


def _check(options: KeepOptions) -> None:
    from recollect.maps.collections import check_name

    if options.collection:
        check_name(options.collection)
        if not options.archive_id:
            raise UsageError(
                "a collection needs its address",
                where="--collection",
                why="on a host with several collections a map without an address belongs to none of them",
                hint="--id https://archive.example/NAME/",
            )
    to, data = options.to.resolve(), options.data.resolve()
    if data == to or to in data.parents:
        raise UsageError(
            "the data folder is inside the published folder",
            where=str(options.data),
            why="what is excluded from the map would be served",
            hint="give --data a folder outside of --to",
        )


def _once(options: KeepOptions, every: float | None, *, quiet: bool) -> tuple[int, Status]:
    """One update and its status page; a failure is reported on both, and ends only a run that is not repeated."""
    from recollect.profiles.upkeep.page import write_status
    from recollect.profiles.upkeep.status import Status
    from recollect.profiles.upkeep.update import update

    now = datetime.now(UTC)
    started = time.monotonic()
    done: Update | None = None
    failure: RecollectError | OSError | None = None
    try:
        with progress_bar(quiet=quiet) as progress:
            done = update(options, now, progress)
    except (RecollectError, OSError) as error:
        if every is None and isinstance(error, UsageError):
            raise
        failure = error
    seconds = time.monotonic() - started
    status = Status(
        checked_at=now,
        max_bytes=options.max_bytes,
        update=done,
        seconds=seconds,
        error=_published(failure),
        next_at=None if every is None else now + timedelta(seconds=every),
        name=options.name,
        has_exclusions=bool(options.exclude_keys),
    )
    shown = options.to / "status" / options.collection if options.collection else options.to
    shown.mkdir(parents=True, exist_ok=True)
    write_status(shown, status)
    if failure is not None:
        if every is None:
            raise failure
        hint = getattr(failure, "hint", "")
        talk(f"update failed: {failure}" + (f"; {hint}" if hint else ""))
        return 1, status
    assert done is not None
    _report(options, done, seconds, quiet=quiet)
    return 3 if done.partial_files else 0, status


def _published(failure: RecollectError | OSError | None) -> str:
    """What the status page says of a failure: without files and lines, which may be those of a takedown."""
    if isinstance(failure, RecollectError):
        return failure.what
    return (failure.strerror or type(failure).__name__) if failure else ""


def _report(options: KeepOptions, done: Update, seconds: float, *, quiet: bool) -> None:
    for problem in done.problems[:_SHOWN]:
        talk(f"problem: {problem}")
    if len(done.problems) > _SHOWN:
        talk(f"problem: {len(done.problems) - _SHOWN:,} more")
    if quiet:
        return
    for problem in done.ignored[:_SHOWN]:
        talk(f"ignored: {problem}")
    if len(done.ignored) > _SHOWN:
        talk(f"ignored: {len(done.ignored) - _SHOWN:,} more")
    files = f"{done.files:,} index files ({done.new_files:,} new, {done.changed_files:,} changed, "
    talk(f"{files}{done.removed_files:,} gone), {counted(done.captures, 'capture')}")
    if done.way == "unchanged":
        talk(f"nothing changed; {counted(done.keys, 'key')} of {done.updated_at}, {format_size(done.bytes)}")
        return
    talk(
        f"{done.way} in {seconds:.1f} s: {counted(done.keys, 'key')}, {format_size(done.bytes)}; "
        f"{done.added_keys:,} added, {done.changed_keys:,} changed, {done.removed_keys:,} removed"
    )
    talk(f"verified: {counted(done.verified, 'capture')}, all found; published in {options.to}")
