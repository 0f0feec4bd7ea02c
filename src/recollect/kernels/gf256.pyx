"""Linear algebra over GF(256), polynomial 0x11D. Matrices are rows of bytes, one row after the other.

A product c · x is the sum of x · 2^k over the bits k of c. Doubling is an addition and a comparison, which compilers
turn into vector instructions: several times as fast as a table of products, and without one.
"""

from libc.string cimport memset

cdef Py_ssize_t CHUNK = 1 << 13  # bytes of a row that are worked on while they are in the cache


cdef inline unsigned char doubled(unsigned char x) noexcept nogil:
    return <unsigned char>(x + x) ^ <unsigned char>(0x1D if <signed char>x < 0 else 0)


cdef inline unsigned char times(unsigned char a, unsigned char b) noexcept nogil:
    cdef unsigned char result = 0
    while a:
        if a & 1:
            result ^= b
        b = doubled(b)
        a >>= 1
    return result


cdef inline unsigned char inverse_of(unsigned char a) noexcept nogil:
    # a^254, as a^255 = 1
    cdef unsigned char square = a, result = 1
    cdef int _bit
    for _bit in range(7):
        square = times(square, square)
        result = times(result, square)
    return result


cdef inline void add_scaled(
    unsigned char *target, const unsigned char *source, unsigned char factor, Py_ssize_t count
) noexcept nogil:
    """target += factor · source"""
    cdef Py_ssize_t i
    cdef unsigned char x, y
    cdef unsigned char m0, m1, m2, m3, m4, m5, m6, m7
    if factor == 0:
        return
    if factor == 1:
        for i in range(count):
            target[i] ^= source[i]
        return
    m0 = 0xFF if factor & 1 else 0
    m1 = 0xFF if factor & 2 else 0
    m2 = 0xFF if factor & 4 else 0
    m3 = 0xFF if factor & 8 else 0
    m4 = 0xFF if factor & 16 else 0
    m5 = 0xFF if factor & 32 else 0
    m6 = 0xFF if factor & 64 else 0
    m7 = 0xFF if factor & 128 else 0
    for i in range(count):
        x = source[i]
        y = x & m0
        x = doubled(x)
        y ^= x & m1
        x = doubled(x)
        y ^= x & m2
        x = doubled(x)
        y ^= x & m3
        x = doubled(x)
        y ^= x & m4
        x = doubled(x)
        y ^= x & m5
        x = doubled(x)
        y ^= x & m6
        x = doubled(x)
        y ^= x & m7
        target[i] ^= y


def inverse(unsigned char value):
    """The number whose product with `value` is 1; 0 for 0."""
    return inverse_of(value) if value else 0


def product(
    const unsigned char[::1] left not None,
    const unsigned char[::1] right not None,
    unsigned char[::1] result not None,
    Py_ssize_t inner,
):
    """result = left · right; `inner` is the number of columns of `left` and of rows of `right`."""
    if inner <= 0 or left.shape[0] % inner or right.shape[0] % inner:
        raise ValueError("the matrices do not fit")
    cdef Py_ssize_t rows = left.shape[0] // inner, width = right.shape[0] // inner
    if result.shape[0] != rows * width:
        raise ValueError("the result does not fit")
    if result.shape[0] == 0:
        return
    cdef Py_ssize_t start, count, row, column
    with nogil:
        memset(&result[0], 0, <size_t>result.shape[0])
        start = 0
        while start < width:
            count = min(CHUNK, width - start)
            for row in range(rows):
                for column in range(inner):
                    add_scaled(
                        &result[row * width + start],
                        &right[column * width + start],
                        left[row * inner + column],
                        count,
                    )
            start += count


def eliminate(unsigned char[::1] work not None, Py_ssize_t width, Py_ssize_t columns):
    """Gauss-Jordan elimination of the first `columns` columns of `work`, in place; False when they are dependent."""
    if width <= 0 or columns > width or work.shape[0] % width or work.shape[0] // width < columns:
        raise ValueError("the matrix does not fit")
    cdef Py_ssize_t rows = work.shape[0] // width, column, row, i
    cdef unsigned char *base = &work[0] if rows else NULL
    cdef unsigned char *pivot
    cdef unsigned char factor, kept
    cdef bint independent = True
    with nogil:
        for column in range(columns):
            row = column
            while row < rows and base[row * width + column] == 0:
                row += 1
            if row == rows:
                independent = False
                break
            pivot = base + column * width
            factor = inverse_of(base[row * width + column])
            for i in range(width):
                kept = pivot[i]
                pivot[i] = times(factor, base[row * width + i])
                if row != column:
                    base[row * width + i] = kept
            for row in range(rows):
                if row != column:
                    factor = base[row * width + column]
                    add_scaled(base + row * width + column, pivot + column, factor, width - column)
    return independent
