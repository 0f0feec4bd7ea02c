"""The command `recollect`: a table of commands, each imported when it is called.

Hides: lazy loading (so `recollect --help` imports neither NumPy nor DuckDB) and the one place where errors
become words and exit codes.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from recollect import __version__
from recollect.errors import RecollectError

# Command -> (module, attribute, what it does). Help is kept here so that listing imports nothing.
COMMANDS: dict[str, tuple[str, str, str]] = {
    # one line per command, in the order of the alphabet
    "archives": ("recollect.cli.archives", "archives", "show the archives that are asked, and whether they answer"),
    "discover": ("recollect.cli.discover", "discover", "find and install the maps that archives publish"),
    "measure": ("recollect.cli.measure", "measure", "how much of a lost website came back"),
    "publish": ("recollect.cli.publish", "publish", "write a map as static files for any web server"),
    "validate": ("recollect.cli.maps", "validate", "name every fault of a map"),
}

EPILOG = """\b
Examples:
  recollect profile *.cdxj.gz -o map.ukvs           say what an archive holds
  recollect compact map.ukvs --max-cost 1% -o small.ukvs
  recollect serve --archives archives.json --maps maps/
  recollect recover http://lost.example/ -o site/   get a lost site back
"""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="recollect")
def cli() -> None:
    """Know which web archive holds what, ask only those that can answer, get lost websites back."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 usage, 3 partial, 130 interrupted."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        result: Any = cli.main(args=args, prog_name="recollect", standalone_mode=False)
    except RecollectError as error:
        _complain(str(error), error.hint)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted", "nothing half-written was left behind")
        return 130
    except BrokenPipeError:
        # The reader of our output went away (as `head` does); that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        _complain(f"{type(error).__name__}{place}: {error.strerror or error}", "")
        return 1
    return result if isinstance(result, int) else 0


def _complain(message: str, hint: str) -> None:
    click.echo(f"recollect: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
