"""Types of statistics."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

FIRST_YEAR: int
YEARS: int
POLICY_HOSTS: int
POLICY_PATHS: int

OF_HOSTS: int
OF_PATHS: int

def last_surt(records: Bytes, begin: int) -> int: ...
def tabulate(
    records: Bytes, begin: int, end: int, surt_at: Ints, surt_m: Ints, new_key: Bytes, months: Ints
) -> tuple[int, int]: ...

class TreeWalk:
    """Follows sorted keys, each once, and counts.

    `host_depths`, `path_depths`: keys by depth; `domains`: hosts by depth; `policies`, `cut`, `overlap` by depth of
    hosts (and paths): keys of whole hosts, hosts that have hosts below them, and both.
    """

    addresses: int
    outermost_paths: int

    def __init__(
        self,
        host_depths: Ints,
        path_depths: Ints,
        domains: Ints,
        policies: Ints,
        overlap: Ints,
        cut: Ints,
    ) -> None: ...
    def add(self, text: Bytes, key_at: Ints, key_length: Ints, begin: int, tlds: Ints) -> int: ...
    def close_all(self) -> None: ...
    def take_closed(self) -> bytes: ...
