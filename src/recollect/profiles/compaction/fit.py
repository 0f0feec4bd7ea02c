"""Least-squares fits of the two laws the papers use: a power law for mean children, Heaps' law for growth.

Hides the optimiser: both laws have one non-linear parameter, so the other is solved in closed form and the search is
over one number. Pure; numpy only.

Power law (Alam et al. 2019, section 5.3): children(depth) = a * depth ** -k, non-linear least squares in the values
themselves. Fitted to Table 8's mean children it gives the published defaults: 16.329, 0.714 for hosts (H3..H9,
x = depth - 1) and 24.546, 1.429 for paths (P1..P9, x = depth).
Heaps' law (Alam et al. 2015, equation 3): URI-Rs = K * URI-Ms ** beta, least squares of the logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from recollect.errors import UsageError

_GOLDEN = (5**0.5 - 1) / 2


def fit_power_law(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """(a, k) of y = a * x ** -k with the least sum of squared differences. xs must be positive, two points at least."""
    x = np.asarray(xs, dtype=float)
    y = np.asarray(ys, dtype=float)
    if x.size < 2 or x.size != y.size or (x <= 0).any():
        raise UsageError("cannot fit a power law", why="two or more points with x > 0 are needed")

    def best_a(k: float) -> float:
        power = x**-k
        return float((y * power).sum() / (power * power).sum())

    def loss(k: float) -> float:
        return float(((y - best_a(k) * x**-k) ** 2).sum())

    k = _minimum(loss, -10.0, 10.0)
    return best_a(k), k


# A law of two parameters goes through any two points, and says nothing of them.
FEWEST_POINTS = 3
HOST_LEVELS = range(3, 10)
PATH_LEVELS = range(1, 10)


def fit_hosts(mean_children: Mapping[int, float]) -> tuple[float, float] | None:
    """(a, k) of the law of hosts, from mean children by level (column MeanChld of Table 8); None if too few levels."""
    return _fit_levels(mean_children, HOST_LEVELS, 1)


def fit_paths(mean_children: Mapping[int, float]) -> tuple[float, float] | None:
    """(a, k) of the law of paths, as `fit_hosts`."""
    return _fit_levels(mean_children, PATH_LEVELS, 0)


def _fit_levels(mean_children: Mapping[int, float], levels: range, less: int) -> tuple[float, float] | None:
    points = [(level - less, mean) for level, mean in sorted(mean_children.items()) if level in levels and mean > 0]
    if len(points) < FEWEST_POINTS:
        return None
    return fit_power_law([x for x, _ in points], [y for _, y in points])


def fit_heaps(uri_ms: Sequence[float], uri_rs: Sequence[float]) -> tuple[float, float]:
    """(K, beta) of URI-Rs = K * URI-Ms ** beta by least squares of the logarithms."""
    m = np.asarray(uri_ms, dtype=float)
    r = np.asarray(uri_rs, dtype=float)
    usable = (m > 0) & (r > 0)
    x, y = np.log(m[usable]), np.log(r[usable])
    if x.size < 2 or float(np.ptp(x)) == 0:
        raise UsageError("cannot fit Heaps' law", why="two or more different sizes are needed")
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return float(np.exp(y.mean() - slope * x.mean())), slope


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Where `function` is least: a grid finds the valley, golden section its floor."""
    grid = np.linspace(low, high, 401)
    at = int(np.argmin([function(float(point)) for point in grid]))
    left, right = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
    while right - left > 1e-10:
        third = right - _GOLDEN * (right - left)
        fourth = left + _GOLDEN * (right - left)
        if function(third) < function(fourth):
            right = fourth
        else:
            left = third
    return (left + right) / 2
