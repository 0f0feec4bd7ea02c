"""What `recollect survey` and `recollect recover` say: tables, a timeline, one line of progress, the end."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, talk
from recollect.errors import UsageError
from recollect.quantities import counted, format_duration, format_size

if TYPE_CHECKING:
    from recollect.recovery.plan import RecoveryPolicy
    from recollect.recovery.progress import Event, Finished, Status
    from recollect.recovery.recover import Recovery
    from recollect.recovery.report import Report
    from recollect.recovery.survey import Estimate, Survey

_STOPPED = {
    "asked": "stopped on request",
    "limit": "the limit of resources was reached",
    "declined": "the user declined",
}
LONG_SECONDS = 900  # ask before a run that is estimated to last longer


def agree(found: Survey, policy: RecoveryPolicy, *, yes: bool, quiet: bool) -> bool | RecoveryPolicy:
    """Show what was found; ask before a long run or one above a quota, and offer to recover what is linked only.

    Without a terminal to ask on, a long run needs --yes.
    """
    if not quiet:
        show_survey(found, out=sys.stderr)
    cost = found.all if policy == "exhaustive" else found.linked
    if yes or (cost.seconds <= LONG_SECONDS and not cost.over_quota):
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if cost.seconds <= LONG_SECONDS:
            return True
        raise UsageError(
            "a long run",
            why=f"about {_cost_words(cost)}",
            hint="add --yes to continue, or recover less: --policy knowledgeable, --since, --until, --use, --limit",
        )
    if policy != "exhaustive" or cost.requests == found.linked.requests:
        return click.confirm(f"This may take {_cost_words(cost)}. Continue?", err=True)
    talk(f"all that archives list: about {_cost_words(found.all)}")
    talk(f"only what is linked: about {_cost_words(found.linked)}")
    answer = click.prompt("Recover all, linked, or nothing?", type=click.Choice(["all", "linked", "nothing"]), err=True)
    return {"all": True, "linked": "knowledgeable", "nothing": False}[answer]  # type: ignore[return-value]


def _cost_words(cost: Estimate) -> str:
    words = f"{counted(cost.requests, 'request')}, {format_size(cost.bytes)}, {format_duration(cost.seconds)}"
    return words + (f", more than one period of the quota of {', '.join(cost.over_quota)}" if cost.over_quota else "")


def show_survey(found: Survey, out: Any = None) -> None:
    rows = [
        (
            a.id,
            f"{a.captures:,}",
            f"{a.resources:,}",
            _day(a.first),
            _day(a.last),
            _day(a.last_good),
            f"{a.chosen:,}",
            a.state + (f" ({a.detail})" if a.detail else ""),
        )
        for a in found.archives
    ]
    headers = ["archive", "captures", "resources", "first", "last", "last good", "best here", "listing"]
    emit_table(headers, rows, right=(1, 2, 6), file=out)
    write = out or sys.stdout
    if found.captures:
        write.write("\n" + _timeline(found.per_year) + "\n")
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in found.per_kind.items())
        write.write(f"types      {kinds}\n")
        write.write(f"dates      {_day(found.first)} to {_day(found.last)}, last good {_day(found.last_good)}\n")
        for name, cost in (("recovery", found.all), ("  linked", found.linked)):
            some = "at most" if cost is found.all else "about"
            write.write(f"{name:10} {some} {counted(cost.resources, 'resource')}, {_cost_words(cost)}\n")
    elif found.complete:
        write.write("\nNo archive lists any capture of it.\n")
    else:
        write.write("\nNo capture is listed, but not every listing is complete: whether there are any is not known.\n")


def _timeline(years: dict[int, int]) -> str:
    """A bar for each year from the first to the last."""
    bars = " ▁▂▃▄▅▆▇█"
    span = range(min(years), max(years) + 1)
    top = max(years.values())
    heights = "".join(bars[-(-8 * years.get(year, 0) // top)] * 4 + " " for year in span)
    labels = "".join(f"{year:4d} " for year in span)
    counts = "".join(f"{_short(years.get(year, 0)):>4} " for year in span)
    return f"captures   {heights}\n           {labels}\n           {counts}"


def _short(count: int) -> str:
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= limit * 10:
            return f"{count // limit}{unit}"
    return str(count)


def _day(moment: Any) -> str:
    return f"{moment:%Y-%m-%d}" if moment else ""


@contextmanager
def listing_line(quiet: bool) -> Iterator[Callable[[str, int], None]]:
    if quiet or not sys.stderr.isatty():
        yield lambda _archive, _captures: None
        return
    counts: dict[str, int] = {}

    def show(archive: str, captures: int) -> None:
        counts[archive] = captures
        click.echo(
            f"\rlisting: {counted(sum(counts.values()), 'capture')} in {len(counts)} archives\033[K", nl=False, err=True
        )

    try:
        yield show
    finally:
        click.echo("\r\033[K", nl=False, err=True)


@contextmanager
def status_line(quiet: bool) -> Iterator[Callable[[Status], None]]:
    """One line that is drawn over: what came, what is left, what is missing, requests, time left."""
    if quiet or not sys.stderr.isatty():
        yield lambda _status: None
        return
    try:
        # Cut to the terminal's width: a line that wraps could not be drawn over.
        yield lambda status: click.echo(f"\r{status_words(status)[: _width()]}\033[K", nl=False, err=True)
    finally:
        click.echo("\r\033[K", nl=False, err=True)


def _width() -> int:
    return shutil.get_terminal_size().columns - 1


def status_words(status: Status) -> str:
    """A status in one line."""
    from recollect.recovery.verdicts import Stage

    if status.stage == Stage.LISTING:
        return f"listing: {counted(status.listed, 'capture')}"

    def both(counts: Mapping[str, int]) -> str:
        return f"{counts.get('page', 0):,} + {counts.get('asset', 0):,}"

    begin = "waiting for requests, " if status.stage == Stage.WAITING else ""
    words = [f"{begin}pages + assets: found {both(status.recovered)}, left {both(status.queued)}"]
    words[0] += f", missing {both(status.missing)}"
    if status.seconds_left is not None:
        words.append(f"{format_duration(status.seconds_left)} to go")
    words += [f"{name} pauses for {format_duration(pause)}" for name, pause in status.paused.items()]
    words.append(f"{counted(sum(status.requests.values()), 'request')}")
    words += [f"{name} {left:,} left" for name, left in status.budgets.items()]
    return " · ".join(words)


@contextmanager
def event_log(
    path: str | None, verbose: bool, also: Callable[[Event], None] | None = None
) -> Iterator[Callable[[Event], None]]:
    """Every resource that is settled: into a file as lines of JSON, onto the terminal, to `also`."""
    with ExitStack() as stack:
        file = stack.enter_context(Path(path).open("a", encoding="utf-8")) if path else None

        def note(event: Event) -> None:
            if file is not None:
                file.write(json.dumps(event.to_json()) + "\n")
                file.flush()
            if verbose:
                moment = f"{event.captured_at:%Y-%m-%dT%H:%M:%SZ}" if event.captured_at else ""
                talk(" ".join(part for part in (event.state, event.uri, event.archive, moment, event.detail) if part))
            if also is not None:
                also(event)

        yield note


@dataclass(frozen=True, slots=True)
class ProgressLines:
    """A stream of progress for programs (`--progress-json`): one JSON object per line on stdout, each with a `type`."""

    on: bool

    @property
    def status(self) -> Callable[[Status], None] | None:
        return (lambda status: _line(status.to_json())) if self.on else None

    @property
    def event(self) -> Callable[[Event], None] | None:
        return (lambda event: _line(event.to_json())) if self.on else None

    def survey(self, found: Survey) -> bool:
        if self.on:
            _line({"type": "survey", **found.to_json()})
        return True

    def finished(self, finished: Finished, report: Report | None, folder: Path, code: int) -> None:
        if not self.on:
            return
        counts = {"recovered": 0, "missing": 0, "suspects": 0}
        if report is not None:
            counts = {
                "recovered": len(report.resources),
                "missing": len(report.missing),
                "suspects": len(report.suspects),
            }
        _line({**finished.to_json(), **counts, "exit_code": code, "report": str(folder / "report.json")})


def progress_lines(on: bool) -> ProgressLines:
    return ProgressLines(on)


def _line(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, ensure_ascii=True))


def show_result(result: Recovery, folder: Path, *, as_json: bool, quiet: bool, lines: ProgressLines) -> int:
    """Say how it ended; the exit code."""
    from recollect.recovery.report import to_json

    report = result.report
    code = 3 if report is None else 1 if not report.resources else 0 if result.finished.complete else 3
    lines.finished(result.finished, report, folder, code)
    if report is None:
        talk("nothing was fetched; the listings are kept for a later run")
    elif as_json:
        emit_json({**to_json(report), "complete": result.finished.complete, "seconds": result.finished.seconds})
    elif not quiet and not lines.on:
        _show_report(report, folder, result)
    return code


def _show_report(report: Report, folder: Path, result: Recovery) -> None:
    from recollect.recovery.alsofound import NAME as ALSO_FOUND
    from recollect.recovery.ownership import ownership_words
    from recollect.recovery.sentences import Sentence, details, headline, outage, rerun_command, share, text

    pages = sum(resource.kind == "page" for resource in report.resources)
    assets = len(report.resources) - pages
    figures = report.figures
    for line in (Sentence(headline(figures)), share(figures), *details(figures)):
        talk(text(line))
    for one in figures.outages:
        talk(f"{text(outage(one))}: {rerun_command(one, str(folder))}")
    talk(
        f"recovered {counted(len(report.resources), 'resource')} ({counted(pages, 'page')}, {counted(assets, 'asset')})"
    )
    names = set(report.by_archive) | set(report.requests)
    order = sorted(names, key=lambda name: (-report.by_archive.get(name, 0), name))
    rows = [(name, f"{report.by_archive.get(name, 0):,}", f"{report.requests.get(name, 0):,}") for name in order]
    emit_table(["archive", "resources", "requests"], rows, right=(1, 2))
    for source in report.sources:
        talk(f"{source.name}: {source.words(report.by_archive.get(source.id, 0))}")
    if report.missing:
        emit_table(["reason", "resources"], [(r, f"{c:,}") for r, c in report.by_reason.items()], right=(1,))
    efficiency = f", {report.efficiency:.2f} resources per request" if report.efficiency else ""
    talk(f"{counted(report.total_requests, 'request')}{efficiency}, {format_duration(result.finished.seconds)}")
    if result.finished.stopped is not None:
        talk(f"stopped early: {_STOPPED[result.finished.stopped]}")
    if report.protected is not None:
        classes = f" ({', '.join(report.protected.classes)})" if report.protected.classes else ""
        talk(
            f"the pages carry the server's own files{classes}, protected with recollect: "
            f"recollect protect reclaim {report.start[0]} -o app/"
        )
    if report.at is not None:
        spread = ", ".join(f"{name} {count:,}" for name, count in report.distances.items() if count)
        talk(f"the site on {report.at:%Y-%m-%d}; captured in the: {spread or 'no resources'}")
    if owners := ownership_words(report.ownership):
        talk(f"owners: {owners}; only captures of your time were used (another time: --since, --until, --at)")
    if report.suspects:
        talk(f"to decide about doubtful pages: recollect review {folder}")
    for name, new in report.kept.items():
        talk(f"kept your file {folder / name}; the new version is {folder / new}")
    if figures.unlinked and report.files:
        talk(f"also:   {folder / ALSO_FOUND}")
    if report.front:
        talk(f"site:   {folder / report.front}")
    talk(f"report: {folder / report.kept.get('report.html', 'report.html')}")
    if not result.finished.complete:
        talk(f"more can be recovered: recollect recover --resume {shlex.quote(str(folder))} --yes")
