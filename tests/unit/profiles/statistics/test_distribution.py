"""Distributions with known answers."""

from __future__ import annotations

import pytest

from recollect.profiles.statistics.distribution import distribution_of


def test_nothing_has_no_distribution() -> None:
    assert distribution_of({}) is None
    assert distribution_of({3: 0}) is None


def test_equal_shares() -> None:
    found = distribution_of({4: 10})
    assert found is not None
    assert (found.gini, found.standard_deviation, found.median, found.mean) == (pytest.approx(0), 0, 4, 4)
    assert found.pareto_text == "50/50"
    assert found.lorenz == [(0, 0), (1, 1)]


def test_one_has_nearly_all() -> None:
    found = distribution_of({1: 99, 99901: 1})
    assert found is not None
    # The Gini coefficient of n people, one of which has nearly everything, comes near 1 - 1/n.
    assert found.gini == pytest.approx(0.99 * (99901 - 1) / 100000, abs=1e-3)
    assert found.pareto_text == "99/1"
    assert (found.minimum, found.median, found.maximum) == (1, 1, 99901)


def test_the_classic_eighty_twenty() -> None:
    # 80 with 1 each hold 20 percent, 20 with 16 each hold 80 percent.
    found = distribution_of({1: 80, 16: 20})
    assert found is not None
    assert found.pareto == pytest.approx((80, 20))
    assert found.gini == pytest.approx(0.6)
    assert found.lorenz == [(0, 0), (0.8, 0.2), (1, 1)]


def test_even_and_odd_medians() -> None:
    assert [
        found.median for found in (distribution_of({1: 1, 2: 1}), distribution_of({1: 1, 2: 1, 9: 1})) if found
    ] == [1.5, 2]


def test_a_long_curve_is_thinned_but_ends_where_it_ends() -> None:
    found = distribution_of(dict.fromkeys(range(1, 5000), 1))
    assert found is not None
    assert len(found.lorenz) <= 201
    assert found.lorenz[-1] == (1, 1)
    # The Lorenz curve of equal steps is x squared, its Gini one third.
    assert found.gini == pytest.approx(1 / 3, abs=1e-3)
