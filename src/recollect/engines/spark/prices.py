"""One price for all ranges of a map too large for one task, found from what each range would cost at many prices.

`profiles.compaction.optimum` is exact for a price per key, and below top-level domains what is decided about one domain
says nothing about another: so for a given price every range is decided separately, and costs and losses add up. The
driver sums them for a row of prices, closes in on the price at which all ranges together meet the budget, and lets
those ranges go to the next lower price that gain most by it, as long as the budget holds. Expected lookups
(`profiles.compaction.prior`) enter at the root: what a domain gets depends on its top-level domain and on all others,
so sums of those are added up first. Only sums, costs and losses come to the driver.

The budget is met as by `budget`; the few keys that are left over are spent by whole ranges and not by single nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.engines.spark.gathered import Part, gathered
from recollect.kernels import walk
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.budget import Case, TooSmall
from recollect.profiles.compaction.optimum import ExpectedLookups, Optimiser, Solution
from recollect.profiles.compaction.prior import Shares, shares_of, spread

Floats = NDArray[np.float64]
LOWEST, HIGHEST = 1e-16, 4.0
STEPS = 33
ROUNDS = 4
_ROOT = b""


@dataclass(slots=True)
class Crossing:
    """What is known of a node that ranges share (the root, a top-level domain): sums over its children."""

    size: float = 0.0
    leaves: float = 0.0
    held_children: float = 0.0
    onward: float = 0.0
    stay: float = 0.0

    def add(self, other: Crossing) -> None:
        """Add what another range knows of it."""
        self.size += other.size
        self.leaves += other.leaves
        self.held_children += other.held_children
        self.onward += other.onward
        self.stay = max(self.stay, other.stay)

    @property
    def everything(self) -> float:
        """All weights at the node together, as `prior.shares_of` has them."""
        seen = self.onward + self.leaves + self.stay
        share = 1 / np.sqrt(1.0 + self.held_children)
        unseen = share * seen / (1 - share if share < 1 else 1.0) if seen > 0 else 1.0
        return float(seen + unseen)


# For each shared node, the lookups that reach it for each unit of weight at it.
Masses = dict[bytes, float]


def masses_of(crossings: dict[bytes, Crossing]) -> Masses:
    """The lookups at shared nodes, of what all ranges know of them."""
    tops = {name: crossing for name, crossing in crossings.items() if name != _ROOT}
    root = crossings.get(_ROOT, Crossing())
    # At the root each top-level domain counts once, with all that it has in any range.
    whole = Crossing(root.size, root.leaves, root.held_children, root.onward, root.stay)
    weights = {name: max(one.size, 1.0) ** 0.5 for name, one in tops.items()}
    whole.onward += sum(weights.values())
    whole.held_children += sum(one.size > 0 for one in tops.values())
    each = 1.0 / whole.everything
    return {_ROOT: each} | {name: each * weights[name] / one.everything for name, one in tops.items()}


def _tops(branches: Branches, deep: int) -> NDArray[np.bool_]:
    """The branches that other ranges may have, too, beside the root."""
    if deep < 2:
        return np.zeros(len(branches), np.bool_)
    return np.asarray((branches.kind == walk.HOST) & (branches.depth == 1))


def crossings_of(
    branches: Branches, deep: int, name: Callable[[int], bytes], shares: Shares | None = None
) -> dict[bytes, Crossing]:
    """What a range knows of the nodes that it shares."""
    shares, tops = shares or shares_of(branches), _tops(branches, deep)
    onward = np.bincount(branches.up[1:], weights=shares.weight[1:], minlength=len(branches))
    numbers = (branches.size, branches.leaves, branches.held_children, onward, shares.stay)
    found = {
        name(branch) if branch else _ROOT: Crossing(*(float(column[branch]) for column in numbers))
        for branch in (0, *np.flatnonzero(tops).tolist())
    }
    root = found[_ROOT]
    root.onward -= float(shares.weight[tops].sum())
    root.held_children -= float((branches.size[tops] > 0).sum())
    return found


def optimiser_of(branches: Branches, deep: int, name: Callable[[int], bytes], masses: Masses) -> tuple[Case, Optimiser]:
    """The optimum's input for a range, with lookups as they come to it in the whole tree."""
    case, shares, tops = Case(branches), shares_of(branches), _tops(branches, deep)
    leave, own = spread(branches, shares)
    local = masses_of(crossings_of(branches, deep, name, shares))
    factor = np.full(len(branches), masses[_ROOT] / local[_ROOT])
    for top in np.flatnonzero(tops).tolist():
        factor[top] = masses[name(top)] / local[name(top)]
    # Every branch is scaled as the child of the root that it is below.
    above = np.arange(len(branches))
    while (branches.up[above] > 0).any():
        above = np.where(branches.up[above] > 0, branches.up[above], above)
    factor = factor[above]
    leave, own = leave * factor, own * factor
    # Shared nodes are decided nowhere: they do not roll up.
    shared = tops.copy()
    shared[0] = True
    leave[shared | branches.is_open] = 0.0
    own[shared] = 0.0
    return case, Optimiser(
        ExpectedLookups(case.up, branches.is_open, leave, own), case.costs("keys"), case.may_roll(deep)
    )


def price_for(limit: int, costs_at: Callable[[Floats], dict[int, Floats]]) -> tuple[dict[int, float], Solution]:
    """A price for each range, so that all together cost no more than the limit. `costs_at` says for a row of prices
    what each range costs and loses at each."""
    row = np.geomspace(HIGHEST, LOWEST, STEPS)
    for turn in range(ROUNDS):
        costs = costs_at(row)
        total = sum(costs.values(), np.zeros((len(row), 2)))
        fits = np.flatnonzero(total[:, 0] <= limit)
        if not fits.size:
            why = f"the budget is {limit}, and the smallest map needs {int(total[0, 0])}"
            raise TooSmall(
                "no map is that small", why=why, hint="with --rollup-tlds top-level domains may roll up, too"
            )
        at = int(fits[-1])
        if at + 1 == len(row) or turn + 1 == ROUNDS:
            break
        row = np.geomspace(row[at], row[at + 1], STEPS)
    chosen = dict.fromkeys(costs, float(row[at]))
    cost, loss = total[at]
    if at + 1 < len(row):
        # Ranges that gain most for a key go on to the next price, as long as the budget holds.
        more = {number: one[at + 1, 0] - one[at, 0] for number, one in costs.items()}
        gain = {number: one[at, 1] - one[at + 1, 1] for number, one in costs.items()}
        for number in sorted(costs, key=lambda one: (-gain[one] / max(more[one], 1), one)):
            if cost + more[number] <= limit:
                chosen[number] = float(row[at + 1])
                cost, loss = cost + more[number], loss - gain[number]
    return chosen, Solution(float(row[at]), int(cost), float(loss), np.zeros(0, np.uint8))


@dataclass(slots=True)
class Survey:
    """What ranges report before prices: their shared nodes, records and URI-Rs."""

    crossings: dict[bytes, Crossing]
    records: int
    uri_rs: int

    def together(self, other: Survey) -> Survey:
        """With another range."""
        for name, crossing in other.crossings.items():
            self.crossings.setdefault(name, Crossing()).add(crossing)
        return Survey(self.crossings, self.records + other.records, self.uri_rs + other.uri_rs)


def _opened(part: Part) -> tuple[Branches, Callable[[int], bytes]]:
    names = {top: name for name, top in part.tops.items()}
    return gathered([part]).branches, names.__getitem__


def survey_of(part: Part, deep: int) -> Survey:
    """What a range reports."""
    branches, name = _opened(part)
    return Survey(crossings_of(branches, deep, name), part.records, branches.uri_rs if part.records else 0)


def costs_of(parts: Iterable[Part], deep: int, masses: Masses, row: Floats) -> Iterator[tuple[int, Floats]]:
    """What ranges cost, and lose, at each price."""
    for part in parts:
        if part.records:
            branches, name = _opened(part)
            _, optimiser = optimiser_of(branches, deep, name, masses)
            solutions = (optimiser.at_price(float(price)) for price in row)
            yield part.number, np.array([(found.cost, found.loss) for found in solutions])
