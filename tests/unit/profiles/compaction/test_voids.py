"""Voids from logs: what is asked for and not held, and never anything that is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from map_trees import held_keys, holdings, keys, write_map
from recollect.errors import UsageError
from recollect.formats.frequency import Frequency
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import merge_maps
from recollect.profiles.compaction.voids import VoidsResult, make_voids
from recollect.profiles.compaction.weights import Weights, compact_by_weights


def line(uri: str, status: int) -> str:
    return f'1.2.3.4 - - [10/Oct/2019:13:55:36 -0700] "GET /web/2016/{uri} HTTP/1.1" {status} 12\n'


def voids_of(folder: Path, held: str, log: str, **options: int | bool) -> tuple[list[str], VoidsResult]:
    (folder / "map.ukvs").write_text(held)
    (folder / "log").write_text(log)
    result = make_voids([folder / "log"], [folder / "map.ukvs"], folder / "voids.ukvs", **options)  # type: ignore[arg-type]
    lines = (folder / "voids.ukvs").read_text().splitlines()
    return [one for one in lines if not one.startswith("!")], result


def test_what_was_asked_for_often_enough_and_never_found_is_a_void(tmp_path: Path) -> None:
    log = line("http://x.com/gone", 404) * 3 + line("http://x.com/rare", 404) * 2 + line("http://x.com/there", 200) * 5
    log += line("http://x.com/once-found", 404) * 9 + line("http://x.com/once-found", 302)
    log += line("http://x.com/blocked", 403) * 9
    found, result = voids_of(tmp_path, "com,x)/ 1\n", log, min_requests=3)
    assert found == ["com,x)/gone 0"]
    assert (result.voids, result.wildcards, result.covered_requests) == (1, 0, 3)


def test_a_held_key_is_not_a_void_whatever_the_log_says(tmp_path: Path) -> None:
    log = line("http://x.com/a?q=404", 404) * 5 + line("http://www.y.com/b", 404) * 5
    found, result = voids_of(tmp_path, "com,x)/a 1\ncom,y,www)/b 1\n", log, min_requests=1)
    assert found == []
    assert result.held == 2


def test_an_empty_subtree_becomes_one_wildcard_as_narrow_as_can_be(tmp_path: Path) -> None:
    log = "".join(line(f"http://x.com/empty/dir/{number}", 404) for number in range(3))
    log += "".join(line(f"http://s{number}.lost.org/", 404) for number in range(3))
    found, _ = voids_of(tmp_path, "com,x)/ 1\norg,kept)/ 1\n", log, min_requests=3)
    assert found == ["com,x)/empty/dir/* 0", "org,lost,* 0"]


def test_a_subtree_that_holds_something_is_not_rolled_up(tmp_path: Path) -> None:
    log = "".join(line(f"http://x.com/dir/{number}", 404) * 3 for number in range(3))
    found, _ = voids_of(tmp_path, "com,x)/dir/9/deep 1\n", log, min_requests=3)
    assert found == ["com,x)/dir/0 0", "com,x)/dir/1 0", "com,x)/dir/2 0"]
    log += line("http://x.com/dir2/here", 200) + "".join(line(f"http://x.com/dir2/{n}", 404) * 3 for n in range(3))
    found, _ = voids_of(tmp_path, "com,y)/ 1\n", log, min_requests=3)
    assert found == ["com,x)/dir/* 0", "com,x)/dir2/0 0", "com,x)/dir2/1 0", "com,x)/dir2/2 0"]


def test_below_a_held_wildcard_nothing_is_known_unless_the_log_is_trusted(tmp_path: Path) -> None:
    log = "".join(line(f"http://x.com/dir/{number}", 404) * 3 for number in range(3))
    found, result = voids_of(tmp_path, "com,x)/* 100\n", log, min_requests=3)
    assert (found, result.unsure) == ([], 3)
    found, result = voids_of(tmp_path, "com,x)/* 100\n", log, min_requests=3, trust_log=True)
    assert found == ["com,x)/dir/0 0", "com,x)/dir/1 0", "com,x)/dir/2 0"]


def test_a_void_of_one_key_says_nothing_of_the_wildcard_around_it(tmp_path: Path) -> None:
    log = line("http://x.com/", 404) * 3 + line("http://x.com/?q", 404)
    found, _ = voids_of(tmp_path, "com,x)/ 0\ncom,x,* 7\n", log, min_requests=1, min_branches=1)
    assert found == ["com,x)/ 0"]


def test_a_list_without_answers_is_judged_by_the_map_alone(tmp_path: Path) -> None:
    found, _ = voids_of(tmp_path, "com,x)/a 1\n", "3 http://x.com/b\n7 http://x.com/a\n", min_requests=3)
    assert found == ["com,x)/b 0"]


def test_the_result_says_that_it_lists_voids_and_can_be_merged(tmp_path: Path) -> None:
    (tmp_path / "full.ukvs").write_text("".join(f"com,x)/p{number:02} 1/1\n" for number in range(60)))
    (tmp_path / "log").write_text(line("http://x.com/gone", 404) * 3)
    make_voids([tmp_path / "log"], [tmp_path / "full.ukvs"], tmp_path / "voids.ukvs")
    with MementoMap.open(tmp_path / "voids.ukvs") as alone:
        assert alone.header.lists_voids
        assert [alone.lookup(uri).answer for uri in ("http://x.com/gone", "http://x.com/p01")] == ["no", "unknown"]
    compact_by_weights(tmp_path / "full.ukvs", tmp_path / "small.ukvs", Weights())
    merge_maps([tmp_path / "small.ukvs", tmp_path / "voids.ukvs"], tmp_path / "both.ukvs")
    with MementoMap.open(tmp_path / "both.ukvs") as both:
        asked = ("http://x.com/gone", "http://x.com/p01", "http://x.com/other")
        assert [both.lookup(uri).answer for uri in asked] == ["no", "yes", "yes"]


def test_an_empty_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no requests"):
        voids_of(tmp_path, "com,x)/ 1\n", "")


@given(holdings(), st.lists(keys, max_size=25), st.booleans(), st.integers(1, 3))
def test_no_void_covers_a_held_key(
    tmp_path_factory: pytest.TempPathFactory,
    records: dict[bytes, Frequency],
    asked: list[bytes],
    stated: bool,
    branches: int,
) -> None:
    folder = tmp_path_factory.mktemp("voids")
    path = write_map(folder / "map.ukvs", records)
    wanted = [key.decode() for key in [*asked, *(key for key in records if not key.endswith(b"*"))]]
    if stated:
        log = "".join(line(uri, 404) for uri in wanted if " " not in uri)
    else:
        log = "".join(f"{uri}\n" for uri in wanted)
    (folder / "log").write_text(log + line("http://other.example/", 404))
    make_voids(
        [folder / "log"],
        [path],
        folder / "voids.ukvs",
        min_requests=1,
        min_branches=branches,
        on_problem=lambda _problem: None,
    )
    merge_maps([path, folder / "voids.ukvs"], folder / "both.ukvs")
    probes = [*asked, *(key for key in records if not key.endswith(b"*"))]
    probes += [key.rstrip(b"/") + b"/new" for key in probes]
    with MementoMap.open(path) as one, MementoMap.open(folder / "both.ukvs") as both:
        assert not [key for key in held_keys(records) if both.lookup(key.decode()).answer == "no"]
        affirmed = [key.decode() for key in probes if one.lookup(key.decode()).answer != "no"]
        assert not [key for key in affirmed if both.lookup(key).answer == "no"]
