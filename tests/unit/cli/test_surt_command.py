"""`recollect surt`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli.main import run


def test_uris_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "https://www.Example.com/B?b=2&a=1", "http://example.com/"]) == 0
    assert capsys.readouterr().out == "com,example)/b?a=1&b=2\ncom,example)/\n"


def test_a_hyphen_is_standard_input() -> None:
    command = [sys.executable, "-m", "recollect", "surt", "http://a.example/", "-"]
    done = subprocess.run(command, input=b"http://b.example/x\n", capture_output=True, timeout=60)
    assert done.stdout == b"example,a)/\nexample,b)/x\n"


def test_a_bad_uri_is_named_and_the_others_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "uris.txt"
    file.write_text("http://a.example/\n\nhttp://com,example/\nhttp://b.example/\n")
    assert run(["surt", "--from", str(file)]) == 3
    captured = capsys.readouterr()
    assert captured.out == "example,a)/\nexample,b)/\n"
    assert captured.err.splitlines() == [
        f"recollect: {file}:3: bad URI: 'http://com,example/': a host cannot hold ','",
        "recollect: 1 of 3 URIs have no SURT",
    ]


def test_only_bad_uris_fail_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "http://"]) == 1
    assert capsys.readouterr().err == "recollect: bad URI: 'http://': no host\nhint: write it as http://host/path\n"


def test_a_surt_in_place_of_a_uri_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "com,example)/a"]) == 1
    assert "hint: it is a SURT already" in capsys.readouterr().err


def test_an_empty_file_is_not_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert run(["surt", "--from", str(tmp_path / "empty")]) == 0
    assert capsys.readouterr().out == ""


def test_keys_of_uris_and_of_surts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "--key", "http://www.example.com/A/?q", "com,Example,)/A//?q"]) == 0
    assert capsys.readouterr().out == "com,example)/a\ncom,example)/a\n"


def test_keys_of_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    uri = "https://www.news.BBC.co.uk/images/Logo.png?width=200&height=80&rotate=90#top"
    assert run(["surt", "--policy", "dini", uri]) == 0
    assert run(["surt", "--policy", "H3P0", uri]) == 0
    assert capsys.readouterr().out == "uk,co,bbc)/1/2/3/i\nuk,co,bbc)/\n"


def test_what_has_no_host_has_a_surt_but_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "mailto:Me@example.com"]) == 0
    assert run(["surt", "--key", "mailto:Me@example.com"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "mailto:me@example.com\n"
    assert captured.err.startswith("recollect: no key: 'mailto:Me@example.com': it has no host\n")


def test_json_gives_one_line_for_every_uri(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "--json", "http://example.com/A?b", "http://", "mailto:x"]) == 3
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"uri": "http://example.com/A?b", "surt": "com,example)/a?b", "key": "com,example)/a"},
        {"uri": "http://", "error": "no host"},
        {"uri": "mailto:x", "surt": "mailto:x", "key": None},
    ]
    assert run(["surt", "--json", "--policy", "H1P0", "http://example.com/A?b"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "uri": "http://example.com/A?b",
        "surt": "com,example)/a?b",
        "policy": "H1P0",
        "key": "com)/",
    }


@pytest.mark.parametrize("args", [[], ["--key", "--policy", "HxPx", "http://x/"], ["--policy", "H0P0", "http://x/"]])
def test_what_cannot_be_meant_is_a_usage_error(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", *args]) == 2
    assert "hint:" in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["surt", "--from", "/no/such/file"]) == 2
    assert "no such file: /no/such/file" in capsys.readouterr().err
