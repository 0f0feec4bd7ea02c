"""`recollect watch`: look at live sites, notice when one is lost, get it back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.types import DATE
from recollect.cli.watchpages import COMMANDS
from recollect.cli.watchtools import data_option, example, open_store, percent, refuse_private, secret_of, site_uri
from recollect.datetimes import format_iso
from recollect.errors import UsageError
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.archives.client import ArchiveClient
    from recollect.archives.registry import Archive
    from recollect.cli.watchmail import OutboxMailer
    from recollect.model import ProgressCallback
    from recollect.watch.board import Counts
    from recollect.watch.check import Check
    from recollect.watch.run import Round, Tools
    from recollect.watch.store import Site, Store

EPILOG = """\b
Examples:
  recollect watch check http://site.example/              what would come back if it were lost today
  recollect watch add http://site.example/ --data watch/
  recollect watch run --data watch/                       look every day, until Ctrl-C
  recollect watch run --once --data watch/                once, for cron
  recollect watch status --data watch/ --fail-on lost
  recollect watch dashboard --data watch/ -o page.html
"""

_POLL = 60.0


@click.group(epilog=EPILOG)
def watch() -> None:
    """Watch live sites, report when one is in danger or lost, and recover it."""


for _command in COMMANDS:
    watch.add_command(_command)


archives_option = click.option(
    "--archives", type=click.Path(exists=True, dir_okay=False), help="List of archives.  [default: the public ones]"
)
private_option = click.option("--allow-private", is_flag=True, help="Allow sites on private and loopback addresses.")


@watch.command("check", epilog=example("check http://site.example/", "check http://site.example/ --sample 200 --json"))
@click.argument("uri")
@click.option("--sample", default=50, show_default=True, type=click.IntRange(min=1), help="Resources to look at.")
@archives_option
@private_option
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report as a page.")
@json_option
def check_command(
    uri: str, sample: int, archives: str | None, allow_private: bool, output: str | None, as_json: bool
) -> int:
    """Estimate what share of the live site URI could be recovered if it were lost today."""
    with progress_bar() as progress:
        report = asyncio.run(_check(site_uri(uri), sample, archives, allow_private, progress))
    if output is not None:
        from recollect.formats.containers import atomic_output
        from recollect.web.watch import check_page

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
@private_option
@click.option("--email", default="", help="Address for notices.")
@click.option("--webhook", default="", help="Address that notices are posted to, as JSON.")
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
    now: datetime | None,
) -> int:
    """Watch the site URI."""
    from recollect.watch.store import OnLoss, Site, Store

    site = site_uri(uri)
    refuse_private(site, allow_private)
    if webhook:
        refuse_private(site_uri(webhook), allow_private)
    at = now or datetime.now(UTC)
    listed = str(Path(archives).resolve()) if archives else ""
    with Store(folder) as store, store.transaction():
        if store.site(site) is not None:
            raise UsageError("this site is watched already", where=site, hint="recollect watch status --data DIR")
        store.put_site(Site(site, at, at, sample, OnLoss(on_loss), listed, allow_private, email, webhook))
    talk(f"{site} is watched; next: recollect watch run --data {folder}")
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
@click.option("--now", type=DATE, help="Simulated current time; implies --once.")
@click.option("--canary", "canaries", multiple=True, metavar="URL", help="A site that always answers; may be repeated.")
@click.option("--smtp", default="", metavar="HOST:PORT", help="Mail server; without one, mails are files in outbox/.")
@click.option("--from-address", default="", help="Sender of the mails.")
@click.option("--desk", metavar="URL", help="Recover lost sites by jobs at this desk instead of here.")
@click.option("--desk-token-file", type=click.Path(exists=True, dir_okay=False), help="File with the desk's token.")
@click.option("--rdap", default="", metavar="URL", help="RDAP server to ask for changes of registration.")
@click.option("--save", metavar="URL", help="Endpoint of an archive that is asked to save vulnerable resources.")
@click.option("--save-key-file", type=click.Path(exists=True, dir_okay=False), help="File with its key:secret.")
@click.option(
    "--allow-private", "own_services", is_flag=True, help="Allow RDAP servers and save endpoints on private addresses."
)
@json_option
def run_command(folder: str, once: bool, now: datetime | None, as_json: bool, **given: Any) -> int:
    """Visit the watched sites that are due."""
    with open_store(folder) as store, store.alone():
        if once or now is not None:
            with progress_bar() as progress:
                done = asyncio.run(_rounds(store, given, lambda: now or datetime.now(UTC), progress, once=True))
            _show_round(done, as_json)
            return 3 if done.failures else 0
        talk(f"{counted(len(store.sites()), 'site')} are watched; Ctrl-C ends")
        asyncio.run(_rounds(store, given, lambda: datetime.now(UTC), lambda _: None, once=False, as_json=as_json))
    return 0


@watch.command("status", epilog=example("status --data watch/", "status --data watch/ --json --fail-on lost"))
@data_option
@click.option(
    "--fail-on",
    type=click.Choice(["suspect", "lost", "taken-over", "moved"]),
    multiple=True,
    help="Exit with 1 if a site is in this state; lost includes taken-over.",
)
@json_option
def status_command(folder: str, fail_on: tuple[str, ...], as_json: bool) -> int:
    """Show the state of every watched site."""
    from recollect.watch.board import site_json
    from recollect.watch.store import counts_of

    with open_store(folder, read_only=True) as store:
        sites = store.sites()
        counts = {site.uri: counts_of(store.resources(site.uri)) for site in sites}
    if as_json:
        emit_json([site_json(site, counts[site.uri]) for site in sites])
    else:
        headers = ["site", "state", "since", "last visit", "recoverable", "of", "recovery"]
        emit_table(headers, [_site_row(site, counts[site.uri]) for site in sites], right=[4, 5])
    states = {site.status.state.value for site in sites}
    wanted = {*fail_on, *(("taken-over",) if "lost" in fail_on else ())}
    return 1 if states & wanted else 0


@watch.command("history", epilog=example("history --data watch/", "history http://site.example/ --data watch/ --json"))
@click.argument("uri", required=False)
@data_option
@json_option
def history_command(uri: str | None, folder: str, as_json: bool) -> int:
    """List every visit of a site, or of all."""
    with open_store(folder, read_only=True) as store:
        visits = store.visits(site_uri(uri) if uri else "")
    if as_json:
        emit_json(
            [
                {"site": v.site, "at": format_iso(v.at), "seen": v.seen.value, "state": v.state.value, "why": v.why}
                for v in visits
            ]
        )
    else:
        rows = [(format_iso(v.at), v.site, v.seen.value, v.state.value, v.why) for v in visits]
        emit_table(["at", "site", "seen", "state", "why"], rows)
    return 0


# --- what the commands do


def _tools(client: ArchiveClient, store: Store, given: dict[str, Any], progress: ProgressCallback) -> Tools:
    from recollect.archives.client import USER_AGENT
    from recollect.archives.live import LiveClient
    from recollect.watch.run import Tools
    from recollect.watch.saving import SaveEndpoint

    folder = store.folder
    desk = _desk(given["desk"], given["desk_token_file"])
    return Tools(
        live=lambda allowed: LiveClient(user_agent=USER_AGENT, allow_private=allowed),
        archives=_archives(),
        client=client,
        canaries=given["canaries"],
        recover=lambda site, place: desk(site, folder / place) if desk else _recover(site, folder / place),
        mailer=_mailer(store, given["smtp"], given["from_address"]),
        rdap=given["rdap"],
        domain=_registered_domain,
        save=SaveEndpoint(given["save"], secret_of(given["save_key_file"])) if given["save"] else None,
        own_services=given["own_services"],
        progress=progress,
    )


def _mailer(store: Store, smtp: str, from_address: str) -> OutboxMailer:
    if smtp and not from_address:
        raise UsageError("mails need a sender", where="--smtp", hint="--from-address watch@example.org")
    from recollect.cli.watchmail import OutboxMailer

    return OutboxMailer(store.folder, smtp, from_address)


def _desk(address: str | None, token_file: str | None) -> Callable[[Site, Path], Awaitable[None]] | None:
    if address is None:
        return None
    if not address.startswith(("http://", "https://")):
        raise UsageError("not the address of a desk", where=address, hint="--desk https://desk.example.org")
    from recollect.cli.watchmail import DeskJobs

    jobs = DeskJobs(address, secret_of(token_file))

    async def submit(site: Site, folder: Path) -> None:
        job = await asyncio.to_thread(jobs.submit, site)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job.json").write_text(json.dumps({"desk": address, "job": job}) + "\n")

    return submit


def _registered_domain(uri: str) -> str:
    """The domain that a registry knows; empty for an address or a name below no public suffix."""
    from publicsuffixlist import PublicSuffixList

    from recollect.watch.registration import host_of

    host = host_of(uri)
    if not host or ":" in host or host.replace(".", "").isdigit():
        return ""
    return PublicSuffixList().privatesuffix(host) or ""


def _archives() -> Callable[[str], tuple[Archive, ...]]:
    from functools import cache

    from recollect.archives.registry import load_archives

    return cache(lambda path: load_archives(path or None))


async def _rounds(
    store: Store,
    given: dict[str, Any],
    clock: Callable[[], datetime],
    progress: ProgressCallback,
    *,
    once: bool,
    as_json: bool = False,
) -> Round:
    from recollect.archives.client import ArchiveClient
    from recollect.watch.run import run_round

    async with ArchiveClient() as client:
        tools = _tools(client, store, given, progress)
        while True:
            done = await run_round(store, tools, clock())
            if once:
                return done
            if done.visited:
                _show_round(done, as_json)
            await asyncio.sleep(_POLL)


async def _recover(site: Site, folder: Path) -> None:
    """Recover a site as it was just before it was lost."""
    from recollect.recovery.choose import Wish
    from recollect.recovery.options import Options
    from recollect.recovery.recover import recover
    from recollect.recovery.scope import Scope
    from recollect.recovery.sources import Sources

    options = Options(Scope((site.uri,)), Wish(end=site.status.since))
    folder.parent.mkdir(parents=True, exist_ok=True)
    sources = Sources(registry=site.archives)
    await asyncio.to_thread(recover, site.uri, folder, archives=sources, options=options)


async def _check(uri: str, sample: int, archives: str | None, allow_private: bool, progress: ProgressCallback) -> Check:
    from recollect.archives.client import USER_AGENT, ArchiveClient
    from recollect.archives.live import Failure, LiveClient
    from recollect.archives.registry import load_archives
    from recollect.model import Progress
    from recollect.watch.check import check_of
    from recollect.watch.look import archived, live_sample, resource_of

    at = datetime.now(UTC)
    asked = [archive for archive in load_archives(archives) if not archive.ignore]
    async with LiveClient(user_agent=USER_AGENT, allow_private=allow_private) as live, ArchiveClient() as client:
        front = await live.get(uri)
        if front.failure is not None:
            private = front.failure is Failure.REFUSED
            hint = "--allow-private" if private else "recollect survey shows what archives have"
            raise UsageError("the site does not answer", where=uri, why=front.why, hint=hint)
        answers = await live_sample(live, uri, front, sample, progress=progress)
        looked = []
        for number, answer in enumerate(answers, 1):
            looked.append(await archived(client, asked, resource_of(uri, answer, at), answer, at))
            progress(Progress("asking archives", number, len(answers), "resources"))
    return check_of(uri, at, looked)


# --- what people see


def _show_check(report: Check) -> None:
    whole = report.whole
    talk(
        f"If {report.site} were lost today, {percent(whole.share)} of its "
        f"{counted(whole.total, 'resource')} would come back."
    )
    rows = [
        (
            group.name,
            f"{group.total:,}",
            f"{group.held:,}",
            f"{group.fresh:,}",
            f"{group.unknown:,}",
            percent(group.share),
        )
        for group in (*report.groups, whole)
    ]
    emit_table(["type", "live", "held", "fresh", "unknown", "comes back"], rows, right=[1, 2, 3, 4, 5])
    if report.vulnerable:
        talk(f"\nheld by no archive ({len(report.vulnerable):,}):")
        for one in report.vulnerable[:20]:
            talk(f"  {one.resource.uri}")
        if len(report.vulnerable) > 20:
            talk(f"  and {len(report.vulnerable) - 20:,} more (--json lists all)")
    if report.failed_archives:
        talk("\narchives that did not answer: " + ", ".join(f"{a} ({n:,})" for a, n in report.failed_archives.items()))


def _show_round(done: Round, as_json: bool) -> None:
    rows = [(uri, visit.seen.value, status.state.value, visit.why) for uri, visit, status in done.visited]
    if as_json:
        names = ("site", "seen", "state", "why")
        emit_json(
            {"visited": [dict(zip(names, row, strict=True)) for row in rows]}
            | {"recovered": list(done.recovered), "failures": list(done.failures)}
            | {"notices": done.notices, "saves": done.saves}
        )
        return
    emit_table(["site", "seen", "state", "why"], rows)
    for uri in done.recovered:
        talk(f"recovered: {uri}")
    for failure in done.failures:
        talk(f"failed: {failure}")


def _site_row(site: Site, counts: Counts) -> tuple[str, ...]:
    from recollect.watch.board import share_of

    since = f"{site.status.since:%Y-%m-%d}" if site.status.since else ""
    visited = f"{site.last_visit:%Y-%m-%d %H:%M}" if site.last_visit else "never"
    shown = f"{sum(counts.values()):,}"
    return site.uri, site.status.state.value, since, visited, percent(share_of(counts)), shown, site.recovery
