"""Commands of a watch that show it elsewhere: `feed`, `dashboard`, `serve`, and `evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.console import emit_json, emit_table, json_option, talk
from recollect.cli.types import DATE
from recollect.errors import UsageError
from recollect.quantities import counted
from recollect.watch.cli.tools import data_option, example, open_store

if TYPE_CHECKING:
    from recollect.watch.board import Board, Detail

MOST_DETAILS = 100
"""Sites with a part of their own in a dashboard that is one file."""
now_option = click.option("--now", type=DATE, help="Simulated current time.")


def _write(folder: str, output: str, content: bytes) -> None:
    from recollect.formats.containers import atomic_output
    from recollect.formats.outputs import refuse_inputs
    from recollect.watch.store import NAME

    refuse_inputs(output, [Path(folder) / NAME])
    with atomic_output(output) as out:
        out.write(content)


@click.command("feed", epilog=example("feed --data watch/ -o atom.xml"))
@data_option
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="Feed to write (Atom).")
@now_option
def feed_command(folder: str, output: str, now: datetime | None) -> int:
    """Write every notice as an Atom feed."""
    from recollect.watch.notices import atom

    with open_store(folder, read_only=True) as store:
        sites = {site.uri: site for site in store.sites()}
        notices = store.notices()
    _write(folder, output, atom(sites, notices, now or datetime.now(UTC)))
    talk(f"{output}: {counted(len(notices), 'notice')}")
    return 0


@click.command("dashboard", epilog=example("dashboard --data watch/ -o page.html"))
@data_option
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="Page to write (HTML).")
@now_option
def dashboard_command(folder: str, output: str, now: datetime | None) -> int:
    """Write a page with all sites, and with the states of their resources over time."""
    from recollect.watch.board import board_of, detail_of
    from recollect.watch.pages.board import dashboard_page

    with open_store(folder, read_only=True) as store:
        board = board_of(store, now or datetime.now(UTC))
        uris = [line.site.uri for line in board.lines[:MOST_DETAILS]]
        details = {uri: detail for uri in uris if (detail := detail_of(store, uri)) is not None}
    _write(folder, output, dashboard_page(board, details).encode())
    talk(f"{output}: {counted(len(board.lines), 'site')}")
    return 0


@click.command("serve", epilog=example("serve --data watch/", "serve --data watch/ --port 8080"))
@data_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=1210, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 for a free one.")
def serve_command(folder: str, host: str, port: int) -> int:
    """Serve the dashboard (`/`), the same for programs (`/status.json`) and the feed (`/atom.xml`); a button accepts a
    relaunch."""
    import asyncio

    with open_store(folder, read_only=True):
        pass  # an error now, not with the first request
    asyncio.run(_serve(folder, host, port))
    return 0


@dataclass(frozen=True, slots=True)
class FolderDashboard:
    """The dashboard of a data folder; opened for each request, beside a `watch run`."""

    folder: Path

    def board(self) -> Board:
        from recollect.watch.board import board_of

        with open_store(str(self.folder), read_only=True) as store:
            return board_of(store, datetime.now(UTC))

    def feed(self) -> bytes:
        from recollect.watch.notices import atom

        with open_store(str(self.folder), read_only=True) as store:
            return atom({site.uri: site for site in store.sites()}, store.notices(), datetime.now(UTC))

    def detail(self, uri: str) -> Detail | None:
        from recollect.watch.board import detail_of

        with open_store(str(self.folder), read_only=True) as store:
            return detail_of(store, uri)

    def signature(self, uri: str) -> str:
        from recollect.watch.accepting import can_accept, key_of, signature

        with open_store(str(self.folder), read_only=True) as store:
            site = store.site(uri)
        return signature(key_of(self.folder), site) if site is not None and can_accept(site) else ""

    def accept(self, uri: str) -> str:
        from recollect.watch.accepting import accept

        with open_store(str(self.folder)) as store:
            return accept(store, uri, datetime.now(UTC))


async def _serve(folder: str, host: str, port: int) -> None:
    import asyncio
    import signal

    from aiohttp import web

    from recollect.watch.pages.server import board_app

    runner = web.AppRunner(board_app(FolderDashboard(Path(folder))), access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError("cannot listen", where=f"{host}:{port}", why=why, hint="--port 0") from error
        bound = runner.addresses[0][1]
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"Recollect watch listens on http://{shown}:{bound}/")
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await stop.wait()
    finally:
        await runner.cleanup()


@click.command(
    "evaluate", epilog=example("evaluate", "evaluate --lives 1000 --seed 7 --json", "evaluate --pages pages/")
)
@click.option("--lives", default=600, show_default=True, type=click.IntRange(2), help="Simulated sites of each kind.")
@click.option("--sites", default=80, show_default=True, type=click.IntRange(2), help="Generated sites with pages.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--pages",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of real pages with labels.csv (columns site, label, uri, file).",
)
@json_option
def evaluate_command(lives: int, sites: int, seed: int, pages: str | None, as_json: bool) -> int:
    """Measure false alarms and days to detection on simulated sites and pages; exit with 1 above the limits."""
    from recollect.watch.evaluate import evaluate
    from recollect.watch.lives import Story

    done = evaluate(lives, sites, seed, Path(pages) if pages else None)
    if as_json:
        emit_json(done.to_json())
        return 0 if done.good else 1
    rows = [
        (
            one.story.value,
            f"{one.lives:,}",
            f"{one.false_alarms:.3f}",
            f"{one.detected:.1%}" if one.detected is not None else "",
            *(f"{days:.1f}" if days is not None else "" for days in (one.days_median, one.days_p95, one.back_median)),
            f"{one.visits_a_day:.2f}",
        )
        for one in done.lives
    ]
    names = ["what happens", "lives", "false alarms a site-year", "detected", "days, median", "days, p95"]
    emit_table([*names, "days to back", "visits a day"], rows, right=range(1, 8))
    sets = [done.train, done.test, *((done.real.pages,) if done.real is not None else ())]
    shown = [
        (one.name, label.value, f"{total:,}", f"{called:,}", f"{called / total:.1%}")
        for one in sets
        for label, (total, called) in one.counts.items()
    ]
    click.echo()
    emit_table(["set", "pages", "shown", "called foreign", "share"], shown, right=[2, 3, 4])
    days = done.loss.days_median
    talk(f"false alarms per site-year: {done.false_alarms:.3f} (at most 0.05)")
    talk(f"days to the detection of a loss, median: {days if days is None else round(days, 1)} (at most 8)")
    expired = done.of(Story.EXPIRED)
    if expired.warned_days is not None:
        talk(
            f"certificates that expired: {expired.warned:.1%} reported before, {expired.warned_days:.1f} days before "
            f"(median); warnings of certificates renewed later: {done.false_warnings:.3f} a site-year"
        )
    for one in sets[1:]:
        talk(f"takeovers detected, {one.name} pages: {_share(one.detected)} (at least 95%)")
        talk(f"false alarms, {one.name} pages: {_share(one.false_alarms)} (at most 4%)")
    if done.real is not None:
        talk(f"real pages: {counted(done.real.sites, 'site')}, {counted(done.real.past, 'page')} of their past")
        for wrong in done.real.wrong[:20]:
            talk(f"  judged incorrectly: {wrong}")
    return 0 if done.good else 1


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


COMMANDS = (feed_command, dashboard_command, serve_command, evaluate_command)
