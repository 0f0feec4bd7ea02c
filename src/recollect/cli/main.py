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
    "timemap": ("recollect.aggregator.cli.memento", "timemap", "list the mementos of a page in all archives"),
    "tradeoff": ("recollect.cli.tradeoff", "tradeoff", "plot accuracy against cost for many sizes of a map"),
    "validate": ("recollect.cli.maps", "validate", "report every error in a map"),
    "verify": ("recollect.cli.profile", "verify", "check that a map holds everything in the indexes"),
    "voids": ("recollect.cli.derived", "voids", "publish known-absent URLs from a request log"),
    "watch": ("recollect.watch.cli.commands", "watch", "watch live sites, and report when one is in danger or lost"),
}

# The commands by the job they do, in the order in which help lists them.
JOBS: dict[str, tuple[str, ...]] = {
    "Maps": (
        "profile", "compact", "lookup", "merge", "convert", "diff", "publish", "discover", "keep", "sample", "filter",
        "voids", "validate", "verify",
    ),
    "Statistics": ("stats", "report", "overlap", "evaluate", "tradeoff", "freshness"),
    "Aggregator": ("serve", "timemap", "memento", "route", "replay", "archives", "doctor", "config"),
    "Recovery": ("survey", "recover", "review", "preview", "measure"),
    "Desk": ("desk",),
    "Prevention": ("watch", "protect"),
    "Tools": ("surt", "inspect", "completion"),
}  # fmt: skip

# Old name -> (module, attribute, the new command). Old names are accepted, with a note, until the next version.
MOVED: dict[str, tuple[str, str, str]] = {
    "jobs": ("recollect.desk.cli.jobs", "jobs", "desk jobs"),
    "reclaim": ("recollect.protection.cli.reclaim", "reclaim", "protect reclaim"),
    "timegate": ("recollect.aggregator.cli.memento", "memento", "memento"),
    "worker": ("recollect.desk.cli.commands", "worker", "desk worker"),
}

_DATES = {"--from": "--since", "--to": "--until"}
_CHOICE = {"--ask": "--use"}
_INPUT = {"--format": "--input-format"}
_PUBLIC_ADDRESS = {"--base-uri": "--base-url"}
# Command -> old option -> the option of today. Accepted, with a note, until the next version.
RENAMED: dict[str, dict[str, str]] = {
    "compact": _INPUT,
    "desk jobs submit": {**_DATES, "--archives": "--use"},
    "evaluate": _INPUT,
    "inspect": _INPUT,
    "jobs submit": {**_DATES, "--archives": "--use"},
    "keep": _PUBLIC_ADDRESS,
    "memento": {**_CHOICE, "--base": "--base-url"},
    "overlap": {**_INPUT, "--accesses": "--lookups"},
    "profile": {**_DATES, **_INPUT},
    "publish": _PUBLIC_ADDRESS,
    "recover": _DATES,
    "replay": _CHOICE,
    "report": {**_INPUT, "--accesses": "--lookups"},
    "stats": {**_DATES, **_INPUT},
    "survey": _DATES,
    "timegate": {**_CHOICE, "--base": "--base-url"},
    "timemap": {**_DATES, **_CHOICE, "--base": "--base-url"},
    "tradeoff": _INPUT,
    "voids": _INPUT,
}

# Shown by `recollect` alone: the most used commands, by job.
FIRST = """Recollect finds out which web archive holds what, and gets lost websites back.

  recollect recover http://lost.example/ -o site/      get a lost website back
  recollect timemap http://example.com/                list the captures of a page in all archives
  recollect profile *.cdxj.gz -o map.ukvs              make a map of what an archive holds
  recollect serve --archives archives.json             run an aggregator
  recollect watch check http://site.example/           see what would come back if a site were lost today

All commands: recollect --help. One command, with examples: recollect recover --help"""

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
        entry = COMMANDS.get(cmd_name) or MOVED.get(cmd_name)
        if entry is None:
            return None
        module, attribute, _ = entry
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in MOVED:
            click.echo(f"note: recollect {name} is now recollect {MOVED[name][2]}", err=True)
        elif name not in COMMANDS and not name.startswith("-"):
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
        for job, names in JOBS.items():
            with formatter.section(job):
                formatter.write_dl([(name, COMMANDS[name][2]) for name in names])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="recollect")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Find out which web archive holds what, and get lost websites back."""
    if ctx.invoked_subcommand is None:
        click.echo(FIRST, err=True)
        ctx.exit(2)


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
        given = _with_new_options(list(sys.argv[1:] if args is None else args))
        result: Any = cli.main(args=given, prog_name="recollect", standalone_mode=False)
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


def _with_new_options(args: list[str]) -> list[str]:
    """The arguments with today's names for old options, each named in a note."""
    words = next((count for count, word in enumerate(args) if word.startswith("-")), len(args))
    renamed = next((RENAMED[name] for n in range(words, 0, -1) if (name := " ".join(args[:n])) in RENAMED), {})
    end = args.index("--") if "--" in args else len(args)
    for place in range(end):
        option, is_joined, value = args[place].partition("=")
        if option in renamed:
            click.echo(f"note: {option} is now {renamed[option]}", err=True)
            args[place] = renamed[option] + is_joined + value
    return args


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
