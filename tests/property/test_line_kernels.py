"""The compiled reader of map lines agrees with the careful one, and the address test with the law of keys."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from recollect.formats.frequency import Count, Frequency
from recollect.formats.ukvs import Header
from recollect.formats.ukvs.records import parse_line
from recollect.kernels import lines
from recollect.uris.keys import segments

_BOUNDS = {lines.EXACT: "", lines.AT_LEAST: "+", lines.AT_MOST: "-", lines.ABOUT: "~"}
_keys = st.from_regex(rb"[a-z]{1,9}(,[a-z0-9-]{1,4}){0,3}\)/[a-z0-9/._%-]{0,20}", fullmatch=True)
_counts = st.from_regex(rb"([0-9]{1,20}[+~-]?)?", fullmatch=True)
_blocks = st.sampled_from([b"", b' {"a": 1}', b'  {"b": "x y"}', b" x", b" "])
_ends = st.sampled_from([b"", b"\n", b"\r\n", b"\ncom,next)/ 1\n"])


@given(_keys, _counts, st.sampled_from([b"/", b""]), _counts, _blocks, _ends)
def test_a_record_is_what_the_careful_reader_makes_of_it(
    key: bytes, m: bytes, slash: bytes, r: bytes, block: bytes, end: bytes
) -> None:
    text = key + b" " + m + slash + r + block
    found = lines.line_at(text + end, 0)
    if found.kind == lines.IRREGULAR:
        return
    assert found.kind == lines.RECORD
    record = parse_line(text, Header(keys=("surt",), values=("frequency",)))
    counts = (_count(found.m, found.bounds & 3), _count(found.r, found.bounds >> 2))
    assert (record.key, record.frequency) == (text[: found.key_length], Frequency(*counts))
    assert found.block == (text.index(b"{") if b"{" in block else 0)
    assert text[: found.length].rstrip() == text.rstrip()
    assert found.next == len(text) + len(end.partition(b"\n")[0]) + 1


def _count(value: int, bound: int) -> Count:
    if value == 0 and bound == lines.AT_MOST:
        bound = lines.EXACT  # at most none is none
    return Count(None if value < 0 else value, _BOUNDS[bound])


@given(st.binary(min_size=1, max_size=60))
def test_no_text_is_read_beyond_its_end(text: bytes) -> None:
    found = lines.line_at(text, 0)
    assert 0 <= found.key_length <= len(text)
    assert 0 <= found.length <= len(text)
    assert lines.count_lines(text, 0, len(text)) == len(text.split(b"\n")) - text.endswith(b"\n")


@given(st.from_regex(rb"([0-9]{1,4},){0,4}[0-9a-z]{0,4}(:[0-9]{1,3})?|\[[0-9a-f:]{2,8}\](:80)?", fullmatch=True))
@example(b"4,3,2,999")
@example(b"4,3,2,1:80")
@example(b"4,3,2")
@example(b"4,3,2,1,x")
def test_an_address_is_one_segment_of_numbers(host: bytes) -> None:
    first = segments(host + b")/")[0][0]
    assert lines.is_address(host) == (first.startswith(b"[") or b"," in first)
