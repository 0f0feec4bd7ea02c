"""How many blocks: Table 23 of the dissertation, and the odds against brute force."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest

from recollect.protection.code import MARGIN
from recollect.protection.odds import (
    ASSUMED_SHARE,
    DEFAULT_GROWTH,
    Coverage,
    chance,
    chance_at_share,
    choices,
    growth,
    least_need,
    need_for_coverage,
    need_for_growth,
    need_for_share,
    surely_captured,
)
from recollect.protection.odds import growth as page_growth
from recollect.protection.sealing import spread

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("size", "expected"),
    [(KIB, [1, 1, 1]), (MIB, [21, 11, 7]), (100 * MIB, [2_048, 1_024, 683]), (GIB, [20_972, 10_486, 6_991])],
)
def test_table_23_of_the_dissertation(size: int, expected: list[int]) -> None:
    assert [least_need(size, block * KIB) for block in (50, 100, 150)] == expected


def test_figure_56_means_eight_needed_of_forty() -> None:
    """Its 32 is how many may be lost: 368,065 bytes in blocks of 46,009 are 8."""
    assert least_need(368_065, 46_009) == 8 == 40 - 32


def test_a_page_of_123_grows_by_less_than_25_kb_for_an_object_of_900_kb_at_need_49() -> None:
    assert growth([900_000], 49) <= 25_000


def exact_chance(pages: int, enough: int, seen: Coverage) -> Fraction:
    """Beta-binomial with a uniform prior, in fractions."""

    def beta(a: int, b: int) -> Fraction:
        return Fraction(1, comb(a + b - 2, a - 1) * (a + b - 1))

    a, b = seen.captured + 1, seen.asked - seen.captured + 1
    return sum(
        (comb(pages, k) * beta(k + a, pages - k + b) / beta(a, b) for k in range(enough, pages + 1)), Fraction(0)
    )


@pytest.mark.parametrize("seen", [Coverage(0, 0), Coverage(10, 0), Coverage(10, 10), Coverage(40, 25), Coverage(7, 3)])
def test_chances_are_those_of_exact_fractions(seen: Coverage) -> None:
    for pages in (1, 5, 30):
        for enough in range(pages + 2):
            assert chance(pages, enough, seen) == pytest.approx(float(exact_chance(pages, enough, seen)), abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_chances_at_a_share_are_binomial(share: float) -> None:
    for enough in range(12):
        expected = sum(comb(10, k) * share**k * (1 - share) ** (10 - k) for k in range(enough, 11))
        assert chance_at_share(10, enough, share) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("pages", "captured", "need"), [(123, 74, 48), (123, 30, 10), (1_000, 600, 529), (10_000, 6_000, 5_783)]
)
def test_need_from_measured_coverage(pages: int, captured: int, need: int) -> None:
    seen = Coverage(pages, captured)
    assert need_for_coverage(pages, seen) == need
    assert chance(pages, need + 2, seen) >= 0.999 > chance(pages, need + 3, seen)


def test_need_from_coverage_holds_in_simulation() -> None:
    """Sites with any share, of which we saw as many pages as they have: enough come 99.9% of the time."""
    numbers = random.Random(4)
    misses = 0
    for _ in range(4_000):
        share = numbers.random()
        seen = Coverage(60, sum(numbers.random() < share for _ in range(60)))
        later = sum(numbers.random() < share for _ in range(60))
        misses += later < surely_captured(60, seen)
    assert misses <= 12  # 4 expected


def test_nothing_is_promised_without_captures() -> None:
    assert need_for_coverage(50, Coverage(50, 0)) == 0


def test_the_least_need_for_a_growth_is_found() -> None:
    for limit in (600, 1_000, 5_000, 25_000, 200_000):
        need = need_for_growth([100_000], limit)
        assert need is not None and growth([100_000], need) <= limit
        assert need == 1 or growth([100_000], need - 1) > limit
    assert need_for_growth([100_000], 300) is None
    assert need_for_growth([100, 100], 5_000) == 1


def test_a_share_never_takes_the_margin_away() -> None:
    assert [need_for_share(n, 0.4) for n in (1, 2, 3, 5, 10, 123)] == [1, 1, 1, 2, 4, 50]
    assert need_for_share(10, 0.95) == 8


def test_the_table_grows_less_and_risks_more_from_line_to_line() -> None:
    table = choices([889_000], 123, Coverage(123, 74), [48])
    assert [c.need for c in table] == sorted({c.need for c in table}) and 48 in {c.need for c in table}
    growths = [c.growth for c in table]
    assert growths == sorted(growths, reverse=True)
    chances = [c.chance for c in table if c.chance is not None]
    assert chances == sorted(chances, reverse=True) and len(chances) == len(table)
    assert all(c.chance is None for c in choices([889_000], 123, None))


@pytest.mark.parametrize("growth", [3_000, 10_000, 50_000, None])
@pytest.mark.parametrize("pages", [20, 60, 300])
@pytest.mark.parametrize("size", [900, 90_000, 9_000_000])
def test_recommendations_are_safe_at_the_assumed_share_within_the_growth(
    size: int, pages: int, growth: int | None
) -> None:
    chosen = spread([size], pages, None, growth)
    assert chance_at_share(chosen.pages, chosen.need + MARGIN, ASSUMED_SHARE) >= 0.95
    assert page_growth([size], chosen.need) <= (growth or DEFAULT_GROWTH)
