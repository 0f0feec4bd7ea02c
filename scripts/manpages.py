"""Write a manual page for each command, from the commands themselves: make man, then man -l build/man/recollect-keep.1."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from recollect import __version__
from recollect.cli.main import COMMANDS, cli

FOLDER = Path(__file__).parents[1] / "build" / "man"


def pages() -> dict[str, str]:
    """File name -> text: one page for the program, one for each command; inner commands are sections."""
    context = click.Context(cli, info_name="recollect")
    made = {"recollect.1": "".join(_program())}
    for name in sorted(COMMANDS):
        command = cli.get_command(context, name)
        assert command is not None
        made[f"recollect-{name}.1"] = "".join(_page(command, name, context))
    return made


def _program() -> Iterator[str]:
    yield _title("recollect")
    yield f".SH NAME\nrecollect \\- {_text(str(cli.help))}\n.SH SYNOPSIS\n.B recollect\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n"
    for name in sorted(COMMANDS):
        yield f".TP\n\\fBrecollect\\-{_text(name)}\\fR(1)\n{_line(COMMANDS[name][2])}"
    yield ".SH EXIT STATUS\n0 done, 1 failed, 2 usage (a file that is not there included), 3 partial, 130 interrupted.\n"


def _page(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    yield _title(f"recollect-{name}")
    yield f".SH NAME\nrecollect\\-{_text(name)} \\- {_text(COMMANDS[name][2])}\n"
    yield from _body(command, name, parent, "SH")


def _body(command: click.Command, name: str, parent: click.Context, section: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".{section} SYNOPSIS\n.B {_text(context.command_path)}\n{_line(usage)}"
    yield f".{section} DESCRIPTION\n{_paragraphs(command.help or '')}"
    rows = [row for parameter in command.get_params(context) if (row := parameter.get_help_record(context))]
    if rows:
        yield f".{section} OPTIONS\n" + "".join(f".TP\n.B {_text(flags)}\n{_line(words)}" for flags, words in rows)
    if isinstance(command, click.Group):
        for inner in sorted(command.list_commands(context)):
            found = command.get_command(context, inner)
            assert found is not None
            yield f".SH {_text(f'{name} {inner}').upper()}\n"
            yield from _body(found, inner, context, "SS")
    examples = (command.epilog or "").replace("\b\n", "")
    if examples:
        yield f".{section} EXAMPLES\n.nf\n{_lines(examples)}.fi\n"


def _title(name: str) -> str:
    return f'.TH "{name.upper()}" 1 "" "recollect {__version__}" "Recollect"\n'


def _paragraphs(text: str) -> str:
    parts = [part for part in re.split(r"\n\s*\n", text.replace("\b", "").strip()) if part.strip()]
    return "".join(f".PP\n{_line(' '.join(part.split()))}" for part in parts)


def _lines(text: str) -> str:
    return "".join(_line(line) for line in text.strip("\n").splitlines())


def _line(text: str) -> str:
    shown = _text(text)
    return ("\\&" if shown[:1] in (".", "'") else "") + shown + "\n"


def _text(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = pages()
    for name, text in found.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stderr.write(f"{len(found)} manual pages in {FOLDER}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
