"""Hashed sets of wildcard lines: coding, asking, and the optimum that chooses them. docs/ukvs.md has the format.

A set is a bit string in parts. Each member gives equations over the bits of its part, linear over GF(2): as many as it
has bits, which hold for members and by chance, one in two each, for others; a gate has three more, whose right sides
are its value. An equation is about at most 64 neighbouring bits, so a part is solved in one sweep (a ribbon).
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from recollect.kernels.lines cimport address_length
from recollect.kernels.words cimport Bytes, find_byte, low_zeros, word_at

cdef extern from *:
    """
    /* BLAKE2b (RFC 7693) without a key, 32 bytes of digest: its first two words. */
    static const uint64_t recollect_blake2b_iv[8] = {
        0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
        0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};
    static const uint8_t recollect_blake2b_sigma[12][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}};
    #define RECOLLECT_ROTATE(x, n) (((x) >> (n)) | ((x) << (64 - (n))))
    #define RECOLLECT_MIX(a, b, c, d, x, y) \\
        v[a] += v[b] + (x); v[d] = RECOLLECT_ROTATE(v[d] ^ v[a], 32); \\
        v[c] += v[d]; v[b] = RECOLLECT_ROTATE(v[b] ^ v[c], 24); \\
        v[a] += v[b] + (y); v[d] = RECOLLECT_ROTATE(v[d] ^ v[a], 16); \\
        v[c] += v[d]; v[b] = RECOLLECT_ROTATE(v[b] ^ v[c], 63);
    static void recollect_blake2b_block(uint64_t *h, const uint64_t *m, uint64_t length, int last) {
        uint64_t v[16];
        int i;
        for (i = 0; i < 8; i++) { v[i] = h[i]; v[i + 8] = recollect_blake2b_iv[i]; }
        v[12] ^= length;
        if (last) v[14] = ~v[14];
        for (i = 0; i < 12; i++) {
            const uint8_t *s = recollect_blake2b_sigma[i];
            RECOLLECT_MIX(0, 4, 8, 12, m[s[0]], m[s[1]])
            RECOLLECT_MIX(1, 5, 9, 13, m[s[2]], m[s[3]])
            RECOLLECT_MIX(2, 6, 10, 14, m[s[4]], m[s[5]])
            RECOLLECT_MIX(3, 7, 11, 15, m[s[6]], m[s[7]])
            RECOLLECT_MIX(0, 5, 10, 15, m[s[8]], m[s[9]])
            RECOLLECT_MIX(1, 6, 11, 12, m[s[10]], m[s[11]])
            RECOLLECT_MIX(2, 7, 8, 13, m[s[12]], m[s[13]])
            RECOLLECT_MIX(3, 4, 9, 14, m[s[14]], m[s[15]])
        }
        for (i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
    }
    #define recollect_parity(word) __builtin_parityll(word)
    """
    const uint64_t BLAKE2B_START "recollect_blake2b_iv"[8]
    void blake2b_block "recollect_blake2b_block"(
        uint64_t *h, const uint64_t *m, uint64_t length, int last
    ) noexcept nogil
    int parity "recollect_parity"(uint64_t word) noexcept nogil

cpdef enum:
    VALUE_BITS = 3
    STOP = 0            # value of a gate below which all is held
    PART_EQUATIONS = 512
    SEEDS = 16
    CHOICES = 7

cdef enum:
    LARGEST_PART = 4095  # bits, as the directory of parts has 12 bits for it
    VALUE_FIRST = 64     # number of the first equation of a value

# Bits of the members below a gate, by its value less one.
BITS = (1, 2, 3, 4, 5, 6, 8)
cdef int[CHOICES] K
for _number in range(CHOICES):
    K[_number] = BITS[_number]


cdef struct Hash:
    uint64_t part
    uint64_t rows


cdef struct Suffix:  # what stands after the name in a hashed key
    unsigned char first
    unsigned char second
    int length


cdef inline Suffix suffix_of(int kind) noexcept nogil:
    """0: none, 1: `/` (the root of a host), 2: `/*`, 3: `,*`."""
    cdef Suffix suffix
    suffix.first = c"," if kind == 3 else c"/"
    suffix.second = c"*"
    suffix.length = kind if kind < 3 else 2
    return suffix


cdef Hash hash_key(Bytes name, Py_ssize_t length, Suffix suffix) noexcept nogil:
    """The first two words of BLAKE2b-256 of a name and its suffix."""
    cdef uint64_t[8] h
    cdef unsigned char[128] block
    cdef uint64_t[16] words
    cdef Py_ssize_t whole = length + suffix.length, done = 0, size, of_name
    cdef Hash found
    cdef int i
    memcpy(h, BLAKE2B_START, 64)
    h[0] ^= <uint64_t>(0x01010000 ^ 32)
    while True:
        size = min(<Py_ssize_t>128, whole - done)
        memset(block, 0, 128)
        of_name = max(<Py_ssize_t>0, min(length - done, size))
        if of_name > 0:
            memcpy(block, name + done, <size_t>of_name)
        for i in range(<int>of_name, <int>size):
            block[i] = suffix.first if done + i == length else suffix.second
        done += size
        for i in range(16):
            words[i] = word_at(block + 8 * i)
        blake2b_block(h, words, <uint64_t>done, done == whole)
        if done == whole:
            break
    found.part, found.rows = h[0], h[1]
    return found


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """The finalizer of SplitMix64."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef struct Equation:
    Py_ssize_t start
    uint64_t row    # bit i is about bit start + i of the part
    int right


cdef inline Equation equation_of(uint64_t rows, int seed, int number, Py_ssize_t bits) noexcept nogil:
    """Equation `number` of a key in a part of `size` bits; `right` is its value for a member."""
    cdef Equation equation
    cdef uint64_t golden = 0x9E3779B97F4A7C15
    cdef uint64_t other
    equation.row = mix(rows + golden * <uint64_t>(1024 * seed + number + 1))
    other = mix(equation.row + golden)
    equation.start = 0
    if bits > 64:
        equation.start = <Py_ssize_t>(((other >> 32) * <uint64_t>(bits - 63)) >> 32)
        equation.row |= 1
    elif bits < 64:
        equation.row &= (<uint64_t>1 << bits) - 1
    equation.right = <int>(other & 1)
    return equation


cdef inline Py_ssize_t part_of(uint64_t part, Py_ssize_t parts) noexcept nogil:
    return <Py_ssize_t>(((part >> 32) * <uint64_t>parts) >> 32)


# Making a set.


cdef struct Member:
    Hash hash
    int bits
    int value  # of a gate; -1: a key without a value


cdef bint solve(
    const Member *members, Py_ssize_t count, int seed, Py_ssize_t bits, uint64_t *rows, unsigned char *solution
) noexcept nogil:
    """Find bits that meet all equations of a part; `rows` has one row for each bit, `solution` one byte for each bit
    and 64 more."""
    cdef Py_ssize_t i, at
    cdef int number, right, last
    cdef Equation equation
    memset(rows, 0, <size_t>bits * 8)
    memset(solution, 0, <size_t>(bits + 64))  # right sides, until the end
    for i in range(count):
        last = members[i].bits + (VALUE_BITS if members[i].value >= 0 else 0)
        for number in range(last):
            if number < members[i].bits:
                equation = equation_of(members[i].hash.rows, seed, number, bits)
                right = equation.right
            else:
                equation = equation_of(members[i].hash.rows, seed, VALUE_FIRST + number - members[i].bits, bits)
                right = equation.right ^ (members[i].value >> (number - members[i].bits) & 1)
            at = equation.start
            while equation.row:
                if not equation.row & 1:
                    at += low_zeros(equation.row)
                    equation.row >>= low_zeros(equation.row)
                if rows[at] == 0:
                    rows[at] = equation.row
                    solution[at] = <unsigned char>right
                    break
                equation.row ^= rows[at]
                right ^= solution[at]
            if equation.row == 0 and right:
                return False
    for at in range(bits - 1, -1, -1):
        if rows[at]:
            right = solution[at]
            equation.row = rows[at] >> 1
            i = at + 1
            while equation.row:
                right ^= <int>(equation.row & 1) & solution[i]
                equation.row >>= 1
                i += 1
            solution[at] = <unsigned char>right
    return True


def encode_set(
    const unsigned char[::1] data not None,
    const int64_t[::1] at not None,
    const int64_t[::1] length not None,
    const unsigned char[::1] suffix not None,
    const unsigned char[::1] bits not None,
    const signed char[::1] value not None,
):
    """A set of members: names data[at:at + length] with a suffix, their bits, and values of gates (-1: none).

    Returns (the number of parts, the bytes: two for each part, then the bits of all parts).
    """
    cdef Py_ssize_t count = at.shape[0], i, part, parts, equations = 0, size, written = 0, members, tries
    for i in range(count):
        equations += bits[i] + (VALUE_BITS if value[i] >= 0 else 0)
    parts = max(<Py_ssize_t>1, (equations + PART_EQUATIONS // 2) // PART_EQUATIONS)
    cdef Member *all_members = <Member *>malloc(<size_t>(count + 1) * sizeof(Member))
    cdef Member *ordered = <Member *>malloc(<size_t>(count + 1) * sizeof(Member))
    cdef Py_ssize_t *starts = <Py_ssize_t *>calloc(<size_t>(parts + 2), sizeof(Py_ssize_t))
    cdef uint64_t *rows = <uint64_t *>malloc((LARGEST_PART + 1) * 8)
    cdef unsigned char *solution = <unsigned char *>malloc(LARGEST_PART + 128)
    cdef unsigned char *directory = <unsigned char *>malloc(<size_t>(2 * parts))
    cdef unsigned char *out = <unsigned char *>calloc(<size_t>(parts * (LARGEST_PART + 8) // 8 + 8), 1)
    cdef int seed = 0
    cdef bint solved = True
    try:
        if not (all_members and ordered and starts and rows and solution and directory and out):
            raise MemoryError
        with nogil:
            for i in range(count):
                all_members[i].hash = hash_key(&data[at[i]], length[i], suffix_of(suffix[i]))
                all_members[i].bits, all_members[i].value = bits[i], value[i]
                starts[part_of(all_members[i].hash.part, parts) + 2] += 1
            for part in range(2, parts + 2):
                starts[part] += starts[part - 1]
            for i in range(count):
                part = part_of(all_members[i].hash.part, parts)
                ordered[starts[part + 1]] = all_members[i]
                starts[part + 1] += 1
            for part in range(parts):
                members = starts[part + 1] - starts[part]
                size = 0
                for i in range(starts[part], starts[part + 1]):
                    size += ordered[i].bits + (VALUE_BITS if ordered[i].value >= 0 else 0)
                size += size // 80
                tries = 0
                while True:
                    seed = <int>(tries % SEEDS)
                    if size > LARGEST_PART:
                        solved = False
                        break
                    if solve(ordered + starts[part], members, seed, size, rows, solution):
                        break
                    tries += 1
                    if tries % 4 == 0:
                        size += 1 + size // 128
                if not solved:
                    break
                directory[2 * part] = <unsigned char>(size & 255)
                directory[2 * part + 1] = <unsigned char>(size >> 8 | seed << 4)
                for i in range(size):
                    out[(written + i) >> 3] |= <unsigned char>(solution[i] << ((written + i) & 7))
                written += size
        if not solved:
            raise ValueError("a set whose parts are too uneven")
        return parts, (
            PyBytes_FromStringAndSize(<char *>directory, 2 * parts)
            + PyBytes_FromStringAndSize(<char *>out, (written + 7) // 8)
        )
    finally:
        free(all_members)
        free(ordered)
        free(starts)
        free(rows)
        free(solution)
        free(directory)
        free(out)


# Asking a set.


cdef class HashedSet:
    """A set to be asked; see `sets.pyi`."""

    cdef bytes _kept
    cdef Bytes _bits
    cdef Py_ssize_t _parts
    cdef Py_ssize_t _size
    cdef Py_ssize_t *_starts
    cdef unsigned char *_seeds
    cdef readonly int below

    def __cinit__(self, bytes data not None, Py_ssize_t parts, int below):
        cdef Bytes directory = data
        cdef Py_ssize_t part, at = 0, bits
        if parts < 1 or parts > len(data) // 2 or not 1 <= below <= 60:
            raise ValueError("not a set: too few bytes for its parts")
        self._starts = <Py_ssize_t *>malloc(<size_t>(parts + 1) * sizeof(Py_ssize_t))
        self._seeds = <unsigned char *>malloc(<size_t>parts)
        if self._starts == NULL or self._seeds == NULL:
            raise MemoryError
        for part in range(parts):
            bits = directory[2 * part] | (directory[2 * part + 1] & 15) << 8
            self._starts[part], self._seeds[part] = at, directory[2 * part + 1] >> 4
            at += bits
        self._starts[parts] = at
        if len(data) - 2 * parts < (at + 7) // 8:
            raise ValueError("not a set: too few bytes for its bits")
        self._kept = data + bytes(16)  # so that eight bytes can be read anywhere
        self._bits = <Bytes>self._kept + 2 * parts
        self._parts, self._size, self.below = parts, at, below

    def __dealloc__(self):
        free(self._starts)
        free(self._seeds)

    cdef int _value(self, Bytes name, Py_ssize_t length, int suffix, int bits, bint is_gate) noexcept nogil:
        """-1 if a key is not in the set, else 0 or, of a gate, its value."""
        cdef Hash found = hash_key(name, length, suffix_of(suffix))
        cdef Py_ssize_t part = part_of(found.part, self._parts)
        cdef Py_ssize_t first = self._starts[part], size = self._starts[part + 1] - self._starts[part]
        cdef int seed = self._seeds[part], number, value = 0
        cdef Equation equation
        for number in range(bits):
            equation = equation_of(found.rows, seed, number, size)
            if self._sum(&equation, first) != equation.right:
                return -1
        if is_gate:
            for number in range(VALUE_BITS):
                equation = equation_of(found.rows, seed, VALUE_FIRST + number, size)
                value |= (self._sum(&equation, first) ^ equation.right) << number
        return value

    cdef inline int _sum(self, const Equation *equation, Py_ssize_t first) noexcept nogil:
        cdef Py_ssize_t at = first + equation.start
        cdef uint64_t window = word_at(self._bits + (at >> 3)) >> (at & 7)
        if at & 7:
            window |= <uint64_t>self._bits[(at >> 3) + 8] << (64 - (at & 7))
        return parity(window & equation.row)

    cdef bint _holds(self, Bytes key, Py_ssize_t length, Py_ssize_t anchor) noexcept nogil:
        """Whether a key may be held: walk down from the anchor, whose name has `anchor` bytes."""
        cdef Py_ssize_t host = find_byte(key, c")", 0, length), name = length, end = anchor
        cdef Py_ssize_t address = address_length(key, host)
        cdef int bits = self.below, value
        cdef bint in_host = anchor < host or (anchor == host and host < length)
        cdef int exact = 0
        while name > host + 1 and key[name - 1] == c"/":
            name -= 1
        if name == host + 1:
            exact = 1
        if name <= anchor:
            return self._value(key, name, exact, bits, False) >= 0
        while True:
            # The next node towards the key's own.
            if end < host:
                end += 1
                while end < host and (end < address or (key[end] != c"," and key[end] != c":")):
                    end += 1
                in_host = True
            elif end == host:
                end += 1
                in_host = False
            else:
                end = find_byte(key, c"/", end + 1, name)
                in_host = False
            if end == name:
                return self._value(key, name, exact, bits, False) >= 0
            value = self._value(key, end, 3 if in_host else 2, bits, True)
            if value < 0:
                return False
            if value == STOP:
                return True
            bits = K[value - 1]

    def holds(self, bytes key not None, Py_ssize_t anchor):
        """Whether a normal key below the anchor (the length of its name) may be held."""
        return self._holds(key, len(key), anchor)

    def ask(
        self,
        const unsigned char[::1] keys not None,
        const int64_t[::1] offsets not None,
        const int64_t[::1] lengths not None,
        const int64_t[::1] which not None,
        Py_ssize_t anchor,
        unsigned char[::1] found not None,
    ):
        """Ask for many keys of a buffer: `which` of them; `found` becomes 1 where one may be held, else it stays."""
        cdef Py_ssize_t i, row
        with nogil:
            for i in range(which.shape[0]):
                row = which[i]
                if not found[row] and self._holds(&keys[offsets[row]], lengths[row], anchor):
                    found[row] = 1
