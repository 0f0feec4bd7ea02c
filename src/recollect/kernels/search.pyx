"""Lookup: all keys that cover a URI are searched in the text of a map in one call.

Text: lines sorted by the bytes of their first token, which ends at the first byte up to 0x20. Positions are byte
offsets. The search is binary, by byte position, in sorted lines of any length.

A key K is searched first; where it would stand is also where everything near it stands. All lines that begin with a
given prefix of K are neighbours of that place, so a wildcard over a prefix that neither neighbour shares cannot exist
and is not searched; the others are searched outwards from there in growing steps, near things being near.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from recollect.kernels.lines cimport address_length
from recollect.kernels.words cimport Bytes, common_bytes, compare_bytes, find_byte, high_zeros, is_digit, word_at

# Answers.
cpdef enum:
    YES = 0
    NO = 1
    UNSURE = 2

# What follows the wanted bytes of a key: nothing, a slash, or a separator and `*`.
cdef enum:
    NOTHING = 0
    SLASH = 1
    BELOW_HOST = 44  # ,*
    BELOW_PATH = 47  # /*

cdef enum:
    UNSEEN = -1  # place to search outwards from: none


cdef struct Text:
    Bytes data
    Py_ssize_t start  # of the first record
    Py_ssize_t stop


cdef struct Wanted:  # key[:length] and an ending
    Bytes key
    Py_ssize_t length
    int end


cdef struct Order:
    int sign           # of a token against what is wanted
    Py_ssize_t shared  # bytes they have in common


cdef struct Found:
    Py_ssize_t at      # of the deciding line; -1: there is none
    Py_ssize_t place   # where the key itself is or would be
    Py_ssize_t before  # the line before that place; UNSEEN: not known


cdef inline int _byte_at(const Text *text, Py_ssize_t at) noexcept nogil:
    return text.data[at] if at < text.stop else c"\n"


cdef Order _order(const Text *text, Py_ssize_t at, const Wanted *wanted, Py_ssize_t known) noexcept nogil:
    """The token at `at` against what is wanted, of which the first `known` bytes are known to be the same."""
    cdef Order order
    cdef Py_ssize_t i = known
    cdef int byte, separator
    if i < wanted.length:
        i += common_bytes(
            text.data + at + i, wanted.key + i, min(wanted.length - i, max(text.stop - at - i, 0))
        )
        if i < wanted.length:
            byte = _byte_at(text, at + i)
            order.sign, order.shared = -1 if byte <= c" " or byte < wanted.key[i] else 1, i
            return order
    if wanted.end != NOTHING and i == wanted.length:
        byte = _byte_at(text, at + i)
        separator = c"/" if wanted.end == SLASH else wanted.end
        if byte != separator:
            order.sign, order.shared = -1 if byte < separator else 1, i
            return order
        i += 1
    if wanted.end > SLASH and i == wanted.length + 1:
        byte = _byte_at(text, at + i)
        if byte != c"*":
            order.sign, order.shared = -1 if byte < c"*" else 1, i
            return order
        i += 1
    order.sign, order.shared = 0 if _byte_at(text, at + i) <= c" " else 1, i
    return order


cdef Py_ssize_t _block_before(Bytes data, Py_ssize_t at, Py_ssize_t floor) noexcept nogil:
    """The last place up to `at`, in steps of 64, before which a block has a newline, or is cut by `floor`."""
    cdef unsigned char found
    cdef Bytes block
    cdef int i
    while at - 64 >= floor:
        block = data + at - 64
        found = 0
        for i in range(64):  # without a branch, so that compilers vectorise it
            found |= block[i] == c"\n"
        if found:
            break
        at -= 64
    return at


cdef Py_ssize_t _line_start(Bytes data, Py_ssize_t at, Py_ssize_t floor) noexcept nogil:
    """The start of the line that holds `at`, or `floor`. Nearly all lines are short, but one with a hashed set has
    tens of kilobytes: after four words without its start, blocks of 64 bytes are passed over."""
    cdef uint64_t word, zeros
    cdef uint64_t lows = 0x7F7F7F7F7F7F7F7F
    cdef Py_ssize_t near = at - 32
    while at - 8 >= floor:
        if at == near:
            at = _block_before(data, at, floor)
            if at - 8 < floor:
                break
        word = word_at(data + at - 8) ^ <uint64_t>0x0A0A0A0A0A0A0A0A
        zeros = ~(((word & lows) + lows) | word | lows)
        if zeros:
            return at - (high_zeros(zeros) >> 3)
        at -= 8
    while at > floor and data[at - 1] != c"\n":
        at -= 1
    return at


cdef inline Py_ssize_t _line_after(Bytes data, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    return min(find_byte(data, c"\n", at, stop) + 1, stop)


cdef Py_ssize_t _lower_bound(
    const Text *text,
    Py_ssize_t low,
    Py_ssize_t high,
    const Wanted *wanted,
    Py_ssize_t low_known,
    Py_ssize_t high_known,
) noexcept nogil:
    """The first line in [low, high) that is not below what is wanted; `high` if all are. Both ends are starts of lines.

    `low_known` bytes are shared by the line before `low`, `high_known` by the line at `high`: what both share,
    everything between them shares.
    """
    cdef Py_ssize_t middle
    cdef Order order
    while low < high:
        middle = _line_start(text.data, (low + high) >> 1, low)
        order = _order(text, middle, wanted, min(low_known, high_known))
        if order.sign < 0:
            low = _line_after(text.data, middle + order.shared, high)
            low_known = order.shared
        else:
            high = middle
            high_known = order.shared
    return low


cdef Py_ssize_t _seek(const Text *text, Py_ssize_t near, const Wanted *wanted) noexcept nogil:
    """The first line not below what is wanted, searched outwards from the line at `near`, if any, by growing steps."""
    cdef Py_ssize_t low, high, step = 128
    cdef Order order, other
    if near < 0:
        return _lower_bound(text, text.start, text.stop, wanted, 0, 0)
    order.sign, order.shared = 1, 0
    if near < text.stop:
        order = _order(text, near, wanted, 0)
        if order.sign == 0:
            return near
    if order.sign < 0:
        low = near
        while low + step < text.stop:
            high = _line_start(text.data, low + step, low)
            if high > low:
                other = _order(text, high, wanted, 0)
                if other.sign >= 0:
                    return _lower_bound(text, low, high, wanted, order.shared, other.shared)
                low, order = high, other
            step *= 4
        return _lower_bound(text, low, text.stop, wanted, order.shared, 0)
    high = near
    while high - step > text.start:
        low = _line_start(text.data, high - step, text.start)
        other = _order(text, low, wanted, 0)
        if other.sign < 0:
            return _lower_bound(text, low, high, wanted, other.shared, order.shared)
        high, order = low, other
        step *= 4
    return _lower_bound(text, text.start, high, wanted, 0, order.shared)


cdef Found _seek_wildcard(
    const Text *text, Py_ssize_t near, Bytes key, Py_ssize_t name, int separator, int64_t *memory
) noexcept nogil:
    """The wildcard of key[:name], by way of the memory if there is one. `place` is where it is or would be."""
    cdef Found found
    cdef Wanted wanted
    if memory != NULL and memory[name] != INT64_MIN:
        found.at = memory[name] if memory[name] >= 0 else -1
        found.place = found.at if found.at >= 0 else -1 - memory[name]
        return found
    wanted.key, wanted.length, wanted.end = key, name, separator
    found.place = _seek(text, near, &wanted)
    found.at = -1
    if found.place < text.stop and _order(text, found.place, &wanted, 0).sign == 0:
        found.at = found.place
    if memory != NULL:
        memory[name] = found.at if found.at >= 0 else -1 - found.place
    return found


cdef bint _is_between(const Text *text, Py_ssize_t before, Py_ssize_t place, const Wanted *wanted) noexcept nogil:
    """Whether the line at `place` is the first that is not below what is wanted, given the line before it."""
    if before < 0 or _order(text, before, wanted, 0).sign >= 0:
        return False
    return place >= text.stop or _order(text, place, wanted, 0).sign >= 0


cdef Found _search(
    const Text *text,
    Py_ssize_t near,
    Py_ssize_t before,
    Py_ssize_t everything,
    Bytes key,
    Py_ssize_t length,
    int64_t *memory,
) noexcept nogil:
    """The line that decides about a key.

    `near` is a start of a line to search outwards from (the place of the last key, in a sorted batch), or UNSEEN, and
    `before` that of the line before it: many keys in a row are in the same place, after a long line with a hashed set,
    whose start is not searched again. `everything` is the position of the line of `*`, or -1; `memory` holds,
    by the length of a name, where the wildcards over the beginnings of this key are (or -1 - p if there is none and p
    is its place), or INT64_MIN; it may be NULL.
    An exact key is also tried with a slash at its end, and the root of a host without it, as other makers write them.
    """
    cdef Found found
    cdef Wanted wanted
    cdef Order order
    cdef Py_ssize_t shared = 0, host, name
    wanted.key, wanted.length, wanted.end = key, length, NOTHING
    found.place, found.before = near, before
    if not _is_between(text, before, near, &wanted):
        found.place, found.before = _seek(text, near, &wanted), UNSEEN
    found.at = found.place
    if found.place < text.stop:
        order = _order(text, found.place, &wanted, 0)
        if order.sign == 0:
            return found
        shared = order.shared
    if found.place > text.start:
        if found.before < 0:
            found.before = _line_start(text.data, found.place - 1, text.start)
        shared = max(shared, _order(text, found.before, &wanted, 0).shared)
    host = find_byte(key, c")", 0, length)
    name = length
    if length == host + 2 and key[host + 1] == c"/":
        name = host + 1
    if name <= shared:
        wanted.length = name
        wanted.end = SLASH if name == length else NOTHING
        found.at = _seek(text, found.place, &wanted)
        if found.at < text.stop and _order(text, found.at, &wanted, 0).sign == 0:
            return found
    found.at = _nearest_wildcard(text, found.place, everything, key, name, host, shared, memory)
    return found


cdef Py_ssize_t _nearest_wildcard(
    const Text *text,
    Py_ssize_t near,
    Py_ssize_t everything,
    Bytes key,
    Py_ssize_t name,
    Py_ssize_t host,
    Py_ssize_t shared,
    int64_t *memory,
) noexcept nogil:
    """The line of the nearest wildcard from that of key[:name] upwards; the host has `host` bytes. Names longer than
    `shared` have none. For the others see `_search`."""
    cdef Found wider
    cdef Py_ssize_t at = near, address
    # Each wider wildcard stands before the narrower one, near the start of a wider range: go on from there.
    while name > host:
        if name <= shared:
            wider = _seek_wildcard(text, at, key, name, BELOW_PATH, memory)
            if wider.at >= 0:
                return wider.at
            at = wider.place
        name = _above_path(key, name, host)
    address = address_length(key, host)
    at = near
    while name > 0:
        if name <= shared and _ends_segment(key, name, host, address):
            wider = _seek_wildcard(text, at, key, name, BELOW_HOST, memory)
            if wider.at >= 0:
                return wider.at
            at = wider.place
        name -= 1
    return everything


cdef inline Py_ssize_t _above_path(Bytes key, Py_ssize_t name, Py_ssize_t host) noexcept nogil:
    """The length of the next shorter name of a path; that of the host at the end of them."""
    name -= 1
    while name > host and key[name] != c"/":
        name -= 1
    return name


cdef Py_ssize_t _wildcard_above(
    const Text *text, Py_ssize_t near, Py_ssize_t everything, Bytes key, Py_ssize_t length, int64_t *memory
) noexcept nogil:
    """The line of the nearest wildcard above a key or a wildcard, or -1; `near` and `memory` are as for `_search`."""
    cdef Py_ssize_t host = find_byte(key, c")", 0, length), name = length
    if key[length - 1] == c"*":
        name = max(length - 2, 0)
        if name == 0:
            return -1
        if host < length:
            name = _above_path(key, name, host)
        else:  # a wildcard of hosts
            host = name
            name -= 1
    elif length == host + 2:
        name = host + 1
    return _nearest_wildcard(text, near, everything, key, name, host, length, memory)


cdef inline bint _ends_segment(Bytes key, Py_ssize_t name, Py_ssize_t host, Py_ssize_t address) noexcept nogil:
    """Whether key[:name] is the name of a node among hosts; `address` bytes are an IP address."""
    return name == host or (name >= address and (key[name] == c"," or key[name] == c":"))


cdef int64_t *_empty_memory(const int64_t[::1] lengths) noexcept:
    """A memory for keys of these lengths, as `_search` wants it; NULL if there is no memory."""
    cdef Py_ssize_t longest = 0, i
    for i in range(lengths.shape[0]):
        longest = max(longest, lengths[i])
    cdef int64_t *memory = <int64_t *>malloc(<size_t>(longest + 1) * sizeof(int64_t))
    if memory != NULL:
        for i in range(longest + 1):
            memory[i] = INT64_MIN
    return memory


cdef class MapSearch:
    """The text of a map, to be searched: see `search.pyi`."""

    cdef const unsigned char[::1] _data
    cdef Text _text
    cdef Py_ssize_t _everything

    def __cinit__(self, const unsigned char[::1] data, Py_ssize_t start):
        if not 0 <= start <= data.shape[0]:
            raise IndexError("not a part of the data")
        self._data = data
        self._text.data = &data[0] if data.shape[0] else NULL
        self._text.start, self._text.stop = start, data.shape[0]
        cdef Wanted wanted
        wanted.key, wanted.length, wanted.end = b"*", 1, NOTHING
        cdef Py_ssize_t at = _seek(&self._text, UNSEEN, &wanted)
        self._everything = -1
        if at < self._text.stop and _order(&self._text, at, &wanted, 0).sign == 0:
            self._everything = at

    def find(self, bytes key not None):
        """Where the line is that decides about a key, or -1."""
        return _search(&self._text, UNSEEN, UNSEEN, self._everything, key, len(key), NULL).at

    def place(self, bytes key not None):
        """Where the first line is whose token is not below the key."""
        cdef Wanted wanted
        wanted.key, wanted.length, wanted.end = key, len(key), NOTHING
        return _seek(&self._text, UNSEEN, &wanted)

    def find_many(
        self,
        const unsigned char[::1] keys,
        const int64_t[::1] offsets,
        const int64_t[::1] lengths,
        int64_t[::1] order,
        int64_t[::1] spare,
        int64_t[::1] positions,
    ):
        """Look up many keys of a buffer; `order` numbers them, and becomes their order; `spare` is a scratch buffer.

        The result of one key is reused for the next as far as both begin with the same bytes.
        """
        if offsets.shape[0] == 0:
            return
        cdef int64_t *memory = _empty_memory(lengths)
        if memory == NULL:
            raise MemoryError
        cdef Bytes text = &keys[0] if keys.shape[0] else NULL
        with nogil:
            _sort_keys(text, offsets, lengths, order, spare)
            self._find_in_order(text, offsets, lengths, order, memory, positions)
        free(memory)

    cdef void _find_in_order(
        self,
        Bytes keys,
        const int64_t[::1] offsets,
        const int64_t[::1] lengths,
        const int64_t[::1] order,
        int64_t *memory,
        int64_t[::1] positions,
    ) noexcept nogil:
        cdef Py_ssize_t i, row, last, common, name, known = 0
        cdef Found found
        found.place = found.before = UNSEEN
        for i in range(order.shape[0]):
            row = order[i]
            common = 0
            if i:
                last = order[i - 1]
                common = common_bytes(keys + offsets[last], keys + offsets[row], min(lengths[last], lengths[row]))
            for name in range(common + 1, known + 1):
                memory[name] = INT64_MIN
            known = lengths[row]
            found = _search(
                &self._text, found.place, found.before, self._everything, keys + offsets[row], lengths[row], memory
            )
            positions[row] = found.at

    def find_above(
        self,
        const unsigned char[::1] keys not None,
        const int64_t[::1] offsets not None,
        const int64_t[::1] lengths not None,
        int64_t[::1] positions not None,
    ):
        """Where the line of the nearest wildcard above each key or wildcard of a buffer is, or -1; quick if keys are
        sorted."""
        cdef Py_ssize_t row, name, common, near = UNSEEN
        cdef Bytes key, last = NULL
        if offsets.shape[0] == 0:
            return
        cdef int64_t *memory = _empty_memory(lengths)
        if memory == NULL:
            raise MemoryError
        with nogil:
            for row in range(offsets.shape[0]):
                key = &keys[offsets[row]]
                if row:
                    common = common_bytes(last, key, min(lengths[row - 1], lengths[row]))
                    for name in range(common + 1, lengths[row - 1] + 1):
                        memory[name] = INT64_MIN
                last = key
                positions[row] = _wildcard_above(&self._text, near, self._everything, key, lengths[row], memory)
                near = max(near, positions[row])
        free(memory)

    def place_many(
        self,
        const unsigned char[::1] keys not None,
        const int64_t[::1] offsets not None,
        const int64_t[::1] lengths not None,
        int64_t[::1] places not None,
    ):
        """For each key of a buffer where the first line is whose token is not below it; quick if keys are sorted."""
        cdef Py_ssize_t row, near = UNSEEN
        cdef Wanted wanted
        wanted.end = NOTHING
        with nogil:
            for row in range(offsets.shape[0]):
                wanted.key, wanted.length = &keys[offsets[row]], lengths[row]
                places[row] = near = _seek(&self._text, near, &wanted)

    def looks_sorted(self, Py_ssize_t windows, Py_ssize_t lines):
        """Whether tokens rise in `windows` places of `lines` lines each, and from place to place; all for 0 windows."""
        cdef Py_ssize_t start = self._text.start, stop = self._text.stop
        cdef Py_ssize_t step = max((stop - start) // windows, 1) if windows else stop - start
        cdef Py_ssize_t last = -1, at = start, left
        cdef bint rises = True
        with nogil:
            while at < stop and rises:
                left = lines if windows else stop - start
                while left > 0 and at < stop and rises:
                    rises = last < 0 or _rises(self._text.data, last, at, stop)
                    last = at
                    at = _line_after(self._text.data, at, stop)
                    left -= 1
                if at + step >= stop:
                    break
                at = _line_start(self._text.data, at + step, at)
        return rises


cdef bint _rises(Bytes data, Py_ssize_t low, Py_ssize_t high, Py_ssize_t stop) noexcept nogil:
    """Whether the token of the line at `low` is not above that of the line at `high`."""
    cdef Py_ssize_t i = 0
    while high + i < stop and data[low + i] == data[high + i] and data[low + i] > c" ":
        i += 1
    return data[low + i] <= c" " or (high + i < stop and data[low + i] < data[high + i])


cdef void _sort_keys(
    Bytes keys, const int64_t[::1] offsets, const int64_t[::1] lengths, int64_t[::1] order, int64_t[::1] spare
) noexcept nogil:
    """Sort the row numbers in `order` by the bytes of their keys: bottom-up merge sort, quick on what is sorted
    already."""
    cdef Py_ssize_t count = order.shape[0], width = 1, low, middle, high, left, right, out
    while width < count:
        low = 0
        while low < count:
            middle, high = min(low + width, count), min(low + 2 * width, count)
            if middle < high and _is_above(keys, offsets, lengths, order[middle - 1], order[middle]):
                left, right = low, middle
                for out in range(low, high):
                    if left < middle and (
                        right >= high or not _is_above(keys, offsets, lengths, order[left], order[right])
                    ):
                        spare[out] = order[left]
                        left += 1
                    else:
                        spare[out] = order[right]
                        right += 1
                order[low:high] = spare[low:high]
            low = high
        width *= 2


cdef inline bint _is_above(
    Bytes keys, const int64_t[::1] offsets, const int64_t[::1] lengths, Py_ssize_t a, Py_ssize_t b
) noexcept nogil:
    return compare_bytes(keys + offsets[a], lengths[a], keys + offsets[b], lengths[b]) > 0


# Lists of URIs in, lists of answers out.


def split_lines(const unsigned char[::1] text, int64_t[::1] offsets, int64_t[::1] lengths):
    """Where the lines of a text lie, without white space around them and without empty ones; returns their number."""
    cdef Py_ssize_t count = 0, at = 0, end, after, stop = text.shape[0]
    cdef Py_ssize_t most = min(offsets.shape[0], lengths.shape[0])
    with nogil:
        while at < stop:
            end = find_byte(&text[0], c"\n", at, stop)
            after = end + 1
            while end > at and text[end - 1] <= c" ":
                end -= 1
            while at < end and text[at] <= c" ":
                at += 1
            if end > at:
                if count == most:
                    raise IndexError("an output array is too small")
                offsets[count], lengths[count] = at, end - at
                count += 1
            at = after
    return count


cdef inline bint _is_letter(unsigned char byte) noexcept nogil:
    return c"a" <= byte <= c"z"


cdef Py_ssize_t _plain_surt(Bytes text, Py_ssize_t length) noexcept nogil:
    """Length of the key of a SURT that is plain as in `maps.lookup`, with a query or a slash after it or not;
    else -1."""
    cdef Py_ssize_t i = 0, root
    cdef unsigned char byte
    if length == 0 or not _is_letter(text[0]):
        return -1
    while i < length:
        byte = text[i]
        if not (_is_letter(byte) or is_digit(byte) or byte == c"," or byte == c"-" or byte == c"_"):
            break
        i += 1
    if i + 1 >= length or text[i] != c")" or text[i + 1] != c"/" or text[i - 1] == c",":
        return -1
    i += 2
    root = i
    while i < length and text[i] != c"?":
        byte = text[i]
        if byte == c"/":
            if text[i - 1] == c"/":
                return -1
        elif not (
            _is_letter(byte) or is_digit(byte) or byte == c"-" or byte == c"." or byte == c"_" or byte == c"~"
        ):
            return -1
        i += 1
    if i > root and text[i - 1] == c"/":
        i -= 1
    return i


def plain_surts(
    const unsigned char[::1] text, const int64_t[::1] offsets, const int64_t[::1] lengths, int64_t[::1] keys
):
    """For each line the length of its key, which is its beginning, or -1 for lines that `lookup.keys_of` must see."""
    cdef Py_ssize_t row
    with nogil:
        for row in range(keys.shape[0]):
            keys[row] = _plain_surt(&text[offsets[row]], lengths[row])


cdef struct Verdict:
    int answer
    Py_ssize_t key_end
    Py_ssize_t start  # of the frequency
    Py_ssize_t end


cdef Verdict _verdict(Bytes text, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    """What a record's line says."""
    cdef Verdict verdict
    cdef Py_ssize_t i
    while at < stop and text[at] > c" ":
        at += 1
    verdict.key_end = at
    while at < stop and (text[at] == c" " or text[at] == c"\t"):
        at += 1
    verdict.start = i = at
    while at < stop and text[at] > c" ":
        at += 1
    verdict.end = at
    while i < verdict.end and text[i] == c"0":
        i += 1
    verdict.answer = YES
    if i > verdict.start and (i == verdict.end or text[i] == c"-" or text[i] == c"/"):
        verdict.answer = NO
    elif verdict.end == verdict.start:
        verdict.answer = UNSURE
    elif verdict.end == verdict.start + 1 and (text[verdict.start] == c"-" or text[verdict.start] == c"/"):
        verdict.answer = UNSURE
    return verdict


def answers_at(const unsigned char[::1] text, const int64_t[::1] positions, unsigned char[::1] answers):
    """The answers of the lines at some positions; those of negative ones are left as they are."""
    cdef Py_ssize_t row
    with nogil:
        for row in range(positions.shape[0]):
            if positions[row] >= 0:
                answers[row] = <unsigned char>_verdict(&text[0], positions[row], text.shape[0]).answer


def mark_sets(const unsigned char[::1] text, const int64_t[::1] positions, unsigned char[::1] marks):
    """Mark the positions of wildcards whose line may have a hashed set; returns whether there are any."""
    cdef Py_ssize_t row, at, end, last = -1
    cdef bint has = False, found = False
    cdef Verdict verdict
    with nogil:
        for row in range(positions.shape[0]):
            at = positions[row]
            if at < 0:
                continue
            if at != last:
                last, has = at, False
                verdict = _verdict(&text[0], at, text.shape[0])
                if verdict.key_end > at and text[verdict.key_end - 1] == c"*":
                    end = find_byte(&text[0], c"\n", verdict.end, text.shape[0])
                    has = _has_set(&text[0], verdict.end, end)
            marks[row] = has
            found |= has
    return found


cdef bint _has_set(Bytes text, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Whether `"set"` stands in text[at:end]."""
    while True:
        at = find_byte(text, c'"', at, end)
        if at + 5 > end:
            return False
        if text[at + 1] == c"s" and text[at + 2] == c"e" and text[at + 3] == c"t" and text[at + 4] == c'"':
            return True
        at += 1


cdef inline Py_ssize_t _put(
    unsigned char *out, Py_ssize_t to, Bytes text, Py_ssize_t length, unsigned char after
) noexcept nogil:
    """Copy bytes and a byte after them; returns where they end."""
    memcpy(out + to, text, <size_t>length)
    out[to + length] = after
    return to + length + 1


def write_answers(
    const unsigned char[::1] text,
    const int64_t[::1] positions,
    const unsigned char[::1] denied,
    int absent,
    const unsigned char[::1] lines,
    const int64_t[::1] offsets,
    const int64_t[::1] lengths,
    unsigned char[::1] out,
    int64_t[::1] tally,
):
    """Write `line TAB answer TAB key TAB frequency` for each line; returns the bytes written.

    `positions` are those of deciding lines, -1 for none (then the answer is `absent`), -2 for a line that is not a URI;
    `denied` marks those that the set of a line denies.
    `tally` counts the answers.
    """
    cdef Py_ssize_t row, at, to = 0
    cdef Verdict verdict
    cdef int answer
    cdef unsigned char *target
    cdef Bytes none = b"-\t-"
    cdef Bytes *words = [b"yes", b"no", b"unknown"]
    cdef Py_ssize_t *word_lengths = [3, 2, 7]
    if out.shape[0] == 0:
        return 0
    target = &out[0]
    with nogil:
        for row in range(positions.shape[0]):
            at = positions[row]
            answer = UNSURE if at == -2 else absent
            if at >= 0:
                verdict = _verdict(&text[0], at, text.shape[0])
                answer = NO if denied[row] else verdict.answer
            to = _put(target, to, &lines[offsets[row]], lengths[row], c"\t")
            to = _put(target, to, words[answer], word_lengths[answer], c"\t")
            if at >= 0:
                to = _put(target, to, &text[at], verdict.key_end - at, c"\t")
                to = _put(target, to, &text[0] + verdict.start, verdict.end - verdict.start, c"\n")
            else:
                to = _put(target, to, none, 3, c"\n")
            tally[answer] += 1
    return to
