"""Types of a map's lines as columns and its keys as a tree."""

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview | NDArray[np.uint8]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

ROOT: int
HOST: int
ADDRESS: int
PORT: int
PATH: int

UNSORTED: int

def scan_table(
    data: Bytes,
    offsets: Ints,
    key_lengths: Ints32,
    line_lengths: Ints32,
    uri_m: Ints,
    uri_r: Ints,
    bounds: Bytes,
    blocks: Ints32,
    wild: Bytes,
) -> tuple[int, int, int]: ...
def build_tree(
    data: Bytes,
    offsets: Ints,
    key_lengths: Ints32,
    max_host: int,
    max_path: int,
    parent: Ints32,
    row_of: Ints32,
    name_length: Ints32,
    kind: Bytes,
    depth: Bytes,
    node_of: Ints32,
) -> int: ...
def safe_cut(data: Bytes, start: int, stop: int, want: int, whole_tlds: bool) -> int: ...
def lines_rise(data: Bytes, start: int, at: int, stop: int) -> bool: ...
