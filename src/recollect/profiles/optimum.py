"""The best map within a budget: an exact optimum for a price, the price searched, what is left over spent.

Hides: the search. For each price the optimum is exact (`budgetkernels.optimum`); over all prices these optima are
the corners of the lower convex hull of cost against loss. The search brackets the budget between two neighbouring
corners by the slope between them, which ends at the exact edge. Between corners lie cheaper improvements of single
subtrees: those that still fit are taken, the best ratio first, from ever finer optima.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.profiles import budgetkernels as kernels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# No price is so small that a key more is for nothing, nor so small that it vanishes beside a loss of 0.
FREE = 1e-200
STEPS = 100
# How much finer the optima get from which what is left of a budget is spent, and how often.
FINER = (1.0, 0.7, 0.4, 0.1, 0.01, 1e-4)


@dataclass(frozen=True, slots=True)
class Stakes:
    """What can be won and lost at each branch: expected lookups of absent URIs, as shares of all lookups."""

    up: NDArray[np.int32]
    is_open: NDArray[np.bool_]
    leave: Floats
    own: Floats


@dataclass(frozen=True, slots=True)
class Costs:
    """What lines cost, per branch: in keys, or in bytes."""

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
    """Optima over one tree; holds the work arrays."""

    def __init__(self, stakes: Stakes, costs: Costs, may_roll: NDArray[np.bool_]) -> None:
        self.stakes, self.costs, self.may_roll = stakes, costs, may_roll
        self._cost = np.zeros((len(stakes.up), 2), np.int64)
        self._loss = np.zeros((len(stakes.up), 2))

    def at_price(self, price: float) -> Solution:
        """The exact optimum for a price per unit of cost."""
        stakes, costs = self.stakes, self.costs
        decide = np.zeros(len(stakes.up), np.uint8)
        cost, loss = kernels.optimum(
            stakes.up,
            stakes.is_open,
            self.may_roll,
            costs.listed,
            costs.wild,
            costs.void,
            costs.zero,
            stakes.leave,
            stakes.own,
            max(price, FREE),
            self._cost,
            self._loss,
            decide,
        )
        return Solution(price, int(cost), float(loss), decide)

    @property
    def cheapest(self) -> Solution:
        """The least that any map without false negatives costs."""
        return self.at_price(2 * self._stake + FREE)

    @property
    def _stake(self) -> float:
        return float(self.stakes.leave.sum() + self.stakes.own.sum())

    def within(self, budget: int) -> Solution | None:
        """The best map of at most this cost; None if there is none."""
        dear = self.cheapest
        if dear.cost > budget:
            return None
        cheap = self.at_price(FREE)
        if cheap.cost <= budget:
            return cheap
        for step in range(STEPS):
            if dear.cost == budget:
                break
            # The slope of the edge between both; in turn with the middle of the bracket, against slow convergence.
            slope = (dear.loss - cheap.loss) / (cheap.cost - dear.cost)
            middle = float(np.sqrt(max(cheap.price, self._stake * 1e-18) * dear.price))
            price = slope if step % 2 == 0 else middle
            if not cheap.price < price < dear.price:
                price = middle
                if not cheap.price < price < dear.price:
                    break
            found = self.at_price(price)
            if found.cost > budget:
                ended = price == slope and found.cost == cheap.cost
                cheap = found
            else:
                ended = price == slope and found.cost == dear.cost
                dear = found
            if ended:
                break
        return self._spend(dear, budget)

    def _spend(self, solution: Solution, budget: int) -> Solution:
        """Improve single subtrees of a solution while the budget allows."""
        for finer in FINER:
            if solution.cost >= budget:
                break
            better = self.at_price(solution.price * finer * (1 - 1e-9))
            solution = self._mixed(solution, better, budget)
        return solution

    def _mixed(self, solution: Solution, better: Solution, budget: int) -> Solution:
        """The solution with those subtrees of the better one that fit, the most gain per cost first."""
        up = self.stakes.up
        new_cost, new_loss = self._cost.copy(), self._loss.copy()  # of `better`, which was solved last
        decide = solution.decide.copy()
        self._weigh(decide)
        state = solution.states(up)
        at = np.empty(len(up), np.int32)
        at = at[: kernels.differences(up, decide, better.decide, state, at)]
        above = np.where(up[at] >= 0, state[np.maximum(up[at], 0)], 0)
        more = new_cost[at, above] - self._cost[at, above]
        gain = self._loss[at, above] - new_loss[at, above]
        ratio = np.where(more > 0, gain / np.maximum(more, 1), np.inf)
        chosen = np.zeros(len(up), np.bool_)
        kernels.pick(up, np.lexsort((at, -ratio)), at, more, gain, budget - solution.cost, chosen)
        kernels.adopt(up, chosen, decide, better.decide)
        cost, loss = self._weigh(decide)
        return Solution(solution.price, int(cost), float(loss), decide)

    def _weigh(self, decide: NDArray[np.uint8]) -> tuple[int, float]:
        stakes, costs = self.stakes, self.costs
        cost, loss = kernels.weigh(
            stakes.up,
            costs.listed,
            costs.wild,
            costs.void,
            costs.zero,
            stakes.leave,
            stakes.own,
            decide,
            self._cost,
            self._loss,
        )
        return int(cost), float(loss)
