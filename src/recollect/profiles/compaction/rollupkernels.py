"""Byte loops of compaction by weights: which nodes roll up, and what is written; see `weights` for the rules.

Hides: the bookkeeping of one pass. `compact` walks the tree (`treekernels`) and keeps, on a stack, the nodes that can
still go on. Output lines wait as *entries* while a node above them is open that may still roll up; a node that rolls
up takes back the entries below it. When no such node is open, the entries are written. Everything it knows lives in
arrays that the caller owns, so it can come back for more room, to hand over output, or to let others run, and go on
where it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.profiles.compaction.treekernels import (
    HOST,
    PATH,
    body_length,
    is_lone,
    is_on_path,
    next_node,
    stated_total,
    wildcard_kind,
)
from recollect.profiles.linekernels import (
    F_BOUNDS,
    F_KEY_LEN,
    F_LINE_LEN,
    F_M,
    F_NEXT,
    F_R,
    F_TAIL,
    HEADER,
    ODD,
    RECORD,
    add_counts,
    closes,
    common_bytes,
    line_end,
    parse_line,
    put_count,
)
from recollect.profiles.words import copy_bytes, inlined, kernel

# Registers of a compaction, kept between calls.
(
    R_AT,
    R_TOP,
    R_ENTRIES,
    R_FLUSHED,
    R_OUT,
    R_EVENTS,
    R_PREVIOUS,
    R_PREVIOUS_LEN,
    R_PAREN,
    R_LONE,
    R_PENDING,
    R_NEXT_ID,
    R_LINES,
    R_WRITTEN,
    R_ROLLUPS,
    R_PAUSE,
) = range(16)
N_REGISTERS = 16

# Columns of the stack of open nodes.
(
    S_LEN,
    S_KIND,
    S_DEPTH,
    S_PARENT,
    S_REF,
    S_CHILDREN,
    S_ROLLABLE,
    S_ROLLED,
    S_COVERED,
    S_HELD,
    S_START,
    S_OWN,
    S_OWN_M,
    S_OWN_R,
    S_OWN_B,
    S_SUM_M,
    S_SUM_R,
    S_SUM_B,
    S_JSON,
    S_WANTED,
    S_BARE,
) = range(21)
N_STACK = 21

# Columns of the entries: output lines that may still be taken back.
E_OFF, E_KEY_LEN, E_LINE_LEN, E_FLAGS, E_M, E_R, E_B, E_JSON = 0, 1, 2, 3, 4, 5, 6, 7
N_ENTRY = 8
IS_ROLLUP, IS_VOID, IS_WILD, IS_IMPURE, IS_DEAD, IS_HOST = 1, 2, 4, 8, 16, 32

# Events for the caller, who merges JSON: a line's block or a wildcard's own (node, where it begins, where it ends), a
# node closed (node, parent or 0, flags), a rolled-up line written (node, where in the output its block belongs).
EVENT_LINE, EVENT_OWN, EVENT_CLOSE, EVENT_EMIT = 0, 1, 2, 3
# The node rolled up and stays; something held below it has no block of its own.
CLOSE_KEPT, CLOSE_BARE = 1, 2

# Why `compact` came back; ODD and the order faults end it, the others ask for room or give the caller a turn.
DONE, UNSORTED, OUT_FULL, ENTRIES_FULL, STACK_FULL, EVENTS_FULL, PAUSED = 0, -1, 10, 11, 12, 13, 14

OWN_NONE, OWN_TOTAL, OWN_VOID = 0, 1, 2


@inlined
def _total(stack: Any, slot: Any) -> Any:
    """(URI-Ms, URI-Rs, bounds) of a node: its wildcard's own total, else the sum of what is below."""
    m, r, b = stack[slot, S_SUM_M], stack[slot, S_SUM_R], stack[slot, S_SUM_B]
    if stack[slot, S_OWN] != OWN_TOTAL:
        return m, r, b
    own = stack[slot, S_OWN_B]
    m, m_bound = stated_total(stack[slot, S_OWN_M], own & 3, m, b & 3)
    r, r_bound = stated_total(stack[slot, S_OWN_R], own >> 2, r, b >> 2)
    return m, r, m_bound | (r_bound << 2)


@inlined
def _add_to(stack: Any, slot: Any, m: Any, r: Any, b: Any) -> Any:
    m, m_bound = add_counts(stack[slot, S_SUM_M], stack[slot, S_SUM_B] & 3, m, b & 3)
    r, r_bound = add_counts(stack[slot, S_SUM_R], stack[slot, S_SUM_B] >> 2, r, b >> 2)
    stack[slot, S_SUM_M] = m
    stack[slot, S_SUM_R] = r
    stack[slot, S_SUM_B] = m_bound | (r_bound << 2)


@kernel
def _below(data: Any, entries: Any, i: Any, name_len: Any, kind: Any) -> Any:
    """Whether an entry that begins with a node's name is of its subtree."""
    if entries[i, E_KEY_LEN] == name_len:
        return True
    byte = data[entries[i, E_OFF] + name_len]
    if kind == PATH:
        return byte == 47
    return byte == 41 or byte == 44 or byte == 58


@kernel
def _copy_row(table: Any, to: Any, row: Any) -> Any:
    for column in range(table.shape[1]):
        table[to, column] = table[row, column]


@kernel
def _roll(data: Any, regs: Any, stack: Any, entries: Any, slot: Any) -> Any:
    """Decide that a node rolls up: take back the entries below it, but for voids, and cover the open nodes below
    it."""
    stack[slot, S_ROLLED] = 1
    size = stack[slot, S_LEN]
    kind = stack[slot, S_KIND]
    out = stack[slot, S_START]
    upper = slot + 1
    for i in range(stack[slot, S_START], regs[R_ENTRIES]):
        while upper <= regs[R_TOP] and stack[upper, S_START] <= i:
            stack[upper, S_START] = out
            upper += 1
        flags = entries[i, E_FLAGS]
        own = flags & IS_WILD and entries[i, E_KEY_LEN] == size + 2
        keep = flags & IS_VOID and not flags & IS_IMPURE and not own
        if keep or not _below(data, entries, i, size, kind):
            if out < i:
                _copy_row(entries, out, i)
            out += 1
    regs[R_ENTRIES] = out
    while upper <= regs[R_TOP]:
        stack[upper, S_START] = out
        upper += 1
    for above in range(slot + 1, regs[R_TOP] + 1):
        if not stack[above, S_COVERED]:
            stack[above, S_COVERED] = 1
            regs[R_PENDING] -= stack[above, S_ROLLABLE]


@kernel
def _insert_rollup(data: Any, regs: Any, stack: Any, entries: Any, slot: Any) -> Any:
    """Put the wildcard of a rolled-up node where it belongs among the entries that outlived it."""
    size = stack[slot, S_LEN]
    separator = 47 if stack[slot, S_KIND] == PATH else 44
    at = regs[R_ENTRIES]
    while at > stack[slot, S_START]:
        length = entries[at - 1, E_KEY_LEN]
        off = entries[at - 1, E_OFF]
        if length == size or data[off + size] < separator:
            break
        if data[off + size] == separator and (length == size + 1 or data[off + size + 1] < 42):
            break
        _copy_row(entries, at, at - 1)
        at -= 1
    entries[at, E_OFF] = stack[slot, S_REF]
    entries[at, E_KEY_LEN] = size + 2
    entries[at, E_FLAGS] = IS_ROLLUP | IS_WILD | (0 if separator == 47 else IS_HOST)
    m, r, b = _total(stack, slot)
    entries[at, E_M] = m
    entries[at, E_R] = r
    entries[at, E_B] = b
    entries[at, E_JSON] = stack[slot, S_JSON]
    regs[R_ENTRIES] += 1


@inlined
def _close(data: Any, regs: Any, stack: Any, entries: Any, events: Any, tally: Any) -> Any:
    """Take the top node off the stack: its total goes to its parent, its wildcard to the entries if it rolled up."""
    slot = regs[R_TOP]
    up = stack[slot, S_PARENT]
    kept = stack[slot, S_ROLLED] and not stack[slot, S_COVERED]
    if stack[slot, S_CHILDREN] and stack[slot, S_DEPTH] < tally.shape[1]:
        tally[int(stack[slot, S_KIND] == PATH), stack[slot, S_DEPTH], 0] += 1
        tally[int(stack[slot, S_KIND] == PATH), stack[slot, S_DEPTH], 1] += stack[slot, S_CHILDREN]
    if stack[slot, S_OWN] == OWN_VOID and stack[slot, S_HELD]:
        # A void with something held below it would hide that, should a wider wildcard replace what is held.
        for i in range(regs[R_ENTRIES] - 1, stack[slot, S_START] - 1, -1):
            flags = entries[i, E_FLAGS]
            own = flags & IS_WILD and flags & IS_VOID and entries[i, E_KEY_LEN] == stack[slot, S_LEN] + 2
            if own and _below(data, entries, i, stack[slot, S_LEN], stack[slot, S_KIND]):
                entries[i, E_FLAGS] |= IS_IMPURE | (IS_DEAD if stack[slot, S_COVERED] else 0)
                break
    if kept:
        _insert_rollup(data, regs, stack, entries, slot)
        regs[R_ROLLUPS] += 1
    if stack[slot, S_HELD]:
        m, r, b = _total(stack, slot)
        _add_to(stack, up, m, r, b)
        stack[up, S_BARE] |= stack[slot, S_BARE]
    if stack[slot, S_ROLLABLE] and not stack[slot, S_COVERED]:
        regs[R_PENDING] -= 1
    if stack[slot, S_JSON]:
        if stack[up, S_JSON] == 0 and stack[up, S_WANTED]:
            regs[R_NEXT_ID] += 1
            stack[up, S_JSON] = regs[R_NEXT_ID]
        events[regs[R_EVENTS], 0] = EVENT_CLOSE
        events[regs[R_EVENTS], 1] = stack[slot, S_JSON]
        events[regs[R_EVENTS], 2] = stack[up, S_JSON]
        events[regs[R_EVENTS], 3] = (CLOSE_KEPT if kept else 0) | (CLOSE_BARE if stack[slot, S_BARE] else 0)
        regs[R_EVENTS] += 1
    regs[R_TOP] -= 1


@kernel
def _flush(data: Any, regs: Any, entries: Any, out: Any, events: Any) -> Any:
    """Write the entries; returns DONE, or what there was too little room for."""
    while regs[R_FLUSHED] < regs[R_ENTRIES]:
        i = regs[R_FLUSHED]
        flags = entries[i, E_FLAGS]
        if not flags & IS_DEAD:
            off = entries[i, E_OFF]
            rolled = flags & IS_ROLLUP
            size = entries[i, E_KEY_LEN] - 2 if rolled else entries[i, E_LINE_LEN]
            at = regs[R_OUT]
            if at + size + 64 > out.shape[0]:
                return OUT_FULL
            copy_bytes(np.uintp(out.ctypes.data + at), np.uintp(data.ctypes.data + off), np.uintp(size))
            at += size
            if rolled:
                out[at] = 44 if flags & IS_HOST else 47
                out[at + 1] = 42
                out[at + 2] = 32
                at = put_count(out, at + 3, entries[i, E_M], entries[i, E_B] & 3)
                if entries[i, E_R] >= 0 or entries[i, E_M] < 0:
                    out[at] = 47
                    at = put_count(out, at + 1, entries[i, E_R], entries[i, E_B] >> 2)
                if entries[i, E_JSON]:
                    if regs[R_EVENTS] >= events.shape[0]:
                        return EVENTS_FULL
                    events[regs[R_EVENTS], 0] = EVENT_EMIT
                    events[regs[R_EVENTS], 1] = entries[i, E_JSON]
                    events[regs[R_EVENTS], 2] = at
                    regs[R_EVENTS] += 1
            out[at] = 10
            regs[R_OUT] = at + 1
            regs[R_WRITTEN] += 1
        regs[R_FLUSHED] += 1
    regs[R_FLUSHED] = 0
    regs[R_ENTRIES] = 0
    return DONE


@inlined
def _open(
    data: Any,
    regs: Any,
    stack: Any,
    slot_up: Any,
    off: Any,
    size: Any,
    kind: Any,
    depth: Any,
    host_cutoffs: Any,
    path_cutoffs: Any,
) -> Any:
    """Push a node.

    A host that is first met through a port, so of which nothing but ports is held, does not roll up: its wildcard
    (`x,*`) would belong before lines (`x-y)`) that have been written.
    """
    regs[R_TOP] += 1
    slot = regs[R_TOP]
    for column in range(N_STACK):
        stack[slot, column] = 0
    stack[slot, S_LEN] = size
    stack[slot, S_KIND] = kind
    stack[slot, S_DEPTH] = depth
    stack[slot, S_PARENT] = slot_up
    stack[slot, S_REF] = off
    stack[slot, S_START] = regs[R_ENTRIES]
    stack[slot, S_COVERED] = stack[slot_up, S_COVERED] or stack[slot_up, S_ROLLED]
    if (kind == HOST and depth < len(host_cutoffs) and host_cutoffs[depth] < np.inf and data[off + size] != 58) or (
        kind == PATH and depth < len(path_cutoffs) and path_cutoffs[depth] < np.inf
    ):
        stack[slot, S_ROLLABLE] = 1
        if not stack[slot, S_COVERED]:
            regs[R_PENDING] += 1
    stack[slot, S_WANTED] = stack[slot, S_ROLLABLE] or stack[slot_up, S_WANTED]
    return slot


@inlined
def _hold(data: Any, regs: Any, stack: Any, entries: Any, slot: Any, host_cutoffs: Any, path_cutoffs: Any) -> Any:
    """Something is held at a node: count it as a child where it is new, and roll up parents that have too many."""
    while slot > 0 and not stack[slot, S_HELD]:
        stack[slot, S_HELD] = 1
        up = stack[slot, S_PARENT]
        kind = stack[up, S_KIND]
        if kind == PATH or stack[slot, S_KIND] != PATH:
            stack[up, S_CHILDREN] += 1
            if stack[up, S_ROLLABLE] and not stack[up, S_ROLLED] and not stack[up, S_COVERED]:
                cutoffs = path_cutoffs if kind == PATH else host_cutoffs
                if stack[up, S_CHILDREN] > cutoffs[stack[up, S_DEPTH]]:
                    _roll(data, regs, stack, entries, up)
        slot = up


@kernel
def compact(
    data: Any,
    stop: Any,
    regs: Any,
    fields: Any,
    stack: Any,
    entries: Any,
    out: Any,
    events: Any,
    tally: Any,
    host_cutoffs: Any,
    path_cutoffs: Any,
    max_host: Any,
    max_path: Any,
) -> Any:
    """Compact the lines from regs[R_AT] up to `stop`; returns DONE, a fault, or what to do before calling again.

    `host_cutoffs[d]` and `path_cutoffs[d]`: a node of depth d rolls up when it has more children; infinity means
    never. `tally[0 for hosts, 1 for paths, d]` counts nodes of depth d that have children, and those children.
    """
    while True:
        if regs[R_PENDING] == 0 and regs[R_ENTRIES] > 0:
            status = _flush(data, regs, entries, out, events)
            if status != DONE:
                return status
        if regs[R_ENTRIES] + regs[R_TOP] + 2 >= entries.shape[0]:
            return ENTRIES_FULL
        if regs[R_EVENTS] + regs[R_TOP] + 2 >= events.shape[0]:
            return EVENTS_FULL
        at = regs[R_AT]
        ended = at >= stop
        previous = regs[R_PREVIOUS]
        common = np.int64(-1)  # shorter than every name, so that the end closes all nodes
        size = np.int64(0)
        if not ended:
            if at >= regs[R_PAUSE]:
                return PAUSED
            common = np.int64(0)
            if previous >= 0:
                common = common_bytes(data, previous, at, min(regs[R_PREVIOUS_LEN], stop - at))
            line = parse_line(data, at, stop, common, fields)
            if line in (ODD, HEADER):  # headers stand before all records
                return ODD
            if line != RECORD:
                regs[R_AT] = fields[F_NEXT]
                continue
            size = fields[F_KEY_LEN]
            if previous >= 0 and (
                size == common or (common < regs[R_PREVIOUS_LEN] and data[at + common] < data[previous + common])
            ):
                return UNSORTED
        while regs[R_TOP] > 0:
            top = regs[R_TOP]
            name = stack[top, S_LEN]
            last = 47 if stack[top, S_KIND] == PATH else 58
            if name <= common and (name == size or data[at + name] <= last):
                break
            _close(data, regs, stack, entries, events, tally)
        if regs[R_PENDING] == 0 and regs[R_ENTRIES] > 0:
            continue  # closing has settled everything: flush first, then take this line
        if ended:
            return DONE
        if regs[R_TOP] + size + 2 >= stack.shape[0]:
            return STACK_FULL
        if previous < 0 or common <= regs[R_PAREN]:
            paren = np.int64(0)
            while paren < size and data[at + paren] != 41:
                paren += 1
            regs[R_PAREN] = paren
            regs[R_LONE] = is_lone(data, at, paren - 2 if paren == size and data[at + size - 1] == 42 else paren)
        paren = regs[R_PAREN]
        lone = regs[R_LONE] != 0
        wildcard = wildcard_kind(data, at, size)
        body = body_length(data, at, size, wildcard, paren)
        slot = regs[R_TOP]
        while not is_on_path(data, at, stack[slot, S_LEN], stack[slot, S_KIND], body, paren, lone):
            slot -= 1
        while stack[slot, S_LEN] < body:
            name, kind, depth = next_node(
                data,
                at,
                stack[slot, S_LEN],
                stack[slot, S_KIND],
                stack[slot, S_DEPTH],
                body,
                paren,
                lone,
                max_host,
                max_path,
            )
            slot = _open(data, regs, stack, slot, at, name, kind, depth, host_cutoffs, path_cutoffs)
        _take(regs, stack, entries, events, slot, at, wildcard, fields)
        bound = fields[F_BOUNDS] & 3
        if not (fields[F_M] == 0 and closes(bound)):
            _hold(data, regs, stack, entries, slot, host_cutoffs, path_cutoffs)
        regs[R_PREVIOUS] = at
        regs[R_PREVIOUS_LEN] = size
        regs[R_LINES] += 1
        regs[R_AT] = fields[F_NEXT]


@inlined
def _take(regs: Any, stack: Any, entries: Any, events: Any, slot: Any, at: Any, wildcard: Any, fields: Any) -> Any:
    """Add a line to its node and, unless it is covered, to the entries."""
    size = fields[F_KEY_LEN]
    bound = fields[F_BOUNDS] & 3
    void = fields[F_M] == 0 and closes(bound)
    rolled = stack[slot, S_ROLLED] and not stack[slot, S_COVERED]
    if (void and not (rolled and wildcard >= 0)) or not (stack[slot, S_COVERED] or stack[slot, S_ROLLED]):
        i = regs[R_ENTRIES]
        entries[i, E_OFF] = at
        entries[i, E_KEY_LEN] = size
        entries[i, E_LINE_LEN] = fields[F_LINE_LEN]
        entries[i, E_FLAGS] = (IS_VOID if void else 0) | (IS_WILD if wildcard >= 0 else 0)
        regs[R_ENTRIES] = i + 1
    if void:
        if wildcard >= 0:
            stack[slot, S_OWN] = OWN_VOID
        return
    if wildcard >= 0:
        stack[slot, S_OWN] = OWN_TOTAL
        stack[slot, S_OWN_M] = fields[F_M]
        stack[slot, S_OWN_R] = fields[F_R]
        stack[slot, S_OWN_B] = fields[F_BOUNDS]
    else:
        _add_to(stack, slot, fields[F_M], fields[F_R], fields[F_BOUNDS])
    if not fields[F_TAIL]:
        stack[slot, S_BARE] = 1
    elif stack[slot, S_WANTED]:
        if stack[slot, S_JSON] == 0:
            regs[R_NEXT_ID] += 1
            stack[slot, S_JSON] = regs[R_NEXT_ID]
        events[regs[R_EVENTS], 0] = EVENT_OWN if wildcard >= 0 else EVENT_LINE
        events[regs[R_EVENTS], 1] = stack[slot, S_JSON]
        events[regs[R_EVENTS], 2] = at + fields[F_TAIL]
        events[regs[R_EVENTS], 3] = at + fields[F_LINE_LEN]
        regs[R_EVENTS] += 1


@kernel
def _goes_on(data: Any, first: Any, at: Any, stop: Any, size: Any) -> Any:
    """Whether a node named by the first `size` bytes at `first` may still go on at the line at `at`."""
    if at + size >= stop:
        return False
    return common_bytes(data, first, at, size) == size and data[at + size] <= 58


@kernel
def _line_start(data: Any, at: Any, floor: Any) -> Any:
    while at > floor and data[at - 1] != 10:
        at -= 1
    return at


@kernel
def _end_of_node(data: Any, at: Any, stop: Any, size: Any) -> Any:
    """The first line behind `at` where the node named by its first `size` bytes does not go on; by growing steps."""
    low = at
    step = np.int64(4096)
    high = stop
    while low + step < stop:
        probe = _line_start(data, low + step, low)
        if probe > low:
            if not _goes_on(data, at, probe, stop, size):
                high = probe
                break
            low = probe
        step *= 2
    while low < high:
        middle = _line_start(data, (low + high) >> 1, low)
        if _goes_on(data, at, middle, stop, size):
            low = min(line_end(data, middle, high) + 1, high)
        else:
            high = middle
    return low


@kernel
def safe_cut(data: Any, start: Any, stop: Any, want: Any, whole_tlds: Any) -> Any:
    """The first start of a line at or after `want` where no node that may roll up goes on across it; `stop` if
    none."""
    at = min(want, stop)
    while start < at < stop and data[at - 1] != 10:
        at += 1
    while start < at < stop:
        previous = _line_start(data, at - 1, start)
        shared = common_bytes(data, previous, at, min(at - previous, stop - at))
        first = np.int64(0)
        if not whole_tlds:
            # Names shorter than a second host segment are of top-level domains, which do not roll up.
            while first < shared and data[at + first] != 44 and data[at + first] != 41 and data[at + first] != 58:
                first += 1
            first = first + 1 if first == shared or data[at + first] == 44 else np.int64(0)
        size = first + 1
        while size <= shared and at + size < stop and data[at + size] > 58:
            size += 1
        if size > shared or at + size >= stop:
            return at
        at = _end_of_node(data, at, stop, size)
    return at


@kernel
def lines_rise(data: Any, start: Any, at: Any, stop: Any) -> Any:
    """Whether the key of the line before `at` is below the key of the line at `at`."""
    before = at - 1
    while before > start and data[before - 1] != 10:
        before -= 1
    i = 0
    while at + i < stop and data[before + i] == data[at + i] and data[at + i] > 32:
        i += 1
    return at + i < stop and data[at + i] > 32 and (data[before + i] <= 32 or data[before + i] < data[at + i])
