"""`recollect compact` by budget and `recollect tradeoff`, as people call them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from recollect.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    keys = [f"com,site{s})/dir{d}/page{p} 2/1\n" for s in range(3) for d in range(4) for p in range(10, 20)]
    (tmp_path / "map.ukvs").write_text("".join(keys))
    log = [f"http://site1.com/dir2/absent{n}\n" for n in range(30)] + ["http://site2.com/dir1/page11\n"] * 10
    (tmp_path / "log.txt").write_text("".join(log))
    return tmp_path


def keys_of(path: Path) -> list[str]:
    return [line.split()[0] for line in path.read_text().splitlines() if not line.startswith("!")]


@pytest.mark.parametrize(
    ("options", "most"),
    [(["--max-cost", "10%"], 12), (["--max-cost", "0.1"], 12), (["--max-keys", "7"], 7)],
)
def test_a_budget_of_keys(site: Path, capsys: Capture, options: list[str], most: int) -> None:
    assert run(["compact", str(site / "map.ukvs"), "-o", str(site / "small.ukvs"), *options]) == 0
    assert 0 < len(keys_of(site / "small.ukvs")) <= most
    assert f"120 keys became {len(keys_of(site / 'small.ukvs'))}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["small.ukvs", "small.ukvs.gz", "small.ukvs.zst"])
def test_a_budget_of_bytes_is_of_the_file_as_it_lies_there(site: Path, name: str) -> None:
    assert run(["compact", str(site / "map.ukvs"), "-o", str(site / name), "--max-bytes", "0.6kB", "-q"]) == 0
    assert 300 < (site / name).stat().st_size <= 600


def test_a_log_is_reported_on(site: Path, capsys: Capture) -> None:
    command = ["compact", str(site / "map.ukvs"), "-o", str(site / "small.ukvs"), "--max-keys", "14"]
    assert run([*command, "--lookups", str(site / "log.txt"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["by"], report["keys_out"], report["lookups"], report["wrong_in_log"]) == ("budget", 14, 40, 0.0)
    assert {key for key in keys_of(site / "small.ukvs") if key.startswith("com,site1)/dir2/page")} == {
        f"com,site1)/dir2/page{p}" for p in range(10, 20)
    }


def test_an_accuracy(site: Path, capsys: Capture) -> None:
    command = ["compact", str(site / "map.ukvs"), "-o", str(site / "small.ukvs"), "--min-accuracy", "90%"]
    assert run([*command, "--lookups", str(site / "log.txt")]) == 0
    said = re.search(r"\((\d+\.\d+)% of the [\d,]+ lookups in the log", capsys.readouterr().err)
    assert said is not None
    assert float(said[1]) >= 90
    assert len(keys_of(site / "small.ukvs")) < 120


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-keys", "5", "--max-cost", "1%"], "more than one budget"),
        (["--lookups", "log.txt"], "lookups need a budget"),
        (["--min-accuracy", "90%"], "add --lookups LOG"),
        (["--max-keys", "5", "--host-weight", "2"], "cannot be combined"),
        (["--max-cost", "1x"], "write it as 1% or 0.01"),
        (["--max-cost", "0%"], "not above 0%"),
        (["--max-bytes", "ten"], "write it as 500000, 500kB, 64MB or 2GiB"),
        (["--max-keys", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_meant_is_usage(site: Path, capsys: Capture, options: list[str], words: str) -> None:
    assert run(["compact", str(site / "map.ukvs"), "-o", str(site / "small.ukvs"), *options]) == 2
    assert words in capsys.readouterr().err
    assert not (site / "small.ukvs").exists()


def test_a_budget_that_no_map_meets_fails_and_leaves_nothing(site: Path, capsys: Capture) -> None:
    assert run(["compact", str(site / "map.ukvs"), "-o", str(site / "small.ukvs"), "--max-bytes", "10"]) == 1
    assert "no map is that small" in capsys.readouterr().err
    assert not (site / "small.ukvs").exists()


def test_lines_of_a_log_that_cannot_be_read_are_named_and_make_it_partial(site: Path, capsys: Capture) -> None:
    (site / "log.txt").write_text("http://site1.com/dir2/absent\nwhat is this line\n")
    command = ["compact", str(site / "map.ukvs"), "-o", str(site / "small.ukvs"), "--max-keys", "9"]
    assert run([*command, "--lookups", str(site / "log.txt")]) == 3
    assert "log.txt:2" in capsys.readouterr().err
    assert run([*command, "--lookups", str(site / "log.txt"), "--strict"]) == 1


def test_a_tradeoff_is_a_picture_a_page_or_numbers(site: Path, capsys: Capture) -> None:
    source = str(site / "map.ukvs")
    for name in ("t.svg", "t.html", "t.json"):
        assert run(["tradeoff", source, "--lookups", str(site / "log.txt"), "-o", str(site / name)]) == 0
    root = ElementTree.parse(site / "t.svg").getroot()
    shapes = "{http://www.w3.org/2000/svg}"
    numbers = json.loads((site / "t.json").read_text())
    assert len(root.findall(f"{shapes}path[@class='diamond']")) == 36 + 1  # and one in the legend
    assert len(root.findall(f"{shapes}circle[@class='dot']")) == len(numbers["budget"]) + 1
    assert (site / "t.html").read_text().count("<tr") == 1 + len(numbers["budget"]) + 36 + len(numbers["sets"])
    assert {(point["host_weight"], point["path_weight"]) for point in numbers["weights"]} == {
        (host, path) for host in (4, 2, 1, 0.5, 0.25, 0) for path in (4, 2, 1, 0.5, 0.25, 0)
    }
    assert numbers["budget"][-1]["accuracy"] == 1.0
    capsys.readouterr()
    assert run(["tradeoff", source, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy_is"] == "expected"


def test_a_tradeoff_has_a_curve_with_sets_and_an_axis_in_bytes(site: Path) -> None:
    keys = sorted(f"com,site{n % 7})/d{n % 11}/p{n}" for n in range(3000))
    (site / "wide.ukvs").write_text("".join(f"{key} 1\n" for key in keys))
    for name in ("t.svg", "t.html", "t.json"):
        assert run(["tradeoff", str(site / "wide.ukvs"), "--sizes", "8", "-o", str(site / name), "-q"]) == 0
    numbers = json.loads((site / "t.json").read_text())
    assert numbers["sets"] and all(point["bytes"] > 0 for point in (*numbers["budget"], *numbers["weights"]))
    for point in numbers["sets"]:
        smaller = [one["accuracy"] for one in numbers["budget"] if one["bytes"] <= point["bytes"]]
        assert point["accuracy"] > max(smaller, default=0.0)
    shapes = "{http://www.w3.org/2000/svg}"
    panel = ElementTree.parse(site / "t.svg").getroot().find(f"{shapes}g")
    assert panel is not None
    assert len(panel.findall(f"{shapes}rect[@class='square']")) == len(numbers["sets"]) + 1  # and one in the legend
    assert "bytes of the compressed map" in {text.text for text in panel.findall(f"{shapes}text")}
    page = (site / "t.html").read_text()
    assert page.count("<td>sets<td>") == len(numbers["sets"])
    assert f"<td>{numbers['sets'][0]['bytes']:,}<td>" in page


def test_the_bytes_of_a_tradeoff_are_those_of_the_map_that_is_written(site: Path, capsys: Capture) -> None:
    """At the accuracy and size that the curve shows there is such a map."""
    keys = sorted(f"com,site{n % 7})/d{n % 11}/p{n}" for n in range(3000))
    source, small = str(site / "wide.ukvs"), site / "small.ukvs.zst"
    (site / "wide.ukvs").write_text("".join(f"{key} 1\n" for key in keys))
    assert run(["tradeoff", source, "--sizes", "8", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["sets"]
    for point in points[:: max(1, len(points) // 3)]:
        limit = int(point["bytes"] * 1.02) + 200  # the header of a compacted map says how it was made
        command = ["compact", source, "-o", str(small), "--max-bytes", str(limit), "--sets", "--json"]
        assert run(command) == 0
        made = json.loads(capsys.readouterr().out)
        assert small.stat().st_size <= limit
        assert made["expected_wrong"] <= 1 - point["accuracy"] + 0.02


def test_a_tradeoff_of_another_kind_is_usage(site: Path, capsys: Capture) -> None:
    assert run(["tradeoff", str(site / "map.ukvs"), "-o", "t.png"]) == 2
    assert ".svg, .html or .json" in capsys.readouterr().err
    assert run(["tradeoff", str(site / "map.ukvs")]) == 2


def test_a_weight_of_nothing_is_a_weight(site: Path, capsys: Capture) -> None:
    options = ["-o", str(site / "small.ukvs"), "--max-keys", "7", "--host-weight", "0"]
    assert run(["compact", str(site / "map.ukvs"), *options]) == 2
    assert "a budget and weights cannot be combined" in capsys.readouterr().err


def test_a_size_counts_headers_and_lines_that_do_not_shrink_in_proportion(tmp_path: Path) -> None:
    lines = [f'com,x)/{name} 3 {{"datetime": {{"201{number}": "3"}}}}\n' for number, name in enumerate("abc")]
    (tmp_path / "map.ukvs").write_text("".join(lines))
    options = ["-o", str(tmp_path / "small.ukvs"), "--max-bytes", "300", "-q"]
    assert run(["compact", str(tmp_path / "map.ukvs"), *options]) == 0
    assert (tmp_path / "small.ukvs").stat().st_size <= 300


def test_a_share_of_less_than_a_key_names_the_next_step(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "map.ukvs").write_text("com,x)/a 1/1\n")
    assert run(["compact", str(tmp_path / "map.ukvs"), "-o", str(tmp_path / "s.ukvs"), "--max-cost", "1%"]) == 1
    assert "give --max-keys" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--fit"], ["--max-keys", "3"], ["--max-bytes", "1kB"], []])
@pytest.mark.parametrize("text", ["", '!meta {"name": "x"}\n'], ids=["empty", "header"])
def test_a_map_of_nothing_is_compacted_to_nothing(tmp_path: Path, text: str, options: list[str]) -> None:
    (tmp_path / "map.ukvs").write_text(text)
    assert run(["compact", str(tmp_path / "map.ukvs"), "-o", str(tmp_path / "s.ukvs"), "-q", *options]) == 0
    assert keys_of(tmp_path / "s.ukvs") == []
