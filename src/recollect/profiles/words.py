"""Eight bytes at once for the byte loops: loads from addresses and counting of bits, which Numba has no words for.

A kernel counts no references (`_nrt=False`): it borrows its arrays and makes none. Counting took half the time of the
loops over lines, in atomic additions. Kernels may call kernels of other files; as Numba's cache does not notice a
changed callee there, delete `__pycache__` after changing one (`make clean` does).

Compiling takes seconds, once per machine. When it begins, the log `recollect.kernels` says so, once per run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.extending import intrinsic

log = logging.getLogger("recollect.kernels")


class _Compiling(event.Listener):
    """Hears of compiling; loading what was compiled before is no such event."""

    def __init__(self) -> None:
        self._told = False

    def on_start(self, event: Any) -> None:
        if not self._told:
            self._told = True
            log.info("compiling")

    def on_end(self, event: Any) -> None:
        """Nothing to tell."""


event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]  # Numba has no types

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function over borrowed arrays, once per machine, free of the interpreter lock."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
    return cast(_Function, njit(**options)(function))


def inlined(function: _Function) -> _Function:
    """A function that becomes a part of each kernel that calls it: a call with five arrays costs more than most do."""
    return cast(_Function, njit(inline="always")(function))


copy_bytes: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


def _word_at(_context: Any, _base: Any, _at: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address = builder.inttoptr(builder.add(*arguments), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(types.uintp, types.uintp), generate


def _low_zeros(_context: Any, _value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _high_zeros(_context: Any, _value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


# Eight bytes at an address and an offset, as a little-endian number; the caller sees to it that they are there.
word_at: Any = intrinsic(_word_at)
# How many bits lie below the lowest set one, and above the highest.
low_zeros: Any = intrinsic(_low_zeros)
high_zeros: Any = intrinsic(_high_zeros)
