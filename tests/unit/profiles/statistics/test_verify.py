"""Verify finds what a map lacks and counts that are wrong, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import UsageError
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.verify import verify

LINES = [
    'com,x)/a 20140101000000 {"url": "http://www.x.com/A/", "mime": "text/html", "status": "200"}',
    'com,x)/a 20150101000000 {"url": "https://x.com/a", "mime": "text/html", "status": "200"}',
    'com,x)/a/b?q=1 20140101000000 {"url": "http://x.com/a/b?q=1", "mime": "image/png", "status": "404"}',
    'com,y,sub)/ 20140101000000 {"url": "http://sub.y.com/", "mime": "text/html", "status": "200"}',
]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    file = tmp_path / "index.cdxj"
    file.write_text("".join(line + "\n" for line in LINES))
    return file


def written(folder: Path, text: str) -> Path:
    file = folder / "map.ukvs"
    file.write_text(text)
    return file


@pytest.mark.parametrize("policy", ["HxPx", "H2P0", "HxP1", "DDom", "DIni", "URIR"])
@pytest.mark.parametrize("name", ["map.ukvs", "map.ukvs.gz"])
def test_a_map_made_from_the_index_is_right(index: Path, tmp_path: Path, policy: str, name: str) -> None:
    target = tmp_path / name
    profile(index, target, policy=policy)
    result = verify(target, [index])
    assert (result.ok, result.captures, result.uris, result.urls) == (True, 4, 3, 4)
    assert result.keys_compared == profile(index, policy=policy).totals.keys


def test_the_filters_of_the_map_apply(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "map.ukvs"
    profile(index, target, statuses=["200"], where="year == 2014", exclude=["robots.txt"], since="2014", until="2014")
    result = verify(target, [index])
    assert (result.ok, result.captures, result.missed) == (True, 2, 0)


def test_a_compacted_map_holds_everything_and_its_totals_are_inclusive(index: Path, tmp_path: Path) -> None:
    result = verify(written(tmp_path, "com,x)/* 3/2\ncom,x)/a 2/1\ncom,y,* 1/1\n"), [index])
    assert (result.ok, result.keys_compared) == (True, 3)


def test_what_the_map_lacks_is_named_with_file_and_line(index: Path, tmp_path: Path) -> None:
    result = verify(written(tmp_path, "com,x)/a 2/1\ncom,y,sub)/ 1/1\n"), [index])
    assert not result.ok
    assert {(miss.line, miss.excerpt) for miss in result.misses} == {(3, "com,x)/a/b?q=1"), (3, "http://x.com/a/b?q=1")}


@pytest.mark.parametrize("text", ["com,x)/* 3/2\ncom,x)/a/* 0\ncom,y,* 1/1\n", "com,x)/* 3/2\ncom,y,* /\n"])
def test_voids_and_unknowns_that_hide_something_are_misses(index: Path, tmp_path: Path, text: str) -> None:
    assert verify(written(tmp_path, text), [index]).missed > 0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("com,x)/* 4/2\ncom,y,sub)/ 1/1\n", 1),
        ("com,x)/* 3/1\ncom,y,sub)/ 1/1\n", 1),
        ("com,x)/* 3+/2-\ncom,y,sub)/ 2~/1\n", 0),
        ("com,x)/* 4+/2\ncom,y,sub)/ 0-/1\n", 1),
        ("com,x)/* 3/2\ncom,y,sub)/ 1/1\ncom,z)/ 5/5\n", 1),
        ("com,x)/* 3/2\ncom,y,sub)/ 1/1\ncom,z)/ 0\n", 0),
    ],
)
def test_counts_are_held_against_the_index(index: Path, tmp_path: Path, text: str, wrong: int) -> None:
    result = verify(written(tmp_path, text), [index])
    assert result.wrong == wrong


def test_a_part_of_the_input_only_shows_what_is_too_little(index: Path, tmp_path: Path) -> None:
    target = written(tmp_path, "com,x)/* 9/9\ncom,y,sub)/ 1/1\ncom,z)/ 5/5\n")
    assert verify(target, [index], partial=True).ok
    assert not verify(target, [index]).ok
    assert not verify(written(tmp_path, "com,x)/* 2/2\ncom,y,sub)/ 1/1\n"), [index], partial=True).ok


def test_a_map_made_from_more_files_is_taken_as_partial(index: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.cdxj"
    other.write_text(LINES[0].replace("com,x)/a", "com,x)/other").replace("/A/", "/other") + "\n")
    target = tmp_path / "map.ukvs"
    profile([index, other], target)
    assert verify(target, [other]).ok
    assert verify(target, [index, other]).ok


def test_counts_can_be_left_alone_and_pipes_cannot_be_used(index: Path, tmp_path: Path) -> None:
    target = written(tmp_path, "com,* 1\n")
    assert verify(target, [index], counts=False).ok
    with pytest.raises(UsageError, match="twice"):
        verify(target, ["-"])


def test_a_map_is_not_an_input(index: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a map where an index is expected"):
        verify(written(tmp_path, "com,x)/a 2/1\n"), [tmp_path / "map.ukvs"])


def test_counts_against_other_files_than_the_map_names_are_lower_bounds(index: Path, tmp_path: Path) -> None:
    named = '!meta {"sources": [{"name": "other.cdxj"}]}\n'
    rows = "com,x)/a 9/1\ncom,x)/a/b 1/1\ncom,y,sub)/ 1/1\n"
    result = verify(written(tmp_path, named + rows), [index])
    assert (result.ok, result.at_least) == (True, True)
    assert not verify(written(tmp_path, rows), [index]).ok


def test_what_is_not_a_web_capture_is_verified_by_its_counts(tmp_path: Path) -> None:
    index = tmp_path / "index.cdxj"
    lines = [
        'com,x)/a 20140101000000 {"url": "urn:screenshot:http://x.com/a"}',
        'dns:x.com 20140101000000 {"url": "dns:x.com", "mime": "text/dns"}',
        'metadata)/gnu.org/m 20140101000000 {"url": "metadata://gnu.org/m"}',
    ]
    index.write_text("".join(line + "\n" for line in lines))
    target = tmp_path / "map.ukvs"
    profile(index, target, all_schemes=True)
    result = verify(target, [index])
    assert (result.ok, result.captures, result.keys_compared) == (True, 3, 3)
    target.write_text("".join(line for line in target.read_text().splitlines(True) if not line.startswith("dns")))
    assert verify(target, [index]).wrong == 1
