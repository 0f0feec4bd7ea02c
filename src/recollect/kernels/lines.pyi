"""Types of the lines of a map."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]

EXACT: int
AT_LEAST: int
AT_MOST: int
ABOUT: int

RECORD: int
HEADER: int
BLANK: int
IRREGULAR: int

class MapLine:
    """A line of a map. Lengths and the place of the block are counted from its start, `next` from that of the data.

    Counts are -1 where they are not stated. `bounds` holds the bound of URI-Ms in its low two bits, that of URI-Rs in
    the next two.
    """

    kind: int
    key_length: int
    length: int
    block: int
    next: int
    m: int
    r: int
    bounds: int

def line_at(data: Bytes, start: int) -> MapLine: ...
def lines_at(
    data: Bytes, positions: Ints, key_lengths: Ints, lengths: Ints, blocks: Ints, m: Ints, r: Ints, bounds: Bytes
) -> int: ...
def count_lines(data: Bytes, start: int, stop: int) -> int: ...
def is_address(host: bytes) -> bool: ...
