"""The tutorial of `watch` runs as it is printed: every block, in a plain shell, from an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "watch.md"


def own_network() -> list[str]:
    """The command that gives a script a network of its own, because its port is as printed; none where that is not
    allowed."""
    command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "-"]
    try:
        works = subprocess.run([*command, "true"], capture_output=True, timeout=30).returncode == 0
    except FileNotFoundError:
        works = False
    return command if works else []


def test_the_tutorial_runs_as_printed_in_an_empty_folder(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "home").mkdir()
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [*own_network(), "sh", "-ec", "".join(blocks)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    for words in ("pages-lost", "has lost pages", "is lost", "a site is lost"):
        assert words in done.stdout, f"{words}\n{done.stdout}\n{done.stderr}"
    assert (folder / "dashboard.html").exists() and (folder / "atom.xml").exists()
