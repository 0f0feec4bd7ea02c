"""Types of records: made, merged, written as lines of a map. Their layout is in `records.pxd`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]

HEADER: int
DONE: int
FULL: int

class Runs:
    """The runs of a batch: places and lengths of its SURTs and of their keys in a text, which it holds on to.

    The key of a SURT is its beginning if both are at one place. A run without captures may have no key (length -1).
    """

    def __init__(
        self,
        text: NDArray[np.uint8],
        surt_at: NDArray[np.int32],
        surt_length: NDArray[np.int32],
        key_at: NDArray[np.int32],
        key_length: NDArray[np.int32],
    ) -> None: ...
    def lines(self, captures: NDArray[np.int64]) -> tuple[bytes, int, int] | None: ...
    def records(
        self,
        run: NDArray[np.int32],
        label: NDArray[np.int32],
        captures: NDArray[np.int64],
        labels: Sequence[bytes],
    ) -> bytes: ...
    def mark_ending_in(self, names: Sequence[bytes], found: NDArray[np.uint8]) -> None: ...

class Merger:
    """Merges sorted runs of records, equal ones summed, into a buffer that the caller empties.

    `feed` each run once, then `merge` into a buffer until it is DONE. When it is FULL, take what is `settled` and
    `keep_last`, or go on with a larger copy of the buffer. Any other result is the number of a run that needs more:
    `feed` it, or `end` it.
    """

    filled: int

    def __init__(self, runs: int) -> None: ...
    def feed(self, run: int, records: Bytes) -> None: ...
    def end(self, run: int) -> None: ...
    def merge(self, out: NDArray[np.uint8]) -> int: ...
    def settled(self) -> int: ...
    def keep_last(self, out: NDArray[np.uint8]) -> None: ...

class LineMaker:
    """Makes lines `key M/R` of merged records, piece by piece. `keys`, `captures` and `uri_rs` count what was made."""

    keys: int
    captures: int
    uri_rs: int

    def __init__(self) -> None: ...
    def add(self, records: Bytes) -> bytes: ...
    def finish(self) -> bytes: ...

def whole_records(records: Bytes, filled: int) -> int: ...
def first_not_below(records: Bytes, start: int, border: Bytes) -> int: ...
