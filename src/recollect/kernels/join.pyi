"""Types of merging as text."""

from array import array

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]
Ints = NDArray[np.int64]

ODD_LINE: int
NOT_PLAIN: int

def join(
    data: Bytes, starts: array[int], ends: array[int], disjoint: bool, out: Bytes
) -> tuple[int, int, int, int, int, int, int]: ...
def compare_counts(
    said: Bytes, said_at: int, exact: Bytes, exact_at: int, at_least: bool, differ: Ints
) -> tuple[int, int, int, int, bool]: ...
