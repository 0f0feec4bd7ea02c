"""How captures are spread over URI-Rs: mean, median, deviation, Gini, Pareto break point, Lorenz curve.

Pure. Works on a histogram (captures -> number of URI-Rs with that number), which is small however large the archive.

The Gini coefficient is that of the finite population: 0 when every URI-R has the same number of captures, 1 - 1/n when
one has all. The Pareto break point is where the most captured p percent of the URI-Rs hold 100 - p percent of the
captures (70/30 in Alam et al. 2019, Table 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

_CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class Distribution:
    """Table 4. `lorenz` is a curve: share of URI-Rs (least captured first) against their share of captures."""

    uri_rs: int
    captures: int
    maximum: int
    median: float
    minimum: int
    mean: float
    standard_deviation: float
    gini: float
    pareto: tuple[float, float]
    lorenz: list[tuple[float, float]]

    @property
    def pareto_text(self) -> str:
        """`70/30`."""
        return f"{round(self.pareto[0])}/{round(self.pareto[1])}"


def distribution_of(histogram: Mapping[int, int]) -> Distribution | None:
    """The distribution of a histogram; None if it is empty."""
    items = sorted((value, count) for value, count in histogram.items() if count)
    if not items:
        return None
    population = sum(count for _, count in items)
    total = sum(value * count for value, count in items)
    mean = total / population
    variance = sum(count * (value - mean) ** 2 for value, count in items) / population
    curve = _lorenz(items, population, total)
    return Distribution(
        population,
        total,
        items[-1][0],
        _median(items, population),
        items[0][0],
        mean,
        variance**0.5,
        _gini(items, population, total),
        _pareto(curve),
        _thinned(curve),
    )


def _median(items: list[tuple[int, int]], population: int) -> float:
    def at(rank: int) -> int:
        seen = 0
        for value, count in items:
            seen += count
            if seen > rank:
                return value
        return items[-1][0]

    return (at((population - 1) // 2) + at(population // 2)) / 2


def _gini(items: list[tuple[int, int]], population: int, total: int) -> float:
    """2 * sum(rank * value) / (n * sum) - (n + 1) / n, with ranks from 1 in rising order."""
    if total == 0:
        return 0.0
    weighted = rank = 0
    for value, count in items:
        weighted += value * (count * rank + count * (count + 1) // 2)
        rank += count
    return 2 * weighted / (population * total) - (population + 1) / population


def _lorenz(items: list[tuple[int, int]], population: int, total: int) -> list[tuple[float, float]]:
    points = [(0.0, 0.0)]
    people = wealth = 0
    for value, count in items:
        people += count
        wealth += value * count
        points.append((people / population, wealth / total if total else 0.0))
    return points


def _pareto(curve: list[tuple[float, float]]) -> tuple[float, float]:
    """(percent of captures, percent of URI-Rs) where the top p percent of URI-Rs hold 100 - p percent of captures.

    On the Lorenz curve y(x) that is where x + y(x) = 1; between its points the curve is straight.
    """
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x1 + y1 >= 1:
            step = (1 - x0 - y0) / ((x1 + y1) - (x0 + y0))
            x = x0 + step * (x1 - x0)
            return 100 * x, 100 * (1 - x)
    return 50.0, 50.0


def _thinned(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(curve) <= _CURVE_POINTS:
        return curve
    step = len(curve) / _CURVE_POINTS
    chosen = [curve[int(number * step)] for number in range(_CURVE_POINTS)]
    return [*chosen, curve[-1]]
