"""Holdings against accesses, cell by cell."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from recollect.errors import UsageError
from recollect.profiles.statistics.overlap import bucket, overlap


@pytest.mark.parametrize(
    ("count", "name"),
    [
        (0, "Zero"),
        (1, "Ones"),
        (9, "Ones"),
        (10, "Tens"),
        (99, "Tens"),
        (100, "Hundreds"),
        (10**12, "10 millions or more"),
    ],
)
def test_buckets_are_powers_of_ten(count: int, name: str) -> None:
    assert bucket(count) == name


def test_the_matrix_of_a_map(tmp_path: Path) -> None:
    holdings = tmp_path / "map.ukvs"
    holdings.write_text("com,a)/ 5/1\ncom,b)/ 12/1\ncom,c)/* 300/9\ncom,d)/ 0\ncom,w,www)/ 7/1\ncom,z)/ 1/1\n")
    log = tmp_path / "log"
    log.write_text(
        "1 http://a.com/\n12 http://b.com/?q\n1 http://c.com/x\n1 http://d.com/\n1 http://no.com/\n3 http://no.com/\n1 http://www.w.com/\nword\n"
    )
    found = overlap(holdings, [log])
    assert found.cells == {
        "Ones": {"Ones": 2, "Zero": 1},  # a; w under its other spelling; z never asked for
        "Tens": {"Tens": 1},
        "Rolled up": {"Ones": 1},
        "Zero": {"Ones": 2},  # d is a void, no is not there
    }
    assert (found.accesses, found.accessed_keys, found.held_keys, found.accessed_and_held) == (20, 6, 4, 4)
    assert found.unreadable == 1
    assert found.as_dict()["matrix"] == [[0, 2, 0], [1, 2, 0], [0, 0, 1], [0, 1, 0]]


def test_an_index_is_compared_by_uri_r(tmp_path: Path) -> None:
    index = tmp_path / "index.cdxj"
    index.write_text("".join(f'com,a)/?q={number} 2014 {{"status": "200"}}\n' for number in (1, 1, 2)))
    log = tmp_path / "log"
    log.write_text("http://a.com/?q=1\nhttp://a.com/?q=3\n")
    found = overlap(index, [log])
    assert (found.policy, found.cells) == ("URIR", {"Ones": {"Ones": 1, "Zero": 1}, "Zero": {"Ones": 1}})


def test_damage_and_what_cannot_be_read_are_counted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = "".join(f"http://x.com/{number * 7919}\n" for number in range(3000)).encode()
    (tmp_path / "logs" / "cut.gz").write_bytes(gzip.compress(text)[:-200])
    (tmp_path / "logs" / "urls").write_text("http://x.com/a\n")
    index = tmp_path / "index.cdx"
    index.write_text("com,x)/a 20140101000000 http://x.com/a text/html 200 D - - 1 2 f\n" * 2 + "com,x)/b 2014 short\n")
    found = overlap(index, [tmp_path / "logs"])
    assert found.accessed_and_held == 1
    assert found.accesses > 2000
    assert ["index.cdx:3" in str(problem) for problem in found.problems[:2]] == [True, False]
    assert any("cut off" in problem.reason for problem in found.problems)
    with pytest.raises(UsageError, match="pipe"):
        overlap("-", [tmp_path / "logs"])
