"""Types of binary fuse filters."""

import numpy as np
from numpy.typing import NDArray

def build_filter(
    keys: NDArray[np.uint64], bits: int, length: int, segments: int, starts: NDArray[np.int64], out: NDArray[np.uint8]
) -> int | None: ...

class FuseFilter:
    """The fingerprints of a filter of 8 or 16 `bits`, with segments of `length` slots. Threads may share it."""

    def __init__(self, data: memoryview | bytes, bits: int, seed: int, length: int, segments: int) -> None: ...
    def contains(self, key: int) -> bool: ...
