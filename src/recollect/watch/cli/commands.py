"""`recollect watch`: look at live sites, notice when one is lost, get it back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.logs import log_option
from recollect.cli.types import DATE, contact_option
from recollect.datetimes import format_iso
from recollect.errors import UsageError
from recollect.quantities import counted
from recollect.watch.cli.advise import advise_command
from recollect.watch.cli.pages import COMMANDS
from recollect.watch.cli.tools import PERIOD, data_option, example, open_store, refuse_private, shown, site_uri

if TYPE_CHECKING:
    from recollect.watch.board import Line
    from recollect.watch.check import Check
    from recollect.watch.run import Round

EPILOG = """\b
Examples:
  recollect watch check http://site.example/              what would come back if it were lost today
  recollect watch add http://site.example/ --data watch/
  recollect watch run --data watch/                       visit every day, until Ctrl-C
  recollect watch run --once --data watch/                once, for cron
  recollect watch status --data watch/ --fail-on lost
  recollect watch dashboard --data watch/ -o page.html
"""
FAIL_ON = (
    *("suspect", "lost", "taken-over", "moved", "pages-lost", "bad-certificate", "suspended", "domain-expired"),
    *("default-page", "maintenance", "new-links", "offline"),
)
_NOT_SEEN = ("taken-over", "suspended", "domain-expired", "default-page", "maintenance")


@click.group(epilog=EPILOG)
def watch() -> None:
    """Watch live sites, report when one is in danger or lost, and recover it."""


for _command in (*COMMANDS, advise_command):
    watch.add_command(_command)


archives_option = click.option(
    "--archives", type=click.Path(exists=True, dir_okay=False), help="List of archives.  [default: the public ones]"
)
private_option = click.option("--allow-private", is_flag=True, help="Allow sites on private and loopback addresses.")


@watch.command("check", epilog=example("check http://site.example/", "check http://site.example/ --sample 200 --json"))
@click.argument("uri")
@click.option("--sample", default=50, show_default=True, type=click.IntRange(min=1), help="Resources to look at.")
@archives_option
@contact_option
@private_option
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report as a page.")
@json_option
def check_command(
    uri: str, sample: int, archives: str | None, allow_private: bool, output: str | None, as_json: bool
) -> int:
    """Estimate what share of the live site URI could be recovered if it were lost today."""
    from recollect.formats.outputs import refuse_inputs
    from recollect.watch.cli.run import check_site

    refuse_inputs(output, [archives] if archives else [])
    site = site_uri(uri)
    refuse_private(site, allow_private)
    with progress_bar() as progress:
        report = asyncio.run(check_site(site, sample, archives, allow_private, progress))
    if output is not None:
        from recollect.formats.containers import atomic_output
        from recollect.watch.pages.check import check_page

        with atomic_output(output) as out:
            out.write(check_page(report).encode())
        talk(f"{output}: the report as a page")
    if as_json:
        emit_json(report.to_json())
    else:
        _show_check(report)
    return 3 if report.failed_archives else 0


@watch.command("add", epilog=example("add http://site.example/ --data watch/ --email me@example.org"))
@click.argument("uri")
@data_option
@click.option("--sample", default=50, show_default=True, type=click.IntRange(min=1), help="Resources to look at.")
@click.option(
    "--on-loss",
    type=click.Choice(["recover", "notify"]),
    default="recover",
    show_default=True,
    help="What to do when the site is lost.",
)
@archives_option
@contact_option
@private_option
@click.option("--email", default="", help="Address for notices.")
@click.option("--webhook", default="", help="Address that notices are posted to, as JSON.")
@click.option("--every", type=PERIOD, default="1d", show_default=True, help="Time between visits, like 12h or 2d.")
@click.option("--canary", default="", help="A site that always answers, asked when this one fails.")
@click.option("--now", type=DATE, hidden=True, help="Simulated current time.")
def add_command(
    uri: str,
    folder: str,
    sample: int,
    on_loss: str,
    archives: str | None,
    allow_private: bool,
    email: str,
    webhook: str,
    every: timedelta,
    canary: str,
    now: datetime | None,
) -> int:
    """Watch the site URI."""
    from recollect.watch.records import OnLoss, Site
    from recollect.watch.store import Store

    site = site_uri(uri)
    refuse_private(site, allow_private)
    for other in filter(None, (webhook, canary)):
        refuse_private(site_uri(other), allow_private)
    at = now or datetime.now(UTC)
    listed = str(Path(archives).resolve()) if archives else ""
    with Store(folder) as store, store.transaction():
        if store.site(site) is not None:
            raise UsageError("this site is watched already", where=site, hint="recollect watch status --data DIR")
        made = Site(site, at, at, sample, OnLoss(on_loss), listed, allow_private, email, webhook)
        store.put_site(replace(made, every=every, canary=canary))
    talk(f"{site} is watched; next: recollect watch run --data {folder}")
    return 0


@watch.command(
    "edit",
    epilog=example(
        "edit http://site.example/ --email new@example.org --data watch/",
        "edit http://site.example/ --every 12h --canary https://example.com/ --data watch/",
    ),
)
@click.argument("uri")
@data_option
@click.option("--email", help="Address for notices; empty for none.")
@click.option("--webhook", help="Address that notices are posted to; empty for none.")
@click.option("--every", type=PERIOD, help="Time between visits, like 12h or 2d.")
@click.option("--canary", help="A site that always answers, asked when this one fails; empty for none.")
@click.option("--sample", type=click.IntRange(min=1), help="Resources to look at.")
@click.option("--on-loss", type=click.Choice(["recover", "notify"]), help="What to do when the site is lost.")
@click.option("--archives", type=click.Path(exists=True, dir_okay=False), help="List of archives.")
def edit_command(uri: str, folder: str, **given: Any) -> int:
    """Change how the site URI is watched; all observations stay."""
    from recollect.watch.cli.edit import edit_site

    with open_store(folder) as store:
        for line in edit_site(store, site_uri(uri), given):
            talk(line)
    return 0


@watch.command("accept", epilog=example("accept http://site.example/ --data watch/"))
@click.argument("uri")
@data_option
@click.option("--now", type=DATE, hidden=True, help="Simulated current time.")
def accept_command(uri: str, folder: str, now: datetime | None) -> int:
    """Accept the present content of the site URI: a relaunch, pages removed on purpose, new links."""
    from recollect.watch.accepting import accept

    with open_store(folder) as store:
        talk(f"{site_uri(uri)}: {accept(store, site_uri(uri), now or datetime.now(UTC))}")
    return 0


@watch.command("remove", epilog=example("remove http://site.example/ --data watch/"))
@click.argument("uri")
@data_option
def remove_command(uri: str, folder: str) -> int:
    """Stop watching the site URI. Deletes its observations, keeps its recoveries."""
    with open_store(folder) as store:
        if not store.remove(site_uri(uri)):
            raise UsageError("this site is not watched", where=uri, hint="recollect watch status --data DIR")
    return 0


@watch.command(
    "run",
    epilog=example(
        "run --data watch/",
        "run --once --data watch/   # from cron",
        "run --canary http://example.com/ --data watch/",
        "run --data watch/ --smtp mail.example.org:25 --from-address watch@example.org",
        "run --data watch/ --rdap https://rdap.example/ --desk https://desk.example.org",
    ),
)
@data_option
@click.option("--once", is_flag=True, help="Visit what is due, then end.")
@contact_option
@click.option("--now", type=DATE, help="Simulated current time; implies --once.")
@click.option("--canary", "canaries", multiple=True, metavar="URL", help="A site that always answers; may be repeated.")
@click.option("--smtp", default="", metavar="HOST:PORT", help="Mail server; without one, mails are files in outbox/.")
@click.option("--from-address", default="", help="Sender of the mails.")
@click.option("--desk", metavar="URL", help="Recover lost sites by jobs at this desk instead of here.")
@click.option("--desk-token-file", type=click.Path(exists=True, dir_okay=False), help="File with the desk's token.")
@click.option(
    "--dashboard", default="", metavar="URL", help="Address of `watch serve`: mails link there to accept a relaunch."
)
@click.option("--rdap", default="", metavar="URL", help="RDAP server to ask for changes of registration.")
@click.option(
    "--resolver", default="", metavar="HOST[:PORT]", help="DNS server to ask for name servers.  [default: the system's]"
)
@click.option("--save", metavar="URL", help="Endpoint of an archive that is asked to save vulnerable resources.")
@click.option("--save-key-file", type=click.Path(exists=True, dir_okay=False), help="File with its key:secret.")
@click.option(
    "--allow-private",
    "own_services",
    is_flag=True,
    help="Allow canaries, RDAP servers and save endpoints on private addresses.",
)
@log_option
@json_option
def run_command(folder: str, once: bool, now: datetime | None, as_json: bool, **given: Any) -> int:
    """Visit the watched sites that are due."""
    from recollect.watch.cli.run import RunOptions, run_once, run_until_stopped

    options = RunOptions(**given)
    with open_store(folder) as store, store.alone():
        if once or now is not None:
            due = len(store.due(now or datetime.now(UTC)))
            if due:
                talk(f"visiting {counted(due, 'site')}")
            with progress_bar() as progress:
                done = asyncio.run(run_once(store, options, now or datetime.now(UTC), progress))
            _show_round(done, as_json)
            return 3 if done.failures or done.offline_since is not None else 0
        due = len(store.due(datetime.now(UTC)))
        talk(f"{counted(len(store.sites()), 'site')} watched, visiting {due:,} now; Ctrl-C ends")
        with progress_bar() as progress:
            asyncio.run(run_until_stopped(store, options, lambda done: _show_round(done, as_json), progress))
    return 0


@watch.command("status", epilog=example("status --data watch/", "status --data watch/ --json --fail-on lost"))
@data_option
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    metavar="STATE",
    multiple=True,
    help=f"Exit with 1 if a site is in this state: {', '.join(FAIL_ON)}; lost includes all in which visitors do not "
    "see the site.",
)
@json_option
def status_command(folder: str, fail_on: tuple[str, ...], as_json: bool) -> int:
    """Show the state of every watched site."""
    from recollect.watch.board import lines_of

    with open_store(folder, read_only=True) as store:
        lines = lines_of(store)
    if as_json:
        emit_json([line.to_json() for line in lines])
    else:
        headers = ["site", "state", "since", "last visit", "recoverable", "of", "lost pages", "recovery", ""]
        emit_table(headers, [_site_row(line) for line in lines], right=[4, 5, 6])
    states = {line.site.status.state.value for line in lines}
    states |= {"new-links" for line in lines if line.site.notes.injected}
    states |= {"pages-lost" for line in lines if line.lost}
    states |= {"offline" for line in lines if line.offline_since is not None}
    wanted = {*fail_on, *(_NOT_SEEN if "lost" in fail_on else ())}
    return 1 if states & wanted else 0


@watch.command(
    "history",
    epilog=example(
        "history --data watch/",
        "history http://site.example/ --data watch/ --json",
        "history http://site.example/ --resources --data watch/",
    ),
)
@click.argument("uri", required=False)
@data_option
@click.option("--resources", is_flag=True, help="List every observation of the resources of the site URI instead.")
@json_option
def history_command(uri: str | None, folder: str, resources: bool, as_json: bool) -> int:
    """List every visit of a site, or of all."""
    if resources and uri is None:
        raise UsageError("missing URI", where="--resources", hint="recollect watch history URI --resources --data DIR")
    with open_store(folder, read_only=True) as store:
        site = site_uri(uri) if uri else ""
        if site and store.site(site) is None:
            raise UsageError("this site is not watched", where=site, hint="recollect watch status --data DIR")
        if resources:
            rows: list[dict[str, Any]] = [
                {"at": format_iso(o.at), "uri": o.uri, "status": o.status or None}
                | {"live": o.live.value, "held": o.held.value, "alike": o.fresh}
                for o in store.observations(site)
            ]
        else:
            rows = [
                {"at": format_iso(v.at), "site": v.site, "seen": v.seen.value, "state": v.state.value, "why": v.why}
                for v in store.visits(site)
            ]
    if as_json:
        emit_json(rows)
    else:
        names = "at uri status live held alike" if resources else "at site seen state why"
        emit_table(names.split(), [["" if cell is None else shown(cell) for cell in row.values()] for row in rows])
    return 0


# --- what people see


def _show_check(report: Check) -> None:
    whole = report.whole
    if whole.known:
        unknown = f"; of {whole.unknown:,} more that is unknown" if whole.unknown else ""
        sample = f"{whole.percent} of {counted(whole.known, 'resource')} would come back{unknown}"
    else:
        sample = f"it is unknown how many of its {counted(whole.total, 'resource')} would come back"
    talk(f"If {report.site} were lost today, {sample}.")
    rows = [
        (
            group.name,
            f"{group.total:,}",
            f"{group.held:,}",
            f"{group.fresh:,}",
            f"{group.unknown:,}",
            group.percent,
        )
        for group in (*report.groups, whole)
    ]
    emit_table(["type", "live", "held", "fresh", "unknown", "comes back"], rows, right=[1, 2, 3, 4, 5])
    if report.vulnerable:
        talk(f"\nheld by no archive ({len(report.vulnerable):,}):")
        for one in report.vulnerable[:20]:
            talk(f"  {shown(one.resource.uri)}")
        if len(report.vulnerable) > 20:
            talk(f"  and {len(report.vulnerable) - 20:,} more (--json lists all)")
    if report.disallowed:
        talk(f"\nnot looked at: robots.txt disallows {counted(report.disallowed, 'address', 'addresses')}")
    if report.failed_archives:
        talk("\narchives that did not answer: " + ", ".join(f"{a} ({n:,})" for a, n in report.failed_archives.items()))


def _show_round(done: Round, as_json: bool) -> None:
    from recollect.watch.states import VisitResult

    rows = [(uri, visit.seen.value, status.state.value, visit.why) for uri, visit, status in done.visited]
    if as_json:
        names = ("site", "seen", "state", "why")
        emit_json(
            {"visited": [dict(zip(names, row, strict=True)) for row in rows]}
            | {"recovered": list(done.recovered), "failures": list(done.failures)}
            | {"notices": done.notices, "saves": done.saves}
        )
        return
    if rows:
        emit_table(["site", "seen", "state", "why"], [[shown(cell) for cell in row] for row in rows])
    else:
        talk("no site is due")
    for uri in done.recovered:
        talk(f"recovered: {uri}")
    for failure in done.failures:
        talk(f"failed: {shown(failure)}")
    if any(visit.seen is VisitResult.OFFLINE for _, visit, _ in done.visited):
        talk("nothing answers: neither the sites nor a canary, an archive or DNS; probably the local network fails")


def _site_row(line: Line) -> tuple[str, ...]:
    from recollect.watch.records import RecoveryState, percent_of

    site = line.site
    since = f"{site.status.since:%Y-%m-%d}" if site.status.since else ""
    visited = f"{site.last_visit:%Y-%m-%d %H:%M}" if site.last_visit else "never"
    total = f"{sum(line.counts.values()):,}"
    recovery = line.recovery
    state = "" if recovery is None or recovery.state is RecoveryState.DONE else recovery.state.value
    folder = site.recovery or (recovery.folder if recovery is not None else "")
    unseen = f", not seen since {line.unseen_since:%Y-%m-%d}" if line.unseen_since else ""
    if line.offline_since is not None:
        unseen = f", nothing answers since {line.offline_since:%Y-%m-%d}"
    believed = site.status.state.value + unseen
    if site.notes.injected:
        believed += ", new links to " + ", ".join(site.notes.injected[:3])
    lost = f"{len(line.lost):,}"
    return site.uri, shown(believed), since, visited, percent_of(line.counts), total, lost, folder, state
