"""What people may ask for that an archive does not hold, if nobody kept a log.

Hides: the shape of the guess. It conserves mass down the tree: all lookups of absent URIs enter at the root; at
each node a share leaves towards children never seen, the rest goes on among the seen ones, tempered by how much
each holds.

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
from numba import njit
from numpy.typing import NDArray

from recollect.profiles import branchkernels as kernels
from recollect.profiles.branches import Branches

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
    up = branches.up
    weight = np.maximum(branches.size, 1.0) ** temper
    onward = np.bincount(up[1:], weights=weight[1:], minlength=len(up))
    stay = ((branches.flags & (kernels.ABSENT | kernels.HELD)) == kernels.ABSENT).astype(float)
    seen = onward + branches.leaves + stay
    share = 1 / np.sqrt(1.0 + branches.kinds)
    # With a share s of everything for the unseen, seen ones weigh (1 - s); a branch without children has only
    # unseen ones.
    unseen = np.where(seen > 0, share * seen / np.where(share < 1, 1 - share, 1.0), 1.0)
    return Shares(weight, stay, branches.leaves.astype(float) + unseen)


def spread(branches: Branches, shares: Shares) -> tuple[Floats, Floats]:
    """The mass that leaves at each branch, and that asks for the branch itself; both sum to 1 over a whole tree."""
    leave, own = np.zeros(len(branches)), np.zeros(len(branches))
    _spread(branches.up, shares.weight, shares.stay, shares.leave, leave, own)
    return leave, own


@njit(cache=True, nogil=True)
def _spread(up: NDArray[np.int32], weight: Floats, stay: Floats, out: Floats, leave: Floats, own: Floats) -> None:
    count = up.shape[0]
    everything = stay + out
    for i in range(count - 1, 0, -1):
        everything[up[i]] += weight[i]
    mass = np.zeros(count)
    mass[0] = 1.0
    for i in range(count):
        if i:
            mass[i] = mass[up[i]] * weight[i] / everything[up[i]]
        leave[i] = mass[i] * out[i] / everything[i]
        own[i] = mass[i] * stay[i] / everything[i]
