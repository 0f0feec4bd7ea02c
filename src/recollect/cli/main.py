"""The command `recollect`: a table of commands, each imported when it is called.

Hides: lazy loading (so `recollect --help` imports neither NumPy nor DuckDB) and the one place where errors
become words and exit codes.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, NoReturn

import click

from recollect import __version__
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from types import FrameType

    from click.shell_completion import CompletionItem

# Command -> (module, attribute, what it does). Help is kept here so that listing imports nothing.
COMMANDS: dict[str, tuple[str, str, str]] = {
    # one line per command, in the order of the alphabet
    "archives": ("recollect.aggregator.cli.archives", "archives", "list archives, and check whether they answer"),
    "compact": ("recollect.cli.compact", "compact", "make a map smaller without false negatives"),
    "completion": ("recollect.cli.completion", "completion", "print a completion script for your shell"),
    "config": ("recollect.aggregator.cli.serve", "config", "show the server's settings and the source of each value"),
    "convert": ("recollect.cli.convert", "convert", "convert a map to another policy of keys"),
    "desk": ("recollect.desk.cli.commands", "desk", "run a recovery service: a form, a queue, mails, workers"),
    "diff": ("recollect.cli.maps", "diff", "show what changed between two maps"),
    "discover": ("recollect.cli.discover", "discover", "find and install the maps that archives publish"),
    "doctor": (
        "recollect.aggregator.cli.doctor",
        "doctor",
        "check settings, folders, port, archives, maps, disk and clock",
    ),
    "evaluate": ("recollect.cli.evaluate", "evaluate", "measure how correctly maps answer lookups"),
    "filter": (
        "recollect.cli.derived",
        "filter_command",
        "publish hashes of keys instead of URLs",
    ),
    "freshness": ("recollect.cli.freshness", "freshness", "measure how the recall of a map falls with its age"),
    "inspect": ("recollect.cli.inspect", "inspect", "show the detected format of files, without writing anything"),
    "jobs": ("recollect.desk.cli.jobs", "jobs", "submit, follow and download recoveries of a desk; manage its queue"),
    "keep": ("recollect.cli.keep", "keep", "keep an archive's published map current, from its index files"),
    "lookup": ("recollect.cli.lookup", "lookup", "look up URIs in maps, and show which archives to ask"),
    "measure": ("recollect.recovery.cli.measure", "measure", "measure how much of a lost website was recovered"),
    "memento": (
        "recollect.aggregator.cli.memento",
        "memento",
        "find or download the capture of a page closest to a date",
    ),
    "merge": ("recollect.cli.maps", "merge", "merge several maps into one"),
    "overlap": ("recollect.cli.stats", "overlap", "compare what is archived with what is requested"),
    "preview": (
        "recollect.recovery.cli.preview",
        "preview",
        "serve a recovered website on this machine, to look at it",
    ),
    "profile": ("recollect.cli.profile", "profile", "make a map of what an archive holds from its indexes"),
    "protect": (
        "recollect.protection.cli.protect",
        "protect",
        "put a server's files into its pages, before the site is lost",
    ),
    "publish": ("recollect.cli.publish", "publish", "write a map as static files for any web server"),
    "reclaim": ("recollect.protection.cli.reclaim", "reclaim", "restore protected files from pages and archives"),
    "recover": ("recollect.recovery.cli.recover", "recover", "get a lost website back from the archives"),
    "replay": ("recollect.aggregator.cli.serve", "replay", "simulate routing over a log: requests, recall and latency"),
    "report": ("recollect.cli.report", "report", "write a page about an archive's holdings, with charts"),
    "review": (
        "recollect.recovery.cli.review",
        "review",
        "accept or reject the doubtful pages of a recovered website",
    ),
    "route": ("recollect.aggregator.cli.serve", "route", "explain which archives a lookup asks, and why"),
    "sample": ("recollect.sampling.cli", "sample", "make a map of an archive from samples, without its index"),
    "serve": ("recollect.aggregator.cli.serve", "serve", "run the Memento aggregator server"),
    "stats": ("recollect.cli.stats", "stats", "show statistics of an archive from its indexes"),
    "surt": ("recollect.cli.keys", "surt_command", "print the SURTs or keys of URIs"),
    "survey": ("recollect.recovery.cli.recover", "survey", "show what archives hold of a lost website"),
    "timegate": ("recollect.aggregator.cli.memento", "timegate", "find the memento closest to a datetime"),
    "timemap": ("recollect.aggregator.cli.memento", "timemap", "list the mementos of a page in all archives"),
    "tradeoff": ("recollect.cli.tradeoff", "tradeoff", "plot accuracy against cost for many sizes of a map"),
    "validate": ("recollect.cli.maps", "validate", "report every error in a map"),
    "verify": ("recollect.cli.profile", "verify", "check that a map holds everything in the indexes"),
    "voids": ("recollect.cli.derived", "voids", "publish known-absent URLs from a request log"),
    "watch": ("recollect.watch.cli.commands", "watch", "watch live sites, and report when one is in danger or lost"),
    "worker": ("recollect.desk.cli.commands", "worker", "run recoveries for a desk on this machine"),
}

EPILOG = """\b
Examples:
  recollect profile *.cdxj.gz -o map.ukvs           say what an archive holds
  recollect compact map.ukvs --max-cost 1% -o small.ukvs
  recollect serve --archives archives.json --maps maps/
  recollect recover http://lost.example/ -o site/   get a lost site back
"""


class ReaderGone(Exception):
    """The reader of stdout has stopped, as `head` does. click would report a failure; it is not one."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a failure can still be reported
            return result
        except BrokenPipeError as error:
            raise ReaderGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # click's own way would import every command to show its help.
        found = [
            CompletionItem(name, help=COMMANDS[name][2]) for name in sorted(COMMANDS) if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

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
    """Find out which web archive holds what, and get lost websites back."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 usage, 3 partial, 130 interrupted."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A character that the terminal's encoding lacks is shown as an escape; it must not end the program.
        sys.stdout.reconfigure(errors="backslashreplace")
    # SIGTERM (kill, a batch system's limit) cleans up as Ctrl-C does; the server has a handler of its own.
    signal.signal(signal.SIGTERM, _ended)
    sys.exit(run(args))


def _ended(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def run(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # NumPy's linear algebra, which is hardly used, would start its threads and let them spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
        _abandon_stdout()
        _complain("interrupted", "no incomplete output was left")
        return 130
    except ReaderGone:
        _abandon_stdout()
        return 0
    except OSError as error:
        _abandon_stdout()
        _complain(*_words_for(error))
        # A name on the command line that means nothing.
        return 2 if isinstance(error, FileNotFoundError) else 1
    except MemoryError:
        _complain("out of memory", "use a smaller input, or a machine with more memory")
        return 1
    except Exception as error:
        import traceback

        traceback.print_exc()
        _complain(f"unexpected {type(error).__name__}", "this is a bug in recollect: please report the lines above")
        return 1
    return result if isinstance(result, int) else 0


def _words_for(error: OSError) -> tuple[str, str]:
    """Message and hint for what the system refused."""
    place = f"{error.filename}: " if error.filename else ""
    reason = error.strerror or str(error)
    hint = ""
    if isinstance(error, FileNotFoundError):
        return f"no such file: {error.filename or reason}", "check the spelling, or use - for standard input"
    if isinstance(error, PermissionError):
        hint = "check the permissions (ls -l)"
    elif error.errno == 28:  # ENOSPC
        hint = "free some space, or write elsewhere"
    return f"{_FAILURES.get(type(error), 'cannot continue')}: {place}{reason}", hint


_FAILURES: dict[type[OSError], str] = {
    IsADirectoryError: "cannot open",
    NotADirectoryError: "cannot open",
    PermissionError: "permission denied",
}


def _abandon_stdout() -> None:
    """Leave nothing for the interpreter to flush at its end, where it would fail once more and change the exit code."""
    with suppress(OSError, ValueError, AttributeError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


def _complain(message: str, hint: str) -> None:
    click.echo(f"recollect: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
