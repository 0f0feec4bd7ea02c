"""`recollect publish`: a map as static files for any web server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.errors import UsageError
from recollect.quantities import counted, format_size

EPILOG = """\b
Examples:
  recollect publish small.ukvs --to /var/www/archive/
  recollect publish small.ukvs --to public/ --base-url https://archive.example/
  recollect publish maps/ --directory --to public/ --archives archives.toml     a page over the maps of several archives

\b
Then send the Link header in mementomap/link.txt with every response of the site, for example
  nginx:   add_header Link '</.well-known/mementomap>; rel="mementomap"';  gzip_static on;
  Apache:  Header add Link '</.well-known/mementomap>; rel="mementomap"'
mementomap/index.html is a page that looks addresses up in the map, in the reader's browser.
"""


@click.command(epilog=EPILOG)
@click.argument("map_path", metavar="MAP", type=click.Path(exists=True))
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="The web root to write into.")
@click.option("--base-url", "base_uri", default="", help="Public address of the web root, for an absolute Link header.")
@click.option("--page-keys", default=1_000_000, show_default=True, type=click.IntRange(min=1), help="Keys per page.")
@click.option("--collection", default="", metavar="NAME", help="One of several maps of the host: that of a collection.")
@click.option("--id", "identity", default="", metavar="URI", help="With --collection: its address, if MAP has no !id.")
@click.option("--directory", is_flag=True, help="MAP is a folder of maps named by archive: one page over all of them.")
@click.option("--archives", metavar="FILE", help="With --directory: list of archives, for names and links to captures.")
@json_option
def publish(
    map_path: str,
    folder: str,
    base_uri: str,
    page_keys: int,
    collection: str,
    identity: str,
    directory: bool,
    archives: str | None,
    as_json: bool,
) -> int:
    """Write MAP as static files for any web server: well-known file, gzip and zstd, pages, index.

    A host with several collections publishes one map for each (--collection); the well-known file lists them.
    """
    from recollect.datetimes import format_iso
    from recollect.formats.mapfiles import expect_map
    from recollect.maps.collections import publish_collection
    from recollect.maps.publish import publish as write

    if directory:
        return _publish_directory(map_path, folder, archives, as_json)
    if archives:
        raise UsageError("--archives is for --directory", hint="leave one out, or add the other")
    expect_map(map_path)
    if identity and not collection:
        raise UsageError("--id is for --collection", hint="a map's own !id comes from `recollect profile --id`")
    now = format_iso(datetime.now(UTC))
    with progress_bar() as progress:
        if collection:
            done = publish_collection(
                map_path, Path(folder), collection, updated_at=now, base_uri=base_uri, identity=identity
            )
        else:
            done = write(
                map_path, Path(folder), updated_at=now, base_uri=base_uri, page_keys=page_keys, progress=progress
            )
    if not done.index["keys"]:
        talk("warning: the map is empty: aggregators will not ask this archive")
    if as_json:
        emit_json(done.index)
        return 0
    rows = [(entry["path"], format_size(entry["bytes"])) for entry in done.index["files"]]
    emit_table(["file", "size"], rows, right=[1], title=f"{counted(done.index['keys'], 'key')} published in {folder}")
    talk(f"send this header with every response:  Link: {done.link}")
    return 0


def _publish_directory(source: str, folder: str, registry: str | None, as_json: bool) -> int:
    """A page over the maps of a folder, each named by the id of its archive."""
    from recollect.archives.registry import load_archives
    from recollect.maps.directory import publish_directory

    known = {archive.id: archive for archive in load_archives(registry)} if registry else {}
    found = publish_directory(
        Path(source),
        Path(folder),
        names={name: archive.name for name, archive in known.items()},
        replays={name: archive.timegate for name, archive in known.items()},
    )
    if as_json:
        emit_json({"maps": [{"href": one.href, "name": one.name, "keys": one.keys} for one in found]})
        return 0
    rows = [(one.name, f"{one.keys:,}", one.href) for one in found]
    emit_table(["archive", "keys", "file"], rows, right=[1], title=f"{counted(len(found), 'map')} in {folder}")
    return 0
