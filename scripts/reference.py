"""Write the reference pages of the documentation from the code, so that they cannot drift: make reference.

A test fails when a committed page differs from what this script would write.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click

from recollect import errors
from recollect.aggregator.http.openapi import description
from recollect.cli.main import COMMANDS, cli
from recollect.desk.settings import DeskSettings
from recollect.settings import Settings

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
_MADE = "<!-- Made by scripts/reference.py (make reference). Do not edit. -->\n\n"
_END = "\nThe terms are explained in the [glossary](../concepts.md#glossary).\n"


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    made = {"cli.md": _cli, "errors.md": _errors, "http.md": _http, "settings.md": _settings}
    return {name: _MADE + "".join(make()) + _END for name, make in made.items()}


def _cli() -> Iterator[str]:
    yield "# Commands\n\nExit codes: 0 done, 1 failed, 2 wrong usage (also a file that does not exist), 3 partial, 130 interrupted. Data goes to stdout, messages to stderr.\n\n"
    yield "| command | what it does |\n| --- | --- |\n"
    for name in sorted(COMMANDS):
        yield f"| [`{name}`](#recollect-{name}) | {COMMANDS[name][2]} |\n"
    context = click.Context(cli, info_name="recollect")
    for name in sorted(COMMANDS):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _command(command, f"recollect {name}", context)


def _command(command: click.Command, path: str, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=path.rsplit(" ", 1)[-1], parent=parent, max_content_width=100)
    context.terminal_width = 100
    text = command.get_help(context).replace("\b\n", "").rstrip()
    yield f"\n## {path}\n\n```text\n{text}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _command(inner, f"{path} {name}", context)


def _errors() -> Iterator[str]:
    yield "# Errors\n\nEvery error of the library descends from `recollect.RecollectError` and has `what`, `where`, `why` and `hint`.\n\n"
    yield "| error | kind of | exit code | meaning |\n| --- | --- | --- | --- |\n"
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.RecollectError):
            meaning = " ".join((inspect.getdoc(kind) or "").split())
            yield f"| `{name}` | `{kind.__bases__[0].__name__}` | {kind.exit_code} | {meaning} |\n"


def _settings() -> Iterator[str]:
    yield (
        "# Settings of the server\n\nEach can be set in a TOML file (`--config`, or `~/.config/recollect/config.toml`), in the "
        "environment, or by a flag of `recollect serve`; later ones win. Unknown names are errors. `recollect config show` says "
        "where each value came from.\n\nDurations are `500ms`, `10`, `10m`, `2h`, `1d`; sizes `64MB`, `1.5GB`.\n\n"
        "| setting | environment | flag | default | meaning |\n| --- | --- | --- | --- | --- |\n"
    )
    flags = _flags_of("serve")
    for one in fields(Settings):
        default = (
            "" if one.default in (None, "") else f"`{str(one.default).lower() if one.type == 'bool' else one.default}`"
        )
        variable = f"`RECOLLECT_{one.name.upper()}`"
        yield f"| `{one.name}` | {variable} | {flags.get(one.name, '')} | {default} | {one.metadata['help']} |\n"

    yield (
        "\n## Settings of the desk\n\nIn a TOML file (`--config`), in the environment, or by a flag of `recollect desk`.\n\n"
        "| setting | environment | flag | default | meaning |\n| --- | --- | --- | --- | --- |\n"
    )
    flags = _flags_of("desk")
    for one in fields(DeskSettings):
        default = "" if one.default in (None, "") else f"`{one.default}`"
        variable = f"`RECOLLECT_DESK_{one.name.upper()}`"
        yield f"| `{one.name}` | {variable} | {flags.get(one.name, '')} | {default} | {one.metadata['help']} |\n"


def _flags_of(command: str) -> dict[str, str]:
    serve = cli.get_command(click.Context(cli), command)
    assert serve is not None
    flags: dict[str, str] = {}
    for parameter in serve.params:
        names = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--")]
        words = ", ".join(f"`{name}`" for name in names)
        known = parameter.name if parameter.name != "no_cache" else "cache"
        flags[str(known)] = f"{flags[str(known)]}, {words}" if known in flags else words
    return flags


def _http() -> Iterator[str]:
    yield (
        "# HTTP interface\n\nThe same as OpenAPI 3.1: `GET /openapi.json` of a running server. Errors are JSON of one shape: "
        '`{"error": {"status", "kind", "message", "hint", ...}}`. `HEAD` works wherever `GET` does.\n\n'
        "| request | what it gives | status | type |\n| --- | --- | --- | --- |\n"
    )
    paths = description("")["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            status, good = next(iter(operation["responses"].items()))
            kind = "`, `".join(good["content"])
            yield f"| `{method.upper()} {path}` | {operation['summary']} | {status} | `{kind}` |\n"
    for path, operations in paths.items():
        for method, operation in operations.items():
            if operation["parameters"]:
                yield f"\n## {method.upper()} {path}\n\n{operation['summary']}.\n\n| parameter | in | meaning |\n| --- | --- | --- |\n"
                for one in operation["parameters"]:
                    yield f"| `{one['name']}` | {one['in']} | {one['description']} |\n"


def main() -> int:
    """Write the pages; with --check only report whether they are up to date."""
    stale = []
    for name, text in pages().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                FOLDER.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    sys.stderr.write(f"reference: {', '.join(stale) or 'nothing'} {'stale' if '--check' in sys.argv else 'written'}\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
