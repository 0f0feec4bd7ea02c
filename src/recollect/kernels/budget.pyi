"""Types of compaction by budget."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]

PUT_WILD: int
PUT_VOID: int
PUT_ZERO: int

def optimum(
    up: Ints32,
    is_open: Bytes,
    may_roll: Bytes,
    listed: Ints,
    wild: Ints,
    void: Ints,
    zero: Ints,
    leave: Floats,
    own: Floats,
    price: float,
    sums: Floats,
    cost: Ints,
    loss: Floats,
    decide: Bytes,
) -> tuple[int, float]: ...
def weigh(
    up: Ints32,
    listed: Ints,
    wild: Ints,
    void: Ints,
    zero: Ints,
    leave: Floats,
    own: Floats,
    decide: Bytes,
    cost: Ints,
    loss: Floats,
) -> tuple[int, float]: ...
def differences(up: Ints32, old: Bytes, new: Bytes, state: Bytes, at: Ints32) -> int: ...
def pick(
    up: Ints32,
    order: Ints,
    at: Ints32,
    more: Ints,
    gain: Floats,
    left: int,
    chosen: Bytes,
    above_chosen: Bytes,
) -> None: ...
def adopt(up: Ints32, chosen: Bytes, old: Bytes, new: Bytes) -> None: ...
def states(up: Ints32, decide: Bytes, state: Bytes) -> None: ...
def outermost(up: Ints32, flags: Bytes, leaves: Ints, count: Ints) -> None: ...
def spread(
    up: Ints32,
    weight: Floats,
    stay: Floats,
    out: Floats,
    everything: Floats,
    mass: Floats,
    leave: Floats,
    own: Floats,
) -> None: ...
def pass_on(up: Ints32, onward: Floats, per_weight: Floats, weight: Floats, mass: Floats) -> None: ...
def add_upwards(parent: Ints32, passing: Ints) -> None: ...
def matched_depths(parent: Ints32, lengths: Ints32, match: Ints, depth: Ints) -> None: ...
def inherit(parent: Ints32, value: Ints32, least: int) -> None: ...
def count_below(parent: Ints32, top: Bytes, steps: Ints32) -> None: ...
def keep_rows(row_branch: Ints32, role: Bytes, up: Ints32, state: Bytes, decide: Bytes, keep: Bytes) -> None: ...
def write_wildcards(
    data: Bytes,
    chosen: Ints,
    name_at: Ints,
    name_length: Ints,
    is_path: Bytes,
    total: Ints,
    bound: Bytes,
    starts: Ints,
    text: Bytes,
) -> None: ...
def place(data: Bytes, offsets: Ints, text: Bytes, starts: Ints, before: Ints) -> None: ...
def write_lines(
    data: Bytes,
    offsets: Ints,
    keep: Bytes,
    text: Bytes,
    starts: Ints,
    ends: Ints,
    before: Ints,
    row: int,
    new: int,
    out: Bytes,
) -> tuple[int, int, int, int]: ...
