"""The table of changes in docs/design.md names files that exist, three at most for each change."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "recollect"


def test_a_change_touches_at_most_three_files_that_exist() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = text.partition("## Changes, and the files they touch")[2].partition("\n## ")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("|")][2:]
    assert len(rows) >= 8
    for change, files in rows:
        named = re.findall(r"`([a-z_/]+\.\w+)`", files)
        assert len(files.split(", ")) <= 3, change
        missing = [name for name in named if "/xx." not in name and not (PACKAGE / name).is_file()]
        assert not missing, change
