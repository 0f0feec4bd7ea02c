"""Hashed sets: nothing held is ever missed, whatever is done to a map that has them; a stranger reads them."""

from __future__ import annotations

import random
import re
from itertools import product
from math import inf, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stranger_sets
from map_trees import held_keys, holdings, write_map
from recollect.formats.frequency import Frequency
from recollect.kernels import setbudget
from recollect.kernels.branches import HELD
from recollect.kernels.sets import BITS, HashedSet, encode_set
from recollect.maps import maptext
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.profiles.compaction.budget import Budget, TooSmall, compact_by_budget
from recollect.profiles.compaction.weights import Weights, compact_by_weights

budgets = st.sampled_from([250, 400, 700, 1200, 2500])


def site(seed: int, count: int) -> dict[bytes, Frequency]:
    """A wide site, for which sets pay."""
    chance = random.Random(seed)
    keys = {
        f"com,site{chance.randrange(3)}{chance.choice(['', ',www', ':8080'])})/d{chance.randrange(4)}/p{number}"
        for number in range(count)
    }
    return {key.encode(): Frequency.exact(2, 1) for key in keys}


def with_sets(source: Path, target: Path, size: int) -> Path | None:
    try:
        compact_by_budget(source, target, Budget(max_bytes=size, sets=True), threads=1)
    except TooSmall:
        return None
    return target


def missed(path: Path, held: list[bytes]) -> list[bytes]:
    with MementoMap.open(path) as opened:
        one_by_one = [key for key in held if opened.lookup(key.decode()).answer == "no"]
        many = opened.lookup_many([key.decode() for key in held])
        assert [found.uri.encode() for found in many if found.answer == "no"] == one_by_one
    return one_by_one


@given(holdings(), st.integers(0, 2**32), budgets)
def test_no_held_key_is_missed(records: dict[bytes, Frequency], seed: int, size: int) -> None:
    records = {**site(seed, 150), **records}
    held = held_keys(records)
    with TemporaryDirectory() as folder:
        source = write_map(Path(folder) / "map.ukvs", records)
        for name in ("small.ukvs", "small.ukvs.zst"):
            small = with_sets(source, Path(folder) / name, size)
            if small is not None:
                assert missed(small, held) == []


@given(st.integers(0, 2**32), st.integers(0, 2**32), budgets, budgets, holdings(voids=False))
def test_no_sequence_of_merging_and_compacting_misses_a_held_key(
    first: int, second: int, size: int, other: int, more: dict[bytes, Frequency]
) -> None:
    one, two = site(first, 200), {**site(second, 120), **more}
    with TemporaryDirectory() as folder:
        place = Path(folder)
        small = with_sets(write_map(place / "one.ukvs", one), place / "a.ukvs", size)
        large = with_sets(write_map(place / "two.ukvs", two), place / "b.ukvs", other)
        if small is None or large is None:
            return
        held = [*held_keys(one), *held_keys(two)]
        merge_maps([small, large], place / "both.ukvs", MergeOptions())
        merge_maps([large, place / "one.ukvs"], place / "mixed.ukvs.gz", MergeOptions())
        compact_by_weights(place / "both.ukvs", place / "weighed.ukvs", Weights(1.0, 0.2))
        for made in ("both.ukvs", "mixed.ukvs.gz", "weighed.ukvs"):
            assert missed(place / made, held) == [], made
        for sets in (False, True):
            try:
                budget = Budget(max_keys=6, sets=sets)
                compact_by_budget(place / "both.ukvs", place / "again.ukvs", budget, threads=1)
            except TooSmall:
                continue
            assert missed(place / "again.ukvs", held) == []


@given(st.integers(0, 2**32), budgets)
def test_a_stranger_reads_the_same_answers(seed: int, size: int) -> None:
    records = site(seed, 200)
    with TemporaryDirectory() as folder:
        small = with_sets(write_map(Path(folder) / "map.ukvs", records), Path(folder) / "small.ukvs", size)
        if small is None:
            return
        found = stranger_sets.read_map(small.read_bytes())
        asked = [key.decode() for key in records] + [
            f"com,site{n % 4}{end})/d{n % 5}/p{n}{deeper}"
            for n, end, deeper in product(range(40), ("", ",www", ":8080"), ("", "/q"))
        ]
        with MementoMap.open(small) as opened:
            assert [stranger_sets.answer(found, key) for key in asked] == [opened.lookup(key).answer for key in asked]


def test_sets_are_made_and_takedowns_decide_before_them(tmp_path: Path) -> None:
    small = with_sets(write_map(tmp_path / "map.ukvs", site(1, 2000)), tmp_path / "small.ukvs", 1500)
    assert small is not None and b'"set"' in small.read_bytes()
    key = sorted(site(1, 2000))[100]
    with MementoMap.open(small) as opened:
        assert opened.lookup(key.decode()).by_set
    (tmp_path / "taken.ukvs").write_bytes(
        b"".join(sorted([*small.read_bytes().splitlines(keepends=True), key + b" 0\n"]))
    )
    with MementoMap.open(tmp_path / "taken.ukvs") as opened:
        assert opened.lookup(key.decode()).answer == "no"


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("count", [1, 10, 3000])
def test_false_positives_stay_within_their_binomial_bounds(bits: int, count: int) -> None:
    names = [b"com,x)/k%d" % number for number in range(count)]
    data = np.frombuffer(b"".join(names), np.uint8)
    length = np.array([len(name) for name in names], np.int64)
    parts, coded = encode_set(
        data, np.cumsum(length) - length, length, np.zeros(count, np.uint8), np.full(count, bits, np.uint8),
        np.full(count, -1, np.int8),
    )  # fmt: skip
    one = HashedSet(coded, parts, bits)
    assert all(one.holds(name, 6) for name in names)
    trials, chance = 20_000, 2.0**-bits
    wrong = sum(one.holds(b"com,x)/absent%d" % number, 6) for number in range(trials))
    assert abs(wrong - trials * chance) <= 5 * sqrt(trials * chance * (1 - chance)) + 1


def test_a_set_that_cannot_be_read_is_a_plain_wildcard(tmp_path: Path) -> None:
    for number, item in enumerate(('{"v": 2}', '{"v": 1, "k": 3, "parts": 9, "bits": "AAAA"}', "7", "[]")):
        path = tmp_path / f"m{number}.ukvs"
        path.write_text(f'com,x)/* 5/3 {{"set": {item}}}\n')
        with MementoMap.open(path) as opened:
            assert opened.lookup("com,x)/a").answer == "yes"


@given(st.integers(0, 2**32), st.integers(1, 4), st.floats(0.001, 0.5))
def test_the_optimum_is_that_of_trying_everything(seed: int, count: int, price: float) -> None:
    chance = random.Random(seed)
    up = np.array([-1] + [chance.randrange(at) for at in range(1, count)], np.int32)
    flags = np.array([chance.choice((0, HELD)) for _ in range(count)], np.uint8)
    leaves = np.array([chance.randrange(4) for _ in range(count)], np.int64)
    listed = (leaves + (flags != 0)) * 10
    leave = np.array([chance.random() for _ in range(count)])
    own = np.where(flags == 0, [chance.random() / 4 for _ in range(count)], 0.0)
    ones = np.ones(count, np.int64)
    costs = (listed.astype(np.int64), ones * 12, ones * 13, ones * 9)
    bit, anchor = price / 8, price * 20
    ways = np.zeros((count, 4 + setbudget.WAYS), np.uint8)
    value = setbudget.choose(
        up, count, flags, np.ones(count, np.uint8), leaves, *costs, leave, own, price, bit, anchor, 1e9,
        np.zeros((count, 2 + setbudget.WAYS)), np.zeros((count, setbudget.WAYS)), ways,
    )  # fmt: skip
    assert value == pytest.approx(_least(up, flags, leaves, costs, leave, own, price, bit, anchor), rel=1e-9)


def _least(up, flags, leaves, costs, leave, own, price, bit, anchor):
    """The least loss and price by a plain recursion; a set holds at least one hashed member, and a gate stands where
    something hashed lies below."""
    children = {at: [child for child in range(len(up)) if up[child] == at] for at in range(len(up))}
    listed, wild, void, zero = costs

    def below(at, above):
        found = [best(child, above) for child in children[at]]
        return sum(value for value, _ in found), sum(bits for _, bits in found)

    def best(at, above):
        """(value, hashed bits inside of the set above)."""
        held = bool(flags[at])
        no = below(at, "no")[0] + price * listed[at]
        exits = below(at, "yes")[0] + leave[at]
        yes = exits + min(own[at], price * zero[at])
        opened = {}
        for k in BITS:
            value, bits = below(at, k)
            opened[k] = value + bit * k * leaves[at] + leave[at] / 2**k, bits + k * leaves[at]
        anchors = [value + bit * k * held + own[at] / 2**k for k, (value, bits) in opened.items() if bits]
        with_set = min(anchors, default=inf) + price * wild[at] + anchor
        clear = min(no, price * wild[at] + yes, with_set)
        if above == "no":
            return clear, 0
        if above == "yes":
            return min(yes, price * void[at] + no, with_set), 0
        k = above
        value, bits = opened[k]
        gate = k + 3 + k * held
        ways = [(clear, 0), (bit * gate + exits + own[at] / 2**k, gate)]
        if bits:
            value, bits = min(opened.values())
            ways.append((bit * gate + value + own[at] / 2**k, gate + bits))
        else:
            ways.append((value + bit * k * held + own[at] / 2**k, k * held))
        return min(ways)

    return best(0, "no")[0]


SPELLINGS = {
    "as written": lambda text: text,
    "other blanks": lambda text: text.replace(b'", "', b'","').replace(b'"k": ', b'"k":'),
    "other names": lambda text: text.replace(b'{"set": ', b'{"a": [1, "}"], "set": '),
    "another version": lambda text: text.replace(b'"v": 1', b'"v": 2'),
    "damaged": lambda text: text.replace(b'"bits": "', b'"bits": "?'),
    "another length": lambda text: text.replace(b'"bits": "', b'"bits": "AAAA'),
    "too many parts": lambda text: text.replace(b'"parts": ', b'"parts": 9'),
    "two sets": lambda text: re.sub(rb'\{"set": (\{[^{}]*\})\}', rb'{"set": [\1, \1]}', text),
    "half a list": lambda text: re.sub(rb'\{"set": (\{[^{}]*\})\}', rb'{"set": [\1, \1}', text),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@settings(max_examples=12)
@given(st.integers(0, 2**32), budgets, st.lists(st.sampled_from(list(product("abp", "0129", ["", "/x"])))))
def test_many_lookups_at_once_ask_sets_as_few_do(spelling: str, seed: int, size: int, others: list) -> None:
    records = site(seed, 150)
    asked = [key.decode() for key in records] + [f"com,site0)/d1/{''.join(other)}" for other in others]
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        source, target = Path(name, "all.ukvs"), Path(name, "small.ukvs")
        write_map(source, records)
        if with_sets(source, target, size) is None:
            return
        target.write_bytes(SPELLINGS[spelling](target.read_bytes()))
        answers = []
        for many in (1, 1_000_000):
            patched.setattr(maptext, "MANY_LOOKUPS", many)
            with MementoMap.open(target) as opened:
                answers.append([found.answer for found in opened.lookup_many(asked)])
                text = opened.text
                assert isinstance(text, maptext.MappedText)
                buffer = np.frombuffer("".join(asked).encode(), np.uint8)
                lengths = np.array([len(key) for key in asked], np.int64)
                offsets = np.cumsum(lengths) - lengths
                places = text.search_many(buffer, offsets, lengths)
                answers.append(text.denied(buffer, offsets, lengths, places).tolist())
        assert answers[:2] == answers[2:]
        if spelling in ("as written", "other blanks", "other names", "two sets"):
            assert not any(answers[1][: len(records)])
        else:  # what cannot be read denies nothing
            assert not any(answers[1])
