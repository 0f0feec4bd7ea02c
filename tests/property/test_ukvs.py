"""Maps of any content: what is written is read back, and damaged bytes never crash a reader."""

import contextlib
import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import FormatError
from recollect.formats.blocks import BlockFile
from recollect.formats.containers import atomic_output, open_input
from recollect.formats.frequency import Count, Frequency
from recollect.formats.ukvs import Header, Record, Writer, lenient, quote, read, unquote
from recollect.formats.ukvs.faults import validate

segments = st.text("ab-!%(z", min_size=1, max_size=3).map(str.encode)
hosts = st.lists(st.sampled_from([b"com", b"x", b"y", b"a-b"]), min_size=1, max_size=3).map(b",".join)
exact = st.builds(lambda host, path: host + b")/" + b"/".join(path), hosts, st.lists(segments, max_size=3))
keys = st.one_of(
    st.just(b"*"), exact, hosts.map(lambda host: host + b",*"), exact.map(lambda key: key.rstrip(b"/") + b"/*")
)
counts = st.one_of(
    st.just(Count(None)),
    st.builds(Count, st.integers(1, 10**12), st.sampled_from(["", "+", "-", "~"])),
    st.just(Count(0)),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
blocks = st.just("") | st.dictionaries(st.text(max_size=4), json_values, max_size=3).map(lenient.dumps)
records = st.builds(Record, keys, st.just(()), st.builds(Frequency, counts, counts), blocks, st.just(()))
maps = st.lists(records, max_size=30, unique_by=lambda record: record.key).map(
    lambda found: sorted(found, key=lambda r: r.key)
)
suffixes = st.sampled_from(["", ".gz", ".zst"])


@pytest.fixture(scope="module")
def folder():
    """In memory where there is such a place: outputs are synced to disk, which takes most of the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@given(maps, suffixes, st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_a_map_comes_back_as_it_was_written_and_is_valid(folder, found, suffix, meta):
    path = folder / f"map.ukvs{suffix}"
    header = Header(id={"uri": "http://a/"}, meta=meta)
    with Writer(path, header) as writer:
        for record in found:
            writer.write(record)
    back, again = read(path, ordered=True)
    assert back == header
    assert list(again) == found
    assert [fault for fault in validate(path) if fault.level == "error"] == []
    with BlockFile.open(path) as file:
        for record in found:
            assert file.find(record.key).split()[0] == record.key


@given(json_values)
def test_lenient_json_reads_strict_json(value):
    assert lenient.loads(json.dumps(value)) == value


@given(st.text(max_size=40))
def test_any_text_is_json_or_a_format_error(text):
    with contextlib.suppress(FormatError):
        lenient.loads(text)


@given(st.text(max_size=20))
def test_any_text_fits_in_a_token(text):
    assert unquote(quote(text)) == text


GOOD = b"""\
!fields {"keys": ["surt"], "values": ["frequency"]}
!meta {a: "b"}
com,a)/ 5
com,b)/x/* 6/2 {"y": {"2014": 3}}
"""
edits = st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 5), st.binary(max_size=5)), max_size=6)


def damaged(text, changes):
    for start, length, new in changes:
        text = text[:start] + new + text[start + length :]
    return text


@given(edits | st.binary(max_size=200).map(lambda junk: [(0, len(GOOD), junk)]))
def test_damaged_maps_are_read_and_validated_without_a_crash(folder, changes):
    path = folder / "map"
    path.write_bytes(damaged(GOOD, changes))
    problems = []
    _header, found = read(path, problems.append)
    kept = list(found)
    faults = list(validate(path))
    # What the reader could not use, the validator must have called an error.
    if problems:
        assert any(fault.level == "error" for fault in faults)
    assert all(record.key for record in kept)


PACKED = gzip.compress(GOOD * 50)


@given(
    st.lists(st.tuples(st.integers(0, len(PACKED)), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=3)
)
def test_damaged_containers_never_crash(folder, changes):
    path = folder / "map.gz"
    path.write_bytes(damaged(PACKED, changes))
    with open_input(path, lambda problem: None) as stream:
        stream.read()
    list(validate(path))


@given(suffixes, st.data())
def test_damaged_block_files_are_searched_or_refused(folder, suffix, data):
    path = folder / f"map{suffix}"
    with atomic_output(path) as out:
        out.write(b"".join(b"com,%05d)/ 1\n" % number for number in range(9000)))
    size = path.stat().st_size
    change = data.draw(st.tuples(st.integers(0, size), st.integers(0, 30), st.binary(max_size=20)))
    path.write_bytes(damaged(path.read_bytes(), [change]))
    try:
        with BlockFile.open(path) as file:
            file.find(b"com,04567)/")
            list(file.lines_from(b"com,08"))
            file.read(5000, 100)
    except FormatError:
        pass
