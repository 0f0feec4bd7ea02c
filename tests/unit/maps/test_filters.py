"""Filters: no false negatives, few false positives, the same bytes from the same keys."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from pathlib import Path

import pytest

from recollect.errors import FormatError, UsageError
from recollect.formats.filters import MAGIC, is_filter
from recollect.maps.filters import FilterMap, make_filter
from recollect.maps.lookup import open_map
from recollect.profiles.compaction.weights import Weights, compact_by_weights

RECORDED = {
    8: (
        "eNo9j0tIAlEUhv8K2hVBRQSFNuAmClSkIrAHQvRwEdaqKLk6ozM4PppHKYMQ7WpVi6CNi1ZlEUQFBolEQvtCIQijRavaGEW7qHsH68K95///"
        "83EO1+eZmPLO2x0lAAYXkDSVG7YO9Vm5kCRrgkINDWNESVlDuipwtCESVTRjmUQEZ6B/wMVSiaeZkaYqIqTYDIfdTk2MRAUGMyQRl6VgirnJ"
        "5GySJSqRtb+ulkqYZG0vTfQETzSB95N/ZlVQVCkeY9OpW5NkPkgUnm0zODGuMm5xiW0immjqdDrsuh+0nX1Fefq/MXrravUatbPrLgONNqqq"
        "N39ZE+CkZRSWDeTqMd0F7BSA8BzQVmowkYUXHNAyg8/q++WDB83ABfUdaC/iGyFAh9UEj7BN3yxOwgaz/goOgbsw0z1oPUceyJextwKU3h5z"
        "W5tAMft660a5go/CleV4eQTjlDzd7+yGb931jB9vC/TME6CgF5lfEnJ5Wg=="
    ),
    16: (
        "eNoLcnbz9AkxMLzDwMBQrZSUWVKsZKVgaKajoJSWmVOSWgTkAUXzEosqFdJKi1OVgBIZicUZYOGcxOxUoyRdMxOQaGYKUKy6FsjKTq0EG2Jg"
        "AOTkJeamghSDlBTk52QmV4J4HhUBFSCR4sScEphsSWUBWCXUXqBIaUFKYklqSnwiXE1ZalFxZn4eyHQgrzwzJyU5sSgFZFu1UkZ+MUhddCzI"
        "psSSDDC7tlYBAtJNLpmrbvqWmwL0pwMQM0LpAwwwMPWhre/VYyAW215VG4jYh2WHTjKgAd4kEGn0FcKz52dgkH/cBAy+7YuZXBgYvNxkdEDi"
        "Ey33yYDo9KpgTRAtMu9KJ3M9wpQoriddDAzLrSE87xIGhi/zPwh+FNix8EaIMy8DA99+kPiWdIi8ONBdorKHORgY/k5hYEiTBImV5jMwKMxH"
        "mLjqCAPDhF8Q9sr/DAxrw9JnVDfBZOMj735mYFghC2JfzE7ngokrzmVgED68GWjWnhYQf8+3q60MDDPYCpeBeFf6X3vd/rl9a1dQZy6If9hh"
        "ZegrrWPtth8YGK6+v1vHwPA5aB/n7ib5xtX/4y7YvWBgcPwNNPMcA8OGvIWnJUtlgfYHKTYom7A9WM/A8F/dp0fgINDlqXP/3IsFmVfUyMCg"
        "BVQ99wsAowSspA=="
    ),
}


@pytest.fixture
def full(tmp_path: Path) -> Path:
    path = tmp_path / "full.ukvs"
    path.write_text("".join(f"com,site{number // 100:02})/{number:05} 2/1\n" for number in range(5000)))
    return path


@pytest.mark.parametrize(("bits", "share"), [(8, 0.01), (16, 0.0005)])
def test_nothing_held_is_missed_and_little_else_is_found(tmp_path: Path, full: Path, bits: int, share: float) -> None:
    result = make_filter(full, tmp_path / "f", bits=bits)
    assert result.keys == 5000
    assert result.bits_per_key < bits * 1.6
    opened = open_map(tmp_path / "f")
    held = opened.lookup_many(f"http://site{number // 100:02}.com/{number:05}" for number in range(5000))
    assert {one.answer for one in held} == {"yes"}
    absent = opened.lookup_many(f"http://site{number // 100:02}.com/x{number:05}" for number in range(5000))
    assert sum(one.answer == "yes" for one in absent) <= share * 5000


def test_a_filter_of_a_compacted_map_finds_what_its_wildcards_cover(tmp_path: Path, full: Path) -> None:
    compact_by_weights(full, tmp_path / "small.ukvs", Weights())
    result = make_filter(tmp_path / "small.ukvs", tmp_path / "f", bits=16)
    assert result.wildcards == {"host": [], "path": [0]}
    opened = FilterMap.open(tmp_path / "f")
    assert {one.answer for one in opened.lookup_many(f"com,site{n // 100:02})/{n:05}" for n in range(5000))} == {"yes"}
    assert opened.lookup("http://site07.com/anything/else").key == b"com,site07)/*"
    assert opened.lookup("http://other.org/").answer == "no"


def test_voids_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "m.ukvs").write_text("com,x)/* 5\ncom,x)/a 0\n")
    result = make_filter(tmp_path / "m.ukvs", tmp_path / "f", bits=16)
    assert (result.keys, result.voids) == (1, 1)
    assert FilterMap.open(tmp_path / "f").lookup("http://x.com/a").answer == "yes"
    (tmp_path / "v.ukvs").write_text('!meta {"scope": "voids"}\ncom,x)/a 0\n')
    with pytest.raises(UsageError, match="voids"):
        make_filter(tmp_path / "v.ukvs", tmp_path / "g")


def test_the_same_keys_give_the_same_bytes_and_a_salt_gives_others(tmp_path: Path, full: Path) -> None:
    make_filter(full, tmp_path / "one")
    make_filter(full, tmp_path / "two")
    make_filter(full, tmp_path / "salted", salt=b"sesame")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() != (tmp_path / "salted").read_bytes()
    assert FilterMap.open(tmp_path / "salted").lookup("http://site00.com/00001").answer == "yes"


def test_an_index_becomes_a_filter_of_any_policy(tmp_path: Path) -> None:
    index = tmp_path / "index.surt"
    index.write_text("com,x)/a/b?q=1\ncom,x)/a/c\norg,y)/\n")
    make_filter(index, tmp_path / "f", policy="HxP1", bits=16)
    opened = FilterMap.open(tmp_path / "f")
    assert opened.meta["policy"] == "HxP1"
    assert opened.lookup("http://x.com/a/zzz").answer == "yes"
    assert opened.lookup("http://x.com/b").answer == "no"


def test_a_policy_can_be_narrowed_from_a_whole_map_but_not_from_a_compacted_one(tmp_path: Path, full: Path) -> None:
    make_filter(full, tmp_path / "f", policy="H2P0", bits=16)
    assert FilterMap.open(tmp_path / "f").lookup("http://site07.com/nothing").answer == "yes"
    (tmp_path / "small.ukvs").write_text("com,x)/* 5\n")
    with pytest.raises(UsageError, match="compacted"):
        make_filter(tmp_path / "small.ukvs", tmp_path / "g", policy="H2P0")
    with pytest.raises(UsageError, match="queries"):
        make_filter(full, tmp_path / "g", policy="URIR")


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_an_empty_map_and_compressed_filters(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "m.ukvs").write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\n')
    make_filter(tmp_path / "m.ukvs", tmp_path / f"f{suffix}")
    assert is_filter(str(tmp_path / f"f{suffix}"))
    assert open_map(tmp_path / f"f{suffix}").lookup("http://x.com/").answer == "no"


def test_the_layout_is_as_documented(tmp_path: Path, full: Path) -> None:
    make_filter(full, tmp_path / "f")
    data = (tmp_path / "f").read_bytes()
    assert data[:8] == MAGIC == b"RCFILT01"
    (length,) = struct.unpack_from("<I", data, 8)
    assert (12 + length) % 8 == 0
    assert json.loads(data[12 : 12 + length])["keys"] == 5000
    _, size, segment, count, product, slots, zero = struct.unpack_from("<QIIIIII", data, 12 + length)
    assert (size, product, slots, zero) == (5000, segment * count, segment * (count + 2), 0)
    assert len(data) == 12 + length + 32 + slots


def in_filter(data: bytes, key: bytes) -> bool:
    """Whether a key is in a filter; written from docs/filters.md alone."""
    whole = (1 << 64) - 1
    (length,) = struct.unpack_from("<I", data, 8)
    header = json.loads(data[12 : 12 + length])
    seed, _, segment, _, product, slots, _ = struct.unpack_from("<QIIIIII", data, 12 + length)
    name = hashlib.blake2b(key, digest_size=8, key=bytes.fromhex(header["salt"])).digest()
    h = (int.from_bytes(name, "little") + seed) & whole
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & whole
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & whole
    h ^= h >> 33
    first = h * product >> 64
    second = first + segment ^ h >> 18 & segment - 1
    third = first + 2 * segment ^ h & segment - 1
    prints = struct.unpack_from(f"<{slots}{'B' if header['bits'] == 8 else 'H'}", data, 44 + length)
    own = (h ^ h >> 32) & (1 << header["bits"]) - 1
    return own == prints[first] ^ prints[second] ^ prints[third]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("salt", ["", "5a17"])
def test_a_reader_written_from_the_documentation_finds_what_is_held(
    tmp_path: Path, full: Path, bits: int, salt: str
) -> None:
    make_filter(full, tmp_path / "f", bits=bits, salt=bytes.fromhex(salt))
    data = (tmp_path / "f").read_bytes()
    held = [line.split(b" ", 1)[0] for line in full.read_bytes().splitlines() if line[:1] != b"!"]
    assert all(in_filter(data, key) for key in held[::50])
    assert sum(in_filter(data, b"org,absent)/%d" % number) for number in range(400)) < 20


@pytest.mark.parametrize("cut", [3, 9, 40, 300, -1])
def test_a_filter_that_is_cut_off_is_named_as_such(tmp_path: Path, full: Path, cut: int) -> None:
    make_filter(full, tmp_path / "f")
    (tmp_path / "broken").write_bytes((tmp_path / "f").read_bytes()[:cut])
    with pytest.raises(FormatError):
        FilterMap.open(tmp_path / "broken")


def test_sizes_that_would_lead_outside_are_refused(tmp_path: Path, full: Path) -> None:
    make_filter(full, tmp_path / "f")
    data = bytearray((tmp_path / "f").read_bytes())
    (length,) = struct.unpack_from("<I", data, 8)
    struct.pack_into("<I", data, 12 + length + 20, 1 << 31)
    (tmp_path / "hostile").write_bytes(data)
    with pytest.raises(FormatError):
        FilterMap.open(tmp_path / "hostile")


@pytest.mark.parametrize("bits", [8, 16])
def test_a_filter_of_the_reference_library_is_read(tmp_path: Path, bits: int) -> None:
    """Recorded from FastFilter's xor_singleheader (pyfusefilter 1.3.0), with the hashes of a hundred keys."""
    held = [f"com,x)/{number}" for number in range(100)]
    (tmp_path / "f").write_bytes(zlib.decompress(base64.b64decode(RECORDED[bits])))
    opened = FilterMap.open(tmp_path / "f")
    assert {one.answer for one in opened.lookup_many(held)} == {"yes"}
    absent = opened.lookup_many(f"com,x)/a{number}" for number in range(10_000))
    assert sum(one.answer == "yes" for one in absent) < 2 * 10_000 / 2**bits + 5


@pytest.mark.parametrize("keys", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("bits", [8, 16])
def test_filters_of_any_size_hold_their_keys(tmp_path: Path, keys: int, bits: int) -> None:
    (tmp_path / "m.ukvs").write_text("".join(f"com,x)/{number:04} 1/1\n" for number in range(keys)))
    make_filter(tmp_path / "m.ukvs", tmp_path / "f", bits=bits)
    with FilterMap.open(tmp_path / "f") as opened:
        assert all(opened.lookup(f"com,x)/{number:04}").answer == "yes" for number in range(keys))
