"""Compaction, lookup, statistics, evaluation and merging write what the core wrote before it was rebuilt."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.recorded_core import digests

RECORDED = Path(__file__).with_name("recorded_core.json")


def test_outputs_are_those_that_were_recorded(tmp_path: Path) -> None:
    assert digests(tmp_path) == json.loads(RECORDED.read_text())
