"""Types of compaction by weights."""

from array import array

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview | NDArray[np.uint8]
Ints = memoryview | NDArray[np.int64]
Floats = array[float] | NDArray[np.float64]

DONE: int
UNSORTED: int
PAUSED: int

EVENT_LINE: int
EVENT_OWN: int
EVENT_CLOSE: int
EVENT_EMIT: int

CLOSE_KEPT: int
CLOSE_BARE: int

class Rollup:
    """A compaction of the lines in [start, stop).

    `host_cutoffs[d]` and `path_cutoffs[d]`: a node of depth d rolls up when it has more children; infinity means never;
    what lies deeper than there are cutoffs is one last segment. `tally[0 for hosts, 1 for paths, d]` counts nodes of
    depth d that have children, and those children.
    """

    at: int
    lines: int
    written: int
    rollups: int

    def __init__(
        self, data: Bytes, start: int, stop: int, host_cutoffs: Floats, path_cutoffs: Floats, tally: Ints
    ) -> None: ...
    def run(self, pause: int) -> int: ...
    def take_output(self) -> bytes: ...
    def take_events(self) -> list[tuple[int, int, int, int]]: ...
