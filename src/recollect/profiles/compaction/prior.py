"""The prior: expected lookups of what an archive does not hold, without a log.

Hides: the form of the prior. It conserves mass down the tree: all lookups of absent URIs enter at the root; at
each node a share leaves towards children never seen, the rest goes on among the seen ones, more of it to those
that hold more.

One rule of square roots throughout, chosen by principle and not fitted to any archive:
- a node with k children sends 1/√(1+k) to unseen ones: Heaps' law with exponent a half, between a closed set of
  children (0) and one where each lookup names a new child (1);
- a child with n held URIs attracts √n: the geometric mean between "all children alike" (n⁰) and "all held URIs
  alike" (n¹). What goes towards a held leaf is lookups beside or below it, so it leaves at the parent.
  `docs/compaction.md` has the measured accuracy of this and of other exponents on several archives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.kernels import branches as kernels
from recollect.kernels import budget
from recollect.profiles.compaction.branches import Branches

Floats = NDArray[np.float64]

TEMPER = 0.5


@dataclass(frozen=True, slots=True)
class Shares:
    """How lookups that reach a branch go on, as weights: to each branch from its parent, to itself, out of the tree."""

    weight: Floats
    stay: Floats
    leave: Floats


def shares_of(branches: Branches, temper: float = TEMPER) -> Shares:
    """The prior's split at each branch; weights at one branch are relative to each other only."""
    # In place where possible: memory that is touched for the first time costs more than the sums.
    weight = np.maximum(branches.size, 1.0)
    np.sqrt(weight, out=weight) if temper == 0.5 else np.power(weight, temper, out=weight)
    # What a log made a branch of is a leaf to the prior, which knows no log.
    weight[(branches.flags & kernels.GROWN) != 0] = 0.0
    leaves = branches.all_leaves
    stay = ((branches.flags & (kernels.ABSENT | kernels.HELD)) == kernels.ABSENT).astype(float)
    seen = np.bincount(branches.up[1:], weights=weight[1:], minlength=len(branches)).astype(float, copy=False)
    seen += leaves
    seen += stay
    # A share s = 1/√(1+k) of everything is s/(1-s) = 1/(√(1+k)-1) of what is seen; a branch without children has
    # only unseen ones.
    roots = branches.held_children + 1.0
    np.sqrt(roots, out=roots)
    roots -= 1
    roots[roots == 0] = 1.0
    np.divide(seen, roots, out=seen)
    seen[seen == 0] = 1.0
    seen += leaves
    return Shares(weight, stay, seen)


def spread(branches: Branches, shares: Shares) -> tuple[Floats, Floats]:
    """The mass that leaves at each branch, and that asks for the branch itself; both sum to 1 over a whole tree."""
    everything, mass, leave, own = (np.empty(len(branches)) for _ in range(4))
    budget.spread(branches.up, shares.weight, shares.stay, shares.leave, everything, mass, leave, own)
    return leave, own
