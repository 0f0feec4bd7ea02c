"""Lines of an index (CDX, CDXJ, lists of SURTs) to columns.

A fast path with a fallback: a line that is not regular (an escape in the JSON, a key with upper case, too few fields)
is IRREGULAR and left to the careful parser in `formats.cdx`, so that the results are those of the careful parser.
Nothing here decides that a line is bad.

For each line: its start, the number of its run (neighbouring lines with one SURT), the 14 digits of its time, its
status (0 for none), the number of its media type (-1 for none) and its state. For each run: where the SURT is, its
length, and the length of the URI key within it, which is a prefix of the SURT.

Keys made here need no change to be in normal form: lower case ASCII, `)/` after the host, no `*`, no `#`. A run whose
key is not so has a key length of -1, and `uris.uri_key` makes its key.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from recollect.kernels.words cimport Bytes, common_bytes, find_byte, is_digit, repeated, same_bytes, word_at

# What a line turned out to be.
cpdef enum:
    GOOD = 0
    IRREGULAR = 1

# What a file is.
cpdef enum:
    SURT_LIST = 0
    CDX = 1
    CDXJ = 2

# What a field is: not needed, one of those that are read, or one that only the careful parser reads.
cpdef enum:
    UNUSED = 0
    URL = 1
    MEDIA = 2
    STATUS = 3
    TIME = 4
    CAREFUL = 5

cdef enum:
    FIELD_KINDS = 5  # UNUSED to TIME
    MAX_FIELDS = 64
    MAX_NAMES = 64
    LONGEST_NAME = 31
    MEDIA_SLOTS = 4096
    MAX_MEDIA = 1024
    IN_HOST = 1
    IN_PATH = 2

# What a byte may be without making a key irregular: bits IN_HOST and IN_PATH.
cdef uint8_t[256] ORDINARY


cdef void fill_ordinary() noexcept:
    cdef int byte
    for byte in range(256):
        ORDINARY[byte] = 0
        if c"a" <= byte <= c"z" or c"0" <= byte <= c"9" or byte in (c"-", c"_", c".", c","):
            ORDINARY[byte] |= IN_HOST
        if c"!" <= byte <= c"~" and not c"A" <= byte <= c"Z" and byte not in (c"*", c"#", c"?"):
            ORDINARY[byte] |= IN_PATH


fill_ordinary()


cdef struct Span:
    Py_ssize_t begin  # -1: there is no such field
    Py_ssize_t end


cdef struct Name:
    uint8_t length
    uint8_t field
    unsigned char[LONGEST_NAME] text


cdef struct Format:
    int kind
    unsigned char delimiter
    int fields                     # of a CDX line; 0: nothing is ordinary in such a file
    uint8_t[MAX_FIELDS] field_at   # what each of them is
    int name_count
    Name[MAX_NAMES] names          # of the fields of a JSON object
    bint has_time


# Where the ordinary parts of the SURT before end, counted from its start; the next SURT mostly shares them.
cdef struct Marks:
    Py_ssize_t root     # where its path begins; 0: nothing is known
    Py_ssize_t path_end
    Py_ssize_t key_end


# The text before a value of a JSON object of which all lines have the same three first names.
cdef struct Prefix:
    Py_ssize_t at
    Py_ssize_t length
    int field


cdef struct Template:
    bint learnt
    Prefix[3] prefixes


# The media types of a text, numbered as they are first seen; found again by a table of hashes.
cdef struct MediaTypes:
    int count
    int last  # that of the line before; -1: none
    int16_t[MEDIA_SLOTS] slots
    int32_t[MAX_MEDIA] at
    int32_t[MAX_MEDIA] length


cdef struct Columns:
    Py_ssize_t capacity
    int32_t *starts
    int32_t *run_of
    int64_t *times
    int16_t *statuses
    int16_t *media
    uint8_t *states
    int32_t *surt_at
    int32_t *surt_length
    int32_t *key_length


# -- keys -----------------------------------------------------------------------------------------


cdef inline Py_ssize_t path_begin(Bytes text, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where the path of a SURT begins, after `)/`; -1 if its host is out of the ordinary.

    An ordinary host is of bytes that are IN_HOST, then perhaps a port, with no comma before either. A dot in a host
    that begins with a digit may be an address, which `uri_key` turns around.
    """
    cdef Py_ssize_t i = begin, port
    cdef bint dotted = False
    while i < end and ORDINARY[text[i]] & IN_HOST:
        dotted |= text[i] == c"."
        i += 1
    if i == begin or i >= end or text[i - 1] == c"," or (dotted and text[begin] <= c"9"):
        return -1
    if text[i] == c":":
        port = i + 1
        i = port
        while i < end and is_digit(text[i]):
            i += 1
        if i == port:
            return -1
    return i + 2 if i + 1 < end and text[i] == c")" and text[i + 1] == c"/" else -1


cdef inline Py_ssize_t read_surt(
    Bytes text, Py_ssize_t begin, Py_ssize_t end, unsigned char delimiter,
    Py_ssize_t before, Py_ssize_t before_length, Marks *marks,
) noexcept nogil:
    """Where the SURT at `begin` ends. `marks` are those of the SURT at `before`, and then of this one.

    `marks.key_end` is -1 afterwards if the SURT is out of the ordinary.
    """
    cdef Py_ssize_t i = begin, root = 0, path_end = 0, key_end = -1, common = 0, path
    if marks.root > 0:
        common = common_bytes(text + before, text + begin, min(before_length, end - begin))
    if marks.root > 0 and common >= marks.root:
        root = begin + marks.root
        if common > marks.path_end:  # the same path and the beginning of a query
            path_end, key_end = begin + marks.path_end, begin + marks.key_end
        i = begin + common
    else:
        path = path_begin(text, begin, end)
        if path >= 0:
            root = i = path
    if root > 0 and key_end < 0:
        while i < end and ORDINARY[text[i]] & IN_PATH:
            i += 1
        if i == end or text[i] == delimiter or text[i] == c"?":
            path_end = key_end = i
            while key_end > root and text[key_end - 1] == c"/":
                key_end -= 1
    while i < end and text[i] > c" ":
        i += 1
    if i < end and text[i] != delimiter:  # white space that is not the delimiter, or so it seems
        key_end = -1
        while i < end and text[i] != delimiter:
            i += 1
    marks.root = root - begin if key_end >= 0 else 0
    marks.path_end = path_end - begin
    marks.key_end = key_end - begin if key_end >= 0 else -1
    return i


# -- values ---------------------------------------------------------------------------------------


cdef inline int64_t eight_digits(uint64_t word) noexcept nogil:
    """The number that eight ASCII digits spell, the first lowest in the word; -1 if one is not a digit."""
    cdef uint64_t high = repeated(0xF0), in_pairs = 0x00FF00FF00FF00FF, in_fours = 0x0000FFFF0000FFFF
    cdef uint64_t fours = 6553601, eights = 42949672960001  # 100 << 16 | 1, 10000 << 32 | 1
    if ((word & high) | (((word + repeated(6)) & high) >> 4)) != repeated(0x33):
        return -1
    # Neighbours are joined in pairs, then in fours, then in eights.
    word = ((word & repeated(0x0F)) * 2561) >> 8  # 10 << 8 | 1
    word = ((word & in_pairs) * fours) >> 16
    return <int64_t>(((word & in_fours) * eights) >> 32)


cdef inline int64_t read_time(Bytes text, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The number of the 14 digits at `begin`, or -1; they are read as eight and eight that share two."""
    cdef int64_t first, last, month, day, clock
    if begin + 14 > end:
        return -1
    first = eight_digits(word_at(text + begin))
    last = eight_digits(word_at(text + begin + 6))
    if first < 10000 or last < 0:
        return -1
    # A time that does not exist is corrected by the careful parser.
    month, day, clock = first // 100 % 100, first % 100, last % 1000000
    if month < 1 or month > 12 or day < 1 or day > 31 or clock >= 240000 or clock // 100 % 100 > 59 or clock % 100 > 59:
        return -1
    if day > 28 and (month == 2 or (day == 31 and (month == 4 or month == 6 or month == 9 or month == 11))):
        return -1
    return first * 1000000 + clock


cdef inline int read_status(Bytes text, Span span) noexcept nogil:
    """Three digits, 0 for an absent status, -1 for something else."""
    cdef Bytes value = text + span.begin
    cdef Py_ssize_t length = span.end - span.begin
    if length == 3 and c"1" <= value[0] <= c"9" and is_digit(value[1]) and is_digit(value[2]):
        return (value[0] - c"0") * 100 + (value[1] - c"0") * 10 + (value[2] - c"0")
    if length == 0 or (length == 1 and value[0] == c"-"):
        return 0
    return -1


cdef inline bint is_web(Bytes text, Span span) noexcept nogil:
    """Whether a URL begins with `http://` or `https://`."""
    cdef Bytes url = text + span.begin
    if span.end - span.begin < 8 or url[0] != c"h" or url[1] != c"t" or url[2] != c"t" or url[3] != c"p":
        return False
    url += 5 if url[4] == c"s" else 4
    return url[0] == c":" and url[1] == c"/" and url[2] == c"/"


cdef inline bint names_method(Bytes text, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Whether `__wb_method=`, in any case, may stand in [begin, end): perhaps not a request by GET."""
    cdef const char *name = b"__wb_method="
    cdef Py_ssize_t i = find_byte(text, c"_", begin, end), k
    while i + 12 <= end:
        if text[i + 1] == c"_":
            k = 2
            while k < 12 and (text[i + k] | 0x20) == (name[k] | 0x20):
                k += 1
            if k == 12:
                return True
        i = find_byte(text, c"_", i + 1, end)
    return False


cdef inline int media_number(Bytes text, Span span, MediaTypes *types) noexcept nogil:
    """The number of a media type, -1 for `-` or nothing, -2 for one with an escape or when there are too many kinds."""
    cdef Py_ssize_t begin = span.begin, length = span.end - span.begin, i
    cdef uint64_t mixed
    cdef int number, slot
    if length == 0 or (length == 1 and text[begin] == c"-"):
        return -1
    # Most lines have the media type of the line before.
    number = types.last
    if number >= 0 and types.length[number] == length and same_bytes(text + types.at[number], text + begin, length):
        return number
    if find_byte(text, c"\\", begin, span.end) < span.end:
        return -2
    mixed = <uint64_t>length
    for i in range(max(begin, span.end - 12), span.end):
        mixed = mixed * 31 + text[i]
    slot = <int>((mixed * <uint64_t>0x9E3779B97F4A7C15) >> 52)
    while types.slots[slot] >= 0:
        number = types.slots[slot]
        if types.length[number] == length and same_bytes(text + types.at[number], text + begin, length):
            types.last = number
            return number
        slot = (slot + 1) & (MEDIA_SLOTS - 1)
    number = types.count
    if number == MAX_MEDIA:
        return -2
    types.slots[slot] = <int16_t>number
    types.at[number] = <int32_t>begin
    types.length[number] = <int32_t>length
    types.count += 1
    types.last = number
    return number


# -- the fields of a line -------------------------------------------------------------------------


cdef inline void clear(Span *spans) noexcept nogil:
    cdef int field
    for field in range(FIELD_KINDS):
        spans[field].begin = -1


cdef inline int field_of(Bytes name, Py_ssize_t length, const Format *form) noexcept nogil:
    cdef int i
    for i in range(form.name_count):
        if form.names[i].length == length and same_bytes(form.names[i].text, name, length):
            return form.names[i].field
    return UNUSED


cdef inline Py_ssize_t skip_spaces(Bytes text, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    while at < end and text[at] == c" ":
        at += 1
    return at


cdef inline bint is_closed(Bytes text, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Whether the last byte that is not blank is `}`."""
    cdef Py_ssize_t i = end - 1
    while i > begin and (text[i] == c" " or text[i] == c"\r"):
        i -= 1
    return text[i] == c"}"


cdef inline bint read_alike(
    Bytes text, Py_ssize_t begin, Py_ssize_t end, const Template *known, Span *spans
) noexcept nogil:
    """Read a JSON object whose first three names are those of a line before, spelled the same; else False."""
    cdef Py_ssize_t i = begin
    cdef const Prefix *prefix
    cdef int n
    for n in range(3):
        prefix = &known.prefixes[n]
        if i + prefix.length > end or not same_bytes(text + prefix.at, text + i, prefix.length):
            return False
        i += prefix.length
        spans[prefix.field].begin = i
        i = find_byte(text, c'"', i, end)
        if i >= end or text[i - 1] == c"\\":
            return False
        spans[prefix.field].end = i
    return is_closed(text, i, end)


cdef bint read_json(
    Bytes text, Py_ssize_t begin, Py_ssize_t end, const Format *form, Template *known, Span *spans
) noexcept nogil:
    """Read a flat JSON object in [begin, end): the spans of URL, MEDIA and STATUS. False if anything is unusual.

    When these are the first three, nothing is read after them but the closing brace, and `known` learns where the
    text before each value is.
    """
    cdef Py_ssize_t i = begin, name, value, value_end, before = begin
    cdef int pairs = 0, field
    cdef bint quoted
    cdef Template seen
    if i >= end or text[i] != c"{":
        return False
    i += 1
    while True:
        i = skip_spaces(text, i, end)
        if i >= end or text[i] != c'"':
            return False
        name = i + 1
        i = name
        while i < end and text[i] != c'"' and text[i] != c"\\":
            i += 1
        if i + 1 >= end or text[i] == c"\\":
            return False
        field = field_of(text + name, i - name, form)
        if field == CAREFUL or (field != UNUSED and spans[field].begin >= 0):
            return False
        i = skip_spaces(text, i + 1, end)
        if i >= end or text[i] != c":":
            return False
        i = skip_spaces(text, i + 1, end)
        if i >= end:
            return False
        quoted = text[i] == c'"'
        if quoted:
            value = i + 1
            value_end = find_byte(text, c'"', value, end)
            if value_end >= end or find_byte(text, c"\\", value, value_end) < value_end:
                return False
            i = value_end + 1
        else:
            value = i
            while i < end and is_digit(text[i]):
                i += 1
            value_end = i
            if value_end == value or (text[value] == c"0" and value_end > value + 1):
                return False
        if field != UNUSED:
            spans[field].begin, spans[field].end = value, value_end
        if field != UNUSED and quoted and pairs < 3:
            seen.prefixes[pairs] = Prefix(before, value - before, field)
            pairs += 1
            before = value_end
            if pairs == 3:
                known[0] = seen
                known.learnt = True
                return is_closed(text, i, end)
        else:
            pairs = 4
        i = skip_spaces(text, i, end)
        if i >= end:
            return False
        if text[i] == c",":
            i += 1
            continue
        if text[i] != c"}":
            return False
        i += 1
        while i < end and (text[i] == c" " or text[i] == c"\r"):
            i += 1
        return i == end


cdef inline bint read_cdxj(
    Bytes text, Py_ssize_t begin, Py_ssize_t end, const Format *form, Template *known, Span *spans
) noexcept nogil:
    """The time and the JSON object of a CDXJ line; `begin` is the delimiter after its key."""
    if begin + 16 >= end or text[begin + 15] != form.delimiter:
        return False
    spans[TIME].begin, spans[TIME].end = begin + 1, begin + 15
    if known.learnt and read_alike(text, begin + 16, end, known, spans):
        return True
    spans[URL].begin = spans[MEDIA].begin = spans[STATUS].begin = -1
    return read_json(text, begin + 16, end, form, known, spans)


cdef inline bint read_cdx(
    Bytes text, Py_ssize_t begin, Py_ssize_t end, const Format *form, Span *spans
) noexcept nogil:
    """The fields of a CDX line in [begin, end); False if their number is not right."""
    cdef Py_ssize_t at = begin, stop
    cdef int index, last = form.fields - 1, field
    if last < 0:
        return False
    for index in range(last + 1):
        stop = find_byte(text, form.delimiter, at, end)
        if (stop == end) != (index == last):
            return False
        field = form.field_at[index]
        spans[field].begin, spans[field].end = at, stop
        at = stop + 1
    spans[UNUSED].begin = -1
    return not form.has_time or spans[TIME].end - spans[TIME].begin == 14


# -- lines ----------------------------------------------------------------------------------------


cdef inline int put_values(
    Bytes text, Py_ssize_t end, const Span *spans, MediaTypes *types, Columns *columns, Py_ssize_t line
) noexcept nogil:
    """Fill the columns of a line from the spans of its fields; GOOD, or IRREGULAR if a value is out of the ordinary."""
    cdef int64_t time = 0
    cdef int status = 0, number = -1
    if spans[TIME].begin >= 0:
        time = read_time(text, spans[TIME].begin, end)
    if spans[STATUS].begin >= 0:
        status = read_status(text, spans[STATUS])
    if spans[MEDIA].begin >= 0:
        number = media_number(text, spans[MEDIA], types)
    columns.times[line], columns.statuses[line], columns.media[line] = time, <int16_t>status, <int16_t>number
    if time < 0 or status < 0 or number < -1:
        return IRREGULAR
    if spans[URL].begin >= 0 and (
        not is_web(text, spans[URL]) or names_method(text, spans[URL].begin, spans[URL].end)
    ):
        return IRREGULAR
    return GOOD


cdef Py_ssize_t read_lines(
    Bytes text, Py_ssize_t end, const Format *form, Columns *columns, MediaTypes *types,
    Py_ssize_t *lines, Py_ssize_t *runs,
) noexcept nogil:
    """Lines to columns until the text ends or the columns are full; returns how much of the text was read."""
    cdef Template known
    cdef Marks marks
    cdef Span[FIELD_KINDS] spans
    cdef Py_ssize_t line = 0, run = -1, p = 0, stop, following, i, length, before
    cdef bint read, other_method = False
    memset(&known, 0, sizeof(Template))
    memset(&marks, 0, sizeof(Marks))
    while p < end and line < columns.capacity:
        stop = find_byte(text, c"\n", p, end)
        following = stop + 1
        if stop > p and text[stop - 1] == c"\r":
            stop -= 1
        # The SURT is the first field, mostly that of the line before.
        length = columns.surt_length[run] if run >= 0 else 0
        before = columns.surt_at[run] if run >= 0 else p
        i = p + length
        if run < 0 or i > stop or not same_bytes(text + before, text + p, length) or (
            i != stop and text[i] != form.delimiter
        ):
            i = read_surt(text, p, stop, form.delimiter, before, length, &marks)
            run += 1
            columns.surt_at[run], columns.surt_length[run] = <int32_t>p, <int32_t>(i - p)
            columns.key_length[run] = <int32_t>marks.key_end
            other_method = names_method(text, p, i)
        columns.starts[line], columns.run_of[line] = <int32_t>p, <int32_t>run
        clear(spans)
        if form.kind == SURT_LIST:
            read = i == stop and i > p
        elif form.kind == CDXJ:
            read = read_cdxj(text, i, stop, form, &known, spans)
        else:
            read = read_cdx(text, p, stop, form, spans)
        # A header, a line of JSON, an empty line: none of them begins like a host.
        if not read or stop == p or other_method or not ORDINARY[text[p]] & IN_HOST:
            columns.times[line], columns.statuses[line], columns.media[line] = 0, 0, -1
            columns.states[line] = IRREGULAR
        else:
            columns.states[line] = <uint8_t>put_values(text, stop, spans, types, columns, line)
        line += 1
        p = following
    lines[0], runs[0] = line, run + 1
    return min(p, end)


# -- doors ----------------------------------------------------------------------------------------


cdef class LineFormat:
    """What the lines of a file are made of; see `scan.pyi`."""

    cdef Format form

    def __init__(self, int kind, *, bytes delimiter=b" ", fields=(), names=None):
        cdef Name *entry
        memset(&self.form, 0, sizeof(Format))
        if len(delimiter) != 1:
            raise ValueError("a delimiter is one byte")
        self.form.kind = kind
        self.form.delimiter = delimiter[0]
        if len(fields) <= MAX_FIELDS:
            self.form.fields = len(fields)
            for index, field in enumerate(fields):
                self.form.field_at[<int>index] = field
                self.form.has_time |= field == TIME
        names = names or {}
        if len(names) > MAX_NAMES or any(len(name) > LONGEST_NAME for name in names):
            raise ValueError("too many names of fields, or too long ones")
        for index, (name, field) in enumerate(names.items()):
            entry = &self.form.names[<int>index]
            entry.length, entry.field = len(name), field
            memcpy(entry.text, <const unsigned char *>name, len(name))
        self.form.name_count = len(names)


cdef class Scanner:
    """Reads texts of whole lines into columns that it is given once; see `scan.pyi`."""

    cdef Columns columns
    cdef MediaTypes types
    cdef object kept
    cdef readonly Py_ssize_t lines
    cdef readonly Py_ssize_t runs

    def __init__(
        self, *,
        int32_t[::1] starts not None, int32_t[::1] run_of not None, int64_t[::1] times not None,
        int16_t[::1] statuses not None, int16_t[::1] media not None, uint8_t[::1] states not None,
        int32_t[::1] surt_at not None, int32_t[::1] surt_length not None, int32_t[::1] key_length not None,
    ):
        capacity = starts.shape[0]
        sizes = {
            capacity, run_of.shape[0], times.shape[0], statuses.shape[0], media.shape[0], states.shape[0],
            surt_at.shape[0], surt_length.shape[0], key_length.shape[0],
        }
        if len(sizes) != 1 or not capacity:
            raise ValueError("columns of one length are needed")
        self.kept = (starts, run_of, times, statuses, media, states, surt_at, surt_length, key_length)
        self.columns = Columns(
            capacity, &starts[0], &run_of[0], &times[0], &statuses[0], &media[0], &states[0],
            &surt_at[0], &surt_length[0], &key_length[0],
        )

    def read(self, const unsigned char[::1] text not None, LineFormat form not None):
        """Fill the columns from the start of the text; returns how much of it was read."""
        if text.shape[0] >= 1 << 31:
            raise ValueError("a text of 2 GB or more")
        self.types.count, self.types.last = 0, -1
        memset(self.types.slots, 0xFF, sizeof(self.types.slots))
        self.lines = self.runs = 0
        cdef Py_ssize_t consumed = 0
        if text.shape[0]:
            with nogil:
                consumed = read_lines(
                    &text[0], text.shape[0], &form.form, &self.columns, &self.types, &self.lines, &self.runs
                )
        return consumed

    @property
    def media_types(self):
        """Where the media types of the text that was read last are, and how long, by their numbers."""
        return [(self.types.at[number], self.types.length[number]) for number in range(self.types.count)]
