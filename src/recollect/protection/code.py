"""Erasure codes: an object becomes any number of blocks, and about as many of them as it is long bring it back.

Hides: two codes with one interface. Both are systematic: blocks 0 to need - 1 are the object itself, cut into equal
parts and padded with zeros; any later number is a combination of them. Numbers go on without end, so that pages can be
added and rotated without coding the object again.

- `raptorq`: RFC 6330, by the package raptorq (Apache-2.0, Rust). `need` blocks suffice in 99.3% of the cases or more,
  need + 1 in all of thousands measured; need + 2 is what is promised. At most 56,403 source blocks.
- `gf256`: ours, where that package is missing. While need < 256, numbers below 256 are rows of a Cauchy matrix: any
  `need` of them suffice, with certainty. Other rows are dense and random (SHAKE-128 of need and number): need + 2 of
  them fail once in 16 million times. Its cost grows with blocks times size.

A block larger than a symbol is cut into stripes with the same symbol number in each, so whether blocks suffice depends
on their numbers only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.errors import UsageError
from recollect.installation import install_command
from recollect.kernels import gf256

Bytes: TypeAlias = NDArray[np.uint8]  # one row per block
MARGIN = 2  # blocks beyond `need` with which recovery is promised
MAX_NEED = 56_403  # RFC 6330, section 5.1.2
MAX_NUMBER = (1 << 24) - 1  # RFC 6330, section 3.2: encoding symbol identifiers have 24 bits
_MAX_SYMBOL = 60_000  # RFC 6330 has 16 bits for the size of a symbol
_MAX_STRIPE = 8 << 20  # bytes of source symbols that are coded together: bounds the memory of both directions
_ALIGNMENT = 8


class Code(StrEnum):
    """The name of a code, as blocks give it."""

    RAPTORQ = "raptorq"
    GF256 = "gf256"


@dataclass(frozen=True, slots=True)
class Geometry:
    """How an object of `size` bytes is cut so that `need` blocks hold it: follows from these two alone."""

    size: int
    need: int

    @property
    def stripes(self) -> int:
        largest = min(_MAX_SYMBOL, max(_ALIGNMENT, _MAX_STRIPE // self.need // _ALIGNMENT * _ALIGNMENT))
        return max(1, -(-self._least // largest))

    @property
    def symbol_bytes(self) -> int:
        return max(1, -(-self._least // (self.stripes * _ALIGNMENT))) * _ALIGNMENT

    @property
    def block_bytes(self) -> int:
        return self.stripes * self.symbol_bytes

    @property
    def _least(self) -> int:
        return -(-self.size // self.need)


def available(code: Code) -> bool:
    """Can this code be computed here?"""
    return code is not Code.RAPTORQ or find_spec("raptorq") is not None


def best_code() -> Code:
    """RaptorQ where its package is installed, else the built-in code."""
    return Code.RAPTORQ if available(Code.RAPTORQ) else Code.GF256


def encode(code: Code, data: bytes, need: int, numbers: Sequence[int]) -> dict[int, bytes]:
    """The blocks with these numbers; each has `Geometry(len(data), need).block_bytes` bytes."""
    _check(code, need, numbers)
    shape = Geometry(len(data), need)
    source = np.zeros((need, shape.block_bytes), dtype=np.uint8)
    source.reshape(-1)[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    wanted = sorted(set(numbers))
    repairs = [number for number in wanted if number >= need]
    coded = _encode_raptorq if code is Code.RAPTORQ else _encode_gf256
    extra = coded(source, shape, repairs) if repairs else np.zeros((0, shape.block_bytes), dtype=np.uint8)
    blocks = {number: source[number].tobytes() for number in wanted if number < need}
    blocks.update((number, extra[row].tobytes()) for row, number in enumerate(repairs))
    return blocks


def decode(code: Code, size: int, need: int, blocks: Mapping[int, bytes]) -> bytes | None:
    """The object from its blocks by number; None when they do not suffice."""
    shape = Geometry(size, need)
    _check(code, need, list(blocks))
    if any(len(block) != shape.block_bytes for block in blocks.values()):
        raise ValueError("a block has another size than its geometry says")
    if len(blocks) < need:
        return None
    missing = [number for number in range(need) if number not in blocks]
    source = np.zeros((need, shape.block_bytes), dtype=np.uint8)
    for number in range(need):
        if number in blocks:
            source[number] = np.frombuffer(blocks[number], dtype=np.uint8)
    if missing:
        found = (_decode_raptorq if code is Code.RAPTORQ else _decode_gf256)(source, shape, missing, blocks)
        if not found:
            return None
    return source.reshape(-1)[:size].tobytes()


def _check(code: Code, need: int, numbers: Sequence[int]) -> None:
    if not available(code):
        raise UsageError("the code of these blocks is not installed", where=code, hint=install_command("protect"))
    if not 1 <= need <= MAX_NEED:
        raise UsageError(
            "too many blocks are needed", where=str(need), why=f"at most {MAX_NEED:,}", hint="allow larger blocks"
        )
    if numbers and not 0 <= min(numbers) <= max(numbers) <= MAX_NUMBER:
        raise UsageError("no such block number", where=str(max(numbers)), why=f"at most {MAX_NUMBER:,}")


# RaptorQ -------------------------------------------------------------------------------------------------------------


def _encode_raptorq(source: Bytes, shape: Geometry, repairs: Sequence[int]) -> Bytes:
    from raptorq import Encoder

    width = shape.symbol_bytes
    blocks = np.empty((len(repairs), shape.block_bytes), dtype=np.uint8)
    for stripe in range(shape.stripes):
        columns = slice(stripe * width, (stripe + 1) * width)
        encoder = Encoder.with_defaults(source[:, columns].tobytes(), width)
        packets = encoder.get_encoded_packets(repairs[-1] + 1 - shape.need)
        for row, number in enumerate(repairs):
            packet = packets[number]
            if packet[:4] != number.to_bytes(4, "big"):  # source block 0, symbol number
                raise AssertionError("raptorq numbers its packets in another way")
            blocks[row, columns] = np.frombuffer(packet, dtype=np.uint8, offset=4)
    return blocks


def _decode_raptorq(source: Bytes, shape: Geometry, missing: Sequence[int], blocks: Mapping[int, bytes]) -> bool:
    from raptorq import Decoder

    width = shape.symbol_bytes
    # Source symbols first, and no more repair symbols than can matter: each costs time.
    repairs = sorted(number for number in blocks if number >= shape.need)
    chosen = [number for number in range(shape.need) if number in blocks] + repairs[: len(missing) + 8]
    for stripe in range(shape.stripes):
        start = stripe * width
        decoder = Decoder.with_defaults(shape.need * width, width)
        result = None
        for number in chosen:
            result = decoder.decode(number.to_bytes(4, "big") + blocks[number][start : start + width])
            if result is not None:
                break
        if result is None:
            return False
        whole = np.frombuffer(result, dtype=np.uint8).reshape(shape.need, width)
        source[missing, start : start + width] = whole[missing]
    return True


# GF(256) -------------------------------------------------------------------------------------------------------------


def _row(need: int, number: int) -> Bytes:
    """The coefficients of block `number`, which is not a source block."""
    if number < 256:  # and need < 256, as need <= number
        return np.frombuffer(_cauchy_row(need, number), dtype=np.uint8)
    seed = b"recollect gf256 %d %d" % (need, number)
    return np.frombuffer(hashlib.shake_128(seed).digest(need), dtype=np.uint8)


@lru_cache(4096)
def _cauchy_row(need: int, number: int) -> bytes:
    return bytes(gf256.inverse(column ^ number) for column in range(need))


def _encode_gf256(source: Bytes, shape: Geometry, repairs: Sequence[int]) -> Bytes:
    rows = np.stack([_row(shape.need, number) for number in repairs])
    return _product(rows, source)


def _decode_gf256(source: Bytes, shape: Geometry, missing: Sequence[int], blocks: Mapping[int, bytes]) -> bool:
    repairs = sorted(number for number in blocks if number >= shape.need)[: len(missing) + 8]
    rows = np.stack([_row(shape.need, number) for number in repairs])
    known = [number for number in range(shape.need) if number in blocks]
    inverse = _left_inverse(rows[:, missing])
    if inverse is None:
        return False
    values = np.stack([np.frombuffer(blocks[number], dtype=np.uint8) for number in repairs])
    if known:
        values ^= _product(rows[:, known], source[known])
    source[missing] = _product(inverse, values)
    return True


def _product(left: Bytes, right: Bytes) -> Bytes:
    result = np.empty((left.shape[0], right.shape[1]), dtype=np.uint8)
    gf256.product(left.reshape(-1).data, right.reshape(-1).data, result.reshape(-1).data, left.shape[1])
    return result


def _left_inverse(matrix: Bytes) -> Bytes | None:
    """L with L · `matrix` = identity, or None when the columns are not independent."""
    rows, columns = matrix.shape
    work = np.concatenate([matrix, np.eye(rows, dtype=np.uint8)], axis=1)
    if rows < columns or not gf256.eliminate(work.reshape(-1).data, work.shape[1], columns):
        return None
    return np.ascontiguousarray(work[:columns, columns:])
