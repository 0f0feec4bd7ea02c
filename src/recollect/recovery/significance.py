"""Tests of significance over measured sites: Wilcoxon, chi-square, multiple regression (McCown 2007, chapter VII).

Hides: SciPy, which is an extra (`stats`). Each test is None where the data does not allow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

AVAILABLE = find_spec("scipy") is not None


@dataclass(frozen=True, slots=True)
class Test:
    """A statistic and the probability of one as far out by chance."""

    statistic: float
    p: float


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted linear model: (variable, estimate, p of a two-sided t test), the intercept first."""

    parameters: tuple[tuple[str, float, float], ...]
    r_squared: float


def wilcoxon(pairs: Sequence[tuple[float, float]]) -> Test | None:
    """The matched-pairs signed-ranks test, two-sided; None without a pair that differs."""
    from scipy import stats

    differences = [first - second for first, second in pairs if first != second]
    if not differences:
        return None
    result = stats.wilcoxon(differences)
    return Test(float(result.statistic), float(result.pvalue))


def chi_square(first: tuple[int, int], second: tuple[int, int]) -> Test | None:
    """Pearson's test of a table of two groups and two outcomes; None where a group or an outcome is empty."""
    from scipy import stats

    if not all((sum(first), sum(second), first[0] + second[0], first[1] + second[1])):
        return None
    result = stats.chi2_contingency([first, second], correction=False)
    return Test(float(result.statistic), float(result.pvalue))


def regression(rows: Sequence[Sequence[float]], outcomes: Sequence[float], names: Sequence[str]) -> Model | None:
    """Ordinary least squares; variables that do not vary are left out. None with too few rows."""
    import numpy as np
    from scipy import stats

    if not rows or len(set(outcomes)) < 2:
        return None
    data = np.asarray(rows, dtype=float)
    varying = [n for n in range(data.shape[1]) if np.ptp(data[:, n]) > 0]
    design = np.column_stack([np.ones(len(data)), data[:, varying]])
    free = design.shape[0] - design.shape[1]
    if free < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    target = np.asarray(outcomes, dtype=float)
    estimates, *_ = np.linalg.lstsq(design, target, rcond=None)
    residuals = target - design @ estimates
    variance = float(residuals @ residuals) / free
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    scores = np.abs(estimates) / np.where(errors > 0, errors, np.finfo(float).tiny)
    chances = 2 * stats.t.sf(scores, free)
    total = float(((target - target.mean()) ** 2).sum())
    parameters = zip(["intercept", *(names[n] for n in varying)], estimates, chances, strict=True)
    return Model(
        tuple((name, float(estimate), float(p)) for name, estimate, p in parameters),
        1 - float(residuals @ residuals) / total,
    )
