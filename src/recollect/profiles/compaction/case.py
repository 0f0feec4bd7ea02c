"""A map to be compacted within a budget, and what people ask of it: the input of the optimum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.errors import RecollectError, UsageError
from recollect.formats.containers import COMPRESSIONS
from recollect.formats.logs import LogEntry
from recollect.profiles.compaction.branches import Branches
from recollect.profiles.compaction.demand import Demand, asked_in, demand_over
from recollect.profiles.compaction.forecast import Forecaster, Smoothing
from recollect.profiles.compaction.optimum import Costs, ExpectedLookups, SetCosts
from recollect.profiles.compaction.prior import shares_of, spread

LIMITS = ("max_cost", "max_keys", "max_bytes", "min_accuracy")
# Bytes of a member's bit in the file: base64 has 6 bits a byte, which compression takes back; parts have a directory,
# and equations need a few bits more than there are. Where a budget counts keys, a bit counts for next to nothing.
_BIT = {"bytes": 1.05 / 6, "novel": 1.06 / 8, "keys": 1e-9}
ANCHOR_BYTES = 52  # of a line's JSON block without its bits


class TooSmall(RecollectError):
    """A budget that no map meets."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the result may be at most, or how good it must be. Exactly one is given; `max_cost` is keys per URI-R, and
    `min_accuracy` a share of lookups."""

    max_cost: float | None = None
    max_keys: int | None = None
    max_bytes: int | None = None
    min_accuracy: float | None = None
    rollup_tlds: bool = False
    sets: bool = False  # wildcards may carry hashed sets

    def __post_init__(self) -> None:
        given = [limit for name in LIMITS if (limit := getattr(self, name)) is not None]
        if len(given) != 1:
            raise UsageError("give one budget", hint="one of --max-cost, --max-keys, --max-bytes, --min-accuracy")
        if not given[0] > 0:
            raise UsageError("a budget must be above zero")
        if self.min_accuracy is not None and self.min_accuracy > 1:
            raise UsageError("no accuracy is above 100%")

    def unit(self, suffix: str) -> str:
        """In what the costs of lines are counted: `keys`, `bytes`, or `novel` ones of a compressed file."""
        if self.max_cost is not None or self.max_keys is not None:
            return "keys"
        return "novel" if suffix in COMPRESSIONS else "bytes"

    def keys(self, uri_rs: int) -> int:
        """The budget in keys; 0 if it is another one."""
        if self.max_cost is not None:
            return int(self.max_cost * uri_rs + 1e-9)
        return self.max_keys or 0


class Case:
    """A map and what people ask of it. Absences of the log stand after the branches."""

    def __init__(self, branches: Branches, demand: Demand | None = None) -> None:
        self.branches, self.demand = branches, demand
        self._forecaster: Forecaster | None = None
        self.up = branches.up if demand is None else np.concatenate((branches.up, demand.absence_at))

    @classmethod
    def of(cls, branches: Branches, lookups: Iterable[LogEntry] | None, policy: str = "HxPx") -> Case:
        """The case of a map and, if there is one, its log."""
        if lookups is None:
            return cls(branches)
        demand = demand_over(branches, asked_in(lookups, policy))
        return cls(demand.branches, demand)

    def expected(self, smoothing: Smoothing) -> ExpectedLookups:
        """What can be lost at each branch."""
        if self.demand is not None:
            self._forecaster = self._forecaster or Forecaster(self.demand, self.demand.tally())
            return self._forecaster.expected(smoothing)
        leave, own = spread(self.branches, shares_of(self.branches, smoothing.temper))
        # Below a wildcard of the input it is unknown what is absent, so no answer there is certainly wrong.
        leave[self.branches.is_open] = 0.0
        return ExpectedLookups(self.up, self.branches.is_open, leave, own)

    def costs(self, unit: str, *, sets: bool = False) -> Costs:
        """Of every line: 1 (`keys`), its bytes (`bytes`), or those it does not share with its parent (`novel`),
        which is about what remains of it in a compressed file; with `sets` also of hashed sets."""
        costs = self._lines(unit)
        if not sets:
            return costs
        anchor = 0.0 if unit == "keys" else float(ANCHOR_BYTES)
        return replace(costs, sets=SetCosts(_BIT[unit], anchor, self.branches.flags, self.branches.leaves))

    def _lines(self, unit: str) -> Costs:
        branches = self.branches
        if unit == "keys":
            one = np.ones(1, np.int64)
            absences = np.zeros(len(self.up) - len(branches), np.int64)
            return Costs(np.concatenate((branches.keys, absences)), one, one, one)
        costs = Costs(branches.line_bytes, branches.wildcard_bytes(), branches.void_bytes(), branches.zero_bytes())
        if unit == "novel":
            shared = branches.shared_bytes()
            own = branches.keys - branches.leaves
            listed = costs.listed - branches.leaves * branches.name_length - own * shared
            costs = Costs(listed, costs.wild - shared, costs.void - shared, costs.zero - shared)
        if self.demand is None:
            return costs
        void = self.demand.log.name_length[self.demand.absence_node].astype(np.int64) + 5
        if unit == "novel":
            void -= branches.name_length[self.demand.absence_at]
        return _with_absences(costs, void)

    def may_roll(self, top: int) -> NDArray[np.bool_]:
        """Which branches may have a wildcard; see `Branches.may_roll`."""
        free = self.branches.may_roll(top)
        return np.concatenate((free, np.ones(len(self.up) - len(free), np.bool_)))

    def absent(self, number: int) -> bytes:
        """The key that covers an absence of the log."""
        assert self.demand is not None
        return self.demand.absent(number)


def _with_absences(costs: Costs, void: NDArray[np.int64]) -> Costs:
    """Costs of the branches and of voids over absences."""
    return Costs(
        np.concatenate((costs.listed, np.zeros(len(void), np.int64))),
        np.concatenate((costs.wild, void)),
        np.concatenate((costs.void, void)),
        np.concatenate((costs.zero, void)),
    )
