"""URIs to SURTs, the ordinary case of `uris.canonical`: what it makes here is what `uris.surt` makes.

Ordinary is `http://` or `https://`, a host of letters, digits, `-` and `_` in labels (not an IPv4 address in any
spelling), perhaps a port, then visible ASCII without nested escapes, empty or dot segments, or session ids:

    http://www.Example.com:80/a/B.html/?y=2&x=1#top    com,example)/a/b.html?x=1&y=2

Every other URI is left to the careful way. A SURT is never longer than its URI.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from recollect.kernels.words cimport Bytes, compare_bytes, find_byte, is_digit, put_number, same_bytes

# What `compare_urls` says of a line: its URL has the SURT of the line, it may have another, it has none or that of the
# line before.
cpdef enum:
    SAME_SURT = 0
    OTHER_SURT = 1
    NO_URL = 2

cdef enum:
    MAX_URI = 1 << 16
    MAX_PARAMETERS = 64
    NOT_ORDINARY = -1


cdef struct Parameter:
    Bytes text
    Py_ssize_t length
    Py_ssize_t name_length


cdef inline unsigned char lower(unsigned char byte) noexcept nogil:
    return byte + 32 if c"A" <= byte <= c"Z" else byte


cdef inline bint is_visible(unsigned char byte) noexcept nogil:
    return c"!" <= byte <= c"~"


cdef inline int hex_value(unsigned char digit) noexcept nogil:
    """The value of a hexadecimal digit, or NOT_ORDINARY."""
    if is_digit(digit):
        return digit - c"0"
    digit = lower(digit)
    return digit - c"a" + 10 if c"a" <= digit <= c"f" else NOT_ORDINARY


cdef inline bint is_name_byte(unsigned char byte) noexcept nogil:
    return c"a" <= lower(byte) <= c"z" or is_digit(byte) or byte == c"-" or byte == c"_"


cdef inline Py_ssize_t www_length(Bytes host, Py_ssize_t length) noexcept nogil:
    """Length of a leading `www.`, `www2.` and so on in any case, or 0."""
    cdef Py_ssize_t i = 3
    if length < 4 or lower(host[0]) != c"w" or lower(host[1]) != c"w" or lower(host[2]) != c"w":
        return 0
    while i < length and is_digit(host[i]):
        i += 1
    return i + 1 if i < length and host[i] == c"." else 0


cdef inline Py_ssize_t host_length(Bytes host, Py_ssize_t length) noexcept nogil:
    """Length of an ordinary host name at the start of a text, or NOT_ORDINARY."""
    cdef Py_ssize_t i = 0
    cdef bint named = False  # a byte that no address in decimal or octal has
    while i < length and (is_name_byte(host[i]) or host[i] == c"."):
        if host[i] == c".":
            if i == 0 or host[i - 1] == c".":
                return NOT_ORDINARY
        elif not is_digit(host[i]):
            named = True
        i += 1
    return i if i > 0 and host[i - 1] != c"." and named else NOT_ORDINARY


cdef inline Py_ssize_t put_host(Bytes host, Py_ssize_t length, unsigned char *out) noexcept nogil:
    """Write the labels of a host from the last to the first; returns the length, or NOT_ORDINARY if it is none."""
    cdef Py_ssize_t begin = www_length(host, length), end = length, at, to = 0, i
    while end > begin:
        at = end
        while at > begin and host[at - 1] != c".":
            at -= 1
        if to:
            out[to] = c","
            to += 1
        for i in range(at, end):
            out[to] = lower(host[i])
            to += 1
        end = at - 1
    return to if to else NOT_ORDINARY


cdef inline Py_ssize_t read_port(Bytes text, Py_ssize_t length, int *port) noexcept nogil:
    """Read the digits of a port, from 1 to 65535 and without zeros in front; returns their number or NOT_ORDINARY."""
    cdef Py_ssize_t i = 0
    port[0] = 0
    while i < length and is_digit(text[i]) and i < 5:
        port[0] = port[0] * 10 + (text[i] - c"0")
        i += 1
    if i == 0 or text[0] == c"0" or port[0] > 65535 or (i < length and is_digit(text[i])):
        return NOT_ORDINARY
    return i


cdef inline Py_ssize_t put_text(Bytes text, Py_ssize_t length, unsigned char *out) noexcept nogil:
    """Write a path or query in lower case with the least of its bytes escaped; returns the length or NOT_ORDINARY.

    An escaped `%` may make another escape of what follows it, so that one is not ordinary.
    """
    cdef Py_ssize_t i = 0, to = 0
    cdef int high, low, byte
    while i < length:
        if not is_visible(text[i]):
            return NOT_ORDINARY
        if text[i] != c"%":
            out[to] = lower(text[i])
            to += 1
            i += 1
            continue
        if i + 2 >= length:
            return NOT_ORDINARY
        high, low = hex_value(text[i + 1]), hex_value(text[i + 2])
        byte = high * 16 + low
        if high < 0 or low < 0 or byte == c"%":
            return NOT_ORDINARY
        if is_visible(<unsigned char>byte) and byte != c"#":
            out[to] = lower(<unsigned char>byte)
            to += 1
        else:
            out[to], out[to + 1], out[to + 2] = c"%", lower(text[i + 1]), lower(text[i + 2])
            to += 3
        i += 3
    return to


cdef inline Py_ssize_t put_path(Bytes path, Py_ssize_t length, unsigned char *out) noexcept nogil:
    """Write a path that begins with `/`, without a slash at its end; returns the length or NOT_ORDINARY."""
    cdef Py_ssize_t size = put_text(path, length, out), i = 0
    cdef bint may_have_session = False
    while i + 1 < size:
        if out[i] == c"/":
            if out[i + 1] == c"/" or out[i + 1] == c".":
                return NOT_ORDINARY
            may_have_session |= out[i + 1] == c"("  # `/(s(...))/page.aspx`
        i += 1
    if may_have_session:
        return NOT_ORDINARY if has_aspx(out, size) else without_slash(out, size)
    return without_slash(out, size)


cdef inline Py_ssize_t without_slash(Bytes path, Py_ssize_t length) noexcept nogil:
    return length - 1 if length > 1 and path[length - 1] == c"/" else length


cdef inline bint has_aspx(Bytes path, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t i = find_byte(path, c".", 0, length)
    while i + 4 < length:
        if path[i + 1] == c"a" and path[i + 2] == c"s" and path[i + 3] == c"p" and path[i + 4] == c"x":
            return True
        i = find_byte(path, c".", i + 1, length)
    return False


cdef inline bint is_id_value(Bytes text, Py_ssize_t length) noexcept nogil:
    """Whether a text begins with 32 lower-case letters and digits."""
    cdef Py_ssize_t i
    if length < 32:
        return False
    for i in range(32):
        if not (c"a" <= text[i] <= c"z" or is_digit(text[i])):
            return False
    return True


cdef inline bint has_session(Bytes query, Py_ssize_t length) noexcept nogil:
    """Whether a query in lower case may hold a session id: `sid=` with an id, or parts of `sessionid` or `cftoken=`."""
    cdef Py_ssize_t i = find_byte(query, c"i", 0, length)
    cdef Bytes at
    while i + 2 < length:
        at = query + i
        if i >= 1 and query[i - 1] == c"s" and at[1] == c"d" and at[2] == c"=" and is_id_value(at + 3, length - i - 3):
            return True
        if i + 4 < length and at[1] == c"o" and at[2] == c"n" and at[3] == c"i" and at[4] == c"d":
            return True
        i = find_byte(query, c"i", i + 1, length)
    i = find_byte(query, c"f", 0, length)
    while i + 2 < length:
        if query[i + 1] == c"t" and query[i + 2] == c"o":
            return True
        i = find_byte(query, c"f", i + 1, length)
    return False


cdef inline Py_ssize_t compare_parameters(const Parameter *a, const Parameter *b) noexcept nogil:
    """By name, then those without `=` first, then by value."""
    cdef Py_ssize_t order = compare_bytes(a.text, a.name_length, b.text, b.name_length)
    if order != 0:
        return order
    return compare_bytes(
        a.text + a.name_length, a.length - a.name_length, b.text + b.name_length, b.length - b.name_length
    )


cdef bint sort_query(unsigned char *query, Py_ssize_t length, unsigned char *spare) noexcept nogil:
    """Put the parameters of a query in order; False if there are too many for this."""
    cdef Parameter[MAX_PARAMETERS] parameters
    cdef Parameter moved
    cdef int count = 0, i
    cdef Py_ssize_t begin = 0, end, to = 0
    memcpy(spare, query, length)
    while begin <= length:
        if count == MAX_PARAMETERS:
            return False
        end = find_byte(spare, c"&", begin, length)
        moved.text, moved.length = spare + begin, end - begin
        moved.name_length = find_byte(spare, c"=", begin, end) - begin
        i = count
        while i > 0 and compare_parameters(&moved, &parameters[i - 1]) < 0:
            parameters[i] = parameters[i - 1]
            i -= 1
        parameters[i] = moved
        count += 1
        begin = end + 1
    for i in range(count):
        if i:
            query[to] = c"&"
            to += 1
        memcpy(query + to, parameters[i].text, parameters[i].length)
        to += parameters[i].length
    return True


cdef Py_ssize_t put_query(Bytes query, Py_ssize_t length, unsigned char *out, unsigned char *spare) noexcept nogil:
    """Write a query in lower case, its parameters in order; returns the length or NOT_ORDINARY."""
    cdef Py_ssize_t size = put_text(query, length, out)
    if size < 0 or has_session(out, size):
        return NOT_ORDINARY
    if find_byte(out, c"&", 0, size) < size and not sort_query(out, size, spare):
        return NOT_ORDINARY
    return size


cdef Py_ssize_t put_surt(Bytes uri, Py_ssize_t length, unsigned char *out, unsigned char *spare) noexcept nogil:
    """Write the SURT of a URI; returns its length, or NOT_ORDINARY. `spare` is a scratch buffer as large as `out`."""
    cdef Py_ssize_t at, end, to, size
    cdef bint secure
    cdef int port
    if length < 8 or length >= MAX_URI or not (
        uri[0] == c"h" and uri[1] == c"t" and uri[2] == c"t" and uri[3] == c"p"
    ):
        return NOT_ORDINARY
    secure = uri[4] == c"s"
    at = 5 if secure else 4
    if uri[at] != c":" or uri[at + 1] != c"/" or uri[at + 2] != c"/":
        return NOT_ORDINARY
    at += 3
    # After `#` nothing counts, but all of it has to be visible.
    end = find_byte(uri, c"#", at, length)
    for size in range(end, length):
        if not is_visible(uri[size]):
            return NOT_ORDINARY
    size = host_length(uri + at, end - at)
    if size < 0:
        return NOT_ORDINARY
    to = put_host(uri + at, size, out)
    if to < 0:
        return NOT_ORDINARY
    at += size
    if at < end and uri[at] == c":":
        size = read_port(uri + at + 1, end - at - 1, &port)
        if size < 0:
            return NOT_ORDINARY
        if port != (443 if secure else 80):
            out[to] = c":"
            to = put_number(out, to + 1, port)
        at += 1 + size
    out[to] = c")"
    to += 1
    size = find_byte(uri, c"?", at, end) - at
    if size == 0:
        out[to] = c"/"
        to += 1
    elif uri[at] != c"/":
        return NOT_ORDINARY
    else:
        at += size
        size = put_path(uri + at - size, size, out + to)
        if size < 0:
            return NOT_ORDINARY
        to += size
    if at + 1 < end:
        size = put_query(uri + at + 1, end - at - 1, out + to + 1, spare)
        if size < 0:
            return NOT_ORDINARY
        if size:
            out[to] = c"?"
            to += 1 + size
    return to


cdef Py_ssize_t put_list(Bytes text, Py_ssize_t length, unsigned char *out, unsigned char *spare) noexcept nogil:
    """Write a list of URIs with the SURTs of ordinary ones in their places; returns the length."""
    cdef Py_ssize_t at = 0, end, stop, size, to = 0
    while at < length:
        stop = find_byte(text, c"\n", at, length)
        end = stop - 1 if stop > at and text[stop - 1] == c"\r" else stop
        size = put_surt(text + at, end - at, out + to, spare)
        if size < 0:
            size = stop - at
            memcpy(out + to, text + at, size)
        to += size
        if stop < length:
            out[to] = c"\n"
            to += 1
        at = stop + 1
    return to


def ordinary_surt(bytes uri not None):
    """The SURT of an ordinary URI, None for any other."""
    cdef Py_ssize_t length = len(uri), size
    cdef unsigned char *out = <unsigned char *>malloc(2 * length + 2)
    if out == NULL:
        raise MemoryError
    size = put_surt(uri, length, out, out + length + 1)
    made = None if size < 0 else out[:size]
    free(out)
    return made


def surts_of_list(const unsigned char[::1] text not None, unsigned char[::1] out not None):
    """Copy a list, one URI in a line, with SURTs in the places of ordinary URIs; returns the length of the copy."""
    cdef Py_ssize_t length = text.shape[0], size
    cdef unsigned char *spare = NULL
    if out.shape[0] < length:
        raise ValueError("the output buffer is smaller than the list")
    if length == 0:
        return 0
    spare = <unsigned char *>malloc(MAX_URI)
    if spare == NULL:
        raise MemoryError
    with nogil:
        size = put_list(&text[0], length, &out[0], spare)
    free(spare)
    return size


cdef Py_ssize_t find_url(Bytes line, Py_ssize_t length, Py_ssize_t *url) noexcept nogil:
    """Where the original URL is in an index line: the third field, or `url` in its JSON; returns its length.

    0 for a line of one field, which has none; NOT_ORDINARY where a parser has to decide.
    """
    cdef Py_ssize_t at = find_byte(line, c" ", 0, length), end
    if at == length:
        return 0
    at = find_byte(line, c" ", at + 1, length) + 1
    if at >= length:
        return NOT_ORDINARY
    if line[at] != c"{":
        url[0] = at
        return find_byte(line, c" ", at, length) - at
    while at + 7 < length:
        at = find_byte(line, c'"', at, length)
        if at + 7 < length and same_bytes(line + at, URL_NAME, 5):
            at += 5
            while at < length and (line[at] == c" " or line[at] == c":"):
                at += 1
            if at >= length or line[at] != c'"':
                return NOT_ORDINARY
            url[0] = at + 1
            end = find_byte(line, c'"', at + 1, length)
            return end - at - 1 if find_byte(line, c"\\", at + 1, end) == end else NOT_ORDINARY
        at += 1
    return NOT_ORDINARY


cdef Bytes URL_NAME = b'"url"'


def compare_urls(
    const unsigned char[::1] text not None,
    const int32_t[::1] starts not None,
    const int32_t[::1] run_of not None,
    const int32_t[::1] surt_at not None,
    const int32_t[::1] surt_length not None,
    unsigned char[::1] found not None,
):
    """Compare the original URL of each index line with the SURT of the line's run."""
    cdef Py_ssize_t i, begin, end, length, url = 0, size, run, last = 0, last_length = -1, last_run = -1
    cdef Py_ssize_t count = starts.shape[0]
    cdef unsigned char *out = NULL
    cdef Bytes base
    if count == 0:
        return
    out = <unsigned char *>malloc(4 * MAX_URI)
    if out == NULL:
        raise MemoryError
    base = &text[0]
    with nogil:
        for i in range(count):
            begin, run = starts[i], run_of[i]
            end = find_byte(base, c"\n", begin, text.shape[0])
            length = find_url(base + begin, end - begin, &url)
            found[i] = OTHER_SURT if length else NO_URL
            if length <= 0 or length >= MAX_URI or run < 0:
                continue
            if i and length == last_length and run == last_run and same_bytes(base + begin + url, base + last, length):
                found[i] = NO_URL
                continue
            last, last_length, last_run = begin + url, length, run
            size = put_surt(base + begin + url, length, out, out + 2 * MAX_URI)
            if size == surt_length[run] and same_bytes(out, base + surt_at[run], size):
                found[i] = SAME_SURT
    free(out)
