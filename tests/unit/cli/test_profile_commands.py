"""profile, verify, stats and overlap as typed: exit codes, what goes to stdout and what to stderr."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli.main import run

LINES = (
    'com,x)/a 20140101000000 {"url": "http://x.com/a", "mime": "text/html", "status": "200"}\n'
    'com,x)/a 20150101000000 {"url": "http://x.com/a", "mime": "text/html", "status": "404"}\n'
    'com,x)/b?q 20160101000000 {"url": "http://x.com/b?q", "mime": "image/png", "status": "200"}\n'
)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    file = tmp_path / "index.cdxj"
    file.write_text(LINES)
    return file


def test_the_map_goes_to_the_file_and_the_summary_to_stderr(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "map.ukvs"
    assert (
        run(["profile", str(index), "-o", str(target), "--status", "200", "--name", "A", "--id", "https://a.org/"]) == 0
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{target}: 2 keys, 2 captures of 2 URI-Rs (γ 1.00), 2014-01-01 to 2016-01-01" in err
    assert "status ×1" in err
    text = target.read_text()
    assert "com,x)/a 1/1\ncom,x)/b 1/1\n" in text
    assert '!id {"uri": "https://a.org/"}' in text
    assert "updated_at" in text


def test_without_output_the_map_goes_to_stdout_byte_for_byte_the_same(
    index: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    outputs = []
    for _ in range(2):
        assert run(["profile", str(index), "--updated-at", "2024-05-01", "--quiet"]) == 0
        outputs.append(capfdbinary.readouterr())
    assert outputs[0] == outputs[1]
    assert outputs[0].out.endswith(b"com,x)/a 2/1\ncom,x)/b 1/1\n")
    assert outputs[0].err == b""


def test_json_for_programs(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", str(index), "-o", str(tmp_path / "map"), "--json", "--exclude", "a"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["keys"], found["captures"], found["lines"], found["filtered"]) == (1, 1, 3, {"excluded name": 2})
    assert run(["profile", str(index), "--json"]) == 2


def test_damage_and_bad_lines_are_partial_success(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.cdxj"
    broken.write_text(LINES + "com,x)/c 20140101000000 {oops\n")
    assert run(["profile", str(broken), "-o", str(tmp_path / "map")]) == 3
    err = capsys.readouterr().err
    assert "broken JSON ×1" in err
    assert f"{broken}:4: broken JSON" in err
    assert run(["profile", str(broken), "-o", str(tmp_path / "other"), "--strict"]) == 1
    assert "broken.cdxj:4" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    cut = tmp_path / "cut.cdxj.gz"
    cut.write_bytes(
        gzip.compress("".join(LINES.replace("x)", f"x{os.urandom(5).hex()})") for _ in range(500)).encode())[:5000]
    )
    assert run(["profile", str(cut), "-o", str(tmp_path / "map")]) == 3
    assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--policy", "X"],
        ["--where", "nonsense ="],
        ["--by", "week"],
        ["--memory-limit", "much"],
        ["--updated-at", "soon"],
        ["--since", "x"],
    ],
)
def test_usage_errors_exit_2_with_a_hint(index: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", str(index), *arguments]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["profile", "none"],
        ["profile", "index.cdxj", "none"],
        ["profile", "*.none"],
        ["profile", "empty/"],
        ["profile", "index.cdxj", "--temp-dir", "none"],
        ["stats", "none"],
        ["stats", "map.ukvs", "none"],
        ["verify", "none", "index.cdxj"],
        ["verify", "map.ukvs", "none"],
        ["merge", "none", "map.ukvs", "-o", "out.ukvs"],
        ["diff", "none", "map.ukvs"],
        ["diff", "map.ukvs", "none"],
        ["overlap", "--holdings", "none", "--lookups", "urls.txt"],
        ["overlap", "--holdings", "map.ukvs", "--lookups", "none"],
        ["validate", "none"],
        ["lookup", "none", "http://x.com/"],
        ["lookup", "map.ukvs", "--from", "none"],
        ["compact", "none", "-o", "out.ukvs"],
        ["evaluate", "none", "--holdings", "map.ukvs", "--lookups", "urls.txt"],
        ["evaluate", "map.ukvs", "--holdings", "map.ukvs", "--lookups", "none"],
        ["filter", "none", "-o", "out"],
        ["publish", "none", "out"],
        ["report", "none", "-o", "out.html"],
        ["route", "http://x.com/", "--archives", "none"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_named_and_exits_2(
    index: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(index.parent)
    Path("map.ukvs").write_text("com,x)/a 1/1\n")
    Path("urls.txt").write_text("http://x.com/a\n")
    Path("empty").mkdir()
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert "none" in said.err + said.out or "empty" in said.err
    assert not any(Path().glob("out*"))


@pytest.mark.parametrize("target", ["none/map.ukvs", "index.cdxj/map.ukvs", "empty", "/proc/map.ukvs", "/dev/full"])
def test_where_nothing_can_be_written_is_named_with_reason_and_next_step(
    index: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(index.parent)
    Path("empty").mkdir()
    assert run(["profile", "index.cdxj", "-o", target]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"recollect: cannot write: {target}: ")
    assert "\nhint: " in said


def test_an_output_that_cannot_be_is_refused_before_anything_is_read(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.profiles.indexes.profile.find_sources", lambda *_: pytest.fail("read"))
    assert run(["profile", str(index), "-o", str(index.parent / "none" / "map.ukvs")]) == 1


def test_verify_says_all_found_or_names_each_miss(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "map.ukvs"
    run(["profile", str(index), "-o", str(target), "-q"])
    assert run(["verify", str(target), str(index)]) == 0
    assert "all found; 2 counts compared, all right" in capsys.readouterr().err
    target.write_text("com,x)/a 5/1\n")
    assert run(["verify", str(target), str(index)]) == 1
    out, err = capsys.readouterr()
    assert f"missed: {index}:3: the map says no: com,x)/b?q" in out
    assert "wrong count: com,x)/a: the map says 5/1, the input has 2/1" in out
    assert "2 NOT found; 1 count compared, 1 WRONG" in err
    assert run(["verify", str(target), str(index), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["missed"] == 2


def test_stats_in_words_and_as_json(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", str(index)]) == 0
    out = capsys.readouterr().out
    for title in (
        "Overview",
        "Top TLDs",
        "Most captured URI-Rs",
        "Captures per URI-R",
        "Years",
        "Depths",
        "Relative cost",
        "Media types",
    ):
        assert title in out
    assert run(["stats", str(index), "--json", "--status", "200"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["overview"]["captures"] == 2
    assert found["media_by_status"] == {"image/png": {"200": 1}, "text/html": {"200": 1}}
    run(["profile", str(index), "-o", str(tmp_path / "map.ukvs"), "-q"])
    assert run(["stats", str(tmp_path / "map.ukvs"), "--json"]) == 0
    of_map = json.loads(capsys.readouterr().out)
    assert (of_map["overview"]["captures"], of_map["overview"]["uri_rs"], of_map["years"]) == (3, 2, [])
    assert of_map["policy_costs"]["HxPx"] == 1


def test_overlap_shows_the_matrix(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("1 http://x.com/a\n11 http://nowhere.org/\n")
    assert run(["overlap", "--holdings", str(index), "--lookups", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["columns"]) == (["Zero", "Ones"], ["Zero", "Ones", "Tens"])
    assert found["matrix"] == [[0, 0, 1], [1, 1, 0]]
    assert run(["overlap", "--holdings", str(index), "--lookups", str(log)]) == 0
    assert "(50.00%) are held" in capsys.readouterr().out


def test_the_interrupted_command_leaves_nothing_half_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    target = tmp_path / "map.ukvs"
    command = [sys.executable, "-m", "recollect", "profile", str(pipe), "-o", str(target), "--temp-dir", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with pipe.open("w") as writer:  # returns when the command reads
        # More than a pipe holds: once it is written, the command is past its imports (some of which swallow an
        # interrupt) and reads on.
        writer.write(LINES * 2000)
        writer.flush()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


@pytest.mark.parametrize(
    "arguments",
    [["verify", "index.cdxj", "map.ukvs"], ["merge", "map.ukvs", "index.cdxj"], ["diff", "map.ukvs", "index.cdxj"]],
)
def test_an_index_is_not_read_as_a_map(
    index: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(index.parent)
    assert run(["profile", "index.cdxj", "-q", "-o", "map.ukvs"]) == 0
    assert run(arguments) == 2
    assert "recollect profile index.cdxj" in capsys.readouterr().err or arguments[0] == "verify"


def test_stats_of_a_map_take_no_filters_and_json_has_no_empty_sample(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    map_path = index.with_name("map.ukvs")
    assert run(["profile", str(index), "-q", "-o", str(map_path)]) == 0
    assert run(["stats", str(map_path), "--status", "200"]) == 2
    capsys.readouterr()
    assert run(["stats", str(map_path), "--json"]) == 0
    assert "sample" not in json.loads(capsys.readouterr().out)
