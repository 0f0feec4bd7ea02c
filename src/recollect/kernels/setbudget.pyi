"""Types of the optimum with hashed sets."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]

WAYS: int

PUT_WILD: int
PUT_VOID: int
PUT_ZERO: int
PUT_ANCHOR: int
PUT_GATE: int
PUT_STOP: int
PUT_MEMBER: int

SAYS_NO: int
SAYS_YES: int
ASKS_SET: int

def choose(
    up: Ints32,
    branches: int,
    flags: Bytes,
    may_roll: Bytes,
    leaves: Ints,
    listed: Ints,
    wild: Ints,
    void: Ints,
    zero: Ints,
    leave: Floats,
    own: Floats,
    price: float,
    bit_price: float,
    anchor_price: float,
    most_bits: float,
    sums: Floats,
    bits: Floats,
    ways: Bytes,
) -> float: ...
def settle(
    up: Ints32,
    branches: int,
    ways: Bytes,
    leave: Floats,
    own: Floats,
    state: Bytes,
    put: Bytes,
    bits_in: Bytes,
    bits_out: Bytes,
    anchor: Ints32,
) -> float: ...
