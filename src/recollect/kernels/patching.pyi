"""Types of patching a map."""

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview | NDArray[np.uint8]
Ints = NDArray[np.int64]

def write_patched(
    text: Bytes,
    start: int,
    changed: Ints,
    more_m: Ints,
    more_r: Ints,
    more_bounds: Bytes,
    blocks: Bytes,
    block_ends: Ints,
    places: Ints,
    keys: Bytes,
    offsets: Ints,
    lengths: Ints,
    m: Ints,
    r: Ints,
    bounds: Bytes,
    out: NDArray[np.uint8],
) -> int: ...
