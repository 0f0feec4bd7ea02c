"""The byte loop of merging: sorted lines of several maps become one text, as long as every line is an ordinary one.

Hides Numba. A line that one map alone has is copied as it stands, so it must be spelled as `ukvs.Writer` would spell
it. Of a key that several lines have, those lines are added up if all hold something exactly or at least, and have no
JSON block. Anything else is not decided here: `join` gives up on the whole text, and `merge` reads it record by record.
Keys must rise from line to line of the result: if they do, no key was missed or parted, however the maps were sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.profiles.linekernels import (
    AT_LEAST,
    EXACT,
    F_BOUNDS,
    F_KEY_LEN,
    F_LINE_LEN,
    F_M,
    F_NEXT,
    F_R,
    F_TAIL,
    LARGEST,
    RECORD,
    compare,
    parse_line,
    put_count,
)
from recollect.profiles.words import copy_bytes, kernel

# Why `join` came back without a text: a line needs more thought, a wildcard or a key out of order all of it.
ODD_LINE, NOT_PLAIN = -1, -2
# Columns of `counts`.
C_RECORDS, C_KEYS, C_DUPLICATES, C_FIRST_LENGTH, C_LAST, C_LAST_LENGTH = 0, 1, 2, 3, 4, 5
N_COUNTS = 6


@kernel
def _is_canonical(data: Any, at: Any, line: Any) -> Any:
    """Whether a parsed line is spelled as a writer spells it."""
    m_at = at + line[F_KEY_LEN] + 1
    end = at + line[F_LINE_LEN]
    if data[m_at] == 48 and m_at + 1 < end and data[m_at + 1] != 47 and data[m_at + 1] != 32:
        return False
    slash = m_at
    while slash < end and data[slash] != 47 and data[slash] != 32:
        slash += 1
    frequency_end = slash
    if slash < end and data[slash] == 47:
        if line[F_R] < 0 or (data[slash + 1] == 48 and slash + 2 < end and data[slash + 2] != 32):
            return False
        while frequency_end < end and data[frequency_end] != 32:
            frequency_end += 1
    if line[F_TAIL]:
        return frequency_end + 1 == at + line[F_TAIL] and data[end - 1] == 125
    return frequency_end == end


@kernel
def _is_addable(line: Any) -> Any:
    """Whether a line holds something, exactly or at least, and says no more than that."""
    m_bound, r_bound = line[F_BOUNDS] & 3, line[F_BOUNDS] >> 2
    return line[F_TAIL] == 0 and line[F_M] > 0 and line[F_R] != 0 and m_bound <= AT_LEAST and r_bound <= AT_LEAST


@kernel
def _add(total: Any, line: Any, disjoint: Any) -> Any:
    """Add a line to a total (M, its bound, R, its bound); False if the sum is too large. See `formats.frequency`."""
    m, r = line[F_M], line[F_R]
    if total[0] > LARGEST - m:
        return False
    total[0] += m
    total[1] |= line[F_BOUNDS] & 3
    bound = line[F_BOUNDS] >> 2
    if r < 0 or total[2] < 0:
        unknown = r < 0 and total[2] < 0
        total[2] = max(r, total[2])
        total[3] = EXACT if unknown else AT_LEAST
    elif disjoint:
        if total[2] > LARGEST - r:
            return False
        total[2] += r
        total[3] |= bound
    else:
        total[2] = max(r, total[2])
        total[3] = AT_LEAST
    return True


@kernel
def _put_total(out: Any, at: Any, total: Any) -> Any:
    out[at] = 32
    at = put_count(out, at + 1, total[0], total[1])
    if total[2] >= 0:
        out[at] = 47
        at = put_count(out, at + 1, total[2], total[3])
    out[at] = 10
    return at + 1


@kernel
def _enqueue(data: Any, queue: Any, others: Any, index: Any, at: Any, lines: Any) -> Any:
    """Put map `index` in its place among the `others` behind the head of the queue, by key, then by number."""
    place = 1
    while place <= others:
        other = queue[place]
        order = compare(data, at[other], lines[other, F_KEY_LEN], at[index], lines[index, F_KEY_LEN])
        if order > 0 or (order == 0 and other > index):
            break
        queue[place - 1] = other
        place += 1
    queue[place - 1] = index


@kernel
def join(
    data: Any, at: Any, ends: Any, lines: Any, queue: Any, total: Any, disjoint: Any, out: Any, counts: Any
) -> Any:
    """Merge the lines data[at[i]:ends[i]] of all maps i into `out`; returns its length, ODD_LINE or NOT_PLAIN.

    `lines`, `queue` and `total` are room to work in: a row of fields per map, a number per map and one more, four.
    """
    waiting = 0
    for i in range(len(at)):
        if at[i] < ends[i]:
            if parse_line(data, at[i], ends[i], np.int64(0), lines[i]) != RECORD:
                return ODD_LINE
            for place in range(waiting, 0, -1):
                queue[place] = queue[place - 1]
            _enqueue(data, queue, waiting, i, at, lines)
            waiting += 1
    written = np.int64(0)
    before = before_length = np.int64(0)
    while waiting:
        first = queue[0]
        start, key_length = at[first], lines[first, F_KEY_LEN]
        rises = written == 0 or compare(data, before, before_length, start, key_length) < 0
        if not rises or data[start + key_length - 1] == 42:
            return NOT_PLAIN
        before, before_length = start, key_length
        if not _is_canonical(data, start, lines[first]):
            return ODD_LINE
        addable = _is_addable(lines[first])
        line_length = lines[first, F_LINE_LEN]
        total[0], total[2] = lines[first, F_M], lines[first, F_R]
        total[1], total[3] = lines[first, F_BOUNDS] & 3, lines[first, F_BOUNDS] >> 2
        last, same = first, 0
        while True:
            at[last] = lines[last, F_NEXT]  # the map whose line was taken goes on
            if at[last] < ends[last]:
                if parse_line(data, at[last], ends[last], np.int64(0), lines[last]) != RECORD:
                    return ODD_LINE
                _enqueue(data, queue, waiting - 1, last, at, lines)
            else:
                waiting -= 1
                for i in range(waiting):
                    queue[i] = queue[i + 1]
            if waiting == 0:
                break
            following = queue[0]
            if compare(data, start, key_length, at[following], lines[following, F_KEY_LEN]) != 0:
                break
            same += 1
            counts[C_DUPLICATES] += following == last
            last = following
            if not (addable and _is_addable(lines[last]) and _add(total, lines[last], disjoint)):
                return ODD_LINE
        size = key_length if same else line_length
        copy_bytes(np.uintp(out.ctypes.data + written), np.uintp(data.ctypes.data + start), np.uintp(size))
        counts[C_LAST] = written
        counts[C_LAST_LENGTH] = key_length
        if written == 0:
            counts[C_FIRST_LENGTH] = key_length
        written += size
        if same:
            written = _put_total(out, written, total)
        else:
            out[written] = 10
            written += 1
        counts[C_RECORDS] += same + 1
        counts[C_KEYS] += 1
    return written
