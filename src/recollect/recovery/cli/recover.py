"""`recollect survey` and `recollect recover`: what archives hold of a lost site, and the site itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, json_option, progress_bar, talk
from recollect.cli.types import DATE, DURATION, END_DATE, SIZE, Joined, contact_option
from recollect.errors import UsageError
from recollect.formats.outputs import refuse_inputs
from recollect.recovery.cli.summary import (
    agree,
    event_log,
    listing_line,
    progress_lines,
    show_result,
    show_survey,
    status_line,
)

if TYPE_CHECKING:
    from recollect.recovery.options import Options
    from recollect.recovery.outputs import Outputs
    from recollect.recovery.sources import Sources

SURVEY_EPILOG = """\b
Examples:
  recollect survey http://lost.example/                       what the public archives hold
  recollect survey http://lost.example/~joe/ --json
  recollect survey lost.example --scope subdomains --archives archives.toml --maps maps/
  recollect survey http://lost.example/ --also old-crawl.warc.gz --also ~/.mozilla/firefox/x.default/

\b
Exit code: 0 done, 3 some archives did not answer or cut their listing off, 1 none answered, 2 wrong usage.
"""
RECOVER_EPILOG = """\b
Examples:
  recollect recover http://lost.example/ -o site/             the newest good capture of all that archives list
  recollect recover http://lost.example/ -o site/ --at 2009-06-01
  recollect recover http://lost.example/ -o site/ --since 2004 --until 2008 --use ia,arquivo
  recollect recover http://lost.example/ -o site/ --policy knowledgeable --quota ia=1000/day
  recollect recover http://lost.example/ -o site/ --outputs site,kit,as-archived,markdown
  recollect recover http://lost.example/ -o site/ --also old-crawl.warc.gz --also saved/ --also session.har
  recollect recover --only collection.wacz -o site/           without archives; the address is that of the collection
  recollect recover --only backup/ --base http://lost.example/ -o site/
  recollect recover --resume site/                            continue after an interruption or a used-up quota

\b
In the folder: START-HERE.html, the site by host (lost.example/index.html), recovered.warc.gz and recovered.wacz,
rehost/ (a folder to upload, rules for web servers), report.html, report.json and summary.tsv. Files that are yours, or
that you changed, are never replaced. Run it again later to fill gaps: what is there is not asked for again. Doubtful
pages: recollect review.
To look at the site: recollect preview. docs/warrick.md translates Warrick's options.

\b
Exit code: 0 done (the report lists what no archive holds), 3 more can be recovered (resume), 1 nothing recovered,
2 wrong usage.
"""


def _archive_options(command: Callable[..., Any]) -> Callable[..., Any]:
    decorators = [
        click.option(
            "--archives",
            "registry",
            type=click.Path(exists=True, dir_okay=False),
            help="List of archives (MemGator's archives.json, or TOML or JSON).  [default: public archives]",
        ),
        contact_option,
        click.option(
            "--also",
            multiple=True,
            type=click.Path(exists=True),
            metavar="PATH",
            help="A file or folder that holds pages, too: WARC, WACZ, HAR, MHTML, saved pages, a mirror, a backup, "
            "a browser's cache (docs/sources.md).",
        ),
        click.option(
            "--only", multiple=True, type=click.Path(exists=True), metavar="PATH", help="Like --also, without archives."
        ),
        click.option(
            "--base", metavar="URL", help="The address of files that do not say it: a backup, a page saved by Firefox."
        ),
        click.option(
            "--use", cls=Joined, metavar="IDS", help="Only these archives (ia,arquivo), or all but some (!ia)."
        ),
        click.option(
            "--maps",
            type=click.Path(exists=True, file_okay=False),
            help="Folder of published maps, one per archive: archives that hold nothing are not asked.",
        ),
        click.option(
            "--scope",
            "extent",
            type=click.Choice(["prefix", "host", "subdomains", "page"]),
            default="prefix",
            show_default=True,
            help="What belongs to the site: all under the URL, its whole host, its subdomains too, or the one page.",
        ),
        click.option(
            "--include", multiple=True, metavar="PATTERN", help="Only URLs like this ('*/blog/*', '/blog/', 're:…')."
        ),
        click.option("--exclude", multiple=True, metavar="PATTERN", help="No URLs like this."),
        click.option(
            "--at", type=DATE, metavar="DATE", help="Captures nearest to this date instead of the newest good ones."
        ),
        click.option("--since", type=DATE, metavar="DATE", help="No captures before this date (2004, 2004-02-01)."),
        click.option("--until", type=END_DATE, metavar="DATE", help="No captures after this date."),
        click.option("--ignore-case", is_flag=True, help="Paths that differ only in case are one resource."),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def _guess_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Switches of the canonicalization where it guesses (dissertation, section V.3)."""
    decorators = [
        click.option("--keep-www", is_flag=True, help="www.lost.example and lost.example are two sites."),
        click.option("--keep-scheme", is_flag=True, help="http and https are two sites."),
        click.option("--keep-index", is_flag=True, help="/ and /index.html are two pages."),
        click.option("--keep-sessions", is_flag=True, help="Do not take session ids out of URLs."),
        click.option(
            "--no-learn", is_flag=True, help="Do not learn equal URLs (slashes, case, index pages) from the listings."
        ),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


@click.command(epilog=SURVEY_EPILOG)
@click.argument("uris", nargs=-1, metavar="[URI]...")
@_archive_options
@_guess_options
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@json_option
def survey(uris: tuple[str, ...], quiet: bool, as_json: bool, **given: Any) -> int:
    """Show what archives hold of a lost website: captures per year and type, dates, and the cost of a recovery."""
    if not uris and not given["only"]:
        raise UsageError("missing URI", hint="recollect survey http://lost.example/")
    options = _options(uris or _inferred(given), given)
    from recollect.recovery.progress import Watch
    from recollect.recovery.recover import survey_site
    from recollect.recovery.survey import ListingState

    with listing_line(quiet or as_json) as on_page:
        result = survey_site(
            options.scope.start, archives=_sources(given), options=options, on_page=on_page, watch=Watch(problem=talk)
        )
    if as_json:
        emit_json(result.to_json())
    else:
        show_survey(result)
    asked = [a for a in result.archives if a.state != ListingState.NOT_ASKED]
    if asked and all(a.state == ListingState.FAILED for a in asked):
        return 1
    return 0 if result.complete else 3


@click.command(epilog=RECOVER_EPILOG)
@click.argument("uris", nargs=-1, metavar="[URI]...")
@click.option("-o", "--output", type=click.Path(file_okay=False), help="Folder for the recovered site.")
@click.option("--resume", type=click.Path(exists=True, file_okay=False), help="Continue the recovery in this folder.")
@_archive_options
@click.option(
    "--policy",
    type=click.Choice(["naive", "knowledgeable", "exhaustive"]),
    default="exhaustive",
    show_default=True,
    help="exhaustive: all that archives list, linked first; knowledgeable: what is linked; naive: without listings.",
)
@click.option(
    "--assets",
    type=click.Choice(["scope", "domain", "anywhere"]),
    default="domain",
    show_default=True,
    help="Hosts from which images, styles and scripts are taken: the site only, its domain, anywhere.",
)
@click.option("--no-recursive", is_flag=True, help="Only the given URIs, no links.")
@click.option("--most-recent", is_flag=True, help="Prefer the newest capture, even if an archive has altered it.")
@click.option(
    "--all-captures",
    is_flag=False,
    flag_value="all",
    type=click.Choice(["all", "unique"]),
    help="Keep every capture in WARC and WACZ, with a page of captures for each resource; unique: one of each content.",
)
@click.option("--keep-suspects", is_flag=True, help="Take captures that look like errors, parked domains or logins.")
@click.option(
    "--live-fallback", is_flag=True, help="Fetch what no archive has from the live web; marked in the report."
)
@_guess_options
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N resources.")
@click.option(
    "--max-size", type=SIZE, default="256MB", show_default=True, metavar="SIZE", help="No resource larger than this."
)
@click.option("--quota", multiple=True, metavar="[ID=]N[/PERIOD]", help="At most N requests per day (hour, min).")
@click.option("--used", multiple=True, metavar="[ID=]N", help="Requests already made elsewhere in this period.")
@click.option("--wait", is_flag=True, help="When the quota is used up, wait for the next period and continue.")
@click.option("--pause", type=DURATION, metavar="TIME", help="Shortest time between two requests.")
@click.option(
    "--patience",
    type=DURATION,
    default="15m",
    show_default=True,
    metavar="TIME",
    help="Longest wait for an archive that is busy or silent.",
)
@click.option("--stop-file", type=click.Path(dir_okay=False), help="Stop (resumable) as soon as this file exists.")
@click.option("--summary", type=click.Path(dir_okay=False), help="Write the summary (TSV) here.")
@click.option(
    "--log", "log_file", type=click.Path(dir_okay=False), help="Write every step to this file, as lines of JSON."
)
@click.option(
    "--missing",
    type=click.Choice(["neutral", "keep"]),
    help="Links to pages that were not recovered lead to a local notice (neutral) or stay unchanged (keep). "
    "What pages embed is never loaded from the live web.  [default: neutral]",
)
@click.option("--progress-json", is_flag=True, help="Print progress as lines of JSON for programs (docs/library.md).")
@click.option(
    "--outputs",
    multiple=True,
    metavar="NAMES",
    help="What to write, of: site, warc, wacz, kit, as-archived, markdown, no-script.  [default: site,warc,wacz,kit]",
)
@click.option(
    "--scripts/--no-scripts",
    default=None,
    help="Whether site and kit keep their scripts; without them nothing in the copies runs.  [default: scripts]",
)
@click.option(
    "--outside-links",
    type=click.Choice(["robust", "archive", "keep"]),
    help="Links to other sites: with Robust Links attributes, to the archived page, or unchanged.  [default: robust]",
)
@click.option("--no-tree", is_flag=True, hidden=True, help="Older form of --outputs without site.")
@click.option("--no-warc", is_flag=True, hidden=True, help="Older form of --outputs without warc.")
@click.option("--no-wacz", is_flag=True, hidden=True, help="Older form of --outputs without wacz.")
@click.option("--no-kit", is_flag=True, hidden=True, help="Older form of --outputs without kit.")
@click.option("--windows-names", is_flag=True, help="Short file names without accents, for older Windows programs.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a long run.")
@click.option("--verbose", "-v", is_flag=True, help="Print the result of every resource.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@json_option
def recover(uris: tuple[str, ...], output: str | None, resume: str | None, **given: Any) -> int:
    """Recover a lost website from all archives that hold a part of it."""
    folder = _folder(uris, output, resume, given["only"])
    for written in (given["log_file"], given["summary"]):
        refuse_inputs(written, [place for place in (given["registry"], given["maps"]) if place])
    from recollect.recovery.progress import Watch
    from recollect.recovery.recover import Run
    from recollect.recovery.recover import recover as recover_site

    options = _resumed(folder, given) if resume else _options(uris or _inferred(given), given)
    for_programs = given["progress_json"]
    quiet = given["quiet"] or given["as_json"] or for_programs
    with ExitStack() as stack:
        lines = progress_lines(for_programs)
        watch = Watch(
            status=lines.status or stack.enter_context(status_line(quiet or given["verbose"])),
            event=stack.enter_context(event_log(given["log_file"], given["verbose"], lines.event)),
            listed=lambda found: (
                lines.survey(found) and agree(found, options.policy, yes=given["yes"] or bool(resume), quiet=quiet)
            ),
            progress=stack.enter_context(progress_bar(quiet=quiet)),
            problem=talk,
            stop=_stop_check(given["stop_file"]),
        )
        try:
            result = recover_site(
                None if resume else options.scope.start,
                folder,
                archives=_sources(given),
                options=options,
                outputs=_outputs(given, folder if resume else None),
                watch=watch,
                run=Run(given["patience"], given["wait"], _used(given["used"])),
            )
        except KeyboardInterrupt:
            talk(f"\nwhat was recovered is kept; continue with: recollect recover --resume {folder} --yes")
            raise
    return show_result(result, folder, as_json=given["as_json"], quiet=given["quiet"], lines=lines)


# From flags to values ------------------------------------------------------------------------------------------------


def _folder(uris: tuple[str, ...], output: str | None, resume: str | None, only: tuple[str, ...]) -> Path:
    if resume and (uris or output):
        raise UsageError("--resume takes the folder only", hint=f"recollect recover --resume {resume}")
    if resume:
        return Path(resume)
    if not uris and not only:
        raise UsageError("missing URI", hint="recollect recover http://lost.example/ -o site/")
    if not output:
        given = uris[0] if uris else f"--only {only[0]}"
        raise UsageError("missing -o FOLDER", hint=f"recollect recover {given} -o site/")
    return Path(output)


def _inferred(given: dict[str, Any]) -> tuple[str, ...]:
    """The address of a collection that is recovered without one; the command says which, and why."""
    from recollect.recovery.local import infer_start

    start = infer_start(given["only"], given["base"] or "")
    if not given.get("as_json") and not given.get("quiet"):
        talk(f"address: {start.uri} ({start.words})")
    given["extent"] = _default_to(given, "extent", "host")
    return (start.uri,)


def _default_to(given: dict[str, Any], name: str, value: str) -> Any:
    """Another default where the flag was not given."""
    source = click.get_current_context().get_parameter_source(name)
    return given[name] if source == click.core.ParameterSource.COMMANDLINE else value


def _options(uris: tuple[str, ...], given: dict[str, Any]) -> Options:
    from recollect.recovery.canonical import Rules
    from recollect.recovery.choose import DatePreference
    from recollect.recovery.options import MAX_RESOURCE, Options
    from recollect.recovery.scope import Scope, check_patterns

    rules = Rules(
        ignore_case=given["ignore_case"],
        fold_www=not given["keep_www"],
        fold_scheme=not given["keep_scheme"],
        drop_index=not given["keep_index"],
        drop_sessions=not given["keep_sessions"],
        learn=not given["no_learn"],
    )
    if given.get("only") and "assets" in given:
        given["assets"] = _default_to(given, "assets", "anywhere")  # all that pages need is in the files, or nowhere
    scope = Scope(
        tuple(uri if "://" in uri else f"http://{uri}" for uri in uris),
        given["extent"],
        given.get("assets", "domain"),
        tuple(check_patterns(given["include"])),
        tuple(check_patterns(given["exclude"])),
        rules,
    )
    dates = DatePreference(given["at"], given["since"], given["until"], bool(given.get("most_recent")))
    if dates.start is not None and dates.end is not None and dates.start > dates.end:
        raise UsageError("no time between --since and --until", where=f"{dates.start:%Y-%m-%d} {dates.end:%Y-%m-%d}")
    return Options(
        scope=scope,
        dates=dates,
        policy=given.get("policy", "exhaustive"),
        rules=rules,
        recursive=not given.get("no_recursive"),
        keep_suspects=bool(given.get("keep_suspects")),
        live_fallback=bool(given.get("live_fallback")),
        all_captures=given.get("all_captures") or "",
        limit=given.get("limit"),
        max_bytes=given.get("max_size", MAX_RESOURCE),
        quotas=dict(_quota(text) for text in given.get("quota", ())),
    )


def _quota(text: str) -> tuple[str, Any]:
    import re

    from recollect.recovery.meter import Quota

    match = re.fullmatch(r"(?:([\w.-]+)=)?(\d+)(?:/(\d*)(s|sec|min|minute|h|hour|d|day)s?)?", text.strip())
    if match is None:
        raise UsageError("not a quota", where=text, hint="write it as 1000/day, or ia=1000/day for one archive")
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}[(match[4] or "d")[0]]
    return match[1] or "*", Quota(int(match[2]), float(int(match[3] or 1) * seconds))


def _sources(given: dict[str, Any]) -> Sources:
    from recollect.recovery.sources import Sources

    return Sources(
        given["registry"] or "",
        given["use"] or "",
        given["maps"] or "",
        given.get("pause") or 0.0,
        (*given["also"], *given["only"]),
        given["base"] or "",
        offline=bool(given["only"]),
    )


def _outputs(given: dict[str, Any], resumed: Path | None) -> Outputs:
    """What to write; a resumed recovery writes what it wrote before, except for options given now."""
    from dataclasses import replace

    from recollect.recovery.outputs import Outputs
    from recollect.recovery.recover import stored_outputs

    before = stored_outputs(resumed) if resumed is not None else Outputs()
    if given.get("outputs"):
        before = before.only(name for names in given["outputs"] for name in names.split(","))
    left_out = [name for name in ("tree", "warc", "wacz", "kit") if given[f"no_{name}"]]
    if left_out:
        kept = ",".join(sorted(before.chosen - {"site" if name == "tree" else name for name in left_out}))
        talk(f"--no-{left_out[0]} is the older form of --outputs {kept or 'NAMES'}")
    return replace(
        before,
        tree=before.tree and not given["no_tree"],
        warc=before.warc and not given["no_warc"],
        wacz=before.wacz and not given["no_wacz"],
        kit=before.kit and not given["no_kit"],
        windows_names=before.windows_names or bool(given.get("windows_names")),
        summary=Path(given["summary"]) if given["summary"] else before.summary,
        scripts=before.scripts if given.get("scripts") is None else given["scripts"],
        missing=given["missing"] or before.missing,
        outside=given.get("outside_links") or before.outside,
    )


_APPLIED = ("policy", "keep_suspects", "live_fallback", "all_captures")
# Options that would change the choice of what is there already: a resumed recovery refuses them.
_FIXED = {
    "extent": "--scope",
    "include": "--include",
    "exclude": "--exclude",
    "at": "--at",
    "since": "--since",
    "until": "--until",
    "ignore_case": "--ignore-case",
    "keep_www": "--keep-www",
    "keep_scheme": "--keep-scheme",
    "keep_index": "--keep-index",
    "keep_sessions": "--keep-sessions",
    "no_learn": "--no-learn",
    "no_recursive": "--no-recursive",
    "most_recent": "--most-recent",
}


def _resumed(folder: Path, given: dict[str, Any]) -> Options:
    """The options of the recovery that is resumed, with those given now; one that cannot be applied is refused."""
    from dataclasses import replace

    from recollect.recovery.recover import stored_options

    options = stored_options(folder)
    context = click.get_current_context()
    named = {name for name in given if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE}
    refused = [flag for name, flag in _FIXED.items() if name in named]
    if refused:
        raise UsageError(
            f"{', '.join(refused)} cannot change in a resumed recovery",
            where=str(folder),
            why="what is there was chosen without it",
            hint=f"recollect recover {' '.join(options.scope.start)} -o OTHER_FOLDER {refused[0]} ...",
        )
    changes: dict[str, Any] = {"limit": given["limit"]}
    if "quota" in named:
        changes["quotas"] = dict(_quota(text) for text in given["quota"])
    if "assets" in named:
        changes["scope"] = replace(options.scope, assets=given["assets"])
    if "max_size" in named:
        changes["max_bytes"] = given["max_size"]
    changes |= {name: given[name] for name in _APPLIED if name in named}
    return replace(options, **changes)


def _used(texts: tuple[str, ...]) -> dict[str, int]:
    """Requests made elsewhere, by archive; `*` for all."""
    found: dict[str, int] = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        if not count.isdigit():
            raise UsageError("not a number of requests", where=text, hint="write it as 200, or ia=200")
        found[name or "*"] = found.get(name or "*", 0) + int(count)
    return found


def _stop_check(path: str | None) -> Callable[[], bool]:
    return (lambda: Path(path).exists()) if path else (lambda: False)
