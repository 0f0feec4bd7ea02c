"""Commands of the aggregator's operator: `serve`, `route`, `config`."""

from __future__ import annotations

import logging
import sys
from dataclasses import fields
from typing import Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, talk

_SERVE_EPILOG = """\b
Examples:
  recollect serve                                        the public archives, on http://127.0.0.1:1208/
  recollect serve --archives archives.json --maps maps/  ask only the archives that can answer
  recollect serve --port 0 --no-cache --no-learn         as MemGator: ask everybody, every time
  recollect serve --state /var/lib/recollect --workers 2 --access-log access.jsonl

\b
Every flag is also a setting: in a TOML file (--config) or in the environment (RECOLLECT_TOP_K=5);
`recollect config show` lists them all. SIGHUP reads archives and maps anew, SIGTERM ends.
"""


def settings_options(command: Any) -> Any:
    """The flags of `serve`, each a setting of the same name."""
    options = [
        click.option("--config", type=click.Path(dir_okay=False), help="File of settings (TOML)."),
        click.option("--archives", help="List of archives: MemGator's archives.json, or TOML."),
        click.option("--maps", help="Directory with one map or filter per archive, named by its id."),
        click.option("--host", help="Address to listen on.  [127.0.0.1]"),
        click.option("--port", type=int, help="Port to listen on, 0 for a free one.  [1208]"),
        click.option("--base-url", help="Our public address, behind a proxy."),
        click.option("--workers", type=int, help="Processes that serve.  [1]"),
        click.option("--deadline", "--timeout", "deadline", help="Time for a whole answer, like 10 or 500ms.  [30]"),
        click.option("--top-k", type=int, help="Ask at most so many archives, the most promising first."),
        click.option("--max-pages", "--budget", "max_pages", type=int, help="Requests per archive and lookup.  [100]"),
        click.option("--concurrency", type=int, help="Requests at a time to one archive.  [100]"),
        click.option("--cache", help="memory, none, a file, or redis://host:port/db.  [memory]"),
        click.option("--no-cache", is_flag=True, help="Ask the archives every time."),
        click.option("--learn/--no-learn", default=None, help="Learn which archives without a map hold what."),
        click.option("--state", help="Directory where cache and learned model survive a restart."),
        click.option("--access-log", help="File for the access log (JSON lines), - for standard output."),
        click.option("--monitor/--no-monitor", default=None, help="Serve /monitor, events of every lookup."),
        click.option("--admin-token", help="Token of the operator; without one it is made up and printed."),
        click.option("--admin-port", type=int, help="A port of its own for the operator, on loopback."),
        click.option("--contact", help="Mail or web address that archives can reach you by."),
        click.option("--refresh", help="Look so often for changed archives and maps, like 10m."),
        click.option("--publish", help="Directory made by `recollect publish`, served at /.well-known/mementomap."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _flags(given: dict[str, Any]) -> dict[str, Any]:
    if given.pop("no_cache", False):
        given["cache"] = "none"
    return given


@click.command("serve", epilog=_SERVE_EPILOG)
@settings_options
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr.")
def serve(config: str | None, verbose: bool, **given: Any) -> int:
    """Serve Memento for all archives, asking only those that can answer."""
    from recollect.config import load_settings
    from recollect.web.serve import serve as run

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    settings = load_settings(_flags(given), config=config).settings

    def on_ready(address: str, token: str) -> None:
        talk(f"Recollect listens on {address}/")
        if not settings.admin_token:
            talk(f"The operator's token (for /metrics, /reload) is {token}")
        if not sys.stdout.isatty():
            # For the program that started us.
            click.echo(f"{address}/")

    return run(settings, on_ready)


@click.group("config")
def config() -> None:
    """Show the settings of the server and where each comes from."""


@config.command("show")
@click.option("--config", "file", type=click.Path(dir_okay=False), help="File of settings (TOML).")
@json_option
def show(file: str | None, as_json: bool) -> None:
    """Every setting, its value, and where the value came from."""
    from recollect.config import Settings, load_settings

    loaded = load_settings(config=file)
    rows = []
    for one in fields(Settings):
        value = getattr(loaded.settings, one.name)
        shown = "(set)" if one.metadata["secret"] and value else value
        rows.append((one.name, shown, loaded.sources[one.name], one.metadata["help"]))
    if as_json:
        emit_json({name: {"value": value, "from": source} for name, value, source, _ in rows})
        return
    emit_table(
        ("setting", "value", "from", "meaning"),
        [(name, "" if value is None else value, source, meaning) for name, value, source, meaning in rows],
    )
