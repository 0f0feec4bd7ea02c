"""The tutorial of `protect` runs as it is printed: every block, pasted into a terminal, from an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "protect.md"


def test_the_tutorial_runs_as_printed_in_an_empty_folder(tmp_path: Path) -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "home").mkdir()
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path / "home")}
    terminal, inside = os.openpty()  # where a question would wait for an answer
    try:
        done = subprocess.run(
            ["sh", "-ec", "".join(blocks)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            stdin=inside,
        )
    finally:
        os.close(terminal)
        os.close(inside)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "hello again" in done.stdout
    captured, pages = re.search(r"captured (\d+) of the (\d+) pages", text).groups()  # type: ignore[union-attr]
    assert f"{captured} pages read, {captured} carry blocks" in done.stderr
    assert f"{pages} pages carry a block" in done.stderr
    assert sorted(path.name for path in (folder / "myapp").iterdir()) == ["data.csv", "main.py", "templates"]
