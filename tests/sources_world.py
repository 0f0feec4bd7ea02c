"""Pages of a small site, the command, and its report, for tests of recoveries from files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LONG = b" of the river, with a long text about their life in spring and autumn" * 4


def page(title: str, *links: str) -> bytes:
    anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    return f"<html><title>{title}</title><body><h1>{title}</h1>{anchors}<p>{title}".encode() + LONG


def recollect(*args: str | Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "recollect", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done


def report(folder: Path) -> dict[str, dict[str, Any]]:
    return {one["uri"]: one for one in json.loads((folder / "report.json").read_text())["resources"]}
