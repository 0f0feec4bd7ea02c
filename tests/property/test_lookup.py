"""Lookup in files of every kind is lookup in a dictionary."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from map_trees import deciding, holdings, keys, write_map
from recollect.formats.blockwriter import BGZF, ZSTD_SEEKABLE, BlockWriter
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, Record, Writer
from recollect.kernels.search import MapSearch
from recollect.maps.bulk import bulk_lookup
from recollect.maps.lookup import MementoMap
from recollect.maps.maptext import BlockText, MappedText, PartedText, open_text
from recollect.uris import ancestors

HEADER = b'!context ["http://oduwsdl.github.io/contexts/ukvs"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'


def _files(folder: Path, records: dict[bytes, Frequency], cut: int) -> list[Path]:
    """The same map in every container, with and without header and last newline."""
    plain = write_map(folder / "plain.ukvs", records, header=HEADER)
    write_map(folder / "bare.ukvs", records, end=b"")
    for kind, suffix in ((BGZF, ".gz"), (ZSTD_SEEKABLE, ".zst")):
        with (folder / f"plain.ukvs{suffix}").open("wb") as file:
            writer = BlockWriter(file, kind)
            writer._limit = 64  # many blocks, some lines longer than one
            writer.write(plain.read_bytes())
            writer.finish()
    parts = folder / "parts"
    parts.mkdir()
    ordered = sorted(records)
    for number, part in enumerate((ordered[:cut], ordered[cut:])):
        if part:
            write_map(parts / f"part-{number:05d}.ukvs", {key: records[key] for key in part}, header=HEADER)
    return [plain, folder / "bare.ukvs", folder / "plain.ukvs.gz", folder / "plain.ukvs.zst", parts]


@given(holdings(), st.lists(keys, max_size=20), st.integers(0, 30))
def test_every_container_answers_like_a_dictionary(
    records: dict[bytes, Frequency], others: list[bytes], cut: int
) -> None:
    asked = [*others, *(key for key in records if not key.endswith(b"*"))]
    expected = [deciding(records, key) for key in asked]
    with TemporaryDirectory() as folder:
        for path in _files(Path(folder), records, cut):
            text = open_text(str(path))
            one_by_one = [text.find(key) for key in asked]
            assert [hit and hit[0] for hit in one_by_one] == expected, path
            assert text.find_many(asked) == one_by_one, path
            for hit in one_by_one:
                if hit:
                    assert [line.split()[1].decode() for line in hit[1]] == [str(records[hit[0]])]
            text.close()


def test_each_container_is_searched_in_its_own_way(tmp_path: Path) -> None:
    records = {b"com,x)/%d" % number: Frequency.exact(1) for number in range(100)}
    kinds = [type(open_text(str(path))) for path in _files(tmp_path, records, 3)]
    assert kinds == [MappedText, MappedText, BlockText, BlockText, PartedText]


@pytest.mark.parametrize(
    "text",
    [
        b"com,b)/ 2\ncom,a)/ 1\n",
        b"com,a)/ 1\n" + b"\n" * 9 + b"com,b)/ 2\n",
        b"com,a)/ 1\n" + b"# a comment\n" * 9 + b"com,b)/ 2\n",
        b"\xef\xbb\xbfcom,a)/ 1\ncom,b)/ 2\n",
        b"!fields {}\n# a comment\n\n!context []\r\ncom,a)/\t1\r\ncom,b)/ 2\r\n",
    ],
)
def test_lookups_are_not_led_astray_by_maps_of_other_makers(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "m.ukvs").write_bytes(text)
    opened = MementoMap.open(tmp_path / "m.ukvs")
    answers = [opened.lookup(uri).answer for uri in ("http://a.com/", "http://b.com/", "http://c.com/")]
    assert answers == ["yes", "yes", "no"]


@pytest.mark.parametrize("name", ["m.ukvs", "m.ukvs.gz", "m.ukvs.zst"])
def test_an_address_is_one_segment_and_other_numbers_are_not(tmp_path: Path, name: str) -> None:
    with Writer(tmp_path / name, Header()) as writer:
        for key in (b"4,3,2,*", b"9,9,9,9,*"):
            writer.write(Record(key, frequency=Frequency.parse("5/1")))
    with MementoMap.open(tmp_path / name) as opened:
        answers = {host: opened.lookup(f"{host})/a").answer for host in ("4,3,2,1", "4,3,2,999", "4,3,2,1,5", "4,3,2")}
        assert answers == {"4,3,2,1": "no", "4,3,2,999": "yes", "4,3,2,1,5": "no", "4,3,2": "yes"}
        assert opened.lookup("9,9,9,9:80)/a").answer == "yes"


@given(holdings(), st.lists(keys, max_size=20), st.sampled_from([b"", b"?q=1", b"/", b"?", b"#f", b"//"]))
def test_bulk_lookup_says_what_lookup_says(records: dict[bytes, Frequency], others: list[bytes], ending: bytes) -> None:
    lines = [key + ending for key in [*others, *(key for key in records if not key.endswith(b"*"))]]
    with TemporaryDirectory() as folder, MementoMap.open(write_map(Path(folder) / "m.ukvs", records)) as opened:
        answers = list(bulk_lookup(opened, [b"\n".join(lines[:7]) + b"\n\n", b"\n".join(lines[7:])], threads=2))
        rows = [line.split(b"\t") for answer in answers for line in answer.text.splitlines()]
        assert [row[0] for row in rows] == lines
        for uri, answer, key, frequency in rows:
            said = opened.lookup(uri.decode())
            assert (answer.decode(), key, frequency.decode()) == (
                said.answer,
                said.key or b"-",
                str(said.frequency or "-"),
            )
        total = sum(answer.yes + answer.no + answer.unknown for answer in answers)
        assert total == len(lines)


@given(holdings(), st.lists(keys, max_size=20))
def test_the_wildcard_above_a_key_or_a_wildcard_is_the_nearest_one(
    records: dict[bytes, Frequency], others: list[bytes]
) -> None:
    lines = [key + b" " + str(records[key]).encode() + b"\n" for key in sorted(records)]
    text = b"".join(lines)
    starts = dict(zip(sorted(records), np.cumsum([0, *map(len, lines)]).tolist(), strict=False))
    asked = sorted({*others, *records})
    lengths = np.array([len(key) for key in asked], np.int64)
    offsets = np.cumsum(lengths) - lengths
    search, buffer = MapSearch(text, 0), b"".join(asked)
    above, places = np.empty_like(lengths), np.empty_like(lengths)
    search.find_above(buffer, offsets, lengths, above)
    assert above.tolist() == [next((starts[up] for up in ancestors(key) if up in starts), -1) for key in asked]
    search.place_many(buffer, offsets, lengths, places)
    assert places.tolist() == [search.place(key) for key in asked]
