"""`.recollectignore` leaves out what `.gitignore` would: compared with git itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.protection.selection import IGNORE_FILE, Selection, walk

NAMES = st.sampled_from(["a", "b.log", "keep.log", "c d.txt", ".env", "é.md", "x[1].py", "!odd"])
FOLDERS = st.sampled_from(["", "sub/", "sub/deep/", "logs/", "sub/logs/"])
# No question mark: git counts the bytes of é, pathspec its characters.
LINES = st.sampled_from(
    [
        *("*.log", "!keep.log", "/logs/", "logs/", "sub/**", "!sub/deep/", "**/deep/*", "a", "/a", "sub/a", "*.txt "),
        *("c\\ d.txt", "# a comment", "", "\\!odd", "x\\[1\\].py", "*", "!*/", "!.env", ".env*", "[ab]", "!b.log"),
        "sub/*/keep.log",
    ]
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    files=st.lists(st.tuples(FOLDERS, NAMES), min_size=1, max_size=8, unique=True),
    rules=st.lists(LINES, max_size=6),
    below=st.lists(LINES, max_size=3),
)
def test_files_that_git_would_track_are_packed(
    tmp_path: Path, files: list[tuple[str, str]], rules: list[str], below: list[str]
) -> None:
    root = tmp_path / "project"
    shutil.rmtree(root, ignore_errors=True)
    for folder, name in files:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / name).write_text("x")
    for ignore in (IGNORE_FILE, ".gitignore"):
        (root / ignore).write_text("\n".join(rules) + "\n", encoding="utf-8")
        if (root / "sub").is_dir():
            (root / "sub" / ignore).write_text("\n".join(below) + "\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    listed = subprocess.run(
        ["git", "-C", str(root), "-c", "core.quotepath=off", "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    packed = {
        one.path.relative_to(root).as_posix()
        for one in walk(root, Selection())
        if not one.is_folder and not one.skipped and not one.version_control
    }
    assert packed == set(filter(None, listed.split("\0")))
