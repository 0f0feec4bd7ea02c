"""What is said while kernels are compiled."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s %(message)s")
import numba
from recollect.profiles import words
grown = numba.njit(lambda number: number + 1)
print(grown(1), grown(1.5))
"""


def test_compiling_is_told_once() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["recollect.kernels compiling", "2 2.5"]
