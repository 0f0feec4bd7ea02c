"""Statistics of a map count its wildcards: totals include what they cover, and bounds stay bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.formats.frequency import Frequency
from recollect.maps.plainmap import open_plain
from recollect.profiles.compaction.weights import Weights, compact_by_weights, fit_weights
from recollect.profiles.statistics.maptotals import count_map
from recollect.profiles.statistics.overlap import overlap
from recollect.profiles.statistics.stats import stats

HEAD = '!context ["https://oduwsdl.github.io/contexts/mementomap"]\n!fields {keys: ["surt"], values: ["frequency"]}\n'


def write(path: Path, *lines: str, meta: str = "") -> Path:
    path.write_text(HEAD + (f"!meta {meta}\n" if meta else "") + "".join(f"{line}\n" for line in lines))
    return path


def total(path: Path) -> Frequency:
    return count_map(str(path), lambda problem: pytest.fail(str(problem))).total


@pytest.mark.parametrize(
    ("lines", "sum_of_all"),
    [
        (["com,a,* 1000/400", "com,b)/ 2/1"], "1002/401"),
        (["com,a)/x 5/2", "com,a,* 1000/400", "com,a,b)/ 10/10"], "1000/400"),  # lines below are included
        (["com,a)/x 500/2", "com,a,* 100/400"], "500+/400"),  # and prove a total too small
        (["com,a,* 7+/3", "com,b)/ 2/1"], "9+/4"),
        (["com,a,* 7", "com,b)/ 2/1"], "9/1+"),  # URI-Rs that no line states
        (["com,a,* 7~/3", "com,b)/ 2/1"], "9~/4"),
        (["com,a,* 0", "com,a,b)/ 2/1"], "2/1"),  # a void covers nothing
        (["* 54321/20000", "com,* 10000+", "org,arxiv)/ 100"], "54321/20000"),
        (["com,* 100/10", "com,a,* 60/6", "com,a,b)/ 5/5", "org,x)/ 1/1"], "101/11"),
        (["com,a)/ /", "com,b)/ 2/1"], "2+/1+"),
        (["com,a)/ /"], "/"),
    ],
)
def test_the_outermost_lines_are_the_total(tmp_path: Path, lines: list[str], sum_of_all: str) -> None:
    assert str(total(write(tmp_path / "m.ukvs", *lines))) == sum_of_all


def test_stats_and_overlap_of_a_compacted_map_say_what_they_do_not_know(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.ukvs",
        *("com,a,* 1000/400", "com,b)/ 2/1", "org,c)/* 50/5"),
        meta='{"counts": {"captures": 1100, "uri_rs": 406}}',
    )
    found = stats([path])
    assert (found.overview.captures, found.overview.uri_rs, found.overview.wildcards) == (1052, 406, 2)
    assert found.top_tlds == [("com", 1002), ("org", 50)]
    assert found.top_hosts == [("com,a,*", 1000), ("org,c", 50), ("com,b", 2)]
    assert any("1,100" in note and "1,052" in note for note in found.notes)
    assert not any("406" in note for note in found.notes)  # totals that agree need no word
    assert found.policy_costs == {}  # of keys that are not all known
    log = tmp_path / "log.txt"
    log.write_text("http://x.a.com/\nhttp://b.com/\nhttp://z.org/\n")
    matrix = overlap(path, [log])
    assert (matrix.accessed_and_held, matrix.accessed_below_wildcards) == (2, 1)
    assert str(matrix.held) == "1052/406"


names = st.sampled_from(["a", "b", "a-b", "%21", "1", "x9"])
keys = st.builds(
    lambda hosts, path: ("com," if hosts[0] != "1" else "net,") + ",".join(hosts) + ")/" + "/".join(path),
    st.lists(names, min_size=1, max_size=9),
    st.lists(names, max_size=10),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.dictionaries(keys, st.integers(1, 9), min_size=1, max_size=60), weight=st.sampled_from([0.0, 0.05, 0.2]))
def test_compaction_keeps_the_totals(
    rows: dict[str, int], weight: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("totals")
    path = write(folder / "m.ukvs", *(f"{key} {rows[key]}/1" for key in sorted(rows)))
    before = total(path)
    assert before == Frequency.exact(sum(rows.values()), len(rows))
    compact_by_weights(path, folder / "small.ukvs", Weights(weight, weight, rollup_tlds=True))
    assert total(folder / "small.ukvs") == before


@settings(max_examples=60, deadline=None)
@given(rows=st.sets(keys, min_size=5, max_size=120), wildcards=st.booleans())
def test_stats_and_compact_fit_the_same_constants(
    rows: set[str], wildcards: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fit")
    lines = rows | ({"com,a,b,*", "org,*"} if wildcards else set())
    path = write(folder / "m.ukvs", *(f"{key} 1/1" for key in sorted(lines)))
    found = stats([path])
    with open_plain(path) as plain:
        weights = fit_weights(plain, Weights())
    published = Weights()
    host = (found.host_fit.a, found.host_fit.k) if found.host_fit else (published.host_a, published.host_k)
    paths = (found.path_fit.a, found.path_fit.k) if found.path_fit else (published.path_a, published.path_k)
    assert (weights.host_a, weights.host_k) == pytest.approx(host)
    assert (weights.path_a, weights.path_k) == pytest.approx(paths)
