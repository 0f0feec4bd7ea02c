"""What the reference program (MementoMap 0.1.0b2) gets wrong, number by number, and what we do instead.

The numbers are those of our survey of that program; each fault was reproduced there. Faults of reading indexes
(`generate`) are tested with profiles; these are of maps: lookup, compaction and the command line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.formats.frequency import Frequency
from recollect.maps.lookup import MementoMap
from recollect.profiles.compaction.weights import Weights, compact_by_weights


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def keys_of(path: Path) -> list[str]:
    return [line.split()[0] for line in path.read_text().splitlines() if not line.startswith("!")]


def answers(path: Path, *uris: str) -> list[tuple[str, str | None]]:
    with MementoMap.open(path) as opened:
        found = [opened.lookup(uri) for uri in uris]
    return [(one.answer, one.key.decode() if one.key else None) for one in found]


def test_1_subdomains_after_a_path_rollup_are_not_overwritten(tmp_path: Path) -> None:
    keys = [f"com,example)/p{number:02}" for number in range(26)]
    keys += [f"com,example,sub,host-number-{number:02})/" for number in range(30)]
    source = write(tmp_path / "map.ukvs", *(f"{key} 1" for key in sorted(keys)))
    compact_by_weights(source, tmp_path / "small.ukvs", Weights(1, 1))
    assert keys_of(tmp_path / "small.ukvs") == ["com,example)/*", "com,example,sub,*"]
    assert {answer for answer, _ in answers(tmp_path / "small.ukvs", *keys)} == {"yes"}


def test_2_unsorted_and_repeated_keys_are_sorted_and_joined(tmp_path: Path) -> None:
    source = write(tmp_path / "map.ukvs", "com,x)/a 2/1", "com,x)/a/b 1/1", "com,x)/0 1/1", "com,x)/a 3/1")
    compact_by_weights(source, tmp_path / "out.ukvs", Weights())
    assert [line for line in (tmp_path / "out.ukvs").read_text().splitlines() if line[0] != "!"] == [
        "com,x)/0 1/1",
        "com,x)/a 5/2",
        "com,x)/a/b 1/1",
    ]


def test_3_a_shorter_key_after_deeper_ones_stays(tmp_path: Path) -> None:
    keys = ["com,x)/a/b", *(f"com,x)/a/b/c/d{number}" for number in range(9))]
    source = write(tmp_path / "map.ukvs", *(f"{key} 1" for key in sorted(keys)))
    compact_by_weights(source, tmp_path / "small.ukvs", Weights(1, 1))
    assert keys_of(tmp_path / "small.ukvs") == ["com,x)/a/b", "com,x)/a/b/c/*"]
    assert answers(tmp_path / "small.ukvs", "com,x)/a/b?q=1") == [("yes", "com,x)/a/b")]


def test_4_the_first_line_is_seen_by_every_lookup_key_and_nothing_beyond_the_ends_crashes(tmp_path: Path) -> None:
    source = write(tmp_path / "map.ukvs", "com,b)/* 5", "com,c)/a 1", "com,d)/z 2")
    assert answers(source, "com,b)/x/y", "com,d)/z", "com,a)/", "org,z)/a", "com,d)/zz", "com,c)/a") == [
        ("yes", "com,b)/*"),
        ("yes", "com,d)/z"),
        ("no", None),
        ("no", None),
        ("no", None),
        ("yes", "com,c)/a"),
    ]


@pytest.mark.parametrize(
    "text",
    ["", "\n", '!fields {"keys": ["surt"], "values": ["frequency"]}\n', '!meta {"name": "x"}'],
    ids=["empty", "one empty line", "headers only", "header without newline"],
)
def test_4_maps_without_records_answer_no(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.ukvs").write_text(text)
    assert answers(tmp_path / "map.ukvs", "http://example.com/", "com,x)/a") == [("no", None)] * 2


def test_4_a_map_of_one_line_without_newline_is_searched(tmp_path: Path) -> None:
    (tmp_path / "map.ukvs").write_text("com,x,* 3")
    assert answers(tmp_path / "map.ukvs", "com,x)/", "com,x,y)/a", "com,xy)/", "com,w)/") == [
        ("yes", "com,x,*"),
        ("yes", "com,x,*"),
        ("no", None),
        ("no", None),
    ]


def test_5_keys_with_a_trailing_slash_match(tmp_path: Path) -> None:
    # Figure 2 of the MementoMap paper has keys of this kind; the reference writes roots without their slash.
    source = write(tmp_path / "map.ukvs", "com,root) 7", "org,arxiv)/abs/ 100", "org,arxiv)/pdf/ 0")
    assert answers(
        source, "https://arxiv.org/abs/", "https://arxiv.org/abs", "https://arxiv.org/pdf/", "http://root.com/"
    ) == [
        ("yes", "org,arxiv)/abs/"),
        ("yes", "org,arxiv)/abs/"),
        ("no", "org,arxiv)/pdf/"),
        ("yes", "com,root)"),
    ]


def test_5_an_empty_segment_has_parents_like_any_other(tmp_path: Path) -> None:
    source = write(tmp_path / "map.ukvs", "com,x)/a/* 4")
    assert answers(source, "com,x)/a//b", "http://x.com/a//b") == [("yes", "com,x)/a/*")] * 2


def test_5_a_trailing_comma_of_a_host_is_not_a_part_of_the_key(tmp_path: Path) -> None:
    source = write(tmp_path / "map.ukvs", "com,x)/a 4")
    assert answers(source, "com,x,)/a") == [("yes", "com,x)/a")]


def test_6_keys_without_a_comma_are_kept_and_found(tmp_path: Path) -> None:
    source = write(tmp_path / "map.ukvs", "* 9+", "1.2.3.4)/a 1", "4,3,2,1)/b 1", "localhost)/ 2")
    compact_by_weights(source, tmp_path / "small.ukvs", Weights(0.1, 100))
    assert keys_of(tmp_path / "small.ukvs") == ["*", "1.2.3.4)/a", "4,3,2,1)/b", "localhost)/"]
    assert answers(
        tmp_path / "small.ukvs", "http://1.2.3.4/a", "http://1.2.3.4/b", "http://localhost/", "http://q.org/"
    ) == [
        ("yes", "1.2.3.4)/a"),
        ("yes", "4,3,2,1)/b"),
        ("yes", "localhost)/"),
        ("yes", "*"),
    ]


def test_7_input_in_the_order_of_a_locale_is_sorted_not_trusted(tmp_path: Path) -> None:
    keys = [f"com,x)/{first}{second}{third}" for first in "ab" for second in ("", "-", "_", ".") for third in "xyz"]
    by_letters = sorted(keys, key=lambda key: ([char for char in key if char.isalnum()], key))
    assert by_letters != sorted(keys)
    source = write(tmp_path / "map.ukvs", *(f"{key} 1" for key in by_letters))
    compact_by_weights(source, tmp_path / "small.ukvs", Weights())
    assert keys_of(tmp_path / "small.ukvs") == sorted(keys)
    assert {answer for answer, _ in answers(tmp_path / "small.ukvs", *keys)} == {"yes"}


def test_8_headers_frequencies_and_json_survive(tmp_path: Path) -> None:
    source = write(
        tmp_path / "map.ukvs",
        '!id {"uri": "https://archive.example/"}',
        '!meta {"name": "An Archive"}',
        "com,a)/ 400/100",
        "com,b)/ 5+",
        'com,c)/ 2~/1 {"status": {"200": 2}}',
    )
    compact_by_weights(source, tmp_path / "out.ukvs", Weights())
    lines = (tmp_path / "out.ukvs").read_text().splitlines()
    assert '!id {"uri": "https://archive.example/"}' in lines
    assert '!meta {"name": "An Archive"}' in lines
    assert lines[-3:] == ["com,a)/ 400/100", "com,b)/ 5+", 'com,c)/ 2~/1 {"status": {"200": 2}}']


def test_8_json_blocks_of_what_rolls_up_are_merged(tmp_path: Path) -> None:
    lines = [
        f'com,x)/{number} 2/1 {{"datetime": {{"2014": "1/1", "201{5 + number % 2}": "1/1"}}}}' for number in range(4)
    ]
    source = write(tmp_path / "map.ukvs", *lines)
    compact_by_weights(source, tmp_path / "out.ukvs", Weights(4, 0.1))
    (line,) = [line for line in (tmp_path / "out.ukvs").read_text().splitlines() if line[0] != "!"]
    key, frequency, block = line.split(None, 2)
    assert (key, frequency) == ("com,x)/*", "8/4")
    assert json.loads(block) == {"datetime": {"2014": "4/4", "2015": "2/2", "2016": "2/2"}}


def test_8_nested_totals_are_not_counted_twice_and_zeros_stay(tmp_path: Path) -> None:
    source = write(
        tmp_path / "map.ukvs",
        "com,x)/* 100/40",
        "com,x)/a/* 60/20",
        "com,x)/a/b 10/1",
        "com,x)/b/* 0",
        "com,x)/c 5/1",
        "com,x,sub)/ 3/1",
    )
    compact_by_weights(source, tmp_path / "out.ukvs", Weights(0.05, 0.05))
    lines = [line for line in (tmp_path / "out.ukvs").read_text().splitlines() if line[0] != "!"]
    assert lines == ["com,x)/b/* 0", "com,x,* 103/41"]
    assert answers(tmp_path / "out.ukvs", "com,x)/b/deep", "com,x)/a/q") == [("no", "com,x)/b/*"), ("yes", "com,x,*")]


def test_9_children_are_counted_by_segments(tmp_path: Path) -> None:
    # `a`, `a-b`, `a/1` are not together in byte order: the children of /a come in two stretches, siblings between.
    keys = ["com,x)/a", "com,x)/a-b/1", "com,x)/a-b/2", "com,x)/a/1", "com,x)/a/2", "com,x)/a/3"]
    source = write(tmp_path / "map.ukvs", *(f"{key} 1" for key in sorted(keys)))
    weights = Weights(path_weight=1, path_a=4.1, path_k=1)  # cutoffs 4.1, 2.05, ...
    compact_by_weights(source, tmp_path / "out.ukvs", weights)
    assert keys_of(tmp_path / "out.ukvs") == ["com,x)/a-b/1", "com,x)/a-b/2", "com,x)/a/*"]


def test_10_a_literal_star_in_a_uri_is_not_a_wildcard(tmp_path: Path) -> None:
    index = write(tmp_path / "index.surt", "com,x)/a/*")
    assert run(["profile", str(index), "-o", str(tmp_path / "map.ukvs"), "-q"]) == 0
    assert keys_of(tmp_path / "map.ukvs") == ["com,x)/a/%2a"]
    assert answers(tmp_path / "map.ukvs", "http://x.com/a/*", "http://x.com/a/b") == [
        ("yes", "com,x)/a/%2a"),
        ("no", None),
    ]


def test_11_errors_have_their_exit_codes_and_say_what_went_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compact", str(tmp_path / "missing.ukvs"), "-o", str(tmp_path / "out.ukvs")]) == 2
    assert "missing.ukvs" in capsys.readouterr().err
    assert run(["compact", str(tmp_path / "missing.ukvs")]) == 2
    assert not (tmp_path / "out.ukvs").exists()


def test_11_lines_that_cannot_be_read_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "map.ukvs", "com,a)/ 1", "com,b)/ many", "com,c)/ 2")
    assert run(["compact", str(source), "-o", str(tmp_path / "out.ukvs")]) == 3
    assert f"{source}:2" in capsys.readouterr().err
    assert keys_of(tmp_path / "out.ukvs") == ["com,a)/", "com,c)/"]
    assert run(["compact", str(source), "-o", str(tmp_path / "strict.ukvs"), "--strict"]) == 1
    assert not (tmp_path / "strict.ukvs").exists()


def test_11_the_output_may_be_the_input(tmp_path: Path) -> None:
    source = write(tmp_path / "map.ukvs", *(f"com,x)/{number:03} 1/1" for number in range(200)))
    assert run(["compact", str(source), "-o", str(source), "-q"]) == 0
    assert [line for line in source.read_text().splitlines() if line[0] != "!"] == ["com,x)/* 200/200"]
    assert Frequency.parse("200/200").held


def test_11_a_pipe_is_read_and_written(tmp_path: Path) -> None:
    text = "".join(f"com,x)/{number:03} 1\n" for number in range(60)).encode()
    command = [sys.executable, "-m", "recollect", "compact", "-", "-o", "-", "-q"]
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == b"com,x)/* 60"
