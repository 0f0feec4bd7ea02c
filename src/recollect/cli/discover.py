"""`recollect discover`: find, fetch and install the maps that archives publish."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from recollect.cli.console import emit_json, emit_table, json_option
from recollect.cli.types import SIZE, contact_option
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.archives.discovery import Discovery, Limits
    from recollect.archives.registry import Archive

EPILOG = """\b
Examples:
  recollect discover https://archive.example/ --maps maps/
  recollect discover ia arquivo --archives archives.toml --maps maps/
  recollect discover --archives archives.toml --maps maps/     all archives of the list

\b
The command searches the Link header and the HTML of the archive's pages (rel="mementomap"), then
/.well-known/mementomap. It downloads a map only if it has changed, checks every line, and installs it as
MAPS/<id>.ukvs.zst, where `recollect serve --maps MAPS` finds it. A map is installed only for the archive that its !id
names and whose addresses are below it: of two collections on one host, each gets its own map.
"""


@click.command(epilog=EPILOG)
@click.argument("archives", nargs=-1, metavar="[ARCHIVE]...")
@click.option(
    "--archives", "registry", type=click.Path(exists=True, dir_okay=False), help="List of archives to take ids from."
)
@contact_option
@click.option(
    "--maps", "folder", default="maps", show_default=True, type=click.Path(file_okay=False), help="Folder for the maps."
)
@click.option("--max-bytes", default="10GB", show_default=True, type=SIZE, metavar="SIZE", help="Largest download.")
@click.option("--any-id", is_flag=True, help="Accept a map even if it names another archive.")
@json_option
def discover(
    archives: tuple[str, ...], registry: str | None, folder: str, max_bytes: int, any_id: bool, as_json: bool
) -> int:
    """Find the maps that ARCHIVEs (addresses, or ids from --archives) publish, and install them."""
    from recollect.archives.discovery import Limits

    chosen = _chosen(archives, registry)
    Path(folder).mkdir(parents=True, exist_ok=True)
    known = _known(registry, chosen)
    found = asyncio.run(_discover(chosen, Path(folder), Limits(max_bytes=max_bytes), any_id, known))
    if as_json:
        emit_json([asdict(one) for one in found])
    else:
        rows = [(d.archive, d.outcome, f"{d.keys:,}" if d.keys else "", d.url or d.reason) for d in found]
        emit_table(["archive", "outcome", "keys", "where, or why not"], rows, right=[2])
    failed = sum(1 for one in found if one.outcome == "failed")
    return 0 if not failed else 1 if failed == len(found) else 3


async def _discover(
    archives: list[Archive], folder: Path, limits: Limits, any_id: bool, known: list[Archive]
) -> list[Discovery]:
    from recollect.archives.discovery import discover as find
    from recollect.archives.opening import ClientOptions, open_client

    async with open_client(ClientOptions(timeout=24 * 3600)) as client:
        jobs = (find(client, archive, folder, limits=limits, any_id=any_id, known=known) for archive in archives)
        return list(await asyncio.gather(*jobs))


def _known(registry: str | None, chosen: list[Archive]) -> list[Archive]:
    """All archives that a map could be of."""
    from recollect.archives.registry import load_archives

    return [*chosen, *(load_archives(registry) if registry else ())]


def _chosen(names: tuple[str, ...], registry: str | None) -> list[Archive]:
    from recollect.archives.registry import Archive, load_archives

    known = {archive.id: archive for archive in load_archives(registry)} if registry or not names else {}
    if not names:
        return [archive for archive in known.values() if not archive.ignore]
    chosen = []
    for name in names:
        if name.startswith(("http://", "https://")):
            host = urlsplit(name).netloc.replace(":", "_")
            chosen.append(Archive(id=host, name=name, timegate=name))
        else:
            known = known or {archive.id: archive for archive in load_archives(None)}
            if name not in known:
                raise UsageError("no such archive", where=name, hint="recollect archives list")
            chosen.append(known[name])
    return chosen
