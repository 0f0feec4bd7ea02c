"""`recollect protect reclaim`: protected files back from pages, wherever they are."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.types import END_DATE, SIZE, Joined, archives_option, contact_option
from recollect.datetimes import format_timestamp
from recollect.errors import RecollectError, UsageError
from recollect.installation import install_command
from recollect.model import Problem, Progress
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.model import ProgressCallback
    from recollect.protection.age import Opener
    from recollect.protection.collect import Collector

EPILOG = """\b
Examples:
  recollect protect reclaim http://lost.example/ -o app/                    from all archives, all captures
  recollect protect reclaim crawl.warc.gz other.wacz -o app/ --trust site.pub
  recollect protect reclaim site/ -o app/                                   a recovery's folder, or any folder of pages
  recollect protect reclaim http://lost.example/ -o app/ --identity age.key --version 2025-06

\b
The newest complete version of each class is restored; an older one if the newest is incomplete. Without --trust, all
blocks must be signed by one key, whose fingerprint is shown.
Exit code: 0 the newest version of everything restored, 3 a part or an older version, 1 nothing, 2 wrong usage.
"""


_HOST = re.compile(r"[\w-]+(\.[\w-]+)*\.[a-z]{2,}(:\d+)?/", re.IGNORECASE)


@click.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the files."
)
@click.option("--trust", metavar="PUB", multiple=True, help="Only blocks signed by this key (site.pub).")
@click.option(
    "--identity",
    "identities",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="age or SSH identity that opens encrypted files.",
)
@click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Passphrase that opens encrypted files.",
)
@click.option("--version", "until", type=END_DATE, metavar="T", help="The newest version of this date or before.")
@click.option(
    "--max-size", type=SIZE, default="4GB", show_default=True, metavar="SIZE", help="Size limit of the unpacked files."
)
@archives_option
@contact_option
@click.option("--use", cls=Joined, metavar="IDS", help="Only these archives (ia,arquivo), or all but some (!ia).")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@json_option
def reclaim(sources: tuple[str, ...], output: Path, quiet: bool, as_json: bool, **given: Any) -> int:
    """Restore protected files. SOURCE: a URL (from the archives), a folder, a WARC, a WACZ, a recovery's folder."""
    from recollect.protection import keys
    from recollect.protection.collect import Collector

    collector = Collector([keys.read_public(one) for one in given["trust"]])
    until = _until(given["until"])
    opener = _opener(given)
    problems: list[Problem] = []
    missing: list[str] = []
    with progress_bar(quiet=quiet or as_json) as progress:
        for source in sources:
            _collect(source, collector, output, given, until, problems, missing, progress)
    collector.check_keys()
    result = _unpacked(collector, output, opener, given["max_size"], until)
    result.update(problems=[str(problem) for problem in problems], unknown=missing)
    if as_json:
        emit_json(result)
    else:
        _show(collector, result, output, quiet)
    restored, classes = result["restored"], len(result["classes"])
    if classes and len(restored) == classes and all(one["newest"] for one in restored):
        return 0
    return 3 if restored or result["locked"] else 1


def _until(moment: datetime | None) -> str | None:
    return format_timestamp(moment) if moment is not None else None


def _collect(
    source: str,
    collector: Collector,
    output: Path,
    given: dict[str, Any],
    until: str | None,
    problems: list[Problem],
    missing: list[str],
    progress: ProgressCallback,
) -> None:
    from recollect.protection import reclaim as searching
    from recollect.protection.sources import pages_of

    path = Path(source)
    if re.match(r"https?://", source, re.IGNORECASE) or (not path.exists() and _HOST.match(source)):
        from recollect.archives.registry import choose, load_archives

        archives = choose(load_archives(given["registry"]), given["use"] or "")
        if not archives:
            raise UsageError("no archives to ask", hint="recollect archives list")
        found = searching.search_archives(
            source,
            archives,
            collector,
            output,
            until=until,
            on_step=lambda step: progress(Progress(step.stage, step.done, step.total or None, "captures")),
        )
        missing += [f"{archive}: its listing is not whole: {why}" for archive, why in found.unlisted]
        missing += [f"{uri}: {why}" for uri, why in found.failed]
        return
    pages = searching.stored_pages(path) if searching.is_recovery(path) else pages_of(path, problems.append)
    for count, (where, page) in enumerate(pages, 1):
        collector.add(where, page)
        progress(Progress("reading", count, None, "pages"))


def _opener(given: dict[str, Any]) -> Opener:
    from recollect.protection.age import Opener, check_opener
    from recollect.protection.cli.protect import read_passphrase

    passphrase = read_passphrase(given["passphrase_file"]) if given["passphrase_file"] else None
    opener = Opener(tuple(path.read_text(errors="replace") for path in given["identities"]), passphrase)
    check_opener(opener)
    return opener


def _unpacked(collector: Collector, output: Path, opener: Opener, max_size: int, until: str | None) -> dict[str, Any]:
    """Restore, open and unpack every class; what was done, as JSON."""
    from recollect.protection.age import Locked
    from recollect.protection.cli.tables import standings_json
    from recollect.protection.keys import fingerprint
    from recollect.protection.pack import Limits, unpack
    from recollect.protection.restoring import class_names, restore_class, shortfall

    limits = Limits(total_bytes=max_size)
    restored: list[dict[str, Any]] = []
    locked: list[dict[str, str]] = []
    failures: list[dict[str, str]] = []
    for name in class_names(collector):
        try:
            found = restore_class(collector, name, opener, limits, until)
            if found is None:
                continue
            files = unpack(found.archive, output, limits)
        except Locked as error:
            locked += _saved(collector, name, output, until, error.why or error.what)
        except UsageError:
            raise
        except RecollectError as error:
            failures.append({"class": name, "reason": str(error)})
        else:
            restored.append(
                {
                    "class": name,
                    "version": found.version.at,
                    "changes": found.changes.at if found.changes is not None else None,
                    "files": len(files),
                    "newest": found.incomplete is None,
                    "shortfall": shortfall(found),
                }
            )
    used = {one["class"]: one["version"] for one in restored}
    return {
        "classes": class_names(collector),
        "too_new": [name for name in class_names(collector) if until is not None and _oldest(collector, name) > until],
        "other_versions": [
            {
                "class": one.version.name,
                "version": one.version.at,
                "blocks": one.found,
                "restored": used[one.version.name],
            }
            for one in collector.standings()
            if one.version.name in used and one.version.at != used[one.version.name]
        ],
        "restored": restored,
        "locked": locked,
        "failures": failures,
        "pages": collector.looked_at,
        "carrying": collector.carrying,
        "versions": standings_json(collector.standings()),
        "refusals": {str(kind): count for kind, count in collector.refusals.items()},
        "refused": [{"page": where, "reason": str(why)} for where, why in collector.named],
        "keys": [fingerprint(key) for key in collector.keys],
    }


def _saved(collector: Collector, name: str, output: Path, until: str | None, reason: str) -> list[dict[str, str]]:
    """Save the encrypted objects of a class as they are."""
    from recollect.protection.changes import changes_class
    from recollect.protection.pack import save_sealed

    saved = []
    for one in (name, changes_class(name)):
        found = collector.restore(one, until)
        if found is not None:
            saved.append({"class": one, "file": str(save_sealed(found.sealed, output, one)), "reason": reason})
    return saved


def _show(collector: Collector, result: dict[str, Any], output: Path, quiet: bool) -> None:
    from recollect.protection.cli.tables import STANDING_HEADERS, standing_rows

    if not quiet:
        talk(f"{counted(result['pages'], 'page')} read, {result['carrying']:,} carry blocks")
        standings = collector.standings()
        if standings:
            complete = [one.version for one in standings if collector.object_of(one.version) is not None]
            emit_table(STANDING_HEADERS, standing_rows(standings, complete), right=(2, 3))
        for key in result["keys"]:
            talk(f"signed by {key}")
    for kind, count in Counter(result["refusals"]).items():
        talk(f"refused: {counted(count, 'block')}: {kind}")
    for one in result["refused"][:10]:
        talk(f"  {one['page']}: {one['reason']}")
    for one in result["other_versions"]:
        talk(
            f"not mixed in: {counted(one['blocks'], 'block')} of {one['class']} of version {one['version']}; "
            f"restored is version {one['restored']}"
        )
    for line in [*result["problems"], *result["unknown"]][:20]:
        talk(line)
    for one in result["failures"]:
        talk(f"{one['class']}: {one['reason']}")
    for one in result["locked"]:
        talk(f"{one['class']}: encrypted, saved as {one['file']}: {one['reason']}")
        talk("hint: give --identity FILE or --passphrase-file FILE; `age -d` opens the file, too")
    came = {one["class"] for one in result["restored"]}
    for one in result["restored"]:
        if not quiet:
            changes = f" with the changes of {one['changes']}" if one["changes"] else ""
            talk(f"{one['class']}: {counted(one['files'], 'file')} of version {one['version']}{changes} in {output}")
    for one in result["restored"]:
        if one["shortfall"]:
            talk(f"{one['class']}: {one['shortfall']}")
    for name in result["classes"]:
        if name not in came and not any(one["class"] == name for one in [*result["locked"], *result["failures"]]):
            talk(f"{name}: {_missing(collector, name, name in result['too_new'])}")
    if not result["classes"]:
        talk("no blocks were found")


def _oldest(collector: Collector, name: str) -> str:
    """The oldest version of a class that is known, as 14 digits; empty when none is."""
    return min((one.version.at for one in collector.standings() if one.version.name == name), default="")


def _missing(collector: Collector, name: str, is_too_new: bool) -> str:
    from recollect.protection.code import available

    if is_too_new:
        return f"no version is that old; the oldest is {_oldest(collector, name)}; give a later --version, or none"
    own = [one for one in collector.standings() if one.version.name == name and not one.missing]
    if own and not any(available(one.version.code) for one in own):
        return f"the code {own[0].version.code} is not installed: {install_command('protect')}"
    return "not enough blocks; try again when archives have captured more, or add other sources"
