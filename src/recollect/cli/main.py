"""The command `recollect`: a table of commands, each imported when it is called.

Hides: lazy loading (so `recollect --help` imports neither NumPy nor DuckDB) and the one place where errors
become words and exit codes.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from difflib import get_close_matches
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
    "archives": ("recollect.cli.archives", "archives", "show the archives that are asked, and whether they answer"),
    "compact": ("recollect.cli.compact", "compact", "make a map smaller; nothing held is missed"),
    "completion": ("recollect.cli.completion", "completion", "print a script that completes commands in your shell"),
    "config": ("recollect.cli.serve", "config", "show the server's settings and where each comes from"),
    "desk": ("recollect.cli.desk", "desk", "run a recovery service: a form, a queue, mails, workers"),
    "diff": ("recollect.cli.maps", "diff", "what changed between two maps"),
    "discover": ("recollect.cli.discover", "discover", "find and install the maps that archives publish"),
    "doctor": ("recollect.cli.doctor", "doctor", "check settings, folders, port, archives, maps, disk and clock"),
    "evaluate": ("recollect.cli.evaluate", "evaluate", "how well maps answer the lookups people make"),
    "filter": (
        "recollect.cli.derived",
        "filter_command",
        "a profile of hashed keys instead of URLs",
    ),
    "inspect": ("recollect.cli.inspect", "inspect", "show what files are taken for, without doing anything"),
    "jobs": ("recollect.cli.jobs", "jobs", "submit, watch and fetch recoveries of a desk; manage its queue"),
    "keep": ("recollect.cli.keep", "keep", "keep an archive's published map current, from its index files"),
    "lookup": ("recollect.cli.lookup", "lookup", "what maps say of URIs, and which archives to ask"),
    "measure": ("recollect.cli.measure", "measure", "how much of a lost website came back"),
    "memento": ("recollect.cli.memento", "memento", "find the capture of a page closest to a date, or get it"),
    "merge": ("recollect.cli.maps", "merge", "make one map of several"),
    "overlap": ("recollect.cli.stats", "overlap", "what is archived against what is asked for"),
    "preview": ("recollect.cli.recovered", "preview", "look at a recovered website under its own addresses"),
    "profile": ("recollect.cli.profile", "profile", "say what an archive holds: its indexes to a map"),
    "protect": ("recollect.cli.protect", "protect", "carry a server's files in its pages, before the site is lost"),
    "publish": ("recollect.cli.publish", "publish", "write a map as static files for any web server"),
    "reclaim": ("recollect.cli.reclaim", "reclaim", "get protected files back from pages and archives"),
    "recover": ("recollect.cli.recover", "recover", "get a lost website back from the archives"),
    "replay": ("recollect.cli.serve", "replay", "what each way of routing would have cost and found for a log"),
    "report": ("recollect.cli.report", "report", "an archive's holdings on one page, with figures"),
    "review": ("recollect.cli.recovered", "review", "take or drop the doubtful pages of a recovered website"),
    "route": ("recollect.cli.serve", "route", "explain which archives a lookup would ask"),
    "sample": ("recollect.cli.sample", "sample", "profile an archive from outside, by asking about samples"),
    "serve": ("recollect.cli.serve", "serve", "Memento for all archives, asking only those that can answer"),
    "stats": ("recollect.cli.stats", "stats", "describe an archive: the papers' tables from your own indexes"),
    "surt": ("recollect.cli.keys", "surt_command", "the sort-friendly keys of URIs"),
    "survey": ("recollect.cli.recover", "survey", "show what archives hold of a lost website"),
    "timegate": ("recollect.cli.memento", "timegate", "find the memento closest to a datetime"),
    "timemap": ("recollect.cli.memento", "timemap", "list the mementos of a page in all archives"),
    "tradeoff": ("recollect.cli.tradeoff", "tradeoff", "picture cost against accuracy for every size of a map"),
    "validate": ("recollect.cli.maps", "validate", "name every fault of a map"),
    "verify": ("recollect.cli.profile", "verify", "prove that a map holds everything in the indexes"),
    "voids": ("recollect.cli.derived", "voids", "state what is asked for and not held, so that nobody asks"),
    "watch": ("recollect.cli.watch", "watch", "notice when a live site is in danger or lost"),
    "worker": ("recollect.cli.desk", "worker", "recover sites for a desk, on this machine"),
}

EPILOG = """\b
Examples:
  recollect profile *.cdxj.gz -o map.ukvs           say what an archive holds
  recollect compact map.ukvs --max-cost 1% -o small.ukvs
  recollect serve --archives archives.json --maps maps/
  recollect recover http://lost.example/ -o site/   get a lost site back
"""


class ReaderGone(Exception):
    """Whoever read our output has stopped, as `head` does. click would make it a failure; it is none."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a failure can still be told
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
    """Know which web archive holds what, ask only those that can answer, get lost websites back."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 usage, 3 partial, 130 interrupted."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A character that the terminal's encoding lacks is shown as an escape; it must not end the program.
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is not None and sys.stderr.isatty():
        kernels = logging.getLogger("recollect.kernels")
        kernels.setLevel(logging.INFO)
        kernels.addHandler(_FirstRun())
    # Told to end (kill, a batch system's limit), we clean up as at Ctrl-C; the server has a handler of its own.
    signal.signal(signal.SIGTERM, _ended)
    sys.exit(run(args))


class _FirstRun(logging.Handler):
    """Says why the first run on a machine seems to do nothing for some seconds."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo("compiling for this machine: some seconds, on the first run only", err=True)


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
        _complain("interrupted", "nothing half-written was left behind")
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
        _complain("out of memory", "give it a smaller part of the input, or run it on a bigger machine")
        return 1
    except Exception as error:
        traceback.print_exc()
        _complain(f"unexpected {type(error).__name__}", "this is a fault in recollect: please report the lines above")
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
        hint = "check who may read and write there (ls -l)"
    elif error.errno == 28:  # ENOSPC
        hint = "free some space, or write elsewhere"
    return f"{_FAILURES.get(type(error), 'cannot go on')}: {place}{reason}", hint


_FAILURES: dict[type[OSError], str] = {
    IsADirectoryError: "cannot open",
    NotADirectoryError: "cannot open",
    PermissionError: "not allowed",
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
