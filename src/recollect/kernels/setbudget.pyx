"""Compaction by budget with hashed sets: the exact optimum for a price; see `profiles.compaction.setbudget`.

What stands above a branch decides what its lines cost and lose: nothing or a void (no), a wildcard (yes), or a set, in
which what is next below has k bits. For a price per byte, c(b) the price of b bits, and bottom-up,

    open_k(v) = sum of I(children | k) + c(k) · leaves(v) + exit(v) / 2^k
    anchor(v) = price · line(v) + min over k of [open_k(v) + c(k) · held(v) + own(v) / 2^k]
    U(v) = min(no(v), price · wildcard + yes(v), anchor(v))         nothing above
    C(v) = min(yes(v), price · void + no(v), anchor(v))             a wildcard above
    I(v | k) = min(U(v) in lines of its own,
                   c(k + 3 + k · held(v)) + min over j of open_j(v) + own(v) / 2^k     a gate,
                   c(k + 3 + k · held(v)) + yes(v) below v + own(v) / 2^k              a stop,
                   c(k · held(v)) + open_k(v) + own(v) / 2^k, if nothing below it is in the set)

where no(v), yes(v), exit(v) and own(v) are those of `budget`. An open branch, below a wildcard of the input, must
answer yes. After the branches come the absences of a log: exit(v) alone, and the cost of a void over it.
"""

from libc.math cimport INFINITY, ldexp
from libc.stdint cimport int32_t, int64_t

from recollect.kernels.sets import BITS

from recollect.kernels.branches cimport HELD, OPEN

cpdef enum:
    WAYS = 7  # how many bits members may have

# What is chosen for a branch.
cpdef enum:
    PUT_WILD = 1    # a line: a wildcard
    PUT_VOID = 2    # a line: a wildcard void
    PUT_ZERO = 4    # a line: an exact void
    PUT_ANCHOR = 8  # a line: a wildcard with a set
    PUT_GATE = 16   # in a set: it goes on below
    PUT_STOP = 32   # in a set: all below is yes; its own key is a member if it is held, or may be
    PUT_MEMBER = 64  # in a set: its own key, if it is held, and nothing below it

# What an unlisted URI below a branch is answered.
cpdef enum:
    SAYS_NO = 0
    SAYS_YES = 1
    ASKS_SET = 2

# Ways to decide: U, C, and I for each k.
cdef enum:
    AS_NO = 0
    AS_YES = 1
    AS_WILD = 2
    AS_VOID = 3
    AS_ANCHOR = 4
    AS_CLEAR = 5
    AS_STOP = 6
    AS_MEMBER = 7
    AS_GATE = 8  # and the number of j

cdef int[WAYS] K
for _number in range(WAYS):
    K[_number] = BITS[_number]


def choose(
    const int32_t[::1] up,
    Py_ssize_t branches,
    const unsigned char[::1] flags,
    const unsigned char[::1] may_roll,
    const int64_t[::1] leaves,
    const int64_t[::1] listed,
    const int64_t[::1] wild,
    const int64_t[::1] void,
    const int64_t[::1] zero,
    const double[::1] leave,
    const double[::1] own,
    double price,
    double bit_price,
    double anchor_price,
    double most_bits,
    double[:, ::1] sums,
    double[:, ::1] bits,
    unsigned char[:, ::1] ways,
):
    """The best ways for a price, in `ways` (U, C, I for each k, the k of an anchor, an exact void); returns what they
    come to: loss and price of all. `sums` (2 + WAYS for each) and `bits` (WAYS) are scratch buffers.
    """
    cdef Py_ssize_t count = up.shape[0], i, above
    cdef int k, best, held, stays
    cdef double no, yes, own_yes, anchor, value, gate, best_open, u = 0.0, c
    cdef double[WAYS] opened, inside, inside_bits
    cdef bint is_open
    with nogil:
        for i in range(count):
            for k in range(2 + WAYS):
                sums[i, k] = 0.0
            for k in range(WAYS):
                bits[i, k] = 0.0
        for i in range(count - 1, -1, -1):
            above = up[i]
            if i >= branches:
                ways[i, 0] = AS_NO
                ways[i, 1] = AS_VOID if price * void[i] < leave[i] else AS_YES
                sums[above, 1] += min(leave[i], price * void[i])
                for k in range(WAYS):
                    value = ldexp(leave[i], -K[k])
                    ways[i, 2 + k] = AS_VOID if price * void[i] < value else AS_MEMBER
                    sums[above, 2 + k] += min(value, price * void[i])
                continue
            is_open = flags[i] & OPEN != 0
            held = flags[i] & HELD != 0
            no = INFINITY if is_open else sums[i, 0] + price * listed[i]
            ways[i, 3 + WAYS] = own[i] > price * zero[i]
            own_yes = min(own[i], price * zero[i])
            yes = sums[i, 1] + leave[i] + own_yes
            best, best_open = 0, INFINITY
            for k in range(WAYS):
                opened[k] = sums[i, 2 + k] + bit_price * K[k] * leaves[i] + ldexp(leave[i], -K[k])
                bits[i, k] += K[k] * leaves[i]
                if is_open:
                    opened[k] = INFINITY
                if opened[k] < best_open:
                    best, best_open = k, opened[k]
            anchor = INFINITY
            ways[i, 2 + WAYS] = 0
            if may_roll[i]:
                for k in range(WAYS):
                    value = opened[k] + bit_price * K[k] * held + ldexp(own[i], -K[k])
                    value += price * wild[i] + anchor_price
                    if value < anchor and 0 < bits[i, k] <= most_bits:
                        anchor = value
                        ways[i, 2 + WAYS] = <unsigned char>k
            # Nothing above.
            u = no
            ways[i, 0] = AS_NO
            if is_open or (may_roll[i] and price * wild[i] + yes < u):
                u = price * wild[i] + yes
                ways[i, 0] = AS_WILD
            if anchor < u:
                u = anchor
                ways[i, 0] = AS_ANCHOR
            # A wildcard above.
            c = yes
            ways[i, 1] = AS_YES
            if may_roll[i] and price * void[i] + no < c:
                c = price * void[i] + no
                ways[i, 1] = AS_VOID
            if anchor < c:
                c = anchor
                ways[i, 1] = AS_ANCHOR
            # In a set.
            for k in range(WAYS):
                inside[k], inside_bits[k] = u, 0.0
                ways[i, 2 + k] = AS_CLEAR
                stays = K[k] if held or is_open else 0
                value = bit_price * (K[k] + 3 + stays) + sums[i, 1] + leave[i] + ldexp(own[i], -K[k])
                if value < inside[k]:
                    inside[k], inside_bits[k] = value, K[k] + 3 + stays
                    ways[i, 2 + k] = AS_STOP
                if leaves[i] == 0 and bits[i, k] == 0.0:
                    value = opened[k] + bit_price * K[k] * held + ldexp(own[i], -K[k])
                    if value < inside[k]:
                        inside[k], inside_bits[k] = value, K[k] * held
                        ways[i, 2 + k] = AS_MEMBER
                elif best_open < INFINITY:
                    gate = bit_price * (K[k] + 3 + K[k] * held) + best_open + ldexp(own[i], -K[k])
                    if gate < inside[k]:
                        inside[k], inside_bits[k] = gate, K[k] + 3 + K[k] * held + bits[i, best]
                        ways[i, 2 + k] = <unsigned char>(AS_GATE + best)
            if i > 0:
                sums[above, 0] += u
                sums[above, 1] += c
                for k in range(WAYS):
                    sums[above, 2 + k] += inside[k]
                    bits[above, k] += inside_bits[k]
    return u


def settle(
    const int32_t[::1] up,
    Py_ssize_t branches,
    const unsigned char[:, ::1] ways,
    const double[::1] leave,
    const double[::1] own,
    unsigned char[::1] state,
    unsigned char[::1] put,
    unsigned char[::1] bits_in,
    unsigned char[::1] bits_out,
    int32_t[::1] anchor,
):
    """What the ways come to from the top down: for each branch what it answers, what is put down for it, the bits of
    its own member and of those below it, and the anchor of its set; returns the loss."""
    cdef Py_ssize_t i, above
    cdef int way, k
    cdef double loss = 0.0
    with nogil:
        for i in range(up.shape[0]):
            above = up[i]
            k = 0
            if i == 0 or state[above] == SAYS_NO:
                way = ways[i, 0]
            elif state[above] == SAYS_YES:
                way = ways[i, 1]
            else:
                k = bits_out[above]
                way = ways[i, 2 + _number_of(k)]
                if way == AS_CLEAR:
                    way = ways[i, 0]
            put[i], bits_in[i], bits_out[i], anchor[i] = 0, <unsigned char>k, 0, -1
            if way == AS_NO:
                state[i] = SAYS_NO
            elif way == AS_YES:
                state[i] = SAYS_YES
            elif way == AS_WILD:
                state[i], put[i] = SAYS_YES, PUT_WILD
            elif way == AS_VOID:
                state[i], put[i] = SAYS_NO, PUT_VOID
            elif way == AS_STOP:
                state[i], put[i], anchor[i] = SAYS_YES, PUT_STOP, anchor[above]
            elif way == AS_ANCHOR:
                state[i], put[i], anchor[i] = ASKS_SET, PUT_ANCHOR, <int32_t>i
                bits_out[i] = bits_in[i] = <unsigned char>K[ways[i, 2 + WAYS]]
            elif way == AS_MEMBER:
                state[i], put[i], bits_out[i], anchor[i] = ASKS_SET, PUT_MEMBER, <unsigned char>k, anchor[above]
            else:
                state[i], put[i], anchor[i] = ASKS_SET, PUT_GATE, anchor[above]
                bits_out[i] = <unsigned char>K[way - AS_GATE]
            if way == AS_STOP:
                loss += leave[i] + ldexp(own[i], -k)
            elif state[i] == SAYS_YES:
                loss += leave[i]
                if i < branches and ways[i, 3 + WAYS]:
                    put[i] |= PUT_ZERO
                else:
                    loss += own[i]
            elif state[i] == ASKS_SET:
                loss += ldexp(leave[i], -bits_out[i]) + ldexp(own[i], -bits_in[i])
    return loss


cdef inline int _number_of(int bits) noexcept nogil:
    cdef int k
    for k in range(WAYS):
        if K[k] == bits:
            return k
    return 0
