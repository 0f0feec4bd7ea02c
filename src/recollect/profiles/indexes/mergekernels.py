"""The byte loops of sorting: records in sorted runs, runs merged, merged records to lines of a map.

Hides Numba. A record is one SURT (and one value of what the counts are decomposed by) with its captures:

    int32 key length | int32 rest length | int32 label length | int32 0 | int64 captures | key | rest | label

ordered by key, then rest, then label, each as bytes. `rest` is what the key leaves of the SURT: its tail when the key
is its beginning, else byte 1 and the whole SURT; so two records of one key have the same rest exactly when they have
the same SURT.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recollect.profiles.indexes.kernels import _compare, _memcmp, _memcpy, _put_number, part

HEADER = 24
# Why `merge` came back.
DONE, FULL = -1, -2


@part
def _rest_class(key_at: Any, surt_at: Any, surt_length: Any, key_length: Any) -> Any:
    """Order of rests that begin differently: nothing, byte 1 (the whole SURT), a tail."""
    if key_at != surt_at:
        return 1
    return 0 if surt_length == key_length else 2


@part
def _word(buf: Any, at: Any, length: Any) -> Any:
    """Eight bytes of a key as a number that orders like them; zeros, which no key has, behind its end."""
    word = np.uint64(0)
    for i in range(8):
        word <<= np.uint64(8)
        if i < length:
            word |= np.uint64(buf[at + i])
    return word


@part
def _compare_items(
    base: Any, labels: Any, a: Any, b: Any, run: Any, label: Any,
    surt_at: Any, surt_length: Any, key_at: Any, key_length: Any, label_ends: Any, words: Any,
) -> Any:  # fmt: skip
    # Mostly the first bytes decide, which lie close together; texts are all over the memory.
    for i in range(3):
        if words[a, i] != words[b, i]:
            return np.int64(-1) if words[a, i] < words[b, i] else np.int64(1)
    r, s = run[a], run[b]
    if r != s:
        order = _compare(base, key_at[r], key_length[r], key_at[s], key_length[s])
        if order != 0:
            return order
        mine = _rest_class(key_at[r], surt_at[r], surt_length[r], key_length[r])
        yours = _rest_class(key_at[s], surt_at[s], surt_length[s], key_length[s])
        if mine != yours:
            return mine - yours
        skip, other = (0, 0) if mine == 1 else (key_length[r], key_length[s])
        order = _compare(base, surt_at[r] + skip, surt_length[r] - skip, surt_at[s] + other, surt_length[s] - other)
        if order != 0:
            return order
    if label[a] == label[b]:
        return np.int64(0)
    p, q = label[a], label[b]
    p_at = label_ends[p - 1] if p > 0 else 0
    q_at = label_ends[q - 1] if q > 0 else 0
    return _compare(labels, p_at, label_ends[p] - p_at, q_at, label_ends[q] - q_at)


@njit(
    "int64(uint8[::1], int32[::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int32[::1], int64[::1], uint8[::1], int64[::1], uint8[::1])",
    cache=True,
    nogil=True,
)
def records(
    buf: Any, surt_at: Any, surt_length: Any, key_at: Any, key_length: Any,
    run: Any, label: Any, captures: Any, labels: Any, label_ends: Any, out: Any,
) -> Any:  # fmt: skip
    """Items (a run, a label, captures) to sorted records, equal ones summed; returns the bytes written."""
    base, names = buf.ctypes.data, labels.ctypes.data
    count = run.size
    order, temp = np.arange(count), np.empty(count, np.int64)
    words = np.empty((count, 3), np.uint64)
    for i in range(count):
        for word in range(3):
            skip: Any = 8 * word
            words[i, word] = _word(buf, key_at[run[i]] + skip, max(np.int64(key_length[run[i]]) - skip, 0))
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle, right = min(left + width, count), min(left + 2 * width, count)
            # Two neighbours that are in order already, as in sorted input, need no merging.
            if middle < right and _compare_items(
                base, names, order[middle - 1], order[middle], run, label,
                surt_at, surt_length, key_at, key_length, label_ends, words,
            ) <= 0:  # fmt: skip
                for k in range(left, right):
                    temp[k] = order[k]
                continue
            i, j = left, middle
            for k in range(left, right):
                if j >= right or (i < middle and _compare_items(
                    base, names, order[i], order[j], run, label,
                    surt_at, surt_length, key_at, key_length, label_ends, words,
                ) <= 0):  # fmt: skip
                    temp[k] = order[i]
                    i += 1
                else:
                    temp[k] = order[j]
                    j += 1
        order, temp = temp, order
        width *= 2
    head, amount = np.zeros(4, np.int32), np.zeros(1, np.int64)
    target = out.ctypes.data
    at = np.int64(0)
    i = 0
    while i < count:
        item = order[i]
        amount[0] = captures[item]
        i += 1
        while i < count and _compare_items(
            base, names, item, order[i], run, label, surt_at, surt_length, key_at, key_length, label_ends, words,
        ) == 0:  # fmt: skip
            amount[0] += captures[order[i]]
            i += 1
        r, name = run[item], label[item]
        whole = key_at[r] != surt_at[r]
        skip = np.int64(0) if whole else np.int64(key_length[r])
        name_at = label_ends[name - 1] if name > 0 else 0
        head[0], head[1] = key_length[r], surt_length[r] - skip + (1 if whole else 0)
        head[2] = label_ends[name] - name_at
        _memcpy(np.uintp(target + at), np.uintp(head.ctypes.data), np.uintp(16))
        _memcpy(np.uintp(target + at + 16), np.uintp(amount.ctypes.data), np.uintp(8))
        at += HEADER
        _memcpy(np.uintp(target + at), np.uintp(base + key_at[r]), np.uintp(key_length[r]))
        at += key_length[r]
        if whole:
            out[at] = 1
            at += 1
        _memcpy(np.uintp(target + at), np.uintp(base + surt_at[r] + skip), np.uintp(surt_length[r] - skip))
        at += surt_length[r] - skip
        _memcpy(np.uintp(target + at), np.uintp(names + name_at), np.uintp(head[2]))
        at += head[2]
    return at


@part
def _compare_records(a: Any, b: Any, mine: Any, yours: Any) -> Any:
    """Order of the records at two addresses; `mine` and `yours` are room for their heads."""
    _memcpy(np.uintp(mine.ctypes.data), a, np.uintp(16))
    _memcpy(np.uintp(yours.ctypes.data), b, np.uintp(16))
    p, q = a + np.uintp(HEADER), b + np.uintp(HEADER)
    for which in range(3):
        order = _memcmp(p, q, np.uintp(min(mine[which], yours[which])))
        if order != 0:
            return np.int64(order)
        if mine[which] != yours[which]:
            return np.int64(mine[which]) - np.int64(yours[which])
        p, q = p + np.uintp(mine[which]), q + np.uintp(yours[which])
    return np.int64(0)


@part
def _size(address: Any, head: Any) -> Any:
    _memcpy(np.uintp(head.ctypes.data), address, np.uintp(16))
    return np.int64(HEADER) + head[0] + head[1] + head[2]


@part
def _sift(heap: Any, size: Any, at: Any, heads: Any, mine: Any, yours: Any) -> None:
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _compare_records(heads[heap[child + 1]], heads[heap[child]], mine, yours) < 0:
            child += 1
        if _compare_records(heads[heap[at]], heads[heap[child]], mine, yours) <= 0:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@njit("int64(uintp[::1], uintp[::1], int64[::1], int64[::1], uint8[::1])", cache=True, nogil=True)
def merge(heads: Any, ends: Any, heap: Any, state: Any, out: Any) -> Any:
    """Merge runs into `out`, equal records summed, until done, `out` is full, or a run (returned) needs more.

    `heads` are the addresses of each run's next record, `ends` where its text in memory ends. `state`: runs in the
    heap, bytes in `out`, where the last record in `out` begins (-1: none). A run whose text is used up is still in the
    heap, at its top.
    """
    mine, yours, amount = np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(2, np.int64)
    size, to, last = state[0], state[1], state[2]
    target = np.uintp(out.ctypes.data)
    result = np.int64(DONE)
    while size > 0:
        top = heap[0]
        if heads[top] >= ends[top]:
            result = top
            break
        length = _size(heads[top], mine)
        if last >= 0 and _compare_records(target + np.uintp(last), heads[top], mine, yours) == 0:
            _memcpy(np.uintp(amount.ctypes.data), target + np.uintp(last + 16), np.uintp(8))
            _memcpy(np.uintp(amount.ctypes.data + 8), heads[top] + np.uintp(16), np.uintp(8))
            amount[0] += amount[1]
            _memcpy(target + np.uintp(last + 16), np.uintp(amount.ctypes.data), np.uintp(8))
        else:
            if to + length > out.size:
                result = np.int64(FULL)
                break
            _memcpy(target + np.uintp(to), heads[top], np.uintp(length))
            last = to
            to += length
        heads[top] += np.uintp(length)
        if heads[top] < ends[top]:
            _sift(heap, size, 0, heads, mine, yours)
    state[0], state[1], state[2] = size, to, last
    return result


@njit("int64(uint8[::1], int64)", cache=True, nogil=True)
def whole_records(buf: Any, filled: Any) -> Any:
    """How many of the first `filled` bytes are whole records."""
    head = np.zeros(4, np.int32)
    base = np.uintp(buf.ctypes.data)
    at = np.int64(0)
    while at + HEADER <= filled:
        size = _size(base + np.uintp(at), head)
        if at + size > filled:
            break
        at += size
    return at


@njit("void(uintp[::1], int64[::1], int64[::1])", cache=True, nogil=True)
def heapify(heads: Any, heap: Any, state: Any) -> None:
    """Put the heap in order after runs came, went or were filled again."""
    mine, yours = np.zeros(4, np.int32), np.zeros(4, np.int32)
    for at in range(state[0] // 2 - 1, -1, -1):
        _sift(heap, state[0], at, heads, mine, yours)


@part
def _put_open(record: Any, length: Any, state: Any, out: Any, to: Any) -> Any:
    _memcpy(np.uintp(out.ctypes.data + to), record + np.uintp(HEADER), np.uintp(length))
    to += length
    out[to] = 32
    to = _put_number(out, to + 1, state[1])
    out[to] = 47
    to = _put_number(out, to + 1, state[2])
    out[to] = 10
    state[3] += 1
    state[4] += state[1]
    state[5] += state[2]
    return to + 1


@njit("int64(uint8[::1], int64, uint8[::1], int64[::1], uint8[::1])", cache=True, nogil=True)
def lines(merged: Any, size: Any, before: Any, state: Any, out: Any) -> Any:
    """Merged records to lines `key M/R`; the last key stays open in `before` and `state`. Returns the bytes written.

    `state`: 1 if a key is open, its captures, its URI-Rs, keys written so far, all captures, all URI-Rs.
    `before` holds the record read last.
    """
    mine, yours, amount = np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(1, np.int64)
    base = np.uintp(merged.ctypes.data)
    previous = np.uintp(before.ctypes.data)
    to, at = np.int64(0), np.int64(0)
    while at < size:
        here = base + np.uintp(at)
        length = _size(here, mine)
        _memcpy(np.uintp(amount.ctypes.data), here + np.uintp(16), np.uintp(8))
        same_key = False
        if state[0] == 1:
            _memcpy(np.uintp(yours.ctypes.data), previous, np.uintp(16))
            text, other = here + np.uintp(HEADER), previous + np.uintp(HEADER)
            same_key = mine[0] == yours[0] and _memcmp(text, other, np.uintp(mine[0])) == 0
            if not same_key:
                to = _put_open(previous, yours[0], state, out, to)
            elif mine[1] == yours[1]:
                tail = np.uintp(mine[0])
                if _memcmp(text + tail, other + tail, np.uintp(mine[1])) == 0:
                    state[2] -= 1
        if not same_key:
            state[0], state[1], state[2] = 1, 0, 0
        state[1] += amount[0]
        state[2] += 1
        previous = here
        at += length
    if size > 0:
        _memcpy(np.uintp(before.ctypes.data), previous, np.uintp(_size(previous, mine)))
    return to


@njit("int64(uint8[::1], int64[::1], uint8[::1])", cache=True, nogil=True)
def last_line(before: Any, state: Any, out: Any) -> Any:
    """The line of the key that is still open."""
    if state[0] == 0:
        return np.int64(0)
    head = np.zeros(4, np.int32)
    record = np.uintp(before.ctypes.data)
    _memcpy(np.uintp(head.ctypes.data), record, np.uintp(16))
    state[0] = 0
    return _put_open(record, head[0], state, out, 0)
