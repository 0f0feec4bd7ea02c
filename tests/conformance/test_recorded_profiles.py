"""Profiles are, to the byte, what the loops before those of `recollect.kernels` made of the same input."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.recorded_profiles import CASES, RECORDED, digests


def test_every_profile_is_the_recorded_one(tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text())
    assert recorded.keys() == CASES.keys()
    assert dict(digests(tmp_path)) == recorded
