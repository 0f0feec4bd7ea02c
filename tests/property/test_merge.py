"""Merging against a brute force: archives with known holdings, split into parts, profiled, rolled up, merged.

Law 1: what a part holds is found in the merged map. And every count the merged map claims must be true.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.formats.frequency import VOID, Count, Frequency
from recollect.formats.ukvs import Header, Record, Writer, read
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.uris import ancestors, covers, lookup_keys

# Neighbours by bytes that are not neighbours in the tree, addresses, ports, unusual segments.
KEYS = [
    b"com,x)/", b"com,x)/a", b"com,x)/a-b", b"com,x)/a/%20", b"com,x)/a/1", b"com,x)/a/1/2", b"com,x)/a(b)",
    b"com,x)/a(b)c", b"com,x)/a(b)/d", b"com,x,y)/", b"com,x,y)/a", b"com,x,y,z)/a/1", b"com,x-y)/a", b"com,x:80)/a",
    b"com,xy)/", b"org)/", b"4,3,2,1)/a", b"4,3,2,2)/",
]  # fmt: skip
WILDCARDS = sorted({wildcard for key in KEYS for wildcard in ancestors(key)} | {b"4,3,*", b"com,x)/a/*"})

Truth = dict[bytes, dict[int, int]]  # key -> URI-R -> captures


def totals(truths, key):
    """True URI-Ms and URI-Rs of all parts under a key or wildcard."""
    under = {exact for truth in truths for exact in truth if covers(key, exact)}
    captures = sum(sum(truth.get(exact, {}).values()) for truth in truths for exact in under)
    uris = {(exact, uri) for truth in truths for exact in under for uri in truth.get(exact, {})}
    return captures, len(uris)


def answer(found, key):
    return next((found[candidate] for candidate in lookup_keys(key) if candidate in found), None)


def looser(data, count):
    """The same count, or a weaker claim that is true as well."""
    how = data.draw(st.sampled_from("====+-~?"))
    if how == "=":
        return Count(count)
    if how == "?":
        return Count(None)
    return Count({"+": count - 1, "-": count + 2, "~": count}[how], how)


@st.composite
def parts(draw, uris=range(3)):
    """The truth of a part, and a true map of it."""
    data = draw(st.data())
    held = draw(st.lists(st.sampled_from(KEYS), max_size=6, unique=True))
    choose = st.dictionaries(st.sampled_from(list(uris)), st.integers(1, 5), min_size=1)
    truth: Truth = {key: draw(choose) for key in held}
    found = {}
    for wildcard in draw(st.lists(st.sampled_from(WILDCARDS), max_size=5, unique=True)):
        captures, known = totals([truth], wildcard)
        found[wildcard] = Frequency(looser(data, captures), looser(data, known)) if captures else VOID
        if found[wildcard].is_void and captures:
            found[wildcard] = Frequency.exact(captures)
    for key in KEYS:
        if key in truth:
            covered = answer(found, key)
            if covered is None or covered.is_void or draw(st.booleans()):
                captures, known = totals([truth], key)
                found[key] = Frequency(Count(captures), looser(data, known))
        elif draw(st.integers(0, 5)) == 0:
            found[key] = VOID
    for wildcard in [w for w in found if w in WILDCARDS]:
        # A void may stand above keys that are held and named.
        under = [key for key in truth if covers(wildcard, key)]
        if draw(st.integers(0, 3)) == 0 and all(key in found for key in under):
            found[wildcard] = VOID
    return truth, found


def written(path, found, meta=None):
    with Writer(path, Header(meta=meta or {})) as writer:
        for key in sorted(found):
            writer.write(Record(key, (), found[key]))
    return path


def merged(folder, maps, metas=None, **options):
    metas = metas or [{}] * len(maps)
    pairs = enumerate(zip(maps, metas, strict=True))
    inputs = [written(folder / f"{index}.ukvs", found, meta) for index, (found, meta) in pairs]
    merge_maps(inputs, folder / "merged.ukvs", MergeOptions(**options))
    _, records = read(folder / "merged.ukvs", ordered=True)
    return {record.key: record.frequency for record in records}


def allows(count, value):
    low, high = count.interval
    return low <= value and (high is None or value <= high)


@pytest.fixture(scope="module")
def folder():
    """In memory where there is such a place: outputs are synced to disk, which takes most of the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@given(st.lists(parts(), min_size=1, max_size=4))
def test_nothing_held_is_missed_and_every_count_is_true(folder, given_parts):
    truths, maps = zip(*given_parts, strict=True)
    for truth, found in given_parts:
        assert all(answer(found, key).held is not False for key in truth), "the test's own maps are true"
    check(merged(folder, maps), truths)


def check(result, truths):
    for key in KEYS:
        if any(key in truth for truth in truths):
            found = answer(result, key)
            assert found is not None, key
            assert found.held is not False, key
    for key, frequency in result.items():
        captures, known = totals(truths, key)
        if frequency.is_void:
            assert key in WILDCARDS or captures == 0
            continue
        assert allows(frequency.uri_m, captures), (key, str(frequency), captures)
        assert allows(frequency.uri_r, known), (key, str(frequency), known)


@given(st.data())
def test_parts_that_share_no_uri_add_up(folder, data):
    given_parts = [data.draw(parts(uris=[part])) for part in range(data.draw(st.integers(1, 3)))]
    truths, maps = zip(*given_parts, strict=True)
    check(merged(folder, maps, disjoint=True), truths)


@given(st.lists(parts(), min_size=2, max_size=3), st.data())
def test_the_order_of_maps_does_not_matter(folder, given_parts, data):
    maps = [found for _, found in given_parts]
    again = data.draw(st.permutations(maps))
    for disjoint in (False, True):
        assert merged(folder, maps, disjoint=disjoint) == merged(folder, again, disjoint=disjoint)


@given(st.lists(parts(), min_size=3, max_size=3))
def test_maps_without_wildcards_may_be_merged_step_by_step(folder, given_parts):
    a, b, c = ({key: f for key, f in found.items() if key not in WILDCARDS} for _, found in given_parts)
    for disjoint in (False, True):
        at_once = merged(folder, [a, b, c], disjoint=disjoint)
        assert merged(folder, [merged(folder, [a, b], disjoint=disjoint), c], disjoint=disjoint) == at_once
        assert merged(folder, [a, merged(folder, [b, c], disjoint=disjoint)], disjoint=disjoint) == at_once


@given(st.lists(parts(), min_size=3, max_size=3))
def test_step_by_step_nothing_is_missed_either(folder, given_parts):
    truths, (a, b, c) = zip(*given_parts, strict=True)
    check(merged(folder, [merged(folder, [a, b]), c]), truths)
    check(merged(folder, [a, merged(folder, [b, c])]), truths)


@given(parts())
def test_one_map_stays_what_it_is(folder, part):
    _, found = part
    assert merged(folder, [found]) == found


@given(parts(), st.lists(st.sampled_from([*KEYS, *WILDCARDS]), unique=True, max_size=4))
def test_voids_of_an_archive_stay_beside_its_holdings(folder, part, absent):
    truth, found = part
    voids = {key: VOID for key in absent if totals([truth], key)[0] == 0}
    assume(voids)
    result = merged(folder, [found, voids], [{}, {"scope": "voids"}])
    check(result, [truth])
    for key in voids:
        assert result[key].is_void or key in found
