"""Hashed sets of wildcard lines: coding, asking, and the optimum that chooses them. docs/ukvs.md has the format.

A set is a bit string in parts. Each member gives equations over the bits of its part, linear over GF(2): as many as it
has bits, which hold for members and by chance, one in two each, for others; a gate has three more, whose right sides
are its value. An equation is about at most 64 neighbouring bits, so a part is solved in one sweep (a ribbon).
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from recollect.kernels.lines cimport address_length, token_end
from recollect.kernels.words cimport Bytes, common_bytes, find_byte, is_digit, low_zeros, same_bytes, word_at

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

# What `ask_lines` found.
cpdef enum:
    ABSENT = 0
    HELD = 1
    UNDECIDED = 2

cdef enum:
    LARGEST_PART = 4095  # bits, as the directory of parts has 12 bits for it
    MOST_BELOW = 60      # bits of what is next below a wildcard
    PADDING = 16         # bytes after a set, so that eight can be read anywhere
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
    Py_ssize_t spare=80,
):
    """A set of members: names data[at:at + length] with a suffix, their bits, and values of gates (-1: none).

    Parts have one bit more for each `spare` of their equations: with fewer it takes longer to find a solution.

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
                size += size // max(spare, 1)
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


cdef struct Coded:  # a set as it is asked; eight bytes can be read from any of its bits
    Bytes bits
    Py_ssize_t parts
    Py_ssize_t *starts  # of the bits of each part, and their end
    unsigned char *seeds
    int below           # bits of what is next below the anchor


cdef Py_ssize_t read_directory(Bytes data, Py_ssize_t length, Coded *coded) noexcept nogil:
    """Fill starts and seeds from the two bytes of each part; returns the bytes that the set has, -1 if it has fewer."""
    cdef Py_ssize_t part, at = 0, parts = coded.parts
    if parts < 1 or parts > length // 2 or not 1 <= coded.below <= MOST_BELOW:
        return -1
    for part in range(parts):
        coded.starts[part], coded.seeds[part] = at, data[2 * part + 1] >> 4
        at += data[2 * part] | (data[2 * part + 1] & 15) << 8
    coded.starts[parts] = at
    coded.bits = data + 2 * parts
    return 2 * parts + (at + 7) // 8 if length - 2 * parts >= (at + 7) // 8 else -1


cdef inline int sum_of(const Coded *coded, const Equation *equation, Py_ssize_t first) noexcept nogil:
    cdef Py_ssize_t at = first + equation.start
    cdef uint64_t window = word_at(coded.bits + (at >> 3)) >> (at & 7)
    if at & 7:
        window |= <uint64_t>coded.bits[(at >> 3) + 8] << (64 - (at & 7))
    return parity(window & equation.row)


cdef int value_of(
    const Coded *coded, Bytes name, Py_ssize_t length, int suffix, int bits, bint is_gate
) noexcept nogil:
    """-1 if a key is not in the set, else 0 or, of a gate, its value."""
    cdef Hash found = hash_key(name, length, suffix_of(suffix))
    cdef Py_ssize_t part = part_of(found.part, coded.parts)
    cdef Py_ssize_t first = coded.starts[part], size = coded.starts[part + 1] - coded.starts[part]
    cdef int seed = coded.seeds[part], number, value = 0
    cdef Equation equation
    for number in range(bits):
        equation = equation_of(found.rows, seed, number, size)
        if sum_of(coded, &equation, first) != equation.right:
            return -1
    if is_gate:
        for number in range(VALUE_BITS):
            equation = equation_of(found.rows, seed, VALUE_FIRST + number, size)
            value |= (sum_of(coded, &equation, first) ^ equation.right) << number
    return value


cdef struct Way:  # from an anchor to the node of a key, by the lengths of the names on it
    Bytes key
    Py_ssize_t host     # where the host ends
    Py_ssize_t address  # length of the IP address that the host begins with
    Py_ssize_t name     # of the key's own node
    Py_ssize_t end      # of the node that was reached
    int exact           # suffix of the key itself


cdef Way way_to(Bytes key, Py_ssize_t length, Py_ssize_t anchor) noexcept nogil:
    cdef Way way
    way.key, way.host, way.name, way.end, way.exact = key, find_byte(key, c")", 0, length), length, anchor, 0
    way.address = address_length(key, way.host)
    while way.name > way.host + 1 and key[way.name - 1] == c"/":
        way.name -= 1
    if way.name == way.host + 1:
        way.exact = 1
    return way


cdef int next_gate(Way *way) noexcept nogil:
    """Go on to the next node; the suffix of its wildcard, or 0 if it is the key's own node."""
    cdef int suffix = 2
    if way.name <= way.end:
        return 0
    if way.end < way.host:
        way.end += 1
        while way.end < way.host and (
            way.end < way.address or (way.key[way.end] != c"," and way.key[way.end] != c":")
        ):
            way.end += 1
        suffix = 3
    elif way.end == way.host:
        way.end += 1
    else:
        way.end = find_byte(way.key, c"/", way.end + 1, way.name)
    return suffix if way.end < way.name else 0


cdef bint may_hold(const Coded *coded, Bytes key, Py_ssize_t length, Py_ssize_t anchor) noexcept nogil:
    """Whether a key may be held: walk down from the anchor, whose name has `anchor` bytes."""
    cdef Way way = way_to(key, length, anchor)
    cdef int bits = coded.below, value, suffix
    while True:
        suffix = next_gate(&way)
        if suffix == 0:
            return value_of(coded, key, way.name, way.exact, bits, False) >= 0
        value = value_of(coded, key, way.end, suffix, bits, True)
        if value < 0:
            return False
        if value == STOP:
            return True
        bits = K[value - 1]


cdef class HashedSet:
    """A set to be asked; see `sets.pyi`."""

    cdef bytes _kept
    cdef Coded _coded
    cdef readonly int below

    def __cinit__(self, bytes data not None, Py_ssize_t parts, int below):
        if parts < 1 or parts > len(data) // 2:
            raise ValueError("not a set: too few bytes for its parts")
        self._kept = data + bytes(PADDING)
        self._coded.parts, self._coded.below, self.below = parts, below, below
        self._coded.starts = <Py_ssize_t *>malloc(<size_t>(parts + 1) * sizeof(Py_ssize_t))
        self._coded.seeds = <unsigned char *>malloc(<size_t>parts)
        if self._coded.starts == NULL or self._coded.seeds == NULL:
            raise MemoryError
        if read_directory(self._kept, len(data), &self._coded) < 0:
            raise ValueError("not a set: too few bytes for its bits")

    def __dealloc__(self):
        free(self._coded.starts)
        free(self._coded.seeds)

    def holds(self, bytes key not None, Py_ssize_t anchor):
        """Whether a normal key below the anchor (the length of its name) may be held."""
        return may_hold(&self._coded, key, len(key), anchor)

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
                if not found[row] and may_hold(&self._coded, &keys[offsets[row]], lengths[row], anchor):
                    found[row] = HELD


# Asking the sets of many lines. Only blocks that are spelled as `maps.sets` spells them are read here.


cdef struct Cursor:
    Bytes text
    Py_ssize_t at
    Py_ssize_t stop


cdef inline bint skip(Cursor *cursor, const char *words, Py_ssize_t length) noexcept nogil:
    """Pass over these words, if they are next."""
    if cursor.stop - cursor.at < length or not same_bytes(cursor.text + cursor.at, <Bytes>words, length):
        return False
    cursor.at += length
    return True


cdef inline Py_ssize_t small_number(Cursor *cursor) noexcept nogil:
    """The number that is next; -1 if there is none, or it has more than seven digits or a zero in front."""
    cdef Py_ssize_t number = 0, first = cursor.at
    while cursor.at < cursor.stop and is_digit(cursor.text[cursor.at]) and cursor.at - first < 8:
        number = 10 * number + cursor.text[cursor.at] - c"0"
        cursor.at += 1
    return number if 0 < cursor.at - first < 8 and cursor.text[first] != c"0" else -1


cdef enum:
    BAD_LETTER = 255

cdef unsigned char[256] SIXES  # the six bits of each letter
cdef Bytes _LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
for _number in range(256):
    SIXES[_number] = BAD_LETTER
for _number in range(64):
    SIXES[_LETTERS[_number]] = _number


cdef Py_ssize_t decode_base64(Bytes text, Py_ssize_t length, unsigned char *out) noexcept nogil:
    """The bytes of a base64 text with its padding; returns their number, -1 if it is not plain base64."""
    cdef Py_ssize_t i = 0, written = 0
    cdef unsigned char a, b, c, d
    if length % 4 or length == 0:
        return -1
    while i < length:
        a, b, c, d = SIXES[text[i]], SIXES[text[i + 1]], SIXES[text[i + 2]], SIXES[text[i + 3]]
        i += 4
        if (a | b | c | d) & 0xC0:
            break
        out[written] = <unsigned char>(a << 2 | b >> 4)
        out[written + 1] = <unsigned char>((b & 15) << 4 | c >> 2)
        out[written + 2] = <unsigned char>((c & 3) << 6 | d)
        written += 3
    else:
        return written
    if i < length or (a | b) & 0xC0 or text[length - 1] != c"=":
        return -1
    out[written] = <unsigned char>(a << 2 | b >> 4)
    if text[length - 2] == c"=":
        return written + 1
    if c & 0xC0:
        return -1
    out[written + 1] = <unsigned char>((b & 15) << 4 | c >> 2)
    return written + 2


cdef struct Workspace:  # for the bytes of one set, its directory included
    unsigned char *data
    Py_ssize_t *starts
    unsigned char *seeds
    Py_ssize_t capacity


cdef bint reserve(Workspace *work, Py_ssize_t length) noexcept nogil:
    """Allocate memory for a set of `length` bytes; False if there is none."""
    cdef Py_ssize_t capacity
    if length <= work.capacity:
        return True
    capacity = 2 * length
    free(work.data)
    free(work.starts)
    free(work.seeds)
    work.data = <unsigned char *>malloc(<size_t>(capacity + PADDING))
    work.starts = <Py_ssize_t *>malloc(<size_t>(capacity // 2 + 1) * sizeof(Py_ssize_t))
    work.seeds = <unsigned char *>malloc(<size_t>(capacity // 2 + 1))
    work.capacity = capacity if work.data != NULL and work.starts != NULL and work.seeds != NULL else 0
    return work.capacity > 0


cdef bint read_coded(Cursor *cursor, Workspace *work, Coded *coded) noexcept nogil:
    """The set that is next in a block; False if it is not one that is read here."""
    cdef Py_ssize_t below, length, end
    if not skip(cursor, b'{"v": 1, "k": ', 14):
        return False
    below = small_number(cursor)
    if below > MOST_BELOW or not skip(cursor, b', "parts": ', 11):
        return False
    coded.parts = small_number(cursor)
    if not skip(cursor, b', "bits": "', 11):
        return False
    end = find_byte(cursor.text, c'"', cursor.at, cursor.stop)
    if not reserve(work, end - cursor.at):
        return False
    length = decode_base64(cursor.text + cursor.at, end - cursor.at, work.data)
    if length < 0:
        return False
    memset(work.data + length, 0, PADDING)
    coded.starts, coded.seeds, coded.below = work.starts, work.seeds, <int>below
    cursor.at = end
    return read_directory(work.data, length, coded) == length and skip(cursor, b'"}', 2)


cdef bint ask_block(
    Cursor *cursor,
    Workspace *work,
    Py_ssize_t anchor,
    Bytes keys,
    const int64_t[::1] offsets,
    const int64_t[::1] lengths,
    const int64_t *rows,
    Py_ssize_t count,
    unsigned char[::1] found,
) noexcept nogil:
    """Ask all sets of a block; False if it is spelled in another way, and then what was found is not to be used."""
    cdef Coded coded
    cdef Py_ssize_t i, row
    cdef bint several
    if not skip(cursor, b'{"set": ', 8):
        return False
    several = skip(cursor, b"[", 1)
    while True:
        if not read_coded(cursor, work, &coded):
            return False
        for i in range(count):
            row = rows[i]
            if found[row] != HELD and may_hold(&coded, keys + offsets[row], lengths[row], anchor):
                found[row] = HELD
        if not several or not skip(cursor, b", ", 2):
            break
    if several and not skip(cursor, b"]", 1):
        return False
    return skip(cursor, b"}", 1) and cursor.at == cursor.stop


def ask_lines(
    const unsigned char[::1] text not None,
    const int64_t[::1] positions not None,
    const int64_t[::1] rows not None,
    const unsigned char[::1] keys not None,
    const int64_t[::1] offsets not None,
    const int64_t[::1] lengths not None,
    unsigned char[::1] found not None,
):
    """Ask the sets of the lines of wildcards: for each of `rows`, which are in the order of their `positions`.

    `found` becomes HELD or ABSENT, or UNDECIDED where a block has to be read by `maps.sets`.
    """
    cdef Py_ssize_t count = rows.shape[0], first = 0, last, i, at, key_end
    cdef Workspace work
    cdef Cursor cursor
    cdef bint decided
    if count == 0:
        return
    work.data, work.starts, work.seeds, work.capacity = NULL, NULL, NULL, 0
    cursor.text = &text[0]
    with nogil:
        while first < count:
            at = positions[rows[first]]
            last = first
            while last < count and positions[rows[last]] == at:
                found[rows[last]] = ABSENT
                last += 1
            cursor.stop = find_byte(cursor.text, c"\n", at, text.shape[0])
            key_end = token_end(cursor.text, at, cursor.stop)
            cursor.at = min(token_end(cursor.text, key_end + 1, cursor.stop) + 1, cursor.stop)
            decided = ask_block(
                &cursor, &work, max(key_end - at - 2, 0), &keys[0], offsets, lengths, &rows[first], last - first, found
            )
            if not decided:
                for i in range(first, last):
                    found[rows[i]] = UNDECIDED
            first = last
    free(work.data)
    free(work.starts)
    free(work.seeds)


# The members of a set that is added to a line.


cdef inline bint ends_host_segment(unsigned char byte) noexcept nogil:
    return byte == c"," or byte == c":" or byte == c")"


def members_below(
    const unsigned char[::1] keys not None,
    const int64_t[::1] offsets not None,
    const int64_t[::1] lengths not None,
    const int64_t[::1] rows not None,
    Py_ssize_t anchor,
    int64_t[::1] at not None,
    int64_t[::1] length not None,
    unsigned char[::1] suffix not None,
):
    """The names that a set has for sorted keys below an anchor: the gates on the way to each, then the key itself.

    Returns their number, at most the size of the arrays, or -1 if that is not enough. A gate is left out where the key
    before has it, too: keys below it follow each other, except for ports (`com,x)/`, `com,x-y)/`, `com,x:80)/`). A
    gate that is there twice only has the same equations twice.
    """
    cdef Py_ssize_t i, row, count = 0, capacity = at.shape[0], common = 0, last = 0
    cdef Way way
    cdef int kind
    way.name = 0
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            if i:  # the root of a host is its own node: the slash at its end is not a part of its name
                last = rows[i - 1]
                common = common_bytes(&keys[offsets[last]], &keys[offsets[row]], min(way.name, lengths[row]))
            way = way_to(&keys[offsets[row]], lengths[row], anchor)
            while True:
                kind = next_gate(&way)
                if kind and (
                    way.end < common
                    or (way.end == common and kind == 3 and ends_host_segment(keys[offsets[last] + common]))
                ):
                    continue
                if count == capacity:
                    count = -1
                    break
                at[count], suffix[count] = offsets[row], <unsigned char>(kind if kind else way.exact)
                length[count] = way.end if kind else way.name
                count += 1
                if kind == 0:
                    break
            if count < 0:
                break
    return count
