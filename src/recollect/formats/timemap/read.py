"""Reading TimeMaps of any kind an archive may send: link-format, JSON, CDXJ.

Hides: detecting the kind (by the body first, because Content-Type lies), charsets, byte-order marks, stray gzip,
and all the ways in which they break their format. Nothing raises: a body that is not a TimeMap gives none, with its
problem named; a body cut off gives what came.

Link-format is read in three passes, each over what the one before left. Mementos that stand one a line, as most
archives write them, are split off and checked all at once (0.6 µs each). A regular expression splits what is left at
well-formed mementos (0.9 µs each). What lies between, the head of the TimeMap or irregular text, goes to the tolerant
reader (`links`).

A large body is read in pieces of about `PIECE` bytes, cut where a link begins, and decoded piece by piece. No call into
compiled code (a decoder, a regular expression, a split) then takes more than some milliseconds, so that a server that
reads in a thread goes on with other clients; memory beyond the result stays small; and between two pieces the caller
may say `stop`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from itertools import compress

from recollect.errors import FormatError
from recollect.formats.timemap.found import Found
from recollect.formats.timemap.links import Problems, parse_links
from recollect.formats.timemap.model import AFTER_URI, DATE, MOMENT_OF_DAY, RELATION, TimeMap
from recollect.formats.timemap.structured import TOO_LATE, read_cdxj, read_json

_BLANK = "\ufeff \t\r\n"
INFLATE_LIMIT = 64 << 20
"""Bytes that a body sent compressed without saying so may grow to."""
MAX_IRREGULAR = 500_000
"""Links that are read one by one, at ten times the cost: some seconds of work, whatever an archive sends."""

# Targets here hold only what `safe_uri` leaves alone, and no `<`: one start never runs into another, so time is linear.
_FAST = re.compile(
    r'<(https?://[!#-;=?-~]+)>; ?rel="(?:first |last )*memento"; ?'
    r'datetime="([A-Z][a-z]{2}, [^"]{11} )([0-2][0-9]:[0-5][0-9]:[0-5][0-9]) GMT"'
    r'(?:; ?(?!anchor)[a-z]+="[^"\\]*")*(?:,\s*|\s*\Z)'
)
_END_OF_LINE = ' GMT",\n<'
PIECE = 1 << 18
_CUT = re.compile(rb'[",;]\s{0,100}(?=<\s{0,100}(?:https?:|/))')
_START = 8000  # bytes that show what a body is
_UTF_16, _UTF_8 = (b"\xff\xfe", b"\xfe\xff"), re.compile(rb"(?:\xef\xbb\xbf)+")  # byte-order marks
_LONG = 10_000  # characters from which it pays to look for lines that can be read at once
_DAY, _TIME = slice(-DATE, -8), slice(-8, None)  # of a stem
_SAFE = bytes(set(range(0x21, 0x7F)) - set(b'"<>'))
_TWO = bytes(byte == ord("2") for byte in range(256))
_FOUR_OR_MORE = bytes(byte >= ord("4") for byte in range(256))
_LINK_START = re.compile(r"[\s,;\ufeff]*<\s*(?:[A-Za-z][A-Za-z0-9+.-]*:|[/?.])")
_HTML = re.compile(r"\s*<(?:!doctype|!--|html|head|body|\?xml)", re.IGNORECASE)
_CDXJ_LINE = re.compile(r"(?:[!@]\w+\s|\d{4,14}\s+\{|\S+\s+\d{14}\s+\{)")


def parse_timemap(
    body: bytes, content_type: str, base_uri: str, *, stop: Callable[[], bool] = lambda: False
) -> TimeMap:
    """Read the TimeMap fetched from `base_uri`, whatever its kind. Once `stop` says so, only what was read until then
    is given, and `missing` says why."""
    problems = Problems()
    body = _in_utf_8(_inflate(body, problems), problems)
    start = _decode(body[:_START]).lstrip(_BLANK)[:2000] or _decode(body.lstrip(_BLANK.encode())[:_START])[:2000]
    if not start:
        return TimeMap(kind="other" if problems.words() else "empty", problems=problems.words())
    if start[0] in "{[":
        return read_json(_decode(body), base_uri, problems, stop)
    if _CDXJ_LINE.match(start):
        return read_cdxj(_decode(body), base_uri, problems, stop)
    if _HTML.match(start) or ("html" in content_type and not _LINK_START.match(start)):
        problems.add("an HTML page instead of a TimeMap")
        return TimeMap(kind="other", problems=problems.words())
    return _read_links(body, base_uri, problems, stop)


def _inflate(body: bytes, problems: Problems) -> bytes:
    if body[:2] != b"\x1f\x8b":
        return body
    problems.add("gzip without Content-Encoding")
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(body, INFLATE_LIMIT)
    except zlib.error as error:
        problems.add("broken gzip", str(error))
        return b""
    if inflater.unconsumed_tail:
        problems.lose(f"a compressed body of more than {INFLATE_LIMIT} bytes")
    elif not inflater.eof:
        problems.lose("broken gzip", "it ends early")
    return plain


def _in_utf_8(body: bytes, problems: Problems) -> bytes:
    """The body in UTF-8 without byte-order marks."""
    if body[:2] in _UTF_16:
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    marks = _UTF_8.match(body)
    if marks is None:
        return body
    problems.add("a byte-order mark")
    return body[marks.end() :]


def _decode(body: bytes) -> str:
    """Text of the body: UTF-8 whatever the charset said; other bytes are kept, and go into URIs as they are."""
    return body.decode("utf-8", "surrogateescape")


# Link-format


def _read_links(body: bytes, base: str, problems: Problems, stop: Callable[[], bool]) -> TimeMap:
    found = Found(base, problems)
    irregular = 0
    for number, cut in enumerate(pieces_of(body, PIECE)):
        if number and stop():
            problems.lose(TOO_LATE)
            break
        piece, left = _decode(cut), MAX_IRREGULAR - irregular
        irregular += read_well_formed(read_lines(piece, found) if len(piece) >= _LONG else piece, found, left)
        if irregular >= MAX_IRREGULAR:
            break
    if not found.related and not found.uris:
        problems.add("no links: this is not a TimeMap")
        return found.timemap("other")
    return found.timemap("link")


def pieces_of(body: bytes, size: int) -> Iterator[bytes]:
    """The body in pieces of at least `size` bytes, each beginning with a link; a body in which no link begins for
    four times as long is cut anywhere, as it is not a TimeMap."""
    start = 0
    while len(body) - start > 2 * size:
        cut = _CUT.search(body, start + size, start + 4 * size)
        end = cut.end() if cut else min(start + 4 * size, len(body))
        yield body[start:end]
        start = end
    yield body[start:]


def read_lines(text: str, found: Found) -> str:
    """Read the mementos that stand one a line, between a first and a last one; returns the text without them.

    They are read only if all of them are as they should be: what lies between the ends of two lines is a stem, if there
    are as many relations as stems, each ends with a date, and nothing before it could be more than an address.
    """
    pieces = text.split(_END_OF_LINE)
    head = text.count(_END_OF_LINE, 0, max(0, text.find(RELATION))) + 1
    stems = pieces[head:-1]
    if not stems:
        return text
    rest = _END_OF_LINE.join([*pieces[:head], pieces[-1]])
    uris = [stem[:-AFTER_URI] for stem in stems]
    try:
        moments = [MOMENT_OF_DAY[stem[_DAY]] + stem[_TIME] for stem in stems]
    except FormatError:
        return text
    relations = text.count(RELATION) - rest.count(RELATION)
    if relations != len(stems) or not _are_addresses(uris) or not _have_times(moments):
        return text
    found.moments += moments
    found.uris += uris
    found.stems += stems
    return rest


def _are_addresses(uris: list[str]) -> bool:
    """Whether all are absolute, by one scheme, and hold only what `safe_uri` leaves alone."""
    text = "\n" + "\n".join(uris)
    scheme = "\nhttps://" if uris[0].startswith("https") else "\nhttp://"
    return (
        text.isascii() and text.count(scheme) == len(uris) and text.encode().translate(None, _SAFE) == b"\n" * len(uris)
    )


def _have_times(moments: list[str]) -> bool:
    """Whether the time of each datetime is `hh:mm:ss` within a day; the day is known to be valid."""
    text = "".join(moments).encode()
    hours, hour, colon, minutes, minute, colon_too, seconds, second = (text[at::16] for at in range(8, 16))
    # As numbers, so that all hours are compared at once: a two, and after it a four or more.
    late = int.from_bytes(hours.translate(_TWO)) & int.from_bytes(hour.translate(_FOUR_OR_MORE))
    return (
        colon == colon_too == b":" * len(moments)
        and (hours + hour + minutes + minute + seconds + second).isdigit()
        and not (hours.translate(None, b"012") or (minutes + seconds).translate(None, b"012345") or late)
    )


def read_well_formed(text: str, found: Found, max_irregular: int = MAX_IRREGULAR) -> int:
    """Read the rest: well-formed mementos anywhere, and at most `max_irregular` links between them, whose number
    is returned."""
    parts = _FAST.split(text)
    uris, days, times = parts[1::4], parts[2::4], parts[3::4]
    gaps, irregular = parts[0::4], 0
    for number, gap in compress(enumerate(gaps), gaps):
        for link in parse_links(gap, found.problems):
            found.link(link)
            irregular += 1
            if irregular == max_irregular:
                found.problems.lose(
                    f"more than {MAX_IRREGULAR} links that are not plain mementos, the rest is not read"
                )
                break
        if irregular == max_irregular:
            break
        if number < len(gaps) - 1 and ">" in gap and not gap.rstrip().endswith(","):
            found.problems.add("a semicolon between links" if gap.rstrip().endswith(";") else "no comma between links")
    try:
        if times and max(times) > "23:59:59":
            raise FormatError("no such hour")
        found.moments += [MOMENT_OF_DAY[day] + time for day, time in zip(days, times, strict=True)]
        found.uris += uris
        found.stems += [f"{uri}{RELATION}{day}{time}" for uri, day, time in zip(uris, days, times, strict=True)]
    except FormatError:
        for uri, day, time in zip(uris, days, times, strict=True):
            found.memento(uri, f"{day}{time} GMT")
    return irregular
