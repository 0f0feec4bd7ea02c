"""Compaction by weights: cutoffs, limits, fitting, odd maps."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import FormatError, UsageError
from recollect.formats.containers import atomic_output, open_input
from recollect.maps.plainmap import open_plain
from recollect.model import Problem, Progress
from recollect.profiles.compaction import weights as module
from recollect.profiles.compaction.weights import Weights, compact_by_weights, fit_weights


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def records(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("!")]


def test_cutoffs_are_those_of_the_paper() -> None:
    weights = Weights(1, 1)
    assert [round(cutoff, 3) for cutoff in weights.path_cutoffs()[1:4]] == [24.546, 9.116, 5.107]
    assert [round(cutoff, 3) for cutoff in weights.host_cutoffs()[2:4]] == [9.955, 7.452]
    assert weights.host_cutoffs()[1] == float("inf")
    assert Weights(1, 1, rollup_tlds=True).host_cutoffs()[1] == 16.329


@pytest.mark.parametrize("children", [24, 25])
def test_a_node_rolls_up_when_it_has_more_children_than_its_cutoff(tmp_path: Path, children: int) -> None:
    source = write(tmp_path / "m.ukvs", *(f"com,x)/{number:02} 1/1" for number in range(children)))
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1))
    assert records(tmp_path / "o.ukvs") == (records(source) if children == 24 else ["com,x)/* 25/25"])


def test_the_shallowest_node_wins(tmp_path: Path) -> None:
    hosts = [f"com,x,h{number:02})/{path}" for number in range(12) for path in range(30)]
    source = write(tmp_path / "m.ukvs", *(f"{key} 1/1" for key in sorted(hosts)))
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1))
    assert records(tmp_path / "o.ukvs") == ["com,x,* 360/360"]


def test_a_top_level_domain_rolls_up_only_when_asked(tmp_path: Path) -> None:
    source = write(tmp_path / "m.ukvs", *(f"com,h{number:02})/ 1/1" for number in range(20)))
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1))
    assert len(records(tmp_path / "o.ukvs")) == 20
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1, rollup_tlds=True))
    assert records(tmp_path / "o.ukvs") == ["com,* 20/20"]


def test_an_address_never_rolls_up_octet_by_octet(tmp_path: Path) -> None:
    source = write(tmp_path / "m.ukvs", *(f"1,2,3,{number})/ 1/1" for number in range(10, 99)))
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(0, 0, rollup_tlds=True))
    assert len(records(tmp_path / "o.ukvs")) == 89


def test_what_lies_deeper_than_the_limit_is_one_segment(tmp_path: Path) -> None:
    keys = [f"com,x)/a/b/{number}" for number in range(30)]
    source = write(tmp_path / "m.ukvs", *(f"{key} 1/1" for key in sorted(keys)))
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1, max_path_depth=3))
    assert records(tmp_path / "o.ukvs") == ["com,x)/a/* 30/30"]
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1, max_path_depth=2))
    assert records(tmp_path / "o.ukvs") == ["com,x)/* 30/30"]
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 1, max_path_depth=1))
    assert len(records(tmp_path / "o.ukvs")) == 30


def test_fitting_finds_the_law_that_the_tree_follows(tmp_path: Path) -> None:
    # Nodes of path depth d have 12 / d children (12, 6, 4, 3), as the law 12 * d^-1 says.
    names = ["com,x)"]
    keys = []
    for count in (12, 6, 4, 3):
        names = [f"{name}/{number:02}" for name in names for number in range(count)]
        keys += names
    source = write(tmp_path / "m.ukvs", *(f"{key} 1/1" for key in sorted(keys)))
    with open_plain(source) as plain:
        fitted = fit_weights(plain, Weights())
    assert (round(fitted.path_a, 3), round(fitted.path_k, 3)) == (12, 1)
    assert (fitted.host_a, fitted.host_k) == (16.329, 0.714)  # one depth is too few to fit
    result = compact_by_weights(source, tmp_path / "o.ukvs", Weights(path_weight=0.99), fit=True)
    assert result.weights == fitted.__class__(
        path_weight=0.99, path_a=result.weights.path_a, path_k=result.weights.path_k
    )
    assert records(tmp_path / "o.ukvs") == [f"com,x)/* {len(keys)}/{len(keys)}"]


def test_negative_weights_are_refused() -> None:
    with pytest.raises(UsageError):
        Weights(-1, 1)
    with pytest.raises(UsageError):
        Weights(max_path_depth=0)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_any_container_goes_in_and_out_onto_itself(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m.ukvs{suffix}"
    with atomic_output(path) as out:
        out.write(b"".join(b"com,x)/%03d 1/1\n" % number for number in range(100)))
    compact_by_weights(path, path, Weights())
    with open_input(path) as stream:
        assert stream.read().splitlines()[-1] == b"com,x)/* 100/100"


def test_quoted_tokens_tabs_and_inner_frequencies_are_read(tmp_path: Path) -> None:
    source = write(tmp_path / "m.ukvs", "com,a)/\t5", 'com,b)/ "7"', "com,c)/  3   ")
    problems: list[Problem] = []
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(), on_problem=problems.append)
    assert records(tmp_path / "o.ukvs") == ["com,a)/ 5", "com,c)/ 3"]
    assert [problem.line for problem in problems] == [2]
    old = write(tmp_path / "m.cdxj", "@context http://x/", 'com,a)/ {"frequency": 5}', 'com,b)/ {"frequency": 1}')
    compact_by_weights(old, tmp_path / "o.ukvs", Weights())
    assert [line.split()[:2] for line in records(tmp_path / "o.ukvs")] == [["com,a)/", "5"], ["com,b)/", "1"]]


FIELDS = '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}'


def test_a_map_with_more_key_columns_rolls_up_column_by_column(tmp_path: Path) -> None:
    rows = [f"com,x)/{number:02} {year} 1/1" for number in range(60) for year in (":", "2014", f"201{5 + number % 2}")]
    rows += ["com,y)/a 2014 5/1", "com,y)/a : 5/1"]
    source = write(tmp_path / "m.ukvs", FIELDS, *sorted(rows))
    result = compact_by_weights(source, tmp_path / "o.ukvs", Weights())
    assert records(tmp_path / "o.ukvs") == [
        "com,x)/* 2014 60/60",
        "com,x)/* 2015 30/30",
        "com,x)/* 2016 30/30",
        "com,x)/* : 60/60",
        "com,y)/a 2014 5/1",
        "com,y)/a : 5/1",
    ]
    assert (result.keys_in, result.keys_out) == (182, 6)
    shuffled = write(tmp_path / "s.ukvs", FIELDS, *sorted(rows, key=lambda row: row[::-1]))
    compact_by_weights(shuffled, tmp_path / "p.ukvs", Weights())
    assert records(tmp_path / "p.ukvs") == records(tmp_path / "o.ukvs")


def test_columns_below_a_wildcard_of_the_input_are_not_added_again(tmp_path: Path) -> None:
    rows = [
        "com,x)/a/* 2014 9/9",
        "com,x)/a/* 2015 1/1",
        "com,x)/a/q 2014 4/1",
        "com,x)/b 2014 1/1",
        "com,x)/c 2015 1/1",
    ]
    source = write(tmp_path / "m.ukvs", FIELDS, *rows, "com,x)/void 2014 0")
    compact_by_weights(source, source, Weights(path_weight=0.1))
    assert records(source) == ["com,x)/* 2014 10/10", "com,x)/* 2015 2/2", "com,x)/void 2014 0"]


def test_the_largest_counts_are_read_and_their_sum_is_a_lower_bound(tmp_path: Path) -> None:
    source = write(tmp_path / "m.ukvs", "com,x)/a 9223372036854775807", "com,x)/b 1")
    compact_by_weights(source, tmp_path / "o.ukvs", Weights())
    assert records(tmp_path / "o.ukvs") == records(source)
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(path_weight=0))
    assert records(tmp_path / "o.ukvs") == ["com,x)/* 9223372036854775807+"]


def test_a_header_among_the_records_is_named(tmp_path: Path) -> None:
    source = write(tmp_path / "m.ukvs", "com,a)/ 1", "!meta {}", "com,b)/ 1")
    problems: list[Problem] = []
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(), on_problem=problems.append)
    assert records(tmp_path / "o.ukvs") == ["com,a)/ 1", "com,b)/ 1"]
    assert [problem.file for problem in problems] == [str(source)]
    assert "header" in problems[0].reason


def test_a_quoted_key_is_an_error_with_its_line(tmp_path: Path) -> None:
    source = write(tmp_path / "m.ukvs", '"com,a)/ with space" 1', "com,b)/ 1")
    with pytest.raises(FormatError, match="cannot be compacted"):
        compact_by_weights(source, tmp_path / "o.ukvs", Weights())


def test_a_map_with_more_value_columns_is_refused_with_its_columns_named(tmp_path: Path) -> None:
    source = write(
        tmp_path / "m.ukvs", '!fields {"keys": ["surt"], "values": ["frequency", "colour"]}', "com,a)/ 5 red"
    )
    with pytest.raises(FormatError, match="colour"):
        compact_by_weights(source, tmp_path / "o.ukvs", Weights())
    assert not (tmp_path / "o.ukvs").exists()


def test_json_without_a_part_makes_lower_bounds(tmp_path: Path) -> None:
    lines = [f'com,x)/{number} 1/1 {{"status": {{"200": 1}}}}' for number in range(3)]
    source = write(tmp_path / "m.ukvs", *lines, "com,x)/z 1/1")
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(4, 0.1))
    assert records(tmp_path / "o.ukvs") == ['com,x)/* 4/4 {"status": {"200": "3+"}}']


def test_a_wildcards_own_json_includes_what_is_below(tmp_path: Path) -> None:
    source = write(
        tmp_path / "m.ukvs",
        'com,x)/a/* 9/9 {"status": {"200": 9}}',
        *(f'com,x)/a/{number} 1/1 {{"status": {{"200": 1}}}}' for number in range(5)),
        'com,x)/b 1/1 {"status": {"404": 1}}',
        'com,x)/c 1/1 {"status": {"200": 1}}',
    )
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(4, 0.1))
    assert records(tmp_path / "o.ukvs") == ['com,x)/* 11/11 {"status": {"200": 10, "404": 1}}']


def test_very_deep_and_very_long_keys(tmp_path: Path) -> None:
    deep = ["com,x)" + "/d" * count for count in range(1, 3000, 7)]
    long = [f"com,y)/{'x' * 100_000}{number}" for number in range(3)]
    source = write(tmp_path / "m.ukvs", *(f"{key} 1" for key in sorted([*deep, *long])))
    result = compact_by_weights(source, tmp_path / "o.ukvs", Weights(float("inf"), float("inf")))
    assert records(tmp_path / "o.ukvs") == records(source)
    assert result.keys_out == result.keys_in
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(1, 0.01))
    assert records(tmp_path / "o.ukvs") == [f"com,x)/* {len(deep)}", "com,y)/* 3"]


def test_progress_is_reported_and_ends_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 1 << 10)
    source = write(tmp_path / "m.ukvs", *(f"com,{chr(97 + number % 26)}{number:05})/ 1" for number in range(2600)))
    source.write_text("".join(sorted(source.read_text().splitlines(keepends=True))))
    seen: list[Progress] = []
    compact_by_weights(source, tmp_path / "o.ukvs", Weights(), progress=seen.append)
    assert len(seen) > 5
    assert seen[-1].done == seen[-1].total == source.stat().st_size
    assert [one.done for one in seen] == sorted(one.done for one in seen)
