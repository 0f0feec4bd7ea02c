"""Compaction by budget: the exact optimum for a price, improvements of it, and the written lines.

Arrays are indexed by branch (see `profiles.compaction.branches`), parents first, or by row.

The optimum. What a URI below a branch is answered by default depends on what stands above: nothing or a void (state
0, "no") or a wildcard (state 1, "yes"). For a price per unit of cost, and bottom-up,

    no(v)  = sum of U(children) + price · (cost of the exact keys held at v)
    yes(v) = sum of C(children) + exit(v) + min(own(v), price · cost of `v 0`)
    U(v) = min(no(v), price · cost of `v/*` + yes(v))           C(v) = min(yes(v), price · cost of `v/* 0` + no(v))

where exit(v) is the expected number of lookups of absent URIs that leave the tree at v, and own(v) those of v
itself if it is absent. An open branch (below a wildcard of the input, where it is unknown what is held) must answer
yes: no(v) is infinite.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from recollect.kernels.branches cimport HELD, JSON, LEAF, NONE, OWN, ZERO
from recollect.kernels.lines cimport Count, line_end, m_bound, put_count, r_bound
from recollect.kernels.words cimport Bytes

# Decisions about a branch: what to write in state 0, in state 1, and about itself when covered.
cpdef enum:
    PUT_WILD = 1
    PUT_VOID = 2
    PUT_ZERO = 4


def optimum(
    const int32_t[::1] up,
    const unsigned char[::1] is_open,
    const unsigned char[::1] may_roll,
    const int64_t[::1] listed,
    const int64_t[::1] wild,
    const int64_t[::1] void,
    const int64_t[::1] zero,
    const double[::1] leave,
    const double[::1] own,
    double price,
    double[:, ::1] sums,
    int64_t[:, ::1] cost,
    double[:, ::1] loss,
    unsigned char[::1] decide,
):
    """The best decisions for a price, in `decide`; returns what they cost and lose.

    listed, wild, void, zero: costs of the held exact keys, `v/*`, `v/* 0`, `v 0` (one for each branch, or one for all);
    leave, own: expected lookups of absent URIs. `sums`, four for each branch, must be zero and is zero again at the
    end. `cost` and `loss`, if they are not empty, become what each subtree costs and loses in each state.
    """
    cdef Py_ssize_t count = up.shape[0], i
    cdef bint keep = cost.shape[0] == count
    cdef int wild_step = wild.shape[0] > 1, void_step = void.shape[0] > 1, zero_step = zero.shape[0] > 1
    cdef int64_t zero_cost, wild_cost, void_cost
    cdef double no_cost, no_loss, yes_cost, yes_loss, no, yes
    cdef double in_no_cost = 0.0, in_no_loss = 0.0, in_yes_cost, in_yes_loss
    cdef double *above
    cdef unsigned char decision
    with nogil:
        for i in range(count - 1, -1, -1):
            zero_cost, wild_cost, void_cost = zero[i * zero_step], wild[i * wild_step], void[i * void_step]
            no_cost, no_loss = sums[i, 0] + listed[i], sums[i, 1]
            yes_cost, yes_loss = sums[i, 2], sums[i, 3] + leave[i]
            sums[i, 0] = sums[i, 1] = sums[i, 2] = sums[i, 3] = 0.0
            decision = 0
            if own[i] > price * zero_cost:
                decision = PUT_ZERO
                yes_cost += zero_cost
            else:
                yes_loss += own[i]
            no = INFINITY if is_open[i] else no_loss + price * no_cost
            yes = yes_loss + price * yes_cost
            in_no_cost, in_no_loss, in_yes_cost, in_yes_loss = no_cost, no_loss, yes_cost, yes_loss
            if is_open[i] or (may_roll[i] and price * wild_cost + yes < no):
                decision |= PUT_WILD
                in_no_cost = yes_cost + wild_cost
                in_no_loss = yes_loss
            if may_roll[i] and price * void_cost + no < yes:
                decision |= PUT_VOID
                in_yes_cost = no_cost + void_cost
                in_yes_loss = no_loss
            decide[i] = decision
            if keep:
                cost[i, 0], loss[i, 0] = <int64_t>in_no_cost, in_no_loss
                cost[i, 1], loss[i, 1] = <int64_t>in_yes_cost, in_yes_loss
            if i > 0:
                above = &sums[up[i], 0]
                above[0] += in_no_cost
                above[1] += in_no_loss
                above[2] += in_yes_cost
                above[3] += in_yes_loss
    return <int64_t>in_no_cost, in_no_loss


def weigh(
    const int32_t[::1] up,
    const int64_t[::1] listed,
    const int64_t[::1] wild,
    const int64_t[::1] void,
    const int64_t[::1] zero,
    const double[::1] leave,
    const double[::1] own,
    const unsigned char[::1] decide,
    int64_t[:, ::1] cost,
    double[:, ::1] loss,
):
    """What given decisions cost and lose, per branch and state; returns it for the root."""
    cdef Py_ssize_t count = up.shape[0], i
    cdef int wild_step = wild.shape[0] > 1, void_step = void.shape[0] > 1, zero_step = zero.shape[0] > 1
    cdef int64_t no_cost
    cdef double no_loss
    cost[:, :] = 0
    loss[:, :] = 0.0
    with nogil:
        for i in range(count - 1, -1, -1):
            cost[i, 0] += listed[i]
            loss[i, 1] += leave[i]
            if decide[i] & PUT_ZERO:
                cost[i, 1] += zero[i * zero_step]
            else:
                loss[i, 1] += own[i]
            no_cost, no_loss = cost[i, 0], loss[i, 0]
            if decide[i] & PUT_WILD:
                cost[i, 0] = cost[i, 1] + wild[i * wild_step]
                loss[i, 0] = loss[i, 1]
            if decide[i] & PUT_VOID:
                cost[i, 1] = no_cost + void[i * void_step]
                loss[i, 1] = no_loss
            if i:
                cost[up[i], 0] += cost[i, 0]
                loss[up[i], 0] += loss[i, 0]
                cost[up[i], 1] += cost[i, 1]
                loss[up[i], 1] += loss[i, 1]
    return cost[0, 0], loss[0, 0]


def differences(
    const int32_t[::1] up,
    const unsigned char[::1] old,
    const unsigned char[::1] new,
    const unsigned char[::1] state,
    int32_t[::1] at,
):
    """The branches whose decision would change, given what stands above them now; returns how many are in `at`."""
    cdef Py_ssize_t i, found = 0
    cdef unsigned char above, change
    for i in range(up.shape[0]):
        above = state[up[i]] if i else 0
        change = old[i] ^ new[i]
        if change & (PUT_VOID if above else PUT_WILD) or (state[i] and change & PUT_ZERO):
            at[found] = <int32_t>i
            found += 1
    return found


def pick(
    const int32_t[::1] up,
    const int64_t[::1] order,
    const int32_t[::1] at,
    const int64_t[::1] more,
    const double[::1] gain,
    int64_t left,
    unsigned char[::1] chosen,
    unsigned char[::1] above_chosen,
):
    """Choose changes of whole subtrees in this order while they fit into what is left; none inside another. Both marks
    begin as zeros."""
    cdef Py_ssize_t which, piece, i
    for which in range(order.shape[0]):
        piece = order[which]
        if gain[piece] <= 0 or more[piece] > left or above_chosen[at[piece]]:
            continue
        i = at[piece]
        while i >= 0 and not chosen[i]:
            i = up[i]
        if i >= 0:
            continue
        chosen[at[piece]] = True
        left -= more[piece]
        i = up[at[piece]]
        while i >= 0 and not above_chosen[i]:
            above_chosen[i] = True
            i = up[i]


def adopt(
    const int32_t[::1] up, unsigned char[::1] chosen, unsigned char[::1] old, const unsigned char[::1] new
):
    """Take the new decisions in the subtrees that `chosen` marks; the marks spread downwards."""
    cdef Py_ssize_t i
    for i in range(up.shape[0]):
        if i and chosen[up[i]]:
            chosen[i] = True
        if chosen[i]:
            old[i] = new[i]


def states(const int32_t[::1] up, const unsigned char[::1] decide, unsigned char[::1] state):
    """What an unlisted URI below each branch is answered: 0 no, 1 yes."""
    cdef Py_ssize_t i
    for i in range(up.shape[0]):
        if i and state[up[i]]:
            state[i] = 0 if decide[i] & PUT_VOID else 1
        else:
            state[i] = 1 if decide[i] & PUT_WILD else 0


def outermost(
    const int32_t[::1] up, const unsigned char[::1] flags, const int64_t[:] leaves, int64_t[::1] count
):
    """How many held exact keys lie below each branch and not below one another."""
    cdef Py_ssize_t i
    for i in range(up.shape[0] - 1, -1, -1):
        count[i] += leaves[i]
        if i:
            count[up[i]] += 1 if flags[i] & HELD else count[i]


# Masses that go down the tree, and sums that go up.


def spread(
    const int32_t[::1] up,
    const double[::1] weight,
    const double[::1] stay,
    const double[::1] out,
    double[::1] everything,
    double[::1] mass,
    double[::1] leave,
    double[::1] own,
):
    """Share a mass of 1 out over the tree: at each branch by weight to its children, to itself (`stay`) and out of the
    tree. `leave` and `own` become what leaves and what stays at each; `everything` and `mass` are scratch buffers."""
    cdef Py_ssize_t i, count = up.shape[0]
    with nogil:
        for i in range(count):
            everything[i] = stay[i] + out[i]
        for i in range(count - 1, 0, -1):
            everything[up[i]] += weight[i]
        mass[0] = 1.0
        for i in range(count):
            if i:
                mass[i] = mass[up[i]] * weight[i] / everything[up[i]]
            leave[i] = mass[i] * out[i] / everything[i]
            own[i] = mass[i] * stay[i] / everything[i]


def pass_on(
    const int32_t[::1] up,
    const double[::1] onward,
    const double[::1] per_weight,
    const double[::1] weight,
    double[::1] mass,
):
    """Send a mass of 1 down the tree: to where lookups went before (`onward` begins with branch 1), and by weight."""
    cdef Py_ssize_t i
    mass[0] = 1.0
    for i in range(1, up.shape[0]):
        mass[i] = mass[up[i]] * (onward[i - 1] + per_weight[up[i]] * weight[i])


def add_upwards(const int32_t[::1] parent, int64_t[::1] passing):
    """Add up from the leaves to the root."""
    cdef Py_ssize_t i
    for i in range(parent.shape[0] - 1, 0, -1):
        passing[parent[i]] += passing[i]


def matched_depths(
    const int32_t[::1] parent, const int32_t[::1] lengths, const int64_t[::1] match, int64_t[::1] depth
):
    """How many bytes of each node's name the map has; `match` is not negative where it has the node."""
    cdef Py_ssize_t i
    for i in range(1, parent.shape[0]):
        depth[i] = lengths[i] if match[i] >= 0 else depth[parent[i]]


def inherit(const int32_t[::1] parent, int32_t[::1] value, int32_t least):
    """Give nodes without a value that of their parent, if it is at least `least`."""
    cdef Py_ssize_t i
    for i in range(1, parent.shape[0]):
        if value[i] < 0 and value[parent[i]] >= least:
            value[i] = value[parent[i]]


def count_below(const int32_t[::1] parent, const unsigned char[::1] top, int32_t[::1] steps):
    """How many levels each node is below a `top`; 0 for tops and for nodes below none."""
    cdef Py_ssize_t i
    for i in range(1, parent.shape[0]):
        if not top[i] and (top[parent[i]] or steps[parent[i]] > 0):
            steps[i] = steps[parent[i]] + 1


# The lines of the result.


def keep_rows(
    const int32_t[::1] row_branch,
    const unsigned char[::1] role,
    const int32_t[::1] up,
    const unsigned char[::1] state,
    const unsigned char[::1] decide,
    unsigned char[::1] keep,
):
    """Which rows stay as they are: held exact keys that nothing covers, and known absences that are worth it."""
    cdef Py_ssize_t row, branch
    cdef unsigned char what
    with nogil:
        for row in range(row_branch.shape[0]):
            branch = row_branch[row]
            what = role[row] & ~JSON
            if what == LEAF or what == OWN:
                keep[row] = state[branch] == 0
            elif what == ZERO:
                keep[row] = state[branch] == 1 and decide[branch] & PUT_ZERO != 0
            elif what == NONE:
                keep[row] = state[branch] == 0 and branch > 0 and state[up[branch]] == 1
            else:
                keep[row] = False


def write_wildcards(
    const unsigned char[::1] data,
    const int64_t[::1] chosen,
    const int64_t[:] name_at,
    const int64_t[:] name_length,
    const unsigned char[::1] is_path,
    const int64_t[:, :] total,
    const unsigned char[::1] bound,
    const int64_t[::1] starts,
    unsigned char[::1] text,
):
    """The lines of these branches' wildcards, each where it starts in `text`."""
    cdef Py_ssize_t number, branch, at
    cdef unsigned char *out = NULL
    cdef Count m, r
    if text.shape[0]:
        out = &text[0]
    with nogil:
        for number in range(chosen.shape[0]):
            branch = chosen[number]
            at = starts[number]
            if name_length[branch]:
                memcpy(out + at, &data[name_at[branch]], <size_t>name_length[branch])
                at += name_length[branch]
            if branch:
                out[at] = c"/" if is_path[branch] else c","
                at += 1
            out[at] = c"*"
            out[at + 1] = c" "
            m.value, m.bound = total[branch, 0], m_bound(bound[branch])
            r.value, r.bound = total[branch, 1], r_bound(bound[branch])
            at = put_count(out, at + 2, m)
            if r.value >= 0 or m.value < 0:
                out[at] = c"/"
                at = put_count(out, at + 1, r)


def place(
    const unsigned char[::1] data,
    const int64_t[::1] offsets,
    const unsigned char[::1] text,
    const int64_t[::1] starts,
    int64_t[::1] before,
):
    """For each new line of `text` (sorted by key) the row it comes before."""
    cdef Py_ssize_t i, low, high, middle, step, row = 0, count = offsets.shape[0]
    with nogil:
        for i in range(starts.shape[0]):
            low, step = row, 1
            while low < count and _is_before(&data[offsets[low]], &text[starts[i]]):
                row = low + 1
                low += step
                step *= 2
            high = min(low, count)
            while row < high:
                middle = (row + high) // 2
                if _is_before(&data[offsets[middle]], &text[starts[i]]):
                    row = middle + 1
                else:
                    high = middle
            before[i] = row


cdef inline bint _is_before(Bytes a, Bytes b) noexcept nogil:
    """Whether key a comes before key b; both end at a space, which is below all bytes of keys."""
    cdef Py_ssize_t i = 0
    while a[i] == b[i] and a[i] != c" ":
        i += 1
    return a[i] < b[i]


def write_lines(
    const unsigned char[::1] data,
    const int64_t[::1] offsets,
    const unsigned char[::1] keep,
    const unsigned char[::1] text,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    const int64_t[::1] before,
    Py_ssize_t row,
    Py_ssize_t new,
    unsigned char[::1] out,
):
    """Merge kept rows and new lines into `out`, from a row and a new line on.

    Returns (bytes written, next row, next new line, bytes that the next line needs or 0 if there is none).
    """
    cdef Py_ssize_t size = 0, length = 0, start, needed = 0, stop = data.shape[0]
    cdef Bytes line
    with nogil:
        while True:
            if new < starts.shape[0] and before[new] <= row:
                length = ends[new] - starts[new]
                line = &text[starts[new]]
            else:
                while row < offsets.shape[0] and not keep[row] and not (new < starts.shape[0] and before[new] <= row):
                    row += 1
                if new < starts.shape[0] and before[new] <= row:
                    continue
                if row == offsets.shape[0]:
                    needed = 0
                    break
                start = offsets[row]
                length = line_end(&data[0], start, stop) - start
                if data[start + length - 1] == c"\r":
                    length -= 1
                line = &data[start]
            needed = length + 1
            if size + needed > out.shape[0]:
                break
            memcpy(&out[size], line, <size_t>length)
            out[size + length] = c"\n"
            size += needed
            if new < starts.shape[0] and before[new] <= row:
                new += 1
            else:
                row += 1
    return size, row, new, needed
