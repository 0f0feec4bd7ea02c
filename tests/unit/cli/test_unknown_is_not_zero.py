"""Unknown values are absent, input that is not a map or a URI is refused, and steps that were not done are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.profiles.compaction.tradeoff import Point, knee_of

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    years = (2014, 2015)
    Path("bare.cdxj").write_text(
        "".join(f'com,x)/{i:02d} {year} {{"url": "http://x.com/{i:02d}"}}\n' for i in range(20) for year in years)
    )
    Path("full.cdxj").write_text(
        "".join(
            f'org,y)/{i} 2014 {{"url": "http://y.org/{i}", "mime": "text/html", "status": "200"}}\n' for i in range(9)
        )
    )
    for name in ("bare", "full"):
        assert run(["profile", f"{name}.cdxj", "-o", f"{name}.ukvs", "-q"]) == 0
    return tmp_path


def test_statuses_and_types_that_an_index_does_not_have_are_in_no_table(world: Path, capsys: Capture) -> None:
    assert run(["stats", "bare.cdxj"]) == 0
    said = capsys.readouterr().out
    assert "2xx%" not in said and "Media types" not in said and "Fitted laws" not in said
    assert run(["stats", "bare.cdxj", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["media_by_status"] == {} and found["media_by_year"] == {}
    assert [year["status_shares"] for year in found["years"]] == [{}, {}]
    assert found["heaps"] is None and found["host_fit"] is None
    assert run(["stats", "full.cdxj"]) == 0
    assert "2xx%" in capsys.readouterr().out
    assert run(["report", "bare.cdxj", "-o", "r.html", "-q"]) == 0
    assert "Status codes over time" not in Path("r.html").read_text()


def test_a_word_is_not_a_uri_and_not_a_no(world: Path, capsys: Capture) -> None:
    assert run(["lookup", "bare.ukvs", "not-a-uri"]) == 1
    said = capsys.readouterr()
    assert "not a URI" in said.err and " no " not in said.out
    assert run(["lookup", "bare.ukvs", "http://x.com/00", "not-a-uri"]) == 3
    assert run(["lookup", "bare.ukvs", "localhost"]) == 0
    Path("list").write_text("not-a-uri\nhttp://x.com/00\n")
    capsys.readouterr()
    assert run(["lookup", "bare.ukvs", "--from", "list"]) == 3
    assert capsys.readouterr().out.splitlines()[0] == "not-a-uri\tunknown\t-\t-"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://x.com/01 5\nhttp://x.com/none 7\n", "columns url, count separated by spaces"),
        ("time,url\n2014,http://x.com/01\n2015,http://x.com/none\n", "columns time, url separated by commas, named"),
        ('1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://x.com/01 HTTP/1.1" 200 1\n'
         '1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://x.com/none HTTP/1.1" 404 1\n', "log lines"),
    ],
)  # fmt: skip
def test_the_urls_of_a_table_are_looked_up_not_its_lines(world: Path, capsys: Capture, text: str, words: str) -> None:
    Path("table").write_text(text)
    capsys.readouterr()
    assert run(["lookup", "bare.ukvs", "--from", "table"]) == 0
    said = capsys.readouterr()
    answers = [line.split("\t")[:2] for line in said.out.splitlines()]
    assert answers == [["http://x.com/01", "yes"], ["http://x.com/none", "no"]]
    assert f"read as {words}" in said.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a PNG image"),
        (b"Some words about maps.\nAnd more.\n", "text that is not an index"),
        (b'com,x)/ 2014 {"url": "http://x.com/"}\n' * 3, "CDXJ"),
        (b"http://x.com/\nhttp://x.com/a\n", "URL list"),
        (b'{"captures": 1, "mimestatus": {}}', "cdx-summary"),
        # Some of whose lines look like lines of a map.
        (b'{\n "captures": 1,\n "mimestatus": {\n }\n}\n', "cdx-summary"),
        (b"\x89PNG\r\n\x1a\n" + b"\n!meta {}\n@\0\1\2" * 99, "a PNG image"),
        (b"[\n {}\n]\n", "a JSON document"),
    ],
)
def test_validate_says_in_one_line_that_something_is_not_a_map(
    world: Path, capsys: Capture, content: bytes, words: str
) -> None:
    Path("file").write_bytes(content)
    assert run(["validate", "file"]) == 1
    said = capsys.readouterr()
    (line,) = (said.out + said.err).splitlines()
    assert line.startswith("file: error: not a map: ") and words in line


def test_validate_still_names_the_faults_of_broken_maps(world: Path, capsys: Capture) -> None:
    Path("broken.ukvs").write_text("com,x)/ 5\ncom,w)/ 3\ncom,z)/ five\n")
    assert run(["validate", "broken.ukvs"]) == 1
    assert "not a map" not in capsys.readouterr().out


def test_merge_keeps_what_is_known_and_names_its_output(world: Path, capsys: Capture) -> None:
    assert run(["merge", "bare.ukvs", "full.ukvs", "--disjoint", "-o", "both.ukvs"]) == 0
    assert capsys.readouterr().err.startswith("both.ukvs: 2 maps")
    text = Path("both.ukvs").read_text()
    assert '!meta {"counts": {"captures": 49, "uri_rs": 29, "keys": 29}}' in text
    assert '!meta {"gamma": 1.6897}' in text
    assert run(["merge", "bare.ukvs", "full.ukvs", "-o", "both.ukvs.gz"]) == 0
    assert run(["validate", "both.ukvs", "both.ukvs.gz"]) == 0
    assert run(["merge", "bare.ukvs", "-o", "both.ukvs", "-q"]) == 0
    assert '"counts": {"captures": 40, "uri_rs": 20, "keys": 20}' in Path("both.ukvs").read_text()
    assert sorted(path.name for path in world.iterdir() if path.name.startswith(".")) == []


def test_a_budget_that_changes_nothing_says_so_and_columns_say_what_to_do(world: Path, capsys: Capture) -> None:
    assert run(["compact", "full.ukvs", "-o", "small.ukvs", "--max-cost", "1"]) == 0
    said = capsys.readouterr().err
    assert "nothing to do" in said and "one key per 100 URI-Rs is 1%" in said
    assert run(["profile", "full.cdxj", "--by", "year", "--by-columns", "-o", "columns.ukvs", "-q"]) == 0
    assert run(["compact", "columns.ukvs", "-o", "small.ukvs", "--max-cost", "50%"]) == 0
    assert "fold" in capsys.readouterr().err
    assert run(["compact", "columns.ukvs", "-o", "small.ukvs"]) == 0


def test_the_surt_of_an_ipv6_host_with_a_port_is_looked_up_as_its_url(world: Path, capsys: Capture) -> None:
    Path("v6.txt").write_text("http://[2001:db8::1]:8080/a\n")
    assert run(["profile", "v6.txt", "-o", "v6.ukvs", "-q"]) == 0
    for uri in ("http://[2001:db8::1]:8080/a", "[2001:db8::1]:8080)/a", "2001:db8::1:8080)/a"):
        assert run(["lookup", "v6.ukvs", uri, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["answer"] == "yes", uri
    Path("key.cdxj").write_text('2001:db8::1:8080)/a 2014 {"url": "http://[2001:db8::1]:8080/a"}\n')
    assert run(["profile", "key.cdxj", "-o", "v6.ukvs", "-q"]) == 0
    assert run(["verify", "v6.ukvs", "key.cdxj"]) == 0


def test_a_straight_climb_has_no_knee() -> None:
    def curve(accuracies: list[float]) -> list[Point]:
        return [Point(10**i, 10.0 ** (i - len(accuracies)), accuracy) for i, accuracy in enumerate(accuracies)]

    assert knee_of(curve([0.22, 0.42, 0.60, 0.81, 1.0])) is None
    assert knee_of(curve([0.22, 0.23, 0.30, 0.5, 1.0])) is None
    bent = curve([0.22, 0.5, 0.95, 0.98, 1.0])
    assert knee_of(bent) == bent[2]


@pytest.mark.parametrize(
    "content", [b"", b"<html><p>404 not found</p></html>\n", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(range(256)) * 9]
)
def test_a_file_that_is_not_a_map_answers_nothing(world: Path, capsys: Capture, content: bytes) -> None:
    Path("other").write_bytes(content)
    for command in (["lookup", "other", "http://y.org/1"], ["merge", "bare.ukvs", "other", "-o", "both.ukvs"]):
        if command[0] == "merge" and not content:
            continue  # of an empty map
        assert run(command) == 2
        said = capsys.readouterr()
        assert "not a map: other" in said.err and "no " not in said.out
    assert not Path("both.ukvs").exists()
