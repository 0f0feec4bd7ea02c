"""Commands of a watch that show it elsewhere: `feed`, `dashboard`, `serve`, and `evaluate`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from recollect.cli.console import talk
from recollect.cli.types import DATE
from recollect.cli.watchtools import data_option, example, open_store

now_option = click.option("--now", type=DATE, help="The time it is, for simulations.")


def _write(output: str, content: bytes) -> None:
    from recollect.formats.containers import atomic_output

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
    _write(output, atom(sites, notices, now or datetime.now(UTC)))
    talk(f"{output}: {len(notices):,} notices")
    return 0


COMMANDS = (feed_command,)
