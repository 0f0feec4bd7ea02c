"""What changed from one map to the next: lines that are in one of them only, counted by their keys.

Hides: windows. Both maps are sorted, so they are cut at the same keys and compared piece by piece, each as two sets of
lines; memory is that of a window. `recollect diff` says what a change means; here it only counts, at the speed of
sets: 0.1 s for 200,000 lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.kernels.search import MapSearch
from recollect.maps.plainmap import PlainMap, open_plain

WINDOW = 1 << 24  # bytes


def line_changes(old: Path | None, new: Path) -> tuple[int, int, int]:
    """Keys that were added, changed and removed."""
    if old is None:
        with open_plain(new) as plain:
            return int(np.count_nonzero(plain.array[plain.start :] == ord("\n"))), 0, 0
    added = changed = removed = 0
    with open_plain(old) as before, open_plain(new) as after:
        for first, second in _windows(before, after):
            old_lines, new_lines = set(first.splitlines()), set(second.splitlines())
            gone = {line.split(None, 1)[0] for line in old_lines - new_lines}
            come = {line.split(None, 1)[0] for line in new_lines - old_lines}
            added += len(come - gone)
            changed += len(come & gone)
            removed += len(gone - come)
    return added, changed, removed


def _windows(before: PlainMap, after: PlainMap) -> Iterator[tuple[bytes, bytes]]:
    """Pieces of two sorted maps that hold the same range of keys."""
    search = MapSearch(after.data, after.start)
    at, beside, size = before.start, after.start, len(before.data)
    while at < size or beside < len(after.data):
        piece = before.data[at : at + WINDOW].tobytes()
        end, until = size, len(after.data)
        # Up to the last whole line of a window; a line with sets has less than 80 kB.
        if at + WINDOW < size and (last := piece.rfind(b"\n", 0, piece.rfind(b"\n")) + 1):
            end, until = at + last, search.place(piece[last:].split(None, 1)[0])
        yield before.data[at:end].tobytes(), after.data[beside:until].tobytes()
        at, beside = end, until
