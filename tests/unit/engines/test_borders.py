"""Borders: ranges of like weight, records on the right side of them, and no domain on both sides."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.engines.spark.exchange import _HEAD, Sample, Sizes, borders_of, cut, first_of, ranges_for
from recollect.engines.spark.maps import DOMAIN, TOP, border_at
from recollect.uris import segments

LABELS = st.text("ab-1_", min_size=1, max_size=4)
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(",".join)
KEYS = st.tuples(HOSTS, st.sampled_from(["", ":80", ":8080"]), st.sampled_from([")/", ")/a", ")/*", ",*"])).map(
    lambda parts: (parts[0] + (parts[1] if parts[2] != ",*" else "") + parts[2]).encode()
)


@given(st.sets(KEYS, min_size=1, max_size=30), KEYS, st.sampled_from([TOP, DOMAIN]))
def test_no_node_that_may_roll_up_lies_on_both_sides_of_a_border(keys: set[bytes], chosen: bytes, depth: int) -> None:
    border = border_at(chosen, depth)
    sides: dict[tuple[bytes, ...], set[bool]] = {}
    for key in keys:
        hosts = tuple(segments(key)[0])
        name = tuple(part.partition(b":")[0] for part in hosts if part != b"*")[:depth]
        if len(name) == depth:
            sides.setdefault(name, set()).add(key < border)
    assert all(len(found) == 1 for found in sides.values()), (border, sides)


def _record(key: bytes, rest: bytes, label: bytes = b"") -> bytes:
    return _HEAD.pack(len(key), len(rest), len(label), 0, 1) + key + rest + label


ROWS = st.lists(
    st.tuples(st.binary(min_size=1, max_size=3), st.binary(max_size=2), st.binary(max_size=1)), min_size=1, max_size=40
)


@given(ROWS, st.lists(st.tuples(st.binary(min_size=1, max_size=3), st.binary(max_size=2)), max_size=4))
def test_every_record_goes_to_the_range_it_belongs_to_and_none_is_lost(
    rows: list[tuple[bytes, bytes, bytes]], borders: list[tuple[bytes, bytes]]
) -> None:
    borders = sorted(set(borders))
    ordered = sorted(set(rows))
    block = b"".join(_record(*row) for row in ordered)
    pieces = list(cut([block], borders))
    assert b"".join(piece for _, piece in pieces) == block
    for number, piece in pieces:
        first = first_of(np.frombuffer(piece, np.uint8))
        assert sum(border <= first for border in borders) == number
        assert number == len(borders) or first < borders[number]


def test_borders_cut_the_weight_evenly_and_a_heavy_key_inside() -> None:
    light = [((b"k%03d" % number, b""), 1) for number in range(90)]
    assert [key for key, _ in borders_of(light, 3)] == [b"k030", b"k060"]
    heavy = [((b"m", b"%03d" % number), 1) for number in range(90)]
    assert borders_of(heavy, 3) == [(b"m", b""), (b"m", b"060")]
    assert borders_of([], 5) == []


def test_a_sample_stays_small_and_says_what_each_place_stands_for() -> None:
    sample = Sample(10, 100)
    for number in range(1000):
        sample.add(np.frombuffer(_record(b"%04d" % number, b""), np.uint8))
    assert len(sample.places) <= 10
    assert sample.weight * len(sample.places) >= 1000 * 100 / 2
    assert ranges_for(10 << 30, 2, Sizes()) == 160
    assert ranges_for(1, 8, Sizes()) == 1
