"""Types of lookup in the text of a map."""

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview | NDArray[np.uint8]
Ints = NDArray[np.int64]

YES: int
NO: int
UNSURE: int

class MapSearch:
    """The text of a map whose records begin at `start`, to be searched. Threads may share it."""

    def __init__(self, data: Bytes, start: int) -> None: ...
    def find(self, key: bytes) -> int: ...
    def place(self, key: bytes) -> int: ...
    def find_many(
        self, keys: Bytes, offsets: Ints, lengths: Ints, order: Ints, spare: Ints, positions: Ints
    ) -> None: ...
    def find_above(self, keys: Bytes, offsets: Ints, lengths: Ints, positions: Ints) -> None: ...
    def place_many(self, keys: Bytes, offsets: Ints, lengths: Ints, places: Ints) -> None: ...
    def looks_sorted(self, windows: int, lines: int) -> bool: ...

def split_lines(text: Bytes, offsets: Ints, lengths: Ints) -> int: ...
def plain_surts(text: Bytes, offsets: Ints, lengths: Ints, keys: Ints) -> None: ...
def mark_sets(text: Bytes, positions: Ints, marks: Bytes) -> bool: ...
def answers_at(text: Bytes, positions: Ints, answers: Bytes) -> None: ...
def write_answers(
    text: Bytes,
    positions: Ints,
    denied: Bytes,
    absent: int,
    lines: Bytes,
    offsets: Ints,
    lengths: Ints,
    out: Bytes,
    tally: Ints,
) -> int: ...
