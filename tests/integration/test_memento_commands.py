"""`recollect timemap|timegate|memento|archives` against small archives on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.formats.timemap import parse_timemap
from small_archives import SmallArchives, small_archives

URI = "http://lost.example/"
Ask = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def archives() -> Iterator[SmallArchives]:
    with small_archives() as archives:
        yield archives


@pytest.fixture
def ask(archives: SmallArchives, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Run a command with these archives: (exit code, stdout, stderr)."""

    def asked(*args: str) -> tuple[int, bytes, str]:
        code = run([*args, "--archives", str(archives.write(tmp_path))])
        out, err = capfdbinary.readouterr()
        return code, out, err.decode()

    return asked


def test_a_timemap_of_all_archives(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000", "20170101000000"]})
    archives.add("two", {URI: ["20160101000000"]})
    archives.add("three", {})
    code, out, err = ask("timemap", URI)
    assert code == 0
    timemap = parse_timemap(out, "application/link-format", "http://localhost:1208/")
    assert timemap.problems == ()
    assert [line.split(b"/web/")[1][:14] for line in out.splitlines() if b"/web/" in line] == [
        b"20150101000000",
        b"20160101000000",
        b"20170101000000",
    ]
    rows = {line.split()[0]: line for line in err.splitlines() if "│" in line}
    assert "2 │" in rows["one"] and "1 │" in rows["two"] and "0 │" in rows["three"]


@pytest.mark.parametrize("kind", ["json", "cdxj"])
def test_formats(archives: SmallArchives, ask: Ask, kind: str) -> None:
    archives.add("one", {URI: ["20150101000000"]})
    code, out, _ = ask("timemap", "lost.example/", "--format", kind, "--quiet")
    assert code == 0
    assert [m.uri for m in parse_timemap(out, "", "")][:1] == [archives.uri_m("one", "20150101000000", URI)]
    if kind == "json":
        assert json.loads(out)["archives"][0]["mementos"] == 1


def test_a_range_of_time(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000", "20160615120000", "20161231235959", "20170101000000"]})
    code, out, _ = ask("timemap", URI, "--since", "2016", "--until", "2016", "--quiet")
    assert code == 0
    assert out.count(b"datetime=") == 2


def test_a_failing_archive_makes_the_answer_partial(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000"]})
    archives.add("two", {}, status=500)
    code, out, err = ask("timemap", URI)
    assert code == 3
    assert out.count(b"datetime=") == 1
    assert "failed" in err and "status 500" in err


def test_nothing_anywhere_is_said_and_exits_with_1(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {})
    code, out, err = ask("timemap", URI)
    assert (code, out) == (1, b"")
    assert "no mementos of http://lost.example/ found; 1 of 1 archives asked have answered" in err


def test_when_no_one_answers_that_is_not_an_absence(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {}, status=503)
    code, out, err = ask("timegate", URI)
    assert (code, out) == (1, b"")
    assert "0 of 1 archives asked have answered" in err


def test_none_here_but_one_failed_is_partial(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {})
    archives.add("two", {}, body=b"<html>hello</html>")
    code, _, err = ask("timemap", URI)
    assert code == 3
    assert "HTML" in err


def test_late_archives_are_named(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000"]})
    archives.add("two", {URI: ["20160101000000"]}, delay=5)
    code, out, err = ask("timemap", URI, "--timeout", "0.7")
    assert code == 3
    assert out.count(b"datetime=") == 1
    assert "timeout" in err


def test_only_the_chosen_archives_are_asked(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000"]})
    archives.add("two", {URI: ["20160101000000"]})
    archives.add("shy", {URI: ["20170101000000"]}, keys={"ignore": True})
    assert ask("timemap", URI, "--use", "two,shy", "--quiet")[1].count(b"datetime=") == 2
    assert ask("timemap", URI, "--use", "!two", "--quiet")[1].count(b"datetime=") == 1
    assert {path.split("/")[1] for _, path in archives.requests} == {"one", "two", "shy"}
    assert ask("timemap", URI, "--use", "unknown")[0] == 1


def test_top_k_asks_the_likeliest(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000"]}, keys={"probability": 0.1})
    archives.add("two", {URI: ["20160101000000"]}, keys={"probability": 0.9})
    _, out, err = ask("timemap", URI, "--top-k", "1")
    assert out.count(b"datetime=") == 1 and b'archive="two"' in out
    assert "skipped" in err and "only the best 1" in err


def test_maps_keep_archives_from_being_asked(archives: SmallArchives, ask: Ask, tmp_path: Path) -> None:
    archives.add("one", {URI: ["20150101000000"]})
    archives.add("two", {})
    maps = tmp_path / "maps"
    maps.mkdir()
    header = '!context ["https://git.io/mementomap"]\n!id {"uri": "http://x.example/"}\n!fields {"keys": ["surt"], '
    header += '"values": ["frequency"]}\n!meta {"type": "MementoMap"}\n'
    (maps / "one.ukvs").write_text(header + "example,lost)/* 5/2\n")
    (maps / "two.ukvs").write_text(header + "example,other)/* 5/2\n")
    code, out, err = ask("timemap", URI, "--maps", str(maps))
    assert (code, out.count(b"datetime=")) == (0, 1), err
    assert all(path.startswith("/one/") for _, path in archives.requests)
    assert "example,lost)/*" in err and "skipped" in err


def test_the_closest_memento(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000", "20170101000000"]})
    archives.add("two", {URI: ["20160101000000"]})
    code, out, err = ask("timegate", URI, "--datetime", "2016-02-03")
    assert (code, out.decode().strip()) == (0, archives.uri_m("two", "20160101000000", URI))
    assert "Fri, 01 Jan 2016 00:00:00 GMT (two)" in err
    newest = archives.uri_m("one", "20170101000000", URI)
    assert ask("timegate", URI)[1].decode().strip() == newest
    assert ask("memento", URI, "2018")[1].decode().strip() == newest


def test_the_description_of_a_choice(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000", "20160101000000", "20170101000000"]})
    _, out, _ = ask("memento", URI, "20160202", "--format", "json", "--quiet")
    named = json.loads(out)["mementos"]
    assert [named[name]["datetime"][:4] for name in ("first", "prev", "closest", "next", "last")] == [
        *("2015", "2015", "2016", "2017", "2017"),
    ]


def test_a_raw_memento_to_stdout_and_to_a_file(archives: SmallArchives, ask: Ask, tmp_path: Path) -> None:
    archives.add("one", {URI: ["20150101000000", "20170101000000"]})
    code, out, err = ask("memento", URI, "2014", "--raw")
    assert code == 0
    assert out.endswith(b"<p>raw one 20150101000000 http://lost.example/")
    assert "status 200" in err
    target = tmp_path / "page.html"
    assert ask("memento", URI, "2014", "--raw", "-o", str(target))[1] == b""
    assert target.read_bytes() == out


def test_captured_redirects_are_followed_in_the_archives(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {URI: ["20150101000000"], "http://moved.example/": ["20150202000000"]})
    archives.redirects["one", URI] = "http://moved.example/"
    code, out, err = ask("memento", URI, "2015", "--raw")
    assert code == 0
    assert out.endswith(b"raw one 20150202000000 http://moved.example/")
    assert "redirects to http://moved.example/" in err


@pytest.mark.parametrize("args", [["timemap", URI], ["timegate", URI, "--datetime", "2015"], ["memento", URI, "2015"]])
def test_json_is_a_format_with_a_flag_of_its_own(archives: SmallArchives, ask: Ask, args: list[str]) -> None:
    archives.add("one", {URI: ["20150101000000"]})
    code, out, _ = ask(*args, "--json")
    listed = json.loads(out)["mementos"]
    assert (code, listed["first"]["archive"]) == (0, "one")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["timegate", URI, "--datetime", "yesterday"], "not a date"),
        (["timegate", URI, "--datetime", "2014-13-45"], "no such day"),
        (["memento", URI, "20149999"], "no such day"),
        (["memento", URI, "2015", "--raw", "--format", "json"], "--raw and --format cannot be combined"),
        (["memento", URI, "2015", "--raw", "--json"], "--raw and --format cannot be combined"),
        (["memento", URI, "2015", "-o", "x"], "-o is for the body"),
        (["timemap", "mailto:a@b.example"], "only http, https and ftp"),
    ],
)
def test_mistakes_are_reported(archives: SmallArchives, ask: Ask, args: list[str], words: str) -> None:
    archives.add("one", {})
    code, out, err = ask(*args)
    assert code in (1, 2) and out == b""
    assert words in err
    assert archives.requests == []


def test_archives_are_listed(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {}, keys={"rates": "24/min"})
    archives.add("shy", {}, keys={"ignore": True, "note": "asked for it"})
    code, out, err = ask("archives", "list")
    assert code == 0
    assert b"24/min" in out and b"asked for it" in out
    assert "1 of 2 archives are asked" in err
    listed = json.loads(ask("archives", "list", "--json")[1])
    assert [(a["id"], a["ignore"]) for a in listed] == [("one", False), ("shy", True)]


def test_secrets_are_not_listed(archives: SmallArchives, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_TOKEN", "s3cret")
    archives.add("one", {}, keys={"headers": {"Authorization": "Bearer ${ONE_TOKEN}"}})
    _, out, err = ask("archives", "list", "--json")
    assert b"s3cret" not in out and "s3cret" not in err
    assert json.loads(out)[0]["headers"] == ["Authorization"]


def test_archives_are_checked(archives: SmallArchives, ask: Ask) -> None:
    archives.add("one", {"http://example.com/": ["20150101000000"]})
    archives.add("empty", {})
    archives.add("page", {}, body=b"<!doctype html>Are you human?")
    code, out, _ = ask("archives", "check", "--json")
    assert code == 3
    states = {state["archive"]: (state["state"], state["mementos"]) for state in json.loads(out)}
    assert states == {"one": ("ok", 1), "empty": ("ok", 0), "page": ("error", 0)}
    assert ask("archives", "check", "one", "empty")[0] == 0
    assert ask("archives", "check", "page")[0] == 1
