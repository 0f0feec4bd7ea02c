"""SECURITY.md names a test for each promise, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_promise_has_tests_that_exist() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 5
    for row in rows:
        names = re.findall(r"`(tests/[^`]+)`", row)
        assert names and all(any(ROOT.glob(name)) for name in names), row
