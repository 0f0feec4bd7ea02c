"""Compaction by budget loses nothing, whatever was compacted before and whatever a log says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.formats.logs import LogEntry
from recollect.maps.lookup import MementoMap
from recollect.profiles.compaction.budget import Budget, compact_by_budget

HOSTS = ["com,x)", "com,x,y)", "com,x:80)", "com)", "4,3,2,1)", "localhost)", "org,z)"]
PATHS = ["/", "/a", "/a-b", "/a/1", "/a/1/x", "/a//b", "/%2a"]
keys = st.builds("{}{}".format, st.sampled_from(HOSTS), st.sampled_from(PATHS))
# Few keys, asked for often: what is worth a line of its own is where a void can hide something.
logs = st.lists(st.builds(LogEntry, keys, count=st.sampled_from([1, 5, 50])), min_size=1, max_size=12)


ASKED = [LogEntry("localhost)/a"), LogEntry("com,x,y)/a"), LogEntry("com,x,y)/a/1", count=5)]
HELD = {"com)/", "com,x)/a-b", "com,x,y)/a", "com,x,y)/a//b", "com,x:80)/%2a", "com,x:80)/a//b", "4,3,2,1)/a/1"}


# A log that asks for what the first compaction rolled up: whether it is held is unknown, so it must not become a void.
@example(HELD | {"4,3,2,1)/a/1/x"}, 4, 5, ASKED, None)
@given(st.sets(keys, min_size=5, max_size=25), st.integers(3, 12), st.integers(2, 8), logs, st.none() | logs)
def test_no_held_uri_is_missed_however_often_a_map_is_compacted_with_a_log(
    held: set[str], first: int, second: int, log: list[LogEntry], other: list[LogEntry] | None
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "map.ukvs"
        path.write_text("".join(f"{key} 2/1\n" for key in sorted(held)))
        for most, asked in ((first, log), (second, other or log)):
            done = compact_by_budget(path, path, Budget(max_keys=most), lookups=asked)
            assert done.keys_out <= most
            with MementoMap.open(path) as small:
                assert [key for key in sorted(held) if small.lookup(key).answer != "yes"] == []


LABELS = st.sampled_from(["a", "b", "www", "c"])
URIS = st.builds("http://{}{}.gov/{}".format, st.sampled_from(["www.", ""]), st.sampled_from(["x", "a.x", "y"]), LABELS)


@given(
    st.sets(st.builds("gov,{}){}".format, st.sampled_from(["x", "x,a", "x,www", "x,q", "y"]), st.sampled_from(PATHS))),
    st.integers(2, 8),
    st.lists(st.builds(LogEntry, URIS, count=st.sampled_from([1, 5, 50])), min_size=1, max_size=12),
)
def test_what_is_said_of_a_log_is_what_the_map_answers_also_where_www_has_two_spellings(
    held: set[str], most: int, log: list[LogEntry]
) -> None:
    with TemporaryDirectory() as folder:
        full, small = Path(folder) / "map.ukvs", Path(folder) / "small.ukvs"
        full.write_text("".join(f"{key} 2/1\n" for key in sorted(held | {"gov,x,q)/1"})))
        done = compact_by_budget(full, small, Budget(max_keys=most), lookups=log)
        with MementoMap.open(full) as truth, MementoMap.open(small) as compacted:
            wrong = sum(
                entry.count
                for entry in log
                if truth.lookup(entry.uri).answer == "no" and compacted.lookup(entry.uri).answer == "yes"
            )
        assert (done.wrong_in_log or 0.0) * done.lookups == pytest.approx(wrong)
