"""`--input-format` and `--columns`: the format of files where it cannot be detected, and the detected one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import talk

if TYPE_CHECKING:
    from recollect.formats.forms import Asked
    from recollect.formats.logs import LookupReader
    from recollect.model import Problem

_COLUMNS = "Columns of a table of URLs, like time,url or url,count; - for columns to ignore.  [default: detected]"


def form_options(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--input-format and --columns, for a command that reads `what` (inputs, lookups)."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        formats = "list, log, table, tsv, csv, words (separated by spaces)" + (
            "" if what != "inputs" else ", cdx, cdxj, warc, ..."
        )
        command = click.option("--columns", default="", metavar="NAMES", help=_COLUMNS)(command)
        return click.option(
            "--input-format",
            "input_format",
            default="",
            metavar="FORMAT",
            help=f"What the {what} are: {formats}.  [default: detected]",
        )(command)

    return decorate


def asked_of(options: dict[str, Any]) -> Asked:
    """Take the two options out of a command's options."""
    from recollect.formats.forms import Asked

    return Asked.of(options.pop("input_format"), options.pop("columns"))


def lookups_of(paths: Sequence[str], asked: Asked, on_problem: Callable[[Problem], None] | None) -> LookupReader | None:
    """The lookups of --lookups; None if there is no such option."""
    from recollect.formats.logs import read_lookups

    return read_lookups(paths, on_problem, asked) if paths else None


def say_notes(notes: Sequence[str]) -> None:
    """The detected format of each log, and warnings about it (see `LookupReader.notes`)."""
    for note in notes:
        talk(note if note.startswith("warning") else f"lookups: {note}")
