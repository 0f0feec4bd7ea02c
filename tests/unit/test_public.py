"""`import recollect`: cheap, and every public name is there."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import recollect
from recollect.blocking import blocking


@pytest.mark.parametrize("name", recollect.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(recollect, name) is not None
    assert name in dir(recollect)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        recollect.nonsense  # noqa: B018 - looking it up is the test


def test_importing_loads_no_room() -> None:
    code = "import sys, recollect; print(*[name for name in sys.modules if name.startswith('recollect')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["recollect"]


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    tree = ast.parse(Path(recollect.__file__).read_text(encoding="utf-8"))
    imported = {
        alias.asname: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == recollect._PUBLIC


def test_a_type_checker_sees_types_and_misspelt_names(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import recollect\n"
        "with recollect.Map.open('x.ukvs') as m:\n"
        "    reveal_type(m.lookup('http://site.example/'))\n"
        "recollect.proflie\n"
    )
    root = Path(__file__).parents[2]
    # The project's own cache, with which a second run takes seconds.
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(root / ".mypy_cache"), str(script)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    assert 'Revealed type is "recollect.maps.lookup.Lookup"' in lines[0], done.stdout
    assert 'has no attribute "proflie"' in lines[1]
    assert len(lines) == 3


def test_blocking_functions_work_inside_of_an_event_loop() -> None:
    @blocking
    def double(number: int) -> int:
        async def work() -> int:
            await asyncio.sleep(0)
            return 2 * number

        return asyncio.run(work())

    async def notebook() -> int:
        return double(21)

    assert double(21) == asyncio.run(notebook()) == 42
    assert double.__name__ == "double"


def test_errors_of_blocking_functions_reach_the_caller() -> None:
    async def notebook() -> None:
        recollect.survey_site("not a uri", archives=[])

    with pytest.raises(recollect.BadURI):
        asyncio.run(notebook())
