"""Types of hashed sets."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

VALUE_BITS: int
STOP: int
PART_EQUATIONS: int
SEEDS: int
CHOICES: int
BITS: tuple[int, ...]

ABSENT: int
HELD: int
UNDECIDED: int

def encode_set(
    data: Bytes, at: Ints, length: Ints, suffix: Bytes, bits: Bytes, value: NDArray[np.int8], spare: int = 80
) -> tuple[int, bytes]: ...

class HashedSet:
    """A set: its bytes, the number of its parts, and the bits of what is next below its anchor."""

    below: int

    def __init__(self, data: bytes, parts: int, below: int) -> None: ...
    def holds(self, key: bytes, anchor: int) -> bool: ...
    def ask(self, keys: Bytes, offsets: Ints, lengths: Ints, which: Ints, anchor: int, found: Bytes) -> None: ...

def ask_lines(
    text: Bytes | memoryview, positions: Ints, rows: Ints, keys: Bytes, offsets: Ints, lengths: Ints, found: Bytes
) -> None: ...
def members_below(
    keys: Bytes, offsets: Ints, lengths: Ints, rows: Ints, anchor: int, at: Ints, length: Ints, suffix: Bytes
) -> int: ...
