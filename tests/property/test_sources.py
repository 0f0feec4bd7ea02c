"""Sources against a simple oracle: what went into a file comes out, and damage takes no more than it hit."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import RecollectError
from recollect.sources.har import entries
from recollect.sources.recognise import open_source

BODIES = st.lists(st.binary(max_size=300), min_size=1, max_size=8)


def record(number: int, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x.example/{number}\r\n"
        f"WARC-Date: 2015-01-01T00:00:00Z\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def read_all(data: bytes) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.warc.gz"
        path.write_bytes(data)
        source = open_source(path)
        found = {}
        for capture in source.captures(lambda _url: True, lambda _problem: None):
            try:
                found[capture.url] = b"".join(source.read(capture.place).chunks)
            except RecollectError:
                continue
        source.close()
        return found


@given(BODIES, st.sampled_from(["plain", "members", "whole", "pairs"]))
def test_every_record_comes_back_however_the_file_is_packed(bodies: list[bytes], form: str) -> None:
    records = [record(number, body) for number, body in enumerate(bodies)]
    packed = {
        "plain": lambda: b"".join(records),
        "members": lambda: b"".join(gzip.compress(one, mtime=0) for one in records),
        "whole": lambda: gzip.compress(b"".join(records), mtime=0),
        "pairs": lambda: b"".join(
            gzip.compress(b"".join(records[n : n + 2]), mtime=0) for n in range(0, len(records), 2)
        ),
    }[form]()
    assert read_all(packed) == {f"http://x.example/{number}": body for number, body in enumerate(bodies)}


@settings(deadline=None)
@given(BODIES, st.integers(0, 7), st.data())
def test_damage_in_one_gzip_member_loses_that_record_only(bodies: list[bytes], which: int, data: st.DataObject) -> None:
    members = [gzip.compress(record(number, body), mtime=0) for number, body in enumerate(bodies)]
    which %= len(members)
    hit = bytearray(members[which])
    start = data.draw(st.integers(10, len(hit) - 9))
    hit[start : start + 8] = bytes(byte ^ 0xFF for byte in hit[start : start + 8])
    found = read_all(
        b"".join([gzip.compress(record(99, b"first"), mtime=0), *members[:which], bytes(hit), *members[which + 1 :]])
    )
    for number, body in enumerate(bodies):
        if number != which:
            assert found.get(f"http://x.example/{number}") == body


@given(
    st.lists(st.recursive(st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)), max_size=5)
)
def test_the_scan_of_a_har_finds_where_each_entry_begins_and_ends(values: list[object]) -> None:
    import json

    tables = [{"a": value} for value in values]
    text = json.dumps({"log": {"version": "1", "entries": tables, "x": [{}]}}).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.har"
        path.write_bytes(text)
        assert [json.loads(text[start:end]) for start, end in entries(path)] == tables
