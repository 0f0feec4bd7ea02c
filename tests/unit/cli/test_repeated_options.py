"""Options that are given twice add up, in every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from recollect.cli.main import cli, run

# Options of one value that look like lists: the columns of one table, in their order; files that are read once each.
ONE_VALUE = {"--columns", "--list", "--keys", "--terms", "--need"}
LIST = re.compile(r"\bIDS\b|\.\.\.|EXPR|[a-z]+,[a-z]+|one (?:query )?per line|Repeatable")


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(group, click.Group):
        yield path, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, (*path, name))


OPTIONS = [
    pytest.param(command, option, id=f"{' '.join(path)} {option.opts[0]}")
    for path, command in commands(cli)
    for option in command.params
    if isinstance(option, click.Option) and not option.is_flag and not option.count
]


def _values(option: click.Option, folder: Path) -> tuple[str, str]:
    kind = option.type
    if isinstance(kind, click.Choice):
        return str(kind.choices[0]), str(kind.choices[-1])
    if isinstance(kind, click.Path):
        return str(folder / "a"), str(folder / "b")
    usual = {"integer": ("1", "2"), "integer range": ("1", "2"), "date": ("2014", "2015"), "size": ("1kB", "2kB")}
    return usual.get(kind.name, ("aa", "bb"))


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_both_values_count(command: click.Command, option: click.Option, tmp_path: Path) -> None:
    listlike = LIST.search(f"{option.metavar or ''} {option.help or ''}") if option.type.name == "text" else None
    if not option.multiple:
        assert listlike is None or option.opts[0] in ONE_VALUE or option.metavar == "FORMAT", "make it repeatable"
        return
    for name in "ab":
        (tmp_path / name).touch()
    first, second = _values(option, tmp_path)
    context = click.Context(command)
    value, _ = option.handle_parse_result(context, {option.name: (first, second)} if option.nargs == 1 else {}, [])
    if option.nargs == 1 and option.expose_value:
        given = context.params[option.name or ""]
        assert all(text in str(given) for text in (first, second)) or len(given) == 2, (value, given)


def test_lists_and_expressions_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = tmp_path / "a.cdxj"
    lines = [
        f'com,example)/{n} 20{n}0101000000 {{"url": "http://example.com/{n}", "status": "200"}}' for n in (10, 12, 14)
    ]
    index.write_text("\n".join(lines) + "\n")
    target = tmp_path / "m.ukvs"
    assert (
        run(["profile", str(index), "-o", str(target), "--where", "year > 2010", "--where", "year < 2014 or 1 == 2"])
        == 0
    )
    assert [line.split()[0] for line in target.read_text().splitlines() if line[0] != "!"] == ["com,example)/12"]
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"http://example.com/{name}\n")
    capsys.readouterr()
    assert run(["lookup", str(target), "--from", str(tmp_path / "one"), "--from", str(tmp_path / "two"), "-q"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [
        "http://example.com/one",
        "http://example.com/two",
    ]


def test_excluded_keys_of_several_files_add_up(tmp_path: Path) -> None:
    from recollect.profiles.upkeep.exclusion import read_exclusions

    for name, line in (("a", "com,example)/a\n"), ("b", "com,example)/b/*\n")):
        (tmp_path / name).write_text(line)
    rules = read_exclusions(tmp_path / "a", tmp_path / "b")
    assert rules.excludes(b"com,example)/a") and rules.excludes(b"com,example)/b/c")
    (tmp_path / "a.cdxj").write_text(
        "".join(f'com,example)/{n} 20100101000000 {{"url": "http://example.com/{n}"}}\n' for n in ("a", "b", "c"))
    )
    arguments = ["keep", "--index", str(tmp_path / "a.cdxj"), "--to", str(tmp_path / "www"), "--max-bytes", "1MB"]
    arguments += ["--data", str(tmp_path / "data"), "--once", "-q"]
    arguments += ["--exclude-keys", str(tmp_path / "a"), "--exclude-keys", str(tmp_path / "b")]
    assert run(arguments) == 0
    text = (tmp_path / "www" / ".well-known" / "mementomap").read_text()
    assert "com,example)/c" in text and "com,example)/a" not in text and "com,example)/b" not in text
