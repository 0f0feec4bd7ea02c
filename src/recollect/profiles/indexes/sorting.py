"""From batches in any order to the lines of a map: every SURT goes through an external sort.

Hides the records (`kernels.records`) and the runs (`runs`). Items are runs of a batch with their captures and a label;
plain profiles have no labels, decomposed ones (`decompose`) have the values they are decomposed by.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.kernels.records import LineMaker
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.select import Filter
from recollect.profiles.indexes.sinks import Result, Spool, Totals, kept_of


@dataclass(slots=True)
class Records(Result):
    run: bytes = b""


@dataclass(frozen=True, slots=True)
class Items:
    """What a batch gives to be sorted: runs with labels and captures; `label` numbers the texts in `labels`."""

    run: NDArray[np.int32]
    label: NDArray[np.int32]
    captures: NDArray[np.int64]
    labels: tuple[bytes, ...] = (b"",)


def plain_items(batch: Batch, keep: NDArray[np.bool_]) -> Items:
    """The kept runs of a batch, without labels."""
    captures = batch.captures(keep)
    runs = np.flatnonzero(captures).astype(np.int32)
    return Items(runs, np.zeros(len(runs), np.int32), captures[runs])


class SortingSink:
    """Lines from SURTs in any order, by an external sort. `rekey` may change the keys of the kept runs."""

    def __init__(
        self,
        chosen: Filter,
        store: RunStore,
        temp_dir: str | os.PathLike[str] | None = None,
        *,
        items: Callable[[Batch, NDArray[np.bool_]], Items] = plain_items,
        rekey: Callable[[Batch, NDArray[np.int32]], None] | None = None,
    ) -> None:
        self._filter = chosen
        self._store = store
        self._items = items
        self._rekey = rekey
        self._maker = LineMaker()
        self._lines = Spool(temp_dir)

    def work(self, batch: Batch) -> Result:
        keep, dropped = self._filter.apply(batch)
        result = Records(dropped, *kept_of(batch, keep))
        self._sort(batch, keep, result)
        return result

    def _sort(self, batch: Batch, keep: NDArray[np.bool_], result: Records) -> None:
        items = self._items(batch, keep)
        if items.run.size == 0:
            return
        if self._rekey is not None:
            self._rekey(batch, np.unique(items.run))
        result.run = batch.runs().records(items.run, items.label, items.captures, items.labels)

    def take(self, result: Result) -> None:
        assert isinstance(result, Records)
        self._store.add(result.run)

    def finish(self) -> None:
        for text in self._made():
            self._lines.add(text)

    def lines(self) -> Iterator[bytes]:
        return iter(self._lines)

    def _made(self) -> Iterator[bytes]:
        for records in self._store.merged():
            yield self._maker.add(records)
        yield self._maker.finish()

    def totals(self) -> Totals:
        return Totals(self._maker.keys, self._maker.captures, self._maker.uri_rs)

    def close(self) -> None:
        self._store.close()
        self._lines.close()
