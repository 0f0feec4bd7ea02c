"""One voice: help, pages, source, tests and scripts use no word that the glossary (docs/concepts.md) lists as "not"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from recollect.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "concepts.md"
PAGES = sorted(
    page for page in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md") if page != GLOSSARY
)
PACKAGE = ROOT / "src" / "recollect"
SOURCES = sorted(
    path for suffix in ("py", "pyi", "pyx", "pxd", "html", "js", "css", "toml") for path in PACKAGE.rglob(f"*.{suffix}")
)
OTHERS = sorted(
    path
    for folder in ("tests", "bench", "scripts", "experiments", "deploy")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".sh", ".conf", ".service", ".yaml"} and path != Path(__file__)
)
# Words that are data of tests: names of users and archives, sentences of pages.
DATA = re.compile(r"""["'](?:User )?nobody\b|somebody else's trade|one case that nobody expected""")
# After "is no": not a comparison (no longer, no deeper than).
_NO_NOUN = r"(?!longer|more|less|other|one\b|\w+er than)[a-z]"


def forbidden() -> dict[str, re.Pattern[str]]:
    """Every word of a column "not" -> what finds it, over line breaks and comment signs too."""
    patterns = {}
    column = -1
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if "not" in cells:
            column = cells.index("not")
        elif cells and column >= 0:
            for word in re.findall(r"`([^`]+)`", cells[column]):
                patterns[word] = _pattern(word)
        else:
            column = -1 if not cells else column
    return patterns


def _pattern(phrase: str) -> re.Pattern[str]:
    gap = r"\s+(?:#:?\s+)?"
    body = gap.join(_NO_NOUN if word == "<noun>" else re.escape(word) for word in phrase.split())
    before = r"(?<!there )(?<![\w'])" if "<noun>" in phrase else r"(?<![\w'-])"
    return re.compile(before + body + (r"" if phrase.endswith((">", "?")) else r"(?![\w-])"), re.IGNORECASE)


PATTERNS = forbidden()


def faults(text: str) -> Iterator[str]:
    text = re.sub(r"^\| before \|.*?\n\n", "", text, flags=re.DOTALL | re.MULTILINE)  # examples of how not to write
    for phrase, pattern in PATTERNS.items():
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"line {line}: {phrase!r} in {text[max(0, found.start() - 30) : found.end() + 30]!r}"


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_glossary_lists_words_and_the_search_finds_them() -> None:
    assert {"nobody", "so many", "is no <noun>", "which site?"} <= PATTERNS.keys()
    assert list(faults("That is no\n    # map, and so\nmany know it.")) != []
    assert len(list(faults("Nobody asks; where to?"))) == 2
    assert list(faults("There is no map, there are no keys, it is no longer than that.")) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_uses_the_words_of_the_glossary(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    wrong = list(faults(COMMANDS[name][2]))
    for one in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
        helps = [parameter.help for parameter in one.params if isinstance(parameter, click.Option)]
        wrong += [fault for text in (one.help, one.short_help, one.epilog, *helps) for fault in faults(text or "")]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pages_use_the_words_of_the_glossary(page: Path) -> None:
    assert list(faults(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0] for path in SOURCES}))
def test_source_uses_the_words_of_the_glossary(room: str) -> None:
    """Messages, pages, docstrings and comments."""
    files = [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] == room]
    assert [f"{_name(path)}, {fault}" for path in files for fault in faults(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("folder", sorted({path.relative_to(ROOT).parts[0] for path in OTHERS}))
def test_tests_and_scripts_use_the_words_of_the_glossary(folder: str) -> None:
    files = [path for path in OTHERS if path.relative_to(ROOT).parts[0] == folder]
    texts = {path: DATA.sub("", path.read_text(encoding="utf-8")) for path in files}
    assert [f"{_name(path)}, {fault}" for path, text in texts.items() for fault in faults(text)] == []


def test_every_page_links_the_glossary() -> None:
    assert [
        _name(page)
        for page in PAGES
        if not re.search(r"\]\((?:docs/|\.\./)?concepts\.md[)#]", page.read_text(encoding="utf-8"))
    ] == []
