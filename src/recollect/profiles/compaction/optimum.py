"""The best map within a budget: an exact optimum for a price, the price searched, what is left over spent.

Hides: the search, and that maps in clear and maps with hashed sets have optima of their own. For each price the optimum
is exact (`kernels.budget.optimum`; with sets `kernels.setbudget`, where bits of members have a price, too). Over all
prices these optima are the corners of the lower convex hull of cost against loss. In clear the search brackets the
budget between two neighbouring corners by the slope between them, which ends at the exact edge. Between corners lie
smaller improvements of single subtrees: those that still fit are taken, the best ratio first, from ever finer optima.
With sets corners lie so close together that the nearest one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import budget as kernels
from recollect.kernels import setbudget as set_kernels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

# About what a key saves at the margin, as a share of what all keys of the budget could: a place to begin the search.
USUAL = 0.03
# No price is so small that a key more is for nothing, nor so small that it vanishes beside a loss of 0.
FREE = 1e-200
STEPS = 100
# The search ends when what lies between two corners is at most this part of the budget; single subtrees fill it.
NEAR = 50
# How much finer the optima get from which what is left of a budget is spent.
FINER = (0.7, 0.4, 0.1, 0.01, 1e-4)
# The same for maps with sets: attempts, the share of the wanted cost that is near enough, and the lowest price.
SET_STEPS = 60
SET_NEAR = 0.002
SET_FREE = 1e-15
MOST_BITS = 48_000 * 8  # in a set, so that lines stay below 64 kB
SAME_COST = 0.02  # two maps whose costs differ by a smaller share are alike in how well a forecast holds


@dataclass(frozen=True, slots=True)
class ExpectedLookups:
    """What can be won and lost at each branch: expected lookups of absent URIs, as shares of all lookups."""

    up: NDArray[np.int32]
    is_open: NDArray[np.bool_]
    leave: Floats
    own: Floats


@dataclass(frozen=True, slots=True)
class SetCosts:
    """What hashed sets cost: a bit of a member, and a line's block without its bits; and what they are made of."""

    bit: float
    anchor: float
    flags: Bytes
    leaves: Ints


@dataclass(frozen=True, slots=True)
class Costs:
    """What lines cost, in keys or in bytes: one number for each branch or, except for `listed`, one for all. Without
    `sets` wildcards carry none."""

    listed: Ints
    wild: Ints
    void: Ints
    zero: Ints
    sets: SetCosts | None = None


@dataclass(frozen=True, slots=True)
class SetBits:
    """The sets of a solution: the bits of each branch's own member and of those below it, and the anchor of its set."""

    bits_in: Bytes
    bits_out: Bytes
    anchor: NDArray[np.int32]


@dataclass(frozen=True)
class Solution:
    """Decisions for all branches and, after them, all absences; what they cost, and the share of lookups they answer
    wrongly. In clear `decide` says what to write in either state of what stands above a branch."""

    price: float
    cost: float
    loss: float
    up: NDArray[np.int32]
    decide: Bytes
    state_with_sets: Bytes | None = None
    bits: SetBits | None = None

    @cached_property
    def state(self) -> Bytes:
        """What an unlisted URI below each branch is answered: SAYS_NO, SAYS_YES or ASKS_SET."""
        if self.state_with_sets is not None:
            return self.state_with_sets
        state = np.zeros(len(self.up), np.uint8)
        kernels.states(self.up, self.decide, state)
        return state

    @cached_property
    def put(self) -> Bytes:
        """What is written for each branch: flags PUT_..."""
        if self.bits is not None:
            return self.decide
        state = self.state
        above = np.where(self.up >= 0, state[np.maximum(self.up, 0)], 0)
        put = np.where(state == 1, self.decide & kernels.PUT_ZERO, 0).astype(np.uint8)
        put[(state == 1) & (above == 0)] |= kernels.PUT_WILD
        put[(state == 0) & (above == 1)] |= kernels.PUT_VOID
        return put

    @property
    def sets(self) -> int:
        """How many hashed sets there are."""
        return 0 if self.bits is None else int(((self.put & set_kernels.PUT_ANCHOR) != 0).sum())


class _Arrays:
    """What the optimum works in."""

    def __init__(self, count: int) -> None:
        self.sums: Floats = np.zeros((count, 4))
        self.cost: Ints = np.empty((count, 2), np.int64)
        self.loss: Floats = np.empty((count, 2))


class _SetArrays:
    """What the optimum with sets works in, and the costs of each branch and absence."""

    def __init__(self, count: int, costs: Costs, sets: SetCosts) -> None:
        ways = set_kernels.WAYS
        self.sums: Floats = np.empty((count, 2 + ways))
        self.bits: Floats = np.empty((count, ways))
        self.ways: Bytes = np.empty((count, 4 + ways), np.uint8)
        self.flags, self.leaves = np.zeros(count, np.uint8), np.zeros(count, np.int64)
        self.flags[: len(sets.flags)], self.leaves[: len(sets.leaves)] = sets.flags, sets.leaves
        self.listed, self.wild, self.void, self.zero = (
            np.ascontiguousarray(np.broadcast_to(one, count), np.int64)
            for one in (costs.listed, costs.wild, costs.void, costs.zero)
        )


def _set_arrays(count: int, costs: Costs) -> _SetArrays | None:
    return None if costs.sets is None else _SetArrays(count, costs, costs.sets)


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
        self.sets = costs.sets
        self._arrays: _Arrays = work._arrays if work else _Arrays(len(expected.up) if costs.sets is None else 0)
        self._set_arrays: _SetArrays | None = work._set_arrays if work else _set_arrays(len(expected.up), costs)

    def like(self, expected: ExpectedLookups | None = None, may_roll: NDArray[np.bool_] | None = None) -> Optimiser:
        """Optima over the same tree for other lookups, or with wildcards at other branches."""
        return Optimiser(
            self.expected if expected is None else expected,
            self.costs,
            self.may_roll if may_roll is None else may_roll,
            self,
        )

    def at_price(self, price: float, *, keep: bool = False) -> Solution:
        """The exact optimum for a price per unit of cost; in clear `keep` what every subtree costs and loses."""
        if self.sets is not None:
            return self._with_sets(price, self.sets)
        expected, costs = self.expected, self.costs
        work, kept = self._arrays, slice(None if keep else 0)
        decide = np.zeros(len(expected.up), np.uint8)
        total, wrong = kernels.optimum(
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
            work.sums,
            work.cost[kept],
            work.loss[kept],
            decide,
        )
        return Solution(price, total, wrong, expected.up, decide)

    def _with_sets(self, price: float, sets: SetCosts) -> Solution:
        expected, count, branches = self.expected, len(self.expected.up), len(sets.flags)
        assert self._set_arrays is not None
        work, may_roll = self._set_arrays, np.ascontiguousarray(self.may_roll).view(np.uint8)
        value = set_kernels.choose(
            expected.up, branches, work.flags, may_roll, work.leaves, work.listed, work.wild, work.void, work.zero,
            expected.leave, expected.own, price, price * sets.bit, price * sets.anchor, MOST_BITS,
            work.sums, work.bits, work.ways,
        )  # fmt: skip
        state, put, bits_in, bits_out = (np.zeros(count, np.uint8) for _ in range(4))
        anchor = np.empty(count, np.int32)
        loss = set_kernels.settle(
            expected.up, branches, work.ways, expected.leave, expected.own, state, put, bits_in, bits_out, anchor
        )
        cost = max(0.0, (value - loss) / price)
        return Solution(price, cost, loss, expected.up, put, state, SetBits(bits_in, bits_out, anchor))

    @cached_property
    def smallest(self) -> Solution:
        """The least that any map without false negatives costs."""
        return self.at_price(2 * self.stake + FREE)

    @cached_property
    def stake(self) -> float:
        """All lookups that can be answered wrongly."""
        return float(self.expected.leave.sum() + self.expected.own.sum())

    def within(
        self, budget: float, *, near: float = 0.0, spend: bool = True, slack: float = SET_NEAR
    ) -> Solution | None:
        """The best map of at most this cost; None if there is none. `near` is a price that may be about right. In clear
        and without `spend` what is left of the budget below the next corner stays; with sets a share of `slack` may."""
        if self.sets is not None:
            return self._near_corner(budget, near, slack)
        feasible, infeasible = self._bracket(budget, near)
        if feasible is None or infeasible is None:
            return feasible
        for step in range(STEPS):
            if infeasible.cost - feasible.cost <= max(1, budget // NEAR):
                break
            # The slope of the edge between both finds the next corner; alternating with a bisection step, against slow
            # convergence.
            slope = (feasible.loss - infeasible.loss) / (infeasible.cost - feasible.cost)
            is_between = infeasible.price < slope < feasible.price
            price = slope if step % 2 and is_between else self._guess(feasible, infeasible, budget)
            if not infeasible.price < price < feasible.price:
                break
            corner = self.at_price(price)
            ended = price == slope and corner.cost in (infeasible.cost, feasible.cost)
            if corner.cost > budget:
                infeasible = corner
            else:
                feasible = corner
            if ended:
                break
        return self._spend(feasible, infeasible, budget) if spend else feasible

    def as_large_as(self, solution: Solution) -> Solution:
        """A map that costs about as much as a solution for other lookups, at about its price."""
        corner = self.at_price(solution.price)
        if abs(corner.cost - solution.cost) <= SAME_COST * solution.cost:
            return corner
        limit = solution.cost if self.sets is None else solution.cost * (1 + 1e-9)
        return self.within(limit, near=solution.price, slack=SAME_COST) or corner

    def prices_between(self, least: float, most: float, count: int) -> Floats:
        """Prices of maps with sets from one that costs about `least` to one that costs about `most`, in rising size."""
        ends = [self.within(least * 1.02), self.within(max(most, least * 1.1))]
        stake = self.stake or 1.0
        high = ends[0].price if ends[0] else stake
        low = min(ends[1].price if ends[1] else high, high)
        return np.geomspace(high, max(low, stake * SET_FREE), count)

    def _near_corner(self, limit: float, near: float, slack: float) -> Solution | None:
        """The best optimum with sets that costs at most this much, or less by a share of `slack`; None if none does."""
        stake = self.stake or 1.0
        high = low = None
        price = near or USUAL * stake / max(1.0, limit)
        step = 4.0
        for _ in range(SET_STEPS):
            corner = self.at_price(price)
            if corner.cost <= limit:
                high = corner
                if corner.cost > limit * (1 - slack) or price < stake * SET_FREE:
                    break
            else:
                low = corner
            if high is None or low is None:
                price = price / step if low is None else price * step
                step = min(step * 2, 64.0)
                if price > 4 * stake:
                    return None
                continue
            if high.price / low.price < 1.0005:
                break
            price = _between(high, low, limit)
        return high

    def _guess(self, feasible: Solution, infeasible: Solution, budget: float) -> float:
        """A price between two, as if cost were a power of price."""
        low, high = np.log(max(infeasible.price, self.stake * 1e-18)), np.log(feasible.price)
        share = np.log(infeasible.cost / budget) / np.log(infeasible.cost / feasible.cost) if feasible.cost else 0.5
        return float(np.exp(low + (high - low) * min(max(share, 0.05), 0.95)))

    def _bracket(self, budget: float, near: float) -> tuple[Solution | None, Solution | None]:
        """A solution within the budget and one beyond it; None for the first if there is none, for the second if
        everything is within."""
        feasible = infeasible = None
        price = near or USUAL * self.stake / max(1, budget)
        while price and not (feasible and infeasible):
            corner = self.at_price(price)
            if corner.cost <= budget:
                feasible, price = corner, price / 4
            else:
                infeasible, price = corner, price * 4
            if not self.stake * 1e-18 < price < 2 * self.stake:
                break
        if feasible is None and (feasible := self.smallest).cost > budget:
            return None, None
        if infeasible is None and (infeasible := self.at_price(FREE)).cost <= budget:
            return infeasible, None
        return feasible, infeasible

    def _spend(self, solution: Solution, beyond: Solution, budget: float) -> Solution:
        """Improve single subtrees of a solution while the budget allows: as the next one beyond the budget has them,
        then as finer and finer ones have."""
        for finer in (beyond.price, *(solution.price * factor for factor in FINER)):
            if solution.cost >= budget:
                break
            solution = self._mixed(solution, self.at_price(finer, keep=True), budget)
        return solution

    def _mixed(self, solution: Solution, better: Solution, budget: float) -> Solution:
        """The solution with those subtrees of the better one that fit, the most gain per cost first."""
        up = self.expected.up
        costs, losses = self._arrays.cost, self._arrays.loss
        decide = solution.decide.copy()
        state = solution.state
        at = np.empty(len(up), np.int32)
        at = at[: kernels.differences(up, decide, better.decide, state, at)]
        above = np.where(up[at] >= 0, state[np.maximum(up[at], 0)], 0)
        cost, loss = costs[at, above], losses[at, above]  # of `better`, which was solved last
        self.weigh(decide)
        more, gain = cost - costs[at, above], losses[at, above] - loss
        ratio = np.where(more > 0, gain / np.maximum(more, 1), np.inf)
        chosen, passed = np.zeros(len(up), np.uint8), np.zeros(len(up), np.uint8)
        left = int(budget - solution.cost)
        kernels.pick(up, np.lexsort((at, -ratio)), at, more, gain, left, chosen, passed)
        kernels.adopt(up, chosen, decide, better.decide)
        return Solution(solution.price, *self.weigh(decide), up, decide)

    def weigh(self, decide: Bytes) -> tuple[int, float]:
        """What given decisions cost and lose, in clear."""
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
            self._arrays.cost,
            self._arrays.loss,
        )


def _between(high: Solution, low: Solution, limit: float) -> float:
    """A price between two, as if cost were a power of price."""
    share = 0.5
    if low.cost > high.cost > 0:
        share = float(np.log(limit / high.cost) / np.log(low.cost / high.cost))
    share = min(max(share, 0.1), 0.9)
    return float(np.exp(np.log(high.price) + share * (np.log(low.price) - np.log(high.price))))
