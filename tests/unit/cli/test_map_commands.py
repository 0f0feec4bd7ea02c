"""The commands over maps: lookup, voids, filter, evaluate."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from recollect.cli.main import run


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    (tmp_path / "one.ukvs").write_text("com,x)/* 60/50\ncom,x)/void 0\ncom,y)/a 2/1\n")
    (tmp_path / "two.ukvs").write_text("com,y)/a 7\n")
    return tmp_path


def test_one_uri_in_one_map_is_one_json_document(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lookup", str(maps / "one.ukvs"), "http://www.x.com/q?r=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "uri": "http://www.x.com/q?r=1",
        "answer": "yes",
        "key": "com,x)/*",
        "frequency": "60/50",
    }


def test_several_maps_say_which_archives_to_ask(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [str(maps / "one.ukvs"), str(maps / "two.ukvs")]
    assert run(["lookup", *both, "http://y.com/a", "http://x.com/void", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["answer"], first["ask"], first["maps"]["two"]["frequency"]) == ("yes", ["one", "two"], "7")
    assert (second["answer"], second["ask"], second["maps"]["one"]["key"]) == ("no", [], "com,x)/void")
    assert run(["lookup", *both, "http://y.com/a"]) == 0
    table = capsys.readouterr().out
    assert "yes 2/1" in table
    assert "one, two" in table


@pytest.mark.parametrize("several", [False, True])
def test_a_list_is_answered_line_by_line_in_its_order(
    maps: Path, capsys: pytest.CaptureFixture[str], several: bool
) -> None:
    (maps / "list").write_text("http://x.com/void\n\ncom,y)/a?q\nhttp://nowhere.org/\n")
    chosen = [str(maps / "one.ukvs"), *([str(maps / "two.ukvs")] if several else [])]
    assert run(["lookup", *chosen, "--from", str(maps / "list")]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [
        ["http://x.com/void", "no"],
        ["com,y)/a?q", "yes"],
        ["http://nowhere.org/", "no"],
    ]
    assert rows[1][2:] == (["one,two", "one=yes", "two=yes"] if several else ["com,y)/a", "2/1"])


@pytest.mark.parametrize("header", ["", '!context ["c"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'])
@pytest.mark.parametrize("plain", [True, False])
def test_of_a_map_as_a_list_the_keys_are_looked_up(
    maps: Path, capsys: pytest.CaptureFixture[str], header: str, plain: bool
) -> None:
    (maps / "other.ukvs").write_text(header + "com,x)/* 4/1\ncom,y)/a 4/1\norg,z)/ 1/1\n")
    assert (
        run(["lookup", str(maps / "one.ukvs"), "--from", str(maps / "other.ukvs"), *([] if plain else ["--json"])]) == 0
    )
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    rows = (
        [line.split("\t")[:2] for line in lines]
        if plain
        else [[*map(json.loads(line).get, ("uri", "answer"))] for line in lines]
    )
    assert rows == [["com,x)/*", "yes"], ["com,y)/a", "yes"], ["org,z)/", "no"]]
    assert "is a map" in shown.err


def test_a_hyphen_reads_uris_from_standard_input(
    maps: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"http://y.com/a\n")))
    assert run(["lookup", str(maps / "one.ukvs"), "-"]) == 0
    assert capsys.readouterr().out.startswith("http://y.com/a\tyes\t")


def test_lines_that_are_not_uris_are_named_and_the_exit_code_says_so(
    maps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (maps / "list").write_text("http://x.com/\n::::\nhttp://y.com/a\n")
    for more in ([], ["--json"]):
        assert run(["lookup", str(maps / "one.ukvs"), "--from", str(maps / "list"), *more]) == 3
        output = capsys.readouterr()
        assert len(output.out.splitlines()) == 3
        assert "'::::'" in output.err
        assert "3 looked up" in output.err


def test_a_time_is_looked_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.ukvs").write_text('com,x)/ 5/1 {"datetime": {"2014": "5/1"}}\n')
    for moment, answer in (("2014", "yes"), ("2015-01", "no")):
        assert run(["lookup", str(tmp_path / "m.ukvs"), "http://x.com/", "--datetime", moment, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["answer"] == answer


def test_usage_errors_name_the_next_step(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lookup", str(maps / "one.ukvs")]) == 2
    assert "--from" in capsys.readouterr().err
    assert run(["lookup", str(maps / "missing.ukvs"), "http://x.com/"]) == 2
    assert "no such map" in capsys.readouterr().err
    assert run(["filter", str(maps / "one.ukvs"), "-o", "-", "--json"]) == 2


def test_a_filter_is_made_and_looked_up(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["filter", str(maps / "one.ukvs"), "-o", str(maps / "f"), "--bits", "16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == 2
    assert run(["lookup", str(maps / "f"), "http://y.com/a", "http://y.com/b", "--json"]) == 0
    assert [json.loads(line)["answer"] for line in capsys.readouterr().out.splitlines()] == ["yes", "no"]


def test_evaluation_fails_when_something_held_is_missed(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (maps / "index.surt").write_text("com,x)/a\ncom,x)/void\ncom,y)/a\n")
    (maps / "log").write_text("http://x.com/a\nhttp://x.com/void\nhttp://z.com/\n")
    command = ["--holdings", str(maps / "index.surt"), "--lookups", str(maps / "log")]
    assert run(["evaluate", str(maps / "one.ukvs"), *command]) == 1
    output = capsys.readouterr()
    assert "misses http://x.com/void" in output.err
    assert "66.67%" in output.out
    (maps / "good.ukvs").write_text("com,x)/* 2\ncom,y)/a 1\n")
    assert run(["evaluate", str(maps / "good.ukvs"), *command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["maps"][0]["unweighted"]["accuracy"]["value"] == 1
    assert report["maps"][0]["relative_cost"] == pytest.approx(2 / 3)


def test_bad_lines_of_a_log_are_counted(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (maps / "log").write_text("http://q.com/a\nwhat is this line\nhttp://q.com/a\nhttp://q.com/a\n")
    out = maps / "voids.ukvs"
    assert run(["voids", str(maps / "log"), "--map", str(maps / "one.ukvs"), "-o", str(out)]) == 3
    assert f"{maps / 'log'}:2" in capsys.readouterr().err
    assert out.read_text().splitlines()[-1] == "com,q)/a 0"
    strict = ["voids", str(maps / "log"), "--map", str(maps / "one.ukvs"), "-o", str(maps / "no"), "--strict"]
    assert run(strict) == 1
    assert not (maps / "no").exists()


def test_a_map_that_is_not_there_is_not_a_uri(maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = str(next(maps.glob("*.ukvs")))
    for missing in ("other.ukvs", "maps/other.ukvs.gz", "other.filter"):
        assert run(["lookup", there, missing, "http://x.com/"]) == 2
        assert f"no such map: {missing}" in capsys.readouterr().err
    assert run(["lookup", there, "http://x.com/a.ukvs", "com,x)/a.ukvs"]) == 0


def test_voids_by_their_short_option(tmp_path: Path) -> None:
    (tmp_path / "map.ukvs").write_text("com,x)/ 1\n")
    (tmp_path / "log.txt").write_text("http://y.com/a\nhttp://y.com/a\nhttp://z.com/\nhttp://x.com/\nhttp://x.com/\n")
    names = [str(tmp_path / name) for name in ("log.txt", "map.ukvs", "voids.ukvs")]
    assert run(["voids", names[0], "--map", names[1], "-o", names[2], "-n", "2", "-q"]) == 0
    assert [line for line in (tmp_path / "voids.ukvs").read_text().splitlines() if line[0] != "!"] == ["com,y)/a 0"]
