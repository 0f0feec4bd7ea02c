"""Bytes and words of eight bytes: loads, bit counts, comparing, finding, writing numbers. A header; nothing to import.

A text is a pointer and a length, or a pointer and two offsets. Functions read inside of the given bounds only.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp

ctypedef const unsigned char *Bytes

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Eight bytes at any address as a little-endian number: the first byte is the lowest. */
    static inline uint64_t recollect_word_at(const unsigned char *at) {
        uint64_t word;
        memcpy(&word, at, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        return word;
    }
    #define recollect_low_zeros(word) __builtin_ctzll(word)
    #define recollect_high_zeros(word) __builtin_clzll(word)
    #define recollect_reversed(word) __builtin_bswap64(word)
    #define recollect_likely(condition) __builtin_expect(!!(condition), 1)
    """
    uint64_t word_at "recollect_word_at"(Bytes at) noexcept nogil
    # Bits below the lowest set one, and above the highest; the word is not 0.
    int low_zeros "recollect_low_zeros"(uint64_t word) noexcept nogil
    int high_zeros "recollect_high_zeros"(uint64_t word) noexcept nogil
    # The bytes of a word in reverse: words of texts then order like the texts.
    uint64_t reversed_bytes "recollect_reversed"(uint64_t word) noexcept nogil
    bint likely "recollect_likely"(bint condition) noexcept nogil


cdef inline uint64_t repeated(unsigned char byte) noexcept nogil:
    """A word of eight times one byte."""
    return byte * <uint64_t>0x0101010101010101


cdef inline bint is_digit(unsigned char byte) noexcept nogil:
    return c"0" <= byte <= c"9"


cdef inline Py_ssize_t find_byte(Bytes text, unsigned char byte, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where `byte` is next in text[begin:end], or `end`."""
    if begin >= end:
        return end
    cdef const void *found = memchr(text + begin, byte, <size_t>(end - begin))
    return end if found == NULL else <Bytes>found - text


cdef inline bint same_bytes(Bytes a, Bytes b, Py_ssize_t length) noexcept nogil:
    """Whether two texts are the same. Most are short, and calling `memcmp` takes longer than comparing them."""
    cdef Py_ssize_t i = 0
    if length < 8:
        while i < length:
            if a[i] != b[i]:
                return False
            i += 1
        return True
    while i + 8 <= length:
        if word_at(a + i) != word_at(b + i):
            return False
        i += 8
    # The rest, with some bytes again.
    return word_at(a + length - 8) == word_at(b + length - 8)


cdef inline Py_ssize_t compare_bytes(Bytes a, Py_ssize_t a_length, Bytes b, Py_ssize_t b_length) noexcept nogil:
    """Order of two texts as bytes: negative, zero, positive."""
    cdef int order = memcmp(a, b, <size_t>min(a_length, b_length))
    return order if order != 0 else a_length - b_length


cdef inline Py_ssize_t common_bytes(Bytes a, Bytes b, Py_ssize_t limit) noexcept nogil:
    """How many bytes two texts share, up to `limit`."""
    cdef Py_ssize_t count = 0
    cdef uint64_t differ
    while count + 8 <= limit:
        differ = word_at(a + count) ^ word_at(b + count)
        if differ:
            return count + (low_zeros(differ) >> 3)
        count += 8
    while count < limit and a[count] == b[count]:
        count += 1
    return count


cdef inline Py_ssize_t put_number(unsigned char *text, Py_ssize_t at, int64_t number) noexcept nogil:
    """Write a number that is not negative in decimal digits; returns where it ends."""
    cdef Py_ssize_t digits = 1
    cdef int64_t rest = number // 10
    cdef Py_ssize_t i
    while rest:
        digits += 1
        rest //= 10
    for i in range(at + digits - 1, at - 1, -1):
        text[i] = <unsigned char>(c"0" + number % 10)
        number //= 10
    return at + digits
