"""Patches of maps against a brute force: nothing held is missed, and every count is true."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests import stranger_sets
from tests.property.test_merge import KEYS, allows, check, parts, totals, written

from recollect.formats.frequency import Count, Frequency, merge
from recollect.formats.ukvs import read
from recollect.maps.lookup import open_map
from recollect.profiles.compaction.budget import Budget, TooSmall, compact_by_budget
from recollect.profiles.upkeep.patch import patch


@pytest.fixture(scope="module")
def folder():
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def records(path):
    _, found = read(path, ordered=True)
    return {record.key: record.frequency for record in found}


COUNTS = st.builds(Count, st.integers(1, 2**63 - 1) | st.integers(1, 9), st.sampled_from(["", "+", "-", "~"]))
FREQUENCIES = st.builds(Frequency, COUNTS, COUNTS | st.just(Count(None)) | st.just(Count(0)))


@given(FREQUENCIES, FREQUENCIES, st.sampled_from(["", ' {"note": "a line\'s block stays"}']))
def test_the_counts_of_a_key_are_merged_as_merge_does(folder, old, new, block):
    (folder / "base.ukvs").write_text(f"!meta {{}}\ncom,x)/a {old}{block}\ncom,x)/b 1/1\n")
    written(folder / "new.ukvs", {b"com,x)/a": new})
    patch(folder / "base.ukvs", folder / "new.ukvs", folder / "patched.ukvs", {})
    lines = (folder / "patched.ukvs").read_text().splitlines()
    assert lines[-2:] == [f"com,x)/a {merge(old, new)}{block}", "com,x)/b 1/1"]


@settings(max_examples=80)
@given(
    parts(), st.dictionaries(st.sampled_from(KEYS), st.dictionaries(st.integers(0, 2), st.integers(1, 5), min_size=1))
)
def test_a_patched_map_misses_nothing_and_every_count_is_true(folder, base, new):
    truth, found = base
    exact = {key: Frequency.exact(sum(uris.values()), len(uris)) for key, uris in new.items()}
    written(folder / "base.ukvs", found)
    written(folder / "new.ukvs", exact)
    done = patch(folder / "base.ukvs", folder / "new.ukvs", folder / "patched.ukvs", {})
    result = records(folder / "patched.ukvs")
    assert done.keys == len(result)
    check(result, [truth, new])
    lines = [line for line in (folder / "patched.ukvs").read_bytes().splitlines() if line[:1] != b"!"]
    assert lines == sorted(lines)


HOSTS = [b"com,x", b"com,x,www", b"com,x:80", b"com,xy", b"org,y", b"4,3,2,1", b"[::1]"]
PAGES = [
    b"",
    *(b"p%d" % n for n in range(6)),
    *(b"a/%d" % n for n in range(6)),
    *(b"a/b/%d" % n for n in range(9)),
    b"a//b",
]
MANY = [host + b")/" + page for host in HOSTS for page in PAGES]


@settings(max_examples=60)
@given(st.data(), st.sampled_from([200, 400, 900]))
def test_patches_of_hashed_sets_add_what_they_deny_and_nothing_else(folder, data, room):
    held = data.draw(st.sets(st.sampled_from(MANY), min_size=30))
    new = data.draw(st.sets(st.sampled_from(MANY), min_size=1))
    more = data.draw(st.sets(st.sampled_from(MANY)))
    written(folder / "all.ukvs", {key: Frequency.exact(2, 1) for key in held})
    base, patched = folder / "base.ukvs", folder / "patched.ukvs"
    try:
        compact_by_budget(folder / "all.ukvs", base, Budget(max_bytes=room, sets=True), threads=1)
    except TooSmall:
        assume(False)
    written(folder / "new.ukvs", {key: Frequency.exact(3, 1) for key in new})
    patch(base, folder / "new.ukvs", folder / "once.ukvs", {})
    written(folder / "more.ukvs", {key: Frequency.exact(1, 1) for key in more})
    patch(folder / "once.ukvs", folder / "more.ukvs", patched, {})
    before, after = stranger_sets.read_map(base.read_bytes()), stranger_sets.read_map(patched.read_bytes())
    assert {key for key in before if key.endswith("*")} == {key for key in after if key.endswith("*")}
    with open_map(patched) as found:
        for key in held | new | more:
            assert found.lookup(key.decode()).answer == "yes", key
            assert stranger_sets.answer(after, key.decode()) == "yes", key
    truths = [{key: {0: count} for key in keys} for keys, count in ((held, 2), (new, 3), (more, 1))]
    for key, frequency in records(patched).items():
        captures, known = totals(truths, key)
        assert allows(frequency.uri_m, captures) and allows(frequency.uri_r, known), (key, str(frequency))


def test_what_a_patch_adds_to_a_set_takes_a_few_bytes_each(folder):
    held = [b"com,x)/a/b/page-%d" % n for n in range(0, 4000, 2)]
    new = [b"com,x)/a/b/page-%d" % n for n in range(1, 801, 2)]
    written(folder / "all.ukvs", {key: Frequency.exact(1, 1) for key in held})
    compact_by_budget(folder / "all.ukvs", folder / "base.ukvs", Budget(max_bytes=4000, sets=True), threads=1)
    written(folder / "new.ukvs", {key: Frequency.exact(1, 1) for key in new})
    patch(folder / "base.ukvs", folder / "new.ukvs", folder / "patched.ukvs", {})
    grown = (folder / "patched.ukvs").stat().st_size - (folder / "base.ukvs").stat().st_size
    assert 100 < grown < 4 * len(new)
    with open_map(folder / "base.ukvs") as base, open_map(folder / "patched.ukvs") as patched:
        absent = [f"com,x)/a/b/page-{n}" for n in range(4001, 8001, 2)]
        wrong = [sum(found.lookup(key).answer == "yes" for key in absent) for found in (base, patched)]
        assert wrong[1] < 2 * wrong[0] + 100
        assert all(patched.lookup(key.decode()).answer == "yes" for key in held + new)
