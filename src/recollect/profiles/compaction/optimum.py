"""The best map within a budget: an exact optimum for a price, the price searched, what is left over spent.

Hides: the search. For each price the optimum is exact (`kernels.budget.optimum`); over all prices these optima are
the corners of the lower convex hull of cost against loss. The search brackets the budget between two neighbouring
corners by the slope between them, which ends at the exact edge. Between corners lie cheaper improvements of single
subtrees: those that still fit are taken, the best ratio first, from ever finer optima.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import budget as kernels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# About what a key saves at the margin, as a share of what all keys of the budget could: a place to begin the search.
USUAL = 0.03
# No price is so small that a key more is for nothing, nor so small that it vanishes beside a loss of 0.
FREE = 1e-200
STEPS = 100
# The search ends when what lies between two corners is at most this part of the budget; single subtrees fill it.
NEAR = 50
# How much finer the optima get from which what is left of a budget is spent.
FINER = (0.7, 0.4, 0.1, 0.01, 1e-4)


@dataclass(frozen=True, slots=True)
class ExpectedLookups:
    """What can be won and lost at each branch: expected lookups of absent URIs, as shares of all lookups."""

    up: NDArray[np.int32]
    is_open: NDArray[np.bool_]
    leave: Floats
    own: Floats


@dataclass(frozen=True, slots=True)
class Costs:
    """What lines cost, in keys or in bytes: one number for each branch or, except for `listed`, one for all."""

    listed: Ints
    wild: Ints
    void: Ints
    zero: Ints


@dataclass(frozen=True, slots=True)
class Solution:
    """Decisions for all branches, what they cost, and the share of lookups they answer wrongly."""

    price: float
    cost: int
    loss: float
    decide: NDArray[np.uint8]

    def states(self, up: NDArray[np.int32]) -> NDArray[np.uint8]:
        """What an unlisted URI below each branch is answered: 0 no, 1 yes."""
        state = np.zeros(len(up), np.uint8)
        kernels.states(up, self.decide, state)
        return state


class Optimiser:
    """Optima over one tree. `work` is another one over the same tree whose arrays may be used again."""

    def __init__(
        self,
        expected: ExpectedLookups,
        costs: Costs,
        may_roll: NDArray[np.bool_],
        work: Optimiser | None = None,
    ) -> None:
        self.expected, self.costs, self.may_roll = expected, costs, may_roll
        self._sums: Floats = work._sums if work else np.zeros((len(expected.up), 4))
        self._cost: Ints = work._cost if work else np.empty((len(expected.up), 2), np.int64)
        self._loss: Floats = work._loss if work else np.empty((len(expected.up), 2))

    def at_price(self, price: float, *, keep: bool = False) -> Solution:
        """The exact optimum for a price per unit of cost; `keep` what every subtree costs and loses."""
        expected, costs = self.expected, self.costs
        kept = slice(None if keep else 0)
        decide = np.zeros(len(expected.up), np.uint8)
        cost, loss = kernels.optimum(
            expected.up,
            expected.is_open.view(np.uint8),
            self.may_roll.view(np.uint8),
            costs.listed,
            costs.wild,
            costs.void,
            costs.zero,
            expected.leave,
            expected.own,
            max(price, FREE),
            self._sums,
            self._cost[kept],
            self._loss[kept],
            decide,
        )
        return Solution(price, cost, loss, decide)

    @cached_property
    def cheapest(self) -> Solution:
        """The least that any map without false negatives costs."""
        return self.at_price(2 * self._stake + FREE)

    @cached_property
    def _stake(self) -> float:
        return float(self.expected.leave.sum() + self.expected.own.sum())

    def within(self, budget: int, *, near: float = 0.0, spend: bool = True) -> Solution | None:
        """The best map of at most this cost; None if there is none. `near` is a price that may be about right; without
        `spend` what is left of the budget below the next corner stays."""
        dear, cheap = self._bracket(budget, near)
        if dear is None or cheap is None:
            return dear
        for step in range(STEPS):
            if cheap.cost - dear.cost <= max(1, budget // NEAR):
                break
            # The slope of the edge between both finds the next corner; alternating with a bisection step, against slow
            # convergence.
            slope = (dear.loss - cheap.loss) / (cheap.cost - dear.cost)
            price = slope if step % 2 and cheap.price < slope < dear.price else self._guess(dear, cheap, budget)
            if not cheap.price < price < dear.price:
                break
            found = self.at_price(price)
            ended = price == slope and found.cost in (cheap.cost, dear.cost)
            if found.cost > budget:
                cheap = found
            else:
                dear = found
            if ended:
                break
        return self._spend(dear, cheap, budget) if spend else dear

    def _guess(self, dear: Solution, cheap: Solution, budget: int) -> float:
        """A price between two, as if cost were a power of price."""
        low, high = np.log(max(cheap.price, self._stake * 1e-18)), np.log(dear.price)
        share = np.log(cheap.cost / budget) / np.log(cheap.cost / dear.cost) if dear.cost else 0.5
        return float(np.exp(low + (high - low) * min(max(share, 0.05), 0.95)))

    def _bracket(self, budget: int, near: float) -> tuple[Solution | None, Solution | None]:
        """A solution within the budget and one beyond it; None for the first if there is none, for the second if
        everything is within."""
        dear = cheap = None
        price = near or USUAL * self._stake / max(1, budget)
        while price and not (dear and cheap):
            found = self.at_price(price)
            if found.cost <= budget:
                dear, price = found, price / 4
            else:
                cheap, price = found, price * 4
            if not self._stake * 1e-18 < price < 2 * self._stake:
                break
        if dear is None and (dear := self.cheapest).cost > budget:
            return None, None
        if cheap is None and (cheap := self.at_price(FREE)).cost <= budget:
            return cheap, None
        return dear, cheap

    def _spend(self, solution: Solution, beyond: Solution, budget: int) -> Solution:
        """Improve single subtrees of a solution while the budget allows: as the next one beyond the budget has them,
        then as finer and finer ones have."""
        for finer in (beyond.price, *(solution.price * factor for factor in FINER)):
            if solution.cost >= budget:
                break
            solution = self._mixed(solution, self.at_price(finer, keep=True), budget)
        return solution

    def _mixed(self, solution: Solution, better: Solution, budget: int) -> Solution:
        """The solution with those subtrees of the better one that fit, the most gain per cost first."""
        up = self.expected.up
        decide = solution.decide.copy()
        state = solution.states(up)
        at = np.empty(len(up), np.int32)
        at = at[: kernels.differences(up, decide, better.decide, state, at)]
        above = np.where(up[at] >= 0, state[np.maximum(up[at], 0)], 0)
        cost, loss = self._cost[at, above], self._loss[at, above]  # of `better`, which was solved last
        self.weigh(decide)
        more, gain = cost - self._cost[at, above], self._loss[at, above] - loss
        ratio = np.where(more > 0, gain / np.maximum(more, 1), np.inf)
        chosen, passed = np.zeros(len(up), np.uint8), np.zeros(len(up), np.uint8)
        kernels.pick(up, np.lexsort((at, -ratio)), at, more, gain, budget - solution.cost, chosen, passed)
        kernels.adopt(up, chosen, decide, better.decide)
        return Solution(solution.price, *self.weigh(decide), decide)

    def weigh(self, decide: NDArray[np.uint8]) -> tuple[int, float]:
        """What given decisions cost and lose."""
        expected, costs = self.expected, self.costs
        return kernels.weigh(
            expected.up,
            costs.listed,
            costs.wild,
            costs.void,
            costs.zero,
            expected.leave,
            expected.own,
            decide,
            self._cost,
            self._loss,
        )
