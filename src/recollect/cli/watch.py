"""`recollect watch`: look at live sites, notice when one is lost, get it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.types import DATE
from recollect.datetimes import format_iso
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.archives.client import ArchiveClient
    from recollect.archives.registry import Archive
    from recollect.model import ProgressCallback
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
"""

_POLL = 60.0


@click.group(epilog=EPILOG)
def watch() -> None:
    """Know which sites are in danger, notice when one is lost, get it back."""


def _example(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  recollect watch {line}" for line in lines)


data_option = click.option(
    "--data", "folder", required=True, type=click.Path(file_okay=False), help="Folder of the watch."
)
archives_option = click.option(
    "--archives", type=click.Path(exists=True, dir_okay=False), help="List of archives.  [default: the public ones]"
)
private_option = click.option("--allow-private", is_flag=True, help="Allow sites on private and loopback addresses.")


@watch.command("check", epilog=_example("check http://site.example/", "check http://site.example/ --sample 200 --json"))
@click.argument("uri")
@click.option("--sample", default=50, show_default=True, type=click.IntRange(min=1), help="Resources to look at.")
@archives_option
@private_option
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report as a page.")
@json_option
def check_command(
    uri: str, sample: int, archives: str | None, allow_private: bool, output: str | None, as_json: bool
) -> int:
    """Say what share of the live site URI would come back if it were lost today."""
    with progress_bar() as progress:
        report = asyncio.run(_check(_site_uri(uri), sample, archives, allow_private, progress))
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


@watch.command("add", epilog=_example("add http://site.example/ --data watch/ --email me@example.org"))
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
@click.option("--now", type=DATE, hidden=True, help="The time it is, for simulations.")
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

    site_uri = _site_uri(uri)
    _refuse_private(site_uri, allow_private)
    at = now or datetime.now(UTC)
    listed = str(Path(archives).resolve()) if archives else ""
    with Store(folder) as store, store.transaction():
        if store.site(site_uri) is not None:
            raise UsageError("this site is watched already", where=site_uri, hint="recollect watch status --data DIR")
        store.put_site(Site(site_uri, at, at, sample, OnLoss(on_loss), listed, allow_private, email, webhook))
    talk(f"{site_uri} is watched; next: recollect watch run --data {folder}")
    return 0


@watch.command("remove", epilog=_example("remove http://site.example/ --data watch/"))
@click.argument("uri")
@data_option
def remove_command(uri: str, folder: str) -> int:
    """Watch the site URI no longer; its observations are deleted, recoveries stay."""
    with _open(folder) as store:
        if not store.remove(_site_uri(uri)):
            raise UsageError("this site is not watched", where=uri, hint="recollect watch status --data DIR")
    return 0


@watch.command(
    "run",
    epilog=_example(
        "run --data watch/",
        "run --once --data watch/   # from cron",
        "run --canary http://example.com/ --data watch/",
    ),
)
@data_option
@click.option("--once", is_flag=True, help="Visit what is due, then end.")
@click.option("--now", type=DATE, help="The time it is, for simulations; implies --once.")
@click.option("--canary", "canaries", multiple=True, metavar="URL", help="A site that always answers; may be repeated.")
@json_option
def run_command(folder: str, once: bool, now: datetime | None, canaries: tuple[str, ...], as_json: bool) -> int:
    """Visit the watched sites that are due."""
    with _open(folder) as store:
        if once or now is not None:
            with progress_bar() as progress:
                done = asyncio.run(_rounds(store, canaries, lambda: now or datetime.now(UTC), progress, once=True))
            _show_round(done, as_json)
            return 3 if done.failures else 0
        talk(f"{len(store.sites()):,} sites are watched; Ctrl-C ends")
        asyncio.run(_rounds(store, canaries, lambda: datetime.now(UTC), lambda _: None, once=False, as_json=as_json))
    return 0


@watch.command("status", epilog=_example("status --data watch/", "status --data watch/ --json --fail-on lost"))
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
    from recollect.watch.store import counts_of

    with _open(folder) as store:
        sites = store.sites()
        counts = {site.uri: counts_of(store.resources(site.uri)) for site in sites}
    if as_json:
        emit_json([_site_json(site, {state.value: n for state, n in counts[site.uri].items()}) for site in sites])
    else:
        headers = ["site", "state", "since", "last visit", "recoverable", "of", "recovery"]
        emit_table(headers, [_site_row(site, counts[site.uri]) for site in sites], right=[4, 5])
    states = {site.status.state.value for site in sites}
    wanted = {*fail_on, *(("taken-over",) if "lost" in fail_on else ())}
    return 1 if states & wanted else 0


@watch.command("history", epilog=_example("history --data watch/", "history http://site.example/ --data watch/ --json"))
@click.argument("uri", required=False)
@data_option
@json_option
def history_command(uri: str | None, folder: str, as_json: bool) -> int:
    """List every visit of a site, or of all."""
    with _open(folder) as store:
        visits = store.visits(_site_uri(uri) if uri else "")
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


def _site_uri(uri: str) -> str:
    from urllib.parse import urlsplit

    text = uri if "://" in uri else f"http://{uri}"
    try:
        split = urlsplit(text)
        host = split.hostname
    except ValueError as error:
        raise UsageError("not an address", where=uri, why=str(error)) from error
    if split.scheme not in ("http", "https") or not host:
        raise UsageError("not the address of a site", where=uri, hint="like http://site.example/")
    return text if split.path else text + "/"


def _refuse_private(uri: str, allowed: bool) -> None:
    """An address literal that is private is refused when it is added; names are looked at with every visit."""
    from urllib.parse import urlsplit

    from recollect.archives.live import is_public

    host = urlsplit(uri).hostname or ""
    try:
        private = not is_public(host)
    except ValueError:
        private = host == "localhost" or host.endswith(".localhost")
    if private and not allowed:
        raise UsageError("a private address is not watched", where=uri, hint="--allow-private")


def _open(folder: str) -> Store:
    from recollect.watch.store import Store

    return Store(folder, create=False)


def _tools(client: ArchiveClient, folder: Path, canaries: tuple[str, ...], progress: ProgressCallback) -> Tools:
    from recollect.archives.client import USER_AGENT
    from recollect.archives.live import LiveClient
    from recollect.watch.run import Tools

    return Tools(
        live=lambda allowed: LiveClient(user_agent=USER_AGENT, allow_private=allowed),
        archives=_archives(),
        client=client,
        canaries=canaries,
        recover=lambda site, place: _recover(site, folder / place),
        progress=progress,
    )


def _archives() -> Callable[[str], tuple[Archive, ...]]:
    from functools import cache

    from recollect.archives.registry import load_archives

    return cache(lambda path: load_archives(path or None))


async def _rounds(
    store: Store,
    canaries: tuple[str, ...],
    clock: Callable[[], datetime],
    progress: ProgressCallback,
    *,
    once: bool,
    as_json: bool = False,
) -> Round:
    from recollect.archives.client import ArchiveClient
    from recollect.watch.run import run_round

    async with ArchiveClient() as client:
        tools = _tools(client, store.folder, canaries, progress)
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


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def _show_check(report: Check) -> None:
    whole = report.whole
    talk(f"If {report.site} were lost today, {_percent(whole.share)} of {whole.total:,} resources would come back.")
    rows = [
        (
            group.name,
            f"{group.total:,}",
            f"{group.held:,}",
            f"{group.fresh:,}",
            f"{group.unknown:,}",
            _percent(group.share),
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
        )
        return
    emit_table(["site", "seen", "state", "why"], rows)
    for uri in done.recovered:
        talk(f"recovered: {uri}")
    for failure in done.failures:
        talk(f"not recovered: {failure}")


def _site_json(site: Site, counts: dict[str, int]) -> dict[str, Any]:
    def iso(moment: datetime | None) -> str | None:
        return format_iso(moment) if moment is not None else None

    return {
        "site": site.uri,
        "state": site.status.state.value,
        "since": iso(site.status.since),
        "last_visit": iso(site.last_visit),
        "next_visit": iso(site.next_visit),
        "last_own": iso(site.status.last_own),
        "moved_to": site.moved_to or None,
        "resources": counts,
        "recovery": site.recovery or None,
    }


def _site_row(site: Site, counts: Any) -> tuple[str, ...]:
    from recollect.watch.states import ResourceState

    held = counts[ResourceState.REPLICATED] + counts[ResourceState.ENDANGERED]
    known = sum(counts.values()) - counts[ResourceState.UNKNOWN]
    share = f"{held / known:.0%}" if known else "unknown"
    since = f"{site.status.since:%Y-%m-%d}" if site.status.since else ""
    visited = f"{site.last_visit:%Y-%m-%d %H:%M}" if site.last_visit else "never"
    return site.uri, site.status.state.value, since, visited, share, f"{sum(counts.values()):,}", site.recovery
