"""The fits give the papers' own numbers, and recover known parameters."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import UsageError
from recollect.profiles.compaction.fit import fit_heaps, fit_power_law

# MementoMap paper (2019), Table 8, column MeanChld.
HOST_MEAN_CHILDREN = {3: 8.53, 4: 8.95, 5: 7.77, 6: 6.28, 7: 3.42, 8: 4.55, 9: 1.00}
PATH_MEAN_CHILDREN = {1: 25.00, 2: 7.25, 3: 4.96, 4: 3.26, 5: 3.29, 6: 2.70, 7: 2.48, 8: 2.09, 9: 2.01}


def test_table_8_of_the_paper_gives_the_published_host_defaults() -> None:
    a, k = fit_power_law([depth - 1 for depth in HOST_MEAN_CHILDREN], list(HOST_MEAN_CHILDREN.values()))
    assert (round(a, 3), round(k, 3)) == (16.329, 0.714)


def test_table_8_of_the_paper_gives_the_published_path_defaults() -> None:
    a, k = fit_power_law(list(PATH_MEAN_CHILDREN), list(PATH_MEAN_CHILDREN.values()))
    assert (round(a, 3), round(k, 3)) == (24.546, 1.429)


@pytest.mark.parametrize(("a", "k"), [(1.0, 0.0), (3.5, 2.25), (100.0, 0.1), (2.0, -1.0)])
def test_a_power_law_without_noise_is_recovered(a: float, k: float) -> None:
    xs = np.arange(1, 12)
    assert fit_power_law(xs, a * xs**-k) == pytest.approx((a, k), abs=1e-6)


@pytest.mark.parametrize(("factor", "beta"), [(2.686, 0.911), (1.0, 1.0), (40.0, 0.5)])
def test_heaps_law_without_noise_is_recovered(factor: float, beta: float) -> None:
    m = np.array([10.0, 1e3, 5e4, 1e6, 1.7e9])
    assert fit_heaps(m, factor * m**beta) == pytest.approx((factor, beta), rel=1e-9)


def test_heaps_law_recovers_parameters_through_noise() -> None:
    noise = np.random.default_rng(7).normal(1, 0.01, 200)
    m = np.geomspace(1e3, 1e9, 200)
    factor, beta = fit_heaps(m, 2.686 * m**0.911 * noise)
    assert factor == pytest.approx(2.686, rel=0.05)
    assert beta == pytest.approx(0.911, rel=0.01)


@pytest.mark.parametrize(("xs", "ys"), [([1], [1]), ([0, 1], [1, 2]), ([1, 2], [1])])
def test_points_that_cannot_be_fitted_are_refused(xs: list[float], ys: list[float]) -> None:
    with pytest.raises(UsageError):
        fit_power_law(xs, ys)
    with pytest.raises(UsageError):
        fit_heaps([5, 5], [3, 4])
