"""Types of the branches of a map; see `profiles.compaction.branches`, whose dtype BRANCH branches have."""

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview | NDArray[np.uint8]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]
Structs = NDArray[np.void]  # of the dtype BRANCH

HELD: int
ABSENT: int
WILD: int
VOID: int
OPEN: int
GROWN: int

LEAF: int
OWN: int
ZERO: int
TOTAL: int
NONE: int
AGAIN: int
JSON: int

DONE: int
UNSORTED: int
BRANCHES_FULL: int

class BranchScan:
    """A scan of the lines in [start, stop) into rows (where each is, its branch, its role) and branches."""

    at: int
    rows: int
    branches: int

    def __init__(self, data: Bytes, start: int, stop: int, offsets: Ints, row_branch: Ints32, role: Bytes) -> None: ...
    def run(self, branch: Structs) -> int: ...

def add_total(branch: Structs, at: int, uri_m: int, uri_r: int, bounds: int) -> None: ...
def sum_up(data: Bytes, branch: Structs, held_children: Ints, size: Floats) -> None: ...
def row_names(data: Bytes, offsets: Ints, lengths: Ints, roots: Bytes) -> None: ...
def match(
    text: Bytes,
    starts: Ints,
    lengths: Ints32,
    log_kind: Bytes,
    ups: Ints32,
    data: Bytes,
    offsets: Ints,
    row_branch: Ints32,
    role: Bytes,
    up: Ints32,
    name_length: Ints,
    kind: Bytes,
    first: Ints,
    branch: Ints32,
    leaf: Ints,
) -> None: ...
