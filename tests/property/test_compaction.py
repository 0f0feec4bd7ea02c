"""Compaction by weights: the same as the plain-spoken version, and nothing held is ever missed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from map_trees import above, compacted, held_keys, holdings, read_map, write_map
from recollect.formats.containers import atomic_output
from recollect.formats.frequency import Frequency
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import merge_maps
from recollect.maps.plainmap import open_plain
from recollect.profiles.compaction import weights as module
from recollect.profiles.compaction.weights import Weights, compact_by_weights

weightings = st.builds(
    Weights,
    host_weight=st.sampled_from([0.0, 0.05, 0.1, 0.2, 1.0, float("inf")]),
    path_weight=st.sampled_from([0.0, 0.05, 0.1, 0.2, 1.0, float("inf")]),
    rollup_tlds=st.booleans(),
    max_host_depth=st.just(12),
    max_path_depth=st.just(20),
)


@given(holdings(), weightings)
def test_compaction_is_that_of_the_plain_spoken_version(records: dict[bytes, Frequency], weights: Weights) -> None:
    with TemporaryDirectory() as folder:
        source = write_map(Path(folder) / "map.ukvs", records)
        target = Path(folder) / "small.ukvs"
        result = compact_by_weights(source, target, weights, threads=1)
        assert read_map(target) == compacted(records, weights)
        keys = [line.split()[0] for line in target.read_bytes().splitlines() if line[:1] != b"!"]
        assert keys == sorted(keys)
        assert (result.keys_in, result.keys_out) == (len(records), len(keys))


@given(holdings(max_size=120), weightings, st.integers(1, 400))
def test_the_result_does_not_depend_on_partitions_or_threads(
    records: dict[bytes, Frequency], weights: Weights, size: int
) -> None:
    with TemporaryDirectory() as folder:
        source = write_map(Path(folder) / "map.ukvs", records)
        compact_by_weights(source, Path(folder) / "one.ukvs", weights, threads=1)
        compact_by_weights(source, Path(folder) / "two.ukvs", weights, threads=2)
        with open_plain(source) as plain:
            pieces = []
            for start, stop in module._tasks(plain, weights, size):
                result = module._run(plain, start, stop, weights)
                result.text.seek(0)
                pieces.append(result.text.read())
        whole = (Path(folder) / "one.ukvs").read_bytes()
        assert (Path(folder) / "two.ukvs").read_bytes() == whole
        assert whole.endswith(b"".join(pieces))
        assert whole.count(b"\n") - b"".join(pieces).count(b"\n") == sum(
            line.startswith(b"!") for line in whole.splitlines()
        )


@given(holdings(voids=False, wildcards=False), st.lists(weightings, min_size=1, max_size=3))
def test_totals_are_kept_however_often_a_map_is_compacted(
    records: dict[bytes, Frequency], steps: list[Weights]
) -> None:
    exact = {key: Frequency.exact(index + 1, 1) for index, key in enumerate(records)}
    with TemporaryDirectory() as folder:
        path = write_map(Path(folder) / "map.ukvs", exact)
        for weights in steps:
            compact_by_weights(path, path, weights)
        result = read_map(path)
        outermost = [key for key in result if not any(wider in result for wider in above(key)[key.endswith(b"*") :])]
        assert sum(result[key].uri_m.value or 0 for key in outermost) == len(exact) * (len(exact) + 1) // 2
        assert sum(result[key].uri_r.value or 0 for key in outermost) == len(exact)
        assert all(not result[key].uri_m.bound for key in outermost)


@given(holdings(), weightings)
def test_compacting_twice_with_the_same_weights_changes_nothing(
    records: dict[bytes, Frequency], weights: Weights
) -> None:
    with TemporaryDirectory() as folder:
        path = write_map(Path(folder) / "map.ukvs", records)
        compact_by_weights(path, path, weights)
        once = path.read_bytes()
        compact_by_weights(path, path, weights)
        assert path.read_bytes() == once


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("compact"), weightings),
        st.tuples(st.just("merge"), holdings(max_size=15)),
        st.tuples(st.just("compress"), st.sampled_from([".gz", ".zst"])),
    ),
    min_size=1,
    max_size=4,
)


@given(holdings(), OPERATIONS)
def test_no_held_uri_is_missed_after_any_sequence_of_operations(
    records: dict[bytes, Frequency], operations: list[tuple[str, object]]
) -> None:
    with TemporaryDirectory() as folder:
        path = write_map(Path(folder) / "map.ukvs", records)
        held = {*held_keys(records)}
        for number, (name, argument) in enumerate(operations):
            target = Path(folder) / f"step{number}.ukvs"
            if name == "compact":
                assert isinstance(argument, Weights)
                compact_by_weights(path, target, argument)
            elif name == "merge":
                assert isinstance(argument, dict)
                other = write_map(Path(folder) / f"other{number}.ukvs", argument)
                held |= {*held_keys(argument)}
                merge_maps([path, other], target)
            else:
                target = Path(f"{target}{argument}")
                with open_plain(path) as plain, atomic_output(target) as out:
                    out.write(plain.data.tobytes())
            path = target
        with MementoMap.open(path) as opened:
            found = {key: opened.lookup(key.decode()) for key in held}
            assert not {key: one for key, one in found.items() if one.answer == "no"}
