"""Eight bytes at once for the byte loops: loads from addresses and counting of bits, which Numba has no words for.

Numba's cache does not notice when these change, so they are kept apart and small. A kernel without reference counting
(`_nrt=False`) borrows its arrays; counting took half the time of the loops over lines, in atomic additions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

kernel = njit(cache=True, nogil=True, _nrt=False)

copy_bytes = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


@intrinsic
def word_at(_context: Any, _base: Any, _at: Any) -> Any:
    """Eight bytes at an address and an offset, as a little-endian number; the caller sees to it that they are there."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address = builder.inttoptr(builder.add(*arguments), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(types.uintp, types.uintp), generate


@intrinsic
def low_zeros(_context: Any, _value: Any) -> Any:
    """How many bits lie below the lowest set one."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def high_zeros(_context: Any, _value: Any) -> Any:
    """How many bits lie above the highest set one."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate
