"""Binary fuse filters (Graf and Lemire 2022): building one, and asking it. The format is that of `xor_singleheader`.

Slots lie in segments of a power of two. A key takes one slot in each of three neighbouring segments, and its
fingerprint is the XOR of the three. They are found by peeling: a slot that only one key takes is that key's; the key is
removed, and others may become the only ones of their slots. Slots are then filled in reverse. If keys are left over,
another seed is tried.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from recollect.kernels.words cimport Bytes

cdef extern from *:
    """
    #include <stdint.h>
    /* The upper half of a product. */
    static inline uint64_t recollect_high_product(uint64_t a, uint64_t b) {
        return (uint64_t)(((unsigned __int128)a * b) >> 64);
    }
    """
    uint64_t high_product "recollect_high_product"(uint64_t a, uint64_t b) noexcept nogil

cdef enum:
    SEEDS = 100          # tries; each fails in less than half of all cases
    MOST_OF_A_SLOT = 63  # keys, as their number is counted in six bits


cdef struct Filter:
    uint64_t seed
    uint64_t length  # of a segment, a power of two
    uint64_t places  # of first slots: segments times length


cdef inline uint64_t hash_of(uint64_t key, uint64_t seed) noexcept nogil:
    """The finalizer of MurmurHash3."""
    cdef uint64_t h = key + seed
    h = (h ^ (h >> 33)) * <uint64_t>0xFF51AFD7ED558CCD
    h = (h ^ (h >> 33)) * <uint64_t>0xC4CEB9FE1A85EC53
    return h ^ (h >> 33)


cdef inline uint64_t next_seed(uint64_t *state) noexcept nogil:
    """SplitMix64."""
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t z = state[0]
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline Py_ssize_t slot_of(const Filter *filter, uint64_t h, int number) noexcept nogil:
    """Slot 0, 1 or 2 of a key with this hash."""
    cdef uint64_t first = high_product(h, filter.places) + <uint64_t>number * filter.length
    if number == 1:
        first ^= (h >> 18) & (filter.length - 1)
    elif number == 2:
        first ^= h & (filter.length - 1)
    return <Py_ssize_t>first


cdef inline int third(int number) noexcept nogil:
    return number - 3 if number > 2 else number


cdef struct Peeling:
    uint64_t *hashes        # of keys in the order of their segments, then of those that were peeled
    unsigned char *numbers  # which of its slots each of these has for its own
    uint64_t *sums          # XOR of the hashes of a slot's keys
    unsigned char *counts   # of a slot's keys, times four; and the XOR of the numbers that the slot has for them
    Py_ssize_t *queue       # slots that may have one key only


cdef void order_keys(
    const Filter *filter, const uint64_t *keys, Py_ssize_t count, int64_t[::1] starts, uint64_t *hashes
) noexcept nogil:
    """Put the hashes of keys in the order of their segments, so that the slots of neighbours are near."""
    cdef Py_ssize_t blocks = starts.shape[0] - 1, i, block
    cdef uint64_t h
    for i in range(blocks + 1):
        starts[i] = 0
    for i in range(count):
        starts[<Py_ssize_t>high_product(hash_of(keys[i], filter.seed), <uint64_t>blocks) + 1] += 1
    for i in range(blocks):
        starts[i + 1] += starts[i]
    for i in range(count):
        h = hash_of(keys[i], filter.seed)
        block = <Py_ssize_t>high_product(h, <uint64_t>blocks)
        hashes[starts[block]] = h
        starts[block] += 1


cdef bint peel(const Filter *filter, Py_ssize_t count, Py_ssize_t slots, Peeling *work) noexcept nogil:
    """Find a slot of its own for each key; False if that is not possible with this seed."""
    cdef Py_ssize_t i, slot, waiting = 0, peeled = 0
    cdef int number, own, step
    cdef uint64_t h
    memset(work.sums, 0, <size_t>slots * sizeof(uint64_t))
    memset(work.counts, 0, <size_t>slots)
    for i in range(count):
        for number in range(3):
            slot = slot_of(filter, work.hashes[i], number)
            if work.counts[slot] >> 2 == MOST_OF_A_SLOT:
                return False
            work.counts[slot] = <unsigned char>((work.counts[slot] + 4) ^ number)
            work.sums[slot] ^= work.hashes[i]
    for slot in range(slots):
        if work.counts[slot] >> 2 == 1:
            work.queue[waiting] = slot
            waiting += 1
    while waiting:
        waiting -= 1
        slot = work.queue[waiting]
        if work.counts[slot] >> 2 != 1:
            continue
        h, own = work.sums[slot], work.counts[slot] & 3
        work.hashes[peeled], work.numbers[peeled] = h, <unsigned char>own
        peeled += 1
        for step in range(3):
            number = third(own + step)
            slot = slot_of(filter, h, number)
            work.counts[slot] = <unsigned char>((work.counts[slot] - 4) ^ number)
            work.sums[slot] ^= h
            if step and work.counts[slot] >> 2 == 1:
                work.queue[waiting] = slot
                waiting += 1
    return peeled == count


cdef inline int fingerprint_at(Bytes data, int bits, Py_ssize_t slot) noexcept nogil:
    return data[slot] if bits == 8 else data[2 * slot] | data[2 * slot + 1] << 8


cdef inline int fingerprint_of(uint64_t h, int bits) noexcept nogil:
    return <int>((h ^ (h >> 32)) & (255 if bits == 8 else 65535))


cdef void fill(
    const Filter *filter, Py_ssize_t count, const Peeling *work, int bits, unsigned char *out
) noexcept nogil:
    cdef Py_ssize_t i, slot
    cdef uint64_t h
    cdef int own, value
    for i in range(count - 1, -1, -1):
        h, own = work.hashes[i], work.numbers[i]
        value = fingerprint_of(h, bits)
        value ^= fingerprint_at(out, bits, slot_of(filter, h, third(own + 1)))
        value ^= fingerprint_at(out, bits, slot_of(filter, h, third(own + 2)))
        slot = slot_of(filter, h, own)
        if bits == 8:
            out[slot] = <unsigned char>value
        else:
            out[2 * slot], out[2 * slot + 1] = <unsigned char>(value & 255), <unsigned char>(value >> 8)


def build_filter(
    const uint64_t[::1] keys not None, int bits, Py_ssize_t length, Py_ssize_t segments, int64_t[::1] starts not None,
    unsigned char[::1] out not None,
):
    """Fill `out`, which is zero, with the fingerprints of different keys; returns the seed, or None without one.

    Places are `segments` of first slots and two more, each of `length` slots; `starts` has space for the order of
    keys: one number for each of some blocks, and one more.
    """
    cdef Py_ssize_t count = keys.shape[0], slots = (segments + 2) * length, tries = 0
    cdef uint64_t state = 0x726B2B9D438B9D4D
    cdef Filter filter
    cdef Peeling work
    cdef bint done = False
    if bits not in (8, 16) or length < 1 or length & (length - 1) or segments < 1 or starts.shape[0] < 2:
        raise ValueError("not the sizes of a filter")
    if count == 0 or out.shape[0] != slots * bits // 8:
        raise ValueError("no keys, or no space for their fingerprints")
    filter.length, filter.places = <uint64_t>length, <uint64_t>(segments * length)
    work.hashes = <uint64_t *>malloc(<size_t>count * sizeof(uint64_t))
    work.numbers = <unsigned char *>malloc(<size_t>count)
    work.sums = <uint64_t *>malloc(<size_t>slots * sizeof(uint64_t))
    work.counts = <unsigned char *>malloc(<size_t>slots)
    work.queue = <Py_ssize_t *>malloc(<size_t>slots * sizeof(Py_ssize_t))
    try:
        if not (work.hashes and work.numbers and work.sums and work.counts and work.queue):
            raise MemoryError
        with nogil:
            while not done and tries < SEEDS:
                filter.seed = next_seed(&state)
                order_keys(&filter, &keys[0], count, starts, work.hashes)
                done = peel(&filter, count, slots, &work)
                tries += 1
            if done:
                fill(&filter, count, &work, bits, &out[0])
        return filter.seed if done else None
    finally:
        free(work.hashes)
        free(work.numbers)
        free(work.sums)
        free(work.counts)
        free(work.queue)


cdef class FuseFilter:
    """A filter to be asked; see `fuse.pyi`."""

    cdef const unsigned char[::1] _data
    cdef Filter _filter
    cdef int _bits

    def __cinit__(
        self, const unsigned char[::1] data not None, int bits, uint64_t seed, uint64_t length, uint64_t segments
    ):
        if bits not in (8, 16) or not 1 <= length <= 1 << 32 or length & (length - 1) or not 1 <= segments <= 1 << 32:
            raise ValueError("not the sizes of a filter")
        if (segments + 2) * length != <uint64_t>data.shape[0] // (bits // 8) or data.shape[0] % (bits // 8):
            raise ValueError("not the sizes of a filter")
        self._data, self._bits = data, bits
        self._filter.seed, self._filter.length, self._filter.places = seed, length, segments * length

    def contains(self, uint64_t key):
        """Whether a key may be in the filter."""
        cdef uint64_t h = hash_of(key, self._filter.seed)
        cdef int value = fingerprint_of(h, self._bits), number
        for number in range(3):
            value ^= fingerprint_at(&self._data[0], self._bits, slot_of(&self._filter, h, number))
        return value == 0
