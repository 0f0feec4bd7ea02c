import json

import pytest

from recollect.cli.main import run
from ukvs_samples import FIGURE_2


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fig2.ukvs").write_bytes(FIGURE_2)
    (tmp_path / "bad.ukvs").write_bytes(FIGURE_2 + b"com,a)/ 5\ncom,a)/ 6\ncom,b)/* x\n")
    (tmp_path / "a.ukvs").write_text("com,a)/ 5\ncom,b)/ 1\n")
    (tmp_path / "b.ukvs").write_text("com,a)/ 7\ncom,c)/ 2\n")
    return tmp_path


def test_validate_says_clean_and_exits_with_0(files, capsys):
    assert run(["validate", "fig2.ukvs"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "fig2.ukvs: clean\n"


def test_validate_names_every_fault_and_exits_with_1(files, capsys):
    assert run(["validate", "fig2.ukvs", "bad.ukvs"]) == 1
    assert run(["validate", "fig2.ukvs", "missing.ukvs", "bad.ukvs"]) == 2
    out, _ = capsys.readouterr()
    assert [line.split(": ")[0] for line in out.splitlines()] == [
        "bad.ukvs:13",
        "bad.ukvs:14",
        "bad.ukvs:15",
        "missing.ukvs",
        "bad.ukvs:13",
        "bad.ukvs:14",
        "bad.ukvs:15",
    ]


def test_validate_prints_up_to_a_limit_and_counts_all(files, capsys):
    assert run(["validate", "bad.ukvs", "--limit", "1"]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "2 more are not printed" in err
    assert run(["validate", "bad.ukvs", "--limit", "1", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["clean"] is False
    assert report["files"][0]["errors"] == 3
    assert report["files"][0]["counts"] == {"bad-frequency": 1, "duplicate-key": 1, "unsorted": 1}
    assert len(report["files"][0]["faults"]) == 1
    assert run(["validate", "bad.ukvs", "--strict"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_merge_writes_and_reports(files, capsys):
    assert run(["merge", "a.ukvs", "b.ukvs", "-o", "out.ukvs"]) == 0
    assert "2 maps, 4 records -> 3 keys" in capsys.readouterr().err
    lines = (files / "out.ukvs").read_text().splitlines()
    assert [line for line in lines if line[0] != "!"] == ["com,a)/ 12", "com,b)/ 1", "com,c)/ 2"]
    assert any(line.startswith('!meta {"updated_at": "20') for line in lines)
    assert run(["merge", "a.ukvs", "b.ukvs", "-o", "out.ukvs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == 3


def test_merge_onto_stdout_and_partial_input(files, capfdbinary):
    assert run(["merge", "a.ukvs", "bad.ukvs"]) == 3
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"!context")
    assert b"skipped: bad.ukvs: bad frequency" in err
    assert b"was not sorted" in err
    assert run(["merge", "a.ukvs", "bad.ukvs", "--strict", "-o", "no.ukvs"]) == 1
    assert not (files / "no.ukvs").exists()


def test_usage_errors_exit_with_2(files, capsys):
    assert run(["merge"]) == 2
    assert run(["merge", "a.ukvs", "--json"]) == 2
    (files / "x.ukvs").write_text('!id {uri: "http://x/"}\n')
    assert run(["merge", "x.ukvs", "fig2.ukvs", "-o", "o"]) == 2
    assert "--id" in capsys.readouterr().err


def test_diff_prints_changes_and_a_table(files, capsys):
    assert run(["diff", "a.ukvs", "b.ukvs"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("! com,a)/ 5 -> 7\n- com,b)/ 1\n+ com,c)/ 2\n")
    assert "removed" in out
    assert run(["diff", "a.ukvs", "a.ukvs"]) == 0
    assert "no key differs" in capsys.readouterr().err
    assert run(["diff", "a.ukvs", "b.ukvs", "-q"]) == 1
    assert capsys.readouterr() == ("", "")


def test_diff_as_lines_of_json(files, capsys):
    assert run(["diff", "a.ukvs", "b.ukvs", "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"kind": "changed", "key": "com,a)/", "old": {"frequency": "5"}, "new": {"frequency": "7"}}
    assert lines[-1]["summary"] == {"added": 1, "removed": 1, "changed": 1}


@pytest.mark.parametrize(
    "command",
    [
        ["compact", "index.cdxj", "-o", "out.ukvs"],
        ["compact", "index.cdxj", "-o", "out.ukvs", "--max-keys", "1"],
        ["merge", "a.ukvs", "index.cdxj", "-o", "out.ukvs", "--engine", "spark"],
        ["evaluate", "index.cdxj", "--holdings", "index.cdxj", "--lookups", "log.txt"],
        ["lookup", "index.cdxj", "http://a.com/x"],
        ["publish", "index.cdxj", "--to", "out.ukvs"],
        ["tradeoff", "index.cdxj", "-o", "out.svg"],
        ["voids", "log.txt", "--map", "index.cdxj", "-o", "out.ukvs"],
    ],
)
def test_an_index_is_not_taken_for_a_map_whose_frequencies_are_times(files, capsys, command):
    (files / "index.cdxj").write_text('com,a)/x 20100101000000 {"url": "http://a.com/x", "status": "200"}\n')
    (files / "log.txt").write_text("http://b.com/\n")
    assert run(command) == 2
    assert "CDXJ where a map is expected: index.cdxj" in capsys.readouterr().err
    assert not (files / "out.ukvs").exists()
