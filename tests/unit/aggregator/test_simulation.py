"""Replaying logs: requests, recall and latency of each way of routing."""

from __future__ import annotations

import json
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from recollect.aggregator.simulation import Logged, read_log, simulate
from recollect.archives.registry import Archive
from recollect.cli.main import run
from recollect.errors import FormatError
from recollect.model import Problem
from recollect.routing.maps import Maps

HEAD = '!context ["https://git.io/mementomap"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
IDS = ("national", "general")


def log_lines(count: int = 3000) -> list[dict]:
    """The national archive holds .pt, the general one everything; the general one is slow."""
    lines = []
    for number in range(count):
        domain = "pt" if number % 4 == 0 else "com"
        held = {"national": 2 if domain == "pt" else 0, "general": 1}
        lines.append(
            {
                "at": "2026-01-01T00:00:00Z",
                "uri": f"http://h{number % 97}.{domain}/{number}",
                "status": 200,
                "archives": held,
                "times": {"national": 100, "general": 900},
            }
        )
    return lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in log_lines()))
    return path


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "national.ukvs").write_text(HEAD + "pt,* 1000/150\n")
    (folder / "general.ukvs").write_text(HEAD + '!meta {"covers_all": true}\n* 9000+\n')
    return folder


def test_ways_are_compared_on_the_same_lookups(log: Path, maps: Path) -> None:
    lookups = list(read_log(log, _raise))
    opened = Maps.open(maps, [Archive(name) for name in IDS])
    broadcast, by_maps, learned, both = simulate(lookups, IDS, maps=opened)
    assert (broadcast.requests, broadcast.recall, broadcast.lookups) == (6000, 1.0, 3000)
    assert (by_maps.requests, by_maps.recall) == (3750, 1.0)
    assert broadcast.wasted == pytest.approx(2250 / 6000)
    assert by_maps.wasted == 0
    assert 3750 <= learned.requests < 4800
    assert learned.recall > 0.97
    assert both.recall == 1.0
    assert broadcast.latency(0.5) == 0.9
    again = simulate(lookups, IDS, maps=opened)
    assert [tally.requests for tally in again] == [t.requests for t in (broadcast, by_maps, learned, both)]


def test_only_asked_archives_take_time() -> None:
    lookups = [Logged("http://a.pt/", {"national": 1, "general": 0}, {"national": 0.1, "general": 0.9})]
    (broadcast,) = simulate(lookups, IDS, ways=["broadcast"])
    assert broadcast.latency(0.5) == 0.9
    (top,) = simulate(lookups, IDS, ways=["broadcast"], top_k=1)
    assert (top.requests, top.latency(0.5)) == (1, 0.1)


def test_a_log_without_hits_needs_the_truth(maps: Path) -> None:
    lookups = [Logged("http://a.pt/"), Logged("http://a.com/")]
    with pytest.raises(FormatError, match="does not say"):
        simulate(lookups, IDS)
    truth = Maps.open(maps, [Archive(name) for name in IDS])
    (broadcast,) = simulate(lookups, IDS, truth=truth, ways=["broadcast"])
    assert (broadcast.found, broadcast.missed, broadcast.requests) == (3, 0, 4)


def test_lines_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"uri": "http://a.example/"}\n{broken\nhttp://b.example/\n')
    problems: list[Problem] = []
    assert [lookup.uri_r for lookup in read_log(path, problems.append)] == ["http://a.example/", "http://b.example/"]
    assert [problem.line for problem in problems] == [2]


def test_the_command(log: Path, maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(log), "--maps", str(maps), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["lookups"], report["archives"]) == (3000, ["general", "national"])
    assert [way["way"] for way in report["ways"]] == ["broadcast", "maps", "learned", "both"]
    assert [target["target"] for target in report["targets"]] == [0.9, 0.95, 0.99]
    for target in report["targets"]:
        assert target["lowest_recall"] >= target["target"]
        assert set(target["recall_by_archive"]) == set(IDS)
    assert run(["replay", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "learned" in shown and "Recall by archive" in shown and "target 95%" in shown


def test_route_explains(tmp_path: Path, maps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "archives.json"
    listed.write_text(json.dumps([{"id": name, "timemap": "http://127.0.0.1:9/"} for name in IDS]))
    assert run(["route", "a.com/x", "--archives", str(listed), "--maps", str(maps), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["uri"], report["ask"]) == ("http://a.com/x", 1)
    assert [(one["id"], one["decision"], one["key"]) for one in report["archives"]] == [
        ("general", "ask", "*"),
        ("national", "skip", None),
    ]
    assert run(["route", "a.com/x", "--archives", str(listed), "--maps", str(maps)]) == 0
    assert "1 of 2 archives are asked" in capsys.readouterr().out


def test_route_reads_a_list_to_its_end_and_names_lines_that_are_not_uris(
    tmp_path: Path, maps: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "archives.json"
    listed.write_text(json.dumps([{"id": name, "timemap": "http://127.0.0.1:9/"} for name in IDS]))
    asking = ["route", "-", "--archives", str(listed), "--maps", str(maps), "--target-recall", "95%", "--json"]
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BufferedReader(BytesIO(b"a.com/x\n\nnot a uri\nb.com/\n"))))
    assert run(asking) == 3
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [one["uri"] for one in lines] == ["http://a.com/x", "not a uri", "http://b.com/"]
    assert lines[1]["error"] and "archives" not in lines[1]
    assert "line 3: malformed URI-R" in err
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BufferedReader(BytesIO(b"not a uri\n"))))
    assert run(asking) == 1


def test_replay_takes_a_recall_as_a_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"uri": "http://a.pt/", "status": 200, "archives": {"national": 1}}
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    for given in ("99%", "0.99"):
        assert run(["replay", str(tmp_path / "log.jsonl"), "--estimate", "--target-recall", given, "--json"]) == 0
        ways = {way["way"] for way in json.loads(capsys.readouterr().out)["ways"]}
        assert {"learned", "estimate"} <= ways
    assert run(["replay", str(tmp_path / "log.jsonl"), "--target-recall", "99"]) == 2


def _raise(problem: Problem) -> None:
    raise AssertionError(problem)


def test_time_spares_requests_and_the_closest_memento_is_still_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "by-year"
    folder.mkdir()
    head = HEAD.replace('["surt"]', '["surt", "datetime"]')
    (folder / "national.ukvs").write_text(head + "pt,a)/ 2005 1/1\npt,a)/ : 1/1\n")
    (folder / "general.ukvs").write_text(head + "pt,a)/ 2015 1/1\npt,a)/ : 1/1\n")
    line = {"uri": "http://a.pt/", "status": 200, "datetime": "Thu, 31 May 2005 20:35:00 GMT"}
    line |= {"archives": {"national": 1, "general": 1}}
    (tmp_path / "log.jsonl").write_text((json.dumps(line) + "\n") * 10)
    how = ["--maps", str(folder), "--truth", str(folder), "--near", "2y", "--json"]
    assert run(["replay", str(tmp_path / "log.jsonl"), *how]) == 0
    ways = {way["way"]: way for way in json.loads(capsys.readouterr().out)["ways"]}
    assert (ways["maps"]["requests"], ways["maps"]["closest"]) == (20, 1.0)
    assert (ways["near"]["requests"], ways["near"]["closest"]) == (10, 1.0)


def test_one_estimate_asks_by_target_and_the_page_moves_the_chances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for number in range(1500):
        page = f"http://127.0.0.1/memento/2005/http://h{number}.com/"
        held = {"national": number % 2, "general": (number + 1) % 2}
        lines.append({"uri": f"http://h{number}.com/", "status": 200, "archives": held})
        lines.append({"uri": f"http://cdn.com/{number}.png", "status": 200, "archives": held, "referer": page})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["replay", str(tmp_path / "log.jsonl"), "--estimate", "--target-recall", "0.8", "--json"]) == 0
    ways = {way["way"]: way for way in json.loads(capsys.readouterr().out)["ways"]}
    assert ways["referer"]["requests"] < ways["estimate"]["requests"] == ways["broadcast"]["requests"]
    assert ways["referer"]["recall"] == 1.0
