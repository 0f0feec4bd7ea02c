"""Maps of samples: the estimate against plain recounting, the map back into the same sample, and no false "no"."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.formats.ukvs import Header, MapFile, Writer
from recollect.formats.ukvs.faults import validate
from recollect.maps.lookup import open_map
from recollect.maps.samples import (
    Listed,
    Observed,
    Probe,
    levels,
    read_sample,
    records_of,
    sample_of,
    threshold,
)
from recollect.maps.samplescope import SAMPLE
from recollect.uris import covers

HOSTS = [b"com,a", b"com,a,b", b"com,c", b"uk,co,d", b"uk,co,d,e", b"uk,co", b"localhost", b"4,3,2,1", b"com,a:8080"]
keys = st.builds(
    lambda host, path: host + b")/" + b"/".join(path),
    st.sampled_from(HOSTS),
    st.lists(st.sampled_from([b"x", b"y", b"z"]), max_size=4),
)
probes = st.dictionaries(keys, st.booleans(), max_size=40)
wildcards = st.sampled_from([b"com,a,*", b"com,a)/*", b"uk,co,d,*", b"com,c)/x/*", b"4,3,2,1)/*"])
listings = st.builds(lambda n, whole: Listed(n * 2, n, whole), st.integers(0, 3), st.booleans())
observations = st.builds(
    Observed,
    probes,
    st.sets(keys, max_size=10),
    st.dictionaries(
        wildcards, st.builds(lambda n, whole: Listed(n * 2, n, whole), st.integers(0, 3), st.booleans()), max_size=3
    ),
    st.just({}),
)


def brute_chance(others: list[Probe], key: bytes, weight: float) -> float:
    """The estimate by its formula, counted from the probes each time."""
    chance = (sum(one.held for one in others) + 0.5) / (len(others) + 1)
    for name in levels(key):
        inside = [one.held for one in others if name in levels(one.key)]
        chance = (sum(inside) + weight * chance) / (len(inside) + weight)
    return chance


@given(probes)
def test_a_probe_is_judged_as_if_it_had_not_been_made(asked: dict[bytes, bool]) -> None:
    all_probes = [Probe(key, held) for key, held in asked.items()]
    sample = sample_of(all_probes)
    for probe in all_probes:
        others = [one for one in all_probes if one is not probe]
        assert math.isclose(sample.chance_without(probe), brute_chance(others, probe.key, sample.weight))
        assert math.isclose(sample.chance(probe.key), brute_chance(all_probes, probe.key, sample.weight))
        assert 0 < sample.chance(probe.key) < 1


@given(probes, st.floats(0.5, 0.99))
def test_a_threshold_misses_no_more_than_it_promises_and_says_when_probes_are_too_few(
    asked: dict[bytes, bool], target: float
) -> None:
    all_probes = [Probe(key, held) for key, held in asked.items()]
    sample = sample_of(all_probes)
    finds = [sample.chance_without(probe) for probe in all_probes if probe.held]
    level = threshold(sample, all_probes, target)
    if level is None:
        assert 1 / (len(finds) + 1) > 1 - target - 1e-9
    else:
        # A new find takes any place among the others with the same probability.
        assert (sum(chance < level for chance in finds) + 1) / (len(finds) + 1) <= 1 - target + 1e-9


@given(observations)
def test_a_map_is_sound_and_gives_the_sample_back(observed: Observed) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sample.ukvs"
        write(path, observed)
        assert list(validate(path)) == []
        with MapFile(path) as file:
            again = read_sample(file.records())
        before = sample_of(observed.as_probes())
        assert {(probe.key, probe.held) for probe in again.probes} == set(observed.probes.items())
        for key in observed.probes:
            assert math.isclose(again.sample.chance(key), before.chance(key))


@given(observations, keys)
def test_only_a_complete_listing_that_was_empty_says_no(observed: Observed, key: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sample.ukvs"
        write(path, observed)
        holdings = open_map(path)
        for asked in (key, *observed.seen, *observed.probes):
            answer = holdings.lookup(asked.decode()).answer
            if asked in observed.seen or observed.probes.get(asked):
                assert answer == "yes"
            if answer == "no":
                listed = [one for wildcard, one in observed.listings.items() if covers(wildcard, asked)]
                assert any(one.complete and not one.captures for one in listed)
        holdings.close()


def test_an_archive_without_a_find_keeps_its_share_of_half_a_find() -> None:
    keys = [
        b"%b,h%d)/%b" % (top, number, path)
        for top in (b"com", b"org")
        for number in range(150)
        for path in (b"", b"a/b")
    ]
    sample = sample_of([Probe(key, False) for key in keys])
    share = 0.5 / (len(keys) + 1)
    for key in (b"com,h1)/", b"com,new)/a", b"net,new)/"):
        assert share / 4 < sample.chance(key) <= share


def test_what_is_more_probable_than_usual_is_not_skipped() -> None:
    held = [Probe(b"com,example,h%d)/%d" % (number % 7, number), True) for number in range(40)]
    absent = [Probe(b"org,h%d)/a" % number, False) for number in range(60)]
    sample = sample_of([*held, *absent])
    level = threshold(sample, [*held, *absent], 0.95)
    assert level is not None and level <= sample.usual < 0.5
    assert sample.chance(b"org,new)/a") < level
    assert level < sample.chance(b"com,example,new)/") < min(map(sample.chance_without, held))


def test_one_absence_among_many_finds_of_a_host_is_a_sample() -> None:
    probes = [Probe(b"com,example)/x/%d" % number, number != 7) for number in range(20_000)]
    assert 0.999 < sample_of(probes).chance(b"com,example)/x/y") <= 1


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"com,example)/", (b"*#0", b"com,*", b"com,*#0", b"com,example,*")),
        (b"uk,co,x,y)/a/b", (b"*#2", b"uk,*", b"uk,*#1", b"uk,co,x,*", b"uk,co,x,y)/*")),
        (b"uk,co)/a", (b"*#1", b"uk,*", b"uk,*#1", b"uk,co)/*")),
        (b"localhost)/", (b"*#0", b"localhost)/*")),
        (b"4,3,2,1)/a/b/c/d", (b"*#3", b"4,3,2,1)/*")),
        (b"[::1]:80)/", (b"*#0", b"[::1]:80)/*")),
        (b"com,x:80)/", (b"*#0", b"com,*", b"com,*#0", b"com,x,*", b"com,x:80)/*")),
    ],
)
def test_levels_are_depth_top_level_domain_registered_domain_and_host(key: bytes, expected: tuple[bytes, ...]) -> None:
    assert levels(key) == expected


def write(path: Path, observed: Observed) -> None:
    with Writer(path, Header(meta={"scope": SAMPLE})) as writer:
        for record in records_of(observed):
            writer.write(record)
