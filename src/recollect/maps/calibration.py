"""How likely is it that a wildcard's yes is true? P(held | captures, URI-Rs, depth, set bits, age), calibrated.

Hides: the form of the model, a logistic regression over features of the deciding line, and its fit (Newton's method
with a ridge; NumPy, imported by `fit` only). Features: the logarithm of the wildcard's URI-Rs, captures per URI-R,
its depth in host and path segments, how many segments the URI has below it, whether it is the root of its host, the
bits of a hashed set that said yes, and the age of the map in years.

`PRIOR` is shipped: fitted to real lookups, see `PRIOR.fitted_on`. `recollect evaluate --learn FILE` fits a model to a
log; `Model.load` reads it. Pure apart from reading and writing a model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import FormatError
from recollect.formats.frequency import Frequency
from recollect.uris import segments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEATURES = ("one", "uri_rs", "captures", "host_depth", "path_depth", "below", "root", "bits", "age")
_LEAST = 1e-4
_RIDGE = 1.0
VERSION = 1
LEARNED = "chances.json"
"""The name of a learned model beside the maps it is about."""


class Case(NamedTuple):
    """What is known of a wildcard that decides about a URI."""

    uri_rs: int | None
    captures: int | None
    hosts: int
    paths: int
    below: int
    """Segments of the URI's key below the wildcard."""
    root: bool
    """Whether the URI is the root of its host."""
    bits: float = 0.0
    age: float = 0.0
    """Years."""

    @property
    def features(self) -> tuple[float, ...]:
        """Numbers of the size of one, in the order of FEATURES."""
        uri_rs = self.uri_rs if self.uri_rs is not None else self.captures
        per_uri = 1.0 if not self.captures or not self.uri_rs else max(self.captures / self.uri_rs, 1.0)
        return (
            1.0,
            math.log1p(uri_rs or 0) / 4,
            math.log(per_uri),
            min(self.hosts, 6) / 2,
            min(self.paths, 6) / 2,
            min(self.below, 6) / 2,
            1.0 if self.root else 0.0,
            min(self.bits, 32.0) * math.log(2),
            min(self.age, 20.0) / 5,
        )


def case_of(wildcard: bytes, frequency: Frequency, key: bytes, *, bits: float = 0.0, age: float = 0.0) -> Case:
    """The case of a URI's key that a wildcard decides about."""
    hosts, path = segments(wildcard) if wildcard != b"*" else ((), ())
    names = len(hosts) - (not path and bool(hosts))
    own_hosts, own_path = segments(key)
    paths = max(len(path) - 1, 0)
    below = len(own_hosts) - names + len(own_path) - paths
    root = not own_path
    return Case(frequency.uri_r.value, frequency.uri_m.value, names, paths, max(below, 0), root, bits, age)


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of the features, and what they were fitted to."""

    weights: tuple[float, ...]
    fitted_on: str
    cases: int = 0

    def chance(self, case: Case) -> float:
        """The probability that the URI is held; never 0 or 1."""
        odds = math.fsum(weight * value for weight, value in zip(self.weights, case.features, strict=True))
        return min(max(1.0 / (1.0 + math.exp(-max(min(odds, 30.0), -30.0))), _LEAST), 1.0 - _LEAST)

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        named = {name: round(weight, 6) for name, weight in zip(FEATURES, self.weights, strict=True)}
        document = {"version": VERSION, "weights": named, "fitted_on": self.fitted_on, "cases": self.cases}
        Path(path).write_text(json.dumps(document, indent=1) + "\n", "utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read what `save` wrote; raises FormatError."""
        try:
            document = json.loads(Path(path).read_text("utf-8"))
            weights = tuple(float(document["weights"][name]) for name in FEATURES)
            fitted_on, cases = str(document["fitted_on"]), int(document["cases"])
        except (ValueError, TypeError, LookupError, UnicodeDecodeError) as error:
            raise FormatError("not a model of chances", where=str(path), why=str(error)) from error
        if document.get("version") != VERSION or not all(math.isfinite(weight) for weight in weights):
            raise FormatError("not a model of chances", where=str(path), why="another version, or no finite weights")
        return cls(weights, fitted_on, cases)


def fit(
    cases: Sequence[Case],
    held: Sequence[bool],
    fitted_on: str,
    counts: Sequence[int] | None = None,
    base: Model | None = None,
) -> Model:
    """The model of most likelihood, drawn towards `base` (the shipped prior), so that few cases change it little."""
    import numpy as np

    start = np.array((base or PRIOR).weights)
    if not cases:
        return base or PRIOR
    x = np.array([case.features for case in cases])
    y = np.array(held, float)
    times = np.ones(len(y)) if counts is None else np.array(counts, float)
    weights = start.copy()

    def loss(at: NDArray[np.float64]) -> float:
        odds = x @ at
        return float((times * (np.logaddexp(0, odds) - y * odds)).sum() + _RIDGE / 2 * ((at - start) ** 2).sum())

    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (times * (y - p)) - _RIDGE * (weights - start)
        hessian = (x * (times * p * (1 - p))[:, None]).T @ x + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        # A full step may overshoot far from the optimum; a shorter one in its direction always gains.
        length, before = 1.0, loss(weights)
        while loss(weights + length * step) > before and length > 1e-6:
            length /= 2
        weights = weights + length * step
        if float(np.abs(length * step).max()) < 1e-8:
            break
    return Model(tuple(float(weight) for weight in weights), fitted_on, len(cases))


# Refit: make bench-calibration ARGS="--timemaps FILE --prior".
# No real maps with sets or of known age were there to fit: a set of k bits multiplies the odds by 2^k, as its false
# positives are one in 2^k, and age has no weight here (`routing.choice.chance_since` has what a "no" loses by it).
PRIOR = Model(
    (-7.444, 3.513, 0.9, 1.013, 5.882, 0.122, -0.134, 1.0, 0.0),
    "138,413 lookups that wildcards decide about: the URIs of real TimeMaps of 19 archives (280,000 mementos) in the "
    "maps of these archives, compacted by weights 0.01, 0.1 and 0.5",
    138_413,
)


# How good chances are -------------------------------------------------------------------------------------------------


class Bin(NamedTuple):
    """One point of a reliability diagram."""

    low: float
    high: float
    lookups: int
    predicted: float
    observed: float


class Point(NamedTuple):
    """One point of a precision-recall curve: asking from this chance on."""

    threshold: float
    precision: float
    recall: float
    asked: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Chances against the truth, each different URI once. `brier_base` is the score of their mean for each."""

    lookups: int
    by_wildcards: int
    brier: float
    brier_base: float
    bins: tuple[Bin, ...]
    curve: tuple[Point, ...]
    model: str


def calibration_of(chances: Sequence[float], held: Sequence[bool], by_wildcards: int, model: str) -> Calibration | None:
    """Reliability in ten bins, Brier score, and precision against recall over thresholds; None without lookups."""
    if not chances:
        return None
    number, positives = len(chances), sum(held)
    pairs = sorted(zip(chances, held, strict=True), key=lambda pair: -pair[0])
    brier = math.fsum((chance - truth) ** 2 for chance, truth in pairs) / number
    mean = positives / number
    bins = []
    for place in range(10):
        low, high = place / 10, (place + 1) / 10
        inside = [pair for pair in pairs if low <= pair[0] < high or (place == 9 and pair[0] == 1.0)]
        if inside:
            predicted = math.fsum(chance for chance, _ in inside) / len(inside)
            bins.append(Bin(low, high, len(inside), predicted, sum(truth for _, truth in inside) / len(inside)))
    return Calibration(number, by_wildcards, brier, mean * (1 - mean), tuple(bins), _curve(pairs, positives), model)


def _curve(pairs: Sequence[tuple[float, bool]], positives: int) -> tuple[Point, ...]:
    points: list[Point] = []
    found = 0
    for asked, (chance, truth) in enumerate(pairs, 1):
        found += truth
        if asked < len(pairs) and pairs[asked][0] == chance:
            continue
        recall = found / positives if positives else 0.0
        if not points or recall - points[-1].recall >= 0.02 or asked == len(pairs):
            points.append(Point(chance, found / asked, recall, asked / len(pairs)))
    return tuple(points)
