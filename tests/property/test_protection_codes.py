"""Any need + 2 blocks restore an object, with both codes; fewer than need never give a wrong one."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protected_sites import CODES
from recollect.errors import UsageError
from recollect.kernels import gf256
from recollect.protection.code import MARGIN, MAX_NEED, Code, Geometry, decode, encode


def slow_product(a: int, b: int) -> int:
    """The field by its definition: polynomials modulo x^8 + x^4 + x^3 + x^2 + 1."""
    result = 0
    for bit in range(8):
        if b >> bit & 1:
            result ^= a << bit
    for bit in range(14, 7, -1):
        if result >> bit & 1:
            result ^= 0x11D << (bit - 8)
    return result


def test_the_field_is_the_one_of_its_definition() -> None:
    numbers = bytes(range(256))
    for a in range(256):
        result = bytearray(256)
        gf256.product(bytes([a]), numbers, result, 1)
        assert list(result) == [slow_product(a, b) for b in range(256)]
        assert a == 0 or slow_product(a, gf256.inverse(a)) == 1
    assert gf256.inverse(0) == 0


matrices = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 40), st.integers(0, 2**32 - 1))


@given(matrices)
def test_products_of_matrices_are_sums_of_products(shape: tuple[int, int, int, int]) -> None:
    rows, inner, width, seed = shape
    numbers = random.Random(seed)
    left = [[numbers.choice((0, 1, numbers.randrange(256))) for _ in range(inner)] for _ in range(rows)]
    right = [[numbers.randrange(256) for _ in range(width)] for _ in range(inner)]
    result = bytearray(rows * width)
    gf256.product(b"".join(map(bytes, left)), b"".join(map(bytes, right)), result, inner)
    for row in range(rows):
        for column in range(width):
            expected = 0
            for k in range(inner):
                expected ^= slow_product(left[row][k], right[k][column])
            assert result[row * width + column] == expected


@pytest.mark.parametrize("inner", [0, -1, 3])
def test_matrices_that_do_not_fit_are_refused(inner: int) -> None:
    with pytest.raises(ValueError):
        gf256.product(b"1234", b"5678", bytearray(4), inner)
    with pytest.raises(ValueError):
        gf256.product(b"12", b"34", bytearray(3), 2)
    with pytest.raises(ValueError):
        gf256.eliminate(bytearray(6), 2, 3)


@pytest.mark.parametrize("code", CODES)
def test_every_subset_of_a_small_site_restores_it(code: Code) -> None:
    """All subsets of need + 2 of 9 pages, exhaustively."""
    data = random.Random(3).randbytes(333)
    for need in range(1, 7):
        blocks = encode(code, data, need, range(9))
        for chosen in combinations(range(9), need + MARGIN):
            assert decode(code, len(data), need, {n: blocks[n] for n in chosen}) == data


@pytest.mark.parametrize("need", [1, 2, 40, 100])
def test_any_need_blocks_of_a_cauchy_matrix_suffice(need: int) -> None:
    data = random.Random(need).randbytes(5000)
    blocks = encode(Code.GF256, data, need, range(256))
    for seed in range(40):
        chosen = random.Random(seed).sample(range(256), need)
        assert decode(Code.GF256, len(data), need, {n: blocks[n] for n in chosen}) == data


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_need_and_two_blocks_restore_the_object(code: Code, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 3000), "size")
    need = data.draw(st.integers(1, 60), "need")
    seed = data.draw(st.integers(0, 2**32 - 1), "seed")
    start = data.draw(st.sampled_from([0, 64, 300, 1000]), "first number")  # as after rotation
    content = random.Random(seed).randbytes(size)
    numbers = [*range(need), *range(start, start + 3 * need + 8)]
    blocks = encode(code, content, need, numbers)
    assert {len(block) for block in blocks.values()} == {Geometry(size, need).block_bytes}
    chosen = random.Random(seed + 1).sample(sorted(blocks), need + MARGIN)
    assert decode(code, size, need, {n: blocks[n] for n in chosen}) == content


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=40, deadline=None)
@given(need=st.integers(2, 30), seed=st.integers(0, 2**32 - 1))
def test_too_few_blocks_give_nothing_and_never_something_else(code: Code, need: int, seed: int) -> None:
    content = random.Random(seed).randbytes(need * 8)
    blocks = encode(code, content, need, range(2 * need))
    chosen = random.Random(seed).sample(range(2 * need), need - 1)
    assert decode(code, len(content), need, {n: blocks[n] for n in chosen}) is None
    chosen = random.Random(seed).sample(range(2 * need), need)
    assert decode(code, len(content), need, {n: blocks[n] for n in chosen}) in (content, None)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("size", "need", "pages"), [(400_000, 3, 8), (9 << 20, 100, 130), (900_000, 49, 123)])
def test_blocks_larger_than_a_symbol_are_striped(code: Code, size: int, need: int, pages: int) -> None:
    shape = Geometry(size, need)
    assert shape.symbol_bytes <= 60_000
    assert shape.symbol_bytes * need <= (8 << 20) + 8 * need
    assert shape.block_bytes * need >= size
    content = random.Random(size).randbytes(size)
    blocks = encode(code, content, need, range(pages))
    for seed in range(3):
        chosen = random.Random(seed).sample(range(pages), need + MARGIN)
        assert decode(code, size, need, {n: blocks[n] for n in chosen}) == content


def test_many_blocks_of_a_dense_random_matrix() -> None:
    content = random.Random(0).randbytes(40_000)
    blocks = encode(Code.GF256, content, 300, range(700))
    for seed in range(4):
        chosen = random.Random(seed).sample(range(300, 700), 302)
        assert decode(Code.GF256, len(content), 300, {n: blocks[n] for n in chosen}) == content


@pytest.mark.parametrize("code", CODES)
def test_what_cannot_be_coded_is_an_error(code: Code) -> None:
    with pytest.raises(UsageError, match="too many blocks"):
        encode(code, b"x", MAX_NEED + 1, [0])
    with pytest.raises(UsageError, match="block number"):
        encode(code, b"x", 1, [1 << 24])
    with pytest.raises(ValueError):
        decode(code, 100, 2, {0: b"short", 1: b"short"})


def test_geometry_follows_from_size_and_need_alone() -> None:
    generator = np.random.default_rng(1)
    for _ in range(500):
        size, need = int(generator.integers(0, 1 << 30)), int(generator.integers(1, MAX_NEED))
        shape = Geometry(size, need)
        assert shape.block_bytes * need >= size and shape.block_bytes == shape.stripes * shape.symbol_bytes
        # No more than an eighth of a symbol is lost to alignment, however it is cut.
        assert shape.block_bytes - -(-size // need) <= 8 * shape.stripes
