"""`import recollect`: cheap, and every public name is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import recollect


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
